//! What is received: a thread of its own writes and hashes it. Each file is hidden until its digest has been confirmed, and gets its
//! name in one step.

use super::agreement::{Agreement, hash_zeros};
use super::folder::{self, Folder, Inside, Part};
use super::manifest::{Entry, Kind, Manifest, ManifestError};
use super::name::TEMPORARY_PREFIX;
use super::{CHUNKS_AHEAD, Digest};
use bytes::Bytes;
use rustix::fs::{self as system, AtFlags, FileType, Mode};
use sha2::{Digest as _, Sha256};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use thiserror::Error;
use tokio::sync::{mpsc, oneshot};

/// Why something cannot be received. The sentences are sent to the peer, so they name no folder of this host.
#[derive(Debug, Error)]
pub enum TargetError {
    /// The list breaks a rule.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// Something has this name.
    #[error(
        "the receiver has a file {0:?} already; rename one of them, or let the receiver run with --overwrite"
    )]
    Exists(String),
    /// A folder has this name; no option overwrites it.
    #[error("the receiver has a folder {0:?}; rename the file")]
    Folder(String),
    /// What has the name of a folder is none; no option overwrites it.
    #[error("the receiver has a file {0:?}, where a folder is sent; rename one of them")]
    NoFolder(String),
    /// The digests differ.
    #[error("what arrived of {0:?} has another SHA-256 than what was sent; it was removed")]
    Mismatch(String),
    /// Writing failed.
    #[error("the receiver could not write the file: {0}{hint}", hint = hint(.0))]
    Write(#[from] io::Error),
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "; make room there and send again",
        io::ErrorKind::FileTooLarge => "; its file system or a limit does not allow files of this size",
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "; let the receiver run with --dir on a folder it may write to"
        }
        _ => "",
    }
}

/// The next part of the transfer, in the order of the manifest.
#[derive(Debug)]
pub enum Piece {
    /// Bytes of the current file.
    Data(Vec<Bytes>),
    /// So many zeros of it.
    Hole(u64),
    /// It is over, and should have this digest.
    End(Digest),
}

/// Everything is in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// To agree on with the sender.
    pub digest: Digest,
}

/// A transfer on its way. Dropped, it leaves nothing behind that is not whole.
#[derive(Debug)]
pub struct Target {
    manifest: Arc<Manifest>,
    pieces: mpsc::Sender<Piece>,
    written: oneshot::Receiver<Result<Delivery, TargetError>>,
}

impl Target {
    /// Begins what `manifest`, as it was sent, describes.
    ///
    /// # Errors
    /// When it breaks a rule, or something has a name that is needed.
    pub async fn begin(folder: &Folder, manifest: Vec<u8>) -> Result<Self, TargetError> {
        let of = folder.clone();
        let checked = tokio::task::spawn_blocking(move || {
            let manifest = Manifest::decode(&manifest)?;
            check_free(&of, &manifest)?;
            Ok::<_, TargetError>(Arc::new(manifest))
        });
        let manifest = checked.await.map_err(io::Error::other)??;
        let (pieces, arriving) = mpsc::channel(CHUNKS_AHEAD);
        let (report, written) = oneshot::channel();
        let writer = Writer {
            folder: folder.clone(),
            inside: Inside::of(folder),
            manifest: manifest.clone(),
            made: vec![false; manifest.entries().len()],
            arriving,
        };
        // The receiver of the report is gone when the transfer has ended for another reason.
        tokio::task::spawn_blocking(move || report.send(writer.write()));
        Ok(Target {
            manifest,
            pieces,
            written,
        })
    }

    /// What is to come.
    pub fn manifest(&self) -> Arc<Manifest> {
        self.manifest.clone()
    }

    /// Hands over the next piece; waits while the disk is behind. `false`: writing has failed, and
    /// [`Target::complete`] says why.
    pub async fn put(&self, piece: Piece) -> bool {
        self.pieces.send(piece).await.is_ok()
    }

    /// Why [`Target::put`] said `false`.
    pub async fn failure(self) -> TargetError {
        self.complete().await.err().unwrap_or_else(|| lost().into())
    }

