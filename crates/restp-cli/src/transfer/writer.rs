//! The thread that writes what arrives. Each file is hidden until its digest has been confirmed, and gets its name in one step.

use super::agreement::Agreement;
use super::claims::Claim;
use super::copy::{Copied, Copy, CopyError};
use super::filled::{Dress, Place};
use super::folder::{self, Folder, Inside};
use super::inventory::Basis;
use super::manifest::{Entry, Kind, Manifest};
use super::part;
use super::target::{Delivery, Piece, TargetError, is_closed, is_full};
use rustix::fs::{self as system, AtFlags, Mode, Stat};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc as threads};
use tokio::sync::mpsc;

/// Writes what arrives.
pub struct Writer {
    folder: Folder,
    inside: Inside,
    manifest: Arc<Manifest>,
    peer: Vec<u8>,
    /// Its place in each folder that it fills.
    places: Vec<Option<Place>>,
    /// Folders that it has opened to their owner.
    opened: BTreeSet<usize>,
    arriving: mpsc::Receiver<Piece>,
    /// What there is of each file.
    bases: threads::Receiver<io::Result<Basis>>,
    /// Entries before this one are over, or do not come.
    over: Arc<AtomicUsize>,
    /// Let go when the last part is closed.
    _claim: Arc<Claim>,
}

/// Permissions of a folder while it is filled: its own as far as nobody else may write to it, all of its owner, and the sticky bit, which
/// has no sense in such a folder and is hardly ever set there. So a transfer that goes on knows what it has made.
fn unfinished(entry: &Entry) -> u32 {
    0o1700 | u32::from(entry.mode) & 0o755
}

/// Is it the mark of [`unfinished`], of whatever permissions? The sender may have changed them before it goes on.
fn is_unfinished(found: u32) -> bool {
    found & 0o7722 == 0o1700
}

fn is_own(found: &Stat) -> bool {
    found.st_uid == nix::unistd::geteuid().as_raw()
}

/// Is a folder that was there as one that has arrived before, and is sent so again?
fn has_arrived_read_only(found: &Stat, entry: &Entry) -> bool {
    is_own(found) && found.st_mode & 0o7777 == u32::from(entry.mode) && entry.mode & 0o200 == 0
}

impl Writer {
    /// Of what `peer` sends.
    pub fn new(
        folder: &Folder,
        (manifest, peer): (Arc<Manifest>, Vec<u8>),
        arriving: mpsc::Receiver<Piece>,
        (bases, over): (threads::Receiver<io::Result<Basis>>, Arc<AtomicUsize>),
        claim: Arc<Claim>,
    ) -> Self {
        Writer {
            folder: folder.clone(),
            inside: Inside::of(folder),
            places: manifest.entries().iter().map(|_| None).collect(),
            opened: BTreeSet::new(),
            manifest,
            peer,
            arriving,
            bases,
            over,
            _claim: claim,
        }
    }

    /// Until everything is in its place.
    ///
    /// # Errors
    /// Why it is not. A file that was in the middle is kept if the sender has just gone, and removed otherwise.
    pub fn write(mut self) -> Result<Delivery, TargetError> {
        let written = self.write_all();
        if written.is_err() {
            self.close_folders();
        }
        written
    }

    fn write_all(&mut self) -> Result<Delivery, TargetError> {
        let manifest = self.manifest.clone();
        let mut agreement = Agreement::on(&manifest);
        let (mut skipped_files, mut left_out) = (0, Vec::new());
        for (number, entry) in manifest.entries().iter().enumerate() {
            match entry.kind {
                Kind::Folder => self.make_folder(number, entry)?,
                Kind::File(_) => {
                    let copied = self.file(number)?;
                    self.over.store(number + 1, Ordering::Relaxed);
                    let Some(copied) = copied else {
                        left_out.push(number);
                        continue;
                    };
                    agreement.add(&manifest.path(number), copied.digest);
                    match copied.part {
                        Some(mut part) => {
                            let around = self.inside.around(&manifest, number)?;
                            let how = (self.folder.overwrite, self.folder.sync);
                            part.place(&around, entry, how)
                                .map_err(|error| self.failed(number, error))?;
                        }
                        None => skipped_files += 1,
                    }
                }
                Kind::Link(_) => {}
            }
        }
        // Links come last: nothing is ever written where one is.
        for (number, entry) in manifest.entries().iter().enumerate() {
            if let Kind::Link(target) = &entry.kind {
                self.link(number, entry, target)?;
            }
        }
        // Folders from the inside out, since each change within changes the time of the folder.
        for (number, entry) in manifest.entries().iter().enumerate().rev() {
            if entry.kind == Kind::Folder {
                self.dress_folder(number, entry)?;
            }
        }
        if self.folder.sync {
            system::fsync(self.folder.handle()).map_err(io::Error::from)?;
        }
        Ok(Delivery {
            digest: agreement.digest(),
            skipped_files,
            left_out,
        })
    }

