//! What cannot be judged is not said to hold.

use super::checks::{claim_about, text};
use super::claims::*;
use restp_lab::Scenario;
use restp_lab::checker::Outcome;

/// What comes of a claim about a link of which at loss 1 nothing arrives, so that there is no latency.
fn outcomes(check: &str) -> Vec<Outcome> {
    let text = text("latency_mean_ms", check).replace("0.3, 0.6]", "0.3, 1]");
    let scenario = Scenario::parse(&text).unwrap_or_else(|error| panic!("{error}"));
    verdicts(&scenario)
        .iter()
        .map(|verdict| verdict.outcome())
        .collect()
}

/// It was left out, and the others came out as they should.
#[test]
fn a_point_without_the_metric_leaves_its_row_without_data() {
    let loss = "\"link.wire.loss.rate\"";
    for claim in [
        format!("trend = {{ along = {loss}, direction = \"falling\", within = \"50 %\" }}"),
        format!("rank = {{ axis = {loss}, are = [0], place = \"highest\" }}"),
        format!("spread = {{ axis = {loss}, within = \"100 %\" }}"),
    ] {
        assert_eq!(
            outcomes(&format!("expect = {{ {claim} }}")),
            [Outcome::NoData; 2],
            "{claim}"
        );
    }
    let gain = "gain = { axis = \"link.wire.delay\", of = \"1 ms\", over = \"2 ms\", along = \"link.wire.loss.rate\", direction = \"falling\" }";
    assert_eq!(outcomes(&format!("expect = {{ {gain} }}")), [Outcome::NoData]);
}

/// Whatever is measured lies within one percent of what is infinite, and below it.
#[test]
fn a_formula_that_divides_by_zero_expects_nothing() {
    let at = "where = { \"link.wire.loss.rate\" = [0] }";
    for expect in [
        "near = { value = \"1 / {link.wire.loss.rate}\", within = \"1 %\" }",
        "bound = { relation = \"at_most\", value = \"1 / {link.wire.loss.rate}\" }",
        "compare = { axis = \"link.wire.delay\", left = \"1 ms\", relation = \"equal\", right = \"2 ms\", tolerance = \"1 / {link.wire.loss.rate}\" }",
    ] {
        let outcomes = outcomes(&format!("{at}\nexpect = {{ {expect} }}"));
        assert!(
            outcomes.iter().all(|outcome| *outcome == Outcome::NoData),
            "{expect}"
        );
    }
    let least = "bound = { relation = \"at_least\", value = \"1 / (1 / {link.wire.loss.rate})\" }"; // zero
    assert_eq!(
        outcomes(&format!("{at}\nexpect = {{ {least} }}")),
        [Outcome::Holds; 2]
    );
}

/// The mean of those that have it is that of the lucky ones.
#[test]
fn a_mean_is_of_all_runs_or_there_is_none() {
    let check = "where = { \"link.wire.loss.rate\" = [0.98] }\nexpect = { bound = { relation = \"at_most\", value = \"1000\" } }";
    let text = text("latency_mean_ms", check).replace("0.3, 0.6]", "0.3, 0.98]");
    let text = text.replace("runs = 4", "runs = 20");
    let scenario = Scenario::parse(&text).unwrap_or_else(|error| panic!("{error}"));
    let outcomes: Vec<Outcome> = verdicts(&scenario)
        .iter()
        .map(|verdict| verdict.outcome())
        .collect();
    assert!(
        outcomes.contains(&Outcome::NoData),
        "in some of twenty runs nothing of a hundred arrives"
    );
}

#[test]
fn what_could_not_fail_is_refused() {
    let refusal = |check: &str| {
        claim_about("goodput_bps", check)
            .expect_err("refused")
            .to_string()
    };
    for (claim, says) in [
        (
            "compare = { axis = \"link.wire.loss.rate\", left = 0, right = 0, relation = \"at_least\" }",
            "0 is compared with itself",
        ),
        (
            "gain = { axis = \"link.wire.loss.rate\", of = 0.3, over = 0.3, along = \"link.wire.delay\", direction = \"rising\" }",
            "0.3 is compared with itself",
        ),
    ] {
        let refusal = refusal(&format!("expect = {{ {claim} }}"));
        assert!(refusal.contains(says), "{refusal}");
    }
    let twice = "expect = { compare = { axis = \"link.wire.loss.rate\", left = 0, right = 0, relation = \"at_least\", factor = 2 } }";
    assert!(claim_about("goodput_bps", twice).is_ok(), "it may fail");
}

/// Tables of an axis may have different keys.
#[test]
fn a_point_without_the_axis_is_not_passed_over() {
    let check = "expect = { spread = { axis = \"link.wire.rate\", within = \"5 %\" } }";
    let tables = "\"link.wire\" = [{ rate = \"10 Mbit/s\", delay = \"1 ms\" }, { delay = \"90 ms\" }]";
    let written = text("latency_mean_ms", check)
        .replace("\"link.wire.delay\" = [\"1 ms\", \"2 ms\"]", tables)
        .replace("\"link.wire.rate\" = [\"10 Mbit/s\"]\n", "");
    let refusal = Scenario::parse(&written).expect_err("refused").to_string();
    assert!(
        refusal.contains("of the 6 points have no value of \"link.wire.rate\""),
        "{refusal}"
    );
}
