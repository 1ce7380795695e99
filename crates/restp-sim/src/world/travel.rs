//! Packets from hop to hop: what is due at the end of a line, into which queue it goes next, and what comes of it there.

use super::flight::InFlight;
use super::{Air, HostEvent, HostId, Label, Line, LostSegment, World};
use crate::direction::{DropReason, Parcel, Verdict};
use crate::medium::Outcome;
use crate::trace::{Captured, Step, TraceEvent};
use restp_base::machine::Datagram;
use restp_base::time::Time;

impl World {
    pub(super) fn line_due(&mut self, index: usize, arrived: &mut Box<Datagram>) -> Option<HostEvent> {
        let in_flight = &mut self.lines[index].in_flight;
        let due = in_flight.pop_front()?;
        match in_flight.front() {
            Some(next) => self.event_queue.set(index, next.at),
            None => self.event_queue.clear(index),
        }
        self.events += 1;
        self.hop(due.packet, index, arrived)
    }

    pub(super) fn stray_due(&mut self, arrived: &mut Box<Datagram>) -> Option<HostEvent> {
        let (packet, line) = self.strays.pop()?;
        self.schedule_strays();
        self.events += 1;
        match line {
            Some(index) => self.hop(packet, index, arrived),
            None => Some(self.hand_over(packet, arrived)),
        }
    }

    pub(super) fn departure_due(&mut self, index: usize) {
        self.events += 1;
        self.lines[index].direction.decide(self.now);
        self.settle(index);
    }

    /// Something happens on a medium.
    pub(super) fn medium_due(&mut self, medium: usize, arrived: &mut Box<Datagram>) -> Option<HostEvent> {
        self.events += 1;
        let outcome = self.media[medium].advance(self.now);
        self.schedule_medium(medium);
        let (Outcome::Delivered { packet, hop } | Outcome::Dropped { packet, hop, .. }) = outcome?;
        let first = self.air.partition_point(|air| (air.medium as usize) < medium);
        let index = self.lines.len() + first + hop as usize;
        if let Some(Outcome::Dropped { reason, .. }) = outcome {
            self.conclude(packet, index, Verdict::Drop(reason));
            return None;
        }
        let at = self.now;
        if self.capture.is_some() {
            self.film(packet, index, None);
        }
        self.pool.on_hop(packet);
        self.observe(packet, |labels| Step::Accepted {
            line: &labels[index].line,
            due: at,
            flip_bit: None,
            marked: false,
        });
        self.arrive(packet, self.air[first + hop as usize].far_end, arrived)
    }

    fn offer_to_air(&mut self, packet: u32, index: usize, parcel: Parcel) {
        let Air { medium, hop, .. } = self.air[index - self.lines.len()];
        let taken = self.media[medium as usize].offer(self.now, hop, parcel);
        match taken {
            Ok(()) => self.schedule_medium(medium as usize),
            Err(reason) => self.conclude(packet, index, Verdict::Drop(reason)),
        }
    }

    fn schedule_medium(&mut self, medium: usize) {
        let source = self.first_medium() + medium;
        match self.media[medium].next() {
            Some(at) => self.event_queue.set(source, at),
            None => self.event_queue.clear(source),
        }
    }

    /// Nothing leads where it is to go.
    #[cold]
    fn vanish(&mut self, packet: u32) {
        self.blame(packet, DropReason::Outage);
        self.totals.dropped += 1;
        self.pool.discard(packet);
    }

    /// A packet is at the end of a line: to its host, or into the next line.
    fn hop(&mut self, packet: u32, index: usize, arrived: &mut Box<Datagram>) -> Option<HostEvent> {
        let line = &mut self.lines[index];
        let node = line.far_end;
        if !line.direction.release() {
            self.lose(packet, index, DropReason::Outage);
            return None;
        }
        self.arrive(packet, node, arrived)
    }

    fn arrive(&mut self, packet: u32, node: u32, arrived: &mut Box<Datagram>) -> Option<HostEvent> {
        let slot = self.pool.packet(packet);
        if slot.goal == node {
            return Some(self.hand_over(packet, arrived));
        }
        if let Some(tap) = self.taps.at(node, slot.from) {
            return Some(self.show(packet, tap, arrived));
        }
        self.offer(packet, node);
        None
    }

    pub(super) fn offer(&mut self, packet: u32, node: u32) {
        let slot = self.pool.packet(packet);
        let pinned = self.hosts[slot.from as usize].route.hop(slot.hops as usize);
        let Some(index) = pinned.or_else(|| self.topology.next_hop(node, slot.goal)) else {
            return self.vanish(packet);
        };
        let index = index as usize;
        let parcel = Parcel {
            bytes: slot.bytes,
            ecn: slot.ecn,
            may_fragment: slot.may_fragment,
            flow: u64::from(slot.from) << 32 | u64::from(slot.to),
            tag: u64::from(packet),
        };
        let Some(line) = self.lines.get_mut(index) else {
            return self.offer_to_air(packet, index, parcel);
        };
        match line.direction.offer(self.now, parcel) {
            Verdict::Wait => self.settle(index),
            verdict => self.conclude(packet, index, verdict),
        }
    }

