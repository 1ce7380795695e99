//! The file to send. A thread of its own reads and hashes ahead of the network.

use super::{CHUNK_BYTES, CHUNKS_AHEAD, Digest};
use crate::output;
use bytes::Bytes;
use sha2::{Digest as _, Sha256};
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use thiserror::Error;
use tokio::sync::mpsc;

/// A file that was opened for sending.
#[derive(Debug)]
pub struct Source {
    path: PathBuf,
    name: String,
    bytes: u64,
    modified: Option<SystemTime>,
    file: File,
    /// All of a file whose length the system does not tell, as those of /proc.
    content: Option<Vec<u8>>,
}

/// Most bytes of such a file.
const MAX_UNTOLD: u64 = 64 << 20;

/// Why a file cannot be sent.
#[derive(Debug, Error)]
pub enum SourceError {
    /// It cannot be opened.
    #[error("{}: {source}; name a file that you may read", .path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// It is a folder, a device, a pipe.
    #[error("{} is {what}; send a regular file (pack folders first: tar -cf folder.tar FOLDER)", .path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// Its name is not text.
    #[error("{}: the name is not UTF-8; rename the file", .0.display())]
    Name(PathBuf),
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

/// What the reading thread hands over: pieces of the file, then its digest, or an error in their place.
pub type Chunks = mpsc::Receiver<Result<Chunk, SourceError>>;

/// One piece of a file.
#[derive(Debug)]
pub enum Chunk {
    /// Bytes of the file.
    Data(Bytes),
    /// All bytes have been handed over; their digest.
    End(Digest),
}

impl Source {
    /// Opens `path` and fixes its length.
    ///
    /// # Errors
    /// When it cannot be read or is no regular file.
    pub fn open(path: &Path) -> Result<Self, SourceError> {
        let failed = |source| SourceError::Open {
            path: path.into(),
            source,
        };
        // Asked before opening: to open a pipe without a writer waits for one.
        let what = std::fs::metadata(path).map_err(failed)?;
        if !what.is_file() {
            let what = if what.is_dir() {
                "a folder"
            } else {
                "no regular file"
            };
            return Err(SourceError::NotAFile {
                path: path.into(),
                what,
            });
        }
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.ok_or_else(|| SourceError::Name(path.into()))?.to_owned();
        let file = File::open(path).map_err(failed)?;
        let found = file.metadata().map_err(failed)?;
        let content = match found.len() {
            0 => Some(untold(&file).map_err(failed)?),
            _ => None,
        };
        if content
            .as_ref()
            .is_some_and(|content| content.len() as u64 > MAX_UNTOLD)
        {
            return Err(SourceError::Endless(path.into()));
        }
        Ok(Source {
            path: path.into(),
            name,
            bytes: content
                .as_ref()
                .map_or(found.len(), |content| content.len() as u64),
            modified: found.modified().ok(),
            content: content.filter(|content| !content.is_empty()),
            file,
        })
    }

    /// Its name without the folder.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its length when it was opened.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Starts the thread that reads it. The thread ends when the chunks are dropped.
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
        if let Some(content) = self.content.take() {
            return Ok(whole(content, chunks));
        }
        let mut hash = Sha256::new();
        let mut at = 0;
        while at < self.bytes {
            let length = (self.bytes - at).min(CHUNK_BYTES as u64) as usize;
            let chunk = self.next(length, at)?;
            hash.update(&chunk);
            at += chunk.len() as u64;
            if chunks.blocking_send(Ok(Chunk::Data(chunk.into()))).is_err() {
                return Ok(None);
            }
        }
        self.check_unchanged()?;
        Ok(Some(hash.finalize().into()))
    }

    fn next(&mut self, length: usize, at: u64) -> Result<Vec<u8>, SourceError> {
        let mut chunk = Vec::with_capacity(length);
        let read = (&mut self.file).take(length as u64).read_to_end(&mut chunk);
        match read {
            Ok(read) if read == length => Ok(chunk),
            Ok(read) => {
                let found = at + read as u64;
                Err(self.changed(format!("shrank from {} to {}", self.bytes, output::bytes(found))))
            }
            Err(source) => Err(SourceError::Read {
                path: self.path.clone(),
                at,
                source,
            }),
        }
    }

