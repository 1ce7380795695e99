//! One direction at work: queue, serialiser, faults.

use super::*;
use crate::discipline::QueueLimit;
use crate::error_model::{BurstLoss, Corrupt, Duplicate, Jitter, LossUnit, RateLoss, Reorder, Scripted};
use crate::police::Police;
use crate::rate::{DeliveryTrace, Walk};
use restp_base::units::Rate;
use std::ops::Range;

/// 8 Mbit/s: a byte takes a microsecond.
fn line(change: impl FnOnce(&mut DirectionSpec)) -> Direction {
    let delay = Duration::from_millis(10);
    let mut spec = DirectionSpec::new(Rate::from_bps(8_000_000), delay, QueueLimit::Packets(2));
    change(&mut spec);
    Direction::new(&spec, 1, "link/a/forward").expect("possible")
}

fn packet(bytes: u32, ecn: Ecn) -> Parcel {
    Parcel {
        bytes,
        ecn,
        may_fragment: false,
        flow: 0,
        tag: 0,
    }
}

fn us(n: u64) -> Time {
    Time::ZERO + Duration::from_micros(n)
}

fn arrival(verdict: Verdict) -> Option<Time> {
    match verdict {
        Verdict::Deliver { at, .. } => Some(at),
        Verdict::Drop(_) | Verdict::Wait => None,
    }
}

#[test]
fn the_queue_holds_its_limit_beside_the_packet_being_sent() {
    let mut line = line(|_| ());
    let arrivals: Vec<_> = (0..4)
        .map(|_| arrival(line.offer(us(0), packet(1000, Ecn::NotEct))))
        .collect();
    assert_eq!(
        arrivals,
        [Some(us(11_000)), Some(us(12_000)), Some(us(13_000)), None]
    );
    assert_eq!(
        line.offer(us(999), packet(1000, Ecn::NotEct)),
        Verdict::Drop(DropReason::Queue)
    );
    // At 1000 µs the first has left, the second is being sent, and one waits.
    assert_eq!(
        arrival(line.offer(us(1000), packet(1000, Ecn::NotEct))),
        Some(us(14_000))
    );
    let counters = line.counters(us(2000));
    assert_eq!((counters.dropped_queue, counters.largest_queue_packets), (2, 2));
    assert_eq!(
        counters.busy,
        Duration::from_millis(2),
        "the future is not counted"
    );
}

#[test]
fn overhead_takes_time_on_the_line_and_no_room_in_the_queue() {
    let mut line = line(|spec| (spec.overhead_bytes, spec.queue) = (28, QueueLimit::Bytes(2000).into()));
    let arrivals = [(); 4].map(|()| arrival(line.offer(us(0), packet(1000, Ecn::NotEct))));
    assert_eq!(
        arrivals,
        [Some(us(11_028)), Some(us(12_056)), Some(us(13_084)), None]
    );
    let counters = line.counters(us(10_000));
    assert_eq!(
        (counters.bytes, counters.busy),
        (4000, Duration::from_micros(3084))
    );
}

#[test]
fn odd_rates_are_exact_in_the_long_run() {
    for (bps, bytes) in [(3_000_001, 1499), (7, 1), (9_999_999_999, 53)] {
        let mut line = line(|spec| {
            (spec.rate, spec.queue) = (Some(Rate::from_bps(bps).into()), QueueLimit::Unlimited.into());
        });
        for _ in 0..1000 {
            line.offer(us(0), packet(bytes, Ecn::NotEct));
        }
        let exact = Rate::from_bps(bps).transmission_time(u64::from(bytes) * 1000);
        assert_eq!(line.free, Time::ZERO + exact);
    }
}

