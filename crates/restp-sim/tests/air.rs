//! Media in a network: packets over hops through the air and over wires, conserved, traced and counted.

use bytes::Bytes;
use restp_base::machine::Datagram;
use restp_base::time::{Duration, Time};
use restp_base::units::Rate;
use restp_sim::medium::{MediumSpec, Place, Station};
use restp_sim::*;
use std::sync::{Arc, Mutex};

fn chain(name: &str, hops: usize, y: f64) -> MediumSpec {
    let station = |n: usize| Station::new(&format!("n{n}"), Place::new(300.0 * n as f64, y));
    MediumSpec::new(name, (0..=hops).map(station).collect())
}

/// A server behind the last station.
fn wire() -> LinkSpec {
    let line = DirectionSpec::new(
        Rate::from_bps(100_000_000),
        Duration::from_millis(1),
        QueueLimit::Packets(100),
    );
    LinkSpec::symmetric("wire", ["n4", "server"], line)
}

struct Run {
    arrivals: Vec<(Time, HostId)>,
    stats: Vec<LinkStats>,
    totals: Totals,
    lost: Vec<LostSegment>,
    lines: String,
}

/// A source on the first station keeps `window` packets on their way to a server behind a wire, which answers each.
fn run(seed: u64, window: usize) -> Run {
    let mut world = World::with_media(&[wire()], &[chain("air", 4, 0.0)], seed).expect("a network");
    let [source, server] = ["n0", "server"].map(|name| world.node(name).expect("a node"));
    assert_eq!(
        world.one_way_delay(source, server),
        Duration::from_nanos(4 * 1001 + 1_000_000)
    );
    let [source, server] = [source, server].map(|node| world.attach(node));
    let lines = Arc::new(Mutex::new(String::new()));
    let sink = Arc::clone(&lines);
    world.trace(move |event| *sink.lock().expect("one thread") += &format!("{event}\n"));
    let (mut arrivals, mut datagram) = (Vec::new(), Box::new(Datagram::empty()));
    assert_eq!(world.take_lost().count(), 0);
    let send = |world: &mut World, now, from, to, bytes: usize, datagram: &mut Box<Datagram>| {
        **datagram = Datagram {
            body: Bytes::from(vec![7; bytes]),
            segment: Some(restp_base::observe::Transmitted { number: 1, at: now }),
            ..Datagram::empty()
        };
        world.send(now, from, to, bytes as u32 + 20, datagram);
    };
    for _ in 0..window {
        send(&mut world, Time::ZERO, source, server, 1000, &mut datagram);
    }
    world.wake_at(source, Time::from_nanos(1_000_000_000));
    while let Some((now, event)) = world.next(Time::from_nanos(20_000_000_000), &mut datagram) {
        match event {
            HostEvent::Arrival { host } => {
                arrivals.push((now, host));
                let (from, to, bytes) = if host == server {
                    (server, source, 28)
                } else {
                    (source, server, 1000)
                };
                send(&mut world, now, from, to, bytes, &mut datagram);
            }
            HostEvent::Wake { host } => {
                // Losses would end it else.
                send(&mut world, now, source, server, 1000, &mut datagram);
                world.wake_at(host, now + Duration::from_millis(500));
            }
        }
    }
    let lines = lines.lock().expect("one thread").clone();
    Run {
        arrivals,
        stats: world.link_stats(),
        totals: world.totals(),
        lost: world.take_lost().collect(),
        lines,
    }
}