    /// Does what a queue has decided, and comes back for its next decision.
    fn settle(&mut self, index: usize) {
        while let Some((packet, verdict)) = self.lines[index].direction.decided() {
            self.conclude(packet as u32, index, verdict);
        }
        let Line {
            direction,
            departures,
            ..
        } = &self.lines[index];
        match direction.next_decision() {
            Some(at) => self.event_queue.set(*departures, at),
            None => self.event_queue.clear(*departures),
        }
    }

    #[inline(always)]
    fn conclude(&mut self, packet: u32, index: usize, verdict: Verdict) {
        if self.capture.is_some() {
            match verdict {
                Verdict::Wait => {}
                Verdict::Drop(reason) => self.film(packet, index, Some(reason)),
                Verdict::Deliver { .. } => self.film(packet, index, None),
            }
        }
        match verdict {
            Verdict::Wait => {}
            Verdict::Drop(reason) => self.lose(packet, index, reason),
            Verdict::Deliver {
                at,
                duplicate_at,
                flip_bit,
                mark_ce,
                in_order,
            } => {
                self.pool.on_hop(packet);
                if mark_ce || flip_bit.is_some() {
                    self.pool.damage(packet, mark_ce, flip_bit);
                }
                if flip_bit.is_some() {
                    self.blame(packet, DropReason::Error);
                }
                let marked = mark_ce;
                self.observe(packet, |labels| Step::Accepted {
                    line: &labels[index].line,
                    due: at,
                    flip_bit,
                    marked,
                });
                self.fly(packet, index, at, in_order);
                if let Some(at) = duplicate_at {
                    self.duplicate(packet, index, at, in_order);
                }
            }
        }
    }

    #[cold]
    fn duplicate(&mut self, packet: u32, index: usize, at: Time, in_order: bool) {
        self.totals.copied += 1;
        let of = self.pool.packet(packet).number;
        let copy = self.pool.copy(packet, self.totals.sent + self.totals.copied);
        self.observe(copy, |labels| Step::Copied {
            line: &labels[index].line,
            of,
        });
        self.fly(copy, index, at, in_order);
    }

    #[inline(always)]
    fn fly(&mut self, packet: u32, index: usize, at: Time, in_order: bool) {
        if !in_order {
            return self.stray(packet, at, Some(index));
        }
        let in_flight = &mut self.lines[index].in_flight;
        if in_flight.is_empty() {
            self.event_queue.add(index, at);
        }
        in_flight.push_back(InFlight { at, packet });
    }

    #[cold]
    pub(super) fn stray(&mut self, packet: u32, at: Time, line: Option<usize>) {
        self.strays.push(InFlight { at, packet }, line);
        self.schedule_strays();
    }

    fn schedule_strays(&mut self) {
        match self.strays.next() {
            Some(at) => self.event_queue.set(self.lines.len(), at),
            None => self.event_queue.clear(self.lines.len()),
        }
    }

    fn hand_over(&mut self, packet: u32, arrived: &mut Box<Datagram>) -> HostEvent {
        let host = HostId(self.pool.packet(packet).to);
        self.observe(packet, |_| Step::Delivered { to: host });
        self.totals.delivered += 1;
        self.pool.take(packet, arrived);
        HostEvent::Arrival { host }
    }

    fn lose(&mut self, packet: u32, index: usize, reason: DropReason) {
        self.blame(packet, reason);
        self.observe(packet, |labels| Step::Dropped {
            line: &labels[index].line,
            reason,
        });
        self.totals.dropped += 1;
        self.pool.discard(packet);
    }

    #[cold]
    fn film(&mut self, packet: u32, index: usize, dropped: Option<DropReason>) {
        if let Some(sink) = &mut self.capture {
            sink(&Captured {
                at: self.now,
                link: index / 2,
                way: self.labels[index].way,
                datagram: self.pool.contents(packet),
                ecn: self.pool.packet(packet).ecn,
                dropped,
            });
        }
    }

    /// The segment in it does not arrive as it was sent.
    fn blame(&mut self, packet: u32, reason: DropReason) {
        if let Some(lost) = &mut self.lost
            && let Some(segment) = self.pool.segment(packet)
        {
            let from = HostId(self.pool.packet(packet).from);
            lost.push(LostSegment {
                from,
                segment,
                reason,
            });
        }
    }

    /// One branch when nobody looks.
    pub(super) fn observe<'a>(&'a mut self, packet: u32, step: impl FnOnce(&'a [Label]) -> Step<'a>) {
        if let Some(sink) = &mut self.trace {
            let packet = self.pool.packet(packet);
            let (at, bytes) = (self.now, packet.bytes);
            sink(&TraceEvent {
                at,
                packet: packet.number,
                bytes,
                step: step(&self.labels),
            });
        }
    }
}
