//! The file that is received: temporary until its digest has been confirmed, then renamed in one step.

use super::name::{self, TEMPORARY_PREFIX};
use super::{CHUNKS_AHEAD, Digest};
use bytes::Bytes;
use sha2::{Digest as _, Sha256};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;
use thiserror::Error;
use tokio::sync::{mpsc, oneshot};

/// Where received files go.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
    overwrite: bool,
    sync: bool,
}

/// Why a file cannot be received. The sentences are sent to the peer, so they name no folder of this host.
#[derive(Debug, Error)]
pub enum TargetError {
    /// The name leads elsewhere or is none.
    #[error(transparent)]
    Name(#[from] name::NameError),
    /// Something has this name.
    #[error(
        "the receiver has a file {0:?} already; rename one of them, or let the receiver run with --overwrite"
    )]
    Exists(String),
    /// A folder has this name; no option overwrites it.
    #[error("the receiver has a folder {0:?}; rename the file")]
    Folder(String),
    /// Writing failed.
    #[error("the receiver could not write the file: {0}{hint}", hint = hint(.0))]
    Write(Unnamed),
}

/// What the system says, without the path of the temporary file, which is nobody's concern and must not reach the peer.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct Unnamed(io::Error);

impl From<io::Error> for Unnamed {
    fn from(error: io::Error) -> Self {
        Unnamed(match error.to_string().split_once(" at path ") {
            Some((why, _)) => io::Error::new(error.kind(), why),
            None => error,
        })
    }
}

impl TargetError {
    fn write(error: io::Error) -> Self {
        TargetError::Write(error.into())
    }
}

fn hint(error: &Unnamed) -> &'static str {
    match error.0.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "; make room there and send again",
        io::ErrorKind::FileTooLarge => "; its file system or a limit does not allow files of this size",
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "; let the receiver run with --dir on a folder it may write to"
        }
        _ => "",
    }
}

impl Folder {
    /// The folder `path`, which is made where only its last part is missing.
    ///
    /// # Errors
    /// When it is no folder, or nothing can be created in it.
    pub fn open(path: &Path, overwrite: bool, sync: bool) -> io::Result<Self> {
        if let Err(error) = fs::create_dir(path)
            && error.kind() != io::ErrorKind::AlreadyExists
        {
            return Err(error);
        }
        // Resolved once: a link that is changed later leads nowhere else.
        let path = fs::canonicalize(path)?;
        if !path.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        temporary(&path)?;
        Ok(Folder {
            path,
            overwrite,
            sync,
        })
    }

    /// Its full path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Begins a file; a thread of its own hashes and writes what is put into the target.
    ///
    /// # Errors
    /// When the name is not allowed or taken, or nothing can be created.
    pub fn begin(&self, name: &str) -> Result<Target, TargetError> {
        name::check(name)?;
        let place = self.path.join(name);
        // The link itself counts, not where it leads.
        match fs::symlink_metadata(&place) {
            Ok(found) if found.is_dir() => return Err(TargetError::Folder(name.into())),
            Ok(_) if !self.overwrite => return Err(TargetError::Exists(name.into())),
            Ok(_) | Err(_) => {}
        }
        let file = temporary(&self.path).map_err(TargetError::write)?;
        let (pieces, arriving) = mpsc::channel(CHUNKS_AHEAD);
        let (report, written) = oneshot::channel();
        tokio::task::spawn_blocking(move || {
            // The receiver of the report is gone when the transfer has ended for another reason.
            let _ = report.send(write(file, arriving));
        });
        Ok(Target {
            folder: self.clone(),
            name: name.into(),
            place,
            pieces,
            written,
        })
    }
}

fn temporary(folder: &Path) -> io::Result<NamedTempFile> {
    tempfile::Builder::new()
        .prefix(TEMPORARY_PREFIX)
        .suffix(".part")
        .permissions(permissions())
        .tempfile_in(folder)
}

/// As for any new file: the user's umask decides, not the caution of temporary files.
#[cfg(unix)]
fn permissions() -> fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(0o666)
}

