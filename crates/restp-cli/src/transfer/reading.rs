//! One file on its way to the network: its data, its holes, and what need not be sent.

use super::agreement::hash_zeros;
use super::message::Record;
use super::source::{Chunk, SourceError};
use super::told::{Gone, Told};
use super::walk::Place;
use super::{CHUNK_BYTES, Digest};
use bytes::Bytes;
use sha2::{Digest as _, Sha256};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, MetadataExt};
use tokio::sync::mpsc;

/// One file on its way to the network.
pub struct Reading<'a> {
    place: &'a Place,
    /// Files before it.
    count: usize,
    told: &'a mut Told,
    /// Bytes that may still be sent without knowing what is there.
    lead: &'a mut u64,
    bytes: u64,
    at: u64,
    /// Bytes of it that are there.
    same: u64,
    hash: Sha256,
    chunks: &'a mpsc::Sender<Result<Chunk, SourceError>>,
}

impl<'a> Reading<'a> {
    /// The file at `place`, which has `bytes` and comes after `count` others.
    pub fn of(
        place: &'a Place,
        (count, bytes): (usize, u64),
        (told, lead): (&'a mut Told, &'a mut u64),
        chunks: &'a mpsc::Sender<Result<Chunk, SourceError>>,
    ) -> Self {
        Reading {
            place,
            count,
            told,
            lead,
            bytes,
            at: 0,
            same: 0,
            hash: Sha256::new(),
            chunks,
        }
    }

    /// Hands over what was read before. `None`, here and below: nobody wants the rest.
    pub fn content(&mut self, content: &[u8]) -> Option<Digest> {
        let wanted = content.chunks(CHUNK_BYTES).all(|chunk| {
            let mut wire = Record::Data(chunk.len() as u32).encode().to_vec();
            wire.extend_from_slice(chunk);
            self.data(wire)
        });
        wanted.then(|| self.end()).flatten()
    }

    /// Reads and hands over all of it.
    ///
    /// # Errors
    /// When it cannot be read, or is not as it was.
    pub fn file(&mut self, file: &File) -> Result<Option<Digest>, SourceError> {
        let wanted = self.records(file)?;
        let beyond = file.read_at(&mut [0], self.bytes);
        self.place.check(file)?;
        if beyond.map_err(|source| self.failed(source))? > 0 {
            return Err(SourceError::Untold(self.place.path().into()));
        }
        Ok(wanted.then(|| self.end()).flatten())
    }

