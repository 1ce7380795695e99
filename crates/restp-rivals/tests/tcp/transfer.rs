//! Data: acknowledgement, repair, the wrap of numbers, the peer's window.

use crate::network::{Pair, Seen, Verdict, noise};
use restp_base::flow::{Flow, WriteError};
use restp_base::machine::Event;
use restp_base::random::Stream;
use restp_base::time::Duration;

const SACK: [(&str, &str); 2] = [("ack", "positive+sack"), ("recovery", "pipe")];

/// Drops the first transmission of each `n`th data segment from side 0, counted from 1.
fn drop_first_of(numbers: &'static [u64]) -> Box<dyn FnMut(&Seen) -> Verdict> {
    let (mut highest, mut count) = (None, 0);
    Box::new(move |seen| {
        let end = seen.header.sequence.wrapping_add(seen.payload.len() as u32);
        let new = highest.is_none_or(|highest| end.wrapping_sub(highest) as i32 > 0);
        if seen.from != 0 || !seen.is_data() || !new {
            return Verdict::Pass;
        }
        highest = Some(end);
        count += 1;
        if numbers.contains(&count) {
            Verdict::Drop
        } else {
            Verdict::Pass
        }
    })
}

#[test]
fn every_second_segment_is_acknowledged_and_a_lone_one_after_40_ms() {
    let mut pair = Pair::new(&[]);
    let (client, _) = pair.connect();
    pair.write(0, client, &noise(5 * 1400));
    pair.run_for(Duration::from_millis(45));
    assert_eq!(pair.count(0, |seen| seen.payload.len() == 1400), 5);
    assert_eq!(pair.count(1, |seen| seen.is_bare_ack()), 2);
    pair.run_for(Duration::from_millis(10));
    assert_eq!(pair.count(1, |seen| seen.is_bare_ack()), 3);
}

#[test]
fn numbers_wrap_at_32_bits() {
    let mut pair = Pair::new(&[]);
    let flows = pair.connect();
    let data = noise(100_000);
    assert_eq!(pair.transfer(flows, &data, Duration::from_secs(5)), data);
    let first = pair.log[3].header.sequence;
    let last = pair
        .log
        .iter()
        .rfind(|seen| seen.is_data())
        .unwrap()
        .header
        .sequence;
    assert!(first > last, "from {first} over the wrap to {last}");
    assert_eq!(pair.ends[0].stats(flows.0).unwrap().retransmitted_packets, 0);
}

#[test]
fn a_lost_segment_is_retransmitted_on_the_third_duplicate_without_a_timeout() {
    for set in [&[][..], &SACK] {
        let mut pair = Pair::new(set);
        let flows = pair.connect();
        pair.rule = drop_first_of(&[20]);
        let data = noise(100_000);
        assert_eq!(pair.transfer(flows, &data, Duration::from_secs(5)), data);
        let stats = pair.ends[0].stats(flows.0).unwrap();
        assert_eq!(
            (stats.retransmitted_packets, stats.timeouts, stats.lost_packets),
            (1, 0, 1),
            "{set:?}"
        );
    }
}

/// RFC 6582: one loss per round trip. RFC 6675: all of them in one.
#[test]
fn several_losses_of_a_window_take_a_round_trip_each_or_one_in_all() {
    let repair = |set| {
        let mut pair = Pair::new(set);
        let flows = pair.connect();
        pair.rule = drop_first_of(&[20, 22, 24, 26]);
        let data = noise(100_000);
        assert_eq!(pair.transfer(flows, &data, Duration::from_secs(5)), data);
        let stats = pair.ends[0].stats(flows.0).unwrap();
        assert_eq!((stats.retransmitted_packets, stats.timeouts), (4, 0));
        let mut retransmissions = Vec::new();
        for (at, seen) in pair.log.iter().enumerate() {
            let earlier = &pair.log[..at];
            let same = |other: &&Seen| other.is_data() && other.header.sequence == seen.header.sequence;
            if seen.is_data() && earlier.iter().any(|other| same(&other)) {
                retransmissions.push(seen.at);
            }
        }
        retransmissions[3].since(retransmissions[0])
    };
    assert_eq!(
        repair(&[]),
        Duration::from_millis(60),
        "three round trips between four retransmissions"
    );
    assert_eq!(repair(&SACK), Duration::from_millis(20));
}

