//! Four ways (RFC 9260 §5): nothing is kept before the cookie comes back, every packet of it may be lost, and the rest is refused.

use super::network::*;
use super::restart::{an_init, offer};
use restp_base::flow::{CloseReason, Flow};
use restp_base::machine::{Datagram, Event, Input, Machine};
use restp_base::time::Duration;
use restp_rivals::sctp::chunk::{Cause, Chunk, Sack};
use restp_rivals::sctp::wire::Packet;

#[test]
fn four_packets_open_an_association_and_the_server_keeps_nothing_before_the_third() {
    let mut net = Net::new(sctp(&[]), &[wide(10)]);
    let flow = net.open();
    net.run_for(ms(15));
    assert_eq!(net.hosts[SERVER].held(), 0, "INIT is answered and forgotten");
    net.run_for(ms(100));
    let sent: Vec<_> = net.log.iter().map(Seen::chunk).collect();
    assert!(
        matches!(
            sent[..],
            [
                Chunk::Init(_),
                Chunk::InitAck(_),
                Chunk::CookieEcho(_),
                Chunk::CookieAck
            ]
        ),
        "{sent:?}"
    );
    assert_eq!(net.log[0].packet.header.tag, 0);
    assert_eq!(net.events[OPENER], [Event::Connected(flow)]);
    assert!(net.accepted().is_some());
    let stats = net.stats(flow);
    assert_eq!(stats.handshake, Some(ms(40)));
    assert_eq!(stats.srtt, Some(ms(20)), "of the cookie");
}

#[test]
fn every_packet_of_the_set_up_may_be_lost() {
    for lost in 0..4 {
        let mut net = Net::new(sctp(&[]), &[wide(10)]);
        let mut count = 0;
        net.rule = Box::new(move |_| {
            count += 1;
            (count != lost + 1).then_some(Duration::ZERO)
        });
        let sent = messages(20, 1400);
        net.transfer(&sent, Duration::from_secs(10));
        net.run_for(ms(50));
        assert_eq!(net.read, sent, "without packet {lost}");
        let ended = [OPENER, SERVER].map(|host| net.closed(host).cloned());
        assert_eq!(ended, [Some(CloseReason::Finished), Some(CloseReason::Finished)]);
        assert_eq!(
            net.events[SERVER]
                .iter()
                .filter(|event| matches!(event, Event::Accepted(_)))
                .count(),
            1
        );
    }
}

#[test]
fn a_port_that_nobody_serves_refuses_at_once() {
    let mut net = Net::new(sctp(&[]), &[wide(10)]);
    let flow = net.hosts[OPENER]
        .open(net.now, Net::path(0), 10)
        .expect("a free port");
    net.run_for(ms(100));
    let last = net.events[OPENER].last();
    assert_eq!(last, Some(&Event::Closed(flow, CloseReason::Refused)));
}

#[test]
fn who_never_answers_is_given_up() {
    let mut net = Net::new(sctp(&[("handshake-attempts", "3")]), &[wide(10)]);
    net.rule = Box::new(|_| None);
    net.open();
    net.run_for(Duration::from_secs(6));
    assert_eq!(net.closed(OPENER), None);
    net.run_for(Duration::from_secs(2));
    assert_eq!(
        net.closed(OPENER),
        Some(&CloseReason::TimedOut(Duration::from_secs(7)))
    );
    assert_eq!(net.log.len(), 3);
}

/// A copy of the packet with `change` made to its cookie.
fn echo(net: &Net, change: impl Fn(&mut Vec<u8>)) -> Datagram {
    let echo = net
        .log
        .iter()
        .find(|seen| matches!(seen.chunk(), Chunk::CookieEcho(_)));
    let mut packet = echo.expect("it was sent").packet.clone();
    if let [Chunk::CookieEcho(cookie)] = &mut packet.chunks[..] {
        let mut bytes = cookie.to_vec();
        change(&mut bytes);
        *cookie = bytes.into();
    }
    let mut datagram = Datagram::empty();
    packet.emit(&mut datagram);
    datagram.path = Net::path(0).reversed();
    datagram
}

#[test]
fn only_a_fresh_cookie_of_its_own_opens_an_association_at_a_server() {
    let mut net = Net::new(sctp(&[]), &[wide(10)]);
    net.rule = Box::new(|seen| (!matches!(seen.chunk(), Chunk::CookieEcho(_))).then_some(Duration::ZERO));
    net.open();
    net.run_for(ms(50));
    let mut forged = echo(&net, |cookie| cookie[9] ^= 1);
    net.hosts[SERVER].handle(net.now, Input::Datagram(&mut forged));
    assert_eq!(
        (net.hosts[SERVER].held(), net.hosts[SERVER].dropped_packets()),
        (0, 1)
    );
    let mut elsewhere = echo(&net, |_| {});
    elsewhere.path.remote = ([10, 0, 0, 7], 0).into();
    net.hosts[SERVER].handle(net.now, Input::Datagram(&mut elsewhere));
    assert_eq!(net.hosts[SERVER].held(), 0, "it was made for another address");
    let mut late = echo(&net, |_| {});
    net.hosts[SERVER].handle(net.now + Duration::from_secs(61), Input::Datagram(&mut late));
    assert_eq!(net.hosts[SERVER].held(), 0);
    for _ in 0..3 {
        let mut fresh = echo(&net, |_| {});
        net.hosts[SERVER].handle(net.now, Input::Datagram(&mut fresh));
        assert_eq!(net.hosts[SERVER].held(), 1, "once, however often it comes");
    }
}

