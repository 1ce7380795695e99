//! One file that arrives, made of what comes and of what is there already. What is in its place is only read while it is the same: then
//! nothing is written at all.

use super::agreement::hash_zeros;
use super::folder::Folder;
use super::inventory::{Basis, State};
use super::part::Part;
use super::{CHUNK_BYTES, Digest};
use rustix::fs::{FallocateFlags, fallocate};
use sha2::{Digest as _, Sha256};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use thiserror::Error;

/// A file while it arrives.
pub struct Copy<'a> {
    folder: &'a Folder,
    /// Of the part.
    name: String,
    part: Option<Part>,
    /// Bytes of the part.
    length: u64,
    /// What is in its place.
    kept: Option<File>,
    /// What the sender was told of.
    basis: Basis,
    at: u64,
    hash: Sha256,
    /// Bytes that the disk may not have yet.
    unsynced: u64,
}

/// With `--fsync` so many bytes at a time are written through: with all of a file at its end, the disk could need longer for it than the
/// sender waits for anything to be taken. In the 30 s of `--timeout` these take 280 kB/s, which a slow disk has for several transfers.
const SYNC_BYTES: u64 = 8 << 20;

/// Why it does not arrive.
#[derive(Debug, Error)]
pub enum CopyError {
    /// What is in its place differs, and may not be replaced.
    #[error("something else is in its place")]
    Differs,
    /// The sender counts on what he was not told of.
    #[error("the sender counts on bytes that he was not told of")]
    NotTold,
    /// The disk.
    #[error(transparent)]
    System(#[from] io::Error),
}

/// A file that has arrived.
pub struct Copied {
    /// None: it is in its place, and was.
    pub part: Option<Part>,
    /// Of all of it.
    pub digest: Digest,
    /// What was in its place was changed since the sender was told of it.
    pub is_changed: bool,
}

impl<'a> Copy<'a> {
    /// Of what begins as `basis`, which may be that of a file in its place, `kept`; what is new goes to the part `name` of `folder`.
    pub fn of(folder: &'a Folder, name: String, basis: Basis, kept: Option<File>) -> Result<Self, CopyError> {
        let mut copy = Copy {
            folder,
            name,
            part: None,
            length: 0,
            kept,
            basis,
            at: 0,
            hash: Sha256::new(),
            unsynced: 0,
        };
        if basis.begun > 0 {
            copy.open()?;
        }
        Ok(copy)
    }

    fn open(&mut self) -> io::Result<()> {
        let part = Part::open(self.folder.handle(), self.name.clone())?;
        self.length = part.file().metadata()?.len();
        self.part = Some(part);
        Ok(())
    }

    /// The next bytes.
    pub fn data(&mut self, data: &[u8]) -> Result<(), CopyError> {
        if !self.stays(data)? {
            self.write(data)?;
        }
        self.hash.update(data);
        self.at += data.len() as u64;
        Ok(())
    }

    /// The next bytes are zero.
    pub fn hole(&mut self, bytes: u64) -> Result<(), CopyError> {
        let end = self.at + bytes;
        while self.part.is_none() && self.kept.is_some() && self.at < end {
            let zeros = vec![0; (end - self.at).min(CHUNK_BYTES as u64) as usize];
            if !self.stays(&zeros)? {
                break;
            }
            self.hash.update(&zeros);
            self.at += zeros.len() as u64;
        }
        if self.at < end {
            self.punch(end)?;
        }
        hash_zeros(&mut self.hash, end - self.at);
        self.at = end;
        Ok(())
    }

    /// The next bytes are as they are here; they are read back, so that the digest is of what is on the disk.
    pub fn same(&mut self, bytes: u64) -> Result<(), CopyError> {
        let end = self.at + bytes;
        if end > self.basis.has {
            return Err(CopyError::NotTold);
        }
        while self.at < end {
            let is_begun = self.at < self.basis.begun;
            let (from, until) = match is_begun {
                true => (self.part.as_ref().map(Part::file), self.basis.begun.min(end)),
                false => (self.kept.as_ref(), end),
            };
            let mut chunk = vec![0; (until - self.at).min(CHUNK_BYTES as u64) as usize];
            from.ok_or(CopyError::NotTold)?
                .read_exact_at(&mut chunk, self.at)?;
            self.hash.update(&chunk);
            if !is_begun && self.part.is_some() {
                self.write(&chunk)?;
            }
            self.at += chunk.len() as u64;
        }
        Ok(())
    }

    /// Is what is in its place the same so far? Then nothing is written yet.
    fn stays(&mut self, data: &[u8]) -> Result<bool, CopyError> {
        let Some(kept) = self.kept.as_ref().filter(|_| self.part.is_none()) else {
            return Ok(false);
        };
        let mut there = vec![0; data.len()];
        if kept.read_exact_at(&mut there, self.at).is_ok() && there == data {
            return Ok(true);
        }
        self.part_from_kept()?;
        Ok(false)
    }

