//! Stories of beginning and end (ResTP §3.5.5; OP-26, OP-27, OP-32, OP-61).

use crate::common::*;
use restp_base::flow::{CloseReason, Flow, FlowId, Read};
use restp_base::machine::Event;
use restp_base::time::{Duration, Time};
use restp_proto::composition::{PRESETS, Preset};
use restp_proto::wire::Flags;
use restp_proto::{Acceptance, Endpoint};
use restp_services::connection_management::Establishment;

const SYN: Flags = Flags::SYN;

fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

#[test]
fn three_packets_without_payload_then_data() {
    let mut pair = Pair::new("3wh-arq", &[]);
    let (flow, accepted) = pair.connect();
    let flags: Vec<_> = pair.log.iter().map(|seen| seen.header.flags).collect();
    assert_eq!(flags, [SYN, SYN | Flags::ACK, Flags::ACK]);
    assert!(pair.log.iter().all(|seen| !seen.is_data()));
    assert_eq!(
        pair.ends[0].stats(flow).unwrap().handshake,
        Some(Duration::from_millis(20))
    );
    pair.write(0, flow, b"hello");
    pair.write(1, accepted, b"world");
    pair.run_for(secs(1));
    assert_eq!(pair.read_all(1, accepted), [&b"hello"[..]]);
    assert_eq!(pair.read_all(0, flow), [&b"world"[..]]);
}

#[test]
fn data_written_before_the_end_of_the_handshake_waits_for_it() {
    let mut pair = Pair::new("3wh-arq", &[]);
    let flow = pair.open();
    pair.write(0, flow, b"early");
    pair.run_for(secs(1));
    let data: Vec<_> = pair
        .log
        .iter()
        .filter(|seen| seen.is_data())
        .map(|seen| seen.at)
        .collect();
    assert_eq!(data, [Time::ZERO + Duration::from_millis(20)]);
}

/// Drops the first datagram with exactly `flags`.
fn drop_first(flags: Flags) -> Rule {
    drop_times(flags, 1)
}
fn drop_times(flags: Flags, mut times: u32) -> Rule {
    Box::new(move |seen| {
        let hit = seen.is(flags) && times > 0;
        times -= u32::from(hit);
        if hit { Verdict::Drop } else { Verdict::Pass }
    })
}

#[test]
fn a_lost_syn_costs_three_seconds_and_a_lost_answer_too() {
    for (lost, expected) in [(SYN, 3_020), (SYN | Flags::ACK, 3_020)] {
        let mut pair = Pair::new("3wh-arq", &[]);
        pair.rule = drop_first(lost);
        let flow = pair.open();
        pair.run_for(secs(10));
        let handshake = pair.ends[0].stats(flow).unwrap().handshake.unwrap();
        assert_eq!(handshake, Duration::from_millis(expected), "{lost:?} lost");
    }
}

#[test]
fn both_lost_cost_two_timers_in_series() {
    let mut pair = Pair::new("3wh-arq", &[]);
    let (mut syn, mut answer) = (drop_first(SYN), drop_first(SYN | Flags::ACK));
    pair.rule = Box::new(move |seen| match syn(seen) {
        Verdict::Pass => answer(seen),
        verdict => verdict,
    });
    let flow = pair.open();
    pair.run_for(secs(20));
    // The SYN-ACK's own timer (3 s after 3.01 s) is the earlier of the two that could repair the second loss.
    let handshake = pair.ends[0].stats(flow).unwrap().handshake.unwrap();
    assert_eq!(handshake, Duration::from_millis(6_020));
}

#[test]
fn a_lost_final_acknowledgement_is_made_good_by_data() {
    let mut pair = Pair::new("3wh-arq", &[]);
    pair.rule = drop_first(Flags::ACK);
    let flow = pair.open();
    pair.run_for(Duration::from_millis(50));
    assert_eq!(pair.accepted(), None);
    pair.write(0, flow, b"x");
    pair.run_for(Duration::from_millis(50));
    let accepted = pair.accepted().expect("completed by the data");
    assert_eq!(pair.read_all(1, accepted), [&b"x"[..]]);
}