#[test]
fn packets_of_no_association_are_answered_as_the_standard_says() {
    let mut net = Net::new(sctp(&[]), &[wide(10)]);
    let flow = net.transfer(&messages(1, 100), Duration::from_secs(1));
    net.hosts[OPENER].release(net.now, flow);
    net.run_for(ms(100));
    let answer_to_all = |net: &mut Net, chunks: &[Chunk]| {
        let mut packet = net.log.last().expect("sent").packet.clone();
        packet.chunks = chunks.into();
        packet.header.tag = 12_345;
        let mut datagram = Datagram::empty();
        packet.emit(&mut datagram);
        datagram.path = Net::path(0).reversed();
        net.hosts[SERVER].handle(net.now, Input::Datagram(&mut datagram));
        let mut out = Datagram::empty();
        let answered = net.hosts[SERVER].poll_transmit(net.now, &mut out);
        answered.then(|| Packet::parse(&mut out).expect("a packet"))
    };
    let answer_to = |net: &mut Net, chunk: Chunk| answer_to_all(net, &[chunk]);
    let aborts = answer_to(&mut net, Chunk::CookieAck);
    assert_eq!(aborts, None, "never answered");
    let error = |cause| Chunk::Error(smallvec::smallvec![cause]);
    assert_eq!(answer_to(&mut net, error(Cause::stale_cookie(1))), None);
    let heartbeat = || Chunk::Heartbeat(noise(8).into());
    for chunk in [heartbeat(), error(Cause::invalid_stream(1))] {
        let aborts = answer_to(&mut net, chunk).expect("answered");
        assert_eq!(aborts.header.tag, 12_345);
        assert_eq!(aborts.chunks[..], [abort(true)]);
    }
    let end = [Chunk::ShutdownAck, heartbeat()];
    for chunks in [&end[..1], &end[..], &[heartbeat(), Chunk::ShutdownAck]] {
        let complete = answer_to_all(&mut net, chunks).expect("answered");
        assert_eq!(
            complete.chunks[..],
            [Chunk::ShutdownComplete { reflects_tag: true }]
        );
    }
    assert_eq!(answer_to(&mut net, abort(false)), None);
    assert_eq!(answer_to_all(&mut net, &[heartbeat(), abort(true)]), None);
}

fn abort(reflects_tag: bool) -> Chunk {
    Chunk::Abort {
        reflects_tag,
        causes: Default::default(),
    }
}

/// RFC 9260 §8.5.1 (A): who has no tag yet could be refused in the name of its server by whoever guesses addresses and ports, or told
/// of that by the server itself.
#[test]
fn nothing_but_an_init_has_the_tag_0() {
    let mut net = Net::new(sctp(&[]), &[wide(10)]);
    let flow = net.open();
    net.run_for(ms(5));
    let init = net.log[0].packet.clone();
    let mut answer = init.clone();
    std::mem::swap(
        &mut answer.header.source_port,
        &mut answer.header.destination_port,
    );
    let complete = |reflects_tag| Chunk::ShutdownComplete { reflects_tag };
    for chunk in [
        abort(true),
        abort(false),
        complete(true),
        complete(false),
        Chunk::ShutdownAck,
        Chunk::CookieAck,
        Chunk::CookieEcho(noise(80).into()),
        Chunk::Heartbeat(noise(8).into()),
    ] {
        for (host, like) in [(OPENER, &answer), (SERVER, &init)] {
            net.hears(host, like, [chunk.clone()]);
            assert_eq!(net.says(host), [], "{chunk:?}");
        }
    }
    net.run_for(ms(100));
    assert_eq!(net.events[OPENER], [Event::Connected(flow)]);
}

/// RFC 9260 §8.5.1 (B, C): by itself, between the addresses of the association, and with the tag that its receiver writes.
#[test]
fn a_packet_that_reflects_a_tag_has_the_one_of_the_peer() {
    let (mut net, own) = standing();
    let mut peers = own.clone();
    let Chunk::Init(init) = net.log[0].chunk() else {
        panic!("INIT is first")
    };
    peers.header.tag = init.tag;
    let heartbeat = Chunk::Heartbeat(noise(8).into());
    net.hears(SERVER, &own, [abort(true)]);
    net.hears(SERVER, &own, [heartbeat.clone(), abort(true)]);
    net.hears(SERVER, &peers, [heartbeat, abort(true)]);
    net.hears(SERVER, &peers, [abort(false)]);
    let mut elsewhere = Net::path(0).reversed();
    elsewhere.remote = ([10, 0, 0, 7], 0).into();
    net.hears_by(SERVER, elsewhere, &peers, [abort(true)]);
    assert_eq!(net.says(SERVER), []);
    net.run_for(ms(1));
    assert_eq!(net.closed(SERVER), None);
    net.hears(SERVER, &peers, [abort(true)]);
    net.run_for(ms(1));
    assert_eq!(net.closed(SERVER), Some(&CloseReason::Reset));
}

