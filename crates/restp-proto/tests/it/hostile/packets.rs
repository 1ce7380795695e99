//! Datagrams that are damaged, cut, invented or duplicated.

use crate::common::*;
use bytes::Bytes;
use restp_base::flow::{CloseReason, Flow};
use restp_base::machine::{Datagram, Event, Input, Machine};
use restp_base::random::Stream;
use restp_base::time::Duration;
use restp_proto::InitialNumbers;

fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// A short connection with data both ways, in which one packet meets `verdict`. Returns what each side read.
fn short_story(set: &[(&str, &str)], packet: usize, verdict: Verdict) -> (Pair, [Vec<u8>; 2]) {
    let mut pair = Pair::new("3wh-arq", set);
    let mut count = 0;
    pair.rule = Box::new(move |_| {
        let hit = count == packet;
        count += 1;
        if hit { verdict } else { Verdict::Pass }
    });
    let flow = pair.open();
    pair.write(0, flow, b"question");
    pair.ends[0].finish(pair.now, flow);
    let mut read = [Vec::new(), Vec::new()];
    let (mut answered, mut seen) = (false, 0);
    for _ in 0..200 {
        pair.run_for(secs(6));
        while let Some(event) = pair.events[1].get(seen).cloned() {
            seen += 1;
            if let Event::Accepted(accepted) = event {
                // A damaged request may be accepted as one of another composition: it lives beside ours.
                let _ = pair.ends[1].write(pair.now, accepted, Bytes::from_static(b"answer"));
                pair.ends[1].finish(pair.now, accepted);
                answered = true;
            }
        }
        if let Some(accepted) = pair.accepted() {
            read[1].extend(pair.read_all(1, accepted).concat());
        }
        read[0].extend(pair.read_all(0, flow).concat());
        if answered && pair.closed(0).is_some() && pair.closed(1).is_some() {
            break;
        }
    }
    assert!(
        pair.closed(0).is_some(),
        "{verdict:?} of packet {packet}: the opener ends"
    );
    assert!(
        pair.log.len() < 5_000,
        "{verdict:?} of packet {packet}: {} packets",
        pair.log.len()
    );
    (pair, read)
}

fn sizes(set: &[(&str, &str)]) -> Vec<usize> {
    let (pair, read) = short_story(set, usize::MAX, Verdict::Pass);
    assert_eq!(read, [b"answer".to_vec(), b"question".to_vec()]);
    pair.log.iter().map(|seen| seen.bytes().len()).collect()
}

const CRC: &[(&str, &str)] = &[("crc", "on")];

#[test]
fn with_crc_no_damaged_bit_and_no_cut_changes_what_is_delivered() {
    for (packet, size) in sizes(CRC).into_iter().enumerate() {
        for verdict in (0..8 * size)
            .map(Verdict::Flip)
            .chain((0..size).map(Verdict::Cut))
        {
            let (pair, read) = short_story(CRC, packet, verdict);
            assert_eq!(
                read,
                [b"answer".to_vec(), b"question".to_vec()],
                "{verdict:?} of {packet}"
            );
            for side in 0..2 {
                let reason = pair.closed(side);
                assert_eq!(reason, Some(&CloseReason::Finished), "{verdict:?} of {packet}");
            }
        }
    }
}

#[test]
fn without_crc_a_damaged_bit_or_a_cut_ends_in_a_clear_way_at_worst() {
    for (packet, size) in sizes(&[]).into_iter().enumerate() {
        for verdict in (0..8 * size)
            .map(Verdict::Flip)
            .chain((0..size).map(Verdict::Cut))
        {
            short_story(&[], packet, verdict);
        }
    }
}

#[test]
fn noise_is_counted_and_harms_no_connection() {
    let mut pair = Pair::new("default", &[]);
    let flows = pair.connect();
    let template = pair.log[2].bytes();
    let mut draw = Stream::named(1, "hostile/noise");
    for round in 0..20_000 {
        let length = draw.below(120) as usize;
        let mut bytes: Vec<u8> = (0..length).map(|_| draw.bits() as u8).collect();
        if round % 2 == 0 {
            // Near enough to a real packet to come further than the first check, but for another port.
            bytes = template.clone();
            for _ in 0..1 + draw.below(8) {
                let at = draw.below(8) as usize;
                bytes[at] = draw.bits() as u8;
            }
            bytes[9] ^= 1;
        }
        let cut = draw.below(bytes.len() as u64 + 1) as usize;
        let mut datagram = Datagram {
            path: pair.path(1),
            head: bytes[..cut].into(),
            body: Bytes::copy_from_slice(&bytes[cut..]),
            ..Datagram::empty()
        };
        pair.ends[1].handle(pair.now, Input::Datagram(&mut datagram));
    }
    let stats = pair.ends[1].endpoint_stats();
    assert!(stats.malformed + stats.unserved > 15_000, "{stats:?}");
    assert!(
        pair.ends[1].connections() <= 1 + 1024,
        "what looks like a request may be taken for one"
    );
    assert!(pair.transfer(0, flows, &noise(50_000), secs(5)));
}

