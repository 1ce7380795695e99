//! What a scenario means, and how a typo is answered.

use super::*;
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
        Some(restp_base::units::Rate::from_bps(2_000_000))
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
    let sweep = "\n[sweep]\n\"flow.*.transport\" = [\"udp\", \"udp\"]\n";
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

#[test]
fn a_misspelt_key_of_a_link() {
    refused(
        "delay = \"45 ms\"",
        "dealy = \"45 ms\"",
        &[
            "line 19",
            "link.bottleneck.dealy",
            "delay",
            "rate",
            "queue",
            "did you mean \"delay\"?",
        ],
    );
}

#[test]
fn a_misspelt_key_at_the_top() {
    refused(
        "duration = ",
        "durration = ",
        &[
            "line 4",
            "durration",
            "title",
            "runs",
            "did you mean \"duration\"?",
        ],
    );
}

/// The sweep names a flow that the misspelt table should have brought.
#[test]
fn a_misspelt_table_at_the_top_is_reported_before_what_it_leaves_out() {
    let text = changed("[[flow]]", "[[flwo]]") + "\n[sweep]\n\"flow.a.transport\" = [\"udp\"]\n";
    let sentence = Scenario::parse(&text).expect_err("refused").to_string();
    for part in [
        "line 24: flwo: there is no key \"flwo\"",
        "sweep, check",
        "did you mean \"flow\"?",
    ] {
        assert!(sentence.contains(part), "no {part:?} in: {sentence}");
    }
}

#[test]
fn an_empty_file() {
    for text in ["", "# nothing yet\n"] {
        let sentence = Scenario::parse(text).expect_err("refused").to_string();
        assert!(sentence.contains("is empty; write id, duration"), "{sentence}");
    }
}

#[test]
fn a_number_without_unit() {
    refused(
        "\"10 Mbit/s\"",
        "\"10\"",
        &[
            "line 11",
            "link.access.rate",
            "\"10\"",
            "no unit",
            "kbit/s, Mbit/s",
        ],
    );
}

#[test]
fn a_bare_number_where_a_quantity_is_needed() {
    refused(
        "\"100 s\"",
        "100",
        &["line 4", "duration", "\"100\" has no unit", "\"10 ms\"", "min, h"],
    );
}

#[test]
fn a_bare_number_of_a_flow_and_a_negative_one() {
    refused(
        "start = \"0 s\"",
        "start = 1",
        &["line 30", "flow.a.start", "\"1\" has no unit", "a span of time"],
    );
    refused(
        "\"1.12 Mbit/s\"",
        "1.5",
        &[
            "line 29",
            "flow.a.traffic.cbr.rate",
            "\"1.5\" has no unit",
            "Mbit/s",
        ],
    );
    refused(
        "\"45 ms\"",
        "\"-45 ms\"",
        &["line 19", "link.bottleneck.delay", "must not be negative"],
    );
}

#[test]
fn a_unit_of_another_kind() {
    refused(
        "\"45 ms\"",
        "\"45 Mbit/s\"",
        &[
            "line 19",
            "link.bottleneck.delay",
            "another kind",
            "ns, us, ms, s",
        ],
    );
}

#[test]
fn a_probability_in_percent() {
    refused(
        "0.01",
        "1.5",
        &["line 21", "link.bottleneck.loss.rate", "1.5", "from 0 to 1"],
    );
}

#[test]
fn a_node_nobody_knows() {
    refused(
        "to = \"sink\"",
        "to = \"sinc\"",
        &[
            "line 27",
            "flow.a.to",
            "\"sinc\"",
            "source, router, sink",
            "did you mean \"sink\"?",
        ],
    );
}

#[test]
fn a_transport_nobody_knows() {
    refused(
        "\"udp\"",
        "\"upd\"",
        &["line 28", "flow.a.transport", "\"upd\"", "udp", "did you mean"],
    );
}

#[test]
fn a_direction_nobody_knows() {
    refused(
        "\"forward\"",
        "\"foward\"",
        &[
            "line 21",
            "link.bottleneck.loss.direction",
            "forward",
            "reverse",
            "both",
            "did you mean",
        ],
    );
}

#[test]
fn a_queue_that_is_no_size() {
    refused(
        "\"bdp\"",
        "\"2 bdp\"",
        &[
            "line 20",
            "link.bottleneck.queue.drop_tail",
            "\"2 bdp\"",
            "100 packets",
            "64 KiB",
            "\"bdp\"",
        ],
    );
}

#[test]
fn a_queue_discipline_nobody_knows() {
    refused(
        "{ drop_tail = \"bdp\" }",
        "{ droptail = \"bdp\" }",
        &["line 20", "link.bottleneck.queue", "drop_tail"],
    );
}

#[test]
fn a_traffic_nobody_knows_and_one_that_is_still_to_come() {
    refused(
        "cbr = { rate",
        "crb = { rate",
        &[
            "line 29",
            "flow.a.traffic",
            "bulk",
            "file",
            "cbr",
            "did you mean \"cbr\"?",
        ],
    );
    refused(
        "cbr = { rate = \"1.12 Mbit/s\", bytes = 1400 }",
        "voip = { framing = \"lenght\" }",
        &["line 29", "flow.a.traffic.voip.framing", "length, raw"],
    );
}

#[test]
fn a_rate_and_an_interval_at_once() {
    refused(
        "bytes = 1400",
        "bytes = 1400, interval = \"20 ms\"",
        &["line 29", "flow.a.traffic", "not both"],
    );
}

