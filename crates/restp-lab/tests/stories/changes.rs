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
            let found = flow
                .changes
                .iter()
                .find(|change| change.key == key && change.to == to);
            found
                .unwrap_or_else(|| panic!("{key} {to}: {:?}", flow.changes))
                .at_s
        };
        let agreed = since("ack", "positive+snack");
        assert!((1.04..3.0).contains(&agreed), "after a round trip: {agreed}");
        assert_eq!(since("congestion", "bbr").max(2.0), since("congestion", "bbr"));
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
