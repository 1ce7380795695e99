//! Files on their way: hidden in the receiver's folder, under a name that follows from who sends what, so that the same transfer finds
//! again what it has.

use super::claims::Id;
use super::folder::{FOLDER, dress, rename};
use super::manifest::Entry;
use super::name::TEMPORARY_PREFIX;
use rustix::fs::{self, AtFlags, FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::time::Duration;

const SUFFIX: &str = ".part";

/// Bytes of an id that tell who sends; the others, what.
const PEER_BYTES: usize = 8;

/// Parts that one sender may leave behind: as many as transfers run at once.
const MAX_KEPT: usize = 64;

/// What `peer` sends as `path`.
pub fn id(peer: &[u8], path: &str) -> Id {
    let mut id = Id::default();
    let (who, what) = id.split_at_mut(PEER_BYTES);
    who.copy_from_slice(&Sha256::digest(peer)[..who.len()]);
    what.copy_from_slice(&Sha256::digest(path)[..what.len()]);
    id
}

/// The hidden name of what has this id.
pub fn name(id: Id) -> String {
    format!("{TEMPORARY_PREFIX}{}{SUFFIX}", super::hex(&id))
}

const FLAGS: OFlags = OFlags::NOFOLLOW.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK);

/// What there is of a file, for reading.
///
/// # Errors
/// When the system does not say.
pub fn find(folder: &OwnedFd, name: &str) -> io::Result<Option<File>> {
    match fs::openat(folder, name, OFlags::RDONLY | FLAGS, Mode::empty()) {
        Ok(file) => Ok(Some(File::from(file)).filter(is_own)),
        Err(Errno::NOENT | Errno::LOOP) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The part with this name, or a new one, and a lock on it. None: it was removed meanwhile.
fn open(folder: &OwnedFd, name: &str) -> io::Result<Option<File>> {
    let opened = match find(folder, name)? {
        Some(found) => {
            // Nobody writes it; NFS locks exclusively only what is open for writing.
            fs::flock(&found, FlockOperation::NonBlockingLockShared)?;
            // It has others where the end came just before it got its name.
            fs::fchmod(&found, Mode::RUSR | Mode::WUSR)?;
            drop(found);
            fs::openat(folder, name, OFlags::RDWR | FLAGS, Mode::empty())
        }
        None => {
            // Whatever has the name is no part.
            let _ = fs::unlinkat(folder, name, AtFlags::empty());
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | FLAGS;
            fs::openat(folder, name, flags, Mode::RUSR | Mode::WUSR)
        }
    };
    let file = match opened {
        Ok(file) => File::from(file),
        Err(Errno::NOENT) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    fs::flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    if fs::fstat(&file)?.st_nlink == 0 {
        return Ok(None);
    }
    // It may have been changed between the two looks.
    if !is_own(&file) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    Ok(Some(file))
}

/// A regular file of this user, which has no second name that would be written to as well.
fn is_own(file: &File) -> bool {
    let own = nix::unistd::geteuid().as_raw();
    file.metadata()
        .is_ok_and(|found| found.is_file() && found.uid() == own && found.nlink() == 1)
}

/// A file that is being written. Dropped before it gets its own name, it is removed unless it is to be kept.
#[derive(Debug)]
pub struct Part {
    folder: Arc<OwnedFd>,
    name: String,
    file: File,
    leaves: bool,
}

impl Part {
    /// The one with this name, or a new one, readable for its owner alone until it is whole.
    ///
    /// # Errors
    /// When it cannot be opened, or another process writes it.
    pub fn open(folder: Arc<OwnedFd>, name: String) -> io::Result<Self> {
        // Who cleans may remove it between two looks: the next finds none.
        let file = match open(&folder, &name)? {
            Some(file) => file,
            None => open(&folder, &name)?.ok_or_else(|| {
                io::Error::new(io::ErrorKind::NotFound, "the folder it goes to has been removed")
            })?,
        };
        Ok(Part {
            folder,
            name,
            file,
            leaves: true,
        })
    }

    /// Its bytes.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Leaves it for who goes on with the transfer.
    pub fn keep(mut self) {
        self.leaves = false;
    }

    /// Gives it the name of `entry` in `to`, in one step, with its permissions and time. These it gets last: with them it looks old, and
    /// its owner may not be let write to it.
    ///
    /// # Errors
    /// `AlreadyExists` when that is taken, or the system refuses; it is a part still, unless only the rest could not be synced.
    pub fn place(&mut self, to: &OwnedFd, entry: &Entry, (overwrite, sync): (bool, bool)) -> io::Result<()> {
        if sync {
            self.file.sync_all()?;
        } else {
            // A file system over a network may say only now that there is no room.
            nix::unistd::close(self.file.try_clone()?)?;
        }
        dress(&self.file, entry, 0)?;
        rename((&self.folder, &self.name), (to, &entry.name), overwrite)?;
        self.leaves = false;
        if sync {
            self.file.sync_all()?;
            fs::fsync(to)?;
        }
        Ok(())
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if self.leaves {
            // It may be gone already.
            let _ = fs::unlinkat(&self.folder, &self.name, AtFlags::empty());
        }
    }
}

/// Parts whose names begin so, and when they were last written.
fn list(folder: &OwnedFd, beginning: &str) -> io::Result<Vec<(u64, String)>> {
    let mut parts = Vec::new();
    // A handle of its own, so that its place in the list is its own.
    let list = fs::openat(folder, ".", FOLDER, Mode::empty())?;
    for entry in fs::Dir::new(list)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().to_str() else {
            continue;
        };
        let is_part = name.starts_with(beginning) && name.ends_with(SUFFIX);
        if !is_part || entry.file_type() == FileType::Directory {
            continue;
        }
        // Another user's, in a folder that is shared, is for him to remove.
        if let Ok(Some(file)) = find(folder, name) {
            let written = file.metadata()?.mtime();
            parts.push((u64::try_from(written).unwrap_or(0), name.to_owned()));
        }
    }
    Ok(parts)
}

/// Removes a part unless somebody writes it.
fn remove(folder: &OwnedFd, name: &str) -> io::Result<bool> {
    let Some(file) = find(folder, name)? else {
        return Ok(false);
    };
    let is_free = fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
    if is_free {
        fs::unlinkat(folder, name, AtFlags::empty())?;
    }
    Ok(is_free)
}

/// Removes the oldest parts of who has left the one of this name, where there are too many.
///
/// # Errors
/// When the folder cannot be read.
pub fn bound(folder: &OwnedFd, name: &str) -> io::Result<()> {
    let sender = TEMPORARY_PREFIX.len() + 2 * PEER_BYTES;
    let mut parts = list(folder, name.get(..sender).unwrap_or(name))?;
    parts.sort();
    for (_, oldest) in &parts[..parts.len().saturating_sub(MAX_KEPT)] {
        remove(folder, oldest)?;
    }
    Ok(())
}

/// Removes parts that nobody writes and nobody has written for longer than `keep`, as of `now` in Unix time; how many.
///
/// # Errors
/// When the folder cannot be read.
pub fn clean(folder: &OwnedFd, keep: Duration, now: u64) -> io::Result<usize> {
    let mut removed = 0;
    for (written, name) in list(folder, TEMPORARY_PREFIX)? {
        let is_old = now.saturating_sub(written) >= keep.as_secs();
        removed += usize::from(is_old && remove(folder, &name)?);
    }
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn handle(dir: &std::path::Path) -> Arc<OwnedFd> {
        Arc::new(fs::open(dir, FOLDER, Mode::empty()).expect("opens"))
    }

    #[test]
    fn a_part_belongs_to_one_sender_and_one_path() {
        let names =
            [("a", "bc"), ("ab", "c"), ("a", "c")].map(|(peer, path)| name(id(peer.as_bytes(), path)));
        assert!(names[0] != names[1] && names[1] != names[2] && names[0] != names[2]);
        assert!(names[0].starts_with(".restp-") && names[0].ends_with(".part"));
    }

    #[test]
    fn who_leaves_many_parts_loses_his_oldest() {
        let dir = tempfile::tempdir().expect("a folder");
        let folder = handle(dir.path());
        let written = |peer: &[u8], number: u64| {
            let name = name(id(peer, &number.to_string()));
            let file = File::create(dir.path().join(&name)).expect("created");
            let time = std::time::UNIX_EPOCH + Duration::from_secs(number);
            file.set_modified(time).expect("dated");
            name
        };
        let others = written(b"other", 0);
        let parts: Vec<_> = (1..=MAX_KEPT as u64 + 3).map(|n| written(b"peer", n)).collect();
        let busy = Part::open(folder.clone(), parts[1].clone()).expect("opens");
        bound(&folder, &parts[9]).expect("bounded");
        let there = |name: &String| dir.path().join(name).exists();
        let gone: Vec<_> = (0..parts.len()).filter(|n| !there(&parts[*n])).collect();
        assert_eq!(gone, [0, 2], "the second is being written");
        assert!(there(&others));
        drop(busy);
    }

    #[test]
    fn what_somebody_else_put_there_is_not_written_to() {
        let dir = tempfile::tempdir().expect("a folder");
        let victim = dir.path().join("victim");
        std::fs::write(&victim, "mine").expect("written");
        let folder = handle(dir.path());
        for hostile in ["link", "second name"] {
            let place = dir.path().join(".restp-x.part");
            match hostile {
                "link" => symlink(&victim, &place).expect("linked"),
                _ => std::fs::hard_link(&victim, &place).expect("linked"),
            }
            assert!(find(&folder, ".restp-x.part").expect("looks").is_none());
            let part = Part::open(folder.clone(), ".restp-x.part".into()).expect("opens");
            part.file().write_all(b"theirs").expect("written");
            assert_eq!(std::fs::read(&victim).expect("reads"), b"mine", "{hostile}");
        }
    }

    #[test]
    fn a_part_that_was_about_to_get_its_name_is_gone_on_with() {
        let dir = tempfile::tempdir().expect("a folder");
        let place = dir.path().join(".restp-x.part");
        std::fs::write(&place, "content").expect("written");
        std::fs::set_permissions(&place, PermissionsExt::from_mode(0o444)).expect("set");
        let part = Part::open(handle(dir.path()), ".restp-x.part".into()).expect("opens");
        let found = part.file().metadata().expect("there");
        assert_eq!((found.len(), found.mode() & 0o777), (7, 0o600));
    }

    #[test]
    fn one_writes_at_a_time_and_what_nobody_resumes_is_removed() {
        let dir = tempfile::tempdir().expect("a folder");
        let folder = handle(dir.path());
        let (day, now) = (Duration::from_secs(86_400), 1_000_000);
        for (part, age) in [
            (".restp-a.part", 2),
            (".restp-b.part", 0),
            (".restp-c.part", 2),
            ("other.part", 2),
        ] {
            let file = File::create(dir.path().join(part)).expect("created");
            let written = std::time::UNIX_EPOCH + Duration::from_secs(now) - day * age;
            file.set_modified(written).expect("dated");
        }
        let busy = Part::open(folder.clone(), ".restp-c.part".into()).expect("opens");
        assert!(Part::open(folder.clone(), ".restp-c.part".into()).is_err());
        assert_eq!(clean(&folder, day, now).expect("cleans"), 1);
        let there = |name: &str| dir.path().join(name).exists();
        assert!(
            !there(".restp-a.part")
                && there(".restp-b.part")
                && there(".restp-c.part")
                && there("other.part")
        );
        busy.keep();
        assert_eq!(clean(&folder, Duration::ZERO, now).expect("cleans"), 2);
    }
}
