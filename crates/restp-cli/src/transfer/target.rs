//! What is received: the list is checked, one thread looks what there is already, one writes what arrives.

use super::claims::Claim;
use super::folder::{self, Folder, Inside};
use super::inventory::{Inventory, may_compare};
use super::manifest::{Kind, Manifest, ManifestError};
use super::message::Answer;
use super::writer::Writer;
use super::{CHUNKS_AHEAD, Digest, part};
use bytes::Bytes;
use rustix::fs::FileType;
use rustix::io::Errno;
use std::io;
use std::sync::Arc;
use thiserror::Error;
use tokio::sync::{mpsc, oneshot};

/// Files that are looked at before they are written.
const FILES_AHEAD: usize = 64;

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
    /// What has this name cannot be compared.
    #[error("the receiver cannot read what it has of {0:?}: {1}; rename one of them{way_out}", way_out = if_replaced(.1))]
    Unreadable(String, io::Error),
    /// A folder that has arrived read-only before.
    #[error(
        "the receiver's folder {0:?} is read-only; rename one of them, or let the receiver run with --overwrite"
    )]
    ReadOnly(String),
    /// A folder is closed, and no option opens it.
    #[error(
        "the receiver may not write to its folder {0:?}, or not look into it; let its owner change its permissions, or rename one of them"
    )]
    Closed(String),
    /// What has this name is no more what the sender was told of.
    #[error("what the receiver has of {0:?} was changed meanwhile; send again")]
    Changed(String),
    /// A folder has this name; no option overwrites it.
    #[error("the receiver has a folder {0:?}; rename the file")]
    Folder(String),
    /// What has the name of a folder is none; no option overwrites it.
    #[error("the receiver has a file {0:?}, where a folder is sent; rename one of them")]
    NoFolder(String),
    /// A name hides from lists, and this receiver takes none such.
    #[error(
        "the receiver takes no names that begin with '.', such as {0:?}; leave it out, or let the receiver run with --dotfiles"
    )]
    Hidden(String),
    /// The digests differ.
    #[error("what arrived of {0:?} has another SHA-256 than what was sent; it was removed")]
    Mismatch(String),
    /// The sender counts on what he was not told of.
    #[error(
        "the sender counts on bytes that he was not told of; use the same release of restp on both sides"
    )]
    NotTold,
    /// The sender has gone.
    #[error("the transfer was cut off")]
    CutOff,
    /// Writing something failed.
    #[error("the receiver could not write {0:?}: {1}{hint}", hint = hint(.1))]
    WriteTo(String, io::Error),
    /// Writing failed, of nothing in particular.
    #[error("the receiver could not write: {0}{hint}", hint = hint(.0))]
    Write(#[from] io::Error),
}

/// What may not be read may be replaced.
fn if_replaced(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => ", or let the receiver run with --overwrite",
        _ => "",
    }
}

/// Does an error say that the permissions of a folder are missing? Others that are refused (`EPERM`) have nothing to do with these.
pub fn is_closed(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::ACCESS.raw_os_error())
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
    /// So many bytes of it are there.
    Same(u64),
    /// It is over, and should have this digest.
    End(Digest),
    /// Nobody will go on with it.
    Forget,
}

/// Everything is in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// To agree on with the sender.
    pub digest: Digest,
    /// Files that were there already.
    pub skipped_files: u64,
}

/// A transfer on its way. Dropped, it leaves what there is of a file, hidden, to who goes on with it.
#[derive(Debug)]
pub struct Target {
    claim: Arc<Claim>,
    manifest: Arc<Manifest>,
    pieces: mpsc::Sender<Piece>,
    written: oneshot::Receiver<Result<Delivery, TargetError>>,
}

impl Target {
    /// Begins what `manifest`, as `peer` sent it, describes. What there is already is told by answers.
    ///
    /// # Errors
    /// When it breaks a rule, or something has a name that is needed.
    pub async fn begin(
        folder: &Folder,
        manifest: Vec<u8>,
        peer: Vec<u8>,
    ) -> Result<(Self, mpsc::Receiver<Answer>), TargetError> {
        let of = folder.clone();
        let checked = tokio::task::spawn_blocking(move || {
            let manifest = Manifest::decode(&manifest)?;
            if let Some(hidden) = manifest.first_hidden().filter(|_| !of.dotfiles) {
                return Err(TargetError::Hidden(manifest.path(hidden)));
            }
            check_free(&of, &manifest)?;
            Ok::<_, TargetError>(Arc::new(manifest))
        });
        let manifest = checked.await.map_err(io::Error::other)??;
        let claim = folder
            .claims()
            .take(part::id(&peer, &manifest.named().join("/")))
            .await;
        let claim = Arc::new(claim);
        let (pieces, arriving) = mpsc::channel(CHUNKS_AHEAD);
        let (told, bases) = std::sync::mpsc::sync_channel(FILES_AHEAD);
        let (tell, answers) = mpsc::channel(CHUNKS_AHEAD);
        let (report, written) = oneshot::channel();
        let inventory = Inventory::of(folder, manifest.clone(), peer.clone(), tell);
        let held = claim.clone();
        tokio::task::spawn_blocking(move || {
            inventory.tell(&told);
            drop(held);
        });
        let writer = Writer::new(folder, (manifest.clone(), peer), arriving, bases, claim.clone());
        // The receiver of the report is gone when the transfer has ended for another reason.
        tokio::task::spawn_blocking(move || report.send(writer.write()));
        let target = Target {
            claim,
            manifest,
            pieces,
            written,
        };
        Ok((target, answers))
    }

