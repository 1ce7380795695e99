//! Every kind of check, on made-up results of which some hold and some do not.

use super::claims::*;
use restp_lab::Scenario;
use restp_lab::checker::{Outcome, Tally};

/// One second of 100 messages over a link that loses a share of them, with `check` as the claim.
pub(super) fn claim(check: &str) -> Scenario {
    claim_about("delivered_messages", check).unwrap_or_else(|error| panic!("{error}"))
}

/// The same where the file has a point with a loss rate of 0.7 as well, which a setting took away.
fn narrowed(check: &str) -> Scenario {
    let text = text("delivered_messages", check).replace("0.3, 0.6]", "0.3, 0.6, 0.7]");
    let rates = ("link.wire.loss.rate", "[0, 0.3, 0.6]");
    let whole = Scenario::parse(&text).unwrap_or_else(|error| panic!("{error}"));
    whole.with(rates.0, rates.1).expect("points of it")
}

pub(super) fn claim_about(field: &str, check: &str) -> Result<Scenario, restp_lab::ScenarioError> {
    Scenario::parse(&text(field, check))
}

pub(super) fn text(field: &str, check: &str) -> String {
    format!(
        r#"
id = "claim"
duration = "1 s"
runs = 4
[[link]]
name = "wire"
between = ["a", "b"]
rate = "10 Mbit/s"
delay = "0 s"
[[flow]]
name = "cbr"
from = "a"
to = "b"
transport = "udp"
traffic = {{ cbr = {{ interval = "10 ms", bytes = 1000 }} }}
[sweep]
"link.wire.loss.rate" = [0, 0.3, 0.6]
"link.wire.delay" = ["1 ms", "2 ms"]
"link.wire.rate" = ["10 Mbit/s"]
[[check]]
id = "1"
text = "a claim"
metric = "flow.cbr.{field}"
{check}
"#
    )
}

#[test]
fn near_speaks_of_every_point() {
    let near = |value: &str, within: &str| {
        held(&claim(&format!(
            "expect = {{ near = {{ value = \"{value}\", within = \"{within}\" }} }}"
        )))
    };
    assert_eq!(near("100 * (1 - {link.wire.loss.rate})", "25 %"), [Some(true); 6]);
    assert_eq!(
        near("100", "1 %"),
        [
            Some(true),
            Some(true),
            Some(false),
            Some(false),
            Some(false),
            Some(false)
        ]
    );
    assert_eq!(
        near("{link.wire.delay} * 50000 - 50", "1 %"),
        [
            Some(false),
            Some(false),
            Some(false),
            Some(false),
            Some(false),
            Some(false)
        ],
        "a delay counts in seconds: 0 and 50 messages"
    );
}

#[test]
fn bound_speaks_of_every_point_or_every_run() {
    let bound = |relation: &str, value: &str, each: &str| {
        held(&claim(&format!(
            "where = {{ \"link.wire.loss.rate\" = [0.3] }}\n\
             expect = {{ bound = {{ relation = \"{relation}\", value = \"{value}\", each = \"{each}\" }} }}"
        )))
    };
    assert_eq!(
        bound("at_least", "50 + 10000 * {link.wire.delay}", "mean"),
        [Some(true); 2]
    );
    assert_eq!(bound("at_most", "50", "mean"), [Some(false); 2]);
    let mean = 70.0;
    assert_eq!(bound("at_most", &format!("{mean} + 15"), "run"), [Some(true); 2]);
    assert_eq!(
        bound("equal", &format!("{mean}"), "run"),
        [Some(false); 2],
        "no two runs lose alike"
    );
}

#[test]
fn compare_may_add_and_allow_an_amount() {
    let compare = |rest: &str| {
        let sides = "axis = \"link.wire.loss.rate\", left = 0.6, relation = \"equal\", right = 0.3";
        held(&claim(&format!("expect = {{ compare = {{ {sides}, {rest} }} }}")))
    };
    assert_eq!(compare("tolerance = \"1\""), [Some(false); 2]);
    assert_eq!(compare("plus = \"-30\", tolerance = \"10\""), [Some(true); 2]);
    assert_eq!(compare("tolerance = \"40 + {link.wire.delay}\""), [Some(true); 2]);
    assert_eq!(compare("plus = \"30\", tolerance = \"10\""), [Some(false); 2]);
}

