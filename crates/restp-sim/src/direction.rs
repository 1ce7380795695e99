//! One direction of a link: rate, delay, queue and faults, in one call per packet.
//!
//! A virtual clock, `free`, says when the line has sent everything accepted so far. It gives a packet's departure at
//! the moment of its arrival, so that no event is needed when it leaves the queue, and keeps the long-run rate exact
//! however late a real-time caller wakes.

mod counters;

pub use counters::{Counters, DropReason};

use crate::discipline::{Backlog, Discipline};
use crate::error_model::{ErrorModel, Fate, Impairments, Outages};
use crate::rule::{Offered, Rule, Ruling, first_ruling};
use crate::spec::{DirectionSpec, MarkThreshold, SpecError};
use restp_base::machine::Ecn;
use restp_base::time::{Duration, Time};
use std::fmt;

/// The running form of a [`DirectionSpec`].
pub struct Direction {
    /// When the line has sent everything accepted so far, rounded up to a nanosecond.
    free: Time,
    /// By how much `free` was rounded up, in billionths of a bit.
    rounding: u64,
    /// Bits per second; zero for no limit.
    rate_bps: u64,
    delay: Duration,
    up: bool,
    discipline: Discipline,
    backlog: Backlog,
    mark: Option<MarkThreshold>,
    outages: Outages,
    impairments: Option<Box<Impairments>>,
    rules: Vec<Rule>,
    counters: Counters,
    origin: Box<Origin>,
}

/// Where a direction's random streams come from.
struct Origin {
    name: String,
    seed: u64,
    loss_changes: u32,
}

/// What happens to a packet offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It does not arrive.
    Drop(DropReason),
    /// It arrives, unless the direction is [taken down](Direction::set_up) before.
    Deliver {
        /// When its last bit arrives.
        at: Time,
        /// When a second copy arrives, right behind the first.
        duplicate_at: Option<Time>,
        /// Number of the bit to flip, below eight times the size offered.
        flip_bit: Option<u64>,
        /// Mark it as having met congestion.
        mark_ce: bool,
        /// False when it may overtake or be overtaken; those in order arrive first in, first out.
        in_order: bool,
    },
}

impl Direction {
    /// A direction that draws from the streams below `name` (`"link/<link>/<forward|reverse>"`) of the run `seed`.
    ///
    /// # Errors
    /// When the description is impossible.
    pub fn new(spec: &DirectionSpec, seed: u64, name: &str) -> Result<Self, SpecError> {
        spec.check()?;
        Ok(Direction {
            free: Time::ZERO,
            rounding: 0,
            rate_bps: spec.rate.map_or(0, |rate| rate.as_bps()),
            delay: spec.delay,
            up: true,
            discipline: Discipline::DropTail(spec.queue),
            backlog: Backlog::default(),
            mark: spec.mark,
            outages: Outages::new(&spec.outage),
            impairments: Impairments::new(spec, seed, name).map(Box::new),
            rules: Vec::new(),
            counters: Counters::default(),
            origin: Box::new(Origin {
                name: name.into(),
                seed,
                loss_changes: 0,
            }),
        })
    }

    /// Offers a packet of `bytes` at `now`, and says at once what becomes of it.
    ///
    /// In this order: outage on arrival, scripted faults, queue, serialiser, outage at departure and at delivery,
    /// loss, and then what else the wire does. The error models draw for every packet, also for one dropped
    /// before they are asked. A caller that holds a packet until it is due must ask [`Direction::release`] then.
    pub fn offer(&mut self, now: Time, bytes: u32, ecn: Ecn) -> Verdict {
        self.counters.packets += 1;
        self.counters.bytes += u64::from(bytes);
        let fate = self
            .impairments
            .as_mut()
            .map_or_else(Fate::default, |chance| chance.draw(bytes));
        self.outages.advance(now);
        if !self.up || self.outages.covers(now) {
            return self.drop(DropReason::Outage);
        }
        if !self.rules.is_empty() {
            let packet = Offered {
                at: now,
                number: self.counters.packets,
                bytes,
            };
            match first_ruling(&mut self.rules, packet) {
                Ruling::Pass => {}
                Ruling::Drop => return self.drop(DropReason::Rule),
                Ruling::Deliver(after) => return self.deliver(now + after, false, false, Fate::default()),
            }
        }
        let Some((departure, mark_ce)) = self.send(now, bytes, ecn) else {
            return self.drop(DropReason::Queue);
        };
        let at = departure + self.delay + fate.late_by.unwrap_or_default();
        if self.outages.covers(departure) || self.outages.covers(at) {
            return self.drop(DropReason::Outage);
        }
        if fate.lost {
            return self.drop(DropReason::Error);
        }
        self.deliver(at, fate.late_by.is_none(), mark_ce, fate)
    }

    /// A packet (or copy) is due: does it arrive? Not while the direction is [down](Direction::set_up).
    pub fn release(&mut self) -> bool {
        if self.up {
            self.counters.delivered += 1;
        } else {
            self.counters.dropped_outage += 1;
        }
        self.up
    }

