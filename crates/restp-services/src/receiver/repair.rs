//! Repair by encoded packets, at the receiver (ResTP §3.5.8, OP-40, OP-41).

use super::{Receiver, Store};
use crate::ack::Uncarried;
use crate::reliability::{FecDecoder, FecOutcome, LossReport, Rebuilt};

/// What repairs, and what of it failed.
#[derive(Debug)]
pub(super) struct Repairs {
    decoder: FecDecoder,
    /// What cannot be repaired is reported to a sender that retransmits.
    reports: bool,
    loss_report: LossReport,
}

impl Repairs {
    pub(super) fn new(decoder: FecDecoder, reports: bool) -> Self {
        Repairs {
            decoder,
            reports,
            loss_report: LossReport::default(),
        }
    }
    pub(super) fn on_received(&mut self, number: u64, payload: &[u8]) {
        self.decoder.on_received(number, payload);
    }
    pub(super) fn memory(&self) -> usize {
        self.decoder.bytes()
    }
}

/// What an encoded packet was good for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Repair {
    /// It was taken: [`Receiver::next_rebuilt`] has what it rebuilds, now or together with others.
    Taken,
    /// It covers numbers beyond the window.
    BeyondWindow,
    /// It cannot be.
    Malformed,
}

impl Receiver {
    /// Takes an encoded packet of `kind` that covers `range`, the first number of which is `first`.
    pub fn on_encoded(&mut self, kind: u8, first: u64, range: u32, payload: &[u8]) -> Repair {
        let (edge, fin) = (self.edge(), self.fin);
        let turn = self.turn.as_ref().map(|turn| turn.at).filter(|at| first < *at);
        let repairs = match &mut self.turn {
            Some(turn) if first >= turn.at => &mut turn.repairs,
            _ => &mut self.repairs,
        };
        let (Some(repairs), Store::Segments(reassembly)) = (repairs, &self.store) else {
            return Repair::Malformed;
        };
        let code = repairs.decoder.code();
        let last = code.covered(first, range).next_back().unwrap_or(first);
        let is_mixed = turn.is_some_and(|at| last >= at);
        if kind != code.kind() || fin.is_some_and(|fin| last > fin) || is_mixed {
            return Repair::Malformed;
        }
        if last >= edge {
            return Repair::BeyondWindow;
        }
        let is_missing = |number| reassembly.is_missing(number);
        match repairs.decoder.decode(first, range, payload, is_missing) {
            FecOutcome::Taken => Repair::Taken,
            FecOutcome::Failed { last_missing } => {
                if repairs.reports {
                    repairs.loss_report.give_up(last_missing);
                    self.ack.on_urgent();
                }
                Repair::Taken
            }
            FecOutcome::Malformed => Repair::Malformed,
        }
    }

    /// A missing segment that was rebuilt. It goes the way of every segment.
    pub fn next_rebuilt(&mut self) -> Option<Rebuilt> {
        let Store::Segments(reassembly) = &self.store else {
            return None;
        };
        let later = self.turn.as_mut().and_then(|turn| turn.repairs.as_mut());
        let mut all = self.repairs.iter_mut().chain(later);
        all.find_map(|repairs| {
            let mut rebuilt = std::iter::from_fn(|| repairs.decoder.take_rebuilt());
            rebuilt.find(|(number, _)| reassembly.is_missing(*number))
        })
    }

    /// `number` was rebuilt and taken.
    pub fn note_rebuilt(&mut self, number: u64) {
        self.rebuilt += 1;
        self.uncarried.insert(number);
    }

    /// How many segments were rebuilt.
    pub fn rebuilt(&self) -> u64 {
        self.rebuilt
    }

    /// Which segments were rebuilt, or given up, lately.
    pub fn uncarried(&self) -> Uncarried {
        self.uncarried
    }

    /// The range of segments from RCV.NXT on that are beyond repair (OP-42).
    pub fn beyond_repair(&self) -> u32 {
        match (&self.repairs, self.next()) {
            (Some(repairs), Some(next)) => repairs.loss_report.range(next),
            _ => 0,
        }
    }

    /// `number` is needed and has not arrived.
    pub fn is_missing(&self, number: u64) -> bool {
        match &self.store {
            Store::Segments(reassembly) => reassembly.is_missing(number),
            Store::Unknown | Store::Bytes { .. } => false,
        }
    }
}
