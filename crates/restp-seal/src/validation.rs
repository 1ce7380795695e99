//! Where a peer's paths come from. A packet of a known path from another address may mean that a NAT gave it another
//! binding, or that somebody carried a copy of it; only who answers there is there (RFC 9000 §8.2, §9.3). Until then the
//! packet counts, and the old address stays.

use crate::packet::SPACES;
use restp_base::machine::Datagram;
use restp_base::time::{Duration, Time};
use std::net::SocketAddr;

/// In a packet, instead of a PDU: asks for the same bytes back. A PDU of version 0 begins with a bit 0.
const CHALLENGE: u8 = 0x80;
/// Gives them back.
const RESPONSE: u8 = 0x81;

/// Bytes nobody guesses.
pub(crate) type Value = [u8; 8];

/// An address is asked again after so long, and another may be asked instead.
const REPEAT: Duration = Duration::from_millis(200);

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
    /// From where its path is, or it is the first of a path.
    Home,
    /// From an address that has not answered. It counts as from `home`; `ask` there, if it is time to.
    Elsewhere { home: SocketAddr, ask: Option<Value> },
}

/// Addresses of a peer's paths that have answered.
#[derive(Default)]
pub(crate) struct Homes {
    known: [Option<SocketAddr>; SPACES as usize],
    asked: Option<Asked>,
}

struct Asked {
    space: usize,
    remote: SocketAddr,
    value: Value,
    at: Time,
    /// The last packet from there: it tells the machine where the peer is now.
    last: Datagram,
}

impl Homes {
    /// The peer's first path comes from `remote`.
    pub(crate) fn at(remote: SocketAddr) -> Self {
        let mut homes = Homes::default();
        homes.known[0] = Some(remote);
        homes
    }

    /// A genuine packet of path `space` came, `datagram` is what was in it; `chance` is drawn when it must be asked for.
    pub(crate) fn look(
        &mut self,
        now: Time,
        space: u8,
        datagram: &Datagram,
        chance: impl FnOnce() -> Value,
    ) -> Whence {
        let (space, remote) = (usize::from(space % SPACES), datagram.path.remote);
        let home = *self.known[space].get_or_insert(remote);
        if home == remote {
            return Whence::Home;
        }
        let value = match &mut self.asked {
            Some(asked) if asked.remote == remote && asked.space == space => {
                asked.last = datagram.clone();
                let due = now.since(asked.at) >= REPEAT;
                due.then(|| {
                    asked.at = now;
                    asked.value
                })
            }
            Some(asked) if now.since(asked.at) < REPEAT => None,
            _ => {
                let value = chance();
                self.asked = Some(Asked {
                    space,
                    remote,
                    value,
                    at: now,
                    last: datagram.clone(),
                });
                Some(value)
            }
        };
        Whence::Elsewhere { home, ask: value }
    }

    /// `remote` has answered with `value`: where it was asked, the path is there now, and its last packet is returned.
    pub(crate) fn answered(&mut self, remote: SocketAddr, value: Value) -> Option<Datagram> {
        let asked = self
            .asked
            .take_if(|asked| asked.remote == remote && asked.value == value)?;
        self.known[asked.space] = Some(remote);
        Some(asked.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use restp_base::machine::PathAddress;

    fn from(host: u8) -> Datagram {
        Datagram {
            path: PathAddress {
                local: SocketAddr::from(([10, 0, 0, 1], 1)),
                remote: SocketAddr::from(([10, 0, 0, host], 1)),
            },
            ..Datagram::empty()
        }
    }

    fn ms(n: u64) -> Time {
        Time::from_nanos(n * 1_000_000)
    }

    #[test]
    fn a_path_moves_when_its_new_address_answers_and_not_before() {
        let home = from(2).path.remote;
        let mut homes = Homes::at(home);
        assert_eq!(homes.look(ms(0), 0, &from(2), || [1; 8]), Whence::Home);
        assert_eq!(
            homes.look(ms(0), 1, &from(3), || [1; 8]),
            Whence::Home,
            "another path"
        );
        let ask = Some([2; 8]);
        assert_eq!(
            homes.look(ms(1), 0, &from(9), || [2; 8]),
            Whence::Elsewhere { home, ask }
        );
        let quiet = Whence::Elsewhere { home, ask: None };
        assert_eq!(homes.look(ms(2), 0, &from(9), || [3; 8]), quiet, "asked already");
        assert_eq!(homes.look(ms(2), 0, &from(8), || [3; 8]), quiet, "one at a time");
        assert_eq!(
            homes.look(ms(201), 0, &from(9), || [3; 8]),
            Whence::Elsewhere { home, ask },
            "again"
        );
        assert!(
            homes.answered(from(8).path.remote, [2; 8]).is_none(),
            "from elsewhere"
        );
        assert!(
            homes.answered(from(9).path.remote, [3; 8]).is_none(),
            "with something else"
        );
        assert!(homes.answered(from(9).path.remote, [2; 8]).is_some());
        assert_eq!(homes.look(ms(300), 0, &from(9), || [4; 8]), Whence::Home);
        assert!(homes.answered(from(9).path.remote, [2; 8]).is_none(), "once");
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
