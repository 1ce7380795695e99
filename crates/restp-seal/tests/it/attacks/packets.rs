//! What an attacker on the way can do, each with its outcome: at most the network he already is. Nothing corrupts data,
//! breaks a connection off or makes a host work for nothing.

use crate::common::*;
use restp_base::flow::Flow;
use restp_base::machine::{Input, Machine, PathAddress};
use restp_base::random::Stream;
use restp_base::time::Duration;
use restp_proto::wire::{Flags, Header, Services};
use restp_seal::packet::OVERHEAD;
use std::cell::RefCell;
use std::rc::Rc;

/// A connection, and 200 kB each way through what `rule` does to packets.
fn survives(rule: Rule) -> Pair {
    let mut pair = Pair::new("default", &[]);
    let flows = pair.connect();
    pair.rule = rule;
    assert!(pair.transfer(0, flows, &noise(200_000), Duration::from_secs(120)));
    assert!(pair.transfer(1, flows, &noise(200_000), Duration::from_secs(120)));
    assert_eq!((pair.closed(0), pair.closed(1)), (None, None));
    pair
}

fn chance(seed: u64) -> Stream {
    Stream::named(seed, "attacker")
}

#[test]
fn dropped_delayed_doubled_and_overtaken_packets_are_what_networks_do() {
    let mut dice = chance(1);
    let pair = survives(Box::new(move |_| match dice.below(20) {
        0 => Verdict::Drop,
        1 => Verdict::Twice,
        2 => Verdict::Late(ms(dice.below(60))),
        _ => Verdict::Pass,
    }));
    for end in &pair.ends {
        let stats = end.seal_stats();
        assert!(stats.replayed > 0, "doubles are taken once: {stats:?}");
        assert_eq!((stats.forged, stats.plain, stats.malformed), (0, 0, 0));
    }
}

#[test]
fn flipped_bits_and_cut_ends_are_losses() {
    let mut dice = chance(2);
    let pair = survives(Box::new(move |seen| {
        let mut bytes = seen.bytes.clone();
        let bit = dice.below(bytes.len() as u64 * 8) as usize;
        match dice.below(20) {
            0 => bytes[bit / 8] ^= 0x80 >> (bit % 8),
            1 => bytes.truncate(bit / 8),
            _ => return Verdict::Pass,
        }
        if bytes.is_empty() {
            Verdict::Drop
        } else {
            Verdict::As(bytes)
        }
    }));
    assert!(pair.ends.iter().all(|end| end.seal_stats().forged > 0));
}

#[test]
fn packets_of_one_connection_are_nothing_in_another() {
    let mut first = Pair::new("3wh-arq", &[]);
    let flows = first.connect();
    assert!(first.transfer(0, flows, &noise(20_000), Duration::from_secs(5)));
    let spoils: Vec<Vec<u8>> = first.log.iter().map(|seen| seen.bytes.clone()).collect();
    // The same hosts and ports, but chance is another.
    let mut client = seal(1);
    client.seed = [99; 32].into();
    let mut server = seal(2);
    server.seed = [98; 32].into();
    let mut second = Pair::of("3wh-arq", &[], client, server);
    second.know();
    let flows = second.connect();
    let sent = |kind| {
        let found = second
            .log
            .iter()
            .find(|seen| seen.from == 0 && seen.kind() == kind);
        found.expect("sent").bytes[1..9].to_vec()
    };
    // How the client and the server are addressed.
    let ids = [sent(HELLO_IK), sent(DATA)];
    for bytes in &spoils {
        for (side, id) in ids.iter().enumerate() {
            second.inject(side, path(side), bytes);
            // With the right connection id as well.
            let mut renamed = bytes.clone();
            renamed[1..9].copy_from_slice(id);
            second.inject(side, path(side), &renamed);
        }
    }
    assert!(second.transfer(0, flows, &noise(20_000), Duration::from_secs(5)));
    assert!(second.ends[1].seal_stats().unknown > 0 && second.ends[1].seal_stats().forged > 0);
}

