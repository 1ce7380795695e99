//! Peers that break the rules, and those that are none: a counted drop, bounded memory, never a panic.

use super::network::*;
use super::restart::{an_init, offer};
use bytes::Bytes;
use restp_base::flow::{CloseReason, Flow};
use restp_base::machine::{Datagram, Event, Input, Machine};
use restp_base::time::{Duration, Time};
use restp_rivals::sctp::chunk::{Cause, Chunk, Data, Fragment, Init, Sack};
use restp_rivals::sctp::wire::Packet;
use restp_rivals::sctp::{Sctp, SctpConfig};
use smallvec::smallvec;
use std::net::{IpAddr, SocketAddr};

#[test]
fn a_flood_of_inits_leaves_nothing_behind() {
    let mut net = Net::new(sctp(&[]), &[wide(10)]);
    net.open();
    net.run_for(ms(5));
    let packet = net.log[0].packet.clone();
    for tag in 1..2000 {
        let init = Init {
            tag,
            window: 1500,
            streams_out: 1,
            streams_in: 1,
            ..Init::default()
        };
        net.server_hears(&packet, Chunk::Init(init));
    }
    assert_eq!(net.hosts[SERVER].held(), 0);
    let mut out = Datagram::empty();
    let mut answers = 0;
    while net.hosts[SERVER].poll_transmit(net.now, &mut out) {
        answers += 1;
    }
    assert!(answers <= 64, "{answers}");
}

#[test]
fn reports_on_what_was_never_sent_are_not_believed() {
    let (mut net, packet) = standing();
    let accepted = net.accepted().expect("accepted");
    for _ in 0..8 {
        net.hosts[SERVER]
            .write(net.now, accepted, noise(1000).into())
            .expect("room");
    }
    net.run_for(ms(1));
    for (cumulative, blocks) in [(FIRST_TSN + 10, &[][..]), (FIRST_TSN - 1, &[(2, 60)])] {
        let sack = Sack {
            cumulative,
            window: u32::MAX,
            blocks: blocks.into(),
            ..Sack::default()
        };
        net.server_hears(&packet, Chunk::Sack(sack));
    }
    let stats = net.hosts[SERVER].stats(accepted).expect("open");
    assert_eq!(stats.rejected_packets, 2);
    assert!(stats.in_flight_segments > 0);
}

#[test]
fn data_beyond_the_window_and_endless_messages_cost_bounded_memory() {
    let (mut net, packet) = standing();
    let accepted = net.accepted().expect("accepted");
    net.reads = false;
    let mut chance = chance(7);
    for step in 0..20_000u32 {
        let ahead = if step % 2 == 0 {
            step / 2
        } else {
            chance.below(1 << 20) as u32
        };
        let fragment = Fragment {
            tsn: FIRST_TSN.wrapping_add(ahead),
            is_first: step == 0,
            ..Fragment::default()
        };
        let payload = Bytes::from(noise(1 + chance.below(1400) as usize));
        net.server_hears(&packet, Chunk::Data(Data { fragment, payload }));
        let memory = net.hosts[SERVER].stats(accepted).expect("open").memory_bytes;
        assert!(memory < 300_000, "{memory} after {step}");
        if step % 1000 == 0 {
            net.run_for(ms(1));
        }
    }
}

#[test]
fn whatever_arrives_nothing_panics_and_the_association_lives_or_ends() {
    for seed in 0..60 {
        let mut net = Net::new(cmt("cwnd", &[]), &[line(10, 10), line(10, 30)]);
        let flow = net.open();
        net.bulk(flow, 1000, ms(200));
        let mut chance = chance(seed);
        let samples: Vec<_> = net
            .log
            .iter()
            .map(|seen| (seen.from, seen.path, seen.packet.clone()))
            .collect();
        for _ in 0..400 {
            let (from, path, packet) = &samples[chance.below(samples.len() as u64) as usize];
            let address = Net::path(*path);
            let mut copy = datagram(
                packet,
                if *from == OPENER {
                    address.reversed()
                } else {
                    address
                },
            );
            let mut bytes = copy.to_vec();
            for _ in 0..chance.below(4) {
                let at = 12 + chance.below(bytes.len() as u64 - 12) as usize;
                bytes[at] ^= 1 << chance.below(8);
            }
            // The sum is set right, so that the change is looked at.
            bytes[8..12].fill(0);
            let crc = crc::Crc::<u32>::new(&crc::CRC_32_ISCSI).checksum(&bytes);
            bytes[8..12].copy_from_slice(&crc.to_le_bytes());
            (copy.head, copy.body) = (Default::default(), bytes.into());
            net.hosts[1 - from].handle(net.now, Input::Datagram(&mut copy));
            if chance.chance(0.1) {
                net.run_for(ms(chance.below(50)));
            }
        }
        net.run_for(Duration::from_secs(5));
    }
}

