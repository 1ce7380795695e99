//! Stories of associations over several paths (ResTP §3.3, §3.1.11 to §3.1.13; OP-20, OP-22, OP-36, OP-54, OP-55).

use crate::common::lines::*;
use crate::common::*;
use restp_base::flow::{CloseReason, Flow, PathState, Read};
use restp_base::machine::{Event, Input, Machine, PathAddress};
use restp_proto::wire::{Flags, MpJoin, MpSetup};
use restp_proto::{Cookie, KeptCookie};
use std::net::SocketAddr;

#[test]
fn keys_are_exchanged_on_the_first_path_and_the_second_joins_with_proofs() {
    let (mut pair, flow, _) = two_paths("geo-spread", SPREAD);
    both_up(&mut pair);
    let connected = pair.events[0]
        .iter()
        .filter(|event| **event == Event::Connected(flow))
        .count();
    assert_eq!(connected, 1);
    let set_up: Vec<_> = pair
        .log
        .iter()
        .filter_map(|seen| Some((seen.header.k, seen.header.mp?)))
        .collect();
    let kinds: Vec<_> = set_up
        .iter()
        .map(|(k, mp)| (*k, matches!(mp, MpSetup::Capable(_))))
        .collect();
    assert_eq!(
        kinds[..2],
        [(1, true), (1, true)],
        "SYN and SYN-ACK of the master"
    );
    assert!(
        set_up
            .iter()
            .any(|(k, mp)| *k == 2 && matches!(mp, MpSetup::Join(MpJoin::Syn { .. })))
    );
    assert!(
        set_up
            .iter()
            .any(|(_, mp)| matches!(mp, MpSetup::Join(MpJoin::Ack { .. })))
    );
}

#[test]
fn data_crosses_both_paths_once_and_in_order_in_both_directions() {
    let (mut pair, flow, _) = two_paths("geo-spread", SPREAD);
    let accepted = both_up(&mut pair);
    let from = pair.now;
    assert!(pair.transfer(0, (flow, accepted), &noise(600_000), secs(20)));
    let (a, b) = (carried(&pair, 1, from), carried(&pair, 2, from));
    assert!(a > 50_000 && b > 50_000 && a + b < 640_000, "{a} and {b}");
    assert!(pair.transfer(1, (flow, accepted), &noise(100_000), secs(20)));
}

/// One bit of a payload changes under a header that stays good: only the CRC of the mapping tells. Either side may ask.
#[test]
fn what_a_mapping_carries_is_checked_when_one_side_asks() {
    for sides in [[true, false], [false, true]] {
        let [opener, acceptor] = sides.map(|asks| {
            let asked: &[_] = if asks { &[("mapping-crc", "on")] } else { &[] };
            config("geo-spread", &[SPREAD, asked].concat())
        });
        let mut pair = Pair::of(opener, acceptor.listen(PORT, restp_proto::Acceptance::Any));
        let (first, second) = (line(&pair, 1), line(&pair, 2));
        let flow = pair.ends[0].open(pair.now, first, PORT).expect("a free port");
        pair.ends[0]
            .add_path(pair.now, flow, second, false)
            .expect("several paths");
        let accepted = both_up(&mut pair);
        let mut packets = 0;
        pair.rule = Box::new(move |seen| {
            packets += u64::from(seen.is_data());
            if seen.is_data() && packets % 50 == 0 {
                let head = seen.header.words(true).expect("as sent") * 4;
                Verdict::Flip((head + 7) * 8)
            } else {
                Verdict::Pass
            }
        });
        assert!(pair.transfer(0, (flow, accepted), &noise(300_000), secs(20)));
        assert!(pair.transfer(1, (flow, accepted), &noise(300_000), secs(20)));
        let mappings = pair.log.iter().filter_map(|seen| seen.header.dss?.mapping);
        assert!(
            mappings
                .filter(|mapping| mapping.length > 0)
                .all(|mapping| mapping.payload_crc.is_some())
        );
    }
}

#[test]
fn the_association_ends_when_both_sides_have_finished_and_every_path_is_released() {
    let (mut pair, flow, _) = two_paths("geo-spread", SPREAD);
    let accepted = both_up(&mut pair);
    pair.write(0, flow, &noise(30_000));
    let now = pair.now;
    pair.ends[0].finish(now, flow);
    pair.run_for(secs(1));
    assert_eq!(pair.read_all(1, accepted).concat(), noise(30_000));
    assert_eq!(pair.ends[1].read(pair.now, accepted), Read::End);
    let now = pair.now;
    pair.ends[1].finish(now, accepted);
    pair.run_for(secs(1));
    assert_eq!(
        (pair.closed(0), pair.closed(1)),
        (Some(&CloseReason::Finished), Some(&CloseReason::Finished))
    );
    let now = pair.now;
    pair.ends[0].release(now, flow);
    pair.ends[1].release(now, accepted);
    pair.run_for(secs(200));
    assert_eq!(
        (pair.ends[0].connections(), pair.ends[1].connections()),
        (0, 0),
        "nothing lingers for ever"
    );
}

