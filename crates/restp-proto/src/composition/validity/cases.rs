//! The rows of ResTP §12.2 and §14, and our own rules, each with a composition that shows it.

/// A row of a table of the specification: the row, a preset, the keys changed, the rules it breaks.
pub(super) type Row = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
    &'static [&'static str],
);

/// ResTP §12.2, every row.
pub(super) const INTERACTIONS: &[Row] = &[
    ("positive + fast retransmit: standard", "3wh-arq", &[], &[]),
    (
        "delayed + fast retransmit: forbidden",
        "arq-only",
        &[("ack", "delayed")],
        &["delayed-fast-retransmit"],
    ),
    (
        "delayed + NewReno: discouraged",
        "3wh-arq",
        &[("ack", "delayed"), ("recovery", "timer")],
        &["delayed-window-congestion"],
    ),
    (
        "delayed + BIC: discouraged",
        "3wh-arq",
        &[("ack", "delayed"), ("recovery", "timer"), ("congestion", "bic")],
        &["delayed-window-congestion"],
    ),
    (
        "delayed + a rate-based algorithm: fits",
        "3wh-arq",
        &[
            ("ack", "delayed"),
            ("recovery", "timer"),
            ("congestion", "rate"),
            ("pacing", "on"),
        ],
        &[],
    ),
    (
        "delayed + PAR: discouraged",
        "unrel",
        &[
            ("connection", "three-way"),
            ("flow-control", "window"),
            ("ordering", "partial"),
            ("ack", "delayed"),
        ],
        &["delayed-partial-order"],
    ),
    (
        "delayed + SNACK: recommended when delayed is used",
        "arq-only",
        &[("ack", "delayed+snack"), ("recovery", "pipe")],
        &[],
    ),
    (
        "delayed + SACK: allowed",
        "arq-only",
        &[("ack", "delayed+sack"), ("recovery", "pipe")],
        &[],
    ),
    (
        "NACK, SACK, SNACK alone: impossible",
        "unrel",
        &[("ack", "none+sack")],
        &["detail-alone"],
    ),
    (
        "SACK + long delay: recommended",
        "3wh-arq",
        &[("ack", "positive+sack"), ("recovery", "pipe")],
        &[],
    ),
    (
        "SNACK + narrow reverse path: preferred to SACK",
        "3wh-arq",
        &[("ack", "positive+snack"), ("recovery", "pipe")],
        &[],
    ),
    (
        "SNACK or SACK + partially reliable: all holes at once",
        "par-arq",
        &[],
        &[],
    ),
    (
        "SACK + fully reliable: selective repeat",
        "3wh-arq",
        &[("ack", "positive+sack")],
        &["selective-unused"],
    ),
    (
        "PAR without SACK or SNACK: forbidden",
        "par-arq",
        &[
            ("ack", "positive"),
            ("recovery", "duplicate-ack"),
            ("congestion", "cubic"),
        ],
        &["partial-needs-selective"],
    ),
    (
        "fully reliable without ACK module: forbidden",
        "arq-only",
        &[
            ("ack", "none"),
            ("recovery", "timer"),
            ("flow-control", "none"),
            ("pacing", "off"),
        ],
        &["reliable-needs-ack"],
    ),
    (
        "window congestion control without ACK module: forbidden",
        "unrel",
        &[("connection", "three-way"), ("congestion", "newreno")],
        &["congestion-needs-ack"],
    ),
    (
        "window flow control without ACK module: forbidden",
        "unrel",
        &[("connection", "three-way"), ("flow-control", "window")],
        &["window-needs-ack"],
    ),
    (
        "HARQ + delayed: allowed without fast retransmit",
        "3wh-harq",
        &[("ack", "delayed"), ("recovery", "timer"), ("congestion", "none")],
        &[],
    ),
    (
        "duplicate ACK + noisy reverse path: recommended",
        "3wh-arq",
        &[("ack", "positive+repeat")],
        &[],
    ),
];

/// What ResTP §12.2 and §16 recommend, and the hints that say so where it was not chosen.
pub(super) const RECOMMENDED: &[Row] = &[
    (
        "delayed + SNACK",
        "arq-only",
        &[("ack", "delayed+sack+repeat"), ("recovery", "pipe")],
        &["vector-when-delayed"],
    ),
    (
        "SACK or SNACK + long delay or several losses per window",
        "3wh-arq",
        &[("ack", "positive+repeat")],
        &["selective-on-long-paths"],
    ),
    (
        "SNACK + lossy, narrow or asymmetric reverse path",
        "default",
        &[("ack", "positive+sack+repeat")],
        &["vector-on-narrow-return"],
    ),
    (
        "duplicate ACK + noisy reverse path",
        "default",
        &[("ack", "positive+snack")],
        &["repeat-on-noisy-return"],
    ),
    (
        "lower start latency: opportunistic",
        "par-arq",
        &[("ack", "positive+snack+repeat")],
        &["sooner-start"],
    ),
];

