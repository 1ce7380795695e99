//! Results of a part of a run, and of groups of flows.

use crate::common::{lines, runs, with};
use restp_lab::{Line, Options, Scenario};

/// Two flows of 1 Mbit/s, one from 10 s on; a link that loses nothing. 10 Mbit/s are no limit.
const LINE: &str = r#"
id = "measure"
duration = "40 s"

[[link]]
name = "wire"
between = ["a", "b"]
rate = "10 Mbit/s"
delay = "5 ms"

[[flow]]
name = "call-1"
from = "a"
to = "b"
transport = "udp"
traffic = { cbr = { bytes = 1000, rate = "1 Mbit/s", late_after = "100 ms" } }

[[flow]]
name = "call-2"
from = "a"
to = "b"
transport = "udp"
traffic = { cbr = { bytes = 1000, rate = "1 Mbit/s", late_after = "100 ms" } }
start = "10 s"

[[flow]]
name = "bulk"
from = "a"
to = "b"
transport = "tcp:cubic"
traffic = { file = { bytes = 100000 } }

[[group]]
name = "calls"
flows = ["call-*"]

[[group]]
name = "last"
flows = ["bulk", "call-2"]
"#;

fn measured(window: &str) -> Scenario {
    Scenario::parse(&LINE.replacen("[[group]]", &format!("{window}\n[[group]]"), 1))
        .unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn counters_and_rates_are_of_the_window_and_moments_of_the_run() {
    let whole = &runs(&with(LINE, &[]))[0];
    let part = &runs(&measured("[measure]\nfrom = \"20 s\"\nto = \"30 s\""))[0];
    let first = &part.flows[0];
    // A message each 8 ms: 1250 in ten seconds.
    assert_eq!(
        (first.sent_messages, first.delivered_messages),
        (Some(1250), Some(1250))
    );
    assert_eq!(first.delivered_bytes, 1_250_000);
    assert_eq!((first.goodput_bps, first.shared_bps), (Some(1e6), Some(1e6)));
    assert_eq!((first.late_messages, first.on_time_share), (Some(0), Some(1.0)));
    assert_eq!(first.latency_mean_ms.map(|ms| ms.round()), Some(6.0));
    let bulk = &part.flows[2];
    assert_eq!(
        (bulk.delivered_bytes, bulk.goodput_bps),
        (0, None),
        "it was over long before"
    );
    assert_eq!(bulk.completion_s, whole.flows[2].completion_s);
    assert!(bulk.completion_s.is_some_and(|at| at < 5.0));
    // 1028 bytes with the headers of UDP and IPv4.
    let link = &part.links[0];
    assert_eq!((link.packets, link.bytes), (2500, 2500 * 1028));
    assert!((link.utilisation - 0.2056).abs() < 0.001, "{}", link.utilisation);
    assert_eq!(
        (part.events, part.packets, part.sim_seconds),
        (whole.events, whole.packets, 40.0)
    );
    // The calls send at the same moments: one of two packets waits for the other's 1028 bytes, 0.8224 ms.
    assert!(
        (link.queue_mean_ms - 0.4112).abs() < 1e-6,
        "{}",
        link.queue_mean_ms
    );
}

#[test]
fn a_flow_that_is_opened_in_the_window_counts_from_then_on() {
    let run = &runs(&measured("[measure]\nto = \"20 s\""))[0];
    let [first, second] = [0, 1].map(|flow| run.flows[flow].goodput_bps.expect("a rate"));
    assert!(
        (first - 1e6).abs() < 2e3 && (second - 1e6).abs() < 2e3,
        "{first} {second}"
    );
    assert_eq!(
        run.flows[1].sent_messages,
        Some(1251),
        "the ends of the window belong to it"
    );
}

#[test]
fn the_whole_run_as_a_window_is_the_run() {
    let [whole, window] = [
        with(LINE, &[]),
        measured("[measure]\nfrom = \"0 s\"\nto = \"40 s\""),
    ]
    .map(|scenario| runs(&scenario));
    assert_eq!(whole, window);
    let [set, written] = [
        with(LINE, &[("measure.from", "20 s")]),
        measured("[measure]\nfrom = \"20 s\""),
    ]
    .map(|scenario| runs(&scenario).remove(0));
    assert_eq!((set.flows, set.links), (written.flows, written.links));
}

/// Two paths of 4 and 2 Mbit/s, and a flow of its own with 3: each path is one, or the flow over both.
#[test]
fn a_path_counts_as_a_flow_where_it_is_asked_for() {
    let link = |name: &str, to: &str, rate: u32| {
        format!(
            "[[link]]\nname = \"{name}\"\nbetween = [\"a\", \"{to}\"]\nrate = \"{rate} Mbit/s\"\ndelay = \"5 ms\"\nqueue = {{ drop_tail = \"20 packets\" }}\n"
        )
    };
    let text = [
        "id = \"paths\"\nduration = \"30 s\"\n".to_owned(),
        link("one", "b", 4),
        link("two", "b", 2),
        link("own", "c", 3),
        "[[flow]]\nname = \"m\"\nfrom = \"a\"\nto = \"b\"\ntransport = \"mptcp\"\npaths = [[\"one\"], [\"two\"]]\ntraffic = { bulk = {} }\n".to_owned(),
        "[[flow]]\nname = \"s\"\nfrom = \"a\"\nto = \"c\"\ntransport = \"tcp:cubic\"\ntraffic = { bulk = {} }\n".to_owned(),
        "[measure]\nfrom = \"5 s\"\n".to_owned(),
        "[[group]]\nname = \"flow\"\nflows = [\"m\"]\n[[group]]\nname = \"path\"\nflows = [\"m\"]\neach = \"path\"\n".to_owned(),
    ]
    .concat();
    let scenario = Scenario::parse(&text).unwrap_or_else(|error| panic!("{error}"));
    let run = &runs(&scenario)[0];
    let [flow, path] = &run.groups[..] else {
        panic!("two groups")
    };
    let near =
        |found: Option<f64>, expected: f64| found.is_some_and(|found| (found / expected - 1.0).abs() < 0.05);
    assert!(near(flow.advantage, 2.0) && flow.fairness.is_none(), "{flow:?}");
    assert!(near(path.advantage, 1.0), "{path:?}");
    assert!(
        near(path.least_share, 2.0 / 3.0) && near(path.fairness, 0.9),
        "{path:?}"
    );
    assert_eq!(flow.shared_bps, path.shared_bps);
}

/// The first call has as much again as the second.
#[test]
fn an_advantage_is_what_one_gets_per_what_one_of_the_others_gets() {
    let text = LINE
        .replacen("1 Mbit/s\", late", "2 Mbit/s\", late", 1)
        .replacen("flows = [\"call-*\"]", "flows = [\"call-1\"]", 1)
        .replacen("flows = [\"bulk\", \"call-2\"]", "flows = [\"call-*\"]", 1)
        .replacen("[[group]]", "[measure]\nfrom = \"20 s\"\n[[group]]", 1)
        .replacen("100000", "10000000000", 1);
    let run = &runs(&with(&text, &[]))[0];
    let [one, both] = &run.groups[..] else {
        panic!("two groups")
    };
    let [first, second, bulk] =
        [0, 1, 2].map(|flow: usize| run.flows[flow].shared_bps.expect("all are open"));
    assert!((first / second - 2.0).abs() < 0.02, "{first} {second}");
    let near =
        |found: Option<f64>, expected: f64| found.is_some_and(|found| (found / expected - 1.0).abs() < 1e-6);
    assert!(near(one.advantage, first / ((second + bulk) / 2.0)), "{one:?}");
    let mean = (first + second) / 2.0;
    assert!(
        near(both.least_share, second / mean) && near(both.advantage, mean / bulk),
        "{both:?}"
    );
}

#[test]
fn a_group_is_its_flows_together() {
    let scenario = measured("[measure]\nfrom = \"20 s\"");
    let run = &runs(&scenario)[0];
    let [calls, last] = &run.groups[..] else {
        panic!("two groups")
    };
    assert_eq!((calls.name.as_str(), last.name.as_str()), ("calls", "last"));
    assert_eq!((calls.goodput_bps, calls.shared_bps), (Some(2e6), Some(2e6)));
    assert_eq!((calls.share, calls.fairness), (Some(1.0), Some(1.0)));
    assert_eq!(calls.delivered_bytes, 5_000_000);
    // 1000 of 1008 bytes: the header of UDP.
    assert_eq!((calls.throughput_bps, calls.load_bps), (Some(2e6), Some(2.016e6)));
    assert!(
        calls
            .useful_share
            .is_some_and(|share| (share - 1000.0 / 1008.0).abs() < 1e-9)
    );
    assert_eq!(
        (calls.least_share, calls.advantage),
        (Some(1.0), None),
        "the other is over"
    );
    assert_eq!(
        (calls.completion_s, last.goodput_bps),
        (None, None),
        "not all of them have one"
    );
    let summary = lines(&scenario, &Options::DEFAULT)
        .into_iter()
        .find_map(|line| match line {
            Line::Summary(summary) => Some(summary),
            _ => None,
        });
    let groups = summary.expect("a summary").summary.groups;
    assert_eq!(groups[0]["goodput_bps"]["mean"], 2e6);
}

#[test]
fn windows_and_groups_that_cannot_be_are_refused() {
    let refused = |from: &str, to: &str| {
        assert!(LINE.contains(from));
        Scenario::parse(&LINE.replacen(from, to, 1))
            .expect_err("refused")
            .to_string()
    };
    for (from, to, parts) in [
        (
            "[[group]]",
            "[measure]\nto = \"41 s\"\n[[group]]",
            ["measure.to", "ends at 40 s, before 41 s"],
        ),
        (
            "[[group]]",
            "[measure]\nfrom = \"9 s\"\nto = \"9 s\"\n[[group]]",
            ["measure.from", "between 9 s and 9 s"],
        ),
        (
            "[[group]]",
            "[measure]\nform = \"9 s\"\n[[group]]",
            ["measure.form", "did you mean \"from\"?"],
        ),
        ("\"call-*\"", "\"cal-*\"", ["group.calls.flows", "call-1"]),
        ("[\"call-*\"]", "[]", ["group.calls.flows", "without flows"]),
        (
            "name = \"last\"",
            "name = \"calls\"",
            ["group.calls.name", "each its own"],
        ),
    ] {
        let sentence = refused(from, to);
        for part in parts {
            assert!(sentence.contains(part), "{to}: no {part:?} in {sentence}");
        }
    }
}
