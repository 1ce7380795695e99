//! Clients that come again with a ticket: what it saves, whom it speaks for, and how it ends.

mod common;

use common::*;
use restp_base::flow::CloseReason;
use restp_base::time::Duration;
use restp_seal::{Clients, Fault, Pass, Resumption};

#[test]
fn each_visit_brings_the_ticket_of_the_next() {
    let mut pair = Pair::of("3wh-arq", &[], seal(1), seal(2));
    pair.connect();
    let mut tickets = std::collections::BTreeSet::new();
    for visit in 1..5 {
        let (_, pass) = pair.ends[0].passes().next().expect("a pass");
        assert!(tickets.insert(pass.resumption.expect("a ticket").ticket));
        pair.come_again("3wh-arq", 100 + visit);
        let flows = pair.connect();
        assert_eq!(pair.log[0].kind(), HELLO_RESUMED);
        assert_eq!(
            pair.log[0].bytes[25..85],
            pass.resumption.expect("a ticket").ticket
        );
        assert!(pair.transfer(1, flows, &noise(20_000), Duration::from_secs(5)));
    }
    assert_eq!(pair.ends[1].seal_stats().resumed, 4);
}

/// Time until the server has what the client says first.
fn time_to_say(pair: &mut Pair) -> Duration {
    let begin = pair.now;
    let flow = pair.open();
    pair.write(0, flow, b"a question");
    let mut got = Vec::new();
    while got.is_empty() && pair.now.since(begin) < ms(500) {
        pair.run_for(ms(1));
        if let Some(accepted) = pair.accepted() {
            got = pair.read_all(1, accepted);
        }
    }
    assert_eq!(got, b"a question");
    pair.now.since(begin)
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
        assert!(time_to_say(&mut pair) <= ms(30 + 20));
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
    let (server, mut pass) = pair.ends[0].passes().next().expect("a pass");
    damage(pass.resumption.as_mut().expect("a ticket"));
    pair.ends[0].keep_pass(server, pass);
    pair
}

#[test]
fn a_ticket_whose_secret_is_lost_costs_a_round_trip_too() {
    let mut pair = damaged(|resumption| resumption.secret[0] ^= 1);
    assert!(time_to_say(&mut pair) <= ms(30 + 20));
    let stats = pair.ends[1].seal_stats();
    assert!(stats.forged > 0 && stats.resumed == 0, "{stats:?}");
    assert_eq!(pair.ends[0].seal_stats().refused_tickets, 1);
}

#[test]
fn a_ticket_speaks_for_the_key_it_was_given_to() {
    let mut pair = warm("3wh-arq");
    let (server, pass) = pair.ends[0].passes().next().expect("a pass");
    let resumption = pass.resumption.expect("a ticket");
    assert_eq!(resumption.client, secret(1).public());
    // This client has another key now.
    let other = Resumption {
        client: secret(3).public(),
        ..resumption
    };
    let resumption = Some(other);
    pair.ends[0].keep_pass(server, Pass { resumption, ..pass });
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
