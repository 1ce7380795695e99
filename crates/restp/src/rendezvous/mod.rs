//! What an endpoint says to relays and hears from them: a machine of its own beside the transport, on the same sockets.
//!
//! | Module | Holds |
//! |---|---|
//! | [`wire`] | the messages between a relay and its users |
//! | `guests` | which peers of a host its relay keeps a port for |
//! | `upgrade` | direct paths in the place of relayed ones |

mod guests;
pub(crate) mod upgrade;
pub mod wire;

use guests::Guests;
use restp_base::machine::{Datagram, Head, PathAddress, Wakeup};
use restp_base::time::{Duration, Time};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use wire::{AddressToken, Echo, Message, RegistrationId, echo_of};

/// A registration is said again after so long: shorter than any translator forgets (RFC 4787 §4.3 asks for two minutes,
/// many take thirty seconds).
const REFRESH: Duration = Duration::from_secs(15);

/// What is not answered is said again after this long, then twice as long, up to the longest wait.
const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(8);

/// So many times without an answer, and the relay is gone.
const ATTEMPTS: u32 = 4;
/// A peer that is announced gets so many datagrams that open the translator of this side, the pause doubling each time: the way
/// of the peer's own to it is lost as often as any.
const PUNCHES: u32 = 5;
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// Peers that are greeted at once. A relay that lies makes this host send some bytes to so many addresses, no more.
const MOST_PEERS: usize = 16;
/// Datagrams to a relayed address that are remembered by name: those of set-up and those after it.
const MOST_ECHOES: usize = 4;

/// How this host is reached through a relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reached {
    /// The relay.
    pub relay: SocketAddr,
    /// The address there that stands for this host.
    pub at: SocketAddr,
    /// Where the relay sees this host.
    pub seen: SocketAddr,
}

/// The host behind a relayed address is somewhere else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Elsewhere {
    /// The path through the relay.
    pub through: PathAddress,
    /// Where the relay sees the host.
    pub at: SocketAddr,
}

/// All that an endpoint has to do with relays.
#[derive(Debug, Default)]
pub(crate) struct Rendezvous {
    registrations: Vec<Registration>,
    punches: VecDeque<Punch>,
    guests: Guests,
    /// Relayed addresses that this host sends to, and the last datagrams that it sent there.
    relayed: BTreeMap<SocketAddr, VecDeque<Echo>>,
    elsewhere: VecDeque<Elsewhere>,
    out: VecDeque<(PathAddress, Message)>,
}

/// This host at one relay.
#[derive(Debug)]
struct Registration {
    path: PathAddress,
    id: RegistrationId,
    token: AddressToken,
    reached: Option<Reached>,
    is_full: bool,
    /// When it is said again.
    next: Time,
    /// Times it was said since the last answer.
    attempts: u32,
}

/// A way that is being opened.
#[derive(Debug)]
struct Punch {
    path: PathAddress,
    message: Message,
    next: Time,
    sent: u32,
}

impl Rendezvous {
    /// Registers this host at the relay at the far end of `path`. `id` must be nobody else's.
    pub fn register(&mut self, now: Time, path: PathAddress, id: RegistrationId) {
        self.registrations.push(Registration {
            path,
            id,
            token: AddressToken::default(),
            reached: None,
            is_full: false,
            next: now,
            attempts: 0,
        });
    }

    /// How the relay lets others reach this host; `None` before it has said so.
    pub fn reached(&self, relay: SocketAddr) -> Option<Reached> {
        self.registrations
            .iter()
            .find(|known| known.path.remote == relay)?
            .reached
    }

    /// The relay has no place for this host.
    pub fn is_refused(&self, relay: SocketAddr) -> bool {
        self.registrations
            .iter()
            .any(|known| known.path.remote == relay && known.is_full)
    }

    /// What was registered at relays that are left is registered no longer.
    pub fn release(&mut self, is_left: impl Fn(SocketAddr) -> bool) {
        let left = (self.registrations).extract_if(.., |known| is_left(known.path.remote));
        let words = left.map(|known| (known.path, Message::Release { id: known.id }));
        self.out.extend(words);
        if self.registrations.is_empty() {
            self.guests.clear();
        }
    }

    /// `address` is one that a relay has for a host.
    pub fn expect(&mut self, address: SocketAddr) {
        self.relayed.entry(address).or_default();
    }

    pub fn is_relayed(&self, address: SocketAddr) -> bool {
        self.relayed.contains_key(&address)
    }

    /// A datagram of the transport leaves, to a peer that has proved its key from there if `is_proved`.
    pub fn on_sent(&mut self, now: Time, datagram: &Datagram, is_proved: impl FnOnce() -> bool) {
        let to = datagram.path.remote;
        if let Some(id) = self.guests.due(now, to, is_proved) {
            self.out.push_back((datagram.path, Message::Keep { id }));
        }
        let Some(echoes) = self.relayed.get_mut(&to) else {
            return;
        };
        let bytes: Vec<u8> = datagram
            .head
            .iter()
            .chain(&datagram.body)
            .take(9)
            .copied()
            .collect();
        if let Some(echo) = echo_of(&bytes)
            && !echoes.contains(&echo)
        {
            echoes.push_back(echo);
            if echoes.len() > MOST_ECHOES {
                echoes.pop_front();
            }
        }
    }

