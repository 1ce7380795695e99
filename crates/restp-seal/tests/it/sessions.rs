//! Set-up and life of sealed connections: no round trip is added, whatever the set-up; keys are known, learnt, listed.

use crate::common::*;
use restp_base::flow::{CloseReason, Flow, PathState};
use restp_base::machine::{Event, Machine, PathAddress};
use restp_base::time::Duration;
use restp_proto::{CookieMint, KeptCookie};
use restp_seal::{Clients, Fault, Token};
use std::net::SocketAddr;

#[test]
fn a_set_up_takes_as_long_as_without_a_seal() {
    for (preset, set) in [
        ("3wh-arq", &[][..]),
        ("default", &[]),
        ("opt-arq", &[]),
        (
            "default",
            &[("paths", "spreading"), ("scheduling", "fastest-rtt")],
        ),
    ] {
        let least = plain_handshake(preset, set, ms(10));
        for known in [true, false] {
            let mut pair = Pair::of(preset, set, seal(1), seal(2));
            if known {
                pair.know();
            }
            let (flow, _) = pair.connect();
            let stats = pair.ends[0].stats(flow).expect("open");
            assert_eq!(stats.handshake, Some(least), "{preset}, key known: {known}");
            assert_eq!(pair.log[0].kind(), if known { HELLO_IK } else { HELLO_IX });
            assert_eq!(pair.log[1].kind(), ANSWER);
            assert!(pair.log[1].bytes.len() <= 1280);
            pair.run_for(ms(100));
            pair.come_again(preset, 9);
            let (flow, accepted) = pair.connect();
            let stats = pair.ends[0].stats(flow).expect("open");
            assert_eq!(stats.handshake, Some(least), "{preset}, resumed");
            assert_eq!(pair.log[0].kind(), HELLO_RESUMED);
            let answer = pair.log.iter().find(|seen| seen.kind() == ANSWER);
            assert!(answer.expect("an answer").bytes.len() <= 1280);
            assert_eq!(pair.ends[1].flow_key(accepted), Some(secret(1).public()));
            assert_eq!(pair.ends[0].flow_key(flow), Some(secret(2).public()));
            assert_eq!(pair.ends[1].seal_stats().resumed, 1);
        }
    }
}

#[test]
fn a_sealed_machine_holds_the_flows_of_its_engine() {
    let mut pair = Pair::of("default", &[], seal(1), seal(2));
    let held = |pair: &Pair| pair.ends.each_ref().map(Machine::held);
    assert_eq!(held(&pair), [0, 0]);
    let (flow, _) = pair.connect();
    assert_eq!(held(&pair), [1, 1]);
    let now = pair.now;
    pair.ends[0].abort(now, flow);
    pair.ends[0].release(now, flow);
    pair.run_for(Duration::from_secs(240));
    assert_eq!(held(&pair)[0], 0);
}

#[test]
fn data_beside_the_syn_arrives_after_half_a_round_trip_and_is_sealed() {
    let mut pair = warm("opt-arq");
    let begin = pair.now;
    let flow = pair.open();
    pair.write(0, flow, b"a secret question");
    pair.run_for(ms(10));
    let accepted = pair.accepted().expect("taken at once");
    assert_eq!(pair.read_all(1, accepted), b"a secret question");
    assert_eq!(pair.now.since(begin), ms(10));
    let kinds: Vec<u8> = pair
        .log
        .iter()
        .filter(|seen| seen.from == 0)
        .map(Seen::kind)
        .collect();
    assert!(
        kinds.contains(&EARLY) && kinds[0] == HELLO_RESUMED,
        "{kinds:02x?}"
    );
    pair.write(1, accepted, b"an answer");
    pair.run_for(ms(15));
    assert_eq!(pair.read_all(0, flow), b"an answer");
    assert_eq!(pair.ends[1].seal_stats().early, 1);
}

#[test]
fn the_request_stands_in_for_a_lost_syn_as_without_a_seal() {
    let mut pair = warm("opt-arq");
    let mut hellos = 0;
    pair.rule = Box::new(move |seen| {
        hellos += u32::from(seen.kind() == HELLO_RESUMED);
        if seen.kind() == HELLO_RESUMED && hellos == 1 {
            Verdict::Drop
        } else {
            Verdict::Pass
        }
    });
    let flow = pair.open();
    pair.write(0, flow, b"request");
    pair.run_for(ms(30));
    assert!(pair.sent(HELLO_RESUMED).len() > 1);
    let accepted = pair.accepted().expect("no timeout");
    assert_eq!(pair.read_all(1, accepted), b"request");
}

