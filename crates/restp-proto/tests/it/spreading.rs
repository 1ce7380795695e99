//! How much several paths carry together, and how soon: schedulers and coupled congestion control on links with a rate
//! and a queue (ResTP §3.5.6, §3.5.10; OP-6, OP-55).

use crate::common::links::*;
use restp_base::flow::Flow;
use restp_base::time::Duration;
use restp_base::units::Rate;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;

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

/// Ten seconds of bulk; mean Mbit/s, and those of each second.
fn ten_seconds(links: &[Link], preset: &str, set: &[(&str, &str)]) -> (f64, Vec<f64>) {
    let (mut pair, flow) = over(links, preset, set);
    let bins = bulk(&mut pair, flow, SECOND * 10, SECOND);
    let total = mbit(bins.iter().sum(), SECOND * 10);
    (total, bins.iter().map(|bytes| mbit(*bytes, SECOND)).collect())
}

/// Payload that the links carry in ten seconds is 95.6 Mbit/s. Handshakes, slow start from ten segments and the last
/// half round trip cost 1.4 % of it.
#[test]
fn two_equal_paths_carry_the_sum_of_both() {
    let links = [link(50, 20), link(50, 40)];
    let ceiling = links.iter().map(Link::ceiling).sum::<f64>() / 1e6;
    for (congestion, least) in [("cubic", 0.985), ("bbr", 0.98)] {
        let (total, bins) = ten_seconds(&links, "multipath", &[("congestion", congestion)]);
        assert!(
            total >= least * ceiling,
            "{congestion}: {total:.1} of {ceiling:.1}: {bins:.1?}"
        );
    }
}

/// A path with a tenth of the rate and ten times the round trip adds what it carries, and nothing waits for it.
#[test]
fn a_slow_path_adds_its_share_and_costs_the_fast_one_nothing() {
    let (alone, alone_bins) = ten_seconds(&[link(50, 20)], "multipath", &[]);
    let (total, bins) = ten_seconds(&[link(50, 20), link(5, 200)], "multipath", &[]);
    assert!(
        total >= alone + 3.5 && total >= 51.0,
        "{total:.1} against {alone:.1}: {bins:.1?}"
    );
    for (both, alone) in bins.iter().zip(&alone_bins).skip(1) {
        assert!(*both >= alone * 0.98, "{bins:.1?} against {alone_bins:.1?}");
    }
}

#[test]
fn random_loss_on_one_path_costs_about_that_loss() {
    let links = [link(50, 20).losing(0.01), link(50, 40)];
    let (total, bins) = ten_seconds(&links, "multipath", &[]);
    assert!(total >= 92.0, "{total:.1}: {bins:.1?}");
}

/// With 64 segments the fast path alone fills the shared window, and each segment on the slow one shuts it.
#[test]
fn where_the_window_is_small_the_guard_is_as_good_as_the_best_path_alone() {
    let small = [("window", "64 segments")];
    let (alone, _) = ten_seconds(&[link(50, 20)], "multipath", &small);
    let links = [link(50, 20), link(5, 200)];
    let (guard, bins) = ten_seconds(&links, "multipath", &small);
    assert!(guard >= 0.97 * alone, "{guard:.1} against {alone:.1}: {bins:.1?}");
}

#[test]
fn weights_share_out_the_bytes() {
    let set = [
        ("scheduling", "weighted"),
        ("weights", "3:1"),
        ("send-buffer", "20 KiB"),
    ];
    let (mut pair, flow) = over(&[link(50, 20), link(50, 20)], "geo-spread", &set);
    pair.run_for(SECOND);
    let accepted = pair.accepted().expect("accepted");
    pair.log.clear();
    // A seventh of what one path carries: neither is ever full.
    for _ in 0..1000 {
        pair.write(0, flow, &crate::common::noise(1400));
        pair.run_for(Duration::from_millis(2));
        pair.read_all(1, accepted);
    }
    let on = |n| {
        pair.log
            .iter()
            .filter(|seen| seen.is_data() && seen.path.local == client(n))
            .count()
    };
    let share = on(1) as f64 / (on(1) + on(2)) as f64;
    assert!((0.73..0.77).contains(&share), "{} and {}", on(1), on(2));
}

/// Milliseconds from a write of 200 bytes to its delivery, for one message every 20 ms, sorted.
fn latencies(links: &[Link], set: &[(&str, &str)]) -> Vec<u64> {
    let (mut pair, flow) = over(links, "multipath", set);
    pair.run_for(SECOND);
    let accepted = pair.accepted().expect("accepted");
    let (mut written, mut read, mut found) = (Vec::new(), 0, Vec::new());
    for step in 0..60_000 {
        if step % 20 == 0 && step < 59_000 {
            pair.write(0, flow, &crate::common::noise(200));
            written.push(pair.now);
        }
        pair.run_for(Duration::from_millis(1));
        for data in pair.read_all(1, accepted) {
            let before = read / 200;
            read += data.len();
            found.extend((before..read / 200).map(|message| pair.now.since(written[message]).as_millis()));
        }
        pair.log.clear();
    }
    assert_eq!(found.len(), written.len());
    found.sort_unstable();
    found
}

