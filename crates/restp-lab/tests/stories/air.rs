//! Stations on channels of 802.11: flows over chains of them, on several channels, and beyond them over wires.

use crate::common::{runs, with};
use restp_lab::Scenario;

const CHAIN: &str = r#"
id = "chain"
duration = "60 s"

[[medium]]
name = "one"

[[medium]]
name = "two"

[[station]]
name = "n{i}"
count = 5
first = "source"
last = "sink"
at_m = [0, 0]
step_m = [300, 0]
media = ["one", "two"]

[[flow]]
name = "a"
from = "source"
to = "sink"
transport = "restp:3wh-arq"
set = { segment = "1000 B", rto-floor = "1 s" }
traffic = { bulk = {} }
"#;

/// A quarter of what one hop carries, 1.415 Mbit/s with 1000 bytes in 1076.
const MOST_BPS: f64 = 1_415_000.0 / 4.0;

#[test]
fn flows_of_every_kind_cross_a_chain_and_none_gets_more_than_a_quarter_of_a_hop() {
    for transport in [
        "restp:3wh-arq",
        "tcp:newreno",
        "classic-tcp:newreno",
        "restp:default",
    ] {
        let run = &runs(&with(CHAIN, &[("flow.a.transport", transport)]))[0];
        let goodput = run.flows[0].goodput_bps.expect("bulk");
        assert!(
            (MOST_BPS / 4.0..MOST_BPS).contains(&goodput),
            "{transport}: {goodput}"
        );
    }
}

#[test]
fn what_is_lost_in_the_air_has_its_cause() {
    let run = &runs(&with(
        CHAIN,
        &[("station.n{i}.count", "9"), ("duration", "120 s")],
    ))[0];
    let given_up: u64 = run.links.iter().map(|link| link.dropped_collision).sum();
    let causes = run.flows[0].loss_causes.expect("a transport that says which");
    let of =
        |inferred: restp_lab::metrics::Inferred| inferred.congestion + inferred.corruption + inferred.outage;
    assert!(given_up > 0, "{run:?}");
    assert!(of(causes.collision) > 0, "{causes:?}");
    assert_eq!((of(causes.corruption), of(causes.outage)), (0, 0), "{causes:?}");
    // Each that was given up is missed, but perhaps the last ones; the others are acknowledgements.
    let missed = of(causes.collision) + of(causes.contention);
    let contended: u64 = run.links.iter().map(|link| link.dropped_contention).sum();
    assert!(
        missed <= given_up + contended,
        "{causes:?} of {given_up} and {contended}"
    );
    let noisy = &runs(&with(
        CHAIN,
        &[("medium.*.bit_errors", "2e-5"), ("medium.*.long_retries", "1")],
    ))[0];
    let causes = noisy.flows[0].loss_causes.expect("a transport that says which");
    assert!(of(causes.corruption) > 10, "{causes:?}");
}

