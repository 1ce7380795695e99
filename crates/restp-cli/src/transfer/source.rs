//! What is sent. A thread of its own reads and hashes ahead of the network.

use super::agreement::{Agreement, hash_zeros};
use super::manifest::{Manifest, ManifestError};
use super::message::Record;
use super::walk::{Found, Place, walk};
use super::{CHUNK_BYTES, CHUNKS_AHEAD, Digest};
use bytes::Bytes;
use sha2::{Digest as _, Sha256};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use thiserror::Error;
use tokio::sync::mpsc;

/// Files, folders and links that were found for sending.
#[derive(Debug)]
pub struct Source {
    manifest: Manifest,
    places: Vec<Place>,
    /// All of a file whose length the system does not tell, as those of /proc.
    content: Option<Vec<u8>>,
}

/// Most bytes of such a file.
const MAX_UNTOLD: u64 = 64 << 20;
/// Zeros of one record at most: the receiver looks between two of them whether there is still somebody who sends.
const MAX_HOLE: u64 = 256 << 20;

/// Why something cannot be sent.
#[derive(Debug, Error)]
pub enum SourceError {
    /// It cannot be opened.
    #[error("{}: {source}; name files and folders that you may read", .path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// It is a device, a pipe, a socket.
    #[error("{} is no regular file, folder or link; leave it out, or send what it holds through a file", .0.display())]
    Special(PathBuf),
    /// Its name is not text.
    #[error("{}: the name is not UTF-8; rename it", .0.display())]
    Name(PathBuf),
    /// It breaks a rule for what is sent.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// Reading failed on the way.
    #[error("{}: reading failed at byte {at}: {source}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Bytes read before.
        at: u64,
        /// What the system says.
        source: io::Error,
    },
    /// Its length is not told, and it does not end.
    #[error("{}: the system tells no length, and it is longer than {} MiB; copy it to a regular file first", .0.display(), MAX_UNTOLD >> 20)]
    Endless(PathBuf),
    /// It has another length or another time of change than at the start.
    #[error("{} {how} while it was sent; send it again when nobody writes to it", .path.display())]
    Changed {
        /// The file.
        path: PathBuf,
        /// What happened to it.
        how: String,
    },
}

impl SourceError {
    /// `path` cannot be opened.
    pub fn open(path: &Path, source: io::Error) -> Self {
        SourceError::Open {
            path: path.into(),
            source,
        }
    }
}

/// What the reading thread hands over: pieces of the transfer, then its digest, or an error in their place.
pub type Chunks = mpsc::Receiver<Result<Chunk, SourceError>>;

/// One piece of a transfer.
#[derive(Debug)]
pub enum Chunk {
    /// Records for the receiver.
    Records {
        /// As they are sent.
        wire: Bytes,
        /// Bytes of files that they stand for.
        content: u64,
    },
    /// Everything has been handed over; the digest to agree on.
    End(Digest),
}

impl Source {
    /// Finds everything below `paths` and fixes lengths.
    ///
    /// # Errors
    /// When something cannot be read or is of no kind that can be sent.
    pub fn open(paths: &[PathBuf]) -> Result<Self, SourceError> {
        let Found { manifest, places } = walk(paths)?;
        let mut source = Source {
            manifest,
            places,
            content: None,
        };
        if source.manifest.is_one_file() && source.manifest.bytes() == 0 {
            source.read_untold()?;
        }
        Ok(source)
    }

    /// Reads what is in a file that says to be empty.
    fn read_untold(&mut self) -> Result<(), SourceError> {
        let path = self.places[0].path();
        let file = self.places[0].open()?;
        let mut content = Vec::new();
        let read = file.take(MAX_UNTOLD + 1).read_to_end(&mut content);
        let read = read.map_err(|source| SourceError::open(path, source))?;
        if read as u64 > MAX_UNTOLD {
            return Err(SourceError::Endless(path.into()));
        }
        if read > 0 {
            self.manifest = self.manifest.resized(read as u64);
            self.content = Some(content);
        }
        Ok(())
    }

    /// The list for the receiver.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Starts the thread that reads. The thread ends when the chunks are dropped.
    pub fn read(self) -> Chunks {
        let (sender, chunks) = mpsc::channel(CHUNKS_AHEAD);
        tokio::task::spawn_blocking(move || {
            let last = self.read_into(&sender);
            // Nobody listens any more: the transfer has ended for another reason.
            let _ = match last {
                Ok(Some(digest)) => sender.blocking_send(Ok(Chunk::End(digest))),
                Ok(None) => Ok(()),
                Err(error) => sender.blocking_send(Err(error)),
            };
        });
        chunks
    }