#[test]
fn early_data_that_is_refused_costs_one_round_trip() {
    let mut pair = warm("opt-arq");
    let (key, token) = pair.ends[0].tokens().next().expect("a token");
    let old = Token {
        epoch: [1; 8],
        ..token
    };
    pair.ends[0].keep_token(key, old);
    assert_eq!(pair.time_to_say(), ms(30), "one round trip later than at best");
    assert_eq!(pair.ends[1].seal_stats().early_refused, 1);
}

#[test]
fn nothing_can_be_read_on_the_wire_once_the_key_is_known() {
    let mut pair = Pair::new("3wh-arq", &[]);
    let flows = pair.connect();
    let text = b"to be or not to be, that is the question".repeat(100);
    assert!(pair.transfer(0, flows, &text, ms(3000)));
    assert!(pair.transfer(1, flows, &text, ms(3000)));
    for seen in &pair.log {
        assert!(
            !seen
                .bytes
                .windows(8)
                .any(|window| text.windows(8).any(|own| own == window))
        );
    }
}

#[test]
fn a_host_that_is_not_who_it_should_be_is_not_talked_to() {
    let mut pair = Pair::of("3wh-arq", &[], seal(1), seal(2));
    pair.ends[0].expect(address(2), secret(7).public());
    pair.open();
    pair.run_for(ms(50));
    let expected = Fault::OtherKey {
        expected: secret(7).public(),
        told: secret(2).public(),
    };
    assert_eq!(pair.ends[0].fault(address(2)), Some(expected), "told soon");
    pair.run_for(Duration::from_secs(200));
    assert_eq!(pair.closed(0), Some(&CloseReason::Refused));
    assert_eq!(pair.ends[0].fault(address(2)), Some(expected));
    assert_eq!(pair.accepted(), None);
    assert!(pair.ends[1].seal_stats().for_others >= 1);
}

#[test]
fn who_says_another_key_does_not_end_what_the_true_host_answers() {
    let mut pair = Pair::new("3wh-arq", &[]);
    pair.open();
    pair.run_for(ms(1));
    let id = pair.log[0].bytes[1..9].to_vec();
    let lie = [&[FOREIGN][..], &id, &secret(66).public().0].concat();
    pair.inject(0, path(0), &lie);
    pair.run_for(Duration::from_secs(5));
    assert_eq!((pair.closed(0), pair.ends[0].fault(address(2))), (None, None));
    assert!(pair.accepted().is_some());
}

#[test]
fn a_first_meeting_learns_the_key_and_may_be_forbidden() {
    let mut pair = Pair::of("3wh-arq", &[], seal(1), seal(2));
    pair.connect();
    assert_eq!(pair.ends[0].peer_key(address(2)), Some(secret(2).public()));
    let mut strict = seal(1);
    strict.first_use = false;
    let mut pair = Pair::of("3wh-arq", &[], strict, seal(2));
    let refused = pair.ends[0].open(pair.now, path(0), PORT).expect_err("unknown");
    assert!(refused.to_string().contains("10.0.0.2:4000"), "{refused}");
}

#[test]
fn only_listed_clients_are_served_and_others_are_told() {
    for (listed, known) in [(1, true), (1, false), (5, true), (5, false)] {
        let mut server = seal(2);
        server.clients = Clients::Only([secret(listed).public()].into());
        let mut pair = Pair::of("3wh-arq", &[], seal(1), server);
        if known {
            pair.know();
        }
        pair.open();
        pair.run_for(ms(100));
        assert_eq!(pair.accepted().is_some(), listed == 1);
        if listed == 1 {
            let accepted = pair.accepted().expect("served");
            assert_eq!(pair.ends[1].flow_key(accepted), Some(secret(1).public()));
        } else {
            assert_eq!(pair.closed(0), Some(&CloseReason::Refused));
            assert_eq!(pair.ends[0].fault(address(2)), Some(Fault::Unwelcome));
            // One that only says a key is remembered like one that is on the list.
            let told = (pair.ends[1].sessions(), pair.ends[1].seal_stats().unwelcome);
            assert_eq!(told, (usize::from(!known), 1));
        }
    }
}

