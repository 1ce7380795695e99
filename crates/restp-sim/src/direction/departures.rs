//! Departures under a discipline that decides on them. The line takes the next packet the moment it is free, also
//! when its owner asks later: every decision is made as of that moment, before anything that came after it.

use super::{Direction, DropReason, Parcel, Verdict};
use crate::discipline::Held;
use crate::error_model::Fate;
use restp_base::time::Time;
use std::collections::VecDeque;

/// What has been decided and not yet been told.
#[derive(Debug, Default)]
pub(super) struct Departures {
    decided: VecDeque<(u64, Verdict)>,
    /// Scratch space of one decision.
    dropped: Vec<Held>,
}

impl Direction {
    /// Does its queue decide on departure? Then packets offered have to [wait](Verdict::Wait).
    pub fn holds(&self) -> bool {
        self.holds
    }

    /// When the next packet held is to be decided on; `None` while none waits.
    pub fn next_decision(&self) -> Option<Time> {
        (self.discipline.held().0 > 0).then_some(self.free)
    }

    /// Decides on everything that leaves by `now`.
    pub fn decide(&mut self, now: Time) {
        while let Some(start) = self.next_decision()
            && start <= now
        {
            let sent = self.discipline.dequeue(start, &mut self.departures.dropped);
            self.tell_drops();
            if let Some((packet, mark_ce)) = sent {
                self.counters.waits.record(start.since(packet.since));
                self.serialise(packet.bytes);
                let verdict = self.cross(self.free, mark_ce, Some(packet.fate));
                self.departures.decided.push_back((packet.tag, verdict));
            }
        }
    }

    /// The next packet decided on, by its tag: dropped or delivered.
    pub fn decided(&mut self) -> Option<(u64, Verdict)> {
        self.departures.decided.pop_front()
    }

    /// Takes in a packet that came at `now`, and decides on it if the line is free.
    pub(super) fn hold(&mut self, now: Time, parcel: Parcel, fate: Fate) {
        self.decide(now);
        if self.next_decision().is_none() {
            self.start_at(now);
        }
        let Parcel {
            bytes,
            ecn,
            flow,
            tag,
            ..
        } = parcel;
        let since = now;
        let packet = Held {
            tag,
            flow,
            bytes,
            ecn,
            since,
            fate,
        };
        self.discipline.enqueue(packet, &mut self.departures.dropped);
        self.tell_drops();
        self.decide(now);
        let (packets, bytes) = self.discipline.held();
        self.counters.queued(packets, bytes);
    }

    fn tell_drops(&mut self) {
        for packet in self.departures.dropped.drain(..) {
            self.counters.drop(DropReason::Queue);
            self.departures
                .decided
                .push_back((packet.tag, Verdict::Drop(DropReason::Queue)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discipline::{Codel, FqCodel, Queue, QueueLimit};
    use crate::spec::DirectionSpec;
    use restp_base::machine::Ecn;
    use restp_base::random::Stream;
    use restp_base::time::Duration;
    use restp_base::units::Rate;

    /// 8 Mbit/s: a byte takes a microsecond.
    fn line(queue: Queue) -> Direction {
        let spec = DirectionSpec::new(Rate::from_bps(8_000_000), Duration::from_millis(10), queue);
        Direction::new(&spec, 1, "link/a/forward").expect("possible")
    }

    fn us(n: u64) -> Time {
        Time::from_nanos(n * 1000)
    }

    fn parcel(tag: u64, flow: u64, bytes: u32) -> Parcel {
        Parcel {
            bytes,
            ecn: Ecn::NotEct,
            may_fragment: false,
            flow,
            tag,
        }
    }

    fn told(line: &mut Direction) -> Vec<(u64, Option<Time>)> {
        let verdict = |verdict| match verdict {
            Verdict::Deliver { at, .. } => Some(at),
            Verdict::Drop(_) | Verdict::Wait => None,
        };
        std::iter::from_fn(|| line.decided())
            .map(|(tag, told)| (tag, verdict(told)))
            .collect()
    }

    #[test]
    fn the_line_takes_the_next_packet_the_moment_it_is_free() {
        let mut line = line(Queue::Codel(Codel::default()));
        for tag in 1..=3 {
            assert_eq!(line.offer(us(0), parcel(tag, 0, 1000)), Verdict::Wait);
        }
        assert_eq!(told(&mut line), [(1, Some(us(11_000)))]);
        assert_eq!(line.next_decision(), Some(us(1000)));
        // Asked late: nothing is later for that.
        line.decide(us(2500));
        assert_eq!(told(&mut line), [(2, Some(us(12_000))), (3, Some(us(13_000)))]);
        assert_eq!(line.next_decision(), None);
        line.offer(us(5000), parcel(4, 0, 1000));
        assert_eq!(told(&mut line), [(4, Some(us(16_000)))]);
        let counters = line.counters(us(10_000));
        assert_eq!(
            (counters.sent, counters.waits.sum()),
            (4, Duration::from_millis(3))
        );
    }

    #[test]
    fn a_new_flow_overtakes_what_waits() {
        let mut line = line(Queue::FqCodel(FqCodel::default()));
        for tag in 10..15 {
            line.offer(us(0), parcel(tag, 1, 1000));
        }
        line.offer(us(2500), parcel(20, 2, 100));
        line.decide(us(10_000));
        let order: Vec<u64> = told(&mut line).iter().map(|&(tag, _)| tag).collect();
        assert_eq!(order, [10, 11, 12, 20, 13, 14]);
    }

    /// Without a drop the departures are those of drop-tail: one packet after the other, none lost, none invented.
    #[test]
    fn a_queue_that_drops_nothing_is_drop_tail() {
        let mut random = Stream::named(1, "departures");
        let never = Codel {
            target: Duration::from_secs(3600),
            interval: Duration::from_secs(7200),
            ..Codel::default()
        };
        let (mut held, mut tail) = (line(Queue::Codel(never)), line(QueueLimit::Packets(1000).into()));
        let (mut expected, mut seen, mut now) = (Vec::new(), Vec::new(), 0);
        for tag in 0..2000 {
            now += random.below(1600);
            let parcel = parcel(tag, 0, 40 + random.below(1460) as u32);
            if let Verdict::Deliver { at, .. } = tail.offer(us(now), parcel) {
                expected.push((tag, Some(at)));
            }
            held.offer(us(now), parcel);
            seen.extend(told(&mut held));
        }
        held.decide(us(now + 10_000_000));
        seen.extend(told(&mut held));
        assert_eq!(seen, expected);
        assert_eq!(held.counters(Time::MAX), tail.counters(Time::MAX));
    }
}
