//! The largest congestion window that an algorithm can have, from what the wire shows. It errs upwards only: it grows
//! with everything acknowledged, and shrinks only by a loss that the network really caused and the sender answered.
//!
//! No algorithm grows faster than slow start, which adds what is acknowledged (RFC 5681 §3.1), but BIC as its paper prints it. Each loss episode leaves
//! the share of the window that the algorithm's own paper names, and a timeout one segment.

use super::measured::Measured;
use super::outstanding::News;
use restp_base::time::{Duration, Time};
use restp_proto::composition::Composition;
use restp_services::congestion::{
    BicProfile, CommonParams, CongestionChoice, Growth, WestwoodParams, WestwoodPlusParams,
};
use restp_services::loss_handling::LossHandling;
use restp_services::path_management::BASE_BYTES;
use restp_services::recovery::Reordering;

/// Segments of BBR's first window (RFC 6928). It leaps to a multiple when the first round shows a wide path
/// (docs/services/congestion.md).
const BBR_FIRST: u64 = 10;

/// Hybla's slow start counts ρ up to this, as Linux does.
const LARGEST_EXPONENT: f64 = 16.0;

/// An upper bound of one sender's congestion window.
#[derive(Clone, Debug)]
pub struct Envelope {
    rules: Rules,
    segment: u64,
    /// What a segment is taken to carry while the path has not been asked for more.
    least: u64,
    window: u64,
    threshold: u64,
    /// Acknowledged in avoidance since the window last grew.
    credit: u64,
    acked: u64,
    /// What the sender has measured on its path.
    measured: Measured,
    /// Window and threshold before the last cut, which may be taken back.
    uncut: [u64; 2],
    /// When the last cut came, if by a timeout.
    timed_out: Option<Time>,
    /// Of what the first report told that left once: the longest round trip that was measured surely.
    first: Option<Duration>,
}

/// How a window changes.
#[derive(Clone, Copy, Debug)]
struct Rules {
    initial_segments: u64,
    threshold: u64,
    /// Avoidance adds one segment for each window acknowledged. Otherwise avoidance counts as slow start.
    linear: bool,
    /// Each acknowledgement is worth up to a segment, however little it covers.
    by_acks: bool,
    /// What is acknowledged counts so many thousandths.
    steps: u64,
    /// An answer to a retransmission that comes sooner than any round trip is one to what was taken for lost.
    acquits: bool,
    /// What a loss episode leaves of the window, in thousandths. None: nothing is taken for sure.
    kept: Option<u64>,
    /// What it leaves at least, in segments.
    least: u64,
    /// What the first round may end with, in segments.
    leap: u64,
    /// Nothing changes it.
    fixed: bool,
    /// Reductions lead to what the path delivers in its shortest round trip (TC §2.3.6, §2.3.7).
    estimates: bool,
    /// Growth counts in round trips of this length (Caini, Firrincieli 2004).
    reference: Option<Duration>,
}

impl Envelope {
    /// The first window of a sender with this composition, whose connection begins. None: nothing bounds its flight.
    pub fn new(composition: &Composition, began: Time) -> Option<Self> {
        let mut rules = Rules::of(&composition.congestion)?;
        if composition.loss_handling != LossHandling::Congestion {
            rules.kept = None;
        }
        rules.acquits = composition.reordering != Reordering::Threshold;
        let segment = u64::from(composition.segment_bytes);
        let least = if composition.mtu_discovery {
            u64::from(BASE_BYTES)
        } else {
            segment
        };
        Some(Envelope {
            segment,
            least: least.min(segment),
            window: rules.initial_segments.saturating_mul(segment),
            threshold: rules.threshold,
            credit: 0,
            acked: 0,
            measured: Measured::new(began),
            uncut: [0; 2],
            timed_out: None,
            first: None,
            rules,
        })
    }

    /// The sender's clock leaps.
    pub fn leap(&mut self, by: Duration) {
        self.measured.leap(by);
    }

    /// Bytes that may be in flight.
    pub fn bytes(&self) -> u64 {
        // A smaller window takes its step after fewer bytes, so it may be one step ahead of this larger one.
        let ahead = if self.rules.linear && self.window >= self.threshold {
            self.segment
        } else {
            0
        };
        self.window.saturating_add(ahead)
    }

