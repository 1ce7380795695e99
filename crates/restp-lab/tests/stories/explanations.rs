//! Which failures an explanation of a claim stands for.

use super::checks::{claim, claim_about, text};
use super::claims::verdicts;
use restp_lab::Scenario;
use restp_lab::checker::Outcome;

/// An explanation used to excuse whatever failed: a claim that broke at every point passed.
#[test]
fn an_explanation_stands_for_the_points_and_the_range_it_names() {
    let explained = |explains: &str| -> Vec<bool> {
        let check = format!(
            "explained = \"an example\"\n{explains}\n\
             where = {{ \"link.wire.loss.rate\" = [0, 0.3] }}\n\
             expect = {{ bound = {{ relation = \"at_least\", value = \"90\" }} }}"
        );
        let all = verdicts(&claim(&check));
        assert!(all.iter().any(|verdict| verdict.held == Some(true)), "{all:?}");
        let failing = all.iter().filter(|verdict| verdict.held == Some(false));
        let mut held = all.iter().filter(|verdict| verdict.held == Some(true));
        assert!(held.all(|verdict| verdict.explained.is_none()));
        failing
            .map(|verdict| verdict.explained.as_deref() == Some("an example"))
            .collect()
    };
    assert_eq!(explained(""), [false; 2], "of no points");
    assert_eq!(explained("explains = [{ between = [0, 110] }]"), [true; 2]);
    for (expected, covers) in [("[90, 91]", true), ("[91, 92]", false)] {
        let explains = format!("explains = [{{ between = [0, 90], expected = {expected} }}]");
        assert_eq!(explained(&explains), [covers; 2], "90 is expected");
    }
    assert_eq!(
        explained("explains = [{ between = [0, 1] }]"),
        [false; 2],
        "more is measured"
    );
    let at = |rate: &str| {
        format!("explains = [{{ where = {{ \"link.wire.loss.rate\" = [{rate}] }}, between = [0, 90] }}]")
    };
    assert_eq!(explained(&at("0.3")), [true; 2]);
    assert_eq!(explained(&at("0.0")), [false; 2]);
    for (broken, says) in [
        (
            "explained = \"x\"\nexplains = [{ between = [2, 1] }]",
            "lower one first",
        ),
        ("explains = [{ between = [1, 2] }]", "no reason"),
        ("explained = \"\"\nexplains = [{ between = [1, 2] }]", "no reason"),
        (
            "explained = \"x\"\nexplains = [{ between = [-inf, 2] }]",
            "two numbers",
        ),
        (
            "explained = \"x\"\nexplains = [{ between = [1, 2, 3] }]",
            "two numbers",
        ),
        (
            "explained = \"x\"\nexplains = [{ where = { \"link.wire.loss.rate\" = [] }, between = [1, 2] }]",
            "name some",
        ),
        (
            "pool = [\"link.wire.delay\"]\nexplained = \"x\"\n\
             explains = [{ where = { \"link.wire.delay\" = [\"1 ms\"] }, between = [1, 2] }]",
            "several values",
        ),
        (
            "explained = \"x\"\nexplains = [{ where = { \"link.wire.lost\" = [1] }, between = [1, 2] }]",
            "no axis",
        ),
    ] {
        let check = format!("{broken}\nexpect = {{ steady = {{ within = \"1 %\" }} }}");
        let error = claim_about("delivered_messages", &check)
            .expect_err("refused")
            .to_string();
        assert!(error.contains(says), "{error}");
    }
}

/// A sweep over less than the file's axes was refused for what explains a claim at those that it left out.
#[test]
fn an_explanation_of_points_that_a_setting_took_away_explains_nothing() {
    let at = |axis: &str, value: &str| {
        format!(
            "explained = \"an example\"\nexplains = [{{ where = {{ \"{axis}\" = [{value}] }}, between = [0, 200] }}]\n\
             expect = {{ bound = {{ relation = \"at_least\", value = \"500\" }} }}"
        )
    };
    for (axis, value) in [("link.wire.loss.rate", "0.7"), ("link.wire.delay", "\"1 ms\"")] {
        let about = text("delivered_messages", &at(axis, value)).replace("0.3, 0.6]", "0.3, 0.6, 0.7]");
        let whole = Scenario::parse(&about).unwrap_or_else(|error| panic!("{error}"));
        let fewer = whole.with("link.wire.delay", "\"0 s\"").expect("one of two");
        let fewer = fewer
            .with("link.wire.loss.rate", "[0, 0.3]")
            .expect("points of it");
        let failing = verdicts(&fewer);
        assert!(!failing.is_empty());
        assert!(
            failing.iter().all(|verdict| verdict.outcome() == Outcome::Fails),
            "{failing:?}"
        );
    }
    let unknown =
        claim_about("delivered_messages", &at("link.wire.queue", "1")).expect_err("of the file itself");
    assert!(unknown.to_string().contains("there is no axis"), "{unknown}");
}
