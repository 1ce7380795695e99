//! The NAK option (TC §2.2.3, after RFC 1106 §3): one gap, by its first byte and its segments. Kind 10 stands for the
//! letter the documents print and belongs to another historic option, so this is for experiments only.

use restp_base::sequence::truncate;
use restp_services::ack::NakMode;
use std::ops::Range;

/// Kind, length, first byte 32, segments 8; the length is 7.
pub(super) const KIND: u8 = 10;
pub(super) const BYTES: usize = 7;
/// NakMode, in SYN segments: kind 253 (RFC 4727), length 3, mode 8.
pub(super) const MODE_KIND: u8 = 253;
/// Segments that one option can name.
pub const SEGMENTS_MAX: u64 = 255;

/// One gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nak {
    /// First byte missing.
    pub first: u32,
    /// Segments missing, 1 to 255.
    pub segments: u8,
}

impl Nak {
    /// Names the gap `bytes`, in segments of `unit` bytes; at most [`SEGMENTS_MAX`] of them.
    pub fn of(bytes: &Range<u64>, unit: u64) -> Self {
        let segments = (bytes.end - bytes.start).div_ceil(unit).min(SEGMENTS_MAX);
        Nak {
            first: truncate(bytes.start),
            segments: segments as u8,
        }
    }

    pub(super) fn parse(value: &[u8]) -> Option<Self> {
        let [a, b, c, d, segments] = value.try_into().ok()?;
        let first = u32::from_be_bytes([a, b, c, d]);
        Some(Nak { first, segments })
    }
}

/// The mode that a NakMode option names; unknown values, and other uses of the kind, say nothing.
pub(super) fn parse_mode(value: &[u8]) -> Option<NakMode> {
    match value {
        [0] => Some(NakMode::Unreliable),
        [1] => Some(NakMode::QuasiReliable),
        _ => None,
    }
}

pub(super) fn mode_code(mode: NakMode) -> u8 {
    match mode {
        NakMode::Unreliable => 0,
        NakMode::QuasiReliable => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Segments 0 to 5 of 1460 bytes, of which 1, 3 and 4 are lost (TC §2.2.5).
    #[test]
    fn gaps_of_the_worked_example() {
        let nak = |first, segments| Nak { first, segments };
        assert_eq!(Nak::of(&(1460..2920), 1460), nak(1460, 1));
        assert_eq!(Nak::of(&(4380..7300), 1460), nak(4380, 2));
        assert_eq!(
            Nak::of(&(4380..7301), 1460),
            nak(4380, 3),
            "a short last one counts"
        );
        assert_eq!(Nak::of(&(0..1 << 30), 1460).segments, 255);
    }
}
