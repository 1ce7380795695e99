//! `restp sim`: what it prints, as text and as JSON.

#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is a failed test")]

use super::commands::lines;
use crate::common::{restp, write};

const SCENARIO: &str = r#"
id = "tiny"
title = "Two transports over one link"
duration = "2 s"
seed = 5
runs = 2
[[link]]
name = "l"
between = ["a", "b"]
rate = "1 Mbit/s"
delay = "5 ms"
queue = { drop_tail = "20 packets" }
[[flow]]
name = "f"
from = "a"
to = "b"
transport = "restp:default"
traffic = { bulk = {} }
[sweep]
"flow.f.transport" = ["restp:default", "udp"]
[[check]]
id = "T.1"
text = "they get about the same"
metric = "flow.f.goodput_bps"
expect = { compare = { axis = "flow.f.transport", left = "restp:default", relation = "at_least", right = "udp", factor = FACTOR } }
"#;

#[test]
fn a_simulation_prints_runs_summaries_and_verdicts() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = |factor: &str| {
        let text = SCENARIO
            .replace("FACTOR", factor)
            .replace("\"udp\"", "\"restp:3wh-arq\"");
        write(folder.path(), "s.toml", text.as_bytes())
            .to_str()
            .unwrap()
            .to_owned()
    };
    let file = scenario("0.5");
    let ended = restp(&["sim", &file, "--json", "--check"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let lines = lines(&ended.stdout);
    let runs: Vec<_> = lines.iter().filter(|line| line.get("seed").is_some()).collect();
    assert_eq!(runs.len(), 4);
    for key in [
        "scenario",
        "point",
        "seed",
        "sim_seconds",
        "wall_seconds",
        "events",
        "packets",
        "flows",
        "links",
    ] {
        assert!(!runs[0][key].is_null(), "{key}");
    }
    assert_eq!(
        lines.iter().filter(|line| line.get("summary").is_some()).count(),
        2
    );
    assert_eq!(lines.last().unwrap()["held"], true);

    let table = restp(&[
        "sim",
        &file,
        "--runs",
        "1",
        "--seed",
        "9",
        "--set",
        "duration=1 s",
    ]);
    assert!(
        table.code == Some(0) && table.stdout.contains("goodput Mbit/s"),
        "{table:?}"
    );

    let failed = restp(&["sim", &scenario("50"), "--check"]);
    assert_eq!(failed.code, Some(1), "{failed:?}");
    assert!(
        failed.stdout.contains("FAILS") && failed.stderr.contains("1 of 1 claims"),
        "{failed:?}"
    );
}
