//! Bounds of the numbers.

use super::{Rule, Verdict};
use crate::composition::Composition;
use restp_base::time::Duration;
use restp_services::ack::{DelayedParameters, Detail, RepeatParameters, Schedule};
use restp_services::congestion::CongestionChoice;
use restp_services::flow_control::FlowControl;
use restp_services::framing::{Framing, INITIAL_STREAM_BYTES, INITIAL_STREAMS};

pub(super) static RULES: &[Rule] = &[
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
        id: "fec-segment-size",
        verdict: Verdict::Forbidden,
        source: "OP-39",
        about: &["reliability", "segment"],
        reason: "an encoded packet carries a length of 2 bytes beside what it repairs",
        instead: &[("segment", "1400 B")],
        broken: |c| c.payload_bytes() == 0 && c.segment_bytes > 0,
    },
    Rule {
        id: "fec-timer-size",
        verdict: Verdict::Forbidden,
        source: "ResTP §3.5.8",
        about: &["fec-timer"],
        reason: "a packet waits 0.1 ms to 1 s to be encoded: a shorter wait sends everything twice, and after a longer \
                 one a repeat is there before",
        instead: &[("fec-timer", "auto")],
        broken: |c| {
            let timer = c.fec.timer.filter(|_| c.reliability.encodes());
            timer.is_some_and(|timer| !(MILLISECOND / 10..=Duration::from_secs(1)).contains(&timer))
        },
    },
    Rule {
        id: "fec-redundancy-size",
        verdict: Verdict::Forbidden,
        source: "project",
        about: &["fec-redundancy"],
        reason: "of redundancy there is 1 packet for 100 segments at least, and one for each at most",
        instead: &[("fec-redundancy", "100")],
        broken: |c| c.reliability.encodes() && !(1..=100).contains(&c.fec.most_percent),
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
        id: "stream-sizes",
        verdict: Verdict::Forbidden,
        source: "project",
        about: &["segment", "stream-window", "streams"],
        reason: "before it is told anything a peer may open 128 streams and send 64 KiB of each, and frames need segments of \
                 256 bytes at least",
        instead: &[
            ("segment", "1400 B"),
            ("stream-window", "1 MiB"),
            ("streams", "1024"),
        ],
        broken: |c| {
            matches!(c.framing, Framing::Streams(limits)
                if c.segment_bytes < 256
                    || u64::from(limits.window_bytes) < INITIAL_STREAM_BYTES
                    || u64::from(limits.most) < INITIAL_STREAMS)
        },
    },
    Rule {
        id: "flight-limit-size",
        verdict: Verdict::Forbidden,
        source: "OP-50",
        about: &["flight-limit"],
        reason: "with no segment in flight nothing moves, and more than 2^32 - 1 have no numbers",
        instead: &[("flight-limit", "256 segments")],
        broken: |c| {
            matches!(c.congestion, CongestionChoice::None(p)
                if !(1..=u64::from(u32::MAX)).contains(&p.flight_limit_segments))
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
        id: "reference-rtt-size",
        verdict: Verdict::Forbidden,
        source: "Caini, Firrincieli 2004",
        about: &["reference-rtt"],
        reason: "the path to be as fast as is one on earth: its round trip takes 1 ms to 1 s",
        instead: &[("reference-rtt", "25 ms")],
        broken: |c| {
            matches!(c.congestion, CongestionChoice::Hybla(p)
                if !(MILLISECOND..=Duration::from_secs(1)).contains(&p.reference_rtt))
        },
    },
    Rule {
        id: "random-loss-size",
        verdict: Verdict::Forbidden,
        source: "draft-ietf-ccwg-bbr §2.5",
        about: &["random-loss"],
        reason: "losses are a share in percent, and below 2 the algorithm's own threshold counts",
        instead: &[("random-loss", "15")],
        broken: |c| matches!(c.congestion, CongestionChoice::Bbr(p) if !(2..=100).contains(&p.random_loss_percent)),
    },
    Rule {
        id: "bbr-size",
        verdict: Verdict::Forbidden,
        source: "draft-ietf-ccwg-bbr §2",
        about: &["bbr-headroom", "bbr-margin", "bbr-leap", "bbr-vain-rounds"],
        reason: "a share above 50 % leaves BBR less than it leaves to others, a first window leaps to at most ten of them, and \
                 a probe lasts a round at least and after three without growth is over anyway",
        instead: &[
            ("bbr-headroom", "30"),
            ("bbr-margin", "0"),
            ("bbr-leap", "4"),
            ("bbr-vain-rounds", "2"),
        ],
        broken: |c| {
            matches!(c.congestion, CongestionChoice::Bbr(p)
                if p.queue_headroom_percent > 50
                    || p.clear_margin_percent > 50
                    || !(1..=10).contains(&p.leap)
                    || !(1..=3).contains(&p.vain_rounds))
        },
    },
    Rule {
        id: "rate-size",
        verdict: Verdict::Forbidden,
        source: "ResTP §3.5.9",
        about: &["rate"],
        reason: "below 1 kbit/s a segment takes longer than any timer waits",
        instead: &[("rate", "1 Mbit/s")],
        broken: |c| matches!(c.congestion, CongestionChoice::Rate(p) if p.rate.as_bps() < 1000),
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
        id: "ack-period-size",
        verdict: Verdict::Forbidden,
        source: "OP-46",
        about: &["ack-period"],
        reason: "delayed acknowledgements leave every 10 ms to 1 s",
        instead: &[("ack-period", "auto")],
        broken: |c| {
            let (shortest, longest) = DelayedParameters::BOUNDS;
            matches!(c.ack.schedule, Schedule::Delayed(DelayedParameters { period: Some(period) })
                if !(shortest..=longest).contains(&period))
        },
    },
    Rule {
        id: "repeat-after-size",
        verdict: Verdict::Forbidden,
        source: "OP-47",
        about: &["repeat-after"],
        reason: "an acknowledgement is repeated after 1 ms to 60 s without new data",
        instead: &[("repeat-after", "auto")],
        broken: |c| {
            matches!(c.ack.repeat, Some(RepeatParameters { idle: Some(idle) })
                if !(MILLISECOND..=MINUTE).contains(&idle))
        },
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
        about: &["outage-timeout", "idle-timeout", "progress-timeout"],
        reason: "a connection that is given up in less than 1 ms never starts",
        instead: &[
            ("outage-timeout", "86400 s"),
            ("idle-timeout", "60 s"),
            ("progress-timeout", "300 s"),
        ],
        broken: |c| {
            [c.outage_timeout, c.idle_timeout, c.progress_timeout]
                .iter()
                .any(|wait| *wait < MILLISECOND)
        },
    },
];

const MILLISECOND: Duration = Duration::from_millis(1);
const MINUTE: Duration = Duration::from_secs(60);

fn initial_window(c: &Composition) -> Option<u64> {
    let mut congestion = c.congestion.clone();
    congestion.common().map(|common| common.initial_window_segments)
}
