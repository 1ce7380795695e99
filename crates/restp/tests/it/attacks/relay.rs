//! A relay that is the attacker: all datagrams between one client and one server pass it, and it does what its rule says.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::UdpSocket;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;

/// A datagram on its way.
#[derive(Clone, Debug)]
pub struct Passing {
    pub to_server: bool,
    /// How many have passed before it.
    pub number: usize,
    pub bytes: Vec<u8>,
}

impl Passing {
    /// First byte without the path.
    pub fn kind(&self) -> u8 {
        match self.bytes[0] {
            packet if packet & 0xC0 == 0xC0 => packet & 0xF0,
            other => other,
        }
    }
}

/// What leaves the relay instead of a datagram, and when.
pub type Fate = Vec<(Vec<u8>, Duration)>;
pub type Rule = Box<dyn FnMut(&Passing) -> Fate + Send>;

/// Unchanged, at once.
pub fn pass(passing: &Passing) -> Fate {
    vec![(passing.bytes.clone(), Duration::ZERO)]
}

pub struct Relay {
    /// Where the client finds its server.
    pub address: SocketAddr,
    log: Arc<Mutex<Vec<Passing>>>,
    inject: UnboundedSender<(bool, Vec<u8>)>,
    running: JoinHandle<()>,
}

impl Relay {
    pub async fn start(server: SocketAddr, mut rule: Rule) -> Relay {
        let bind = || UdpSocket::bind(SocketAddr::from(([127, 0, 0, 1], 0)));
        let inner = Arc::new(bind().await.expect("loopback"));
        let outer = Arc::new(bind().await.expect("loopback"));
        outer.connect(server).await.expect("loopback");
        let address = inner.local_addr().expect("bound");
        let log = Arc::new(Mutex::new(Vec::new()));
        let (inject, mut injected) = unbounded_channel();
        let record = log.clone();
        let running = tokio::spawn(async move {
            let (mut up, mut down) = (vec![0; 65_536], vec![0; 65_536]);
            let mut client = None;
            loop {
                let (to_server, bytes) = tokio::select! {
                    Ok((length, from)) = inner.recv_from(&mut up) => {
                        client = Some(from);
                        (true, up[..length].to_vec())
                    }
                    Ok(length) = outer.recv(&mut down) => (false, down[..length].to_vec()),
                    Some((to_server, bytes)) = injected.recv() => {
                        send(&inner, &outer, client, to_server, bytes).await;
                        continue;
                    }
                };
                if bytes.is_empty() {
                    continue;
                }
                let passing = {
                    let mut log = record.lock().expect("nobody panics with it");
                    let number = log.len();
                    let passing = Passing {
                        to_server,
                        number,
                        bytes,
                    };
                    log.push(passing.clone());
                    passing
                };
                for (bytes, wait) in rule(&passing) {
                    if wait.is_zero() {
                        send(&inner, &outer, client, to_server, bytes).await;
                    } else {
                        let (inner, outer) = (inner.clone(), outer.clone());
                        tokio::spawn(async move {
                            tokio::time::sleep(wait).await;
                            send(&inner, &outer, client, to_server, bytes).await;
                        });
                    }
                }
            }
        });
        Relay {
            address,
            log,
            inject,
            running,
        }
    }

    /// All that has come so far, as it came.
    pub fn log(&self) -> Vec<Passing> {
        self.log.lock().expect("nobody panics with it").clone()
    }

    /// Sends `bytes` as if the other side had.
    pub fn inject(&self, to_server: bool, bytes: Vec<u8>) {
        self.inject.send((to_server, bytes)).expect("it runs");
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.running.abort();
    }
}

/// What the system refuses is lost.
async fn send(
    inner: &UdpSocket,
    outer: &UdpSocket,
    client: Option<SocketAddr>,
    to_server: bool,
    bytes: Vec<u8>,
) {
    if to_server {
        let _ = outer.send(&bytes).await;
    } else if let Some(client) = client {
        let _ = inner.send_to(&bytes, client).await;
    }
}
