//! FQ-CoDel, RFC 8290: a queue for each flow, served in rounds by deficit (§4.2), flows that come anew before those
//! that stay, and CoDel in each queue.

use super::QueueLimit;
use super::codel::{Codel, Control};
use super::held::{Fifo, Held};
use crate::spec_error::SpecError;
use restp_base::random::Stream;
use restp_base::time::{Duration, Time};
use std::collections::VecDeque;

/// Most queues: a direction keeps state for each of them.
const MOST_QUEUES: u32 = 65_536;

/// Parameters of FQ-CoDel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FqCodel {
    /// CoDel in each queue; its limit holds for all of them together. 10 240 packets (RFC 8290 §5.2.1).
    pub codel: Codel,
    /// Bytes a queue may send in its turn. 1514: an Ethernet frame (RFC 8290 §5.2.4).
    pub quantum: u32,
    /// Queues over which the flows are spread. 1024 (RFC 8290 §5.2.5).
    pub queues: u32,
    /// All of them hold no more bytes, however few packets those are. Without end: a link is given its limit.
    pub most_bytes: u64,
}

impl Default for FqCodel {
    fn default() -> Self {
        FqCodel {
            codel: Codel {
                limit: QueueLimit::Packets(10_240),
                ..Codel::default()
            },
            quantum: 1514,
            queues: 1024,
            most_bytes: u64::MAX,
        }
    }
}

impl FqCodel {
    pub(super) fn check(&self) -> Result<(), SpecError> {
        self.codel.check()?;
        for (what, value, most) in [
            ("quantum", self.quantum, u32::MAX / 2),
            ("queues", self.queues, MOST_QUEUES),
        ] {
            if value == 0 || value > most {
                return Err(SpecError::Count { what, value, most });
            }
        }
        Ok(())
    }
}

/// The queue of one flow, or of several with the same hash.
#[derive(Clone, Debug, Default)]
struct Queue {
    packets: Fifo,
    control: Control,
    /// Bytes it may still send in this round.
    deficit: i64,
    /// On one of the two lists.
    active: bool,
}

/// All queues of a direction.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    parameters: FqCodel,
    queues: Vec<Queue>,
    /// Queues that became active lately, and those that have had a turn.
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    packets: u64,
    bytes: u64,
    /// Keeps senders from choosing whose queue they share (RFC 8290 §4.1.2).
    perturbation: u64,
}

impl Process {
    pub(super) fn new(parameters: &FqCodel, mut stream: Stream) -> Self {
        Process {
            parameters: *parameters,
            queues: vec![Queue::default(); parameters.queues as usize],
            new: VecDeque::new(),
            old: VecDeque::new(),
            packets: 0,
            bytes: 0,
            perturbation: stream.bits(),
        }
    }

    /// What may wait for how long, from now on.
    pub(super) fn set_times(&mut self, target: Duration, interval: Duration) -> Result<(), SpecError> {
        let codel = Codel {
            target,
            interval,
            ..self.parameters.codel
        };
        codel.check()?;
        self.parameters.codel = codel;
        Ok(())
    }

    /// RFC 8290 §4.1.
    pub(super) fn enqueue(&mut self, packet: Held, dropped: &mut Vec<Held>) {
        let index = self.queue_of(packet.flow);
        let queue = &mut self.queues[index as usize];
        if !queue.active {
            queue.active = true;
            queue.deficit = i64::from(self.parameters.quantum);
            self.new.push_back(index);
        }
        queue.packets.push(packet);
        self.packets += 1;
        self.bytes += u64::from(packet.bytes);
        while self.packets > 0 && self.is_too_full() {
            dropped.extend(self.drop_from_the_fattest());
        }
    }

    fn is_too_full(&self) -> bool {
        let limit = self.parameters.codel.limit;
        self.bytes > self.parameters.most_bytes || !limit.admits(self.packets - 1, self.bytes, 0)
    }

