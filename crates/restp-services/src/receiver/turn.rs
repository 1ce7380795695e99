//! From a number on other services hold (ResTP §21, docs/adr/0007): both kinds of segments are here at once until everything below has come.

use super::repair::Repairs;
use super::{Receiver, Store};
use crate::ordering::{HoldParameters, Ordering};
use crate::reliability::FecDecoder;

/// What holds from a number on.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) at: u64,
    hold: Option<HoldParameters>,
    pub(super) repairs: Option<Box<Repairs>>,
}

impl Receiver {
    /// From the number `at` on, of which nothing has arrived, segments are delivered by `ordering`, holes stay for `hold`, and
    /// `decoder` repairs; with `reports` what is beyond repair is reported.
    pub fn turn_at(
        &mut self,
        at: u64,
        ordering: Ordering,
        hold: Option<HoldParameters>,
        decoder: Option<FecDecoder>,
        reports: bool,
    ) {
        if let Store::Segments(reassembly) = &mut self.store {
            reassembly.turn_at(at, ordering);
        }
        let repairs = decoder.map(|decoder| Box::new(Repairs::new(decoder, reports)));
        self.turn = Some(Box::new(Turn { at, hold, repairs }));
        self.take_turn();
    }

    /// Nothing below the number is needed any more.
    pub(super) fn take_turn(&mut self) {
        let next = self.store.next();
        if let Some(turn) = self.turn.take_if(|turn| next >= Some(turn.at)) {
            (self.hold, self.repairs) = (turn.hold, turn.repairs);
        }
    }

    /// What repairs the segment `number`.
    pub(super) fn repairs_of(&mut self, number: u64) -> Option<&mut Repairs> {
        match &mut self.turn {
            Some(turn) if number >= turn.at => turn.repairs.as_deref_mut(),
            _ => self.repairs.as_deref_mut(),
        }
    }

    /// Everything that has arrived has a number below this.
    pub fn arrived_below(&self) -> Option<u64> {
        let above = self.store.arrived()?.ranges().last().map_or(0, |range| range.end);
        self.next().map(|next| next.max(above))
    }
}
