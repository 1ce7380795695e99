//! In order per stream, whatever the network does; no stream waits for another.

use super::*;
use restp_base::flow::CloseReason;
use restp_base::random::Stream as Chance;
use restp_proto::wire::Flags;

/// Loses, delays and doubles packets of both sides by chance.
fn rough(seed: u64) -> Rule {
    let mut chance = Chance::named(seed, "network");
    Box::new(move |_| match chance.below(100) {
        0..4 => Verdict::Drop,
        4..14 => Verdict::Late(MS * (1 + chance.below(30))),
        14..16 => Verdict::Twice,
        _ => Verdict::Pass,
    })
}

#[test]
fn twenty_streams_over_a_rough_network_arrive_whole() {
    for seed in 1..=5 {
        let (mut pair, flow, accepted) = connected(&[]);
        pair.rule = rough(seed);
        let mut exchange = Exchange::new(&mut pair, flow, 20, 60_000 + 997 * seed as usize);
        exchange.complete(&mut pair, (flow, accepted), Duration::from_secs(60));
    }
}

#[test]
fn the_same_with_forward_error_correction_and_with_another_acknowledgement() {
    let kinds: &[&[(&str, &str)]] = &[
        &[("reliability", "harq")],
        &[
            ("ack", "positive"),
            ("ack-thinning", "off"),
            ("recovery", "duplicate-ack"),
        ],
        &[("ack", "positive+snack")],
        &[("crc", "on"), ("mtu-discovery", "off"), ("segment", "300 B")],
    ];
    for set in kinds {
        let (mut pair, flow, accepted) = connected(set);
        pair.rule = rough(9);
        let mut exchange = Exchange::new(&mut pair, flow, 5, 50_000);
        exchange.complete(&mut pair, (flow, accepted), Duration::from_secs(90));
    }
}

#[test]
fn a_lost_segment_holds_up_only_the_streams_in_it() {
    let (mut pair, flow, accepted) = connected(&[]);
    let (first, second) = (open(&mut pair, 0, flow), open(&mut pair, 0, flow));
    let mut lost = 0;
    pair.rule = Box::new(move |seen| {
        lost += u32::from(seen.is_data() && seen.from == 0);
        if seen.is_data() && seen.from == 0 && lost == 1 {
            Verdict::Drop
        } else {
            Verdict::Pass
        }
    });
    streams(&mut pair, 0, flow)
        .write(first, text(first, 500))
        .unwrap();
    pair.run_for(MS);
    streams(&mut pair, 0, flow)
        .write(second, text(second, 20_000))
        .unwrap();
    pair.run_for(MS * 15);
    assert_eq!(read_all(&mut pair, 1, accepted, first).0.len(), 0);
    assert!(
        read_all(&mut pair, 1, accepted, second).0.len() >= 10_000,
        "before the retransmission can be there"
    );
    pair.run_for(MS * 500);
    assert_eq!(read_all(&mut pair, 1, accepted, first).0, text(first, 500));
}

#[test]
fn both_directions_and_both_ends_streams_at_once() {
    let (mut pair, flow, accepted) = connected(&[]);
    pair.rule = rough(3);
    let (ours, theirs) = (open(&mut pair, 0, flow), open(&mut pair, 1, accepted));
    assert!(ours.is_of_opener() && !theirs.is_of_opener());
    for id in [ours, theirs] {
        for (side, name) in [(0, flow), (1, accepted)] {
            let data = text(StreamId(id.0 + 10 * side as u64), 30_000);
            let streams = streams(&mut pair, side, name);
            // A stream is known to the other end when something of it has come.
            if id.is_of_opener() == (side == 0) {
                streams.write(id, data).unwrap();
                streams.finish(id);
            }
        }
    }
    pair.run_for(MS * 2000);
    for (side, name, id) in [(1, accepted, ours), (0, flow, theirs)] {
        assert_eq!(streams(&mut pair, side, name).accept(), Some(id));
        let back = text(StreamId(id.0 + 10 * side as u64), 30_000);
        let streams = streams(&mut pair, side, name);
        streams.write(id, back).unwrap();
        streams.finish(id);
    }
    pair.run_for(MS * 2000);
    for id in [ours, theirs] {
        for (side, name) in [(0, flow), (1, accepted)] {
            let expected = text(StreamId(id.0 + 10 * (1 - side) as u64), 30_000).to_vec();
            assert_eq!(
                read_all(&mut pair, side, name, id),
                (expected, StreamRead::End),
                "{id} at {side}"
            );
        }
    }
    for (side, name) in [(0, flow), (1, accepted)] {
        assert_eq!(streams(&mut pair, side, name).open_streams(), 0);
    }
}

