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
    /// When the last frame that began to be received and was spoilt is over; the answer to it may follow.
    garbled_until: Option<Time>,
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
    /// A radio notices that this is a frame, and waits for EIFS where it does not get it.
    pub is_noticed: bool,
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
        if signal.senses {
            self.busy_until = self.busy_until.max(until);
        }
        if received {
            self.understand(until);
        } else if signal.senses && signal.is_noticed && !captured {
            self.garbled_until = self.garbled_until.max(Some(until));
        }
    }

    /// The radio itself transmits, and hears nothing meanwhile.
    pub(super) fn transmit(&mut self, from: Time, until: Time) {
        if self.receiving.is_some_and(|receiving| from < receiving.until) {
            self.spoil();
        }
        self.deaf_until = until;
        self.busy_until = self.busy_until.max(until);
        self.understand(until);
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

    /// When the slots of a backoff begin to count, if nothing comes between: a DIFS after every carrier and reservation, and an EIFS
    /// after a frame that was spoilt (802.11-1999 §9.2.3.4).
    pub(super) fn free_from(&self, timing: &Timing) -> Time {
        let idle = self.busy_until.max(self.nav_until) + timing.difs;
        self.garbled_until
            .map_or(idle, |until| idle.max(until + timing.eifs))
    }

    /// A frame that ends at `until` is received, or sent: what was spoilt before that keeps nobody waiting.
    fn understand(&mut self, until: Time) {
        self.garbled_until = self.garbled_until.filter(|garbled| *garbled > until);
    }

    fn spoil(&mut self) {
        if let Some(spoilt) = self.receiving.take() {
            self.garbled_until = self.garbled_until.max(Some(spoilt.until));
        }
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
            is_noticed: true,
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

    /// CMT §4.3: EIFS after a corrupted reception. What is too weak to be received is none.
    #[test]
    fn a_carrier_that_is_too_weak_to_be_a_frame_costs_a_difs() {
        let timing = Timing::dsss(DSSS[1]);
        let weak = |frame, from, until| Signal {
            decodes: false,
            is_noticed: false,
            ..signal(frame, from, until)
        };
        let mut ear = Ear::default();
        ear.hear(weak(1, 100, 400));
        assert_eq!(ear.free_from(&timing), us(400) + timing.difs);
        // A frame that it spoils costs an EIFS from that frame's end on, however long the carrier goes on.
        ear.hear(signal(2, 500, 800));
        ear.hear(weak(3, 700, 900));
        assert_eq!(ear.free_from(&timing), us(800) + timing.eifs);
        ear.hear(weak(4, 950, 1500));
        assert_eq!(ear.free_from(&timing), us(1500) + timing.difs);
        // What is received afterwards ends that wait.
        ear.hear(signal(5, 1600, 1700));
        ear.hear(signal(6, 1650, 1800));
        assert_eq!(ear.free_from(&timing), us(1800) + timing.eifs);
        ear.hear(signal(7, 1810, 1820));
        assert_eq!(ear.free_from(&timing), us(1820) + timing.difs);
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
