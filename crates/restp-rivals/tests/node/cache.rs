//! A cache between consumers and producers.

use super::network::*;
use restp_base::machine::{Datagram, Machine};
use restp_base::time::{Duration, Time};
use restp_base::units::Rate;
use restp_rivals::itp::manifest::{self, Digest};
use restp_rivals::itp::node::Complaint;
use restp_rivals::itp::wire::{Header, Kind, Pointer, Refusal, flags};

const LONG: Duration = Duration::from_secs(600);

/// Consumers 0.., a cache, and a producer of `data`.
fn behind_a_cache(consumers: usize, data: &[u8]) -> (Net, usize, usize, Hoard) {
    let mut net = Net::new(consumers + 2);
    let (cache, producer) = (consumers, consumers + 1);
    net.nodes[producer].publish(published(data));
    let hoard = Hoard::default();
    let above = [path(cache, producer)];
    net.nodes[cache].relay(net.now, Box::new(hoard.clone()), &above);
    (net, cache, producer, hoard)
}

#[test]
fn the_second_of_two_consumers_costs_the_producer_nothing() {
    let data = content(500_000);
    let (mut net, cache, producer, _) = behind_a_cache(2, &data);
    let wanted = published(&data).wanted();
    let first = net.fetch(0, wanted, &[cache]);
    net.run(LONG, &Shelf::default(), |net| net.is_complete(0, first));
    assert_eq!(net.bytes(0, first), data);
    let sent = net.log.iter().filter(|seen| seen.from == producer).count();
    let second = net.fetch(1, wanted, &[cache]);
    net.run(LONG, &Shelf::default(), |net| net.is_complete(1, second));
    assert_eq!(net.bytes(1, second), data);
    assert_eq!(net.log.iter().filter(|seen| seen.from == producer).count(), sent);
    let (counters, above) = net.nodes[cache].relayed().expect("a cache");
    assert_eq!((counters.misses, counters.hits), (500 + 18, 500 + 18));
    assert_eq!(above[0].refused, 0);
}

/// They are named by BLAKE3, the manifests above them by SHA-256. The first chunk is changed on its way; the cache refuses it and asks anew.
#[test]
fn long_chunks_come_through_a_cache_and_a_changed_one_is_refused() {
    let data = content(700_000);
    let mut net = Net::new(3);
    let wanted = published_in(&data, 4104).wanted();
    net.nodes[2].publish(published_in(&data, 4104));
    net.nodes[1].relay(net.now, Box::new(Hoard::default()), &[path(1, 2)]);
    let mut is_changed = false;
    net.rule = Box::new(move |seen, datagram| {
        let is_chunk = seen.is_data() && seen.header.flags & flags::MANIFEST == 0;
        if seen.from == 2 && is_chunk && !std::mem::replace(&mut is_changed, true) {
            let mut changed = datagram.body.to_vec();
            changed[4000] ^= 1;
            datagram.body = changed.into();
        }
        true
    });
    let flow = net.fetch(0, wanted, &[1]);
    net.run(LONG, &Shelf::default(), |net| net.is_complete(0, flow));
    assert_eq!(net.bytes(0, flow), data);
    let (_, above) = net.nodes[1].relayed().expect("a cache");
    assert_eq!(above[0].refused, 1);
    assert_eq!(net.nodes[0].sources(flow)[0].refused, 0);
}

#[test]
fn a_hundred_consumers_at_once_cost_the_producer_one_copy() {
    let data = content(300_000);
    let (mut net, cache, producer, _) = behind_a_cache(100, &data);
    net.rates[producer] = Some(Rate::from_bps(20_000_000));
    let wanted = published(&data).wanted();
    let flows: Vec<_> = (0..100)
        .map(|consumer| net.fetch(consumer, wanted, &[cache]))
        .collect();
    let all = |net: &Net| {
        flows
            .iter()
            .enumerate()
            .all(|(consumer, flow)| net.is_complete(consumer, *flow))
    };
    net.run(LONG, &Shelf::default(), all);
    assert!(all(&net));
    for (consumer, flow) in flows.iter().enumerate() {
        assert_eq!(net.bytes(consumer, *flow), data);
    }
    let copies = net.data_from(producer) as f64 / 311.0;
    assert!(copies <= 1.02, "{copies}");
}

