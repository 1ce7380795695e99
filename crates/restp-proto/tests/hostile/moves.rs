//! Packets between known ports from an address that is not: a peer behind a translator that has forgotten, or somebody else
//! (RFC 9000 §9.3). Where a layer below knows who sent them the engine believes it.

use crate::common::lines::*;
use crate::common::*;
use restp_base::flow::FlowId;
use restp_base::machine::{Head, Input, Machine, PathAddress};
use restp_base::time::Duration;
use restp_proto::wire::{Flags, Header, MpSetup};
use std::net::SocketAddr;

const MS: Duration = Duration::from_millis(1);

const SOMEBODY: u128 = 7;
const ELSEWHERE: ([u8; 4], u16) = ([10, 7, 7, 7], 7);

/// Both have talked.
fn talking() -> (Pair, FlowId) {
    let mut pair = Pair::new("3wh-arq", &[]);
    let flows = pair.connect();
    assert!(pair.transfer(0, flows, &noise(100_000), MS * 5_000));
    pair.log.clear();
    pair.write(0, flows.0, b"the last");
    pair.run_for(MS * 500);
    pair.read_all(1, flows.1);
    (pair, flows.1)
}

/// The server gets `payload` behind the header of the client's last packet as `change` makes it, from `peer` elsewhere.
fn comes(pair: &mut Pair, peer: u128, payload: &[u8], change: impl FnOnce(&mut Header)) {
    let last = pair
        .log
        .iter()
        .rfind(|seen| seen.from == 0 && seen.is_data())
        .expect("data");
    let mut header = last.header.clone();
    change(&mut header);
    let mut head = Head::new();
    header
        .emit(payload, &mut head)
        .expect("a header that can be said");
    let path = PathAddress {
        local: pair.path(1).local,
        remote: SocketAddr::from(ELSEWHERE),
    };
    let mut datagram = contiguous(path, [&head[..], payload].concat());
    datagram.peer = peer;
    pair.ends[1].handle(pair.now, Input::Datagram(&mut datagram));
    pair.run_for(MS);
}

fn next(header: &mut Header) {
    header.sequence = header.sequence.map(|number| number.wrapping_add(1));
}

#[test]
fn a_flow_moves_with_its_peer_and_with_nobody_else() {
    for (peer, reads) in [(SOMEBODY, 0), (0, 1)] {
        let (mut pair, accepted) = talking();
        comes(&mut pair, peer, b"from elsewhere", next);
        assert_eq!(pair.read_all(1, accepted).len(), reads, "peer {peer}");
        assert_eq!(pair.ends[1].endpoint_stats().rebound, reads as u64);
    }
}

#[test]
fn what_is_behind_neither_moves_a_flow_nor_is_refused() {
    for back in [1, 2, 40, 3_000] {
        let (mut pair, _) = talking();
        let sent = pair.log.iter().filter(|seen| seen.from == 1).count();
        comes(&mut pair, 0, b"old", |header| {
            header.sequence = header.sequence.map(|number| number.wrapping_sub(back));
        });
        let answers = pair.log.iter().filter(|seen| seen.from == 1).skip(sent);
        assert!(
            !answers.into_iter().any(|seen| seen.is(Flags::RST)),
            "{back} behind"
        );
        assert_eq!(pair.ends[1].endpoint_stats().rebound, 0);
    }
}

/// Who has another key guesses the token, or knows it where the first path was not sealed: a path of his would keep the association
/// when all others are gone, and end it with its own.
#[test]
fn a_join_of_another_host_is_refused() {
    for (peer, joins) in [(SOMEBODY, false), (0, true)] {
        let (mut pair, ..) = two_paths("geo-spread", SPREAD);
        both_up(&mut pair);
        let is_join = |seen: &Seen| matches!(seen.header.mp, Some(MpSetup::Join(_)));
        let mut asked = pair.log.iter().filter(|seen| seen.is(Flags::SYN));
        let join = asked.find(|seen| is_join(seen));
        let mut join = join.expect("a join").header.clone();
        join.source ^= 1;
        let mut head = Head::new();
        join.emit(&[], &mut head).expect("a header that can be said");
        let path = PathAddress {
            local: pair.path(1).local,
            remote: client(3),
        };
        let mut datagram = contiguous(path, head.to_vec());
        datagram.peer = peer;
        pair.ends[1].handle(pair.now, Input::Datagram(&mut datagram));
        pair.run_for(MS);
        let answered = |seen: &Seen| seen.from == 1 && seen.path.remote == client(3) && is_join(seen);
        assert_eq!(pair.log.iter().any(answered), joins, "peer {peer}");
        assert_eq!(pair.ends[1].endpoint_stats().refused, u64::from(!joins));
    }
}
