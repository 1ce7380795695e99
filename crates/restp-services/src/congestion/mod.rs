//! What happens to the window? One controller per path answers; recovery outside decides what is lost and
//! when a loss episode begins, and sends while what is in flight stays below [`Congestion::window_bytes`].
//!
//! | Event | Caller | When |
//! |---|---|---|
//! | `Sent` | connection | a data segment left, first or retransmitted |
//! | `Duplicate` | recovery | once per acknowledgement that names nothing new, before a loss that it reveals |
//! | `Acked`, `RecoveryEnded` | recovery | once per acknowledgement of new data; after the last repair of an episode |
//! | `SegmentLost`, `Lost`, `Marked`, `Timeout`, `Restored` | loss handling | the cause was congestion, or was found not to be |
//! | `Idle` | connection | before the first segment after a silence longer than one timeout |
//! | `RouteChanged` | connection | where paths share the numbers: another path has gone that answers may have come by |
//!
//! Because recovery counts what is in flight without lost and selectively acknowledged bytes (RFC 6675), no
//! controller inflates its window by duplicate acknowledgements. Specification: ResTP §3.5.6.

mod adaptive;
mod bandwidth;
mod bbr;
mod bbr1;
mod bic;
mod bic_paper;
mod bic_sim;
mod byte_counting;
mod choice;
mod coupled;
mod cubic;
mod cubic_curve;
mod cubic_rules;
mod custom;
mod highspeed;
mod hybla;
mod hystart;
mod hystart_linux;
mod illinois;
mod interest_window;
mod none;
mod rate;
mod reno;
mod round;
mod scalable;
mod tahoe;
mod vegas;
mod veno;
mod westwood;
mod westwood_plus;
mod window;
mod yeah;

#[cfg(test)]
mod conformance;

pub use adaptive::{Adaptive, AdaptiveParams};
pub use bbr::{Bbr, BbrParams};
pub use bbr1::{Bbr1, Bbr1Params};
pub use bic::{Bic, BicParams, BicProfile};
pub use byte_counting::{ByteCounting, ByteCountingParams};
pub use choice::{CodeSpace, CongestionChoice, Control, Controller};
pub use coupled::{Coupled, Coupling, WVegas, WVegasParams};
pub use cubic::{Cubic, CubicParams};
pub use cubic_rules::CubicRules;
pub use custom::CustomCongestion;
pub use highspeed::HighSpeed;
pub use hybla::{Hybla, HyblaParams};
pub use hystart::HyStartChoice;
pub use illinois::Illinois;
pub use interest_window::{InterestWindow, InterestWindowParams};
pub use none::{FixedWindow, FlightLimit};
pub use rate::{FixedRate, RateParams};
pub use reno::Reno;
pub use scalable::Scalable;
pub use tahoe::Tahoe;
pub use vegas::{Vegas, VegasParams};
pub use veno::{Veno, VenoParams};
pub use westwood::{Westwood, WestwoodFilter, WestwoodParams};
pub use westwood_plus::{WestwoodPlus, WestwoodPlusFilter, WestwoodPlusParams};
pub use window::{CommonParams, Growth};
pub use yeah::Yeah;

use crate::recovery::{LostSegment, RateSample};
use crate::view::PathView;
use restp_base::time::Duration;
use restp_base::units::Rate;
use std::fmt;

/// What a controller learns about its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CongestionEvent {
    /// A data segment was handed to the network.
    Sent {
        /// Its payload, in bytes.
        bytes: u64,
    },
    /// New data was acknowledged, cumulatively or selectively; once per acknowledgement.
    Acked {
        /// Bytes this acknowledgement newly covers.
        bytes: u64,
        /// The sample of the round-trip time it carries.
        rtt: Option<Duration>,
        /// How fast the network delivers, unless the retransmissions of a segment make that uncertain.
        rate: Option<RateSample>,
    },
    /// An acknowledgement named nothing new while data is outstanding: one segment has arrived, nobody knows which
    /// (RFC 5681 §2).
    Duplicate,
    /// One segment was found lost by feedback. Comes for each, before `Lost` and `Acked` of the same acknowledgement.
    SegmentLost(LostSegment),
    /// A loss episode began: once per episode, not once per segment.
    Lost {
        /// Bytes taken for lost so far.
        bytes: u64,
    },
    /// The same, by corruption: told where causes are inferred, to who may want to know
    /// ([`LossHandling::Adaptive`](crate::loss_handling::LossHandling::Adaptive)).
    Corrupted {
        /// Bytes taken for lost so far.
        bytes: u64,
    },
    /// The network marked segments instead of dropping them (RFC 3168); at most once per round trip.
    Marked {
        /// Bytes the marks cover.
        bytes: u64,
    },
    /// The losses of the episode are repaired.
    RecoveryEnded,
    /// The retransmission timer ran out.
    Timeout {
        /// It had run out before for the same segment (RFC 5681 §3.1: the threshold is then kept).
        repeated: bool,
    },
    /// Sending resumes after nothing was in flight for longer than one timeout (RFC 5681 §4.1).
    Idle {
        /// How long nothing was in flight.
        gap: Duration,
    },
    /// The last loss or timeout was spurious, or the outage behind it is over: undo the last reduction.
    Restored,
    /// Acknowledgements take another way from now on: no earlier round trip says what the path takes without a queue.
    RouteChanged,
}

/// A congestion controller of one path.
pub trait Congestion: fmt::Debug {
    /// Takes note of one event.
    fn on(&mut self, event: &CongestionEvent, view: &PathView<'_>);
    /// How many bytes may be in flight; never less than one segment.
    fn window_bytes(&self) -> u64;
    /// The rate to spread segments at, or `None` to send them as the window opens.
    fn pacing(&self) -> Option<Rate>;
    /// How fast the path delivers, for who chooses among paths, once the algorithm knows it: its window holds more then than the
    /// path carries in a round trip.
    fn delivers(&self) -> Option<Rate> {
        None
    }
    /// Acknowledgements per flight that it wants at least, where they may thin out (RFC 5690).
    fn answers(&self) -> u64 {
        0
    }
    /// Does it fill the queue to find what the path holds? What that costs says nothing of what a queue of the same length loses later on.
    fn is_starting(&self) -> bool {
        false
    }
    /// The inner state, for diagnostics only; nothing may be steered by it.
    fn snapshot(&self) -> CongestionSnapshot;
}

/// The inner state of a controller, for traces and statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CongestionSnapshot {
    /// The congestion window in bytes.
    pub window_bytes: u64,
    /// The slow start threshold in bytes, for algorithms that have one and once it is set.
    pub threshold_bytes: Option<u64>,
    /// What the algorithm calls the state it is in, such as `slow-start`.
    pub state: &'static str,
}

/// The pacing rate of a window: twice what fills it in slow start, 1.2 times later, so that pacing never
/// becomes the bottleneck of a growing window (RFC 9002 §7.7). `window` in bytes.
pub fn window_over_rtt(window: u64, smoothed_rtt: Duration, in_slow_start: bool) -> Rate {
    let (numerator, denominator) = if in_slow_start { (2, 1) } else { (6, 5) };
    Rate::of(window.saturating_mul(numerator) / denominator, smoothed_rtt)
}