    /// `None`: nobody wants the rest.
    fn read_into(
        mut self,
        chunks: &mpsc::Sender<Result<Chunk, SourceError>>,
    ) -> Result<Option<Digest>, SourceError> {
        let mut agreement = Agreement::on(&self.manifest);
        let content = self.content.take();
        for (number, bytes) in self.manifest.files() {
            let place = &self.places[number];
            let mut reading = Reading {
                place,
                bytes,
                at: 0,
                hash: Sha256::new(),
                chunks,
            };
            let wanted = match &content {
                Some(content) => reading.told(content),
                None => reading.file(&place.open()?)?,
            };
            if !wanted {
                return Ok(None);
            }
            let digest: Digest = reading.hash.finalize().into();
            agreement.add(&self.manifest.path(number), digest);
            let end = [&Record::End.encode()[..], &digest].concat();
            if !hand_over(chunks, end, 0) {
                return Ok(None);
            }
        }
        Ok(Some(agreement.digest()))
    }
}

/// False: nobody wants the rest.
fn hand_over(chunks: &mpsc::Sender<Result<Chunk, SourceError>>, wire: Vec<u8>, content: u64) -> bool {
    let wire = wire.into();
    chunks.blocking_send(Ok(Chunk::Records { wire, content })).is_ok()
}

/// One file on its way to the network.
struct Reading<'a> {
    place: &'a Place,
    bytes: u64,
    at: u64,
    hash: Sha256,
    chunks: &'a mpsc::Sender<Result<Chunk, SourceError>>,
}

