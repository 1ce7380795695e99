//! One direction of a path in real time: the simulator's model says when each packet arrives, and the line holds
//! the packet until then.

use super::report::DirectionReport;
use bytes::{Bytes, BytesMut};
use restp_base::machine::Ecn;
use restp_base::time::{Duration, Time};
use restp_sim::{Direction, DirectionSpec, ErrorModel, Parcel, SpecError, Verdict};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap};

/// Most bytes one direction holds; a rate of 1 Gbit/s over 2 s. Without a rate limit the delay alone would
/// otherwise decide how much memory a flood takes.
const MAX_HELD_BYTES: u64 = 256 << 20;

/// A packet on its way, with what its destination needs to be sent to (`T`).
pub(super) struct Packet<T> {
    pub(super) bytes: Bytes,
    pub(super) ecn: Ecn,
    pub(super) may_fragment: bool,
    /// Packets of one flow share this number.
    pub(super) flow: u64,
    pub(super) to: T,
}

/// The packets of one direction.
pub(super) struct Line<T> {
    direction: Direction,
    /// Packets whose queue has yet to decide, by their number, with the bytes of their headers.
    waiting: BTreeMap<u64, (Packet<T>, usize)>,
    held: BinaryHeap<Held<T>>,
    held_bytes: u64,
    /// Of the packet that came last; keeps the order of packets due at the same time.
    number: u64,
    overflowed: u64,
    unsent: u64,
    lateness: Duration,
    max_lateness: Duration,
}

struct Held<T> {
    due: Time,
    number: u64,
    packet: Packet<T>,
}

impl<T: Clone> Line<T> {
    pub(super) fn new(spec: &DirectionSpec, seed: u64, name: &str) -> Result<Self, SpecError> {
        Ok(Line {
            direction: Direction::new(spec, seed, name)?,
            waiting: BTreeMap::new(),
            held: BinaryHeap::new(),
            held_bytes: 0,
            number: 0,
            overflowed: 0,
            unsent: 0,
            lateness: Duration::ZERO,
            max_lateness: Duration::ZERO,
        })
    }

    /// Takes a packet at `now`. On the link it would be `header_bytes` longer than what is held here.
    pub(super) fn offer(&mut self, now: Time, packet: Packet<T>, header_bytes: usize) {
        let size = u32::try_from(packet.bytes.len() + header_bytes).unwrap_or(u32::MAX);
        self.number += 1;
        let parcel = Parcel {
            bytes: size,
            ecn: packet.ecn,
            may_fragment: packet.may_fragment,
            flow: packet.flow,
            tag: self.number,
        };
        let verdict = self.direction.offer(now, parcel);
        if let Verdict::Drop(_) = verdict {
            return;
        }
        // A packet that waits without being held here is dropped whatever is decided on it.
        let room = self.held_bytes + 2 * u64::from(size) <= MAX_HELD_BYTES;
        self.overflowed += u64::from(!room);
        if room && verdict == Verdict::Wait {
            self.held_bytes += packet.bytes.len() as u64;
            self.waiting.insert(self.number, (packet, header_bytes));
        } else if room {
            self.conclude(verdict, packet, header_bytes);
        }
        self.settle();
    }

    /// Does what the queue has decided on packets that waited.
    fn settle(&mut self) {
        while let Some((number, verdict)) = self.direction.decided() {
            if let Some((packet, header_bytes)) = self.waiting.remove(&number) {
                self.held_bytes -= packet.bytes.len() as u64;
                self.conclude(verdict, packet, header_bytes);
            }
        }
    }

    fn conclude(&mut self, verdict: Verdict, mut packet: Packet<T>, header_bytes: usize) {
        let Verdict::Deliver {
            at,
            duplicate_at,
            flip_bit,
            mark_ce,
            ..
        } = verdict
        else {
            return;
        };
        if mark_ce {
            packet.ecn = Ecn::Ce;
        }
        if let Some(bit) = flip_bit {
            packet.bytes = flip(&packet.bytes, bit, header_bytes);
        }
        if let Some(due) = duplicate_at {
            let copy = Packet {
                bytes: packet.bytes.clone(),
                to: packet.to.clone(),
                ..packet
            };
            self.hold(at, packet);
            self.hold(due, copy);
        } else {
            self.hold(at, packet);
        }
    }

