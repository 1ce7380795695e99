//! Stories of loss and repair (ResTP §3.5.8, §3.5.9, §3.6; OP-17, OP-44, OP-50).

use crate::common::*;
use bytes::Bytes;
use restp_base::flow::{CloseReason, Flow};
use restp_base::machine::{Datagram, Input, Machine};
use restp_base::random::Stream;
use restp_base::sequence;
use restp_base::time::Duration;
use restp_proto::wire::{Flags, Tail};

const SACK: &[(&str, &str)] = &[("ack", "positive+sack"), ("recovery", "pipe")];

fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

#[test]
fn the_third_duplicate_retransmits_the_lost_segment_without_the_timer() {
    let mut pair = Pair::new("3wh-arq", &[]);
    let flows = pair.connect();
    pair.rule = lose_segments(&[3]);
    assert!(pair.transfer(0, flows, &noise(14_000), secs(5)));
    let stats = pair.ends[0].stats(flows.0).unwrap();
    assert_eq!((stats.retransmitted_packets, stats.timeouts), (1, 0));
}

#[test]
fn several_losses_in_one_window_are_repaired_with_and_without_blocks() {
    for set in [&[][..], SACK] {
        let mut pair = Pair::new("3wh-arq", set);
        let flows = pair.connect();
        pair.rule = lose_segments(&[12, 14, 15, 19]);
        assert!(pair.transfer(0, flows, &noise(100_000), secs(5)));
        let stats = pair.ends[0].stats(flows.0).unwrap();
        assert_eq!((stats.retransmitted_packets, stats.timeouts), (4, 0), "{set:?}");
    }
}

#[test]
fn only_the_timer_repairs_where_recovery_is_the_timer() {
    let mut pair = Pair::new("3wh-arq", &[("recovery", "timer")]);
    let flows = pair.connect();
    pair.rule = lose_segments(&[3]);
    assert!(pair.transfer(0, flows, &noise(14_000), secs(5)));
    assert_eq!(pair.ends[0].stats(flows.0).unwrap().timeouts, 1);
}

#[test]
fn a_lost_last_segment_waits_for_the_timer_and_the_timer_backs_off() {
    let mut pair = Pair::new("3wh-arq", &[]);
    let (flow, accepted) = pair.connect();
    pair.rule = lose_all_data();
    let start = pair.now;
    pair.write(0, flow, b"lost");
    pair.run_for(secs(3));
    let sent: Vec<_> = pair
        .log
        .iter()
        .filter(|seen| seen.is_data())
        .map(|s| s.at.since(start).as_millis())
        .collect();
    // One sample of 20 ms gives 60 ms, so the floor of 200 ms counts; then it doubles.
    assert_eq!(sent, [0, 200, 600, 1400, 3000]);
    pair.rule = Box::new(|_| Verdict::Pass);
    pair.run_for(secs(4));
    assert_eq!(pair.read_all(1, accepted), [&b"lost"[..]]);
}

#[test]
fn corruption_handling_retransmits_without_back_off() {
    let mut pair = Pair::new("arq-only", &[]);
    let (flow, _) = pair.connect();
    pair.rule = lose_all_data();
    let start = pair.now;
    pair.write(0, flow, b"lost");
    pair.run_for(Duration::from_millis(1001));
    let sent: Vec<_> = pair
        .log
        .iter()
        .filter(|seen| seen.is_data())
        .map(|s| s.at.since(start).as_millis())
        .collect();
    assert_eq!(sent, [0, 200, 400, 600, 800, 1000]);
}

