//! Keys of hosts by the address at which they were first met: `restp/known_peers`, one line each, beside the user's key. To
//! lose a line is to believe anybody at that address once more, so processes that write at the same time keep each other's, and a
//! line that is no address and key is an error.
//!
//! ```text
//! 192.0.2.1 jbswy3dp…            whatever its port: a receiver takes a free one each time it starts
//! 192.0.2.1:4001 mfzwizlg…       of one port only; such a line comes before the other
//! ```

use crate::files;
use restp_seal::PublicKey;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use thiserror::Error;

/// Hosts remembered at most; those met first are forgotten first.
const MAX_HOSTS: usize = 8192;

/// Longest file that is read: more than as many hosts take.
const MAX_BYTES: u64 = 1 << 20;

/// Why keys of hosts cannot be looked up or remembered. To go on without them would be to believe anybody.
#[derive(Debug, Error)]
pub enum KnownHostsError {
    /// Nothing says where this user keeps files.
    #[error(
        "neither XDG_DATA_HOME nor HOME says where known hosts are kept; set one of them, or say the key that is expected (a ticket has it)"
    )]
    NoPlace,
    /// The file cannot be read.
    #[error("{}: {source}; {way} to trust on first use again", .path.display(), way = way_out(.source))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A line of the file means nothing.
    #[error("{}, line {line}: {what}", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What is wrong, and the way out.
        what: &'static str,
    },
    /// The file cannot be written.
    #[error(
        "{}: {source}; the key {key} of {name} cannot be remembered: {way}, or say the key that is expected \
         (a ticket has it)", .path.display(), way = way_to_write(.source)
    )]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The host.
        name: String,
        /// The key that it proved.
        key: PublicKey,
        /// What the system says.
        source: io::Error,
    },
    /// Another process met another key under the same name, at the same time.
    #[error(
        "THE KEY OF {name} IS IN DOUBT: this run met {met} there, another run at the same time {kept}; somebody may be in \
         between. {} keeps {kept}: say the key that is expected (a ticket has it), and correct the line if it is wrong",
        .path.display()
    )]
    Conflict {
        /// The file.
        path: PathBuf,
        /// The host.
        name: String,
        /// The key of this run.
        met: PublicKey,
        /// The key of the other one, which stays.
        kept: PublicKey,
    },
}

fn way_to_write(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "make room there",
        _ => "make the file one that you can write",
    }
}

fn way_out(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::PermissionDenied => "make it readable for you, or move it away",
        _ => "move it away",
    }
}

/// Keys of hosts by name, as they were when this was loaded, and those met since. Clones share them.
#[derive(Clone, Debug)]
pub struct KnownHosts(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    lines: Vec<Line>,
    met: Vec<Line>,
}

type Line = (Name, PublicKey);

/// A host whatever its port, or one port of it. IPv4 addresses have their own form, not that of IPv6.
type Name = (IpAddr, Option<u16>);

impl KnownHosts {
    /// Those of this user, which the command line uses as well.
    ///
    /// # Errors
    /// When there is no place for them, the file cannot be read, or a line of it means nothing.
    pub fn of_user() -> Result<Self, KnownHostsError> {
        Self::load(files::of_user("known_peers").ok_or(KnownHostsError::NoPlace)?)
    }

    /// Those in the file at `path`; none where no file is yet.
    ///
    /// # Errors
    /// When it cannot be read, or a line of it means nothing: to skip it would be to believe anybody.
    pub fn load(path: impl Into<PathBuf>) -> Result<Self, KnownHostsError> {
        let path = path.into();
        match files::read(&path, MAX_BYTES) {
            Ok(bytes) => Self::parse(path, &bytes),
            Err(error) if error.kind() == ErrorKind::NotFound => Self::parse(path, &[]),
            Err(source) => Err(KnownHostsError::Unreadable { path, source }),
        }
    }

    /// Those in `bytes`, the contents of the file at `path`.
    ///
    /// # Errors
    /// When a line means nothing, or contradicts another.
    pub fn parse(path: PathBuf, bytes: &[u8]) -> Result<Self, KnownHostsError> {
        let lines = parse_lines(&path, bytes)?;
        let met = Vec::new();
        let state = Mutex::new(State { lines, met });
        Ok(KnownHosts(Arc::new(Inner { path, state })))
    }

    /// Where they lie.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// The key of the host at `address`: that of a line for this port, or else for any.
    pub fn key_of(&self, address: SocketAddr) -> Option<PublicKey> {
        key_of(&self.state().lines, address)
    }

