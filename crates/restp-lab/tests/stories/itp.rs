//! ITP and NDN on the links of the others: one object, asked for chunk by chunk (ITP §III).

use crate::common::{runs, with};
use restp_lab::Scenario;
use restp_lab::run::RunResult;

const LINK: &str = r#"
id = "itp"
duration = "200 s"
runs = 4

[[link]]
name = "path"
between = ["producer", "consumer"]
rate = "10 Mbit/s"
delay = "20 ms"
queue = { drop_tail = "50 packets" }

[[flow]]
name = "object"
from = "producer"
to = "consumer"
transport = "itp"
traffic = { file = { bytes = 2000000 } }
"#;

fn over(transport: &str, faults: &str) -> Vec<RunResult> {
    let text = LINK
        .replace("queue =", &format!("{faults}\nqueue ="))
        .replace("\"itp\"\ntraffic", &format!("{transport}\ntraffic"));
    runs(&with(&text, &[]))
}

/// Every byte is the one written at its place, and the object is whole.
#[track_caller]
fn is_whole(run: &RunResult, what: &str) {
    let flow = &run.flows[0];
    assert_eq!(flow.wrong_bytes, Some(0), "{what}, seed {}", run.seed);
    assert_eq!(
        flow.delivered_bytes, 2_000_000,
        "{what}, seed {}: {flow:?}",
        run.seed
    );
    // Its sender has no timers that an outage could be judged by.
    assert!(flow.outages.is_empty() && flow.stray_timeouts.is_none(), "{what}");
    assert!(
        flow.completion_s.is_some() && !flow.aborted,
        "{what}, seed {}",
        run.seed
    );
}

const ALL: [&str; 3] = ["\"itp\"", "\"itp\"\nset = { naming = \"hash\" }", "\"ndn\""];

#[test]
fn an_object_is_whole_over_every_kind_of_bad_link() {
    for transport in ALL {
        for faults in [
            "",
            "loss = { rate = 0.02, unit = \"packet\" }",
            "loss = { rate = 0.02, unit = \"packet\", direction = \"both\" }",
            "jitter = { delay = \"30 ms\", reorder = true }",
            "outage = [\"1 s..11 s\"]",
        ] {
            for run in over(transport, faults) {
                is_whole(&run, &format!("{transport} {faults}"));
            }
        }
    }
}

/// The consumer finds and repairs losses, so its counters are the flow's.
#[test]
fn losses_are_counted_where_they_are_found() {
    let clean = &over(ALL[0], "")[0].flows[0];
    assert!(
        clean.sent_packets >= 1378,
        "an object of 1,378 chunks and its manifest: {clean:?}"
    );
    let lossy = &over(ALL[0], "loss = { rate = 0.02, unit = \"packet\" }")[0];
    let (flow, link) = (&lossy.flows[0], &lossy.links[0]);
    assert!(flow.lost_packets > 10 && link.dropped_error > 10, "{flow:?}");
    assert!(
        flow.retransmitted_packets >= link.dropped_error,
        "each is asked for again: {flow:?}"
    );
    assert!(flow.paths[0].srtt_ms.is_some_and(|srtt| srtt >= 40.0), "{flow:?}");
    assert!(flow.outages.is_empty() && flow.stray_timeouts.is_none());
}

/// Later data tells of a loss; who cannot tell which Interest was answered waits for a timer (ITP §VI.A).
#[test]
fn ndn_finds_losses_by_timeouts_and_itp_most_of_them_without() {
    let counts = |transport| {
        let all = over(transport, "loss = { rate = 0.005, unit = \"packet\" }");
        let sum = |count: fn(&RunResult) -> u64| all.iter().map(count).sum::<u64>();
        (
            sum(|run| run.flows[0].lost_packets),
            sum(|run| run.flows[0].timed_out_packets),
        )
    };
    let ((lost, timed_out), (ndn_lost, ndn_timed_out)) = (counts(ALL[0]), counts(ALL[2]));
    assert!(lost > 20 && timed_out * 4 < lost, "{timed_out} of {lost}");
    assert!(
        ndn_lost > 20 && ndn_timed_out == ndn_lost,
        "{ndn_timed_out} of {ndn_lost}"
    );
}

#[test]
fn what_is_no_object_is_refused_with_the_way_out() {
    for (traffic, transport) in [("bulk = {}", "itp"), ("file = { bytes = 100000000 }", "ndn")] {
        let text = LINK
            .replace("file = { bytes = 2000000 }", traffic)
            .replace("\"itp\"\ntraffic", &format!("\"{transport}\"\ntraffic"));
        let error = Scenario::parse(&text)
            .map(|_| ())
            .expect_err("refused")
            .to_string();
        assert!(
            error.contains(transport) && error.contains("choose file"),
            "{error}"
        );
    }
    let text = LINK.replace(
        "transport = \"itp\"",
        "transport = \"itp\"\nset = { naming = \"names\" }",
    );
    let error = Scenario::parse(&text)
        .map(|_| ())
        .expect_err("refused")
        .to_string();
    assert!(error.contains("naming") && error.contains("hash"), "{error}");
}

/// A queue that a window fills again and again: it is halved, grows by a chunk in a round trip, and begins to do so at once.
#[test]
fn a_window_is_a_sawtooth_that_is_measured_where_the_flow_asks_for_it() {
    let text = LINK
        .replace("rate = \"10 Mbit/s\"", "rate = \"2 Mbit/s\"")
        .replace("bytes = 2000000", "bytes = 6000000")
        .replace("\"50 packets\"", "\"20 packets\"");
    let plain = &runs(&with(&text, &[("runs", "1")]))[0];
    assert!(plain.flows[0].window.is_none());
    let json = serde_json::to_value(&plain.flows[0]).expect("JSON");
    assert_eq!(
        json.get("window"),
        Some(&serde_json::Value::Null),
        "a field has its place"
    );
    let text = text.replace("[[flow]]", "[[flow]]\nsawtooth = true") + CLAIM;
    for (transport, segment) in [("itp", 1452.0), ("tcp:newreno", 1400.0)] {
        let run = &runs(&with(
            &text,
            &[("runs", "1"), ("flow.object.transport", transport)],
        ))[0];
        let window = run.flows[0].window.as_ref().expect("it was asked for");
        let slope = window.slope_bytes.expect("it grows") / segment;
        assert!((0.8..=1.2).contains(&slope), "{transport}: {window:?}");
        assert!(window.cuts >= 5, "{transport}: {window:?}");
        assert!(
            window.doubling_rtts.is_some_and(|rtts| rtts < 2.0),
            "{transport}: {window:?}"
        );
    }
    let refused = Scenario::parse(&text.replace("slope_bytes", "slope"));
    let error = refused.map(|_| ()).expect_err("refused").to_string();
    assert!(
        error.contains("check") && error.contains("slope_bytes"),
        "{error}"
    );
}

const CLAIM: &str = r#"
[[check]]
id = "slope"
text = "It grows by a chunk in a round trip"
metric = "flow.object.window.slope_bytes"
expect = { near = { value = "1452", within = "20 %" } }
"#;
