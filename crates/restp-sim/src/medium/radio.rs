//! One station at work: its queue, its contention for the medium, and what it is doing now.

use super::backoff::Backoff;
use super::ear::{Ear, Signal};
use super::timing::{Mode, Timing};
use crate::counters::DropReason;
use crate::queue::EventQueue;
use restp_base::random::Stream;
use restp_base::time::{Duration, Time};
use std::collections::VecDeque;

/// A station of a medium.
#[derive(Debug)]
pub(super) struct Radio {
    pub ear: Ear,
    pub backoff: Backoff,
    pub phase: Phase,
    /// The first packet is the one being sent.
    pub queue: VecDeque<Waiting>,
    /// When the medium will look at it: never after it is due, often before, as a backoff that is frozen stays where
    /// it was until then.
    pub scheduled: Time,
}

/// What a station is doing.
#[derive(Clone, Copy, Debug)]
pub(super) enum Phase {
    /// Waiting for the medium, or for something to send.
    Contending,
    /// Transmitting.
    Sending(Frame),
    /// Waiting for the answer to `asked`; it gives up at `until`.
    Awaiting {
        asked: Kind,
        until: Time,
        why: DropReason,
    },
}

/// A frame on the air.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub kind: Kind,
    /// Counts all frames of the medium.
    pub number: u64,
    /// The hop whose packet it is about.
    pub hop: u32,
    /// When it begins, for how long it is on the air, and when it is over at the station it is addressed to.
    pub from: Time,
    pub airtime: Duration,
    pub over: Time,
    /// The least power at which it is decoded.
    pub need: f64,
    /// For how long after its end it reserves the medium.
    pub reserves: Duration,
}

/// What a frame is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Asks for the medium.
    Rts,
    /// Grants it.
    Cts,
    /// Carries a packet.
    Data,
    /// Confirms it.
    Ack,
}

/// A packet at a station.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub packet: u32,
    pub hop: u32,
    pub bytes: u32,
    pub since: Time,
    /// Of its data frame, at this attempt.
    pub mode: Mode,
    /// Attempts that brought no CTS, or no ACK.
    pub short: u32,
    pub long: u32,
    /// The receiver has it: it knows the number of a frame that is sent again (§9.2.9).
    pub arrived: bool,
}

impl Waiting {
    pub(super) const fn new(packet: u32, hop: u32, (bytes, mode): (u32, Mode), since: Time) -> Self {
        Waiting {
            packet,
            hop,
            bytes,
            since,
            mode,
            short: 0,
            long: 0,
            arrived: false,
        }
    }
}

impl Radio {
    pub(super) fn new(timing: &Timing, stream: Stream) -> Self {
        Radio {
            ear: Ear::default(),
            backoff: Backoff::new(timing.cw_min, stream),
            phase: Phase::Contending,
            queue: VecDeque::new(),
            scheduled: Time::MAX,
        }
    }

    /// When it acts next, if nothing comes between.
    pub(super) fn due(&self, timing: &Timing) -> Time {
        match self.phase {
            Phase::Sending(frame) => frame.over,
            Phase::Awaiting { until, .. } => until,
            Phase::Contending if self.queue.is_empty() => Time::MAX,
            Phase::Contending => self.backoff.over(timing.slot),
        }
    }

    /// Puts it in the event queue of the medium, unless it is there for earlier.
    pub(super) fn schedule(&mut self, index: u32, timing: &Timing, events: &mut EventQueue) {
        let due = self.due(timing);
        if due < self.scheduled {
            self.scheduled = due;
            events.set(index as usize, due);
        }
    }

    /// A frame of another station reaches it.
    pub(super) fn hear(&mut self, signal: Signal, timing: &Timing) {
        let committed =
            matches!(self.phase, Phase::Contending) && self.due(timing) <= signal.from + timing.turnaround;
        if signal.senses && !committed {
            self.backoff.freeze(signal.from, timing.slot);
            if matches!(self.phase, Phase::Contending) {
                self.backoff.interrupt();
            }
        }
        self.ear.hear(signal);
        if committed {
            return;
        }
        if signal.senses {
            self.contend(timing);
        } else {
            // It may spoil what is being received, and the pause behind that gets longer; a wait that has begun goes on.
            self.backoff.not_before(self.ear.free_from(timing));
        }
    }

    /// A frame that it has decoded, and that is not for it, reserves the medium.
    pub(super) fn reserve(&mut self, now: Time, until: Time, timing: &Timing) {
        self.backoff.freeze(now, timing.slot);
        self.ear.reserve(until);
        self.contend(timing);
    }