/// A server by itself, and packets from whichever host of the opener's network.
struct Alone {
    host: Sctp,
    /// A packet of an opener to copy.
    other: Packet,
}

impl Alone {
    fn new() -> Self {
        let (_, other) = standing();
        Alone {
            host: Sctp::new(SctpConfig {
                listen: Some(PORT),
                first_tsn: Some(FIRST_TSN),
                ..SctpConfig::new(sctp(&[]))
            }),
            other,
        }
    }

    fn receive(&mut self, tag: u32, chunk: Chunk, from: u8) -> Vec<Packet> {
        self.receive_only(tag, chunk, from);
        self.says().into_iter().map(|(packet, _)| packet).collect()
    }

    /// The same, and nothing is asked for yet.
    fn receive_only(&mut self, tag: u32, chunk: Chunk, from: u8) {
        let mut packet = self.other.clone();
        (packet.header.tag, packet.chunks) = (tag, smallvec![chunk]);
        let mut path = Net::path(0).reversed();
        path.remote = ([10, 0, 0, from], 0).into();
        self.host
            .handle(Time::ZERO, Input::Datagram(&mut datagram(&packet, path)));
    }

    /// What the server has to say now, and to whom.
    fn says(&mut self) -> Vec<(Packet, SocketAddr)> {
        let mut out = Datagram::empty();
        let mut said = Vec::new();
        while self.host.poll_transmit(Time::ZERO, &mut out) {
            said.push((Packet::parse(&mut out).expect("a packet"), out.path.remote));
        }
        said
    }

    fn events(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.host.poll_event()).collect()
    }

    /// Somebody at `from` asks for an association; our tag for it, and our cookie.
    fn asks(&mut self, init: Init, from: u8) -> (u32, Chunk) {
        let said = self.receive(0, Chunk::Init(init), from);
        let offered = offer(&said[0]);
        (
            offered.tag,
            Chunk::CookieEcho(offered.cookie.expect("INIT ACK has one")),
        )
    }

    /// Somebody at `from` opens; our tag for it, and what the application hears.
    fn opens(&mut self, init: Init, from: u8) -> (u32, Vec<Event>) {
        let (tag, cookie) = self.asks(init, from);
        let said = self.receive(tag, cookie, from);
        assert_eq!(said[0].chunks[..], [Chunk::CookieAck]);
        (tag, self.events())
    }

    /// Somebody at .66 says that it is at .1 as well; our tag for it.
    fn claims(&mut self) -> u32 {
        let (tag, events) = self.opens(naming(66, 1), 66);
        assert!(matches!(events[..], [Event::Accepted(_)]), "{events:?}");
        tag
    }

    /// Somebody sends something in the name of .1.
    fn pretends(&mut self, tag: u32) {
        self.receive(tag, Chunk::Heartbeat(noise(8).into()), 1);
    }
}

/// An INIT of this tag that names the host `of` as well.
fn naming(tag: u32, of: u8) -> Init {
    Init {
        addresses: smallvec![ip(of)],
        ..an_init(tag)
    }
}

fn ip(host: u8) -> IpAddr {
    IpAddr::from([10, 0, 0, host])
}

/// RFC 9260 §5.4: an association that only says that an address is its peer's has no part in what comes from there, whoever was first.
#[test]
fn whoever_names_the_address_of_another_has_no_part_in_its_set_up() {
    let mut alone = Alone::new();
    let tag = alone.claims();
    alone.pretends(tag);
    let (_, events) = alone.opens(an_init(77), 1);
    assert!(
        matches!(events[..], [Event::Accepted(_)]),
        "none has ended: {events:?}"
    );
    let mut alone = Alone::new();
    let tag = alone.claims();
    let (_, events) = alone.opens(an_init(77), 1);
    let [Event::Accepted(first)] = events[..] else {
        panic!("{events:?}")
    };
    alone.pretends(tag);
    let (_, events) = alone.opens(an_init(78), 1);
    let ended = Event::Closed(first, CloseReason::Reset);
    assert!(events.contains(&ended), "it has started again: {events:?}");
}

/// RFC 9260 §5.4: a cookie that comes from another address than INIT ACK went to shows nothing about that one, or whoever names a host
/// could have it flooded with data.
#[test]
fn a_cookie_from_an_address_that_is_only_named_confirms_it_not() {
    let mut alone = Alone::new();
    let (tag, cookie) = alone.asks(naming(66, 1), 66);
    alone.receive_only(tag, cookie, 1);
    let events = alone.events();
    let [Event::Accepted(flow)] = events[..] else {
        panic!("{events:?}")
    };
    let written = alone.host.write(Time::ZERO, flow, noise(100).into());
    written.expect("room");
    for (packet, to) in alone.says() {
        match packet.chunks[..] {
            [Chunk::CookieAck | Chunk::Heartbeat(_)] => assert_eq!(to.ip(), ip(1), "{packet:?}"),
            _ => assert_eq!(to.ip(), ip(66), "{packet:?}"),
        }
    }
    let stats = alone.host.stats(flow).expect("open");
    assert_eq!(stats.sent_payload_bytes, 100);
    let (_, events) = alone.opens(an_init(77), 1);
    assert!(
        matches!(events[..], [Event::Accepted(_)]),
        "none has ended: {events:?}"
    );
}

