//! Stories of cookies (ResTP §3.5.5; OP-30, OP-34): how a client comes by one, and what they must withstand.

use crate::common::web::*;
use crate::common::*;
use bytes::Bytes;
use restp_base::flow::{CloseReason, Flow};
use restp_base::machine::Event;
use restp_base::time::Duration;
use restp_proto::wire::Flags;
use restp_proto::{Acceptance, Cookie};
use std::net::SocketAddr;

const SYN: Flags = Flags::SYN;

fn syn_ack() -> Flags {
    Flags::SYN | Flags::ACK
}

#[test]
fn a_client_without_a_cookie_asks_once_and_saves_a_round_trip_ever_after() {
    let mut pair = Pair::new("opt-arq", &[]);
    let web = Web::open(pair, b"request", b"response").run(200);
    assert_eq!(
        web.answered_at(),
        2 * ROUND_TRIP,
        "an ordinary three-way set-up (OP-30)"
    );
    let packets: Vec<_> = web.pair.log.iter().take(3).collect();
    assert_eq!(packets[0].header.flags, SYN);
    assert!(packets[0].header.cookie_exchange && packets[0].header.cookie().is_none());
    assert!(packets[1].header.cookie_exchange && packets[1].header.cookie().is_some());
    assert_eq!(packets[1].header.flags, syn_ack());
    assert_eq!(packets[2].header.flags, Flags::ACK);
    assert!(
        web.pair
            .log
            .iter()
            .skip(2)
            .all(|seen| !seen.header.cookie_exchange)
    );

    pair = web.pair;
    pair.events = [Vec::new(), Vec::new()];
    let start = pair.now;
    let web = Web::open(pair, b"again", b"at once").run(200);
    assert_eq!(web.first_at[0].unwrap().since(start), ms(ROUND_TRIP));
    assert_eq!(web.got[0], b"at once");
}

#[test]
fn a_bad_cookie_costs_no_more_than_an_ordinary_set_up_and_brings_a_fresh_one() {
    let wrong = [
        Cookie::new(&[0x55; 8]).unwrap(),
        Cookie::new(&[0x55; 4]).unwrap(),
        Cookie::new(&[0x55; 16]).unwrap(),
    ];
    for cookie in wrong {
        let mut pair = Pair::new("opt-arq", &[]);
        keep(&mut pair, cookie);
        let request = noise(3 * 1400);
        let web = Web::open(pair, &request, b"response").run(300);
        assert_eq!(
            web.answered_at(),
            2 * ROUND_TRIP,
            "resent as soon as the SYN-ACK is there"
        );
        let answer = web.sent(1).next().unwrap();
        let syn = web.sent(0).next().unwrap();
        assert!(answer.is(syn_ack()) && answer.header.cookie_exchange);
        assert_eq!(
            answer.header.acknowledgement,
            Some(syn.next_number()),
            "the SYN only (OP-30)"
        );
        assert_eq!(web.sent(1).filter(|seen| seen.header.cookie_exchange).count(), 1);
        assert_eq!(web.pair.ends[1].endpoint_stats().bad_cookies, 1);
        let stats = web.pair.ends[0].stats(web.flow).unwrap();
        assert_eq!(
            (stats.timeouts, stats.lost_packets),
            (0, 0),
            "no loss, no congestion"
        );
        let fresh = web.pair.ends[0].cookies(web.pair.now).next().unwrap();
        assert_ne!(fresh.cookie, cookie);

        let mut pair = web.pair;
        pair.events = [Vec::new(), Vec::new()];
        let start = pair.now;
        let web = Web::open(pair, b"again", b"at once").run(100);
        assert_eq!(web.first_at[0].unwrap().since(start), ms(ROUND_TRIP));
    }
}

#[test]
fn a_bad_cookie_on_a_request_whose_syn_is_lost_is_answered_too() {
    for connection in ["opportunistic", "fast-open"] {
        let mut pair = Pair::new("opt-arq", &[("connection", connection)]);
        keep(&mut pair, Cookie::new(&[0x55; 8]).unwrap());
        pair.rule = lose([if connection == "opportunistic" { &[1] } else { &[] }, &[]]);
        let web = Web::open(pair, b"request", b"response").run(300);
        assert_eq!(web.answered_at(), 2 * ROUND_TRIP);
        assert_eq!(web.pair.ends[1].endpoint_stats().early_discarded, 1);
    }
}

