//! Addresses that somebody writes on his envelopes: what they get, and that they stay free for who is there (RFC 9000 §8).
//! The client of the pair is the liar; who has the address is a third host.
#![allow(clippy::unwrap_used, reason = "tests")]

use crate::common::*;
use restp_base::flow::{Flow, FlowId, PathState};
use restp_base::machine::{Datagram, Event, Input, Machine, PathAddress};
use restp_base::time::Duration;
use restp_proto::Endpoint;
use restp_seal::Sealed;

const VICTIM: u8 = 77;
const SEVERAL: &[(&str, &str)] = &[("paths", "spreading"), ("scheduling", "fastest-rtt")];

fn from_victim() -> PathAddress {
    PathAddress {
        local: address(VICTIM),
        remote: address(2),
    }
}

/// A client with a session, whom nothing reaches at the address of the victim.
fn liar() -> (Pair, FlowId) {
    let mut pair = Pair::new("default", SEVERAL);
    pair.rule = Box::new(|seen| {
        if seen.path.remote == address(VICTIM) {
            Verdict::Drop
        } else {
            Verdict::Pass
        }
    });
    let (flow, _) = pair.connect();
    (pair, flow)
}

fn bytes_to_and_from_victim(pair: &Pair) -> (usize, usize) {
    let sum = |from: usize| {
        let seen = pair.log.iter().filter(|seen| seen.from == from);
        let there = |seen: &&Seen| [seen.path.local, seen.path.remote].contains(&address(VICTIM));
        seen.filter(there).map(|seen| seen.bytes.len()).sum()
    };
    (sum(1), sum(0))
}

/// The victim asks for a flow, and gets what the server sends to its address; is it connected within `span`?
fn visits(pair: &mut Pair, span: Duration, mut meanwhile: impl FnMut(&mut Pair)) -> bool {
    let mut config = config("default", &[]);
    config.first_port = Some(FIRST_PORT + 7); // the liar has the first
    let mut victim = Sealed::new(Endpoint::new(config), seal(13));
    victim.expect(address(2), pair.ends[1].public_key());
    let flow = victim.open(pair.now, from_victim(), PORT).expect("a port");
    let until = pair.now + span;
    while pair.now < until {
        let mut out = Datagram::empty();
        while victim.poll_transmit(pair.now, &mut out) {
            let before = pair.log.len();
            pair.inject(1, from_victim().reversed(), &out.to_vec());
            for seen in pair.log.split_off(before) {
                if seen.path.remote == address(VICTIM) {
                    let mut arriving = contiguous(from_victim(), seen.bytes);
                    victim.handle(pair.now, Input::Datagram(&mut arriving));
                }
            }
        }
        while let Some(event) = victim.poll_event() {
            if event == Event::Connected(flow) {
                return true;
            }
        }
        meanwhile(pair);
        pair.run_for(ms(10));
        if victim.next_deadline().is_some_and(|(at, _)| at <= pair.now) {
            victim.handle(pair.now, Input::Deadline);
        }
    }
    false
}

#[test]
fn a_path_that_is_only_asked_for_does_not_take_an_address_away() {
    let (mut pair, flow) = liar();
    pair.ends[0]
        .add_path(pair.now, flow, from_victim(), false)
        .unwrap();
    pair.run_for(ms(500));
    assert!(
        bytes_to_and_from_victim(&pair).0 > 0,
        "the join is answered there"
    );
    assert!(visits(&mut pair, Duration::from_secs(5), |_| {}));
}

#[test]
fn flows_that_are_only_asked_for_do_not_take_an_address_away() {
    let (mut pair, _) = liar();
    for _ in 0..5 {
        pair.ends[0].open(pair.now, from_victim(), PORT).unwrap();
        pair.run_for(ms(500));
    }
    let accepted = |event: &&Event| matches!(event, Event::Accepted(_));
    let count = pair.events[1].iter().filter(accepted).count();
    assert_eq!(count, 1, "nothing was heard of them");
    // They go on while the victim is there.
    let again = |pair: &mut Pair| drop(pair.ends[0].open(pair.now, from_victim(), PORT));
    assert!(visits(&mut pair, Duration::from_secs(5), again));
}