#[test]
fn a_second_flow_uses_the_session_there_is() {
    let mut pair = Pair::new("3wh-arq", &[]);
    pair.connect();
    pair.log.clear();
    pair.connect();
    assert!(pair.log.iter().all(|seen| seen.kind() == DATA));
    assert_eq!(pair.ends[1].sessions(), 1);
}

#[test]
fn a_server_that_lost_everything_but_its_key_is_talked_to_again() {
    let mut pair = Pair::new("3wh-arq", &[]);
    pair.connect();
    let config = config("3wh-arq", &[]).listen(PORT, restp_proto::Acceptance::Any);
    pair.ends[1] = restp_seal::Sealed::new(restp_proto::Endpoint::new(config), seal(2));
    pair.run_for(Duration::from_secs(10));
    pair.events = [Vec::new(), Vec::new()];
    let flows = pair.connect();
    assert!(pair.transfer(0, flows, b"again", ms(500)));
}

#[test]
fn a_client_that_starts_again_is_served_at_once_whether_it_remembers_the_server_or_not() {
    for known in [true, false] {
        let mut pair = Pair::new("3wh-arq", &[]);
        let (_, old) = pair.connect();
        let mut fresh = config("3wh-arq", &[]);
        fresh.initial_numbers = restp_proto::InitialNumbers::Keyed([7; 16]);
        let mut later = seal(1);
        later.seed = [77; 32].into();
        pair.ends[0] = restp_seal::Sealed::new(restp_proto::Endpoint::new(fresh), later);
        if known {
            pair.know();
        }
        pair.events = [Vec::new(), Vec::new()];
        // Its address and its port are those of the connection that the server still has.
        let flow = pair.open();
        pair.run_for(ms(100));
        assert_eq!(pair.closed(1), Some(&CloseReason::Reset), "key known: {known}");
        pair.ends[1].release(pair.now, old);
        pair.run_for(Duration::from_secs(4));
        let accepted = pair.accepted().expect("with the first retransmission of the SYN");
        assert!(pair.transfer(0, (flow, accepted), b"again", ms(500)));
    }
}

#[test]
fn datagrams_of_a_service_without_set_up_arrive_once_each() {
    let mut pair = Pair::of("unrel", &[], seal(1), seal(2));
    let flow = pair.open();
    for text in [b"one", b"two"] {
        pair.write(0, flow, text);
    }
    pair.run_for(ms(100));
    let accepted = pair.accepted().expect("known");
    assert_eq!(pair.read_all(1, accepted), b"onetwo");
    assert_eq!(pair.log[0].kind(), HELLO_IX);
}

/// A client that lives opens packets of both sessions; only for one that began anew are they sent in both.
#[test]
fn datagrams_arrive_once_each_beside_a_session_that_is_asked_for_after_silence() {
    let mut pair = Pair::new("unrel", &[]);
    let flow = pair.open();
    pair.write(0, flow, b"one");
    pair.run_for(ms(100));
    let accepted = pair.accepted().expect("known");
    assert_eq!(pair.read_all(1, accepted), b"one");
    for (side, flow) in [(0, flow), (1, accepted)] {
        pair.ends[side].abort(pair.now, flow);
        pair.ends[side].release(pair.now, flow);
    }
    pair.run_for(Duration::from_secs(61));
    pair.events = [Vec::new(), Vec::new()];
    let asked = |pair: &Pair| pair.sent(HELLO_IK).len() + pair.sent(HELLO_RESUMED).len();
    let before = asked(&pair);
    let flow = pair.open();
    pair.write(0, flow, b"two");
    pair.run_for(ms(11));
    let accepted = pair.accepted().expect("known");
    assert_eq!(pair.read_all(1, accepted), b"two");
    for text in [b"1", b"2", b"3"] {
        pair.write(1, accepted, text);
    }
    pair.run_for(ms(100));
    assert_eq!(pair.read_all(0, flow), b"123");
    assert_eq!(asked(&pair), before + 1);
    pair.write(0, flow, b"three");
    pair.run_for(ms(100));
    assert_eq!(pair.ends[1].half_open(), 0, "the client has the answer");
}

