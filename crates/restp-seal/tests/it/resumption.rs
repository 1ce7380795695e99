//! Clients that come again with a ticket: what it saves, whom it speaks for, how it ends, and what an attacker makes of it.

use crate::common::*;
use restp_base::flow::{CloseReason, Flow};
use restp_base::time::Duration;
use restp_seal::{Clients, Fault, Resumption, Token};

#[test]
fn each_visit_brings_the_ticket_of_the_next() {
    let mut pair = Pair::of("3wh-arq", &[], seal(1), seal(2));
    pair.connect();
    let mut tickets = std::collections::BTreeSet::new();
    for visit in 1..5 {
        let (_, token) = pair.ends[0].tokens().next().expect("a token");
        assert!(tickets.insert(token.resumption.as_ref().expect("a ticket").ticket));
        pair.come_again("3wh-arq", 100 + visit);
        let flows = pair.connect();
        assert_eq!(pair.log[0].kind(), HELLO_RESUMED);
        assert_eq!(
            pair.log[0].bytes[25..85],
            token.resumption.expect("a ticket").ticket
        );
        assert!(pair.transfer(1, flows, &noise(20_000), Duration::from_secs(5)));
    }
    assert_eq!(pair.ends[1].seal_stats().resumed, 4);
}

#[test]
fn a_ticket_that_opens_no_more_costs_a_round_trip_and_nothing_else() {
    // The server lost everything but its key; or a day is over; or the client's memory was damaged.
    let mut restarted = warm("opt-arq");
    restarted.restart("opt-arq", 98);
    let mut late = warm("opt-arq");
    late.run_for(Duration::from_secs(25 * 3600));
    let damaged = damaged(|resumption| resumption.ticket[0] ^= 1);
    for mut pair in [restarted, late, damaged] {
        // Without ticket and cookie: request, answer, data.
        assert!(pair.time_to_say() <= ms(30 + 20));
        assert_eq!(
            (pair.log[0].kind(), pair.sent(HELLO_IK).len()),
            (HELLO_RESUMED, 1)
        );
        assert_eq!(pair.ends[0].seal_stats().refused_tickets, 1);
        let stats = pair.ends[1].seal_stats();
        assert!(stats.stale_tickets > 0 && stats.resumed == 0, "{stats:?}");
        // With the ticket it brought nothing is lost the next time.
        pair.come_again("opt-arq", 77);
        pair.connect();
        assert_eq!(pair.log[0].kind(), HELLO_RESUMED);
        assert_eq!(pair.ends[1].seal_stats().resumed, 1);
    }
}

/// A client whose ticket is not what it was.
fn damaged(damage: fn(&mut Resumption)) -> Pair {
    let mut pair = warm("opt-arq");
    let (server, mut token) = pair.ends[0].tokens().next().expect("a token");
    damage(token.resumption.as_mut().expect("a ticket"));
    pair.ends[0].keep_token(server, token);
    pair
}

#[test]
fn a_ticket_whose_secret_is_lost_costs_a_round_trip_too() {
    let mut pair = damaged(|resumption| resumption.secret[0] ^= 1);
    assert!(pair.time_to_say() <= ms(30 + 20));
    let stats = pair.ends[1].seal_stats();
    assert!(stats.forged > 0 && stats.resumed == 0, "{stats:?}");
    assert_eq!(pair.ends[0].seal_stats().refused_tickets, 1);
}

#[test]
fn a_ticket_speaks_for_the_key_it_was_given_to() {
    let mut pair = warm("3wh-arq");
    let (server, token) = pair.ends[0].tokens().next().expect("a token");
    let resumption = token.resumption.expect("a ticket");
    assert_eq!(resumption.client, secret(1).public());
    // This client has another key now.
    let other = Resumption {
        client: secret(3).public(),
        ..resumption
    };
    let resumption = Some(other);
    pair.ends[0].keep_token(server, Token { resumption, ..token });
    pair.connect();
    assert_eq!(pair.log[0].kind(), HELLO_IK);
}

