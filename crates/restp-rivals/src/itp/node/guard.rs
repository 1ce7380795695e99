//! What a host does for an address depends on whether somebody receives there, and on how much it has taken already.
//!
//! An Interest is small and a chunk is large, so whoever writes another's address on his envelopes would have a host shoot at it. A
//! first message is therefore answered with a cookie, which is shorter than what asked for it; who shows it is where he says he is. The
//! cookie is computed and not kept, as that of the seal is.

use restp_base::time::{Duration, Time};
use restp_base::units::Rate;
use siphasher::sip::SipHasher24;
use std::collections::BTreeMap;
use std::hash::Hasher;
use std::net::{IpAddr, SocketAddr};

/// Bytes of a cookie.
pub const COOKIE_BYTES: usize = 8;
/// A cookie.
pub type Cookie = [u8; COOKIE_BYTES];

/// A cookie is good until this is over. Then its owner is given another, which costs a round trip of what is open and nothing else; who
/// shows the one before has his place among those who have shown something.
const EPOCH: Duration = Duration::from_secs(60);
/// Sources whose rates are watched at once. Beyond that one is forgotten for which nothing waits; a further one is given nothing before there
/// is such a one.
const MOST_SOURCES: usize = 4096;
/// Answers of a source wait for their turn as long as a queue of a link would have them wait: long enough that a consumer who is near
/// still has some open, and 64 full datagrams where the rate is low. Who waits for longer asks again, and answers that wait take room from
/// others.
const QUEUE: Duration = Duration::from_millis(100);
const LEAST_QUEUE: u64 = 64 * 1500;
const LONGEST_QUEUE: Duration = Duration::from_secs(1);

/// Cookies and rates.
#[derive(Debug)]
pub(super) struct Guard {
    key: [u8; 16],
    per_source: Option<Rate>,
    /// When the last answer to a source has left, or will have.
    sources: BTreeMap<IpAddr, Time>,
}

/// What a cookie proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// Its owner receives there.
    Present,
    /// He did a moment ago.
    Past,
    /// Nothing.
    None,
}

impl Guard {
    /// Under a key that nobody else knows. `per_source`: no source gets more.
    pub fn new(key: [u8; 16], per_source: Option<Rate>) -> Self {
        Guard {
            key,
            per_source,
            sources: BTreeMap::new(),
        }
    }

    /// That of `remote`, now.
    pub fn cookie(&self, now: Time, remote: SocketAddr) -> Cookie {
        self.of_epoch(now.as_nanos() / EPOCH.as_nanos(), remote)
    }

    /// What `shown` proves of who receives at `remote`.
    pub fn proof(&self, now: Time, remote: SocketAddr, shown: Option<&Cookie>) -> Proof {
        let epoch = now.as_nanos() / EPOCH.as_nanos();
        let is_of = |epoch| shown == Some(&self.of_epoch(epoch, remote));
        if is_of(epoch) {
            Proof::Present
        } else if epoch.checked_sub(1).is_some_and(is_of) {
            Proof::Past
        } else {
            Proof::None
        }
    }

    fn of_epoch(&self, epoch: u64, remote: SocketAddr) -> Cookie {
        let mut hasher = SipHasher24::new_with_key(&self.key);
        hasher.write(b"cookie");
        hasher.write(&epoch.to_be_bytes());
        match remote.ip() {
            IpAddr::V4(ip) => hasher.write(&ip.to_ipv6_mapped().octets()),
            IpAddr::V6(ip) => hasher.write(&ip.octets()),
        }
        hasher.write(&remote.port().to_be_bytes());
        hasher.finish().to_be_bytes()
    }

    /// A number that nobody guesses, the `count`th.
    pub fn number(&self, count: u64) -> u64 {
        let mut hasher = SipHasher24::new_with_key(&self.key);
        hasher.write(b"number");
        hasher.write(&count.to_be_bytes());
        hasher.finish()
    }

    /// When `bytes` may leave to `remote`. None: too much waits for it already.
    pub fn departure(&mut self, now: Time, remote: SocketAddr, bytes: u64) -> Option<Time> {
        let Some(rate) = self.per_source else {
            return Some(now);
        };
        let source = source_of(remote.ip());
        if !self.sources.contains_key(&source) && self.sources.len() >= MOST_SOURCES {
            let (first, free) = self.sources.iter().min_by_key(|(_, free)| **free)?;
            let (first, is_free) = (*first, *free <= now);
            if !is_free {
                return None;
            }
            self.sources.remove(&first);
        }
        let free = self.sources.entry(source).or_insert(now);
        let departs = now.max(*free);
        let queue = rate.transmission_time(LEAST_QUEUE).clamp(QUEUE, LONGEST_QUEUE);
        if departs.since(now) > queue {
            return None;
        }
        *free = departs + rate.transmission_time(bytes);
        Some(departs)
    }
}