#[test]
fn the_final_acknowledgement_leaves_alone_and_before_the_data_that_waits() {
    let mut pair = Pair::new("3wh-arq", &[]);
    let flow = pair.open();
    pair.write(0, flow, b"early");
    pair.run_for(Duration::from_millis(35));
    let opener = pair.log.iter().filter(|seen| seen.from == 0);
    let sent: Vec<_> = opener.map(|seen| (seen.header.flags, seen.is_data())).collect();
    assert_eq!(sent, [(SYN, false), (Flags::ACK, false), (Flags::ACK, true)]);
    let accepted = pair.accepted().expect("accepted");
    let srtt = pair.ends[1].stats(accepted).unwrap().srtt;
    assert_eq!(srtt, Some(Duration::from_millis(20)));
}

/// Karn's rule: data that completes the set-up left later than the acknowledgement that was lost, or is a retransmission.
#[test]
fn a_lost_final_acknowledgement_gives_no_round_trip() {
    for (written_after, lost) in [(500, 1), (0, 1), (0, 2)] {
        let mut pair = Pair::new("3wh-arq", &[("ack-every", "1 packet")]);
        pair.rule = drop_times(Flags::ACK, lost);
        let flow = pair.open();
        pair.run_for(Duration::from_millis(20 + written_after));
        pair.write(0, flow, b"x");
        pair.run_for(Duration::from_millis(300));
        let accepted = pair.accepted().expect("completed by the data");
        assert_eq!(pair.read_all(1, accepted), [&b"x"[..]]);
        assert_eq!(
            pair.ends[1].stats(accepted).unwrap().srtt,
            None,
            "{written_after}, {lost}"
        );
        pair.write(1, accepted, b"y");
        pair.run_for(Duration::from_millis(100));
        let srtt = pair.ends[1].stats(accepted).unwrap().srtt;
        assert_eq!(
            srtt,
            Some(Duration::from_millis(20)),
            "the first sample is data's"
        );
    }
}

#[test]
fn a_duplicated_handshake_makes_one_connection() {
    let mut pair = Pair::new("3wh-arq", &[]);
    pair.rule = Box::new(|_| Verdict::Twice);
    pair.connect();
    pair.run_for(secs(1));
    let accepted = pair.events[1]
        .iter()
        .filter(|event| matches!(event, Event::Accepted(_)))
        .count();
    assert_eq!((accepted, pair.ends[1].connections()), (1, 1));
}

#[test]
fn nobody_answers_six_syns_then_a_clear_end() {
    let mut pair = Pair::new("3wh-arq", &[]);
    pair.rule = drop_times(SYN, u32::MAX);
    pair.open();
    pair.run_for(secs(400));
    assert_eq!(pair.log.len(), 6);
    assert_eq!(pair.closed(0), Some(&CloseReason::TimedOut(secs(189))));
}

#[test]
fn a_port_nobody_serves_refuses_connections_and_ignores_datagrams() {
    let refused = |preset: &str| {
        let mut pair = Pair::of(config(preset, &[]), config(preset, &[]));
        let flow = pair.open();
        pair.write(0, flow, b"x");
        pair.run_for(secs(1));
        let answers = pair.log.iter().filter(|seen| seen.from == 1).count();
        (
            pair.closed(0).cloned(),
            answers,
            pair.ends[1].endpoint_stats().unserved,
        )
    };
    assert_eq!(refused("3wh-arq"), (Some(CloseReason::Refused), 1, 1));
    assert_eq!(refused("unrel"), (None, 0, 1));
}

#[test]
fn a_service_that_wants_its_own_composition_refuses_another() {
    let acceptor = config("3wh-arq", &[]).listen(PORT, Acceptance::Exact);
    let mut pair = Pair::of(
        config("3wh-arq", &[("ack", "positive+sack"), ("recovery", "pipe")]),
        acceptor,
    );
    pair.open();
    pair.run_for(secs(1));
    assert_eq!(pair.closed(0), Some(&CloseReason::Refused));
    assert_eq!(pair.ends[1].endpoint_stats().refused, 1);
}

