//! Stories of the window that several paths share (ResTP §3.1.13; OP-25, OP-55).

mod common;

use common::lines::*;
use common::*;
use restp_base::flow::{Flow, FlowId, FlowStats, Read};

/// A reader that takes `segments` at each step of a writer that writes all it may; what it got is dropped.
fn step(pair: &mut Pair, side: usize, flows: (FlowId, FlowId), segments: usize) {
    let (source, sink) = if side == 0 { flows } else { (flows.1, flows.0) };
    while pair.ends[side]
        .write(pair.now, source, noise(1400).into())
        .is_ok()
    {}
    for _ in 0..segments {
        if !matches!(pair.ends[1 - side].read(pair.now, sink), Read::Data(_)) {
            break;
        }
    }
}

/// Data packets that `side` sent although its peer had said nowhere that it takes them; the first beyond the edge may
/// ask whether the window is still shut.
fn beyond_the_granted_edge(pair: &Pair, side: usize) -> usize {
    let mut granted: Option<u32> = None;
    let mut beyond = 0;
    let is_above = |number: u32, edge: u32| number.wrapping_sub(edge) as i32 > 0;
    for seen in &pair.log {
        let dss = seen.header.dss.unwrap_or_default();
        if seen.from == side {
            let number = dss.mapping.filter(|_| seen.is_data()).map(|mapping| mapping.dsn);
            beyond += usize::from(
                number
                    .zip(granted)
                    .is_some_and(|(number, edge)| is_above(number, edge)),
            );
        } else if let (Some(pointer), Some(window)) = (dss.data_ack, seen.header.window) {
            let edge = pointer.wrapping_add(window.into());
            granted = granted.filter(|granted| !is_above(edge, *granted)).or(Some(edge));
        }
    }
    beyond
}

fn stats(pair: &Pair, side: usize, flow: FlowId) -> FlowStats {
    pair.ends[side].stats(flow).expect("it lives")
}

/// Packets of the slow path are relative to a pointer that the fast one has left behind.
#[test]
fn a_window_counts_from_the_pointer_beside_it_however_late_it_comes() {
    let set = [
        ("scheduling", "round-robin"),
        ("ack", "positive+sack"),
        ("recovery", "pipe"),
        ("window", "512 segments"),
    ];
    let (mut pair, flow, _) = two_paths("geo-spread", &set);
    pair.delays = [(client(1), MS * 5), (client(2), MS * 100)].into();
    pair.run_for(secs(1));
    let accepted = pair.accepted().expect("accepted");
    for _ in 0..400 {
        step(&mut pair, 0, (flow, accepted), 50);
        step(&mut pair, 1, (flow, accepted), 50);
        pair.run_for(MS * 50);
    }
    for side in 0..2 {
        assert_eq!(beyond_the_granted_edge(&pair, side), 0, "side {side}");
    }
    assert!(stats(&pair, 0, flow).delivered_messages > 400 * 25);
    assert!(stats(&pair, 1, accepted).delivered_messages > 400 * 25);
}