/// The departure is known on arrival, whatever the rate does meanwhile, and the queue is that of any other line.
#[test]
fn a_rate_that_changes_stretches_what_is_being_sent_and_what_waits() {
    let mut line = line(|spec| {
        let steps = [(0, 8_000_000), (1500, 0), (3000, 4_000_000)];
        let steps = steps.map(|(at, bps)| (us(at), Rate::from_bps(bps)));
        spec.rate = Some(LinkRate::Steps(steps.to_vec()));
    });
    let arrivals: Vec<_> = (0..4)
        .map(|_| arrival(line.offer(us(0), packet(1000, Ecn::NotEct))))
        .collect();
    // Half of the second is sent when nothing moves for 1.5 ms; the rest takes 1 ms, the third 2 ms.
    assert_eq!(
        arrivals,
        [Some(us(11_000)), Some(us(14_000)), Some(us(16_000)), None]
    );
    assert_eq!(line.waiting(us(3500)), (1, 1000), "the second is being sent");
}

#[test]
fn a_recorded_line_sends_at_its_opportunities_and_wastes_what_nobody_uses() {
    let mut line = line(|spec| {
        let recording = DeliveryTrace::parse("5\n6\n9\n20\n").expect("a recording");
        (spec.rate, spec.queue) = (Some(LinkRate::Trace(recording)), QueueLimit::Unlimited.into());
    });
    let mut sent = |at, bytes| arrival(line.offer(us(at), packet(bytes, Ecn::NotEct)));
    // Three of 500 bytes share the first opportunity, 2000 bytes take the next two, and leave 1000 in the third.
    let first = [500, 500, 500, 2000, 900, 200].map(|bytes| sent(1000, bytes));
    assert_eq!(first, [15, 15, 15, 19, 19, 30].map(|ms| Some(us(ms * 1000))));
    assert_eq!(
        sent(20_001, 1),
        Some(us(35_000)),
        "what was left at 20 ms is gone"
    );
}

/// A packet that is alone needs no room in a queue, and each direction walks by itself.
#[test]
fn two_directions_walk_apart_and_a_seed_walks_again() {
    let departures = |name: &str| -> Vec<Option<Time>> {
        let mbit = |n: u64| Rate::from_bps(n * 1_000_000);
        let walk = Walk {
            min: mbit(1),
            max: mbit(20),
            step: mbit(5),
            every: Duration::from_millis(10),
        };
        let spec = DirectionSpec::new(LinkRate::Walk(walk), Duration::ZERO, QueueLimit::Packets(0));
        let mut line = Direction::new(&spec, 1, name).expect("possible");
        (0..100)
            .map(|n| arrival(line.offer(us(n * 20_000), packet(1000, Ecn::NotEct))))
            .collect()
    };
    let forward = departures("link/a/forward");
    assert!(forward.iter().all(Option::is_some));
    assert_eq!(forward, departures("link/a/forward"));
    assert_ne!(forward, departures("link/a/reverse"));
}

#[test]
fn without_a_rate_only_the_delay_remains() {
    let mut line = line(|spec| (spec.rate, spec.queue) = (None, QueueLimit::Packets(0).into()));
    for _ in 0..3 {
        assert_eq!(
            arrival(line.offer(us(5), packet(1000, Ecn::NotEct))),
            Some(us(10_005))
        );
    }
}

#[test]
fn an_outage_takes_what_is_offered_sent_or_due_in_it() {
    let offered_at = |now: u64, outage: Range<u64>| {
        let mut line = line(|spec| spec.outage = vec![us(outage.start)..us(outage.end)]);
        line.offer(us(now), packet(1000, Ecn::NotEct))
    };
    let lost = Verdict::Drop(DropReason::Outage);
    assert_eq!(offered_at(100, 100..200), lost, "offered");
    assert_eq!(offered_at(100, 1100..1200), lost, "sent off");
    assert_eq!(offered_at(100, 11_100..11_200), lost, "due");
    assert_eq!(arrival(offered_at(100, 50..100)), Some(us(11_100)), "over");
    assert_eq!(
        arrival(offered_at(100, 2000..3000)),
        Some(us(11_100)),
        "already on the wire"
    );
    assert_eq!(
        arrival(offered_at(100, 11_101..12_000)),
        Some(us(11_100)),
        "already there"
    );
}

