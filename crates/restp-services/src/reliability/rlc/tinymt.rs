//! TinyMT32, the generator of coefficients (RFC 8682).

const MAT1: u32 = 0x8f70_11ee;
const MAT2: u32 = 0xfc78_ff1f;
const TMAT: u32 = 0x3793_fdff;
const TOP_BIT_OFF: u32 = 0x7fff_ffff;

/// The generator.
#[derive(Clone, Debug)]
pub(super) struct TinyMt32 {
    status: [u32; 4],
}

impl TinyMt32 {
    /// The sequence of `seed`.
    pub(super) fn new(seed: u32) -> Self {
        let mut status = [seed, MAT1, MAT2, TMAT];
        for step in 1..8u32 {
            let before = status[(step as usize - 1) & 3];
            let mixed = 1_812_433_253u32.wrapping_mul(before ^ (before >> 30));
            status[step as usize & 3] ^= step.wrapping_add(mixed);
        }
        let mut generator = TinyMt32 { status };
        (0..8).for_each(|_| generator.step());
        generator
    }

    fn step(&mut self) {
        let [s0, s1, s2, s3] = self.status;
        let mut x = (s0 & TOP_BIT_OFF) ^ s1 ^ s2;
        let mut y = s3;
        x ^= x << 1;
        y ^= (y >> 1) ^ x;
        self.status = [s1, s2, x ^ (y << 10), y];
        if y & 1 == 1 {
            self.status[1] ^= MAT1;
            self.status[2] ^= MAT2;
        }
    }

    /// The next number.
    pub(super) fn bits(&mut self) -> u32 {
        self.step();
        let [s0, _, s2, s3] = self.status;
        let sum = s0.wrapping_add(s2 >> 8);
        let mixed = s3 ^ sum;
        if sum & 1 == 1 { mixed ^ TMAT } else { mixed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8682 §2.3: the first numbers of seed 1.
    #[test]
    fn the_sequence_is_the_one_of_the_standard() {
        let expected: [u32; 50] = [
            2545341989, 981918433, 3715302833, 2387538352, 3591001365, 3820442102, 2114400566, 2196103051,
            2783359912, 764534509, 643179475, 1822416315, 881558334, 4207026366, 3690273640, 3240535687,
            2921447122, 3984931427, 4092394160, 44209675, 2188315343, 2908663843, 1834519336, 3774670961,
            3019990707, 4065554902, 1239765502, 4035716197, 3412127188, 552822483, 161364450, 353727785,
            140085994, 149132008, 2547770827, 4064042525, 4078297538, 2057335507, 622384752, 2041665899,
            2193913817, 1080849512, 33160901, 662956935, 642999063, 3384709977, 1723175122, 3866752252,
            521822317, 2292524454,
        ];
        let mut generator = TinyMt32::new(1);
        assert_eq!(expected.map(|_| generator.bits()), expected);
    }
}
