//! Manifests by their positions, in a file: each has a slot of its own, so that they may come in any order.

use super::disk::read_at_once;
use bytes::Bytes;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// A file of slots.
#[derive(Debug)]
pub struct Slots {
    file: File,
    most_bytes: u32,
}

impl Slots {
    /// In `file`, of `most_bytes` each.
    pub fn new(file: File, most_bytes: u32) -> Self {
        Slots { file, most_bytes }
    }

    fn offset(&self, position: u64) -> u64 {
        position * (u64::from(self.most_bytes) + 4)
    }

    /// Writes what is at `position`.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn put(&self, position: u64, content: &[u8]) -> io::Result<()> {
        let length = content.len() as u32;
        let slot = [&length.to_be_bytes()[..], content].concat();
        self.file.write_all_at(&slot, self.offset(position))
    }

    /// What was written at `position`, if the system has it in memory.
    pub fn get_at_once(&self, position: u64) -> Option<Bytes> {
        let mut slot = vec![0; self.most_bytes as usize + 4];
        read_at_once(&self.file, &mut slot, self.offset(position)).then(|| self.content(slot))?
    }

    /// What was written at `position`; of a file that others may have written, anything.
    pub fn get(&self, position: u64) -> Option<Bytes> {
        let mut slot = vec![0; self.most_bytes as usize + 4];
        let mut found = 0;
        while found < slot.len() {
            match self
                .file
                .read_at(&mut slot[found..], self.offset(position) + found as u64)
                .ok()?
            {
                0 => break,
                more => found += more,
            }
        }
        slot.truncate(found);
        self.content(slot)
    }

    fn content(&self, slot: Vec<u8>) -> Option<Bytes> {
        let length = u32::from_be_bytes(*slot.first_chunk()?);
        let there = 0 < length && length <= self.most_bytes && slot.len() >= length as usize + 4;
        there.then(|| Bytes::from(slot).slice(4..4 + length as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_hold_what_was_put_and_make_nothing_of_what_is_damaged() {
        let file = tempfile::tempfile().unwrap();
        let slots = Slots::new(file.try_clone().unwrap(), 10);
        slots.put(3, b"third").unwrap();
        slots.put(0, b"0123456789").unwrap();
        assert_eq!(slots.get(3).as_deref(), Some(&b"third"[..]));
        assert_eq!(slots.get(0).as_deref(), Some(&b"0123456789"[..]));
        assert_eq!(
            (slots.get(1), slots.get(4), slots.get(u64::MAX >> 8)),
            (None, None, None)
        );
        file.write_all_at(&u32::MAX.to_be_bytes(), 3 * 14).unwrap();
        assert_eq!(slots.get(3), None, "longer than a slot");
        file.write_all_at(&8u32.to_be_bytes(), 3 * 14).unwrap();
        assert_eq!(slots.get(3), None, "longer than the file");
    }
}
