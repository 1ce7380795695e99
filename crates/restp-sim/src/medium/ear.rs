//! What one radio hears, without an event of its own: whoever begins to transmit writes the span into every hearer.
//!
//! Spans may be written up to a SIFS and a propagation delay before they begin, so not always in the order of their
//! beginnings. No frame is shorter than that, so two of them overlap whichever is written first.

use super::timing::Timing;
use restp_base::time::{Duration, Time};

/// The radio's view of the air.
#[derive(Clone, Debug, Default)]
pub(super) struct Ear {
    /// Until when it senses a carrier, its own included.
    busy_until: Time,
    /// Until when another frame has reserved the medium.
    nav_until: Time,
    /// Until when it transmits itself.
    deaf_until: Time,
    /// Frames on the air here: until when, and how strong.
    air: Vec<(Time, f64)>,
    /// The frame that is being received unspoilt; and the one before it, which its sender may not have asked for yet.
    receiving: Option<Receiving>,
    received: Option<u64>,
    /// What ended or will end last was not decoded.
    garbled: bool,
}

#[derive(Clone, Copy, Debug)]
struct Receiving {
    frame: u64,
    until: Time,
    power: f64,
    /// The most that all others together may have.
    bears: f64,
}

/// A frame as it reaches one radio.
#[derive(Clone, Copy, Debug)]
pub(super) struct Signal {
    pub frame: u64,
    pub from: Time,
    pub until: Time,
    /// How strong it is; 1 at the end of the range.
    pub power: f64,
    /// As strong as its mode needs, and how strong the others may be together.
    pub decodes: bool,
    pub bears: f64,
    /// Keeps others from transmitting.
    pub senses: bool,
}

/// No two frames are written so far from the order of their beginnings.
const DISORDER: Duration = Duration::from_micros(100);

impl Ear {
    /// A frame reaches the radio.
    pub(super) fn hear(&mut self, signal: Signal) {
        let Signal {
            frame, from, until, ..
        } = signal;
        self.air.retain(|(until, _)| *until + DISORDER > from);
        let others: f64 = self
            .air
            .iter()
            .filter(|(until, _)| *until > from)
            .map(|(_, power)| power)
            .sum();
        self.air.push((until, signal.power));
        let mut captured = false;
        if let Some(receiving) = self.receiving.filter(|receiving| from < receiving.until) {
            captured = others - receiving.power + signal.power <= receiving.bears;
            if !captured {
                self.spoil();
            }
        }
        let received = !captured && signal.decodes && from >= self.deaf_until && others <= signal.bears;
        if received {
            self.received = self.receiving.map(|before| before.frame);
            self.receiving = Some(Receiving {
                frame,
                until,
                power: signal.power,
                bears: signal.bears,
            });
        }
        // What ends last counts: an answer to it may follow.
        if signal.senses && until > self.busy_until {
            (self.busy_until, self.garbled) = (until, !received);
        }
    }

    /// The radio itself transmits, and hears nothing meanwhile.
    pub(super) fn transmit(&mut self, from: Time, until: Time) {
        if self.receiving.is_some_and(|receiving| from < receiving.until) {
            self.spoil();
        }
        self.deaf_until = until;
        if until >= self.busy_until {
            (self.busy_until, self.garbled) = (until, false);
        }
    }

    /// Has this frame, which is over, been received unspoilt?
    pub(super) fn decoded(&self, frame: u64) -> bool {
        self.receiving.is_some_and(|receiving| receiving.frame == frame) || self.received == Some(frame)
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

    fn spoil(&mut self) {
        self.receiving = None;
        self.garbled = true;
    }
}

#[cfg(test)]
mod tests {
    use super::super::timing::DSSS;
    use super::*;

    fn us(us: u64) -> Time {
        Time::ZERO + Duration::from_micros(us)
    }

    fn signal(frame: u64, from: u64, until: u64) -> Signal {
        Signal {
            frame,
            from: us(from),
            until: us(until),
            power: 1.0,
            decodes: true,
            bears: 0.0,
            senses: true,
        }
    }

    #[test]
    fn who_transmits_hears_nothing_that_begins_meanwhile() {
        let timing = Timing::dsss(DSSS[1]);
        let mut ear = Ear::default();
        ear.transmit(us(100), us(400));
        ear.hear(signal(1, 399, 700));
        assert!(!ear.decoded(1));
        assert_eq!(ear.free_from(&timing), us(700) + timing.eifs);
        ear.transmit(us(1000), us(1300));
        ear.hear(signal(2, 1300, 1600));
        assert!(ear.decoded(2));
        assert_eq!(ear.free_from(&timing), us(1600) + timing.difs);
    }

    #[test]
    fn slots_count_a_difs_after_a_reservation() {
        let timing = Timing::dsss(DSSS[1]);
        let mut ear = Ear::default();
        ear.hear(signal(1, 100, 400));
        ear.reserve(us(900));
        ear.reserve(us(800));
        assert!(ear.unreserved(us(900)) && !ear.unreserved(us(899)));
        assert_eq!(ear.free_from(&timing), us(900) + timing.difs);
    }

    #[test]
    fn the_frame_before_the_last_is_still_known_as_decoded() {
        let mut ear = Ear::default();
        ear.hear(signal(1, 100, 400));
        ear.hear(signal(2, 410, 700));
        assert!(ear.decoded(1) && ear.decoded(2));
        ear.hear(signal(3, 710, 1000));
        assert!(!ear.decoded(1) && ear.decoded(2) && ear.decoded(3));
    }
}
