//! One direction of a link: rate, delay, queue and faults, in one call per packet.
//!
//! A virtual clock, `free`, says when the line has sent everything accepted so far. It gives a packet's departure at
//! the moment of its arrival, so that no event is needed when it leaves the queue, and keeps the long-run rate exact
//! however late a real-time caller wakes. Only disciplines that decide on departure need the caller's help: see
//! [`Verdict::Wait`].

mod departures;
#[cfg(test)]
mod tests;

pub use crate::counters::{Counters, DropReason};
pub use crate::parcel::Parcel;
pub use crate::waits::Waits;

use crate::discipline::{Admission, Arrival, Backlog, Discipline};
use crate::error_model::{ErrorModel, Fate, Impairments, Outages, Turns};
use crate::police::Bucket;
use crate::rate::{Course, LinkRate};
use crate::rule::{Offered, Rule, Ruling, first_ruling};
use crate::spec::{DirectionSpec, MarkThreshold, SpecError};
use departures::Departures;
use restp_base::machine::Ecn;
use restp_base::time::{Duration, Time};
use std::fmt;

/// The running form of a [`DirectionSpec`].
pub struct Direction {
    /// When the line has sent everything accepted so far, rounded up to a nanosecond.
    free: Time,
    /// By how much `free` was rounded up, in billionths of a bit.
    rounding: u64,
    /// Bits per second; zero for no limit. The mean, where the rate changes.
    rate_bps: u64,
    /// How the rate changes, if it does.
    course: Option<Box<Course>>,
    delay: Duration,
    mtu: u32,
    overhead_bytes: u32,
    up: bool,
    /// Its queue decides on departure.
    holds: bool,
    bucket: Option<Box<Bucket>>,
    discipline: Discipline,
    backlog: Backlog,
    departures: Departures,
    mark: Option<MarkThreshold>,
    outages: Outages,
    impairments: Option<Box<Impairments>>,
    /// With jitter.
    turns: Option<Turns>,
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
    /// The queue holds it and decides later, or has done so by now: take all verdicts from [`Direction::decided`], and
    /// call [`Direction::decide`] at [`Direction::next_decision`]. Only CoDel and FQ-CoDel say so.
    Wait,
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
        let mean = |rate: &LinkRate| rate.mean(Duration::MAX).as_bps().max(1);
        let rate_bps = spec.rate.as_ref().map_or(0, mean);
        let course = spec
            .rate
            .as_ref()
            .and_then(|rate| Course::new(rate, seed, &format!("{name}/rate")));
        let discipline = Discipline::new(&spec.queue, rate_bps, seed, name);
        Ok(Direction {
            free: Time::ZERO,
            rounding: 0,
            rate_bps,
            course: course.map(Box::new),
            delay: spec.delay,
            mtu: spec.mtu.unwrap_or(u32::MAX),
            overhead_bytes: spec.overhead_bytes,
            up: true,
            holds: discipline.holds() && rate_bps > 0,
            bucket: spec.police.map(|police| Box::new(Bucket::new(police))),
            discipline,
            backlog: Backlog::default(),
            departures: Departures::default(),
            mark: spec.mark,
            outages: Outages::new(&spec.outage),
            impairments: Impairments::new(spec.chance(), seed, name).map(Box::new),
            turns: spec.jitter.map(Turns::new),
            rules: Vec::new(),
            counters: Counters::default(),
            origin: Box::new(Origin {
                name: name.into(),
                seed,
                loss_changes: 0,
            }),
        })
    }

    /// Offers a packet at `now`, and says at once what becomes of it, unless it has to [wait](Verdict::Wait).
    ///
    /// In this order: outage on arrival, length, scripted faults, policer, queue, serialiser, outage at departure and at delivery,
    /// loss, and then what else the wire does. The error models draw for every packet, also for one dropped
    /// before they are asked. A caller that holds a packet until it is due must ask [`Direction::release`] then.
    #[inline]
    pub fn offer(&mut self, now: Time, parcel: Parcel) -> Verdict {
        let bytes = parcel.bytes;
        self.counters.packets += 1;
        self.counters.bytes += u64::from(bytes);
        let fate = self.impairments.as_mut().map(|chance| chance.draw(now, bytes));
        let luck = self.discipline.draw();
        self.outages.advance(now);
        if !self.up || self.outages.covers(now) {
            return self.drop(DropReason::Outage);
        }
        if bytes > self.mtu && !parcel.may_fragment {
            return self.drop(DropReason::Length);
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
        if self
            .bucket
            .as_mut()
            .is_some_and(|bucket| !bucket.passes(now, bytes))
        {
            return self.drop(DropReason::Police);
        }
        if self.holds {
            self.hold(now, parcel, fate.unwrap_or_default());
            return Verdict::Wait;
        }
        let Some((departure, mark_ce)) = self.send(now, parcel, luck) else {
            return self.drop(DropReason::Queue);
        };
        self.cross(departure, mark_ce, fate)
    }

    /// A packet has left at `departure`: what the wire does to it, with a `fate` where anything is left to chance.
    #[inline(always)]
    fn cross(&mut self, departure: Time, mark_ce: bool, fate: Option<Fate>) -> Verdict {
        let late_by = fate.and_then(|fate| fate.late_by);
        let mut at = departure + self.delay + late_by.unwrap_or_default();
        let mut in_order = late_by.is_none();
        if let Some(turns) = &mut self.turns {
            at += fate.unwrap_or_default().jitter;
            if in_order {
                (at, in_order) = turns.take(at);
            }
        }
        if self.outages.covers(departure) || self.outages.covers(at) {
            return self.drop(DropReason::Outage);
        }
        match fate {
            None => self.deliver(at, in_order, mark_ce, Fate::default()),
            Some(fate) if fate.lost => self.drop(DropReason::Error),
            Some(fate) => self.deliver(at, in_order, mark_ce, fate),
        }
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
            ..self.counters.clone()
        }
    }

    /// Packets and bytes that wait at `now`, the packet being sent apart.
    pub fn waiting(&mut self, now: Time) -> (u64, u64) {
        if self.holds {
            return self.discipline.held();
        }
        self.backlog.advance(now);
        (self.backlog.packets(), self.backlog.bytes())
    }

    /// Queue and serialiser: when the last bit leaves, and whether the packet met congestion. `None`: no room.
    #[inline(always)]
    fn send(&mut self, now: Time, parcel: Parcel, luck: f64) -> Option<(Time, bool)> {
        if self.rate_bps == 0 {
            return Some((now, false));
        }
        self.backlog.advance(now);
        let Parcel { bytes, ecn, .. } = parcel;
        let idle = (now >= self.free).then(|| now.since(self.free));
        let arrival = Arrival {
            idle,
            bytes,
            ecn,
            luck,
        };
        let admission = self.discipline.admit(arrival, &self.backlog);
        if admission == Admission::Drop {
            return None;
        }
        let mut mark_ce = admission == Admission::Mark;
        if idle.is_none() {
            mark_ce |= ecn != Ecn::NotEct && self.congested();
            self.wait(now, bytes);
        }
        self.start_at(now);
        self.serialise(bytes);
        Some((self.free, mark_ce))
    }

    /// The line has nothing to send before `now`.
    fn start_at(&mut self, now: Time) {
        if now > self.free {
            self.free = now;
            self.rounding = 0;
        }
    }

    fn congested(&self) -> bool {
        match self.mark {
            None => false,
            Some(MarkThreshold::Packets(least)) => self.backlog.packets() >= least,
            Some(MarkThreshold::Bytes(least)) => self.backlog.bytes() >= least,
        }
    }

    fn wait(&mut self, now: Time, bytes: u32) {
        self.backlog.push(self.free, bytes);
        self.counters.waits.record(self.free.since(now));
        self.counters.queued(self.backlog.packets(), self.backlog.bytes());
    }

    /// Moves the virtual clock by one packet. The part of a nanosecond by which it runs ahead is given back to the
    /// next packet, so that a thousand packets take exactly a thousand times as long as one.
    fn serialise(&mut self, bytes: u32) {
        let bytes = bytes.saturating_add(self.overhead_bytes);
        self.counters.sent += 1;
        if let Some(course) = &mut self.course {
            let begun = self.free;
            (self.free, self.rounding) = course.send(begun, self.rounding, bytes);
            self.counters.busy += self.free.since(begun);
            return;
        }
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
