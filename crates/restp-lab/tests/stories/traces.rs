//! What runs did over time: traces change nothing, say what results say, and end where they were told to.

use crate::common::{runs, with};
use restp_base::time::{Duration, Time};
use restp_lab::RunError;
use restp_lab::run::{Column, RunResult, Table, Traces, TracesWanted, traces};

const LOSSY: &str = r#"
id = "lossy"
duration = "10 s"

[[link]]
name = "bottleneck"
between = ["source", "sink"]
rate = "2 Mbit/s"
delay = "20 ms"
queue = { drop_tail = "20 packets" }
loss = { drop = [40, 41, 90] }

[[flow]]
name = "a"
from = "source"
to = "sink"
transport = "restp:3wh-arq"
traffic = { bulk = {} }
"#;

const ALL: TracesWanted = TracesWanted {
    every: Duration::ZERO,
    rows: 1_000_000,
    sequence: true,
    air: Time::ZERO..Time::ZERO,
};

fn traced(settings: &[(&str, &str)], wanted: TracesWanted) -> Result<(RunResult, Traces), RunError> {
    traces(&with(LOSSY, settings).points()[0], 1, wanted)
}

fn integers<'a>(table: &'a Table, name: &str) -> &'a [i64] {
    match table.column(name) {
        Some(Column::Integer(values)) => values,
        other => panic!("{name} is {other:?}"),
    }
}

fn floats<'a>(table: &'a Table, name: &str) -> &'a [f64] {
    match table.column(name) {
        Some(Column::Float(values)) => values,
        other => panic!("{name} is {other:?}"),
    }
}

fn words<'a>(table: &'a Table, name: &str) -> Vec<&'a str> {
    match table.column(name) {
        Some(Column::Word(codes, words)) => codes.iter().map(|code| words[*code as usize].as_str()).collect(),
        other => panic!("{name} is {other:?}"),
    }
}

#[test]
fn a_trace_changes_nothing_and_says_what_the_result_says() {
    for transport in ["restp:3wh-arq", "classic-tcp:newreno"] {
        let settings = [("flow.a.transport", transport)];
        let (result, traces) = traced(&settings, ALL).expect("it runs");
        assert_eq!(result, runs(&with(LOSSY, &settings))[0], "{transport}");

        let flow = &result.flows[0];
        let sequence = &traces.sequence;
        let (hosts, steps) = (words(sequence, "host"), words(sequence, "step"));
        let sent: Vec<usize> = (0..sequence.rows())
            .filter(|row| hosts[*row] == "opener" && steps[*row] == "sent")
            .collect();
        assert_eq!(sent.len() as u64, flow.sent_packets, "{transport}");
        let payload: i64 = sent
            .iter()
            .map(|row| integers(sequence, "payload_bytes")[*row])
            .sum();
        let last = *integers(&traces.window, "sent_payload_bytes")
            .last()
            .expect("rows");
        assert_eq!(payload, last, "{transport}: both count retransmissions");

        // A retransmission has a number that was there before: as many of them as the flow counts.
        let mut highest = -1;
        let numbers = sent
            .iter()
            .filter(|row| integers(sequence, "payload_bytes")[**row] > 0);
        let retransmissions = numbers
            .filter(|row| {
                let number = integers(sequence, "sequence")[**row];
                let seen = number <= highest;
                highest = highest.max(number);
                seen
            })
            .count();
        assert_eq!(retransmissions as u64, flow.retransmitted_packets, "{transport}");
        assert!(retransmissions >= 3, "{transport}: three packets were lost");

        assert_eq!(
            *integers(&traces.queue, "packets").iter().max().expect("rows"),
            20,
            "{transport}"
        );
        assert!(
            floats(&traces.window, "srtt_s").iter().any(|srtt| *srtt > 0.05),
            "{transport}"
        );
        let carried = *integers(&traces.path, "sent_bytes").last().expect("rows");
        assert_eq!(carried as u64, flow.paths[0].bytes_sent, "{transport}");
    }
}

