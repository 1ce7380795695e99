//! Keys of hosts by the address where they were first met: `restp/known_peers`, one line each, beside the user's key. To
//! lose a line is to believe anybody at that address once more, so runs that end at the same time keep each other's.

use crate::failure::Failure;
use crate::{files, keys};
use restp::PublicKey;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Keys of hosts by address, as they were when this run began.
#[derive(Debug)]
pub struct KnownPeers {
    path: PathBuf,
    lines: Vec<(SocketAddr, PublicKey)>,
}

/// Hosts remembered at most; those met first are forgotten first.
const MAX_PEERS: usize = 8192;

/// Longest file that is read: more than as many hosts take.
const MAX_BYTES: u64 = 1 << 20;

/// Why the key of a host was not remembered.
#[derive(Debug, Error)]
pub enum LearnError {
    /// The file cannot be read or written.
    #[error(transparent)]
    File(#[from] io::Error),
    /// It has become damaged.
    #[error("{}", .0.message())]
    Damaged(Failure),
    /// Another run met another key at the same address.
    #[error("another run has met {0} there")]
    Conflict(PublicKey),
}

impl KnownPeers {
    /// This user's; without a place for it nothing is known.
    ///
    /// # Errors
    /// When the file cannot be read or a line of it means nothing: to skip it would be to believe anybody.
    pub fn load() -> Result<Option<Self>, Failure> {
        let Some(path) = keys::of_user("known_peers") else {
            return Ok(None);
        };
        let name = path.display();
        let bytes = match files::read(&path, MAX_BYTES) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(error) => {
                let rule = match error.kind() {
                    ErrorKind::PermissionDenied => "make it readable for you, or move it away",
                    _ => "move it away",
                };
                return Err(Failure::input(format!(
                    "{name}: {error}; {rule} to trust on first use again"
                )));
            }
        };
        Self::parse(path, &bytes).map(Some)
    }

    /// Those in `bytes`, the contents of the file at `path`.
    ///
    /// # Errors
    /// When a line means nothing.
    pub fn parse(path: PathBuf, bytes: &[u8]) -> Result<Self, Failure> {
        let lines = parse_lines(&path, bytes)?;
        Ok(KnownPeers { path, lines })
    }

