//! What one radio hears, without an event of its own: whoever begins to transmit writes the span into every hearer.
//!
//! Spans may be written up to a SIFS and a propagation delay before they begin, so not always in the order of their
//! beginnings. No frame is shorter than that, so two of them overlap whichever is written first.

use super::timing::Timing;
use restp_base::time::Time;

/// The radio's view of the air.
#[derive(Clone, Debug, Default)]
pub(super) struct Ear {
    /// Until when it senses a carrier, its own included.
    busy_until: Time,
    /// Until when another frame has reserved the medium.
    nav_until: Time,
    /// Until when anything is on the air that would spoil a frame.
    air_until: Time,
    /// The frame that is being received unspoilt, and when it ends; and the one before it, which its sender may not
    /// have asked for yet.
    receiving: Option<(u64, Time)>,
    received: Option<u64>,
    /// What ended or will end last was not decoded.
    garbled: bool,
}

/// A frame as it reaches one radio.
#[derive(Clone, Copy, Debug)]
pub(super) struct Signal {
    pub frame: u64,
    pub from: Time,
    pub until: Time,
    /// Strong enough to be decoded, or at least to be sensed; it spoils others in any case.
    pub decodes: bool,
    pub senses: bool,
}

impl Ear {
    /// A frame reaches the radio.
    pub(super) fn hear(&mut self, signal: Signal) {
        let Signal {
            frame, from, until, ..
        } = signal;
        let clear = from >= self.air_until;
        self.air_until = self.air_until.max(until);
        if !clear {
            self.spoil(from);
        }
        if clear && signal.decodes {
            self.received = self.receiving.map(|(before, _)| before);
            self.receiving = Some((frame, until));
        }
        if signal.senses {
            self.busy_until = self.busy_until.max(until);
            self.garbled = !(clear && signal.decodes);
        }
    }

    /// The radio itself transmits, and hears nothing meanwhile.
    pub(super) fn transmit(&mut self, from: Time, until: Time) {
        self.spoil(from);
        self.air_until = self.air_until.max(until);
        if until >= self.busy_until {
            (self.busy_until, self.garbled) = (until, false);
        }
    }

    /// Has this frame, which is over, been received unspoilt?
    pub(super) fn decoded(&self, frame: u64) -> bool {
        self.receiving.is_some_and(|(number, _)| number == frame) || self.received == Some(frame)
    }

    /// A decoded frame reserves the medium.
    pub(super) fn reserve(&mut self, until: Time) {
        self.nav_until = self.nav_until.max(until);
    }

    /// Neither a carrier nor a reservation at `now`.
    pub(super) fn idle(&self, now: Time) -> bool {
        now >= self.busy_until && self.unreserved(now)
    }

    /// No reservation at `now`.
    pub(super) fn unreserved(&self, now: Time) -> bool {
        now >= self.nav_until
    }

    /// When the slots of a backoff begin to count, if nothing comes between.
    pub(super) fn free_from(&self, timing: &Timing) -> Time {
        let pause = if self.garbled { timing.eifs } else { timing.difs };
        (self.busy_until + pause).max(self.nav_until + timing.difs)
    }

    fn spoil(&mut self, from: Time) {
        if self.receiving.is_some_and(|(_, until)| from < until) {
            self.receiving = None;
            self.garbled = true;
        }
    }
}
