//! What is sent. A thread of its own reads and hashes ahead of the network.

use super::agreement::Agreement;
use super::manifest::{Manifest, ManifestError};
use super::reading::Reading;
use super::told::Told;
use super::walk::{Found, Place, STDIN, Selection, Unsendable, walk};
use super::{CHUNKS_AHEAD, Digest, LEAD_BYTES};
use bytes::Bytes;
use std::io::{self, Read};
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
    left_out: Vec<SourceError>,
    unsendable: Unsendable,
}

/// Most bytes of such a file.
const MAX_UNTOLD: u64 = 64 << 20;

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
    /// So many below what was named, of which this is the first.
    #[error("{first}{}", and_more(*.more))]
    Unsendable {
        /// Why.
        first: Box<SourceError>,
        /// Others.
        more: usize,
    },
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
    /// Standard input is named twice, or was read already.
    #[error("standard input can be read once; send to a file first, and then that")]
    Again,
    /// Its length is not told, and it does not end.
    #[error("{}: the system tells no length, and it is longer than {} MiB; copy it to a regular file first", .0.display(), MAX_UNTOLD >> 20)]
    Endless(PathBuf),
    /// Its length is not told, and others are sent with it.
    #[error("{}: the system tells no length; send it by itself, or copy it to a regular file first", .0.display())]
    Untold(PathBuf),
    /// It has another length or another time of change than at the start.
    #[error("{} {how} while it was read; do it again when nobody writes to it", .path.display())]
    Changed {
        /// The file.
        path: PathBuf,
        /// What happened to it.
        how: String,
    },
}

impl SourceError {
    /// Is it this file that has vanished, changed, or may not be read? A disk that fails is no matter of one file.
    fn is_of_the_file(&self) -> bool {
        match self {
            SourceError::Open { source, .. } => {
                // A link in its place is not followed.
                let is_link = source.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error());
                is_link
                    || matches!(
                        source.kind(),
                        io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied
                    )
            }
            SourceError::Changed { .. } | SourceError::Untold(_) => true,
            _ => false,
        }
    }

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
        /// Of these, bytes that are there already.
        resumed: u64,
    },
    /// A file does not come after all.
    Left {
        /// As it is said.
        wire: Bytes,
        /// Bytes of it that were handed over.
        content: u64,
        /// Of these, bytes that are there already.
        resumed: u64,
        /// Why.
        why: String,
    },
    /// Everything has been handed over; the digest to agree on.
    End(Digest),
}

fn and_more(count: usize) -> String {
    match count {
        0 => String::new(),
        more => format!(" (and {more} more that cannot be sent)"),
    }
}

impl Source {
    /// What is left out, and why.
    pub fn left_out(&self) -> &[SourceError] {
        &self.left_out
    }

    /// Finds everything below `paths` and fixes lengths. `-` is standard input, which arrives as a file of the name given.
    ///
    /// # Errors
    /// When something cannot be read or is of no kind that can be sent.
    pub fn open(paths: &[PathBuf], name_of_stdin: &str, selection: &Selection) -> Result<Self, SourceError> {
        if paths.iter().filter(|path| path.as_os_str() == STDIN).count() > 1 {
            return Err(SourceError::Again);
        }
        let Found {
            manifest,
            places,
            left_out,
            untold,
        } = walk(paths, name_of_stdin, selection)?;
        let mut source = Source {
            manifest,
            places,
            left_out,
            unsendable: selection.unsendable,
            content: None,
        };
        match untold {
            Some(_) if source.manifest.is_one_file() => source.read_untold()?,
            Some(path) => return Err(SourceError::Untold(path)),
            None => {}
        }
        Ok(source)
    }

    /// Reads what is in the only file, which says to be empty.
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