#[test]
fn a_client_that_is_served_no_more_is_refused_with_its_ticket_too() {
    let mut pair = warm("3wh-arq");
    // As the server was, but for the list.
    let mut server = seal(2);
    server.clients = Clients::Only([secret(5).public()].into());
    pair.serve("3wh-arq", server);
    pair.now = restp_base::time::Time::ZERO;
    pair.come_again("3wh-arq", 77);
    pair.open();
    pair.run_for(ms(100));
    assert_eq!(pair.log[0].kind(), HELLO_RESUMED);
    assert_eq!(pair.closed(0), Some(&CloseReason::Refused));
    assert_eq!(pair.ends[0].fault(address(2)), Some(Fault::Unwelcome));
    let stats = pair.ends[1].seal_stats();
    assert_eq!((stats.unwelcome, stats.stale_tickets, stats.resumed), (1, 0, 0));
    assert_eq!(pair.ends[1].sessions(), 0);
}

#[test]
fn a_ticket_does_not_hide_that_the_key_has_changed() {
    let mut pair = warm("3wh-arq");
    pair.serve("3wh-arq", seal(7));
    pair.ends[0].expect(address(2), secret(2).public());
    pair.open();
    pair.run_for(Duration::from_secs(2));
    assert_eq!(pair.log[0].kind(), HELLO_RESUMED);
    let expected = Fault::OtherKey {
        expected: secret(2).public(),
        told: secret(7).public(),
    };
    assert_eq!(pair.ends[0].fault(address(2)), Some(expected));
    assert_eq!(pair.accepted(), None);
}

/// The first request of a client that has been here before, and who waits for it.
fn asked_with_a_ticket() -> (Pair, Vec<u8>) {
    let mut pair = warm("3wh-arq");
    pair.rule = Box::new(|seen| {
        if seen.kind() == HELLO_RESUMED {
            Verdict::Drop
        } else {
            Verdict::Pass
        }
    });
    pair.open();
    pair.run_for(ms(1));
    let asked = pair.sent(HELLO_RESUMED).remove(0);
    (pair, asked)
}

#[test]
fn a_request_with_a_ticket_is_genuine_in_every_bit_and_to_its_end() {
    let (mut pair, asked) = asked_with_a_ticket();
    let before = pair.ends[1].seal_stats();
    let ticket = 25..85;
    // All but the kind, which makes another request of it, and the token, which proves an address and nothing else.
    let places = (1..9).chain(ticket.start..asked.len());
    for bit in places.flat_map(|byte| byte * 8..byte * 8 + 8) {
        let mut bytes = asked.clone();
        bytes[bit / 8] ^= 0x80 >> (bit % 8);
        pair.inject(1, path(1), &bytes);
    }
    for length in 0..asked.len() {
        pair.inject(1, path(1), &asked[..length]);
    }
    let stats = pair.ends[1].seal_stats();
    assert_eq!(stats.stale_tickets - before.stale_tickets, 8 * 60);
    assert!(stats.forged - before.forged > 8 * 60, "{stats:?}");
    assert_eq!((pair.ends[1].half_open(), stats.resumed), (0, 0));
    pair.inject(1, path(1), &asked);
    assert_eq!(
        (pair.ends[1].half_open(), pair.ends[1].seal_stats().resumed),
        (1, 1)
    );
}

#[test]
fn a_ticket_is_of_no_use_without_the_secret_that_came_with_it() {
    let (mut pair, asked) = asked_with_a_ticket();
    // The ticket of one client before the message of another, and before noise.
    let mut other = Pair::of("3wh-arq", &[], seal(13), seal(2));
    other.connect();
    let (_, token) = other.ends[0].tokens().next().expect("a token");
    let mut spliced = asked.clone();
    spliced[25..85].copy_from_slice(&token.resumption.expect("a ticket").ticket);
    for bytes in [spliced, [&asked[..85], &noise(200)].concat()] {
        let before = pair.ends[1].seal_stats().forged;
        pair.inject(1, path(1), &bytes);
        assert_eq!(pair.ends[1].seal_stats().forged, before + 1);
    }
    assert_eq!(
        (pair.ends[1].half_open(), pair.ends[1].seal_stats().resumed),
        (0, 0)
    );
}