#[test]
fn losses_above_are_repaired_by_the_cache() {
    let data = content(2_000_000);
    let (mut net, cache, producer, _) = behind_a_cache(1, &data);
    net.rates[producer] = Some(Rate::from_bps(50_000_000));
    let mut lost = dice(3);
    net.rule = Box::new(move |seen, _| seen.from != producer && seen.to != producer || !lost(50));
    let flow = net.fetch(0, published(&data).wanted(), &[cache]);
    net.run(LONG, &Shelf::default(), |net| net.is_complete(0, flow));
    assert_eq!(net.bytes(0, flow), data);
    let took = net.now.as_nanos() as f64 / 1e9;
    // A third of a second of data, and roots that are asked for after a second when a question or an answer is lost.
    assert!(took < 6.0, "{took} s");
}

#[test]
fn a_cache_whose_store_is_wrong_is_found_out_and_the_producer_asked() {
    let data = content(400_000);
    let (mut net, cache, producer, hoard) = behind_a_cache(2, &data);
    let wanted = published(&data).wanted();
    let first = net.fetch(0, wanted, &[cache]);
    net.run(LONG, &Shelf::default(), |net| net.is_complete(0, first));
    for payload in hoard.chunks.lock().unwrap().values_mut() {
        let mut wrong = payload.to_vec();
        wrong[0] ^= 1;
        *payload = wrong.into();
    }
    let second = net.fetch(1, wanted, &[cache, producer]);
    net.run(LONG, &Shelf::default(), |net| net.is_complete(1, second));
    assert_eq!(net.bytes(1, second), data);
    let reports = net.nodes[1].sources(second);
    assert_eq!(reports[0].complaint, Some(Complaint::Lies));
    assert!(reports[0].refused >= 8 && reports[0].bytes == 0 && reports[1].refused == 0);
}

/// Above are one that lies and one that does not: what the cache keeps and hands on is right.
#[test]
fn a_cache_believes_nobody_either() {
    let data = content(300_000);
    let mut net = Net::new(4);
    let (cache, liar, producer) = (1, 2, 3);
    for node in [liar, producer] {
        net.nodes[node].publish(published(&data));
    }
    let hoard = Hoard::default();
    net.nodes[cache].relay(
        net.now,
        Box::new(hoard.clone()),
        &[path(cache, liar), path(cache, producer)],
    );
    net.rule = Box::new(move |seen, datagram| {
        if seen.from == liar && seen.is_data() {
            damage(datagram, 300);
        }
        true
    });
    let flow = net.fetch(0, published(&data).wanted(), &[cache]);
    net.run(LONG, &Shelf::default(), |net| net.is_complete(0, flow));
    assert_eq!(net.bytes(0, flow), data);
    assert_eq!(
        net.nodes[0].sources(flow)[0].refused,
        0,
        "nothing wrong comes out of it"
    );
    let (_, above) = net.nodes[cache].relayed().expect("a cache");
    assert!(above[0].refused > 0 && above[0].bytes == 0 || above[0].bytes < 20_000);
    for (digest, payload) in hoard.chunks.lock().unwrap().iter() {
        assert_eq!(restp_rivals::itp::manifest::digest(payload), *digest);
    }
}

/// Whoever asks for a chunk by a digest that it does not have neither gets it, nor keeps others from it.
#[test]
fn an_invented_digest_harms_nobody() {
    let data = content(50_000);
    let other = content(49_999);
    let (mut net, cache, _, hoard) = behind_a_cache(2, &data);
    let wanted = published(&data).wanted();
    // Consumer 1 asks the cache for another object, which nobody has.
    let lost = net.fetch(1, published(&other).wanted(), &[cache]);
    let flow = net.fetch(0, wanted, &[cache]);
    net.run(Duration::from_secs(20), &Shelf::default(), |net| {
        net.is_complete(0, flow)
    });
    assert_eq!(net.bytes(0, flow), data);
    net.run(Duration::from_secs(20), &Shelf::default(), |_| false);
    assert_eq!(net.nodes[1].sources(lost)[0].complaint, Some(Complaint::HasNot));
    assert_eq!(hoard.roots.lock().unwrap().len(), 1);
}