#[test]
fn compare_pairs_points_that_are_equal_otherwise() {
    let compare = |expect: &str| held(&claim(&format!("expect = {{ compare = {{ {expect} }} }}")));
    let delay = "axis = \"link.wire.delay\", left = \"1 ms\", right = \"2 ms\"";
    let same = format!("{delay}, relation = \"equal\", each = \"run\"");
    assert_eq!(compare(&same), [Some(true); 3], "one seed, one pattern of losses");
    let loss = "axis = \"link.wire.loss.rate\", left = 0, right = 0.6";
    assert_eq!(
        compare(&format!("{loss}, relation = \"at_least\", factor = 2")),
        [Some(true); 2]
    );
    assert_eq!(
        compare(&format!("{loss}, relation = \"at_least\", factor = 4")),
        [Some(false); 2]
    );
    assert_eq!(
        compare(&format!("{loss}, relation = \"at_most\"")),
        [Some(false); 2]
    );
    assert_eq!(
        compare(&format!("{loss}, relation = \"equal\", each = \"run\"")),
        [Some(false); 2]
    );
    let absent = "axis = \"link.wire.loss.rate\", left = 0, right = 0.7, relation = \"equal\"";
    assert_eq!(
        held(&narrowed(&format!("expect = {{ compare = {{ {absent} }} }}"))),
        [None; 2]
    );
}

#[test]
fn trend_follows_one_axis() {
    let trend = |direction: &str, rest: &str| {
        let trend = format!("along = \"link.wire.loss.rate\", direction = \"{direction}\"");
        held(&claim(&format!("{rest}\nexpect = {{ trend = {{ {trend} }} }}")))
    };
    assert_eq!(trend("falling", ""), [Some(true); 2]);
    assert_eq!(trend("rising", ""), [Some(false); 2]);
    let along_delay = "expect = { trend = { along = \"link.wire.delay\", direction = \"rising\" } }";
    assert_eq!(
        held(&claim(along_delay)),
        [Some(true); 3],
        "quantities have an order too"
    );
    assert_eq!(
        trend("falling", "where = { \"link.wire.delay\" = [\"2 ms\"] }"),
        [Some(true)]
    );
    assert_eq!(
        trend("falling", "where = { \"link.wire.loss.rate\" = [0.3] }"),
        [None; 2],
        "one value is no trend"
    );
}

/// Losses of 0, 0.3 and 0.6 deliver 100, about 70 and about 40 messages, whatever the delay.
#[test]
fn rank_puts_some_values_above_or_below_all_others() {
    let rank = |rest: &str| {
        held(&claim(&format!(
            "expect = {{ rank = {{ axis = \"link.wire.loss.rate\", {rest} }} }}"
        )))
    };
    assert_eq!(rank("are = [0], place = \"highest\""), [Some(true); 2]);
    let compare = |rest: &str| {
        held(&claim(&format!(
            "expect = {{ compare = {{ axis = \"link.wire.loss.rate\", left = 0, right = 0.3, {rest} }} }}"
        )))
    };
    assert_eq!(compare("relation = \"at_least\""), [Some(true); 2]);
    assert_eq!(compare("relation = \"at_least\", average = true"), [Some(true)]);
    assert_eq!(compare("relation = \"at_most\", average = true"), [Some(false)]);
    assert_eq!(rank("are = [0, 0.3], place = \"highest\""), [Some(true); 2]);
    assert_eq!(
        rank("are = [0, 0.6], place = \"highest\""),
        [Some(false); 2],
        "the last of them counts"
    );
    assert_eq!(
        rank("are = [0.6], place = \"lowest\", average = true"),
        [Some(true)]
    );
    let absent = "expect = { rank = { axis = \"link.wire.loss.rate\", are = [0.7], place = \"lowest\" } }";
    assert_eq!(held(&narrowed(absent)), [None; 2]);
    let delay = |rest: &str| {
        held(&claim(&format!(
            "expect = {{ rank = {{ axis = \"link.wire.delay\", are = [\"1 ms\"], place = \"highest\", {rest} }} }}"
        )))
    };
    assert_eq!(
        delay("beyond_chance = false"),
        [Some(true); 3],
        "equal is not below"
    );
    assert_eq!(
        delay("beyond_chance = true"),
        [Some(true), Some(false), Some(false)],
        "where chance had a part, equal means is not enough"
    );
}

