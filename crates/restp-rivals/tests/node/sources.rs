//! A cache above which several stand, some of whom are silent, slow or busy.

use super::cache::*;
use super::network::*;
use restp_base::time::{Duration, Time};
use restp_base::units::Rate;
use restp_rivals::itp::wire::{Header, Kind, Pointer, Refusal};

/// Node 1 is a cache, node 2 above it has `data`, and node 3, which is asked first, says nothing.
fn beside_a_silent_one(data: &[u8]) -> (Net, usize) {
    let (cache, producer, dead) = (1, 2, 3);
    let mut net = Net::new(4);
    net.nodes[producer].publish(published(data));
    net.rule = Box::new(move |seen, _| seen.to != dead);
    let above = [path(cache, dead), path(cache, producer)];
    net.nodes[cache].relay(net.now, Box::new(Hoard::default()), &above);
    (net, cache)
}

/// Above are one that says what it has not, and one that says nothing.
#[test]
fn who_asks_for_what_nobody_has_keeps_no_other_waiting() {
    let data = content(300_000);
    let (mut net, cache) = beside_a_silent_one(&data);
    let mut asker = Asker::new(&mut net, 9, cache);
    let flow = net.fetch(0, published(&data).wanted(), &[cache]);
    let mut number = 0;
    while !net.is_complete(0, flow) && net.now < Time::ZERO + Duration::from_secs(120) {
        for _ in 0..2000 {
            number += 1;
            asker.ask(&mut net, u64::from(number), 0, &invented(number));
        }
        net.run(Duration::from_millis(50), &Shelf::default(), |net| {
            net.is_complete(0, flow)
        });
    }
    assert_eq!(net.bytes(0, flow), data);
    assert_eq!(net.nodes[0].sources(flow)[0].complaint, None);
    let (counters, _) = net.nodes[cache].relayed().expect("a cache");
    assert!(counters.busy > 10_000, "he is told to wait: {counters:?}");
    assert!(net.now < Time::ZERO + Duration::from_secs(10), "{:?}", net.now);
}

/// The first who asks for roots that nobody has gets half of the places, and another still has one.
#[test]
fn who_asks_for_roots_that_nobody_has_keeps_no_other_waiting() {
    let data = content(50_000);
    let (mut net, cache, producer, _) = behind_a_cache(1, &data);
    let wanted = published(&data).wanted();
    net.rule = Box::new(move |seen, datagram| {
        let is_invented = datagram.body.windows(16).any(|key| key == [9; 16]);
        seen.to != producer || !is_invented
    });
    let asker = Asker::new(&mut net, 9, cache);
    for number in 0..5000u32 {
        let header = Header {
            kind: Kind::Request,
            flags: 0x80,
            pointer: Pointer::default(),
        };
        let payload = [&invented(number)[..], &[9; 32], &asker.cookie].concat();
        inject(&mut net, 9, cache, &header, &payload);
    }
    let flow = net.fetch(0, wanted, &[cache]);
    net.run(Duration::from_secs(5), &Shelf::default(), |net| {
        net.is_complete(0, flow)
    });
    let is_busy = |kind: &Kind| {
        matches!(
            kind,
            Kind::Nack {
                code: Refusal::Busy,
                ..
            }
        )
    };
    let turned_away = (net.log.iter()).filter(|seen| seen.to == 9 && is_busy(&seen.header.kind));
    assert_eq!(turned_away.count(), 5000 - 512);
    assert_eq!(net.bytes(0, flow), data);
}