#[test]
fn a_recorded_connection_played_again_delivers_nothing() {
    let mut pair = Pair::new("3wh-arq", &[]);
    let (flow, accepted) = pair.connect();
    assert!(pair.transfer(0, (flow, accepted), b"pay 100", ms(500)));
    let recorded: Vec<Vec<u8>> = pair
        .log
        .iter()
        .filter(|s| s.from == 0)
        .map(|s| s.bytes.clone())
        .collect();
    pair.ends[0].finish(pair.now, flow);
    pair.ends[1].finish(pair.now, accepted);
    pair.run_for(Duration::from_secs(300));
    pair.ends[1].release(pair.now, accepted);
    pair.events = [Vec::new(), Vec::new()];
    for bytes in &recorded {
        pair.inject(1, path(1), bytes);
        pair.run_for(ms(1));
    }
    assert_eq!(pair.accepted(), None, "{:?}", pair.events[1]);
    // A server that has forgotten everything begins a handshake at most.
    let config = config("3wh-arq", &[]).listen(PORT, restp_proto::Acceptance::Any);
    let mut later = seal(2);
    later.seed = [98; 32].into();
    pair.ends[1] = restp_seal::Sealed::new(restp_proto::Endpoint::new(config), later);
    for bytes in &recorded {
        pair.inject(1, path(1), bytes);
        pair.run_for(ms(1));
    }
    assert_eq!(pair.accepted(), None);
    assert_eq!(pair.ends[1].half_open(), 1);
}

#[test]
fn a_recorded_request_played_again_does_not_turn_the_server_away_from_its_client() {
    for known in [true, false] {
        let meet = |client| {
            let mut pair = Pair::of("3wh-arq", &[], client, seal(2));
            if known {
                pair.know();
            }
            let flows = pair.connect();
            (pair, flows)
        };
        let (pair, _) = meet(seal(1));
        let recorded = pair.log[0].bytes.clone();
        assert_eq!(recorded[0], if known { HELLO_IK } else { HELLO_IX });
        // The server has forgotten the handshake, not who is there; and the client has nothing to send.
        let mut later = seal(1);
        later.seed = [77; 32].into();
        let (mut pair, (flow, accepted)) = meet(later);
        pair.inject(1, path(1), &recorded);
        pair.run_for(ms(100));
        assert_eq!((pair.ends[1].half_open(), pair.ends[1].sessions()), (1, 2));
        assert!(pair.transfer(1, (flow, accepted), &noise(50_000), Duration::from_secs(10)));
    }
}

#[test]
fn early_data_is_taken_once_even_when_the_connection_is_long_gone() {
    let mut pair = warm("opt-arq");
    let flow = pair.open();
    pair.write(0, flow, b"pay 100");
    pair.run_for(ms(100));
    let accepted = pair.accepted().expect("early");
    assert_eq!(pair.read_all(1, accepted), b"pay 100");
    assert_eq!(pair.ends[1].seal_stats().early, 1);
    let flight: Vec<Vec<u8>> = (pair.log.iter())
        .filter(|seen| seen.from == 0 && seen.kind() != DATA)
        .map(|seen| seen.bytes.clone())
        .collect();
    assert_eq!(flight[0][0], HELLO_RESUMED);
    pair.ends[1].abort(pair.now, accepted);
    pair.ends[1].release(pair.now, accepted);
    pair.run_for(Duration::from_secs(3600));
    pair.events = [Vec::new(), Vec::new()];
    for bytes in flight.iter().chain(&flight) {
        pair.inject(1, path(1), bytes);
        pair.run_for(ms(10));
    }
    let again = pair.accepted().map(|flow| pair.read_all(1, flow));
    assert!(again.is_none_or(|data| data.is_empty()), "delivered twice");
    assert_eq!(pair.ends[1].seal_stats().early, 1);
}

