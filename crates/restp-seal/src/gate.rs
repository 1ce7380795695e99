//! The gate before a socket in a flood: a tag in each proof of an address, so short to compute that a filter of the kernel can
//! (classic BPF: 32-bit words, no loops, no calls). Requests with the right tag go in, others wait for their turn, and what
//! goes in is proved in full behind it (`token.rs`). Who does not receive at an address has one chance in 2³¹ with each guess.

use crate::secret::Secret;
use restp_base::time::{Duration, Time};
use siphasher::sip128::{Hasher128, SipHasher24};
use std::fmt;
use std::hash::Hasher;
use std::net::{IpAddr, SocketAddr};

/// A proof of an address is of such a span of time, and valid in the next one.
pub const PERIOD: Duration = Duration::from_secs(60);

/// Where a proof begins in a request, behind its kind and the client's connection id.
pub const TOKEN_AT: usize = 9;

/// Bytes of a tag, the first ones of a proof.
pub const TAG_BYTES: usize = 4;

/// The bit of a tag that is no hash: the last one of its period's number, so that one key is to be tried and not two.
pub const PARITY: u32 = 1;

/// Which period `now` is in.
pub(crate) fn period(now: Time) -> u64 {
    now.as_nanos() / PERIOD.as_nanos()
}

/// What a host and its sockets' filters tell proofs by.
#[derive(Clone)]
pub struct Gate(Secret<16>);

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Gate")
    }
}

impl Gate {
    pub(crate) fn new(key: Secret<16>) -> Self {
        Gate(key)
    }

    /// The key of a period. Another label than that of a proof, which begins with a number.
    fn key(&self, period: u64) -> HashKey {
        let mut hash = SipHasher24::new_with_key(&self.0);
        hash.write(b"restp gate");
        hash.write(&period.to_be_bytes());
        let drawn = hash.finish128().h1;
        [drawn as u32, (drawn >> 32) as u32]
    }

    /// The tag of a proof that `source` receives there, made in `period`.
    pub(crate) fn tag(&self, period: u64, source: SocketAddr) -> [u8; TAG_BYTES] {
        let hash = hash(self.key(period), words(source));
        (hash & !PARITY | period as u32 & PARITY).to_be_bytes()
    }

    /// The keys of proofs that are valid at `now`.
    pub fn keys(&self, now: Time) -> GateKeys {
        let present = period(now);
        // In the first period nobody can have a proof of the one before.
        let (one, other) = (self.key(present), self.key(present.wrapping_sub(1)));
        let even = present & u64::from(PARITY) == 0;
        GateKeys {
            period: present,
            keys: if even { [one, other] } else { [other, one] },
        }
    }
}

/// The keys of two periods, the even one first.
#[derive(Clone, Copy)]
pub struct GateKeys {
    period: u64,
    keys: [HashKey; 2],
}

impl fmt::Debug for GateKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GateKeys(period {})", self.period)
    }
}

/// Of a keyed hash.
pub type HashKey = [u32; 2];

/// A datagram at the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Knock {
    /// It shows the tag of its source.
    pub tagged: bool,
    /// What its source gets in the order of turns: nobody foresees that of another one.
    pub hash: u32,
}

impl GateKeys {
    /// Are they those of `now`?
    pub fn are_of(&self, now: Time) -> bool {
        self.period == period(now)
    }

    /// That of the even period, or of the odd one.
    pub fn of_parity(&self, parity: u32) -> HashKey {
        self.keys[(parity & PARITY) as usize]
    }

    /// What `datagram` from `source` shows.
    pub fn judge(&self, datagram: &[u8], source: SocketAddr) -> Knock {
        let tag = datagram.get(TOKEN_AT..).and_then(|rest| rest.first_chunk());
        let shown = u32::from_be_bytes(tag.copied().unwrap_or_default());
        let hash = hash(self.of_parity(shown), words(source));
        let tagged = (hash ^ shown) & !PARITY == 0;
        Knock { tagged, hash }
    }
}

