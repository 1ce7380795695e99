//! Stories of the window that several paths share (ResTP §3.1.13; OP-25, OP-55).

use crate::common::lines::*;
use crate::common::*;
use restp_base::flow::{CloseReason, Flow, FlowId, FlowStats, PathState, Read};
use restp_base::machine::Event;
use restp_proto::wire::{Dss, Mapping};

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

/// Neither side has suspected a path, waited for a timer or taken a packet for lost.
fn assert_paths_are_undisturbed(pair: &Pair, flows: (FlowId, FlowId)) {
    for (side, flow) in [flows.0, flows.1].into_iter().enumerate() {
        let judged = |event: &&Event| matches!(event, Event::Path(_, _, state) if *state != PathState::Up);
        assert_eq!(pair.events[side].iter().find(judged), None, "side {side}");
        let stats = stats(pair, side, flow);
        assert_eq!((stats.timeouts, stats.lost_packets), (0, 0), "side {side}");
    }
}

#[test]
fn a_reader_that_stops_says_nothing_about_the_paths() {
    for pause in [secs(10), secs(100)] {
        let (mut pair, flow, _) = two_paths("multipath", &[("window", "256 segments")]);
        let flows = (flow, both_up(&mut pair));
        let ends = pair.now + pause;
        while pair.now < ends {
            step(&mut pair, 0, flows, 0);
            pair.run_for(MS * 100);
        }
        assert_paths_are_undisturbed(&pair, flows);
        let asked = pair
            .log
            .iter()
            .filter(|seen| seen.from == 0 && seen.at + secs(5) > ends);
        assert!(asked.count() > 2, "the window is probed");
        for _ in 0..100 {
            step(&mut pair, 0, flows, usize::MAX);
            pair.run_for(MS * 10);
        }
        assert_paths_are_undisturbed(&pair, flows);
        assert_eq!(beyond_the_granted_edge(&pair, 0), 0);
        assert!(
            stats(&pair, 1, flows.1).delivered_messages > 1000,
            "it goes on at once"
        );
    }
}

/// What the stalled end says for itself are answers, too.
#[test]
fn a_reader_that_stops_and_goes_on_writing_says_nothing_about_the_paths() {
    let (mut pair, flow, _) = two_paths("multipath", &[("window", "256 segments")]);
    let flows = (flow, both_up(&mut pair));
    for _ in 0..10_000 {
        step(&mut pair, 0, flows, 0);
        pair.write(1, flows.1, &noise(100));
        pair.run_for(MS);
        pair.read_all(0, flows.0);
    }
    assert_paths_are_undisturbed(&pair, flows);
}

#[test]
fn a_reader_that_does_not_return_is_given_up_after_the_progress_timeout() {
    let set = [("window", "32 segments"), ("progress-timeout", "5 s")];
    let (mut pair, flow, _) = two_paths("multipath", &set);
    let flows = (flow, both_up(&mut pair));
    step(&mut pair, 0, flows, 0);
    pair.run_for(secs(4));
    assert_eq!(pair.closed(0), None);
    pair.run_for(secs(2));
    let closed = pair.closed(0).expect("given up");
    assert!(
        matches!(closed, CloseReason::TimedOut(after) if *after == secs(5)),
        "{closed:?}"
    );
}

/// A peer may probe with the segment it would send next: its path has it, the association takes it later.
#[test]
fn a_segment_that_probes_the_shut_window_is_acknowledged_by_its_path() {
    let mut pair = Pair::new(
        "geo-spread",
        &[
            ("ack", "positive+sack"),
            ("recovery", "pipe"),
            ("window", "16 segments"),
        ],
    );
    let (flow, accepted) = pair.connect();
    (0..16).for_each(|_| pair.write(0, flow, &noise(1400)));
    pair.run_for(secs(1));
    let data = pair.log.iter().rfind(|seen| seen.from == 0 && seen.is_data());
    let last = data
        .and_then(|seen| seen.header.dss?.mapping)
        .expect("mapped data");
    let probe = Mapping {
        dsn: last.dsn.wrapping_add(1),
        ssn: last.ssn.wrapping_add(1),
        ..last
    };
    pair.rule = silent(1); // it was not sent
    pair.forge(0, b"probe", |header| {
        header.sequence = Some(probe.ssn);
        header.dss = Some(Dss {
            mapping: Some(probe),
            ..Dss::default()
        });
    });
    pair.run_for(MS * 100);
    let answer = &pair
        .log
        .iter()
        .rfind(|seen| seen.from == 1)
        .expect("an answer")
        .header;
    assert_eq!(answer.acknowledgement, Some(probe.ssn.wrapping_add(1)));
    assert_eq!(answer.dss.and_then(|dss| dss.data_ack), Some(probe.dsn));
    assert_eq!(answer.window, Some(0));
    assert_eq!(pair.read_all(1, accepted).len(), 16, "and was not taken");
}