    /// Starts the thread that reads what is not `told` to be there. The thread ends when the chunks are dropped.
    pub fn read(self, told: Told) -> Chunks {
        let (sender, chunks) = mpsc::channel(CHUNKS_AHEAD);
        tokio::task::spawn_blocking(move || {
            let last = self.read_into(&sender, told);
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
        mut told: Told,
    ) -> Result<Option<Digest>, SourceError> {
        let mut agreement = Agreement::on(&self.manifest);
        let content = self.content.take();
        let mut lead = LEAD_BYTES;
        let leaves = self.unsendable == Unsendable::LeftOut && !self.manifest.is_one_file();
        for (count, (number, bytes)) in self.manifest.files().enumerate() {
            let place = &self.places[number];
            let mut reading = Reading::of(place, (count, bytes.unwrap_or(0)), (&mut told, &mut lead), chunks);
            let read = match (&content, bytes) {
                (Some(content), _) => Ok(reading.content(content)),
                (None, Some(_)) => place.open().and_then(|file| reading.file(&file)),
                (None, None) => reading.stream(io::stdin().lock()),
            };
            let digest = match read {
                Ok(Some(digest)) => digest,
                Ok(None) => return Ok(None),
                Err(error) if leaves && error.is_of_the_file() => match reading.leave(&error) {
                    true => continue,
                    false => return Ok(None),
                },
                Err(error) => return Err(error),
            };
            agreement.add(&self.manifest.path(number), digest);
        }
        Ok(Some(agreement.digest()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::CHUNK_BYTES;
    use super::super::message::{Answer, Record};
    use super::*;
    use sha2::{Digest as _, Sha256};
    use std::fs::File;
    use std::io::Write;
    use std::os::unix::fs::{FileExt, MetadataExt};
    use std::time::SystemTime;

    /// What a receiver would make of the records of one file.
    async fn all(mut chunks: Chunks) -> Result<(Vec<u8>, u64, Digest), SourceError> {
        let (mut data, mut holes) = (Vec::new(), 0);
        loop {
            let wire = match chunks.recv().await.expect("an end or an error comes first")? {
                Chunk::Records { wire, .. } | Chunk::Left { wire, .. } => wire,
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
                Record::Same(_) | Record::Left => panic!("nothing is there"),
                Record::End => assert_eq!(rest, Sha256::digest(&data).as_slice()),
            }
        }
    }

    /// A receiver that has nothing.
    fn nothing() -> Told {
        let (tell, told) = mpsc::channel(1);
        tell.try_send(Answer::Nothing(1)).expect("room");
        Told::by(told)
    }

    fn open(path: &Path) -> Result<Source, SourceError> {
        Source::open(&[path.to_owned()], "", &Unsendable::Refused.into())
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
        assert_eq!(source.manifest().bytes(), Some(content.len() as u64));
        let (data, _, digest) = all(source.read(nothing())).await.expect("reads");
        assert_eq!(data, content);
        assert_eq!(digest, <Digest>::from(Sha256::digest(&content)));
    }

    #[tokio::test]
    async fn holes_are_not_read() {
        let file = file(b"begin");
        file.as_file().set_len(9 << 20).expect("longer");
        file.as_file().write_all_at(b"middle", 4 << 20).expect("written");
        let (data, holes, digest) = all(open(file.path()).expect("opens").read(nothing()))
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
            all(source.read(nothing()))
                .await
                .expect_err("changed")
                .to_string()
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
        let bytes = source.manifest().bytes().expect("known");
        assert!(bytes > 0);
        let (data, _, digest) = all(source.read(nothing())).await.expect("reads");
        assert_eq!(
            (data.len() as u64, digest),
            (bytes, <Digest>::from(Sha256::digest(&data)))
        );
        let empty = file(b"");
        let source = open(empty.path()).expect("opens");
        assert_eq!(all(source.read(nothing())).await.expect("reads").0, b"");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_whose_length_is_not_told_is_refused_beside_others() {
        let other = file(b"");
        let paths = [other.path().to_owned(), PathBuf::from("/proc/self/mountinfo")];
        let refused = Source::open(&paths, "", &Unsendable::Refused.into())
            .expect_err("has content")
            .to_string();
        assert!(
            refused.contains("mountinfo") && refused.contains("tells no length"),
            "{refused}"
        );
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