#[test]
fn a_dead_first_path_does_not_delay_the_set_up_by_more_than_its_head_start() {
    let (mut pair, flow, dead) = two_paths("geo-spread", SPREAD);
    kill(&dead, 1);
    pair.run_for(MS * (40 + 50));
    assert!(
        pair.events[0].contains(&Event::Connected(flow)),
        "{:?}",
        pair.events[0]
    );
    let first = pair.log.iter().filter(|seen| seen.path.local == client(1));
    assert_eq!(
        first.filter(|seen| seen.is(Flags::SYN)).count(),
        2,
        "the attempt, and a join"
    );
}

#[test]
fn the_race_leaves_one_association_behind_and_the_loser_joins() {
    let (mut pair, flow, _) = two_paths("geo-spread", SPREAD);
    pair.delays.insert(client(1), MS * 60); // the first path is slower than the head start
    let accepted = {
        pair.run_for(secs(1));
        pair.accepted().expect("accepted")
    };
    let accepts = pair.events[1]
        .iter()
        .filter(|event| matches!(event, Event::Accepted(_)))
        .count();
    assert_eq!(accepts, 1, "{:?}", pair.events[1]);
    assert_eq!(pair.ends[1].connections(), 1, "the other is forgotten");
    let from = pair.now;
    assert!(pair.transfer(0, (flow, accepted), &noise(400_000), secs(20)));
    assert!(carried(&pair, 1, from) > 0 && carried(&pair, 2, from) > 0);
}

#[test]
fn a_path_that_was_dead_from_the_start_joins_when_it_comes_to_life() {
    let (mut pair, flow, dead) = two_paths("geo-spread", SPREAD);
    kill(&dead, 2);
    pair.run_for(secs(30));
    let accepted = pair.accepted().expect("over the first path");
    heal(&dead);
    pair.run_for(secs(10));
    let from = pair.now;
    assert!(pair.transfer(0, (flow, accepted), &noise(400_000), secs(20)));
    assert!(carried(&pair, 2, from) > 0, "{:?}", pair.events[0]);
}

#[test]
fn hot_standby_uses_the_first_path_only_until_it_fails_and_returns_to_it() {
    let set = &[
        ("ack", "positive+sack"),
        ("recovery", "pipe"),
        ("connection", "three-way"),
        ("pacing", "on"),
    ];
    let (mut pair, flow, dead) = two_paths("mp-opt", set);
    let accepted = both_up(&mut pair);
    let from = pair.now;
    stream(&mut pair, (flow, accepted), secs(1));
    assert_eq!(carried(&pair, 2, from), 0);
    kill(&dead, 1);
    let cut = pair.now;
    stream(&mut pair, (flow, accepted), secs(2));
    // The first packet without an answer left before the cut, and two round trips are borne.
    let taken_over = first_reinjection(&pair, 2, cut).expect("the second path takes over");
    assert!(taken_over <= MS * 42, "{taken_over:?}");
    heal(&dead);
    stream(&mut pair, (flow, accepted), secs(2));
    let from = pair.now;
    stream(&mut pair, (flow, accepted), secs(1));
    assert_eq!(carried(&pair, 2, from), 0, "back on the first path");
}

#[test]
fn a_peer_without_multipath_gets_one_path_and_three_way() {
    let mut single = config("3wh-arq", &[]).listen(PORT, restp_proto::Acceptance::Any);
    single.several_paths = false;
    let mut pair = Pair::of(config("mp-opt", &[]), single);
    let flow = pair.open();
    let second = line(&pair, 2);
    pair.ends[0]
        .add_path(pair.now, flow, second, false)
        .expect("before the answer");
    pair.write(0, flow, b"written before");
    pair.run_for(secs(1));
    let accepted = pair.accepted().expect("accepted");
    assert_eq!(pair.read_all(1, accepted).concat(), b"written before");
    assert!(
        pair.log
            .iter()
            .all(|seen| seen.is(Flags::SYN) || seen.header.dss.is_none())
    );
    assert!(pair.transfer(1, (flow, accepted), &noise(50_000), secs(5)));
}