#[test]
fn a_direction_taken_down_swallows_what_is_offered_or_due() {
    let mut line = line(|_| ());
    assert!(arrival(line.offer(us(0), packet(1000, Ecn::NotEct))).is_some());
    line.set_up(false);
    assert!(!line.release());
    assert_eq!(
        line.offer(us(20_000), packet(1000, Ecn::NotEct)),
        Verdict::Drop(DropReason::Outage)
    );
    line.set_up(true);
    assert!(arrival(line.offer(us(30_000), packet(1000, Ecn::NotEct))).is_some());
    assert!(line.release());
    let counters = line.counters(us(50_000));
    assert_eq!(
        (counters.packets, counters.delivered, counters.dropped_outage),
        (3, 1, 2)
    );
}

#[test]
fn a_lost_packet_has_used_its_share_of_the_line() {
    let mut line = line(|spec| spec.loss = vec![ErrorModel::Scripted(Scripted { drop: vec![1] })]);
    assert_eq!(
        line.offer(us(0), packet(1000, Ecn::NotEct)),
        Verdict::Drop(DropReason::Error)
    );
    assert_eq!(
        arrival(line.offer(us(0), packet(1000, Ecn::NotEct))),
        Some(us(12_000))
    );
}

#[test]
fn jitter_keeps_the_order_unless_it_may_not() {
    let arrivals = |reorder: bool| -> (Vec<(Time, bool)>, Counters) {
        let mut line = line(|spec| {
            let most = Duration::from_millis(5);
            (spec.queue, spec.jitter) = (QueueLimit::Unlimited.into(), Some(Jitter { most, reorder }));
        });
        let seen = (0..1000)
            .map(|n| match line.offer(us(n * 1000), packet(1000, Ecn::NotEct)) {
                Verdict::Deliver { at, in_order, .. } => (at, in_order),
                other => panic!("{other:?}"),
            })
            .collect();
        (seen, line.counters(Time::MAX))
    };
    let ((kept, tidy), (free, untidy)) = (arrivals(false), arrivals(true));
    for (n, (at, _)) in kept.iter().chain(&free).enumerate() {
        let least = us((n as u64 % 1000) * 1000 + 11_000);
        assert!(
            (least..=least + Duration::from_millis(5)).contains(at),
            "{n}: {at:?}"
        );
    }
    assert!(kept.is_sorted() && kept.iter().all(|(_, in_order)| *in_order));
    assert_eq!(tidy.reordered, 0);
    // One that is out of order arrives before somebody ahead of it, and nobody else does.
    let mut latest = Time::ZERO;
    for (at, in_order) in &free {
        assert_eq!(*in_order, *at >= latest);
        latest = latest.max(*at);
    }
    assert!((100..900).contains(&untidy.reordered), "{}", untidy.reordered);
}

/// What is on its way by a line that is healed arrives before what follows.
#[test]
fn a_line_that_is_healed_of_its_jitter_keeps_its_order() {
    let mut line = line(|spec| {
        let most = Duration::from_millis(50);
        spec.jitter = Some(Jitter { most, reorder: false });
    });
    let shaken = arrival(line.offer(us(0), packet(1000, Ecn::NotEct)));
    line.heal();
    let steady = arrival(line.offer(us(0), packet(1000, Ecn::NotEct)));
    assert!(
        shaken > Some(us(12_000)),
        "{shaken:?}: the seed draws more than the packet behind needs"
    );
    assert_eq!(steady, shaken);
}

#[test]
fn a_policer_drops_before_the_queue_what_comes_too_fast() {
    let mut line = line(|spec| {
        spec.queue = QueueLimit::Unlimited.into();
        spec.police = Some(Police {
            rate: Rate::from_bps(4_000_000),
            burst_bytes: 2000,
        });
    });
    let mut sent = |at| arrival(line.offer(us(at), packet(1000, Ecn::NotEct)));
    assert_eq!([0; 3].map(&mut sent), [Some(us(11_000)), Some(us(12_000)), None]);
    assert_eq!([1999, 2000].map(sent), [None, Some(us(13_000))]);
    let counters = line.counters(us(10_000));
    assert_eq!(
        (counters.dropped_police, counters.dropped(), counters.sent),
        (2, 2, 3)
    );
}

