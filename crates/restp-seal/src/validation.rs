//! Path validation (RFC 9000 §8.2, §9.3). A packet of a known path from another address may mean that a NAT gave the peer
//! another binding, or that somebody carried a copy of the packet: only a peer that answers a challenge there is there. Until
//! then the packet counts, and the path stays at its old address.

use crate::entropy::Entropy;
use crate::schedule::SPACES;
use bytes::Bytes;
use restp_base::machine::{Datagram, PathAddress};
use restp_base::time::{Duration, Time};
use std::net::SocketAddr;

/// In a packet, instead of a PDU: asks for the same bytes back. A PDU of version 0 begins with a bit 0.
const CHALLENGE: u8 = 0x80;
/// Gives them back.
const RESPONSE: u8 = 0x81;

/// Bytes nobody guesses.
pub(crate) type Value = [u8; 8];

/// An address is asked again after so long, and another of the same path may be asked instead.
const REPEAT: Duration = Duration::from_millis(50);

/// A challenge is sent again though nothing more comes from its address: the challenge or its response may be lost, and the peer may
/// have nothing more to say (RFC 9000 §8.2.1). First after so long, which is the wait for a first packet (RFC 9002 §6.2.2), then
/// after twice that. A challenge is no larger than any packet, so three of them are at most three times what came (§8.1).
const UNANSWERED: Duration = Duration::from_secs(1);
const MAX_REPEATS: u32 = 2;

/// What a packet carries that is no PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Control {
    Challenge(Value),
    Response(Value),
}

impl Control {
    /// No PDU is shorter. What is would be answered by more than three times its bytes with a challenge that is sent three times.
    pub(crate) const BYTES: usize = 9;

    /// Reads it; `None` for a PDU, and for what nobody says.
    pub(crate) fn parse(plain: &[u8]) -> Option<Control> {
        let (kind, value) = plain.split_first()?;
        let value = value.try_into().ok()?;
        match *kind {
            CHALLENGE => Some(Control::Challenge(value)),
            RESPONSE => Some(Control::Response(value)),
            _ => None,
        }
    }

    pub(crate) fn emit(self) -> [u8; Control::BYTES] {
        let (kind, value) = match self {
            Control::Challenge(value) => (CHALLENGE, value),
            Control::Response(value) => (RESPONSE, value),
        };
        let mut bytes = [kind; Control::BYTES];
        bytes[1..].copy_from_slice(&value);
        bytes
    }
}

/// Where a packet came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathOrigin {
    /// From the address of its path.
    Validated,
    /// From an address that has not answered. The packet counts as from `known`, the address of its path, if there is one;
    /// `challenge` is for the new address, if it is time to send one.
    Elsewhere {
        known: Option<SocketAddr>,
        challenge: Option<Value>,
    },
}

/// Addresses of a peer's paths that have answered.
#[derive(Default)]
pub(crate) struct ValidatedPaths {
    known: [Option<SocketAddr>; SPACES as usize],
    /// One for each path at most.
    challenges: Vec<Challenge>,
}

/// Sent to an address, and not answered yet.
struct Challenge {
    space: usize,
    remote: SocketAddr,
    value: Value,
    at: Time,
    /// Times it was sent again since a packet came from there.
    repeats: u32,
    /// The last packet from there: it tells the machine where the peer is now.
    last: Option<Datagram>,
}

impl Challenge {
    /// When it is sent again by itself, or the packet that waits for its response is given up. What was handed on at once comes
    /// again by its own timers.
    fn deadline(&self) -> Option<Time> {
        self.last
            .as_ref()
            .map(|_| self.at + UNANSWERED * (1 << self.repeats))
    }
}

impl ValidatedPaths {
    /// The peer's first path comes from `remote`.
    pub(crate) fn at(remote: SocketAddr) -> Self {
        let mut paths = ValidatedPaths::default();
        paths.known[0] = Some(remote);
        paths
    }

    /// A genuine packet of path `space` came from `remote`; `is_validated` tells whether the peer has answered there on
    /// another path or in another session, a new challenge is drawn from `entropy`.
    pub(crate) fn on_packet(
        &mut self,
        now: Time,
        space: u8,
        remote: SocketAddr,
        is_validated: impl FnOnce() -> bool,
        entropy: &mut Entropy,
    ) -> PathOrigin {
        let space = usize::from(space % SPACES);
        let known = self.known[space];
        if known == Some(remote) {
            return PathOrigin::Validated;
        }
        if known.is_none() && is_validated() {
            self.known[space] = Some(remote);
            return PathOrigin::Validated;
        }
        let challenge = self.challenge(now, space, remote, entropy);
        PathOrigin::Elsewhere { known, challenge }
    }