#[test]
fn a_cookie_dies_with_the_second_rotation_of_the_secret() {
    let hours = |n: u64| Duration::from_secs(n * 3600);
    for (age, early) in [(11, true), (23, true), (24, false)] {
        let config = config("opt-arq", &[]);
        let mut pair = Pair::of(config.clone(), config.clone().listen(PORT, Acceptance::Any));
        let cookie = cookie_of(&config, &pair);
        pair.run_for(hours(age));
        keep(&mut pair, cookie);
        let start = pair.now;
        let web = Web::open(pair, b"request", b"response").run(300);
        let trips = if early { 1 } else { 2 };
        assert_eq!(
            web.first_at[0].unwrap().since(start),
            ms(trips * ROUND_TRIP),
            "{age} h"
        );
    }
}

#[test]
fn a_client_that_breaks_off_after_early_data_is_believed_whatever_of_it_arrived() {
    for lost in 0..4 {
        let mut pair = warm("opt-arq", &[]);
        let mut data = 0;
        pair.rule = Box::new(move |seen| {
            data += usize::from(seen.is_data());
            match seen.from == 1 || seen.is_data() && data == lost {
                true => Verdict::Drop,
                false => Verdict::Pass,
            }
        });
        let mut web = Web::open(pair, &[7; 4000], b"");
        web.pair.run_for(ms(100));
        assert_eq!(
            web.pair.ends[1].connections(),
            1,
            "datagram {lost} of the data lost"
        );
        web.pair.ends[0].abort(web.pair.now, web.flow);
        web.pair.run_for(ms(500));
        assert_eq!(
            web.pair.closed(1),
            Some(&CloseReason::Reset),
            "datagram {lost} of the data lost"
        );
    }
}

#[test]
fn a_first_flight_is_delivered_once_even_after_its_connection_is_gone() {
    let web = Web::open(warm("opt-arq", &[]), b"pay once", b"paid").run(100);
    let flight: Vec<_> = web.sent(0).take(2).map(Seen::bytes).collect();
    let mut pair = web.pair;
    let accepted = pair.accepted().unwrap();
    pair.inject(1, &flight[1]);
    pair.inject(1, &flight[0]);
    assert_eq!(
        pair.read_all(1, accepted),
        Vec::<Bytes>::new(),
        "while the connection lives"
    );

    pair.ends[0].abort(pair.now, web.flow);
    pair.ends[0].release(pair.now, web.flow);
    pair.ends[1].release(pair.now, accepted);
    pair.run_for(ms(500));
    assert_eq!(pair.ends[1].connections(), 0);
    pair.events = [Vec::new(), Vec::new()];
    pair.rule = silent(1);
    for packet in [&flight[1], &flight[0], &flight[1]] {
        pair.inject(1, packet);
    }
    pair.run_for(ms(500));
    assert_eq!(pair.events[1], [], "after it (OP-34)");
    assert_eq!(pair.ends[1].endpoint_stats().replayed, 1);
    assert_eq!(pair.ends[1].endpoint_stats().early_discarded, 1);
}

#[test]
fn a_service_that_has_not_opted_in_takes_no_early_data() {
    let client = config("opt-arq", &[]);
    let server = config("3wh-arq", &[]).listen(PORT, Acceptance::Any);
    let mut pair = Pair::of(client.clone(), server.clone());
    let cookie = cookie_of(&server, &pair);
    keep(&mut pair, cookie);
    let web = Web::open(pair, b"request", b"response").run(300);
    assert_eq!(web.answered_at(), 2 * ROUND_TRIP);

    let web = Web::open(Pair::of(client, server), b"request", b"response").run(300);
    assert_eq!(web.answered_at(), 2 * ROUND_TRIP);
    assert_eq!(
        web.pair.ends[0].cookies(web.pair.now).count(),
        0,
        "nothing to come back with"
    );
}