#[test]
fn several_paths_carry_streams_and_one_may_die() {
    carry_while_one_dies(&[]);
}

#[test]
fn paths_that_share_their_numbers_carry_streams_and_one_may_die() {
    carry_while_one_dies(SHARED);
}

const SHARED: &[(&str, &str)] = &[("numbering", "shared")];

fn carry_while_one_dies(set: &[(&str, &str)]) {
    let set = [crate::common::lines::SPREAD, STREAMS, set].concat();
    let (mut pair, flow, dead) = crate::common::lines::two_paths("geo-spread", &set);
    let accepted = crate::common::lines::both_up(&mut pair);
    let mut exchange = Exchange::new(&mut pair, flow, 30, 40_000);
    for _ in 0..10 {
        exchange.step(&mut pair, (flow, accepted), MS * 2);
    }
    assert!(crate::common::lines::carried(&pair, 1, restp_base::time::Time::ZERO) > 0);
    assert!(crate::common::lines::carried(&pair, 2, restp_base::time::Time::ZERO) > 0);
    crate::common::lines::kill(&dead, 1);
    exchange.complete(&mut pair, (flow, accepted), Duration::from_secs(30));
}

#[test]
fn streams_over_shared_numbers_begin_before_the_set_up_are_woken_after_a_silence_and_end() {
    let set = [
        crate::common::lines::SPREAD,
        STREAMS,
        SHARED,
        &[("progress-timeout", "2 s")],
    ]
    .concat();
    let (mut pair, flow, _) = crate::common::lines::two_paths("geo-spread", &set);
    let early = open(&mut pair, 0, flow);
    streams(&mut pair, 0, flow)
        .write(early, text(early, 5000))
        .unwrap();
    let accepted = crate::common::lines::both_up(&mut pair);
    assert_eq!(read_all(&mut pair, 1, accepted, early).0, text(early, 5000));
    pair.run_for(Duration::from_secs(10));
    let own = open(&mut pair, 1, accepted);
    for (side, name, id) in [(0, flow, early), (1, accepted, own)] {
        streams(&mut pair, side, name).write(id, text(id, 9000)).unwrap();
        streams(&mut pair, side, name).finish(id);
    }
    pair.run_for(MS * 200);
    let whole = |id| (text(id, 9000).to_vec(), StreamRead::End);
    assert_eq!(read_all(&mut pair, 1, accepted, early), whole(early));
    assert_eq!(read_all(&mut pair, 0, flow, own), whole(own));
    let now = pair.now;
    streams(&mut pair, 1, accepted).finish(early);
    streams(&mut pair, 0, flow).finish(own);
    pair.ends[0].finish(now, flow);
    pair.ends[1].finish(now, accepted);
    pair.run_for(MS * 200);
    for (side, name, id) in [(0, flow, early), (1, accepted, own)] {
        assert_eq!(streams(&mut pair, side, name).read(id), StreamRead::End);
    }
    pair.run_for(MS * 500);
    let finished = Some(&CloseReason::Finished);
    assert_eq!((pair.closed(0), pair.closed(1)), (finished, finished));
}

#[test]
fn a_peer_with_one_path_gets_streams_over_that() {
    let preset = [
        ("paths", "spreading"),
        ("scheduling", "fastest-rtt"),
        ("congestion", "newreno"),
    ];
    let opener = config("cubic", &[STREAMS, &preset].concat());
    let mut acceptor = config("cubic", &[]).listen(PORT, restp_proto::Acceptance::Any);
    acceptor.several_paths = false;
    let mut pair = Pair::of(opener, acceptor);
    let flow = pair.open();
    let id = open(&mut pair, 0, flow);
    streams(&mut pair, 0, flow).write(id, text(id, 5000)).unwrap();
    streams(&mut pair, 0, flow).finish(id);
    pair.run_for(MS * 3000);
    if let Some(accepted) = pair.accepted() {
        let syn = pair
            .log
            .iter()
            .find(|seen| seen.header.flags.has(Flags::SYN))
            .unwrap();
        assert!(syn.header.services.multipath());
        assert_eq!(
            read_all(&mut pair, 1, accepted, id),
            (text(id, 5000).to_vec(), StreamRead::End)
        );
    } else {
        panic!("{:?}", pair.events);
    }
}
