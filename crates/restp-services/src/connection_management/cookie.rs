//! Cookies (ResTP §3.5.5, §3.1.4; OP-30): a keyed hash of the client's address that only its server can compute. Who
//! shows one has received a packet at that address before. As RFC 7413 §4.1.2; nothing is stored per client.

use restp_base::time::{Duration, Time};
use siphasher::sip128::{Hasher128, SipHasher24};
use std::collections::BTreeMap;
use std::fmt;
use std::hash::Hasher;
use std::net::{IpAddr, SocketAddr};

/// A cookie of legal length and value: 4, 8, 12 or 16 bytes, not all zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cookie {
    length: CookieLength,
    bytes: [u8; 16],
}

/// Length of a cookie: whole words, at most four (ResTP §3.1.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CookieLength {
    /// 4 bytes: a guess succeeds once in 2³².
    Four = 4,
    /// 8 bytes, as TCP Fast Open recommends (RFC 7413 §4.1.1; ResTP §18).
    #[default]
    Eight = 8,
    /// 12 bytes.
    Twelve = 12,
    /// 16 bytes: all that the hash gives.
    Sixteen = 16,
}

impl Cookie {
    /// `bytes` as a cookie; `None` unless there are 4, 8, 12 or 16 and one of them is not 0.
    pub fn new(bytes: &[u8]) -> Option<Cookie> {
        let length = CookieLength::of(bytes.len())?;
        let mut padded = [0; 16];
        padded[..bytes.len()].copy_from_slice(bytes);
        bytes.iter().any(|byte| *byte != 0).then_some(Cookie {
            length,
            bytes: padded,
        })
    }
    /// The bytes, 4 to 16 of them.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length as usize]
    }
    /// Equal, in a time that does not tell how much of it is.
    fn matches(&self, other: &Cookie) -> bool {
        let difference = (self.bytes.iter().zip(&other.bytes)).fold(0, |sum, (a, b)| sum | (a ^ b));
        std::hint::black_box(difference) == 0 && self.length == other.length
    }
}

impl CookieLength {
    /// The length of `bytes` bytes, if there is one.
    pub fn of(bytes: usize) -> Option<CookieLength> {
        use CookieLength::{Eight, Four, Sixteen, Twelve};
        [Four, Eight, Twelve, Sixteen]
            .into_iter()
            .find(|length| *length as usize == bytes)
    }
}

impl fmt::Debug for Cookie {
    /// Without the bytes: whoever has them can speak for this address.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cookie({:?})", self.length)
    }
}

/// How a server makes its cookies.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct CookieParameters {
    /// All secrets derive from it; a driver on a real network takes it from the operating system.
    pub key: [u8; 16],
    /// Default 8 bytes (ResTP §18).
    pub length: CookieLength,
    /// Time between two secrets. Two are alive, so a cookie serves for one to two of these (OP-30). Default 12 h: a
    /// client that comes back the same day saves the round trip.
    pub rotation: Duration,
}

impl fmt::Debug for CookieParameters {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CookieParameters({:?}, {:?})", self.length, self.rotation)
    }
}

impl Default for CookieParameters {
    fn default() -> Self {
        CookieParameters {
            key: [0; 16],
            length: CookieLength::default(),
            rotation: Duration::from_secs(12 * 3600),
        }
    }
}

/// The server's side: mints cookies and knows its own again. A secret is computed from the key and the number of its
/// period, so there is none to replace.
#[derive(Clone, Copy, Debug)]
pub struct CookieMint(CookieParameters);

impl CookieMint {
    /// A mint that works with `parameters`.
    pub fn new(parameters: CookieParameters) -> Self {
        CookieMint(parameters)
    }

    /// The cookie of `client` under the present secret. The port does not count: it is another each time.
    pub fn mint(&self, now: Time, client: IpAddr) -> Cookie {
        self.under_secret(self.period(now), client)
    }

    /// Is `shown` the cookie of `client` under the present secret or the one before?
    pub fn verify(&self, now: Time, client: IpAddr, shown: &Cookie) -> bool {
        let period = self.period(now);
        let present = self.under_secret(period, client).matches(shown);
        let previous = period > 0 && self.under_secret(period - 1, client).matches(shown);
        present | previous
    }

    /// A code of `state` that only this mint can make: what a server hands out to get back (RFC 9260 §5.1.3). When it was
    /// handed out has to be in it.
    pub fn seal(&self, state: &[u8]) -> [u8; 16] {
        let mut secret = SipHasher24::new_with_key(&self.0.key);
        secret.write(b"state cookie");
        let mut hasher = SipHasher24::new_with_key(&secret.finish128().as_bytes());
        hasher.write(state);
        hasher.finish128().as_bytes()
    }

