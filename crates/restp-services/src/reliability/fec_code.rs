//! The codes of forward error correction (ResTP §3.1.5). An encoded packet is a sum of payloads, each times a coefficient; codes
//! differ in which packets share an encoded one, and how many may.

use super::encoded::numbers;
use super::rlc::Combination;
use super::{xor_basic, xor_interleaved};

/// Which packets share an encoded one, where each is in one group and the sum is the XOR.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// FEC Type in the header.
    pub(super) kind: u8,
    /// Distance of two packets of one group, and the number of encoded packets that leave together: so many
    /// consecutive losses are repaired.
    pub(super) stride: u64,
    /// Most packets of one group.
    pub(super) group_limit: u32,
}

/// FEC Type of the sliding window code in the header.
const RLC: u8 = 3;

/// A code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FecCode {
    /// All consecutive packets, up to 16 (Type 1): a sixteenth more packets repair one loss of a group.
    #[default]
    Basic,
    /// Every other packet, up to 8 (Type 2): an eighth more packets repair two consecutive losses.
    Interleaved,
    /// A window that slides (Type 3, RFC 8681): as many packets more as losses ask for, and each repairs one of the window.
    Rlc,
}

impl FecCode {
    /// Every code with its name in compositions.
    pub const ALL: [(&'static str, FecCode); 3] = [
        ("basic", FecCode::Basic),
        ("interleaved", FecCode::Interleaved),
        ("rlc", FecCode::Rlc),
    ];

    /// The code with this FEC Type in the header.
    pub fn from_kind(kind: u8) -> Option<FecCode> {
        let mut codes = Self::ALL.iter().map(|(_, code)| *code);
        codes.find(|code| code.kind() == kind)
    }

    /// FEC Type in the header (ResTP §3.1.5).
    pub fn kind(self) -> u8 {
        self.shape().map_or(RLC, |shape| shape.kind)
    }
    /// May an encoded packet say this FEC Range?
    pub fn allows(self, range: u32) -> bool {
        match self.shape() {
            Some(shape) => (1..=shape.group_limit).contains(&range),
            None => Combination::from_range(range).is_within_span(),
        }
    }
    /// The packets that an encoded packet covers whose first number is `first` (OP-37).
    pub fn covered(self, first: u64, range: u32) -> impl DoubleEndedIterator<Item = u64> + Clone {
        let (count, stride) = match self.shape() {
            Some(shape) => (range.into(), shape.stride),
            None => {
                let combination = Combination::from_range(range);
                (combination.count(), combination.stride())
            }
        };
        numbers(first, count, stride)
    }
    /// What each of them is multiplied by, in their order.
    pub fn coefficients(self, range: u32) -> Box<dyn Iterator<Item = u8>> {
        match self.shape() {
            Some(_) => Box::new(std::iter::repeat(1)),
            None => Box::new(Combination::from_range(range).coefficients()),
        }
    }

    /// Of a code whose packets are in one group each.
    pub(super) fn shape(self) -> Option<Shape> {
        match self {
            FecCode::Basic => Some(xor_basic::SHAPE),
            FecCode::Interleaved => Some(xor_interleaved::SHAPE),
            FecCode::Rlc => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_of_a_header_names_one_code_or_none() {
        for (_, code) in FecCode::ALL {
            assert_eq!(FecCode::from_kind(code.kind()), Some(code));
        }
        assert_eq!((FecCode::from_kind(0), FecCode::from_kind(4)), (None, None));
    }
}