    /// What is to come.
    pub fn manifest(&self) -> Arc<Manifest> {
        self.manifest.clone()
    }

    /// Waits until somebody begins the same transfer again.
    pub fn superseded(&self) -> impl Future<Output = ()> + use<> {
        self.claim.superseded()
    }

    /// Ends it for good: nobody will go on with it.
    pub async fn forget(self) {
        // The writer may have ended already.
        let _ = self.pieces.send(Piece::Forget).await;
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
        let closed = |error| match entry.parent {
            Some(parent) if is_closed(&error) => TargetError::Closed(manifest.path(parent)),
            _ => error.into(),
        };
        let around = inside.around(manifest, number).map_err(closed)?;
        let Some(found) = folder::find(&around, &entry.name).map_err(closed)? else {
            continue;
        };
        let path = manifest.path(number);
        match (&entry.kind, folder::kind(&found)) {
            (Kind::Folder, FileType::Directory) => there[number] = true,
            (Kind::Folder, _) => return Err(TargetError::NoFolder(path)),
            (_, FileType::Directory) => return Err(TargetError::Folder(path)),
            (Kind::Link(target), _) if folder::leads_to(&around, &entry.name, target) => {}
            (Kind::File(_), _) if may_compare(folder, entry, &found) => {}
            _ if folder.overwrite => {}
            _ => return Err(TargetError::Exists(path)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::manifest::{Entry, Modified};
    use super::*;
    use sha2::{Digest as _, Sha256};
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
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
        let begun = Target::begin(folder, manifest.encode().expect("short"), b"peer".to_vec()).await;
        begun.map(|(target, _)| target)
    }

    async fn begin_file(folder: &Folder, name: &str) -> Result<Target, TargetError> {
        begin(folder, vec![entry(None, name, Kind::File(Some(7)))]).await
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

    /// The sender was told of the file that was there before.
    #[tokio::test]
    async fn a_file_that_is_replaced_after_it_was_compared_is_said_to_be() {
        for replaced in ["other content", "shorter", "removed"] {
            let dir = tempfile::tempdir().expect("a folder");
            let folder = Folder::open(dir.path(), true, false).expect("opens");
            let (other, place) = (dir.path().join("other"), dir.path().join("b"));
            fs::write(dir.path().join("a"), "content").expect("written");
            fs::write(&place, "content").expect("written");
            let tree = ["a", "b"].map(|name| entry(None, name, Kind::File(Some(7))));
            let manifest = Manifest::new(tree.to_vec()).expect("good");
            let encoded = manifest.encode().expect("short");
            let (target, mut told) = Target::begin(&folder, encoded, b"peer".to_vec())
                .await
                .expect("begins");
            while told.recv().await.is_some() {}
            match replaced {
                "removed" => fs::remove_file(&place).expect("removed"),
                how => {
                    fs::write(&other, if how == "shorter" { "cont" } else { "CONTENT" }).expect("written");
                    fs::rename(&other, &place).expect("renamed");
                }
            }
            let digest = || Piece::End(Sha256::digest(b"content").into());
            put(&target, b"content").await;
            assert!(target.put(digest()).await);
            // The receiver may have noticed already.
            let _ = target.put(Piece::Same(7)).await;
            let _ = target.put(digest()).await;
            let error = target.complete().await.expect_err("changed");
            assert!(
                matches!(&error, TargetError::Changed(path) if path == "b"),
                "{replaced}: {error}"
            );
        }
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
                entry(Some(0), "f", Kind::File(Some(1))),
                entry(Some(0), "g", Kind::File(Some(1))),
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
            assert!(matches!(target.complete().await, Err(TargetError::WriteTo(..))));
            assert!(names(outside.path()).is_empty());
            assert_eq!(names(dir.path()), ["d"]);
        }
    }

    /// Whatever the umask of the receiver is.
    #[tokio::test]
    async fn a_folder_that_was_cut_off_gets_its_permissions_and_time_from_the_next() {
        let dir = tempfile::tempdir().expect("a folder");
        let folder = Folder::open(dir.path(), false, false).expect("opens");
        let mut tree = vec![
            entry(None, "d", Kind::Folder),
            entry(Some(0), "f", Kind::File(Some(1))),
        ];
        tree[0].mode = 0o577;
        let at = || fs::metadata(dir.path().join("d")).expect("there");
        for cut_off in [true, false] {
            let target = begin(&folder, tree.clone()).await.expect("begins");
            put(&target, b"1").await;
            if cut_off {
                assert!(target.complete().await.is_err());
                assert_eq!(at().mode() & 0o7777, 0o1755, "nobody else writes meanwhile");
            } else {
                assert!(target.put(Piece::End(Sha256::digest(b"1").into())).await);
                target.complete().await.expect("received");
            }
        }
        assert_eq!((at().mode() & 0o7777, at().mtime()), (0o577, 1_000_000_000));
    }

    /// Permissions that a folder on its way could have, in releases before and in this one.
    #[tokio::test]
    async fn a_folder_that_was_there_keeps_its_permissions_unless_it_was_on_its_way() {
        for (there, sent, overwrite, expected) in [
            (0o755, 0o055, false, 0o755),
            (0o1777, 0o777, false, 0o1777),
            (0o1770, 0o755, false, 0o1770),
            (0o2775, 0o775, false, 0o2775),
            (0o3755, 0o755, false, 0o3755),
            (0o1777, 0o755, true, 0o1755),
            (0o2775, 0o555, true, 0o2555),
            (0o2755, 0o755, true, 0o2755),
            // Cut off, and sent with other permissions.
            (0o1750, 0o755, false, 0o755),
            (0o1750, 0o755, true, 0o755),
            (0o1755, 0o500, false, 0o500),
        ] {
            let dir = tempfile::tempdir().expect("a folder");
            let folder = Folder::open(dir.path(), overwrite, false).expect("opens");
            let place = dir.path().join("d");
            fs::create_dir(&place).expect("made");
            fs::set_permissions(&place, PermissionsExt::from_mode(there)).expect("set");
            let mut tree = vec![entry(None, "d", Kind::Folder)];
            tree[0].mode = sent;
            let target = begin(&folder, tree).await.expect("begins");
            target.complete().await.expect("received");
            let now = fs::metadata(&place).expect("there").mode() & 0o7777;
            assert_eq!(now, expected, "{there:o} {sent:o}");
        }
    }

    #[tokio::test]
    async fn a_read_only_folder_is_opened_only_to_overwrite_and_is_read_only_again() {
        for (overwrite, sent, end, meanwhile, after) in [
            (true, 0o555, "good", 0o1755, 0o555),
            (true, 0o555, "wrong digest", 0o1755, 0o555),
            (true, 0o755, "good", 0o555, 0o755), // its owner made it so
            (false, 0o555, "good", 0o555, 0o555),
            (false, 0o755, "good", 0o555, 0o555),
        ] {
            let dir = tempfile::tempdir().expect("a folder");
            let folder = Folder::open(dir.path(), overwrite, false).expect("opens");
            let place = dir.path().join("d");
            fs::create_dir(&place).expect("made");
            fs::set_permissions(&place, PermissionsExt::from_mode(0o555)).expect("set");
            let mut tree = vec![
                entry(None, "d", Kind::Folder),
                entry(Some(0), "f", Kind::File(Some(1))),
            ];
            tree[0].mode = sent;
            let target = begin(&folder, tree).await.expect("begins");
            // The writer has come to the file once there is room for as many as the channel holds.
            put(&target, b"1").await;
            for _ in 0..CHUNKS_AHEAD {
                put(&target, b"").await;
            }
            let mode = || fs::metadata(&place).expect("there").mode() & 0o7777;
            assert_eq!(mode(), meanwhile, "{overwrite} {sent:o} {end}");
            let content = if end == "good" { &b"1"[..] } else { b"2" };
            assert!(target.put(Piece::End(Sha256::digest(content).into())).await);
            // What is read-only by its owner's will is so to all but root.
            let _ = target.complete().await;
            assert_eq!(mode(), after, "{overwrite} {sent:o} {end}");
        }
    }

    #[tokio::test]
    async fn a_folder_of_another_user_keeps_its_permissions_and_fails_nothing() {
        let dir = tempfile::tempdir().expect("a folder");
        let folder = Folder::open(dir.path(), true, false).expect("opens");
        let place = dir.path().join("d");
        fs::create_dir(&place).expect("made");
        if std::os::unix::fs::chown(&place, Some(1), None).is_err() {
            return; // only root gives something away
        }
        let before = fs::metadata(&place).expect("there").mode();
        let mut tree = vec![entry(None, "d", Kind::Folder)];
        tree[0].mode = 0o700;
        let target = begin(&folder, tree).await.expect("begins");
        target.complete().await.expect("received");
        assert_eq!(fs::metadata(&place).expect("there").mode(), before);
    }

    #[tokio::test]
    async fn a_tree_has_its_modes_times_links_and_holes() {
        let dir = tempfile::tempdir().expect("a folder");
        let folder = Folder::open(dir.path(), false, false).expect("opens");
        let mut tree = vec![
            entry(None, "d", Kind::Folder),
            entry(Some(0), "f", Kind::File(Some(8 << 20))),
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
