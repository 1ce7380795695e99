//! Decides when an acknowledgement is due (ResTP §3.5.9): by its schedule, at once when something asks, and again when
//! the option to repeat is on.

use super::duplicate::IdleSpell;
use super::{AckRatio, PositiveParameters, RepeatParameters, Schedule};
use restp_base::time::{Duration, Time};

/// Where a segment fits that did not come in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Below one that has arrived.
    Hole,
    /// Above all that has arrived, and what is right before it is missing.
    BeyondNewHole,
    /// Right behind the highest that has arrived.
    Next,
}

/// The acknowledgements of one direction. Where a method takes `rtt`, it is the smoothed round trip, once there is one.
#[derive(Clone, Debug)]
pub struct AckTimer {
    schedule: Schedule,
    /// In-order packets since the last acknowledgement.
    waiting: u32,
    /// Packets that are still acknowledged at once.
    quick: u16,
    /// Acknowledgements owed at once; out-of-order arrivals each get their own, so that a sender can count
    /// duplicates even when several arrivals are processed together.
    owed: u32,
    deadline: Option<Time>,
    spell: Option<IdleSpell>,
    /// What the peer asked for last, where acknowledgements may be thinned out.
    ratio: AckRatio,
    /// Packets since a new hole was reported before its turn.
    since_early: u32,
    /// Blocks begun since the last acknowledgement.
    new_blocks: u8,
}

/// So many blocks an acknowledgement can name for the first time, and one more that has grown (RFC 2018 §3).
const MOST_NEW_BLOCKS: u8 = 3;
/// Where so many segments or more wait for each acknowledgement, it names twice as many blocks, so that each block is named twice: a flight of
/// 512 segments has many holes at once, and what one lost report has left out costs a round trip each. Such reports are rare, and the bytes few.
const NAMED_TWICE: u32 = 64;
/// More do not fit on every path.
const MOST_BLOCKS: u8 = 32;

impl AckTimer {
    /// Nothing is waiting.
    pub fn new(schedule: Schedule, repeat: Option<RepeatParameters>) -> Self {
        let quick = match schedule {
            Schedule::Positive(positive) => positive.quick.try_into().unwrap_or(u16::MAX),
            Schedule::None | Schedule::Delayed(_) => 0,
        };
        AckTimer {
            schedule,
            quick,
            waiting: 0,
            owed: 0,
            deadline: None,
            spell: repeat.map(IdleSpell::new),
            ratio: AckRatio::SCHEDULE,
            since_early: u32::MAX,
            new_blocks: 0,
        }
    }

    /// The sender of the packet at hand wants it, and what follows, to be acknowledged by this ratio.
    pub fn on_ratio(&mut self, ratio: AckRatio) {
        if matches!(self.schedule, Schedule::Positive(positive) if positive.thins) {
            self.ratio = ratio;
        }
    }

    /// A segment arrived in order and nothing is missing.
    pub fn on_in_order(&mut self, now: Time, rtt: Option<Duration>) {
        match self.schedule {
            Schedule::None => return,
            Schedule::Positive(positive) => self.count(now, positive),
            Schedule::Delayed(delayed) => {
                self.deadline.get_or_insert(now + delayed.time(rtt));
            }
        }
        self.begin_spell(now, rtt);
    }

    /// A new segment arrived out of order, or filled a hole.
    pub fn on_out_of_order(&mut self, now: Time, rtt: Option<Duration>, place: Place) {
        match self.schedule {
            Schedule::Positive(positive) if positive.delays_reordered => self.count(now, positive),
            _ => self.on_unwanted(now, rtt),
        }
        if self.is_thin() && self.cannot_wait(place) {
            self.on_urgent_once();
        }
        self.begin_spell(now, rtt);
    }

