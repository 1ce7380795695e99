//! Who may use a relay, and how much.

use crate::rendezvous::wire::{AddressToken, RegistrationId};
use restp_base::sources::Sources;
use restp_base::time::{Duration, Time};
use restp_base::units::Rate;
use siphasher::sip128::{Hasher128, SipHasher24};
use std::collections::BTreeMap;
use std::hash::Hasher;
use std::net::{IpAddr, SocketAddr};

/// A token proves an address in the minute that it was made in and in the next.
const MINUTE: Duration = Duration::from_secs(60);

/// A host that has not said anything for so long is no user any more: four refreshes of its own.
const EXPIRES: Duration = Duration::from_secs(60);

/// Hosts of one source at most (an IPv4 address, an IPv6 /64): those behind one translator.
const MOST_OF_A_SOURCE: usize = 16;

/// What may leave at once after a pause: as long as a queue in front of a link of this rate would be.
const BURST: Duration = Duration::from_millis(250);

/// Room for one train of datagrams, whatever the rate.
const LEAST_BURST_BYTES: u64 = 64 * 1024;

/// Proofs of addresses that need no memory.
pub struct Tokens {
    key: [u8; 16],
}

impl Tokens {
    pub fn new(key: [u8; 16]) -> Self {
        Tokens { key }
    }

    /// For a host at `address`.
    pub fn token(&self, now: Time, address: SocketAddr) -> AddressToken {
        self.of(minute(now), address)
    }

    pub fn is_right(&self, now: Time, address: SocketAddr, token: AddressToken) -> bool {
        let minute = minute(now);
        // Nothing is learnt from the time that this takes: a token is good for one address, and its owner may know it.
        token == self.of(minute, address) || minute > 0 && token == self.of(minute - 1, address)
    }

    fn of(&self, minute: u64, address: SocketAddr) -> AddressToken {
        let mut hasher = SipHasher24::new_with_key(&self.key);
        hasher.write(&minute.to_be_bytes());
        match address.ip().to_canonical() {
            IpAddr::V4(ip) => hasher.write(&ip.octets()),
            IpAddr::V6(ip) => hasher.write(&ip.octets()),
        }
        hasher.write(&address.port().to_be_bytes());
        hasher.finish128().as_bytes()
    }
}

fn minute(now: Time) -> u64 {
    now.since(Time::ZERO).as_nanos() / MINUTE.as_nanos()
}

/// The hosts that are registered.
pub struct Users<T> {
    users: BTreeMap<RegistrationId, User<T>>,
    sources: Sources,
    most: usize,
}

struct User<T> {
    source: IpAddr,
    heard: Time,
    /// What the relay keeps of it.
    data: T,
}

impl<T> Users<T> {
    /// At most `most` of them.
    pub fn new(most: usize) -> Self {
        Users {
            users: BTreeMap::new(),
            sources: Sources::default(),
            most,
        }
    }

    /// The user of this name, who was just heard.
    pub fn heard(&mut self, now: Time, id: &RegistrationId) -> Option<&mut T> {
        let user = self.users.get_mut(id)?;
        user.heard = now;
        Some(&mut user.data)
    }

    /// Is there a place for one more at `address`?
    pub fn has_room(&self, address: SocketAddr) -> bool {
        self.users.len() < self.most && self.sources.count(address.ip()) < MOST_OF_A_SOURCE
    }

    pub fn enter(&mut self, now: Time, id: RegistrationId, address: SocketAddr, data: T) {
        self.leave(&id);
        self.sources.enter(address.ip());
        let user = User {
            source: address.ip(),
            heard: now,
            data,
        };
        self.users.insert(id, user);
    }

    pub fn leave(&mut self, id: &RegistrationId) {
        if let Some(user) = self.users.remove(id) {
            self.sources.leave(user.source);
        }
    }

    /// Forgets those that were not heard.
    pub fn expire(&mut self, now: Time) {
        let silent = |user: &User<T>| now.since(user.heard) >= EXPIRES;
        let gone = self
            .users
            .iter()
            .filter(|(_, user)| silent(user))
            .map(|(id, _)| *id);
        for id in gone.collect::<Vec<_>>() {
            self.leave(&id);
        }
    }

