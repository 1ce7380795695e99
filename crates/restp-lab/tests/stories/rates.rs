//! Links whose rate changes.

use crate::common::{runs, with};
use restp_lab::run::RunResult;

const LINE: &str = r#"
id = "rates"
duration = "60 s"

[[link]]
name = "wire"
between = ["a", "b"]
rate = "10 Mbit/s"
delay = "20 ms"

[[flow]]
name = "a"
from = "a"
to = "b"
transport = "tcp:cubic"
traffic = { bulk = {} }
bins = "30 s"
"#;

/// A datagram of 1472 bytes and 8 of UDP are 1500 on the line.
const FLOOD: &str = "{ transport = \"udp\", traffic = { cbr = { bytes = 1472, rate = \"100 Mbit/s\" } } }";

fn at(settings: &[(&str, &str)]) -> RunResult {
    runs(&with(LINE, settings)).remove(0)
}

#[test]
fn a_transfer_goes_as_fast_as_its_link_does_at_the_time() {
    let rate = "{ steps = [[\"0 s\", \"10 Mbit/s\"], [\"30 s\", \"2 Mbit/s\"]] }";
    let run = at(&[("link.wire.rate", rate)]);
    let [before, after] = run.flows[0].bins_bps[..] else {
        panic!("two bins")
    };
    assert!((8.5e6..9.8e6).contains(&before), "{before}");
    assert!((1.7e6..2.1e6).contains(&after), "{after}");
}

/// Whoever sends: over and over, a line that is never idle carries what the steps, the walk or the recording allow.
#[test]
fn a_flood_gets_all_that_a_changing_line_carries() {
    let dir = std::env::temp_dir().join(format!("restp-lab-recording-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let recording = dir.join("lte.down");
    std::fs::write(&recording, "1\n2\n2\n40\n").unwrap();
    let recorded = format!("{{ trace = \"{}\" }}", recording.display());
    let walk =
        "{ walk = { min = \"2 Mbit/s\", max = \"6 Mbit/s\", step = \"2 Mbit/s\", every = \"10 ms\" } }";
    let steps = "{ steps = [[\"0 s\", \"1 Mbit/s\"], [\"20 s\", \"0 bit/s\"], [\"40 s\", \"5 Mbit/s\"]] }";
    for (rate, mean) in [(recorded.as_str(), 1.2e6), (walk, 4e6), (steps, 2e6)] {
        let run = at(&[("flow.a", FLOOD), ("link.wire.rate", rate)]);
        let goodput = run.flows[0].goodput_bps.expect("a rate") * 1500.0 / 1472.0;
        assert!((goodput / mean - 1.0).abs() < 0.03, "{rate}: {goodput}");
        assert!(run.links[0].utilisation > 0.99, "{rate}: {:?}", run.links[0]);
    }
    std::fs::remove_dir_all(&dir).unwrap();
}
