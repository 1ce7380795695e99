//! Keys of hosts by the name under which they were first met: `restp/known_peers`, one line each, beside the user's key. To
//! lose a line is to believe anybody under that name once more, so processes that write at the same time keep each other's.
//!
//! ```text
//! 192.0.2.1 jbswy3dp…            whatever its port: a receiver takes a free one each time it starts
//! 192.0.2.1:4001 mfzwizlg…       of one port only; such a line comes before the other
//! ```

use crate::files;
use restp_seal::PublicKey;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use thiserror::Error;

/// Hosts remembered at most; those met first are forgotten first.
const MAX_HOSTS: usize = 8192;

/// Longest file that is read: more than as many hosts take.
const MAX_BYTES: u64 = 1 << 20;

/// Longest name: that of a host (RFC 1035 §2.3.4) and a port.
const MAX_NAME: usize = 255 + 6;

/// Why keys of hosts cannot be looked up or remembered. To go on without them would be to believe anybody.
#[derive(Debug, Error)]
pub enum KnownHostsError {
    /// Nothing says where this user keeps files.
    #[error(
        "neither XDG_DATA_HOME nor HOME says where known hosts are kept; set one of them, or say the key that is expected"
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
        "{}: {source}; the key {key} of {name} cannot be remembered: make the file one that you can write, or say the key that \
         is expected", .path.display()
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

/// A name and a key.
type Line = (String, PublicKey);

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
        let name = name_of(address);
        let unwritable = |source| KnownHostsError::Unwritable {
            path: path.to_owned(),
            name: name.clone(),
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
                        name: name.clone(),
                        met: key,
                        kept,
                    }));
                }
                None => lines.push((name.clone(), key)),
            }
            let surplus = lines.len().saturating_sub(MAX_HOSTS);
            known = lines.split_off(surplus);
            let text: String = known
                .iter()
                .map(|(name, key)| format!("{name} {key}\n"))
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
        Ok(())
    }

    /// The hosts that were met for the first time since the last call, and are remembered now.
    pub fn take_met(&self) -> Vec<(String, PublicKey)> {
        std::mem::take(&mut self.state().met)
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

/// Under which the host at `address` is remembered.
fn name_of(address: SocketAddr) -> String {
    address.ip().to_canonical().to_string()
}

fn key_of(lines: &[Line], address: SocketAddr) -> Option<PublicKey> {
    let of = |name: &str| lines.iter().find(|(known, _)| known == name).map(|(_, key)| *key);
    let port = SocketAddr::new(address.ip().to_canonical(), address.port());
    of(&port.to_string()).or_else(|| of(&name_of(address)))
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
        if names
            .insert(name.clone(), key)
            .is_some_and(|before| before != key)
        {
            return Err(damaged(CONTRADICTION));
        }
        lines.push((name, key));
    }
    Ok(lines)
}

const NO_LINE: &str = "not a name and a key; correct or remove the line";
const NO_TEXT: &str = "the file is damaged there, it is not text; correct or remove the line, or move the file away to trust on \
                       first use again";
const CONTRADICTION: &str =
    "another key than in a line before it, of the same name; remove the wrong one of them";

fn parse(line: &str) -> Option<Line> {
    let (name, key) = line.split_once(' ')?;
    let is_of_names = |c: char| c.is_ascii_alphanumeric() || ".:-_[]".contains(c);
    let is_name = (1..=MAX_NAME).contains(&name.len()) && name.chars().all(is_of_names);
    // Of exactly its length: a parser that trims would take what looks like another line.
    (is_name && key.len() == PublicKey::TEXT)
        .then(|| Some((name.to_owned(), key.parse().ok()?)))
        .flatten()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "in a test a failed unwrap is a failed test")]
