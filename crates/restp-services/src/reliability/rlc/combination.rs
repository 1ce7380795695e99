//! What an encoded packet combines: so many segments at equal distances, and the key that their coefficients come from
//! (RFC 8681). It travels as the FEC Range of Type 3:
//!
//! ```text
//! bit 23        12 11      8 7        0
//! |Repair key 12  |Stride 4 |Count 8   |     stride and count less 1
//! ```
//!
//! The coefficients are those of RFC 8681 §3.6 with the greatest density, so none is 0.

use super::tinymt::TinyMt32;

/// Numbers that a receiver remembers: those of the longest window, and what may come late or be overtaken.
pub(super) const SPAN: u64 = 320;

/// What an encoded packet combines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Combination {
    key: u16,
    stride: u8,
    count: u16,
}

impl Combination {
    /// Keys there are; then they begin again.
    pub(super) const KEYS: u16 = 1 << 12;
    /// Most segments, and their greatest distance.
    pub(crate) const MOST: u16 = 256;
    pub(crate) const WIDEST: u8 = 16;

    /// `count` segments, each `stride` after the one before.
    pub(super) fn new(key: u16, stride: u8, count: u16) -> Self {
        Combination {
            key: key % Self::KEYS,
            stride: stride.clamp(1, Self::WIDEST),
            count: count.clamp(1, Self::MOST),
        }
    }

    /// As it travels.
    pub(super) fn range(self) -> u32 {
        u32::from(self.key) << 12 | u32::from(self.stride - 1) << 8 | u32::from(self.count - 1)
    }
    /// The same read again; what is above the 24 bits counts for nothing.
    pub(crate) fn from_range(range: u32) -> Self {
        Combination {
            key: (range >> 12) as u16 & (Self::KEYS - 1),
            stride: (range >> 8 & 0xF) as u8 + 1,
            count: (range & 0xFF) as u16 + 1,
        }
    }

    /// Segments.
    pub(crate) fn count(self) -> u64 {
        self.count.into()
    }
    /// Distance of one from the next.
    pub(crate) fn stride(self) -> u64 {
        self.stride.into()
    }
    /// From the first to the last it is not farther than a receiver remembers.
    pub(crate) fn is_within_span(self) -> bool {
        self.count() * self.stride() <= SPAN
    }

    /// The coefficient of each, in order.
    pub(crate) fn coefficients(self) -> impl Iterator<Item = u8> {
        let mut generator = TinyMt32::new(self.key.into());
        std::iter::repeat_with(move || generator.bits() as u8)
            .filter(|coefficient| *coefficient != 0)
            .take(self.count.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_travels_in_24_bits() {
        for (key, stride, count) in [(0, 1, 1), (1, 3, 2), (4095, 16, 256), (0x123, 1, 41)] {
            let combination = Combination::new(key, stride, count);
            assert!(combination.range() < 1 << 24);
            assert_eq!(Combination::from_range(combination.range()), combination);
        }
        assert_eq!(Combination::new(0xABC, 3, 41).range(), 0xABC228);
        assert_eq!(Combination::from_range(u32::MAX), Combination::new(4095, 16, 256));
    }

    /// RFC 8681 §3.6 with the numbers of RFC 8682 §2.3: their lowest bytes, none of them 0.
    #[test]
    fn coefficients_are_those_of_the_standard() {
        let coefficients: Vec<u8> = Combination::new(1, 1, 5).coefficients().collect();
        let expected = [2545341989u32, 981918433, 3715302833, 2387538352, 3591001365];
        assert_eq!(coefficients, expected.map(|bits| bits as u8));
        let all: Vec<u8> = Combination::new(7, 1, 256).coefficients().collect();
        assert!(all.len() == 256 && !all.contains(&0));
    }
}