    /// What is in its place differs from here on: a new file takes its place, which begins as it does. Somebody may have written to it
    /// since it was compared: what is copied is hashed.
    fn part_from_kept(&mut self) -> Result<(), CopyError> {
        if !self.folder.overwrite {
            return Err(CopyError::Differs);
        }
        self.open()?;
        self.hash = Sha256::new();
        let mut chunk = vec![0; CHUNK_BYTES];
        for begin in (0..self.at).step_by(CHUNK_BYTES) {
            let length = (self.at - begin).min(CHUNK_BYTES as u64) as usize;
            if let Some(kept) = &self.kept {
                kept.read_exact_at(&mut chunk[..length], begin)?;
            }
            self.hash.update(&chunk[..length]);
            self.put(begin, &chunk[..length])?;
        }
        Ok(())
    }

    fn write(&mut self, data: &[u8]) -> Result<(), CopyError> {
        if self.part.is_none() {
            self.open()?;
        }
        Ok(self.put(self.at, data)?)
    }

    fn put(&mut self, at: u64, data: &[u8]) -> io::Result<()> {
        let Some(part) = &self.part else { return Ok(()) };
        part.file().write_all_at(data, at)?;
        self.length = self.length.max(at + data.len() as u64);
        self.unsynced += data.len() as u64;
        if self.folder.sync && self.unsynced >= SYNC_BYTES {
            part.file().sync_data()?;
            self.unsynced = 0;
        }
        Ok(())
    }

    /// Zeros up to `end`: beyond the part by making it longer, within by giving room back where the file system can.
    fn punch(&mut self, end: u64) -> Result<(), CopyError> {
        if self.part.is_none() {
            self.open()?;
        }
        let Some(part) = &self.part else { return Ok(()) };
        let within = self.length.min(end).saturating_sub(self.at);
        if within > 0 {
            let how = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            if fallocate(part.file(), how, self.at, within).is_err() {
                for begin in (0..within).step_by(CHUNK_BYTES) {
                    let zeros = vec![0; (within - begin).min(CHUNK_BYTES as u64) as usize];
                    part.file().write_all_at(&zeros, self.at + begin)?;
                }
            }
        }
        if end > self.length {
            part.file().set_len(end)?;
            self.length = end;
        }
        Ok(())
    }

    /// It is over.
    pub fn end(mut self) -> Result<Copied, CopyError> {
        // What is in its place may go on, and an empty file has no bytes that differ.
        let goes_on = |kept: &File| Ok::<_, io::Error>(kept.metadata()?.len() > self.at);
        match &self.kept {
            Some(kept) if self.part.is_none() && goes_on(kept)? => self.part_from_kept()?,
            None if self.part.is_none() => self.open()?,
            _ => {}
        }
        if let Some(part) = &self.part {
            part.file().set_len(self.at)?;
        }
        let is_changed = match &self.kept {
            Some(kept) => self.basis.kept != Some(State::of(kept)?),
            None => false,
        };
        Ok(Copied {
            part: self.part,
            digest: self.hash.finalize().into(),
            is_changed,
        })
    }

    /// The sender has gone in the middle of it: what there is stays for who goes on.
    pub fn keep(self) {
        if let Some(part) = self.part.filter(|_| self.length > 0) {
            part.keep();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `recv --overwrite`: the beginning is compared, changed by somebody else, and then copied.
    #[test]
    fn what_somebody_writes_to_the_file_in_its_place_is_no_part_of_what_was_sent() {
        for ending in ["other data", "shorter", "hole"] {
            let dir = tempfile::tempdir().expect("a folder");
            let folder = Folder::open(dir.path(), true, false).expect("opens");
            let place = dir.path().join("a");
            std::fs::write(&place, "one two").expect("written");
            let kept = File::open(&place).expect("opens");
            let name = ".restp-x.part".into();
            let mut copy = Copy::of(&folder, name, Basis::default(), Some(kept)).expect("begins");
            copy.data(b"one").expect("the same");
            std::fs::write(&place, "ONE two").expect("written");
            match ending {
                "other data" => copy.data(b" 2").expect("copied"),
                "hole" => copy.hole(2).expect("copied"),
                _ => {}
            }
            let copied = copy.end().expect("copied");
            let part = copied.part.expect("a new file");
            let mut content = Vec::new();
            io::Read::read_to_end(&mut part.file(), &mut content).expect("reads");
            assert!(content.starts_with(b"ONE"), "{ending}");
            assert_eq!(copied.digest, Digest::from(Sha256::digest(&content)), "{ending}");
        }
    }
}
