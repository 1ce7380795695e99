//! Stories of when acknowledgements are sent (ResTP §3.5.9; OP-46, OP-47).

use crate::common::*;
use bytes::Bytes;
use restp_base::flow::{Flow, FlowId, FlowStats};
use restp_base::time::Duration;
use restp_proto::Acceptance;
use restp_proto::wire::{ErrorControl, Flags, Tail};
use restp_services::ack::AckRatio;

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// Once per period, over a link whose way back takes no more.
const DELAYED: &[(&str, &str)] = &[
    ("ack", "delayed+sack"),
    ("recovery", "pipe"),
    ("congestion", "none"),
    ("flight-limit", "64 segments"),
];

/// Bare acknowledgements from side 1 since packet `from` of the record.
fn bare(pair: &Pair, from: usize) -> Vec<&Seen> {
    let log = pair.log[from..].iter();
    log.filter(|seen| seen.from == 1 && seen.is(Flags::ACK) && !seen.is_data())
        .collect()
}

#[test]
fn delayed_is_said_in_the_header_and_sends_one_acknowledgement_per_period() {
    let mut pair = Pair::new("3wh-arq", &[DELAYED, &[("ack-period", "50 ms")]].concat());
    let flows = pair.connect();
    let from = pair.log.len();
    assert!(pair.transfer(0, flows, &noise(2_000_000), Duration::from_secs(20)));
    assert!(
        pair.log
            .iter()
            .all(|seen| seen.header.services.error.has(ErrorControl::DEL))
    );
    let acks = bare(&pair, from);
    assert!(acks.len() > 10, "{}", acks.len());
    for two in acks.windows(2) {
        assert!(two[1].at.since(two[0].at) >= ms(50), "{:?}", two[1].at);
    }
    let data = pair.log.iter().filter(|seen| seen.is_data()).count();
    assert!(
        data > 20 * acks.len(),
        "{data} segments, {} acknowledgements",
        acks.len()
    );
    assert_eq!(pair.ends[0].stats(flows.0).unwrap().timeouts, 0);
}

#[test]
fn the_period_is_half_a_round_trip_when_nothing_else_is_said() {
    let mut pair = Pair::new("3wh-arq", DELAYED);
    pair.delay = ms(50);
    let (flow, _) = {
        let flow = pair.open();
        pair.run_for(ms(300));
        (flow, pair.accepted().expect("accepted"))
    };
    let from = pair.log.len();
    pair.write(0, flow, b"lone");
    pair.run_for(ms(400));
    let acks = bare(&pair, from);
    assert_eq!(acks.len(), 1);
    assert_eq!(acks[0].at.since(pair.log[from].at), ms(50 + 50));
}

#[test]
fn losses_are_repaired_from_one_report_per_period() {
    let mut pair = Pair::new("3wh-arq", &[DELAYED, &[("ack-period", "100 ms")]].concat());
    let flows = pair.connect();
    let mut count = 0;
    pair.rule = Box::new(move |seen| {
        count += u64::from(seen.is_data());
        if seen.is_data() && [5, 9, 10, 70].contains(&count) {
            Verdict::Drop
        } else {
            Verdict::Pass
        }
    });
    assert!(pair.transfer(0, flows, &noise(200_000), Duration::from_secs(20)));
    let stats = pair.ends[0].stats(flows.0).unwrap();
    assert_eq!((stats.retransmitted_packets, stats.timeouts), (4, 0));
}

/// Counted from the loss: half a round trip there, a period at most, half a round trip back.
#[test]
fn a_hole_that_is_named_is_retransmitted_after_one_period() {
    for ack in ["delayed+nak", "delayed+snack"] {
        let period = [("ack", ack), ("ack-period", "100 ms")];
        let mut pair = Pair::new("3wh-arq", &[DELAYED, &period].concat());
        let flows = pair.connect();
        let (mut count, mut lost) = (0, None);
        pair.rule = Box::new(move |seen| {
            count += u32::from(seen.is_data() && seen.from == 0);
            if count == 40 && lost.is_none() {
                lost = seen.header.sequence;
                return Verdict::Drop;
            }
            Verdict::Pass
        });
        assert!(pair.transfer(0, flows, &noise(400_000), Duration::from_secs(20)));
        let data: Vec<_> = pair.log.iter().filter(|seen| seen.is_data()).collect();
        let sent = |number| data.iter().filter(move |seen| seen.header.sequence == number);
        let retransmitted = data.iter().find(|seen| sent(seen.header.sequence).count() == 2);
        let number = retransmitted.expect("the one that was lost").header.sequence;
        let times: Vec<_> = sent(number).map(|seen| seen.at).collect();
        let most = pair.delay * 2 + ms(100);
        let took = times[1].since(times[0]);
        assert!(took <= most, "{ack}: {took:?}, at most {most:?}");
        assert_eq!(pair.ends[0].stats(flows.0).unwrap().timeouts, 0, "{ack}");
    }
}