/// Whoever has an IPv6 address has the whole /64.
pub(super) fn source_of(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(_) => ip,
        IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
            Some(v4) => IpAddr::V4(v4),
            None => IpAddr::from((u128::from(v6) >> 64 << 64).to_be_bytes()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> SocketAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn a_cookie_is_of_one_address_and_does_not_last() {
        let guard = Guard::new([1; 16], None);
        let (now, there) = (Time::ZERO + EPOCH * 3, at("192.0.2.1:9"));
        let cookie = guard.cookie(now, there);
        let proof = |later, remote| guard.proof(now + later, remote, Some(&cookie));
        assert_eq!(proof(Duration::ZERO, there), Proof::Present);
        assert_eq!(proof(EPOCH, there), Proof::Past);
        assert_eq!(proof(EPOCH * 2, there), Proof::None);
        assert_eq!(proof(Duration::ZERO, at("192.0.2.1:10")), Proof::None);
        assert_eq!(proof(Duration::ZERO, at("192.0.2.2:9")), Proof::None);
        assert_eq!(guard.proof(now, there, None), Proof::None);
        let other = Guard::new([2; 16], None);
        assert_eq!(other.proof(now, there, Some(&cookie)), Proof::None);
    }

    #[test]
    fn a_source_gets_its_rate_whatever_its_ports() {
        let mut guard = Guard::new([1; 16], Some(Rate::from_bps(80_000_000)));
        let mut departures = Vec::new();
        for step in 0..10_000u64 {
            let now = Time::ZERO + Duration::from_micros(step * 100);
            let there = SocketAddr::new(at("192.0.2.1:9").ip(), 1 + (step % 7) as u16);
            let departs = guard.departure(now, there, 1500);
            assert!(departs.is_none_or(|at| at >= now && at.since(now) <= QUEUE));
            departures.extend(departs);
        }
        let apart = departures.windows(2).map(|two| two[1].since(two[0]));
        assert!(apart.clone().all(|gap| gap == Duration::from_micros(150)));
        assert!(departures.len() > 6_666, "10 MB of a second, and what waits");
        let end = Time::ZERO + Duration::from_secs(1);
        assert_eq!(
            guard.departure(end, at("192.0.2.2:9"), 1500),
            Some(end),
            "another source"
        );
        let later = end + QUEUE * 2;
        assert_eq!(
            guard.departure(later, at("192.0.2.1:9"), 1500),
            Some(later),
            "no credit"
        );
        let next = later + Duration::from_micros(150);
        assert_eq!(guard.departure(later, at("192.0.2.1:9"), 1500), Some(next));
    }

    #[test]
    fn the_largest_answer_leaves_at_the_lowest_rate_and_few_wait() {
        let mut guard = Guard::new([1; 16], Some(Rate::from_bps(8_000)));
        let (there, at_second) = (at("192.0.2.1:9"), |s| Time::ZERO + Duration::from_secs(s));
        let mut departure = |s| guard.departure(at_second(s), there, 64_000);
        assert_eq!([departure(0), departure(0)], [Some(at_second(0)), None]);
        assert_eq!([departure(62), departure(63)], [None, Some(at_second(64))]);
        let mut shut = Guard::new([1; 16], Some(Rate::from_bps(0)));
        let departs = [0, 0, 1].map(|s| shut.departure(at_second(s), there, 1));
        assert_eq!(departs[1..], [None, None]);
    }

    #[test]
    fn a_source_for_which_answers_wait_is_not_forgotten() {
        let mut guard = Guard::new([1; 16], Some(Rate::from_bps(8_000_000)));
        let now = Time::ZERO + Duration::from_secs(1);
        let source = |n: u32| SocketAddr::new(IpAddr::from(n.to_be_bytes()), 1);
        for n in 0..MOST_SOURCES as u32 {
            guard.departure(now, source(n), 1_000 + u64::from(n));
        }
        assert_eq!(guard.departure(now, source(99_999), 1_000), None);
        let later = now + Duration::from_millis(1);
        assert_eq!(guard.departure(later, source(99_999), 1_000), Some(later));
        assert_eq!(
            guard.departure(later, source(1), 1),
            Some(now + Duration::from_micros(1_001))
        );
    }

    #[test]
    fn sources_are_bounded_and_an_ipv6_network_is_one() {
        let mut guard = Guard::new([1; 16], Some(Rate::from_bps(8_000)));
        for host in 0..10_000u32 {
            let there = SocketAddr::new(IpAddr::from(host.to_be_bytes()), 1);
            guard.departure(Time::ZERO, there, 1);
        }
        assert!(guard.sources.len() <= MOST_SOURCES);
        assert_eq!(
            source_of(at("[2001:db8::1]:1").ip()),
            source_of(at("[2001:db8::ffff:2]:1").ip())
        );
        assert_ne!(
            source_of(at("[2001:db8::1]:1").ip()),
            source_of(at("[2001:db8:0:1::1]:1").ip())
        );
    }
}
