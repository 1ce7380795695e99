//! The codes of forward error correction (ResTP §3.1.5). All of them XOR payloads; they differ in which packets
//! share an encoded one. Another code of this kind is another [`Shape`].

use super::{fec_basic, fec_interleaved};

/// Which packets share an encoded one.
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

/// A code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FecCode {
    /// All consecutive packets, up to 16 (Type 1): a sixteenth more packets repair one loss of a group.
    #[default]
    Basic,
    /// Every other packet, up to 8 (Type 2): an eighth more packets repair two consecutive losses.
    Interleaved,
}

impl FecCode {
    /// Every code with its name in compositions.
    pub const ALL: [(&'static str, FecCode); 2] =
        [("basic", FecCode::Basic), ("interleaved", FecCode::Interleaved)];

    /// The code with this FEC Type in the header.
    pub fn from_kind(kind: u8) -> Option<FecCode> {
        let mut codes = Self::ALL.iter().map(|(_, code)| *code);
        codes.find(|code| code.kind() == kind)
    }

    /// FEC Type in the header (ResTP §3.1.5).
    pub fn kind(self) -> u8 {
        self.shape().kind
    }
    /// Most packets of one group (ResTP Table 3.1).
    pub fn group_limit(self) -> u32 {
        self.shape().group_limit
    }
    /// Consecutive losses it repairs.
    pub fn repairs(self) -> u64 {
        self.shape().stride
    }
    /// The packets that the encoded packet of `range` packets from `first` on covers (OP-37).
    pub fn covered(self, first: u64, range: u32) -> impl DoubleEndedIterator<Item = u64> + Clone {
        let stride = self.shape().stride;
        (0..u64::from(range)).map(move |index| first.saturating_add(index * stride))
    }

    pub(super) fn shape(self) -> Shape {
        match self {
            FecCode::Basic => fec_basic::SHAPE,
            FecCode::Interleaved => fec_interleaved::SHAPE,
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
        assert_eq!((FecCode::from_kind(0), FecCode::from_kind(3)), (None, None));
    }
}
