//! How many acknowledgements a path is asked for (RFC 5690): as few as its flight needs, and more where most of them are lost,
//! because others fill the queue of the way back. Then enough of them leave for four per flight to arrive (TACK, SIGCOMM 2020),
//! at most as many as the receiver's own schedule has. Where fewer carry more, as few as two per flight.

use super::ack_trial::{AckTrial, Flow};
use crate::ack::AckRatio;
use restp_base::time::{Duration, Time};

/// Acknowledgements per flight that have to arrive.
const LEAST_ARRIVING: u64 = 4;
/// The same where fewer carry more (RFC 5690 §4.3).
const LEAST_TRIED: u64 = 2;
/// Segments that the receiver's own schedule has one acknowledgement for (ResTP §3.5.9).
const LEAST_COVERED: u64 = 2;
/// One over the weight of a new acknowledgement in the average.
const SMOOTHING: u64 = 8;

/// What one path asked for, and what came of it.
#[derive(Debug, Default)]
pub(super) struct AckDemand {
    asked: AckRatio,
    /// One of how many acknowledgements arrives, times [`SMOOTHING`] and on average; 0 before the first.
    one_in: u64,
    /// Of who sends: boxed, because each end has one of these.
    trial: Option<Box<AckTrial>>,
    /// Asking for fewer would change something.
    may_thin: bool,
}

impl AckDemand {
    /// A report came, with news of so many segments, where a round trip takes `rtt`. `steady`: the flow has begun, and wants no more of
    /// them than its flight needs.
    pub(super) fn on_report(&mut self, now: Time, delivered: u64, rtt: Option<Duration>, steady: bool) {
        if let Some(rtt) = rtt {
            let may_thin = self.may_thin;
            let trial = self.trial.get_or_insert_default();
            trial.on_report(now, delivered, rtt, Flow { steady, may_thin });
        }
        if delivered > 0 {
            let one_in = delivered.div_ceil(u64::from(self.asked.segments()).max(LEAST_COVERED));
            let before = self.one_in.max(SMOOTHING);
            self.one_in = before - before.div_ceil(SMOOTHING) + one_in;
        }
    }

    /// What is asked for while so many segments are in flight, and the controller wants so many `answers` for them.
    pub(super) fn ratio(&mut self, in_flight: u64, answers: u64) -> AckRatio {
        let doublings = self.trial.as_ref().map_or(0, |trial| trial.doublings());
        let wanted = AckRatio::of_flight(in_flight, answers);
        let arriving = SMOOTHING * in_flight / self.one_in.max(SMOOTHING);
        let rarer = |doublings| match doublings {
            0 => wanted.at_most(arriving / LEAST_ARRIVING),
            _ => wanted.doubled(doublings).at_most(arriving / LEAST_TRIED),
        };
        self.asked = rarer(doublings);
        self.may_thin = rarer(doublings + 1) != self.asked;
        self.asked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A report of so many segments, of a flow that tries nothing.
    fn report(demand: &mut AckDemand, delivered: u64) {
        demand.on_report(Time::ZERO, delivered, None, false);
    }

    /// What is asked for in the end, where one acknowledgement in `one_in` arrives.
    fn settled(in_flight: u64, one_in: u64) -> u32 {
        let mut demand = AckDemand::default();
        let mut ratio = demand.ratio(in_flight, 0);
        for _ in 0..200 {
            report(&mut demand, u64::from(ratio.segments().max(2)) * one_in);
            ratio = demand.ratio(in_flight, 0);
        }
        ratio.segments()
    }

    #[test]
    fn four_acknowledgements_of_a_flight_arrive_whatever_is_lost_of_them() {
        assert_eq!(settled(128, 1), 16, "an eighth of the flight");
        assert_eq!(settled(128, 2), 16, "four arrive");
        assert_eq!(settled(128, 3), 8);
        assert_eq!(settled(128, 8), 4);
        assert_eq!(settled(128, 100), 1, "as the schedule says, and no more often");
    }

    #[test]
    fn reports_without_news_say_nothing() {
        let mut demand = AckDemand::default();
        report(&mut demand, 0);
        assert_eq!(demand.ratio(128, 0).segments(), 16);
        report(&mut demand, 16);
        (0..100).for_each(|_| report(&mut demand, 0));
        assert_eq!(demand.ratio(128, 0).segments(), 16);
    }

    #[test]
    fn no_report_is_too_large() {
        let mut demand = AckDemand::default();
        report(&mut demand, u64::from(u32::MAX));
        assert_eq!(demand.ratio(u64::from(u32::MAX), 0).segments(), 1);
    }

    /// What is asked for in the end of so many in flight, on a way back that lets through `fits` acknowledgements in a round trip of `RTT`
    /// and loses none.
    fn tried(in_flight: u64, answers: u64, fits: u64) -> u32 {
        const RTT: Duration = Duration::from_millis(20);
        let mut demand = AckDemand::default();
        let mut most = 0;
        for round in 1..120 {
            let ratio = demand.ratio(in_flight, answers);
            most = most.max(ratio.segments());
            let covered = u64::from(ratio.segments().max(2));
            for step in 1..=fits {
                let now = Time::ZERO + RTT * (round - 1) + RTT * step / fits;
                demand.on_report(now, covered, Some(RTT), answers == 0);
            }
        }
        most
    }

    #[test]
    fn two_acknowledgements_of_a_flight_are_enough_where_fewer_carry_more() {
        assert_eq!(tried(32, 0, 4), 16);
        assert_eq!(tried(12, 0, 4), 4, "of four segments at least");
        assert_eq!(
            tried(32, 32, 4),
            1,
            "nothing is tried while a controller wants more"
        );
    }
}