#[test]
fn versions_ports_and_services_nobody_has_are_counted() {
    let mut pair = Pair::new("3wh-arq", &[]);
    pair.connect();
    let syn = pair.log[0].bytes();
    let changed = |change: fn(&mut Vec<u8>)| {
        let mut bytes = syn.clone();
        bytes[9] ^= 1; // another source port: a new association
        change(&mut bytes);
        bytes
    };
    pair.inject(1, &changed(|bytes| bytes[0] |= 0x10));
    assert_eq!(pair.ends[1].endpoint_stats().malformed, 1, "version 1");
    pair.inject(1, &changed(|bytes| bytes[6] |= 0xF0));
    assert_eq!(
        pair.ends[1].endpoint_stats().malformed,
        2,
        "a header longer than the datagram"
    );
    pair.inject(1, &changed(|bytes| bytes[11] = 81));
    assert_eq!(pair.ends[1].endpoint_stats().unserved, 1, "port 81");
    pair.inject(1, &changed(|bytes| bytes[5] |= 0xF0));
    assert_eq!(pair.ends[1].endpoint_stats().refused, 1, "flow control 15");
    assert_eq!(pair.ends[1].connections(), 1);
}

#[test]
fn packets_duplicated_during_the_connection_deliver_nothing_twice() {
    let mut pair = Pair::new("3wh-arq", &[("ack", "positive+sack"), ("recovery", "pipe")]);
    let (flow, accepted) = pair.connect();
    let data = noise(30_000);
    pair.write(0, flow, &data);
    pair.ends[0].finish(pair.now, flow);
    pair.ends[1].finish(pair.now, accepted);
    let mut read = Vec::new();
    for _ in 0..40 {
        pair.run_for(Duration::from_millis(3));
        for seen in pair.log.clone() {
            pair.inject(1 - seen.from, &seen.bytes());
        }
        read.extend(pair.read_all(1, accepted).concat());
        assert!(pair.log.len() < 100_000, "duplicates breed duplicates");
        if pair.log.len() > 2_000 {
            break;
        }
    }
    pair.run_for(secs(30));
    read.extend(pair.read_all(1, accepted).concat());
    assert_eq!(read, data);
    assert_eq!(pair.closed(0), Some(&CloseReason::Finished));
    assert_eq!(pair.closed(1), Some(&CloseReason::Finished));
}

#[test]
fn a_connection_played_again_after_its_end_opens_nothing() {
    let mut acceptor = config("3wh-arq", &[]).listen(PORT, restp_proto::Acceptance::Any);
    acceptor.initial_numbers = InitialNumbers::Keyed([7; 16]);
    let mut pair = Pair::of(config("3wh-arq", &[]), acceptor);
    let (flow, accepted) = pair.connect();
    pair.write(0, flow, b"pay 100");
    pair.ends[0].finish(pair.now, flow);
    pair.ends[1].finish(pair.now, accepted);
    pair.run_for(secs(1));
    assert_eq!(pair.read_all(1, accepted), [&b"pay 100"[..]]);
    pair.ends[0].release(pair.now, flow);
    pair.ends[1].release(pair.now, accepted);
    let recorded = pair.log.clone();
    for pause in [0, 30, 90] {
        pair.run_for(secs(pause));
        let events = pair.events.each_ref().map(Vec::len);
        for seen in &recorded {
            pair.inject(1 - seen.from, &seen.bytes());
        }
        pair.run_for(secs(1));
        assert_eq!(pair.events.each_ref().map(Vec::len), events, "after {pause} s");
    }
    pair.run_for(secs(400));
    assert_eq!(pair.ends.each_ref().map(|end| end.connections()), [0, 0]);
}
