//! Which services do not go together (ResTP §12.2, §14), and what a connectionless flow cannot have.

use super::{Rule, Verdict, connectionless, controlled, delayed, needs_ack, windowed};
use restp_services::ack::{Acknowledgement, Detail};
use restp_services::congestion::CongestionChoice;
use restp_services::framing::Framing;
use restp_services::loss_handling::LossHandling;
use restp_services::ordering::Ordering;
use restp_services::path_management::PathMode;
use restp_services::recovery::RecoveryChoice;
use restp_services::reliability::Reliability;

pub(super) static RULES: &[Rule] = &[
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
        broken: |c| c.paths != PathMode::Single && matches!(c.congestion, CongestionChoice::Bic(_)),
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
        id: "pacing-needs-ack",
        verdict: Verdict::Forbidden,
        source: "RFC 9002 §7.7",
        about: &["ack", "pacing"],
        reason: "a window is spread over a round trip, and only acknowledgements tell how long that is",
        instead: &[("pacing", "off")],
        broken: |c| c.pacing && !c.ack.is_on(),
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