/// Of every hundred messages five are lost on each of the paths, one in four hundred on both.
#[test]
fn a_copy_on_every_path_hides_losses() {
    let set = [("scheduling", "redundant"), ("ack-every", "1 packets")];
    let clean = latencies(&[link(50, 20)], &set);
    let lossy = latencies(&[link(50, 20).losing(0.05), link(50, 20).losing(0.05)], &set);
    let at = |list: &[u64]| list[list.len() * 99 / 100];
    assert!(
        at(&lossy) as f64 <= 1.05 * at(&clean) as f64,
        "{} against {} ms",
        at(&lossy),
        at(&clean)
    );
    let single = latencies(&[link(50, 20).losing(0.05)], &set);
    assert!(
        at(&single) > 2 * at(&clean),
        "losses have to hurt one path, or nothing is shown"
    );
}

/// Every segment on every path: two paths carry what one does, and each of them all of it. The second path is 5 ms longer, so
/// it has no room when the first has, and the other way round.
#[test]
fn bulk_on_redundant_paths_gets_the_rate_of_one_and_every_segment_goes_over_both() {
    let links = [link(10, 20), link(10, 25)];
    let (mut pair, flow) = over(&links, "multipath", &[("scheduling", "redundant")]);
    let carried: Rc<RefCell<BTreeMap<SocketAddr, u64>>> = Rc::default();
    let (count, mut rule) = (Rc::clone(&carried), pair.rule);
    pair.rule = Box::new(move |seen| {
        if seen.from == 0 {
            *count.borrow_mut().entry(seen.path.local).or_default() += seen.payload.len() as u64;
        }
        rule(seen)
    });
    let bytes: u64 = bulk(&mut pair, flow, SECOND * 10, SECOND).iter().sum();
    let (rate, one) = (mbit(bytes, SECOND * 10), links[0].ceiling() / 1e6);
    assert!(
        (0.95 * one..1.02 * one).contains(&rate),
        "{rate:.2} of {one:.2} Mbit/s"
    );
    for (path, sent) in carried.borrow().iter() {
        assert!(
            *sent as f64 >= 0.97 * bytes as f64,
            "{path} took {sent} of {bytes} bytes"
        );
    }
}

/// A path that is always full takes part, and delays nothing.
#[test]
fn a_redundant_path_without_room_delays_no_message() {
    let set = [("scheduling", "redundant"), ("ack-every", "1 packets")];
    let alone = latencies(&[link(50, 20)], &set);
    // 200 bytes and headers every 20 ms are 0.12 Mbit/s.
    let full = latencies(
        &[
            link(50, 20),
            Link {
                rate: Rate::from_bps(100_000),
                ..link(1, 20)
            },
        ],
        &set,
    );
    let at = |list: &[u64]| list[list.len() * 99 / 100];
    assert!(
        at(&full) <= at(&alone) + 1,
        "{} against {} ms",
        at(&full),
        at(&alone)
    );
}

/// The slow path is chosen for every third message; when it dies, the fast one takes those too.
#[test]
fn a_message_takes_the_path_that_was_chosen_for_it_while_that_answers() {
    let (mut pair, flow) = over(
        &[link(50, 20), link(50, 60)],
        "multipath",
        &[("scheduling", "fastest-rtt")],
    );
    pair.run_for(SECOND);
    let accepted = pair.accepted().expect("accepted");
    let slow = restp_base::machine::PathAddress {
        local: client(2),
        remote: pair.path(0).remote,
    };
    let send = |pair: &mut crate::common::Pair, count: u8| {
        let begin = pair.now;
        for message in 0..count {
            let data = vec![message; 100].into();
            let path = message.is_multiple_of(3).then_some(slow);
            let written = match path {
                Some(path) => pair.ends[0].write_on(pair.now, flow, data, path),
                None => pair.ends[0].write(pair.now, flow, data),
            };
            written.expect("room");
            pair.run_for(Duration::from_millis(20));
        }
        pair.run_for(SECOND);
        let got: Vec<u8> = pair.read_all(1, accepted).concat();
        let expected: Vec<u8> = (0..count).flat_map(|message| [message; 100]).collect();
        assert!(got == expected, "{} bytes since {begin:?}", got.len());
    };
    pair.log.clear();
    send(&mut pair, 30);
    let chosen = |seen: &crate::common::Seen| seen.payload[0].is_multiple_of(3);
    for seen in pair.log.iter().filter(|seen| seen.is_data()) {
        assert_eq!(
            chosen(seen),
            seen.path.local == client(2),
            "{:?}",
            seen.payload[0]
        );
    }
    pair.rule = Box::new(|seen| {
        let ends = [seen.path.local, seen.path.remote];
        if ends.contains(&client(2)) {
            crate::common::Verdict::Drop
        } else {
            crate::common::Verdict::Pass
        }
    });
    send(&mut pair, 30);
}