    /// Is `code` the one of `state`? The time it takes tells nothing.
    pub fn verify_seal(&self, state: &[u8], code: &[u8]) -> bool {
        let own = self.seal(state);
        let difference = own.iter().zip(code).fold(0, |sum, (a, b)| sum | (a ^ b));
        std::hint::black_box(difference) == 0 && code.len() == own.len()
    }

    fn period(&self, now: Time) -> u64 {
        now.as_nanos() / self.0.rotation.as_nanos().max(1)
    }

    fn under_secret(&self, period: u64, client: IpAddr) -> Cookie {
        let mut secret = SipHasher24::new_with_key(&self.0.key);
        secret.write(&period.to_be_bytes());
        let mut hasher = SipHasher24::new_with_key(&secret.finish128().as_bytes());
        match client.to_canonical() {
            IpAddr::V4(address) => hasher.write(&address.octets()),
            IpAddr::V6(address) => hasher.write(&address.octets()),
        }
        let length = self.0.length;
        let mut bytes = [0; 16];
        bytes[..length as usize].copy_from_slice(&hasher.finish128().as_bytes()[..length as usize]);
        if bytes == [0; 16] {
            bytes[0] = 1; // a cookie is never 0 (ResTP §3.5.5)
        }
        Cookie { length, bytes }
    }
}

/// Servers whose cookies a client keeps at most: the one that runs out first makes room.
const MAX_SERVERS: usize = 1024;

/// How long a client shows a cookie: as long as a server with default parameters may take it. An older one would only
/// waste a first flight.
const KEPT_FOR: Duration = Duration::from_secs(24 * 3600);

/// The client's side: the last cookie of each server, by address and service port.
#[derive(Clone, Debug, Default)]
pub struct CookieCache {
    kept: BTreeMap<(SocketAddr, u16), (Cookie, Time)>,
}

/// A cookie on its way to or from a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptCookie {
    /// The server's host.
    pub server: SocketAddr,
    /// Its service.
    pub port: u16,
    /// What it gave.
    pub cookie: Cookie,
    /// How much longer it is shown.
    pub remaining: Duration,
}

impl CookieCache {
    /// `server` has given `cookie` for its service `port`.
    pub fn learn(&mut self, now: Time, server: SocketAddr, port: u16, cookie: Cookie) {
        self.keep(
            now,
            KeptCookie {
                server,
                port,
                cookie,
                remaining: KEPT_FOR,
            },
        );
    }

    /// Takes back what [`CookieCache::all`] gave. Nothing is shown longer than a cookie just learnt.
    pub fn keep(&mut self, now: Time, kept: KeptCookie) {
        let key = (kept.server, kept.port);
        if self.kept.len() >= MAX_SERVERS && !self.kept.contains_key(&key) {
            let oldest = self.kept.iter().min_by_key(|(_, (_, until))| *until);
            if let Some(key) = oldest.map(|(key, _)| *key) {
                self.kept.remove(&key);
            }
        }
        let until = now + kept.remaining.min(KEPT_FOR);
        self.kept.insert(key, (kept.cookie, until));
    }

    /// The cookie to show to `server`, if there is one.
    pub fn find(&self, now: Time, server: SocketAddr, port: u16) -> Option<Cookie> {
        let (cookie, until) = self.kept.get(&(server, port))?;
        (now < *until).then_some(*cookie)
    }

