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
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError};
use tokio::sync::mpsc;

/// What there is of a file, as the sender is told.
#[derive(Clone, Copy, Debug, Default)]
pub struct Basis {
    /// Bytes.
    pub has: u64,
    /// The first of them, of a part of an earlier transfer.
    pub begun: u64,
    /// There is a file in its place, and those behind are of it.
    pub kept: Option<State>,
}

/// Which file it is, and as of when: the same one is unchanged where the disk tells times that finely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    file: (u64, u64),
    bytes: u64,
    modified: (i64, i64),
}

impl State {
    /// As it is now.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn of(file: &File) -> io::Result<Self> {
        let found = file.metadata()?;
        Ok(State {
            file: (found.dev(), found.ino()),
            bytes: found.len(),
            modified: (found.mtime(), found.mtime_nsec()),
        })
    }
}

/// What is read back for it.
#[derive(Default)]
struct There {
    basis: Basis,
    part: Option<File>,
    kept: Option<File>,
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
    /// Entries before this one are over, or do not come: nobody wants to know what is there of them.
    over: Arc<AtomicUsize>,
}

/// Nobody wants to know any more.
struct Gone;

impl Inventory {
    /// Of what `peer` sends into `folder`.
    pub fn of(
        folder: &Folder,
        manifest: Arc<Manifest>,
        peer: Vec<u8>,
        (answers, over): (mpsc::Sender<Answer>, Arc<AtomicUsize>),
    ) -> Self {
        Inventory {
            folder: folder.clone(),
            inside: Inside::of(folder),
            manifest,
            peer,
            answers,
            nothing: 0,
            over,
        }
    }

    /// Tells the sender by digests and the writer by `bases`, in the order of the manifest.
    pub fn tell(mut self, bases: &SyncSender<io::Result<Basis>>) {
        // Who does not hear the rest has gone, or hears from the writer what is wrong.
        let _ = self.tell_all(bases);
    }

