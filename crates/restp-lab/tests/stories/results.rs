//! Results against hand calculations, the order of lines, and runs that cannot go on.

use crate::common::{lines, runs, with};
use restp_lab::{Line, Options, RunError, run};
use std::ops::ControlFlow;

/// Voice over three links as in the published set-up: 1 ms, 30 ms, 1 ms at 100 Mbit/s.
const VOICE: &str = r#"
id = "voice"
duration = "2 s"
runs = 3

[[link]]
name = "in"
between = ["sender", "r0"]
rate = "100 Mbit/s"
delay = "1 ms"

[[link]]
name = "bottleneck"
between = ["r0", "r1"]
rate = "100 Mbit/s"
delay = "30 ms"

[[link]]
name = "out"
between = ["r1", "receiver"]
rate = "100 Mbit/s"
delay = "1 ms"

[[flow]]
name = "voice"
from = "sender"
to = "receiver"
transport = "udp"
traffic = { cbr = { interval = "20 ms", bytes = 160, count = 50, late_after = "160 ms" } }
"#;

/// 32 ms of propagation and three times 160 + 8 + 20 bytes at 100 Mbit/s: 32.04512 ms (published: 32.046 ms with
/// a 2-byte lower header).
#[test]
fn latency_is_what_one_calculates_by_hand() {
    let run = &runs(&with(VOICE, &[]))[0];
    let flow = &run.flows[0];
    assert_eq!(
        (flow.delivered_messages, flow.lost_messages, flow.late_messages),
        (Some(50), Some(0), Some(0))
    );
    assert_eq!(
        (flow.latency_mean_ms, flow.latency_p99_ms),
        (Some(32.04512), Some(32.04512))
    );
    assert_eq!(flow.first_byte_s, Some(0.03204512));
    assert_eq!(flow.goodput_bps, Some(50.0 * 160.0 * 8.0 / 2.0));
    assert_eq!(flow.load_bps, Some(50.0 * 168.0 * 8.0 / 2.0));
    assert_eq!((flow.handshake_s, flow.completion_s), (None, None));
    assert_eq!(
        (run.packets, run.links[1].packets, run.links[1].bytes),
        (50, 50, 50 * 188)
    );
    let utilisation = 50.0 * 188.0 * 8.0 / 100e6 / 2.0;
    assert!((run.links[1].utilisation - utilisation).abs() < 1e-12);
}

#[test]
fn dropped_packets_are_gaps_and_slow_ones_late() {
    let run = &runs(&with(VOICE, &[("link.bottleneck.loss.drop", "[[1, 7, 8]]")]))[0];
    assert_eq!(
        (run.flows[0].delivered_messages, run.flows[0].lost_messages),
        (Some(47), Some(3))
    );
    assert_eq!(run.links[1].dropped_error, 3);
    let run = &runs(&with(VOICE, &[("link.bottleneck.delay", "159 ms")]))[0];
    assert_eq!(run.flows[0].late_messages, Some(50));
}

#[test]
fn every_fault_of_a_link_shows_in_the_account() {
    let run = |key, value| runs(&with(VOICE, &[(key, value)])).swap_remove(0);
    // The ten of these 0.2 s, and the one that is on the 30 ms of wire when the outage begins.
    let outage = run("link.bottleneck.outage", "[[\"0.2 s..0.4 s\"]]");
    assert_eq!(
        (outage.flows[0].lost_messages, outage.links[1].dropped_outage),
        (Some(11), 11)
    );
    let corrupt = run("link.bottleneck.corrupt", "{ rate = 1.0 }");
    assert_eq!(
        (
            corrupt.flows[0].delivered_messages,
            corrupt.flows[0].lost_messages
        ),
        (Some(0), None)
    );
    let duplicate = run("link.bottleneck.duplicate", "{ rate = 1.0 }");
    assert_eq!(
        (
            duplicate.flows[0].delivered_messages,
            duplicate.flows[0].lost_messages
        ),
        (Some(100), Some(0))
    );
    let reorder = run("link.bottleneck.reorder", "{ rate = 0.5, delay = \"30 ms\" }");
    assert_eq!(
        (
            reorder.flows[0].delivered_messages,
            reorder.flows[0].lost_messages
        ),
        (Some(50), Some(0))
    );
    assert!((reorder.flows[0].latency_p99_ms.expect("measured") - 62.04512).abs() < 1e-9);
}

/// 250 000 bytes are 179 packets; at 2 Mbit/s with 20 bytes of IPv4 and 12 or 20 of ResTP about 1.03 s (ResTP
/// experiments, E1).
#[test]
fn a_file_completes_when_its_last_byte_is_read() {
    let settings = [
        ("flow.voice.transport", "restp:3wh-arq"),
        ("flow.voice.traffic", "{ file = { bytes = 250000 } }"),
        ("link.bottleneck.rate", "2 Mbit/s"),
        ("link.*.delay", "0.01 ms"),
        ("link.*.queue.drop_tail", "1000 packets"),
        ("duration", "60 s"),
    ];
    let run = &runs(&with(VOICE, &settings))[0];
    let flow = &run.flows[0];
    assert_eq!(flow.delivered_bytes, 250_000);
    let completion = flow.completion_s.expect("complete");
    assert!((1.02..1.06).contains(&completion), "{completion}");
    assert_eq!(flow.goodput_bps, Some(2_000_000.0 / completion));
    assert!(
        run.sim_seconds < 2.0,
        "the run ends with its last flow: {}",
        run.sim_seconds
    );
    assert!(!flow.aborted && flow.handshake_s.is_some());
}