type Pieces = Vec<Bytes>;

/// Writes and hashes until there is no more. The file is removed with the value.
fn write(
    mut file: NamedTempFile,
    mut arriving: mpsc::Receiver<Pieces>,
) -> io::Result<(NamedTempFile, Digest)> {
    let mut hash = Sha256::new();
    let mut together = Vec::new();
    while let Some(pieces) = arriving.blocking_recv() {
        together.clear();
        pieces.iter().for_each(|piece| together.extend_from_slice(piece));
        hash.update(&together);
        file.write_all(&together)?;
    }
    Ok((file, hash.finalize().into()))
}

/// A file on its way. Dropped before [`Target::keep`], it leaves nothing behind.
#[derive(Debug)]
pub struct Target {
    folder: Folder,
    name: String,
    place: PathBuf,
    pieces: mpsc::Sender<Pieces>,
    written: oneshot::Receiver<io::Result<(NamedTempFile, Digest)>>,
}

impl Target {
    /// Where the file will be.
    pub fn place(&self) -> &Path {
        &self.place
    }

    /// Hands over the next bytes; waits while the disk is behind. `false`: writing has failed, and
    /// [`Target::complete`] says why.
    pub async fn put(&self, pieces: Pieces) -> bool {
        self.pieces.send(pieces).await.is_ok()
    }

    /// Why [`Target::put`] said `false`.
    pub async fn failure(self) -> TargetError {
        match self.complete().await {
            Err(error) => error,
            Ok(_) => TargetError::write(io::Error::other("the writing thread has ended")),
        }
    }

    /// Waits until everything is written; returns the digest of what was.
    ///
    /// # Errors
    /// When writing failed.
    pub async fn complete(self) -> Result<Complete, TargetError> {
        drop(self.pieces);
        let lost = |_| io::Error::other("the writing thread has ended");
        let (file, digest) = self
            .written
            .await
            .map_err(lost)
            .and_then(|written| written)
            .map_err(TargetError::write)?;
        Ok(Complete {
            folder: self.folder,
            name: self.name,
            place: self.place,
            file,
            digest,
        })
    }
}

/// A file that is complete and still temporary.
#[derive(Debug)]
pub struct Complete {
    folder: Folder,
    name: String,
    place: PathBuf,
    file: NamedTempFile,
    digest: Digest,
}

