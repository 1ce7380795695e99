//! Services that change while a flow runs, as a scenario asks for them (ADR 0007).

use crate::common::{runs, with};
use restp_lab::Scenario;

const FLOW: &str = r#"
id = "changes"
duration = "40 s"
runs = 3

[[link]]
name = "path"
between = ["a", "b"]
rate = "10 Mbit/s"
delay = "20 ms"
loss = { rate = 0.02, unit = "packet", direction = "both" }

[[flow]]
name = "f"
from = "a"
to = "b"
transport = "restp:cubic"
traffic = { file = { bytes = 8000000 } }

[[flow.change]]
at = "2 s"
set = { congestion = "bbr", loss = "corruption" }

[[flow.change]]
at = "1 s"
set = { ack = "positive+snack" }
"#;

/// What is agreed takes a round trip, what is local none; no byte is lost or doubled by either.
#[test]
fn a_flow_changes_what_its_scenario_says_when_it_says_so() {
    for run in runs(&with(FLOW, &[])) {
        let flow = &run.flows[0];
        assert_eq!(
            (flow.delivered_bytes, flow.wrong_bytes),
            (8_000_000, Some(0)),
            "{flow:?}"
        );
        let since = |key: &str, to: &str| {
            let found = flow.changes.iter().find(|change| change.key == key);
            let change = found.unwrap_or_else(|| panic!("{key}: {:?}", flow.changes));
            assert_eq!((&change.to[..], change.why), (to, "application"), "{change:?}");
            change.at_s
        };
        let agreed = since("ack", "positive+snack");
        assert!((1.04..2.0).contains(&agreed), "after a round trip: {agreed}");
        assert_eq!(since("congestion", "bbr"), 2.0);
    }
}

#[test]
fn without_the_changes_the_same_flow_has_none_and_is_slower() {
    let steady = FLOW.split("[[flow.change]]").next().expect("what stands before");
    let mean = |text: &str| {
        let all = runs(&with(text, &[]));
        all.iter()
            .map(|run| run.flows[0].completion_s.unwrap_or(40.0))
            .sum::<f64>()
            / all.len() as f64
    };
    assert_eq!(runs(&with(steady, &[]))[0].flows[0].changes, []);
    let (changed, steady) = (mean(FLOW), mean(steady));
    assert!(
        changed < steady,
        "CUBIC takes random loss for congestion, BBR does not: {changed} {steady}"
    );
}

/// A server refuses less order than its application has asked for; in a scenario it has asked for what the opener does.
#[test]
fn the_server_of_a_scenario_goes_along_with_less_order() {
    let text = FLOW.replace("ack = \"positive+snack\"", "ordering = \"unordered\"");
    for run in runs(&with(&text, &[])) {
        let flow = &run.flows[0];
        let change = flow.changes.iter().find(|change| change.key == "ordering");
        let told = change.map(|change| (&change.to[..], change.why));
        assert_eq!(told, Some(("unordered", "application")));
        assert_eq!(flow.delivered_bytes, 8_000_000);
        assert!(flow.wrong_bytes > Some(0), "what comes early is read early");
    }
}

/// What would have to change is over; another flow, which goes on, is not disturbed.
#[test]
fn a_flow_that_is_over_when_its_change_is_due_is_left_as_it_is() {
    let other = "\n[[flow]]\nname = \"g\"\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\n\
                 traffic = { cbr = { bytes = 100, interval = \"1 s\" } }\n";
    let change = "\n[[flow.change]]\nat = \"39 s\"\nset = { ordering = \"unordered\" }\n";
    let text = [FLOW, change, other].concat();
    for run in runs(&with(&text, &[])) {
        let flow = &run.flows[0];
        assert!(run.sim_seconds == 40.0 && flow.completion_s.is_some_and(|end| end < 39.0));
        assert!(
            flow.changes.iter().all(|change| change.key != "ordering"),
            "{:?}",
            flow.changes
        );
    }
}

/// Each change builds on those before: BBR has no HyStart to leave out.
#[test]
fn a_change_that_makes_no_sense_after_another_is_refused() {
    let text = FLOW
        .replace("ack = \"positive+snack\"", "congestion = \"bbr\"")
        .replace(
            "{ congestion = \"bbr\", loss = \"corruption\" }",
            "{ hystart = \"off\" }",
        );
    let error = Scenario::parse(&text)
        .map(|_| ())
        .expect_err("refused")
        .to_string();
    assert!(error.contains("line ") && error.contains("hystart"), "{error}");
}

#[test]
fn what_cannot_change_is_refused_with_its_place() {
    for (from, to, words) in [
        (
            "congestion = \"bbr\"",
            "framing = \"fixed\"",
            ["framing", "settled"],
        ),
        (
            "congestion = \"bbr\"",
            "congestion = \"bbbr\"",
            ["congestion", "bbr"],
        ),
        (
            "{ congestion = \"bbr\", loss = \"corruption\" }",
            "{}",
            ["flow.f.change", "nothing is changed"],
        ),
        ("at = \"2 s\"", "at = \"40 s\"", ["flow.f.change", "earlier"]),
        ("at = \"2 s\"", "at = \"0 s\"", ["flow.f.change", "later time"]),
        (
            "transport = \"restp:cubic\"",
            "transport = \"tcp:cubic\"",
            ["services", "choose a restp"],
        ),
    ] {
        let text = FLOW.replacen(from, to, 1);
        let error = Scenario::parse(&text)
            .map(|_| ())
            .expect_err("refused")
            .to_string();
        assert!(
            error.contains("line ") && words.iter().all(|word| error.contains(word)),
            "{to}: {error}"
        );
    }
}
