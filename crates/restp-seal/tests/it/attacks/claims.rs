//! Who was at an address before its host, and only said so: nothing of that meets the flows of the host when it comes, and
//! nothing of it stays.

use crate::common::*;
use restp_base::flow::Flow;
use restp_base::machine::{Datagram, Event, Input, Machine, PathAddress};
use restp_base::time::{Duration, Time};
use restp_proto::{Endpoint, KeptCookie};
use restp_seal::{PublicKey, Sealed};
use std::net::SocketAddr;

/// Under his own name, and under that of the client.
fn names() -> [Option<PublicKey>; 2] {
    [None, Some(secret(1).public())]
}

/// His request waits until what it asked for is over, and comes again when the client is there.
#[test]
fn a_request_that_was_ahead_of_a_client_is_not_heard_again_when_that_has_come() {
    for asked in ["3wh-arq", "default"] {
        for name in names() {
            let mut pair = Pair::of("unrel", &[], seal(1), seal(2));
            let word = first_word(asked, 0);
            let word = name.map_or(word.clone(), |key| in_the_name_of(key, &word));
            pair.inject(1, path(1), &word);
            pair.run_for(Duration::from_secs(190));
            assert_eq!(
                (pair.ends[1].half_open(), pair.ends[1].inner().connections()),
                (1, 0)
            );
            let flow = pair.open();
            pair.write(0, flow, b"one");
            pair.run_for(ms(500));
            let accepted = pair.accepted().expect("served");
            for _ in 0..3 {
                pair.inject(1, path(1), &word);
                pair.run_for(ms(100));
            }
            let what = format!("{asked}, {name:?}");
            assert_eq!((pair.closed(0), pair.closed(1)), (None, None), "{what}");
            pair.write(0, flow, b"two");
            pair.run_for(ms(500));
            assert_eq!(pair.read_all(1, accepted), b"onetwo", "{what}");
            assert_eq!(
                pair.ends[1].flow_key(accepted),
                Some(secret(1).public()),
                "{what}"
            );
        }
    }
}

/// What he is answered must not be all that the address may be sent.
#[test]
fn requests_in_the_name_of_a_client_leave_room_for_the_answer_to_it() {
    for count in [1, 2, 10] {
        let mut pair = Pair::of("3wh-arq", &[], seal(1), seal(2));
        pair.know();
        for seed in 0..count {
            let mut word = in_the_name_of(secret(1).public(), &first_word("3wh-arq", 0));
            word[1] ^= seed;
            pair.inject(1, path(1), &word);
        }
        let before = pair.log.len();
        let (_, connected) = pair.dial(ms(100));
        assert!(
            connected,
            "{count}: {:?}",
            &pair.log[before..].iter().map(Seen::kind).collect::<Vec<_>>()
        );
    }
}

/// What the impostor says first who has the cookie of an address, and asks from the port that its client takes.
fn word_with(cookie: KeptCookie) -> Vec<u8> {
    let mut host = Sealed::new(Endpoint::new(config("opt-arq", &[])), seal(IMPOSTOR));
    host.inner_mut().keep_cookie(Time::ZERO, cookie);
    host.open(Time::ZERO, path(0), PORT).expect("a port");
    let mut out = Datagram::empty();
    assert!(host.poll_transmit(Time::ZERO, &mut out));
    out.to_vec()
}

/// He had the address before, and has its cookie: his flow is there when the client comes, on the same ports.
#[test]
fn a_flow_of_who_had_the_address_before_does_not_hear_its_client() {
    let mut pair = Pair::of("opt-arq", &[], seal(IMPOSTOR), seal(2));
    pair.connect();
    let cookie = pair.ends[0].inner().cookies(pair.now).next().expect("a cookie");
    pair.restart("opt-arq", 77);
    pair.ends[0] = Sealed::new(Endpoint::new(config("opt-arq", &[])), seal(1));
    pair.events = [Vec::new(), Vec::new()];
    pair.inject(1, path(1), &word_with(cookie));
    let his = pair.accepted().expect("with a cookie it is a flow at once");
    let flow = pair.open();
    pair.run_for(Duration::from_secs(5));
    assert!(pair.events[0].contains(&Event::Connected(flow)));
    let accepted = pair.accepted().expect("accepted");
    assert_ne!(his, accepted);
    assert!(
        pair.events[1]
            .iter()
            .any(|event| matches!(event, Event::Closed(of, _) if *of == his))
    );
    assert_eq!(pair.ends[1].flow_key(accepted), Some(secret(1).public()));
    assert!(pair.transfer(0, (flow, accepted), &noise(20_000), Duration::from_secs(5)));
    assert_eq!(pair.closed(0), None);
    assert_eq!(pair.read_all(1, his), b"");
}

