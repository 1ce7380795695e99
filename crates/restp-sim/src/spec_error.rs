//! What can be impossible about the description of a direction.

use crate::mark::MarkThreshold;
use restp_base::time::{Duration, Time};
use restp_base::units::Rate;
use thiserror::Error;

/// What is impossible about a [`DirectionSpec`](crate::spec::DirectionSpec).
#[derive(Clone, Debug, PartialEq, Error)]
pub enum SpecError {
    /// A rate of zero never sends anything.
    #[error("a rate of 0 bit/s never sends anything; leave the rate out for no limit, or use an outage")]
    NoRate,
    /// A step of a rate that is not in its place.
    #[error(
        "the rate cannot change at {at}; the first step is at 0 s, and each one later than that before it"
    )]
    RateStep {
        /// When.
        at: Duration,
    },
    /// Steps of a rate after which nothing is ever sent.
    #[error(
        "the last step of the rate is 0 bit/s, or there is none, and nothing would ever leave; end above zero"
    )]
    RateEndsAtZero,
    /// A random walk that has no room.
    #[error(
        "a rate cannot walk between {min} and {max} by up to {step}; write min below max, min and step above zero, and step \
         at most their difference"
    )]
    RateWalk {
        /// Lower bound.
        min: Rate,
        /// Upper bound.
        max: Rate,
        /// Largest change.
        step: Rate,
    },
    /// A random walk that changes too often.
    #[error("a rate cannot walk every {every}; write {least} or more")]
    RateWalkTime {
        /// Time from step to step.
        every: Duration,
        /// The least there may be.
        least: Duration,
    },
    /// A policer that holds too little or too much.
    #[error("a policer cannot pass bursts of {bytes} B; write {least} B to {most} B")]
    Burst {
        /// How much.
        bytes: u64,
        /// The least.
        least: u64,
        /// The most.
        most: u64,
    },
    /// The queue was left as "one bandwidth-delay product" without saying of which path.
    #[error("the queue is one bandwidth-delay product of an unknown path; resolve it to bytes first")]
    UnresolvedBdp,
    /// A threshold to mark from beside a discipline that marks by itself.
    #[error(
        "a backlog to mark from goes with drop-tail only; the other disciplines mark by their own rules (ecn)"
    )]
    TwoMarkers,
    /// RED's thresholds count different things, or the lower is not the lower one.
    #[error(
        "RED cannot work between {min:?} and {max:?}; write both in packets or both in bytes, min below max"
    )]
    RedThresholds {
        /// The lower one.
        min: MarkThreshold,
        /// The upper one.
        max: MarkThreshold,
    },
    /// CoDel's times are zero or the wrong way round.
    #[error(
        "CoDel cannot keep a target of {target} within an interval of {interval}; the target lies between 0 and the interval"
    )]
    CodelTimes {
        /// Acceptable time in the queue.
        target: Duration,
        /// For how long it may be exceeded.
        interval: Duration,
    },
    /// A count out of its range.
    #[error("{value} {what} are impossible; write 1 to {most}")]
    Count {
        /// Of what.
        what: &'static str,
        /// How many.
        value: u32,
        /// The most.
        most: u32,
    },
    /// A time of outage or of losses that ends before it starts.
    #[error("the time {start:?}..{end:?} is empty; its end must come after its start")]
    EmptySpan {
        /// Its start.
        start: Time,
        /// Its end.
        end: Time,
    },
    /// A probability outside 0..=1.
    #[error("the probability of {what} is {value}; it must lie between 0 and 1")]
    Probability {
        /// Which probability.
        what: &'static str,
        /// Its value.
        value: f64,
    },
    /// A burst of no packets, or a range that ends before it starts.
    #[error("bursts of {least} to {most} packets are impossible; write at least 1 packet, smallest first")]
    BurstSize {
        /// Smallest size.
        least: u64,
        /// Largest size.
        most: u64,
    },
    /// Scripted losses count from one.
    #[error("packet 0 cannot be dropped; the first packet offered is number 1")]
    PacketZero,
}

/// Errors unless `value` is a probability.
pub(crate) fn probability(what: &'static str, value: f64) -> Result<(), SpecError> {
    if (0.0..=1.0).contains(&value) {
        Ok(())
    } else {
        Err(SpecError::Probability { what, value })
    }
}