    /// Waits until everything is in its place.
    ///
    /// # Errors
    /// When writing failed, or a digest is not the one it should be.
    pub async fn complete(self) -> Result<Delivery, TargetError> {
        drop(self.pieces);
        self.written.await.unwrap_or_else(|_| Err(lost().into()))
    }
}

fn lost() -> io::Error {
    io::Error::other("the writing thread has ended")
}

/// Is every name free, or of a folder where one is needed?
fn check_free(folder: &Folder, manifest: &Manifest) -> Result<(), TargetError> {
    let mut inside = Inside::of(folder);
    let mut there = vec![false; manifest.entries().len()];
    for (number, entry) in manifest.entries().iter().enumerate() {
        // Where the folder is not there yet nothing in it is.
        if entry.parent.is_some_and(|parent| !there[parent]) {
            continue;
        }
        let around = inside.around(manifest, number)?;
        let Some(found) = folder::find(&around, &entry.name)? else {
            continue;
        };
        let path = manifest.path(number);
        match (&entry.kind, folder::kind(&found)) {
            (Kind::Folder, FileType::Directory) => there[number] = true,
            (Kind::Folder, _) => return Err(TargetError::NoFolder(path)),
            (_, FileType::Directory) => return Err(TargetError::Folder(path)),
            (Kind::Link(target), _) if folder::leads_to(&around, &entry.name, target) => {}
            _ if folder.overwrite => {}
            _ => return Err(TargetError::Exists(path)),
        }
    }
    Ok(())
}

/// Names of parts of this process.
static PARTS: AtomicU64 = AtomicU64::new(0);

fn part_name() -> String {
    let number = PARTS.fetch_add(1, Ordering::Relaxed);
    format!("{TEMPORARY_PREFIX}{}-{number}.part", std::process::id())
}

/// Writes what arrives.
struct Writer {
    folder: Folder,
    inside: Inside,
    manifest: Arc<Manifest>,
    /// Which folders this transfer has made.
    made: Vec<bool>,
    arriving: mpsc::Receiver<Piece>,
}

