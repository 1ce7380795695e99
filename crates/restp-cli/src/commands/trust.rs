//! Who the receiver must be: the key in the ticket, or the one it was met with before; on a first meeting it is believed
//! and remembered.

use crate::args::Send;
use crate::failure::Failure;
use crate::known_peers::{KnownPeers, LearnError};
use crate::output::note;
use crate::transfer::Ticket;
use restp::{Endpoint, Fault, PublicKey};
use std::net::SocketAddr;
use std::time::Duration;

/// Between two looks for what is said of a receiver's key.
const LOOK: Duration = Duration::from_millis(300);

/// Time for an answer to show that it was a lie: longer than any round trip on Earth takes.
const GRACE: Duration = Duration::from_secs(10);

/// Where the key of an address comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Ticket(PublicKey),
    Earlier(PublicKey),
    /// Not met yet.
    Nowhere,
}

/// What is known of the addresses of one transfer.
pub struct Trust {
    addresses: Vec<(SocketAddr, Origin)>,
    /// None without a seal, or without a place to keep them.
    peers: Option<KnownPeers>,
}

impl Trust {
    /// What tickets and earlier meetings say about `addresses`.
    ///
    /// # Errors
    /// When a ticket is of a receiver that does not seal and the user did not agree to that, or the other way round; when
    /// several tickets name several receivers; when what is known cannot be read.
    pub fn of(arguments: &Send, addresses: &[SocketAddr]) -> Result<Self, Failure> {
        let plain = arguments.seal.plain;
        let tickets: Vec<Ticket> = arguments.to.iter().filter_map(|word| word.parse().ok()).collect();
        let words = arguments.to.iter().zip(&tickets);
        for (_, ticket) in words.filter(|(word, _)| word.parse::<SocketAddr>().is_err()) {
            match (ticket.key(), plain) {
                (Some(_), true) => {
                    return Err(Failure::input(
                        "--plain, but the ticket is of a receiver that encrypts; leave --plain out",
                    ));
                }
                (None, false) => {
                    return Err(Failure::input(
                        "the ticket is of a receiver with --plain, which neither encrypts nor authenticates; start it \
                         without, or say --plain here as well",
                    ));
                }
                _ => {}
            }
        }
        if plain {
            return Ok(Trust {
                addresses: Vec::new(),
                peers: None,
            });
        }
        let peers = KnownPeers::load()?;
        let mut keys = tickets.iter().filter_map(Ticket::key);
        let first = keys.next();
        if !arguments.address.is_empty() && keys.any(|key| Some(key) != first) {
            return Err(Failure::input(
                "--address replaces the addresses of one receiver, but the tickets are of several; give one ticket",
            ));
        }
        let origin = |address: &SocketAddr| {
            let named =
                |ticket: &&Ticket| !arguments.address.is_empty() || ticket.addresses().contains(address);
            let told = tickets.iter().filter(named).find_map(Ticket::key);
            let earlier = || peers.as_ref().and_then(|peers| peers.key_of(*address));
            match told {
                Some(key) => Origin::Ticket(key),
                None => earlier().map_or(Origin::Nowhere, Origin::Earlier),
            }
        };
        let addresses = addresses
            .iter()
            .map(|address| (*address, origin(address)))
            .collect();
        Ok(Trust { addresses, peers })
    }

    /// Tells the endpoint which keys must be proved.
    pub fn tell(&self, endpoint: &Endpoint) {
        for (address, origin) in &self.addresses {
            if let Origin::Ticket(key) | Origin::Earlier(key) = origin {
                endpoint.expect(*address, *key);
            }
        }
    }

    /// Waits until somebody says that the receiver has another key, and until it is too late for an answer of the receiver that
    /// would show that he lied: why the transfer fails.
    pub async fn doubt(&self, endpoint: &Endpoint) -> Failure {
        loop {
            tokio::time::sleep(LOOK).await;
            let is_said = |(address, _): &&(SocketAddr, Origin)| {
                matches!(endpoint.fault(*address), Some(Fault::OtherKey { .. }))
            };
            let Some((address, _)) = self.addresses.iter().find(is_said) else {
                continue;
            };
            note(format!(
                "somebody says that {address} has another key; waiting {} s whether the receiver answers all the same",
                GRACE.as_secs()
            ));
            tokio::time::sleep(GRACE).await;
            if let Some(failure) = self.explain(endpoint) {
                return failure;
            }
        }
    }

    /// Why a transfer failed, if it was for a key.
    pub fn explain(&self, endpoint: &Endpoint) -> Option<Failure> {
        let blamed = |(address, origin): &(SocketAddr, Origin)| {
            let fault = endpoint.fault(*address)?;
            Some(self.sentence(endpoint, *address, *origin, fault))
        };
        self.addresses.iter().find_map(blamed).map(Failure::operation)
    }

    fn sentence(&self, endpoint: &Endpoint, address: SocketAddr, origin: Origin, fault: Fault) -> String {
        match (fault, origin) {
            (Fault::OtherKey { expected, told }, Origin::Earlier(_)) => {
                let file = self
                    .peers
                    .as_ref()
                    .map_or_else(String::new, |peers| peers.path().display().to_string());
                format!(
                    "THE KEY OF {address} HAS CHANGED: it was {expected}, now {told} answers there; somebody may be in \
                     between. If you know that the receiver has a new key, remove its line from {file}, or send to its \
                     ticket"
                )
            }
            (Fault::OtherKey { expected, told }, _) => format!(
                "{address} is not the receiver of the ticket: its key is {told}, the ticket says {expected}; use the \
                 ticket that `restp recv` prints there now"
            ),
            (Fault::Unwelcome, _) => {
                let own = endpoint
                    .public_key()
                    .map_or_else(String::new, |key| key.to_string());
                format!(
                    "the receiver at {address} does not take files from this key; start it with --allow {own}, or send \
                     with a key that it knows (--key)"
                )
            }
        }
    }

    /// Remembers the keys of those that were met for the first time.
    ///
    /// # Errors
    /// When another run has met another key at the same address meanwhile.
    pub fn learn(&self, endpoint: &Endpoint) -> Result<(), Failure> {
        let Some(peers) = &self.peers else {
            return Ok(());
        };
        let file = peers.path().display();
        let unknown = self
            .addresses
            .iter()
            .filter(|(_, origin)| *origin == Origin::Nowhere);
        let mut doubt = Ok(());
        for (address, _) in unknown {
            let Some(key) = endpoint.peer_key(*address) else {
                continue;
            };
            match peers.learn(*address, key) {
                Ok(()) => note(format!(
                    "{address} was met for the first time; its key {key} is remembered in {file}"
                )),
                Err(LearnError::Conflict(other)) => {
                    doubt = Err(Failure::operation(format!(
                        "THE KEY OF {address} IS IN DOUBT: this run met {key} there, another run at the same time {other}; \
                         somebody may be in between. {file} keeps {other}: send again to the receiver's ticket, and correct \
                         the line if it is wrong"
                    )));
                }
                Err(error) => note(format!("{file}: {error}; the key of {address} is not remembered")),
            }
        }
        doubt
    }
}