    /// A message has come. What nobody asked for is dropped.
    pub fn on_datagram(&mut self, now: Time, path: PathAddress, bytes: &[u8]) {
        match Message::parse(bytes) {
            Some(Message::Elsewhere { echo, at }) => {
                let sent = self
                    .relayed
                    .get(&path.remote)
                    .is_some_and(|echoes| echoes.contains(&echo));
                let news = Elsewhere { through: path, at };
                if sent
                    && at != path.remote
                    && path.local.is_ipv4() == at.is_ipv4()
                    && !self.elsewhere.contains(&news)
                    && self.elsewhere.len() < MOST_PEERS
                {
                    self.elsewhere.push_back(news);
                }
            }
            Some(Message::Peer { id, at }) => {
                let is_known = |known: &Registration| known.is(path, id) && known.reached.is_some();
                if let Some(registration) = self.registrations.iter().find(|known| is_known(known)) {
                    let local = registration.path.local;
                    self.punch(now, PathAddress { local, remote: at }, Message::Punch);
                }
            }
            Some(Message::Open { id, port }) => {
                let is_known = |known: &Registration| known.is(path, id) && known.reached.is_some();
                if let Some(registration) = self.registrations.iter().find(|known| is_known(known)) {
                    let local = registration.path.local;
                    let remote = SocketAddr::new(path.remote.ip(), port);
                    self.guests.open(now, remote, id);
                    self.punch(now, PathAddress { local, remote }, Message::Bind { id });
                }
            }
            Some(
                message @ (Message::Prove { id, .. } | Message::Registered { id, .. } | Message::Full { id }),
            ) => {
                if let Some(known) = self.registrations.iter_mut().find(|known| known.is(path, id)) {
                    known.on_answer(now, message);
                }
            }
            _ => {}
        }
    }

    fn punch(&mut self, now: Time, path: PathAddress, message: Message) {
        let leads_there = path.local.is_ipv4() == path.remote.is_ipv4();
        let is_new = leads_there && !self.punches.iter().any(|punch| punch.path == path);
        if is_new && self.punches.len() < MOST_PEERS {
            self.punches.push_back(Punch {
                path,
                message,
                next: now,
                sent: 0,
            });
        } else if is_new && matches!(message, Message::Bind { .. }) {
            // Who has many announced must not keep others from getting through: one goes back to the relay, shorter than what asked for it.
            self.out.push_back((path, message));
        }
    }

    /// A relay has said where a host is.
    pub fn take_elsewhere(&mut self) -> Option<Elsewhere> {
        self.elsewhere.pop_front()
    }

    pub fn deadline(&self) -> Option<(Time, Wakeup)> {
        let registrations = self.registrations.iter().map(|known| known.next);
        let next = registrations
            .chain(self.punches.iter().map(|punch| punch.next))
            .min()?;
        Some((next, Wakeup::Probe))
    }

    pub fn on_deadline(&mut self, now: Time) {
        for known in self.registrations.iter_mut().filter(|known| known.next <= now) {
            let message = known.say(now);
            self.out.push_back((known.path, message));
        }
        for punch in self.punches.iter_mut().filter(|punch| punch.next <= now) {
            self.out.push_back((punch.path, punch.message));
            punch.next = now + FIRST_PAUSE * (1 << punch.sent);
            punch.sent += 1;
        }
        self.punches.retain(|punch| punch.sent < PUNCHES);
    }

    /// Puts the next message into `out`.
    pub fn poll_transmit(&mut self, out: &mut Datagram) -> bool {
        let Some((path, message)) = self.out.pop_front() else {
            return false;
        };
        *out = Datagram {
            path,
            head: Head::from_slice(&message.emit()),
            ..Datagram::empty()
        };
        true
    }
}

impl Registration {
    fn is(&self, path: PathAddress, id: RegistrationId) -> bool {
        self.path.remote == path.remote && self.id == id
    }

    fn say(&mut self, now: Time) -> Message {
        if self.attempts >= ATTEMPTS {
            self.reached = None;
        }
        let wait = FIRST_WAIT * (1 << self.attempts.min(4));
        self.next = now + wait.min(LONGEST_WAIT);
        self.attempts += 1;
        Message::Register {
            id: self.id,
            token: self.token,
        }
    }

    fn on_answer(&mut self, now: Time, message: Message) {
        match message {
            // Once for each token: who says it again and again is heard at the next turn.
            Message::Prove { token, .. } if token != self.token => {
                self.token = token;
                self.next = now;
            }
            Message::Registered { seen, port, .. } => {
                let relay = self.path.remote;
                self.reached = Some(Reached {
                    relay,
                    at: SocketAddr::new(relay.ip(), port),
                    seen,
                });
                (self.is_full, self.attempts) = (false, 0);
                self.next = now + REFRESH;
            }
            Message::Full { .. } => {
                (self.is_full, self.reached, self.attempts) = (true, None, 0);
                self.next = now + REFRESH;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