#[test]
fn packets_cross_air_and_wire_and_are_conserved() {
    let Run {
        arrivals,
        stats,
        totals,
        lost,
        lines,
    } = run(1, 60);
    assert!(totals.delivered > 500, "{totals:?}");
    assert_eq!(arrivals.len() as u64, totals.delivered);
    assert_eq!(totals.sent, totals.delivered + totals.dropped + totals.in_flight);
    let sum = |count: fn(&Counters) -> u64| stats.iter().map(|link| count(&link.counters)).sum::<u64>();
    assert_eq!(totals.dropped, sum(Counters::dropped));
    assert_eq!(
        totals.in_flight,
        sum(|c| c.packets) - sum(|c| c.delivered) - totals.dropped
    );
    assert!(sum(|c| c.dropped_queue) > 0, "60 packets find 51 places");
    // The true cause of every loss: a queue, or frames that met.
    assert_eq!(lost.len() as u64, totals.dropped);
    let of_the_air = |reason| {
        matches!(
            reason,
            DropReason::Queue | DropReason::Collision | DropReason::Contention
        )
    };
    assert!(lost.iter().all(|lost| of_the_air(lost.reason)), "{lost:?}");
    let names: Vec<&str> = stats.iter().step_by(2).map(|link| link.name.as_str()).collect();
    assert_eq!(
        names,
        ["wire", "air:n0-n1", "air:n1-n2", "air:n2-n3", "air:n3-n4"]
    );
    let count = |word: &str| lines.lines().filter(|line| line.contains(word)).count() as u64;
    assert_eq!(count(" sent "), totals.sent);
    assert_eq!(count(" dropped "), totals.dropped);
    assert_eq!(count(" delivered "), totals.delivered);
    assert!(count(" accepted air:n0-n1/forward") > 200, "{lines}");
}

#[test]
fn a_seed_is_a_run() {
    assert_eq!(run(3, 4).lines, run(3, 4).lines);
    assert_ne!(run(3, 4).lines, run(4, 4).lines);
}

/// CMT §4.1: interfaces of one node on orthogonal channels do not disturb each other.
#[test]
fn two_channels_of_the_same_nodes_carry_as_much_as_each_alone() {
    let carried = |channels: &[&str]| -> Vec<u64> {
        let media: Vec<MediumSpec> = channels.iter().map(|name| chain(name, 4, 0.0)).collect();
        let mut world = World::with_media(&[], &media, 1).expect("a network");
        let [from, to] = ["n0", "n4"].map(|name| world.node(name).expect("a node"));
        let sink = world.attach(to);
        let mut datagram = Box::new(Datagram::empty());
        let sources: Vec<HostId> = channels
            .iter()
            .map(|name| {
                let links: Vec<String> = (0..4).map(|n| format!("{name}:n{n}-n{}", n + 1)).collect();
                let route = world.topology().along(from, to, &links).expect("a route");
                let source = world.attach_along(from, route);
                world.wake_at(source, Time::ZERO);
                source
            })
            .collect();
        while let Some((now, event)) = world.next(Time::from_nanos(10_000_000_000), &mut datagram) {
            if let HostEvent::Wake { host } = event {
                world.send(now, host, sink, 1048, &mut datagram);
                world.wake_at(host, now + Duration::from_millis(10));
            }
        }
        let last = |name: &&str| format!("{name}:n3-n4");
        let stats = world.link_stats();
        let of = |name| {
            stats
                .iter()
                .find(|link| link.name == name)
                .map(|link| link.counters.delivered)
        };
        assert_eq!(sources.len(), channels.len());
        channels.iter().filter_map(|name| of(last(name))).collect()
    };
    let (one, other, both) = (carried(&["one"]), carried(&["other"]), carried(&["one", "other"]));
    assert!(one[0] > 200, "{one:?}");
    assert_eq!([one, other].concat(), both);
}

#[test]
fn parts_may_lie_apart_where_there_is_a_medium() {
    let mut far = chain("far", 1, 5000.0);
    far.stations[0].node = "m0".into();
    far.stations[1].node = "m1".into();
    let mut world = World::with_media(&[], &[chain("air", 1, 0.0), far], 1).expect("a network");
    let [here, there] = ["n0", "m1"].map(|name| world.node(name).expect("a node"));
    assert!(!world.topology().reaches(here, there));
    let [here, there] = [here, there].map(|node| world.attach(node));
    let mut datagram = Box::new(Datagram::empty());
    world.send(Time::ZERO, here, there, 100, &mut datagram);
    assert_eq!(world.next(Time::MAX, &mut datagram), None);
    assert_eq!((world.totals().dropped, world.totals().in_flight), (1, 0));
}