    /// It transmits itself.
    pub(super) fn transmit(&mut self, frame: Frame, timing: &Timing) {
        self.backoff.freeze(frame.from, timing.slot);
        if matches!(frame.kind, Kind::Cts | Kind::Ack) {
            self.backoff.interrupt();
        }
        self.ear.transmit(frame.from, frame.from + frame.airtime);
        self.contend(timing);
        self.phase = Phase::Sending(frame);
    }

    /// Slots count again when the medium is free.
    pub(super) fn contend(&mut self, timing: &Timing) {
        self.backoff.resume(self.ear.free_from(timing));
    }

    /// A packet has come to an empty queue: it goes out as soon as the medium has been idle for long enough, and behind a
    /// backoff where it is busy or becomes so before (§9.2.5.1).
    pub(super) fn begin(&mut self, now: Time, timing: &Timing) {
        if !self.backoff.is_spent() && self.backoff.over(timing.slot) > now {
            return;
        }
        self.backoff.spend();
        if self.ear.idle(now) {
            self.backoff.resume(self.ear.free_from(timing).max(now));
        } else {
            self.backoff.draw();
            self.contend(timing);
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

    fn signal(frame: u64, from: Time) -> Signal {
        Signal {
            frame,
            from,
            until: from + Duration::from_micros(1000),
            power: 1.0,
            decodes: true,
            bears: 0.0,
            is_noticed: true,
            senses: true,
        }
    }

    /// How many of a hundred stations wait for slots behind DIFS, each after `events` with a packet in its queue.
    fn behind_a_backoff(events: impl Fn(&mut Radio, &Timing)) -> usize {
        let timing = Timing::dsss(DSSS[1]);
        let waits = |seed: &u64| {
            let mut radio = Radio::new(&timing, Stream::named(*seed, "backoff"));
            radio.queue.push_back(Waiting::new(0, 0, (1000, DSSS[1]), us(0)));
            events(&mut radio, &timing);
            radio.due(&timing) > radio.ear.free_from(&timing)
        };
        (0..100).filter(waits).count()
    }

    /// One in 32 draws no slot.
    #[test]
    fn a_packet_goes_without_backoff_only_where_the_medium_stays_idle_until_it_goes() {
        let idle = behind_a_backoff(|radio, timing| radio.begin(us(20), timing));
        assert_eq!(idle, 0);
        let busy = behind_a_backoff(|radio, timing| {
            radio.hear(signal(1, us(100)), timing);
            radio.begin(us(500), timing);
        });
        let meanwhile = behind_a_backoff(|radio, timing| {
            radio.hear(signal(1, us(100)), timing);
            radio.begin(us(1105), timing);
            radio.hear(signal(2, us(1110)), timing);
        });
        let answering = behind_a_backoff(|radio, timing| {
            radio.hear(signal(1, us(100)), timing);
            radio.begin(us(1105), timing);
            let (from, airtime) = (us(1110), timing.ack());
            let frame = Frame {
                kind: Kind::Ack,
                number: 2,
                hop: 0,
                from,
                airtime,
                over: from + airtime,
                need: 1.0,
                reserves: Duration::ZERO,
            };
            radio.transmit(frame, timing);
            radio.phase = Phase::Contending;
        });
        for waits in [busy, meanwhile, answering] {
            assert!((88..100).contains(&waits), "{waits}");
        }
        // Too late to notice it.
        let committed = behind_a_backoff(|radio, timing| {
            radio.begin(us(100), timing);
            let before = radio.due(timing);
            radio.hear(signal(1, us(97)), timing);
            assert_eq!(radio.due(timing), before);
        });
        assert_eq!(committed, 0);
    }

    /// After a timeout slots count from then on; an interferer that it does not sense changes nothing of that.
    #[test]
    fn what_is_not_sensed_gives_no_slots_away() {
        let timing = Timing::dsss(DSSS[1]);
        let mut radio = Radio::new(&timing, Stream::named(1, "backoff"));
        radio.queue.push_back(Waiting::new(0, 0, (1000, DSSS[1]), us(0)));
        radio.backoff.draw();
        radio.contend(&timing);
        radio.backoff.not_before(us(1000));
        let before = radio.due(&timing);
        assert!(before > us(1100), "{before:?}");
        let far = Signal {
            senses: false,
            decodes: false,
            until: us(1060),
            ..signal(1, us(1020))
        };
        radio.hear(far, &timing);
        assert_eq!(radio.due(&timing), before);
        // What spoils a frame that is being received still makes the pause behind it longer.
        radio.hear(signal(2, us(1100)), &timing);
        let decoded = radio.due(&timing);
        radio.hear(
            Signal {
                frame: 3,
                from: us(1500),
                until: us(1900),
                ..far
            },
            &timing,
        );
        assert_eq!(
            radio.due(&timing),
            decoded + timing.eifs.saturating_sub(timing.difs)
        );
    }
}
