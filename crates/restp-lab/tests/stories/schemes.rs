//! What acknowledgements say about holes, compared: the same losses, the same window, three ways to name them
//! (TC §4.1, ResTP §3.5.9).

use crate::common::{runs, with};

const LINK: &str = r#"
id = "schemes"
duration = "60 s"
runs = RUNS

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
fn goodput(transport: &str, set: &str, loss: &str, times: u32) -> f64 {
    let text = LINK
        .replace("RUNS", &times.to_string())
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
            goodput("restp:arq-only", &set, loss, 4)
        });
        assert!(spread(&values) < 0.05, "loss {loss}: {values:?}");
    }
}

/// Goodputs of single transfers differ by an eighth from seed to seed, so four runs do not tell the schemes apart. Thirty
/// do: SACK comes last, because a hole waits for three segments above it where NAK and SNACK have named it (TC §3.3, §3.4).
#[test]
fn tcp_completes_with_every_scheme_and_none_is_far_behind() {
    for loss in ["0.01", "0.05"] {
        let values = ["classic-tcp:sack", "classic-tcp:nak", "classic-tcp:snack"]
            .map(|name| goodput(name, "", loss, 30));
        assert!(spread(&values) < 0.10, "loss {loss}: {values:?}");
    }
}