/// ResTP §14, every cell that says yes, and those that say no.
pub(super) const NEEDS: &[Row] = &[
    (
        "fully reliable needs ACK",
        "3wh-arq",
        &[
            ("ack", "none"),
            ("recovery", "timer"),
            ("flow-control", "none"),
            ("congestion", "none"),
        ],
        &["reliable-needs-ack"],
    ),
    (
        "fully reliable: no fixed framing, no SACK",
        "3wh-arq",
        &[("framing", "coalesce")],
        &[],
    ),
    (
        "partially reliable needs ACK and SACK or SNACK",
        "par-arq",
        &[
            ("ack", "none"),
            ("recovery", "timer"),
            ("flow-control", "none"),
            ("congestion", "none"),
        ],
        &["reliable-needs-ack", "partial-needs-selective"],
    ),
    (
        "partially reliable needs fixed framing",
        "par-arq",
        &[("framing", "coalesce"), ("congestion", "cubic")],
        &["partial-needs-fixed", "stream-with-holes"],
    ),
    (
        "partially reliable is ARQ with PAR",
        "par-arq",
        &[("ordering", "ordered"), ("congestion", "cubic")],
        &["partial-needs-partial-order"],
    ),
    (
        "ARQ with PAR is partially reliable",
        "3wh-arq",
        &[("ordering", "partial"), ("framing", "fixed")],
        &["full-means-no-skipping"],
    ),
    (
        "quasi reliable needs no ACK",
        "unrel",
        &[("connection", "three-way"), ("reliability", "quasi")],
        &[],
    ),
    (
        "ordered needs neither ACK nor ARQ",
        "unrel",
        &[("connection", "three-way"), ("ordering", "ordered")],
        &[],
    ),
    (
        "partially ordered needs neither ACK nor ARQ",
        "unrel",
        &[("connection", "three-way"), ("ordering", "partial")],
        &[],
    ),
    (
        "NewReno needs ACK",
        "unrel",
        &[("connection", "three-way"), ("congestion", "newreno")],
        &["congestion-needs-ack"],
    ),
    (
        "NewReno needs no ARQ",
        "unrel",
        &[
            ("connection", "three-way"),
            ("congestion", "newreno"),
            ("ack", "positive"),
        ],
        &[],
    ),
    (
        "BIC needs ACK",
        "unrel",
        &[("connection", "three-way"), ("congestion", "bic")],
        &["congestion-needs-ack"],
    ),
    (
        "window flow control needs ACK",
        "unrel",
        &[("connection", "three-way"), ("flow-control", "window")],
        &["window-needs-ack"],
    ),
    (
        "window flow control needs no ARQ",
        "unrel",
        &[
            ("connection", "three-way"),
            ("flow-control", "window"),
            ("ack", "positive"),
        ],
        &[],
    ),
];

