//! Scenarios that are none: each sentence names the line, the key, the value and the way out.

mod air;
mod sweeps;

use super::*;

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

#[test]
fn what_is_missing_at_the_top_is_shown() {
    let text = changed("[[flow]]", "[[flow]]");
    let without = |key: &str| {
        let lines = text.lines().filter(|line| !line.starts_with(key));
        lines.collect::<Vec<_>>().join("\n")
    };
    for key in ["id", "duration"] {
        let sentence = Scenario::parse(&without(key)).expect_err("refused").to_string();
        assert!(
            sentence.contains(&format!("there is no {key}; write one")),
            "{sentence}"
        );
    }
}

#[test]
fn a_transport_that_is_none_is_answered_with_its_family_or_with_families() {
    let said = |name: &str| {
        let text = changed("transport = \"udp\"", &format!("transport = \"{name}\""));
        Scenario::parse(&text).expect_err("refused").to_string()
    };
    let of_family = said("quic:quin");
    assert!(
        of_family.contains("quic:quinn") && !of_family.contains("udp"),
        "{of_family}"
    );
    let of_none = said("qiuc");
    assert!(
        of_none.contains("did you mean \"quic\"?") && of_none.len() < 300,
        "{of_none}"
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

/// Pages, figures and traces are named by it.
#[test]
fn an_id_that_leads_elsewhere() {
    let scenario = Scenario::parse(VALID).unwrap();
    for id in ["", "../up", "a/b", ".hidden", "two words"] {
        let written = format!("id = \"{}\"", scenario.id());
        refused(&written, &format!("id = \"{id}\""), &["line 2", "is no id"]);
    }
}

/// A scheme may need what only another setting gives.
#[test]
fn settings_are_judged_together() {
    let both = [
        ("flow.a.transport", "smt:smos"),
        ("flow.a.set.bandwidths", "\"10 Mbit/s\""),
    ];
    let both = both.map(|(key, value)| (key.to_string(), value.to_string()));
    let scenario = Scenario::parse(VALID).unwrap();
    assert!(
        both.iter()
            .all(|(key, value)| scenario.clone().with(key, value).is_err())
    );
    scenario.with_all(both).expect("possible together");
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
        &["line 10", "count", "1 to 65536"],
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
