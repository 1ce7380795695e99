//! Bytes that say where they belong: whoever receives them sees what is lost, repeated, changed or out of order.

use crate::kind::Kind;
use bytes::Bytes;
use std::collections::BTreeSet;

/// Bytes that begin a stream, and a message: the seed of the others.
const SEED_BYTES: u64 = 8;

/// The byte of the stream `seed` at `offset` (the finalizer of SplitMix64, Steele et al. 2014).
fn byte(seed: u64, offset: u64) -> u8 {
    if let Some(byte) = seed.to_le_bytes().get(offset as usize) {
        return *byte;
    }
    let mut word = seed.wrapping_add((offset / 8).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    word = (word ^ word >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    word = (word ^ word >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    (word ^ word >> 31).to_le_bytes()[(offset % 8) as usize]
}

/// `length` bytes of the stream `seed` from `offset` on.
pub fn bytes(seed: u64, offset: u64, length: u64) -> Bytes {
    (offset..offset + length).map(|at| byte(seed, at)).collect()
}

/// Message `number` of `seed`: both, and bytes that follow from them.
pub fn message(seed: u64, number: u64, length: u64) -> Bytes {
    [&number.to_le_bytes()[..], &bytes(seed ^ number, 0, length)]
        .concat()
        .into()
}

/// What has been received of one stream.
#[derive(Debug, Default)]
pub struct StreamCheck {
    seed: Option<u64>,
    head: Vec<u8>,
    /// Bytes so far.
    pub received: u64,
}

impl StreamCheck {
    /// Of a stream with this seed; one that is not known is learnt from the stream.
    pub fn of(seed: Option<u64>) -> Self {
        StreamCheck {
            seed,
            ..StreamCheck::default()
        }
    }

    /// The next bytes.
    ///
    /// # Errors
    /// One of them is not the next one of this stream.
    pub fn take(&mut self, data: &[u8]) -> Result<(), String> {
        for &got in data {
            match self.seed {
                Some(seed) if got != byte(seed, self.received) => {
                    return Err(format!(
                        "byte {} of stream {seed:016x} is another one",
                        self.received
                    ));
                }
                Some(_) => {}
                None => self.head.push(got),
            }
            self.received += 1;
            if self.received == SEED_BYTES && self.seed.is_none() {
                self.seed = self.head.as_slice().try_into().ok().map(u64::from_le_bytes);
            }
        }
        Ok(())
    }
}

/// What has been received of the messages of one connection. A connection without a set-up cannot be told from the one that
/// a client had before it was killed: its seed can.
#[derive(Debug, Default)]
pub struct MessageCheck {
    /// Seed and number.
    seen: BTreeSet<(u64, u64)>,
    ordered: bool,
}

impl MessageCheck {
    /// Frames of a voice come in order, though some may be missing.
    pub fn of(kind: Kind) -> Self {
        MessageCheck {
            ordered: kind == Kind::Voice,
            ..MessageCheck::default()
        }
    }

    /// The next message.
    ///
    /// # Errors
    /// It is none of this connection, or was here before, or comes too late.
    pub fn take(&mut self, data: &[u8]) -> Result<(), String> {
        let (Some(number), Some(head)) = (data.first_chunk(), data.get(8..).and_then(<[u8]>::first_chunk))
        else {
            return Err(format!("a message of {} bytes", data.len()));
        };
        let number = u64::from_le_bytes(*number);
        let seed = u64::from_le_bytes(*head) ^ number;
        if data != message(seed, number, data.len() as u64 - 8) {
            return Err(format!("message {number} of {seed:016x} is damaged"));
        }
        if self.ordered
            && self
                .seen
                .last()
                .is_some_and(|last| (last.0, number) <= *last || last.0 != seed)
        {
            return Err(format!("message {number} of {seed:016x} is late, or strange"));
        }
        if !self.seen.insert((seed, number)) {
            return Err(format!("message {number} of {seed:016x} comes again"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_or_repeated_byte_is_seen() {
        let whole = bytes(7, 0, 1000);
        for known in [Some(7), None] {
            let mut check = StreamCheck::of(known);
            assert_eq!(check.take(&whole[..5]), Ok(()));
            assert_eq!(check.take(&whole[5..]), Ok(()));
            assert_eq!(check.received, 1000);
            assert!(check.take(&whole[999..]).is_err(), "repeated");
            let mut check = StreamCheck::of(known);
            assert_eq!(check.take(&whole[..500]), Ok(()));
            assert!(check.take(&whole[501..]).is_err(), "lost");
        }
    }

    #[test]
    fn a_repeated_damaged_late_or_strange_message_is_seen() {
        let mut check = MessageCheck::of(Kind::Datagrams);
        for number in [3, 1, 2] {
            assert_eq!(check.take(&message(7, number, 100)), Ok(()));
        }
        assert_eq!(check.take(&message(8, 2, 100)), Ok(()), "of another life");
        assert!(check.take(&message(7, 2, 100)).is_err(), "repeated");
        let mut damaged = message(7, 4, 100).to_vec();
        damaged[60] ^= 1;
        assert!(check.take(&damaged).is_err(), "damaged");
        assert!(check.take(&damaged[..15]).is_err(), "cut");
        let mut check = MessageCheck::of(Kind::Voice);
        for number in [3, 9] {
            assert_eq!(check.take(&message(7, number, 100)), Ok(()));
        }
        assert!(check.take(&message(7, 9, 100)).is_err(), "repeated");
        assert!(check.take(&message(7, 4, 100)).is_err(), "late");
        assert!(check.take(&message(8, 10, 100)).is_err(), "another connection's");
        assert_eq!(check.take(&message(7, 10, 100)), Ok(()));
    }
}
