//! The network as its callers see it: times, rates, faults, order, and the laws that hold whatever the network is.

use bytes::Bytes;
use restp_base::machine::{Datagram, Ecn};
use restp_base::observe::Transmitted;
use restp_base::time::{Duration, Time};
use restp_base::units::Rate;
use restp_sim::error_model::{Corrupt, Duplicate, Scripted};
use restp_sim::police::Police;
use restp_sim::rule::Ruling;
use restp_sim::topology::point_to_point;
use restp_sim::*;

const MBPS_10: Rate = Rate::from_bps(10_000_000);

fn ms(n: u64) -> Time {
    Time::ZERO + Duration::from_millis(n)
}

fn us(n: u64) -> Time {
    Time::ZERO + Duration::from_micros(n)
}

/// A link of 10 Mbit/s and 5 ms with room for ten packets: 1250 bytes take 1 ms.
fn plain() -> DirectionSpec {
    DirectionSpec::new(MBPS_10, Duration::from_millis(5), QueueLimit::Packets(10))
}

struct Pair {
    world: World,
    source: HostId,
    sink: HostId,
}

impl Pair {
    fn new(direction: DirectionSpec) -> Self {
        Pair::of(1, direction)
    }

    fn of(seed: u64, direction: DirectionSpec) -> Self {
        let mut world = World::new(&point_to_point(&direction), seed).expect("a network");
        let [source, sink] = ["source", "sink"].map(|name| {
            let node = world.node(name).expect("a node");
            world.attach(node)
        });
        Pair { world, source, sink }
    }

    fn send(&mut self, now: Time, tag: u8) {
        let mut datagram = Box::new(Datagram {
            body: Bytes::from(vec![tag; 1200]),
            ..Datagram::empty()
        });
        datagram.ecn = Ecn::Ect0;
        self.world.send(now, self.source, self.sink, 1250, &mut datagram);
    }

    /// Everything that arrives until `until`: when, first byte, mark.
    fn arrivals(&mut self, until: Time) -> Vec<(Time, u8, Ecn)> {
        let mut arrived = Box::new(Datagram::empty());
        let mut all = Vec::new();
        while let Some((at, event)) = self.world.next(until, &mut arrived) {
            assert_eq!(event, HostEvent::Arrival { host: self.sink });
            all.push((at, arrived.body[0], arrived.ecn));
        }
        all
    }

    fn forward(&self) -> Counters {
        self.world.link_stats()[0].counters.clone()
    }
}

#[test]
fn a_packet_takes_its_transmission_time_and_the_delay() {
    let mut pair = Pair::new(plain());
    pair.send(ms(1), 7);
    assert_eq!(pair.arrivals(Time::MAX), [(ms(7), 7, Ecn::Ect0)]);
    assert_eq!(pair.world.now(), ms(7));
}

#[test]
fn an_overloaded_line_delivers_exactly_its_rate() {
    let mut pair = Pair::new(plain());
    // 15 Mbit/s offered for ten seconds, of which 10 Mbit/s fit.
    let mut delivered = 0;
    for n in 0..15_000 {
        let now = us(n * 2000 / 3);
        delivered += pair.arrivals(now).len();
        pair.send(now, 0);
    }
    delivered += pair.arrivals(ms(10_005)).len();
    assert_eq!(delivered, 10_000, "1250 bytes per millisecond");
    let counters = pair.forward();
    assert_eq!(
        counters.busy,
        Duration::from_millis(10_005),
        "busy from the first packet on"
    );
    assert_eq!(counters.largest_queue_packets, 10);
    assert_eq!(counters.packets, 15_000);
    assert_eq!(
        counters.dropped_queue,
        15_000 - 10_000 - pair.world.totals().in_flight
    );
}

#[test]
fn a_sender_gets_a_buffer_back_and_the_receiver_its_contents() {
    let mut pair = Pair::new(DirectionSpec::default());
    let mut datagram = Box::new(Datagram {
        head: [1, 2][..].into(),
        body: Bytes::from_static(b"body"),
        ..Datagram::empty()
    });
    pair.world.send(ms(0), pair.source, pair.sink, 34, &mut datagram);
    assert!(datagram.is_empty());
    assert!(pair.world.next(Time::MAX, &mut datagram).is_some());
    assert_eq!(datagram.to_vec(), b"\x01\x02body");
}

#[test]
fn hosts_of_one_node_reach_each_other_at_once() {
    let mut pair = Pair::new(plain());
    let node = pair.world.node("source").expect("a node");
    pair.sink = pair.world.attach(node);
    pair.send(ms(3), 1);
    assert_eq!(pair.arrivals(Time::MAX), [(ms(3), 1, Ecn::Ect0)]);
    assert_eq!(pair.forward().packets, 0);
}

