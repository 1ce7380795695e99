//! The bytes of bulk traffic. Each has its place, so that a reader sees at once when one is lost, repeated or moved.

use std::sync::LazyLock;

/// The pattern repeats after this many bytes: a prime, so that no number of whole segments is a multiple of it.
const PERIOD: usize = 65_521;
/// Longest piece that [`piece`] gives.
pub(super) const MOST: usize = 64 << 10;

static BYTES: LazyLock<Vec<u8>> = LazyLock::new(|| {
    // A multiplicative congruential generator (Park and Miller 1988): any would do.
    let mut state = 1u64;
    let mut next = || {
        state = state * 48_271 % 0x7fff_ffff;
        (state >> 8) as u8
    };
    let one: Vec<u8> = (0..PERIOD).map(|_| next()).collect();
    one.iter().cycle().take(PERIOD + MOST).copied().collect()
});

/// The `length` bytes, [`MOST`] at most, that stand at `place` of the stream.
pub(super) fn piece(place: u64, length: usize) -> &'static [u8] {
    let start = phase(place);
    &BYTES[start..start + length.min(MOST)]
}

/// Where the period has come at `place`.
fn phase(place: u64) -> usize {
    (place % PERIOD as u64) as usize
}

/// What was never copied is a part of what it was written from: is it one that begins as the stream does at `place`?
fn is_in_place(place: u64, read: &[u8]) -> bool {
    let offset = (read.as_ptr() as usize).wrapping_sub(BYTES.as_ptr() as usize);
    offset < BYTES.len() && offset % PERIOD == phase(place)
}

/// Bytes of `data`, read at `place`, that are not those written there.
pub(super) fn wrong(place: u64, data: &[u8]) -> u64 {
    let mut at = place;
    let mut wrong = 0;
    for read in data.chunks(MOST) {
        let written = piece(at, read.len());
        if !is_in_place(at, read) && read != written {
            wrong += read.iter().zip(written).filter(|(a, b)| a != b).count() as u64;
        }
        at += read.len() as u64;
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_copied_is_known_by_its_place_behind_the_period_too() {
        let written = piece(1400, MOST);
        for at in (0..MOST - 1400).step_by(1400) {
            let (place, segment) = (1400 + at as u64, &written[at..at + 1400]);
            assert!(is_in_place(place, segment) && !is_in_place(place + 1, segment));
            let copy = segment.to_vec();
            assert!(!is_in_place(place, &copy), "it is looked at");
        }
    }

    #[test]
    fn bytes_have_their_place_and_a_segment_elsewhere_is_seen() {
        let stream: Vec<u8> = (0..200).flat_map(|i| piece(i * 1400, 1400)).copied().collect();
        assert_eq!(wrong(0, &stream), 0);
        for segments in 1..100 {
            let moved = wrong(segments * 1400, &stream[..1400]);
            assert!(moved > 1300, "{segments} segments further: {moved}");
        }
        let mut damaged = stream;
        damaged[70_000] ^= 1;
        assert_eq!(wrong(0, &damaged), 1);
    }
}