#[test]
fn a_period_longer_than_the_timer_of_the_path_is_no_timeout() {
    let mut pair = Pair::new("3wh-arq", &[DELAYED, &[("ack-period", "1 s")]].concat());
    let (flow, accepted) = pair.connect();
    for _ in 0..10 {
        pair.write(0, flow, b"every five seconds");
        pair.run_for(Duration::from_secs(5));
        pair.read_all(1, accepted);
    }
    let stats = pair.ends[0].stats(flow).unwrap();
    assert_eq!((stats.retransmitted_packets, stats.timeouts), (0, 0));
}

/// A sender that fills the window of two segments, on a path that loses the acknowledgement of both.
fn frozen(ack: &str) -> (Pair, (FlowId, FlowId), usize) {
    let mut pair = Pair::new("3wh-arq", &[("window", "2 segments"), ("ack", ack)]);
    let flows = pair.connect();
    let from = pair.log.len();
    let mut lost = 0;
    pair.rule = Box::new(move |seen| {
        lost += u32::from(seen.from == 1);
        if seen.from == 1 && lost == 1 {
            Verdict::Drop
        } else {
            Verdict::Pass
        }
    });
    pair.write(0, flows.0, &noise(2 * 1400));
    (pair, flows, from)
}

#[test]
fn a_lost_last_acknowledgement_is_healed_by_its_duplicate_before_the_timer() {
    let (mut pair, (flow, _), _) = frozen("positive+repeat");
    pair.run_for(ms(100));
    let stats = pair.ends[0].stats(flow).unwrap();
    assert_eq!((stats.in_flight_segments, stats.retransmitted_packets), (0, 0));

    let (mut pair, (flow, _), _) = frozen("positive");
    pair.run_for(ms(100));
    assert_eq!(pair.ends[0].stats(flow).unwrap().in_flight_segments, 2, "frozen");
    pair.run_for(ms(400));
    assert_eq!(pair.ends[0].stats(flow).unwrap().timeouts, 1);
}

#[test]
fn an_idle_spell_brings_two_duplicates_and_repairs_nothing() {
    let (mut pair, (flow, accepted), from) = frozen("positive+repeat");
    pair.run_for(Duration::from_secs(5));
    let sent: Vec<_> = bare(&pair, from).iter().map(|seen| seen.at).collect();
    assert_eq!(sent.len(), 3, "one and its two duplicates: {sent:?}");
    // The round trip is 20 ms.
    assert_eq!((sent[1].since(sent[0]), sent[2].since(sent[1])), (ms(30), ms(30)));
    assert_eq!(pair.ends[0].stats(flow).unwrap().retransmitted_packets, 0);
    pair.read_all(1, accepted);
    pair.run_for(ms(100));
    let from = pair.log.len();
    pair.write(0, flow, &noise(2 * 1400));
    pair.run_for(Duration::from_secs(5));
    assert_eq!(bare(&pair, from).len(), 3, "new data begins a new spell");
}

#[test]
fn a_flow_without_the_module_acknowledges_nothing() {
    let set = [("connection", "three-way"), ("ordering", "ordered")];
    let mut pair = Pair::new("unrel", &set);
    let (flow, _) = pair.connect();
    let from = pair.log.len();
    for _ in 0..5 {
        pair.write(0, flow, b"datagram");
    }
    pair.ends[0].finish(pair.now, flow);
    pair.run_for(Duration::from_secs(5));
    assert!(bare(&pair, from).is_empty());
}