    /// Hands over what comes, until it ends.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn stream(&mut self, mut from: impl Read) -> Result<Option<Digest>, SourceError> {
        // How much can be sent without waiting is not worth much here.
        let Ok(Some(has)) = self.told.of(self.count, true) else {
            return Ok(None);
        };
        loop {
            let compared = self.at < has;
            let length = match compared {
                true => (has - self.at).min(CHUNK_BYTES as u64) as usize,
                false => CHUNK_BYTES,
            };
            let mut wire = Record::Data(0).encode().to_vec();
            wire.resize(Record::BYTES + length, 0);
            // A whole chunk where it is compared, and otherwise at once what is there.
            let read = read_up_to(&mut from, &mut wire[Record::BYTES..], compared);
            let read = read.map_err(|source| self.failed(source))?;
            if read == 0 {
                return Ok(self.end());
            }
            wire.truncate(Record::BYTES + read);
            wire[..Record::BYTES].copy_from_slice(&Record::Data(read as u32).encode());
            let data = &wire[Record::BYTES..];
            let wanted = match compared.then(|| self.told.digest()) {
                Some(Err(Gone)) => false,
                Some(Ok(digest)) if Digest::from(Sha256::digest(data)) == digest => {
                    self.hash.update(data);
                    self.at += read as u64;
                    self.same += read as u64;
                    let same = Record::Same(read as u32).encode().to_vec();
                    hand_over(self.chunks, same, (read as u64, read as u64))
                }
                _ => self.data(wire),
            };
            if !wanted {
                return Ok(None);
            }
        }
    }

    /// It does not come after all, because of `error`. False, here and below: nobody wants the rest.
    pub fn leave(&mut self, error: &SourceError) -> bool {
        let left = Chunk::Left {
            wire: Bytes::from_owner(Record::Left.encode()),
            content: self.at,
            resumed: self.same,
            why: error.to_string(),
        };
        self.chunks.blocking_send(Ok(left)).is_ok()
    }

    fn end(&mut self) -> Option<Digest> {
        let digest: Digest = self.hash.finalize_reset().into();
        let end = [&Record::End.encode()[..], &digest].concat();
        hand_over(self.chunks, end, (0, 0)).then_some(digest)
    }

    fn records(&mut self, file: &File) -> Result<bool, SourceError> {
        let found = file.metadata().map_err(|source| self.failed(source))?;
        let is_sparse = found.blocks().saturating_mul(512) < self.bytes;
        let begin = self.bytes.min(*self.lead);
        match self.told.of(self.count, begin == 0 && self.bytes > 0) {
            Err(Gone) => Ok(false),
            Ok(Some(has)) => Ok(self.compare(file, has)? && self.extents(file, is_sparse, self.bytes)?),
            // Most receivers have nothing.
            Ok(None) => {
                *self.lead -= begin;
                Ok(self.extents(file, is_sparse, begin)?
                    && (begin == self.bytes || self.rest(file, is_sparse)?))
            }
        }
    }

    /// What follows the lead.
    fn rest(&mut self, file: &File, is_sparse: bool) -> Result<bool, SourceError> {
        match self.told.of(self.count, true) {
            Ok(Some(has)) => Ok(self.compare(file, has)? && self.extents(file, is_sparse, self.bytes)?),
            _ => Ok(false),
        }
    }

    /// As far as the receiver `has` it: only chunks that differ are sent.
    fn compare(&mut self, file: &File, has: u64) -> Result<bool, SourceError> {
        let has = has.min(self.bytes);
        let mut begin = 0;
        while begin < has {
            let end = (begin + CHUNK_BYTES as u64).min(has);
            let Ok(digest) = self.told.digest() else {
                return Ok(false);
            };
            // Less than a chunk has been sent already.
            let sent = self.at.clamp(begin, end) - begin;
            let mut wire = Record::Data((end - begin - sent) as u32).encode().to_vec();
            let mut chunk = vec![0; (end - begin) as usize];
            self.fill(file, begin, &mut chunk)?;
            let rest = &chunk[sent as usize..];
            let wanted = if rest.is_empty() {
                true
            } else if Digest::from(Sha256::digest(&chunk)) == digest {
                self.hash.update(rest);
                self.at = end;
                let same = rest.len() as u64;
                self.same += same;
                hand_over(
                    self.chunks,
                    Record::Same(same as u32).encode().to_vec(),
                    (same, same),
                )
            } else if rest.iter().all(|byte| *byte == 0) {
                self.hole(rest.len() as u64)
            } else {
                wire.extend_from_slice(rest);
                self.data(wire)
            };
            if !wanted {
                return Ok(false);
            }
            begin = end;
        }
        Ok(true)
    }

    /// Data and holes up to `until`.
    fn extents(&mut self, file: &File, is_sparse: bool, until: u64) -> Result<bool, SourceError> {
        while self.at < until {
            let (hole, end) = if is_sparse {
                self.extent(file)
            } else {
                (false, self.bytes)
            };
            let end = end.min(until);
            let wanted = match hole {
                true => self.hole(end - self.at),
                false => self.extent_data(file, end)?,
            };
            if !wanted {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Is there a hole, and where does that change? A file system that does not tell has none.
    fn extent(&self, file: &File) -> (bool, u64) {
        use rustix::fs::{SeekFrom, seek};
        use rustix::io::Errno;
        let data = match seek(file, SeekFrom::Data(self.at)) {
            Ok(data) => data,
            Err(Errno::NXIO) => self.bytes,
            Err(_) => return (false, self.bytes),
        };
        if data > self.at {
            return (true, data.min(self.bytes));
        }
        let hole = seek(file, SeekFrom::Hole(self.at)).unwrap_or(self.bytes);
        // A file that is cut meanwhile is noticed when it is read.
        (
            false,
            if hole > self.at {
                hole.min(self.bytes)
            } else {
                self.bytes
            },
        )
    }

    fn hole(&mut self, mut bytes: u64) -> bool {
        while bytes > 0 {
            let part = bytes.min(Record::MOST_UNSENT.into());
            hash_zeros(&mut self.hash, part);
            (self.at, bytes) = (self.at + part, bytes - part);
            if !hand_over(
                self.chunks,
                Record::Hole(part as u32).encode().to_vec(),
                (part, 0),
            ) {
                return false;
            }
        }
        true
    }

    fn extent_data(&mut self, file: &File, end: u64) -> Result<bool, SourceError> {
        while self.at < end {
            let length = (end - self.at).min(CHUNK_BYTES as u64) as usize;
            let mut wire = Record::Data(length as u32).encode().to_vec();
            wire.resize(Record::BYTES + length, 0);
            self.fill(file, self.at, &mut wire[Record::BYTES..])?;
            if !self.data(wire) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn fill(&self, file: &File, mut at: u64, mut into: &mut [u8]) -> Result<(), SourceError> {
        while !into.is_empty() {
            match file.read_at(into, at) {
                Ok(0) => return Err(self.place.resized(at)),
                Ok(read) => {
                    at += read as u64;
                    into = &mut into[read..];
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(self.failed(source)),
            }
        }
        Ok(())
    }

    /// Hands over a record with its data.
    fn data(&mut self, wire: Vec<u8>) -> bool {
        let data = &wire[Record::BYTES..];
        self.hash.update(data);
        let content = data.len() as u64;
        self.at += content;
        hand_over(self.chunks, wire, (content, 0))
    }

    fn failed(&self, source: io::Error) -> SourceError {
        SourceError::Read {
            path: self.place.path().into(),
            at: self.at,
            source,
        }
    }
}

/// False: nobody wants the rest.
fn hand_over(
    chunks: &mpsc::Sender<Result<Chunk, SourceError>>,
    wire: Vec<u8>,
    (content, resumed): (u64, u64),
) -> bool {
    let records = Chunk::Records {
        wire: wire.into(),
        content,
        resumed,
    };
    chunks.blocking_send(Ok(records)).is_ok()
}

/// Reads what is there, or `all` that fits; 0: the end.
fn read_up_to(from: &mut impl Read, mut into: &mut [u8], all: bool) -> io::Result<usize> {
    let wanted = into.len();
    loop {
        match from.read(into) {
            Ok(read) => {
                into = &mut into[read..];
                if read == 0 || into.is_empty() || !all {
                    return Ok(wanted - into.len());
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
