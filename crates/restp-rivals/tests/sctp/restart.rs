//! Set-ups that meet an association (RFC 9260 §5.2): a peer that has started again, both ends at once, packets that come twice. Every
//! row of the table of §5.2.4, and those that it does not have.

use super::network::*;
use restp_base::flow::{CloseReason, Flow, FlowId};
use restp_base::machine::{Event, Machine};
use restp_base::time::Duration;
use restp_rivals::sctp::chunk::{Cause, Chunk, Init};
use restp_rivals::sctp::wire::Packet;
use restp_rivals::sctp::{Sctp, SctpConfig};
use smallvec::smallvec;
use std::net::IpAddr;

pub fn an_init(tag: u32) -> Init {
    Init {
        tag,
        window: 50_000,
        streams_out: 1,
        streams_in: 1,
        first_tsn: FIRST_TSN,
        ..Init::default()
    }
}

/// `host` hears INIT with the ports of `like`; what it answers.
fn asks(net: &mut Net, host: usize, like: &Packet, init: Init) -> Packet {
    let mut packet = like.clone();
    packet.header.tag = 0;
    net.hears(host, &packet, [Chunk::Init(init)]);
    let mut said = net.says(host);
    assert_eq!(said.len(), 1, "{said:?}");
    said.remove(0)
}

/// The INIT ACK in a packet.
pub fn offer(answer: &Packet) -> Init {
    match &answer.chunks[..] {
        [Chunk::InitAck(init)] => init.clone(),
        other => panic!("{other:?}"),
    }
}

/// `host` hears the cookie of an INIT ACK.
fn echoes(net: &mut Net, host: usize, like: &Packet, answer: &Packet) {
    let offer = offer(answer);
    let mut packet = like.clone();
    packet.header.tag = offer.tag;
    let cookie = offer.cookie.expect("INIT ACK has one");
    net.hears(host, &packet, [Chunk::CookieEcho(cookie)]);
}

fn flows(net: &Net, host: usize) -> Vec<FlowId> {
    let accepted = net.events[host].iter().filter_map(|event| match event {
        Event::Accepted(flow) => Some(*flow),
        _ => None,
    });
    accepted.collect()
}

fn ended(net: &Net, host: usize, flow: FlowId) -> Option<CloseReason> {
    net.events[host].iter().find_map(|event| match event {
        Event::Closed(of, reason) if *of == flow => Some(reason.clone()),
        _ => None,
    })
}

/// The opener's host starts again and knows nothing of what it did before.
fn starts_again(net: &mut Net, seed: u64) {
    net.hosts[OPENER] = Sctp::new(SctpConfig {
        seed,
        first_tsn: Some(FIRST_TSN),
        ..SctpConfig::new(sctp(&[]))
    });
}

/// Row A.
#[test]
fn a_peer_that_starts_again_ends_its_association_and_opens_another() {
    let (mut net, _) = standing();
    let before = net.accepted().expect("accepted");
    for _ in 0..5 {
        net.hosts[SERVER]
            .write(net.now, before, noise(1000).into())
            .expect("room");
    }
    starts_again(&mut net, 5);
    let sent = messages(20, 1400);
    net.transfer(&sent, Duration::from_secs(5));
    net.run_for(ms(100));
    assert_eq!(net.read, sent);
    let accepted = flows(&net, SERVER);
    assert_eq!(accepted.len(), 2, "{:?}", net.events[SERVER]);
    assert_eq!(ended(&net, SERVER, before), Some(CloseReason::Reset));
    assert_eq!(ended(&net, SERVER, accepted[1]), Some(CloseReason::Finished));
    for flow in accepted {
        net.hosts[SERVER].release(net.now, flow);
    }
    net.run_for(ms(10));
    assert_eq!(net.hosts[SERVER].held(), 0);
}

/// An INIT shows nothing, as anybody may send it in the name of another.
#[test]
fn an_init_beside_an_association_changes_nothing_until_its_cookie_comes_back() {
    let (mut net, packet) = standing();
    let before = net.accepted().expect("accepted");
    let mut offers = Vec::new();
    for tag in 1..200 {
        offers.push(offer(&asks(&mut net, SERVER, &packet, an_init(tag))));
    }
    assert!(
        offers.windows(2).all(|pair| pair[0].tag != pair[1].tag),
        "new tags"
    );
    assert!(offers.iter().all(|offer| offer.tag != packet.header.tag));
    assert_eq!(net.hosts[SERVER].held(), 1);
    let sent = messages(10, 1400);
    let flow = FlowId(0);
    for message in &sent {
        net.hosts[OPENER]
            .write(net.now, flow, message.clone())
            .expect("room");
    }
    net.run_for(ms(500));
    assert_eq!(net.read, sent);
    assert_eq!(ended(&net, SERVER, before), None);
}

