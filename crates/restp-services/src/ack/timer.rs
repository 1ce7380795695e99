//! Decides when an acknowledgement is due (ResTP §3.5.9): by its schedule, at once when something asks, and again when
//! the option to repeat is on.

use super::duplicate::IdleSpell;
use super::{RepeatParameters, Schedule};
use restp_base::time::{Duration, Time};

/// The acknowledgements of one direction. Where a method takes `rtt`, it is the smoothed round trip, once there is one.
#[derive(Clone, Debug)]
pub struct AckTimer {
    schedule: Schedule,
    /// In-order packets since the last acknowledgement.
    waiting: u32,
    /// Packets that are still acknowledged at once.
    quick: u32,
    /// Acknowledgements owed at once; out-of-order arrivals each get their own, so that a sender can count
    /// duplicates even when several arrivals are processed together.
    owed: u32,
    deadline: Option<Time>,
    spell: Option<IdleSpell>,
}

impl AckTimer {
    /// Nothing is waiting.
    pub fn new(schedule: Schedule, repeat: Option<RepeatParameters>) -> Self {
        let quick = match schedule {
            Schedule::Positive(positive) => positive.quick,
            Schedule::None | Schedule::Delayed(_) => 0,
        };
        AckTimer {
            schedule,
            quick,
            waiting: 0,
            owed: 0,
            deadline: None,
            spell: repeat.map(IdleSpell::new),
        }
    }

    /// A segment arrived in order and nothing is missing.
    pub fn on_in_order(&mut self, now: Time, rtt: Option<Duration>) {
        match self.schedule {
            Schedule::None => return,
            Schedule::Positive(positive) => {
                self.waiting += 1;
                if self.waiting >= positive.every || self.quick > 0 {
                    self.quick = self.quick.saturating_sub(1);
                    self.owed = self.owed.max(1);
                } else {
                    self.deadline.get_or_insert(now + positive.delay);
                }
            }
            Schedule::Delayed(delayed) => {
                self.deadline.get_or_insert(now + delayed.time(rtt));
            }
        }
        self.begin_spell(now, rtt);
    }

    /// A new segment arrived out of order, or filled a hole.
    pub fn on_out_of_order(&mut self, now: Time, rtt: Option<Duration>) {
        self.on_unwanted(now, rtt);
        self.begin_spell(now, rtt);
    }

    /// A segment arrived that is no news, or no use: a repeat, a probe, one too late.
    pub fn on_unwanted(&mut self, now: Time, rtt: Option<Duration>) {
        match self.schedule {
            Schedule::None => {}
            Schedule::Positive(_) => self.on_urgent(),
            Schedule::Delayed(delayed) => {
                self.deadline.get_or_insert(now + delayed.time(rtt));
            }
        }
    }

    /// An acknowledgement goes out at once, whatever the schedule.
    pub fn on_urgent(&mut self) {
        self.owed = self.owed.saturating_add(1);
    }

    /// Something asked where we stand: one answer however often it asked.
    pub fn on_urgent_once(&mut self) {
        self.owed = self.owed.max(1);
    }

    /// Is one due whatever the time?
    pub fn is_owed(&self) -> bool {
        self.owed > 0
    }

    /// Is an acknowledgement due at `now`?
    pub fn is_due(&self, now: Time) -> bool {
        self.owed > 0 || self.deadline.is_some_and(|deadline| deadline <= now)
    }

    /// When the next one is due, or has to be repeated.
    pub fn deadline(&self) -> Option<Time> {
        let repeat = self.spell.and_then(|spell| spell.deadline());
        self.deadline.into_iter().chain(repeat).min()
    }

    /// A deadline may have come.
    pub fn on_deadline(&mut self, now: Time) {
        if self.spell.as_mut().is_some_and(|spell| spell.take_due(now)) {
            self.on_urgent_once();
        }
    }

    /// An acknowledgement left, alone or with data; it covers everything that arrived in order.
    pub fn on_sent(&mut self) {
        self.waiting = 0;
        self.owed = self.owed.saturating_sub(1);
        self.deadline = None;
    }

