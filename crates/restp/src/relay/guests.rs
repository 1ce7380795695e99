//! Peers that came through a relay, as their host knows them: ports of the relay, and when the relay is told that a peer has proved
//! itself.

use super::wire::RegistrationId;
use restp_base::time::{Duration, Time};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Said again after this long, while the host sends there.
const AGAIN: Duration = Duration::from_secs(15);

/// Ports that are remembered: some times as many as a relay has for the peers of one host.
const MOST_GUESTS: usize = 256;

/// Ports of relays that stand for peers.
#[derive(Debug, Default)]
pub(super) struct Guests(BTreeMap<SocketAddr, Guest>);

#[derive(Debug)]
struct Guest {
    id: RegistrationId,
    opened: Time,
    /// When the relay was told last.
    said: Option<Time>,
}

impl Guests {
    /// A relay has opened `port`. Where there are too many, ports of peers that proved nothing are forgotten first, then the oldest.
    pub fn open(&mut self, now: Time, port: SocketAddr, id: RegistrationId) {
        if self.0.contains_key(&port) {
            return;
        }
        if self.0.len() >= MOST_GUESTS {
            let age = |guest: &Guest| (guest.said.is_some(), guest.said.unwrap_or(guest.opened));
            let first = self.0.iter().min_by_key(|(_, guest)| age(guest));
            if let Some(first) = first.map(|(port, _)| *port) {
                self.0.remove(&first);
            }
        }
        let (opened, said) = (now, None);
        self.0.insert(port, Guest { id, opened, said });
    }

    /// Something leaves for `port`. Under which registration the relay is to be told that its peer has proved itself, if it has.
    pub fn due(
        &mut self,
        now: Time,
        port: SocketAddr,
        is_proved: impl FnOnce() -> bool,
    ) -> Option<RegistrationId> {
        let guest = self.0.get_mut(&port)?;
        let is_due = guest.said.is_none_or(|said| now.since(said) >= AGAIN) && is_proved();
        is_due.then(|| {
            guest.said = Some(now);
            guest.id
        })
    }

    /// The host is reached through relays no longer.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(number: u16) -> SocketAddr {
        ([192, 0, 2, 1], number).into()
    }

    fn seconds(seconds: u64) -> Time {
        Time::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn a_relay_is_told_of_who_has_proved_itself_now_and_then() {
        let mut guests = Guests::default();
        assert_eq!(
            guests.due(seconds(0), port(1), || true),
            None,
            "no relay has opened it"
        );
        guests.open(seconds(0), port(1), [5; 16]);
        assert_eq!(guests.due(seconds(0), port(1), || false), None);
        assert_eq!(guests.due(seconds(1), port(1), || true), Some([5; 16]));
        guests.open(seconds(2), port(1), [5; 16]);
        assert_eq!(guests.due(seconds(15), port(1), || true), None);
        assert_eq!(guests.due(seconds(16), port(1), || true), Some([5; 16]));
        guests.clear();
        assert_eq!(guests.due(seconds(99), port(1), || true), None);
    }

    #[test]
    fn a_flood_of_ports_displaces_nobody_who_has_proved_itself() {
        let mut guests = Guests::default();
        for number in 1..=5000 {
            guests.open(seconds(u64::from(number)), port(number), [5; 16]);
            if number <= 64 {
                assert!(
                    guests
                        .due(seconds(u64::from(number)), port(number), || true)
                        .is_some()
                );
            }
        }
        assert_eq!(guests.0.len(), MOST_GUESTS);
        assert!((1..=64).all(|number| guests.due(seconds(6000), port(number), || true).is_some()));
        assert!(guests.due(seconds(6000), port(5000), || true).is_some());
    }
}