/// CMT §2: interfaces on orthogonal channels are disjoint paths.
#[test]
fn two_channels_carry_nearly_twice_as_much() {
    let over = |transport: &str, paths: &str| {
        let settings = [
            ("flow.a.transport", transport),
            ("flow.a.paths", paths),
            ("duration", "120 s"),
        ];
        runs(&with(CHAIN, &settings))[0].flows[0]
            .goodput_bps
            .expect("bulk")
    };
    let one = over("mptcp:newreno", r#"[[["one"]]]"#);
    let two = over("mptcp:newreno", r#"[[["one"], ["two"]]]"#);
    assert!((1.6..2.2).contains(&(two / one)), "{two} of {one}");
}

#[test]
fn a_wire_leads_on_from_the_last_station() {
    let text = CHAIN.replace("to = \"sink\"", "to = \"server\"") + WIRE;
    let run = &runs(&with(&text, &[]))[0];
    let goodput = run.flows[0].goodput_bps.expect("bulk");
    assert!((MOST_BPS / 4.0..MOST_BPS).contains(&goodput), "{goodput}");
    let names: Vec<&str> = run.links.iter().map(|link| link.name.as_str()).collect();
    let air = ["one:source-n2", "one:n2-n3", "one:n3-n4", "one:n4-sink"];
    assert_eq!(names[..5], [&["wire"][..], &air].concat());
    let path = &run.flows[0].paths[0];
    assert_eq!(path.links, [&air, &["wire"][..]].concat());
}

const WIRE: &str = r#"
[[link]]
name = "wire"
between = ["sink", "server"]
rate = "100 Mbit/s"
delay = "1 ms"
"#;

/// Rates that adapt to the distance, and frames that survive weaker ones.
#[test]
fn keys_of_a_medium_reach_the_air() {
    let goodput = |settings: &[(&str, &str)]| {
        runs(&with(CHAIN, settings))[0].flows[0]
            .goodput_bps
            .expect("bulk")
    };
    let usual = goodput(&[]);
    assert!(goodput(&[("medium.*.capture", "10")]) > usual);
    assert!(goodput(&[("medium.*.rate", "11 Mbit/s")]) > 1.5 * usual);
    let one_hop = |key: &str, value: &str| goodput(&[("station.n{i}.count", "2"), (key, value)]);
    let [long, short] = ["long", "short"].map(|preamble| one_hop("medium.*.preamble", preamble));
    assert!(short > 1.05 * long, "{long}, {short}");
    let llc = one_hop("medium.*.llc", "true");
    assert!(llc < 0.999 * long && llc > 0.98 * long, "{long}, {llc}");
    let g = ("medium.*.standard", "802.11g");
    let far = goodput(&[g]);
    let near = goodput(&[g, ("station.n{i}.step_m", "[[130, 0]]")]);
    assert!(far > 4.0 * usual && near > far, "{usual}, {far}, {near}");
}

/// A vehicle drives from one mast to the other, each with a cable to the server; the flow has both as paths.
#[test]
fn a_flow_goes_on_when_its_station_drives_from_mast_to_mast() {
    let run = &runs(&with(DRIVE, &[]))[0];
    let bins = &run.flows[0].bins_bps;
    // In reach of the first mast until 37 s, of the second from 63 s on, and of nobody between.
    assert!(bins[0..3].iter().all(|&bps| bps > 500_000.0), "{bins:?}");
    assert_eq!(bins[4..6], [0.0, 0.0]);
    assert!(bins[7..10].iter().all(|&bps| bps > 500_000.0), "{bins:?}");
    let unreached: u64 = run.links.iter().map(|link| link.dropped_outage).sum();
    assert!(unreached > 0, "{:?}", run.links);
    let wrong = DRIVE.replace("[\"100 s\", 1000, 0]", "[\"100 s\", 1000, 0], [\"50 s\", 0, 0]");
    let sentence = Scenario::parse(&wrong).expect_err("refused").to_string();
    for part in [
        "line 15: station.vehicle.waypoints",
        "\"vehicle\" cannot be anywhere at 50 s",
        "in the order of time",
    ] {
        assert!(sentence.contains(part), "no {part:?} in: {sentence}");
    }
}

const DRIVE: &str = r#"
id = "drive"
duration = "100 s"

[[medium]]
name = "west"

[[medium]]
name = "east"

[[station]]
name = "vehicle"
at_m = [0, 0]
media = ["west", "east"]
waypoints = [["100 s", 1000, 0]]

[[station]]
name = "mast-w"
at_m = [0, 10]
media = ["west"]

[[station]]
name = "mast-e"
at_m = [1000, 10]
media = ["east"]

[[link]]
name = "cable-w"
between = ["mast-w", "server"]
rate = "100 Mbit/s"
delay = "5 ms"

[[link]]
name = "cable-e"
between = ["mast-e", "server"]
rate = "100 Mbit/s"
delay = "5 ms"

[[flow]]
name = "a"
from = "vehicle"
to = "server"
transport = "restp:geo-spread"
traffic = { bulk = {} }
paths = [["west", "cable-w"], ["east", "cable-e"]]
bins = "10 s"
"#;

#[test]
fn a_seed_is_a_run() {
    let run = |seed: &str| runs(&with(CHAIN, &[("seed", seed)]))[0].flows[0].delivered_bytes;
    assert_eq!(run("1"), run("1"));
    assert_ne!(run("1"), run("2"));
}

#[track_caller]
fn refused(from: &str, to: &str, parts: &[&str]) {
    assert!(CHAIN.contains(from), "{from}");
    let sentence = Scenario::parse(&CHAIN.replacen(from, to, 1))
        .expect_err("refused")
        .to_string();
    for part in parts {
        assert!(sentence.contains(part), "no {part:?} in: {sentence}");
    }
}

#[test]
fn impossible_stations_are_refused_with_their_line_and_the_way_out() {
    refused(
        "step_m = [300, 0]",
        "step_m = [0, 0]",
        &[
            "line 16",
            "station.n{i}.at_m",
            "\"n2\" stands where \"source\" does",
            "move",
        ],
    );
    refused(
        "\"one\", \"two\"]",
        "\"one\", \"tow\"]",
        &[
            "line 18",
            "station.n{i}.media",
            "\"tow\"",
            "did you mean \"two\"?",
        ],
    );
    refused(
        "at_m = [0, 0]",
        "at_m = [0, 1e6]",
        &[
            "line 16",
            "station.n{i}.at_m",
            "(0, 1000000) m",
            "-100000 to 100000",
        ],
    );
    refused(
        "step_m = [300, 0]",
        "step_m = [371, 0]",
        &[
            "line 18",
            "media",
            "\"source\" has no link",
            "no nearer than 371.0 m",
            "raise decode_m",
        ],
    );
    refused(
        "[\"one\", \"two\"]",
        "[\"one\", \"one\"]",
        &["line 18", "two radios on one channel"],
    );
    refused("[\"one\", \"two\"]", "[]", &["line 18", "hears nobody"]);
    refused(
        "[\"one\", \"two\"]",
        "[\"one\"]",
        &["line 9", "medium.two.name", "no station has a radio on \"two\""],
    );
    refused("count = 5\nfirst", "first", &["station.n{i}", "write a count"]);
    refused(
        "last = \"sink\"",
        "last = \"n2\"",
        &["line 12", "two stations are called \"n2\""],
    );
}

#[test]
fn impossible_media_are_refused_with_their_line_and_the_way_out() {
    let medium = |key: &str, parts: &[&str]| {
        refused(
            "name = \"one\"",
            &format!("name = \"one\"\n{key}"),
            &[&["line 7"], parts].concat(),
        )
    };
    medium(
        "rate = \"3 Mbit/s\"",
        &["medium.one.rate", "1 Mbit/s, 2 Mbit/s, 5.5 Mbit/s, 11 Mbit/s"],
    );
    medium(
        "standard = \"802.11n\"",
        &["medium.one.standard", "802.11b, 802.11g"],
    );
    medium(
        "control_rate = \"6 Mbit/s\"",
        &["medium.one.control_rate", "do not send at 6 Mbit/s"],
    );
    medium("preamble = \"brief\"", &["medium.one.preamble", "long, short"]);
    medium(
        "preamble = \"short\"\nstandard = \"802.11g\"",
        &[
            "medium.one.preamble",
            "802.11g has one preamble",
            "write standard",
        ],
    );
    medium("capture = 0.5", &["medium.one.capture", "1 to 1000000"]);
    medium(
        "capture = 10\ninterfere_m = 800",
        &["medium.one.capture", "leave out capture or interfere_m"],
    );
    medium("rate = \"3\"", &["medium.one.rate", "no unit"]);
    medium(
        "decode_m = 600",
        &["medium.one.decode_m", "at least as far as decode"],
    );
    medium("bit_errors = 2", &["medium.one.bit_errors", "from 0 to 1"]);
    medium(
        "short_retries = 0",
        &["medium.one.short_retries", "write 1 to 255"],
    );
    medium(
        "long_retries = 5000000000",
        &["medium.one.long_retries", "write 1 to 255"],
    );
    medium("queue_packets = 0", &["medium.one.queue_packets", "write 1 to"]);
    medium("chanel = 1", &["medium.one.chanel", "control_rate"]);
    refused(
        "name = \"two\"",
        "name = \"one\"",
        &["line 9", "two media are called \"one\""],
    );
}

#[test]
fn a_flow_between_parts_that_nothing_joins_is_refused() {
    let far = CHAIN.replace("to = \"sink\"", "to = \"m2\"")
        + "[[station]]\nname = \"m{i}\"\ncount = 2\nat_m = [0, 5000]\nstep_m = [300, 0]\nmedia = [\"one\"]\n";
    let sentence = Scenario::parse(&far).expect_err("refused").to_string();
    assert!(
        sentence.contains("flow.a.to: no route leads from \"source\" to \"m2\""),
        "{sentence}"
    );
    let sentence = Scenario::parse(&CHAIN.replace("[[flow]]", "[[flow]]\npaths = [[\"three\"]]"));
    let sentence = sentence.expect_err("refused").to_string();
    assert!(
        sentence.contains("flow.a.paths[0]: no link is called \"three\", nor a medium"),
        "{sentence}"
    );
}
