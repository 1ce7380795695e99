//! A cache between consumers and producers.

use super::network::*;
use restp_base::time::Duration;
use restp_base::units::Rate;
use restp_rivals::itp::node::Complaint;

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
            let mut changed = datagram.body.to_vec();
            changed[300] ^= 1;
            datagram.body = changed.into();
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