/// A flood of valid first flights from one address, each from another port.
#[test]
fn a_flood_of_early_data_ends_at_the_limit_and_leaves_room_for_ordinary_set_ups() {
    let web = Web::open(warm("opt-arq", &[]), b"request", b"response").run(100);
    let first = web.sent(0).nth(1).unwrap().clone();
    let config = config("opt-arq", &[]);
    let mut server = config.clone().listen(PORT, Acceptance::Any);
    (server.max_early, server.max_half_open) = (8, 4);
    let mut pair = Pair::of(config, server);
    pair.rule = silent(1);
    for port in 0..100 {
        let mut packet = first.clone();
        packet.header.source = 1000 + port;
        pair.inject(1, &packet.bytes());
    }
    let stats = pair.ends[1].endpoint_stats();
    assert_eq!(pair.ends[1].connections(), 12);
    assert_eq!((stats.early_discarded, stats.overflowed), (92, 88));
    let accepted = pair.events[1]
        .iter()
        .filter(|event| matches!(event, Event::Accepted(_)));
    assert_eq!(accepted.count(), 8);
}

/// Whoever asked first took all the places.
#[test]
fn one_source_leaves_places_to_others() {
    let mut pair = Pair::new("3wh-arq", &[]);
    pair.open();
    pair.run_for(ms(1));
    let first = pair.log[0].clone();
    for (max_connections, max_half_open) in [(1_000, 64), (64, 1_000)] {
        let config = config("3wh-arq", &[]);
        let mut server = config.clone().listen(PORT, Acceptance::Any);
        (server.max_connections, server.max_half_open) = (max_connections, max_half_open);
        let mut pair = Pair::of(config, server);
        pair.rule = Box::new(|_| Verdict::Drop);
        let ask = |pair: &mut Pair, host: u8, port: u16| {
            let mut packet = first.clone();
            packet.header.source = port;
            let mut path = pair.path(1);
            path.remote = SocketAddr::from(([10, 9, 0, host], 4000));
            pair.inject_on(1, path, &packet.bytes());
        };
        (0..100).for_each(|port| ask(&mut pair, 1, port));
        assert_eq!(pair.ends[1].connections(), 32, "half of all");
        (0..100).for_each(|port| ask(&mut pair, 2, port));
        assert_eq!(pair.ends[1].connections(), 36, "a sixteenth, or four");
        (3..=250).for_each(|host| ask(&mut pair, host, 1));
        assert_eq!(pair.ends[1].connections(), 64);
        // All of them are given back.
        pair.run_for(Duration::from_secs(400));
        assert_eq!(pair.ends[1].connections(), 0);
        (0..100).for_each(|port| ask(&mut pair, 1, port));
        assert_eq!(pair.ends[1].connections(), 32);
    }
}

#[test]
fn a_client_that_goes_on_without_an_answer_fills_ten_segments_and_no_more() {
    let mut pair = warm("opt-arq", &[("ordering", "ordered")]);
    pair.rule = silent(1);
    let flow = pair.open();
    pair.write(0, flow, b"first");
    pair.run_for(ms(15));
    let accepted = pair.accepted().unwrap();
    let template = pair.log.iter().find(|seen| seen.is_data()).unwrap().clone();
    for ahead in 1..1000_u32 {
        let mut packet = template.clone();
        packet.header.flags = Flags::NONE;
        packet.header.tail = restp_proto::wire::Tail::None;
        packet.header.sequence = packet.header.sequence.map(|n| n.wrapping_add(ahead));
        packet.payload = Bytes::from(vec![7; 1400]);
        pair.inject(1, &packet.bytes());
    }
    let stats = pair.ends[1].stats(accepted).unwrap();
    assert!(stats.memory_bytes < 40_000, "{}", stats.memory_bytes);
    assert!(stats.rejected_packets > 900);
}

#[test]
fn an_answer_nobody_asked_for_is_refused_and_its_cookie_forgotten() {
    let mut pair = Pair::new("opt-arq", &[]);
    let web = Web::open(Pair::new("opt-arq", &[]), b"request", b"response").run(100);
    let response = web.sent(1).next().unwrap();
    assert!(response.header.cookie_exchange);
    pair.inject(0, &response.bytes());
    assert_eq!(pair.ends[0].cookies(pair.now).count(), 0);
    assert_eq!(
        pair.log.last().map(|seen| seen.is(Flags::RST | Flags::ACK)),
        Some(true)
    );

    // Nor does one that answers another SYN of the same ports count.
    pair.rule = silent(0);
    pair.open();
    pair.run_for(ms(1));
    let mut forged = response.clone();
    forged.header.acknowledgement = forged.header.acknowledgement.map(|n| n.wrapping_add(5));
    pair.inject(0, &forged.bytes());
    assert_eq!(pair.ends[0].cookies(pair.now).count(), 0);
}
