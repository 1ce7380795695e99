//! Laws of every run, under networks and traffic made from a seed: packets are conserved, a seed is a run, and a
//! trace changes nothing.

use bytes::Bytes;
use restp_base::machine::{Datagram, Ecn};
use restp_base::random::Stream;
use restp_base::time::{Duration, Time};
use restp_base::units::Rate;
use restp_sim::error_model::*;
use restp_sim::police::Police;
use restp_sim::rate::{DeliveryTrace, Walk};
use restp_sim::*;
use std::sync::{Arc, Mutex};

/// A connected network: a random tree of up to eight nodes, and some links more.
fn network(random: &mut Stream) -> Vec<LinkSpec> {
    let nodes = 2 + random.below(7);
    let mut ends: Vec<(u64, u64)> = (1..nodes).map(|node| (random.below(node), node)).collect();
    for _ in 0..random.below(4) {
        let (a, b) = (random.below(nodes), random.below(nodes));
        if a != b {
            ends.push((a, b));
        }
    }
    let link = |(index, (a, b)): (usize, (u64, u64)), random: &mut Stream| LinkSpec {
        name: format!("link{index}"),
        between: [format!("node{a}"), format!("node{b}")],
        forward: direction(random),
        reverse: direction(random),
    };
    ends.into_iter()
        .enumerate()
        .map(|ends| link(ends, random))
        .collect()
}

fn direction(random: &mut Stream) -> DirectionSpec {
    let loss = match random.below(6) {
        0 => vec![ErrorModel::Rate(RateLoss {
            probability: 0.1,
            unit: LossUnit::Packet,
        })],
        1 => vec![ErrorModel::Rate(RateLoss {
            probability: 1e-5,
            unit: LossUnit::Bit,
        })],
        2 => vec![ErrorModel::Burst(BurstLoss {
            probability: 0.05,
            sizes: 1..=4,
        })],
        3 => {
            let bursty = GilbertElliott {
                p: 0.05,
                r: 0.3,
                loss_good: 0.01,
                loss_bad: 0.7,
            };
            vec![
                ErrorModel::GilbertElliott(bursty),
                ErrorModel::Scripted(Scripted { drop: vec![1, 7] }),
            ]
        }
        _ => vec![],
    };
    let limit = match random.below(3) {
        0 => QueueLimit::Unlimited,
        1 => QueueLimit::Packets(random.below(50)),
        _ => QueueLimit::Bytes(random.below(50_000)),
    };
    let queue = match random.below(6) {
        0 => Queue::Red(Red::default()),
        1 => Queue::Codel(Codel::default()),
        2 => Queue::FqCodel(FqCodel::default()),
        _ => Queue::default(),
    };
    let queue = queue.with_limit(limit);
    let mark = random.chance(0.3).then_some(MarkThreshold::Bytes(10_000));
    let outage_start = Time::from_nanos(1 + random.below(2_000_000_000));
    DirectionSpec {
        mtu: None,
        overhead_bytes: 0,
        rate: random.chance(0.8).then(|| rate(random)),
        delay: Duration::from_micros(random.below(20_000)),
        queue,
        loss,
        loss_during: if random.chance(0.3) {
            vec![Time::ZERO..outage_start]
        } else {
            vec![]
        },
        outage: if random.chance(0.3) {
            vec![outage_start..outage_start + Duration::from_millis(100)]
        } else {
            vec![]
        },
        police: random.chance(0.2).then_some(Police {
            rate: Rate::from_bps(5_000_000),
            burst_bytes: 3000,
        }),
        jitter: random.chance(0.3).then_some(Jitter {
            most: Duration::from_millis(5),
            reorder: true,
        }),
        reorder: random.chance(0.3).then_some(Reorder {
            probability: 0.1,
            extra: Duration::from_millis(7),
        }),
        duplicate: random.chance(0.3).then_some(Duplicate { probability: 0.1 }),
        corrupt: random.chance(0.3).then_some(Corrupt { probability: 0.1 }),
        mark: mark.filter(|_| matches!(queue, Queue::DropTail(_))),
    }
}

fn rate(random: &mut Stream) -> LinkRate {
    let mut bps = || Rate::from_bps(1_000_000 + random.below(20_000_000));
    let (some, other) = (bps(), bps());
    match random.below(6) {
        0 => LinkRate::Steps(vec![
            (Time::ZERO, some),
            (Time::from_nanos(500_000_000), Rate::from_bps(0)),
            (Time::from_nanos(700_000_000), other),
        ]),
        1 => LinkRate::Walk(Walk {
            min: some.min(other),
            max: Rate::from_bps(some.max(other).as_bps() + 1),
            step: Rate::from_bps(1),
            every: Duration::from_millis(3),
        }),
        2 => LinkRate::Trace(DeliveryTrace::parse("0\n2\n3\n3\n40\n").expect("a recording")),
        _ => some.into(),
    }
}

/// What a run was, as its hosts saw it.
#[derive(Debug, PartialEq)]
struct Record {
    arrivals: Vec<(Time, HostId, Vec<u8>, Ecn)>,
    wakes: Vec<(Time, HostId)>,
    stats: Vec<LinkStats>,
    totals: Totals,
    events: u64,
}