#[test]
fn the_acceptor_takes_over_the_openers_services() {
    let acceptor = config("3wh-arq", &[]).listen(PORT, Acceptance::Any);
    let wanted = [
        ("ack", "positive+sack"),
        ("recovery", "pipe"),
        ("crc", "on"),
        ("framing", "fixed"),
    ];
    let mut pair = Pair::of(config("3wh-arq", &wanted), acceptor);
    let (_, accepted) = pair.connect();
    let got = pair.ends[1].composition(accepted).unwrap();
    assert!(got.crc && got.ack.name() == "positive+sack");
}

#[test]
fn four_way_release_ends_both_directions_and_the_initiator_lingers() {
    let mut pair = Pair::new("3wh-arq", &[]);
    let (flow, accepted) = pair.connect();
    pair.write(0, flow, b"last words");
    pair.ends[0].finish(pair.now, flow);
    pair.run_for(secs(1));
    assert_eq!(pair.read_all(1, accepted), [&b"last words"[..]]);
    assert_eq!(pair.ends[1].read(pair.now, accepted), Read::End);
    pair.write(1, accepted, b"answer after the end of the other direction");
    pair.ends[1].finish(pair.now, accepted);
    pair.run_for(secs(1));
    assert_eq!(pair.read_all(0, flow).len(), 1);
    assert_eq!(
        (pair.closed(0), pair.closed(1)),
        (Some(&CloseReason::Finished), Some(&CloseReason::Finished))
    );
    pair.ends
        .iter_mut()
        .zip([flow, accepted])
        .for_each(|(end, flow)| end.release(pair.now, flow));
    pair.run_for(secs(59));
    assert_eq!(
        pair.ends.each_ref().map(Endpoint::connections),
        [1, 0],
        "TIME-WAIT on one side only"
    );
    pair.run_for(secs(2));
    assert_eq!(pair.ends.each_ref().map(Endpoint::connections), [0, 0]);
}

#[test]
fn a_release_survives_the_loss_of_each_of_its_packets() {
    let baseline = release_log(u64::MAX);
    for lost in 0..baseline {
        release_log(lost);
    }
}
/// Runs one transfer and release, dropping datagram `lost` after the handshake; returns how many there were.
fn release_log(lost: u64) -> u64 {
    let mut pair = Pair::new("3wh-arq", &[]);
    let (flow, accepted) = pair.connect();
    let mut count = 0;
    pair.rule = Box::new(move |_| {
        count += 1;
        if count - 1 == lost {
            Verdict::Drop
        } else {
            Verdict::Pass
        }
    });
    let handshake = pair.log.len();
    pair.write(0, flow, b"x");
    pair.ends[0].finish(pair.now, flow);
    pair.ends[1].finish(pair.now, accepted);
    pair.run_for(secs(30));
    assert_eq!(
        pair.closed(0),
        Some(&CloseReason::Finished),
        "datagram {lost} lost"
    );
    assert_eq!(
        pair.closed(1),
        Some(&CloseReason::Finished),
        "datagram {lost} lost"
    );
    (pair.log.len() - handshake) as u64
}

#[test]
fn breaking_off_tells_the_peer_even_over_a_lossy_path() {
    let mut pair = Pair::new("3wh-arq", &[]);
    let (flow, _) = pair.connect();
    pair.rule = drop_first(Flags::RST | Flags::ACK);
    pair.ends[0].abort(pair.now, flow);
    pair.run_for(secs(1));
    assert_eq!(pair.closed(0), Some(&CloseReason::Aborted));
    assert_eq!(pair.closed(1), Some(&CloseReason::Reset));
}

#[test]
fn unreliable_flows_carry_datagrams_without_any_set_up() {
    let mut pair = Pair::new("unrel", &[]);
    let flow = pair.open();
    pair.write(0, flow, b"one");
    pair.write(0, flow, b"");
    pair.write(0, flow, b"three");
    pair.run_for(secs(1));
    let accepted = pair.accepted().unwrap();
    assert_eq!(pair.read_all(1, accepted), [&b"one"[..], b"", b"three"]);
    assert_eq!(pair.log.len(), 3);
    pair.write(1, accepted, b"back");
    pair.run_for(secs(1));
    assert_eq!(pair.read_all(0, flow), [&b"back"[..]]);
    pair.ends[1].release(pair.now, accepted);
    pair.run_for(secs(61));
    assert_eq!(
        pair.ends[1].connections(),
        0,
        "a silent peer of a connectionless service is forgotten (OP-35)"
    );
}

