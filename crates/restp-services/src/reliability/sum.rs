//! The payload of an encoded packet (OP-39): the sum of (16-bit length ‖ payload), each times its coefficient and padded with
//! zeros to the longest, in GF(2^8); where all coefficients are 1, that is the XOR. Only payloads are protected; numbers
//! follow from the place in what is covered. A number without payload, which is the FIN, takes part as a payload of length 0.

use super::gf256;
use bytes::Bytes;

/// Bytes of the length in front of each payload: by so much plain payloads are shorter than the largest segment.
pub const LENGTH_BYTES: usize = 2;

/// A running sum.
#[derive(Clone, Debug, Default)]
pub(super) struct Sum {
    bytes: Vec<u8>,
}

impl Sum {
    /// The sum that arrived as the payload of an encoded packet; `None` when it is too short to be one.
    pub(super) fn received(payload: &[u8]) -> Option<Self> {
        let bytes = payload.to_vec();
        (bytes.len() >= LENGTH_BYTES).then_some(Sum { bytes })
    }

    /// Adds a payload, or takes it out again: that is the same.
    pub(super) fn add(&mut self, factor: u8, payload: &[u8]) {
        self.make_room(LENGTH_BYTES + payload.len());
        let length = (payload.len() as u16).to_be_bytes();
        let (head, tail) = self.bytes.split_at_mut(LENGTH_BYTES);
        gf256::add_scaled(head, factor, &length);
        gf256::add_scaled(tail, factor, payload);
    }

    /// Adds another sum, or takes it out again.
    pub(super) fn add_sum(&mut self, factor: u8, other: &Sum) {
        self.make_room(other.bytes.len());
        gf256::add_scaled(&mut self.bytes, factor, &other.bytes);
    }

    /// Multiplies everything by `factor`.
    pub(super) fn scale(&mut self, factor: u8) {
        gf256::scale(&mut self.bytes, factor);
    }

    fn make_room(&mut self, size: usize) {
        if self.bytes.len() < size {
            self.bytes.resize(size, 0);
        }
    }

    /// Bytes of the encoded payload.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Nothing is left of it.
    pub(super) fn is_zero(&self) -> bool {
        self.bytes.iter().all(|byte| *byte == 0)
    }

    /// As it travels.
    pub(super) fn into_payload(self) -> Bytes {
        self.bytes.into()
    }

    /// The one payload that is left, without the memory of the sum; `None` when what is left is no payload.
    pub(super) fn into_remaining(self) -> Option<Bytes> {
        let (length, rest) = self.bytes.split_first_chunk::<LENGTH_BYTES>()?;
        let length = usize::from(u16::from_be_bytes(*length));
        let (payload, padding) = rest.split_at_checked(length)?;
        let clean = padding.iter().all(|byte| *byte == 0);
        clean.then(|| Bytes::copy_from_slice(payload))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_of_two_is_the_other_one() {
        for factor in [1, 2, 0xA5] {
            let mut sum = Sum::default();
            sum.add(factor, b"a longer one");
            sum.add(1, b"short");
            let mut received = Sum::received(&sum.clone().into_payload()).unwrap();
            received.add(factor, b"a longer one");
            assert_eq!(received.into_remaining().unwrap(), &b"short"[..]);
            sum.add(1, b"short");
            sum.scale(gf256::inverse(factor));
            assert_eq!(sum.into_remaining().unwrap(), &b"a longer one"[..]);
        }
    }

    #[test]
    fn a_short_payload_does_not_keep_a_long_sum() {
        let mut long = vec![0; 60_000];
        long[1] = 1;
        let payload = Sum::received(&long).unwrap().into_remaining().unwrap();
        assert_eq!(payload.try_into_mut().unwrap().capacity(), 1);
    }

    #[test]
    fn what_is_no_payload_is_refused() {
        assert!(Sum::received(b"\x00").is_none());
        let remaining = |bytes: &[u8]| Sum::received(bytes).unwrap().into_remaining();
        assert_eq!(remaining(b"\x00\x02a"), None, "longer than what there is");
        assert_eq!(remaining(b"\xFF\xFFab"), None);
        assert_eq!(remaining(b"\x00\x01ab"), None, "padding of something");
        assert_eq!(remaining(b"\x00\x01a\x00").unwrap(), &b"a"[..]);
        assert_eq!(remaining(b"\x00\x00").unwrap(), &b""[..]);
    }
}
