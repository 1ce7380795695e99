//! What acknowledgements say about holes, compared: the same losses, the same window, three ways to name them
//! (TC §4.1, ResTP §3.5.9).

use crate::common::{runs, with};

const LINK: &str = r#"
id = "schemes"
duration = "60 s"
runs = 4

[[link]]
name = "path"
between = ["sender", "receiver"]
rate = "10 Mbit/s"
delay = "20 ms"
loss = { rate = 0.01, unit = "packet" }

[[flow]]
name = "bulk"
from = "sender"
to = "receiver"
transport = "restp:arq-only"
set = { recovery = "pipe", flight-limit = "64 segments" }
traffic = { file = { bytes = 4000000 } }
"#;

/// Mean goodput of all runs; every one is complete.
fn goodput(transport: &str, set: &str, loss: &str) -> f64 {
    let text = LINK
        .replace("restp:arq-only", transport)
        .replace("recovery = \"pipe\", flight-limit = \"64 segments\"", set)
        .replace("rate = 0.01", &format!("rate = {loss}"));
    let runs = runs(&with(&text, &[]));
    let all: Vec<f64> = runs
        .iter()
        .map(|run| {
            let flow = &run.flows[0];
            assert!(flow.completion_s.is_some(), "{transport} {set} {loss}: {flow:?}");
            flow.goodput_bps.expect("a goodput")
        })
        .collect();
    all.iter().sum::<f64>() / all.len() as f64
}

fn spread(values: &[f64]) -> f64 {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(0.0, f64::max);
    (most - least) / most
}

#[test]
fn with_a_fixed_window_all_schemes_complete_and_none_is_far_behind() {
    for loss in ["0.01", "0.05"] {
        let values = ["sack", "nak", "snack"].map(|scheme| {
            let set =
                format!("ack = \"positive+{scheme}\", recovery = \"pipe\", flight-limit = \"64 segments\"");
            goodput("restp:arq-only", &set, loss)
        });
        assert!(spread(&values) < 0.05, "loss {loss}: {values:?}");
    }
}

#[test]
fn tcp_completes_with_every_scheme() {
    for loss in ["0.01", "0.05"] {
        let values = ["tcp:sack", "tcp:nak", "tcp:snack"].map(|name| goodput(name, "", loss));
        assert!(spread(&values) < 0.20, "loss {loss}: {values:?}");
    }
}