    /// One acknowledgement newly covers `bytes`, and what left last `again` ago. `rtt`: see [`Measured::on_ack`].
    pub fn on_acked(
        &mut self,
        at: Time,
        News {
            bytes,
            rtt,
            again,
            first,
        }: News,
    ) {
        // The set-up may have measured a round trip where no report has yet.
        let is_soon = |again| {
            self.first
                .is_none_or(|first| again < first.min(self.measured.shortest(at)))
        };
        let is_answered = again.is_some_and(is_soon);
        // Something that left once, and before the timeout, has only been late (RFC 5682 §3; Linux: FLAG_ORIG_SACK_ACKED).
        let left_before = |timeout| first.is_some_and(|age| at.since(timeout) < age);
        if self.rules.acquits && (is_answered || self.timed_out.is_some_and(left_before)) {
            let [window, threshold] = std::mem::take(&mut self.uncut); // the cut is taken back (RFC 3522)
            self.window = self.window.max(window);
            self.threshold = self.threshold.max(threshold);
        }
        self.first = self.first.or(first);
        if self.rules.estimates {
            // A duplicate stands for a segment. An episode that has cut the window ends at the threshold.
            self.measured.on_ack(at, bytes.max(self.segment), rtt);
            self.window = self.window.max(self.measured.product(at));
        }
        if self.rules.fixed || bytes == 0 {
            return;
        }
        if let Some(reference) = self.rules.reference {
            self.measured.on_ack(at, bytes, rtt);
            return self.grow_by_rho(rho(self.measured.shortest(at), reference), bytes);
        }
        if self.rules.acquits && !self.rules.estimates {
            self.measured.on_ack(at, bytes, rtt);
        }
        self.acked += bytes;
        let segments = self.rules.leap;
        if segments > 0 && self.acked + self.least > self.rules.initial_segments * self.least {
            self.window = self.window.max(segments * self.segment);
            self.rules.leap = 0;
        }
        let worth = if self.rules.by_acks {
            bytes.max(self.segment)
        } else {
            bytes
        } * self.rules.steps
            / 1000;
        let slow_start = match self.rules.linear {
            true => worth.min(self.threshold.saturating_sub(self.window)),
            false => worth,
        };
        self.window += slow_start;
        self.credit += worth - slow_start;
        if self.credit >= self.window {
            self.credit -= self.window;
            self.window += self.segment;
        }
    }

    /// The window begins ρ times as wide, grows by 2^ρ − 1 for what is acknowledged up to the threshold, which is as much
    /// wider, and by ρ² segments per window beyond it.
    fn grow_by_rho(&mut self, rho: f64, bytes: u64) {
        if std::mem::replace(&mut self.acked, bytes) == 0 {
            self.window = (self.window as f64 * rho) as u64;
            self.threshold = (self.threshold as f64 * rho) as u64;
        }
        let worth = if self.rules.by_acks {
            bytes.max(self.segment)
        } else {
            bytes
        } as f64;
        let (segment, gain) = (self.segment as f64, rho.min(LARGEST_EXPONENT).exp2() - 1.0);
        let room = self.threshold.saturating_sub(self.window) as f64;
        let slow_start = (worth * gain).min(room);
        let left = (worth - slow_start / gain) * rho * rho;
        let after = |window: f64| window + segment * left / window;
        // A window of two segments, the least beyond a threshold, takes steps so much larger that it may overtake.
        let window = after(self.window as f64 + slow_start).max(after(2.0 * segment));
        self.window = window.ceil() as u64;
    }

    /// A loss episode began. If the network had lost nothing its cut may be taken back, and the last one no more.
    pub fn on_episode(&mut self) {
        (self.uncut, self.timed_out) = ([0; 2], None);
    }

    /// A loss episode began, and the network had lost the segment (RFC 5681 §3.1 (4): two segments remain).
    pub fn on_loss(&mut self, at: Time) {
        if let Some(kept) = self.rules.kept {
            (self.uncut, self.timed_out) = ([self.window, self.threshold], None);
            self.threshold = self.remaining(kept, at);
            let lowered = self.window.min(self.threshold);
            self.window = if self.rules.estimates {
                self.threshold
            } else {
                lowered
            };
            self.credit = 0;
        }
    }

    /// The retransmission timer ran out for a segment that the network had lost (RFC 5681 §3.1).
    pub fn on_timeout(&mut self, at: Time) {
        if let Some(kept) = self.rules.kept {
            (self.uncut, self.timed_out) = ([self.window, self.threshold], Some(at));
            if self.window > self.segment {
                self.threshold = self.remaining(kept, at);
            }
            self.window = self.segment;
            self.credit = 0;
        }
    }

    fn remaining(&self, kept: u64, at: Time) -> u64 {
        let share = self.window / 1000 * kept + (self.window % 1000 * kept).div_ceil(1000);
        let left = if self.rules.estimates {
            self.measured.product(at)
        } else {
            share
        };
        left.max(self.rules.least * self.segment)
    }
}

