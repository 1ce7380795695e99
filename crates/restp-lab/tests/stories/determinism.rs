//! One scenario and one seed give one result: in one process, over any number of threads, in another process.

use crate::common::{file, lines};
use restp_lab::run::traced;
use restp_lab::{Options, Scenario};
use std::process::Command;
use std::sync::{Arc, Mutex};

/// Every scenario file, made short.
fn scenarios() -> Vec<Scenario> {
    let short = |name: &str, settings: &[(&str, &str)]| {
        settings.iter().fold(file(name), |scenario, (key, value)| {
            scenario.with(key, value).expect("allowed")
        })
    };
    vec![
        short("bulk-lossy.toml", &[("duration", "10 s"), ("runs", "2")]),
        short("e1.toml", &[("link.bottleneck.rate", "10 Mbit/s"), ("runs", "1")]),
        short("e2.toml", &[("profile", "sane")]),
        short(
            "e2-random.toml",
            &[
                ("runs", "1"),
                ("flow.page.traffic.web.pages", "10"),
                ("flow.page.set.idle-timeout", "600 s"),
            ],
        ),
        short("e4.toml", &[("duration", "40 s"), ("runs", "1")]),
        short("e5.toml", &[("duration", "5 s"), ("runs", "1")]),
        short("e5-hold.toml", &[("duration", "5 s"), ("runs", "1")]),
        short("e7.toml", &[("duration", "5 s"), ("runs", "2")]),
        short("e8.toml", &[("duration", "5 s"), ("runs", "1")]),
        short("e9.toml", &[("duration", "5 s")]),
        short("multipath-figures.toml", &[("duration", "1 s"), ("runs", "1")]),
        short(
            "multipath-grid.toml",
            &[
                ("duration", "1 s"),
                ("runs", "1"),
                ("flow.bulk.set.window", "256 segments"),
                ("link.b.rate", "[\"1 Mbit/s\", \"20 Mbit/s\"]"),
            ],
        ),
        short("response.toml", &[("duration", "5 s"), ("runs", "2")]),
        short("coupled.toml", &[("duration", "2 s"), ("runs", "1")]),
        short("coupled-disjoint.toml", &[("duration", "2 s"), ("runs", "1")]),
        short("dumbbell-2.toml", &[("duration", "5 s")]),
        short("dumbbell-64.toml", &[("duration", "0.3 s")]),
        short(
            "../witnesses/witnesses.toml",
            &[("duration", "20 s"), ("runs", "1")],
        ),
        short("../witnesses/two-paths.toml", &[("duration", "15 s")]),
        short(
            "../witnesses/mptcp.toml",
            &[
                ("duration", "1 s"),
                ("runs", "1"),
                ("flow.f.paths", "[[[\"a\"], [\"b\"]]]"),
            ],
        ),
        short("../air/chain-4.toml", &[("duration", "20 s")]),
    ]
}

fn json(scenario: &Scenario, threads: usize) -> String {
    let options = Options {
        threads: Some(threads),
        ..Options::DEFAULT
    };
    let lines = lines(scenario, &options);
    lines
        .iter()
        .map(|line| serde_json::to_string(line).expect("plain data") + "\n")
        .collect()
}

/// FNV-1a over every step of every packet of the first run.
fn trace_hash(scenario: &Scenario) -> (u64, usize) {
    let state = Arc::new(Mutex::new((0xcbf2_9ce4_8422_2325u64, 0usize)));
    let sink = Arc::clone(&state);
    let point = &scenario.points()[0];
    traced(point, point.plan.seed, move |event| {
        let mut state = sink.lock().expect("one thread");
        for byte in format!("{event:?}").bytes() {
            state.0 = (state.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        state.1 += 1;
    })
    .expect("it runs");
    let state = state.lock().expect("one thread");
    *state
}

#[test]
fn results_are_the_same_twice_and_over_one_or_two_threads() {
    for scenario in scenarios() {
        let once = json(&scenario, 1);
        assert_eq!(once, json(&scenario, 1), "{} twice", scenario.id());
        assert_eq!(once, json(&scenario, 2), "{} over two threads", scenario.id());
    }
}

#[test]
fn another_process_sees_the_same_packets() {
    let hashes = || {
        scenarios()
            .iter()
            .map(|one| format!("{}={:?}\n", one.id(), trace_hash(one)))
            .collect::<String>()
    };
    if std::env::var_os(CHILD).is_some() {
        print!("{MARK}{}{MARK}", hashes());
        return;
    }
    let this = std::env::current_exe().expect("a test runs from a file");
    let child = Command::new(this)
        .args([
            "--exact",
            "determinism::another_process_sees_the_same_packets",
            "--nocapture",
        ])
        .env(CHILD, "1")
        .output()
        .expect("the test binary starts");
    let output = String::from_utf8_lossy(&child.stdout);
    let theirs = output.split(MARK).nth(1).expect("the child prints its hashes");
    assert_eq!(theirs, hashes());
    assert_eq!(theirs.lines().count(), scenarios().len());
}
const CHILD: &str = "RESTP_LAB_PRINT_HASHES";
const MARK: &str = "~~~";

#[test]
fn watching_changes_nothing() {
    for scenario in scenarios() {
        let point = &scenario.points()[0];
        let (_, steps) = trace_hash(&scenario);
        assert!(steps > 100, "{}: {steps} steps", scenario.id());
        let watched = traced(point, point.plan.seed, |_| {}).expect("it runs");
        let alone = lines(
            &scenario,
            &Options {
                runs: Some(1),
                ..Options::DEFAULT
            },
        );
        assert_eq!(alone[0], restp_lab::Line::Run(watched), "{}", scenario.id());
    }
}

#[test]
fn another_seed_is_another_run() {
    let scenario = &scenarios()[1];
    let with_seed = |seed| {
        let settings = Options {
            seed: Some(seed),
            runs: Some(1),
            ..Options::DEFAULT
        };
        lines(
            &scenario
                .clone()
                .with("link.bottleneck.loss.rate", "0.1")
                .expect("allowed"),
            &settings,
        )
    };
    assert_ne!(with_seed(1)[0], with_seed(2)[0]);
}