/// The service would take early data, but the request for several paths falls back to one, three-way: nothing of cookies is
/// left in it, with and without one of an earlier time, when the host had several paths. (The answer could not be built.)
#[test]
fn a_peer_without_multipath_that_takes_early_data_gives_no_cookie() {
    for kept in [None, Cookie::new(&[0xA0; 8])] {
        let mut single = config("mp-opt", &[]).listen(PORT, restp_proto::Acceptance::Any);
        single.several_paths = false;
        let mut pair = Pair::of(config("mp-opt", &[]), single);
        if let Some(cookie) = kept {
            let server = pair.path(0).remote;
            let remaining = secs(60);
            let kept = KeptCookie {
                server,
                port: PORT,
                cookie,
                remaining,
            };
            pair.ends[0].keep_cookie(pair.now, kept);
        }
        let flow = pair.open();
        pair.write(0, flow, b"written before");
        pair.run_for(secs(4));
        let accepted = pair.accepted().expect("accepted");
        assert_eq!(pair.read_all(1, accepted).concat(), b"written before", "once");
        assert!(pair.transfer(1, (flow, accepted), &noise(50_000), secs(5)));
        assert!(pair.transfer(0, (flow, accepted), &noise(50_000), secs(5)));
    }
}

#[test]
fn a_reader_that_stops_shuts_the_shared_window_and_opens_it_again() {
    let set = &[SPREAD, &[("window", "32 segments")]].concat();
    let (mut pair, flow, _) = two_paths("geo-spread", set);
    let accepted = both_up(&mut pair);
    let data = noise(300_000);
    let mut written = 0;
    for _ in 0..200 {
        while written < data.len() {
            let piece = data[written..data.len().min(written + 1400)].to_vec();
            let size = piece.len();
            match pair.ends[0].write(pair.now, flow, piece.into()) {
                Ok(()) => written += size,
                Err(_) => break,
            }
        }
        pair.run_for(MS * 50);
    }
    assert!(pair.ends[1].stats(accepted).unwrap().memory_bytes < 33 * 1400 + 20_000);
    let mut got = Vec::new();
    for _ in 0..400 {
        while let Read::Data(bytes) = pair.ends[1].read(pair.now, accepted) {
            got.extend_from_slice(&bytes);
        }
        while written < data.len() {
            let piece = data[written..data.len().min(written + 1400)].to_vec();
            let size = piece.len();
            match pair.ends[0].write(pair.now, flow, piece.into()) {
                Ok(()) => written += size,
                Err(_) => break,
            }
        }
        pair.run_for(MS * 50);
    }
    assert!(got == data, "{} of {}", got.len(), data.len());
}

#[test]
fn random_losses_on_both_paths_lose_nothing() {
    for seed in 0..20 {
        let (mut pair, flow, _) = two_paths("geo-spread", SPREAD);
        let accepted = both_up(&mut pair);
        let mut chance = restp_base::random::Stream::named(seed, "losses");
        pair.rule = Box::new(move |_| {
            if chance.chance(0.05) {
                Verdict::Drop
            } else {
                Verdict::Pass
            }
        });
        assert!(
            pair.transfer(0, (flow, accepted), &noise(200_000), secs(60)),
            "seed {seed}"
        );
    }
}

#[test]
fn data_beside_the_syn_of_the_first_path_arrives_once_and_the_second_path_joins() {
    request_with_the_first_packet("off");
}

/// Beside a cookie a mapping has no room for a CRC (it was put there, and no header could be built).
#[test]
fn a_mapping_beside_a_cookie_has_no_check() {
    request_with_the_first_packet("on");
}

fn request_with_the_first_packet(check: &str) {
    let set = &[
        ("ack", "positive+sack"),
        ("recovery", "pipe"),
        ("mapping-crc", check),
    ];
    let (mut pair, flow, _) = two_paths("mp-opt", set);
    both_up(&mut pair); // the first time: a cookie is given
    let now = pair.now;
    pair.ends[0].abort(now, flow);
    pair.run_for(secs(2));
    pair.events = [Vec::new(), Vec::new()];
    let from = pair.now;
    let first = line(&pair, 1);
    let again = pair.ends[0].open(from, first, PORT).expect("a free port");
    let second = line(&pair, 2);
    pair.ends[0]
        .add_path(from, again, second, false)
        .expect("several paths");
    pair.write(0, again, b"request");
    pair.run_for(MS * 11);
    let accepted = pair.accepted().expect("accepted with the first packet");
    assert_eq!(pair.read_all(1, accepted).concat(), b"request");
    pair.write(1, accepted, b"response");
    pair.run_for(MS * 10);
    assert_eq!(
        pair.read_all(0, again).concat(),
        b"response",
        "one round trip after the opening"
    );
    both_up(&mut pair);
    assert!(pair.transfer(0, (again, accepted), &noise(300_000), secs(10)));
    assert!(carried(&pair, 2, from) == 0, "the second path stands by");
}

