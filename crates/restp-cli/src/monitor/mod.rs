//! What a running command shows of its connections: to `restp top` over a Unix socket, to a metrics collector over HTTP.
//!
//! | Module | Holds |
//! |---|---|
//! | [`snapshot`] | one look at all connections, as values that travel |
//! | [`sockets`] | where the sockets of this user's commands are |
//! | `server` | a look in each second, for everybody who is connected |
//! | [`content`] | looks at what is published, cached, fetched and relayed |
//! | `metrics` | the same counters in the format of OpenMetrics |

pub mod content;
mod metrics;
mod server;
pub mod snapshot;
pub mod sockets;

use crate::args::MonitorArgs;
use crate::failure::Failure;
use restp::clock::Clock;
use snapshot::{Observed, Shown};
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// Until a listener that fails is asked again.
const PAUSE: Duration = Duration::from_secs(1);

/// Shows a command until it is dropped.
pub struct Monitor {
    socket: Option<PathBuf>,
    _tasks: JoinSet<()>,
}

impl Monitor {
    /// Shows what `command` works with. A host without a place for the socket is none
    /// that `restp top` sees: that stops nobody's work.
    ///
    /// # Errors
    /// When the address for metrics cannot be had.
    pub fn start(
        command: &'static str,
        shown: Vec<Box<dyn Shown>>,
        arguments: &MonitorArgs,
    ) -> Result<Self, Failure> {
        let observed = Arc::new(Observed {
            command,
            shown,
            clock: Clock::start(),
        });
        let mut tasks = JoinSet::new();
        let socket = match server::bind() {
            Ok((path, listener)) => {
                tasks.spawn(server::serve(listener, observed.clone()));
                Some(path)
            }
            Err(error) => {
                tracing::debug!(%error, "restp top does not see this command");
                None
            }
        };
        if let Some(word) = &arguments.metrics {
            tasks.spawn(metrics::serve(listen(word)?, observed));
        }
        Ok(Monitor {
            socket,
            _tasks: tasks,
        })
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        if let Some(path) = &self.socket {
            let _ = std::fs::remove_file(path); // `restp top` removes what is left
        }
    }
}

/// Opens the port for metrics. What has no host is for this host alone.
fn listen(word: &str) -> Result<tokio::net::TcpListener, Failure> {
    let refused = |why: &dyn std::fmt::Display| {
        Failure::input(format!(
            "--metrics {word}: {why}; name a free port of this host, such as 9100 or 192.0.2.1:9100"
        ))
    };
    let digits = word.strip_prefix(':').unwrap_or(word);
    let address = match digits.parse::<u16>() {
        Ok(port) => format!("127.0.0.1:{port}"),
        Err(_) => word.to_owned(),
    };
    let listener = TcpListener::bind(address).map_err(|error| refused(&error))?;
    listener.set_nonblocking(true).map_err(|error| refused(&error))?;
    let address = listener.local_addr().map_err(|error| refused(&error))?;
    crate::output::note(format!("metrics: http://{address}/metrics"));
    tokio::net::TcpListener::from_std(listener).map_err(|error| refused(&error))
}