/// A header as the peer of `side` would send it, as far as anybody can know.
fn plain(flags: Flags, like: &Header) -> Vec<u8> {
    let mut header = like.clone();
    header.flags = flags;
    header.acknowledgement = like.acknowledgement.filter(|_| flags.has(Flags::ACK));
    let mut head = restp_base::machine::Head::new();
    header.emit(&[], &mut head).expect("can be said");
    head.to_vec()
}

#[test]
fn rst_fin_and_optimistic_acknowledgements_need_a_seal() {
    let mut pair = Pair::new("3wh-arq", &[]);
    let flows = pair.connect();
    let services = Services::of(&config("3wh-arq", &[]).composition);
    for number in 0..50 {
        let mut like = Header::new(services, FIRST_PORT, PORT);
        like.sequence = Some(number);
        like.acknowledgement = Some(number + 1_000);
        like.window = Some(64);
        for flags in [
            Flags::RST | Flags::ACK,
            Flags::RST,
            Flags::FIN | Flags::ACK,
            Flags::ACK,
            Flags::SYN,
        ] {
            pair.inject(1, path(1), &plain(flags, &like));
        }
    }
    assert!(pair.transfer(0, flows, &noise(50_000), Duration::from_secs(10)));
    assert_eq!(pair.ends[1].seal_stats().plain, 250);
    assert_eq!((pair.closed(0), pair.closed(1)), (None, None));
}

#[test]
fn a_plain_host_is_not_talked_to_nor_a_plain_answer_believed() {
    let mut pair = Pair::of("3wh-arq", &[], seal(1), seal(2));
    let services = Services::of(&config("3wh-arq", &[]).composition);
    let flow = pair.open();
    pair.rule = silent(0);
    pair.run_for(ms(20));
    let mut header = Header::new(services, PORT, FIRST_PORT);
    (header.sequence, header.acknowledgement, header.window) = (Some(1), Some(1), Some(64));
    pair.inject(0, path(0), &plain(Flags::SYN | Flags::ACK, &header));
    pair.run_for(ms(20));
    assert!(!pair.events[0].contains(&restp_base::machine::Event::Connected(flow)));
    assert_eq!(pair.ends[0].seal_stats().plain, 1);
}

#[test]
fn services_cannot_be_taken_out_of_a_request_that_all_can_read() {
    let mut pair = Pair::of("default", &[], seal(1), seal(2));
    // The request with its SYN in clear: acknowledgement techniques, congestion control, everything.
    let first = Rc::new(RefCell::new(None));
    let seen_by = first.clone();
    pair.rule = Box::new(move |seen| {
        if seen.kind() != HELLO_IX {
            return Verdict::Pass;
        }
        let mut bytes = seen.bytes.clone();
        let syn = bytes.len() - 24; // somewhere in its PDU
        bytes[syn + 4] ^= 0x01;
        *seen_by.borrow_mut() = Some(bytes.clone());
        Verdict::As(bytes)
    });
    pair.open();
    pair.run_for(Duration::from_secs(2));
    assert!(first.borrow().is_some());
    assert_eq!(pair.accepted(), None, "never completed");
    assert!(
        !pair.events[0]
            .iter()
            .any(|event| matches!(event, restp_base::machine::Event::Connected(_)))
    );
}

#[test]
fn a_forged_answer_does_not_spoil_the_genuine_one() {
    for known in [true, false] {
        let mut pair = Pair::of("3wh-arq", &[], seal(1), seal(2));
        if known {
            pair.know();
        }
        pair.open();
        pair.run_for(ms(1));
        let id = pair.log[0].bytes[1..9].to_vec();
        let mut dice = chance(4);
        for length in [0, 40, 82, 130, 300] {
            let rest: Vec<u8> = (0..length).map(|_| dice.bits() as u8).collect();
            pair.inject(0, path(0), &[&[ANSWER][..], &id, &rest].concat());
        }
        pair.run_for(ms(100));
        assert!(pair.accepted().is_some(), "key known: {known}");
        assert_eq!(pair.ends[0].seal_stats().forged, 5);
    }
}