/// Hybla's ρ: how many times as long as that of the reference path the round trip is, 60 s at most.
fn rho(rtt: Duration, reference: Duration) -> f64 {
    let rho = rtt.as_nanos() as f64 / reference.as_nanos().max(1) as f64;
    rho.clamp(1.0, 2400.0)
}

impl Rules {
    /// The algorithm's own numbers. None where nothing here bounds it, as the open loop, which has only its pace.
    fn of(choice: &CongestionChoice) -> Option<Self> {
        use CongestionChoice as Choice;
        let window = |common: CommonParams, kept: u64| Rules {
            initial_segments: common.initial_window_segments,
            threshold: common.initial_threshold_bytes,
            linear: false,
            by_acks: common.growth == Growth::Acks,
            steps: 1000,
            acquits: false,
            kept: Some(kept),
            least: 2,
            leap: 0,
            fixed: false,
            estimates: false,
            reference: None,
        };
        let reno = |common: CommonParams| Rules {
            linear: common.growth == Growth::Bytes,
            ..window(common, 500) // RFC 5681 (4)
        };
        Some(match choice.clone() {
            // An open loop has its pace. What comes from outside has rules of its own, and no case can name it.
            Choice::Rate(_) | Choice::Custom(_) => return None,
            Choice::Hybla(params) => Rules {
                reference: Some(params.reference_rtt),
                ..reno(params.common)
            },
            Choice::Westwood(WestwoodParams { common, .. })
            | Choice::WestwoodPlus(WestwoodPlusParams { common, .. }) => Rules {
                estimates: true,
                ..reno(common)
            },
            Choice::None(limit) => Rules {
                initial_segments: limit.flight_limit_segments,
                fixed: true,
                kept: None,
                ..window(CommonParams::default(), 1000)
            },
            Choice::Bbr(params) => Rules {
                initial_segments: BBR_FIRST,
                leap: BBR_FIRST * u64::from(params.leap),
                kept: None,
                ..window(CommonParams::default(), 1000)
            },
            // Doubles by its gain of 2 / ln 2 (tcp_bbr.c).
            Choice::Bbr1(_) => Rules {
                initial_segments: BBR_FIRST,
                leap: BBR_FIRST * 4,
                kept: None,
                ..window(CommonParams::default(), 1000)
            },
            Choice::Adaptive(_) => Rules {
                kept: None, // a trial that fails gives the window before it back
                ..window(CommonParams::default(), 1000)
            },
            Choice::NewReno(common) | Choice::Reno(common) | Choice::Tahoe(common) => reno(common),
            // Four segments at most at first (RFC 9260 §7.2.1), and at least after a loss (§7.2.3).
            Choice::ByteCounting(_) => Rules {
                initial_segments: 4,
                least: 4,
                ..window(CommonParams::default(), 500)
            },
            // Half of its own window, which need not be full; a segment for each answer, however little it covers (ITP §V).
            Choice::InterestWindow(_) => Rules {
                initial_segments: 1,
                by_acks: true,
                ..window(CommonParams::default(), 500)
            },
            Choice::Veno(params) => Rules {
                kept: Some(800), // a loss without a queue behind it (Fu, Liew 2003)
                ..reno(params.common)
            },
            Choice::Cubic(params) => window(params.common, 700), // RFC 9438 §4.6
            // Xu, Harfoush, Rhee 2004. As printed, Smax = 32 segments per round trip from a window of 14 on.
            Choice::Bic(params) if params.profile == BicProfile::Paper => Rules {
                steps: 1000 * 32 / 14 + 1,
                ..window(params.common, 875)
            },
            Choice::Bic(params) => window(params.common, 800),
            Choice::Scalable(common) => window(common, 875), // Kelly 2003
            Choice::HighSpeed(common) => window(common, 900), // RFC 3649 §5, b(w) at the largest window
            Choice::Yeah(common) => window(common, 875),     // Baiocchi and others 2007
            Choice::Illinois(common) => window(common, 875), // Liu, Başar, Srikant 2006, least β
            // Half of its own window at least, whatever the others hold.
            Choice::Coupled(common)
            | Choice::Ewtcp(common)
            | Choice::Semicoupled(common)
            | Choice::Lia(common)
            | Choice::Olia(common)
            | Choice::Balia(common) => window(common, 500),
            Choice::Vegas(params) => window(params.common, 750), // Brakmo, Peterson 1995, the smallest cut
            Choice::WVegas(params) => window(params.common, 750),
        })
    }
}
