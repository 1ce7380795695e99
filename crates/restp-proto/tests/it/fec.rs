//! Stories of forward error correction (ResTP §3.5.8): quasi reliable and HARQ, loss by loss.

use crate::common::links::{Link, link, over};
use crate::common::*;
use restp_base::flow::{CloseReason, Flow, FlowId, FlowStats};
use restp_base::time::{Duration, Time};
use restp_proto::wire::{Fec, Flags};
use restp_proto::{Acceptance, InitialNumbers};

const QUASI: &[(&str, &str)] = &[
    ("connection", "three-way"),
    ("reliability", "quasi"),
    ("ordering", "ordered"),
];
const INTERLEAVED: (&str, &str) = ("fec", "interleaved");

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn with<'a>(set: &[(&'a str, &'a str)], more: (&'a str, &'a str)) -> Vec<(&'a str, &'a str)> {
    [set, &[more]].concat()
}

/// HARQ with frames kept apart.
fn harq(more: &[(&str, &str)]) -> Pair {
    Pair::new("3wh-harq", &[&[("framing", "fixed")], more].concat())
}

/// Drops the first transmission of the plain segments, and the encoded packets, at these positions among their kind.
fn lose(segments: &'static [u64], encoded: &'static [u64]) -> Rule {
    let (mut sent, mut coded) = (Vec::new(), 0);
    Box::new(move |seen| {
        let fin = seen.header.flags.has(Flags::FIN);
        if seen.from != 0 || sent.contains(&seen.header.sequence) && !seen.is_encoded() {
            return Verdict::Pass;
        }
        let lost = if seen.is_encoded() {
            coded += 1;
            encoded.contains(&coded)
        } else if seen.is_data() || fin {
            sent.push(seen.header.sequence);
            segments.contains(&(sent.len() as u64))
        } else {
            false
        };
        if lost { Verdict::Drop } else { Verdict::Pass }
    })
}

fn frame(index: u8) -> Vec<u8> {
    vec![index; 1 + 7 * usize::from(index)]
}

/// Writes `count` frames of different lengths at once and runs for half a second; the indices of those that arrived.
fn frames(pair: &mut Pair, flows: (FlowId, FlowId), count: u8) -> Vec<u8> {
    (0..count).for_each(|index| pair.write(0, flows.0, &frame(index)));
    pair.run_for(ms(500));
    let read = pair.read_all(1, flows.1);
    read.iter().for_each(|data| assert_eq!(data, &frame(data[0])));
    read.iter().map(|data| data[0]).collect()
}

fn stats(pair: &Pair, side: usize, flow: FlowId) -> FlowStats {
    pair.ends[side].stats(flow).expect("a flow")
}

/// Retransmissions, timeouts, rebuilt segments.
fn effort(pair: &Pair, flows: (FlowId, FlowId)) -> (u64, u64, u64) {
    let sender = stats(pair, 0, flows.0);
    (
        sender.retransmitted_packets,
        sender.timeouts,
        stats(pair, 1, flows.1).repaired_packets,
    )
}

#[test]
fn one_loss_is_rebuilt_without_a_retransmission() {
    for lost in [&[1][..], &[3], &[6]] {
        for code in ["basic", "interleaved"] {
            let mut pair = Pair::new("unrel", &with(QUASI, ("fec", code)));
            let flows = pair.connect();
            pair.rule = lose(lost, &[]);
            assert_eq!(frames(&mut pair, flows, 6), [0, 1, 2, 3, 4, 5], "{lost:?} {code}");
            assert_eq!(effort(&pair, flows), (0, 0, 1));

            let mut pair = harq(&[("fec", code)]);
            let flows = pair.connect();
            pair.rule = lose(lost, &[]);
            assert_eq!(frames(&mut pair, flows, 6), [0, 1, 2, 3, 4, 5], "{lost:?} {code}");
            assert_eq!(effort(&pair, flows), (0, 0, 1));
        }
    }
}

