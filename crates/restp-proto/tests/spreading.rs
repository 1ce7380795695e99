//! How much several paths carry together, and how soon: schedulers and coupled congestion control on links with a rate
//! and a queue (ResTP §3.5.6, §3.5.10; OP-6, OP-55).

mod common;

use common::links::*;
use restp_base::flow::Flow;
use restp_base::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// Cong means another algorithm on several paths (OP-6), and its windows know of each other: those of two equal paths
/// together grow no faster than one.
#[test]
fn windows_of_a_coupled_flow_grow_by_the_sum_of_all() {
    let grown = |congestion: &str| {
        let set = [
            ("congestion", congestion),
            ("initial-threshold", "14000 B"),
            ("pacing", "on"),
        ];
        let (mut pair, flow) = over(&[link(100, 20); 2], "geo-spread", &set);
        bulk(&mut pair, flow, SECOND, SECOND);
        pair.ends[0].stats(flow).expect("alive").congestion_window_bytes / SEGMENT
    };
    let (coupled, uncoupled) = (grown("lia"), grown("newreno"));
    // 50 round trips of 20 ms from 20 segments: NewReno grows by one segment on each path in each of them, LIA by half a
    // segment on both together.
    assert!(
        uncoupled > 80 && coupled < 55,
        "{coupled} and {uncoupled} segments"
    );
}