    /// New data has come, and its acknowledgement is due now or at the deadline.
    fn begin_spell(&mut self, now: Time, rtt: Option<Duration>) {
        let acknowledged_at = self.deadline.filter(|_| self.owed == 0).unwrap_or(now);
        if let Some(spell) = &mut self.spell {
            spell.begin(acknowledged_at, rtt);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{DelayedParameters, PositiveParameters};
    use super::*;

    const RTT: Option<Duration> = Some(Duration::from_millis(200));

    fn positive() -> AckTimer {
        AckTimer::new(Schedule::Positive(PositiveParameters::default()), None)
    }
    fn delayed() -> AckTimer {
        AckTimer::new(Schedule::Delayed(DelayedParameters::default()), None)
    }
    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn every_second_packet_and_a_lone_one_after_40_ms() {
        let mut timer = positive();
        timer.on_in_order(at(1000), RTT);
        assert!(!timer.is_due(at(1000)));
        assert_eq!(timer.deadline(), Some(at(1040)));
        assert!(timer.is_due(at(1040)));
        timer.on_in_order(at(1000), RTT);
        assert!(timer.is_due(at(1000)));
        timer.on_sent();
        assert!(!timer.is_due(at(2000)));
    }

    #[test]
    fn each_out_of_order_arrival_gets_its_own_acknowledgement() {
        let mut timer = positive();
        timer.on_out_of_order(at(0), RTT);
        timer.on_unwanted(at(0), RTT);
        timer.on_in_order(at(0), RTT);
        timer.on_sent();
        assert!(timer.is_due(at(0)));
        timer.on_sent();
        assert!(!timer.is_due(Time::MAX));
    }

    #[test]
    fn arrivals_processed_together_in_order_share_one_acknowledgement() {
        let mut timer = positive();
        (0..44).for_each(|_| timer.on_in_order(at(0), RTT));
        timer.on_sent();
        assert!(!timer.is_due(at(0)));
    }

    #[test]
    fn delayed_is_once_per_period_whatever_comes_unless_asked() {
        let mut timer = delayed();
        timer.on_in_order(at(0), RTT);
        timer.on_out_of_order(at(50), RTT);
        timer.on_unwanted(at(99), RTT);
        assert!(!timer.is_due(at(99)) && timer.is_due(at(100)));
        timer.on_sent();
        assert_eq!(timer.deadline(), None);
        timer.on_out_of_order(at(120), RTT);
        assert_eq!(timer.deadline(), Some(at(220)));
        timer.on_urgent();
        assert!(timer.is_due(at(120)));
    }

    #[test]
    fn without_a_schedule_only_what_asks_is_answered() {
        let mut timer = AckTimer::new(Schedule::None, None);
        (0..3).for_each(|_| timer.on_in_order(at(0), RTT));
        timer.on_out_of_order(at(0), RTT);
        assert!(!timer.is_due(Time::MAX));
        timer.on_urgent_once();
        assert!(timer.is_due(at(0)));
    }

    #[test]
    fn a_repeat_follows_an_acknowledgement_and_repeats_of_data_bring_no_more_of_them() {
        let schedule = Schedule::Positive(PositiveParameters::default());
        let mut timer = AckTimer::new(schedule, Some(RepeatParameters::default()));
        timer.on_in_order(at(0), RTT);
        timer.on_sent();
        assert_eq!(
            timer.deadline(),
            Some(at(40 + 300)),
            "acknowledged after 40 ms at the latest"
        );
        timer.on_in_order(at(10), RTT);
        timer.on_in_order(at(10), RTT);
        timer.on_sent();
        assert_eq!(timer.deadline(), Some(at(310)));
        for due in [310, 610] {
            timer.on_deadline(at(due - 1));
            assert!(!timer.is_due(at(due - 1)));
            timer.on_deadline(at(due));
            assert!(timer.is_due(at(due)));
            timer.on_sent();
            timer.on_unwanted(at(due), RTT);
            timer.on_sent();
        }
        assert_eq!(timer.deadline(), None);
    }
}
