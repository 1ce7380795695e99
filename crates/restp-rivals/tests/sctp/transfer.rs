//! Data over one path (RFC 9260 §6, §7): messages arrive whole and in order, losses are repaired by missing reports and by the
//! timer, buffers and windows are kept.

use super::network::*;
use bytes::Bytes;
use restp_base::flow::CloseReason;
use restp_base::flow::{Flow, WriteError};
use restp_base::time::Duration;
use restp_rivals::sctp::chunk::Chunk;

#[test]
fn messages_keep_their_boundaries_and_large_ones_are_fragmented() {
    let mut net = Net::new(
        sctp(&[("segment", "500 B"), ("message", "5 KiB")]),
        &[deep(10, 10)],
    );
    let sent = messages(200, 5000);
    let flow = net.transfer(&sent, Duration::from_secs(30));
    assert_eq!(net.read, sent);
    let stats = net.hosts[SERVER]
        .stats(net.accepted().expect("accepted"))
        .expect("open");
    assert_eq!(stats.delivered_messages, 200);
    assert!(net.log.iter().all(|seen| seen.bytes <= 28 + 500));
    assert_eq!(net.stats(flow).retransmitted_packets, 0);
}

#[test]
fn what_is_too_large_or_empty_is_refused() {
    let mut net = Net::new(sctp(&[]), &[wide(10)]);
    let flow = net.open();
    let mut write = |bytes: usize| net.hosts[OPENER].write(net.now, flow, noise(bytes).into());
    assert_eq!(
        write(1401),
        Err(WriteError::TooLarge {
            size: 1401,
            limit: 1400
        })
    );
    assert_eq!(write(0), Err(WriteError::Empty));
    assert_eq!(write(1400), Ok(()));
}

/// RFC 9260 §6.2: every second packet, and a lone one within 200 ms.
#[test]
fn every_second_packet_is_acknowledged_and_a_lone_one_after_200_ms() {
    let mut net = Net::new(sctp(&[("heartbeat", "off")]), &[wide(10)]);
    let flow = net.open();
    net.run_for(ms(100));
    for message in messages(3, 100) {
        net.hosts[OPENER].write(net.now, flow, message).expect("room");
    }
    let from = net.now;
    net.run_for(ms(400));
    let sacks = net.log.iter().filter(|seen| seen.sack().is_some());
    let at: Vec<_> = sacks.map(|seen| seen.at.since(from).as_millis()).collect();
    assert_eq!(at, [10, 210]);
}

/// Packet `lost` of the data is lost once.
fn lose(lost: impl Fn(u32) -> bool + 'static) -> Rule {
    let mut gone = std::collections::BTreeSet::new();
    Box::new(move |seen| {
        let first = seen.tsn().is_some_and(|tsn| lost(tsn) && gone.insert(tsn));
        (!first).then_some(Duration::ZERO)
    })
}

#[test]
fn three_missing_reports_bring_a_chunk_again_without_the_timer() {
    let mut net = Net::new(sctp(&[]), &[line(10, 20)]);
    net.rule = lose(|tsn| tsn == 40);
    let sent: Vec<Bytes> = (0..200).map(|_| noise(1400).into()).collect();
    let flow = net.transfer(&sent, Duration::from_secs(20));
    assert_eq!(net.read, sent);
    let stats = net.stats(flow);
    assert_eq!((stats.retransmitted_packets, stats.timeouts), (1, 0));
    let again = net
        .log
        .iter()
        .filter(|seen| seen.tsn() == Some(40))
        .nth(1)
        .expect("again");
    let reports = |seen: &&Seen| {
        let sack = seen.sack().filter(|_| seen.from == SERVER);
        sack.is_some_and(|sack| !sack.blocks.is_empty()) && seen.at + ms(20) < again.at
    };
    assert!(
        net.log.iter().filter(reports).count() >= 2,
        "three reports, the third just came"
    );
}

#[test]
fn a_retransmission_that_is_lost_waits_for_the_timer() {
    let mut net = Net::new(sctp(&[]), &[line(10, 20)]);
    let mut count = 0;
    net.rule = Box::new(move |seen| {
        count += u32::from(seen.tsn() == Some(40));
        (seen.tsn() != Some(40) || count > 2).then_some(Duration::ZERO)
    });
    let sent: Vec<Bytes> = (0..200).map(|_| noise(1400).into()).collect();
    let flow = net.transfer(&sent, Duration::from_secs(20));
    assert_eq!(net.read, sent);
    assert_eq!(net.stats(flow).timeouts, 1);
    let times: Vec<_> = net
        .log
        .iter()
        .filter(|seen| seen.tsn() == Some(40))
        .map(|seen| seen.at)
        .collect();
    assert!(times[2].since(times[1]) >= Duration::from_secs(1), "RTO.Min");
}

#[test]
fn whatever_is_lost_late_or_retransmitted_arrives_once_and_in_order() {
    for seed in 0..30 {
        let mut net = Net::new(
            sctp(&[("message", "4 KiB"), ("receive-buffer", "20 KiB")]),
            &[line(20, 10)],
        );
        let mut chance = chance(seed);
        net.rule = Box::new(move |_| {
            let late = if chance.chance(0.05) {
                ms(chance.below(60))
            } else {
                Duration::ZERO
            };
            (!chance.chance(0.05)).then_some(late)
        });
        let sent = messages(150, 4000);
        net.transfer(&sent, Duration::from_secs(600));
        assert_eq!(net.read, sent, "seed {seed}");
    }
}

