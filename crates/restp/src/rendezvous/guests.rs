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

/// Of them those of peers that have proved themselves, when all are taken: relays open new ports for ever, and who comes needs a place
/// until he has.
const MOST_PROVED: usize = MOST_GUESTS / 2;

/// Ports of relays that stand for peers.
#[derive(Debug, Default)]
pub(super) struct Guests(BTreeMap<SocketAddr, Guest>);

#[derive(Debug)]
struct Guest {
    id: RegistrationId,
    /// When the relay has opened the port last.
    opened: Time,
    /// When the relay was told last.
    said: Option<Time>,
}

impl Guests {
    /// A relay has opened `port`. Where there are too many, those of peers that proved nothing are forgotten first, and of them the oldest;
    /// but peers of long ago do not take the places of all others.
    pub fn open(&mut self, now: Time, port: SocketAddr, id: RegistrationId) {
        if let Some(known) = self.0.get_mut(&port).filter(|known| known.id == id) {
            known.opened = now;
            return;
        }
        if self.0.remove(&port).is_none() && self.0.len() >= MOST_GUESTS {
            self.make_room();
        }
        let (opened, said) = (now, None);
        self.0.insert(port, Guest { id, opened, said });
    }

    fn make_room(&mut self) {
        let is_proved = |guest: &Guest| guest.said.is_some();
        let proved = self.0.values().filter(|guest| is_proved(guest)).count();
        let leaving = (self.0.iter()).filter(|(_, guest)| is_proved(guest) == (proved > MOST_PROVED));
        let first = leaving.min_by_key(|(_, guest)| guest.said.max(Some(guest.opened)));
        if let Some(first) = first.map(|(port, _)| *port) {
            self.0.remove(&first);
        }
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

    /// They had all places, and each stranger took the only one that was left from who came before.
    #[test]
    fn peers_of_long_ago_do_not_take_the_places_of_who_comes() {
        let mut guests = Guests::default();
        for number in 1..=MOST_GUESTS as u16 {
            guests.open(seconds(u64::from(number)), port(number), [5; 16]);
            guests.due(seconds(u64::from(number)), port(number), || true);
        }
        guests.open(seconds(1000), port(1000), [5; 16]);
        for number in 2001..2100 {
            guests.open(seconds(1000), port(number), [5; 16]);
        }
        assert!(guests.due(seconds(1000), port(1000), || true).is_some());
        guests.open(seconds(1000), port(1000), [6; 16]);
        assert_eq!(guests.0.len(), MOST_GUESTS, "in its own place");
    }

    #[test]
    fn a_port_that_is_opened_again_is_not_the_oldest() {
        let mut guests = Guests::default();
        for number in 1..=MOST_GUESTS as u16 {
            guests.open(seconds(1), port(number), [5; 16]);
            guests.due(seconds(1), port(number), || true);
        }
        guests.open(seconds(1000), port(1), [5; 16]);
        guests.open(seconds(1001), port(1000), [5; 16]);
        assert!(guests.0.contains_key(&port(1)) && !guests.0.contains_key(&port(2)));
    }

    /// A relay that has started again has the same ports for others, and does not know the registration of before.
    #[test]
    fn a_port_belongs_to_the_registration_that_it_was_opened_for_last() {
        let mut guests = Guests::default();
        for (at, id) in [(1, [5; 16]), (2, [6; 16])] {
            guests.open(seconds(at), port(1), id);
            assert_eq!(guests.due(seconds(at), port(1), || true), Some(id));
        }
    }
}