#[test]
fn a_lost_tail_is_retransmitted_by_the_timer() {
    let mut pair = Pair::new(&[("rto-floor", "1 s")]);
    let (client, server) = pair.connect();
    pair.rule = drop_first_of(&[1]);
    pair.write(0, client, b"hello");
    pair.run_for(Duration::from_millis(995));
    assert_eq!(pair.read_all(1, server), b"");
    pair.run_for(Duration::from_millis(20));
    assert_eq!(pair.read_all(1, server), b"hello");
    assert_eq!(pair.ends[0].stats(client).unwrap().timeouts, 1);
}

#[test]
fn a_reader_that_sleeps_stops_the_sender_and_probes_find_it_awake() {
    let mut pair = Pair::new(&[("window", "4 segments")]);
    let (client, server) = pair.connect();
    let data = noise(20_000);
    pair.write(0, client, &data);
    pair.run_for(Duration::from_secs(5));
    let sent = |pair: &Pair| pair.ends[0].stats(client).unwrap().sent_payload_bytes;
    assert_eq!(pair.log.last().unwrap().header.window, 0);
    assert!(
        (5600..5700).contains(&sent(&pair)),
        "the window, and a byte per probe: {}",
        sent(&pair)
    );
    let probes = pair.count(0, |seen| seen.payload.len() == 1);
    assert!((3..30).contains(&probes), "{probes}");
    assert_eq!(
        pair.ends[0].stats(client).unwrap().timeouts,
        0,
        "a shut window is no congestion"
    );

    // The update that says the window is open again is lost: only a probe can find out.
    pair.rule = Box::new(|seen| {
        if seen.from == 1 {
            Verdict::Drop
        } else {
            Verdict::Pass
        }
    });
    let mut got = pair.read_all(1, server);
    assert_eq!(got.len(), 5600);
    pair.run_for(Duration::from_millis(1));
    pair.rule = Box::new(|_| Verdict::Pass);
    for _ in 0..400 {
        pair.run_for(Duration::from_millis(20));
        got.extend(pair.read_all(1, server));
    }
    assert_eq!(got, data);
}

#[test]
fn a_shut_window_that_nobody_wants_to_use_is_not_probed() {
    let mut pair = Pair::new(&[("window", "4 segments")]);
    let (client, server) = pair.connect();
    pair.write(0, client, &noise(4 * 1400));
    pair.run_for(Duration::from_secs(30));
    assert_eq!(pair.count(0, |seen| seen.is_data()), 4);
    pair.write(0, client, b"now");
    pair.run_for(Duration::from_secs(5));
    assert!(pair.count(0, |seen| seen.payload.len() == 1) > 1);
    assert_eq!(pair.read_all(1, server).len(), 4 * 1400);
    pair.run_for(Duration::from_secs(5));
    assert_eq!(pair.read_all(1, server), b"now");
}

/// RFC 9293 §3.8.6.1: as long as the peer answers probes, the connection stays.
#[test]
fn a_peer_that_answers_probes_is_not_given_up() {
    let mut pair = Pair::new(&[("window", "2 segments"), ("data-attempts", "3")]);
    let (client, _) = pair.connect();
    pair.write(0, client, &noise(10_000));
    pair.run_for(Duration::from_secs(600));
    assert_eq!(pair.closed(0), None);
    pair.rule = Box::new(|_| Verdict::Drop);
    pair.run_for(Duration::from_secs(600));
    assert!(pair.closed(0).is_some());
}

