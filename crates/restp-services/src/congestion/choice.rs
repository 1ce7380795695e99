//! Every congestion algorithm by name and by header code, and how a controller is made of a choice.

use super::{
    Bbr, BbrParams, Bic, BicParams, CommonParams, Controller, Coupled, Coupling, Cubic, CubicParams,
    FixedRate, HighSpeed, Illinois, RateParams, Reno, Scalable, Tahoe, Unplugged, Vegas, VegasParams, Veno,
    VenoParams, WVegas, WVegasParams, Westwood, WestwoodParams, WestwoodPlus, WestwoodPlusParams, Yeah,
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
    /// Increase and decrease by the sum of the windows (Kelly, Voice 2005; OP-6).
    Coupled(CommonParams),
    /// A fraction of Reno's step on every path (Honda and others 2009).
    Ewtcp(CommonParams),
    /// Increase by the sum, decrease by the own window (Wischik and others 2011).
    Semicoupled(CommonParams),
    /// RFC 6356.
    Lia(CommonParams),
    /// Opportunistic linked increases (Khalili and others 2012).
    Olia(CommonParams),
    /// Balanced linked adaptation (Peng and others 2016).
    Balia(CommonParams),
    /// Weighted Vegas (Cao, Xu, Fu 2012).
    WVegas(WVegasParams),
}

/// The header's Cong field counts twice: with one path, and with several (ResTP §3.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeSpace {
    /// MP? = 0.
    OnePath,
    /// MP? = 1.
    SeveralPaths,
}

use CongestionChoice as Choice;

/// Flight limit where none is given: about 10 Mbit/s over 100 ms with full segments.
const FLIGHT_LIMIT_SEGMENTS: u64 = 100;

impl CongestionChoice {
    /// Every algorithm with its default parameters: in the order of the header codes for one path, then those for
    /// several paths only.
    pub fn all() -> [Self; 23] {
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
            Choice::Coupled(CommonParams::default()),
            Choice::Ewtcp(CommonParams::default()),
            Choice::Semicoupled(CommonParams::default()),
            Choice::Lia(CommonParams::default()),
            Choice::Olia(CommonParams::default()),
            Choice::Balia(CommonParams::default()),
            Choice::WVegas(WVegasParams::default()),
        ]
    }

    /// The name in files, on command lines and in results.
    pub const fn name(&self) -> &'static str {
        self.label().0
    }

    /// The code of the header's Cong field (ResTP §3.1.1; codes from 3 on are the project's); `None` where the field has
    /// none for it.
    pub const fn code(&self, space: CodeSpace) -> Option<u8> {
        match space {
            CodeSpace::OnePath => self.label().1,
            CodeSpace::SeveralPaths => self.label().2,
        }
    }

    /// It looks at the windows of the other paths, and needs several.
    pub const fn is_coupled(&self) -> bool {
        self.label().1.is_none()
    }

    /// Name, code for one path, code for several.
    const fn label(&self) -> (&'static str, Option<u8>, Option<u8>) {
        match self {
            Choice::None { .. } => ("none", Some(0), Some(0)),
            Choice::NewReno(_) => ("newreno", Some(1), Some(1)),
            Choice::Bic(_) => ("bic", Some(2), Some(10)),
            Choice::Cubic(_) => ("cubic", Some(3), Some(9)),
            Choice::Tahoe(_) => ("tahoe", Some(4), None),
            Choice::Reno(_) => ("reno", Some(5), None),
            Choice::Vegas(_) => ("vegas", Some(6), Some(11)),
            Choice::Westwood(_) => ("westwood", Some(7), None),
            Choice::WestwoodPlus(_) => ("westwood+", Some(8), Some(12)),
            Choice::Veno(_) => ("veno", Some(9), None),
            Choice::Scalable(_) => ("scalable", Some(10), None),
            Choice::HighSpeed(_) => ("highspeed", Some(11), None),
            Choice::Yeah(_) => ("yeah", Some(12), None),
            Choice::Illinois(_) => ("illinois", Some(13), Some(13)),
            Choice::Bbr(_) => ("bbr", Some(14), Some(14)),
            Choice::Rate(_) => ("rate", Some(15), Some(15)),
            Choice::Coupled(_) => ("coupled", None, Some(2)),
            Choice::Ewtcp(_) => ("ewtcp", None, Some(3)),
            Choice::Semicoupled(_) => ("semicoupled", None, Some(4)),
            Choice::Lia(_) => ("lia", None, Some(5)),
            Choice::Olia(_) => ("olia", None, Some(6)),
            Choice::Balia(_) => ("balia", None, Some(7)),
            Choice::WVegas(_) => ("wvegas", None, Some(8)),
        }
    }

    /// The algorithm called `name`, with default parameters.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::all().into_iter().find(|choice| choice.name() == name)
    }

    /// The algorithm with this header code, with default parameters.
    pub fn from_code(code: u8, space: CodeSpace) -> Option<Self> {
        Self::all()
            .into_iter()
            .find(|choice| choice.code(space) == Some(code))
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
            | Choice::Illinois(params)
            | Choice::Coupled(params)
            | Choice::Ewtcp(params)
            | Choice::Semicoupled(params)
            | Choice::Lia(params)
            | Choice::Olia(params)
            | Choice::Balia(params) => Some(params),
            Choice::WVegas(params) => Some(&mut params.common),
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
        let coupled = |coupling, params| Controller::Coupled(Coupled::new(coupling, params, segment_bytes));
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
            Choice::Coupled(params) => coupled(Coupling::Fully, params),
            Choice::Ewtcp(params) => coupled(Coupling::Ewtcp, params),
            Choice::Semicoupled(params) => coupled(Coupling::Semicoupled, params),
            Choice::Lia(params) => coupled(Coupling::Lia, params),
            Choice::Olia(params) => coupled(Coupling::Olia, params),
            Choice::Balia(params) => coupled(Coupling::Balia, params),
            Choice::WVegas(params) => Controller::WVegas(WVegas::new(params, segment_bytes)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_codes_round_trip() {
        for choice in CongestionChoice::all() {
            assert_eq!(CongestionChoice::from_name(choice.name()), Some(choice));
            for space in [CodeSpace::OnePath, CodeSpace::SeveralPaths] {
                if let Some(code) = choice.code(space) {
                    assert_eq!(CongestionChoice::from_code(code, space), Some(choice));
                }
            }
        }
        assert_eq!(CongestionChoice::from_name("NewReno"), None);
        assert_eq!(CongestionChoice::from_code(16, CodeSpace::OnePath), None);
    }

    /// Each field of four bits is full, so a new algorithm has to displace one.
    #[test]
    fn every_code_of_either_space_is_taken_once() {
        for space in [CodeSpace::OnePath, CodeSpace::SeveralPaths] {
            let all = CongestionChoice::all();
            let mut codes: Vec<_> = all.iter().filter_map(|choice| choice.code(space)).collect();
            codes.sort_unstable();
            assert_eq!(codes, (0..16).collect::<Vec<u8>>(), "{space:?}");
        }
        assert_eq!(
            CongestionChoice::from_code(2, CodeSpace::SeveralPaths)
                .unwrap()
                .name(),
            "coupled"
        ); // OP-6
    }
}
