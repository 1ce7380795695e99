//! Files that last from one run to the next, and that several runs may use at once: read from one handle after a look at
//! what it is, and changed as a whole under a lock, so that no run undoes what another one, or the user, has written.

use rustix::fs::OFlags;
use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// A file of this user that lasts, below `XDG_DATA_HOME` or `.local/share` in `HOME` (XDG Base Directory Specification); `None`
/// where neither is an absolute path.
pub fn of_user(name: &str) -> Option<PathBuf> {
    below("XDG_DATA_HOME", ".local/share", name)
}

/// The same below the folder that the environment calls `variable`, or below `default` in `HOME`.
pub fn below(variable: &str, default: &str, name: &str) -> Option<PathBuf> {
    let absolute = |name| {
        let path = PathBuf::from(std::env::var_os(name)?);
        path.is_absolute().then_some(path)
    };
    let folder = absolute(variable).or_else(|| Some(absolute("HOME")?.join(default)))?;
    Some(folder.join("restp").join(name))
}

/// Opens a regular file and says what the open one is: between a look at a name and its opening, another file could take
/// the name.
///
/// # Errors
/// When it cannot be opened, or is no regular file.
pub fn open(path: &Path) -> io::Result<(File, Metadata)> {
    // A pipe without a writer would be waited for, a terminal would become ours.
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    let metadata = file.metadata()?;
    let kind = metadata.file_type();
    if kind.is_file() {
        return Ok((file, metadata));
    }
    if kind.is_dir() {
        return Err(io::Error::new(ErrorKind::IsADirectory, "it is a directory"));
    }
    Err(io::Error::other(if kind.is_fifo() {
        "it is a pipe, not a file"
    } else {
        "it is a device, not a file"
    }))
}

/// Everything in `file`, which may be secret: it is wiped when it is dropped.
///
/// # Errors
/// When it cannot be read, or is longer than `limit` bytes.
pub fn contents(file: &mut File, limit: u64) -> io::Result<Zeroizing<Vec<u8>>> {
    // Large enough from the beginning: a buffer that grew would leave behind what is secret.
    let length = file.metadata()?.len().min(limit) as usize;
    let mut bytes = Zeroizing::new(Vec::with_capacity(length + 64));
    file.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        let error = format!("it is longer than the {limit} bytes that such a file has at most");
        return Err(io::Error::new(ErrorKind::FileTooLarge, error));
    }
    Ok(bytes)
}

/// Everything in the file at `path`.
///
/// # Errors
/// Those of [`open`] and [`contents`].
pub fn read(path: &Path, limit: u64) -> io::Result<Zeroizing<Vec<u8>>> {
    contents(&mut open(path)?.0, limit)
}

/// Writes `bytes` to a file beside `path` that only its owner may open, complete on the disk, for it to take that name.
///
/// # Errors
/// When the folder cannot be made or written.
pub fn prepare(path: &Path, bytes: &[u8]) -> io::Result<tempfile::NamedTempFile> {
    let folder = folder(path);
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    // A name that is there after a crash, with nothing under it, would be worse than the old file.
    file.as_file().sync_all()?;
    Ok(file)
}

fn folder(path: &Path) -> &Path {
    let parent = path.parent();
    parent
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

/// Makes of the contents of the file at `path` what `change` says, while no other run may do the same. `change` is given
/// what [`read`] says at that moment, nothing where no file is. Whoever reads sees either the old file or the new one.
///
/// # Errors
/// That of `change`, or when the file cannot be locked or replaced; the old one is there still.
pub fn update<E: From<io::Error>>(
    path: &Path,
    limit: u64,
    change: impl FnOnce(io::Result<Zeroizing<Vec<u8>>>) -> Result<Zeroizing<Vec<u8>>, E>,
) -> Result<(), E> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder(path))?;
    // A file of its own: the one at `path` is another with each change.
    let lock = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(path.with_extension("lock"))?;
    lock.lock()?; // until it is dropped, or the process has ended
    let before = match read(path, limit) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Zeroizing::default()),
        read => read,
    };
    let after = change(before)?;
    prepare(path, &after)?
        .persist(path)
        .map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "in a test a failed unwrap is a failed test")]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_is_no_file_says_what_it_is_and_a_long_one_is_not_read_to_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let sentence = |path: &Path| read(path, 4).unwrap_err().to_string();
        assert!(sentence(folder.path()).contains("directory"));
        assert!(sentence(Path::new("/dev/zero")).contains("device"));
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &path,
            rustix::fs::FileType::Fifo,
            0o700.into(),
            0,
        )
        .unwrap();
        assert!(sentence(&path).contains("pipe"), "and nobody waits for a writer");
        fs::remove_file(&path).unwrap();
        fs::write(&path, "four").unwrap();
        assert_eq!(&read(&path, 4).unwrap()[..], b"four");
        fs::write(&path, "fives").unwrap();
        assert!(sentence(&path).contains("longer than the 4 bytes"));
    }

    #[test]
    fn changes_of_many_at_once_all_arrive() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new").join("count");
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..8 {
                        update(&path, 100, |before| {
                            before.map(|before| Zeroizing::new([&before[..], b"x"].concat()))
                        })
                        .unwrap();
                    }
                });
            }
        });
        assert_eq!(fs::read(&path).unwrap().len(), 64);
        let refused = update(&path, 100, |_| Err(io::Error::other("no")));
        assert!(refused.is_err() && fs::read(&path).unwrap().len() == 64);
    }
}
