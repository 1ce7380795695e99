//! UDP sockets at this host that who connects has asked for.

use crate::pipe::{Place, Refusal};
use restp::PublicKey;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::net::UdpSocket;
use tokio::sync::watch;

/// All of them.
#[derive(Default)]
pub struct Sockets {
    held: Mutex<BTreeMap<String, Arc<Shared>>>,
}

struct Shared {
    owner: Option<PublicKey>,
    socket: UdpSocket,
    /// Who holds it: the latest who has asked.
    holder: watch::Sender<u64>,
}

/// A socket that is held for one connection.
pub struct Held<'a> {
    of: &'a Sockets,
    name: String,
    shared: Arc<Shared>,
    number: u64,
}

impl Sockets {
    /// A socket at `place`. Where `owner` has one, it goes on with that one: a client that was killed and started again need not wait.
    ///
    /// # Errors
    /// When another one has it, or the system does not give it.
    pub async fn hold(&self, place: &Place, owner: Option<PublicKey>) -> Result<Held<'_>, Refusal> {
        let name = place.to_string();
        if let Some(shared) = self.held().get(&name).filter(|held| held.owner == owner).cloned() {
            let number = *shared.holder.borrow() + 1;
            shared.holder.send_replace(number);
            return Ok(Held {
                of: self,
                name,
                shared,
                number,
            });
        }
        let refused = |error| Refusal::of(&name, &error);
        let (host, port) = place.host_and_port();
        let socket = UdpSocket::bind((host, port)).await.map_err(refused)?;
        // Any free port is another one each time.
        let name = match port {
            0 => socket.local_addr().map_err(refused)?.to_string(),
            _ => name,
        };
        let shared = Arc::new(Shared {
            owner,
            socket,
            holder: watch::Sender::new(0),
        });
        self.held().insert(name.clone(), shared.clone());
        Ok(Held {
            of: self,
            name,
            shared,
            number: 0,
        })
    }

    fn held(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Shared>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held<'_> {
    /// The socket.
    pub fn socket(&self) -> &UdpSocket {
        &self.shared.socket
    }

    /// Its address.
    pub fn address(&self) -> String {
        let address = self.shared.socket.local_addr();
        address.map_or_else(|_| self.name.clone(), |address| address.to_string())
    }

    /// Waits until somebody else with the same key holds it.
    pub async fn lost(&self) {
        let mut holder = self.shared.holder.subscribe();
        let _ = holder.wait_for(|holder| *holder != self.number).await;
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if *self.shared.holder.borrow() == self.number {
            self.of.held().remove(&self.name);
        }
    }
}
