//! Transports that others wrote, on our network.

use crate::common::{file, lines, runs};
use restp_lab::{Line, Options, Scenario};

fn verdicts(scenario: &Scenario) -> Vec<(String, Option<bool>)> {
    let all = lines(scenario, &Options::DEFAULT).into_iter();
    all.filter_map(|line| match line {
        Line::Verdict(verdict) => Some((format!("{} {:?}", verdict.claim, verdict.point), verdict.held)),
        Line::Run(_) | Line::Summary(_) => None,
    })
    .collect()
}

#[test]
fn witnesses_live_through_losses_and_outages() {
    let scenario = file("../witnesses/witnesses.toml")
        .with("runs", "1")
        .expect("allowed");
    let verdicts = verdicts(&scenario);
    assert!(verdicts.len() > 40);
    for (claim, held) in verdicts {
        assert_eq!(held, Some(true), "{claim}");
    }
}

#[test]
fn multipath_quic_uses_both_paths_and_each_alone() {
    let scenario = file("../witnesses/two-paths.toml");
    for (claim, held) in verdicts(&scenario) {
        assert_eq!(held, Some(true), "{claim}");
    }
    let both = scenario
        .with("flow.f.transport", "mpquic:noq")
        .and_then(|scenario| scenario.with("flow.f.paths", "[[[\"a\"], [\"b\"]]]"))
        .expect("allowed");
    for run in runs(&both) {
        let paths = &run.flows[0].paths;
        assert!(
            paths.len() == 2 && paths.iter().all(|path| path.bytes_sent > 5_000_000),
            "{paths:?}"
        );
    }
}
