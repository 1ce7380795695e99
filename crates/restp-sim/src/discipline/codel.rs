//! CoDel, RFC 8289: a queue that has been above its target for a whole interval drops at its head, then more and more
//! often until it is below. §5 holds the rules as pseudocode; `ok_to_drop`, `drop_next` and `count` are its names.

use super::QueueLimit;
use super::held::{Fifo, Held};
use crate::spec_error::SpecError;
use restp_base::machine::Ecn;
use restp_base::time::{Duration, Time};

/// Parameters of CoDel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Codel {
    /// The most that may wait; what comes on top is dropped on arrival. 1000 packets: far above what the control law
    /// leaves standing on a link of 100 Mbit/s.
    pub limit: QueueLimit,
    /// Time in the queue that is acceptable for longer. 5 ms: 5 % of the interval (RFC 8289 §4.3).
    pub target: Duration,
    /// For how long it may be exceeded: about the longest round trip. 100 ms (RFC 8289 §4.3).
    pub interval: Duration,
    /// Mark packets that can be marked, in the place of dropping them (RFC 8289 §3.1). On.
    pub ecn: bool,
    /// Bytes of the largest packet. A queue that holds no more behind the one that leaves is no standing queue, however slow the link is
    /// (RFC 8289 §4.2). 1500: of Ethernet.
    pub mtu_bytes: u64,
}

impl Default for Codel {
    fn default() -> Self {
        Codel {
            limit: QueueLimit::Packets(1000),
            target: Duration::from_millis(5),
            interval: Duration::from_millis(100),
            ecn: true,
            mtu_bytes: 1500,
        }
    }
}

impl Codel {
    pub(super) fn check(&self) -> Result<(), SpecError> {
        if self.target.is_zero() || self.target >= self.interval {
            return Err(SpecError::CodelTimes {
                target: self.target,
                interval: self.interval,
            });
        }
        Ok(())
    }
}

/// One queue under CoDel.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    parameters: Codel,
    queue: Fifo,
    control: Control,
}

impl Process {
    pub(super) fn new(parameters: &Codel) -> Self {
        Process {
            parameters: *parameters,
            queue: Fifo::default(),
            control: Control::default(),
        }
    }

    pub(super) fn enqueue(&mut self, packet: Held, dropped: &mut Vec<Held>) {
        let (packets, bytes) = self.held();
        if self.parameters.limit.admits(packets, bytes, packet.bytes) {
            self.queue.push(packet);
        } else {
            dropped.push(packet);
        }
    }

    pub(super) fn dequeue(&mut self, now: Time, dropped: &mut Vec<Held>) -> Option<(Held, bool)> {
        self.control
            .dequeue(&self.parameters, now, &mut self.queue, dropped)
    }

    pub(super) fn held(&self) -> (u64, u64) {
        (self.queue.packets(), self.queue.bytes())
    }
}

/// The state of the control law, apart from the queue it controls.
#[derive(Clone, Debug, Default)]
pub(super) struct Control {
    /// When the time in the queue will have been above the target for an interval; `None` while it is below.
    first_above: Option<Time>,
    dropping: bool,
    drop_next: Time,
    /// Drops since dropping began, and at its last beginning.
    count: u64,
    last_count: u64,
}

impl Control {
    /// The packet to send at `now`, and whether to mark it.
    pub(super) fn dequeue(
        &mut self,
        parameters: &Codel,
        now: Time,
        queue: &mut Fifo,
        dropped: &mut Vec<Held>,
    ) -> Option<(Held, bool)> {
        let (mut packet, mut ok_to_drop) = self.head(parameters, now, queue)?;
        if !self.dropping {
            if !ok_to_drop {
                return Some((packet, false));
            }
            self.begin(parameters, now);
            if parameters.ecn && packet.ecn != Ecn::NotEct {
                return Some((packet, true));
            }
            dropped.push(packet);
            return self.head(parameters, now, queue).map(|(next, _)| (next, false));
        }
        self.dropping = ok_to_drop;
        while self.dropping && now >= self.drop_next {
            self.count += 1;
            if parameters.ecn && packet.ecn != Ecn::NotEct {
                self.drop_next = self.law(parameters, self.drop_next);
                return Some((packet, true));
            }
            dropped.push(packet);
            let Some(next) = self.head(parameters, now, queue) else {
                self.dropping = false;
                return None;
            };
            (packet, ok_to_drop) = next;
            if ok_to_drop {
                self.drop_next = self.law(parameters, self.drop_next);
            } else {
                self.dropping = false;
            }
        }
        Some((packet, false))
    }

    /// The packet at the head, and whether it may be dropped: it and those before it waited too long for an interval.
    fn head(&mut self, parameters: &Codel, now: Time, queue: &mut Fifo) -> Option<(Held, bool)> {
        let Some(packet) = queue.pop() else {
            self.first_above = None;
            return None;
        };
        if now.since(packet.since) < parameters.target || queue.bytes() <= parameters.mtu_bytes {
            self.first_above = None;
            return Some((packet, false));
        }
        let above = *self.first_above.get_or_insert(now + parameters.interval);
        Some((packet, now >= above))
    }

