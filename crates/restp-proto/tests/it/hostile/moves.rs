//! Packets between known ports from an address that is not: a peer behind a translator that has forgotten, or somebody else
//! (RFC 9000 §9.3). Where a layer below knows who sent them the engine believes it.

use crate::common::lines::*;
use crate::common::*;
use restp_base::flow::{CloseReason, FlowId};
use restp_base::machine::{Head, Input, Machine, PathAddress};
use restp_base::time::Duration;
use restp_proto::wire::{Flags, Header, MpSetup};
use restp_proto::{Acceptance, InitialNumbers};
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

/// A client, and a server to which a layer below proves addresses, or does not.
fn serving(proved: bool) -> Pair {
    let mut service = config("3wh-arq", &[]);
    service.addresses_proved = proved;
    Pair::of(config("3wh-arq", &[]), service.listen(PORT, Acceptance::Any))
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
            !answers.into_iter().any(|seen| seen.header.flags.has(Flags::RST)),
            "{back} behind"
        );
        assert_eq!(pair.ends[1].endpoint_stats().rebound, 0);
    }
}

/// A flow in which a peer has nothing to say is where its others are.
#[test]
fn all_flows_of_a_peer_move_with_one_where_addresses_are_proved() {
    for (proved, sends) in [(true, true), (false, false)] {
        let mut pair = serving(proved);
        let (_, silent) = pair.connect();
        let (talks, _) = pair.connect();
        pair.write(0, talks, b"the last");
        pair.run_for(MS * 500);
        comes(&mut pair, 0, b"from elsewhere", next);
        pair.log.clear();
        pair.write(1, silent, b"are you there?");
        pair.run_for(MS);
        assert_eq!(
            pair.log[0].path.remote == SocketAddr::from(ELSEWHERE),
            sends,
            "proved: {proved}"
        );
    }
}

/// Somebody had asked for a flow from where the peer came to be next, and what the peer said from there went to that one: its flow
/// was not answered any more.
#[test]
fn a_request_of_another_does_not_stand_where_a_peer_moves_to() {
    for proved in [true, false] {
        let mut pair = serving(proved);
        let flows = pair.connect();
        pair.write(0, flows.0, b"the last");
        pair.run_for(MS * 500);
        comes(&mut pair, SOMEBODY, b"", |header| {
            header.flags = Flags::SYN;
            header.acknowledgement = None;
            header.sequence = header.sequence.map(|number| number.wrapping_add(1 << 20));
        });
        comes(&mut pair, 0, b"from elsewhere", next);
        let rebound = pair.ends[1].endpoint_stats().rebound;
        assert_eq!(rebound, u64::from(proved));
        let read = pair.read_all(1, flows.1);
        assert_eq!(read.concat().ends_with(b"from elsewhere"), proved);
    }
}

/// A flow in which a peer has nothing to say stayed behind where somebody had asked for another one between its ports.
#[test]
fn a_request_of_another_keeps_no_silent_flow_back() {
    let mut pair = serving(true);
    let (_, silent) = pair.connect();
    let source = pair
        .log
        .iter()
        .rfind(|seen| seen.from == 0)
        .expect("it asked")
        .header
        .source;
    let (talks, _) = pair.connect();
    pair.write(0, talks, b"the last");
    pair.run_for(MS * 500);
    comes(&mut pair, SOMEBODY, b"", |header| {
        header.source = source;
        header.flags = Flags::SYN;
        header.acknowledgement = None;
    });
    comes(&mut pair, 0, b"from elsewhere", next);
    pair.log.clear();
    pair.write(1, silent, b"are you there?");
    pair.run_for(MS);
    assert_eq!(pair.log[0].path.remote, SocketAddr::from(ELSEWHERE));
}

/// Its RST is all that a peer says from its new address. Where no layer below proves that it is there, anybody may have said it.
#[test]
fn the_reset_of_a_peer_that_has_moved_ends_its_flow_where_addresses_are_proved() {
    for (proved, peer, behind, ends) in [
        (true, 0, 0, true),
        (true, 0, 2, false),
        (true, SOMEBODY, 0, false),
        (false, 0, 0, false),
    ] {
        let mut pair = serving(proved);
        let flows = pair.connect();
        pair.write(0, flows.0, b"the last");
        pair.run_for(MS * 500);
        comes(&mut pair, peer, b"", |header| {
            next(header);
            header.sequence = header.sequence.map(|number| number.wrapping_sub(behind));
            header.flags = Flags::RST | Flags::ACK;
        });
        let reset = pair.closed(1) == Some(&CloseReason::Reset);
        assert_eq!(reset, ends, "proved: {proved}, peer {peer}, {behind} behind");
    }
}