/// Two seconds of hosts that send to each other at random times, answer some arrivals, and are stopped half-way
/// through so that packets are left in flight.
fn run(seed: u64, sink: Option<Arc<Mutex<String>>>) -> Record {
    let mut random = Stream::named(seed, "test");
    let links = network(&mut random);
    let mut world = World::new(&links, seed).expect("a network");
    let nodes: Vec<_> = world.topology().nodes().collect();
    let hosts: Vec<HostId> = nodes
        .iter()
        .chain(&nodes[..1])
        .map(|&node| world.attach(node))
        .collect();
    if let Some(lines) = sink {
        world.trace(move |event| *lines.lock().expect("one thread") += &format!("{event}\n"));
    }
    for &host in &hosts {
        world.wake_at(host, Time::from_nanos(random.below(1_000_000)));
    }
    let (mut arrivals, mut wakes, mut datagram) = (Vec::new(), Vec::new(), Box::new(Datagram::empty()));
    while let Some((now, event)) = world.next(Time::from_nanos(2_000_000_000), &mut datagram) {
        let (from, sends) = match event {
            HostEvent::Arrival { host } => {
                arrivals.push((now, host, datagram.to_vec(), datagram.ecn));
                (host, random.chance(0.2))
            }
            HostEvent::Wake { host } => {
                wakes.push((now, host));
                world.wake_at(host, now + Duration::from_micros(random.below(5_000)));
                (host, true)
            }
        };
        if sends {
            let to = hosts[random.below(hosts.len() as u64) as usize];
            let bytes = random.below(1461) as usize;
            datagram.ecn = if random.chance(0.5) {
                Ecn::Ect0
            } else {
                Ecn::NotEct
            };
            datagram.head = [0xaa; 12][..].into();
            datagram.body = Bytes::from(vec![0x55; bytes]);
            world.send(now, from, to, bytes as u32 + 40, &mut datagram);
        }
    }
    Record {
        arrivals,
        wakes,
        stats: world.link_stats(),
        totals: world.totals(),
        events: world.events(),
    }
}

#[test]
fn packets_are_conserved() {
    let mut seen = Totals::default();
    for seed in 0..60 {
        let record = run(seed, None);
        let Totals {
            sent,
            copied,
            delivered,
            dropped,
            in_flight,
        } = record.totals;
        assert_eq!(sent + copied, delivered + dropped + in_flight, "seed {seed}");
        assert_eq!(delivered, record.arrivals.len() as u64, "seed {seed}");
        let sum =
            |count: fn(&Counters) -> u64| record.stats.iter().map(|link| count(&link.counters)).sum::<u64>();
        assert_eq!(dropped, sum(Counters::dropped), "seed {seed}");
        assert_eq!(copied, sum(|counters| counters.duplicated), "seed {seed}");
        // What the lines took and neither dropped nor delivered is in flight, as hosts of one node take no time.
        let taken = sum(|counters| counters.packets + counters.duplicated);
        assert_eq!(
            in_flight,
            taken - dropped - sum(|counters| counters.delivered),
            "seed {seed}"
        );
        seen = Totals {
            sent: seen.sent + sent,
            copied: seen.copied + copied,
            delivered: seen.delivered + delivered,
            dropped: seen.dropped + dropped,
            in_flight: seen.in_flight + in_flight,
        };
    }
    let Totals {
        sent,
        copied,
        delivered,
        dropped,
        in_flight,
    } = seen;
    assert!(
        [sent, copied, delivered, dropped, in_flight]
            .iter()
            .all(|&n| n > 100),
        "nothing was tested: {seen:?}"
    );
}

#[test]
fn time_never_goes_back() {
    for seed in 0..20 {
        let record = run(seed, None);
        assert!(
            record.arrivals.windows(2).all(|pair| pair[0].0 <= pair[1].0),
            "seed {seed}"
        );
        assert!(
            record.wakes.windows(2).all(|pair| pair[0].0 <= pair[1].0),
            "seed {seed}"
        );
    }
}

#[test]
fn a_seed_is_a_run_and_a_trace_changes_nothing() {
    for seed in 0..20 {
        let traced = || {
            let lines = Arc::new(Mutex::new(String::new()));
            let record = run(seed, Some(Arc::clone(&lines)));
            let text = lines.lock().expect("one thread").clone();
            (record, text)
        };
        let (first, second) = (traced(), traced());
        assert_eq!(first, second, "seed {seed}");
        assert_eq!(first.0, run(seed, None), "seed {seed}");
    }
    assert_ne!(run(1, None), run(2, None));
}

/// The trace is a second account of the run: it must agree with the counters.
#[test]
fn a_trace_tells_of_every_packet() {
    for seed in 0..20 {
        let lines = Arc::new(Mutex::new(String::new()));
        let totals = run(seed, Some(Arc::clone(&lines))).totals;
        let text = lines.lock().expect("one thread").clone();
        let count = |word: &str| text.lines().filter(|line| line.contains(word)).count() as u64;
        assert_eq!(count(" sent "), totals.sent);
        assert_eq!(count(" copied "), totals.copied);
        assert_eq!(count(" delivered "), totals.delivered);
        assert_eq!(count(" dropped "), totals.dropped);
    }
}
