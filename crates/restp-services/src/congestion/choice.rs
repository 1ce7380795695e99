//! The table of congestion algorithms, and all that follows from it: the choice, the controller, names, header codes.

use super::*;
use crate::recovery::FastRecovery;
use restp_base::time::Time;

/// What an algorithm steers by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// The window of its own path.
    Window,
    /// Its window beside those of the other paths: it needs several ([`PathView::siblings`]).
    Coupled,
    /// A rate. Its window is only a bound: without pacing it does not work.
    Rate,
}

/// The header's Cong field counts twice: with one path, and with several (ResTP §3.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeSpace {
    /// MP? = 0.
    OnePath,
    /// MP? = 1.
    SeveralPaths,
}

/// What is known of an algorithm before a controller is built.
#[derive(Clone, Copy)]
struct Facts {
    name: &'static str,
    one_path: Option<u8>,
    several_paths: Option<u8>,
    control: Control,
    fast_recovery: FastRecovery,
}

/// A header code, or `-` for none.
macro_rules! code {
    (-) => {
        None
    };
    ($code:literal) => {
        Some($code)
    };
}

/// Start and growth among an algorithm's parameters: all of them, the field `common`, or `-` where there is no window.
macro_rules! common {
    ($params:ident all) => {
        Some($params)
    };
    ($params:ident common) => {
        Some(&mut $params.common)
    };
    ($params:ident -) => {{
        let _ = $params;
        None
    }};
}

