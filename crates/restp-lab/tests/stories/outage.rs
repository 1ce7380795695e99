//! A TCP through outages: its doubling timer, its silence afterwards, and when it gives up.

use crate::common::{runs, with};

const SATELLITE: &str = r#"
id = "satellite"
duration = "200 s"
profile = "published-like"

[[link]]
name = "orbit"
between = ["terminal", "gateway"]
rate = "2 Mbit/s"
reverse_rate = "10 Mbit/s"
delay = "260 ms"
outage = ["20 s..30 s", "60 s..160 s"]

[[flow]]
name = "bulk"
from = "terminal"
to = "gateway"
transport = "classic-tcp:newreno"
traffic = { bulk = {} }
bins = "10 s"
"#;

#[test]
fn the_timer_doubles_and_the_silence_outlasts_the_outage() {
    let flow = runs(&with(SATELLITE, &[])).swap_remove(0).flows.swap_remove(0);
    let [first, second] = &flow.outages[..] else {
        panic!("two outages: {:?}", flow.outages)
    };
    assert_eq!((first.start_s, first.end_s, second.start_s), (20.0, 30.0, 60.0));
    let (one, last) = (
        first.first_rto_s.expect("ran out"),
        first.last_rto_s.expect("ran out"),
    );
    assert_eq!(last / one, f64::from(1 << (first.timeouts - 1)), "{first:?}");
    assert!(
        first.resume_s > Some(0.26),
        "not before a packet can cross: {first:?}"
    );
    assert!(first.burst_share.is_some_and(|share| share <= 1.0), "{first:?}");
    assert_eq!(
        flow.stray_timeouts,
        Some(flow.timeouts - first.timeouts - second.timeouts)
    );
    assert_eq!(flow.rto_events.len() as u64, flow.timeouts);
    assert_eq!(flow.bins_bps.len(), 20);
    assert!(flow.bins_bps[7..15].iter().all(|rate| *rate == 0.0));
    assert!(
        flow.bins_bps[0] > 1e5 && flow.bins_bps[2] == 0.0,
        "{:?}",
        flow.bins_bps
    );
}

/// With R = 1 s or more, retry 6 leaves at 63 s or later and is lost with all the others (ResTP experiments, E4); 15
/// retries outlast 100 s.
#[test]
fn six_retries_do_not_survive_a_hundred_seconds_and_fifteen_do() {
    let flow = |attempts: &str| {
        let settings = [("flow.bulk.set.data-attempts", attempts), ("duration", "300 s")];
        runs(&with(SATELLITE, &settings))
            .swap_remove(0)
            .flows
            .swap_remove(0)
    };
    let (six, fifteen) = (flow("6"), flow("15"));
    assert!(six.aborted && !fifteen.aborted);
    assert_eq!(
        (six.outages[1].resume_s, six.outages[1].burst_share),
        (None, None)
    );
    assert!(fifteen.outages[1].resume_s.is_some());
}
