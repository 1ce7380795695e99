//! Every congestion algorithm by name and by header code, and how a controller is made of a choice.

use super::{
    Bbr, BbrParams, Bic, BicParams, CommonParams, Controller, Cubic, CubicParams, FixedRate, HighSpeed,
    Illinois, RateParams, Reno, Scalable, Tahoe, Unplugged, Vegas, VegasParams, Veno, VenoParams, Westwood,
    WestwoodParams, WestwoodPlus, WestwoodPlusParams, Yeah,
};
use crate::recovery::FastRecovery;

/// Which algorithm controls a path, with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CongestionChoice {
    /// No congestion control, only a limit on what is in flight (OP-50).
    None {
        /// The limit in segments, at least 1.
        flight_limit_segments: u64,
    },
    /// RFC 5681 and 6582.
    NewReno(CommonParams),
    /// Binary increase (Xu, Harfoush, Rhee; INFOCOM 2004).
    Bic(BicParams),
    /// RFC 9438.
    Cubic(CubicParams),
    /// Slow start again after every loss (Jacobson 1988).
    Tahoe(CommonParams),
    /// Fast recovery that ends with the first new acknowledgement (RFC 5681).
    Reno(CommonParams),
    /// Holds a few segments in the queue by watching the round-trip time (Brakmo, Peterson 1995).
    Vegas(VegasParams),
    /// Threshold from a bandwidth estimate (Mascolo and others, MobiCom 2001).
    Westwood(WestwoodParams),
    /// Westwood sampled once per round trip (Grieco, Mascolo 2004).
    WestwoodPlus(WestwoodPlusParams),
    /// Reno that tells random loss from congestion by Vegas' measure (Fu, Liew 2003).
    Veno(VenoParams),
    /// Multiplicative increase (Kelly 2003).
    Scalable(CommonParams),
    /// RFC 3649.
    HighSpeed(CommonParams),
    /// Scalable with a limit on its queue (Baiocchi and others 2007).
    Yeah(CommonParams),
    /// Step sizes from the queueing delay (Liu, Başar, Srikant 2006).
    Illinois(CommonParams),
    /// A model of bottleneck bandwidth and round-trip time (draft-ietf-ccwg-bbr, version 3).
    Bbr(BbrParams),
    /// Open loop: a configured rate (ResTP §3.5.9).
    Rate(RateParams),
}

use CongestionChoice as Choice;

/// Flight limit where none is given: about 10 Mbit/s over 100 ms with full segments.
const FLIGHT_LIMIT_SEGMENTS: u64 = 100;

impl CongestionChoice {
    /// Every algorithm with its default parameters, in the order of the header codes.
    pub fn all() -> [Self; 16] {
        [
            Choice::None {
                flight_limit_segments: FLIGHT_LIMIT_SEGMENTS,
            },
            Choice::NewReno(CommonParams::default()),
            Choice::Bic(BicParams::default()),
            Choice::Cubic(CubicParams::default()),
            Choice::Tahoe(CommonParams::default()),
            Choice::Reno(CommonParams::default()),
            Choice::Vegas(VegasParams::default()),
            Choice::Westwood(WestwoodParams::default()),
            Choice::WestwoodPlus(WestwoodPlusParams::default()),
            Choice::Veno(VenoParams::default()),
            Choice::Scalable(CommonParams::default()),
            Choice::HighSpeed(CommonParams::default()),
            Choice::Yeah(CommonParams::default()),
            Choice::Illinois(CommonParams::default()),
            Choice::Bbr(BbrParams::default()),
            Choice::Rate(RateParams::default()),
        ]
    }

