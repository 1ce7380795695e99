//! What an open loop may send in a time (ResTP §3.5.9): its rate, and a short burst that it may catch up with (RFC 9002
//! §7.7). What leaves whatever the pace says is not counted.

use restp_base::time::{Duration, Time};
use restp_base::units::Rate;
use restp_proto::composition::Composition;
use restp_services::congestion::CongestionChoice;

/// Segments that may leave back to back after a pause, or what the rate carries in a millisecond.
const BURST_SEGMENTS: u64 = 10;
const BURST_TIME: Duration = Duration::from_millis(1);

/// The sending of one open loop.
#[derive(Clone, Debug)]
pub struct Pace {
    rate: Rate,
    burst: Duration,
    /// When a line of this rate would have carried everything.
    free_at: Time,
}

impl Pace {
    /// None where the algorithm is no open loop.
    pub fn new(composition: &Composition) -> Option<Self> {
        let CongestionChoice::Rate(params) = &composition.congestion else {
            return None;
        };
        let burst = BURST_SEGMENTS * u64::from(composition.segment_bytes);
        Some(Pace {
            rate: params.rate,
            burst: params.rate.transmission_time(burst).max(BURST_TIME),
            free_at: Time::ZERO,
        })
    }

    /// The sender's clock leaps over any wait.
    pub fn leap(&mut self) {
        self.free_at = Time::ZERO;
    }

    /// `bytes` of payload leave. False when the rate allows none.
    pub fn sends(&mut self, at: Time, bytes: u64) -> bool {
        let allowed = self.free_at <= at + self.burst;
        self.free_at = self.free_at.max(at) + self.rate.transmission_time(bytes);
        allowed
    }
}