/// What the specification leaves to us: one case at least for every other rule.
pub(super) const OWN: &[Row] = &[
    (
        "an ACK without a use",
        "unrel",
        &[("connection", "three-way"), ("ack", "positive")],
        &["ack-unused"],
    ),
    (
        "duplicates without ACK",
        "unrel",
        &[("recovery", "duplicate-ack")],
        &["recovery-needs-ack"],
    ),
    (
        "pipe without evidence",
        "3wh-arq",
        &[("recovery", "pipe")],
        &["pipe-needs-selective"],
    ),
    (
        "everything that needs an agreed number",
        "3wh-arq",
        &[("connection", "connectionless")],
        &[
            "connectionless-reliability",
            "connectionless-ordering",
            "connectionless-congestion",
            "connectionless-window",
        ],
    ),
    (
        "FEC without an agreed number",
        "unrel",
        &[("reliability", "quasi")],
        &["connectionless-reliability"],
    ),
    (
        "several paths without set-up",
        "unrel",
        &[("paths", "hot-standby")],
        &["connectionless-paths", "paths-need-arq", "paths-need-order"],
    ),
    (
        "a scheduler on one path",
        "3wh-arq",
        &[("scheduling", "round-robin")],
        &["scheduling-outside-spreading"],
    ),
    (
        "spreading without a scheduler",
        "geo-spread",
        &[("scheduling", "none")],
        &["spreading-needs-scheduling"],
    ),
    (
        "coupled windows on one path",
        "3wh-arq",
        &[("congestion", "lia")],
        &["coupled-needs-paths"],
    ),
    (
        "Tahoe on several paths",
        "mp-opt",
        &[("congestion", "tahoe"), ("connection", "three-way")],
        &["no-code-on-paths"],
    ),
    (
        "an outage nobody probes",
        "unrel",
        &[("loss", "outage")],
        &["outage-needs-repeats"],
    ),
    (
        "marks nobody heeds",
        "arq-only",
        &[("ecn", "on")],
        &["ecn-needs-congestion"],
    ),
    (
        "more than all losses for random",
        "default",
        &[("congestion", "bbr"), ("random-loss", "101")],
        &["random-loss-size"],
    ),
    (
        "a rate of nothing",
        "default",
        &[("congestion", "rate"), ("rate", "999 bit/s")],
        &["rate-size"],
    ),
    (
        "a rate nobody keeps to",
        "3wh-arq",
        &[("congestion", "bbr")],
        &["rate-needs-pacing"],
    ),
    (
        "discovery of the largest packet without acknowledgements",
        "unrel",
        &[("mtu-discovery", "on")],
        &["mtu-discovery-needs-ack"],
    ),
    (
        "a round trip nobody measures",
        "unrel",
        &[("pacing", "on")],
        &["pacing-needs-ack"],
    ),
    (
        "a segment of nothing",
        "unrel",
        &[("segment", "0 B")],
        &["segment-size"],
    ),
    (
        "a segment beyond UDP",
        "unrel",
        &[("segment", "65001 B")],
        &["segment-size"],
    ),
    (
        "an encoded packet without room",
        "3wh-harq",
        &[("segment", "2 B")],
        &["fec-segment-size"],
    ),
    (
        "an encoded packet that comes at once",
        "3wh-harq",
        &[("fec-timer", "0 ms")],
        &["fec-timer-size"],
    ),
    (
        "an encoded packet that comes too late",
        "3wh-harq",
        &[("fec-timer", "1001 ms")],
        &["fec-timer-size"],
    ),
    (
        "a window always shut",
        "3wh-arq",
        &[("window", "0 segments")],
        &["window-size"],
    ),
    (
        "a window beyond 16 bits",
        "3wh-arq",
        &[("window", "65536 segments")],
        &["window-size"],
    ),
    (
        "nothing in flight",
        "arq-only",
        &[("flight-limit", "0 segments")],
        &["flight-limit-size"],
    ),
    (
        "no initial window",
        "3wh-arq",
        &[("initial-window", "0 segments")],
        &["initial-window-size"],
    ),
    (
        "eleven segments at once",
        "default",
        &[("initial-window", "11 segments")],
        &["initial-window-size"],
    ),
    (
        "an ACK for no packet",
        "3wh-arq",
        &[("ack-every", "0 packets")],
        &["ack-every-size"],
    ),
    (
        "an ACK after a second",
        "3wh-arq",
        &[("ack-delay", "1 s")],
        &["ack-delay-size"],
    ),
    (
        "two seconds without an ACK",
        "3wh-arq",
        &[
            ("ack", "delayed+sack"),
            ("recovery", "pipe"),
            ("congestion", "none"),
            ("ack-period", "2 s"),
        ],
        &["ack-period-size"],
    ),
    (
        "an ACK repeated at once",
        "3wh-arq",
        &[("ack", "positive+repeat"), ("repeat-after", "0 ms")],
        &["repeat-after-size"],
    ),
    (
        "SACK without blocks",
        "default",
        &[("sack-blocks", "0")],
        &["sack-blocks-size"],
    ),
    (
        "a SYN never sent",
        "3wh-arq",
        &[("handshake-attempts", "0")],
        &["handshake-size"],
    ),
    (
        "a SYN repeated at once",
        "3wh-arq",
        &[("handshake-rto", "0 s")],
        &["handshake-size"],
    ),
    (
        "a floor above the ceiling",
        "3wh-arq",
        &[("rto-floor", "61 s")],
        &["rto-bounds"],
    ),
    (
        "no patience",
        "3wh-arq",
        &[("data-attempts", "0")],
        &["data-attempts-size"],
    ),
    (
        "a buffer below a segment",
        "3wh-arq",
        &[("send-buffer", "1399 B")],
        &["send-buffer-size"],
    ),
    (
        "gone before it came",
        "3wh-arq",
        &[("idle-timeout", "0 s")],
        &["timeout-size"],
    ),
    (
        "early data and nobody to say what became of it",
        "unrel",
        &[("connection", "opportunistic")],
        &["early-data-needs-ack"],
    ),
    (
        "early data inside the SYN all the same",
        "unrel",
        &[("connection", "fast-open")],
        &["early-data-needs-ack"],
    ),
    (
        "NAK, one hole at a time",
        "3wh-arq",
        &[("ack", "positive+nak"), ("recovery", "pipe")],
        &[],
    ),
    (
        "NewReno that never slows down",
        "3wh-arq",
        &[("loss", "corruption")],
        &["corruption-with-congestion"],
    ),
    (
        "a stream out of order",
        "3wh-arq",
        &[("ordering", "unordered")],
        &["stream-with-holes"],
    ),
];
