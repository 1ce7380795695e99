//! Who the receiver must be: the key in the ticket, or the one it was met with before; on a first meeting it is believed
//! and remembered ([`restp::Trust`]).

use super::words::Receiver;
use crate::args::LinkArgs;
use crate::failure::Failure;
use crate::output::{note, span};
use crate::transfer::Ticket;
use restp::{ConnectError, Endpoint, KnownHosts, PublicKey};
use restp_base::time::Duration;
use std::net::SocketAddr;

/// What is known of the addresses of one transfer.
pub struct Trust {
    addresses: Vec<SocketAddr>,
    /// Keys that tickets say.
    told: Vec<(SocketAddr, PublicKey)>,
    /// None without a seal, or where tickets say all.
    hosts: Option<KnownHosts>,
}

impl Trust {
    /// What tickets and earlier meetings say about `addresses`.
    ///
    /// # Errors
    /// When a ticket is of a receiver that does not seal and the user did not agree to that, or the other way round; when
    /// several tickets name several receivers; when what is known cannot be read.
    pub fn of(arguments: &LinkArgs, to: &[Receiver], addresses: &[SocketAddr]) -> Result<Self, Failure> {
        let plain = arguments.seal.plain;
        for receiver in to.iter().filter(|receiver| receiver.has_ticket) {
            match (receiver.ticket.key(), plain) {
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
        let addresses = addresses.to_vec();
        if plain {
            return Ok(Trust {
                addresses,
                told: Vec::new(),
                hosts: None,
            });
        }
        let tickets = || to.iter().map(|receiver| &receiver.ticket);
        let mut keys = tickets().filter_map(Ticket::key);
        let first = keys.next();
        if !arguments.address.is_empty() && keys.any(|key| Some(key) != first) {
            return Err(Failure::input(
                "--address replaces the addresses of one receiver, but the tickets are of several; give one ticket",
            ));
        }
        let told = |address: &SocketAddr| {
            let named =
                |ticket: &&Ticket| !arguments.address.is_empty() || ticket.addresses().contains(address);
            let key = tickets().filter(named).find_map(Ticket::key)?;
            Some((*address, key))
        };
        let told: Vec<_> = addresses.iter().filter_map(told).collect();
        let hosts = (told.len() < addresses.len()).then(KnownHosts::of_user);
        Ok(Trust {
            addresses,
            told,
            hosts: hosts.transpose().map_err(Failure::input)?,
        })
    }

    /// The same for an endpoint that sends there.
    pub fn policy(&self) -> restp::Trust {
        let hosts = self.hosts.clone();
        hosts.map_or(restp::Trust::Nobody, restp::Trust::KnownHosts)
    }

    /// Tells the endpoint which keys tickets say.
    pub fn tell(&self, endpoint: &Endpoint) {
        for (address, key) in &self.told {
            endpoint.expect(*address, *key);
        }
    }

    /// Waits until somebody says that the receiver has another key, and until it is too late for an answer of the receiver that
    /// would show that he lied: why the transfer fails. Nothing is waited for beyond `user_timeout`.
    pub async fn doubt(&self, endpoint: &Endpoint, user_timeout: Duration) -> Failure {
        let said = |address| note(in_doubt(address, user_timeout));
        let error = endpoint.other_key(&self.addresses, said).await;
        Failure::operation(self.sentence(&error))
    }

    /// Why a transfer failed, if it was for a key.
    pub fn explain(&self, endpoint: &Endpoint) -> Option<Failure> {
        let error = endpoint.refusal(&self.addresses)?;
        Some(Failure::operation(self.sentence(&error)))
    }

    fn sentence(&self, error: &ConnectError) -> String {
        match error {
            ConnectError::OtherKey {
                remote,
                expected,
                told,
                ..
            } if self.told.contains(&(*remote, *expected)) => format!(
                "{remote} is not the receiver of the ticket: its key is {told}, the ticket says {expected}; use the ticket that \
                 `restp recv` prints there now"
            ),
            ConnectError::Unwelcome { remote, own } => format!(
                "the receiver at {remote} does not take files from this key; start it with --allow {own}, or send with a key \
                 that it knows (--key)"
            ),
            other => other.to_string(),
        }
    }

    /// Says who was met for the first time.
    pub fn report(&self) {
        let Some(hosts) = &self.hosts else { return };
        for (name, key) in hosts.take_met() {
            note(format!(
                "{name} was met for the first time; its key {key} is remembered in {}",
                hosts.path().display()
            ));
        }
    }
}

fn in_doubt(address: SocketAddr, user_timeout: Duration) -> String {
    format!(
        "somebody says that {address} has another key; waiting up to {} to see whether the receiver answers all the same",
        span(user_timeout.min(Duration::from_nanos(Endpoint::GRACE.as_nanos() as u64)))
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_longer_wait_is_promised_than_the_timeout() {
        let address = "192.0.2.1:7070".parse().expect("an address");
        let said = |seconds| in_doubt(address, Duration::from_secs(seconds));
        assert!(said(30).contains("up to 10 s"), "{}", said(30));
        assert!(said(3).contains("up to 3 s"), "{}", said(3));
    }
}
