//! The encoded payload (OP-39): the XOR of (16-bit length ‖ payload), each padded with zeros to the longest. Only
//! payloads are protected; numbers follow from the position in the group. A number without payload, which is the
//! FIN, takes part as a payload of length 0.

use bytes::Bytes;

/// Bytes of the length in front of each payload: by so much plain payloads are shorter than the largest segment.
pub const LENGTH_BYTES: usize = 2;

/// A running XOR.
#[derive(Clone, Debug, Default)]
pub(super) struct Parity {
    bytes: Vec<u8>,
}

impl Parity {
    /// The XOR that arrived as the payload of an encoded packet; `None` when it is too short to be one.
    pub(super) fn received(payload: &[u8]) -> Option<Self> {
        let bytes = payload.to_vec();
        (bytes.len() >= LENGTH_BYTES).then_some(Parity { bytes })
    }

    /// Adds a payload, or takes it out again: XOR is its own inverse.
    pub(super) fn toggle(&mut self, payload: &[u8]) {
        let size = LENGTH_BYTES + payload.len();
        if self.bytes.len() < size {
            self.bytes.resize(size, 0);
        }
        let length = (payload.len() as u16).to_be_bytes();
        let (head, tail) = self.bytes.split_at_mut(LENGTH_BYTES);
        head.iter_mut().zip(length).for_each(|(sum, byte)| *sum ^= byte);
        tail.iter_mut().zip(payload).for_each(|(sum, byte)| *sum ^= byte);
    }

    /// Bytes of the encoded payload.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// As it travels.
    pub(super) fn into_payload(self) -> Bytes {
        self.bytes.into()
    }

    /// The one payload that is left; `None` when what is left is no payload.
    pub(super) fn into_remaining(self) -> Option<Bytes> {
        let (length, rest) = self.bytes.split_first_chunk::<LENGTH_BYTES>()?;
        let length = usize::from(u16::from_be_bytes(*length));
        let padding = rest.get(length..)?;
        let clean = padding.iter().all(|byte| *byte == 0);
        clean.then(|| Bytes::from(self.bytes).slice(LENGTH_BYTES..LENGTH_BYTES + length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_of_two_is_the_other_one() {
        let mut parity = Parity::default();
        parity.toggle(b"a longer one");
        parity.toggle(b"short");
        let mut received = Parity::received(&parity.clone().into_payload()).unwrap();
        received.toggle(b"a longer one");
        assert_eq!(received.into_remaining().unwrap(), &b"short"[..]);
        parity.toggle(b"short");
        assert_eq!(parity.into_remaining().unwrap(), &b"a longer one"[..]);
    }

    #[test]
    fn what_is_no_payload_is_refused() {
        assert!(Parity::received(b"\x00").is_none());
        let remaining = |bytes: &[u8]| Parity::received(bytes).unwrap().into_remaining();
        assert_eq!(remaining(b"\x00\x02a"), None, "longer than what there is");
        assert_eq!(remaining(b"\xFF\xFFab"), None);
        assert_eq!(remaining(b"\x00\x01ab"), None, "padding of something");
        assert_eq!(remaining(b"\x00\x01a\x00").unwrap(), &b"a"[..]);
        assert_eq!(remaining(b"\x00\x00").unwrap(), &b""[..]);
    }
}
