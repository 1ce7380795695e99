//! Who somebody says he is counts for nothing until he has proved it: no flow is his, none of others ends or waits for him.

use crate::common::*;
use restp_base::flow::{CloseReason, Flow};
use restp_base::machine::{Datagram, Event, Input, Machine};
use restp_base::time::Duration;
use restp_proto::{Acceptance, Endpoint};
use restp_seal::{PublicKey, SealConfig, Sealed};

/// Where the key of the asking host lies in a request of IX: behind kind, name, token and one-time key.
const TOLD: usize = 1 + 8 + 16 + 32;

pub const IMPOSTOR: u8 = 66;

/// `request`, as if the host with `key` had made it. IX has nothing that would tell.
pub fn in_the_name_of(key: PublicKey, request: &[u8]) -> Vec<u8> {
    assert_eq!(request[0], HELLO_IX);
    let mut bytes = request.to_vec();
    bytes[TOLD..TOLD + 32].copy_from_slice(&key.0);
    bytes
}

/// What a stranger at the address of end `side` says first, from the port that this one would take.
pub fn first_word(preset: &str, side: usize) -> Vec<u8> {
    first_word_from(FIRST_PORT, preset, side)
}

fn first_word_from(port: u16, preset: &str, side: usize) -> Vec<u8> {
    let mut config = config(preset, &[]);
    config.first_port = Some(port);
    let mut host = Sealed::new(Endpoint::new(config), seal(IMPOSTOR));
    host.open(restp_base::time::Time::ZERO, path(side), PORT)
        .expect("a port");
    let mut out = Datagram::empty();
    assert!(host.poll_transmit(restp_base::time::Time::ZERO, &mut out));
    out.to_vec()
}

fn serving(seal: SealConfig) -> Sealed<Endpoint> {
    Sealed::new(
        Endpoint::new(config("3wh-arq", &[]).listen(PORT, Acceptance::Any)),
        seal,
    )
}

/// A flow to a pinned host reaches it, now that it is there, and its key is told.
fn reaches_the_true_host(pair: &mut Pair) {
    pair.serve("3wh-arq", seal(2));
    pair.events = [Vec::new(), Vec::new()];
    let flows = pair.connect();
    assert_eq!(pair.ends[0].flow_key(flows.0), Some(secret(2).public()));
    assert!(pair.transfer(0, flows, &noise(20_000), Duration::from_secs(5)));
}

#[test]
fn a_pinned_dial_does_not_reach_who_was_met_at_the_address_before() {
    let mut pair = Pair::of("3wh-arq", &[], seal(1), seal(IMPOSTOR));
    let (old, _) = pair.connect();
    pair.know_as(secret(2).public());
    pair.events = [Vec::new(), Vec::new()];
    let flow = pair.open();
    pair.run_for(Duration::from_secs(5));
    assert!(!pair.events[0].contains(&Event::Connected(flow)));
    assert_eq!(pair.accepted(), None);
    assert_eq!(
        (pair.ends[0].flow_key(flow), pair.ends[0].flow_key(old)),
        (None, None)
    );
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
    pair.ends[0] = serving(seal(1));
    pair.ends[1].open(pair.now, path(1), PORT).expect("a port");
    pair.run_for(ms(100));
    assert!(
        pair.events[0]
            .iter()
            .any(|event| matches!(event, Event::Accepted(_)))
    );
    pair.know_as(secret(2).public());
    pair.events = [Vec::new(), Vec::new()];
    let flow = pair.open();
    pair.run_for(Duration::from_secs(5));
    assert!(!pair.events[0].contains(&Event::Connected(flow)));
    assert_eq!(pair.accepted(), None);
    pair.ends[0].abort(pair.now, flow);
    reaches_the_true_host(&mut pair);
}

/// It came as a client, and has forgotten that: what is sealed in the session of its visit means nothing to it.
#[test]
fn a_dial_to_a_host_that_has_forgotten_its_visit_reaches_it() {
    for pinned in [true, false] {
        let mut pair = Pair::of("3wh-arq", &[], seal(1), seal(2));
        pair.ends[0] = serving(seal(1));
        let visit = pair.ends[1].open(pair.now, path(1), PORT).expect("a port");
        pair.run_for(ms(100));
        assert!(pair.events[1].contains(&Event::Connected(visit)));
        pair.restart("3wh-arq", 77);
        if pinned {
            pair.know();
        }
        pair.events = [Vec::new(), Vec::new()];
        let flow = pair.open();
        pair.run_for(Duration::from_secs(20));
        assert!(
            pair.events[0].contains(&Event::Connected(flow)),
            "pinned: {pinned}"
        );
        let flows = (flow, pair.accepted().expect("accepted"));
        assert!(pair.transfer(0, flows, &noise(20_000), Duration::from_secs(5)));
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
        pair.events = [Vec::new(), Vec::new()];
        pair.rule = Box::new(|seen| match seen.kind() {
            HELLO_IX => Verdict::As(in_the_name_of(secret(1).public(), &seen.bytes)),
            _ => Verdict::Pass,
        });
        pair.open();
        pair.run_for(Duration::from_secs(3));
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
        assert!(pair.transfer(0, flows, &noise(20_000), Duration::from_secs(5)));
        assert!(pair.transfer(1, flows, &noise(20_000), Duration::from_secs(5)));
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
    assert!(pair.transfer(0, flows, &noise(20_000), Duration::from_secs(5)));
}
