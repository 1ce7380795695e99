//! All that chaos throws at a flow, thrown at flows that carry streams: the first one under the laws of order and of completeness, its
//! companions held against what is known of them.

use super::*;
use crate::chaos::swarm::{self, Choices};

/// Random networks, faults and compositions.
const RUNS: u64 = 200;

/// The choices with streams; `None` where they do not go with what else was chosen.
fn with_streams(choices: &Choices) -> Option<Choices> {
    let mut choices = choices.clone();
    choices.retain(|key, _| !["hold", "deadline", "frame-interval", "segment", "weights"].contains(&&**key));
    for (key, value) in [
        ("framing", "streams"),
        ("ordering", "unordered"),
        ("flow-control", "window"),
    ] {
        choices.insert(key.into(), value.into());
    }
    let is_full = choices
        .get("reliability")
        .is_some_and(|it| it == "arq" || it == "harq");
    if !is_full {
        choices.insert("reliability".into(), "arq".into());
        choices.retain(|key, _| !key.starts_with("fec"));
    }
    swarm::composition(&choices).ok().map(|_| choices)
}

/// The case of a seed, over streams.
fn drawn(seed: u64) -> Option<Case> {
    let mut case = Case::draw(seed);
    (case.client, case.server) = (with_streams(&case.client)?, with_streams(&case.server)?);
    Some(case)
}

#[test]
fn laws_hold_for_streams() {
    let (mut played, mut broken, mut finished) = (0, Vec::new(), 0);
    for case in (1..=RUNS).filter_map(drawn) {
        played += 1;
        let outcome = crate::chaos::judge(&case);
        finished += outcome.summary.finished;
        if let Some(violation) = outcome.violation {
            broken.push(format!(
                "seed {}: {}: {}",
                case.seed, violation.law, violation.what
            ));
        }
    }
    println!("{played} of {RUNS} were played, {finished} ends finished");
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    assert!(
        played > RUNS / 4 && finished > played / 2,
        "{played} of {RUNS}, {finished} ends finished"
    );
}
