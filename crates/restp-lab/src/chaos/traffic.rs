//! What an application writes. Every byte is known from where it stands, so nothing has to be kept to compare with.

use super::network::Hop;
use super::{Side, skewed};
use bytes::Bytes;
use restp_base::random::Stream;
use restp_base::time::Duration;
use serde::{Deserialize, Serialize};
use std::sync::OnceLock;

/// What one side writes in one conversation, from a while after it began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Traffic {
    /// Nothing but the end.
    Nothing,
    /// So many bytes, as fast as they are taken.
    Bulk {
        /// When.
        start_ms: u64,
        /// How many.
        bytes: u64,
    },
    /// Messages, all at once or at a distance; of one size at a constant bit rate.
    Messages {
        /// When.
        start_ms: u64,
        /// How many.
        count: u64,
        /// Size of the smallest.
        smallest: u64,
        /// Size of the largest.
        largest: u64,
        /// Distance in time; 0 writes as fast as they are taken.
        every_us: u64,
    },
}

/// Most segments that one side sends for the first time, so that a run ends soon.
const SEGMENTS: u64 = 400;
/// Most seconds the slowest link is busy with it.
const BUSY_S: u64 = 20;

/// Traffic that keeps `hops` busy for a while, in writes of all sizes around `segment` bytes.
pub fn draw(draw: &mut Stream, segment: u64, hops: &[Hop]) -> Traffic {
    let slowest = hops.iter().flat_map(|hop| hop.rates_bps).min().unwrap_or(1);
    let most = (slowest / 8 * BUSY_S).min(segment * SEGMENTS);
    let start_ms = if draw.chance(0.5) { 0 } else { draw.below(10_000) };
    // Small amounts are as frequent as large ones: an end in the middle of a set-up is a case of its own.
    let bytes = 1 + skewed(draw, most);
    match draw.below(6) {
        0 => Traffic::Nothing,
        1 | 2 => Traffic::Bulk { start_ms, bytes },
        kind => {
            let sizes = if draw.chance(0.5) { segment } else { 4 * segment };
            let largest = 1 + draw.below(sizes);
            let smallest = if draw.chance(0.5) {
                largest
            } else {
                1 + draw.below(largest)
            };
            Traffic::Messages {
                start_ms,
                count: (bytes / largest).clamp(1, SEGMENTS),
                smallest,
                largest,
                every_us: if kind == 3 { 0 } else { draw.below(50_000) },
            }
        }
    }
}

impl Traffic {
    /// From the beginning of the conversation to the first write.
    pub fn start(&self) -> Duration {
        match self {
            Traffic::Nothing => Duration::ZERO,
            Traffic::Bulk { start_ms, .. } | Traffic::Messages { start_ms, .. } => {
                Duration::from_millis(*start_ms)
            }
        }
    }

    /// Distance between writes.
    pub fn interval(&self) -> Duration {
        match self {
            Traffic::Messages { every_us, .. } => Duration::from_micros(*every_us),
            Traffic::Nothing | Traffic::Bulk { .. } => Duration::ZERO,
        }
    }

    /// At most so many bytes.
    pub fn bytes(&self) -> u64 {
        match self {
            Traffic::Nothing => 0,
            Traffic::Bulk { bytes, .. } => *bytes,
            Traffic::Messages { count, largest, .. } => count * largest,
        }
    }

    /// At most so many writes of at most `limit` bytes.
    pub fn writes(&self, limit: u64) -> u64 {
        match self {
            Traffic::Nothing => 0,
            Traffic::Bulk { bytes, .. } => bytes.div_ceil(limit.clamp(1, CHUNK_BYTES)),
            Traffic::Messages { count, .. } => *count,
        }
    }

    /// The same, half as long; `None` when there is no shorter one.
    pub fn halved(&self) -> Option<Traffic> {
        let mut shorter = self.clone();
        match &mut shorter {
            Traffic::Nothing => return None,
            Traffic::Bulk { bytes: amount, .. } | Traffic::Messages { count: amount, .. } => *amount /= 2,
        }
        Some(match shorter.bytes() {
            0 => Traffic::Nothing,
            _ => shorter,
        })
    }

