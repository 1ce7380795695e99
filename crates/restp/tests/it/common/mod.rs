//! What tests over real sockets share: addresses, time-outs, and one emulated path.
#![allow(dead_code, reason = "each test uses a part of it")]

use bytes::Bytes;
use restp::emulator::{Attachment, Control, Emulator, NetConfig, Report};
use restp::{ConnectError, Connection, Endpoint};
use restp_base::machine::Machine;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::task::JoinHandle;

pub const PORT: u16 = 7;

/// A free port of this machine.
pub fn loopback() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

/// What does not come within a minute does not come.
pub async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), future)
        .await
        .unwrap_or_else(|_| panic!("{what}: waited 60 s"))
}

/// Opens a connection of any machine, and waits until it is established.
pub async fn connect<M: Machine + Send + Unpin + 'static>(
    client: &Endpoint<M>,
    remote: SocketAddr,
    port: u16,
) -> Result<Connection<M>, ConnectError> {
    let connection = client.open(remote, port)?;
    connection.established().await.map_err(ConnectError::Closed)?;
    Ok(connection)
}

/// Bytes that are nowhere the same.
pub fn noise(len: usize) -> Bytes {
    let mut state = 1u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..len).map(|_| next()).collect()
}

/// One emulated path that runs.
pub struct Line {
    pub address: SocketAddr,
    pub control: Control,
    pub running: JoinHandle<Report>,
}

impl Line {
    /// With `keys` of a path, towards `to`.
    pub fn start(to: SocketAddr, keys: &str) -> Line {
        let text = format!("[[path]]\nname = \"a\"\nlisten = \"127.0.0.1:0\"\nto = \"{to}\"\n{keys}\n");
        let network = NetConfig::parse(&text).expect("a good network");
        let emulator = Emulator::from_config(&network, Attachment::Udp).expect("loopback ports");
        let address = emulator.ports()[0].listen.expect("a UDP path");
        Line {
            address,
            control: emulator.control(),
            running: tokio::spawn(emulator.run(std::future::pending())),
        }
    }

    /// Ends it; what it did.
    pub async fn stop(self) -> Report {
        self.control.quit();
        self.running.await.expect("the emulator ends")
    }
}
