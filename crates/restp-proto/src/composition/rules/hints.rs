//! What the specification recommends beside a choice, for circumstances that no composition knows (ResTP §3.5.9, §3.7).

use super::{Rule, Verdict, delayed};
use restp_services::ack::Detail;
use restp_services::connection_management::Establishment;
use restp_services::recovery::RecoveryChoice;

pub(super) static RULES: &[Rule] = &[
    Rule {
        id: "vector-when-delayed",
        verdict: Verdict::Recommended,
        source: "ResTP §3.5.9",
        about: &["ack"],
        reason: "where acknowledgements are delayed, a vector of all holes makes up for some of the delay",
        instead: &[("ack", "delayed+snack"), ("recovery", "pipe")],
        broken: |c| delayed(c) && c.reliability.retransmits() && c.ack.detail != Detail::Snack,
    },
    Rule {
        id: "selective-on-long-paths",
        verdict: Verdict::Recommended,
        source: "ResTP §3.5.9",
        about: &["ack"],
        reason: "where the delay is long or a window loses several segments, one report names many holes",
        instead: &[("ack", "positive+sack"), ("recovery", "pipe")],
        broken: |c| {
            c.ack.is_on()
                && !delayed(c)
                && c.reliability.retransmits()
                && matches!(c.ack.detail, Detail::Pointer | Detail::Nak)
        },
    },
    Rule {
        id: "vector-on-narrow-return",
        verdict: Verdict::Recommended,
        source: "ResTP §3.5.9",
        about: &["ack"],
        reason: "where the way back is lossy, narrow or asymmetric, a vector of holes is smaller than blocks",
        instead: &[("ack", "positive+snack")],
        broken: |c| {
            !delayed(c) && matches!(c.ack.detail, Detail::Sack { .. }) && c.recovery == RecoveryChoice::Pipe
        },
    },
    Rule {
        id: "repeat-on-noisy-return",
        verdict: Verdict::Recommended,
        source: "ResTP §3.5.9",
        about: &["ack"],
        reason: "where the way back is noisy, a repeat of the last acknowledgement keeps a lost one from stopping the sender",
        instead: &[("ack", "positive+sack+repeat"), ("recovery", "pipe")],
        broken: |c| c.ack.is_on() && c.ack.repeat.is_none(),
    },
    Rule {
        id: "sooner-start",
        verdict: Verdict::Recommended,
        source: "ResTP §3.7",
        about: &["connection", "reliability"],
        reason: "where the start may not take a round trip, data beside the SYN saves it, and cookies keep forged SYNs cheap",
        instead: &[("connection", "opportunistic")],
        broken: |c| c.reliability.is_partial() && c.establishment == Establishment::ThreeWay,
    },
];
