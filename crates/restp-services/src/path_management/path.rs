//! The bundle of what belongs to one path: address, estimator, timer, controller, pacer (ResTP §3.3).

use super::Pacer;
use crate::congestion::Controller;
use crate::recovery::{RtoParameters, RtoTimer, RttEstimator};
use restp_base::machine::PathAddress;

/// One path of a connection.
#[derive(Debug)]
pub struct Path {
    /// Lower-layer addresses.
    pub address: PathAddress,
    /// Round-trip time.
    pub rtt: RttEstimator,
    /// Retransmission timer.
    pub rto: RtoTimer,
    /// Congestion window.
    pub controller: Controller,
    /// Spacing of segments, when the composition paces.
    pub pacer: Pacer,
}

impl Path {
    /// A path of which nothing is known yet.
    pub fn new(address: PathAddress, rto: RtoParameters, controller: Controller) -> Self {
        Path {
            address,
            rtt: RttEstimator::default(),
            rto: RtoTimer::new(rto),
            controller,
            pacer: Pacer::default(),
        }
    }
}