#[test]
fn a_forged_a_replayed_and_an_unknown_join_are_refused() {
    let (mut pair, flow, _) = two_paths("geo-spread", SPREAD);
    let accepted = both_up(&mut pair);
    let join = |pair: &Pair, flags: Flags| {
        let joins = pair
            .log
            .iter()
            .filter(|seen| seen.from == 0 && seen.path.local == client(2));
        joins
            .filter(|seen| matches!(seen.header.mp, Some(MpSetup::Join(_))))
            .find(|seen| seen.is(flags))
            .cloned()
    };
    let (syn, ack) = (
        join(&pair, Flags::SYN).expect("a join"),
        join(&pair, Flags::ACK).expect("its proof"),
    );
    let before = pair.ends[1].connections();
    // The token of nobody.
    let mut unknown = syn.header.clone();
    unknown.source ^= 1;
    if let Some(MpSetup::Join(MpJoin::Syn { token, .. })) = &mut unknown.mp {
        token[0] ^= 1;
    }
    inject_from(&mut pair, 3, &unknown);
    assert_eq!(pair.ends[1].connections(), before);
    // The exchange of the second path again, from elsewhere: the nonce of the other side is fresh, the proof is not.
    let mut replayed = syn.header.clone();
    replayed.source ^= 1;
    inject_from(&mut pair, 3, &replayed);
    let mut proof = ack.header.clone();
    proof.source ^= 1;
    inject_from(&mut pair, 3, &proof);
    pair.run_for(secs(300));
    let up = pair.events[1]
        .iter()
        .filter(|event| matches!(event, Event::Path(_, path, PathState::Up) if path.remote == client(3)));
    assert_eq!(up.count(), 0);
    assert!(pair.transfer(0, (flow, accepted), &noise(100_000), secs(10)));
}

/// Gives a packet to the server as if the client's address `n` had sent it.
fn inject_from(pair: &mut Pair, n: u8, header: &restp_proto::wire::Header) {
    let mut head = restp_base::machine::Head::new();
    header.emit(&[], &mut head).expect("a header that can be said");
    let path = PathAddress {
        local: pair.path(1).local,
        remote: client(n),
    };
    let now = pair.now;
    pair.ends[1].handle(now, Input::Datagram(&mut contiguous(path, head.to_vec())));
    pair.run_for(MS);
}

#[test]
fn no_more_paths_than_the_header_can_count() {
    let (mut pair, flow, _) = two_paths("geo-spread", SPREAD);
    both_up(&mut pair);
    for n in 3..30 {
        let line = line(&pair, n);
        let _ = pair.ends[0].add_path(pair.now, flow, line, false);
    }
    pair.run_for(secs(10));
    let up = |side: usize| {
        pair.events[side]
            .iter()
            .filter(|event| matches!(event, Event::Path(_, _, PathState::Up)))
            .count()
    };
    assert_eq!((up(0), up(1)), (15, 15));
    assert!(pair.log.iter().all(|seen| seen.header.k <= 15));
}

#[test]
fn a_path_whose_address_changes_goes_on_under_the_new_one() {
    let (mut pair, flow, _) = two_paths("geo-spread", SPREAD);
    let accepted = both_up(&mut pair);
    stream(&mut pair, (flow, accepted), MS * 300);
    // A translator gives the first path a new outside address.
    let (old, new) = (client(1), SocketAddr::from(([10, 9, 9, 9], 4000)));
    pair.translate.insert(old, new);
    let from = pair.now;
    stream(&mut pair, (flow, accepted), secs(1));
    assert!(carried(&pair, 1, from) > 50_000);
    assert_eq!(pair.ends[1].endpoint_stats().rebound, 1);
    assert!(
        !pair.events[0]
            .iter()
            .any(|event| matches!(event, Event::Path(_, _, PathState::Down)))
    );
}

#[test]
fn a_join_that_overtakes_the_last_packet_of_the_set_up_leaves_the_first_path_alone() {
    let (mut pair, flow, _) = two_paths("geo-spread", SPREAD);
    let mut held = 0;
    pair.rule = Box::new(move |seen| {
        // The third packet of the first path takes its time.
        let confirms =
            seen.from == 0 && seen.is(Flags::ACK) && matches!(seen.header.mp, Some(MpSetup::Capable(_)));
        held += u32::from(confirms);
        if confirms && held == 1 {
            Verdict::Late(MS * 300)
        } else {
            Verdict::Pass
        }
    });
    pair.run_for(secs(1));
    let accepted = pair.accepted().expect("accepted");
    assert!(!pair.log.iter().any(|seen| seen.header.flags.has(Flags::RST)));
    let from = pair.now;
    assert!(pair.transfer(0, (flow, accepted), &noise(400_000), secs(20)));
    assert!(carried(&pair, 1, from) > 0 && carried(&pair, 2, from) > 0);
}