/// A source as its hash takes it: the IPv4 address behind 65535, or the first half of the IPv6 address; and the port.
fn words(source: SocketAddr) -> ([u32; 2], u16) {
    let words = match source.ip().to_canonical() {
        IpAddr::V4(ip) => [0xFFFF, ip.to_bits()],
        IpAddr::V6(ip) => [(ip.to_bits() >> 96) as u32, (ip.to_bits() >> 64) as u32],
    };
    (words, source.port())
}

/// The constants that the state begins with.
pub const INITIAL: [u32; 4] = [0, 0, 0x6C79_6765, 0x7465_6462];
/// Rounds after each word, and after the last.
pub const ROUNDS: (u32, u32) = (2, 4);
/// Goes into the state before the last rounds.
pub const LAST: u32 = 0xFF;
/// Bytes that are hashed, in the first byte of the last word.
pub const LENGTH: u32 = 10 << 24;

/// HalfSipHash-2-4 (J.-P. Aumasson, D. J. Bernstein, 2016) of ten bytes, the numbers with their last byte first.
fn hash(key: HashKey, ([a, b], port): ([u32; 2], u16)) -> u32 {
    let mut state = INITIAL;
    (0..4).for_each(|n| state[n] ^= key[n % 2]);
    for word in [a, b, LENGTH | u32::from(port)] {
        state[3] ^= word;
        (0..ROUNDS.0).for_each(|_| round(&mut state));
        state[0] ^= word;
    }
    state[2] ^= LAST;
    (0..ROUNDS.1).for_each(|_| round(&mut state));
    state[1] ^ state[3]
}

fn round([a, b, c, d]: &mut [u32; 4]) {
    let mix = |sum: &mut u32, turned: &mut u32, by| {
        *sum = sum.wrapping_add(*turned);
        *turned = turned.rotate_left(by) ^ *sum;
    };
    mix(a, b, 5);
    *a = a.rotate_left(16);
    mix(c, d, 8);
    mix(a, d, 7);
    mix(c, b, 13);
    *c = c.rotate_left(16);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_that_of_its_authors() {
        // Their vector of ten bytes, 00 to 09, under the key 00 to 07.
        let key = [0x0302_0100, 0x0706_0504];
        assert_eq!(hash(key, (key, 0x0908)).to_le_bytes(), [0x94, 0xB0, 0x79, 0x34]);
    }

    #[test]
    fn a_tag_is_of_its_source_and_of_two_periods() {
        let gate = Gate::new(Secret::from([7; 16]));
        let source = |text: &str| text.parse::<SocketAddr>().unwrap();
        let at = |period: u64| Time::ZERO + Duration::from_secs(period * 60 + 59);
        for (made, text) in [(0, "192.0.2.1:5"), (1, "[2001:db8::1]:5"), (8, "192.0.2.1:5")] {
            let tag = gate.tag(made, source(text));
            let shows = |keys: &GateKeys, from: &str| {
                keys.judge(&[&[0x80; TOKEN_AT][..], &tag].concat(), source(from))
                    .tagged
            };
            assert!(shows(&gate.keys(at(made)), text) && shows(&gate.keys(at(made + 1)), text));
            for later in [made + 2, made + 3] {
                assert!(
                    !shows(&gate.keys(at(later)), text),
                    "made in {made}, shown in {later}"
                );
            }
            let keys = gate.keys(at(made));
            for other in [
                "192.0.2.2:5",
                "192.0.2.1:6",
                "[2001:db8:0:1::1]:5",
                "[2001:db8::1]:6",
            ] {
                assert!(!shows(&keys, other), "{text} as {other}");
            }
            assert!(!shows(&Gate::new(Secret::from([8; 16])).keys(at(made)), text));
        }
        let keys = gate.keys(at(0));
        assert!(!keys.judge(&[0x80; 5], source("192.0.2.1:5")).tagged, "too short");
        // On a socket for both families an IPv4 address comes in the other form.
        let mapped = source("[::ffff:192.0.2.1]:5");
        assert_eq!(gate.tag(0, mapped), gate.tag(0, source("192.0.2.1:5")));
    }
}