    /// Everything that may still be shown, in the order of servers.
    pub fn all(&self, now: Time) -> impl Iterator<Item = KeptCookie> {
        self.kept.iter().filter(move |(_, (_, until))| now < *until).map(
            move |((server, port), (cookie, until))| KeptCookie {
                server: *server,
                port: *port,
                cookie: *cookie,
                remaining: until.since(now),
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hours(n: u64) -> Time {
        Time::ZERO + Duration::from_secs(n * 3600)
    }
    fn mint(length: CookieLength) -> CookieMint {
        CookieMint::new(CookieParameters {
            key: *b"sixteen bytes ok",
            length,
            ..CookieParameters::default()
        })
    }
    fn address(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    #[test]
    fn a_cookie_has_one_to_four_words_and_is_not_zero() {
        for length in 0..20 {
            let legal = length % 4 == 0 && (4..=16).contains(&length);
            assert_eq!(Cookie::new(&vec![7; length]).is_some(), legal);
            assert_eq!(Cookie::new(&vec![0; length]), None);
        }
    }

    #[test]
    fn a_cookie_serves_its_address_and_no_other() {
        let mint = mint(CookieLength::Eight);
        let cookie = mint.mint(hours(1), address(1));
        assert_eq!(cookie.as_bytes().len(), 8);
        assert!(mint.verify(hours(2), address(1), &cookie));
        assert!(!mint.verify(hours(2), address(2), &cookie));
        let mapped = address(1).to_string().parse::<std::net::Ipv4Addr>().unwrap();
        assert!(mint.verify(hours(2), mapped.to_ipv6_mapped().into(), &cookie));
    }

    #[test]
    fn two_secrets_are_alive_and_a_third_is_not() {
        let mint = mint(CookieLength::Eight);
        let cookie = mint.mint(hours(11), address(1));
        assert!(mint.verify(hours(12), address(1), &cookie));
        assert!(mint.verify(hours(23), address(1), &cookie));
        assert!(!mint.verify(hours(24), address(1), &cookie), "two rotations");
        assert_ne!(mint.mint(hours(12), address(1)), cookie);
    }

    #[test]
    fn every_length_is_a_prefix_of_the_longest_and_no_stand_in_for_another() {
        use CookieLength::{Eight, Four, Sixteen, Twelve};
        let longest = mint(Sixteen).mint(Time::ZERO, address(1));
        for length in [Four, Eight, Twelve, Sixteen] {
            let mint = mint(length);
            let cookie = mint.mint(Time::ZERO, address(1));
            assert_eq!(cookie.as_bytes(), &longest.as_bytes()[..length as usize]);
            assert_eq!(mint.verify(Time::ZERO, address(1), &longest), length == Sixteen);
        }
    }

    #[test]
    fn a_sealed_state_is_known_again_and_no_other() {
        let mint = mint(CookieLength::Eight);
        let code = mint.seal(b"a state");
        assert!(mint.verify_seal(b"a state", &code));
        assert!(!mint.verify_seal(b"another", &code) && !mint.verify_seal(b"a state", &code[..15]));
        let other = CookieMint::new(CookieParameters::default());
        assert!(!other.verify_seal(b"a state", &code));
        for bit in 0..128 {
            let mut changed = code;
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(!mint.verify_seal(b"a state", &changed));
        }
    }

    #[test]
    fn another_key_or_a_changed_bit_is_refused() {
        let mint = mint(CookieLength::Sixteen);
        let cookie = mint.mint(Time::ZERO, address(1));
        for bit in 0..128 {
            let mut bytes = [0; 16];
            bytes.copy_from_slice(cookie.as_bytes());
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(!mint.verify(Time::ZERO, address(1), &Cookie::new(&bytes).unwrap()));
        }
        let other = CookieMint::new(CookieParameters::default());
        assert!(!other.verify(Time::ZERO, address(1), &cookie));
    }

    #[test]
    fn the_cache_shows_a_cookie_for_a_day_and_keeps_a_bounded_number() {
        let cookie = Cookie::new(&[1; 8]).unwrap();
        let server = |n: u32| SocketAddr::from(([10, 0, (n >> 8) as u8, n as u8], 4433));
        let mut cache = CookieCache::default();
        cache.learn(hours(1), server(0), 80, cookie);
        assert_eq!(cache.find(hours(24), server(0), 80), Some(cookie));
        assert_eq!(cache.find(hours(24), server(0), 81), None, "another service");
        assert_eq!(cache.find(hours(25), server(0), 80), None, "too old");
        assert_eq!(cache.all(hours(25)).count(), 0);
        for n in 1..=MAX_SERVERS as u32 {
            cache.learn(hours(2), server(n), 80, cookie);
        }
        assert_eq!(cache.all(hours(2)).count(), MAX_SERVERS);
        assert_eq!(
            cache.find(hours(2), server(0), 80),
            None,
            "the first to run out made room"
        );
    }

    #[test]
    fn a_cookie_taken_to_a_file_and_back_does_not_grow_younger() {
        let mut cache = CookieCache::default();
        let server = SocketAddr::from(([10, 0, 0, 1], 4433));
        cache.learn(hours(0), server, 80, Cookie::new(&[1; 8]).unwrap());
        let saved: Vec<_> = cache.all(hours(20)).collect();
        let mut later = CookieCache::default();
        later.keep(hours(0), saved[0]);
        assert!(later.find(hours(3), server, 80).is_some());
        assert!(later.find(hours(4), server, 80).is_none());
    }
}
