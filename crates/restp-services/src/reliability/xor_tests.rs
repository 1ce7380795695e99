//! Encoder and decoder with a wire between them, for tests of codes; and what must hold of every code (ResTP §3.5.8,
//! OP-37 to OP-39).

use super::xor_decoder::{XorDecoder, XorOutcome};
use super::xor_encoder::XorEncoder;
use super::{Encoded, FecCode};
use restp_base::random::Stream;
use restp_base::time::{Duration, Time};
use std::collections::{BTreeMap, BTreeSet};

/// Sends packets from a first number on; which of them arrive is up to the test.
pub(super) struct Wire {
    encoder: XorEncoder,
    decoder: XorDecoder,
    next: u64,
    sent: BTreeMap<u64, Vec<u8>>,
    received: BTreeSet<u64>,
}

impl Wire {
    pub(super) fn new(code: FecCode, first: u64) -> Self {
        Wire {
            encoder: XorEncoder::new(code.shape().expect("an XOR"), None),
            decoder: XorDecoder::new(code),
            next: first,
            sent: BTreeMap::new(),
            received: BTreeSet::new(),
        }
    }
    pub(super) fn send(&mut self, payload: &[u8]) {
        self.encoder.on_sent(Time::ZERO, self.next, payload, false, None);
        self.sent.insert(self.next, payload.to_vec());
        self.next += 1;
    }
    /// The encoded packets of full groups.
    pub(super) fn closed(&mut self) -> Vec<Encoded> {
        std::iter::from_fn(|| self.encoder.poll(Time::ZERO)).collect()
    }
    /// All encoded packets, as when the timer has run out.
    pub(super) fn flush(&mut self) -> Vec<Encoded> {
        let late = Time::ZERO + Duration::from_secs(1);
        std::iter::from_fn(|| self.encoder.poll(late)).collect()
    }
    pub(super) fn deliver(&mut self, numbers: &[u64]) {
        for number in numbers {
            self.decoder.on_received(*number, &self.sent[number]);
            self.received.insert(*number);
        }
    }
    pub(super) fn decode(&self, encoded: &Encoded) -> XorOutcome {
        let Encoded {
            first,
            range,
            payload,
        } = encoded;
        self.decoder
            .decode(*first, *range, payload, |number| !self.received.contains(&number))
    }
}

/// Are the packets at the positions `lost` of a group of `count` all rebuilt?
pub(super) fn repairable(code: FecCode, count: u64, lost: &[u64]) -> bool {
    let mut wire = Wire::new(code, 30);
    (0..count).for_each(|index| wire.send(&vec![index as u8; 1 + index as usize]));
    let encoded = wire.flush();
    let arrived: Vec<u64> = (0..count).filter(|i| !lost.contains(i)).map(|i| 30 + i).collect();
    wire.deliver(&arrived);
    let rebuilt: BTreeSet<u64> = encoded
        .iter()
        .filter_map(|encoded| match wire.decode(encoded) {
            XorOutcome::Rebuilt { number, .. } => Some(number),
            _ => None,
        })
        .collect();
    lost.iter().all(|lost| rebuilt.contains(&(30 + lost)))
}

/// Whatever is lost, what is rebuilt is what was sent, and of each group one loss is.
#[test]
fn any_single_loss_of_a_group_is_rebuilt_as_it_was_and_nothing_else_ever_is() {
    let mut draw = Stream::named(7, "fec");
    for round in 0..2000 {
        let code = [FecCode::Basic, FecCode::Interleaved][draw.below(2) as usize];
        let mut wire = Wire::new(code, draw.below(1 << 40));
        let loss = draw.unit();
        let mut encoded = Vec::new();
        for _ in 0..1 + draw.below(60) {
            let payload: Vec<u8> = (0..draw.below(40)).map(|_| draw.bits() as u8).collect();
            wire.send(&payload);
            if draw.chance(0.1) {
                encoded.extend(wire.flush());
            }
        }
        encoded.extend(wire.flush());
        let mut sent: BTreeSet<u64> = wire.sent.keys().copied().collect();
        for group in &encoded {
            let covered: Vec<u64> = code.covered(group.first, group.range).collect();
            assert!(covered.iter().all(|number| sent.remove(number)), "encoded once");
            let arrived: Vec<u64> = covered.iter().copied().filter(|_| !draw.chance(loss)).collect();
            wire.deliver(&arrived);
            let missing: Vec<u64> = covered.into_iter().filter(|n| !arrived.contains(n)).collect();
            let expected = match missing.as_slice() {
                [] => XorOutcome::Complete,
                [number] => XorOutcome::Rebuilt {
                    number: *number,
                    payload: Some(wire.sent[number].clone().into()).filter(|p: &bytes::Bytes| !p.is_empty()),
                },
                [.., last_missing] => XorOutcome::Failed {
                    last_missing: *last_missing,
                },
            };
            assert_eq!(wire.decode(group), expected, "round {round}");
        }
        assert!(sent.is_empty(), "everything was encoded");
    }
}