/// The third duplicate comes before the encoded packet, and waits for it.
#[test]
fn a_rebuilt_loss_is_no_signal_of_congestion() {
    let window = |lost: &'static [u64]| {
        let mut pair = Pair::new("3wh-harq", &[]);
        let flows = pair.connect();
        pair.rule = lose(lost, &[]);
        assert!(pair.transfer(0, flows, &noise(150_000), Duration::from_secs(5)));
        assert_eq!(effort(&pair, flows), (0, 0, lost.len() as u64));
        stats(&pair, 0, flows.0).congestion_window_bytes
    };
    let undisturbed = window(&[]);
    assert!(window(&[12, 40, 77]) >= undisturbed);
}

#[test]
fn two_consecutive_losses_are_too_much_for_the_basic_code_and_not_for_the_interleaved() {
    let mut pair = Pair::new("unrel", QUASI);
    let flows = pair.connect();
    pair.rule = lose(&[2, 3], &[]);
    assert_eq!(
        frames(&mut pair, flows, 6),
        [0, 3, 4, 5],
        "handed up after the hold time"
    );
    assert_eq!(effort(&pair, flows), (0, 0, 0));

    let mut pair = Pair::new("unrel", &with(QUASI, INTERLEAVED));
    let flows = pair.connect();
    pair.rule = lose(&[2, 3], &[]);
    assert_eq!(frames(&mut pair, flows, 6), [0, 1, 2, 3, 4, 5]);
    assert_eq!(effort(&pair, flows), (0, 0, 2));
}

/// ResTP §11.1: of 30 to 35, 30 and 32 are lost.
#[test]
fn two_losses_of_one_parity_cannot_be_rebuilt() {
    let mut pair = Pair::new("unrel", &with(QUASI, INTERLEAVED));
    let flows = pair.connect();
    pair.rule = lose(&[1, 3], &[]);
    assert_eq!(frames(&mut pair, flows, 6), [1, 3, 4, 5]);

    let mut pair = harq(&[INTERLEAVED]);
    let flows = pair.connect();
    pair.rule = lose(&[1, 3], &[]);
    assert_eq!(frames(&mut pair, flows, 6), [0, 1, 2, 3, 4, 5]);
    assert_eq!(
        effort(&pair, flows),
        (3, 0, 0),
        "what lies between is not known to be there"
    );
}

#[test]
fn with_blocks_nothing_is_retransmitted_that_is_known_to_be_there() {
    let mut pair = harq(&[("ack", "positive+sack"), ("recovery", "pipe")]);
    let flows = pair.connect();
    pair.rule = lose(&[1, 3, 6], &[]);
    assert_eq!(frames(&mut pair, flows, 6), [0, 1, 2, 3, 4, 5]);
    assert_eq!(
        effort(&pair, flows),
        (3, 0, 0),
        "1, 3 and 6, and not what lies between"
    );
    assert_eq!(stats(&pair, 1, flows.1).duplicate_packets, 0);
}

/// What HARQ cannot rebuild is retransmitted after one round trip, whatever finds losses otherwise.
#[test]
fn a_report_of_loss_is_answered_at_once() {
    for recovery in ["timer", "duplicate-ack"] {
        let mut pair = harq(&[("recovery", recovery)]);
        let flows = pair.connect();
        pair.rule = lose(&[5, 6], &[]);
        let start = pair.now;
        let window = stats(&pair, 0, flows.0).congestion_window_bytes;
        (0..6).for_each(|index| pair.write(0, flows.0, &frame(index)));
        // Encoded after 5 ms, there after 10 more, reported after 10 more.
        pair.run_until(start + ms(25));
        assert_eq!(effort(&pair, flows), (2, 0, 0), "{recovery}");
        pair.run_for(ms(11));
        assert_eq!(pair.read_all(1, flows.1).len(), 6);
        let after = stats(&pair, 0, flows.0).congestion_window_bytes;
        assert!(after < window, "{after}: the reaction of one fast retransmit");
    }
}