/// Cookies of earlier set-ups mean nothing to the association that followed: its tags are others (no row of the table).
#[test]
fn earlier_cookies_neither_end_an_association_nor_open_another() {
    let (mut net, packet) = standing();
    let first = net.seen(|chunk| matches!(chunk, Chunk::CookieEcho(_)));
    let unused = asks(&mut net, SERVER, &packet, an_init(77));
    let restart = asks(&mut net, SERVER, &packet, an_init(78));
    echoes(&mut net, SERVER, &packet, &restart);
    net.run_for(ms(5));
    let accepted = flows(&net, SERVER);
    assert_eq!(accepted.len(), 2);
    let dropped = net.hosts[SERVER].dropped_packets();
    for _ in 0..3 {
        net.hears(SERVER, &first, first.chunks.clone());
        echoes(&mut net, SERVER, &packet, &unused);
        assert_eq!(net.says(SERVER), []);
    }
    assert_eq!(net.hosts[SERVER].dropped_packets(), dropped + 6);
    // Row D: its own one comes again, and is acknowledged again.
    echoes(&mut net, SERVER, &packet, &restart);
    let said = net.says(SERVER);
    assert_eq!(said[0].chunks[..], [Chunk::CookieAck]);
    assert_eq!(said[0].header.tag, 78);
    assert_eq!(flows(&net, SERVER), accepted);
    assert_eq!(ended(&net, SERVER, accepted[1]), None);
}

/// Row C: an INIT that came twice made two cookies. The second one is late.
#[test]
fn the_second_cookie_of_one_init_opens_nothing_more() {
    let mut net = Net::new(sctp(&[]), &[wide(10)]);
    net.open();
    net.run_for(ms(5));
    let init = net.log[0].packet.clone();
    let mut cookies = Vec::new();
    for _ in 0..2 {
        net.hears(SERVER, &init, init.chunks.clone());
        cookies.extend(net.says(SERVER));
    }
    assert_ne!(offer(&cookies[0]).tag, offer(&cookies[1]).tag);
    echoes(&mut net, SERVER, &init, &cookies[0]);
    assert_eq!(net.says(SERVER)[0].chunks[..], [Chunk::CookieAck]);
    echoes(&mut net, SERVER, &init, &cookies[1]);
    assert_eq!(net.says(SERVER), []);
    assert_eq!(
        (net.hosts[SERVER].held(), net.hosts[SERVER].dropped_packets()),
        (1, 1)
    );
}

/// The opener's INIT is out, and nothing has come back.
fn opening() -> (Net, FlowId, Packet) {
    let mut net = Net::new(sctp(&[]), &[wide(10)]);
    net.rule = Box::new(|seen| (seen.from == OPENER).then_some(Duration::ZERO));
    let flow = net.open();
    net.run_for(ms(50));
    let like = net.seen(|chunk| matches!(chunk, Chunk::InitAck(_)));
    (net, flow, like)
}

/// Row B with a peer whose tag is not known yet.
#[test]
fn two_ends_that_open_at_once_have_one_association() {
    let (mut net, flow, like) = opening();
    let init = net.log[0].packet.clone();
    let answer = asks(&mut net, OPENER, &like, an_init(77));
    let Chunk::Init(own) = &init.chunks[0] else {
        panic!("{init:?}")
    };
    let offered = offer(&answer);
    assert_eq!(
        (offered.tag, offered.first_tsn),
        (own.tag, own.first_tsn),
        "§5.2.1"
    );
    assert_eq!(answer.header.tag, 77);
    assert_eq!(net.events[OPENER], [], "nothing has changed");
    echoes(&mut net, OPENER, &like, &answer);
    let said = net.says(OPENER);
    assert_eq!(
        (said[0].header.tag, &said[0].chunks[..]),
        (77, &[Chunk::CookieAck][..])
    );
    net.run_for(ms(1));
    assert_eq!(net.events[OPENER], [Event::Connected(flow)]);
    net.hosts[OPENER]
        .write(net.now, flow, noise(10).into())
        .expect("open");
    let said = net.says(OPENER);
    assert!(matches!(said[0].chunks[..], [Chunk::Data(_)]) && said[0].header.tag == 77);
}

