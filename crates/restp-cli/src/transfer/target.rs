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
use std::sync::atomic::AtomicUsize;
use thiserror::Error;
use tokio::sync::{mpsc, oneshot};

/// Files that are looked at before they are written.
///
/// So many at most are compared in a round trip: a folder of thousands of unchanged files over a satellite takes a few of them.
const FILES_AHEAD: usize = 4096;

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
        "the receiver takes no names that begin with '.', such as {0:?}; leave them out (--exclude '.*'), or let the receiver run with --dotfiles"
    )]
    Hidden(String),
    /// Another one has come, or is under way.
    #[error(
        "the receiver takes one transfer (--once), and has another one; send to a receiver without --once"
    )]
    Taken,
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
        io::ErrorKind::WouldBlock => "; another receiver is writing it",
        _ => "",
    }
}

/// Does an error say that the permissions of a folder are missing? Others that are refused (`EPERM`) have nothing to do with these.
pub fn is_closed(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::ACCESS.raw_os_error())
}

/// Is there no room for more?
pub fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        _ if is_full(error) => "; make room there and send again",
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
    /// It does not come after all.
    Left,
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
    /// Entries of the manifest that did not come after all.
    pub left_out: Vec<usize>,
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
            .take(part::id(&peer, &manifest.named().join("/")), folder.takes_one)
            .await
            .ok_or(TargetError::Taken)?;
        let claim = Arc::new(claim);
        let (pieces, arriving) = mpsc::channel(CHUNKS_AHEAD);
        let (told, bases) = std::sync::mpsc::sync_channel(FILES_AHEAD);
        let (tell, answers) = mpsc::channel(CHUNKS_AHEAD);
        let (report, written) = oneshot::channel();
        let over = Arc::new(AtomicUsize::new(0));
        let inventory = Inventory::of(folder, manifest.clone(), peer.clone(), (tell, over.clone()));
        let held = claim.clone();
        tokio::task::spawn_blocking(move || {
            inventory.tell(&told);
            drop(held);
        });
        let writer = Writer::new(
            folder,
            (manifest.clone(), peer),
            arriving,
            (bases, over),
            claim.clone(),
        );
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
mod tests;
