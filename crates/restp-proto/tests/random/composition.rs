//! A random valid composition: a walk from a preset over choices and numbers that keeps what passes the check.

use restp_base::random::Stream;
use restp_proto::ValidComposition;
use restp_proto::composition::{Composition, KEYS, PRESETS};
use restp_services::path_management::PathMode;

/// Numbers worth trying, small ones above all: they make limits bite.
const NUMBERS: &[(&str, &[&str])] = &[
    ("segment", &["8 B", "100 B", "536 B", "1400 B", "9000 B"]),
    (
        "window",
        &[
            "1 segments",
            "2 segments",
            "7 segments",
            "64 segments",
            "8192 segments",
            "65535 segments",
        ],
    ),
    ("hold", &["auto", "0 ms", "1 ms", "300 ms"]),
    ("deadline", &["none", "1 ms", "160 ms", "2 s"]),
    ("frame-interval", &["0 ms", "20 ms"]),
    ("ack-every", &["1 packets", "2 packets", "8 packets"]),
    ("ack-delay", &["0 ms", "1 ms", "40 ms", "500 ms"]),
    ("ack-period", &["auto", "10 ms", "1 s"]),
    ("repeat-after", &["auto", "1 ms", "1 s"]),
    ("sack-blocks", &["1", "4", "32"]),
    ("flight-limit", &["1 segments", "8 segments", "256 segments"]),
    ("initial-window", &["1 segments", "10 segments"]),
    ("growth", &["bytes", "acks"]),
    ("rto-floor", &["10 ms", "200 ms", "1 s"]),
    ("rto-ceiling", &["2 s", "60 s"]),
    ("fec", &["basic", "interleaved"]),
    ("fec-timer", &["auto", "1 ms", "20 ms", "500 ms"]),
    ("send-buffer", &["9000 B", "64 KiB", "256 KiB"]),
];

pub fn draw(draw: &mut Stream) -> ValidComposition {
    let services: Vec<_> = KEYS.iter().filter(|key| key.service).collect();
    let mut chosen = loop {
        let preset = &PRESETS[draw.below(PRESETS.len() as u64) as usize];
        if let Ok(valid) = preset.composition().check()
            && valid.paths == PathMode::Single
        {
            break valid;
        }
    };
    for _ in 0..60 {
        let mut changed = Composition::clone(&chosen);
        for _ in 0..1 + draw.below(4) {
            let key = services[draw.below(services.len() as u64) as usize];
            let choices = key.allowed();
            let choice = choices[draw.below(choices.len() as u64) as usize];
            changed.set(key.name, choice).expect("a choice of its key");
        }
        keep(&mut chosen, changed);
    }
    for (key, values) in NUMBERS {
        let mut changed = Composition::clone(&chosen);
        let value = values[draw.below(values.len() as u64) as usize];
        if draw.chance(0.5) && changed.set(key, value).is_ok() {
            keep(&mut chosen, changed);
        }
    }
    chosen
}

fn keep(chosen: &mut ValidComposition, changed: Composition) {
    // The laws read the numbers of one path.
    if changed.paths == PathMode::Single
        && let Ok(valid) = changed.check()
    {
        *chosen = valid;
    }
}