    /// What to ask `remote`, if it is time to: the same again, or something new instead of what another address was asked.
    fn challenge(
        &mut self,
        now: Time,
        space: usize,
        remote: SocketAddr,
        entropy: &mut Entropy,
    ) -> Option<Value> {
        let place = self.challenges.iter().position(|sent| sent.space == space);
        if let Some(sent) = place.map(|place| &mut self.challenges[place]) {
            if now.since(sent.at) < REPEAT {
                return None;
            }
            if sent.remote == remote {
                sent.at = now;
                return Some(sent.value);
            }
        }
        if let Some(place) = place {
            self.challenges.swap_remove(place);
        }
        let value = entropy.array();
        self.challenges.push(Challenge {
            space,
            remote,
            value,
            at: now,
            repeats: 0,
            last: None,
        });
        Some(value)
    }

    /// Keeps a packet of path `space` until its address has answered the challenge; only the last.
    pub(crate) fn keep(&mut self, space: u8, datagram: &Datagram) {
        let (space, remote) = (usize::from(space % SPACES), datagram.path.remote);
        let mut challenges = self.challenges.iter_mut();
        if let Some(sent) = challenges.find(|sent| sent.space == space && sent.remote == remote) {
            sent.repeats = 0;
            sent.last = Some(Datagram {
                body: Bytes::copy_from_slice(&datagram.body), // it would keep its neighbours in memory
                ..datagram.clone()
            });
        }
    }

