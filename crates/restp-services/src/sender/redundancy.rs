//! Encoded packets in the network (ResTP §3.5.8). They take no number and nobody acknowledges them, but they take the room of
//! data on the path, so they count against the congestion window like data (RFC 9265 §4): for a round trip, as long as a
//! data packet waits for its acknowledgement. They wait for nothing, because late redundancy is none: what follows them waits
//! instead.

use restp_base::time::{Duration, Time};
use std::collections::VecDeque;

/// Encoded packets that are taken to be on their way.
#[derive(Debug, Default)]
pub(super) struct Redundancy {
    /// When each left, and its bytes.
    in_flight: VecDeque<(Time, u64)>,
    bytes: u64,
    /// When the last one left.
    last: Option<Time>,
}

impl Redundancy {
    /// An encoded packet of `bytes` leaves.
    pub(super) fn on_sent(&mut self, now: Time, bytes: u64) {
        self.last = Some(now);
        self.in_flight.push_back((now, bytes));
        self.bytes += bytes;
    }

    /// Nothing that left is taken to be on its way any more.
    pub(super) fn forget(&mut self) {
        (self.in_flight, self.bytes) = (VecDeque::new(), 0);
    }

    /// When the last one left.
    pub(super) fn last_left(&self) -> Option<Time> {
        self.last
    }

    /// Bytes in the network, which takes `rtt` there and back.
    pub(super) fn in_flight_bytes(&mut self, now: Time, rtt: Option<Duration>) -> u64 {
        let rtt = rtt.unwrap_or_default();
        while let Some((_, bytes)) = self.in_flight.pop_front_if(|(at, _)| *at + rtt <= now) {
            self.bytes -= bytes;
        }
        self.bytes
    }
}

#[cfg(test)]
impl Redundancy {
    pub(super) fn remembered(&self) -> usize {
        self.in_flight.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_encoded_packet_counts_for_a_round_trip() {
        let ms = Duration::from_millis;
        let at = |millis| Time::ZERO + ms(millis);
        let mut redundancy = Redundancy::default();
        redundancy.on_sent(at(0), 1000);
        redundancy.on_sent(at(30), 900);
        assert_eq!(redundancy.in_flight_bytes(at(39), Some(ms(40))), 1900);
        assert_eq!(redundancy.in_flight_bytes(at(40), Some(ms(40))), 900);
        redundancy.forget();
        assert_eq!(redundancy.in_flight_bytes(at(41), Some(ms(40))), 0);
    }
}
