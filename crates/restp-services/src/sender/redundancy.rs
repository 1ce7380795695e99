//! Encoded packets in the network (ResTP §3.5.8). They take no number and nobody acknowledges them, but they take the room of
//! data on the path, so they count against the congestion window like data (RFC 9265 §4). They wait for nothing, because
//! late redundancy is none: what follows them waits instead.

use std::collections::VecDeque;

/// Encoded packets that are taken to be on their way.
#[derive(Debug, Default)]
pub(super) struct Redundancy {
    /// How many transmissions of segments came before each, and its bytes.
    in_flight: VecDeque<(u64, u64)>,
    bytes: u64,
}

impl Redundancy {
    /// An encoded packet of `bytes` leaves after `transmissions` of segments.
    pub(super) fn on_sent(&mut self, transmissions: u64, bytes: u64) {
        self.in_flight.push_back((transmissions, bytes));
        self.bytes += bytes;
    }

    /// The transmission `order` was delivered: encoded packets that left before it have left the network.
    pub(super) fn on_delivered(&mut self, order: u64) {
        while let Some((_, bytes)) = self.in_flight.pop_front_if(|(before, _)| *before < order) {
            self.bytes -= bytes;
        }
    }

    /// Nothing that left is taken to be on its way any more.
    pub(super) fn forget(&mut self) {
        *self = Redundancy::default();
    }

    /// Bytes in the network.
    pub(super) fn in_flight_bytes(&self) -> u64 {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_encoded_packet_counts_until_something_that_left_after_it_is_delivered() {
        let mut redundancy = Redundancy::default();
        redundancy.on_sent(4, 1000);
        redundancy.on_sent(8, 900);
        redundancy.on_delivered(4);
        assert_eq!(redundancy.in_flight_bytes(), 1900, "the fourth left before it");
        redundancy.on_delivered(5);
        assert_eq!(redundancy.in_flight_bytes(), 900);
        redundancy.forget();
        assert_eq!(redundancy.in_flight_bytes(), 0);
    }
}
