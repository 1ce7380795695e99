//! The sender's window: segments that may still be encoded (RFC 8681).

use super::combination::Combination;
use crate::reliability::encoded::Encoded;
use crate::reliability::sum::Sum;
use bytes::Bytes;
use restp_base::time::Time;
use std::collections::VecDeque;

/// Segments kept at most: those of one encoded packet.
const MOST_KEPT: usize = Combination::MOST as usize;

/// Which of the last segments one encoded packet combines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reach {
    /// How far the oldest lies behind the newest in the window.
    pub(crate) back: u16,
    /// How many there are.
    pub(crate) count: u16,
    /// Distance of one from the next.
    pub(crate) stride: u8,
}

/// Sent segments, each with the time at which it left; their numbers follow one another.
#[derive(Debug, Default)]
pub(super) struct Window {
    first: u64,
    segments: VecDeque<(Time, Bytes)>,
    bytes: usize,
    key: u16,
}

impl Window {
    /// The segment `number` leaves now.
    pub(super) fn push(&mut self, now: Time, number: u64, payload: Bytes) {
        if self.segments.is_empty() {
            self.first = number;
        }
        if self.segments.len() == MOST_KEPT {
            self.pop();
        }
        self.bytes += payload.len();
        self.segments.push_back((now, payload));
    }

    /// Nothing that left before `time` is encoded any more.
    pub(super) fn forget_before(&mut self, time: Time) {
        while self.segments.front().is_some_and(|(sent, _)| *sent < time) {
            self.pop();
        }
    }

    fn pop(&mut self) {
        if let Some((_, payload)) = self.segments.pop_front() {
            self.first += 1;
            self.bytes -= payload.len();
        }
    }

    /// First number in the window.
    pub(super) fn first(&self) -> u64 {
        self.first
    }
    /// First number after those in the window.
    pub(super) fn next(&self) -> u64 {
        self.first + self.segments.len() as u64
    }
    /// When `number`, or the oldest after it, left.
    pub(super) fn sent_at(&self, number: u64) -> Option<Time> {
        let index = number.saturating_sub(self.first);
        let segment = self.segments.get(usize::try_from(index).ok()?)?;
        Some(segment.0)
    }
    pub(super) fn len(&self) -> usize {
        self.segments.len()
    }
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The next encoded packet; of what it should reach only what is in the window. `None` where that is nothing.
    pub(super) fn encode(&mut self, reach: Reach) -> Option<Encoded> {
        let newest = self.next().checked_sub(1).filter(|_| self.len() > 0)?;
        let stride = u64::from(reach.stride.max(1));
        let wanted = newest.saturating_sub(reach.back.into());
        let skipped = self.first.saturating_sub(wanted).div_ceil(stride);
        let first = wanted + skipped * stride;
        let rest = u64::from(reach.count).saturating_sub(skipped);
        let count = rest.min((newest + 1).saturating_sub(first).div_ceil(stride));
        if count == 0 {
            return None;
        }
        self.key = (self.key + 1) % Combination::KEYS;
        let combination = Combination::new(self.key, reach.stride, count as u16);
        let mut sum = Sum::default();
        let combined = self.segments.iter().skip((first - self.first) as usize);
        let combined = combined.step_by(stride as usize);
        for (coefficient, (_, payload)) in combination.coefficients().zip(combined) {
            sum.add(coefficient, payload);
        }
        Some(Encoded {
            first,
            range: combination.range(),
            payload: sum.into_payload(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reliability::FecCode;
    use restp_base::time::Duration;

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    fn covered(window: &mut Window, back: u16, count: u16, stride: u8) -> Vec<u64> {
        let encoded = window.encode(Reach { back, count, stride }).expect("something");
        FecCode::Rlc.covered(encoded.first, encoded.range).collect()
    }

    #[test]
    fn it_reaches_as_far_as_the_window() {
        let mut window = Window::default();
        assert_eq!(
            window.encode(Reach {
                back: 0,
                count: 1,
                stride: 1
            }),
            None
        );
        (0..6).for_each(|index| window.push(at(20 * index), 10 + index, Bytes::from_static(b"x")));
        assert_eq!(covered(&mut window, 3, 4, 1), [12, 13, 14, 15]);
        assert_eq!(covered(&mut window, 3, 2, 3), [12, 15]);
        assert_eq!(covered(&mut window, 3, 1, 1), [12]);
        assert_eq!(
            covered(&mut window, 2, 9, 1),
            [13, 14, 15],
            "no further than the newest"
        );
        assert_eq!(covered(&mut window, 40, 41, 1), [10, 11, 12, 13, 14, 15]);
        assert_eq!(
            covered(&mut window, 7, 3, 4),
            [12],
            "8 is gone, 16 is not there yet"
        );
        window.forget_before(at(60));
        assert_eq!(
            (window.len(), window.sent_at(10), window.sent_at(14)),
            (3, Some(at(60)), Some(at(80)))
        );
        assert_eq!(covered(&mut window, 5, 6, 1), [13, 14, 15]);
        assert_eq!(
            window.encode(Reach {
                back: 5,
                count: 1,
                stride: 1
            }),
            None
        );
    }

    #[test]
    fn no_two_packets_in_a_row_have_the_same_coefficients() {
        let mut window = Window::default();
        window.push(at(0), 1, Bytes::from_static(b"abc"));
        let reach = Reach {
            back: 0,
            count: 1,
            stride: 1,
        };
        let ranges: std::collections::BTreeSet<u32> = (0..4096)
            .filter_map(|_| window.encode(reach))
            .map(|encoded| encoded.range)
            .collect();
        assert_eq!(ranges.len(), 4096);
    }

    #[test]
    fn memory_is_bounded() {
        let mut window = Window::default();
        (0..1000).for_each(|number| window.push(at(0), number, Bytes::from_static(&[0; 100])));
        assert_eq!((window.len(), window.bytes(), window.next()), (256, 25_600, 1000));
    }
}