    /// Takes the direction down or up at run time: a black hole for what is offered or due meanwhile.
    pub fn set_up(&mut self, up: bool) {
        self.up = up;
    }

    /// Replaces the loss models at run time. The new ones start streams of their own; other faults go on as before.
    ///
    /// # Errors
    /// When a model is impossible; the old ones stay then.
    pub fn set_loss(&mut self, loss: &[ErrorModel]) -> Result<(), SpecError> {
        loss.iter().try_for_each(ErrorModel::check)?;
        let origin = &mut *self.origin;
        origin.loss_changes += 1;
        let name = format!("{}/change/{}", origin.name, origin.loss_changes);
        self.impairments
            .get_or_insert_default()
            .set_losses(loss, origin.seed, &name);
        Ok(())
    }

    /// Ends everything that is left to chance: losses, reordering, copies, flipped bits.
    pub fn heal(&mut self) {
        self.impairments = None;
    }

    /// Adds a scripted fault behind those already there.
    pub fn add_rule(&mut self, rule: impl FnMut(Offered) -> Ruling + Send + 'static) {
        self.rules.push(Box::new(rule));
    }

    /// What this direction has done by `now`; time the line will still be busy is not counted.
    pub fn counters(&self, now: Time) -> Counters {
        let to_come = self.free.since(now);
        Counters {
            busy: self.counters.busy.saturating_sub(to_come),
            ..self.counters
        }
    }

    /// Queue and serialiser: when the last bit leaves, and whether the packet met congestion. `None`: no room.
    fn send(&mut self, now: Time, bytes: u32, ecn: Ecn) -> Option<(Time, bool)> {
        if self.rate_bps == 0 {
            return Some((now, false));
        }
        self.backlog.advance(now);
        let mut mark_ce = false;
        if now < self.free {
            if !self.discipline.admits(&self.backlog, bytes) {
                return None;
            }
            mark_ce = ecn != Ecn::NotEct && self.congested();
            self.wait(bytes);
        } else if now > self.free {
            self.free = now;
            self.rounding = 0;
        }
        self.serialise(bytes);
        Some((self.free, mark_ce))
    }

    fn congested(&self) -> bool {
        match self.mark {
            None => false,
            Some(MarkThreshold::Packets(least)) => self.backlog.packets() >= least,
            Some(MarkThreshold::Bytes(least)) => self.backlog.bytes() >= least,
        }
    }

    fn wait(&mut self, bytes: u32) {
        self.backlog.push(self.free, bytes);
        let counters = &mut self.counters;
        counters.largest_queue_packets = counters.largest_queue_packets.max(self.backlog.packets());
        counters.largest_queue_bytes = counters.largest_queue_bytes.max(self.backlog.bytes());
    }

    /// Moves the virtual clock by one packet. The part of a nanosecond by which it runs ahead is given back to the
    /// next packet, so that a thousand packets take exactly a thousand times as long as one.
    fn serialise(&mut self, bytes: u32) {
        let work = (u64::from(bytes) * 8)
            .saturating_mul(1_000_000_000)
            .saturating_sub(self.rounding);
        let nanos = work.div_ceil(self.rate_bps);
        self.rounding = nanos.wrapping_mul(self.rate_bps).wrapping_sub(work);
        self.free += Duration::from_nanos(nanos);
        self.counters.busy += Duration::from_nanos(nanos);
    }

    fn deliver(&mut self, at: Time, in_order: bool, mark_ce: bool, fate: Fate) -> Verdict {
        self.counters.reordered += u64::from(!in_order);
        self.counters.marked += u64::from(mark_ce);
        self.counters.corrupted += u64::from(fate.flip_bit.is_some());
        self.counters.duplicated += u64::from(fate.duplicated);
        let duplicate_at = fate.duplicated.then_some(at);
        Verdict::Deliver {
            at,
            duplicate_at,
            flip_bit: fate.flip_bit,
            mark_ce,
            in_order,
        }
    }

    fn drop(&mut self, reason: DropReason) -> Verdict {
        self.counters.drop(reason);
        Verdict::Drop(reason)
    }
}

