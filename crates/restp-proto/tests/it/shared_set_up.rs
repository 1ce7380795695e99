//! How two ends agree on one space of numbers for all paths.

use super::shared_numbers::*;
use crate::common::lines::*;
use crate::common::*;
use restp_base::flow::{CloseReason, Flow};
use restp_base::machine::Event;
use restp_proto::wire::{Flags, MpJoin, MpSetup};
use restp_proto::{Acceptance, EndpointConfig};
use std::collections::BTreeSet;

#[test]
fn every_syn_carries_the_number_of_the_first_one() {
    let (mut pair, ..) = shared();
    both_up(&mut pair);
    let of = |seen: &&Seen| seen.header.flags.has(Flags::SYN);
    let all = pair.log.iter().filter(of);
    let numbers: BTreeSet<_> = all.map(|seen| (seen.from, seen.header.sequence)).collect();
    assert_eq!(numbers.len(), 2, "one of each side: {numbers:?}");
    let proofs = |seen: &&Seen| matches!(seen.header.mp, Some(MpSetup::Join(MpJoin::Ack { .. })));
    assert!(pair.log.iter().any(|seen| proofs(&seen)));
}

#[test]
fn a_peer_that_ignores_the_bit_gets_numbers_per_path() {
    let (mut pair, flow, _) = shared();
    // It answers as one that never heard of the bit: what is asked arrives without it.
    pair.rule = Box::new(|seen| {
        if seen.header.services.shared_numbers {
            Verdict::Flip(BIT)
        } else {
            Verdict::Pass
        }
    });
    let accepted = both_up(&mut pair);
    assert!(pair.transfer(0, (flow, accepted), &noise(300_000), secs(20)));
    assert!(pair.transfer(1, (flow, accepted), &noise(300_000), secs(20)));
    let data = |seen: &&Seen| seen.is_data();
    assert!(pair.log.iter().filter(data).all(|seen| seen.header.dss.is_some()));
    for (side, flow) in [(0, flow), (1, accepted)] {
        let composition = pair.ends[side].composition(flow).expect("alive");
        assert_eq!(format!("{:?}", composition.numbering), "PerPath");
    }
}

#[test]
fn a_peer_without_multipath_gets_one_path() {
    let opener = config("geo-spread", SHARED);
    let mut acceptor = config("geo-spread", SHARED).listen(PORT, Acceptance::Any);
    acceptor.several_paths = false;
    let mut pair = Pair::of(opener, acceptor);
    let flow = pair.ends[0]
        .open(pair.now, line(&pair, 1), PORT)
        .expect("a free port");
    pair.run_for(MS * 200);
    let accepted = pair.accepted().expect("accepted");
    assert!(pair.transfer(0, (flow, accepted), &noise(100_000), secs(20)));
    assert!(pair.transfer(1, (flow, accepted), &noise(100_000), secs(20)));
}

/// Writes before the set-up until there is no room. Is the writer told when there is?
fn is_told_of_room(opener: EndpointConfig, acceptor: EndpointConfig) -> bool {
    let mut pair = Pair::of(opener, acceptor.listen(PORT, Acceptance::Any));
    let flow = pair.open();
    let data = bytes::Bytes::from(noise(5600));
    while pair.ends[0].write(pair.now, flow, data.clone()).is_ok() {}
    pair.run_for(MS * 50);
    let accepted = pair.accepted().expect("accepted");
    for _ in 0..100 {
        pair.run_for(MS * 20);
        pair.read_all(1, accepted);
    }
    pair.events[0].contains(&Event::Writable(flow))
}

#[test]
fn a_writer_that_was_refused_before_the_set_up_is_told_of_room() {
    let shared = config("geo-spread", SHARED);
    assert!(is_told_of_room(shared.clone(), shared.clone()), "shared numbers");
    let own = config("geo-spread", &SHARED[1..]);
    assert!(is_told_of_room(own.clone(), own.clone()), "numbers per path");
    assert!(is_told_of_room(shared, own.clone()), "a peer that shares none");
    let mut single = own.clone();
    single.several_paths = false;
    assert!(is_told_of_room(own, single), "a peer with one path");
}

#[test]
fn a_listener_that_insists_on_numbers_per_path_refuses() {
    let own = SHARED[1..].to_vec();
    let acceptor = config("geo-spread", &own).listen(PORT, Acceptance::Exact);
    let mut pair = Pair::of(config("geo-spread", SHARED), acceptor);
    pair.open();
    pair.run_for(secs(1));
    assert_eq!(pair.closed(0), Some(&CloseReason::Refused));
}