    fn check_unchanged(&self) -> Result<(), SourceError> {
        let found: Metadata = self.file.metadata().map_err(|source| SourceError::Read {
            path: self.path.clone(),
            at: self.bytes,
            source,
        })?;
        if found.len() > self.bytes {
            Err(self.changed(format!(
                "grew from {} to {}",
                self.bytes,
                output::bytes(found.len())
            )))
        } else if found.len() < self.bytes {
            Err(self.changed(format!(
                "shrank from {} to {}",
                self.bytes,
                output::bytes(found.len())
            )))
        } else if found.modified().ok() != self.modified {
            Err(self.changed("was written to".into()))
        } else {
            Ok(())
        }
    }

    fn changed(&self, how: String) -> SourceError {
        SourceError::Changed {
            path: self.path.clone(),
            how,
        }
    }
}

/// What is in a file that says to be empty; a byte more than is allowed at most.
fn untold(mut file: &File) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    Read::take(&mut file, MAX_UNTOLD + 1).read_to_end(&mut content)?;
    Ok(content)
}

/// Hands over `content`; its digest, or `None` when nobody wants the rest.
fn whole(content: Vec<u8>, chunks: &mpsc::Sender<Result<Chunk, SourceError>>) -> Option<Digest> {
    let content = Bytes::from(content);
    for begin in (0..content.len()).step_by(CHUNK_BYTES) {
        let chunk = content.slice(begin..content.len().min(begin + CHUNK_BYTES));
        chunks.blocking_send(Ok(Chunk::Data(chunk))).ok()?;
    }
    Some(Sha256::digest(&content).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    async fn all(mut chunks: Chunks) -> Result<(Vec<u8>, Digest), SourceError> {
        let mut data = Vec::new();
        loop {
            match chunks.recv().await.expect("an end or an error comes first")? {
                Chunk::Data(bytes) => data.extend_from_slice(&bytes),
                Chunk::End(digest) => return Ok((data, digest)),
            }
        }
    }

    fn file(bytes: &[u8]) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
        file.write_all(bytes).expect("written");
        file
    }

    #[tokio::test]
    async fn every_byte_comes_and_the_digest_is_that_of_the_file() {
        let content: Vec<u8> = (0..=255).cycle().take(CHUNK_BYTES * 2 + 1).collect();
        let file = file(&content);
        let source = Source::open(file.path()).expect("opens");
        assert_eq!(source.bytes(), content.len() as u64);
        let (data, digest) = all(source.read()).await.expect("reads");
        assert_eq!(data, content);
        assert_eq!(digest, <Digest>::from(Sha256::digest(&content)));
    }

    #[tokio::test]
    async fn a_file_that_shrinks_grows_or_changes_is_noticed() {
        let shrinks = file(&[1; 1000]);
        let source = Source::open(shrinks.path()).expect("opens");
        shrinks.as_file().set_len(400).expect("cut");
        let sentence = all(source.read()).await.expect_err("shrank").to_string();
        assert!(sentence.contains("shrank from 1000 to 400"), "{sentence}");

        let mut grows = file(&[1; 1000]);
        let source = Source::open(grows.path()).expect("opens");
        grows.write_all(&[2; 10]).expect("written");
        let sentence = all(source.read()).await.expect_err("grew").to_string();
        assert!(sentence.contains("grew from 1000 to 1010"), "{sentence}");

        let changes = file(&[1; 1000]);
        let source = Source::open(changes.path()).expect("opens");
        let later = SystemTime::UNIX_EPOCH;
        changes.as_file().set_modified(later).expect("touched");
        let sentence = all(source.read()).await.expect_err("changed").to_string();
        assert!(sentence.contains("was written to"), "{sentence}");
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_file_whose_length_is_not_told_is_sent_whole() {
        let source = Source::open(Path::new("/proc/self/mountinfo")).expect("opens");
        assert!(source.bytes() > 0);
        let bytes = source.bytes();
        let (data, digest) = all(source.read()).await.expect("reads");
        assert_eq!(
            (data.len() as u64, digest),
            (bytes, <Digest>::from(Sha256::digest(&data)))
        );
        let empty = Source::open(file(b"").path()).expect("opens");
        assert_eq!(all(empty.read()).await.expect("reads").0, b"");
    }

    #[test]
    fn folders_and_missing_files_are_refused_by_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let sentence = Source::open(folder.path()).expect_err("a folder").to_string();
        assert!(sentence.contains("is a folder"), "{sentence}");
        let missing = folder.path().join("missing");
        let sentence = Source::open(&missing).expect_err("missing").to_string();
        assert!(sentence.contains("missing"), "{sentence}");
    }
}