    fn tell_all(&mut self, bases: &SyncSender<io::Result<Basis>>) -> Result<(), Gone> {
        let manifest = self.manifest.clone();
        for (number, bytes) in manifest.files() {
            // The sender waits to hear of each file: of what cannot be read nothing is there, and the writer says why.
            let (basis, there) = match self.find(number, bytes) {
                Ok(there) => (Ok(there.basis), there),
                Err(error) => (Err(error), There::default()),
            };
            let has = there.basis.has;
            // The writer may wait for data of files that the sender waits to be told of.
            if let Err(TrySendError::Full(basis)) = bases.try_send(basis) {
                self.flush()?;
                bases.send(basis).map_err(|_| Gone)?;
            }
            match has {
                0 => self.nothing += 1,
                _ => self.digests(number, &there)?,
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

    /// A part, and behind it what has the name already. What may not be replaced counts alone: it is the same or an error.
    fn find(&mut self, number: usize, bytes: Option<u64>) -> io::Result<There> {
        let kept = self.kept(number)?;
        let part = match &kept {
            Some(_) if !self.folder.overwrite => None,
            _ => {
                let name = part::name(part::id(&self.peer, &self.manifest.path(number)));
                part::find(&self.folder.handle(), &name)?
            }
        };
        let length = |file: &Option<File>| match file {
            Some(file) => Ok::<_, io::Error>(file.metadata()?.len().min(bytes.unwrap_or(u64::MAX))),
            None => Ok(0),
        };
        let state = kept.as_ref().map(State::of).transpose()?;
        let (begun, whole) = (length(&part)?, length(&kept)?);
        let state = state.filter(|_| part.is_none() || whole > begun);
        // No chunk is of both.
        let begun = if state.is_some() {
            begun - begun % CHUNK_BYTES as u64
        } else {
            begun
        };
        let basis = Basis {
            has: begun.max(whole),
            begun,
            kept: state,
        };
        Ok(There { basis, part, kept })
    }

    /// What has its name already.
    fn kept(&mut self, number: usize) -> io::Result<Option<File>> {
        let entry = &self.manifest.entries()[number];
        let around = match self.inside.around(&self.manifest, number) {
            // Its folder is not there yet.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            around => around?,
        };
        match folder::find(&around, &entry.name)? {
            Some(found) if may_compare(&self.folder, entry, &found) => {
                match folder::read(&around, &entry.name) {
                    // What cannot be read can be replaced.
                    Err(error)
                        if self.folder.overwrite && error.kind() == io::ErrorKind::PermissionDenied =>
                    {
                        Ok(None)
                    }
                    file => file.map(Some),
                }
            }
            _ => Ok(None),
        }
    }

    fn digests(&mut self, number: usize, there: &There) -> Result<(), Gone> {
        let has = there.basis.has;
        self.flush()?;
        self.say(Answer::Has(has))?;
        let mut digests = Vec::new();
        let mut chunk = vec![0; CHUNK_BYTES];
        for begin in (0..has).step_by(CHUNK_BYTES) {
            let length = (has - begin).min(CHUNK_BYTES as u64) as usize;
            // What cannot be read, or was cut meanwhile, is sent: nothing has this digest. Nor has what nobody asks for any more, of
            // which the sender only counts them.
            let digest = if self.over.load(Ordering::Relaxed) > number {
                None
            } else {
                let read = there.read(&mut chunk[..length], begin);
                read.ok().map(|()| Digest::from(Sha256::digest(&chunk[..length])))
            };
            digests.push(digest.unwrap_or_default());
            if digests.len() == MAX_BODY_BYTES / size_of::<Digest>() {
                self.say(Answer::Digests(std::mem::take(&mut digests)))?;
            }
        }
        match digests.is_empty() {
            true => Ok(()),
            false => self.say(Answer::Digests(digests)),
        }
    }

    fn flush(&mut self) -> Result<(), Gone> {
        match std::mem::take(&mut self.nothing) {
            0 => Ok(()),
            files => self.say(Answer::Nothing(files)),
        }
    }

    fn say(&self, answer: Answer) -> Result<(), Gone> {
        self.answers.blocking_send(answer).map_err(|_| Gone)
    }
}

impl There {
    fn read(&self, chunk: &mut [u8], at: u64) -> io::Result<()> {
        let file = if at < self.basis.begun {
            &self.part
        } else {
            &self.kept
        };
        file.as_ref()
            .ok_or(io::ErrorKind::NotFound)?
            .read_exact_at(chunk, at)
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

#[cfg(test)]
mod tests {
    use super::super::manifest::Modified;
    use super::*;
    use std::io::Write;

    fn inventory(folder: &Folder, names: &[&str]) -> (Inventory, mpsc::Receiver<Answer>) {
        let entry = |name: &&str| Entry {
            parent: None,
            name: (*name).into(),
            mode: 0o600,
            modified: Modified::default(),
            kind: Kind::File(Some(1)),
        };
        let manifest = Manifest::new(names.iter().map(entry).collect()).expect("good");
        let (tell, told) = mpsc::channel(8);
        (
            Inventory::of(
                folder,
                Arc::new(manifest),
                b"peer".to_vec(),
                (tell, Arc::default()),
            ),
            told,
        )
    }

    /// The sender waits to hear of each file.
    #[test]
    fn files_that_cannot_be_opened_are_told_of_too() {
        let dir = tempfile::tempdir().expect("a folder");
        let folder = Folder::open(dir.path(), false, false).expect("opens");
        let part = part::name(part::id(b"peer", "a"));
        let _socket = std::os::unix::net::UnixListener::bind(dir.path().join(part)).expect("bound");
        let (inventory, mut answers) = inventory(&folder, &["a", "b"]);
        let (told, bases) = std::sync::mpsc::sync_channel(8);
        inventory.tell(&told);
        assert_eq!(bases.try_iter().count(), 2);
        let mut files = 0;
        while let Ok(answer) = answers.try_recv() {
            let Answer::Nothing(more) = answer else {
                panic!("{answer:?}")
            };
            files += more;
        }
        assert_eq!(files, 2);
    }

    #[test]
    fn what_cannot_be_looked_at_is_not_taken_for_nothing() {
        let dir = tempfile::tempdir().expect("a folder");
        let folder = Folder::open(dir.path(), false, false).expect("opens");
        std::os::unix::fs::symlink("elsewhere", dir.path().join("d")).expect("linked");
        let entry = |parent, name: &str, kind| Entry {
            parent,
            name: name.into(),
            mode: 0o700,
            modified: Modified::default(),
            kind,
        };
        let entries = vec![
            entry(None, "d", Kind::Folder),
            entry(Some(0), "f", Kind::File(Some(1))),
        ];
        let manifest = Arc::new(Manifest::new(entries).expect("good"));
        let (tell, mut answers) = mpsc::channel(8);
        let (told, bases) = std::sync::mpsc::sync_channel(8);
        Inventory::of(&folder, manifest, b"peer".to_vec(), (tell, Arc::default())).tell(&told);
        assert!(matches!(bases.try_recv(), Ok(Err(_))), "a link is no folder");
        assert_eq!(answers.try_recv(), Ok(Answer::Nothing(1)));
    }

    #[test]
    fn a_file_that_is_cut_while_it_is_read_back_is_told_of_to_its_end() {
        let dir = tempfile::tempdir().expect("a folder");
        let folder = Folder::open(dir.path(), false, false).expect("opens");
        let (mut inventory, mut answers) = inventory(&folder, &["a"]);
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(&[7; CHUNK_BYTES]).expect("written");
        let has = CHUNK_BYTES as u64 + 1;
        let there = There {
            basis: Basis {
                has,
                begun: has,
                kept: None,
            },
            part: Some(file),
            kept: None,
        };
        assert!(inventory.digests(0, &there).is_ok());
        // Of a file that does not come after all they are only counted.
        let mut over = inventory;
        over.over.store(1, Ordering::Relaxed);
        assert!(over.digests(0, &there).is_ok());
        let first = Digest::from(Sha256::digest([7; CHUNK_BYTES]));
        assert_eq!(answers.try_recv(), Ok(Answer::Has(has)));
        assert_eq!(
            answers.try_recv(),
            Ok(Answer::Digests(vec![first, Digest::default()]))
        );
        assert_eq!(answers.try_recv(), Ok(Answer::Has(has)));
        assert_eq!(
            answers.try_recv(),
            Ok(Answer::Digests(vec![Digest::default(); 2]))
        );
    }
}