/// Rows B and D while the opener's own cookie is on its way: the peer has a new tag, or the one that it had.
#[test]
fn a_cookie_that_crosses_ours_opens_the_association_with_the_tag_that_it_names() {
    for is_same in [false, true] {
        let (mut net, flow, like) = opening();
        net.hears(OPENER, &like, like.chunks.clone());
        let echo = net.says(OPENER);
        assert!(matches!(echo[0].chunks[..], [Chunk::CookieEcho(_)]));
        let tag = if is_same { offer(&like).tag } else { 77 };
        let answer = asks(&mut net, OPENER, &like, an_init(tag));
        assert_eq!(offer(&answer).tag, like.header.tag, "its own, unchanged");
        echoes(&mut net, OPENER, &like, &answer);
        let said = net.says(OPENER);
        assert_eq!(
            (said[0].header.tag, &said[0].chunks[..]),
            (tag, &[Chunk::CookieAck][..])
        );
        net.run_for(ms(1));
        assert_eq!(net.events[OPENER], [Event::Connected(flow)]);
    }
}

/// RFC 9260 §5.2.2: or whoever guesses addresses and ports could have the rest of an association.
#[test]
fn whoever_opens_again_may_not_name_addresses_that_it_did_not_have() {
    let (mut net, packet) = standing();
    let new = [IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2])];
    let mut init = an_init(77);
    init.addresses = smallvec![IpAddr::from([10, 0, 0, 1]), new[0], new[1]];
    let answer = asks(&mut net, SERVER, &packet, init);
    let causes = smallvec![Cause::new_addresses(&new)];
    let reflects_tag = false;
    assert_eq!(answer.chunks[..], [Chunk::Abort { reflects_tag, causes }]);
    assert_eq!(answer.header.tag, 77);
    net.run_for(ms(50));
    assert_eq!(net.closed(SERVER), None);
}

/// RFC 9260 §5.2.4 (A), §9.2.
#[test]
fn who_is_ending_ends_before_its_peer_opens_again() {
    let (mut net, packet) = standing();
    let answer = asks(&mut net, SERVER, &packet, an_init(77));
    net.rule = Box::new(|seen| (seen.from == OPENER).then_some(Duration::ZERO));
    net.hosts[OPENER].finish(net.now, FlowId(0));
    net.run_for(ms(100));
    echoes(&mut net, SERVER, &packet, &answer);
    let said = net.says(SERVER);
    let told = |packet: &Packet| {
        let cause = Cause::cookie_in_shutdown();
        packet.header.tag == 77 && packet.chunks[..] == [Chunk::Error(smallvec![cause])]
    };
    let retransmits = |packet: &Packet| packet.chunks[..] == [Chunk::ShutdownAck];
    assert!(said.iter().any(told) && said.iter().any(retransmits), "{said:?}");
    assert_eq!(flows(&net, SERVER).len(), 1);
    let again = asks(&mut net, SERVER, &packet, an_init(78));
    assert!(retransmits(&again), "{again:?}");
    // The opener has heard nothing of it. Once it does, all is over, and whoever wants to may open.
    net.rule = Box::new(|_| Some(Duration::ZERO));
    net.run_for(Duration::from_secs(10));
    assert_eq!(net.closed(SERVER), Some(&CloseReason::Finished));
    offer(&asks(&mut net, SERVER, &packet, an_init(79)));
}

/// The port of an opener is nobody's to open to: what was is over, and nothing takes its place.
#[test]
fn a_server_that_starts_again_cannot_open_to_its_client() {
    let (mut net, _) = standing();
    let like = net.seen(|chunk| matches!(chunk, Chunk::InitAck(_)));
    let answer = asks(&mut net, OPENER, &like, an_init(77));
    assert_eq!(net.closed(OPENER), None);
    echoes(&mut net, OPENER, &like, &answer);
    let said = net.says(OPENER);
    assert!(
        matches!(said[..], [ref refused] if refused.header.tag == 77
        && matches!(refused.chunks[..], [Chunk::Abort { reflects_tag: false, .. }])),
        "{said:?}"
    );
    net.run_for(ms(1));
    assert_eq!(ended(&net, OPENER, FlowId(0)), Some(CloseReason::Reset));
    assert_eq!(flows(&net, OPENER), []);
}

/// A full host loses nothing for a peer that starts again: it has to wait, and tries once more.
#[test]
fn a_host_without_room_keeps_what_it_has() {
    let (mut net, packet) = standing();
    let before = net.accepted().expect("accepted");
    let mut full = Sctp::new(SctpConfig {
        listen: Some(PORT),
        first_tsn: Some(FIRST_TSN),
        max_associations: 1,
        ..SctpConfig::new(sctp(&[]))
    });
    std::mem::swap(&mut net.hosts[SERVER], &mut full);
    net.events[SERVER].clear();
    let first = asks(&mut net, SERVER, &packet, an_init(76));
    echoes(&mut net, SERVER, &packet, &first);
    net.run_for(ms(1));
    assert_eq!(net.accepted(), Some(before));
    let again = asks(&mut net, SERVER, &packet, an_init(77));
    echoes(&mut net, SERVER, &packet, &again);
    net.run_for(ms(1));
    assert_eq!(ended(&net, SERVER, before), None);
    assert_eq!(net.hosts[SERVER].held(), 1);
}

