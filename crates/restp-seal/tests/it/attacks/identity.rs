//! Who somebody says he is counts for nothing until he has proved it: no flow is his, none of others ends or waits for him.

use crate::common::*;
use restp_base::flow::{CloseReason, Flow, FlowId};
use restp_base::machine::{Datagram, Event, Input, Machine};
use restp_base::time::Duration;
use restp_proto::Endpoint;
use restp_seal::Sealed;

/// A flow to a pinned host reaches it, now that it is there, and its key is told.
fn reaches_the_true_host(pair: &mut Pair) {
    pair.serve("3wh-arq", seal(2));
    pair.events = [Vec::new(), Vec::new()];
    let flows = pair.connect();
    assert_eq!(pair.ends[0].flow_key(flows.0), Some(secret(2).public()));
    pair.assert_talk(flows);
}

/// A dial to the true host, whose key is known, does not reach who is there: the flow.
fn reaches_nobody(pair: &mut Pair) -> FlowId {
    pair.know_as(secret(2).public());
    let (flow, connected) = pair.dial(Duration::from_secs(5));
    assert!(!connected && pair.accepted().is_none());
    assert_eq!(pair.ends[0].flow_key(flow), None);
    flow
}

#[test]
fn a_pinned_dial_does_not_reach_who_was_met_at_the_address_before() {
    let mut pair = Pair::of("3wh-arq", &[], seal(1), seal(IMPOSTOR));
    let (old, _) = pair.connect();
    let flow = reaches_nobody(&mut pair);
    assert_eq!(pair.ends[0].flow_key(old), None);
    assert_eq!(
        pair.closed(0),
        Some(&CloseReason::Aborted),
        "what goes there is for another host now"
    );
    pair.ends[0].abort(pair.now, flow);
    reaches_the_true_host(&mut pair);
}

#[test]
fn a_pinned_dial_does_not_reach_who_came_from_the_address_before() {
    let mut pair = Pair::of("3wh-arq", &[], seal(1), seal(IMPOSTOR));
    pair.visit_client();
    let flow = reaches_nobody(&mut pair);
    pair.ends[0].abort(pair.now, flow);
    reaches_the_true_host(&mut pair);
}

/// It came as a client, and has forgotten that: what is sealed in the session of its visit means nothing to it.
#[test]
fn a_dial_to_a_host_that_has_forgotten_its_visit_reaches_it() {
    for pinned in [true, false] {
        let mut pair = Pair::of("3wh-arq", &[], seal(1), seal(2));
        pair.visit_client();
        pair.restart("3wh-arq", 77);
        if pinned {
            pair.know();
        }
        let (flow, connected) = pair.dial(Duration::from_secs(20));
        assert!(connected, "pinned: {pinned}");
        let flows = (flow, pair.accepted().expect("accepted"));
        pair.assert_talk(flows);
        assert_eq!(pair.ends[0].flow_key(flow), Some(secret(2).public()));
    }
}

/// The request is by somebody with a cookie of his own address, and the name of another.
#[test]
fn a_key_that_is_only_said_is_the_key_of_no_flow() {
    for awaits_proof in [false, true] {
        let mut server = seal(2);
        server.awaits_proof = awaits_proof;
        let mut pair = Pair::of("opt-arq", &[], seal(IMPOSTOR), server);
        let (flow, accepted) = pair.connect();
        pair.ends[0].abort(pair.now, flow);
        pair.run_for(ms(100));
        pair.ends[1].release(pair.now, accepted);
        let cookie = pair.ends[0].inner().cookies(pair.now).next().expect("a cookie");
        pair.run_for(Duration::from_secs(500));
        pair.ends[0] = Sealed::new(Endpoint::new(config("opt-arq", &[])), seal(77));
        pair.ends[0].inner_mut().keep_cookie(pair.now, cookie);
        pair.rule = Box::new(|seen| match seen.kind() {
            HELLO_IX => Verdict::As(in_the_name_of(secret(1).public(), &seen.bytes)),
            _ => Verdict::Pass,
        });
        pair.dial(Duration::from_secs(3));
        match pair.accepted() {
            Some(flow) if !awaits_proof => assert_eq!(pair.ends[1].flow_key(flow), None),
            told => assert!(awaits_proof && told.is_none(), "{told:?}"),
        }
        assert_eq!(pair.ends[1].peer_key(address(1)), None);
    }
}

/// Early data of one's own, and the name of another behind it before anybody asks whose it was.
#[test]
fn the_key_of_a_flow_is_not_that_of_who_has_its_address_later() {
    let mut pair = warm("opt-arq");
    let flow = pair.open();
    pair.write(0, flow, b"pay 100");
    let mut out = Datagram::empty();
    let mut batch = Vec::new();
    while pair.ends[0].poll_transmit(pair.now, &mut out) {
        batch.push(out.to_vec());
    }
    let word = first_word_from(FIRST_PORT + 7, "3wh-arq", 0);
    batch.push(in_the_name_of(secret(5).public(), &word));
    for bytes in batch {
        let mut arriving = contiguous(path(1), bytes);
        pair.ends[1].handle(pair.now, Input::Datagram(&mut arriving));
    }
    let told: Vec<Event> = std::iter::from_fn(|| pair.ends[1].poll_event()).collect();
    let flow = told.iter().find_map(|event| match event {
        Event::Accepted(flow) => Some(*flow),
        _ => None,
    });
    let flow = flow.expect("early data was taken");
    assert_eq!(pair.read_all(1, flow), b"pay 100");
    let named = pair.ends[1].flow_key(flow);
    assert_eq!(named, None, "nobody has proved anything yet");
    pair.run_for(ms(100));
}