#[test]
fn after_a_timeout_one_segment_asks_before_the_rest_is_retransmitted() {
    let mut pair = Pair::new("arq-only", &[]);
    let (flow, accepted) = pair.connect();
    pair.rule = lose_all_data();
    let (start, data) = (pair.now, noise(10 * 1400));
    pair.write(0, flow, &data);
    pair.run_for(Duration::from_millis(999));
    let sent_after = |pair: &Pair, ms| {
        let late = |at: restp_base::time::Time| at.since(start) >= Duration::from_millis(ms);
        pair.log
            .iter()
            .filter(|seen| seen.is_data() && late(seen.at))
            .count()
    };
    assert_eq!(
        sent_after(&pair, 0) - sent_after(&pair, 150),
        10,
        "the whole window, spread over a round trip"
    );
    assert_eq!(
        sent_after(&pair, 150),
        4,
        "one per timeout: there may be nobody to hear more"
    );
    pair.rule = Box::new(|_| Verdict::Pass);
    pair.run_for(Duration::from_millis(300));
    assert_eq!(pair.read_all(1, accepted).concat(), data);
}

#[test]
fn a_sender_gives_up_after_its_attempts_and_says_so() {
    let mut pair = Pair::new("3wh-arq", &[("data-attempts", "6")]);
    let (flow, _) = pair.connect();
    pair.rule = Box::new(|_| Verdict::Drop);
    pair.write(0, flow, b"x");
    pair.run_for(secs(100));
    assert!(
        matches!(pair.closed(0), Some(CloseReason::TimedOut(_))),
        "{:?}",
        pair.events[0]
    );
    assert_eq!(pair.log.iter().filter(|seen| seen.is_data()).count(), 7);
}

/// Without retransmissions the timer forgets what is out. Acknowledgements that come behind it counted for nothing, and the flow was
/// given up; so is one whose data do not arrive, though its peer is heard.
#[test]
fn a_late_acknowledgement_is_progress_where_nothing_leaves_again_and_a_word_of_the_peer_is_none() {
    let set = [
        ("reliability", "unreliable"),
        ("ordering", "unordered"),
        ("loss", "corruption"),
        ("progress-timeout", "3 s"),
    ];
    for (arrives, ends) in [(true, false), (false, true)] {
        let mut pair = Pair::new("3wh-arq", &set);
        let (flow, accepted) = pair.connect();
        pair.delay = Duration::from_millis(400);
        if !arrives {
            pair.rule = Box::new(|seen| match seen.from == 0 && seen.is_data() {
                true => Verdict::Drop,
                false => Verdict::Pass,
            });
        }
        for _ in 0..80 {
            let now = pair.now;
            while pair.ends[0].write(now, flow, vec![0; 3000].into()).is_ok() {}
            let _ = pair.ends[1].write(now, accepted, vec![0; 10].into());
            pair.run_for(Duration::from_millis(100));
            pair.read_all(1, accepted);
            pair.read_all(0, flow);
        }
        assert_eq!(pair.closed(0).is_some(), ends, "{:?}", pair.closed(0));
    }
}

#[test]
fn a_receiver_whose_peer_vanished_learns_it_by_asking() {
    let mut pair = Pair::new("3wh-arq", &[("progress-timeout", "60 s")]);
    let (flow, accepted) = pair.connect();
    pair.write(0, flow, b"x");
    pair.run_for(secs(100));
    assert_eq!(
        (pair.closed(0), pair.closed(1)),
        (None, None),
        "answers to keep-alives keep both sides"
    );
    pair.read_all(1, accepted);
    pair.rule = Box::new(|_| Verdict::Drop);
    pair.run_for(secs(80));
    assert!(matches!(pair.closed(1), Some(CloseReason::TimedOut(_))));
}

#[test]
fn a_peer_that_vanishes_before_its_own_end_has_not_finished() {
    let mut pair = Pair::new("3wh-arq", &[("progress-timeout", "60 s")]);
    let (flow, _) = pair.connect();
    pair.write(0, flow, b"the request");
    pair.ends[0].finish(pair.now, flow);
    pair.run_for(secs(1));
    pair.rule = Box::new(|_| Verdict::Drop);
    pair.run_for(secs(80));
    assert!(
        matches!(pair.closed(0), Some(CloseReason::TimedOut(_))),
        "{:?}",
        pair.events[0]
    );
}