    pub fn clear(&mut self) {
        self.users.clear();
        self.sources = Sources::default();
    }

    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.users.values().map(|user| &user.data)
    }

    pub fn len(&self) -> usize {
        self.users.len()
    }
}

/// How much one user may have forwarded (a token bucket).
#[derive(Debug)]
pub struct Share {
    rate: Rate,
    burst: u64,
    /// Bytes that may leave now.
    room: u64,
    at: Time,
}

impl Share {
    pub fn new(now: Time, rate: Rate) -> Self {
        let burst = rate.bytes_in(BURST).max(LEAST_BURST_BYTES);
        Share {
            rate,
            burst,
            room: burst,
            at: now,
        }
    }

    /// May `bytes` more be forwarded?
    pub fn take(&mut self, now: Time, bytes: u64) -> bool {
        let earned = self.rate.bytes_in(now.since(self.at.min(now)));
        // What is less than a byte waits.
        if earned > 0 {
            self.room = self.burst.min(self.room.saturating_add(earned));
            self.at = now;
        }
        let fits = bytes <= self.room;
        if fits {
            self.room -= bytes;
        }
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Time {
        Time::ZERO + Duration::from_secs(seconds)
    }

    fn host(last: u8, port: u16) -> SocketAddr {
        ([192, 0, 2, last], port).into()
    }

    #[test]
    fn a_token_proves_one_address_for_one_to_two_minutes() {
        let tokens = Tokens::new([1; 16]);
        let token = tokens.token(at(30), host(1, 5));
        for (seconds, address, right) in [
            (30, host(1, 5), true),
            (119, host(1, 5), true),
            (120, host(1, 5), false),
            (30, host(1, 6), false),
            (30, host(2, 5), false),
        ] {
            assert_eq!(
                tokens.is_right(at(seconds), address, token),
                right,
                "{seconds} {address}"
            );
        }
        assert!(!Tokens::new([2; 16]).is_right(at(30), host(1, 5), token));
        assert!(!tokens.is_right(at(0), host(1, 5), [0; 16]));
    }

    #[test]
    fn one_source_does_not_take_all_places() {
        let mut users = Users::new(20);
        for id in 0..40 {
            let address = host(if id < 30 { 1 } else { id }, 1000 + u16::from(id));
            if users.has_room(address) {
                users.enter(at(0), [id; 16], address, ());
            }
        }
        assert_eq!(users.len(), 20);
        assert_eq!(users.sources.count(host(1, 1).ip()), MOST_OF_A_SOURCE);
        users.leave(&[0; 16]);
        assert!(users.has_room(host(1, 9)));
    }

    #[test]
    fn who_is_not_heard_for_a_minute_is_forgotten() {
        let mut users = Users::new(4);
        users.enter(at(0), [1; 16], host(1, 1), ());
        users.enter(at(0), [2; 16], host(2, 1), ());
        assert!(users.heard(at(50), &[2; 16]).is_some());
        users.expire(at(60));
        assert!(users.heard(at(60), &[1; 16]).is_none());
        assert!(users.heard(at(60), &[2; 16]).is_some());
    }

    #[test]
    fn a_share_is_a_rate_with_a_burst() {
        let rate = Rate::from_bps(8_000_000); // a megabyte a second
        let mut share = Share::new(at(0), rate);
        let mut forwarded = 0;
        for millisecond in 0..10_000 {
            let now = Time::ZERO + Duration::from_millis(millisecond);
            while share.take(now, 1000) {
                forwarded += 1000;
            }
        }
        let burst = rate.bytes_in(BURST);
        assert!(
            (10_000_000..=10_000_000 + burst).contains(&forwarded),
            "{forwarded}"
        );
    }

    #[test]
    fn a_share_without_bounds_does_not_overflow() {
        let mut share = Share::new(at(0), Rate::from_bps(u64::MAX));
        assert!(share.take(at(0), 1));
        assert!(share.take(at(1_000_000_000), 1));
    }

    #[test]
    fn a_slow_share_earns_at_any_pace_of_asking() {
        let mut share = Share::new(at(0), Rate::from_bps(8000)); // a byte a millisecond
        assert!(share.take(at(0), LEAST_BURST_BYTES));
        for step in 1..=10_000 {
            assert!(!share.take(Time::ZERO + Duration::from_micros(step * 90), 1000));
        }
        assert!(share.take(at(2), 1000));
    }
}
