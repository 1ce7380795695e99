//! Many hosts at one bottleneck: nobody is preferred, and a packet costs what it costs among few.

use bytes::Bytes;
use restp_base::machine::Datagram;
use restp_base::time::{Duration, Time};
use restp_base::units::Rate;
use restp_sim::*;

const MBPS_10: Rate = Rate::from_bps(10_000_000);

fn ms(n: u64) -> Time {
    Time::ZERO + Duration::from_millis(n)
}

/// Packets of each of eight sources that cross a bottleneck as fast as their access links and with room for one packet.
/// The first source hands over all its packets at once, so that they queue in its access link; the others send theirs
/// as their line takes them. All eight lines deliver at the same instants, and one packet of eight finds room.
fn shares_at_a_router(seed: u64) -> [u32; 8] {
    const EACH: u64 = 2000;
    let line = |packets| DirectionSpec::new(MBPS_10, Duration::from_millis(1), QueueLimit::Packets(packets));
    let mut links: Vec<LinkSpec> = (0..8)
        .map(|i| {
            LinkSpec::symmetric(
                &format!("access-{i}"),
                [&format!("source-{i}"), "router"],
                line(EACH),
            )
        })
        .collect();
    links.push(LinkSpec::symmetric("bottleneck", ["router", "sink"], line(1)));
    let mut world = World::new(&links, seed).expect("a network");
    let sink = world.node("sink").map(|node| world.attach(node)).expect("a node");
    let sources = [0, 1, 2, 3, 4, 5, 6, 7].map(|i| {
        let node = world.node(&format!("source-{i}")).expect("a node");
        world.attach(node)
    });
    let datagram = |tag| {
        Box::new(Datagram {
            body: Bytes::from(vec![tag]),
            ..Datagram::empty()
        })
    };
    for _ in 0..EACH {
        world.send(Time::ZERO, sources[0], sink, 1250, &mut datagram(0));
    }
    let mut shares = [0; 8];
    let mut arrived = Box::new(Datagram::empty());
    for packet in 0..EACH {
        for (tag, source) in (1..).zip(&sources[1..]) {
            world.send(ms(packet), *source, sink, 1250, &mut datagram(tag));
        }
        while world.next(ms(packet + 1), &mut arrived).is_some() {
            shares[usize::from(arrived.body[0])] += 1;
        }
    }
    shares
}

/// Where each tie is drawn anew, a source is admitted at one instant in eight: 250 times of 2,000, with a standard
/// deviation of 15. Five of them make Jain's index at least 1 / (1 + (5 · 15 / 250)²) = 0.92, and no share is beyond.
#[test]
fn a_packet_that_queued_in_its_access_link_wins_no_more_ties_than_others() {
    for seed in 0..10 {
        let shares = shares_at_a_router(seed);
        assert!(
            shares.iter().all(|share| share.abs_diff(250) <= 75),
            "seed {seed}: {shares:?}"
        );
        let total: u32 = shares.iter().sum();
        let squares: u32 = shares.iter().map(|share| share * share).sum();
        let jain = f64::from(total).powi(2) / (8.0 * f64::from(squares));
        assert!(jain >= 0.92, "seed {seed}: Jain {jain}");
    }
}

/// Events that `pairs` of hosts across one bottleneck cause when each pair hands one packet to and fro ten times.
fn events_of(pairs: usize) -> u64 {
    let line = |rate| DirectionSpec::new(rate, Duration::from_millis(1), QueueLimit::Unlimited);
    let access = |side: &str, hub, i| {
        LinkSpec::symmetric(
            &format!("{side}-{i}"),
            [&format!("{side}-host-{i}"), hub],
            line(MBPS_10),
        )
    };
    let mut links = vec![LinkSpec::symmetric("bottleneck", ["west", "east"], line(MBPS_10))];
    links.extend((0..pairs).flat_map(|i| [access("left", "west", i), access("right", "east", i)]));
    let mut world = World::new(&links, 1).expect("a network");
    let hosts: Vec<HostId> = (0..2 * pairs)
        .map(|i| {
            let side = if i % 2 == 0 { "left" } else { "right" };
            let node = world.node(&format!("{side}-host-{}", i / 2)).expect("a node");
            world.attach(node)
        })
        .collect();
    let mut datagram = Box::new(Datagram::empty());
    for pair in hosts.chunks(2) {
        world.send(Time::ZERO, pair[0], pair[1], 100, &mut datagram);
    }
    let mut left = 19 * pairs;
    while let Some((now, HostEvent::Arrival { host })) = world.next(ms(1_000_000), &mut datagram) {
        let index = host.index();
        world.wake_at(host, now + Duration::from_secs(3600));
        if left > 0 {
            left -= 1;
            world.send(now, host, hosts[index ^ 1], 100, &mut datagram);
        }
    }
    assert_eq!(world.totals().delivered, 20 * pairs as u64);
    world.events()
}

#[test]
fn a_packet_costs_as_many_events_among_a_thousand_pairs_as_among_ten() {
    assert_eq!(events_of(1000), 100 * events_of(10));
}