#[test]
fn random_loss_reordering_duplication_and_corruption_deliver_every_byte_once_and_in_order() {
    for seed in 0..40 {
        let mut chance = Stream::named(seed, "network");
        let set: &[(&str, &str)] = match seed % 4 {
            0 => &[],
            1 => SACK,
            2 => &[
                ("ack", "positive+sack"),
                ("recovery", "pipe"),
                ("congestion", "cubic"),
                ("pacing", "on"),
            ],
            _ => &[("framing", "fixed"), ("recovery", "timer"), ("crc", "on")],
        };
        let preset = if seed % 8 < 4 { "3wh-arq" } else { "arq-only" };
        let mut pair = Pair::new(preset, set);
        let flows = pair.connect();
        pair.rule = Box::new(move |_| match chance.below(100) {
            0..=7 => Verdict::Drop,
            8..=12 => Verdict::Late(Duration::from_micros(chance.below(30_000))),
            13..=15 => Verdict::Twice,
            _ => Verdict::Pass,
        });
        let size = if seed % 4 == 3 { 1000 } else { 120_000 };
        if seed % 4 == 3 {
            // Fixed framing: each message is one segment.
            for n in 0..60u8 {
                let message = vec![n; size];
                while pair.ends[0]
                    .write(pair.now, flows.0, message.clone().into())
                    .is_err()
                {
                    pair.run_for(Duration::from_millis(50));
                }
            }
            pair.run_for(secs(300));
            let got = pair.read_all(1, flows.1);
            assert!(
                got.iter().zip(0..60u8).all(|(m, n)| m[..] == vec![n; size]) && got.len() == 60,
                "seed {seed}"
            );
        } else {
            assert!(pair.transfer(0, flows, &noise(size), secs(300)), "seed {seed}");
        }
        assert_eq!(
            pair.ends[1].stats(flows.1).unwrap().rejected_packets,
            0,
            "seed {seed}"
        );
    }
}

#[test]
fn numbers_wrap_at_two_to_the_thirty_two() {
    let mut pair = Pair::new("3wh-arq", SACK); // the opener begins 20 numbers below the wrap
    let flows = pair.connect();
    pair.rule = lose_segments(&[19, 20, 22, 25]);
    assert!(pair.transfer(0, flows, &noise(200_000), secs(5)));
    let numbers: Vec<u32> = pair
        .log
        .iter()
        .filter(|s| s.is_data())
        .filter_map(|s| s.header.sequence)
        .collect();
    assert!(numbers.contains(&u32::MAX) && numbers.contains(&0));
}

#[test]
fn blocks_report_what_arrived_beyond_a_hole_the_newest_first() {
    let mut pair = Pair::new("3wh-arq", SACK);
    let flows = pair.connect();
    pair.rule = lose_segments(&[2, 5]);
    assert!(pair.transfer(0, flows, &noise(14_000), secs(5)));
    let first = pair
        .log
        .iter()
        .find(|seen| seen.from == 0 && seen.is_data())
        .unwrap()
        .header
        .sequence
        .unwrap();
    let blocks: Vec<_> = pair
        .log
        .iter()
        .filter_map(|seen| match &seen.header.tail {
            Tail::Sack(blocks) => Some(
                blocks
                    .iter()
                    .map(|(l, r)| (l.wrapping_sub(first), r.wrapping_sub(first)))
                    .collect::<Vec<_>>(),
            ),
            _ => None,
        })
        .collect();
    assert_eq!(blocks[..3], [vec![(2, 2)], vec![(2, 3)], vec![(5, 5), (2, 3)]]);
}

