//! What is fetched, on its way: two hidden files in the target folder, one of the object and one of its manifests. They stay when a
//! fetch ends early, and what they hold is looked at again by digest, so that nothing in them has to be believed. Files get their names
//! when everything has come.

use super::layout;
use super::slots::Slots;
use crate::transfer::manifest::{Kind, ManifestError};
use crate::transfer::part::{self, Part};
use crate::transfer::target::{Piece, Target, TargetError};
use crate::transfer::{CHUNK_BYTES, Folder, Manifest, folder};
use bytes::Bytes;
use restp_rivals::itp::manifest::{Core, Digest, Hash};
use restp_rivals::itp::node::{Item, Keep, Wanted};
use rustix::fs::FileType;
use sha2::{Digest as _, Sha256};
use std::fs::File;
use std::io::{self, IoSlice};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use thiserror::Error;

/// Chunks that lie behind each other are written together, up to so many bytes in so many pieces, of which each may hold a receive
/// buffer of 64 KiB. The system takes 1024 (IOV_MAX).
const TOGETHER: u64 = 256 << 10;
const PIECES: usize = 256;

/// Why something fetched does not become a file.
#[derive(Debug, Error)]
pub enum DownloadError {
    /// Something has its name.
    #[error("there is a file {0:?} already; rename it, or fetch with --overwrite")]
    Exists(String),
    /// The parts cannot be written.
    #[error("{0}{hint}", hint = hint(.0))]
    Write(#[from] io::Error),
    /// What arrived is no list of files, or the list breaks a rule.
    #[error("what was published cannot be a file here: {0}")]
    List(io::Error),
    /// Files could not be placed.
    #[error("{0}")]
    Target(TargetError),
}

/// What the system says of writing has the same way out wherever it is said.
impl From<TargetError> for DownloadError {
    fn from(error: TargetError) -> Self {
        match error {
            TargetError::Write(error) => DownloadError::Write(error),
            other => DownloadError::Target(other),
        }
    }
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; make room in the folder of --dir, and the same command goes on with it"
        }
        io::ErrorKind::FileTooLarge => "; its file system or a limit does not allow files of this size",
        io::ErrorKind::WouldBlock => "; another `restp fetch` is fetching the same into this folder",
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "; name another folder with --dir"
        }
        _ => "",
    }
}

/// An object on its way.
#[derive(Debug)]
pub struct Download {
    folder: Folder,
    object: Part,
    /// Has most of what replaces it, perhaps.
    replaced: Option<File>,
    hash: Hash,
    manifests_part: Part,
    manifests: Slots,
    length: u64,
    chunk_bytes: u64,
    /// Chunks that wait to be written, in a row, and where the first belongs.
    together: Vec<Bytes>,
    together_at: u64,
    together_bytes: u64,
}

/// What is on disk from before.
#[derive(Debug)]
struct Kept {
    object: File,
    replaced: Option<File>,
    hash: Hash,
    manifests: Slots,
    length: u64,
    chunk_bytes: u64,
}

impl Kept {
    /// The chunk, as it was fetched before or as the file has it that is replaced: then it is taken over.
    fn chunk(&self, number: u64, digest: &Digest) -> Option<Bytes> {
        let start = number * self.chunk_bytes;
        let length = self.chunk_bytes.min(self.length.checked_sub(start)?);
        let mut bytes = vec![0; length as usize];
        let of_object = self.object.read_exact_at(&mut bytes, start).is_ok();
        let Some(replaced) = &self.replaced else {
            return of_object.then(|| bytes.into());
        };
        if of_object && self.hash.digest(&bytes) == *digest {
            return Some(bytes.into());
        }
        // What cannot be read there or written here is fetched.
        replaced.read_exact_at(&mut bytes, start).ok()?;
        let is_same = self.hash.digest(&bytes) == *digest;
        (is_same && self.object.write_all_at(&bytes, start).is_ok()).then(|| bytes.into())
    }
}

impl Keep for Kept {
    fn recall(&mut self, item: Item, digest: &Digest) -> Option<Bytes> {
        match item {
            Item::Manifest(position) => self.manifests.get(position),
            Item::Chunk(number) => self.chunk(number, digest),
        }
    }
}

