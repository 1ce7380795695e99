//! Laws hold for random cases, and for every case that once broke one.

use restp_lab::chaos::{self, Case, Summary};
use std::ops::ControlFlow;
use std::path::Path;

/// Seeds of every test run; `make chaos` plays many more.
const RUNS: u64 = 500;

#[test]
fn laws_hold_for_random_compositions_networks_and_faults() {
    let mut summary = Summary::default();
    let mut broken = Vec::new();
    let each = |outcome: chaos::Outcome| {
        summary.add(&outcome.summary);
        if let Some(violation) = outcome.violation {
            let seed = outcome.case.seed;
            broken.push(format!(
                "restp chaos --seed {seed} --runs 1: {}: {}",
                violation.law, violation.what
            ));
        }
        ControlFlow::Continue(())
    };
    chaos::run(1, RUNS, each).expect("threads");
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    assert!(
        4 * summary.sealed > summary.runs,
        "many runs are sealed: {summary:?}"
    );
    assert!(
        2 * summary.finished > summary.ends,
        "most flows finish, or nothing is tried: {summary:?}"
    );
}

#[test]
fn cases_that_once_broke_a_law_hold() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/chaos");
    let mut played = 0;
    for entry in std::fs::read_dir(folder).expect("the folder of cases") {
        let file = entry.expect("a file").path();
        let text = std::fs::read_to_string(&file).expect("a readable file");
        let case = Case::read(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        assert!(!case.about.is_empty(), "{}: what is it kept for?", file.display());
        let violation = chaos::judge(&case).violation;
        assert_eq!(violation, None, "{}: {}", file.display(), case.about);
        played += 1;
    }
    assert!(played > 0, "there are no cases");
}

/// Cases with several paths among the first seeds; `make chaos` draws the choice by itself.
const SHARED: usize = 120;

/// The walk keeps shared numbers seldom, because they need several other choices; here every case has them.
#[test]
fn laws_hold_where_paths_share_their_numbers() {
    let (mut broken, mut summary) = (Vec::new(), Summary::default());
    for case in (1..).filter_map(sharing).take(SHARED) {
        let outcome = chaos::judge(&case);
        summary.add(&outcome.summary);
        if let Some(violation) = outcome.violation {
            broken.push(format!(
                "seed {}: {}: {}\n{}",
                case.seed,
                violation.law,
                violation.what,
                case.write()
            ));
        }
    }
    let laws: Vec<_> = broken.iter().filter_map(|case| case.lines().next()).collect();
    assert!(broken.is_empty(), "{laws:#?}\n{}", broken.join("\n"));
    assert!(
        2 * summary.finished > summary.ends,
        "most flows finish: {summary:?}"
    );
}

/// The case of this seed with shared numbers, if it has several paths.
fn sharing(seed: u64) -> Option<Case> {
    let mut case = Case::draw(seed);
    for choices in [&mut case.client, &mut case.server] {
        let needed = [
            ("numbering", "shared"),
            ("connection", "three-way"),
            ("ack", "positive+sack"),
            ("recovery", "pipe"),
        ];
        choices.extend(needed.map(|(key, value)| (key.to_owned(), value.to_owned())));
        choices.remove("mapping-crc");
        if choices.get("scheduling").is_some_and(|name| name == "redundant") {
            choices.insert("scheduling".into(), "guard".into());
        }
    }
    (case.paths() > 1 && case.check().is_ok()).then_some(case)
}