    /// When the next packet is due, or its queue is to be asked.
    pub(super) fn due(&self) -> Option<Time> {
        let held = self.held.peek().map(|held| held.due);
        held.into_iter().chain(self.direction.next_decision()).min()
    }

    /// Gives out everything due by `now`. `send` says whether the system took it.
    pub(super) fn release(&mut self, now: Time, mut send: impl FnMut(&Packet<T>) -> bool) {
        self.direction.decide(now);
        self.settle();
        while self.held.peek().is_some_and(|held| held.due <= now)
            && let Some(Held { due, packet, .. }) = self.held.pop()
        {
            self.held_bytes -= packet.bytes.len() as u64;
            if self.direction.release() {
                self.lateness += now.since(due);
                self.max_lateness = self.max_lateness.max(now.since(due));
                self.unsent += u64::from(!send(&packet));
            }
        }
    }

    /// Takes the direction down, or up again.
    pub(super) fn set_up(&mut self, up: bool) {
        self.direction.set_up(up);
    }

    /// Replaces the loss models.
    pub(super) fn set_loss(&mut self, loss: &[ErrorModel]) -> Result<(), SpecError> {
        self.direction.set_loss(loss)
    }

    /// What happened so far.
    pub(super) fn report(&self, now: Time) -> DirectionReport {
        let counters = self.direction.counters(now);
        let mut report = DirectionReport::of(&counters);
        report.dropped_system = self.overflowed + self.unsent;
        report.delivered_packets -= self.unsent;
        report.mean_lateness_us = self.lateness.as_nanos() as f64 / 1e3 / counters.delivered.max(1) as f64;
        report.max_lateness_us = self.max_lateness.as_nanos() as f64 / 1e3;
        report
    }

    fn hold(&mut self, due: Time, packet: Packet<T>) {
        self.number += 1;
        self.held_bytes += packet.bytes.len() as u64;
        self.held.push(Held {
            due,
            number: self.number,
            packet,
        });
    }
}

/// Flips the bit that counts from the start of the headers; those are not ours to break, so the bit moves into
/// the bytes we hold.
fn flip(bytes: &Bytes, bit: u64, header_bytes: usize) -> Bytes {
    let mut bytes = BytesMut::from(&bytes[..]);
    let bits = bytes.len() as u64 * 8;
    if bits > 0 {
        let bit = bit.checked_sub(header_bytes as u64 * 8).unwrap_or(bit) % bits;
        bytes[(bit / 8) as usize] ^= 0x80 >> (bit % 8);
    }
    bytes.freeze()
}

// The heap gives out its greatest: the earliest due, and of these the first taken.
impl<T> Ord for Held<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.due, other.number).cmp(&(self.due, self.number))
    }
}
impl<T> PartialOrd for Held<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<T> PartialEq for Held<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl<T> Eq for Held<T> {}

#[cfg(test)]
mod tests {
    use super::*;
    use restp_base::units::Rate;
    use restp_sim::QueueLimit;
    use restp_sim::error_model::{Corrupt, Duplicate};

    fn packet(first: u8) -> Packet<()> {
        Packet {
            bytes: Bytes::from(vec![first; 972]),
            ecn: Ecn::Ect0,
            may_fragment: false,
            flow: 0,
            to: (),
        }
    }
    fn at_us(micros: u64) -> Time {
        Time::ZERO + Duration::from_micros(micros)
    }
    fn released(line: &mut Line<()>, now: Time) -> Vec<u8> {
        let mut first = Vec::new();
        line.release(now, |packet| {
            first.push(packet.bytes[0]);
            true
        });
        first
    }