impl Writer {
    fn write(mut self) -> Result<Delivery, TargetError> {
        let manifest = self.manifest.clone();
        let mut agreement = Agreement::on(&manifest);
        for (number, entry) in manifest.entries().iter().enumerate() {
            match entry.kind {
                Kind::Folder => self.make_folder(number, entry)?,
                Kind::File(_) => agreement.add(&manifest.path(number), self.file(number, entry)?),
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
        Ok(Delivery {
            digest: agreement.digest(),
        })
    }

    /// A folder that can be written to until everything is in it.
    fn make_folder(&mut self, number: usize, entry: &Entry) -> Result<(), TargetError> {
        let around = self.inside.around(&self.manifest, number)?;
        match system::mkdirat(
            &around,
            &entry.name,
            Mode::from_raw_mode(OWN | u32::from(entry.mode)),
        ) {
            Ok(()) => self.made[number] = true,
            Err(rustix::io::Errno::EXIST) => {}
            Err(error) => return Err(self.failed(number, error.into())),
        }
        Ok(())
    }

    /// The permissions of a folder that was there before are its owner's, unless they are those of a transfer that was cut off.
    fn dress_folder(&mut self, number: usize, entry: &Entry) -> Result<(), TargetError> {
        let handle = self.inside.at(&self.manifest, number)?;
        let now = system::fstat(&handle).map_err(io::Error::from)?.st_mode & 0o777;
        if self.made[number] || self.folder.overwrite || now == OWN | u32::from(entry.mode) {
            folder::dress(&handle, entry)?;
        }
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
        let hidden = part_name();
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

    /// The next file; its digest.
    fn file(&mut self, number: usize, entry: &Entry) -> Result<Digest, TargetError> {
        let part = Part::create(self.folder.handle(), part_name())?;
        let mut hash = Sha256::new();
        let (mut together, mut at) = (Vec::new(), 0);
        let claimed = loop {
            match self.arriving.blocking_recv().ok_or_else(lost)? {
                Piece::Data(pieces) => {
                    together.clear();
                    pieces.iter().for_each(|piece| together.extend_from_slice(piece));
                    hash.update(&together);
                    part.file().write_all(&together)?;
                    at += together.len() as u64;
                }
                Piece::Hole(bytes) => {
                    hash_zeros(&mut hash, bytes);
                    at += bytes;
                    part.file().seek(SeekFrom::Start(at))?;
                }
                Piece::End(claimed) => break claimed,
            }
        };
        // Longer than what was written when a hole comes last.
        part.file().set_len(at)?;
        let digest: Digest = hash.finalize().into();
        if digest != claimed {
            return Err(TargetError::Mismatch(self.manifest.path(number)));
        }
        let around: Arc<OwnedFd> = self.inside.around(&self.manifest, number)?;
        let how = (self.folder.overwrite, self.folder.sync);
        part.place(&around, entry, how)
            .map_err(|error| self.failed(number, error))?;
        Ok(digest)
    }

    /// What is wrong with the place of an entry.
    fn failed(&self, number: usize, error: io::Error) -> TargetError {
        let path = || self.manifest.path(number);
        match error.kind() {
            io::ErrorKind::AlreadyExists => TargetError::Exists(path()),
            io::ErrorKind::IsADirectory => TargetError::Folder(path()),
            _ => TargetError::Write(error),
        }
    }
}

/// What the owner of a folder may do while it is filled.
const OWN: u32 = 0o700;

#[cfg(test)]
mod tests {
    use super::super::manifest::Modified;
    use super::*;
    use std::fs;
    use std::os::unix::fs::{MetadataExt, symlink};
    use std::path::Path;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("a folder");
        let name = |entry: io::Result<fs::DirEntry>| entry.expect("an entry").file_name();
        let mut names: Vec<_> = entries
            .map(|entry| name(entry).to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    fn entry(parent: Option<usize>, name: &str, kind: Kind) -> Entry {
        Entry {
            parent,
            name: name.into(),
            mode: 0o640,
            modified: Modified {
                seconds: 1_000_000_000,
                nanoseconds: 5,
            },
            kind,
        }
    }

    async fn begin(folder: &Folder, entries: Vec<Entry>) -> Result<Target, TargetError> {
        let manifest = Manifest::new(entries).expect("good");
        Target::begin(folder, manifest.encode().expect("short")).await
    }

    async fn begin_file(folder: &Folder, name: &str) -> Result<Target, TargetError> {
        begin(folder, vec![entry(None, name, Kind::File(7))]).await
    }

    async fn put(target: &Target, content: &'static [u8]) {
        assert!(target.put(Piece::Data(vec![Bytes::from_static(content)])).await);
    }

    async fn receive(folder: &Folder, name: &str, content: &'static [u8]) -> Result<Delivery, TargetError> {
        let target = begin_file(folder, name).await?;
        put(&target, content).await;
        assert!(target.put(Piece::End(Sha256::digest(content).into())).await);
        target.complete().await
    }

    #[tokio::test]
    async fn a_file_appears_whole_and_only_when_its_digest_is_right() {
        let dir = tempfile::tempdir().expect("a folder");
        let folder = Folder::open(dir.path(), false, true).expect("opens");
        let delivery = receive(&folder, "a", b"content").await.expect("received");
        assert_eq!(delivery.digest, <Digest>::from(Sha256::digest(b"content")));
        assert_eq!(fs::read(dir.path().join("a")).expect("there"), b"content");
        let found = fs::metadata(dir.path().join("a")).expect("there");
        assert_eq!(
            (found.mode() & 0o7777, found.mtime(), found.mtime_nsec()),
            (0o640, 1_000_000_000, 5)
        );

        let wrong = begin_file(&folder, "b").await.expect("begins");
        put(&wrong, b"content").await;
        wrong.put(Piece::End([0; 32])).await;
        assert!(matches!(wrong.complete().await, Err(TargetError::Mismatch(_))));
        let dropped = begin_file(&folder, "b").await.expect("begins");
        put(&dropped, b"half").await;
        assert!(dropped.complete().await.is_err());
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
        let folder = vec![entry(None, "a", Kind::Folder)];
        assert!(matches!(
            begin(&bold, folder).await,
            Err(TargetError::NoFolder(_))
        ));
    }

    #[tokio::test]
    async fn a_name_taken_while_the_file_was_on_its_way_is_not_overwritten() {
        let dir = tempfile::tempdir().expect("a folder");
        let folder = Folder::open(dir.path(), false, false).expect("opens");
        let target = begin_file(&folder, "a").await.expect("begins");
        fs::write(dir.path().join("a"), "other").expect("written");
        target.put(Piece::End(Sha256::digest(b"").into())).await;
        assert!(matches!(target.complete().await, Err(TargetError::Exists(_))));
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
        let there = fs::symlink_metadata(dir.path().join("a")).expect("there");
        assert!(there.is_file());
    }

    /// Whoever may write to the folder puts a link in the place of a folder, before the transfer or in the middle of it.
    #[tokio::test]
    async fn a_link_in_the_place_of_a_folder_leads_nothing_out() {
        let tree = || {
            vec![
                entry(None, "d", Kind::Folder),
                entry(Some(0), "f", Kind::File(1)),
                entry(Some(0), "g", Kind::File(1)),
            ]
        };
        for overwrite in [false, true] {
            let outside = tempfile::tempdir().expect("a folder");
            let dir = tempfile::tempdir().expect("a folder");
            let folder = Folder::open(dir.path(), overwrite, false).expect("opens");
            let place = dir.path().join("d");
            symlink(outside.path(), &place).expect("linked");
            assert!(matches!(
                begin(&folder, tree()).await,
                Err(TargetError::NoFolder(_))
            ));

            fs::remove_file(&place).expect("removed");
            let target = begin(&folder, tree()).await.expect("begins");
            put(&target, b"1").await;
            // The piece has been taken once there is room for as many as the channel holds.
            for _ in 0..CHUNKS_AHEAD {
                put(&target, b"").await;
            }
            fs::remove_dir(&place).expect("removed");
            symlink(outside.path(), &place).expect("linked");
            assert!(target.put(Piece::End(Sha256::digest(b"1").into())).await);
            assert!(matches!(target.complete().await, Err(TargetError::Write(_))));
            assert!(names(outside.path()).is_empty());
            assert_eq!(names(dir.path()), ["d"]);
        }
    }

    #[tokio::test]
    async fn a_tree_has_its_modes_times_links_and_holes() {
        let dir = tempfile::tempdir().expect("a folder");
        let folder = Folder::open(dir.path(), false, false).expect("opens");
        let mut tree = vec![
            entry(None, "d", Kind::Folder),
            entry(Some(0), "f", Kind::File(8 << 20)),
            entry(Some(0), "l", Kind::Link("f".into())),
        ];
        tree[0].mode = 0o555;
        let target = begin(&folder, tree.clone()).await.expect("begins");
        put(&target, b"1").await;
        target.put(Piece::Hole((8 << 20) - 1)).await;
        let content = [&b"1"[..], &vec![0; (8 << 20) - 1]].concat();
        target.put(Piece::End(Sha256::digest(&content).into())).await;
        target.complete().await.expect("received");
        let at = |name: &str| fs::symlink_metadata(dir.path().join(name)).expect("there");
        assert_eq!(at("d").mode() & 0o7777, 0o555);
        for name in ["d", "d/f", "d/l"] {
            assert_eq!(
                (at(name).mtime(), at(name).mtime_nsec()),
                (1_000_000_000, 5),
                "{name}"
            );
        }
        assert_eq!(
            fs::read_link(dir.path().join("d/l")).expect("a link"),
            Path::new("f")
        );
        assert_eq!(fs::read(dir.path().join("d/f")).expect("there"), content);
        assert!(at("d/f").blocks() * 512 < 8 << 20, "the hole takes no room");
    }
}
