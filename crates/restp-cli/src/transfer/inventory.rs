//! What the receiver has of each file already, read back from the disk: it tells the sender the digests of the chunks, and nothing that it
//! has not just read.

use super::folder::{self, Folder, Inside};
use super::manifest::{Entry, Kind, Manifest};
use super::message::{Answer, MAX_BODY_BYTES};
use super::part;
use super::{CHUNK_BYTES, Digest};
use rustix::fs::{FileType, Stat};
use sha2::{Digest as _, Sha256};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError};
use tokio::sync::mpsc;

/// What there is of a file.
#[derive(Debug)]
pub enum Basis {
    /// Nothing.
    Nothing,
    /// A part of an earlier transfer: so many bytes were told of.
    Part(u64),
    /// A file in its place, of which so many bytes were told of.
    Kept(File, u64),
}

/// Looks what there is, file by file.
pub struct Inventory {
    folder: Folder,
    inside: Inside,
    manifest: Arc<Manifest>,
    peer: Vec<u8>,
    /// To the sender.
    answers: mpsc::Sender<Answer>,
    /// Files of which nothing is there, not told yet.
    nothing: u32,
}

/// Why it ends early: nobody wants to know any more, or the disk fails. The transfer goes on without.
type Stop = Option<io::Error>;

impl Inventory {
    /// Of what `peer` sends into `folder`.
    pub fn of(
        folder: &Folder,
        manifest: Arc<Manifest>,
        peer: Vec<u8>,
        answers: mpsc::Sender<Answer>,
    ) -> Self {
        Inventory {
            folder: folder.clone(),
            inside: Inside::of(folder),
            manifest,
            peer,
            answers,
            nothing: 0,
        }
    }

    /// Tells the sender by digests and the writer by `bases`, in the order of the manifest.
    pub fn tell(mut self, bases: &SyncSender<Basis>) {
        // Who does not hear the rest has gone, or hears from the writer what is wrong.
        let _ = self.tell_all(bases);
    }

    fn tell_all(&mut self, bases: &SyncSender<Basis>) -> Result<(), Stop> {
        let manifest = self.manifest.clone();
        for (number, bytes) in manifest.files() {
            let (basis, file, has) = match self.find(number, bytes)? {
                Some((file, has, true)) => (Basis::Part(has), Some(file), has),
                Some((file, has, false)) => {
                    (Basis::Kept(file.try_clone().map_err(Some)?, has), Some(file), has)
                }
                None => (Basis::Nothing, None, 0),
            };
            // The writer may wait for data of files that the sender waits to be told of.
            if let Err(TrySendError::Full(basis)) = bases.try_send(basis) {
                self.flush()?;
                bases.send(basis).map_err(|_| None)?;
            }
            match file {
                Some(file) if has > 0 => self.digests(&file, has)?,
                _ => self.nothing += 1,
            }
            // While the sender may be waiting for it, and in few answers otherwise.
            if self.nothing >= RUN || has > 0 {
                self.flush()?;
            }
            if self.nothing > 0 && self.answers.capacity() == self.answers.max_capacity() {
                self.flush()?;
            }
        }
        self.flush()
    }

    /// A part, or what has the name already; how much of it counts, and whether it is a part. What may not be replaced comes first:
    /// it is the same or an error.
    fn find(&mut self, number: usize, bytes: Option<u64>) -> Result<Option<(File, u64, bool)>, Stop> {
        let name = part::name(part::id(&self.peer, &self.manifest.path(number)));
        let part = part::find(&self.folder.handle(), &name).map_err(Some)?;
        let kept = match &part {
            Some(_) if self.folder.overwrite => None,
            _ => self.kept(number)?,
        };
        let is_part = kept.is_none();
        let Some(file) = kept.or(part) else {
            return Ok(None);
        };
        let has = file
            .metadata()
            .map_err(Some)?
            .len()
            .min(bytes.unwrap_or(u64::MAX));
        Ok(Some((file, has, is_part)))
    }

    /// What has its name already.
    fn kept(&mut self, number: usize) -> Result<Option<File>, Stop> {
        let entry = &self.manifest.entries()[number];
        // Its folder may not be there yet.
        let Ok(around) = self.inside.around(&self.manifest, number) else {
            return Ok(None);
        };
        match folder::find(&around, &entry.name).map_err(Some)? {
            Some(found) if may_compare(&self.folder, entry, &found) => {
                Ok(Some(folder::read(&around, &entry.name).map_err(Some)?))
            }
            _ => Ok(None),
        }
    }

    fn digests(&mut self, file: &File, has: u64) -> Result<(), Stop> {
        self.flush()?;
        self.say(Answer::Has(has))?;
        let mut digests = Vec::new();
        let mut chunk = vec![0; CHUNK_BYTES];
        for begin in (0..has).step_by(CHUNK_BYTES) {
            let length = (has - begin).min(CHUNK_BYTES as u64) as usize;
            file.read_exact_at(&mut chunk[..length], begin).map_err(Some)?;
            digests.push(Digest::from(Sha256::digest(&chunk[..length])));
            if digests.len() == MAX_BODY_BYTES / size_of::<Digest>() {
                self.say(Answer::Digests(std::mem::take(&mut digests)))?;
            }
        }
        match digests.is_empty() {
            true => Ok(()),
            false => self.say(Answer::Digests(digests)),
        }
    }

    fn flush(&mut self) -> Result<(), Stop> {
        match std::mem::take(&mut self.nothing) {
            0 => Ok(()),
            files => self.say(Answer::Nothing(files)),
        }
    }

    fn say(&self, answer: Answer) -> Result<(), Stop> {
        self.answers.blocking_send(answer).map_err(|_| None)
    }
}

/// Files of which nothing is there that one answer tells of at most.
const RUN: u32 = 256;

/// May what has the name of `entry` be compared with it? Digests tell much about what is in a file: to everybody they are told of files
/// only whose time of change he knows to the nanosecond, as who has sent them does.
pub fn may_compare(folder: &Folder, entry: &Entry, found: &Stat) -> bool {
    let same_time = i128::from(found.st_mtime) == i128::from(entry.modified.seconds)
        && i128::from(found.st_mtime_nsec) == i128::from(entry.modified.nanoseconds);
    let same_size =
        matches!(entry.kind, Kind::File(Some(bytes)) if i128::from(found.st_size) == i128::from(bytes));
    folder::kind(found) == FileType::RegularFile
        && (same_size || folder.overwrite)
        && (same_time || !folder.open_to_all)
}