#[test]
fn late_packets_are_overtaken_and_their_line_keeps_its_order() {
    let reorder = error_model::Reorder {
        probability: 0.3,
        extra: Duration::from_millis(20),
    };
    let mut pair = Pair::new(DirectionSpec {
        reorder: Some(reorder),
        queue: QueueLimit::Unlimited.into(),
        ..plain()
    });
    (0..50).for_each(|tag| pair.send(ms(0), tag));
    let arrivals = pair.arrivals(Time::MAX);
    assert!(arrivals.windows(2).all(|pair| pair[0].0 <= pair[1].0));
    let turn = |tag: u8| ms(6 + u64::from(tag));
    let (late, punctual): (Vec<_>, Vec<_>) = arrivals.iter().partition(|&&(at, tag, _)| at > turn(tag));
    assert_eq!(
        (late.len() + punctual.len(), late.len() as u64),
        (50, pair.forward().reordered)
    );
    assert!(!late.is_empty());
    assert!(
        late.iter()
            .all(|&&(at, tag, _)| at == turn(tag) + Duration::from_millis(20))
    );
    assert!(punctual.iter().all(|&&(at, tag, _)| at == turn(tag)));
}

#[test]
fn a_copy_arrives_right_behind_its_packet() {
    let duplicate = error_model::Duplicate { probability: 1.0 };
    let mut pair = Pair::new(DirectionSpec {
        duplicate: Some(duplicate),
        ..plain()
    });
    pair.send(ms(0), 1);
    pair.send(ms(0), 2);
    let tags: Vec<u8> = pair.arrivals(Time::MAX).iter().map(|arrival| arrival.1).collect();
    assert_eq!(tags, [1, 1, 2, 2]);
}

#[test]
fn a_corrupted_packet_differs_in_one_bit_and_the_senders_bytes_do_not() {
    let corrupt = error_model::Corrupt { probability: 1.0 };
    let mut pair = Pair::new(DirectionSpec {
        corrupt: Some(corrupt),
        ..DirectionSpec::default()
    });
    let payload = Bytes::from(vec![0; 1000]);
    let mut datagram = Box::new(Datagram {
        head: [0; 20][..].into(),
        body: payload.clone(),
        ..Datagram::empty()
    });
    pair.world
        .send(ms(0), pair.source, pair.sink, 1048, &mut datagram);
    assert!(pair.world.next(Time::MAX, &mut datagram).is_some());
    assert_eq!(
        datagram
            .to_vec()
            .iter()
            .map(|byte| byte.count_ones())
            .sum::<u32>(),
        1
    );
    assert!(payload.iter().all(|&byte| byte == 0));
}

#[test]
fn congestion_marks_reach_the_receiver() {
    let mut pair = Pair::new(DirectionSpec {
        mark: Some(MarkThreshold::Packets(1)),
        ..plain()
    });
    (0..4).for_each(|tag| pair.send(ms(0), tag));
    let marks: Vec<Ecn> = pair.arrivals(Time::MAX).iter().map(|arrival| arrival.2).collect();
    assert_eq!(marks, [Ecn::Ect0, Ecn::Ect0, Ecn::Ce, Ecn::Ce]);
}

#[test]
fn rules_script_single_packets() {
    let mut pair = Pair::new(plain());
    let forward = pair
        .world
        .direction_mut("link", Way::Forward)
        .expect("a direction");
    forward.add_rule(|packet| {
        if packet.number == 1 {
            Ruling::Drop
        } else {
            Ruling::Pass
        }
    });
    forward.add_rule(|packet| match packet.number {
        1 | 2 => Ruling::Deliver(Duration::from_millis(100)),
        _ => Ruling::Pass,
    });
    (1..=3).for_each(|tag| pair.send(ms(0), tag));
    let arrivals: Vec<(Time, u8)> = pair
        .arrivals(Time::MAX)
        .iter()
        .map(|&(at, tag, _)| (at, tag))
        .collect();
    assert_eq!(arrivals, [(ms(6), 3), (ms(100), 2)]);
    assert_eq!(pair.forward().dropped_rule, 1);
}

#[test]
fn a_link_taken_down_loses_what_is_on_it() {
    let mut pair = Pair::new(plain());
    pair.send(ms(0), 1);
    assert!(pair.arrivals(ms(3)).is_empty());
    pair.world
        .direction_mut("link", Way::Forward)
        .expect("a direction")
        .set_up(false);
    assert!(pair.arrivals(ms(10)).is_empty());
    pair.world
        .direction_mut("link", Way::Forward)
        .expect("a direction")
        .set_up(true);
    pair.send(ms(10), 2);
    assert_eq!(pair.arrivals(Time::MAX).len(), 1);
    assert_eq!(
        pair.world.totals(),
        Totals {
            sent: 2,
            delivered: 1,
            dropped: 1,
            ..Totals::default()
        }
    );
    assert!(pair.world.direction_mut("no such link", Way::Forward).is_none());
}

