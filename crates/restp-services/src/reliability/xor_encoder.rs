//! Sender of forward error correction (ResTP §3.5.8, OP-38): collects the packets that were not encoded before and
//! turns them into encoded packets when its timer runs out or a full group is pending. The timer is armed by the
//! first of them and not again by the others, or it would never run out under load.
//!
//! Only sums are kept, so memory is one payload per group that is open, whatever its size.

use super::encoded::Encoded;
use super::fec_code::Shape;
use super::sum::Sum;
use restp_base::time::{Duration, Time};
use std::collections::VecDeque;

/// Round trip before one is known (OP-38).
const FIRST_RTT: Duration = Duration::from_millis(100);

/// Collects packets and encodes them.
#[derive(Debug)]
pub(super) struct XorEncoder {
    shape: Shape,
    /// How long a packet waits; `None`: a quarter of the round trip.
    timer: Option<Duration>,
    /// The first packet that is not encoded yet, and how many there are.
    first: u64,
    pending: u64,
    /// One sum for each group that is open.
    sums: Vec<Sum>,
    deadline: Option<Time>,
    /// Encoded and not sent yet.
    ready: VecDeque<Encoded>,
}

impl XorEncoder {
    /// Nothing was sent.
    pub(super) fn new(shape: Shape, timer: Option<Duration>) -> Self {
        XorEncoder {
            shape,
            timer,
            first: 0,
            pending: 0,
            sums: Vec::new(),
            deadline: None,
            ready: VecDeque::new(),
        }
    }

    /// The packet `number` is about to leave for the first time; numbers come one after another. The FIN has an
    /// empty payload, and nothing comes after it that could fill its group: `is_last` closes it.
    pub(super) fn on_sent(
        &mut self,
        now: Time,
        number: u64,
        payload: &[u8],
        is_last: bool,
        rtt: Option<Duration>,
    ) {
        let Shape {
            stride, group_limit, ..
        } = self.shape;
        if self.pending == 0 {
            self.first = number;
            self.sums.resize_with(stride as usize, Sum::default);
            let quarter = || rtt.unwrap_or(FIRST_RTT).scaled(1, 4);
            self.deadline = Some(now + self.timer.unwrap_or_else(quarter));
        }
        self.sums[(self.pending % stride) as usize].add(1, payload);
        self.pending += 1;
        if is_last || self.pending == stride * u64::from(group_limit) {
            self.encode();
        }
    }

    /// When what is pending must be encoded.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.deadline
    }

    /// The next encoded packet to send.
    pub(super) fn poll(&mut self, now: Time) -> Option<Encoded> {
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            self.encode();
        }
        self.ready.pop_front()
    }

    /// True when everything sent was encoded, and every encoded packet was taken.
    pub(super) fn is_idle(&self) -> bool {
        self.pending == 0 && self.ready.is_empty()
    }

    /// Forgets what is pending.
    pub(super) fn clear(&mut self) {
        *self = XorEncoder::new(self.shape, self.timer);
    }

    /// Payload bytes kept.
    pub(super) fn bytes(&self) -> usize {
        let ready: usize = self.ready.iter().map(|encoded| encoded.payload.len()).sum();
        ready + self.sums.iter().map(Sum::len).sum::<usize>()
    }

    fn encode(&mut self) {
        let stride = self.sums.len() as u64;
        for (index, sum) in (0..).zip(self.sums.drain(..)) {
            let range = (self.pending + stride - 1 - index) / stride;
            if range > 0 {
                self.ready.push_back(Encoded {
                    first: self.first + index,
                    range: range as u32,
                    payload: sum.into_payload(),
                });
            }
        }
        (self.pending, self.deadline) = (0, None);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{xor_basic, xor_interleaved};
    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    fn send(encoder: &mut XorEncoder, ms: u64, number: u64) {
        encoder.on_sent(at(ms), number, b"x", false, Some(Duration::from_millis(80)));
    }

    /// OP-38: armed if idle, not re-armed; a quarter of the round trip, or of 100 ms before one is known.
    #[test]
    fn the_timer_counts_from_the_first_packet_that_is_not_encoded() {
        let mut encoder = XorEncoder::new(xor_basic::SHAPE, None);
        send(&mut encoder, 0, 10);
        send(&mut encoder, 19, 11);
        assert_eq!(encoder.deadline(), Some(at(20)));
        assert_eq!(encoder.poll(at(19)), None);
        assert_eq!(encoder.poll(at(20)).map(|e| (e.first, e.range)), Some((10, 2)));
        assert!(encoder.is_idle() && encoder.deadline().is_none());
        assert_eq!(encoder.poll(at(500)), None, "each packet is encoded once");
        send(&mut encoder, 30, 12);
        assert_eq!(encoder.deadline(), Some(at(50)));
        encoder.clear();
        encoder.on_sent(at(0), 13, b"x", false, None);
        assert_eq!(encoder.deadline(), Some(at(25)));
    }

    #[test]
    fn the_timer_can_be_set_and_the_last_packet_does_not_wait_for_it() {
        let mut encoder = XorEncoder::new(xor_basic::SHAPE, Some(Duration::from_millis(3)));
        send(&mut encoder, 0, 10);
        assert_eq!(encoder.deadline(), Some(at(3)));
        encoder.on_sent(at(1), 11, b"", true, None);
        let encoded = encoder.poll(at(1)).unwrap();
        assert_eq!((encoded.first, encoded.range), (10, 2));
        assert_eq!(encoded.payload, &b"\x00\x01x"[..], "the FIN adds nothing");
    }

    #[test]
    fn memory_is_one_payload_for_each_open_group() {
        let mut encoder = XorEncoder::new(xor_interleaved::SHAPE, None);
        for number in 0..15 {
            encoder.on_sent(at(0), number, &[0; 1000], false, None);
            assert!(encoder.bytes() <= 2 * 1002);
        }
    }
}
