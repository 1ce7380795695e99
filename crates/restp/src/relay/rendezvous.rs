//! What an endpoint says to relays and hears from them: a machine of its own beside the transport, on the same sockets.

use super::guests::Guests;
use super::wire::{AddressToken, Echo, Message, RegistrationId, echo_of};
use restp_base::machine::{Datagram, Head, PathAddress, Wakeup};
use restp_base::time::{Duration, Time};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

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
mod tests {
    #![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is a failed test")]

    use super::*;

    const ID: RegistrationId = [5; 16];

    fn at(port: u16) -> SocketAddr {
        ([192, 0, 2, 1], port).into()
    }

    fn path() -> PathAddress {
        PathAddress {
            local: ([10, 0, 0, 1], 7070).into(),
            remote: at(1),
        }
    }

    fn ms(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    fn said(rendezvous: &mut Rendezvous) -> Vec<(PathAddress, Message)> {
        let mut out = Datagram::empty();
        let mut said = Vec::new();
        while rendezvous.poll_transmit(&mut out) {
            said.push((out.path, Message::parse(&out.to_vec()).unwrap()));
        }
        said
    }

    fn registered(now: Time) -> Rendezvous {
        let mut rendezvous = Rendezvous::default();
        rendezvous.register(now, path(), ID);
        rendezvous.on_deadline(now);
        said(&mut rendezvous);
        let answer = Message::Registered {
            id: ID,
            seen: at(9),
            port: 4000,
        };
        rendezvous.on_datagram(now, path(), &answer.emit());
        rendezvous
    }

    #[test]
    fn a_port_of_the_relay_is_spoken_to_however_many_peers_are_announced() {
        let mut rendezvous = registered(ms(0));
        for port in 1..=100 {
            let peer = Message::Peer {
                id: ID,
                at: ([198, 51, 100, 7], port).into(),
            };
            rendezvous.on_datagram(ms(1), path(), &peer.emit());
        }
        rendezvous.on_deadline(ms(1));
        assert_eq!(said(&mut rendezvous).len(), MOST_PEERS);
        let open = Message::Open { id: ID, port: 5000 };
        rendezvous.on_datagram(ms(2), path(), &open.emit());
        assert_eq!(
            said(&mut rendezvous),
            [(
                PathAddress {
                    remote: at(5000),
                    ..path()
                },
                Message::Bind { id: ID }
            )]
        );
    }

    #[test]
    fn a_host_proves_its_address_and_is_registered_until_the_relay_falls_silent() {
        let mut rendezvous = Rendezvous::default();
        rendezvous.register(ms(0), path(), ID);
        rendezvous.on_deadline(ms(0));
        assert_eq!(
            said(&mut rendezvous),
            [(
                path(),
                Message::Register {
                    id: ID,
                    token: [0; 16]
                }
            )]
        );
        let prove = Message::Prove {
            id: ID,
            token: [8; 16],
        }
        .emit();
        rendezvous.on_datagram(ms(20), path(), &prove);
        rendezvous.on_datagram(ms(20), path(), &prove);
        assert_eq!(rendezvous.deadline().unwrap().0, ms(20));
        rendezvous.on_deadline(ms(20));
        assert_eq!(
            said(&mut rendezvous),
            [(
                path(),
                Message::Register {
                    id: ID,
                    token: [8; 16]
                }
            )]
        );
        assert_eq!(rendezvous.reached(at(1)), None);
        let answer = Message::Registered {
            id: ID,
            seen: at(9),
            port: 4000,
        }
        .emit();
        rendezvous.on_datagram(ms(40), path(), &answer);
        let reached = Reached {
            relay: at(1),
            at: at(4000),
            seen: at(9),
        };
        assert_eq!(rendezvous.reached(at(1)), Some(reached));
        assert_eq!(rendezvous.deadline().unwrap().0, ms(40) + REFRESH);
        let mut now = ms(40);
        for _ in 0..=ATTEMPTS {
            assert_eq!(rendezvous.reached(at(1)), Some(reached));
            now = rendezvous.deadline().unwrap().0;
            rendezvous.on_deadline(now);
        }
        assert_eq!(rendezvous.reached(at(1)), None, "nobody answers there");
        assert_eq!(
            said(&mut rendezvous).len(),
            1 + ATTEMPTS as usize,
            "and it goes on to ask"
        );
        rendezvous.on_datagram(now, path(), &answer);
        assert_eq!(rendezvous.reached(at(1)), Some(reached), "it has come back");
    }

    #[test]
    fn a_relay_that_asks_for_proof_again_and_again_is_no_echo() {
        let mut rendezvous = Rendezvous::default();
        rendezvous.register(ms(0), path(), ID);
        rendezvous.on_deadline(ms(0));
        let prove = Message::Prove {
            id: ID,
            token: [8; 16],
        }
        .emit();
        for _ in 0..100 {
            rendezvous.on_datagram(ms(1), path(), &prove);
            rendezvous.on_deadline(ms(1));
        }
        assert_eq!(said(&mut rendezvous).len(), 2);
    }

    #[test]
    fn only_the_relay_registers_and_announces() {
        let mut rendezvous = registered(ms(0));
        let elsewhere = PathAddress {
            remote: at(2),
            ..path()
        };
        let peer = Message::Peer { id: ID, at: at(77) };
        rendezvous.on_datagram(ms(1), elsewhere, &peer.emit());
        rendezvous.on_datagram(
            ms(1),
            path(),
            &Message::Peer {
                id: [6; 16],
                at: at(77),
            }
            .emit(),
        );
        rendezvous.on_datagram(ms(1), elsewhere, &Message::Full { id: ID }.emit());
        rendezvous.on_deadline(ms(1));
        assert_eq!(said(&mut rendezvous), []);
        assert!(!rendezvous.is_refused(at(1)) && rendezvous.reached(at(1)).is_some());
    }

    #[test]
    fn a_peer_that_is_announced_is_greeted_some_times_and_peers_are_few() {
        let mut rendezvous = registered(ms(0));
        for port in 1..=100 {
            rendezvous.on_datagram(
                ms(1),
                path(),
                &Message::Peer {
                    id: ID,
                    at: at(port + 100),
                }
                .emit(),
            );
        }
        let mut greeted = Vec::new();
        while let Some((next, _)) = rendezvous.deadline().filter(|(next, _)| *next < ms(10_000)) {
            rendezvous.on_deadline(next);
            greeted.extend(said(&mut rendezvous));
        }
        assert_eq!(greeted.len(), MOST_PEERS * PUNCHES as usize);
        let to = |port| PathAddress {
            remote: at(port),
            ..path()
        };
        assert_eq!(greeted[0], (to(101), Message::Punch));
    }

    /// A translator that lets in only what its host has spoken to would keep out everybody whom the relay forwards.
    #[test]
    fn a_port_of_the_relay_is_spoken_to_first() {
        let mut rendezvous = registered(ms(0));
        rendezvous.on_datagram(
            ms(1),
            path(),
            &Message::Open {
                id: [6; 16],
                port: 4001,
            }
            .emit(),
        );
        rendezvous.on_datagram(ms(1), path(), &Message::Open { id: ID, port: 4002 }.emit());
        rendezvous.on_deadline(ms(1));
        let to = PathAddress {
            remote: at(4002),
            ..path()
        };
        assert_eq!(said(&mut rendezvous), [(to, Message::Bind { id: ID })]);
    }

    #[test]
    fn a_relay_is_told_of_a_peer_that_has_proved_itself_when_the_host_answers() {
        let mut rendezvous = registered(ms(0));
        rendezvous.on_datagram(ms(1), path(), &Message::Open { id: ID, port: 4002 }.emit());
        let to = PathAddress {
            remote: at(4002),
            ..path()
        };
        let answer = Datagram {
            path: to,
            ..Datagram::empty()
        };
        rendezvous.on_sent(ms(2), &answer, || false);
        assert_eq!(said(&mut rendezvous), [], "anybody gets an answer");
        rendezvous.on_sent(ms(3), &answer, || true);
        assert_eq!(said(&mut rendezvous), [(to, Message::Keep { id: ID })]);
        rendezvous.on_sent(
            ms(4),
            &Datagram {
                path: path(),
                ..answer
            },
            || true,
        );
        assert_eq!(said(&mut rendezvous), [], "no peer of the relay");
    }

    #[test]
    fn who_sends_through_a_relay_hears_where_the_host_is_from_nobody_else() {
        let mut rendezvous = Rendezvous::default();
        rendezvous.expect(at(4000));
        let through = PathAddress {
            remote: at(4000),
            ..path()
        };
        let said = |echo| Message::Elsewhere { echo, at: at(77) }.emit();
        rendezvous.on_datagram(ms(0), through, &said([1; 8]));
        assert_eq!(rendezvous.take_elsewhere(), None, "nothing was sent there");
        let sent = Datagram {
            path: through,
            head: Head::from_slice(&[0x80, 1, 1, 1, 1]),
            body: vec![1; 40].into(),
            ..Datagram::empty()
        };
        rendezvous.on_sent(ms(0), &sent, || false);
        rendezvous.on_datagram(ms(0), through, &said([2; 8]));
        rendezvous.on_datagram(ms(0), path(), &said([1; 8]));
        assert_eq!(rendezvous.take_elsewhere(), None, "an invention");
        let (echo, at_v6) = ([1; 8], "[2001:db8::1]:77".parse().unwrap());
        let of_ipv6 = Message::Elsewhere { echo, at: at_v6 };
        rendezvous.on_datagram(ms(0), through, &of_ipv6.emit());
        assert_eq!(rendezvous.take_elsewhere(), None, "no way leads there");
        rendezvous.on_datagram(ms(0), through, &said([1; 8]));
        rendezvous.on_datagram(ms(0), through, &said([1; 8]));
        assert_eq!(
            rendezvous.take_elsewhere(),
            Some(Elsewhere { through, at: at(77) })
        );
        assert_eq!(rendezvous.take_elsewhere(), None, "once");
    }

    #[test]
    fn a_relay_without_room_is_asked_again_later() {
        let mut rendezvous = registered(ms(0));
        rendezvous.on_datagram(ms(1), path(), &Message::Full { id: ID }.emit());
        assert!(rendezvous.is_refused(at(1)));
        assert_eq!(rendezvous.reached(at(1)), None);
        assert_eq!(rendezvous.deadline().unwrap().0, ms(1) + REFRESH);
    }
}