#[test]
fn a_reader_that_stops_is_not_flooded_and_one_that_resumes_gets_everything() {
    let mut pair = Pair::new("3wh-arq", &[("window", "16 segments")]);
    let (flow, accepted) = pair.connect();
    let data = noise(100_000);
    pair.write(0, flow, &data);
    pair.run_for(secs(30));
    let stats = pair.ends[1].stats(accepted).unwrap();
    assert!(stats.memory_bytes < 16 * 1400 + 4096, "{}", stats.memory_bytes);
    let probes = pair.log.iter().filter(|seen| seen.is_data()).count();
    assert!((100..200).contains(&probes), "one probe per timeout: {probes}");
    assert_eq!(pair.closed(0), None);
    let mut got = Vec::new();
    for _ in 0..200 {
        pair.read_all(1, accepted)
            .iter()
            .for_each(|data| got.extend_from_slice(data));
        pair.run_for(Duration::from_millis(25));
    }
    assert_eq!(got, data);
}

#[test]
fn a_shut_window_that_nobody_wants_to_use_is_not_probed() {
    let mut pair = Pair::new("3wh-arq", &[("window", "4 segments")]);
    let (flow, _) = pair.connect();
    pair.write(0, flow, &noise(4 * 1400)); // fills the window to the last segment
    pair.run_for(secs(5));
    assert_eq!(pair.log.iter().filter(|seen| seen.is_data()).count(), 4);
    assert!(
        pair.log.iter().all(|seen| !seen.header.flags.has(Flags::FIN)),
        "nobody finished"
    );
    pair.ends[0].finish(pair.now, flow);
    pair.run_for(secs(1));
    assert!(pair.log.iter().any(|seen| seen.header.flags.has(Flags::FIN)));
}

#[test]
fn a_window_that_never_opens_ends_with_a_clear_reason() {
    let mut pair = Pair::new(
        "3wh-arq",
        &[("window", "4 segments"), ("progress-timeout", "60 s")],
    );
    let (flow, _) = pair.connect();
    pair.write(0, flow, &noise(50_000));
    pair.run_for(secs(100));
    assert!(
        matches!(pair.closed(0), Some(CloseReason::TimedOut(_))),
        "{:?}",
        pair.events[0]
    );
    assert_eq!(pair.closed(1), Some(&CloseReason::Reset));
}

#[test]
fn acknowledging_what_was_never_sent_is_counted_and_answered() {
    let mut pair = Pair::new("3wh-arq", &[]);
    let (flow, _) = pair.connect();
    let ack = pair
        .log
        .iter()
        .rev()
        .find(|seen| seen.is(Flags::ACK))
        .unwrap()
        .clone();
    let mut forged = restp_proto::wire::Header {
        source: ack.header.destination,
        destination: ack.header.source,
        ..ack.header
    };
    forged.sequence = Some(1);
    forged.acknowledgement = Some(sequence::truncate(
        sequence::ORIGIN + u64::from(u32::MAX - 20) + 500,
    ));
    let mut datagram = restp_base::machine::Datagram::empty();
    forged.emit(&[], &mut datagram.head).unwrap();
    datagram.path = pair.path(1);
    pair.send(1, datagram);
    pair.run_for(secs(1));
    assert_eq!(pair.ends[0].stats(flow).unwrap().rejected_packets, 1);
    assert_eq!(pair.closed(0), None);
}

#[test]
fn a_marked_packet_halves_the_window_once_per_round_trip_without_a_retransmission() {
    let mut pair = Pair::new("3wh-arq", &[("ecn", "on")]);
    let flows = pair.connect();
    assert!(pair.log[0].is(Flags::SYN | Flags::ECE | Flags::CWR));
    assert!(pair.log[1].is(Flags::SYN | Flags::ACK | Flags::ECE));
    assert!(pair.transfer(0, flows, &noise(200_000), secs(5)));
    let before = pair.ends[0].stats(flows.0).unwrap().congestion_window_bytes;
    pair.mark_next = 3;
    assert!(pair.transfer(0, flows, &noise(100_000), secs(5)));
    assert!(pair.transfer(0, flows, &noise(100_000), secs(5)));
    let stats = pair.ends[0].stats(flows.0).unwrap();
    assert!(
        stats.congestion_window_bytes < before,
        "{} < {before}",
        stats.congestion_window_bytes
    );
    assert_eq!(stats.retransmitted_packets, 0);
    assert_eq!(
        pair.log
            .iter()
            .filter(|seen| seen.is_data() && seen.header.flags.has(Flags::CWR))
            .count(),
        1
    );
}

