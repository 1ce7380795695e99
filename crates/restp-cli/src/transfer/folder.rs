//! The receiver's folder and the folders in it, by handles: each is opened from the one that holds it, by a name that holds no path, and
//! links are never followed. So whoever changes the folder meanwhile leads nothing out of it.

use super::claims::Claims;
use super::filled::Filled;
use super::manifest::{Entry, Manifest, Modified};
use super::part;
use rustix::fs::{self, Stat};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags, Timespec, Timestamps, UTIME_OMIT};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Where received files go, and what may happen there.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
    handle: Arc<OwnedFd>,
    /// May what exists be replaced?
    pub overwrite: bool,
    /// Is everything written through to the disk?
    pub sync: bool,
    /// Is everybody let in?
    pub open_to_all: bool,
    /// Is it for one transfer at a time?
    pub takes_one: bool,
    /// May names begin with a dot?
    pub dotfiles: bool,
    /// How long parts are kept for who resumes.
    pub keep: Duration,
    claims: Claims,
    filled: Filled,
}

impl Folder {
    /// The folder `path`, which is made where only its last part is missing.
    ///
    /// # Errors
    /// When it is no folder, or nothing can be created in it.
    pub fn open(path: &Path, overwrite: bool, sync: bool) -> io::Result<Self> {
        if let Err(error) = std::fs::create_dir(path)
            && error.kind() != io::ErrorKind::AlreadyExists
        {
            return Err(error);
        }
        let path = std::fs::canonicalize(path)?;
        let handle = Arc::new(fs::open(&path, FOLDER, Mode::empty())?);
        tempfile::tempfile_in(&path)?;
        Ok(Folder {
            path,
            handle,
            overwrite,
            sync,
            open_to_all: false,
            takes_one: false,
            dotfiles: false,
            keep: Duration::ZERO,
            claims: Claims::default(),
            filled: Filled::default(),
        })
    }

    /// Its full path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes what nobody has gone on with for longer than it is kept, as of `now` in Unix time; how many files.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn clean(&self, now: u64) -> io::Result<usize> {
        part::clean(&self.handle, self.keep, now)
    }

    /// The transfers into it.
    pub fn claims(&self) -> &Claims {
        &self.claims
    }

    /// Folders within it that are filled.
    pub fn filled(&self) -> &Filled {
        &self.filled
    }

    /// Its handle.
    pub fn handle(&self) -> Arc<OwnedFd> {
        self.handle.clone()
    }
}

/// How folders are opened.
pub const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// The folders of a transfer below the receiver's; the last one stays open, since files follow each other in one folder.
pub struct Inside {
    root: Arc<OwnedFd>,
    last: Option<(usize, Arc<OwnedFd>)>,
}

impl Inside {
    /// Below `folder`.
    pub fn of(folder: &Folder) -> Self {
        Inside {
            root: folder.handle(),
            last: None,
        }
    }

    /// The folder that holds entry `number`.
    ///
    /// # Errors
    /// When one on the way is none, or a link.
    pub fn around(&mut self, manifest: &Manifest, number: usize) -> io::Result<Arc<OwnedFd>> {
        match manifest.entries()[number].parent {
            None => Ok(self.root.clone()),
            Some(parent) => self.at(manifest, parent),
        }
    }

    /// The folder that is entry `number`.
    ///
    /// # Errors
    /// As [`Inside::around`].
    pub fn at(&mut self, manifest: &Manifest, number: usize) -> io::Result<Arc<OwnedFd>> {
        if let Some((_, handle)) = self.last.as_ref().filter(|(last, _)| *last == number) {
            return Ok(handle.clone());
        }
        let mut lineage: Vec<_> = manifest.lineage(number).collect();
        lineage.reverse();
        let mut handle = self.root.clone();
        for step in lineage {
            let name = &manifest.entries()[step].name;
            handle = Arc::new(fs::openat(&handle, name, FOLDER, Mode::empty())?);
        }
        self.last = Some((number, handle.clone()));
        Ok(handle)
    }
}

/// What has a name: the link itself, where it is one.
///
/// # Errors
/// When the system does not say.
pub fn find(folder: impl AsFd, name: &str) -> io::Result<Option<Stat>> {
    match fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => Ok(Some(found)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Opens a file for reading; of what is none nothing can be read.
///
/// # Errors
/// When it cannot be opened.
pub fn read(folder: impl AsFd, name: &str) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(fs::openat(folder, name, flags, Mode::empty())?.into())
}

/// Of what kind something is.
pub fn kind(found: &Stat) -> FileType {
    FileType::from_raw_mode(found.st_mode)
}

/// Does the link `name` lead to `target` already?
pub fn leads_to(folder: impl AsFd, name: &str, target: &str) -> bool {
    fs::readlinkat(folder, name, Vec::new()).is_ok_and(|there| there.to_bytes() == target.as_bytes())
}

/// Renames in one step; unless `overwrite`, nothing is replaced.
///
/// # Errors
/// `AlreadyExists` when something has the name.
pub fn rename(
    (from, old): (impl AsFd + Copy, &str),
    (to, new): (impl AsFd + Copy, &str),
    overwrite: bool,
) -> io::Result<()> {
    if overwrite {
        return Ok(fs::renameat(from, old, to, new)?);
    }
    match fs::renameat_with(from, old, to, new, RenameFlags::NOREPLACE) {
        // A file system that has no such call has links, which replace nothing either.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
            fs::linkat(from, old, to, new, AtFlags::empty())?;
            Ok(fs::unlinkat(from, old, AtFlags::empty())?)
        }
        renamed => Ok(renamed?),
    }
}

/// Gives an open file or folder the permissions and time of `entry`, and of permissions also `others`, which do not travel. Where a service
/// may not set set-ID bits (systemd's `RestrictSUIDSGID`), what has them keeps its permissions.
///
/// # Errors
/// When the system refuses.
pub fn dress(file: impl AsFd + Copy, entry: &Entry, others: u32) -> io::Result<()> {
    let wanted = u32::from(entry.mode) | others;
    if fs::fstat(file)?.st_mode & 0o7777 != wanted {
        match fs::fchmod(file, Mode::from_raw_mode(wanted)) {
            Err(Errno::PERM) if others & 0o6000 != 0 => {}
            changed => changed?,
        }
    }
    Ok(fs::futimens(file, &times(entry.modified))?)
}

/// Gives it the time alone; of a link its own.
///
/// # Errors
/// When the system refuses.
pub fn date(folder: impl AsFd, name: &str, modified: Modified) -> io::Result<()> {
    Ok(fs::utimensat(
        folder,
        name,
        &times(modified),
        AtFlags::SYMLINK_NOFOLLOW,
    )?)
}

fn times(modified: Modified) -> Timestamps {
    Timestamps {
        last_access: Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_OMIT,
        },
        last_modification: Timespec {
            tv_sec: modified.seconds,
            tv_nsec: modified.nanoseconds.into(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_part_of_a_folder_is_made() {
        let dir = tempfile::tempdir().expect("a folder");
        let inbox = dir.path().join("inbox");
        for _ in 0..2 {
            Folder::open(&inbox, false, false).expect("opens");
            assert_eq!(std::fs::read_dir(&inbox).expect("a folder").count(), 0);
        }
        let error =
            Folder::open(&dir.path().join("missing/inbox"), false, false).expect_err("its parent is missing");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