/// A path that is named by its media, and by a wire between them.
#[test]
fn a_medium_stands_for_its_hops_on_the_way() {
    let far = MediumSpec::new(
        "far",
        [("server", 0.0), ("m1", 300.0), ("m2", 600.0)]
            .map(|(node, x)| Station::new(node, Place::new(x, 0.0)))
            .into(),
    );
    let media = [chain("one", 4, 0.0), chain("two", 4, 0.0), far];
    let topology = Topology::with_media(&[wire()], &media).expect("a network");
    let along = |from: &str, to: &str, path: &[&str]| {
        let [from, to] = [from, to].map(|name| topology.node(name).expect("a node"));
        let path: Vec<String> = path.iter().map(|&link| link.into()).collect();
        let route = topology
            .along(from, to, &path)
            .map_err(|error| error.to_string())?;
        Ok::<Vec<String>, String>(
            topology
                .links_of(&route)
                .map(|(link, way)| format!("{link}/{way}"))
                .collect(),
        )
    };
    let hops = |medium: &str, from: usize, to: usize| -> Vec<String> {
        (from..to)
            .map(|n| format!("{medium}:n{n}-n{}/forward", n + 1))
            .collect()
    };
    assert_eq!(along("n0", "n4", &["two"]), Ok(hops("two", 0, 4)));
    let there = along("n1", "m2", &["two", "wire", "far"]).expect("a route");
    let rest = ["wire/forward", "far:server-m1/forward", "far:m1-m2/forward"];
    assert_eq!(there, [hops("two", 1, 4), rest.map(String::from).into()].concat());
    assert_eq!(
        along("n2", "n0", &["one"]).expect("a route"),
        ["one:n1-n2/reverse", "one:n0-n1/reverse"]
    );
    assert!(
        along("n0", "m2", &["one"])
            .expect_err("no way")
            .contains("\"one\" lead from \"n0\"")
    );
    assert!(
        along("n0", "n4", &["three"])
            .expect_err("no medium")
            .contains("\"three\"")
    );
}

/// Few long hops cost less than many short ones, and a wire less than either.
#[test]
fn routes_take_few_hops_through_the_air() {
    let places = [0.0, 100.0, 200.0, 300.0, 600.0];
    let station = |(n, &x): (usize, &f64)| Station::new(&format!("n{n}"), Place::new(x, 0.0));
    let air = MediumSpec::new("air", places.iter().enumerate().map(station).collect());
    let topology = Topology::with_media(&[], std::slice::from_ref(&air)).expect("a network");
    let [from, to] = ["n0", "n4"].map(|name| topology.node(name).expect("a node"));
    let route: Vec<&str> = topology.route(from, to).map(|(link, _)| link).collect();
    assert_eq!(route, ["air:n0-n3", "air:n3-n4"]);
    let cable = LinkSpec::symmetric("cable", ["n0", "n4"], wire().forward);
    let topology = Topology::with_media(&[cable], &[air]).expect("a network");
    let [from, to] = ["n0", "n4"].map(|name| topology.node(name).expect("a node"));
    assert_eq!(
        topology.route(from, to).map(|(link, _)| link).collect::<Vec<_>>(),
        ["cable"]
    );
}

/// Who cannot hear each other at the beginning is no shortcut.
#[test]
fn routes_take_those_who_hear_each_other_from_the_beginning() {
    let mut air = chain("air", 2, 0.0);
    air.stations[2].waypoints = vec![(Time::from_nanos(1_000_000_000), Place::new(300.0, 10.0))];
    let topology = Topology::with_media(&[], &[air]).expect("a network");
    let [from, to] = ["n0", "n2"].map(|name| topology.node(name).expect("a node"));
    let route: Vec<&str> = topology.route(from, to).map(|(link, _)| link).collect();
    assert_eq!(route, ["air:n0-n1", "air:n1-n2"]);
    assert_eq!(
        topology
            .along(from, to, &["air:n0-n2".into()])
            .map(|route| topology.links_of(&route).count()),
        Ok(1)
    );
}

#[test]
fn media_that_cannot_be_are_refused_by_name() {
    let refused = |media: &[MediumSpec]| {
        World::with_media(&[], media, 1)
            .err()
            .expect("refused")
            .to_string()
    };
    let twice = [chain("air", 1, 0.0), chain("air", 1, 0.0)];
    assert!(refused(&twice).contains("two media are called \"air\""));
    let mut far = chain("air", 1, 0.0);
    far.stations[1].place = Place::new(371.0, 0.0);
    let sentence = refused(&[far]);
    assert!(
        sentence.contains("medium \"air\": the radio of \"n0\" has no link"),
        "{sentence}"
    );
    assert!(refused(&[]).contains("no links"));
}
