//! The Internet check sum (RFC 1071), as UDP and TCP compute it over a pseudo header, their own and the payload.

use restp_base::machine::PathAddress;
use std::net::IpAddr;

/// A one's complement sum of 16-bit words, eight bytes at a time (RFC 1071 §2).
#[derive(Default)]
pub(crate) struct Sum {
    total: u64,
    /// The next byte is the low half of its word.
    odd: bool,
}

impl Sum {
    /// The sum over the addresses of `path`, the protocol's number in IP and the `length` of header and payload in
    /// bytes (RFC 9293 §3.1, RFC 768; RFC 8200 §8.1 for IPv6). Either direction of a path gives the same.
    pub(crate) fn pseudo_header(path: PathAddress, protocol: u8, length: u32) -> Self {
        let mut sum = Sum::default();
        for address in [path.local.ip(), path.remote.ip()] {
            match address {
                IpAddr::V4(v4) => sum.add(&v4.octets()),
                IpAddr::V6(v6) => sum.add(&v6.octets()),
            }
        }
        sum.add(&[0, protocol]);
        sum.add(&length.to_be_bytes());
        sum
    }

    /// Goes on with `bytes`.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        let mut part = 0u64;
        let mut words = bytes.chunks_exact(8);
        for word in &mut words {
            let value = word
                .iter()
                .fold(0u64, |value, &byte| value << 8 | u64::from(byte));
            let (sum, carry) = part.overflowing_add(value);
            part = sum + u64::from(carry);
        }
        let mut tail = [0u8; 8];
        tail[..words.remainder().len()].copy_from_slice(words.remainder());
        let (sum, carry) = part.overflowing_add(u64::from_be_bytes(tail));
        let folded = u64::from(fold(sum)) + u64::from(carry);
        // A part that starts in the middle of a word counts with its bytes exchanged.
        self.total += if self.odd {
            u64::from(fold(folded).swap_bytes())
        } else {
            folded
        };
        self.odd ^= bytes.len() % 2 == 1;
    }

    /// The sum in 16 bits; its complement is the check sum.
    pub(crate) fn folded(&self) -> u16 {
        fold(self.total)
    }
}

fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition of RFC 1071 §1, word by word.
    fn plain_sum(bytes: &[u8]) -> u16 {
        let words = bytes
            .chunks(2)
            .map(|w| u32::from(w[0]) << 8 | u32::from(*w.get(1).unwrap_or(&0)));
        words.fold(0u32, |sum, word| {
            let sum = sum + word;
            (sum & 0xffff) + (sum >> 16)
        }) as u16
    }

    #[test]
    fn the_example_of_rfc_1071_sums_to_ddf2() {
        let mut sum = Sum::default();
        sum.add(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]);
        assert_eq!(sum.folded(), 0xddf2);
    }

    #[test]
    fn parts_of_any_length_sum_like_the_whole() {
        let bytes: Vec<u8> = (0..200u32).map(|i| (i * 37 + 11) as u8).collect();
        for cut in 0..40 {
            let mut sum = Sum::default();
            sum.add(&bytes[..cut]);
            sum.add(&bytes[cut..133]);
            sum.add(&bytes[133..]);
            assert_eq!(sum.folded(), plain_sum(&bytes), "cut at {cut}");
        }
    }
}
