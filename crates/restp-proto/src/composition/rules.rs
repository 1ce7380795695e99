//! What does not go together: one table, in which each rule names its reason, its source and a way out.
//!
//! ResTP §14 asks for sequence numbers beside ordering, congestion control, windows and FEC. That needs no rule:
//! the header carries numbers whenever one of these is on (OP-14).

use super::Composition;
use restp_base::time::Duration;
use restp_services::ack::{Acknowledgement, Detail, Schedule};
use restp_services::congestion::CongestionChoice;
use restp_services::connection_management::Establishment;
use restp_services::flow_control::FlowControl;
use restp_services::framing::Framing;
use restp_services::loss_handling::LossHandling;
use restp_services::ordering::Ordering;
use restp_services::path_management::PathMode;
use restp_services::recovery::RecoveryChoice;
use restp_services::reliability::Reliability;
use std::fmt;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It contradicts itself, or the header cannot say it.
    Impossible,
    /// It would not work.
    Forbidden,
    /// It makes sense, but a part of it does not exist yet. Such rows go when the part comes.
    NotBuilt,
    /// It works badly: allowed with a warning.
    Discouraged,
}

/// One rule.
pub struct Rule {
    /// Short name, stable.
    pub id: &'static str,
    /// What follows.
    pub verdict: Verdict,
    /// Where it comes from; `project` where it is our own.
    pub source: &'static str,
    /// The keys it is about.
    pub about: &'static [&'static str],
    /// Why.
    pub reason: &'static str,
    /// Keys and values of the nearest choice without this fault.
    pub instead: &'static [(&'static str, &'static str)],
    /// True for a composition at fault.
    pub broken: fn(&Composition) -> bool,
}