/// ResTP §11.3, the vectors, on the wire: the group 20 to 23 from the side that accepted.
#[test]
fn acknowledgements_report_the_vectors_of_the_specification() {
    for (lost, acknowledged, range) in [
        (&[21, 23][..], 21, 3),
        (&[21], 24, 0),
        (&[21, 22], 21, 2),
        (&[], 24, 0),
    ] {
        let mut acceptor = config("3wh-harq", &[("framing", "fixed")]).listen(PORT, Acceptance::Any);
        acceptor.initial_numbers = InitialNumbers::Fixed(19);
        let mut pair = Pair::of(config("3wh-harq", &[("framing", "fixed")]), acceptor);
        let (_, accepted) = pair.connect();
        pair.rule = Box::new(move |seen| {
            let number = seen.header.sequence.unwrap_or(0);
            let lost = seen.from == 1 && seen.is_data() && lost.contains(&number);
            if lost { Verdict::Drop } else { Verdict::Pass }
        });
        (0..4).for_each(|index| pair.write(1, accepted, &frame(index)));
        pair.run_for(ms(16));
        let said = pair
            .log
            .iter()
            .rfind(|seen| seen.from == 0)
            .expect("an acknowledgement");
        assert_eq!(said.header.acknowledgement, Some(acknowledged), "{lost:?}");
        assert_eq!(said.header.fec, Some(Fec { kind: 1, range }), "{lost:?}");
    }
}

#[test]
fn a_report_stands_until_the_loss_is_repaired_and_is_answered_once() {
    let mut pair = harq(&[]);
    let flows = pair.connect();
    // The first report, and what it would have brought about, is lost.
    let (mut first, mut reports) = (lose(&[1, 2], &[]), 0);
    pair.rule = Box::new(move |seen| {
        let reported = seen.from == 1 && seen.header.fec.is_some_and(|fec| fec.range > 0);
        reports += u32::from(reported);
        if reported && reports == 1 {
            Verdict::Drop
        } else {
            first(seen)
        }
    });
    (0..4).for_each(|index| pair.write(0, flows.0, &frame(index)));
    pair.run_for(ms(30));
    assert_eq!(effort(&pair, flows).0, 0);
    (4..6).for_each(|index| pair.write(0, flows.0, &frame(index)));
    pair.run_for(ms(45));
    assert_eq!(pair.read_all(1, flows.1).len(), 6);
    assert_eq!(effort(&pair, flows), (2, 0, 0));
}

#[test]
fn a_lost_encoded_packet_costs_quasi_the_segment_and_harq_a_retransmission() {
    let mut pair = Pair::new("unrel", QUASI);
    let flows = pair.connect();
    pair.rule = lose(&[2], &[1]);
    assert_eq!(frames(&mut pair, flows, 6), [0, 2, 3, 4, 5]);

    let mut pair = Pair::new("3wh-harq", &[]);
    let flows = pair.connect();
    pair.rule = lose(&[20], &[1, 2, 3]);
    assert!(pair.transfer(0, flows, &noise(150_000), Duration::from_secs(5)));
    assert_eq!(
        effort(&pair, flows),
        (1, 0, 0),
        "by duplicates that left after it"
    );
}

#[test]
fn an_encoded_packet_may_be_overtaken_by_newer_data() {
    let mut pair = Pair::new("unrel", QUASI);
    let flows = pair.connect();
    let mut lost = lose(&[2], &[]);
    pair.rule = Box::new(move |seen| match lost(seen) {
        Verdict::Pass if seen.is_encoded() => Verdict::Late(ms(30)),
        verdict => verdict,
    });
    (0..6).for_each(|index| pair.write(0, flows.0, &frame(index)));
    pair.run_for(ms(6));
    (6..20).for_each(|index| pair.write(0, flows.0, &frame(index)));
    pair.run_for(ms(200));
    let read = pair.read_all(1, flows.1);
    assert_eq!(read, (0..20).map(frame).collect::<Vec<_>>());
    assert_eq!(effort(&pair, flows), (0, 0, 1));
}