#[test]
fn an_address_that_is_only_asked_for_gets_at_most_three_times_what_came_from_it() {
    for join in [true, false] {
        let (mut pair, flow) = liar();
        if join {
            pair.ends[0]
                .add_path(pair.now, flow, from_victim(), false)
                .unwrap();
        } else {
            pair.ends[0].open(pair.now, from_victim(), PORT).unwrap();
        }
        // One datagram, and never another: the server alone repeats.
        pair.run_for(ms(1));
        pair.rule = Box::new(|seen| {
            if [seen.path.local, seen.path.remote].contains(&address(VICTIM)) {
                Verdict::Drop
            } else {
                Verdict::Pass
            }
        });
        let (_, sent) = bytes_to_and_from_victim(&pair);
        let log = pair.log.len();
        pair.run_for(Duration::from_secs(200));
        let to_victim = pair.log[log..].iter().filter(|seen| seen.from == 1);
        let got: usize = to_victim
            .filter(|seen| seen.path.remote == address(VICTIM))
            .map(|seen| seen.bytes.len())
            .sum();
        assert!(got > 0 && got <= 3 * sent, "{got} for {sent}, join: {join}");
    }
}

/// A handshake that began at an address ends when somebody else is there.
#[test]
fn who_ends_a_handshake_does_not_get_an_address_that_another_one_has_by_now() {
    let mut pair = Pair::new("default", &[]);
    // The client asks from the address of the victim. It hears the answer, and its packets from there are lost.
    pair.rule = Box::new(|seen| {
        if seen.path.local == address(VICTIM) && seen.kind() == DATA {
            Verdict::Drop
        } else {
            Verdict::Pass
        }
    });
    pair.ends[0].open(pair.now, from_victim(), PORT).unwrap();
    pair.run_for(ms(100));
    assert_eq!(pair.ends[1].half_open(), 1);
    assert!(visits(&mut pair, Duration::from_secs(1), |_| {}));
    let victim = Some(secret(13).public());
    assert_eq!(pair.ends[1].peer_key(address(VICTIM)), victim);
    // A packet of another path ends the handshake.
    let other = PathAddress {
        local: address(9),
        remote: address(2),
    };
    pair.ends[0].open(pair.now, other, PORT).unwrap();
    pair.run_for(ms(100));
    assert_eq!(pair.ends[1].peer_key(address(9)), Some(secret(1).public()));
    assert_eq!(pair.ends[1].peer_key(address(VICTIM)), victim);
}

#[test]
fn a_join_takes_no_round_trip_more_than_without_a_seal() {
    let mut pair = Pair::new("default", SEVERAL);
    let (flow, _) = pair.connect();
    let second = PathAddress {
        local: address(9),
        remote: address(2),
    };
    pair.ends[0].add_path(pair.now, flow, second, false).unwrap();
    let ups = |pair: &Pair, side: usize| {
        let up = |event: &&Event| matches!(event, Event::Path(_, path, PathState::Up) if path.local == second.local || path.remote == second.local);
        pair.events[side].iter().filter(up).count()
    };
    // SYN and SYN-ACK, 10 ms each, then its ACK.
    pair.run_for(ms(20));
    assert_eq!(ups(&pair, 0), 1, "{:?}", pair.events[0]);
    pair.run_for(ms(10));
    assert_eq!(ups(&pair, 1), 1, "{:?}", pair.events[1]);
    assert_eq!(pair.ends[1].seal_stats().moved, 1, "and it has answered");
}

#[test]
fn a_flow_from_another_address_of_a_client_waits_for_one_answer() {
    let mut pair = Pair::new("default", &[]);
    pair.connect();
    let other = PathAddress {
        local: address(9),
        remote: address(2),
    };
    let flow = pair.ends[0].open(pair.now, other, PORT).unwrap();
    pair.run_for(ms(100));
    assert!(
        pair.events[0].contains(&Event::Connected(flow)),
        "{:?}",
        pair.events
    );
}