/// Every rule.
pub static RULES: &[Rule] = &[
    // What an acknowledgement is made of (ResTP §12.2).
    Rule {
        id: "detail-alone",
        verdict: Verdict::Impossible,
        source: "ResTP §3.5.9",
        about: &["ack"],
        reason: "holes, blocks and repeats travel on an acknowledgement and cannot do without one",
        instead: &[("ack", "positive+sack")],
        broken: |c| !c.ack.is_on() && c.ack != Acknowledgement::NONE,
    },
    Rule {
        id: "ack-unused",
        verdict: Verdict::Impossible,
        source: "ResTP §3.5.9",
        about: &["flow-control", "reliability", "ack", "congestion"],
        reason: "nobody uses the acknowledgements, and the header has no bit for them alone",
        instead: &[("ack", "none")],
        broken: |c| c.ack.is_on() && !needs_ack(c),
    },
    Rule {
        id: "reliable-needs-ack",
        verdict: Verdict::Forbidden,
        source: "ResTP §3.5.9",
        about: &["reliability", "ack"],
        reason: "a sender that repeats has to learn what arrived",
        instead: &[("ack", "positive+sack")],
        broken: |c| c.reliability.repeats() && !c.ack.is_on(),
    },
    Rule {
        id: "congestion-needs-ack",
        verdict: Verdict::Forbidden,
        source: "ResTP §3.5.9",
        about: &["ack", "congestion"],
        reason: "congestion control lives on feedback",
        instead: &[("ack", "positive+sack")],
        broken: |c| controlled(c) && !c.ack.is_on(),
    },
    Rule {
        id: "window-needs-ack",
        verdict: Verdict::Forbidden,
        source: "ResTP §3.5.9",
        about: &["flow-control", "ack"],
        reason: "a window opens only by acknowledgements",
        instead: &[("ack", "positive+sack")],
        broken: |c| windowed(c) && !c.ack.is_on(),
    },
    // Partial reliability (ResTP §11, §12.2, §14).
    Rule {
        id: "partial-needs-partial-order",
        verdict: Verdict::Impossible,
        source: "ResTP §3.5.8",
        about: &["ordering", "reliability"],
        reason: "partial reliability drops what the receiver skipped, and only a partially ordered one skips",
        instead: &[("ordering", "partial")],
        broken: |c| c.reliability == Reliability::Partial && c.ordering != Ordering::Partial,
    },
    Rule {
        id: "full-means-no-skipping",
        verdict: Verdict::Impossible,
        source: "ResTP §3.5.8",
        about: &["ordering", "reliability"],
        reason: "ARQ and PAR in one header mean partial reliability, so full reliability cannot skip holes",
        instead: &[("ordering", "ordered")],
        broken: |c| c.reliability.is_full() && c.ordering == Ordering::Partial,
    },
    Rule {
        id: "partial-needs-selective",
        verdict: Verdict::Forbidden,
        source: "ResTP §3.7",
        about: &["reliability", "ack"],
        reason: "to repeat in time the sender has to see every hole, so partial reliability needs SACK or SNACK",
        instead: &[("ack", "positive+sack")],
        broken: |c| {
            c.reliability == Reliability::Partial && matches!(c.ack.detail, Detail::Pointer | Detail::Nak)
        },
    },
    Rule {
        id: "partial-needs-fixed",
        verdict: Verdict::Forbidden,
        source: "ResTP §3.7",
        about: &["framing", "reliability"],
        reason: "a skipped hole must be whole frames, so partial reliability needs fixed framing",
        instead: &[("framing", "fixed")],
        broken: |c| c.reliability == Reliability::Partial && c.framing != Framing::Fixed,
    },
    // How losses are found (ResTP §11.2, §12.2).
    Rule {
        id: "delayed-fast-retransmit",
        verdict: Verdict::Forbidden,
        source: "ResTP §3.5.9",
        about: &["ack", "recovery"],
        reason: "delayed acknowledgements make duplicates too rare to count",
        instead: &[("recovery", "timer")],
        broken: |c| delayed(c) && c.recovery == RecoveryChoice::DuplicateAck,
    },
    Rule {
        id: "recovery-needs-ack",
        verdict: Verdict::Forbidden,
        source: "ResTP §3.5.8",
        about: &["ack", "recovery"],
        reason: "without acknowledgements there is nothing to find losses by",
        instead: &[("recovery", "timer")],
        broken: |c| !c.ack.is_on() && c.recovery != RecoveryChoice::Timer,
    },
    Rule {
        id: "pipe-needs-selective",
        verdict: Verdict::Forbidden,
        source: "RFC 6675 §3",
        about: &["ack", "recovery"],
        reason: "the pipe rule counts later segments reported received, which only NAK, SACK or SNACK report",
        instead: &[("ack", "positive+sack")],
        broken: |c| c.recovery == RecoveryChoice::Pipe && c.ack.is_on() && c.ack.detail == Detail::Pointer,
    },
    // What the first packet of a connectionless flow cannot have agreed on.
    Rule {
        id: "connectionless-reliability",
        verdict: Verdict::Forbidden,
        source: "ResTP §3.5.5",
        about: &["connection", "reliability"],
        reason: "a receiver that was never told the first number cannot tell a late segment from a lost one",
        instead: &[("connection", "three-way")],
        broken: |c| connectionless(c) && c.reliability != Reliability::Unreliable,
    },
    Rule {
        id: "connectionless-ordering",
        verdict: Verdict::Forbidden,
        source: "ResTP §3.5.5",
        about: &["connection", "ordering"],
        reason: "without an agreed first number there is no order to restore",
        instead: &[("connection", "three-way")],
        broken: |c| connectionless(c) && c.ordering != Ordering::Unordered,
    },
    Rule {
        id: "connectionless-congestion",
        verdict: Verdict::Forbidden,
        source: "ResTP §3.5.5",
        about: &["connection", "congestion"],
        reason: "congestion control counts segments from a first number that was never agreed",
        instead: &[("connection", "three-way")],
        broken: |c| connectionless(c) && controlled(c),
    },
    Rule {
        id: "connectionless-window",
        verdict: Verdict::Forbidden,
        source: "ResTP §3.5.5",
        about: &["connection", "flow-control"],
        reason: "a window counts segments from a first number that was never agreed",
        instead: &[("connection", "three-way")],
        broken: |c| connectionless(c) && windowed(c),
    },
    Rule {
        id: "connectionless-paths",
        verdict: Verdict::Forbidden,
        source: "ResTP §3.5.5",
        about: &["connection", "paths"],
        reason: "further paths join by keys that the set-up exchanges",
        instead: &[("connection", "three-way")],
        broken: |c| connectionless(c) && c.paths != PathMode::Single,
    },
    // Paths (ResTP §13, OP-57).
    Rule {
        id: "scheduling-outside-spreading",
        verdict: Verdict::Impossible,
        source: "OP-57",
        about: &["paths", "scheduling"],
        reason: "only in spreading mode is there a path to choose for each segment",
        instead: &[("scheduling", "none")],
        broken: |c| c.paths != PathMode::Spreading && c.scheduling.is_some(),
    },
    Rule {
        id: "spreading-needs-scheduling",
        verdict: Verdict::Forbidden,
        source: "ResTP §3.5.10",
        about: &["paths", "scheduling"],
        reason: "something has to choose the path of each segment",
        instead: &[("scheduling", "round-robin")],
        broken: |c| c.paths == PathMode::Spreading && c.scheduling.is_none(),
    },
    Rule {
        id: "bic-on-one-path",
        verdict: Verdict::Impossible,
        source: "OP-6",
        about: &["congestion", "paths"],
        reason: "on several paths the header's code of BIC means the coupled algorithm",
        instead: &[("congestion", "newreno")],
        broken: |c| c.paths != PathMode::Single && c.congestion == CongestionChoice::Bic,
    },
    // Cause of losses, marks and pacing (ResTP §15).
    Rule {
        id: "outage-needs-repeats",
        verdict: Verdict::Forbidden,
        source: "ResTP §3.6",
        about: &["reliability", "loss"],
        reason: "an outage is probed with the last data packet, which an unreliable sender has forgotten",
        instead: &[("loss", "congestion")],
        broken: |c| c.loss_handling == LossHandling::Outage && !c.reliability.repeats(),
    },
    Rule {
        id: "ecn-needs-congestion",
        verdict: Verdict::Forbidden,
        source: "OP-59",
        about: &["congestion", "ecn"],
        reason: "a network that marks instead of dropping needs someone who slows down",
        instead: &[("ecn", "off")],
        broken: |c| c.ecn && !controlled(c),
    },
    Rule {
        id: "pacing-needs-congestion",
        verdict: Verdict::Forbidden,
        source: "RFC 9002 §7.7",
        about: &["congestion", "pacing"],
        reason: "only a congestion algorithm knows a rate to pace at",
        instead: &[("pacing", "off")],
        broken: |c| c.pacing && !controlled(c),
    },
    // Numbers.
    Rule {
        id: "segment-size",
        verdict: Verdict::Forbidden,
        source: "project",
        about: &["segment"],
        reason: "a segment carries 1 to 65000 bytes, so that it fits a UDP datagram with every header",
        instead: &[("segment", "1400 B")],
        broken: |c| !(1..=65_000).contains(&c.segment_bytes),
    },
    Rule {
        id: "window-size",
        verdict: Verdict::Forbidden,
        source: "OP-25",
        about: &["window"],
        reason: "a window is 1 to 65535 segments: the field has 16 bits and is not scaled",
        instead: &[("window", "8192 segments")],
        broken: |c| matches!(c.flow_control, FlowControl::Window(w) if !(1..=65_535).contains(&w.segments)),
    },
    Rule {
        id: "flight-limit-size",
        verdict: Verdict::Forbidden,
        source: "OP-50",
        about: &["flight-limit"],
        reason: "with no segment in flight nothing moves, and more than 2^32 - 1 have no numbers",
        instead: &[("flight-limit", "256 segments")],
        broken: |c| {
            matches!(c.congestion, CongestionChoice::None { flight_limit_segments: n }
                if !(1..=u64::from(u32::MAX)).contains(&n))
        },
    },
    Rule {
        id: "initial-window-size",
        verdict: Verdict::Forbidden,
        source: "OP-33",
        about: &["initial-window"],
        reason: "the initial window is 1 to 10 segments",
        instead: &[("initial-window", "10 segments")],
        broken: |c| initial_window(c).is_some_and(|segments| !(1..=10).contains(&segments)),
    },
    Rule {
        id: "ack-every-size",
        verdict: Verdict::Forbidden,
        source: "ResTP §3.5.9",
        about: &["ack-every"],
        reason: "an acknowledgement covers 1 to 255 packets",
        instead: &[("ack-every", "2 packets")],
        broken: |c| matches!(c.ack.schedule, Schedule::Positive(p) if !(1..=255).contains(&p.every)),
    },
    Rule {
        id: "ack-delay-size",
        verdict: Verdict::Forbidden,
        source: "RFC 5681 §4.2",
        about: &["ack-delay"],
        reason: "an acknowledgement waits at most 500 ms, or senders time out for nothing",
        instead: &[("ack-delay", "40 ms")],
        broken: |c| matches!(c.ack.schedule, Schedule::Positive(p) if p.delay > Duration::from_millis(500)),
    },
    Rule {
        id: "sack-blocks-size",
        verdict: Verdict::Forbidden,
        source: "ResTP §3.1.8",
        about: &["sack-blocks"],
        reason: "1 to 32 blocks fit an acknowledgement on every path",
        instead: &[("sack-blocks", "4")],
        broken: |c| matches!(c.ack.detail, Detail::Sack { max_blocks } if !(1..=32).contains(&max_blocks)),
    },
    Rule {
        id: "handshake-size",
        verdict: Verdict::Forbidden,
        source: "OP-32",
        about: &["handshake-rto", "handshake-attempts"],
        reason: "a set-up packet waits 1 ms to 60 s at first and leaves 1 to 16 times",
        instead: &[("handshake-rto", "3 s"), ("handshake-attempts", "6")],
        broken: |c| {
            !(MILLISECOND..=MINUTE).contains(&c.handshake.rto) || !(1..=16).contains(&c.handshake.attempts)
        },
    },
    Rule {
        id: "rto-bounds",
        verdict: Verdict::Forbidden,
        source: "OP-58",
        about: &["rto-floor", "rto-ceiling"],
        reason: "the timer's floor is at least 1 ms and not above its ceiling",
        instead: &[("rto-floor", "200 ms"), ("rto-ceiling", "60 s")],
        broken: |c| c.rto.floor < MILLISECOND || c.rto.floor > c.rto.ceiling,
    },
    Rule {
        id: "data-attempts-size",
        verdict: Verdict::Forbidden,
        source: "OP-51",
        about: &["data-attempts"],
        reason: "data leaves 1 to 255 times",
        instead: &[("data-attempts", "15")],
        broken: |c| !(1..=255).contains(&c.rto.attempts),
    },
    Rule {
        id: "send-buffer-size",
        verdict: Verdict::Forbidden,
        source: "project",
        about: &["segment", "send-buffer"],
        reason: "the send buffer holds a segment at least and 1 GiB at most",
        instead: &[("send-buffer", "256 KiB")],
        broken: |c| !(c.segment_bytes as usize..=1 << 30).contains(&c.send_buffer_bytes),
    },
    Rule {
        id: "timeout-size",
        verdict: Verdict::Forbidden,
        source: "OP-35, OP-50",
        about: &["idle-timeout", "progress-timeout"],
        reason: "a connection that is given up in less than 1 ms never starts",
        instead: &[("idle-timeout", "60 s"), ("progress-timeout", "300 s")],
        broken: |c| c.idle_timeout < MILLISECOND || c.progress_timeout < MILLISECOND,
    },
    // Parts that do not exist yet.
    Rule {
        id: "no-opportunistic",
        verdict: Verdict::NotBuilt,
        source: "ResTP §3.5.5",
        about: &["connection"],
        reason: "the opportunistic set-up is not built yet",
        instead: &[("connection", "three-way")],
        broken: |c| c.establishment == Establishment::Opportunistic,
    },
    Rule {
        id: "no-partial-reliability",
        verdict: Verdict::NotBuilt,
        source: "ResTP §3.5.8",
        about: &["ordering", "reliability"],
        reason: "partial reliability is not built yet",
        instead: &[("ordering", "ordered"), ("reliability", "arq")],
        broken: |c| c.reliability == Reliability::Partial,
    },
    Rule {
        id: "no-partial-order",
        verdict: Verdict::NotBuilt,
        source: "ResTP §3.5.7",
        about: &["ordering"],
        reason: "partial ordering is not built yet",
        instead: &[("ordering", "ordered")],
        broken: |c| c.ordering == Ordering::Partial && c.reliability != Reliability::Partial,
    },
    Rule {
        id: "no-quasi",
        verdict: Verdict::NotBuilt,
        source: "ResTP §3.5.8",
        about: &["reliability"],
        reason: "forward error correction is not built yet",
        instead: &[("reliability", "unreliable")],
        broken: |c| c.reliability == Reliability::Quasi,
    },
    Rule {
        id: "no-harq",
        verdict: Verdict::NotBuilt,
        source: "ResTP §3.5.8",
        about: &["reliability"],
        reason: "forward error correction is not built yet",
        instead: &[("reliability", "arq")],
        broken: |c| c.reliability == Reliability::Harq,
    },
    Rule {
        id: "no-delayed",
        verdict: Verdict::NotBuilt,
        source: "ResTP §3.5.9",
        about: &["ack"],
        reason: "delayed acknowledgement is not built yet",
        instead: &[("ack", "positive+sack")],
        broken: delayed,
    },
    Rule {
        id: "no-nak",
        verdict: Verdict::NotBuilt,
        source: "ResTP §3.5.9",
        about: &["ack"],
        reason: "negative acknowledgement is not built yet",
        instead: &[("ack", "positive+sack")],
        broken: |c| c.ack.detail == Detail::Nak,
    },
    Rule {
        id: "no-snack",
        verdict: Verdict::NotBuilt,
        source: "ResTP §3.5.9",
        about: &["ack"],
        reason: "selective negative acknowledgement is not built yet",
        instead: &[("ack", "positive+sack")],
        broken: |c| c.ack.detail == Detail::Snack,
    },
    Rule {
        id: "no-repeat",
        verdict: Verdict::NotBuilt,
        source: "OP-47",
        about: &["ack"],
        reason: "the duplicate-ACK option is not built yet",
        instead: &[("ack", "positive+sack")],
        broken: |c| c.ack.repeat,
    },
    Rule {
        id: "no-outage",
        verdict: Verdict::NotBuilt,
        source: "ResTP §3.6",
        about: &["loss"],
        reason: "the probe state for outages is not built yet",
        instead: &[("loss", "congestion")],
        broken: |c| c.loss_handling == LossHandling::Outage,
    },
    Rule {
        id: "no-such-controller",
        verdict: Verdict::NotBuilt,
        source: "ResTP §3.5.6",
        about: &["congestion"],
        reason: "this congestion algorithm is not built yet",
        instead: &[("congestion", "cubic")],
        broken: |c| c.congestion.build(c.segment_bytes.into()).is_err(),
    },
    Rule {
        id: "no-multipath",
        verdict: Verdict::NotBuilt,
        source: "ResTP §3.3",
        about: &["paths", "scheduling"],
        reason: "several paths for one connection are not built yet",
        instead: &[("paths", "single"), ("scheduling", "none")],
        broken: |c| c.paths != PathMode::Single,
    },
    // What works badly.
    Rule {
        id: "delayed-window-congestion",
        verdict: Verdict::Discouraged,
        source: "ResTP §3.5.9",
        about: &["ack", "congestion"],
        reason: "window algorithms need a steady flow of acknowledgements",
        instead: &[("ack", "positive+sack")],
        broken: |c| {
            let by_rate = matches!(c.congestion, CongestionChoice::Bbr | CongestionChoice::Rate);
            delayed(c) && controlled(c) && !by_rate
        },
    },
    Rule {
        id: "delayed-partial-order",
        verdict: Verdict::Discouraged,
        source: "ResTP §3.5.9",
        about: &["ordering", "ack"],
        reason: "a skipped hole must be reported at once",
        instead: &[("ack", "positive+sack")],
        broken: |c| delayed(c) && c.ordering == Ordering::Partial,
    },
    Rule {
        id: "selective-unused",
        verdict: Verdict::Discouraged,
        source: "OP-44",
        about: &["ack", "recovery"],
        reason: "the sender asks for selective reports and does not look for losses in them",
        instead: &[("recovery", "pipe")],
        broken: |c| c.ack.is_on() && c.ack.detail != Detail::Pointer && c.recovery != RecoveryChoice::Pipe,
    },
    Rule {
        id: "corruption-with-congestion",
        verdict: Verdict::Discouraged,
        source: "ResTP §3.6",
        about: &["loss", "congestion"],
        reason: "where every loss is taken for corruption, a congestion algorithm that waits for losses never slows down",
        instead: &[("loss", "congestion")],
        broken: |c| c.loss_handling == LossHandling::Corruption && controlled(c),
    },
    Rule {
        id: "stream-with-holes",
        verdict: Verdict::Discouraged,
        source: "OP-18",
        about: &["framing", "ordering", "reliability"],
        reason: "coalesced frames are a stream of bytes, and in one with holes or out of order no frame is found again",
        instead: &[("framing", "fixed")],
        broken: |c| {
            c.framing == Framing::Coalesce && !(c.ordering == Ordering::Ordered && c.reliability.is_full())
        },
    },
];

const MILLISECOND: Duration = Duration::from_millis(1);
const MINUTE: Duration = Duration::from_secs(60);

/// True when somebody uses acknowledgements. What the header shows of the ACK module is just this.
fn needs_ack(c: &Composition) -> bool {
    c.reliability.repeats() || controlled(c) || windowed(c)
}
fn controlled(c: &Composition) -> bool {
    !matches!(c.congestion, CongestionChoice::None { .. })
}
fn windowed(c: &Composition) -> bool {
    matches!(c.flow_control, FlowControl::Window(_))
}
fn delayed(c: &Composition) -> bool {
    matches!(c.ack.schedule, Schedule::Delayed(_))
}
fn connectionless(c: &Composition) -> bool {
    c.establishment == Establishment::Connectionless
}
fn initial_window(c: &Composition) -> Option<u64> {
    match c.congestion {
        CongestionChoice::NewReno(params) => Some(params.initial_window_segments),
        CongestionChoice::Cubic(params) => Some(params.initial_window_segments),
        _ => None,
    }
}

/// There is one rule of a name.
impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rule")
            .field("id", &self.id)
            .field("verdict", &self.verdict)
            .finish_non_exhaustive()
    }
}