impl Complete {
    /// Of what was written.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Gives the file its name, in one step.
    ///
    /// # Errors
    /// When the name has been taken meanwhile, or the system refuses.
    pub async fn keep(self) -> Result<(), TargetError> {
        let name = self.name.clone();
        let kept = tokio::task::spawn_blocking(move || self.rename()).await;
        match kept.map_err(io::Error::other).and_then(|kept| kept) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(TargetError::Exists(name)),
            Err(error) => Err(TargetError::write(error)),
        }
    }

    fn rename(self) -> io::Result<()> {
        if self.folder.sync {
            self.file.as_file().sync_all()?;
        }
        if self.folder.overwrite {
            self.file.persist(&self.place)?;
        } else {
            self.file.persist_noclobber(&self.place)?;
        }
        if self.folder.sync {
            fs::File::open(&self.folder.path)?.sync_all()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("a folder");
        let mut names: Vec<_> = entries
            .map(|entry| {
                entry
                    .expect("an entry")
                    .file_name()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect();
        names.sort();
        names
    }

    async fn receive(folder: &Folder, name: &str, content: &'static [u8]) -> Result<Digest, TargetError> {
        let target = folder.begin(name)?;
        assert!(target.put(vec![Bytes::from_static(content)]).await);
        let complete = target.complete().await?;
        let digest = complete.digest();
        complete.keep().await.map(|()| digest)
    }

    #[tokio::test]
    async fn a_file_appears_whole_and_only_when_it_is_kept() {
        let dir = tempfile::tempdir().expect("a folder");
        let folder = Folder::open(dir.path(), false, true).expect("opens");
        let digest = receive(&folder, "a", b"content").await.expect("received");
        assert_eq!(digest, <Digest>::from(Sha256::digest(b"content")));
        assert_eq!(fs::read(dir.path().join("a")).expect("there"), b"content");

        let dropped = folder.begin("b").expect("begins");
        assert!(dropped.put(vec![Bytes::from_static(b"half")]).await);
        drop(dropped.complete().await.expect("written"));
        assert_eq!(names(dir.path()), ["a"]);
    }

    #[tokio::test]
    async fn what_exists_stays_unless_overwriting_is_allowed() {
        let dir = tempfile::tempdir().expect("a folder");
        let careful = Folder::open(dir.path(), false, false).expect("opens");
        let bold = Folder::open(dir.path(), true, false).expect("opens");
        receive(&careful, "a", b"first").await.expect("received");
        assert!(matches!(
            receive(&careful, "a", b"x").await,
            Err(TargetError::Exists(_))
        ));
        receive(&bold, "a", b"second").await.expect("received");
        assert_eq!(fs::read(dir.path().join("a")).expect("there"), b"second");

        fs::create_dir(dir.path().join("d")).expect("created");
        assert!(matches!(
            receive(&bold, "d", b"x").await,
            Err(TargetError::Folder(_))
        ));
    }

    #[tokio::test]
    async fn a_name_taken_while_the_file_was_on_its_way_is_not_overwritten() {
        let dir = tempfile::tempdir().expect("a folder");
        let folder = Folder::open(dir.path(), false, false).expect("opens");
        let target = folder.begin("a").expect("begins");
        fs::write(dir.path().join("a"), "other").expect("written");
        let complete = target.complete().await.expect("written");
        assert!(matches!(complete.keep().await, Err(TargetError::Exists(_))));
        assert_eq!(fs::read(dir.path().join("a")).expect("there"), b"other");
        assert_eq!(names(dir.path()), ["a"]);
    }

    #[tokio::test]
    async fn links_are_never_followed() {
        let outside = tempfile::tempdir().expect("a folder");
        let dir = tempfile::tempdir().expect("a folder");
        let victim = outside.path().join("victim");
        symlink(&victim, dir.path().join("a")).expect("linked");
        let careful = Folder::open(dir.path(), false, false).expect("opens");
        assert!(matches!(
            receive(&careful, "a", b"x").await,
            Err(TargetError::Exists(_))
        ));
        let bold = Folder::open(dir.path(), true, false).expect("opens");
        receive(&bold, "a", b"x").await.expect("received");
        assert!(!victim.exists(), "the link was replaced, not followed");
        assert!(
            fs::symlink_metadata(dir.path().join("a"))
                .expect("there")
                .is_file()
        );
    }

    #[tokio::test]
    async fn a_failure_to_write_tells_no_path_of_this_host() {
        let dir = tempfile::tempdir().expect("a folder");
        let failing = temporary(dir.path()).expect("a file");
        let (read_only, path) = (
            fs::File::open(failing.path()).expect("opens"),
            failing.into_temp_path(),
        );
        let mut file = NamedTempFile::from_parts(read_only, path);
        let error = file.write_all(b"content").expect_err("opened for reading");
        assert!(error.to_string().contains(TEMPORARY_PREFIX), "{error}");
        let told = TargetError::write(error).to_string();
        let folder = dir.path().to_str().expect("text");
        assert!(
            !told.contains(TEMPORARY_PREFIX) && !told.contains(folder),
            "{told}"
        );
    }

    #[test]
    fn the_last_part_of_a_folder_is_made() {
        let dir = tempfile::tempdir().expect("a folder");
        let inbox = dir.path().join("inbox");
        for _ in 0..2 {
            Folder::open(&inbox, false, false).expect("opens");
            assert!(inbox.is_dir() && names(&inbox).is_empty());
        }
        let error =
            Folder::open(&dir.path().join("missing/inbox"), false, false).expect_err("its parent is missing");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