#[test]
fn what_is_late_itself_is_delivered_once() {
    for set in [QUASI.to_vec(), with(QUASI, ("ordering", "unordered"))] {
        let mut pair = Pair::new("unrel", &set);
        let flows = pair.connect();
        let mut second = lose(&[2], &[]);
        pair.rule = Box::new(move |seen| match second(seen) {
            Verdict::Drop => Verdict::Late(ms(40)),
            verdict => verdict,
        });
        let mut read = frames(&mut pair, flows, 6);
        read.sort_unstable();
        assert_eq!(read, [0, 1, 2, 3, 4, 5]);
        let there = stats(&pair, 1, flows.1);
        assert_eq!((there.repaired_packets, there.duplicate_packets), (1, 1));
    }
}

#[test]
fn a_lost_fin_is_rebuilt_and_nothing_waits_for_its_encoded_packet() {
    let quasi = || Pair::new("unrel", QUASI);
    for mut pair in [quasi(), harq(&[])] {
        let (flow, accepted) = pair.connect();
        pair.rule = lose(&[3], &[]);
        (0..2).for_each(|index| pair.write(0, flow, &frame(index)));
        pair.ends[0].finish(pair.now, flow);
        pair.ends[1].finish(pair.now, accepted);
        pair.run_for(ms(100));
        assert_eq!(pair.read_all(1, accepted).len(), 2);
        assert_eq!(pair.closed(1), Some(&CloseReason::Finished));
        assert_eq!(pair.closed(0), Some(&CloseReason::Finished));
        let lone = pair
            .log
            .iter()
            .filter(|seen| seen.from == 0 && seen.is_encoded())
            .count();
        assert_eq!(lone, 1, "data and FIN share one");
    }
}

#[test]
fn the_end_waits_until_the_last_segments_are_encoded() {
    let mut pair = Pair::new("unrel", QUASI);
    let (flow, accepted) = pair.connect();
    pair.ends[1].finish(pair.now, accepted);
    pair.run_for(ms(50));
    pair.rule = lose(&[2], &[]); // the FIN, after which nothing is left to do at its sender
    pair.write(0, flow, b"last");
    pair.ends[0].finish(pair.now, flow);
    pair.run_for(ms(50));
    assert_eq!(pair.read_all(1, accepted), [&b"last"[..]]);
    assert_eq!(pair.closed(1), Some(&CloseReason::Finished));
}

/// Numbers of the opening side begin 20 before 2³².
#[test]
fn groups_go_on_over_the_wrap_of_numbers() {
    for code in ["basic", "interleaved"] {
        for recovery in ["duplicate-ack", "timer"] {
            let mut pair = harq(&[("fec", code), ("recovery", recovery)]);
            let flows = pair.connect();
            pair.rule = lose(&[18, 19, 21, 22, 23, 36, 37], &[]);
            let data: Vec<u8> = (0..60).collect();
            let mut read = Vec::new();
            for pieces in data.chunks(20) {
                pieces
                    .iter()
                    .for_each(|index| pair.write(0, flows.0, &frame(*index)));
                pair.run_for(ms(400));
                read.extend(pair.read_all(1, flows.1).iter().map(|data| data[0]));
            }
            assert_eq!(read, data, "{code} {recovery}");
            assert_eq!(effort(&pair, flows).1, 0, "no timeout: {code} {recovery}");
        }
    }
}

/// ResTP §3.1.5, OP-12: which packets carry the word. OP-38: when an encoded packet leaves.
#[test]
fn the_word_is_on_set_up_encoded_packets_and_acknowledgements_and_the_timer_is_a_quarter_of_the_round_trip() {
    let mut pair = Pair::new("unrel", QUASI);
    let (flow, _) = pair.connect();
    let start = pair.now;
    pair.write(0, flow, b"one");
    pair.run_for(ms(3));
    pair.write(0, flow, b"two");
    pair.run_for(ms(100));
    for seen in &pair.log {
        let word = seen.header.fec;
        if seen.header.flags.has(Flags::SYN) || seen.header.flags.has(Flags::ACK) {
            assert_eq!(word, Some(Fec { kind: 1, range: 0 }));
        } else if seen.is_encoded() {
            assert_eq!(word, Some(Fec { kind: 1, range: 2 }));
            assert_eq!(seen.at.since(start), ms(5));
            assert_eq!(seen.payload, &b"\0\0\x1b\x19\x0a"[..]);
        } else {
            assert_eq!(word, None, "plain data");
        }
    }
    assert_eq!(pair.log.iter().filter(|seen| seen.is_encoded()).count(), 1);
}