    /// The same without waiting for anything.
    pub fn at_once(&self) -> Traffic {
        let mut sooner = self.clone();
        match &mut sooner {
            Traffic::Nothing => {}
            Traffic::Bulk { start_ms, .. } => *start_ms = 0,
            Traffic::Messages {
                start_ms, every_us, ..
            } => (*start_ms, *every_us) = (0, 0),
        }
        sooner
    }

    /// The write after `done` writes of `taken` bytes in all, of at most `limit` bytes.
    pub fn next(&self, who: (Side, usize), done: u64, taken: u64, limit: usize) -> Option<Bytes> {
        match *self {
            Traffic::Nothing => None,
            Traffic::Bulk { bytes, .. } => {
                let left = bytes.checked_sub(taken).filter(|left| *left > 0)?;
                Some(content(who, taken, left.min(limit as u64).min(CHUNK_BYTES)))
            }
            Traffic::Messages {
                count,
                smallest,
                largest,
                ..
            } => {
                if done >= count {
                    return None;
                }
                let spread = largest.max(smallest) - smallest + 1;
                let size = smallest + mixed(done) % spread;
                Some(content(who, done * STRIDE, size.clamp(1, limit as u64)))
            }
        }
    }
}

/// Bytes of one write of a bulk.
const CHUNK_BYTES: u64 = 16 * 1024;
/// Distance of two messages in the noise: messages of at least eight bytes never look alike.
const STRIDE: u64 = 4_099;
/// Noise from which every payload is cut, and the longest payload.
const NOISE_BYTES: u64 = 1 << 18;
const LONGEST: u64 = 1 << 16;

/// `length` bytes of what `who` writes at `position`, shared, not copied.
fn content((side, conversation): (Side, usize), position: u64, length: u64) -> Bytes {
    static NOISE: OnceLock<Bytes> = OnceLock::new();
    let noise = NOISE.get_or_init(|| {
        let mut stream = Stream::named(0, "chaos/noise");
        (0..(NOISE_BYTES + LONGEST) / 8)
            .flat_map(|_| stream.bits().to_le_bytes())
            .collect()
    });
    let begin = mixed(2 * conversation as u64 + side.index() as u64);
    let from = (begin.wrapping_add(position) % NOISE_BYTES) as usize;
    noise.slice(from..from + length.min(LONGEST) as usize)
}

/// Numbers next to each other become numbers far apart (Steele, Lea, Flood: SplitMix64).
fn mixed(number: u64) -> u64 {
    let a = number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let b = (a ^ (a >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    b ^ (b >> 27)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_follow_the_plan_and_end() {
        let bulk = Traffic::Bulk {
            start_ms: 0,
            bytes: 40_000,
        };
        let sizes: Vec<usize> = std::iter::successors(Some((0, 0)), |(done, taken)| {
            let piece = bulk.next((Side::Client, 0), *done, *taken, 1 << 16)?;
            Some((done + 1, taken + piece.len() as u64))
        })
        .map(|(_, taken)| taken as usize)
        .collect();
        assert_eq!(sizes, [0, 16_384, 32_768, 40_000]);
        let messages = Traffic::Messages {
            start_ms: 0,
            count: 3,
            smallest: 5,
            largest: 9,
            every_us: 0,
        };
        let lengths: Vec<usize> = (0..5)
            .map_while(|done| messages.next((Side::Server, 1), done, 0, 7))
            .map(|m| m.len())
            .collect();
        assert!(
            lengths.len() == 3 && lengths.iter().all(|length| (5..=7).contains(length)),
            "{lengths:?}"
        );
    }

    #[test]
    fn sides_and_conversations_write_different_things() {
        let bulk = Traffic::Bulk {
            start_ms: 0,
            bytes: 100,
        };
        let of = |side, conversation| bulk.next((side, conversation), 0, 0, 100);
        assert_ne!(of(Side::Client, 0), of(Side::Server, 0));
        assert_ne!(of(Side::Client, 0), of(Side::Client, 1));
    }
}