#[test]
fn every_path_has_numbers_of_its_own() {
    let text = format!(
        "{}\n[[link]]\nname = \"second\"\nbetween = [\"source\", \"sink\"]\nrate = \"1 Mbit/s\"\ndelay = \"5 ms\"\n",
        LOSSY
    );
    let scenario = with(
        &text,
        &[
            ("flow.a.transport", "restp:geo-spread"),
            ("flow.a.paths", "[[[\"bottleneck\"], [\"second\"]]]"),
        ],
    );
    let (result, traces) = traces(&scenario.points()[0], 1, ALL).expect("it runs");
    for (index, path) in result.flows[0].paths.iter().enumerate() {
        let of_path = |table: &Table, row: &usize| integers(table, "path")[*row] == index as i64;
        let last = (0..traces.path.rows()).rfind(|row| of_path(&traces.path, row));
        let last = last.unwrap_or_else(|| panic!("path {index} is in the trace"));
        assert_eq!(integers(&traces.path, "sent_bytes")[last] as u64, path.bytes_sent);
        let first = (0..traces.sequence.rows())
            .find(|row| of_path(&traces.sequence, row) && integers(&traces.sequence, "sequence")[*row] >= 0);
        let first = first.unwrap_or_else(|| panic!("path {index} has numbers"));
        assert_eq!(integers(&traces.sequence, "sequence")[first], 0);
    }
}

#[test]
fn whoever_looks_less_often_gets_fewer_rows() {
    let (_, all) = traced(&[], ALL).expect("it runs");
    let every = Duration::from_millis(100);
    let wanted = TracesWanted {
        every,
        sequence: false,
        ..ALL
    };
    let (_, few) = traced(&[], wanted).expect("it runs");
    assert!(
        few.window.rows() <= 101 && few.window.rows() > 50,
        "{}",
        few.window.rows()
    );
    assert!(few.queue.rows() < all.queue.rows() / 4);
    assert_eq!(few.sequence.rows(), 0);
}

#[test]
fn a_trace_too_long_ends_with_the_way_out() {
    let error = traced(&[], TracesWanted { rows: 1000, ..ALL }).expect_err("more than that");
    let sentence = error.to_string();
    for word in ["seed 1", "1000 rows", "of 10.000 s", "duration", "every"] {
        assert!(sentence.contains(word), "{sentence}");
    }
}

const AIR: &str = r#"
id = "air"
duration = "2 s"

[[medium]]
name = "channel"

[[station]]
name = "n{i}"
count = 5
at_m = [0, 0]
step_m = [300, 0]
media = ["channel"]

[[flow]]
name = "a"
from = "n1"
to = "n5"
transport = "restp:3wh-arq"
traffic = { bulk = {} }
"#;

/// Frames of an exchange follow each other, those that led to nothing say why, and what was heard to the end is what hops count.
#[test]
fn frames_on_the_air_are_noted_within_the_time_that_is_asked_for() {
    let scenario = with(AIR, &[]);
    let at = |ms: u64| Time::ZERO + Duration::from_millis(ms);
    let traced = |air| {
        let wanted = TracesWanted {
            air,
            sequence: false,
            ..ALL
        };
        traces(&scenario.points()[0], 1, wanted).expect("it runs")
    };
    let (result, all) = traced(at(0)..at(2000));
    assert_eq!(result, runs(&scenario)[0], "a trace changes nothing");
    let (kinds, outcomes) = (words(&all.air, "kind"), words(&all.air, "outcome"));
    let count = |kind: &str, outcome: &str| {
        let rows = kinds.iter().zip(&outcomes);
        rows.filter(|(k, o)| **k == kind && **o == outcome).count() as u64
    };
    let delivered: u64 = result.links.iter().map(|link| link.packets).sum::<u64>();
    let carried = count("data", "received");
    assert!(carried > 100 && carried <= delivered, "{carried} of {delivered}");
    assert_eq!(
        count("cts", "received"),
        kinds.iter().filter(|kind| **kind == "data").count() as u64
    );
    assert!(
        count("rts", "collision") + count("rts", "contention") > 0,
        "{outcomes:?}"
    );
    let (begins, ends) = (floats(&all.air, "at_s"), floats(&all.air, "until_s"));
    for (row, kind) in kinds.iter().enumerate() {
        let us = ((ends[row] - begins[row]) * 1e6).round();
        let control = [("rts", 273.0), ("cts", 249.0), ("ack", 249.0)];
        let known = control.iter().find(|(name, _)| name == kind);
        assert!(
            known.is_none_or(|(_, expected)| *expected == us),
            "{kind} takes {us} us"
        );
    }
    let (_, some) = traced(at(1000)..at(1100));
    assert!(
        some.air.rows() > 10 && some.air.rows() * 10 < all.air.rows(),
        "{}",
        some.air.rows()
    );
    let (_, none) = traced(at(0)..at(0));
    assert_eq!(none.air.rows(), 0);
}