#[test]
fn a_full_send_buffer_blocks_and_says_when_there_is_room() {
    let mut pair = Pair::new(&[("send-buffer", "10000 B")]);
    let (client, _) = pair.connect();
    pair.rule = Box::new(|_| Verdict::Drop);
    pair.write(0, client, &noise(40_000));
    assert_eq!(
        pair.ends[0].write(pair.now, client, b"x"[..].into()),
        Err(WriteError::Blocked)
    );
    pair.rule = Box::new(|_| Verdict::Pass);
    pair.run_for(Duration::from_millis(500));
    assert!(pair.events[0].contains(&Event::Writable(client)));
}

/// Timestamps measure every round trip, of retransmitted segments too (RFC 7323 §4.1), and an old clock is not
/// believed (§5.3).
#[test]
fn clocks_measure_retransmissions_and_refuse_the_past() {
    let mut pair = Pair::new(&[("timestamps", "on")]);
    let flows = pair.connect();
    pair.rule = drop_first_of(&[2]);
    let data = noise(20_000);
    assert_eq!(pair.transfer(flows, &data, Duration::from_secs(5)), data);
    pair.run_for(Duration::from_millis(100));
    let srtt = pair.ends[0].stats(flows.0).unwrap().srtt.unwrap();
    assert!((19..60).contains(&srtt.as_millis()), "{srtt}");

    let last = pair
        .log
        .iter()
        .rfind(|seen| seen.from == 0)
        .unwrap()
        .header
        .clone();
    let rejected = |pair: &Pair| pair.ends[1].stats(flows.1).unwrap();
    let before = rejected(&pair);
    let mut old = last.clone();
    old.sequence = pair
        .log
        .iter()
        .rfind(|seen| seen.from == 1)
        .unwrap()
        .header
        .acknowledgement;
    if let Some(clock) = &mut old.options.timestamps {
        clock.value = clock.value.wrapping_sub(10_000);
    }
    pair.forge(0, &old, b"from another life");
    pair.run_for(Duration::from_millis(50));
    assert_eq!(pair.read_all(1, flows.1), b"");
    assert_eq!(rejected(&pair).rejected_packets, before.rejected_packets + 1);
}

#[test]
fn whatever_the_network_does_the_stream_arrives_once_and_in_order() {
    let variants: [&[(&str, &str)]; 5] = [
        &[],
        &SACK,
        &[
            ("timestamps", "on"),
            ("ack", "positive+sack"),
            ("recovery", "pipe"),
        ],
        &[
            ("recovery", "timer"),
            ("window", "20 segments"),
            ("window-scaling", "off"),
        ],
        &[
            ("congestion", "cubic"),
            ("segment", "100 B"),
            ("ack-every", "1 packet"),
        ],
    ];
    for (variant, set) in variants.into_iter().enumerate() {
        for seed in 0..12 {
            let mut pair = Pair::new(set);
            let flows = pair.connect();
            let mut stream = Stream::named(seed, "network");
            pair.rule = Box::new(move |_| match stream.below(100) {
                0..8 => Verdict::Drop,
                8..16 => Verdict::Late(Duration::from_micros(stream.below(30_000))),
                16..20 => Verdict::Twice,
                _ => Verdict::Pass,
            });
            let data = noise(60_000);
            let got = pair.transfer(flows, &data, Duration::from_secs(600));
            assert!(
                got == data,
                "variant {variant}, seed {seed}: {} of {}",
                got.len(),
                data.len()
            );
            pair.ends[0].finish(pair.now, flows.0);
            pair.ends[1].finish(pair.now, flows.1);
            pair.run_for(Duration::from_secs(120));
            for side in 0..2 {
                let reason = pair.closed(side).map(ToString::to_string);
                assert_eq!(
                    reason.as_deref(),
                    Some("finished"),
                    "variant {variant}, seed {seed}"
                );
            }
        }
    }
}