/// RFC 9260 §5.2.4 (D): from whichever of its addresses.
#[test]
fn a_cookie_that_comes_again_from_another_address_opens_nothing_more() {
    let mut alone = Alone::new();
    let (tag, cookie) = alone.asks(naming(66, 1), 66);
    assert_eq!(
        alone.receive(tag, cookie.clone(), 66)[0].chunks[..],
        [Chunk::CookieAck]
    );
    assert_eq!(alone.receive(tag, cookie, 1)[0].chunks[..], [Chunk::CookieAck]);
    let events = alone.events();
    let [Event::Accepted(flow)] = events[..] else {
        panic!("{events:?}")
    };
    assert_eq!(alone.host.held(), 1);
    // That address is one of the association from now on: who has forgotten it there may say so.
    let abort = Chunk::Abort {
        reflects_tag: true,
        causes: Default::default(),
    };
    alone.receive_only(66, abort, 1);
    let ended = Event::Closed(flow, CloseReason::Reset);
    assert!(alone.events().contains(&ended));
}

/// A cookie may come again after the end of its association: the two have the same tag, and the first one takes nothing with it.
#[test]
fn an_association_that_ended_leaves_the_tag_to_the_one_that_has_it_now() {
    let mut alone = Alone::new();
    let (tag, cookie) = alone.asks(an_init(77), 1);
    alone.receive(tag, cookie.clone(), 1);
    let events = alone.events();
    let [Event::Accepted(first)] = events[..] else {
        panic!("{events:?}")
    };
    let abort = Chunk::Abort {
        reflects_tag: false,
        causes: Default::default(),
    };
    alone.receive_only(tag, abort, 1);
    alone.receive(tag, cookie, 1);
    alone.host.release(Time::ZERO, first);
    alone.says();
    assert_eq!(alone.host.held(), 1);
    let question = Bytes::from(noise(8));
    let said = alone.receive(tag, Chunk::Heartbeat(question.clone()), 1);
    assert_eq!(said[0].chunks[..], [Chunk::HeartbeatAck(question)]);
}

/// RFC 9260 §5.2.2: it may not add itself to the addresses of another.
#[test]
fn whoever_opens_from_a_new_address_and_names_that_of_an_association_is_refused() {
    let mut alone = Alone::new();
    alone.opens(an_init(77), 1);
    let said = alone.receive(0, Chunk::Init(naming(66, 1)), 66);
    let causes = smallvec![Cause::new_addresses(&[ip(66)])];
    let reflects_tag = false;
    assert_eq!(said[0].chunks[..], [Chunk::Abort { reflects_tag, causes }]);
    assert_eq!(said[0].header.tag, 66);
    // Without that it is somebody else, who has the same port.
    let (_, events) = alone.opens(an_init(67), 66);
    assert!(matches!(events[..], [Event::Accepted(_)]), "{events:?}");
}

/// RFC 9260 §5.2.4 (A): its cookie says which association there was.
#[test]
fn who_starts_again_may_do_so_from_any_of_its_addresses() {
    let mut alone = Alone::new();
    let (_, events) = alone.opens(naming(77, 2), 1);
    let [Event::Accepted(first)] = events[..] else {
        panic!("{events:?}")
    };
    let (_, events) = alone.opens(naming(78, 1), 2);
    assert!(
        events.contains(&Event::Closed(first, CloseReason::Reset)),
        "{events:?}"
    );
    assert!(
        events.iter().any(|event| matches!(event, Event::Accepted(_))),
        "{events:?}"
    );
}

/// RFC 9260 §5.4: what a heartbeat asks with cannot be guessed, and whoever does not receive it does not confirm the address.
#[test]
fn an_answer_to_a_heartbeat_that_was_guessed_confirms_nothing() {
    let mut alone = Alone::new();
    let tag = alone.claims();
    alone.pretends(tag);
    let guess = [&[0, 1, 0, 12][..], &[7; 8]].concat();
    alone.receive(tag, Chunk::HeartbeatAck(guess.into()), 1);
    assert_eq!(alone.events(), []);
    let (_, events) = alone.opens(an_init(77), 1);
    assert!(matches!(events[..], [Event::Accepted(_)]), "{events:?}");
}
