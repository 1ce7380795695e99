//! What a scenario means; how a typo is answered is in `refusals`.

mod refusals;

use super::*;
use crate::Scenario;
use crate::traffic::{Cbr, Framing, Traffic};
use restp_base::time::{Duration, Time};
use restp_sim::{ErrorModel, QueueLimit};

const VALID: &str = r#"
id = "bulk-lossy"
title = "Bulk transfer over a lossy bottleneck"
duration = "100 s"
seed = 1
runs = 20

[[link]]
name = "access"
between = ["source", "router"]
rate = "10 Mbit/s"
delay = "10 us"
queue = { drop_tail = "100 packets" }

[[link]]
name = "bottleneck"
between = ["router", "sink"]
rate = "2 Mbit/s"
delay = "45 ms"
queue = { drop_tail = "bdp" }
loss = { rate = 0.01, unit = "packet", direction = "forward" }
outage = ["20 s..30 s"]

[[flow]]
name = "a"
from = "source"
to = "sink"
transport = "udp"
traffic = { cbr = { rate = "1.12 Mbit/s", bytes = 1400 } }
start = "0 s"
"#;

fn plan(text: &str) -> Plan {
    Scenario::parse(text).unwrap().points()[0].plan.clone()
}

/// `VALID` with one piece of text replaced by another.
fn changed(from: &str, to: &str) -> String {
    assert!(VALID.contains(from), "{from} is not in the scenario");
    VALID.replacen(from, to, 1)
}

/// The sentence about `VALID` with one replacement; it must name all of `parts`.
#[track_caller]
fn refused(from: &str, to: &str, parts: &[&str]) {
    let sentence = Scenario::parse(&changed(from, to))
        .expect_err("refused")
        .to_string();
    for part in parts {
        assert!(sentence.contains(part), "no {part:?} in: {sentence}");
    }
}

#[test]
fn the_example_means_what_it_says() {
    let plan = plan(VALID);
    assert_eq!(
        (plan.duration, plan.seed, plan.runs),
        (Duration::from_secs(100), 1, 20)
    );
    let bottleneck = &plan.links[1];
    assert_eq!(bottleneck.between, ["router", "sink"]);
    assert_eq!(
        bottleneck.forward.rate,
        Some(restp_base::units::Rate::from_bps(2_000_000).into())
    );
    assert!(matches!(bottleneck.forward.loss[..], [ErrorModel::Rate(rate)] if rate.probability == 0.01));
    assert!(bottleneck.reverse.loss.is_empty());
    let outage = Time::ZERO + Duration::from_secs(20)..Time::ZERO + Duration::from_secs(30);
    assert_eq!(
        (&bottleneck.forward.outage[..], &bottleneck.reverse.outage[..]),
        (&[outage.clone()][..], &[outage][..])
    );
    // Table A.1: 10 000 messages of 1400 B in 100 s at 1.12 Mbit/s.
    let interval = Duration::from_millis(10);
    assert_eq!(
        plan.flows[0].traffic,
        Traffic::Cbr(Cbr {
            bytes: 1400,
            interval,
            count: None,
            late_after: None,
            framing: Framing::Known,
        })
    );
}

/// 10 Mbit/s for half of the run and 2 Mbit/s for the rest are 6 Mbit/s: 67.5 kB in a round trip of 90.02 ms.
#[test]
fn a_rate_that_changes_counts_in_the_mean_over_the_run() {
    let steps = "{ steps = [[\"0 s\", \"10 Mbit/s\"], [\"50 s\", \"2 Mbit/s\"]] }";
    let text = changed("\"2 Mbit/s\"", steps);
    assert_eq!(plan(&text).links[1].forward.queue, QueueLimit::Packets(46).into());
    let missing = text.replacen(steps, "{ trace = \"no such file\" }", 1);
    let sentence = Scenario::parse(&missing).expect_err("refused").to_string();
    assert!(sentence.contains("link.bottleneck.rate.trace"), "{sentence}");
}

