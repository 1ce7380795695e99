//! Peers that break the rules, and those that are none: a counted drop, bounded memory, never a panic.

use super::network::*;
use bytes::Bytes;
use restp_base::flow::Flow;
use restp_base::machine::{Datagram, Input, Machine};
use restp_base::time::Duration;
use restp_rivals::sctp::chunk::{Chunk, Data, Fragment, Init, Sack};

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