    /// Begins to drop; where it left off if that was lately, since the rate that helped then is a good start now.
    fn begin(&mut self, parameters: &Codel, now: Time) {
        self.dropping = true;
        let delta = self.count - self.last_count;
        let lately = now < self.drop_next + parameters.interval * 16;
        self.count = if delta > 1 && lately { delta } else { 1 };
        self.drop_next = self.law(parameters, now);
        self.last_count = self.count;
    }

    /// One interval by the root of the count after `from`: the throughput of a TCP falls with the root of its losses.
    fn law(&self, parameters: &Codel, from: Time) -> Time {
        let interval = parameters.interval.as_nanos() as f64;
        from + Duration::from_nanos((interval / (self.count as f64).sqrt()) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::super::held::packet;
    use super::*;

    fn ms(n: u64) -> Time {
        Time::from_nanos(n * 1_000_000)
    }

    /// A queue that one packet joins and one leaves every 10 ms, 50 ms after it came. Tags of those dropped and marked,
    /// with the time.
    fn standing(ecn: Ecn, until_ms: u64) -> [Vec<(u64, u64)>; 2] {
        let mut process = Process::new(&Codel::default());
        let (mut drops, mut marks) = (Vec::new(), Vec::new());
        let mut came = 0;
        for now in (0..until_ms).step_by(10) {
            let mut dropped = Vec::new();
            // Five wait after each departure, whatever was dropped.
            while process.held().0 < 6 {
                let since = now.saturating_sub(50);
                process.enqueue(
                    Held {
                        ecn,
                        ..packet(came, since)
                    },
                    &mut dropped,
                );
                came += 1;
            }
            let (sent, marked) = process.dequeue(ms(now + 10), &mut dropped).expect("it stands");
            drops.extend(dropped.iter().map(|packet| (packet.tag, now + 10)));
            marks.extend(marked.then_some((sent.tag, now + 10)));
        }
        [drops, marks]
    }

    /// Above the target from 10 ms on, so dropping begins at 110 ms. The next drops are due at 110 + 100 = 210,
    /// 210 + 100/√2 = 280.7, + 100/√3 = 338.4, + 100/√4 = 388.4, + 100/√5 = 433.2 ms, each at the departure after.
    #[test]
    fn drops_come_an_interval_by_the_root_of_the_count_apart() {
        let [drops, marks] = standing(Ecn::NotEct, 440);
        let times: Vec<u64> = drops.iter().map(|&(_, at)| at).collect();
        assert_eq!(times, [110, 210, 290, 340, 390, 440]);
        assert_eq!(drops[0].0, 10, "at the head");
        assert!(marks.is_empty());
    }

    #[test]
    fn what_can_be_marked_is_marked_at_the_same_times_and_sent() {
        let [drops, marks] = standing(Ecn::Ect0, 440);
        let times: Vec<u64> = marks.iter().map(|&(_, at)| at).collect();
        assert_eq!(times, [110, 210, 290, 340, 390, 440]);
        assert!(drops.is_empty());
    }

    #[test]
    fn a_burst_shorter_than_an_interval_and_a_single_packet_pass() {
        let mut dropped = Vec::new();
        let mut process = Process::new(&Codel::default());
        for tag in 0..12 {
            process.enqueue(packet(tag, 0), &mut dropped);
        }
        // Above the target from 6 ms to 96 ms: not an interval.
        for n in 0..10 {
            assert!(process.dequeue(ms(6 + 10 * n), &mut dropped).is_some());
        }
        // One packet of 1000 bytes behind it is no standing queue, however long it took.
        assert!(process.dequeue(ms(500), &mut dropped).is_some());
        assert!(process.dequeue(ms(900), &mut dropped).is_some());
        assert_eq!((process.dequeue(ms(901), &mut dropped), dropped.len()), (None, 0));
    }

    #[test]
    fn dropping_ends_below_the_target_and_goes_on_where_it_was_when_it_begins_soon_again() {
        let parameters = Codel::default();
        let mut control = Control {
            count: 9,
            last_count: 1,
            drop_next: ms(1000),
            ..Control::default()
        };
        control.begin(&parameters, ms(1500));
        assert_eq!(control.count, 8, "8 drops the last time");
        control.begin(&parameters, ms(9000));
        assert_eq!(control.count, 1, "too long ago");
        let mut queue = Fifo::default();
        for tag in 0..4 {
            queue.push(packet(tag, 9100));
        }
        let sent = control.dequeue(&parameters, ms(9101), &mut queue, &mut Vec::new());
        assert_eq!(
            (sent.map(|(packet, _)| packet.tag), control.dropping),
            (Some(0), false)
        );
    }

    #[test]
    fn a_full_queue_drops_on_arrival() {
        let limit = QueueLimit::Packets(2);
        let mut process = Process::new(&Codel {
            limit,
            ..Codel::default()
        });
        let mut dropped = Vec::new();
        for tag in 0..3 {
            process.enqueue(packet(tag, 0), &mut dropped);
        }
        assert_eq!((process.held(), dropped), ((2, 2000), vec![packet(2, 0)]));
    }
}