/// Makes of each row a variant of [`CongestionChoice`] and one of [`Controller`], and every match over them.
macro_rules! algorithms {
    ($(
        $(#[$doc:meta])*
        $variant:ident($params:ident) $name:literal $one:tt $several:tt $control:ident $recovery:ident $common:tt
            $controller:ident$(($coupling:expr))?;
    )+) => {
        /// Which algorithm controls a path, with its parameters.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum CongestionChoice {
            $($(#[$doc])* $variant($params),)+
            /// An algorithm from outside this crate.
            Custom(CustomCongestion),
        }

        /// The controller a path owns. An enum, because it is asked for every packet.
        #[derive(Debug)]
        pub enum Controller {
            $($(#[$doc])* $variant($controller),)+
            /// An algorithm from outside this crate.
            Custom(Box<dyn Congestion + Send>),
        }

        /// How many algorithms there are.
        const COUNT: usize = [$($name),+].len();

        impl CongestionChoice {
            /// Every algorithm of this crate with its default parameters, in the order of the table.
            pub fn all() -> [Self; COUNT] {
                [$(CongestionChoice::$variant($params::default())),+]
            }

            /// A controller for a path whose full segments carry `segment_bytes`.
            pub fn build(&self, segment_bytes: u64) -> Controller {
                match self {
                    $(CongestionChoice::$variant(params) => {
                        Controller::$variant($controller::new($($coupling,)? params, segment_bytes))
                    })+
                    CongestionChoice::Custom(custom) => Controller::Custom(custom.build(segment_bytes)),
                }
            }

            /// Start and growth, for the algorithms with a window.
            pub fn common(&mut self) -> Option<&mut CommonParams> {
                match self {
                    $(CongestionChoice::$variant(params) => common!(params $common),)+
                    CongestionChoice::Custom(_) => None,
                }
            }

            fn facts(&self) -> Facts {
                match self {
                    $(CongestionChoice::$variant(_) => Facts {
                        name: $name,
                        one_path: code!($one),
                        several_paths: code!($several),
                        control: Control::$control,
                        fast_recovery: FastRecovery::$recovery,
                    },)+
                    CongestionChoice::Custom(custom) => Facts {
                        name: custom.name(),
                        one_path: None,
                        several_paths: None,
                        control: custom.control(),
                        fast_recovery: FastRecovery::NewReno,
                    },
                }
            }
        }

        impl Congestion for Controller {
            fn on(&mut self, event: &CongestionEvent, view: &PathView<'_>) {
                match self {
                    $(Controller::$variant(inner) => inner.on(event, view),)+
                    Controller::Custom(inner) => inner.on(event, view),
                }
            }
            fn window_bytes(&self) -> u64 {
                match self {
                    $(Controller::$variant(inner) => inner.window_bytes(),)+
                    Controller::Custom(inner) => inner.window_bytes(),
                }
            }
            fn pacing(&self) -> Option<Rate> {
                match self {
                    $(Controller::$variant(inner) => inner.pacing(),)+
                    Controller::Custom(inner) => inner.pacing(),
                }
            }
            fn delivers(&self) -> Option<Rate> {
                match self {
                    $(Controller::$variant(inner) => inner.delivers(),)+
                    Controller::Custom(inner) => inner.delivers(),
                }
            }
            fn is_starting(&self) -> bool {
                match self {
                    $(Controller::$variant(inner) => inner.is_starting(),)+
                    Controller::Custom(inner) => inner.is_starting(),
                }
            }
            fn answers(&self) -> u64 {
                match self {
                    $(Controller::$variant(inner) => inner.answers(),)+
                    Controller::Custom(inner) => inner.answers(),
                }
            }
            fn snapshot(&self) -> CongestionSnapshot {
                match self {
                    $(Controller::$variant(inner) => inner.snapshot(),)+
                    Controller::Custom(inner) => inner.snapshot(),
                }
            }
        }
    };
}

algorithms! {
    // Variant and parameters            name     Cong: one path, several   steers by  fast recovery  common  controller

    /// No congestion control, only a limit on what is in flight (OP-50).
    None(FlightLimit)                    "none"         0   0  Window   NewReno  -       FixedWindow;
    /// RFC 5681 and 6582.
    NewReno(CommonParams)                "newreno"      1   1  Window   NewReno  all     Reno;
    /// Binary increase (Xu, Harfoush, Rhee; INFOCOM 2004).
    Bic(BicParams)                       "bic"          2  10  Window   NewReno  common  Bic;
    /// RFC 9438.
    Cubic(CubicParams)                   "cubic"        3   9  Window   NewReno  common  Cubic;
    /// Slow start again after every loss (Jacobson 1988).
    Tahoe(CommonParams)                  "tahoe"        4   -  Window   None     all     Tahoe;
    /// Fast recovery that ends with the first new acknowledgement (RFC 5681).
    Reno(CommonParams)                   "reno"         5   -  Window   Reno     all     Reno;
    /// Holds a few segments in the queue by watching the round-trip time (Brakmo, Peterson 1995).
    Vegas(VegasParams)                   "vegas"        6  11  Window   NewReno  common  Vegas;
    /// Threshold from a bandwidth estimate (Mascolo and others, MobiCom 2001).
    Westwood(WestwoodParams)             "westwood"     7   -  Window   Reno     common  Westwood;
    /// Westwood sampled once per round trip (Grieco, Mascolo 2004).
    WestwoodPlus(WestwoodPlusParams)     "westwood+"    8  12  Window   Reno     common  WestwoodPlus;
    /// Reno that tells random loss from congestion by Vegas' measure (Fu, Liew 2003).
    Veno(VenoParams)                     "veno"         9   -  Window   Reno     common  Veno;
    /// Multiplicative increase (Kelly 2003).
    Scalable(CommonParams)               "scalable"    10   -  Window   NewReno  all     Scalable;
    /// RFC 3649.
    HighSpeed(CommonParams)              "highspeed"   11   -  Window   NewReno  all     HighSpeed;
    /// Scalable with a limit on its queue (Baiocchi and others 2007).
    Yeah(CommonParams)                   "yeah"        12   -  Window   NewReno  all     Yeah;
    /// Step sizes from the queueing delay (Liu, Başar, Srikant 2006).
    Illinois(CommonParams)               "illinois"    13  13  Window   NewReno  all     Illinois;
    /// A model of bottleneck bandwidth and round-trip time (draft-ietf-ccwg-bbr, version 3).
    Bbr(BbrParams)                       "bbr"         14  14  Rate     NewReno  -       Bbr;
    /// BBR version 1, as Linux ships it (draft-cardwell-iccrg-bbr-congestion-control-00).
    Bbr1(Bbr1Params)                     "bbr1"         -   -  Rate     NewReno  -       Bbr1;
    /// Delay where it is alone, CUBIC beside loss-based neighbours.
    Adaptive(AdaptiveParams)             "adaptive"     -   -  Rate     NewReno  -       Adaptive;
    /// Open loop: a configured rate (ResTP §3.5.9).
    Rate(RateParams)                     "rate"        15  15  Rate     NewReno  -       FixedRate;
    /// The rate of a path with a short round trip on one with a long one (Caini, Firrincieli 2004).
    Hybla(HyblaParams)                   "hybla"        -   -  Window   NewReno  common  Hybla;
    /// SCTP's: bytes acknowledged while the window was full (RFC 9260 §7.2).
    ByteCounting(ByteCountingParams)     "byte-counting" - -  Window   NewReno  -       ByteCounting;
    /// A consumer's: half after a loss, and growth goes on at once (ITP §V).
    InterestWindow(InterestWindowParams) "interest-window" - - Window  NewReno  -       InterestWindow;
    /// Increase and decrease by the sum of the windows (Kelly, Voice 2005; OP-6).
    Coupled(CommonParams)                "coupled"      -   2  Coupled  NewReno  all     Coupled(Coupling::Fully);
    /// A fraction of Reno's step on every path (Honda and others 2009).
    Ewtcp(CommonParams)                  "ewtcp"        -   3  Coupled  NewReno  all     Coupled(Coupling::Ewtcp);
    /// Increase by the sum, decrease by the own window (Wischik and others 2011).
    Semicoupled(CommonParams)            "semicoupled"  -   4  Coupled  NewReno  all     Coupled(Coupling::Semicoupled);
    /// RFC 6356.
    Lia(CommonParams)                    "lia"          -   5  Coupled  NewReno  all     Coupled(Coupling::Lia);
    /// Opportunistic linked increases (Khalili and others 2012).
    Olia(CommonParams)                   "olia"         -   6  Coupled  NewReno  all     Coupled(Coupling::Olia);
    /// Balanced linked adaptation (Peng and others 2016).
    Balia(CommonParams)                  "balia"        -   7  Coupled  NewReno  all     Coupled(Coupling::Balia);
    /// Weighted Vegas (Cao, Xu, Fu 2012).
    WVegas(WVegasParams)                 "wvegas"       -   8  Coupled  NewReno  common  WVegas;
}

impl CongestionChoice {
    /// The name in files, on command lines and in results.
    pub fn name(&self) -> &'static str {
        self.facts().name
    }

    /// Its own code of the header's Cong field (ResTP §3.1.1; codes from 3 on are the project's). Most fields are taken, so
    /// an algorithm may have none.
    pub fn code(&self, space: CodeSpace) -> Option<u8> {
        match space {
            CodeSpace::OnePath => self.facts().one_path,
            CodeSpace::SeveralPaths => self.facts().several_paths,
        }
    }

    /// It looks at the windows of the other paths, and needs several.
    pub fn is_coupled(&self) -> bool {
        self.facts().control == Control::Coupled
    }

    /// It looks at the other paths, where there are several.
    pub fn looks_at_siblings(&self) -> bool {
        self.is_coupled() || self.adapts()
    }

    /// It goes from one mode to another by what it finds on its path.
    pub fn adapts(&self) -> bool {
        matches!(self, CongestionChoice::Adaptive(_))
    }

    /// Its rate is the decision and its window only a bound: without pacing it does not work.
    pub fn needs_pacing(&self) -> bool {
        self.facts().control == Control::Rate
    }

    /// The fast recovery that belongs to the algorithm, where losses are found by duplicates.
    pub fn fast_recovery(&self) -> FastRecovery {
        self.facts().fast_recovery
    }

    /// The algorithm of this crate called `name`, with default parameters.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::all().into_iter().find(|choice| choice.name() == name)
    }

    /// The algorithm with this header code, with default parameters.
    pub fn from_code(code: u8, space: CodeSpace) -> Option<Self> {
        Self::all()
            .into_iter()
            .find(|choice| choice.code(space) == Some(code))
    }
}

impl Controller {
    /// It hears only of acknowledgements that move the path's own cumulative point (CMT §1.6).
    pub fn hears_only_advances(&self) -> bool {
        matches!(self, Controller::ByteCounting(_))
    }

    /// What it shrinks by in idle time counts once for every timeout that passes (RFC 9260 §7.2.1; Linux' CUBIC).
    pub fn shrinks_while_idle(&self) -> bool {
        match self {
            Controller::ByteCounting(_) => true,
            Controller::Cubic(cubic) => cubic.fades(),
            Controller::Adaptive(adaptive) => adaptive.fades(),
            _ => false,
        }
    }

    /// The slow start threshold in bytes, for who chooses paths by it; none from controllers that nobody chooses by.
    pub fn threshold_bytes(&self) -> Option<u64> {
        match self {
            Controller::ByteCounting(counting) => Some(counting.threshold_bytes()),
            _ => None,
        }
    }

    /// What siblings may know of this path's losses; zero where nobody counts them. See
    /// [`Sibling`](crate::view::Sibling).
    pub fn loss_interval_bytes(&self) -> u64 {
        match self {
            Controller::Coupled(coupled)
            | Controller::Ewtcp(coupled)
            | Controller::Semicoupled(coupled)
            | Controller::Lia(coupled)
            | Controller::Olia(coupled)
            | Controller::Balia(coupled) => coupled.loss_interval_bytes(),
            _ => 0,
        }
    }

    /// What siblings may know of its last reduction beside somebody else. See [`Sibling`](crate::view::Sibling).
    pub fn cut_at(&self) -> Option<Time> {
        match self {
            Controller::Adaptive(adaptive) => adaptive.cut_at(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPACES: [CodeSpace; 2] = [CodeSpace::OnePath, CodeSpace::SeveralPaths];

    #[test]
    fn names_and_codes_round_trip() {
        for choice in CongestionChoice::all() {
            assert_eq!(CongestionChoice::from_name(choice.name()), Some(choice.clone()));
            for space in SPACES {
                if let Some(code) = choice.code(space) {
                    assert_eq!(CongestionChoice::from_code(code, space), Some(choice.clone()));
                }
            }
        }
        assert_eq!(CongestionChoice::from_name("NewReno"), None);
        assert_eq!(CongestionChoice::from_code(16, CodeSpace::OnePath), None);
    }

    /// Code 1 is also what stands for an algorithm without a code, code 2 of several paths is OP-6.
    #[test]
    fn codes_fit_their_field_and_stand_for_one_algorithm() {
        for space in SPACES {
            let all = CongestionChoice::all();
            let codes: Vec<_> = all.iter().filter_map(|choice| choice.code(space)).collect();
            assert!(codes.iter().all(|code| *code < 16), "{space:?}: {codes:?}");
            let own = |code: &u8| CongestionChoice::from_code(*code, space).map(|choice| choice.name());
            let mut names: Vec<_> = codes.iter().map(own).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), codes.len(), "{space:?}: {codes:?}");
            assert_eq!(own(&1), Some("newreno"));
        }
        let coupled = CongestionChoice::from_code(2, CodeSpace::SeveralPaths);
        assert_eq!(coupled.map(|choice| choice.name()), Some("coupled"));
    }

    #[test]
    fn who_needs_several_paths_or_pacing_says_so() {
        let all = CongestionChoice::all();
        let those = |is: fn(&CongestionChoice) -> bool| -> Vec<_> {
            let chosen = all.iter().filter(|choice| is(choice));
            chosen.map(CongestionChoice::name).collect()
        };
        let coupled = [
            "coupled",
            "ewtcp",
            "semicoupled",
            "lia",
            "olia",
            "balia",
            "wvegas",
        ];
        assert_eq!(those(CongestionChoice::is_coupled), coupled);
        assert_eq!(
            those(CongestionChoice::needs_pacing),
            ["bbr", "bbr1", "adaptive", "rate"]
        );
    }
}