#[test]
fn lines_come_in_the_order_of_points_and_seeds() {
    let scenario = with(VOICE, &[("link.bottleneck.loss.rate", "[0, 0.5]")]);
    let options = Options {
        threads: Some(2),
        ..Options::DEFAULT
    };
    let order: Vec<String> = lines(&scenario, &options)
        .iter()
        .map(|line| match line {
            Line::Run(run) => format!("{}#{}", run.point["link.bottleneck.loss.rate"], run.seed),
            Line::Summary(summary) => format!(
                "{} x{}",
                summary.point["link.bottleneck.loss.rate"], summary.summary.runs
            ),
            Line::Verdict(verdict) => verdict.check.clone(),
        })
        .collect();
    assert_eq!(
        order,
        ["0#1", "0#2", "0#3", "0 x3", "0.5#1", "0.5#2", "0.5#3", "0.5 x3"]
    );
}

#[test]
fn the_caller_may_stop_and_choose_seeds() {
    let scenario = with(VOICE, &[]);
    let options = Options {
        seed: Some(7),
        runs: Some(1000),
        ..Options::DEFAULT
    };
    let mut seeds = Vec::new();
    run(&scenario, &options, |line| {
        let Line::Run(run) = line else {
            panic!("not that far")
        };
        seeds.push(run.seed);
        if seeds.len() == 2 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    })
    .expect("it runs");
    assert_eq!(seeds, [7, 8]);
}

#[test]
fn wall_time_comes_from_the_stopwatch_of_the_caller() {
    let ticks = std::sync::atomic::AtomicU32::new(0);
    let stopwatch = || f64::from(ticks.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
    let options = Options {
        stopwatch: Some(&stopwatch),
        runs: Some(1),
        ..Options::DEFAULT
    };
    let Line::Run(run) = &lines(&with(VOICE, &[]), &options)[0] else {
        panic!("a run comes first")
    };
    assert_eq!(run.wall_seconds, Some(1.0));
}

#[test]
fn a_summary_has_an_interval_for_every_number_and_nothing_where_there_is_none() {
    let all = lines(
        &with(VOICE, &[("link.bottleneck.loss.rate", "0.2")]),
        &Options::DEFAULT,
    );
    let Some(Line::Summary(summary)) = all.get(3) else {
        panic!("three runs, then their summary")
    };
    let flow = &summary.summary.flows[0];
    assert_eq!(
        (flow["name"].as_str(), flow["transport"].as_str()),
        (Some("voice"), Some("udp"))
    );
    let (low, high) = (
        flow["lost_messages"]["low"].as_f64(),
        flow["lost_messages"]["high"].as_f64(),
    );
    let mean = flow["lost_messages"]["mean"].as_f64();
    assert!(
        low < mean && mean < high && flow["lost_messages"]["n"] == 3,
        "{flow:?}"
    );
    assert!(flow["completion_s"].is_null());
    assert_eq!(summary.summary.fairness, None);
}

#[test]
fn bulk_over_a_transport_without_limits_is_refused() {
    let scenario = with(VOICE, &[("flow.voice.traffic", "{ bulk = {} }")]);
    let error = run(&scenario, &Options::DEFAULT, |_| ControlFlow::Continue(())).expect_err("refused");
    assert!(matches!(error, RunError::Traffic { seed: 1, .. }), "{error:?}");
    let sentence = error.to_string();
    assert!(
        sentence.contains("\"voice\"") && sentence.contains("use cbr"),
        "{sentence}"
    );
}

#[test]
fn a_message_larger_than_a_packet_is_refused() {
    let scenario = with(
        VOICE,
        &[(
            "flow.voice.traffic",
            "{ cbr = { interval = \"20 ms\", bytes = 1473 } }",
        )],
    );
    let error = run(&scenario, &Options::DEFAULT, |_| ControlFlow::Continue(())).expect_err("refused");
    assert!(
        error.to_string().contains("1473") && error.to_string().contains("1472"),
        "{error}"
    );
}

#[test]
fn more_runs_than_memory_holds_are_refused_at_once() {
    let options = Options {
        runs: Some(u64::MAX),
        ..Options::DEFAULT
    };
    let error = run(&with(VOICE, &[]), &options, |_| ControlFlow::Continue(())).expect_err("refused");
    assert!(error.to_string().contains("at most 1000000"), "{error}");
}

#[test]
fn tables_have_a_row_per_flow_and_per_verdict() {
    let all = lines(&with(VOICE, &[]), &Options::DEFAULT);
    let summaries: Vec<_> = all
        .into_iter()
        .filter_map(|line| {
            if let Line::Summary(one) = line {
                Some(one)
            } else {
                None
            }
        })
        .collect();
    let text = restp_lab::report::plain(&restp_lab::report::table(&summaries));
    let rows: Vec<&str> = text.lines().collect();
    assert_eq!(rows.len(), 2);
    assert!(
        rows[0].contains("goodput Mbit/s") && rows[1].contains("udp") && rows[1].contains("32.05 ± 0"),
        "{text}"
    );
}