/// Somebody writes the producer's address on his envelopes, and knows the object but no number.
#[test]
fn who_does_not_see_the_numbers_cannot_turn_a_cache_against_its_producer() {
    let data = content(1_000_000);
    let object = published(&data).wanted().object();
    let refused = |code| Kind::Nack {
        code,
        retry_after_ms: 0,
    };
    for kind in [
        Kind::Data,
        refused(Refusal::Unproved),
        refused(Refusal::NoNexus),
        refused(Refusal::Busy),
    ] {
        let (mut net, cache, producer, _) = behind_a_cache(1, &data);
        net.rates[producer] = Some(Rate::from_bps(20_000_000));
        let flow = net.fetch(0, published(&data).wanted(), &[cache]);
        let (mut forged, before) = (0, net.nodes[cache].counters().dropped);
        while !net.is_complete(0, flow) && net.now < Time::ZERO + Duration::from_secs(60) {
            for chunk in 0..100 {
                let header = Header {
                    kind: kind.clone(),
                    flags: 0x80,
                    pointer: Pointer {
                        object,
                        chunk,
                        sequence: chunk * 7 + forged,
                    },
                };
                inject(&mut net, producer, cache, &header, &[0x55; 8]);
                forged += 1;
            }
            net.run(Duration::from_millis(5), &Shelf::default(), |net| {
                net.is_complete(0, flow)
            });
        }
        assert_eq!(net.bytes(0, flow), data, "{kind:?}");
        assert_eq!(
            net.nodes[cache].counters().dropped - before,
            u64::from(forged),
            "{kind:?}"
        );
        assert!(
            net.now < Time::ZERO + Duration::from_secs(3),
            "{kind:?}: {:?}",
            net.now
        );
    }
}

/// A file of zeros is one chunk in many places: the first answer is that of all who wait, and nobody asks twice.
#[test]
fn one_chunk_in_many_places_answers_in_all_of_them() {
    let data = vec![0; 300_000];
    let (mut net, cache, producer, _) = behind_a_cache(1, &data);
    let flow = net.fetch(0, published(&data).wanted(), &[cache]);
    net.run(LONG, &Shelf::default(), |net| net.is_complete(0, flow));
    assert_eq!(net.bytes(0, flow), data);
    let interests = |from| {
        let asks = |seen: &&Seen| seen.from == from && matches!(seen.header.kind, Kind::Interest(_));
        net.log.iter().filter(asks).count()
    };
    assert_eq!(interests(0), net.got[&(0, flow)].len(), "each place once");
    assert!(interests(cache) < 100, "{}", interests(cache));
    assert!(net.data_from(producer) < 100);
}

#[test]
fn what_nobody_has_takes_its_places_only_until_that_is_known() {
    let (mut net, cache, _, _) = behind_a_cache(1, &content(1000));
    let mut asker = Asker::new(&mut net, 9, cache);
    for round in 0..4u32 {
        for number in 0..20_000 {
            asker.ask(&mut net, 5, number, &invented(round * 20_000 + number));
        }
        net.run(Duration::from_secs(30), &Shelf::default(), |_| false);
    }
    let (counters, _) = net.nodes[cache].relayed().expect("a cache");
    assert_eq!((counters.misses, counters.busy), (80_000, 0));
    let refused =
        (net.log.iter()).filter(|seen| seen.to == 9 && matches!(seen.header.kind, Kind::Nack { .. }));
    assert_eq!(refused.count(), 80_000);
}

#[test]
fn what_nobody_asks_for_any_more_is_not_asked_for_above_either() {
    let (mut net, cache, producer, _) = behind_a_cache(1, &content(1000));
    net.rule = Box::new(move |seen, _| seen.to != producer);
    let mut asker = Asker::new(&mut net, 9, cache);
    (0..500).for_each(|number| asker.ask(&mut net, 5, number, &invented(number)));
    net.run(Duration::from_secs(200), &Shelf::default(), |_| false);
    let before = net.log.len();
    net.run(Duration::from_secs(600), &Shelf::default(), |_| false);
    let after: Vec<_> = net.log[before..]
        .iter()
        .filter(|seen| seen.to == producer)
        .collect();
    assert!(after.is_empty(), "{}", after.len());
}

/// The same consumer asks for something else, which one of those above has not, and of which the other says nothing.
#[test]
fn what_only_a_silent_producer_may_have_does_not_stand_before_what_another_has() {
    let data = content(300_000);
    let (mut net, cache) = beside_a_silent_one(&data);
    let mut asker = Asker::new(&mut net, 0, cache);
    for number in 0..2000 {
        asker.ask(&mut net, 5, number, &invented(number));
    }
    net.run(Duration::from_secs(5), &Shelf::default(), |_| false);
    let begun = net.now;
    let flow = net.fetch(0, published(&data).wanted(), &[cache]);
    net.run(LONG, &Shelf::default(), |net| net.is_complete(0, flow));
    assert_eq!(net.bytes(0, flow), data);
    let took = net.now.since(begun);
    assert!(took < Duration::from_secs(10), "{took:?}");
}