#[test]
fn who_waits_for_proof_hears_of_a_flow_with_its_key() {
    let mut server = seal(2);
    server.awaits_proof = true;
    let mut pair = warm_at("opt-arq", server);
    let flow = pair.open();
    pair.write(0, flow, b"early");
    pair.run_for(ms(11));
    assert_eq!(pair.accepted(), None);
    pair.run_for(ms(100));
    let accepted = pair.accepted().expect("proved");
    assert_eq!(pair.ends[1].flow_key(accepted), Some(secret(1).public()));
    assert_eq!(pair.read_all(1, accepted), b"early");
    pair.ends[0].abort(pair.now, flow);
    pair.run_for(ms(100));
    assert_eq!(pair.closed(1), Some(&CloseReason::Reset));
}

#[test]
fn a_request_from_the_address_of_a_host_does_not_keep_from_dialling_it() {
    for (serves, pinned) in [(true, true), (true, false), (false, true), (false, false)] {
        let mut client = seal(1);
        client.serves = serves;
        let mut pair = Pair::of("3wh-arq", &[], client, seal(2));
        if pinned {
            pair.know();
        }
        pair.inject(0, path(0), &first_word("3wh-arq", 1));
        let known = in_the_name_of(secret(2).public(), &first_word("3wh-arq", 1));
        pair.inject(0, path(0), &known);
        let (flow, _) = pair.connect();
        assert_eq!(pair.ends[0].flow_key(flow), Some(secret(2).public()));
        pair.inject(0, path(0), &first_word("default", 1));
        let known = in_the_name_of(secret(2).public(), &first_word("default", 1));
        pair.inject(0, path(0), &known);
        let flows = (flow, pair.accepted().expect("accepted"));
        pair.assert_talk(flows);
    }
}

#[test]
fn who_serves_nobody_answers_no_request() {
    let mut client = seal(1);
    client.serves = false;
    let mut pair = Pair::of("3wh-arq", &[], client, seal(2));
    pair.know();
    pair.connect();
    pair.log.clear();
    for from in [address(2), address(9)] {
        let mut away = path(0);
        away.remote = from;
        let request = first_word("3wh-arq", 1);
        pair.inject(0, away, &request);
        pair.inject(0, away, &in_the_name_of(secret(2).public(), &request));
        // Not for its key, and a ticket of nobody.
        pair.inject(0, away, &[&[HELLO_IK][..], &[7; 300]].concat());
        pair.inject(0, away, &[&[HELLO_RESUMED][..], &[7; 300]].concat());
    }
    assert!(pair.log.is_empty(), "{:?}", pair.log);
    assert_eq!((pair.ends[0].sessions(), pair.ends[0].half_open()), (1, 0));
    assert!(pair.ends[0].seal_stats().unserved >= 6);
}

#[test]
fn a_request_in_the_name_of_a_client_does_not_end_its_flows() {
    let mut pair = Pair::of("unrel", &[], seal(1), seal(2));
    let flow = pair.open();
    pair.write(0, flow, b"one");
    pair.run_for(ms(100));
    let accepted = pair.accepted().expect("known");
    for preset in ["3wh-arq", "default", "opt-arq"] {
        let request = first_word(preset, 0);
        for bytes in [&request, &in_the_name_of(secret(1).public(), &request)] {
            pair.inject(1, path(1), bytes);
            pair.run_for(ms(100));
        }
    }
    assert_eq!((pair.closed(0), pair.closed(1)), (None, None));
    pair.write(0, flow, b"two");
    pair.run_for(ms(100));
    assert_eq!(pair.read_all(1, accepted), b"onetwo");
}

/// What it carries is heard when its client has shown who it is, one round trip later.
#[test]
fn who_asks_where_somebody_else_says_to_be_is_heard_when_he_has_proved_it() {
    let mut pair = Pair::new("3wh-arq", &[]);
    pair.inject(1, path(1), &first_word("3wh-arq", 0));
    assert_eq!(pair.ends[1].half_open(), 1);
    let flows = pair.connect();
    assert_eq!(pair.ends[1].flow_key(flows.1), Some(secret(1).public()));
    let stats = pair.ends[0].stats(flows.0).expect("open");
    assert_eq!(stats.handshake, Some(ms(40)));
    pair.assert_talk(flows);
}

/// Anybody can invent a first meeting with the key of a client that has asked with it: what the client waits for goes on in the
/// session that it asked for.
#[test]
fn an_invented_meeting_does_not_take_the_answers_of_a_request_by_key() {
    let mut pair = Pair::new("3wh-arq", &[]);
    pair.know();
    // The request has come, and its answer is lost.
    pair.rule = silent(1);
    let flow = pair.open();
    pair.run_for(ms(30));
    let invented = in_the_name_of(secret(1).public(), &first_word("3wh-arq", 0));
    pair.inject(1, path(1), &invented);
    // From now on the client says nothing that would remind of it.
    pair.rule = Box::new(|seen| {
        if seen.kind() == HELLO_IK {
            Verdict::Drop
        } else {
            Verdict::Pass
        }
    });
    pair.run_for(Duration::from_secs(5));
    assert_eq!(pair.ends[0].flow_key(flow), Some(secret(2).public()));
}