impl fmt::Debug for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Direction {
            free,
            up,
            counters,
            origin,
            ..
        } = self;
        f.debug_struct("Direction")
            .field("name", &origin.name)
            .field("free", free)
            .field("up", up)
            .field("counters", counters)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discipline::QueueLimit;
    use crate::error_model::{BurstLoss, Corrupt, Duplicate, LossUnit, RateLoss, Reorder, Scripted};
    use restp_base::units::Rate;
    use std::ops::Range;

    /// 8 Mbit/s: a byte takes a microsecond.
    fn line(change: impl FnOnce(&mut DirectionSpec)) -> Direction {
        let delay = Duration::from_millis(10);
        let mut spec = DirectionSpec::new(Rate::from_bps(8_000_000), delay, QueueLimit::Packets(2));
        change(&mut spec);
        Direction::new(&spec, 1, "link/a/forward").expect("possible")
    }

    fn us(n: u64) -> Time {
        Time::ZERO + Duration::from_micros(n)
    }

    fn arrival(verdict: Verdict) -> Option<Time> {
        match verdict {
            Verdict::Deliver { at, .. } => Some(at),
            Verdict::Drop(_) => None,
        }
    }

    #[test]
    fn the_queue_holds_its_limit_beside_the_packet_being_sent() {
        let mut line = line(|_| ());
        let arrivals: Vec<_> = (0..4)
            .map(|_| arrival(line.offer(us(0), 1000, Ecn::NotEct)))
            .collect();
        assert_eq!(
            arrivals,
            [Some(us(11_000)), Some(us(12_000)), Some(us(13_000)), None]
        );
        assert_eq!(
            line.offer(us(999), 1000, Ecn::NotEct),
            Verdict::Drop(DropReason::Queue)
        );
        // At 1000 µs the first has left, the second is being sent, and one waits.
        assert_eq!(arrival(line.offer(us(1000), 1000, Ecn::NotEct)), Some(us(14_000)));
        let counters = line.counters(us(2000));
        assert_eq!((counters.dropped_queue, counters.largest_queue_packets), (2, 2));
        assert_eq!(
            counters.busy,
            Duration::from_millis(2),
            "the future is not counted"
        );
    }

    #[test]
    fn odd_rates_are_exact_in_the_long_run() {
        for (bps, bytes) in [(3_000_001, 1499), (7, 1), (9_999_999_999, 53)] {
            let mut line = line(|spec| {
                (spec.rate, spec.queue) = (Some(Rate::from_bps(bps)), QueueLimit::Unlimited);
            });
            for _ in 0..1000 {
                line.offer(us(0), bytes, Ecn::NotEct);
            }
            let exact = Rate::from_bps(bps).transmission_time(u64::from(bytes) * 1000);
            assert_eq!(line.free, Time::ZERO + exact);
        }
    }

    #[test]
    fn without_a_rate_only_the_delay_remains() {
        let mut line = line(|spec| (spec.rate, spec.queue) = (None, QueueLimit::Packets(0)));
        for _ in 0..3 {
            assert_eq!(arrival(line.offer(us(5), 1000, Ecn::NotEct)), Some(us(10_005)));
        }
    }

    #[test]
    fn an_outage_takes_what_is_offered_sent_or_due_in_it() {
        let offered_at = |now: u64, outage: Range<u64>| {
            let mut line = line(|spec| spec.outage = vec![us(outage.start)..us(outage.end)]);
            line.offer(us(now), 1000, Ecn::NotEct)
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
        assert!(arrival(line.offer(us(0), 1000, Ecn::NotEct)).is_some());
        line.set_up(false);
        assert!(!line.release());
        assert_eq!(
            line.offer(us(20_000), 1000, Ecn::NotEct),
            Verdict::Drop(DropReason::Outage)
        );
        line.set_up(true);
        assert!(arrival(line.offer(us(30_000), 1000, Ecn::NotEct)).is_some());
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
            line.offer(us(0), 1000, Ecn::NotEct),
            Verdict::Drop(DropReason::Error)
        );
        assert_eq!(arrival(line.offer(us(0), 1000, Ecn::NotEct)), Some(us(12_000)));
    }

    /// The pattern is a function of the packet's number alone: neither sizes, queue drops nor outages shift it.
    #[test]
    fn two_protocols_meet_the_same_losses_packet_by_packet() {
        let impair = |spec: &mut DirectionSpec| {
            spec.queue = QueueLimit::Unlimited;
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
            let fate = |n| match line.offer(us(n * gap), bytes, Ecn::NotEct) {
                Verdict::Drop(DropReason::Error) => Some((true, false, false)),
                Verdict::Drop(_) => None,
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
            spec.queue = QueueLimit::Packets(1);
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
                (spec.queue, spec.mark) = (QueueLimit::Unlimited, Some(MarkThreshold::Packets(2)));
            });
            let marked = |_| {
                matches!(
                    line.offer(us(0), 1000, ecn),
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
        let mut line = line(|spec| spec.queue = QueueLimit::Unlimited);
        let always = ErrorModel::Rate(RateLoss {
            probability: 1.0,
            unit: LossUnit::Packet,
        });
        line.set_loss(&[always]).expect("possible");
        assert_eq!(
            line.offer(us(0), 1, Ecn::NotEct),
            Verdict::Drop(DropReason::Error)
        );
        line.set_loss(&[]).expect("possible");
        assert!(arrival(line.offer(us(0), 1, Ecn::NotEct)).is_some());
        let impossible = ErrorModel::Rate(RateLoss {
            probability: 2.0,
            unit: LossUnit::Packet,
        });
        assert!(line.set_loss(&[impossible]).is_err());
        assert!(arrival(line.offer(us(0), 1, Ecn::NotEct)).is_some());
    }
}
