//! Sequence numbers are 64-bit and never wrap inside; only a codec cuts them to the width of its field
//! and expands them again next to a number it knows (serial arithmetic, OP-17).

/// First number of every 64-bit space: high enough that "a little before the start" is still positive.
pub const ORIGIN: u64 = 1 << 32;

/// The low 32 bits, as they travel.
pub const fn truncate(number: u64) -> u32 {
    number as u32
}

/// The 64-bit number nearest to `reference` whose low 32 bits are `wire`.
pub const fn expand(reference: u64, wire: u32) -> u64 {
    let ahead = wire.wrapping_sub(reference as u32) as i32;
    reference.saturating_add_signed(ahead as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expansion_finds_the_nearest_number_on_both_sides_of_a_wrap() {
        let wrap = ORIGIN + (1 << 32);
        assert_eq!(expand(wrap - 2, 3), wrap + 3);
        assert_eq!(expand(wrap + 3, 0xFFFF_FFFE), wrap - 2);
        assert_eq!(expand(ORIGIN, truncate(ORIGIN)), ORIGIN);
        assert_eq!(expand(ORIGIN, 0xFFFF_FFFF), ORIGIN - 1);
    }

    #[test]
    fn truncation_and_expansion_are_inverse_within_half_the_space() {
        for reference in [ORIGIN, ORIGIN + 0x7FFF_FFFF, 3 * ORIGIN - 1] {
            for step in [0u64, 1, 1000, (1 << 31) - 1] {
                assert_eq!(expand(reference, truncate(reference + step)), reference + step);
                assert_eq!(expand(reference, truncate(reference - step)), reference - step);
            }
        }
    }
}
