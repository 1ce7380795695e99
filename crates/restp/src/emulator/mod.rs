//! A network of emulated paths in real time: the link models of the simulator between UDP ports of this host
//! (no privileges needed), or between TUN devices of two network namespaces, so that any IP traffic crosses them.
//!
//! | Module | Holds |
//! |---|---|
//! | [`config`] | `NET.toml`: paths with the keys of a scenario's links |
//! | [`command`] | what can be changed while it runs |
//! | [`report`] | counters of each direction, and how late the emulator itself was |
//! | `line` | one direction: the simulator's model and the packets it holds until they are due |
//! | `udp`, `tun` | where packets come from and go to |
//! | `engine` | the loop: one thread, one clock, sleeping to the nanosecond |

pub mod command;
pub mod config;
mod engine;
mod line;
pub mod report;
#[cfg(target_os = "linux")]
mod tun;
mod udp;

pub use command::{Answer, Command, CommandError, Control};
pub use config::{ConfigError, NetConfig, PathConfig};
pub use report::{DirectionReport, PathPorts, PathReport, Report};

use engine::{Engine, Route};
use std::io;
use std::path::Path;
use thiserror::Error;

/// Why an emulator could not start.
#[derive(Debug, Error)]
pub enum EmulatorError {
    /// The file is not a network.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A path has nothing to attach to in this mode.
    #[error("path \"{path}\" {missing}")]
    Unattached {
        /// The path.
        path: String,
        /// What it lacks, and the way out.
        missing: &'static str,
    },
    /// The system refused a socket, a device or a namespace.
    #[error("path \"{path}\": {what}: {source}{}", hint(.source))]
    System {
        /// The path.
        path: String,
        /// What was tried.
        what: String,
        /// What the system says.
        source: io::Error,
    },
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "; TUN devices and namespaces need root, the UDP mode needs no privileges"
        }
        io::ErrorKind::AddrInUse => "; choose another port, or port 0 for any free one",
        io::ErrorKind::AddrNotAvailable => {
            "; a path listens on an address of this host: 127.0.0.1, one that \"ip address\" shows, or 0.0.0.0 for all"
        }
        _ => "",
    }
}

/// What the paths join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attachment {
    /// UDP ports of this host: datagrams that reach `listen` leave for `to`, and answers come back.
    Udp,
    /// TUN devices in two network namespaces (Linux, root).
    Tun,
}

/// An emulated network, attached and ready to run.
///
/// ```
/// use restp::emulator::{Attachment, Emulator, NetConfig};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let config = NetConfig::parse(
///     r#"
///     [[path]]
///     name = "satellite"
///     listen = "127.0.0.1:0"
///     to = "127.0.0.1:7002"
///     rate = "20 Mbit/s"
///     delay = "25 ms"
///     queue = { drop_tail = "bdp" }
///     loss = { rate = 0.01, direction = "both" }
///     "#,
/// )?;
/// let emulator = Emulator::from_config(&config, Attachment::Udp)?;
/// println!("send to {:?}", emulator.ports()[0].listen);
/// let control = emulator.control();
/// let report = emulator.run(async move {
///     control.execute("set satellite loss=0.05").expect("the path exists");
/// });
/// assert_eq!(report.await.paths[0].forward.offered_packets, 0);
/// # Ok(())
/// # }
/// ```
pub struct Emulator {
    engine: Engine,
    control: Control,
    ports: Vec<PathPorts>,
}

impl Emulator {
    /// Reads `NET.toml` and attaches its paths.
    ///
    /// # Errors
    /// When the file cannot be read, is not a network, or the system refuses a socket or device.
    pub fn from_file(file: &Path, attachment: Attachment) -> Result<Self, EmulatorError> {
        Self::from_config(&NetConfig::read(file)?, attachment)
    }

    /// Attaches the paths of `config`.
    ///
    /// # Errors
    /// When a path lacks what the attachment needs, or the system refuses a socket or device.
    pub fn from_config(config: &NetConfig, attachment: Attachment) -> Result<Self, EmulatorError> {
        let mut routes = Vec::with_capacity(config.paths.len());
        for (index, path) in config.paths.iter().enumerate() {
            routes.push(match attachment {
                Attachment::Udp => Route::new(config.seed, path, udp::attach(path)?),
                #[cfg(target_os = "linux")]
                Attachment::Tun => Route::new(config.seed, path, tun::attach(config, path, index)?),
                #[cfg(not(target_os = "linux"))]
                Attachment::Tun => {
                    let _ = index;
                    let missing = "cannot have TUN devices here; only Linux has network namespaces";
                    return Err(EmulatorError::Unattached {
                        path: path.name.clone(),
                        missing,
                    });
                }
            }?);
        }
        let ports = routes.iter().map(Route::ports).collect();
        let system = |source| EmulatorError::System {
            path: String::new(),
            what: "control channel".into(),
            source,
        };
        let (control, requests) = command::channel().map_err(system)?;
        Ok(Emulator {
            engine: Engine::new(routes, requests),
            control,
            ports,
        })
    }

    /// Where each path begins and ends, with the ports the system chose.
    pub fn ports(&self) -> &[PathPorts] {
        &self.ports
    }

    /// A handle for commands while the emulator runs.
    pub fn control(&self) -> Control {
        self.control.clone()
    }

    /// Runs on a thread of its own until `shutdown` is ready, a `quit` command comes, or the future is dropped.
    /// Outages count from this call on. Returns the counters.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Report {
        let Emulator { engine, control, .. } = self;
        let _quit_when_dropped = QuitOnDrop(control.clone());
        let (done, mut finished) = tokio::sync::oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("emulator".into())
            .spawn(move || {
                // The receiver is gone when the future was dropped: nobody wants the counters then.
                let _ = done.send(engine.run());
            });
        if let Err(error) = thread {
            tracing::error!(%error, "no thread for the emulator");
            return Report::default();
        }
        tokio::select! {
            report = &mut finished => return report.unwrap_or_default(),
            () = shutdown => control.quit(),
        }
        finished.await.unwrap_or_default()
    }
}

struct QuitOnDrop(Control);

impl Drop for QuitOnDrop {
    fn drop(&mut self) {
        self.0.quit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 5737 §3: no host has an address of 192.0.2.0/24.
    #[test]
    fn an_address_of_another_host_names_the_rule() {
        let net = "[[path]]\nname = \"a\"\nlisten = \"192.0.2.1:0\"\nto = \"127.0.0.1:7002\"";
        let config = NetConfig::parse(net).unwrap();
        let error = Emulator::from_config(&config, Attachment::Udp).err().unwrap();
        let sentence = error.to_string();
        for part in ["\"a\"", "192.0.2.1:0", "an address of this host", "0.0.0.0"] {
            assert!(sentence.contains(part), "no {part} in: {sentence}");
        }
    }
}