/// Writes `pieces` behind each other, from `at` on, by `write`: pieces and where they go, and how many bytes of them went there.
fn write_all_at(
    pieces: &[Bytes],
    mut at: u64,
    mut write: impl FnMut(&[IoSlice<'_>], u64) -> rustix::io::Result<usize>,
) -> io::Result<()> {
    let mut slices: Vec<IoSlice<'_>> = pieces.iter().map(|piece| IoSlice::new(piece)).collect();
    let mut left = &mut slices[..];
    IoSlice::advance_slices(&mut left, 0); // what is empty goes
    while !left.is_empty() {
        match write(left, at) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                IoSlice::advance_slices(&mut left, written);
                at += written as u64;
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Is there a file that has the name of the object? What is inside of folders is known only when everything has come.
fn check_free(folder: &Folder, core: &Core) -> Result<(), DownloadError> {
    let name = String::from_utf8_lossy(&core.name);
    if folder.overwrite || crate::transfer::check_name(&name).is_err() {
        return Ok(());
    }
    let found = folder::find(folder.handle(), &name)?;
    match found.is_some_and(|found| folder::kind(&found) != FileType::Directory) {
        true => Err(DownloadError::Exists(name.into_owned())),
        false => Ok(()),
    }
}

/// The file that is to be replaced, if it may be read.
fn replaced(folder: &Folder, core: &Core) -> Option<File> {
    let name = String::from_utf8_lossy(&core.name);
    if !folder.overwrite || crate::transfer::check_name(&name).is_err() {
        return None;
    }
    let there = folder::read(folder.handle(), &name).ok()?;
    there
        .metadata()
        .is_ok_and(|found| found.is_file())
        .then_some(there)
}

impl Download {
    /// Of the object with this root into `folder`, going on with what is there.
    ///
    /// # Errors
    /// When the hidden files cannot be opened, or something has the name that is known already.
    pub fn open(folder: &Folder, wanted: &Wanted, core: &Core) -> Result<Self, DownloadError> {
        let name = |what| part::name(part::id(&[&wanted.root[..], &wanted.publisher.0].concat(), what));
        // What is begun may have been placed in part. What is new is better refused now than when all of it has come.
        let is_new = part::find(&folder.handle(), &name("object"))?.is_none();
        if is_new {
            check_free(folder, core)?;
        }
        let object = Part::open(folder.handle(), name("object"))?;
        let manifests_part = match Part::open(folder.handle(), name("manifests")) {
            Ok(part) => part,
            Err(error) => {
                object.keep();
                return Err(error.into());
            }
        };
        Ok(Download {
            folder: folder.clone(),
            manifests: Slots::new(manifests_part.file().try_clone()?, core.chunk_bytes),
            replaced: replaced(folder, core),
            hash: core.hash,
            object,
            manifests_part,
            length: core.length,
            chunk_bytes: core.chunk_bytes.into(),
            together: Vec::new(),
            together_at: 0,
            together_bytes: 0,
        })
    }

    /// What there is from before.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn kept(&mut self) -> io::Result<Box<dyn Keep>> {
        Ok(Box::new(Kept {
            object: self.object.file().try_clone()?,
            replaced: self.replaced.take(),
            hash: self.hash,
            manifests: Slots::new(self.manifests_part.file().try_clone()?, self.chunk_bytes as u32),
            length: self.length,
            chunk_bytes: self.chunk_bytes,
        }))
    }

    /// Takes what has come and is what it should be.
    ///
    /// # Errors
    /// When the disk does not take it.
    pub fn put(&mut self, item: Item, payload: Bytes) -> io::Result<()> {
        match item {
            Item::Manifest(position) => self.manifests.put(position, &payload),
            Item::Chunk(number) => {
                let at = number * self.chunk_bytes;
                let is_next = at == self.together_at + self.together_bytes;
                if !is_next || self.together_bytes >= TOGETHER || self.together.len() == PIECES {
                    self.flush()?;
                    self.together_at = at;
                }
                self.together_bytes += payload.len() as u64;
                self.together.push(payload);
                Ok(())
            }
        }
    }

    /// Writes what waits.
    ///
    /// # Errors
    /// When the disk does not take it.
    pub fn flush(&mut self) -> io::Result<()> {
        let file = self.object.file();
        write_all_at(&self.together, self.together_at, |pieces, at| {
            rustix::io::pwritev(file, pieces, at)
        })?;
        self.together.clear();
        self.together_bytes = 0;
        Ok(())
    }

    /// Leaves what there is to who goes on with it.
    pub fn keep(mut self) {
        // What is not written is fetched again.
        let _ = self.flush();
        self.object.keep();
        self.manifests_part.keep();
    }

    /// Everything has come: files get their names. Returns the list of them.
    ///
    /// # Errors
    /// When something has such a name, or the list breaks a rule. What was fetched is there still: kept, the same command places it.
    pub async fn place(&mut self) -> Result<Manifest, DownloadError> {
        let (list, single) = self.place_all().await?;
        if let Some(number) = single {
            let options = (self.folder.overwrite, self.folder.sync);
            let to = self.folder.handle();
            self.object.place(&to, &list.entries()[number], options)?;
        }
        Ok(list)
    }

    /// All but one single file, which is what was fetched.
    async fn place_all(&mut self) -> Result<(Manifest, Option<usize>), DownloadError> {
        self.flush()?;
        let file = self.object.file();
        let list = layout::list_of(self.length, |at, into| file.read_exact_at(into, at))
            .map_err(DownloadError::List)?;
        if let Some(hidden) = list.first_hidden().filter(|_| !self.folder.dotfiles) {
            return Err(TargetError::Hidden(list.path(hidden)).into());
        }
        if !list.is_one_file() {
            self.copy_all(&list).await?;
            return Ok((list, None));
        }
        let entry = &list.entries()[0];
        let there = folder::find(self.folder.handle(), &entry.name)?;
        if there.is_some() && !self.folder.overwrite {
            return Err(DownloadError::Exists(entry.name.clone()));
        }
        let Kind::File(Some(bytes)) = entry.kind else {
            return Err(TargetError::Manifest(ManifestError::Size).into());
        };
        file.set_len(bytes)?;
        Ok((list, Some(0)))
    }

    /// Files and folders as `restp recv` places them, out of what was fetched.
    async fn copy_all(&self, list: &Manifest) -> Result<(), DownloadError> {
        let encoded = list.encode().map_err(TargetError::from)?;
        let (target, mut answers) = Target::begin(&self.folder, encoded, b"fetch".to_vec()).await?;
        // What is there already is compared with what is written.
        let heard = tokio::spawn(async move { while answers.recv().await.is_some() {} });
        let file = Arc::new(self.object.file().try_clone()?);
        let mut at = 0;
        for (_, bytes) in list.files() {
            let (mut left, mut digest) = (bytes.unwrap_or(0), Sha256::new());
            while left > 0 {
                let mut piece = vec![0; left.min(CHUNK_BYTES as u64) as usize];
                file.read_exact_at(&mut piece, at)?;
                digest.update(&piece);
                at += piece.len() as u64;
                left -= piece.len() as u64;
                if !target.put(Piece::Data(vec![piece.into()])).await {
                    return Err(target.failure().await.into());
                }
            }
            if !target.put(Piece::End(digest.finalize().into())).await {
                return Err(target.failure().await.into());
            }
        }
        target.complete().await?;
        heard.abort();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pieces, some of them empty, and what they are together.
    fn pieces() -> (Vec<Bytes>, Vec<u8>) {
        let pieces = (0..PIECES).map(|number| Bytes::from(vec![number as u8; number % 7]));
        let pieces: Vec<Bytes> = pieces.collect();
        let together = pieces.concat();
        (pieces, together)
    }

    #[test]
    fn pieces_are_written_behind_each_other_also_empty_ones() {
        let file = tempfile::tempfile().unwrap();
        let into = |file, slices: &[IoSlice<'_>], at| rustix::io::pwritev(file, slices, at);
        let (pieces, together) = pieces();
        write_all_at(&pieces, 5, |slices, at| into(&file, slices, at)).unwrap();
        for nothing in [&pieces[..0], &pieces[..1]] {
            write_all_at(nothing, 0, |_, _| unreachable!("nothing is written")).unwrap();
        }
        let expected = [&[0; 5][..], &together].concat();
        let mut written = vec![1; expected.len()];
        file.read_exact_at(&mut written, 0).unwrap();
        assert!(written == expected);
        assert_eq!(file.metadata().unwrap().len(), expected.len() as u64);
        let null = File::open("/dev/null").unwrap();
        let refused = write_all_at(&pieces, 0, |slices, at| into(&null, slices, at));
        assert!(refused.is_err(), "it is open for reading");
    }

    #[test]
    fn what_is_written_in_part_or_not_at_once_is_written_to_its_end() {
        let (pieces, together) = pieces();
        let mut written = vec![0; 5];
        let mut calls = 0;
        let mut some = |slices: &[IoSlice<'_>], at: u64| {
            calls += 1;
            if calls % 3 == 0 {
                return Err(rustix::io::Errno::INTR);
            }
            assert_eq!(at, written.len() as u64);
            let bytes = slices.iter().flat_map(|slice| slice.iter().copied());
            written.extend(bytes.take(10));
            Ok(written.len() - at as usize)
        };
        write_all_at(&pieces, 5, &mut some).unwrap();
        assert!(written[5..] == together);

        let none = write_all_at(&pieces, 0, |_, _| Ok(0));
        assert_eq!(none.unwrap_err().kind(), io::ErrorKind::WriteZero);
        let full = write_all_at(&pieces, 0, |_, _| Err(rustix::io::Errno::NOSPC));
        assert_eq!(full.unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}