    /// When the next challenge is to be sent again.
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.challenges.iter().filter_map(Challenge::deadline).min()
    }

    /// Challenges that are to be sent again now, each along its path.
    pub(crate) fn repeat(&mut self, now: Time) -> Vec<(PathAddress, Value)> {
        let is_due = |sent: &&mut Challenge| sent.deadline().is_some_and(|at| at <= now);
        let due = self.challenges.iter_mut().filter(is_due);
        due.filter_map(|sent| {
            if sent.repeats == MAX_REPEATS {
                sent.last = None;
            }
            (sent.at, sent.repeats) = (now, sent.repeats + 1);
            Some((sent.last.as_ref()?.path, sent.value))
        })
        .collect()
    }

    /// `remote` has answered with `value`. Where that is the challenge sent there the path is there now, and its last packet
    /// is returned, if it was kept.
    pub(crate) fn on_response(&mut self, remote: SocketAddr, value: Value) -> Option<Option<Datagram>> {
        let answered = |sent: &Challenge| sent.remote == remote && sent.value == value;
        let place = self.challenges.iter().position(answered)?;
        let sent = self.challenges.swap_remove(place);
        self.known[sent.space] = Some(remote);
        Some(sent.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(host: u8) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, host], 1))
    }

    fn from(number: u8) -> Datagram {
        Datagram {
            path: PathAddress {
                local: host(1),
                remote: host(number),
            },
            ..Datagram::empty()
        }
    }

    fn ms(n: u64) -> Time {
        Time::from_nanos(n * 1_000_000)
    }

    /// What came from `host` on path `space`.
    fn on_packet(
        paths: &mut ValidatedPaths,
        at: u64,
        space: u8,
        from: u8,
        entropy: &mut Entropy,
    ) -> PathOrigin {
        paths.on_packet(ms(at), space, host(from), || false, entropy)
    }

    fn challenge(origin: PathOrigin) -> Value {
        match origin {
            PathOrigin::Elsewhere { challenge, .. } => challenge.expect("it is time to ask"),
            PathOrigin::Validated => panic!("the address has answered"),
        }
    }

    #[test]
    fn a_path_moves_when_its_new_address_answers_and_not_before() {
        let known = Some(host(2));
        let mut paths = ValidatedPaths::at(host(2));
        let entropy = &mut Entropy::new(&[1; 32]);
        let p = &mut paths;
        assert_eq!(on_packet(p, 0, 0, 2, entropy), PathOrigin::Validated);
        let sent = challenge(on_packet(p, 1, 0, 9, entropy));
        p.keep(0, &from(9));
        let quiet = PathOrigin::Elsewhere {
            known,
            challenge: None,
        };
        assert_eq!(on_packet(p, 2, 0, 9, entropy), quiet, "asked already");
        assert_eq!(on_packet(p, 2, 0, 8, entropy), quiet, "one at a time");
        assert_eq!(on_packet(p, 50, 0, 9, entropy), quiet, "not yet");
        let again = PathOrigin::Elsewhere {
            known,
            challenge: Some(sent),
        };
        assert_eq!(on_packet(p, 51, 0, 9, entropy), again, "the same");
        assert!(p.on_response(host(8), sent).is_none(), "from elsewhere");
        let last = p.on_response(host(9), sent).expect("it was asked");
        assert_eq!(last.map(|last| last.path.remote), Some(host(9)));
        assert_eq!(on_packet(p, 300, 0, 9, entropy), PathOrigin::Validated);
        assert!(p.on_response(host(9), sent).is_none(), "once");
        assert_ne!(
            on_packet(p, 300, 0, 2, entropy),
            PathOrigin::Validated,
            "it has left"
        );
    }

    #[test]
    fn another_address_is_asked_something_else_and_ends_what_the_one_before_was_asked() {
        let mut paths = ValidatedPaths::at(host(2));
        let entropy = &mut Entropy::new(&[1; 32]);
        let first = challenge(on_packet(&mut paths, 0, 0, 8, entropy));
        paths.keep(0, &from(8));
        let second = challenge(on_packet(&mut paths, 50, 0, 9, entropy));
        assert_ne!(first, second);
        assert!(paths.on_response(host(8), first).is_none());
        paths.keep(0, &from(7));
        assert_eq!(
            paths.on_response(host(9), second).map(|last| last.is_some()),
            Some(false)
        );
    }

    #[test]
    fn a_challenge_is_not_guessed_and_every_byte_of_the_response_counts() {
        let mut paths = ValidatedPaths::at(host(2));
        let entropy = &mut Entropy::new(&[1; 32]);
        let sent: Vec<Value> = (1..SPACES)
            .map(|space| challenge(on_packet(&mut paths, 0, space, 9, entropy)))
            .collect();
        let different: std::collections::BTreeSet<_> = sent.iter().collect();
        assert_eq!(different.len(), sent.len(), "each path is asked something else");
        let other = challenge(on_packet(
            &mut ValidatedPaths::default(),
            0,
            0,
            9,
            &mut Entropy::new(&[2; 32]),
        ));
        assert!(!sent.contains(&other), "and each host asks something else");
        assert!(paths.on_response(host(9), [0; 8]).is_none());
        for bit in 0..64 {
            let mut value = sent[0];
            value[bit / 8] ^= 0x80 >> (bit % 8);
            assert!(paths.on_response(host(9), value).is_none(), "bit {bit}");
        }
        assert!(paths.on_response(host(9), sent[0]).is_some());
    }

    #[test]
    fn a_new_path_is_nowhere_until_its_address_has_answered() {
        let mut paths = ValidatedPaths::at(host(2));
        let entropy = &mut Entropy::new(&[1; 32]);
        let origin = on_packet(&mut paths, 0, 1, 3, entropy);
        assert!(matches!(origin, PathOrigin::Elsewhere { known: None, .. }));
        let other = challenge(on_packet(&mut paths, 0, 2, 4, entropy));
        assert_ne!(other, challenge(origin), "each path");
        let answered = paths.on_response(host(3), challenge(origin));
        assert_eq!(answered.map(|last| last.is_some()), Some(false));
        assert_eq!(on_packet(&mut paths, 1, 1, 3, entropy), PathOrigin::Validated);
        let known = paths.on_packet(ms(1), 3, host(3), || true, entropy);
        assert_eq!(known, PathOrigin::Validated, "it has answered on another path");
        assert_eq!(
            on_packet(&mut paths, 1, 3, 3, entropy),
            PathOrigin::Validated,
            "and is there now"
        );
        let moved = paths.on_packet(ms(1), 3, host(4), || true, entropy);
        assert_ne!(moved, PathOrigin::Validated, "who moves is asked");
    }

    #[test]
    fn a_challenge_leaves_three_times_for_one_packet() {
        let mut paths = ValidatedPaths::at(host(2));
        let entropy = &mut Entropy::new(&[1; 32]);
        let sent = challenge(on_packet(&mut paths, 0, 0, 9, entropy));
        assert_eq!(paths.deadline(), None, "handed on at once");
        for came in [0, 10_000] {
            paths.keep(0, &from(9));
            for after in [1_000, 3_000] {
                assert_eq!(paths.deadline(), Some(ms(came + after)));
                assert_eq!(paths.repeat(ms(came + after - 1)), []);
                assert_eq!(paths.repeat(ms(came + after)), [(from(9).path, sent)]);
            }
            assert!(paths.challenges[0].last.is_some());
            assert_eq!(paths.repeat(ms(came + 7_000)), []);
            assert!(paths.challenges[0].last.is_none(), "nobody is there");
            assert_eq!(paths.deadline(), None);
            assert_eq!(
                challenge(on_packet(&mut paths, came + 10_000, 0, 9, entropy)),
                sent
            );
        }
        paths.keep(0, &from(9));
        assert!(paths.on_response(host(9), sent).is_some());
        assert_eq!(paths.deadline(), None, "answered");
    }

    #[test]
    fn controls_are_no_pdus_and_read_back() {
        for control in [Control::Challenge([7; 8]), Control::Response([8; 8])] {
            let bytes = control.emit();
            assert!(bytes[0] & 0x80 != 0);
            assert_eq!(Control::parse(&bytes), Some(control));
            assert_eq!(Control::parse(&bytes[..8]), None);
        }
        assert_eq!(Control::parse(&[0; 9]), None);
    }
}