#[test]
fn a_producer_that_is_busy_is_not_one_that_has_nothing() {
    let data = content(200_000);
    let (mut net, cache, producer, _) = behind_a_cache(1, &data);
    net.rates[producer] = Some(Rate::from_bps(1_000_000));
    let flow = net.fetch(0, published(&data).wanted(), &[cache]);
    net.run(Duration::from_millis(500), &Shelf::default(), |_| false);
    let asked = |seen: &&Seen| seen.from == cache && matches!(seen.header.kind, Kind::Interest(_));
    let open = net.log.iter().rfind(asked).expect("it has begun").header.clone();
    let header = Header {
        kind: Kind::Nack {
            code: Refusal::Busy,
            retry_after_ms: 0,
        },
        ..open
    };
    let before = net.nodes[cache].counters().dropped;
    inject(&mut net, producer, cache, &header, &[]);
    assert_eq!(net.nodes[cache].counters().dropped, before);
    // Who refuses something else than this number asked for does not speak of it.
    let (object, chunk) = (header.pointer.object ^ 1, header.pointer.chunk ^ 1);
    let pointer = header.pointer;
    for pointer in [Pointer { object, ..pointer }, Pointer { chunk, ..pointer }] {
        let header = Header {
            kind: Kind::Nack {
                code: Refusal::NoNexus,
                retry_after_ms: 0,
            },
            flags: header.flags,
            pointer,
        };
        inject(&mut net, producer, cache, &header, &[]);
    }
    assert_eq!(net.nodes[cache].counters().dropped, before + 2);
    net.run(Duration::from_secs(1), &Shelf::default(), |_| false);
    assert_eq!(net.nodes[0].sources(flow)[0].complaint, None);
    net.run(LONG, &Shelf::default(), |net| net.is_complete(0, flow));
    assert_eq!(net.nodes[0].sources(flow)[0].complaint, None);
    assert_eq!(net.bytes(0, flow), data);
}

/// What only a slow producer has is asked of it at its pace, and what another has at that of the other.
#[test]
fn what_only_a_slow_producer_has_does_not_hold_back_what_a_fast_one_has() {
    let data = content(1_999_000);
    let slow_data: Vec<u8> = content(4_000_000).iter().map(|byte| !byte).collect();
    let mut net = Net::new(5);
    let (cache, fast, slow) = (2, 3, 4);
    net.nodes[slow].publish(published(&slow_data));
    net.nodes[fast].publish(published(&data));
    net.rates[slow] = Some(Rate::from_bps(1_000_000));
    net.nodes[cache].relay(
        net.now,
        Box::new(Hoard::default()),
        &[path(cache, slow), path(cache, fast)],
    );
    let first = net.fetch(1, published(&slow_data).wanted(), &[cache]);
    net.run(Duration::from_secs(3), &Shelf::default(), |_| false);
    let begun = net.now;
    let flow = net.fetch(0, published(&data).wanted(), &[cache]);
    net.run(LONG, &Shelf::default(), |net| net.is_complete(0, flow));
    assert_eq!(net.bytes(0, flow), data);
    assert!(!net.is_complete(1, first));
    let took = net.now.since(begun);
    assert!(took < Duration::from_secs(7), "{took:?}");
}

/// What had to wait for its time to leave may find the window closed when that comes: then it waits for an answer, not for the clock.
/// Two objects that share chunks make a cache answer in bursts and then not at all.
#[test]
fn a_window_that_closes_before_its_pacing_is_over_lets_time_pass() {
    let (longer, data) = (content(4_000_000), content(1_999_000));
    let mut net = Net::new(5);
    let (cache, fast, slow) = (2, 3, 4);
    net.nodes[slow].publish(published(&longer));
    for node in [fast, slow] {
        net.nodes[node].publish(published(&data));
    }
    net.rates[slow] = Some(Rate::from_bps(1_000_000));
    net.nodes[cache].relay(
        net.now,
        Box::new(Hoard::default()),
        &[path(cache, slow), path(cache, fast)],
    );
    net.fetch(1, published(&longer).wanted(), &[cache]);
    net.run(Duration::from_secs(3), &Shelf::default(), |_| false);
    let flow = net.fetch(0, published(&data).wanted(), &[cache]);
    net.run(LONG, &Shelf::default(), |net| net.is_complete(0, flow));
    assert_eq!(net.bytes(0, flow), data);
}