#[test]
fn a_cache_with_nobody_above_says_that_it_has_not() {
    let mut net = Net::new(2);
    net.nodes[1].relay(net.now, Box::new(Hoard::default()), &[]);
    let flow = net.fetch(0, published(&content(1000)).wanted(), &[1]);
    net.run(Duration::from_secs(3), &Shelf::default(), |_| false);
    assert_eq!(net.nodes[0].sources(flow)[0].complaint, Some(Complaint::HasNot));
}

#[test]
fn a_cache_says_so_when_nobody_above_has_an_object() {
    let mut net = Net::new(4);
    net.nodes[1].relay(net.now, Box::new(Hoard::default()), &[path(1, 2), path(1, 3)]);
    let flow = net.fetch(0, published(&content(1000)).wanted(), &[1]);
    net.run(Duration::from_secs(1), &Shelf::default(), |_| false);
    assert_eq!(net.nodes[0].sources(flow)[0].complaint, Some(Complaint::HasNot));
    let asked = net.log.iter().filter(|seen| seen.from == 1 && seen.to > 1);
    assert_eq!(asked.count(), 4, "each without a cookie and with one");
}

/// Somebody who asks a cache for what he likes. He receives where he says he is.
pub struct Asker {
    node: usize,
    cache: usize,
    cookie: Vec<u8>,
    sequence: u32,
}

impl Asker {
    pub fn new(net: &mut Net, node: usize, cache: usize) -> Asker {
        let mut asker = Asker {
            node,
            cache,
            cookie: Vec::new(),
            sequence: 0,
        };
        asker.ask(net, 1, 0, &[0; 32]);
        let mut answer = Datagram::empty();
        assert!(net.nodes[cache].poll_transmit(net.now, &mut answer));
        asker.cookie = answer.body.to_vec();
        assert_eq!(asker.cookie.len(), 8);
        asker
    }

    pub fn ask(&mut self, net: &mut Net, object: u64, chunk: u32, digest: &Digest) {
        self.sequence += 1;
        let header = Header {
            kind: Kind::Interest(None),
            flags: 0x80,
            pointer: Pointer {
                object,
                chunk,
                sequence: self.sequence,
            },
        };
        let payload = [&digest[..], &self.cookie].concat();
        inject(net, self.node, self.cache, &header, &payload);
    }
}

/// A digest that nothing has.
pub fn invented(number: u32) -> Digest {
    manifest::digest(&[&b"nothing "[..], &number.to_be_bytes()].concat())
}

/// Else he would take the answer for a late one, and its round trip for nothing.
#[test]
fn who_asks_again_before_the_answer_is_answered_once_and_in_his_later_words() {
    let data = content(900);
    let (mut net, cache, _, _) = behind_a_cache(2, &data);
    let object = published(&data).wanted().object();
    let mut asker = Asker::new(&mut net, 1, cache);
    asker.ask(&mut net, object, 0, &manifest::digest(&data));
    asker.ask(&mut net, object, 0, &manifest::digest(&data));
    net.run(LONG, &Shelf::default(), |_| false);
    let answers = net.log.iter().filter(|seen| seen.to == 1 && seen.is_data());
    let sequences: Vec<u32> = answers.map(|seen| seen.header.pointer.sequence).collect();
    assert_eq!(sequences, [asker.sequence]);
}

/// Who knows the digests of an object and asks for them in wrong places does not get them; others, who ask in the right ones, do.
#[test]
fn a_wrong_place_for_a_right_digest_keeps_nobody_from_it() {
    let data = content(200_000);
    let (mut net, cache, producer, _) = behind_a_cache(2, &data);
    net.rates[producer] = Some(Rate::from_bps(2_000_000));
    let wanted = published(&data).wanted();
    let mut asker = Asker::new(&mut net, 1, cache);
    let flow = net.fetch(0, wanted, &[cache]);
    while !net.is_complete(0, flow) && net.now < Time::ZERO + LONG {
        for (number, chunk) in data.chunks(CHUNK as usize).enumerate() {
            let digest = manifest::digest(chunk);
            asker.ask(&mut net, 77, number as u32, &digest);
            asker.ask(&mut net, wanted.object(), number as u32 + 1, &digest);
        }
        net.run(Duration::from_millis(20), &Shelf::default(), |net| {
            net.is_complete(0, flow)
        });
    }
    assert_eq!(net.bytes(0, flow), data);
    let report = &net.nodes[0].sources(flow)[0];
    assert_eq!((report.complaint, report.refused), (None, 0));
}

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