    #[test]
    fn packets_come_out_in_order_when_their_last_bit_has_arrived() {
        // 1000 bytes at 8 Mbit/s are 1 ms; 5 ms on the way.
        let spec = DirectionSpec::new(
            Rate::from_bps(8_000_000),
            Duration::from_millis(5),
            QueueLimit::Packets(2),
        );
        let mut line = Line::new(&spec, 1, "path/a/forward").unwrap();
        for number in 1..=4 {
            line.offer(Time::ZERO, packet(number), 28);
        }
        assert_eq!(line.due(), Some(at_us(6_000)));
        assert_eq!(released(&mut line, at_us(5_999)), []);
        assert_eq!(released(&mut line, at_us(7_500)), [1, 2]);
        assert_eq!(released(&mut line, at_us(8_000)), [3]);
        let report = line.report(at_us(9_000));
        assert_eq!(
            (
                report.offered_packets,
                report.delivered_packets,
                report.dropped_queue
            ),
            (4, 3, 1)
        );
        assert_eq!(report.max_lateness_us, 1_500.0);
        assert_eq!(report.mean_lateness_us, (1_500.0 + 500.0) / 3.0);
    }

    #[test]
    fn a_queue_that_decides_on_departure_is_asked_in_time() {
        let spec = DirectionSpec::new(
            Rate::from_bps(8_000_000),
            Duration::from_millis(5),
            restp_sim::Queue::FqCodel(restp_sim::FqCodel::default()),
        );
        let mut line = Line::new(&spec, 1, "path/a/forward").unwrap();
        for number in 1..=4 {
            line.offer(Time::ZERO, packet(number), 28);
        }
        let other = Packet { flow: 1, ..packet(9) };
        line.offer(at_us(500), other, 28);
        assert_eq!(line.due(), Some(at_us(1_000)), "the line is free for the next");
        assert_eq!(released(&mut line, at_us(7_000)), [1, 2]);
        assert_eq!(released(&mut line, at_us(20_000)), [9, 3, 4]);
        assert_eq!((line.due(), line.held_bytes), (None, 0));
    }

    #[test]
    fn what_is_due_while_down_is_lost_and_what_the_system_refuses_is_counted() {
        let spec = DirectionSpec {
            delay: Duration::from_millis(1),
            ..DirectionSpec::default()
        };
        let mut line = Line::new(&spec, 1, "path/a/forward").unwrap();
        line.offer(Time::ZERO, packet(1), 28);
        line.set_up(false);
        assert_eq!(released(&mut line, at_us(2_000)), []);
        line.set_up(true);
        line.offer(at_us(2_000), packet(2), 28);
        line.release(at_us(3_000), |_| false);
        let report = line.report(at_us(3_000));
        assert_eq!(
            (
                report.delivered_packets,
                report.dropped_outage,
                report.dropped_system
            ),
            (0, 1, 1)
        );
    }

    #[test]
    fn copies_and_flipped_bits_arrive() {
        let spec = DirectionSpec {
            duplicate: Some(Duplicate { probability: 1.0 }),
            corrupt: Some(Corrupt { probability: 1.0 }),
            ..DirectionSpec::default()
        };
        let mut line = Line::new(&spec, 1, "path/a/forward").unwrap();
        line.offer(Time::ZERO, packet(0), 28);
        let mut ones = Vec::new();
        line.release(Time::ZERO, |packet| {
            ones.push(packet.bytes.iter().map(|byte| byte.count_ones()).sum::<u32>());
            true
        });
        assert_eq!(ones, [1, 1]);
    }

    #[test]
    fn a_flood_holds_bounded_memory() {
        let spec = DirectionSpec {
            delay: Duration::from_secs(3600),
            ..DirectionSpec::default()
        };
        let mut line = Line::new(&spec, 1, "path/a/forward").unwrap();
        let large = Bytes::from(vec![0; 60_000]);
        for _ in 0..2 * MAX_HELD_BYTES / 60_000 {
            line.offer(
                Time::ZERO,
                Packet {
                    bytes: large.clone(),
                    ecn: Ecn::NotEct,
                    may_fragment: false,
                    flow: 0,
                    to: (),
                },
                28,
            );
        }
        assert!(line.held_bytes <= MAX_HELD_BYTES);
        assert!(line.report(Time::ZERO).dropped_system > 0);
    }
}