    /// Remembers the key of the host at `address`, which was met for the first time, beside what others have written meanwhile.
    /// Waits for other processes that write.
    ///
    /// # Errors
    /// When another process has met another key there, which stays, or the file cannot be changed.
    pub fn learn(&self, address: SocketAddr, key: PublicKey) -> Result<(), KnownHostsError> {
        let path = self.path();
        let name = (address.ip().to_canonical(), None);
        let unwritable = |source| KnownHostsError::Unwritable {
            path: path.to_owned(),
            name: text_of(name),
            key,
            source,
        };
        let mut known = Vec::new();
        files::update(path, MAX_BYTES, |before| {
            let before = before.map_err(|error| Failed::Refused(unwritable(error)))?;
            let mut lines = parse_lines(path, &before).map_err(Failed::Refused)?;
            match key_of(&lines, address) {
                Some(there) if there == key => {}
                Some(kept) => {
                    return Err(Failed::Refused(KnownHostsError::Conflict {
                        path: path.to_owned(),
                        name: text_of(name),
                        met: key,
                        kept,
                    }));
                }
                None => lines.push((name, key)),
            }
            keep_latest(&mut lines);
            known = lines;
            let text: String = known
                .iter()
                .map(|(name, key)| format!("{} {key}\n", text_of(*name)))
                .collect();
            Ok(text.into_bytes().into())
        })
        .map_err(|failed| match failed {
            Failed::Refused(why) => why,
            Failed::Unchanged(source) => unwritable(source),
        })?;
        let mut state = self.state();
        state.lines = known;
        state.met.push((name, key));
        keep_latest(&mut state.met);
        Ok(())
    }

    /// The hosts that were met for the first time since the last call, and are remembered now.
    pub fn take_met(&self) -> Vec<(String, PublicKey)> {
        let met = std::mem::take(&mut self.state().met);
        met.into_iter().map(|(name, key)| (text_of(name), key)).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why a change did not happen.
enum Failed {
    Refused(KnownHostsError),
    Unchanged(io::Error),
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        Failed::Unchanged(error)
    }
}

fn keep_latest(lines: &mut Vec<Line>) {
    lines.drain(..lines.len().saturating_sub(MAX_HOSTS));
}

fn text_of((ip, port): Name) -> String {
    port.map_or_else(|| ip.to_string(), |port| SocketAddr::new(ip, port).to_string())
}

fn key_of(lines: &[Line], address: SocketAddr) -> Option<PublicKey> {
    let of = |port| {
        let name = (address.ip().to_canonical(), port);
        lines
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, key)| *key)
    };
    of(Some(address.port())).or_else(|| of(None))
}

fn parse_lines(path: &Path, bytes: &[u8]) -> Result<Vec<Line>, KnownHostsError> {
    let text = String::from_utf8_lossy(bytes);
    let mut lines: Vec<Line> = Vec::new();
    let mut names = BTreeMap::new();
    for (line, words) in (1..).zip(text.lines()) {
        let damaged = |what| KnownHostsError::Damaged {
            path: path.to_owned(),
            line,
            what,
        };
        let (name, key) = parse(words).ok_or_else(|| {
            let is_text = !words.contains(|c: char| c == char::REPLACEMENT_CHARACTER || c.is_control());
            damaged(if is_text { NO_LINE } else { NO_TEXT })
        })?;
        if names.insert(name, key).is_some_and(|before| before != key) {
            return Err(damaged(CONTRADICTION));
        }
        lines.push((name, key));
    }
    Ok(lines)
}

const NO_LINE: &str = "not an address and a key; correct or remove the line";
const NO_TEXT: &str = "the file is damaged there, it is not text; correct or remove the line, or move the file away to trust on \
                       first use again";
const CONTRADICTION: &str =
    "another key than in a line before it, of the same address; remove the wrong one of them";

fn parse(line: &str) -> Option<Line> {
    let (name, key) = line.split_once(' ')?;
    let (ip, port) = match name.parse::<SocketAddr>() {
        Ok(address) => (address.ip(), Some(address.port())),
        Err(_) => (name.parse().ok()?, None),
    };
    // Of exactly its length: a parser that trims would take what looks like another line.
    (key.len() == PublicKey::TEXT)
        .then(|| Some(((ip.to_canonical(), port), key.parse().ok()?)))
        .flatten()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "in a test a failed unwrap is a failed test")]
mod tests;
