//! Algorithms from outside the workspace in the simulator.

use crate::common::runs;
use restp_base::units::Rate;
use restp_lab::Scenario;
use restp_proto::Composition;
use restp_proto::composition::Preset;
use restp_services::congestion::{
    Congestion, CongestionChoice, CongestionEvent, CongestionSnapshot, CustomCongestion,
};
use restp_services::scheduling::{Candidate, CustomScheduling, Placement, Queue, Schedule, Scheduling};
use restp_services::view::PathView;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Two links of 10 Mbit/s and 50 ms between the same nodes, and a flow over both or over the first.
fn scenario(transport: &str, paths: &str) -> Scenario {
    let link = |name: &str| {
        format!(
            "[[link]]\nname = \"{name}\"\nbetween = [\"a\", \"b\"]\nrate = \"10 Mbit/s\"\ndelay = \"50 ms\"\n\
             queue = {{ drop_tail = \"bdp\" }}\n"
        )
    };
    let flow = format!(
        "[[flow]]\nname = \"own\"\nfrom = \"a\"\nto = \"b\"\ntransport = \"{transport}\"\npaths = {paths}\n\
         traffic = {{ bulk = {{}} }}\n"
    );
    let head = "id = \"own\"\nduration = \"10 s\"\n".to_owned();
    let text = [head, link("first"), link("second"), flow].concat();
    Scenario::parse(&text).unwrap_or_else(|error| panic!("{error}"))
}

/// A constant window of `segments`, and the bytes its controllers saw acknowledged.
fn constant(segments: u64) -> (CongestionChoice, Arc<AtomicU64>) {
    #[derive(Debug)]
    struct Constant {
        window_bytes: u64,
        acknowledged: Arc<AtomicU64>,
    }
    impl Congestion for Constant {
        fn on(&mut self, event: &CongestionEvent, _: &PathView<'_>) {
            if let CongestionEvent::Acked { bytes, .. } = event {
                self.acknowledged.fetch_add(*bytes, Ordering::Relaxed);
            }
        }
        fn window_bytes(&self) -> u64 {
            self.window_bytes
        }
        fn pacing(&self) -> Option<Rate> {
            None
        }
        fn snapshot(&self) -> CongestionSnapshot {
            CongestionSnapshot {
                window_bytes: self.window_bytes,
                threshold_bytes: None,
                state: "constant",
            }
        }
    }
    let acknowledged = Arc::<AtomicU64>::default();
    let account = Arc::clone(&acknowledged);
    let custom = CustomCongestion::new("constant", move |segment_bytes| Constant {
        window_bytes: segments * segment_bytes,
        acknowledged: Arc::clone(&account),
    });
    (CongestionChoice::Custom(custom), acknowledged)
}

/// Four segments of 1400 bytes, acknowledged in pairs, per round trip of 100 ms and what serialisation adds.
#[test]
fn a_window_from_outside_binds_in_the_simulator() {
    let (congestion, acknowledged) = constant(4);
    let composition = Composition {
        congestion,
        pacing: false,
        mtu_discovery: false,
        ..Composition::default()
    };
    let valid = composition.check().expect("a valid composition");
    let plain = scenario("restp:cubic", r#"[["first"]]"#);
    let own = plain
        .composed("own", &valid)
        .unwrap_or_else(|error| panic!("{error}"));
    let run = runs(&own).swap_remove(0);
    let goodput = run.flows[0].goodput_bps.expect("bulk");
    assert!((0.40e6..=0.448e6).contains(&goodput), "{goodput}");
    // The last window was on its way when the run ended.
    let delivered = run.flows[0].delivered_bytes;
    let seen = acknowledged.load(Ordering::Relaxed);
    assert!(
        (delivered - 4 * 1400..=delivered).contains(&seen),
        "{seen} of {delivered}"
    );
}

/// Everything on the path that came last.
#[derive(Debug)]
struct Last;

impl Schedule for Last {
    fn choose(&mut self, paths: &[Candidate], _: &Queue) -> Placement {
        let last = paths.iter().max_by_key(|path| path.path);
        last.filter(|path| path.has_room)
            .map(|path| path.path)
            .into_iter()
            .collect()
    }
}

/// All new data on one path. The other one, idle, only retransmits what that carries, so what arrives is what one path
/// carries.
#[test]
fn a_scheduler_from_outside_decides_in_the_simulator() {
    let multipath = Preset::named("multipath").expect("a preset").composition();
    let composition = Composition {
        scheduling: Some(Scheduling::Custom(CustomScheduling::new("last", || Last))),
        ..multipath
    };
    let valid = composition.check().expect("a valid composition");
    let plain = scenario("restp:multipath", r#"[["first"], ["second"]]"#);
    let goodput = |scenario: &Scenario| {
        let flow = runs(scenario).swap_remove(0).flows.swap_remove(0);
        flow.goodput_bps.expect("bulk")
    };
    let both = goodput(&plain);
    assert!(both > 15e6, "{both}");
    let own = plain
        .composed("own", &valid)
        .unwrap_or_else(|error| panic!("{error}"));
    let one = goodput(&own);
    assert!((5e6..10e6).contains(&one), "{one}");
}

#[test]
fn a_composition_that_does_not_suit_the_scenario_is_refused_with_a_sentence() {
    let valid = Composition::default().check().expect("a valid composition");
    let said = |scenario: Scenario, flow: &str| {
        let refused = scenario.composed(flow, &valid).expect_err("refused");
        refused.to_string()
    };
    let one = || scenario("restp:cubic", r#"[["first"]]"#);
    assert!(said(one(), "ows").contains("did you mean \"own\""));
    assert!(said(scenario("classic-tcp:cubic", r#"[["first"]]"#), "own").contains("restp:default"));
    assert!(said(scenario("restp:par-arq", r#"[["first"]]"#), "own").contains("framing"));
    let several = scenario("restp:multipath", r#"[["first"], ["second"]]"#);
    assert!(said(several, "own").contains("one path"));
}