/// Wakes until nothing is left: when, and whose.
fn wakes(pair: &mut Pair) -> Vec<(Time, HostId)> {
    let mut arrived = Box::new(Datagram::empty());
    let next = |world: &mut World| match world.next(Time::MAX, &mut Box::new(Datagram::empty()))? {
        (at, HostEvent::Wake { host }) => Some((at, host)),
        (_, HostEvent::Arrival { .. }) => panic!("nothing was sent"),
    };
    assert!(pair.world.next(Time::ZERO, &mut arrived).is_none());
    std::iter::from_fn(|| next(&mut pair.world)).collect()
}

#[test]
fn a_timer_is_replaced_and_rings_once() {
    let mut pair = Pair::new(plain());
    let (a, b) = (pair.source, pair.sink);
    pair.world.wake_at(a, ms(10));
    pair.world.wake_at(a, ms(30));
    pair.world.wake_at(a, ms(20));
    pair.world.wake_at(b, ms(40));
    pair.world.wake_at(b, ms(5));
    assert_eq!(wakes(&mut pair), [(ms(5), b), (ms(20), a)]);
    pair.world.wake_at(a, ms(50));
    pair.world.wake_at(b, ms(60));
    pair.world.cancel_wake(a);
    assert_eq!(wakes(&mut pair), [(ms(60), b)]);
    pair.world.wake_at(a, ms(1));
    assert_eq!(wakes(&mut pair), [(ms(60), a)], "the past is now");
}

/// A timer runs out before anything arrives at the same instant, whichever of the two was set first.
#[test]
fn a_timer_comes_before_an_arrival_of_the_same_instant() {
    let wakes_first = |wake_is_set_first: bool| {
        let mut pair = Pair::new(plain());
        let host = pair.sink;
        let at_instant = |step: u64| {
            let (sent, due) = (ms(10 * step), ms(10 * step + 6));
            if wake_is_set_first {
                pair.world.wake_at(host, due);
            }
            pair.send(sent, 1);
            if !wake_is_set_first {
                pair.world.wake_at(host, due);
            }
            let [first, second] =
                [0; 2].map(|_| pair.world.next(Time::MAX, &mut Box::new(Datagram::empty())));
            assert!(first != second && [first, second].iter().flatten().all(|(at, _)| *at == due));
            first == Some((due, HostEvent::Wake { host }))
        };
        (0..20).map(at_instant).collect::<Vec<bool>>()
    };
    for wake_is_set_first in [true, false] {
        assert!(wakes_first(wake_is_set_first).iter().all(|first| *first));
    }
}

#[test]
fn time_stops_where_the_caller_says() {
    let mut pair = Pair::new(plain());
    pair.send(ms(0), 1);
    assert!(pair.arrivals(us(5_999)).is_empty());
    assert_eq!(pair.world.now(), us(5_999));
    assert_eq!(pair.arrivals(ms(6)).len(), 1, "until is included");
    assert_eq!(pair.world.events(), 1);
}

#[test]
fn a_broken_link_is_named() {
    let error = World::new(
        &point_to_point(&DirectionSpec {
            queue: QueueLimit::Bdp.into(),
            ..plain()
        }),
        1,
    )
    .map(|_| ());
    let sentence = error.expect_err("unresolved").to_string();
    assert!(
        sentence.contains("\"link\", forward") && sentence.contains("bandwidth-delay"),
        "{sentence}"
    );
}

#[test]
fn a_queue_of_one_bandwidth_delay_product_keeps_a_window_of_twice_that() {
    let topology = Topology::new(&point_to_point(&DirectionSpec {
        queue: QueueLimit::Bdp.into(),
        ..plain()
    }));
    let topology = topology.expect("queues need not be resolved for routes");
    let [source, sink] = ["source", "sink"].map(|name| topology.node(name).expect("a node"));
    let rate = topology.bottleneck_rate(source, sink).expect("limited");
    let bdp = rate.bytes_in(topology.path_rtt(source, sink));
    assert_eq!(bdp, 12_500);
    let mut pair = Pair::new(DirectionSpec {
        queue: QueueLimit::Bdp.resolve(bdp).into(),
        ..plain()
    });
    (0..20).for_each(|tag| pair.send(ms(0), tag));
    assert_eq!(
        pair.arrivals(Time::MAX).len(),
        11,
        "one being sent and ten waiting"
    );
}