impl Reading<'_> {
    /// What was read before. False, here and below: nobody wants the rest.
    fn told(&mut self, content: &[u8]) -> bool {
        content.chunks(CHUNK_BYTES).all(|chunk| {
            let mut wire = Record::Data(chunk.len() as u32).encode().to_vec();
            wire.extend_from_slice(chunk);
            self.data(wire)
        })
    }

    fn file(&mut self, file: &File) -> Result<bool, SourceError> {
        let found = file.metadata().map_err(|source| self.failed(source))?;
        let is_sparse = found.blocks().saturating_mul(512) < self.bytes;
        while self.at < self.bytes {
            let (hole, end) = if is_sparse {
                self.extent(file)
            } else {
                (false, self.bytes)
            };
            let wanted = match hole {
                true => self.hole(end - self.at),
                false => self.extent_data(file, end)?,
            };
            if !wanted {
                return Ok(false);
            }
        }
        self.place.check(file)?;
        Ok(true)
    }

    /// Is there a hole, and where does that change? A file system that does not tell has none.
    fn extent(&self, file: &File) -> (bool, u64) {
        use rustix::fs::{SeekFrom, seek};
        use rustix::io::Errno;
        let data = match seek(file, SeekFrom::Data(self.at)) {
            Ok(data) => data,
            Err(Errno::NXIO) => self.bytes,
            Err(_) => return (false, self.bytes),
        };
        if data > self.at {
            return (true, data.min(self.bytes));
        }
        let hole = seek(file, SeekFrom::Hole(self.at)).unwrap_or(self.bytes);
        // A file that is cut meanwhile is noticed when it is read.
        (
            false,
            if hole > self.at {
                hole.min(self.bytes)
            } else {
                self.bytes
            },
        )
    }

    fn hole(&mut self, mut bytes: u64) -> bool {
        while bytes > 0 {
            let part = bytes.min(MAX_HOLE);
            hash_zeros(&mut self.hash, part);
            (self.at, bytes) = (self.at + part, bytes - part);
            if !hand_over(self.chunks, Record::Hole(part as u32).encode().to_vec(), part) {
                return false;
            }
        }
        true
    }

    fn extent_data(&mut self, file: &File, end: u64) -> Result<bool, SourceError> {
        while self.at < end {
            let length = (end - self.at).min(CHUNK_BYTES as u64) as usize;
            let mut wire = Record::Data(length as u32).encode().to_vec();
            wire.resize(Record::BYTES + length, 0);
            self.fill(file, &mut wire[Record::BYTES..])?;
            if !self.data(wire) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Reads at the current place, and not on from there.
    fn fill(&self, file: &File, mut into: &mut [u8]) -> Result<(), SourceError> {
        let mut at = self.at;
        while !into.is_empty() {
            match file.read_at(into, at) {
                Ok(0) => return Err(self.place.resized(at)),
                Ok(read) => {
                    at += read as u64;
                    into = &mut into[read..];
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(self.failed(source)),
            }
        }
        Ok(())
    }

    /// Hands over a record with its data.
    fn data(&mut self, wire: Vec<u8>) -> bool {
        let data = &wire[Record::BYTES..];
        self.hash.update(data);
        let content = data.len() as u64;
        self.at += content;
        hand_over(self.chunks, wire, content)
    }

    fn failed(&self, source: io::Error) -> SourceError {
        SourceError::Read {
            path: self.place.path().into(),
            at: self.at,
            source,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::time::SystemTime;

    /// What a receiver would make of the records of one file.
    async fn all(mut chunks: Chunks) -> Result<(Vec<u8>, u64, Digest), SourceError> {
        let (mut data, mut holes) = (Vec::new(), 0);
        loop {
            let wire = match chunks.recv().await.expect("an end or an error comes first")? {
                Chunk::Records { wire, .. } => wire,
                Chunk::End(digest) => return Ok((data, holes, digest)),
            };
            let (record, rest) = wire.split_first_chunk().expect("a record");
            match Record::decode(*record).expect("a record") {
                Record::Data(bytes) => {
                    assert_eq!(rest.len(), bytes as usize);
                    data.extend_from_slice(rest);
                }
                Record::Hole(bytes) => {
                    holes += u64::from(bytes);
                    data.resize(data.len() + bytes as usize, 0);
                }
                Record::End => assert_eq!(rest, Sha256::digest(&data).as_slice()),
            }
        }
    }

    fn open(path: &Path) -> Result<Source, SourceError> {
        Source::open(&[path.to_owned()])
    }

    fn file(bytes: &[u8]) -> tempfile::NamedTempFile {
        let file = tempfile::Builder::new().prefix("file").tempfile();
        let mut file = file.expect("a temporary file");
        file.write_all(bytes).expect("written");
        file
    }

    #[tokio::test]
    async fn every_byte_comes_and_the_digest_is_that_of_the_file() {
        let content: Vec<u8> = (0..=255).cycle().take(CHUNK_BYTES * 2 + 1).collect();
        let file = file(&content);
        let source = open(file.path()).expect("opens");
        assert_eq!(source.manifest().bytes(), content.len() as u64);
        let (data, _, digest) = all(source.read()).await.expect("reads");
        assert_eq!(data, content);
        assert_eq!(digest, <Digest>::from(Sha256::digest(&content)));
    }

    #[tokio::test]
    async fn holes_are_not_read() {
        let file = file(b"begin");
        file.as_file().set_len(9 << 20).expect("longer");
        file.as_file().write_all_at(b"middle", 4 << 20).expect("written");
        let (data, holes, digest) = all(open(file.path()).expect("opens").read())
            .await
            .expect("reads");
        assert_eq!(data, std::fs::read(file.path()).expect("reads"));
        assert_eq!(digest, <Digest>::from(Sha256::digest(&data)));
        let keeps_holes = file.as_file().metadata().expect("there").blocks() * 512 < 9 << 20;
        assert_eq!(holes > 8 << 20, keeps_holes, "{holes}");
    }

    #[tokio::test]
    async fn a_file_that_shrinks_grows_or_changes_is_noticed() {
        let sentence = async |file: &tempfile::NamedTempFile, change: &dyn Fn(&File)| {
            let source = open(file.path()).expect("opens");
            change(file.as_file());
            all(source.read()).await.expect_err("changed").to_string()
        };
        let told = sentence(&file(&[1; 1000]), &|file| file.set_len(400).expect("cut")).await;
        assert!(told.contains("shrank from 1000 to 400"), "{told}");
        let told = sentence(&file(&[1; 1000]), &|file| file.set_len(1010).expect("longer")).await;
        assert!(told.contains("grew from 1000 to 1010"), "{told}");
        let touched = |file: &File| file.set_modified(SystemTime::UNIX_EPOCH).expect("touched");
        let told = sentence(&file(&[1; 1000]), &touched).await;
        assert!(told.contains("was written to"), "{told}");
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_file_whose_length_is_not_told_is_sent_whole() {
        let source = open(Path::new("/proc/self/mountinfo")).expect("opens");
        let bytes = source.manifest().bytes();
        assert!(bytes > 0);
        let (data, _, digest) = all(source.read()).await.expect("reads");
        assert_eq!(
            (data.len() as u64, digest),
            (bytes, <Digest>::from(Sha256::digest(&data)))
        );
        let empty = file(b"");
        let source = open(empty.path()).expect("opens");
        assert_eq!(all(source.read()).await.expect("reads").0, b"");
    }

    #[test]
    fn missing_files_are_refused_by_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let sentence = open(&folder.path().join("missing"))
            .expect_err("missing")
            .to_string();
        assert!(sentence.contains("missing"), "{sentence}");
    }
}
