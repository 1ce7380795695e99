//! The endpoint for asyncio: sockets and protocol live on tokio's threads, without the interpreter's lock.

use crate::connection::Connection;
use crate::errors::{closed, impossible};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3_async_runtimes::tokio::{future_into_py, get_runtime};
use restp::{
    Acceptance, Composition, EndpointConfig, Fault, Identity, Local, Preset, PublicKey, SecretKey, Security,
};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// Time for a host to answer although somebody says that another one is there.
const GRACE: Duration = Duration::from_secs(10);

/// A host's transport on real sockets. Dropped or closed it takes no new connections; those it has go on.
#[pyclass(frozen, module = "restp._restp")]
pub struct Endpoint {
    /// None once closed.
    host: Mutex<Option<Arc<restp::Endpoint>>>,
    closing: Arc<Notify>,
    addresses: Vec<String>,
    key: Option<String>,
}

#[pymethods]
impl Endpoint {
    /// Binds `local`. `profile` is a preset and `set` what differs from it; with `serve` connections to that port are
    /// accepted. `secret` is the name of this host, a new one when None; `plain` leaves the seal out.
    #[new]
    #[pyo3(signature = (local, profile, set, serve=None, secret=None, plain=false))]
    fn new(
        local: Vec<String>,
        profile: &str,
        set: Vec<(String, String)>,
        serve: Option<u16>,
        secret: Option<&str>,
        plain: bool,
    ) -> PyResult<Self> {
        let locals: Vec<Local> = local
            .iter()
            .map(|text| address(text).map(Local::Address))
            .collect::<PyResult<_>>()?;
        let mut config = EndpointConfig::new(composition(profile, &set)?);
        if let Some(port) = serve {
            config = config.listen(port, Acceptance::Any);
        }
        let security = match (plain, secret) {
            (true, _) => Security::Plain,
            (false, None) => Security::Sealed(Identity::fresh()?),
            (false, Some(text)) => {
                let secret: SecretKey = text.parse().map_err(impossible)?;
                Security::Sealed(Identity::of(secret))
            }
        };
        let _runtime = get_runtime().enter();
        let host = restp::Endpoint::bind_with(&locals, config, security)
            .map_err(|error| PyOSError::new_err(format!("{}: {error}", local.join(", "))))?;
        Ok(Endpoint {
            addresses: host.local_addrs().iter().map(SocketAddr::to_string).collect(),
            key: host.public_key().map(|key| key.to_string()),
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
    /// established. With `key` it reaches the host of that name or nobody.
    fn connect<'py>(
        &self,
        py: Python<'py>,
        remote: Vec<String>,
        port: u16,
        key: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let remotes: Vec<SocketAddr> = remote.iter().map(|text| address(text)).collect::<PyResult<_>>()?;
        let host = self.host()?;
        if let Some(text) = key {
            let key: PublicKey = text.parse().map_err(impossible)?;
            remotes.iter().for_each(|remote| host.expect(*remote, key));
        }
        future_into_py(py, async move {
            let opened = tokio::select! {
                opened = host.connect_to(&remotes, port) => opened.map_err(|error| error.to_string()),
                _ = host.other_key(&remotes, GRACE) => Err("another host answers there".into()),
            };
            opened.map(Connection::new).map_err(|error| {
                let fault = remotes.iter().find_map(|remote| host.fault(*remote));
                let why = match fault {
                    None => String::new(),
                    Some(Fault::Unwelcome) => "; it does not serve this host's key".into(),
                    Some(Fault::OtherKey { expected, told }) => {
                        format!("; the key expected is {expected}, and it says it has {told}")
                    }
                };
                closed(&format!("{}: {error}{why}", remote.join(", ")))
            })
        })
    }

    /// Waits for a connection that a peer opened; None once the endpoint is closed.
    fn accept<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (host, closing) = (self.host().ok(), self.closing.clone());
        future_into_py(py, async move {
            let Some(host) = host else { return Ok(None) };
            tokio::select! {
                connection = host.accept() => Ok(connection.map(Connection::new)),
                () = closing.notified() => Ok(None),
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
