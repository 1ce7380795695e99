//! When each outstanding segment was encoded (HARQ, ResTP §3.5.8). An encoded packet is one more transmission of every
//! segment it covers, so whether one of them is lost is judged by what left after the encoded packet: forward error
//! correction comes first, retransmissions are for the rest.

use std::collections::VecDeque;

/// Positions of encoded packets among the transmissions of a scoreboard.
#[derive(Debug)]
pub(super) struct Encodings {
    /// Everything below this number was encoded.
    below: u64,
    /// First number above a group, and the transmissions before its encoded packet.
    groups: VecDeque<(u64, u64)>,
    /// What is sent from here on will be encoded.
    open: bool,
}

impl Encodings {
    /// Nothing was sent; the first number will be `first`.
    pub(super) fn new(first: u64) -> Self {
        Encodings {
            below: first,
            groups: VecDeque::new(),
            open: true,
        }
    }

    /// From the number `next` on, after `order` transmissions, segments are encoded, or not any more. What is pending then
    /// waits for no encoded packet.
    pub(super) fn switch(&mut self, on: bool, next: u64, order: u64) {
        let order = if self.open { order } else { 0 };
        self.open = true;
        self.on_encoded(next, order);
        self.open = on;
    }

    /// An encoded packet leaves after `order` transmissions, and covers everything below `below` that was not
    /// encoded before.
    pub(super) fn on_encoded(&mut self, below: u64, order: u64) {
        if self.open && below > self.below {
            self.below = below;
            self.groups.push_back((below, order));
        }
    }

    /// Transmissions before the encoded packet of `number`; without end while there is none, and 0 if none will come.
    pub(super) fn order_of(&self, number: u64) -> u64 {
        let index = self.groups.partition_point(|(below, _)| *below <= number);
        let pending = if self.open { u64::MAX } else { 0 };
        self.groups.get(index).map_or(pending, |(_, order)| *order)
    }

    /// Nothing below `first` is outstanding.
    pub(super) fn release_below(&mut self, first: u64) {
        while self.groups.front().is_some_and(|(below, _)| *below <= first) {
            self.groups.pop_front();
        }
    }

    /// Bytes of memory it takes.
    pub(super) fn memory(&self) -> usize {
        self.groups.capacity() * size_of::<(u64, u64)>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_has_the_position_of_its_own_group() {
        let mut encodings = Encodings::new(20);
        encodings.on_encoded(36, 17);
        encodings.on_encoded(36, 17); // the second of two interleaved packets
        encodings.on_encoded(40, 25);
        assert_eq!(
            [20, 35, 36, 39, 40].map(|number| encodings.order_of(number)),
            [17, 17, 25, 25, u64::MAX]
        );
        encodings.release_below(37);
        assert_eq!((encodings.order_of(37), encodings.groups.len()), (25, 1));
    }

    #[test]
    fn what_leaves_while_nothing_is_encoded_waits_for_no_encoded_packet() {
        let mut encodings = Encodings::new(20);
        encodings.on_encoded(36, 17);
        encodings.switch(false, 40, 21);
        encodings.on_encoded(44, 30); // of another code, which says nothing of when segments are lost
        assert_eq!(
            [35, 39, 40, 50].map(|number| encodings.order_of(number)),
            [17, 21, 0, 0]
        );
        encodings.switch(true, 50, 40);
        assert_eq!(
            [39, 40, 49, 50].map(|number| encodings.order_of(number)),
            [21, 0, 0, u64::MAX]
        );
        encodings.on_encoded(60, 55);
        assert_eq!(
            [49, 59, 60].map(|number| encodings.order_of(number)),
            [0, 55, u64::MAX]
        );
    }
}