    /// A segment arrived that is no news, or no use: a retransmission, a probe, one too late.
    pub fn on_unwanted(&mut self, now: Time, rtt: Option<Duration>) {
        match self.schedule {
            Schedule::None => {}
            Schedule::Positive(positive) if self.is_thin() => self.count(now, positive),
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

    /// Packets since the last acknowledgement that wait for the next one.
    pub fn arrivals(&self) -> u32 {
        self.waiting
    }

    /// How many blocks it names, where the composition has so many.
    pub fn blocks(&self, composed: u8) -> u8 {
        if self.is_thin() && self.ratio.segments() >= NAMED_TWICE {
            composed.saturating_mul(2).min(MOST_BLOCKS)
        } else {
            composed
        }
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
        (self.waiting, self.new_blocks) = (0, 0);
        self.owed = self.owed.saturating_sub(1);
        self.deadline = None;
    }

    /// The peer wants fewer acknowledgements than the schedule has.
    fn is_thin(&self) -> bool {
        matches!(self.schedule, Schedule::Positive(positive) if positive.every < self.ratio.segments())
    }

    /// Of the blocks beyond holes a report names the newest few: what it leaves out the peer takes for lost. And a first hole
    /// is news, once per ratio.
    fn cannot_wait(&mut self, place: Place) -> bool {
        let is_first = self.since_early >= self.ratio.segments();
        match place {
            Place::Hole => true,
            Place::BeyondNewHole => {
                self.new_blocks = self.new_blocks.saturating_add(1);
                if is_first {
                    self.since_early = 0;
                }
                is_first || self.new_blocks >= MOST_NEW_BLOCKS
            }
            Place::Next => false,
        }
    }

    /// One more packet waits for its acknowledgement, which is due when enough of them do.
    fn count(&mut self, now: Time, positive: PositiveParameters) {
        self.waiting += 1;
        self.since_early = self.since_early.saturating_add(1);
        if self.waiting >= positive.every.max(self.ratio.segments()) || self.quick > 0 {
            self.quick = self.quick.saturating_sub(1);
            self.owed = self.owed.max(1);
        } else {
            let wait = match self.ratio {
                AckRatio::UNHURRIED => positive.delay.max(positive.unhurried),
                _ => positive.delay,
            };
            let deadline = now + wait;
            self.deadline = Some(self.deadline.map_or(deadline, |earlier| earlier.min(deadline)));
        }
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
    /// Thins, and is asked for one acknowledgement of 8 segments.
    fn thin() -> AckTimer {
        let schedule = Schedule::Positive(PositiveParameters {
            thins: true,
            ..PositiveParameters::default()
        });
        let mut timer = AckTimer::new(schedule, None);
        timer.on_ratio(AckRatio::of_flight(64, 0));
        timer
    }
    /// Acknowledgements that leave while a packet every millisecond is told to `timer`.
    fn left(timer: &mut AckTimer, packets: u64, mut arrives: impl FnMut(&mut AckTimer, u64)) -> usize {
        let due = (0..packets).filter(|&ms| {
            arrives(timer, ms);
            let due = timer.is_due(at(ms));
            if due {
                timer.on_sent();
            }
            due
        });
        due.count()
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
        timer.on_out_of_order(at(0), RTT, Place::Next);
        timer.on_unwanted(at(0), RTT);
        timer.on_in_order(at(0), RTT);
        timer.on_sent();
        assert!(timer.is_due(at(0)));
        timer.on_sent();
        assert!(!timer.is_due(Time::MAX));
    }

    #[test]
    fn the_peer_asks_for_fewer_and_for_the_schedule_again() {
        let mut timer = thin();
        assert_eq!(
            left(&mut timer, 64, |timer, ms| timer.on_in_order(at(ms), RTT)),
            8
        );
        timer.on_in_order(at(100), RTT);
        assert_eq!(timer.deadline(), Some(at(140)), "what follows may be late");
        timer.on_ratio(AckRatio::SCHEDULE);
        timer.on_in_order(at(101), RTT);
        assert!(timer.is_due(at(101)));
    }

    #[test]
    fn a_lone_packet_waits_longer_if_its_sender_says_that_it_does_not_hurry() {
        let schedule = Schedule::Positive(PositiveParameters {
            delay: Duration::from_millis(5),
            unhurried: Duration::from_millis(40),
            thins: true,
            ..PositiveParameters::default()
        });
        let mut timer = AckTimer::new(schedule, None);
        timer.on_ratio(AckRatio::UNHURRIED);
        timer.on_in_order(at(100), RTT);
        assert_eq!(timer.deadline(), Some(at(140)));
        timer.on_in_order(at(101), RTT);
        assert!(timer.is_due(at(101)), "every second packet as ever");
        timer.on_sent();
        timer.on_ratio(AckRatio::from_code(1));
        timer.on_in_order(at(200), RTT);
        timer.on_ratio(AckRatio::UNHURRIED);
        timer.on_sent();
        timer.on_in_order(at(300), RTT);
        timer.on_ratio(AckRatio::from_code(1));
        timer.on_in_order(at(301), RTT);
        assert_eq!(timer.deadline(), Some(at(306)), "who hurries waits for nobody");
    }

    #[test]
    fn of_a_large_flight_each_block_is_named_twice() {
        let mut timer = thin();
        let blocks = [256, 511, 512, 100_000].map(|flight| {
            timer.on_ratio(AckRatio::of_flight(flight, 0));
            timer.blocks(4)
        });
        assert_eq!(blocks, [4, 4, 8, 8]);
        let mut timer = positive();
        timer.on_ratio(AckRatio::of_flight(512, 0));
        assert_eq!(timer.blocks(4), 4);
    }

    #[test]
    fn who_does_not_thin_does_not_heed_what_is_asked() {
        let mut timer = positive();
        timer.on_ratio(AckRatio::of_flight(64, 0));
        assert_eq!(
            left(&mut timer, 64, |timer, ms| timer.on_in_order(at(ms), RTT)),
            32
        );
    }

    #[test]
    fn a_new_hole_is_news_at_once_and_what_follows_it_is_not() {
        let mut timer = thin();
        timer.on_in_order(at(0), RTT);
        timer.on_out_of_order(at(1), RTT, Place::BeyondNewHole);
        assert!(timer.is_due(at(1)));
        timer.on_sent();
        let beyond = |timer: &mut AckTimer, ms| timer.on_out_of_order(at(ms), RTT, Place::Next);
        assert_eq!(left(&mut timer, 32, beyond), 4);
        assert_eq!(
            left(&mut timer, 32, |timer, ms| timer.on_unwanted(at(ms), RTT)),
            4,
            "nor are retransmissions"
        );
        timer.on_ratio(AckRatio::SCHEDULE);
        assert_eq!(
            left(&mut timer, 8, beyond),
            8,
            "every one, where the flight is small"
        );
    }

    #[test]
    fn what_fills_a_hole_is_reported_at_once() {
        let mut timer = thin();
        let filled = |timer: &mut AckTimer, ms| timer.on_out_of_order(at(ms), RTT, Place::Hole);
        assert_eq!(left(&mut timer, 10, filled), 10);
    }

    #[test]
    fn as_many_holes_are_reported_together_as_blocks_can_name() {
        let holes = |period: u64| {
            let place = move |ms: u64| match ms % period {
                0 => Place::BeyondNewHole,
                _ => Place::Next,
            };
            left(&mut thin(), 2400, |timer, ms| {
                timer.on_out_of_order(at(ms), RTT, place(ms))
            })
        };
        assert!(
            (800..=900).contains(&holes(1)),
            "every third, and some first: {}",
            holes(1)
        );
        assert!((400..=800).contains(&holes(2)), "{}", holes(2));
        for period in 3..100 {
            assert!(holes(period) <= 600, "two per ratio, with a hole every {period}");
        }
    }

    #[test]
    fn with_dac_what_is_out_of_order_waits_too_and_is_counted() {
        let schedule = Schedule::Positive(PositiveParameters {
            delays_reordered: true,
            ..PositiveParameters::default()
        });
        let mut timer = AckTimer::new(schedule, None);
        timer.on_out_of_order(at(0), RTT, Place::BeyondNewHole);
        assert!(!timer.is_due(at(39)) && timer.is_due(at(40)));
        assert_eq!(timer.arrivals(), 1);
        timer.on_out_of_order(at(1), RTT, Place::Hole);
        assert!(timer.is_due(at(1)));
        assert_eq!(timer.arrivals(), 2);
        timer.on_sent();
        assert_eq!(timer.arrivals(), 0);
        timer.on_unwanted(at(2), RTT);
        assert!(timer.is_due(at(2)), "what came again is answered at once");
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
        timer.on_out_of_order(at(50), RTT, Place::BeyondNewHole);
        timer.on_unwanted(at(99), RTT);
        assert!(!timer.is_due(at(99)) && timer.is_due(at(100)));
        timer.on_sent();
        assert_eq!(timer.deadline(), None);
        timer.on_out_of_order(at(120), RTT, Place::Hole);
        assert_eq!(timer.deadline(), Some(at(220)));
        timer.on_urgent();
        assert!(timer.is_due(at(120)));
    }

    #[test]
    fn without_a_schedule_only_what_asks_is_answered() {
        let mut timer = AckTimer::new(Schedule::None, None);
        (0..3).for_each(|_| timer.on_in_order(at(0), RTT));
        timer.on_out_of_order(at(0), RTT, Place::Hole);
        assert!(!timer.is_due(Time::MAX));
        timer.on_urgent_once();
        assert!(timer.is_due(at(0)));
    }

    #[test]
    fn a_duplicate_follows_an_acknowledgement_and_retransmissions_of_data_bring_no_more_of_them() {
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
