//! Congestion control of one's own beside CUBIC, in virtual time: `cargo run --release -p restp-lab --example
//! own_congestion`. Copy it, and change [`Gentle`].

use restp_base::units::Rate;
use restp_lab::{Line, Options, Scenario, report, run};
use restp_proto::Composition;
use restp_services::congestion::{
    Congestion, CongestionChoice, CongestionEvent, CongestionSnapshot, CustomCongestion, window_over_rtt,
};
use restp_services::view::PathView;
use std::error::Error;
use std::io::Write;
use std::ops::ControlFlow;

/// A segment more per round trip, a quarter less per loss.
#[derive(Debug)]
struct Gentle {
    window_bytes: u64,
    pacing: Option<Rate>,
}

impl Congestion for Gentle {
    fn on(&mut self, event: &CongestionEvent, path: &PathView<'_>) {
        let window = self.window_bytes;
        self.window_bytes = match event {
            CongestionEvent::Acked { bytes, .. } if !path.in_recovery && !path.application_limited => {
                window + bytes * path.segment_bytes / window
            }
            CongestionEvent::Lost { .. } | CongestionEvent::Marked { .. } => window - window / 4,
            CongestionEvent::Timeout { .. } => path.segment_bytes,
            _ => window,
        }
        .max(path.segment_bytes);
        let rtt = path.smoothed_rtt;
        self.pacing = rtt.map(|rtt| window_over_rtt(self.window_bytes, rtt, false));
    }
    fn window_bytes(&self) -> u64 {
        self.window_bytes
    }
    fn pacing(&self) -> Option<Rate> {
        self.pacing
    }
    fn snapshot(&self) -> CongestionSnapshot {
        CongestionSnapshot {
            window_bytes: self.window_bytes,
            threshold_bytes: None,
            state: "gentle",
        }
    }
}

const SCENARIO: &str = r#"
id = "own"
title = "Congestion control of one's own beside CUBIC"
seed = 1
runs = 3
duration = "30 s"

[[link]]
name = "bottleneck"
between = ["a", "b"]
rate = "10 Mbit/s"
delay = "20 ms"
queue = { drop_tail = "bdp" }

[[flow]]
name = "own"
from = "a"
to = "b"
transport = "restp:default"
traffic = { bulk = {} }

[[flow]]
name = "cubic"
from = "a"
to = "b"
transport = "restp:default"
traffic = { bulk = {} }
"#;

fn main() -> Result<(), Box<dyn Error>> {
    let gentle = CustomCongestion::new("gentle", |segment_bytes| Gentle {
        window_bytes: 10 * segment_bytes,
        pacing: None,
    });
    let composition = Composition {
        congestion: CongestionChoice::Custom(gentle),
        ..Composition::default()
    };
    let scenario = Scenario::parse(SCENARIO)?.composed("own", &composition.check()?)?;
    let mut summaries = Vec::new();
    run(&scenario, &Options::DEFAULT, |line| {
        if let Line::Summary(summary) = line {
            summaries.push(summary);
        }
        ControlFlow::Continue(())
    })?;
    let table = report::plain(&report::table(&summaries));
    writeln!(std::io::stdout(), "{table}")?;
    Ok(())
}
