//! Where a peer's paths come from. A packet of a known path from another address may mean that a NAT gave it another
//! binding, or that somebody carried a copy of it; only who answers there is there (RFC 9000 §8.2, §9.3). Until then the
//! packet counts, and the old address stays.

use crate::packet::SPACES;
use bytes::Bytes;
use restp_base::machine::Datagram;
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

/// What a packet carries that is no PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Control {
    Challenge(Value),
    Response(Value),
}

impl Control {
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

    pub(crate) fn emit(self) -> [u8; 9] {
        let (kind, value) = match self {
            Control::Challenge(value) => (CHALLENGE, value),
            Control::Response(value) => (RESPONSE, value),
        };
        let mut bytes = [kind; 9];
        bytes[1..].copy_from_slice(&value);
        bytes
    }
}

/// Where a packet came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whence {
    /// From where its path is.
    Home,
    /// From an address that has not answered. It counts as from `home`, if its path has been anywhere; `ask` there, if it is
    /// time to.
    Elsewhere {
        home: Option<SocketAddr>,
        ask: Option<Value>,
    },
}

/// Addresses of a peer's paths that have answered.
#[derive(Default)]
pub(crate) struct Homes {
    known: [Option<SocketAddr>; SPACES as usize],
    /// One for each path at most.
    asked: Vec<Asked>,
}

struct Asked {
    space: usize,
    remote: SocketAddr,
    value: Value,
    at: Time,
    /// The last packet from there: it tells the machine where the peer is now.
    last: Option<Datagram>,
}

impl Homes {
    /// The peer's first path comes from `remote`.
    pub(crate) fn at(remote: SocketAddr) -> Self {
        let mut homes = Homes::default();
        homes.known[0] = Some(remote);
        homes
    }

    /// A genuine packet of path `space` came from `remote`; `is_home` tells whether the peer has answered there on another
    /// path or in another session, `chance` is drawn when it must be asked for.
    pub(crate) fn look(
        &mut self,
        now: Time,
        space: u8,
        remote: SocketAddr,
        is_home: impl FnOnce() -> bool,
        chance: impl FnOnce() -> Value,
    ) -> Whence {
        let space = usize::from(space % SPACES);
        let home = self.known[space];
        if home == Some(remote) {
            return Whence::Home;
        }
        if home.is_none() && is_home() {
            self.known[space] = Some(remote);
            return Whence::Home;
        }
        let asked = self.asked.iter().position(|asked| asked.space == space);
        let pending = asked.map(|index| &mut self.asked[index]);
        let ask = match pending {
            Some(asked) if now.since(asked.at) < REPEAT => None,
            Some(asked) if asked.remote == remote => {
                asked.at = now;
                Some(asked.value)
            }
            _ => {
                let value = chance();
                if let Some(index) = asked {
                    self.asked.swap_remove(index);
                }
                self.asked.push(Asked {
                    space,
                    remote,
                    value,
                    at: now,
                    last: None,
                });
                Some(value)
            }
        };
        Whence::Elsewhere { home, ask }
    }

    /// Keeps a packet of path `space` until its address, which was asked, has answered; only the last.
    pub(crate) fn keep(&mut self, space: u8, datagram: &Datagram) {
        let from = |asked: &&mut Asked| {
            asked.space == usize::from(space % SPACES) && asked.remote == datagram.path.remote
        };
        if let Some(asked) = self.asked.iter_mut().find(from) {
            asked.last = Some(Datagram {
                body: Bytes::copy_from_slice(&datagram.body), // it would keep its neighbours in memory
                ..datagram.clone()
            });
        }
    }

    /// `remote` has answered with `value`: where it was asked, the path is there now, and its last packet is returned, if it
    /// was kept.
    pub(crate) fn answered(&mut self, remote: SocketAddr, value: Value) -> Option<Option<Datagram>> {
        let answers = |asked: &Asked| asked.remote == remote && asked.value == value;
        let index = self.asked.iter().position(answers)?;
        let asked = self.asked.swap_remove(index);
        self.known[asked.space] = Some(remote);
        Some(asked.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use restp_base::machine::PathAddress;

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

    #[test]
    fn a_path_moves_when_its_new_address_answers_and_not_before() {
        let home = Some(host(2));
        let mut homes = Homes::at(host(2));
        let look =
            |homes: &mut Homes, at, from, value| homes.look(ms(at), 0, host(from), || false, || [value; 8]);
        assert_eq!(look(&mut homes, 0, 2, 1), Whence::Home);
        let ask = Some([2; 8]);
        assert_eq!(look(&mut homes, 1, 9, 2), Whence::Elsewhere { home, ask });
        homes.keep(0, &from(9));
        let quiet = Whence::Elsewhere { home, ask: None };
        assert_eq!(look(&mut homes, 2, 9, 3), quiet, "asked already");
        assert_eq!(look(&mut homes, 2, 8, 3), quiet, "one at a time");
        assert_eq!(
            look(&mut homes, 51, 9, 3),
            Whence::Elsewhere { home, ask },
            "again"
        );
        assert!(homes.answered(host(8), [2; 8]).is_none(), "from elsewhere");
        assert!(homes.answered(host(9), [3; 8]).is_none(), "with something else");
        let last = homes.answered(host(9), [2; 8]).expect("it was asked");
        assert_eq!(last.map(|last| last.path.remote), Some(host(9)));
        assert_eq!(look(&mut homes, 300, 9, 4), Whence::Home);
        assert!(homes.answered(host(9), [2; 8]).is_none(), "once");
    }

    #[test]
    fn a_new_path_is_nowhere_until_its_address_has_answered() {
        let mut homes = Homes::at(host(2));
        let ask = Some([1; 8]);
        let nowhere = Whence::Elsewhere { home: None, ask };
        assert_eq!(homes.look(ms(0), 1, host(3), || false, || [1; 8]), nowhere);
        let other = Whence::Elsewhere {
            home: None,
            ask: Some([5; 8]),
        };
        assert_eq!(
            homes.look(ms(0), 2, host(4), || false, || [5; 8]),
            other,
            "each path"
        );
        assert_eq!(
            homes.answered(host(3), [1; 8]).map(|last| last.is_some()),
            Some(false)
        );
        assert_eq!(homes.look(ms(1), 1, host(3), || false, || [6; 8]), Whence::Home);
        let known = homes.look(ms(1), 3, host(3), || true, || [7; 8]);
        assert_eq!(known, Whence::Home, "it has answered on another path");
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