/// A bulk transfer of side 0, whose ends thin acknowledgements out or not. The record of it, and what side 0 counted.
fn bulk(thins: [&str; 2], rule: Rule) -> (Vec<Seen>, FlowStats) {
    let [opener, acceptor] = thins.map(|thins| config("default", &[("ack-thinning", thins)]));
    let mut pair = Pair::of(opener, acceptor.listen(PORT, Acceptance::Any));
    let flows = pair.connect();
    pair.rule = rule;
    assert!(pair.transfer(0, flows, &noise(4_000_000), Duration::from_secs(20)));
    let stats = pair.ends[0].stats(flows.0).expect("open");
    (pair.log, stats)
}

/// Data segments, and packets that only acknowledge.
fn count(log: &[Seen]) -> (usize, usize) {
    let data = log.iter().filter(|seen| seen.is_data()).count();
    let bare = log.iter().filter(|seen| seen.from == 1 && !seen.is_data());
    (data, bare.count())
}

#[test]
fn acknowledgements_thin_out_while_much_is_in_flight_if_both_ends_do_it() {
    for thins in [["off", "off"], ["on", "off"], ["off", "on"], ["on", "on"]] {
        let (log, stats) = bulk(thins, Box::new(|_| Verdict::Pass));
        let (data, acks) = count(&log);
        if thins == ["on", "on"] {
            assert!(acks < data / 8, "{acks} for {data}");
        } else {
            assert!(acks > data / 3, "{thins:?}: {acks} for {data}");
        }
        assert_eq!((stats.retransmitted_packets, stats.timeouts), (0, 0), "{thins:?}");
    }
}

#[test]
fn a_thinned_flow_is_acknowledged_at_once_at_its_end() {
    let (log, _) = bulk(["on", "on"], Box::new(|_| Verdict::Pass));
    let last = log.iter().rfind(|seen| seen.is_data()).expect("data");
    assert_eq!(last.header.ack_ratio, AckRatio::SCHEDULE);
    let answer = log
        .iter()
        .rfind(|seen| seen.from == 1)
        .expect("its acknowledgement");
    assert!(answer.at.since(last.at) <= ms(10 + 40));
}

#[test]
fn a_hole_in_a_thinned_flow_is_reported_at_once_and_repaired_in_a_round_trip_or_so() {
    let (log, stats) = bulk(["on", "on"], lose_segments(&[1500]));
    let sent: Vec<_> = log
        .iter()
        .filter(|seen| seen.from == 0 && seen.is_data())
        .collect();
    let lost = sent
        .iter()
        .position(|seen| seen.verdict == Verdict::Drop)
        .expect("one");
    let number = sent[lost].header.sequence;
    let next = sent[lost + 1].at + ms(10);
    assert!(
        log.iter().any(|seen| seen.from == 1 && seen.at == next),
        "the segment after it arrives"
    );
    let again = sent[lost + 1..]
        .iter()
        .find(|seen| seen.header.sequence == number)
        .expect("again");
    let took = again.at.since(sent[lost].at);
    assert!(
        took <= ms(20 + 20 / 8 + 1),
        "a round trip, and the eighth that one ratio takes: {took:?}"
    );
    assert_eq!((stats.retransmitted_packets, stats.timeouts), (1, 0));
    let (data, acks) = count(&log);
    assert!(acks < data / 8, "{acks} for {data}");
}

#[test]
fn of_a_large_flight_an_acknowledgement_names_eight_blocks_and_else_four() {
    const LOST: [u64; 12] = [
        1500, 1510, 1520, 1530, 1540, 1550, 1560, 1570, 1580, 1590, 1600, 1610,
    ];
    let most = |thins| {
        let (log, _) = bulk([thins, thins], lose_segments(&LOST));
        let blocks = log.iter().filter_map(|seen| match &seen.header.tail {
            Tail::Sack(blocks) => Some(blocks.len()),
            _ => None,
        });
        blocks.max()
    };
    assert_eq!((most("on"), most("off")), (Some(8), Some(4)));
}

#[test]
fn a_peer_that_asks_for_the_rarest_acknowledgements_gets_one_after_forty_milliseconds() {
    let mut pair = Pair::new("default", &[("ack-thinning", "on"), ("mtu-discovery", "off")]);
    let (_, accepted) = pair.connect();
    let from = pair.log.len();
    pair.forge(0, b"alone", |header| header.ack_ratio = AckRatio::from_code(6));
    pair.run_for(ms(39));
    assert!(bare(&pair, from).is_empty());
    pair.run_for(ms(1));
    assert_eq!(bare(&pair, from).len(), 1);
    assert_eq!(pair.read_all(1, accepted), [Bytes::from_static(b"alone")]);
}
