//! Integer arithmetic with the same bits on every processor.

/// The largest integer whose cube is at most `n`.
pub const fn cube_root(n: u64) -> u64 {
    let (mut low, mut high) = (0u64, 2_642_245); // 2642245³ is the largest cube below 2⁶⁴
    while low < high {
        let middle = (low + high).div_ceil(2);
        if (middle as u128) * (middle as u128) * (middle as u128) <= n as u128 {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    low
}

/// `a · b / c` without overflow on the way; the largest integer where the quotient is larger. `c` is not zero.
#[inline]
pub const fn mul_div(a: u64, b: u64, c: u64) -> u64 {
    // 64-bit arithmetic while it fits: this runs for every packet.
    if let Some(product) = a.checked_mul(b) {
        return product / c;
    }
    let wide = a as u128 * b as u128 / c as u128;
    if wide > u64::MAX as u128 {
        u64::MAX
    } else {
        wide as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_exact_and_quotients_saturate() {
        assert_eq!(mul_div(7, 3, 2), 10);
        assert_eq!(mul_div(u64::MAX, 3, 4), u64::MAX / 4 * 3 + 2);
        assert_eq!(mul_div(u64::MAX, 3, 2), u64::MAX);
    }

    #[test]
    fn cube_roots_are_exact_at_and_beside_cubes() {
        for root in [0u64, 1, 2, 3, 10, 1000, 123_456, 2_642_245] {
            let cube = root * root * root;
            assert_eq!(cube_root(cube), root);
            if cube > 1 {
                assert_eq!(cube_root(cube - 1), root - 1);
            }
        }
        assert_eq!(cube_root(u64::MAX), 2_642_245);
    }
}
