//! Receiver of forward error correction (ResTP §3.5.8): keeps the last received payloads, even after delivery, and
//! rebuilds the one packet that is missing of a group.

use super::fec_code::FecCode;
use super::sum::Sum;
use bytes::Bytes;
use std::collections::VecDeque;

/// Received payloads kept. Fifteen would do, a span of 16 less the one that is missing (OP-37); as many again allow
/// for encoded packets that newer data overtakes, and for retransmissions between the packets of a group.
const HISTORY: usize = 32;

/// What an encoded packet was good for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum XorOutcome {
    /// Nothing of its group was missing.
    Complete,
    /// The one missing packet, rebuilt; without payload it is the FIN.
    Rebuilt {
        /// Its number.
        number: u64,
        /// What it carried.
        payload: Option<Bytes>,
    },
    /// Too much is missing.
    Failed {
        /// The last packet missing of its group.
        last_missing: u64,
    },
    /// No encoded packet of this code.
    Malformed,
}

/// Keeps payloads and rebuilds missing ones.
#[derive(Debug)]
pub(super) struct XorDecoder {
    code: FecCode,
    history: VecDeque<(u64, Bytes)>,
    bytes: usize,
}

impl XorDecoder {
    /// Nothing was received.
    pub(super) fn new(code: FecCode) -> Self {
        XorDecoder {
            code,
            history: VecDeque::new(),
            bytes: 0,
        }
    }

    /// The packet `number` was received. Its payload is copied: kept for so long, it would keep the whole buffer
    /// alive in which it was received.
    pub(super) fn on_received(&mut self, number: u64, payload: &[u8]) {
        if self.history.len() == HISTORY
            && let Some((_, oldest)) = self.history.pop_front()
        {
            self.bytes -= oldest.len();
        }
        self.bytes += payload.len();
        self.history.push_back((number, Bytes::copy_from_slice(payload)));
    }

    /// Payload bytes kept.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes the encoded packet of `range` packets from `first` on.
    pub(super) fn decode(
        &self,
        first: u64,
        range: u32,
        payload: &[u8],
        is_missing: impl Fn(u64) -> bool,
    ) -> XorOutcome {
        let Some(mut sum) = Sum::received(payload) else {
            return XorOutcome::Malformed;
        };
        if !self.code.allows(range) {
            return XorOutcome::Malformed;
        }
        let covered = self.code.covered(first, range);
        let mut missing = covered.clone().filter(|number| is_missing(*number));
        let Some(number) = missing.next() else {
            return XorOutcome::Complete;
        };
        let last_missing = missing.next_back().unwrap_or(number);
        if last_missing != number {
            return XorOutcome::Failed { last_missing };
        }
        for present in covered.filter(|present| *present != number) {
            match self.history.iter().find(|(kept, _)| *kept == present) {
                None => return XorOutcome::Failed { last_missing },
                Some((_, kept)) => sum.add(1, kept),
            }
        }
        match sum.into_remaining() {
            Some(payload) => XorOutcome::Rebuilt {
                number,
                payload: Some(payload).filter(|payload| !payload.is_empty()),
            },
            None => XorOutcome::Malformed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Encoded;
    use super::super::xor_tests::Wire;
    use super::*;

    const MISSING: fn(u64) -> bool = |_| true;

    #[test]
    fn what_is_no_encoded_packet_is_refused() {
        for code in [FecCode::Basic, FecCode::Interleaved] {
            let decoder = XorDecoder::new(code);
            let beyond = 17;
            for range in [0, beyond, 0x00FF_FFFF, u32::MAX] {
                assert_eq!(
                    decoder.decode(5, range, b"\x00\x01a", MISSING),
                    XorOutcome::Malformed
                );
            }
            for payload in [&b""[..], b"\x00", b"\xFF\xFFa", b"\x00\x01ab"] {
                assert_eq!(decoder.decode(5, 1, payload, MISSING), XorOutcome::Malformed);
            }
            let last = u64::MAX - 1;
            assert!(matches!(
                decoder.decode(last, 2, b"\x00\x00", MISSING),
                XorOutcome::Failed { .. }
            ));
        }
    }

    #[test]
    fn a_payload_longer_than_the_encoded_one_cannot_have_been_part_of_it() {
        let mut decoder = XorDecoder::new(FecCode::Basic);
        decoder.on_received(5, b"longer than that");
        let outcome = decoder.decode(5, 2, b"\x00\x03abc", |number| number == 6);
        assert_eq!(outcome, XorOutcome::Malformed);
    }

    #[test]
    fn newer_data_may_overtake_an_encoded_packet_but_not_for_ever() {
        for (newer, repaired) in [(17, true), (18, false)] {
            let mut wire = Wire::new(FecCode::Basic, 1);
            (0..16 + newer).for_each(|index| wire.send(&[index]));
            let encoded: Encoded = wire.closed().swap_remove(0);
            let received: Vec<u64> = (1..17 + u64::from(newer)).filter(|number| *number != 9).collect();
            wire.deliver(&received);
            let outcome = wire.decode(&encoded);
            assert_eq!(
                matches!(outcome, XorOutcome::Rebuilt { number: 9, .. }),
                repaired,
                "{newer}"
            );
        }
    }

    #[test]
    fn memory_is_bounded_by_the_history() {
        let mut decoder = XorDecoder::new(FecCode::Basic);
        (0..1000).for_each(|number| decoder.on_received(number, &[0; 100]));
        assert_eq!(decoder.bytes(), HISTORY * 100);
    }

    #[test]
    fn a_rebuilt_number_without_payload_is_the_fin() {
        let mut decoder = XorDecoder::new(FecCode::Basic);
        decoder.on_received(5, b"abc");
        let outcome = decoder.decode(5, 2, b"\x00\x03abc", |number| number == 6);
        assert_eq!(
            outcome,
            XorOutcome::Rebuilt {
                number: 6,
                payload: None
            }
        );
    }
}
