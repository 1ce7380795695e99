//! Simultaneous multipath transmission (SMT §3): what is late on a slow path leaves again by a fast one, and cuts no window.

use super::network::*;
use restp_base::flow::{FlowStats, PathStats};
use restp_base::time::{Duration, Time};
use restp_rivals::sctp::SctpParameters;
use std::collections::{BTreeMap, BTreeSet};

/// 0.2 and 1 Mbit/s, 45 ms each (SMT Table 4.2): the first path is slow.
fn unequal() -> [Line; 2] {
    let kbit = |rate: u64| Line {
        rate: rate * 1000,
        ..deep(0, 45)
    };
    [kbit(200), kbit(1000)]
}

/// A minute of bulk over these lines: what was delivered, the sender's counters and the receiver's paths.
fn minute(net: &mut Net) -> (usize, FlowStats, Vec<PathStats>) {
    let flow = net.open();
    let delivered = net.bulk(flow, 1400, Duration::from_secs(60));
    let accepted = net.accepted().expect("accepted");
    let received = restp_base::flow::Flow::stats(&net.hosts[SERVER], accepted).expect("open");
    (delivered, net.stats(flow), received.paths)
}

fn small(scheme: &str, set: &[(&str, &str)]) -> SctpParameters {
    let mut all = vec![("receive-buffer", "64 KiB")];
    all.extend_from_slice(set);
    smt(scheme, &all)
}

/// Every message arrives once and in order, whatever the scheme, although both paths lose.
#[test]
fn every_scheme_repairs_losses_on_both_paths() {
    for scheme in SctpParameters::schemes() {
        for seed in 0..3 {
            let rates: &[_] = match scheme {
                "smos" => &[("bandwidths", "10 Mbit/s, 10 Mbit/s")],
                _ => &[],
            };
            let mut net = Net::new(small(scheme, rates), &[line(10, 10), line(10, 40)]);
            let mut chance = chance(seed);
            net.rule = Box::new(move |seen| {
                let rate = [0.01, 0.05][seen.path];
                (!chance.chance(rate)).then_some(Duration::ZERO)
            });
            let sent = messages(800, 1400);
            net.transfer(&sent, Duration::from_secs(600));
            assert!(net.read == sent, "{scheme} {seed}");
        }
    }
}

/// SMT E3.1: nothing is lost, so nothing may be cut; and the copies of what is late leave by the fast path.
#[test]
fn lateness_cuts_no_window_and_copies_take_the_fast_path() {
    for scheme in ["mfr1", "mfr2", "amfr"] {
        let mut net = Net::new(small(scheme, &[]), &unequal());
        let (_, sent, received) = minute(&mut net);
        assert!(
            sent.retransmitted_packets > 50,
            "{scheme}: {}",
            sent.retransmitted_packets
        );
        assert_eq!((sent.lost_packets, sent.timeouts), (0, 0), "{scheme}");
        let cuts: u64 = sent.paths.iter().map(|path| path.window_cuts).sum();
        assert_eq!(cuts, 0, "{scheme}");
        let mut left: BTreeMap<u32, usize> = BTreeMap::new();
        for seen in net.log.iter().filter(|seen| seen.from == OPENER) {
            if let Some(tsn) = seen.tsn() {
                match left.insert(tsn, seen.path) {
                    Some(before) => assert_eq!((before, seen.path), (0, 1), "{scheme}: a copy of {tsn}"),
                    None => continue,
                }
            }
        }
        let duplicates: u64 = received.iter().map(|path| path.duplicate_payload_bytes).sum();
        assert!(
            duplicates > 0,
            "{scheme}: nothing was lost, so copies came as well as what they copy"
        );
    }
}

/// SMT E1.1: where nothing tells paths apart windows collapse though nothing is lost; CMT is not fooled.
#[test]
fn without_differentiation_reordering_between_paths_is_taken_for_loss() {
    let cuts = |parameters: SctpParameters| {
        let (_, sent, _) = minute(&mut Net::new(parameters, &unequal()));
        sent.paths.iter().map(|path| path.window_cuts).sum::<u64>()
    };
    assert!(cuts(small("nmt", &[])) > 20);
    let cmt = cmt("cwnd", &[("dac", "off"), ("receive-buffer", "64 KiB")]);
    assert_eq!(cuts(cmt), 0);
}

/// SMT E3.3: the buffer that blocks CMT is emptied by the copies.
#[test]
fn copies_of_what_is_late_unblock_the_receive_buffer() {
    let delivered = |parameters| minute(&mut Net::new(parameters, &unequal())).0;
    let cmt = delivered(cmt("cwnd", &[("dac", "off"), ("receive-buffer", "64 KiB")]));
    let mfr = delivered(small("mfr2", &[]));
    assert!(mfr * 10 > cmt * 11, "{mfr} {cmt}");
}