#[test]
fn a_damaged_payload_is_counted_and_retransmitted_when_crc_is_on() {
    let mut pair = Pair::new("3wh-arq", &[("crc", "on")]);
    let flows = pair.connect();
    pair.damage_next = 2;
    assert!(pair.transfer(0, flows, &noise(50_000), secs(5)));
    assert_eq!(pair.ends[1].stats(flows.1).unwrap().corrupted_packets, 2);
}

#[test]
fn ordered_without_retransmissions_skips_a_hole_after_its_hold_time() {
    let mut pair = Pair::new("unrel", &[("connection", "three-way"), ("ordering", "ordered")]);
    let (flow, accepted) = pair.connect();
    pair.rule = lose_segments(&[2]);
    for message in [&b"a"[..], b"b", b"c", b"d"] {
        pair.write(0, flow, message);
    }
    pair.run_for(Duration::from_millis(50));
    assert_eq!(pair.read_all(1, accepted), [&b"a"[..]]);
    pair.run_for(Duration::from_millis(200));
    assert_eq!(pair.read_all(1, accepted), [&b"c"[..], b"d"]);
    assert_eq!(
        pair.log.iter().filter(|seen| seen.is_data()).count(),
        4,
        "nothing is retransmitted"
    );
}

#[test]
fn an_idle_connection_fits_into_sixteen_kibibytes() {
    let mut pair = Pair::new("default", &[]);
    let (flow, _) = pair.connect();
    assert!(pair.ends[0].stats(flow).unwrap().memory_bytes < 16 * 1024);
}

#[test]
fn a_reader_that_empties_a_shut_window_causes_one_update_and_no_duplicates() {
    let mut pair = Pair::new("3wh-arq", &[("window", "40 segments")]);
    let flows = pair.connect();
    pair.write(0, flows.0, &noise(100_000));
    for _ in 0..3 {
        pair.run_for(Duration::from_millis(40));
        pair.read_all(1, flows.1); // everything at once, as a driver does that woke late
    }
    let stats = pair.ends[0].stats(flows.0).unwrap();
    assert_eq!((stats.retransmitted_packets, stats.lost_packets), (0, 0));
}

/// A driver receives many packets in one buffer. Its peer decides for how long one of them has to wait.
#[test]
fn a_segment_that_waits_for_others_keeps_no_receive_buffer_alive() {
    for preset in ["default", "multipath"] {
        let mut pair = Pair::new(preset, &[]);
        let (flow, accepted) = pair.connect();
        pair.rule = lose_all_data();
        for _ in 0..2 {
            pair.write(0, flow, &noise(1000));
            pair.run_for(Duration::from_millis(1));
        }
        let data: Vec<Vec<u8>> = pair
            .log
            .iter()
            .filter(|seen| seen.is_data())
            .map(Seen::bytes)
            .collect();
        let mut memory = vec![0; 1 << 16];
        memory[..data[1].len()].copy_from_slice(&data[1]);
        let buffer = Bytes::from(memory);
        let memory_bytes = |pair: &Pair| pair.ends[1].stats(accepted).expect("it is open").memory_bytes;
        let before = memory_bytes(&pair);
        let mut datagram = Datagram {
            path: pair.path(1),
            body: buffer.slice(..data[1].len()),
            ..Datagram::empty()
        };
        pair.ends[1].handle(pair.now, Input::Datagram(&mut datagram));
        drop(datagram);
        assert!(memory_bytes(&pair) >= before + 1000, "{preset}: it is held");
        assert!(buffer.is_unique(), "{preset}: and the buffer is free");
    }
}