/// The client's machine starts again and uses its first port once more, which the server knows as connected.
fn start_again(preset: &str, set: &[(&str, &str)]) -> (Pair, FlowId) {
    let mut pair = Pair::new(preset, set);
    let (_, old) = pair.connect();
    let mut fresh = config(preset, set);
    fresh.initial_numbers = restp_proto::InitialNumbers::Fixed(7_000_000);
    pair.ends[0] = Endpoint::new(fresh);
    pair.events = [Vec::new(), Vec::new()];
    (pair, old)
}

#[test]
fn a_client_that_starts_again_is_served_although_its_old_connection_is_still_held() {
    // RFC 9293 §3.5.1: the answer that fits no SYN of ours is refused, and that frees the ports.
    for set in [&[][..], &UNNUMBERED] {
        let (mut pair, old) = start_again("3wh-arq", set);
        pair.open();
        pair.run_for(secs(1));
        assert_eq!(pair.closed(1), Some(&CloseReason::Reset), "the old connection");
        pair.ends[1].release(pair.now, old);
        pair.run_for(secs(3));
        assert!(
            pair.accepted().is_some(),
            "the new one, with the first retransmission of the SYN"
        );
        assert!(
            matches!(pair.events[0][..], [Event::Connected(_)]),
            "{:?}",
            pair.events[0]
        );
    }
}

/// A connection without any number in its packets.
const UNNUMBERED: [(&str, &str); 7] = [
    ("flow-control", "none"),
    ("ordering", "unordered"),
    ("reliability", "unreliable"),
    ("ack", "none"),
    ("recovery", "timer"),
    ("congestion", "none"),
    ("framing", "fixed"),
];

/// Names of all presets whose flows are opened by a request.
fn connecting() -> impl Iterator<Item = &'static str> {
    let connects = |preset: &&Preset| preset.composition().establishment != Establishment::Connectionless;
    PRESETS.iter().filter(connects).map(|preset| preset.name)
}

/// When the server serves a client that has had a connection of `old`, has started again and asks for one of `new` from the
/// same port. The server's application holds what it has.
fn served_again(old: &str, new: &str) -> Option<Duration> {
    let mut pair = Pair::of(
        config(old, &[]),
        config("default", &[]).listen(PORT, Acceptance::Any),
    );
    let flow = pair.open();
    pair.write(0, flow, b"one");
    pair.run_for(secs(1));
    pair.accepted()?;
    let mut fresh = config(new, &[]);
    fresh.initial_numbers = restp_proto::InitialNumbers::Fixed(7_000_000);
    pair.ends[0] = Endpoint::new(fresh);
    pair.events = [Vec::new(), Vec::new()];
    let (begin, flow) = (pair.now, pair.open());
    while !pair.events[0].contains(&Event::Connected(flow)) && pair.now.since(begin) < secs(70) {
        pair.run_for(Duration::from_millis(100));
    }
    assert_eq!(
        pair.closed(1),
        Some(&CloseReason::Reset),
        "the old one: {old}, {new}"
    );
    pair.accepted().map(|_| pair.now.since(begin))
}

#[test]
fn who_starts_again_with_another_composition_is_served_although_the_old_connection_is_still_held() {
    for old in PRESETS.iter().map(|preset| preset.name) {
        for new in connecting() {
            let served = served_again(old, new);
            // The first retransmission of the SYN, after one second or three.
            assert!(
                served.is_some_and(|after| after < secs(4)),
                "{old}, {new}: {served:?}"
            );
        }
    }
}

#[test]
fn each_life_of_a_host_begins_at_another_port() {
    let port = |key: u8| {
        let mut config = config("default", &[]);
        config.initial_numbers = restp_proto::InitialNumbers::Keyed([key; 16]);
        let mut pair = Pair::new("default", &[]);
        pair.ends[0] = Endpoint::new(config);
        pair.connect();
        pair.log[0].header.source
    };
    assert_eq!(port(1), port(1));
    assert_ne!(port(1), port(2));
    assert!((0..8).all(|key| port(key) >= 49_152));
}