mod tests {
    use super::*;
    use crate::Identity;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    fn address(host: u8, port: u16) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, host], port))
    }

    fn key() -> PublicKey {
        Identity::fresh().unwrap().secret.public()
    }

    fn file() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("restp").join("known_peers");
        (folder, path)
    }

    fn load(path: &Path) -> KnownHosts {
        KnownHosts::load(path).unwrap()
    }

    #[test]
    fn a_known_host_stays_known_whatever_its_port_and_in_a_file_of_its_owner() {
        let (_folder, path) = file();
        let (hosts, key) = (load(&path), key());
        assert_eq!(hosts.key_of(address(1, 1)), None);
        hosts.learn(address(1, 1), key).unwrap();
        hosts.learn(address(1, 1), key).unwrap();
        for hosts in [hosts.clone(), load(&path)] {
            assert_eq!(hosts.key_of(address(1, 1)), Some(key));
            assert_eq!(hosts.key_of(address(1, 2)), Some(key), "as it starts again");
            assert_eq!(hosts.key_of(address(2, 1)), None);
        }
        assert_eq!(hosts.take_met().len(), 2);
        assert_eq!(hosts.take_met(), []);
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("10.0.0.1 {key}\n"));
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    }

    #[test]
    fn a_line_of_one_port_comes_before_that_of_the_host() {
        let (host, port) = (key(), key());
        let text =
            format!("10.0.0.1 {host}\n10.0.0.1:9 {port}\n2001:db8::1 {host}\n[2001:db8::1]:9 {port}\n");
        let hosts = KnownHosts::parse("known_peers".into(), text.as_bytes()).unwrap();
        for ip in ["10.0.0.1", "::ffff:10.0.0.1", "2001:db8::1"] {
            let of = |port| hosts.key_of(SocketAddr::new(ip.parse().unwrap(), port));
            assert_eq!((of(8), of(9)), (Some(host), Some(port)), "{ip}");
        }
    }

    #[test]
    fn processes_that_began_together_keep_what_each_other_learnt() {
        let (_folder, path) = file();
        let key = key();
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let hosts = load(&path);
                scope.spawn(move || {
                    for host in 0..8 {
                        hosts.learn(address(thread * 8 + host, 1), key).unwrap();
                    }
                });
            }
        });
        let after = load(&path);
        assert!((0..64).all(|host| after.key_of(address(host, 1)) == Some(key)));
        let entries = fs::read_dir(path.parent().unwrap()).unwrap();
        assert_eq!(
            entries.count(),
            2,
            "it and its lock: nothing half written is left"
        );
    }

    #[test]
    fn a_line_that_the_user_removes_meanwhile_stays_removed() {
        let (_folder, path) = file();
        let hosts = load(&path);
        hosts.learn(address(1, 1), key()).unwrap();
        fs::write(&path, "").unwrap();
        hosts.learn(address(2, 1), key()).unwrap();
        assert_eq!(load(&path).key_of(address(1, 1)), None);
    }

    #[test]
    fn another_key_that_another_process_met_meanwhile_is_not_overwritten() {
        let (_folder, path) = file();
        let (first, second) = (load(&path), load(&path));
        let (one, two) = (key(), key());
        first.learn(address(1, 1), one).unwrap();
        let conflict = second.learn(address(1, 2), two).unwrap_err();
        let sentence = conflict.to_string();
        assert!(sentence.contains("IS IN DOUBT") && sentence.contains(&one.to_string()));
        assert!(sentence.contains(&two.to_string()) && second.take_met().is_empty());
        assert_eq!(load(&path).key_of(address(1, 1)), Some(one));
        fs::write(&path, "rubbish\n").unwrap();
        let damaged = second.learn(address(2, 1), two).unwrap_err();
        assert!(damaged.to_string().contains("line 1"), "{damaged}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "rubbish\n");
    }

    #[test]
    fn a_place_that_cannot_be_written_is_an_error_with_the_key() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("restp"), "a file").unwrap();
        let (path, key) = (folder.path().join("restp").join("known_peers"), key());
        let hosts = KnownHosts::parse(path, &[]).unwrap();
        let sentence = hosts.learn(address(1, 1), key).unwrap_err().to_string();
        assert!(sentence.contains(&key.to_string()) && sentence.contains("cannot be remembered"));
        assert_eq!(hosts.key_of(address(1, 1)), None);
    }

    #[test]
    fn the_hosts_met_first_are_forgotten_first() {
        let (_folder, path) = file();
        let key = key();
        let many = (1..).take(MAX_HOSTS);
        let text: String = many.map(|port| format!("{} {key}\n", address(1, port))).collect();
        fs::create_dir(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        load(&path).learn(address(2, 1), key).unwrap();
        let after = load(&path);
        assert_eq!(
            (after.key_of(address(1, 1)), after.state().lines.len()),
            (None, MAX_HOSTS)
        );
        assert_eq!(after.key_of(address(2, 1)), Some(key));
    }

    #[test]
    fn damage_is_an_error_at_a_line() {
        let (one, two) = (key(), key());
        let good = format!("10.0.0.1:1 {one}\n");
        let cases: [(Vec<u8>, &str); 9] = [
            (b"\xff\xfe\x00".to_vec(), "the file is damaged there"),
            (b"10.0.0.1:2 \0\0\0\n".to_vec(), "move the file away"),
            (
                format!("10.0.0.2 {one}\r\n{one}").into_bytes(),
                "not a name and a key",
            ),
            (b"\n".to_vec(), "not a name and a key"),
            (format!(" {one}").into_bytes(), "not a name and a key"),
            (format!("10.0.0.2  {one}").into_bytes(), "not a name and a key"),
            (
                format!("10.0.0.2 {one} {one}").into_bytes(),
                "not a name and a key",
            ),
            (
                format!("{} {one}", "a".repeat(300)).into_bytes(),
                "not a name and a key",
            ),
            (format!("10.0.0.1:1 {two}").into_bytes(), "another key"),
        ];
        for (damage, what) in cases {
            let bytes = [good.as_bytes(), &damage].concat();
            let sentence = KnownHosts::parse("known_peers".into(), &bytes)
                .unwrap_err()
                .to_string();
            assert!(sentence.starts_with("known_peers, line "), "{sentence}");
            assert!(
                sentence.contains(what) && !sentence.contains("readable"),
                "{sentence}"
            );
        }
        let (_folder, path) = file();
        fs::create_dir_all(&path).unwrap();
        let sentence = KnownHosts::load(&path).unwrap_err().to_string();
        assert!(sentence.contains("it is a directory; move it away"), "{sentence}");
    }
}