#[test]
fn who_says_that_a_ticket_does_not_open_costs_a_round_trip() {
    let (mut pair, asked) = asked_with_a_ticket();
    // Who does not see the request does not guess its name.
    pair.inject(0, path(0), &[&[STALE][..], b"somebody"].concat());
    assert!(pair.sent(HELLO_IK).is_empty());
    let lie = [&[STALE][..], &asked[1..9]].concat();
    for _ in 0..3 {
        pair.inject(0, path(0), &lie);
    }
    pair.run_for(ms(40));
    assert_eq!(pair.sent(HELLO_IK).len(), 1, "and begins one handshake");
    let flow = pair.accepted().expect("as without a ticket");
    assert_eq!(pair.ends[1].flow_key(flow), Some(secret(1).public()));
    assert_eq!((pair.closed(0), pair.ends[0].fault(address(2))), (None, None));
    assert_eq!(pair.ends[0].seal_stats().refused_tickets, 1);
}

/// What was early in a request that somebody kept is not taken after it has come another way.
#[test]
fn early_data_of_a_request_that_was_given_up_is_not_taken_later() {
    let mut pair = warm("opt-arq");
    pair.rule = Box::new(|seen| {
        if matches!(seen.kind(), HELLO_RESUMED | EARLY) {
            Verdict::Drop // kept for later
        } else {
            Verdict::Pass
        }
    });
    let flow = pair.open();
    pair.write(0, flow, b"pay 100");
    pair.run_for(ms(1));
    let kept = [pair.sent(HELLO_RESUMED), pair.sent(EARLY)].concat();
    assert!(kept.len() >= 2);
    let lie = [&[STALE][..], &kept[0][1..9]].concat();
    pair.inject(0, path(0), &lie);
    pair.run_for(ms(100));
    let accepted = pair.accepted().expect("with the key");
    assert_eq!(pair.read_all(1, accepted), b"pay 100");
    pair.ends[1].abort(pair.now, accepted);
    pair.ends[1].release(pair.now, accepted);
    pair.run_for(Duration::from_secs(3600));
    pair.events = [Vec::new(), Vec::new()];
    for bytes in kept.iter().chain(&kept) {
        pair.inject(1, path(1), bytes);
        pair.run_for(ms(10));
    }
    let again = pair.accepted().map(|flow| pair.read_all(1, flow));
    assert!(again.is_none_or(|data| data.is_empty()), "delivered twice");
    assert_eq!(pair.ends[1].seal_stats().early, 0);
}

/// The same where it has been taken when its client hears that the ticket does not open, which is a lie: it does not come again.
#[test]
fn early_data_that_was_taken_does_not_come_again_in_the_place_of_the_request() {
    let mut pair = warm("opt-arq");
    pair.rule = Box::new(|seen| {
        if seen.kind() == ANSWER {
            Verdict::Drop
        } else {
            Verdict::Pass
        }
    });
    let flow = pair.open();
    pair.write(0, flow, b"pay 100");
    pair.run_for(ms(1));
    let lie = [&[STALE][..], &pair.sent(HELLO_RESUMED)[0][1..9]].concat();
    pair.inject(0, path(0), &lie);
    pair.write(0, flow, b" more"); // has not left early, and waits
    pair.run_for(ms(15));
    pair.rule = Box::new(|_| Verdict::Pass);
    pair.run_for(ms(5_000));
    assert!(!pair.sent(HELLO_IK).is_empty());
    let accepted = pair.accepted().expect("the first request");
    assert_eq!(pair.read_all(1, accepted), b"pay 100 more");
    let stats = pair.ends[1].stats(accepted).expect("a flow");
    assert_eq!((pair.ends[1].seal_stats().early, stats.duplicate_packets), (1, 0));
}
