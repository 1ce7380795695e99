//! Requests that nobody confirms, and joins that are forged, or too many (ResTP §3.1.11, §3.1.12): refused and counted,
//! bounded while they wait for their proof, and forgotten; the paths that work go on.

use crate::common::lines::*;
use crate::common::*;
use restp_base::flow::Flow;
use restp_base::machine::{Head, Input, Machine, PathAddress};
use restp_proto::wire::{Flags, Header, MpJoin, MpSetup};

/// Gives a packet to the server as if the client's address `n` had sent it.
fn from(pair: &mut Pair, n: u8, header: &Header) {
    let mut head = Head::new();
    header.emit(&[], &mut head).expect("a header that can be said");
    let path = PathAddress {
        local: pair.path(1).local,
        remote: client(n),
    };
    let now = pair.now;
    pair.ends[1].handle(now, Input::Datagram(&mut contiguous(path, head.to_vec())));
    pair.run_for(MS);
}

/// The join of the second path: its request, or its proof.
fn join(pair: &Pair, flags: Flags) -> Header {
    let of_second = |seen: &&Seen| seen.from == 0 && seen.path.local == client(2) && seen.is(flags);
    let joins = |seen: &&Seen| matches!(seen.header.mp, Some(MpSetup::Join(_)));
    let seen = pair.log.iter().filter(of_second).find(joins);
    seen.expect("a join").header.clone()
}

#[test]
fn joins_without_proof_wait_in_the_room_that_is_left_and_are_forgotten() {
    let (mut pair, flow, dead) = two_paths("geo-spread", SPREAD);
    let accepted = both_up(&mut pair);
    let before = pair.ends[1].connections();
    kill(&dead, 3); // whoever asks from there hears nothing and proves nothing
    let asked = join(&pair, Flags::SYN);
    let refused = pair.ends[1].endpoint_stats().refused;
    for port in 0..100 {
        let source = 1_000 + port;
        from(
            &mut pair,
            3,
            &Header {
                source,
                ..asked.clone()
            },
        );
    }
    let refused = pair.ends[1].endpoint_stats().refused - refused;
    assert_eq!(refused, 100 - 13, "two of fifteen paths are in use");
    assert!(pair.transfer(0, (flow, accepted), &noise(100_000), secs(10)));
    pair.run_for(secs(300));
    assert_eq!(pair.ends[1].connections(), before);
    assert!(pair.transfer(0, (flow, accepted), &noise(100_000), secs(10)));
}

#[test]
fn a_join_with_a_wrong_token_or_a_wrong_proof_brings_no_path_up() {
    let (mut pair, flow, dead) = two_paths("geo-spread", SPREAD);
    let accepted = both_up(&mut pair);
    let before = pair.ends[1].connections();
    kill(&dead, 3);
    let refused = pair.ends[1].endpoint_stats().refused;
    let mut unknown = join(&pair, Flags::SYN);
    unknown.source = 1_000;
    if let Some(MpSetup::Join(MpJoin::Syn { token, .. })) = &mut unknown.mp {
        token[3] ^= 1;
    }
    from(&mut pair, 3, &unknown);
    assert_eq!(pair.ends[1].endpoint_stats().refused - refused, 1);
    // The right token, and every bit of the proof but one.
    let mut asked = join(&pair, Flags::SYN);
    asked.source = 1_001;
    from(&mut pair, 3, &asked);
    let answer = pair
        .log
        .iter()
        .rfind(|seen| seen.from == 1 && seen.path.remote == client(3));
    let answer = answer.expect("an answer that is lost").header.clone();
    let mut proof = join(&pair, Flags::ACK);
    proof.source = 1_001;
    proof.acknowledgement = answer.sequence.map(|number| number.wrapping_add(1));
    let rejected = |pair: &Pair| pair.ends[1].stats(accepted).expect("it lives").rejected_packets;
    let counted = rejected(&pair);
    from(&mut pair, 3, &proof);
    assert_eq!(rejected(&pair) - counted, 1);
    pair.run_for(secs(300));
    assert_eq!(pair.ends[1].connections(), before);
    assert!(pair.transfer(0, (flow, accepted), &noise(100_000), secs(10)));
}

#[test]
fn requests_for_several_paths_that_nobody_confirms_are_forgotten() {
    let (mut pair, flow, dead) = two_paths("geo-spread", SPREAD);
    let accepted = both_up(&mut pair);
    let before = pair.ends[1].connections();
    kill(&dead, 3);
    let asked = pair.log[0].header.clone();
    for port in 0..100 {
        let source = 1_000 + port;
        from(
            &mut pair,
            3,
            &Header {
                source,
                ..asked.clone()
            },
        );
    }
    assert_eq!(pair.ends[1].connections(), before + 100);
    pair.run_for(secs(300));
    assert_eq!(pair.ends[1].connections(), before);
    assert!(pair.transfer(0, (flow, accepted), &noise(100_000), secs(10)));
}

#[test]
fn a_packet_from_a_strange_address_moves_no_path_unless_its_numbers_fit() {
    let (mut pair, flow, _) = two_paths("geo-spread", SPREAD);
    let accepted = both_up(&mut pair);
    stream(&mut pair, (flow, accepted), MS * 300);
    let of_first = |seen: &&Seen| seen.from == 0 && seen.path.local == client(1);
    let last = pair
        .log
        .iter()
        .rfind(of_first)
        .expect("it was used")
        .header
        .clone();
    let counted = pair.ends[1].endpoint_stats();
    let forged = Header {
        sequence: last.sequence.map(|number| number.wrapping_add(1 << 20)),
        ..last
    };
    from(&mut pair, 9, &forged);
    let stats = pair.ends[1].endpoint_stats();
    assert_eq!(
        (stats.rebound - counted.rebound, stats.unserved - counted.unserved),
        (0, 1)
    );
    let since = pair.now;
    stream(&mut pair, (flow, accepted), secs(1));
    assert!(carried(&pair, 1, since) > 50_000);
}

/// Its peer may have moved, and this may be a copy: neither is answered with a reset, which would end what it belongs to.
#[test]
fn a_retransmission_from_a_strange_address_moves_no_path_and_is_not_refused() {
    let (mut pair, flow, _) = two_paths("geo-spread", SPREAD);
    let accepted = both_up(&mut pair);
    stream(&mut pair, (flow, accepted), MS * 300);
    pair.run_for(secs(1));
    let of_first = |seen: &&Seen| seen.from == 0 && seen.path.local == client(1);
    let last = pair
        .log
        .iter()
        .rfind(of_first)
        .expect("it was used")
        .header
        .clone();
    let (counted, sent) = (pair.ends[1].endpoint_stats(), pair.log.len());
    let retransmission = Header {
        sequence: last.sequence.map(|number| number.wrapping_sub(20)),
        ..last
    };
    from(&mut pair, 9, &retransmission);
    pair.run_for(MS * 100);
    let stats = pair.ends[1].endpoint_stats();
    assert_eq!(
        (stats.rebound - counted.rebound, stats.unserved - counted.unserved),
        (0, 1)
    );
    assert!(
        !pair.log[sent..]
            .iter()
            .any(|seen| seen.header.flags.has(Flags::RST))
    );
}