/// The answer to a request went to the address that its sender has left. It is the same connection that answers at the new one.
#[test]
fn a_request_that_comes_again_from_elsewhere_opens_no_second_connection_where_addresses_are_proved() {
    for (proved, peer, held) in [(true, 0, 1), (true, SOMEBODY, 2), (false, 0, 2)] {
        for preset in ["3wh-arq", "default"] {
            let mut service = config(preset, &[]);
            service.addresses_proved = proved;
            service.initial_numbers = InitialNumbers::Keyed([5; 16]);
            let mut pair = Pair::of(config(preset, &[]), service.listen(PORT, Acceptance::Any));
            pair.rule = silent(1);
            pair.open();
            pair.run_for(MS * 20);
            let request = pair.log[0].bytes();
            let path = PathAddress {
                local: pair.path(1).local,
                remote: SocketAddr::from(ELSEWHERE),
            };
            let mut datagram = contiguous(path, request);
            datagram.peer = peer;
            pair.ends[1].handle(pair.now, Input::Datagram(&mut datagram));
            pair.run_for(MS);
            assert_eq!(
                pair.ends[1].connections(),
                held,
                "{preset}, proved: {proved}, peer {peer}"
            );
            let answers = pair.log.iter().filter(|seen| seen.from == 1);
            let answers: Vec<_> = answers
                .map(|seen| (seen.path.remote, seen.header.sequence))
                .collect();
            assert_eq!(answers.len(), 2);
            assert_eq!(answers[1].0, path.remote, "it is answered where it came from");
            assert_eq!(answers[0].1 == answers[1].1, held == 1, "{answers:?}");
        }
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

/// One packet from elsewhere made each of the flows answer there.
#[test]
fn a_peer_that_moves_with_many_flows_is_answered_by_the_one_that_spoke() {
    let mut pair = serving(true);
    for _ in 0..20 {
        pair.connect();
        pair.log.clear();
    }
    let (talks, _) = pair.connect();
    pair.write(0, talks, b"the last");
    pair.run_for(MS * 500);
    let before = pair.log.len();
    comes(&mut pair, 0, b"from elsewhere", next);
    let sent = pair.log[before..].iter().filter(|seen| seen.from == 1).count();
    assert_eq!(sent, 1);
}

/// Nothing is retransmitted, so all that shows where the client is may be an encoded packet.
#[test]
fn an_encoded_packet_from_a_proved_address_moves_its_path() {
    for (proved, connection) in [(true, "three-way"), (true, "fast-open"), (false, "three-way")] {
        let coded = [("reliability", "quasi"), ("connection", connection)];
        let mut service = config("3wh-arq", &coded);
        service.addresses_proved = proved;
        let mut pair = Pair::of(config("3wh-arq", &coded), service.listen(PORT, Acceptance::Any));
        let (flow, _) = pair.connect();
        pair.write(0, flow, b"the last");
        pair.run_for(MS * 500);
        let encoded = pair.log.iter().rfind(|seen| seen.from == 0 && seen.is_encoded());
        let path = PathAddress {
            local: pair.path(1).local,
            remote: SocketAddr::from(ELSEWHERE),
        };
        let mut datagram = contiguous(path, encoded.expect("an encoded packet").bytes());
        pair.ends[1].handle(pair.now, Input::Datagram(&mut datagram));
        assert_eq!(pair.ends[1].endpoint_stats().rebound, u64::from(proved));
    }
}

/// Its numbers stand behind early data that found no room: its answer would have been RST.
#[test]
fn a_peer_whose_early_data_found_no_room_is_not_refused_elsewhere() {
    for (ahead, is_refused) in [(1, false), (10, false), (10_000, true)] {
        let narrow = [("flow-control", "window"), ("window", "1 segments")];
        let mut service = config("3wh-arq", &narrow);
        service.addresses_proved = true;
        let mut pair = Pair::of(config("3wh-arq", &narrow), service.listen(PORT, Acceptance::Any));
        let (flow, accepted) = pair.connect();
        pair.write(0, flow, b"the last");
        pair.run_for(MS * 500);
        pair.read_all(1, accepted);
        let sent = pair.log.len();
        comes(&mut pair, 0, b"", |header| {
            header.sequence = header.sequence.map(|number| number.wrapping_add(1 + ahead));
        });
        let refused = |seen: &Seen| seen.from == 1 && seen.header.flags.has(Flags::RST);
        assert_eq!(pair.log[sent..].iter().any(refused), is_refused, "{ahead} ahead");
    }
}

/// What was sent to where the peer was left again when the timer, which had been doubled meanwhile, ran out.
#[test]
fn a_peer_that_has_moved_is_sent_at_once_what_was_sent_in_vain() {
    for (proved, least) in [(true, 1), (false, 0)] {
        let mut pair = serving(proved);
        let (flow, accepted) = pair.connect();
        pair.write(0, flow, b"the last");
        pair.run_for(MS * 500);
        pair.rule = silent(1);
        pair.write(1, accepted, b"in vain");
        pair.run_for(MS * 2000);
        let before = pair.log.len();
        comes(&mut pair, 0, b"from elsewhere", next);
        let there = |seen: &&Seen| seen.path.remote == SocketAddr::from(ELSEWHERE) && seen.is_data();
        assert_eq!(
            pair.log[before..].iter().filter(there).count(),
            least,
            "proved: {proved}"
        );
    }
}

/// The layer below may bring an answer by way of other addresses than those that were asked by. RST from there ended what the peer had
/// answered with.
#[test]
fn an_answer_by_way_of_other_addresses_is_not_refused_under_a_seal() {
    for (proved, refusals) in [(true, 0), (false, 1)] {
        let mut client_config = config("3wh-arq", &[]);
        client_config.addresses_proved = proved;
        let mut pair = Pair::of(
            client_config,
            config("3wh-arq", &[]).listen(PORT, Acceptance::Any),
        );
        pair.open();
        pair.rule = silent(1);
        pair.run_for(MS * 100);
        let is_answer = |seen: &&Seen| seen.from == 1 && seen.is(Flags::SYN | Flags::ACK);
        let answer = pair.log.iter().find(is_answer).expect("it answers").bytes();
        let path = PathAddress {
            local: client(9),
            remote: SocketAddr::from(ELSEWHERE),
        };
        let sent = pair.log.len();
        let mut datagram = contiguous(path, answer);
        pair.ends[0].handle(pair.now, Input::Datagram(&mut datagram));
        pair.run_for(MS);
        let refused = |seen: &&Seen| seen.from == 0 && seen.header.flags.has(Flags::RST);
        assert_eq!(
            pair.log[sent..].iter().filter(refused).count(),
            refusals,
            "proved: {proved}"
        );
    }
}
