//! The endpoint for asyncio: sockets and protocol live on tokio's threads, without the interpreter's lock.

use crate::connection::Connection;
use crate::errors::{closed, impossible};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3_async_runtimes::tokio::{future_into_py, get_runtime};
use restp::{
    Acceptance, Composition, EndpointConfig, Identity, KnownHosts, Local, Preset, SecretKey, Security, Trust,
};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

/// A host's transport on real sockets. Dropped or closed it takes no new connections; those it has go on.
#[pyclass(frozen, module = "restp._restp")]
pub struct Endpoint {
    /// None once closed.
    host: Mutex<Option<Arc<restp::Endpoint>>>,
    closing: Arc<Notify>,
    addresses: Vec<String>,
    key: Option<String>,
    known_hosts: Option<KnownHosts>,
}

/// Whom an endpoint reaches.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Reaches {
    /// The host with this public key.
    key: Option<String>,
    /// Those of this file, or of the user's.
    known_hosts: Option<PathBuf>,
    /// Whoever answers.
    anybody: bool,
}

#[pymethods]
impl Endpoint {
    /// Binds `local`. `profile` is a preset and `set` what differs from it; with `serve` connections to that port are
    /// accepted. `secret` is the key of this host, a new one when None; `plain` leaves the seal out. `reaches` says who may be at
    /// the other end of a connection that it opens, nobody when None.
    #[new]
    #[pyo3(signature = (local, profile, set, serve=None, secret=None, plain=false, reaches=None))]
    fn new(
        local: Vec<String>,
        profile: &str,
        set: Vec<(String, String)>,
        serve: Option<u16>,
        secret: Option<&str>,
        plain: bool,
        reaches: Option<Reaches>,
    ) -> PyResult<Self> {
        let locals: Vec<Local> = local
            .iter()
            .map(|text| address(text).map(Local::Address))
            .collect::<PyResult<_>>()?;
        let mut config = EndpointConfig::new(composition(profile, &set)?);
        if let Some(port) = serve {
            config = config.listen(port, Acceptance::Any);
        }
        let trust = if plain {
            Trust::Nobody
        } else {
            reaches.map_or(Ok(Trust::Nobody), Reaches::trust)?
        };
        let known_hosts = match &trust {
            Trust::KnownHosts(hosts) => Some(hosts.clone()),
            _ => None,
        };
        let identity = secret.map_or_else(
            || Ok(Identity::fresh()?),
            |text| text.parse::<SecretKey>().map(Identity::of).map_err(impossible),
        )?;
        let security = if plain {
            Security::Plain
        } else {
            Security::Sealed(Identity { trust, ..identity })
        };
        let _runtime = get_runtime().enter();
        let host = restp::Endpoint::bind_with(&locals, config, security)
            .map_err(|error| PyOSError::new_err(format!("{}: {error}", local.join(", "))))?;
        Ok(Endpoint {
            addresses: host.local_addrs().iter().map(SocketAddr::to_string).collect(),
            key: host.public_key().map(|key| key.to_string()),
            known_hosts,
            host: Mutex::new(Some(Arc::new(host))),
            closing: Arc::new(Notify::new()),
        })
    }

    /// The bound addresses, with the ports the system chose.
    #[getter]
    fn addresses(&self) -> Vec<String> {
        self.addresses.clone()
    }

    /// The public key that names this host; None without a seal.
    #[getter]
    fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// Opens a connection over every pair of a bound address and one of `remote` that makes sense, and waits until it is
    /// established with who may be there.
    fn connect<'py>(&self, py: Python<'py>, remote: Vec<String>, port: u16) -> PyResult<Bound<'py, PyAny>> {
        let remotes: Vec<SocketAddr> = remote.iter().map(|text| address(text)).collect::<PyResult<_>>()?;
        let host = self.host()?;
        future_into_py(py, async move {
            let opened = host.connect_to(&remotes, port).await;
            opened
                .map(Connection::new)
                .map_err(|error| closed(&format!("{}: {error}", remote.join(", "))))
        })
    }

    /// The names and keys of hosts that were met for the first time since the last call, and the file that remembers them.
    fn met(&self) -> Vec<(String, String, PathBuf)> {
        let hosts = self.known_hosts.iter();
        hosts
            .flat_map(|hosts| {
                let met = hosts.take_met().into_iter();
                met.map(|(name, key)| (name, key.to_string(), hosts.path().to_owned()))
            })
            .collect()
    }

    /// Waits for a connection that a peer opened; None once the endpoint is closed.
    fn accept<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        // Listens from here on: `close` may come before the runtime looks at this future.
        let closing = self.closing.clone().notified_owned();
        let host = self.host().ok();
        future_into_py(py, async move {
            let Some(host) = host else { return Ok(None) };
            tokio::select! {
                connection = host.accept() => Ok(connection.map(Connection::new)),
                () = closing => Ok(None),
            }
        })
    }

    /// Takes no new connections, waits until those that exist are over, and gives the sockets back.
    fn close<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let host = self.host.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.closing.notify_waiters();
        future_into_py(py, async move {
            let Some(mut host) = host else { return Ok(()) };
            // Whoever waited to accept lets go of it.
            let alone = loop {
                match Arc::try_unwrap(host) {
                    Ok(alone) => break alone,
                    Err(shared) => host = shared,
                }
                tokio::task::yield_now().await;
            };
            alone.close().await;
            Ok(())
        })
    }
}

impl Reaches {
    fn trust(self) -> PyResult<Trust> {
        match (self.key, self.known_hosts, self.anybody) {
            (Some(key), None, false) => key.parse().map(Trust::Key).map_err(impossible),
            (None, None, true) => Ok(Trust::Anybody),
            (None, file, false) => file
                .map_or_else(KnownHosts::of_user, KnownHosts::load)
                .map(Trust::KnownHosts)
                .map_err(impossible),
            _ => Err(impossible(
                "key, known_hosts and trust_anybody exclude each other; say one of them",
            )),
        }
    }
}

impl Endpoint {
    fn host(&self) -> PyResult<Arc<restp::Endpoint>> {
        let host = self.host.lock().unwrap_or_else(PoisonError::into_inner);
        host.clone()
            .ok_or_else(|| closed("the endpoint is closed; bind a new one"))
    }
}

fn address(text: &str) -> PyResult<SocketAddr> {
    text.parse().map_err(|_| {
        impossible(format!(
            "\"{text}\" is no address; write IP:PORT, such as 127.0.0.1:7000"
        ))
    })
}

fn composition(profile: &str, set: &[(String, String)]) -> PyResult<restp::ValidComposition> {
    let preset = Preset::named(profile).ok_or_else(|| {
        impossible(format!(
            "there is no preset \"{profile}\"; `restp profiles` lists them"
        ))
    })?;
    let pairs = set.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    Composition::from_pairs(preset.composition(), pairs)
        .map_err(impossible)?
        .check()
        .map_err(impossible)
}