/// A law, from the trace: no TSN leaves a third time without a timeout, and the receiver counts as duplicate what it got
/// more than once.
#[test]
fn a_number_leaves_twice_at_most_and_arrivals_add_up() {
    let mut net = Net::new(small("amfr", &[]), &unequal());
    let (delivered, sent, received) = minute(&mut net);
    let mut times: BTreeMap<u32, u32> = BTreeMap::new();
    for seen in net.log.iter().filter(|seen| seen.from == OPENER) {
        if let Some(tsn) = seen.tsn() {
            *times.entry(tsn).or_default() += 1;
        }
    }
    assert_eq!(sent.timeouts, 0);
    assert!(times.values().all(|count| *count <= 2));
    let again: u64 = times.values().map(|count| u64::from(count - 1)).sum();
    assert_eq!(again, sent.retransmitted_packets);
    let total = |of: fn(&PathStats) -> u64| received.iter().map(of).sum::<u64>();
    let unique = total(|path| path.arrived_payload_bytes) - total(|path| path.duplicate_payload_bytes);
    let held = unique - delivered as u64;
    assert!(
        held <= 64 << 10,
        "what is neither read nor a duplicate waits in the buffer: {held}"
    );
}

/// NMT sends packet by packet, SMOS by the rates that it was told.
#[test]
fn new_data_is_spread_as_the_scheme_says() {
    let runs = |parameters: SctpParameters| {
        let mut net = Net::new(parameters, &[deep(5, 10), deep(5, 10)]);
        let flow = net.open();
        net.bulk(flow, 1400, Duration::from_secs(5));
        let from = net.now;
        net.bulk(flow, 1400, Duration::from_secs(5));
        let mut seen_before = BTreeSet::new();
        let new = net
            .log
            .iter()
            .filter(|seen| seen.from == OPENER && seen.at > from);
        let paths = new.filter(|seen| seen.tsn().is_some_and(|tsn| seen_before.insert(tsn)));
        paths.map(|seen| seen.path).collect::<Vec<_>>()
    };
    let turns = |paths: &[usize]| paths.windows(2).filter(|two| two[0] != two[1]).count() * 100 / paths.len();
    let share = |paths: &[usize]| paths.iter().filter(|path| **path == 0).count() * 100 / paths.len();
    let smos = runs(smt("smos", &[("bandwidths", "1 Mbit/s, 3 Mbit/s")]));
    assert!((20..30).contains(&share(&smos)), "{}", share(&smos));
    let nmt = runs(smt("nmt", &[]));
    let cmt = runs(cmt("cwnd", &[("dac", "off")]));
    assert!((45..55).contains(&share(&nmt)), "{}", share(&nmt));
    assert!(turns(&nmt) >= turns(&cmt), "{} {}", turns(&nmt), turns(&cmt));
}

/// SMT §3.3: the ranges of the letter take lateness for loss where numbers interleave.
#[test]
fn ranges_cut_windows_that_owners_do_not() {
    let cuts = |member: &str| {
        let (_, sent, _) = minute(&mut Net::new(small("mfr2", &[("member", member)]), &unequal()));
        sent.paths.iter().map(|path| path.window_cuts).sum::<u64>()
    };
    assert_eq!(cuts("owner"), 0);
    assert!(cuts("range") > 5);
}

/// A path that dies while copies leave by it: what it carried comes back to the other.
#[test]
fn a_scheme_goes_on_by_the_path_that_lives() {
    let mut net = Net::new(small("amfr", &[]), &[line(2, 20), line(10, 20)]);
    net.rule = Box::new(|seen| {
        let down = seen.path == 1 && seen.at.since(Time::ZERO) > Duration::from_secs(2);
        (!down).then_some(Duration::ZERO)
    });
    let sent: Vec<_> = (0..2000).map(|_| noise(1400).into()).collect();
    net.transfer(&sent, Duration::from_secs(300));
    assert!(net.read == sent);
}

/// A path for acknowledgements alone draws no data, or its turn would never come.
#[test]
fn paths_are_drawn_among_those_that_carry_data() {
    let set = [
        ("bandwidths", "10 Mbit/s, 10 Mbit/s"),
        ("data-paths", "2"),
        ("ack-return", "3"),
    ];
    let mut net = Net::new(small("smos", &set), &[line(10, 10), line(10, 10), line(10, 10)]);
    let (delivered, ..) = minute(&mut net);
    assert!(delivered > 50_000_000, "{delivered}");
}