#[test]
fn a_request_whose_data_waits_is_repeated_when_it_is_lost() {
    let mut pair = Pair::of("unrel", &[], seal(1), seal(2));
    let mut left = 2;
    pair.rule = Box::new(move |seen| {
        let lost = seen.from == 0 && left > 0;
        left -= u32::from(lost);
        if lost { Verdict::Drop } else { Verdict::Pass }
    });
    let flow = pair.open();
    pair.write(0, flow, b"a while later");
    pair.run_for(Duration::from_secs(10));
    let accepted = pair.accepted().expect("known");
    assert_eq!(pair.read_all(1, accepted), b"a while later");
}

#[test]
fn several_paths_share_one_session_and_joins_take_no_handshake() {
    let set = &[("paths", "spreading"), ("scheduling", "fastest-rtt")];
    let mut pair = Pair::new("default", set);
    let flow = pair.open();
    let second = PathAddress {
        local: SocketAddr::from(([10, 1, 0, 1], 4000)),
        remote: address(2),
    };
    pair.run_for(ms(100));
    pair.ends[0]
        .add_path(pair.now, flow, second, false)
        .expect("several paths");
    pair.run_for(ms(200));
    let ups = |side: usize, pair: &Pair| {
        let up = |event: &&Event| matches!(event, Event::Path(_, _, PathState::Up));
        pair.events[side].iter().filter(up).count()
    };
    assert!(ups(0, &pair) >= 1, "{:?}", pair.events[0]);
    let on_second: Vec<&Seen> = pair.log.iter().filter(|seen| seen.path == second).collect();
    assert!(!on_second.is_empty() && on_second.iter().all(|seen| seen.kind() == DATA));
    let flows = (flow, pair.accepted().expect("accepted"));
    assert!(pair.transfer(0, flows, &noise(300_000), Duration::from_secs(20)));
    let spaces: std::collections::BTreeSet<u8> = (pair.log.iter())
        .filter(|seen| seen.kind() == DATA && seen.from == 0)
        .map(|seen| seen.bytes[0] & 0x0F)
        .collect();
    assert_eq!(spaces.into_iter().collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn paths_that_race_may_each_begin_a_handshake() {
    let set = &[("paths", "spreading"), ("scheduling", "fastest-rtt")];
    let mut pair = Pair::new("default", set);
    let dead = address(2);
    pair.rule = Box::new(move |seen| {
        let first = seen.path.remote == dead || seen.path.local == dead;
        if first && seen.at < restp_base::time::Time::ZERO + ms(500) {
            Verdict::Drop
        } else {
            Verdict::Pass
        }
    });
    let flow = pair.open();
    let other = PathAddress {
        local: address(1),
        remote: SocketAddr::from(([10, 1, 0, 2], 4000)),
    };
    pair.ends[0]
        .add_path(pair.now, flow, other, false)
        .expect("several paths");
    pair.run_for(Duration::from_secs(5));
    let flows = (flow, pair.accepted().expect("over the living path"));
    assert!(pair.transfer(0, flows, &noise(100_000), Duration::from_secs(20)));
}

/// The second path asks before the first is answered, so that the first packets in the session are of the second.
#[test]
fn a_join_beside_the_end_of_a_race_is_heard_from_its_own_address_and_once() {
    let set = &[("paths", "spreading"), ("scheduling", "fastest-rtt")];
    let mut pair = Pair::new("default", set);
    pair.delay = ms(15);
    let flow = pair.open();
    let second = PathAddress {
        local: address(9),
        remote: address(2),
    };
    pair.ends[0]
        .add_path(pair.now, flow, second, false)
        .expect("several paths");
    pair.run_for(ms(200));
    assert_eq!(pair.sent(HELLO_IK).len(), 2, "both paths asked");
    let joined = |event: &&Event| matches!(event, Event::Path(_, _, PathState::Up));
    assert_eq!(pair.events[1].iter().filter(joined).count(), 2);
    pair.ends[0].abort(pair.now, flow);
    pair.run_for(ms(1));
    pair.rule = Box::new(|_| Verdict::Drop); // the client is gone
    pair.run_for(ms(100));
    assert_eq!(pair.closed(1), Some(&CloseReason::Reset), "{:?}", pair.events[1]);
}

#[test]
fn a_cookie_of_another_run_costs_a_round_trip_and_nothing_else() {
    let mut pair = Pair::new("opt-arq", &[]);
    let foreign = CookieMint::new(restp_proto::CookieParameters {
        key: [77; 16],
        ..Default::default()
    });
    let kept = KeptCookie {
        server: address(2),
        port: PORT,
        cookie: foreign.mint(pair.now, address(1).ip()),
        remaining: Duration::from_secs(3600),
    };
    pair.ends[0].inner_mut().keep_cookie(pair.now, kept);
    let flow = pair.open();
    pair.write(0, flow, b"early?");
    pair.run_for(ms(500));
    let accepted = pair.accepted().expect("connected");
    assert_eq!(pair.read_all(1, accepted), b"early?");
}

/// The seal hid from the socket that a message was longer than the path is known to carry, so it was dropped on the way.
#[test]
fn what_may_be_cut_into_pieces_may_be_when_it_is_sealed() {
    let mut pair = Pair::new("par-arq", &[("mtu-discovery", "on")]);
    pair.rule = Box::new(|seen| {
        if seen.bytes.len() > 1232 && !seen.may_fragment {
            Verdict::Drop
        } else {
            Verdict::Pass
        }
    });
    let flows = pair.connect();
    assert!(pair.transfer(0, flows, &noise(1300), ms(1000)));
    let cut = pair.log.iter().filter(|seen| seen.may_fragment);
    assert_eq!(cut.count(), 1);
}

/// A NAT gives the client another binding: the server asks, the client answers, and data flows there.
#[test]
fn a_client_with_a_new_binding_is_asked_and_followed() {
    let mut pair = Pair::new("default", &[]);
    let flows = pair.connect();
    pair.rebind_to(9);
    assert!(pair.transfer(0, flows, &noise(50_000), Duration::from_secs(10)));
    assert!(pair.transfer(1, flows, &noise(50_000), Duration::from_secs(10)));
    let stats = pair.ends[1].seal_stats();
    assert!(stats.moved == 1 && stats.elsewhere >= 1, "{stats:?}");
    let late = pair.log.iter().rfind(|seen| seen.from == 1).expect("an answer");
    assert_eq!(late.path.remote, address(9));
}

/// A copy of a packet from elsewhere moves nobody, even if nothing follows from the true address.
#[test]
fn a_copy_from_elsewhere_does_not_take_the_answers_away() {
    let mut pair = Pair::new("default", &[]);
    let flows = pair.connect();
    // The client's last packets: the attacker's copies come first, and the client is silent afterwards.
    pair.write(0, flows.0, b"tell me");
    let begin = pair.log.len();
    let mut away = path(1);
    away.remote = address(66);
    pair.rule = Box::new(|seen| {
        if seen.path.remote == address(66) {
            Verdict::Drop // the attacker keeps what he is asked
        } else {
            Verdict::Pass
        }
    });
    pair.run_for(ms(1));
    let copies = pair.log[begin..].to_vec();
    for seen in &copies {
        pair.inject(1, away, &seen.bytes);
    }
    pair.run_for(ms(50));
    assert_eq!(pair.read_all(1, flows.1), b"tell me");
    pair.log.clear();
    assert!(pair.transfer(1, flows, &noise(50_000), Duration::from_secs(10)));
    assert!(pair.log.iter().all(|seen| seen.path.remote != address(66)));
    assert!(pair.ends[1].seal_stats().elsewhere > 0);
    assert_eq!(pair.ends[1].seal_stats().moved, 0);
}

#[test]
fn sessions_of_hosts_that_come_and_go_are_forgotten() {
    let mut pair = Pair::new("3wh-arq", &[]);
    for life in 0..40_u8 {
        let (flow, accepted) = pair.connect();
        pair.ends[0].abort(pair.now, flow);
        pair.run_for(ms(500));
        pair.ends[1].release(pair.now, accepted);
        let mut later = seal(1);
        later.seed = [100 + life; 32].into();
        pair.ends[0] = restp_seal::Sealed::new(restp_proto::Endpoint::new(config("3wh-arq", &[])), later);
        pair.know();
        pair.events = [Vec::new(), Vec::new()];
        pair.run_for(Duration::from_secs(30));
    }
    let sessions = pair.ends[1].sessions();
    assert!(sessions <= 12, "{sessions}: those of the last five minutes");
}
