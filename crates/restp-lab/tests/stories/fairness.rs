//! What congestion controls do to each other, and how fast they are alone, against published formulas.

use crate::common::{file, lines};
use restp_lab::checker::Verdict;
use restp_lab::{Line, Options, Scenario};

/// Verdicts of the claims of `scenario`; all of them hold.
#[track_caller]
fn all_hold(scenario: &Scenario) -> Vec<Verdict> {
    let all = lines(scenario, &Options::DEFAULT).into_iter();
    let verdicts: Vec<Verdict> = all
        .filter_map(|line| match line {
            Line::Verdict(verdict) => Some(verdict),
            _ => None,
        })
        .collect();
    let failed: Vec<&Verdict> = verdicts
        .iter()
        .filter(|verdict| verdict.held != Some(true))
        .collect();
    assert!(failed.is_empty(), "{failed:#?}");
    verdicts
}

/// TC §4.2.5: Jain's index of 0.99 at least, for every algorithm whose window losses alone decide.
#[test]
fn two_flows_of_one_algorithm_share_a_bottleneck_equally() {
    // One of the three starts in the file: the others tell no more and take as long.
    let scenario = file("fairness.toml")
        .with("flow.late.start", "1.7 s")
        .expect("allowed");
    assert_eq!(all_hold(&scenario).len(), 8);
}

/// RFC 9438 §5.1 within 10 %.
#[test]
fn cubic_follows_its_response_function() {
    assert_eq!(all_hold(&file("response-cubic.toml")).len(), 1);
}