    /// The name in files, on command lines and in results.
    pub const fn name(&self) -> &'static str {
        self.label().0
    }

    /// The code of the header's Cong field for one path (ResTP §3.1.1; codes from 3 on are the project's).
    pub const fn code(&self) -> u8 {
        self.label().1
    }

    const fn label(&self) -> (&'static str, u8) {
        match self {
            Choice::None { .. } => ("none", 0),
            Choice::NewReno(_) => ("newreno", 1),
            Choice::Bic(_) => ("bic", 2),
            Choice::Cubic(_) => ("cubic", 3),
            Choice::Tahoe(_) => ("tahoe", 4),
            Choice::Reno(_) => ("reno", 5),
            Choice::Vegas(_) => ("vegas", 6),
            Choice::Westwood(_) => ("westwood", 7),
            Choice::WestwoodPlus(_) => ("westwood+", 8),
            Choice::Veno(_) => ("veno", 9),
            Choice::Scalable(_) => ("scalable", 10),
            Choice::HighSpeed(_) => ("highspeed", 11),
            Choice::Yeah(_) => ("yeah", 12),
            Choice::Illinois(_) => ("illinois", 13),
            Choice::Bbr(_) => ("bbr", 14),
            Choice::Rate(_) => ("rate", 15),
        }
    }

    /// The algorithm called `name`, with default parameters.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::all().into_iter().find(|choice| choice.name() == name)
    }

    /// The algorithm with this header code, with default parameters.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::all().into_iter().find(|choice| choice.code() == code)
    }

    /// Start and growth, for the algorithms with a window.
    pub const fn common(&mut self) -> Option<&mut CommonParams> {
        match self {
            Choice::NewReno(params)
            | Choice::Tahoe(params)
            | Choice::Reno(params)
            | Choice::Scalable(params)
            | Choice::HighSpeed(params)
            | Choice::Yeah(params)
            | Choice::Illinois(params) => Some(params),
            Choice::Bic(params) => Some(&mut params.common),
            Choice::Cubic(params) => Some(&mut params.common),
            Choice::Vegas(params) => Some(&mut params.common),
            Choice::Westwood(params) => Some(&mut params.common),
            Choice::WestwoodPlus(params) => Some(&mut params.common),
            Choice::Veno(params) => Some(&mut params.common),
            _ => None,
        }
    }

    /// The fast recovery that belongs to the algorithm, where losses are found by duplicates.
    pub const fn fast_recovery(&self) -> FastRecovery {
        match self {
            Choice::Tahoe(_) => FastRecovery::None,
            Choice::Reno(_) | Choice::Westwood(_) | Choice::WestwoodPlus(_) | Choice::Veno(_) => {
                FastRecovery::Reno
            }
            _ => FastRecovery::NewReno,
        }
    }

    /// Its rate is the decision and its window only a bound: without pacing it does not work.
    pub const fn needs_pacing(&self) -> bool {
        matches!(self, Choice::Bbr(_) | Choice::Rate(_))
    }

    /// A controller for a path whose full segments carry `segment_bytes`.
    pub fn build(&self, segment_bytes: u64) -> Controller {
        match self {
            Choice::None {
                flight_limit_segments,
            } => Controller::None(Unplugged::new(*flight_limit_segments, segment_bytes)),
            Choice::NewReno(params) | Choice::Reno(params) => {
                Controller::Reno(Reno::new(params, segment_bytes))
            }
            Choice::Tahoe(params) => Controller::Tahoe(Tahoe::new(params, segment_bytes)),
            Choice::Bic(params) => Controller::Bic(Bic::new(params, segment_bytes)),
            Choice::Vegas(params) => Controller::Vegas(Vegas::new(params, segment_bytes)),
            Choice::Westwood(params) => Controller::Westwood(Westwood::new(params, segment_bytes)),
            Choice::WestwoodPlus(params) => {
                Controller::WestwoodPlus(WestwoodPlus::new(params, segment_bytes))
            }
            Choice::Veno(params) => Controller::Veno(Veno::new(params, segment_bytes)),
            Choice::Bbr(params) => Controller::Bbr(Bbr::new(params, segment_bytes)),
            Choice::Cubic(params) => Controller::Cubic(Cubic::new(params, segment_bytes)),
            Choice::Scalable(params) => Controller::Scalable(Scalable::new(params, segment_bytes)),
            Choice::HighSpeed(params) => Controller::HighSpeed(HighSpeed::new(params, segment_bytes)),
            Choice::Yeah(params) => Controller::Yeah(Yeah::new(params, segment_bytes)),
            Choice::Illinois(params) => Controller::Illinois(Illinois::new(params, segment_bytes)),
            Choice::Rate(params) => Controller::Rate(FixedRate::new(params, segment_bytes)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_codes_round_trip() {
        for (position, choice) in CongestionChoice::all().into_iter().enumerate() {
            assert_eq!(CongestionChoice::from_name(choice.name()), Some(choice));
            assert_eq!(CongestionChoice::from_code(choice.code()), Some(choice));
            assert_eq!(usize::from(choice.code()), position);
        }
        assert_eq!(CongestionChoice::from_name("NewReno"), None);
        assert_eq!(CongestionChoice::from_code(16), None);
    }
}