/// RFC 9260 §8.5, §8.4: the tag alone does not do, and what has ended is none from then on.
#[test]
fn a_packet_is_of_an_association_by_tag_and_ports_while_there_is_one() {
    let (mut net, own) = standing();
    let heartbeat = || Chunk::Heartbeat(noise(8).into());
    let mut other = own.clone();
    other.header.source_port ^= 1;
    for (like, chunks) in [
        (&other, vec![heartbeat()]),
        (&own, vec![abort(false), heartbeat()]),
    ] {
        for chunk in chunks {
            net.hears(SERVER, like, [chunk]);
        }
        let said = net.says(SERVER);
        let [answer] = &said[..] else { panic!("{said:?}") };
        assert_eq!(answer.chunks[..], [abort(true)]);
        assert_eq!(answer.header.destination_port, like.header.source_port);
    }
}

/// RFC 9260 §5.1.5 (2): it was made for one tag and one pair of ports.
#[test]
fn a_cookie_in_a_packet_of_another_opens_nothing() {
    let mut net = Net::new(sctp(&[]), &[wide(10)]);
    net.rule = Box::new(|seen| (!matches!(seen.chunk(), Chunk::CookieEcho(_))).then_some(Duration::ZERO));
    net.open();
    net.run_for(ms(50));
    let echo = net.seen(|chunk| matches!(chunk, Chunk::CookieEcho(_)));
    let (mut tag, mut port) = (echo.clone(), echo.clone());
    tag.header.tag ^= 1;
    port.header.source_port ^= 1;
    for wrong in [tag, port] {
        net.hears(SERVER, &wrong, wrong.chunks.clone());
        assert_eq!(net.says(SERVER), []);
        assert_eq!(net.hosts[SERVER].held(), 0);
    }
    // Of who serves and opens, a cookie for the port that it opened from is none for the port that it serves.
    let path = Net::path(0).reversed();
    let flow = net.hosts[SERVER].open(net.now, path, 7).expect("a free port");
    let init = net.says(SERVER).remove(0);
    let mut like = init.clone();
    std::mem::swap(&mut like.header.source_port, &mut like.header.destination_port);
    net.hears(SERVER, &like, [Chunk::Init(an_init(77))]);
    let answer = offer(&net.says(SERVER)[0]);
    let cookie = Chunk::CookieEcho(answer.cookie.expect("INIT ACK has one"));
    like.header.tag = answer.tag;
    let mut served = like.clone();
    served.header.destination_port = PORT;
    net.hears(SERVER, &served, [cookie.clone()]);
    assert_eq!(net.says(SERVER), []);
    net.hears(SERVER, &like, [cookie]);
    assert_eq!(net.says(SERVER)[0].chunks[..], [Chunk::CookieAck]);
    net.run_for(ms(1));
    assert_eq!(net.events[SERVER], [Event::Connected(flow)]);
}

/// RFC 9260 §8.5: nor by an address that its peer did not name, whoever knows the tag.
#[test]
fn a_packet_from_an_address_that_the_peer_does_not_have_is_dropped() {
    let (mut net, own) = standing();
    let dropped = net.hosts[SERVER].dropped_packets();
    let mut elsewhere = Net::path(0).reversed();
    elsewhere.remote = ([10, 0, 0, 7], 0).into();
    net.hears_by(SERVER, elsewhere, &own, [Chunk::Heartbeat(noise(8).into())]);
    net.hears_by(SERVER, elsewhere, &own, [abort(false)]);
    assert_eq!(net.says(SERVER), []);
    net.run_for(ms(1));
    assert_eq!(net.closed(SERVER), None);
    assert_eq!(net.hosts[SERVER].dropped_packets(), dropped + 2);
}

/// RFC 9260 §8.5.1, §6: before the set-up is complete there is nothing to say to it but what belongs there.
#[test]
fn who_opens_takes_nothing_but_the_set_up() {
    let mut net = Net::new(sctp(&[]), &[wide(10)]);
    net.rule = Box::new(|seen| (seen.from == OPENER).then_some(Duration::ZERO));
    let flow = net.open();
    net.run_for(ms(50));
    let like = net.seen(|chunk| matches!(chunk, Chunk::InitAck(_)));
    let cumulative = FIRST_TSN;
    let sack = Sack {
        cumulative,
        ..Sack::default()
    };
    for chunk in [
        Chunk::Heartbeat(noise(8).into()),
        Chunk::Sack(sack),
        Chunk::Shutdown { cumulative },
        Chunk::ShutdownAck,
    ] {
        net.hears(OPENER, &like, [chunk]);
    }
    assert_eq!(net.says(OPENER), []);
    assert_eq!(net.stats(flow).rejected_packets, 4);
    assert_eq!(net.closed(OPENER), None);
}
