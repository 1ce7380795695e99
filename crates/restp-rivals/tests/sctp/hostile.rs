//! Peers that break the rules, and those that are none: a counted drop, bounded memory, never a panic.

use super::network::*;
use super::restart::{an_init, offer};
use bytes::Bytes;
use restp_base::flow::{CloseReason, Flow};
use restp_base::machine::{Datagram, Event, Input, Machine};
use restp_base::time::{Duration, Time};
use restp_rivals::sctp::chunk::{Chunk, Data, Fragment, Init, Sack};
use restp_rivals::sctp::wire::Packet;
use restp_rivals::sctp::{Sctp, SctpConfig};
use smallvec::smallvec;
use std::net::IpAddr;

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
    /// Packets of an opener to copy.
    init: Packet,
    other: Packet,
}

impl Alone {
    fn new() -> Self {
        let (net, other) = standing();
        Alone {
            host: Sctp::new(SctpConfig {
                listen: Some(PORT),
                first_tsn: Some(FIRST_TSN),
                ..SctpConfig::new(sctp(&[]))
            }),
            init: net.log[0].packet.clone(),
            other,
        }
    }

    fn hear(&mut self, tag: u32, chunk: Chunk, from: u8) -> Vec<Packet> {
        let mut packet = self.other.clone();
        (packet.header.tag, packet.chunks) = (tag, smallvec![chunk]);
        let mut path = Net::path(0).reversed();
        path.remote = ([10, 0, 0, from], 0).into();
        let now = Time::ZERO;
        self.host
            .handle(now, Input::Datagram(&mut datagram(&packet, path)));
        let mut out = Datagram::empty();
        let mut said = Vec::new();
        while self.host.poll_transmit(now, &mut out) {
            said.push(Packet::parse(&mut out).expect("a packet"));
        }
        said
    }

    /// Somebody at `from` opens; our tag for it, and what the application hears.
    fn opens(&mut self, init: Init, from: u8) -> (u32, Vec<Event>) {
        let said = self.hear(self.init.header.tag, Chunk::Init(init), from);
        let offered = offer(&said[0]);
        let cookie = offered.cookie.expect("INIT ACK has one");
        let said = self.hear(offered.tag, Chunk::CookieEcho(cookie), from);
        assert_eq!(said[0].chunks[..], [Chunk::CookieAck]);
        let events = std::iter::from_fn(|| self.host.poll_event());
        (offered.tag, events.collect())
    }

    /// Somebody at .66 says that it is at .1 as well, and sends something in the name of .1.
    fn claims(&mut self) {
        let mut init = an_init(66);
        init.addresses = smallvec![IpAddr::from([10, 0, 0, 1])];
        let (tag, events) = self.opens(init, 66);
        assert!(matches!(events[..], [Event::Accepted(_)]), "{events:?}");
        self.hear(tag, Chunk::Heartbeat(noise(8).into()), 1);
    }
}

/// RFC 9260 §5.4: an association that only says that an address is its peer's has no part in what comes from there, whoever was first.
#[test]
fn whoever_names_the_address_of_another_has_no_part_in_its_set_up() {
    let mut alone = Alone::new();
    alone.claims();
    let (_, events) = alone.opens(an_init(77), 1);
    assert!(
        matches!(events[..], [Event::Accepted(_)]),
        "none has ended: {events:?}"
    );
    let mut alone = Alone::new();
    let (_, events) = alone.opens(an_init(77), 1);
    let [Event::Accepted(first)] = events[..] else {
        panic!("{events:?}")
    };
    alone.claims();
    let (_, events) = alone.opens(an_init(78), 1);
    let ended = Event::Closed(first, CloseReason::Reset);
    assert!(events.contains(&ended), "it has started again: {events:?}");
}