#[test]
fn pooled_axes_do_not_tell_points_apart() {
    let pooled = |axes: &str| verdicts(&claim(&format!("pool = [{axes}]\n{}", bound_at_most("70"))));
    let bound_over = |axes: &str| pooled(axes).len();
    assert_eq!([bound_over(""), bound_over("\"link.wire.delay\"")], [6, 3]);
    let all = pooled("\"link.wire.delay\", \"link.wire.loss.rate\"");
    assert_eq!((all.len(), all[0].point.len()), (1, 1), "the rate is not pooled");
    let each: Vec<f64> = pooled("").iter().filter_map(|verdict| verdict.measured).collect();
    let mean = each.iter().sum::<f64>() / each.len() as f64;
    assert!((all[0].measured.expect("runs") - mean).abs() < 1e-9, "{all:?}");
    let unknown = claim_about(
        "delivered_messages",
        &format!("pool = [\"link.wire.dealy\"]\n{}", bound_at_most("1")),
    );
    let said = unknown.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(said.contains("did you mean \"link.wire.delay\""), "{said}");
}

fn bound_at_most(value: &str) -> String {
    format!("expect = {{ bound = {{ relation = \"at_most\", value = \"{value}\" }} }}")
}

#[test]
fn spread_bounds_the_difference_over_one_axis() {
    let spread = |axis: &str, within: &str| {
        held(&claim(&format!(
            "expect = {{ spread = {{ axis = \"{axis}\", within = \"{within}\" }} }}"
        )))
    };
    assert_eq!(spread("link.wire.delay", "0 %"), [Some(true); 3]);
    assert_eq!(spread("link.wire.loss.rate", "50 %"), [Some(false); 2]);
    assert_eq!(spread("link.wire.loss.rate", "75 %"), [Some(true); 2]);
}

/// A message takes its 8.3 or 0.8 ms on the wire and 1 or 2 ms of delay: the shorter way saves 10 % at 1 Mbit/s, 35 % at 10.
#[test]
fn gain_follows_what_one_saves_of_the_other() {
    let gain = |along: &str, direction: &str| {
        let pair = "axis = \"link.wire.delay\", of = \"1 ms\", over = \"2 ms\"";
        let gain = format!("{pair}, along = \"{along}\", direction = \"{direction}\"");
        claim_about("latency_mean_ms", &format!("expect = {{ gain = {{ {gain} }} }}"))
    };
    let rates = |direction: &str| {
        let scenario = gain("link.wire.rate", direction).and_then(|scenario| {
            scenario
                .with("link.wire.loss.rate", "0")?
                .with("link.wire.rate", "[\"1 Mbit/s\", \"10 Mbit/s\"]")
        });
        verdicts(&scenario.unwrap_or_else(|error| panic!("{error}")))
    };
    let rising = rates("rising");
    assert_eq!(rising.len(), 1, "{rising:?}");
    let share =
        |value: Option<f64>, expected: f64| value.is_some_and(|value| (value - expected).abs() < 0.01);
    assert!(
        share(rising[0].expected, 0.10) && share(rising[0].measured, 0.35),
        "{rising:?}"
    );
    assert_eq!(rising[0].held, Some(true));
    assert_eq!(rates("falling")[0].held, Some(false));
    let of_itself = gain("link.wire.delay", "rising")
        .err()
        .map(|error| error.to_string());
    assert!(
        of_itself.is_some_and(|error| error.contains("is compared along itself")),
        "two values of an axis leave none to go along"
    );
}

/// Of 100 messages 70 arrive where 30 % are lost, and 40 where 60 % are: together more than where none is.
#[test]
fn a_side_may_be_the_sum_of_several_values() {
    let compare = |rest: &str| {
        let pair = "axis = \"link.wire.loss.rate\", left = 0, right = { sum = [0.3, 0.6] }";
        held(&claim(&format!("expect = {{ compare = {{ {pair}, {rest} }} }}")))
    };
    assert_eq!(compare("relation = \"at_most\""), [Some(true); 2]);
    assert_eq!(compare("relation = \"at_least\""), [Some(false); 2]);
    assert_eq!(compare("relation = \"at_most\", each = \"run\""), [Some(true); 2]);
    assert_eq!(
        compare("relation = \"at_least\", each = \"run\""),
        [Some(false); 2]
    );
    assert_eq!(
        compare("relation = \"at_least\", factor = 0.91, beyond_chance = true"),
        [Some(true); 2],
        "the means of so few runs may be off by as much"
    );
    assert_eq!(
        compare("relation = \"equal\", factor = 3, beyond_chance = true"),
        [Some(false); 2],
        "not by three times as much"
    );
}