#[test]
fn the_code_is_the_initiators_and_the_timer_is_each_ends_own() {
    let opener = config("unrel", &with(QUASI, INTERLEAVED));
    let acceptor = config("unrel", &with(QUASI, ("fec-timer", "30 ms"))).listen(PORT, Acceptance::Any);
    let mut pair = Pair::of(opener, acceptor);
    let (flow, accepted) = pair.connect();
    let start = pair.now;
    pair.write(0, flow, b"there");
    pair.write(1, accepted, b"back");
    pair.run_for(ms(100));
    let encoded: Vec<_> = pair.log.iter().filter(|seen| seen.is_encoded()).collect();
    let said: Vec<_> = encoded
        .iter()
        .map(|seen| {
            (
                seen.from,
                seen.header.fec.map(|fec| fec.kind),
                seen.at.since(start),
            )
        })
        .collect();
    assert_eq!(said, [(0, Some(2), ms(5)), (1, Some(2), ms(30))]);
}

/// OP-39: an encoded packet is no larger than the largest segment.
#[test]
fn plain_segments_leave_room_for_the_length() {
    let mut pair = harq(&[("segment", "100 B")]);
    let (flow, accepted) = pair.connect();
    pair.write(0, flow, &noise(98));
    let too_long = pair.ends[0].write(pair.now, flow, noise(99).into());
    assert!(too_long.is_err());
    pair.run_for(ms(50));
    assert_eq!(pair.read_all(1, accepted), [noise(98)]);
    let encoded = pair
        .log
        .iter()
        .find(|seen| seen.is_encoded())
        .expect("an encoded packet");
    assert_eq!(encoded.payload.len(), 100);
}

/// Slow start fills a queue of 50 packets at 2 Mbit/s, and half of what it sends then is lost, encoded packets and the
/// retransmissions of whole ranges too. A retransmission that is lost in its turn is found when the pointer stops at it: the end
/// of the file sends nothing more that three duplicates could come from.
#[test]
fn a_queue_that_overflows_costs_no_timeout() {
    for rtt_ms in [2, 20, 90] {
        let line = Link {
            queue: ms(288),
            ..link(2, rtt_ms)
        };
        let (mut pair, flow) = over(&[line], "3wh-harq", &[("send-buffer", "1 MiB")]);
        let data = noise(500_000);
        pair.write(0, flow, &data);
        let mut read = Vec::new();
        while read.len() < data.len() {
            pair.run_for(ms(5));
            let Some(accepted) = pair.accepted() else { continue };
            read.extend(pair.read_all(1, accepted).concat());
            assert!(
                pair.now < Time::ZERO + ms(20_000),
                "{rtt_ms} ms: {} bytes came",
                read.len()
            );
        }
        assert!(read == data);
        let stats = pair.ends[0].stats(flow).unwrap();
        assert!(stats.lost_packets > 50, "{rtt_ms} ms: the queue did overflow");
        assert_eq!(stats.timeouts, 0, "{rtt_ms} ms: {} lost", stats.lost_packets);
    }
}

/// OP-41: although nothing is missing any more once it is there.
#[test]
fn what_was_rebuilt_is_acknowledged_at_once() {
    let mut pair = harq(&[]);
    let flows = pair.connect();
    pair.rule = lose(&[3], &[]);
    frames(&mut pair, flows, 3);
    let encoded = pair.log.iter().rfind(|seen| seen.is_encoded()).expect("one left");
    let (last, at) = (
        encoded.header.sequence.map(|first| first.wrapping_add(3)),
        encoded.at,
    );
    let answer = pair
        .log
        .iter()
        .find(|seen| seen.from == 1 && seen.header.acknowledgement == last);
    let waited = answer.expect("acknowledged").at.since(at);
    assert!(waited < ms(30), "{waited:?}");
}
