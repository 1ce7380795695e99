//! GF(2^8) with the polynomial x^8 + x^4 + x^3 + x^2 + 1 (RFC 8681, after RFC 5510): addition is XOR.

const POLYNOMIAL: u16 = 0x11D;
/// Elements but 0: they are the powers of 2.
const ORDER: usize = 255;

/// Powers of 2, twice over, so that a sum of two exponents needs no remainder.
const POWERS: [u8; 2 * ORDER] = powers();
/// The exponent of each element; that of 0 means nothing.
const EXPONENTS: [u8; 256] = exponents();

const fn powers() -> [u8; 2 * ORDER] {
    let (mut table, mut value, mut exponent) = ([0; 2 * ORDER], 1u16, 0);
    while exponent < ORDER {
        table[exponent] = value as u8;
        table[exponent + ORDER] = value as u8;
        value <<= 1;
        if value & 0x100 != 0 {
            value ^= POLYNOMIAL;
        }
        exponent += 1;
    }
    table
}

const fn exponents() -> [u8; 256] {
    let (mut table, mut exponent) = ([0; 256], 0);
    while exponent < ORDER {
        table[POWERS[exponent] as usize] = exponent as u8;
        exponent += 1;
    }
    table
}

/// The product.
pub(super) fn multiply(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 {
        return 0;
    }
    POWERS[usize::from(EXPONENTS[usize::from(a)]) + usize::from(EXPONENTS[usize::from(b)])]
}

/// The element whose product with `a` is 1; of 0, which has none, 0.
pub(super) fn inverse(a: u8) -> u8 {
    match a {
        0 => 0,
        _ => POWERS[ORDER - usize::from(EXPONENTS[usize::from(a)])],
    }
}

/// Adds `factor` times `terms` to `sums`, byte by byte, as far as both go.
pub fn add_scaled(sums: &mut [u8], factor: u8, terms: &[u8]) {
    let pairs = sums.iter_mut().zip(terms);
    match factor {
        0 => {}
        1 => pairs.for_each(|(sum, term)| *sum ^= term),
        _ => {
            let products = multiples(factor);
            pairs.for_each(|(sum, term)| *sum ^= products[usize::from(*term)]);
        }
    }
}

/// Multiplies every byte by `factor`.
pub(super) fn scale(bytes: &mut [u8], factor: u8) {
    let products = multiples(factor);
    bytes
        .iter_mut()
        .for_each(|byte| *byte = products[usize::from(*byte)]);
}

/// `factor` times each element: those of the bits, and their sums.
fn multiples(factor: u8) -> [u8; 256] {
    let mut table = [0; 256];
    for bit in 0..8 {
        let (low, high) = table.split_at_mut(1 << bit);
        let product = multiply(factor, 1 << bit);
        high.iter_mut()
            .zip(low)
            .for_each(|(entry, rest)| *entry = *rest ^ product);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shift and add, the definition.
    fn product(a: u8, b: u8) -> u8 {
        let mut sum = 0u16;
        for bit in (0..8).rev() {
            sum <<= 1;
            if sum & 0x100 != 0 {
                sum ^= POLYNOMIAL;
            }
            if b >> bit & 1 == 1 {
                sum ^= u16::from(a);
            }
        }
        sum as u8
    }

    #[test]
    fn products_and_inverses_are_those_of_the_definition() {
        for a in 0..=255 {
            let table = multiples(a);
            for b in 0..=255 {
                assert_eq!(
                    (multiply(a, b), table[usize::from(b)]),
                    (product(a, b), product(a, b))
                );
            }
            assert_eq!(multiply(a, inverse(a)), u8::from(a != 0));
        }
        assert_eq!(multiply(0x80, 2), 0x1D, "x^8");
    }

    #[test]
    fn a_scaled_sum_is_undone_by_the_same_again() {
        let terms: Vec<u8> = (0..=255).collect();
        for factor in [0, 1, 2, 0x8E, 255] {
            let mut sums = vec![7; 300];
            add_scaled(&mut sums, factor, &terms);
            assert_eq!((sums[3], sums[299]), (7 ^ product(factor, 3), 7));
            add_scaled(&mut sums, factor, &terms);
            assert_eq!(sums, [7; 300]);
        }
        let mut bytes = terms.clone();
        scale(&mut bytes, 9);
        scale(&mut bytes, inverse(9));
        assert_eq!(bytes, terms);
    }
}