    /// A new folder can be written to until everything is in it; with `--overwrite` so can one that has arrived read-only before.
    /// Otherwise one that its owner has closed stays closed.
    fn make_folder(&mut self, number: usize, entry: &Entry) -> Result<(), TargetError> {
        let around = self.inside.around(&self.manifest, number)?;
        let is_new = match system::mkdirat(&around, &entry.name, Mode::RWXU) {
            Ok(()) => true,
            Err(rustix::io::Errno::EXIST) => false,
            Err(error) => return Err(self.failed(number, error.into())),
        };
        let handle = self.inside.at(&self.manifest, number)?;
        let opens = Cell::new(false);
        let makes = |found: &Stat| {
            opens.set(!is_new && self.folder.overwrite && has_arrived_read_only(found, entry));
            is_new || opens.get() || is_own(found) && is_unfinished(found.st_mode)
        };
        let open = |handle: BorrowedFd<'_>| {
            if is_new || opens.get() {
                // A file system without permissions takes none, and has none to go on with.
                let _ = system::fchmod(handle, Mode::from_raw_mode(unfinished(entry)));
            }
        };
        let place = self.folder.filled().enter(handle.as_fd(), makes, open)?;
        if opens.get() && place.is_maker() {
            self.opened.insert(number);
        }
        self.places[number] = Some(place);
        Ok(())
    }

    /// Nothing comes any more: what was read-only is so again.
    fn close_folders(&mut self) {
        for number in (0..self.places.len()).rev() {
            let Some(place) = self.places[number].take() else {
                continue;
            };
            let mode = Mode::from_raw_mode(self.manifest.entries()[number].mode.into());
            let dress = (self.opened.contains(&number))
                .then(|| -> Dress { Box::new(move |handle| Ok(system::fchmod(handle, mode)?)) });
            // Why the transfer has failed says more.
            if let Ok(handle) = self.inside.at(&self.manifest, number) {
                place.abandon(handle.as_fd(), dress);
                let _ = self.folder.sync.then(|| system::fsync(&handle));
            }
        }
    }

    /// The permissions of a folder that was there before are its owner's, unless it is one of a transfer that was cut off. With
    /// `--overwrite` it takes those that travel; what does not travel stays, and so does another user's.
    fn dress_folder(&mut self, number: usize, entry: &Entry) -> Result<(), TargetError> {
        let handle = self.inside.at(&self.manifest, number)?;
        let found = system::fstat(&handle).map_err(io::Error::from)?;
        let Some(place) = self.places[number].take() else {
            return Ok(());
        };
        let others = match place.is_maker() || is_own(&found) && is_unfinished(found.st_mode) {
            true => Some(0),
            // Set-ID and sticky bits do not travel: it keeps those that it has.
            false => (is_own(&found) && self.folder.overwrite).then_some(found.st_mode & 0o7000),
        };
        let dress = others.map(|others| -> Dress {
            let entry = entry.clone();
            Box::new(move |handle| folder::dress(handle, &entry, others))
        });
        place.leave(handle.as_fd(), dress)?;
        if self.folder.sync {
            system::fsync(&handle).map_err(io::Error::from)?;
        }
        Ok(())
    }

    fn link(&mut self, number: usize, entry: &Entry, target: &str) -> Result<(), TargetError> {
        let around = self.inside.around(&self.manifest, number)?;
        if folder::leads_to(&around, &entry.name, target) {
            return Ok(());
        }
        let root = self.folder.handle();
        let hidden = self.part_name(number);
        // Left by a run that was killed just here.
        let _ = system::unlinkat(&root, &hidden, AtFlags::empty());
        let linked = system::symlinkat(target, &root, &hidden).map_err(io::Error::from);
        let placed = linked
            .and_then(|()| folder::date(&root, &hidden, entry.modified))
            .and_then(|()| folder::rename((&root, &hidden), (&around, &entry.name), self.folder.overwrite));
        placed.map_err(|error| {
            // It may not be there.
            let _ = system::unlinkat(&root, &hidden, AtFlags::empty());
            self.failed(number, error)
        })
    }

    fn part_name(&self, number: usize) -> String {
        part::name(part::id(&self.peer, &self.manifest.path(number)))
    }

    /// The next file, hidden still, or unchanged in its place; none where it does not come after all.
    fn file(&mut self, number: usize) -> Result<Option<Copied>, TargetError> {
        // Nobody looks what there is any more when the sender has gone.
        let basis = self.bases.recv().unwrap_or(Ok(Basis::default()));
        let compared = basis.and_then(|basis| match basis.kept {
            Some(_) => Ok((basis, Some(self.kept(number)?))),
            None => Ok((basis, None)),
        });
        let path = || self.manifest.path(number);
        let unreadable = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => TargetError::Changed(path()),
            _ => TargetError::Unreadable(path(), error),
        };
        let (basis, kept) = compared.map_err(unreadable)?;
        let folder = self.folder.clone();
        let copy = Copy::of(&folder, self.part_name(number), basis, kept);
        let mut copy = copy.map_err(|error| self.not_copied(number, error))?;
        let mut together = Vec::new();
        let claimed = loop {
            let written = match self.arriving.blocking_recv() {
                Some(Piece::Data(pieces)) => {
                    together.clear();
                    pieces.iter().for_each(|piece| together.extend_from_slice(piece));
                    copy.data(&together)
                }
                Some(Piece::Hole(bytes)) => copy.hole(bytes),
                Some(Piece::Same(bytes)) => copy.same(bytes),
                Some(Piece::End(claimed)) => break claimed,
                Some(Piece::Left) => return Ok(None),
                Some(Piece::Forget) => return Err(TargetError::CutOff),
                None => {
                    self.keep(number, copy);
                    return Err(TargetError::CutOff);
                }
            };
            if let Err(error) = written {
                if matches!(&error, CopyError::System(error) if is_full(error)) {
                    self.keep(number, copy); // who makes room goes on with it
                }
                return Err(self.not_copied(number, error));
            }
        };
        let copied = copy.end().map_err(|error| self.not_copied(number, error))?;
        if copied.digest != claimed {
            let path = self.manifest.path(number);
            return Err(match copied.is_changed {
                true => TargetError::Changed(path),
                false => TargetError::Mismatch(path),
            });
        }
        Ok(Some(copied))
    }

    /// Somebody may go on with this part of a file.
    fn keep(&self, number: usize, copy: Copy<'_>) {
        if !self.folder.keep.is_zero() {
            copy.keep();
            // Those that are too many are removed in time in any case.
            let _ = part::bound(&self.folder.handle(), &self.part_name(number));
        }
    }

    /// What has its name, opened when its turn comes: many files may be looked at before.
    fn kept(&mut self, number: usize) -> io::Result<File> {
        let around = self.inside.around(&self.manifest, number)?;
        folder::read(&around, &self.manifest.entries()[number].name)
    }

    fn not_copied(&self, number: usize, error: CopyError) -> TargetError {
        match error {
            CopyError::Differs => TargetError::Exists(self.manifest.path(number)),
            CopyError::NotTold => TargetError::NotTold,
            CopyError::System(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                TargetError::Changed(self.manifest.path(number))
            }
            CopyError::System(error) => TargetError::WriteTo(self.manifest.path(number), error),
        }
    }

    /// What is wrong with the place of an entry.
    fn failed(&mut self, number: usize, error: io::Error) -> TargetError {
        let path = self.manifest.path(number);
        match (error.kind(), self.manifest.entries()[number].parent) {
            (io::ErrorKind::AlreadyExists, _) => TargetError::Exists(path),
            (io::ErrorKind::IsADirectory, _) => TargetError::Folder(path),
            (_, Some(parent)) if is_closed(&error) => self.closed(parent),
            _ => TargetError::WriteTo(path, error),
        }
    }

    /// Entry `number` is a folder that may not be written to.
    fn closed(&mut self, number: usize) -> TargetError {
        let path = self.manifest.path(number);
        let found = self.inside.at(&self.manifest, number).map(system::fstat);
        let opens = |found: &Stat| has_arrived_read_only(found, &self.manifest.entries()[number]);
        match found {
            Ok(Ok(found)) if !self.folder.overwrite && opens(&found) => TargetError::ReadOnly(path),
            _ => TargetError::Closed(path),
        }
    }
}