#[test]
fn a_premium_is_what_one_has_more_than_another_in_percent() {
    let premium = |of: &str, over: &str, value: &str, points: &str| {
        let pair = format!("axis = \"link.wire.loss.rate\", of = {of}, over = {over}");
        let check = format!("expect = {{ premium = {{ {pair}, value = \"{value}\", points = {points} }} }}");
        match over {
            "0.7" => verdicts(&narrowed(&check)),
            _ => verdicts(&claim(&check)),
        }
    };
    let more = premium("0", "0.3", "43", "20");
    assert_eq!(more.len(), 2, "{more:?}");
    for verdict in &more {
        assert_eq!(verdict.held, Some(true), "{verdict:?}");
        let known = verdict.low.is_some() && verdict.low < verdict.measured;
        assert!(known && verdict.expected == Some(43.0), "{verdict:?}");
    }
    assert_eq!(premium("0", "0.3", "80", "20")[0].held, Some(false));
    let sum = premium("{ sum = [0.3, 0.6] }", "0", "10", "15");
    assert_eq!(sum[0].held, Some(true), "{sum:?}");
    assert_eq!(premium("0", "0.7", "10", "15")[0].held, None);
}

#[test]
fn a_claim_whose_points_a_setting_took_away_is_without_data() {
    let at = "where = { \"link.wire.loss.rate\" = [0.7] }\nexpect = { near = { value = \"30\", within = \"90 %\" } }";
    let open = verdicts(&narrowed(at));
    let [verdict] = &open[..] else { panic!("{open:?}") };
    assert_eq!(verdict.outcome(), Outcome::NoData);
    assert!(!Tally::of(&open).is_clean());
}

#[test]
fn premiums_of_two_pairs_are_compared() {
    let premiums = |larger: (&str, &str), smaller: (&str, &str)| {
        let pair = |(of, over): (&str, &str)| format!("{{ of = {of}, over = {over} }}");
        let pairs = format!("larger = {}, smaller = {}", pair(larger), pair(smaller));
        let check = format!("expect = {{ premiums = {{ axis = \"link.wire.loss.rate\", {pairs} }} }}");
        match smaller.1 {
            "0.7" => held(&narrowed(&check)),
            _ => held(&claim(&check)),
        }
    };
    assert_eq!(premiums(("0", "0.6"), ("0", "0.3")), [Some(true); 2]);
    assert_eq!(premiums(("0", "0.3"), ("0", "0.6")), [Some(false); 2]);
    assert_eq!(premiums(("0", "0.3"), ("0", "0.3")), [Some(true); 2], "no less");
    assert_eq!(premiums(("0", "0.3"), ("0", "0.7")), [None; 2]);
}

#[test]
fn a_step_against_the_trend_may_be_chance() {
    let trend = |rest: &str| {
        let only = "where = { \"link.wire.loss.rate\" = [0.3, 0.6] }";
        held(&claim(&format!(
            "{only}\nexpect = {{ trend = {{ along = \"link.wire.loss.rate\", direction = \"rising\", {rest} }} }}"
        )))
    };
    assert_eq!(
        trend("beyond_chance = true"),
        [Some(false); 2],
        "30 messages are more than chance"
    );
    assert_eq!(trend("within = \"60 %\""), [Some(true); 2]);
}

/// What is measured comes with its interval, and what was published and explained with every verdict.
#[test]
fn a_verdict_has_the_interval_of_what_was_measured() {
    let check = "published = \"seventy\"\n\
                 where = { \"link.wire.loss.rate\" = [0.3] }\n\
                 expect = { near = { value = \"70\", within = \"20 %\" } }";
    let all = verdicts(&claim(check));
    let verdict = &all[0];
    let (mean, low, high) = (verdict.measured, verdict.low, verdict.high);
    assert!(low < mean && mean < high && low.is_some(), "{verdict:?}");
    assert_eq!(verdict.published.as_deref(), Some("seventy"));
}

/// Random losses make runs of one point differ; without them all are alike.
#[test]
fn steady_bounds_how_much_runs_deviate() {
    let steady = |within: &str| {
        verdicts(&claim(&format!(
            "expect = {{ steady = {{ within = \"{within}\" }} }}"
        )))
    };
    let measured: Vec<f64> = steady("0 %")
        .iter()
        .filter_map(|verdict| verdict.measured)
        .collect();
    assert_eq!(measured.len(), 6);
    assert_eq!(measured[..2], [0.0, 0.0], "nothing is lost");
    // Of 100 messages 70 and 40 arrive, give or take 4.6 and 4.9.
    assert!(
        measured[2..].iter().all(|share| (0.001..0.3).contains(share)),
        "{measured:?}"
    );
    let held = |within| {
        steady(within)
            .iter()
            .map(|verdict| verdict.held == Some(true))
            .collect::<Vec<_>>()
    };
    assert_eq!(held("0 %"), [true, true, false, false, false, false]);
    assert_eq!(held("30 %"), [true; 6]);
}