#[test]
fn a_client_cannot_speak_from_the_address_of_another() {
    let mut pair = Pair::new("3wh-arq", &[]);
    let flows = pair.connect();
    // Another client of the same server, with the address of the first on its envelopes.
    let mut mallory = restp_seal::Sealed::new(restp_proto::Endpoint::new(config("3wh-arq", &[])), seal(13));
    let key = pair.ends[1].public_key();
    mallory.expect(address(2), key);
    let own = PathAddress {
        local: address(13),
        remote: address(2),
    };
    mallory.open(pair.now, own, PORT).expect("a port");
    let mut out = restp_base::machine::Datagram::empty();
    let mut spoofed = 0;
    while mallory.poll_transmit(pair.now, &mut out) {
        spoofed += 1;
        pair.inject(1, path(1), &out.to_vec());
    }
    assert!(spoofed > 0 && pair.ends[1].seal_stats().misplaced > 0);
    assert!(pair.transfer(0, flows, &noise(20_000), Duration::from_secs(5)));
}

#[test]
fn noise_of_every_length_and_kind_is_counted_and_nothing_else() {
    let mut pair = Pair::new("default", &[]);
    let flows = pair.connect();
    let mut dice = chance(9);
    let own: Vec<Vec<u8>> = pair.log.iter().map(|seen| seen.bytes.clone()).collect();
    for round in 0..3000 {
        let side = (round % 2) as usize;
        let mut bytes: Vec<u8> = (0..dice.below(400)).map(|_| dice.bits() as u8).collect();
        if round % 3 == 0 {
            bytes = own[dice.below(own.len() as u64) as usize].clone();
            let at = dice.below(bytes.len() as u64) as usize;
            bytes[at] = dice.bits() as u8;
        } else if let Some(first) = bytes.first_mut() {
            *first = 0x80 | dice.below(8) as u8;
        }
        pair.inject(side, path(side), &bytes);
    }
    assert!(pair.transfer(0, flows, &noise(50_000), Duration::from_secs(20)));
    assert!(pair.transfer(1, flows, &noise(50_000), Duration::from_secs(20)));
}

#[test]
fn a_path_notice_is_a_matter_of_this_host_alone() {
    // Notices come from the lower layer, never from a packet: what says so on the wire is not genuine.
    let mut pair = Pair::new("default", &[]);
    let flows = pair.connect();
    for input in [true, false] {
        let local = path(0).local;
        pair.ends[0].handle(pair.now, Input::PathNotice { local, up: input });
    }
    pair.ends[0].handle(
        pair.now,
        Input::PathNotice {
            local: path(0).local,
            up: true,
        },
    );
    assert!(pair.transfer(0, flows, &noise(20_000), Duration::from_secs(60)));
}

#[test]
fn a_sealed_datagram_is_so_much_longer() {
    let mut pair = Pair::new("3wh-arq", &[]);
    let flows = pair.connect();
    pair.log.clear();
    assert!(pair.transfer(0, flows, &noise(1400), ms(500)));
    let longest = pair.log.iter().map(|seen| seen.bytes.len()).max();
    assert_eq!(longest, Some(1400 + 24 + OVERHEAD));
}

#[test]
fn a_request_that_was_changed_on_its_way_does_not_stand_in_the_way_of_the_next() {
    for place in 1..=24 {
        let mut pair = Pair::of("default", &[], seal(1), seal(2));
        let mut changed = 0;
        pair.rule = Box::new(move |seen| {
            if seen.kind() != HELLO_IX || changed == 2 {
                return Verdict::Pass;
            }
            changed += 1;
            let mut bytes = seen.bytes.clone();
            let at = bytes.len() - place; // somewhere in its SYN
            bytes[at] ^= 0x01;
            Verdict::As(bytes)
        });
        let flow = pair.open();
        pair.run_for(Duration::from_secs(30));
        let connected = pair.events[0].contains(&restp_base::machine::Event::Connected(flow));
        assert!(connected, "byte {place} from the end");
    }
}