    /// RFC 8290 §4.2.
    pub(super) fn dequeue(&mut self, now: Time, dropped: &mut Vec<Held>) -> Option<(Held, bool)> {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let index = *list.front()?;
            let queue = &mut self.queues[index as usize];
            if queue.deficit <= 0 {
                queue.deficit += i64::from(self.parameters.quantum);
                list.pop_front();
                self.old.push_back(index);
                continue;
            }
            let before = dropped.len();
            let sent = queue
                .control
                .dequeue(&self.parameters.codel, now, &mut queue.packets, dropped);
            for gone in dropped[before..]
                .iter()
                .chain(sent.as_ref().map(|(packet, _)| packet))
            {
                self.packets -= 1;
                self.bytes -= u64::from(gone.bytes);
            }
            if let Some((packet, mark)) = sent {
                queue.deficit -= i64::from(packet.bytes);
                return Some((packet, mark));
            }
            list.pop_front();
            if is_new {
                // One round among the old ones first: a flow that sends a packet at a time would else always be new.
                self.old.push_back(index);
            } else {
                queue.active = false;
            }
        }
    }

    pub(super) const fn held(&self) -> (u64, u64) {
        (self.packets, self.bytes)
    }

    /// A mixing step (SplitMix64) over the flow and the perturbation.
    fn queue_of(&self, flow: u64) -> u32 {
        let mut hash = flow ^ self.perturbation;
        hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((hash ^ (hash >> 31)) % u64::from(self.parameters.queues)) as u32
    }

    /// Drops at the head of the queue with most bytes; of equals, of the first.
    fn drop_from_the_fattest(&mut self) -> Option<Held> {
        let fattest = self.new.iter().chain(&self.old).copied();
        let index = fattest.max_by_key(|&index| {
            (
                self.queues[index as usize].packets.bytes(),
                std::cmp::Reverse(index),
            )
        })?;
        let victim = self.queues[index as usize].packets.pop()?;
        self.packets -= 1;
        self.bytes -= u64::from(victim.bytes);
        Some(victim)
    }
}

#[cfg(test)]
mod tests {
    use super::super::held::packet;
    use super::*;

    fn of(flow: u64, tag: u64) -> Held {
        Held {
            flow,
            ..packet(tag, 0)
        }
    }

    fn process(parameters: FqCodel) -> Process {
        let process = Process::new(&parameters, Stream::named(1, "link/a/forward/queue"));
        assert_ne!(
            process.queue_of(1),
            process.queue_of(2),
            "flows of the tests do not share"
        );
        process
    }

    fn sent(process: &mut Process, count: usize) -> Vec<u64> {
        let at = Time::from_nanos(1);
        (0..count)
            .filter_map(|_| process.dequeue(at, &mut Vec::new()))
            .map(|(packet, _)| packet.tag)
            .collect()
    }

    /// Flow 1 has four packets before flow 2 comes. A quantum of 1514 lets each send two of 1000 bytes in the first
    /// round (deficit 1514, 514, −486), then one or two to come out even: −486 + 1514 = 1028, 28, −972; then 542, −458.
    #[test]
    fn flows_take_turns_by_deficit() {
        let mut process = process(FqCodel::default());
        let mut dropped = Vec::new();
        for tag in 10..16 {
            process.enqueue(of(1, tag), &mut dropped);
        }
        for tag in 20..26 {
            process.enqueue(of(2, tag), &mut dropped);
        }
        assert_eq!(process.held(), (12, 12_000));
        assert_eq!(
            sent(&mut process, 20),
            [10, 11, 20, 21, 12, 13, 22, 23, 14, 24, 15, 25]
        );
        assert_eq!((process.held(), dropped.len()), ((0, 0), 0));
    }

    #[test]
    fn a_flow_that_comes_anew_overtakes_those_that_stay() {
        let mut process = process(FqCodel::default());
        let mut dropped = Vec::new();
        for tag in 10..20 {
            process.enqueue(of(1, tag), &mut dropped);
        }
        assert_eq!(sent(&mut process, 3), [10, 11, 12]);
        process.enqueue(of(2, 20), &mut dropped);
        assert_eq!(sent(&mut process, 3), [20, 13, 14]);
        // It has been among the old ones since: its next packet waits for its turn.
        process.enqueue(of(2, 21), &mut dropped);
        assert_eq!(sent(&mut process, 3), [21, 15, 16]);
    }

    #[test]
    fn a_full_queue_drops_at_the_head_of_the_fattest_flow() {
        let mut parameters = FqCodel::default();
        parameters.codel.limit = QueueLimit::Packets(4);
        let mut process = process(parameters);
        let mut dropped = Vec::new();
        for tag in 10..14 {
            process.enqueue(of(1, tag), &mut dropped);
        }
        process.enqueue(of(2, 20), &mut dropped);
        assert_eq!(dropped, [of(1, 10)]);
        assert_eq!(sent(&mut process, 9), [11, 12, 20, 13]);
    }
}