/// Without a handshake each packet is one of whatever flow has its ports: those of a client are not mixed with those of a guest
/// before it.
#[test]
fn messages_of_two_hosts_at_one_address_are_not_those_of_one_flow() {
    let mut pair = Pair::of("unrel", &[], seal(IMPOSTOR), seal(2));
    pair.know();
    let token = pair.ends[1].token_for(pair.now, address(9), secret(IMPOSTOR).public());
    pair.ends[0].keep_token(secret(2).public(), token);
    let flow = pair.open();
    pair.write(0, flow, b"of a guest");
    pair.rule = silent(1);
    pair.run_for(ms(15));
    let his = pair.accepted().expect("early data");
    assert_eq!(pair.ends[1].seal_stats().early, 1);
    pair.rule = Box::new(|_| Verdict::Pass);
    pair.ends[0] = Sealed::new(Endpoint::new(config("unrel", &[])), seal(1));
    pair.know();
    pair.events = [Vec::new(), Vec::new()];
    let flow = pair.open();
    for _ in 0..3 {
        pair.write(0, flow, b"of the client");
        pair.run_for(ms(100));
    }
    assert_eq!(pair.read_all(1, his), b"of a guest");
    let accepted = pair.accepted().expect("another flow");
    assert_eq!(pair.ends[1].flow_key(accepted), Some(secret(1).public()));
    // What came while his was ending is lost, as anything may be here.
    assert!(pair.read_all(1, accepted).ends_with(b"of the client"));
}

/// A server that tells nobody of a flow before its client has proved its key holds one with early data, and the client is gone.
fn held_for_nobody() -> Pair {
    let mut server = seal(2);
    server.awaits_proof = true;
    let mut pair = warm_at("opt-arq", server);
    let flow = pair.open();
    pair.write(0, flow, b"early");
    let (mut out, mut batch) = (Datagram::empty(), Vec::new());
    while pair.ends[0].poll_transmit(pair.now, &mut out) {
        batch.push(out.to_vec());
    }
    pair.rule = Box::new(|_| Verdict::Drop);
    for bytes in batch {
        let mut arriving = contiguous(path(1), bytes);
        pair.ends[1].handle(pair.now, Input::Datagram(&mut arriving));
    }
    assert_eq!(
        (
            pair.ends[1].seal_stats().early,
            pair.ends[1].inner().connections()
        ),
        (1, 1)
    );
    pair
}

/// Early data of a client that does not come back: nobody is told of the flow, and it does not stay for ever.
#[test]
fn a_flow_that_nobody_was_told_of_does_not_stay() {
    let mut pair = held_for_nobody();
    pair.run_for(Duration::from_secs(1_000));
    pair.inject(1, path(1), &[&[HELLO_IK][..], &[7; 300]].concat()); // looks after what is old
    assert_eq!(pair.accepted(), None);
    let kept = (pair.ends[1].inner().connections(), pair.ends[1].half_open());
    assert_eq!(kept, (0, 0));
}

/// The same where nothing comes from anybody any more: its own timers end it.
#[test]
fn a_flow_that_nobody_was_told_of_goes_by_its_own_timers() {
    let mut pair = held_for_nobody();
    pair.run_for(Duration::from_secs(1_000));
    assert_eq!(pair.accepted(), None);
    assert_eq!(pair.ends[1].inner().connections(), 0);
}

/// A client claims the address of somebody else with a path, asks for another session from there, and has the answer to that
/// where it is itself: nothing that it seals then shows that it is at the other address.
#[test]
fn an_answer_that_goes_where_nobody_asked_proves_no_address() {
    const VICTIM: u8 = 9;
    let set = [("paths", "spreading"), ("scheduling", "fastest-rtt")];
    let mut pair = Pair::new("default", &set);
    pair.rule = Box::new(|seen| {
        if seen.path.remote == address(VICTIM) {
            Verdict::Drop
        } else {
            Verdict::Pass
        }
    });
    let (flow, accepted) = pair.connect();
    let claimed = PathAddress {
        local: address(VICTIM),
        ..path(0)
    };
    pair.ends[0]
        .add_path(pair.now, flow, claimed, false)
        .expect("a path");
    pair.run_for(ms(50));
    pair.ends[0].abort(pair.now, flow);
    pair.ends[1].abort(pair.now, accepted);
    pair.ends[1].release(pair.now, accepted);
    pair.run_for(Duration::from_secs(1));

    let mut other = seal(1);
    other.seed = [VICTIM; 32].into();
    let mut other = Sealed::new(Endpoint::new(config("default", &set)), other);
    other.expect(address(2), secret(2).public());
    other.open(pair.now, claimed, PORT).expect("a port");
    let mut out = Datagram::empty();
    let mut asked = 0;
    while other.poll_transmit(pair.now, &mut out) {
        asked += out.len();
        pair.inject(1, claimed.reversed(), &out.to_vec());
    }
    assert_eq!(pair.ends[1].half_open(), 1, "asked for from there");
    let before = pair.log.len();
    pair.open();
    pair.run_for(ms(50));
    let heard: Vec<Seen> = pair.log[before..].to_vec();
    for seen in heard
        .iter()
        .filter(|seen| seen.from == 1 && seen.path.remote == address(1))
    {
        let mut arriving = contiguous(claimed, seen.bytes.clone());
        other.handle(pair.now, Input::Datagram(&mut arriving));
    }
    for _ in 0..10 {
        other.open(pair.now, claimed, PORT).expect("a port");
    }
    while other.poll_transmit(pair.now, &mut out) {
        pair.inject(1, path(1), &out.to_vec());
    }
    pair.run_for(Duration::from_secs(30));

    let bytes = |from: usize, at: fn(&PathAddress) -> SocketAddr| -> usize {
        let of = |seen: &&Seen| seen.from == from && at(&seen.path) == address(VICTIM);
        pair.log.iter().filter(of).map(|seen| seen.bytes.len()).sum()
    };
    let came = asked + bytes(0, |path| path.local);
    let went = bytes(1, |path| path.remote);
    assert!(went <= 3 * came, "{went} for {came}");
}