/// The pattern is a function of the packet's number alone: neither sizes, queue drops nor outages shift it.
#[test]
fn two_protocols_meet_the_same_losses_packet_by_packet() {
    let impair = |spec: &mut DirectionSpec| {
        spec.queue = QueueLimit::Unlimited.into();
        spec.loss = vec![
            ErrorModel::Rate(RateLoss {
                probability: 0.1,
                unit: LossUnit::Packet,
            }),
            ErrorModel::Burst(BurstLoss {
                probability: 0.02,
                sizes: 1..=4,
            }),
        ];
        spec.corrupt = Some(Corrupt { probability: 0.1 });
        spec.reorder = Some(Reorder {
            probability: 0.1,
            extra: Duration::from_millis(1),
        });
        spec.duplicate = Some(Duplicate { probability: 0.1 });
    };
    let fates = |line: &mut Direction, gap: u64, bytes: u32| -> Vec<Option<(bool, bool, bool)>> {
        let fate = |n| match line.offer(us(n * gap), packet(bytes, Ecn::NotEct)) {
            Verdict::Drop(DropReason::Error) => Some((true, false, false)),
            Verdict::Drop(_) | Verdict::Wait => None,
            Verdict::Deliver {
                duplicate_at,
                in_order,
                ..
            } => Some((false, duplicate_at.is_some(), in_order)),
        };
        (0..2000).map(fate).collect()
    };
    let reference = fates(&mut line(impair), 1000, 1000);
    assert_eq!(
        reference,
        fates(&mut line(impair), 1, 40),
        "other sizes, other times"
    );
    let mut cramped = line(|spec| {
        impair(spec);
        spec.queue = QueueLimit::Packets(1).into();
        spec.outage = vec![us(100_000)..us(200_000)];
    });
    let seen = fates(&mut cramped, 700, 1000);
    assert!(
        seen.iter().filter(|fate| fate.is_none()).count() > 300,
        "queue and outage drop many"
    );
    assert!(
        seen.iter()
            .zip(&reference)
            .all(|(seen, fate)| seen.is_none() || seen == fate)
    );
}

#[test]
fn a_growing_queue_marks_those_who_can_be_marked() {
    let marks = |ecn| -> Vec<bool> {
        let mut line = line(|spec| {
            (spec.queue, spec.mark) = (QueueLimit::Unlimited.into(), Some(MarkThreshold::Packets(2)));
        });
        let marked = |_| {
            matches!(
                line.offer(us(0), packet(1000, ecn)),
                Verdict::Deliver { mark_ce: true, .. }
            )
        };
        (0..5).map(marked).collect()
    };
    assert_eq!(marks(Ecn::Ect0), [false, false, false, true, true]);
    assert_eq!(marks(Ecn::NotEct), [false; 5]);
}

#[test]
fn loss_can_change_during_a_run() {
    let mut line = line(|spec| spec.queue = QueueLimit::Unlimited.into());
    let always = ErrorModel::Rate(RateLoss {
        probability: 1.0,
        unit: LossUnit::Packet,
    });
    line.set_loss(&[always]).expect("possible");
    assert_eq!(
        line.offer(us(0), packet(1, Ecn::NotEct)),
        Verdict::Drop(DropReason::Error)
    );
    line.set_loss(&[]).expect("possible");
    assert!(arrival(line.offer(us(0), packet(1, Ecn::NotEct))).is_some());
    let impossible = ErrorModel::Rate(RateLoss {
        probability: 2.0,
        unit: LossUnit::Packet,
    });
    assert!(line.set_loss(&[impossible]).is_err());
    assert!(arrival(line.offer(us(0), packet(1, Ecn::NotEct))).is_some());
}