/// What is in flight never exceeds what the receiver has room for.
#[test]
fn a_reader_that_stops_shuts_the_window_and_reading_opens_it_again() {
    let mut net = Net::new(sctp(&[("receive-buffer", "14000 B")]), &[line(10, 10)]);
    net.reads = false;
    let flow = net.open();
    net.bulk(flow, 1400, Duration::from_secs(3));
    let accepted = net.accepted().expect("accepted");
    let told = net
        .log
        .iter()
        .rev()
        .find_map(|seen| seen.sack().cloned())
        .expect("a SACK");
    assert!(told.window < 1400, "{told:?}");
    let held = net.hosts[SERVER].stats(accepted).expect("open").memory_bytes;
    assert!(held < 14_000 + 20_000, "{held}");
    net.reads = true;
    let from = net.now;
    net.read_all(accepted);
    net.run_for(ms(50));
    let resumed = net.log.iter().find(|seen| seen.is_data() && seen.at > from);
    assert!(
        resumed.is_some_and(|seen| seen.at.since(from) <= ms(11)),
        "the update says so at once"
    );
    assert!(net.bulk(flow, 1400, Duration::from_secs(3)) > 1_000_000);
}

/// The update is lost: who waits asks.
#[test]
fn a_shut_window_is_probed() {
    let mut net = Net::new(sctp(&[("receive-buffer", "14000 B")]), &[line(10, 10)]);
    net.reads = false;
    let flow = net.open();
    net.bulk(flow, 1400, Duration::from_secs(3));
    net.reads = true;
    let accepted = net.accepted().expect("accepted");
    net.rule = Box::new(|seen| seen.sack().is_none().then_some(Duration::ZERO));
    net.read_all(accepted);
    net.run_for(ms(100));
    net.rule = Box::new(|_| Some(Duration::ZERO));
    assert!(net.bulk(flow, 1400, Duration::from_secs(5)) > 1_000_000);
}

/// CMT §1.6: four packets at most for one acknowledgement, and 4380 bytes at first.
#[test]
fn bursts_and_the_first_flight_are_bounded() {
    let mut net = Net::new(sctp(&[]), &[deep(10, 50)]);
    let flow = net.open();
    net.bulk(flow, 1400, ms(280));
    assert_eq!(net.count(Seen::is_data), 4, "the last one overshoots 4380 bytes");
    net.bulk(flow, 1400, Duration::from_secs(3));
    let mut at_once = std::collections::BTreeMap::new();
    for seen in net.log.iter().filter(|seen| seen.is_data()) {
        *at_once.entry(seen.at).or_insert(0) += 1;
    }
    assert_eq!(at_once.values().max(), Some(&4));
    assert!(at_once.len() > 500, "{}", at_once.len());
}

#[test]
fn the_peer_of_an_ended_stream_of_numbers_wraps() {
    let mut net = Net::new(sctp(&[]), &[wide(5)]);
    let sent = messages(100, 1400);
    net.transfer(&sent, Duration::from_secs(5));
    assert_eq!(net.read, sent);
    let tsns = net.log.iter().filter_map(|seen| match seen.chunk() {
        Chunk::Data(data) => Some(data.fragment.tsn),
        _ => None,
    });
    assert!(tsns.clone().any(|tsn| tsn > u32::MAX - 10) && tsns.clone().any(|tsn| tsn < 10));
}

/// RFC 9260 §8.1: who does not answer the questions of a shut window is not there.
#[test]
fn a_peer_that_dies_with_its_window_shut_is_given_up() {
    let mut net = Net::new(
        sctp(&[("receive-buffer", "14000 B"), ("rto-ceiling", "2 s")]),
        &[line(10, 10)],
    );
    net.reads = false;
    let flow = net.open();
    net.bulk(flow, 1400, Duration::from_secs(3));
    net.run_for(Duration::from_secs(300));
    assert_eq!(net.closed(0), None, "it answers, and may go on not to read");
    net.rule = Box::new(|_| None);
    net.run_for(Duration::from_secs(300));
    assert!(
        matches!(net.closed(0), Some(CloseReason::TimedOut(_))),
        "{:?}",
        net.closed(0)
    );
}

/// The questions of a shut window go by the other path where theirs has died, and so does all that follows (RFC 9260 §8.2).
#[test]
fn a_path_that_dies_with_the_window_shut_is_left() {
    let lines = [line(10, 10), line(10, 10)];
    let mut net = Net::new(
        sctp(&[("receive-buffer", "14000 B"), ("rto-ceiling", "2 s")]),
        &lines,
    );
    net.reads = false;
    let flow = net.open();
    net.bulk(flow, 1400, Duration::from_secs(3));
    net.rule = Box::new(|seen| (seen.path == 1).then_some(Duration::ZERO));
    net.run_for(Duration::from_secs(60));
    let asked = |seen: &&Seen| seen.is_data() && seen.from == 0;
    assert_eq!(net.log.iter().rfind(asked).map(|seen| seen.path), Some(1));
    net.reads = true;
    net.read_all(net.accepted().expect("accepted"));
    assert!(net.bulk(flow, 1400, Duration::from_secs(10)) > 1_000_000);
    assert_eq!(net.closed(0), None);
}