/// 2 Mbit/s and 2 · 45.01 ms are 22.5 kB: 16 packets of 1500 bytes (ResTP experiments, E7 to E9).
#[test]
fn a_bdp_queue_holds_the_longest_round_trip_of_a_flow_and_at_least_one_packet() {
    assert_eq!(plan(VALID).links[1].forward.queue, QueueLimit::Packets(16).into());
    assert_eq!(
        plan(&changed("100 packets", "bdp")).links[0].forward.queue,
        QueueLimit::Packets(76).into()
    );
    let short = changed("\"45 ms\"", "\"10 us\"");
    assert_eq!(plan(&short).links[1].forward.queue, QueueLimit::Packets(1).into());
    assert_eq!(
        plan(&changed("100 packets", "64 KiB")).links[0].forward.queue,
        QueueLimit::Bytes(65536).into()
    );
}

#[test]
fn a_sweep_is_a_product_with_the_last_axis_fastest() {
    let sweep =
        "\n[sweep]\n\"link.bottleneck.loss.rate\" = [0, 0.1]\nduration = [\"1 s\", \"2 s\", \"3 s\"]\n";
    let scenario = Scenario::parse(&(VALID.to_owned() + sweep)).unwrap();
    let points: Vec<String> = scenario
        .points()
        .iter()
        .map(|p| serde_json::to_string(&p.coordinates).unwrap())
        .collect();
    assert_eq!(points.len(), 6);
    assert_eq!(points[1], r#"{"link.bottleneck.loss.rate":0,"duration":"2 s"}"#);
    assert_eq!(points[3], r#"{"link.bottleneck.loss.rate":0.1,"duration":"1 s"}"#);
    assert_eq!(scenario.points()[5].plan.duration, Duration::from_secs(3));
}

#[test]
fn an_axis_may_reach_all_links_or_several_keys_of_a_flow() {
    let sweep = "\n[sweep]\nlink.\"*\".delay = [\"1 ms\"]\n\"flow.a\" = [{ start = \"1 s\", start_spread = \"2 s\" }]\n";
    let scenario = Scenario::parse(&(VALID.to_owned() + sweep)).unwrap();
    let point = &scenario.points()[0];
    assert!(
        point
            .plan
            .links
            .iter()
            .all(|link| link.reverse.delay == Duration::from_millis(1))
    );
    assert_eq!(point.plan.flows[0].start_spread, Duration::from_secs(2));
    assert_eq!(point.coordinates["flow.a.start"], "1 s");
}

#[test]
fn a_setting_replaces_an_axis_and_needs_no_quotes() {
    let sweep = "\n[sweep]\n\"flow.*.transport\" = [\"udp\", \"tcp:cubic\"]\n";
    let scenario = Scenario::parse(&(VALID.to_owned() + sweep)).unwrap();
    assert_eq!(scenario.points().len(), 2);
    let scenario = scenario
        .with("flow.*.transport", "udp")
        .unwrap()
        .with("duration", "5 s")
        .unwrap();
    assert_eq!(scenario.points().len(), 1);
    assert_eq!(scenario.points()[0].plan.duration, Duration::from_secs(5));
    assert_eq!(scenario.with("runs", "[1, 2]").unwrap().points().len(), 2);
}

#[test]
fn a_count_makes_copies() {
    let many = VALID
        .replace(
            "name = \"access\"\nbetween = [\"source\"",
            "name = \"access-{i}\"\ncount = 3\nbetween = [\"source-{i}\"",
        )
        .replace(
            "name = \"a\"\nfrom = \"source\"",
            "name = \"a-{i}\"\ncount = 3\nfrom = \"source-{i}\"",
        );
    let plan = plan(&many);
    assert_eq!((plan.links.len(), plan.flows.len()), (4, 3));
    assert_eq!(
        (&*plan.flows[2].name, &*plan.flows[2].from, &*plan.links[2].name),
        ("a-3", "source-3", "access-3")
    );
}
