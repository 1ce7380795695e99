//! The rows of ResTP §12.2, §14 and §16, each with a composition that shows it; our own rules in `own`.

mod own;

pub(super) use own::OWN;

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
        "cubic",
        &[("ack", "positive+sack+repeat")],
        &["vector-on-narrow-return"],
    ),
    (
        "duplicate ACK + noisy reverse path",
        "cubic",
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