#[test]
fn a_message_without_room_for_its_stamp() {
    refused(
        "bytes = 1400",
        "bytes = 15",
        &["line 29", "flow.a.traffic.cbr.bytes", "15 bytes", "16"],
    );
}

#[test]
fn an_outage_the_wrong_way_round() {
    refused(
        "20 s..30 s",
        "30 s..20 s",
        &["line 22", "link.bottleneck.outage", "ends before it starts"],
    );
}

#[test]
fn a_missing_key() {
    refused(
        "rate = \"2 Mbit/s\"\n",
        "",
        &["line 15", "link.bottleneck", "missing", "rate"],
    );
}

#[test]
fn two_links_of_one_name_and_a_part_that_hangs_loose() {
    refused(
        "\"bottleneck\"",
        "\"access\"",
        &["line 16", "two links are called \"access\""],
    );
    refused(
        "[\"router\", \"sink\"]",
        "[\"ruter\", \"sink\"]",
        &["line 17", "between", "no route"],
    );
}

#[test]
fn broken_toml() {
    refused("runs = 20", "runs = ", &["line 6"]);
}

#[test]
fn zero_runs() {
    refused("runs = 20", "runs = 0", &["line 6", "runs", "0 runs", "1 to"]);
}

#[test]
fn a_swept_value_is_blamed_where_it_is_written() {
    let blame = |axis: &str| {
        Scenario::parse(&format!("{VALID}\n[sweep]\n{axis}\n"))
            .expect_err("refused")
            .to_string()
    };
    let sentence = blame("\"link.bottleneck.loss.rate\" = [0.1, 7]");
    assert!(
        sentence.contains("line 33: link.bottleneck.loss.rate: 7"),
        "{sentence}"
    );
    let sentence = blame("\"link.botleneck.rate\" = [\"1 Mbit/s\"]");
    assert!(
        sentence.contains("line 33") && sentence.contains("did you mean \"bottleneck\"?"),
        "{sentence}"
    );
    let sentence = blame("\"link.bottleneck.los\" = [{ rate = 0.1 }]");
    assert!(
        sentence.contains("line 33") && sentence.contains("did you mean \"loss\"?"),
        "{sentence}"
    );
    let sentence = blame("\"flow.a.transport\" = \"udp\"");
    assert!(
        sentence.contains("line 33") && sentence.contains("list"),
        "{sentence}"
    );
    let sentence = blame("speed = [1]");
    assert!(
        sentence.contains("line 33") && sentence.contains("link.NAME.KEY"),
        "{sentence}"
    );
    let sentence = blame("runs = []");
    assert!(
        sentence.contains("line 33") && sentence.contains("at least one"),
        "{sentence}"
    );
}

#[test]
fn a_setting_is_blamed_as_written() {
    let refused = |key, value| {
        Scenario::parse(VALID)
            .unwrap()
            .with(key, value)
            .expect_err("refused")
            .to_string()
    };
    let sentence = refused("link.access.rate", "10 furlongs");
    assert!(
        sentence.starts_with("setting link.access.rate=10 furlongs: link.access.rate: "),
        "{sentence}"
    );
    assert!(refused("flow.b.start", "1 s").contains("there is no flow \"b\"; write one of: a, *"));
}

#[test]
fn a_sweep_too_large_to_hold() {
    let many = (0..200).map(|i| i.to_string()).collect::<Vec<_>>().join(",");
    let sweep = format!("{VALID}\n[sweep]\nseed = [{many}]\nruns = [{many}]\n\"flow.a.start\" = [\"0 s\"]\n");
    let sentence = Scenario::parse(&sweep).expect_err("refused").to_string();
    assert!(
        sentence.contains("40000 points") && sentence.contains("10000"),
        "{sentence}"
    );
}

#[test]
fn a_claim_about_nothing() {
    let check = "\n[sweep]\nseed = [1]\n[[check]]\nid = \"1\"\ntext = \"t\"\nmetric = \"flow.a.goodput_bsp\"\n\
        expect = { near = { value = \"1e6\", within = \"1 %\" } }\n";
    let sentence = Scenario::parse(&(VALID.to_owned() + check))
        .expect_err("refused")
        .to_string();
    assert!(
        sentence.contains("line 37") && sentence.contains("did you mean \"goodput_bps\"?"),
        "{sentence}"
    );
    let check = check.replace("bsp", "bps").replace("1e6", "{sed}");
    let sentence = Scenario::parse(&(VALID.to_owned() + &check))
        .expect_err("refused")
        .to_string();
    assert!(
        sentence.contains("line 38") && sentence.contains("did you mean \"seed\"?"),
        "{sentence}"
    );
}

#[test]
fn copies_need_names_of_their_own_and_a_sane_number() {
    refused(
        "name = \"access\"",
        "name = \"access\"\ncount = 2",
        &["line 9", "link.access.name", "{i}", "access-{i}"],
    );
    refused(
        "name = \"access\"",
        "name = \"access-{i}\"\ncount = 0",
        &["line 10", "count", "1 to 4096"],
    );
    refused(
        "name = \"access\"",
        "name = \"access-{i}\"",
        &["line 9", "access-{i}", "needs a count"],
    );
}

#[test]
fn more_messages_than_memory_holds() {
    refused(
        "rate = \"1.12 Mbit/s\"",
        "interval = \"1 ns\"",
        &["line 29", "flow.a.traffic", "100000000000 messages", "50000000"],
    );
}