    /// The key of the host at `address`.
    pub fn key_of(&self, address: SocketAddr) -> Option<PublicKey> {
        key_of(&self.lines, address)
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Remembers the key of a host that was met for the first time, beside what others have written meanwhile.
    ///
    /// # Errors
    /// When another run has met another key there, which stays, or the file cannot be changed.
    pub fn learn(&self, address: SocketAddr, key: PublicKey) -> Result<(), LearnError> {
        files::update(&self.path, MAX_BYTES, |before| {
            let before = before?;
            let mut lines = parse_lines(&self.path, &before).map_err(LearnError::Damaged)?;
            match key_of(&lines, address) {
                Some(there) if there == key => return Ok(before),
                Some(there) => return Err(LearnError::Conflict(there)),
                None => lines.push((address, key)),
            }
            let surplus = lines.len().saturating_sub(MAX_PEERS);
            let lines = lines.iter().skip(surplus);
            let text: String = lines.map(|(address, key)| format!("{address} {key}\n")).collect();
            Ok(text.into_bytes())
        })
    }
}

fn key_of(lines: &[(SocketAddr, PublicKey)], address: SocketAddr) -> Option<PublicKey> {
    let found = lines.iter().rev().find(|(known, _)| *known == address);
    found.map(|(_, key)| *key)
}

fn parse_lines(path: &Path, bytes: &[u8]) -> Result<Vec<(SocketAddr, PublicKey)>, Failure> {
    let text = String::from_utf8_lossy(bytes);
    let parse = |(number, line): (usize, &str)| {
        let parsed = line
            .split_once(' ')
            .and_then(|(address, key)| Some((address.parse().ok()?, key.parse().ok()?)));
        parsed.ok_or_else(|| {
            let name = path.display();
            let text = !line.contains(|c: char| c == char::REPLACEMENT_CHARACTER || c.is_control());
            Failure::input(if text {
                format!("{name}, line {number}: not an address and a key; correct or remove the line")
            } else {
                format!(
                    "{name}, line {number}: the file is damaged there, it is not text; correct or remove the line, or \
                     move the file away to trust on first use again"
                )
            })
        })
    };
    (1..).zip(text.lines()).map(parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    fn key() -> PublicKey {
        keys::fresh().unwrap().public()
    }

    /// What a run that begins now knows.
    fn begin(path: &Path) -> KnownPeers {
        let bytes = fs::read(path).unwrap_or_default();
        KnownPeers::parse(path.to_owned(), &bytes).unwrap()
    }

    #[test]
    fn a_known_peer_stays_known() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("restp").join("known_peers");
        let (peers, key) = (begin(&path), key());
        assert_eq!(peers.key_of(address(1)), None);
        peers.learn(address(1), key).unwrap();
        peers.learn(address(1), key).unwrap();
        assert_eq!(begin(&path).key_of(address(1)), Some(key));
        let text = fs::read_to_string(peers.path()).unwrap();
        assert_eq!(text, format!("127.0.0.1:1 {key}\n"));
    }

    #[test]
    fn runs_that_began_together_keep_what_each_other_learnt() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("known_peers");
        let (first, second) = (begin(&path), begin(&path));
        let (one, two) = (key(), key());
        first.learn(address(1), one).unwrap();
        second.learn(address(2), two).unwrap();
        let after = begin(&path);
        assert_eq!(
            (after.key_of(address(1)), after.key_of(address(2))),
            (Some(one), Some(two))
        );
    }

    #[test]
    fn a_line_that_the_user_removes_during_a_transfer_stays_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("known_peers");
        begin(&path).learn(address(1), key()).unwrap();
        let run = begin(&path);
        fs::write(&path, "").unwrap();
        run.learn(address(2), key()).unwrap();
        assert_eq!(begin(&path).key_of(address(1)), None);
    }

    #[test]
    fn another_key_that_another_run_met_meanwhile_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("known_peers");
        let (first, second) = (begin(&path), begin(&path));
        let (one, two) = (key(), key());
        first.learn(address(1), one).unwrap();
        let conflict = second.learn(address(1), two).unwrap_err();
        assert!(matches!(conflict, LearnError::Conflict(there) if there == one));
        assert_eq!(begin(&path).key_of(address(1)), Some(one));
        fs::write(&path, "rubbish\n").unwrap();
        let damaged = second.learn(address(2), two).unwrap_err();
        assert!(damaged.to_string().contains("line 1"), "{damaged}");
    }

    #[test]
    fn the_hosts_met_first_are_forgotten_first() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("known_peers");
        let key = key();
        let many = (1..).take(MAX_PEERS);
        let text: String = many.map(|port| format!("{} {key}\n", address(port))).collect();
        fs::write(&path, text).unwrap();
        begin(&path).learn(address(60_000), key).unwrap();
        let after = begin(&path);
        assert_eq!((after.key_of(address(1)), after.lines.len()), (None, MAX_PEERS));
        assert_eq!(after.key_of(address(60_000)), Some(key));
    }

    #[test]
    fn bytes_that_are_no_text_are_damage_at_a_line() {
        let good = format!("127.0.0.1:1 {}\n", key());
        for damage in [&b"\xff\xfe\x00"[..], b"127.0.0.1:2 \0\0\0\n"] {
            let bytes = [good.as_bytes(), damage].concat();
            let failure = KnownPeers::parse("known_peers".into(), &bytes).unwrap_err();
            let sentence = failure.message();
            assert!(sentence.contains("line 2: the file is damaged"), "{sentence}");
            assert!(sentence.contains("move the file away") && !sentence.contains("readable"));
        }
    }
}
