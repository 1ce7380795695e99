//! A pack of a store: chunks behind each other in one file, and a line for each in another.

use restp_rivals::itp::manifest::DIGEST_BYTES;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A pack is no larger: offsets in it have four bytes.
pub(super) const MOST_PACK: u64 = (4 << 30) - (1 << 20);
/// A chunk weighs at least this, however short: what is remembered of it takes a tenth of that in memory.
pub(super) const LEAST_WEIGHT: u64 = 512;
/// Bytes of a line of a list: digest, offset, length.
pub(super) const LINE_BYTES: usize = DIGEST_BYTES + 8;
/// Longest chunk, as UDP carries it.
pub(super) const MOST_CHUNK: u32 = 65_507;

/// Where a chunk is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub pack: u32,
    pub offset: u32,
    pub length: u32,
    /// It was what its digest says since the start.
    pub is_known: bool,
}

/// A pack that is open.
#[derive(Debug)]
pub(super) struct Pack {
    pub data: File,
    pub list: File,
    pub bytes: u64,
    pub keys: Vec<u64>,
    pub used: u64,
    pub touched: Option<SystemTime>,
}

/// The file of pack `number` that holds this `kind`: chunks (`pack`) or lines (`list`).
pub(super) fn path(folder: &Path, number: u32, kind: &str) -> PathBuf {
    folder.join(format!("{number:08x}.{kind}"))
}

/// The first bytes of a digest.
pub(super) fn key_of(name: &[u8]) -> u64 {
    name.first_chunk().map_or(0, |first| u64::from_be_bytes(*first))
}

impl Pack {
    fn of(data: File, list: File, bytes: u64, used: u64) -> Self {
        Pack {
            data,
            list,
            bytes,
            keys: Vec::new(),
            used,
            touched: None,
        }
    }

    /// What it takes of the store: its bytes on disk with its list, and what is remembered of it.
    pub fn weight(&self) -> u64 {
        let lines = self.keys.len() as u64;
        (self.bytes + lines * LINE_BYTES as u64).max(lines * LEAST_WEIGHT)
    }

    /// An empty one.
    ///
    /// # Errors
    /// When the disk does not take it.
    pub fn create(folder: &Path, number: u32, used: u64) -> io::Result<Self> {
        let open = |kind| {
            let path = path(folder, number, kind);
            (OpenOptions::new().create(true).truncate(true))
                .read(true)
                .write(true)
                .open(path)
        };
        Ok(Pack::of(open("pack")?, open("list")?, 0, used))
    }

    /// One from before, and what its lines say, as far as that makes sense.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn load(folder: &Path, number: u32) -> io::Result<(Self, Vec<(u64, Place)>)> {
        let open = |kind| {
            OpenOptions::new()
                .read(true)
                .write(true)
                .open(path(folder, number, kind))
        };
        let (data, mut list) = (open("pack")?, open("list")?);
        let bytes = data.metadata()?.len();
        let mut lines = Vec::new();
        (&mut list)
            .take(MOST_PACK / LEAST_WEIGHT * LINE_BYTES as u64)
            .read_to_end(&mut lines)?;
        let (lines, _) = lines.as_chunks::<LINE_BYTES>();
        let mut places = Vec::new();
        for line in lines {
            let number_at =
                |at: usize| u32::from_be_bytes([line[at], line[at + 1], line[at + 2], line[at + 3]]);
            let (offset, length) = (number_at(DIGEST_BYTES), number_at(DIGEST_BYTES + 4));
            if length <= MOST_CHUNK && u64::from(offset) + u64::from(length) <= bytes {
                let place = Place {
                    pack: number,
                    offset,
                    length,
                    is_known: false,
                };
                places.push((key_of(line), place));
            }
        }
        Ok((Pack::of(data, list, bytes, 0), places))
    }
}
