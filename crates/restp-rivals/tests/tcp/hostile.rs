//! What a peer or a stranger may send: nothing panics, memory stays bounded, an honest stream is not harmed.

use crate::network::{PORT, Pair, noise};
use bytes::Bytes;
use restp_base::flow::Flow;
use restp_base::machine::{Datagram, Input, Machine};
use restp_base::random::Stream;
use restp_base::time::Duration;
use restp_rivals::tcp::wire::{Flags, Header};

#[test]
fn random_changes_of_honest_segments_harm_nothing() {
    let mut stream = Stream::named(3, "changes");
    for set in [
        &[][..],
        &[("fast-open", "on")],
        &[
            ("ack", "positive+sack"),
            ("recovery", "pipe"),
            ("timestamps", "on"),
        ],
    ] {
        let mut pair = Pair::new(set);
        let (client, server) = pair.connect();
        pair.write(0, client, &noise(20_000));
        pair.run_for(Duration::from_millis(500));
        let honest = pair.log.clone();
        for _ in 0..20_000 {
            let seen = &honest[stream.below(honest.len() as u64) as usize];
            let mut bytes = Datagram::empty();
            let mut header = seen.header.clone();
            // Fields are changed before the check sum is made, or nothing would get past it.
            match stream.below(6) {
                0 => header.sequence = header.sequence.wrapping_add(stream.below(1 << 20) as u32),
                1 => header.acknowledgement = stream.bits() as u32,
                2 => header.flags = Flags(stream.bits() as u8 & !Flags::RST.0),
                3 => header.window = stream.bits() as u16,
                4 => header
                    .options
                    .sack
                    .push((stream.bits() as u32, stream.bits() as u32)),
                _ => {}
            }
            header.emit(&seen.payload, Pair::path(seen.from), &mut bytes.head);
            let mut whole = [&bytes.head[..], &seen.payload].concat();
            if stream.chance(0.1) {
                whole.truncate(stream.below(whole.len() as u64 + 1) as usize);
            }
            bytes.head.clear();
            bytes.body = Bytes::from(whole);
            bytes.path = Pair::path(1 - seen.from);
            let to = &mut pair.ends[1 - seen.from];
            to.handle(pair.now, Input::Datagram(&mut bytes));
            while to.poll_transmit(pair.now, &mut bytes) {}
            while to.poll_event().is_some() {}
        }
        for (side, flow) in [(0, client), (1, server)] {
            let memory = pair.ends[side]
                .stats(flow)
                .expect("the connection is still there")
                .memory_bytes;
            assert!(memory < 16 << 20, "{memory}");
        }
    }
}

#[test]
fn a_flood_of_syns_is_bounded() {
    let mut pair = Pair::new(&[]);
    for source_port in 1..5000 {
        let syn = Header {
            source_port,
            destination_port: PORT,
            flags: Flags::SYN,
            ..Header::default()
        };
        pair.forge(0, &syn, b"");
    }
    pair.run_for(Duration::from_millis(15));
    assert_eq!(pair.ends[1].connections(), 1024);
    pair.run_for(Duration::from_secs(300));
    assert_eq!(pair.ends[1].connections(), 0, "and ends");
}

#[test]
fn single_bytes_far_apart_cost_bounded_memory() {
    let mut pair = Pair::new(&[("window", "1000 segments")]);
    let (_, server) = pair.connect();
    let last = pair.log[2].header.clone();
    for n in 0..20_000u32 {
        let header = Header {
            sequence: last.sequence.wrapping_add(2 + 2 * n),
            ..last.clone()
        };
        pair.forge(0, &header, b"x");
    }
    pair.run_for(Duration::from_millis(50));
    let stats = pair.ends[1].stats(server).unwrap();
    assert_eq!(
        stats.rejected_packets, 18_000,
        "two pieces per segment of the window are held"
    );
}