/// RFC 9260 §5.2.4 (3): but for the one that opened the association, a cookie that is too old means nothing.
#[test]
fn a_cookie_beside_an_association_may_be_late_only_if_it_is_its_own() {
    let (mut net, packet) = standing();
    let own = net.seen(|chunk| matches!(chunk, Chunk::CookieEcho(_)));
    let restart = asks(&mut net, SERVER, &packet, an_init(77));
    net.now += Duration::from_secs(61);
    net.hears(SERVER, &own, own.chunks.clone());
    assert_eq!(net.says(SERVER)[0].chunks[..], [Chunk::CookieAck]);
    echoes(&mut net, SERVER, &packet, &restart);
    assert!(is_called_stale(&net.says(SERVER)));
    assert_eq!(net.closed(SERVER), None);
    // The same of one for which both ends have opened at once.
    let (mut net, _, like) = opening();
    let answer = asks(&mut net, OPENER, &like, an_init(77));
    net.now += Duration::from_secs(61);
    echoes(&mut net, OPENER, &like, &answer);
    assert!(is_called_stale(&net.says(OPENER)));
    assert_eq!(net.events[OPENER], []);
}

fn is_called_stale(said: &[Packet]) -> bool {
    let causes = said.iter().flat_map(|packet| &packet.chunks);
    let mut causes = causes.filter_map(|chunk| match chunk {
        Chunk::Error(causes) => Some(&causes[0]),
        _ => None,
    });
    causes.any(|cause| cause.code == Cause::STALE_COOKIE)
}

/// No row of the table: another tag of ours, and the peer's as it was, which nobody who has started again has.
#[test]
fn a_peer_that_has_started_again_has_another_tag() {
    let (mut net, packet) = standing();
    let Chunk::Init(before) = &net.log[0].packet.chunks[0] else {
        panic!("{:?}", net.log[0])
    };
    let tag = before.tag;
    let answer = asks(&mut net, SERVER, &packet, an_init(tag));
    echoes(&mut net, SERVER, &packet, &answer);
    assert_eq!(net.says(SERVER), []);
    net.run_for(ms(50));
    assert_eq!(net.closed(SERVER), None);
    assert_eq!(flows(&net, SERVER).len(), 1);
}

/// Row B once the association stands: what leaves from then on has the tag that the cookie names.
#[test]
fn a_cookie_that_comes_after_ours_was_acknowledged_changes_the_tag_of_the_peer() {
    let (mut net, flow, like) = opening();
    net.hears(OPENER, &like, like.chunks.clone());
    net.says(OPENER);
    let answer = asks(&mut net, OPENER, &like, an_init(77));
    net.hears(OPENER, &like, [Chunk::CookieAck]);
    net.run_for(ms(1));
    assert_eq!(net.events[OPENER], [Event::Connected(flow)]);
    echoes(&mut net, OPENER, &like, &answer);
    let said = net.says(OPENER);
    assert_eq!(
        (said[0].header.tag, &said[0].chunks[..]),
        (77, &[Chunk::CookieAck][..])
    );
    assert_eq!(net.events[OPENER].len(), 1, "it stands already");
}

/// All packets of set-ups that were ever seen, in any order, again and again.
#[test]
fn replayed_set_ups_leave_one_association_and_nothing_else() {
    let (mut net, packet) = standing();
    let mut seen: Vec<Packet> = net.log.iter().map(|seen| seen.packet.clone()).collect();
    for tag in 70..80 {
        let answer = asks(&mut net, SERVER, &packet, an_init(tag));
        let mut echo = packet.clone();
        echo.header.tag = offer(&answer).tag;
        echo.chunks = smallvec![Chunk::CookieEcho(offer(&answer).cookie.expect("a cookie"))];
        seen.push(echo);
        let mut init = packet.clone();
        (init.header.tag, init.chunks) = (0, smallvec![Chunk::Init(an_init(tag))]);
        seen.push(init);
    }
    let mut chance = chance(3);
    for _ in 0..2000 {
        let replayed = seen[chance.below(seen.len() as u64) as usize].clone();
        net.hears(SERVER, &replayed, replayed.chunks.clone());
        net.says(SERVER);
        while let Some(event) = net.hosts[SERVER].poll_event() {
            if let Event::Closed(flow, _) = event {
                net.hosts[SERVER].release(net.now, flow);
            }
        }
    }
    net.run_for(ms(1));
    assert_eq!(net.hosts[SERVER].held(), 1);
}