#[test]
fn ties_depend_on_the_seed_but_a_line_keeps_its_order() {
    let order = |seed| {
        let mut pair = Pair::of(
            seed,
            DirectionSpec {
                rate: None,
                ..plain()
            },
        );
        (0..20).for_each(|tag| pair.send(ms(0), tag));
        let tags: Vec<u8> = pair.arrivals(Time::MAX).iter().map(|arrival| arrival.1).collect();
        assert_eq!(tags, (0..20).collect::<Vec<_>>());
        let (a, b) = (pair.source, pair.sink);
        pair.world.wake_at(a, ms(10));
        pair.world.wake_at(b, ms(10));
        wakes(&mut pair)[0].1 == a
    };
    let first: Vec<bool> = (0..20).map(order).collect();
    assert!(first.contains(&true) && first.contains(&false));
    assert_eq!(first, (0..20).map(order).collect::<Vec<_>>());
}

/// Two links between the same nodes: a host with a route of its own does not take the shortest one, and beyond the end of
/// the route packets find their way.
#[test]
fn packets_follow_the_route_of_their_host() {
    let line = |ms| DirectionSpec {
        delay: Duration::from_millis(ms),
        ..DirectionSpec::default()
    };
    let links = [
        LinkSpec::symmetric("short", ["a", "b"], line(1)),
        LinkSpec::symmetric("long", ["a", "b"], line(10)),
        LinkSpec::symmetric("last", ["b", "c"], line(100)),
    ];
    let mut world = World::new(&links, 1).expect("a network");
    let [a, b, c] = ["a", "b", "c"].map(|name| world.node(name).expect("a node"));
    let long = world.topology().along(a, b, &["long".into()]).expect("a route");
    let (plain, pinned) = (world.attach(a), world.attach_along(a, long));
    let (near, far) = (world.attach(b), world.attach(c));
    let mut datagram = Box::new(Datagram::empty());
    for (from, to, expected) in [
        (plain, near, 1),
        (pinned, near, 10),
        (pinned, far, 110),
        (far, pinned, 101),
    ] {
        let now = world.now();
        world.send(now, from, to, 100, &mut datagram);
        let (at, event) = world.next(Time::MAX, &mut datagram).expect("an arrival");
        assert_eq!(
            (at.since(now), event),
            (Duration::from_millis(expected), HostEvent::Arrival { host: to })
        );
    }
}

/// Every way to lose a segment, as whoever asks is told it; what was lost before is not told, and a copy is nobody's segment.
#[test]
fn lost_segments_are_told_with_their_cause() {
    let lost = |direction: DirectionSpec| -> Vec<(u64, DropReason)> {
        let mut pair = Pair::new(direction);
        let send = |pair: &mut Pair, number: Option<u64>| {
            let now = pair.world.now();
            let mut datagram = Box::new(Datagram {
                body: Bytes::from(vec![1; 1200]),
                segment: number.map(|number| Transmitted { number, at: now }),
                ..Datagram::empty()
            });
            pair.world.send(now, pair.source, pair.sink, 1250, &mut datagram);
        };
        send(&mut pair, Some(0));
        assert_eq!(pair.world.take_lost().count(), 0, "nobody had asked");
        for number in [None, Some(1), Some(2)] {
            send(&mut pair, number);
        }
        pair.arrivals(Time::MAX);
        let source = pair.source;
        let told = pair.world.take_lost().map(|lost| {
            assert_eq!((lost.from, lost.segment.at), (source, Time::ZERO));
            (lost.segment.number, lost.reason)
        });
        told.collect()
    };
    let both = |reason| vec![(1, reason), (2, reason)];
    let full = DirectionSpec {
        queue: QueueLimit::Packets(0).into(),
        ..plain()
    };
    assert_eq!(lost(full), both(DropReason::Queue));
    let policed = DirectionSpec {
        police: Some(Police {
            rate: Rate::from_bps(1),
            burst_bytes: 1500,
        }),
        ..plain()
    };
    assert_eq!(lost(policed), both(DropReason::Police));
    let noisy = DirectionSpec {
        loss: vec![ErrorModel::Scripted(Scripted { drop: vec![1, 3, 4] })],
        duplicate: Some(Duplicate { probability: 1.0 }),
        ..plain()
    };
    assert_eq!(lost(noisy), both(DropReason::Error));
    let flipping = DirectionSpec {
        corrupt: Some(Corrupt { probability: 1.0 }),
        ..plain()
    };
    assert_eq!(lost(flipping), both(DropReason::Error));
    let down = DirectionSpec {
        outage: vec![Time::ZERO..ms(1)],
        ..plain()
    };
    assert_eq!(lost(down), both(DropReason::Outage));
    let narrow = DirectionSpec {
        mtu: Some(1000),
        ..plain()
    };
    assert_eq!(lost(narrow), both(DropReason::Length));
    assert_eq!(lost(plain()), []);
}
