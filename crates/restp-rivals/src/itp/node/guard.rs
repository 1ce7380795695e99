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
/// Sources whose rates are watched at once. Beyond that the one that has taken least lately is forgotten, which lets it take more.
const MOST_SOURCES: usize = 4096;
/// What a source may take at once: a tenth of a second of its rate, and 64 full datagrams at least.
const BURST: Duration = Duration::from_millis(100);
const LEAST_BURST: u64 = 64 * 1500;

/// Cookies and rates.
#[derive(Debug)]
pub(super) struct Guard {
    key: [u8; 16],
    per_source: Option<Rate>,
    sources: BTreeMap<IpAddr, Bucket>,
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

/// What a source may take now.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    bytes: u64,
    at: Time,
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

    /// May `bytes` leave to `remote` now?
    pub fn admits(&mut self, now: Time, remote: SocketAddr, bytes: u64) -> bool {
        let Some(rate) = self.per_source else {
            return true;
        };
        let source = source_of(remote.ip());
        let most = rate.bytes_in(BURST).max(LEAST_BURST);
        if !self.sources.contains_key(&source) && self.sources.len() >= MOST_SOURCES {
            let fullest = self.sources.iter().max_by_key(|(_, bucket)| bucket.bytes);
            if let Some(fullest) = fullest.map(|(source, _)| *source) {
                self.sources.remove(&fullest);
            }
        }
        let bucket = self
            .sources
            .entry(source)
            .or_insert(Bucket { bytes: most, at: now });
        let refill = rate.bytes_in(now.since(bucket.at));
        // Time too short for a byte is not lost.
        if refill > 0 {
            bucket.bytes = bucket.bytes.saturating_add(refill).min(most);
            bucket.at = now;
        }
        let admits = bucket.bytes >= bytes;
        bucket.bytes -= if admits { bytes } else { 0 };
        admits
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
        let mut taken = 0;
        for step in 0..10_000u64 {
            let now = Time::ZERO + Duration::from_micros(step * 100);
            let port = 1 + (step % 7) as u16;
            taken += if guard.admits(now, SocketAddr::new(at("192.0.2.1:9").ip(), port), 1500) {
                1500
            } else {
                0
            };
        }
        let (least, most) = (10_000_000 - 3000, 10_000_000 + 1_000_000 + 3000);
        assert!(
            (least..most).contains(&taken),
            "a second of 10 MB and a burst: {taken}"
        );
        assert!(
            guard.admits(Time::ZERO + Duration::from_secs(1), at("192.0.2.2:9"), 1500),
            "another source"
        );
    }

    #[test]
    fn time_too_short_for_a_byte_is_not_lost() {
        let mut guard = Guard::new([1; 16], Some(Rate::from_bps(8_000)));
        let there = at("192.0.2.1:9");
        assert!(guard.admits(Time::ZERO, there, LEAST_BURST));
        let asks = (1..=10_000u64).map(|step| Time::ZERO + Duration::from_micros(step * 100));
        let taken = asks.filter(|now| guard.admits(*now, there, 1)).count();
        assert_eq!(taken, 1000, "those of a second");
    }

    #[test]
    fn sources_are_bounded_and_an_ipv6_network_is_one() {
        let mut guard = Guard::new([1; 16], Some(Rate::from_bps(8_000)));
        for host in 0..10_000u32 {
            guard.admits(
                Time::ZERO,
                SocketAddr::new(IpAddr::from(host.to_be_bytes()), 1),
                1,
            );
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
