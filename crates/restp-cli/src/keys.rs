//! Keys in files. A secret key is its owner's alone: a file that others may read is refused, because then it is none.

use crate::failure::Failure;
use restp::{PublicKey, SecretKey};
use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Longest file of keys that is read: 16 000 of them.
const MAX_BYTES: u64 = 1 << 20;

/// A file of this user that lasts, below `XDG_DATA_HOME` or `.local/share` in `HOME` (XDG Base Directory Specification).
pub fn of_user(name: &str) -> Option<PathBuf> {
    let absolute = |name| {
        let path = PathBuf::from(std::env::var_os(name)?);
        path.is_absolute().then_some(path)
    };
    let data = absolute("XDG_DATA_HOME").or_else(|| Some(absolute("HOME")?.join(".local/share")))?;
    Some(data.join("restp").join(name))
}

/// A new secret key.
///
/// # Errors
/// When the system gives no randomness.
pub fn fresh() -> Result<SecretKey, Failure> {
    let identity = restp::Identity::fresh();
    identity
        .map(|identity| identity.secret)
        .map_err(Failure::operation)
}

/// The key in `given`, or this user's, which is made when there is none yet.
///
/// # Errors
/// When a file is there and cannot be used.
pub fn identity(given: Option<&Path>) -> Result<SecretKey, Failure> {
    if let Some(path) = given {
        return load(path);
    }
    let Some(path) = of_user("key") else {
        crate::output::note(
            "neither XDG_DATA_HOME nor HOME says where to keep a key; this run has one of its own",
        );
        return fresh();
    };
    match create(&path) {
        Ok(secret) => Ok(secret),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => load(&path),
        Err(error) if path.exists() => Err(unreadable(&path, &error)),
        Err(error) => {
            let path = path.display();
            crate::output::note(format!("{path}: {error}; this run has a key of its own"));
            fresh()
        }
    }
}

/// Writes a new key to `path`, where nothing may be, for its owner alone.
///
/// # Errors
/// When something is there, or the folder cannot be written.
pub fn create(path: &Path) -> io::Result<SecretKey> {
    if path.exists() {
        return Err(ErrorKind::AlreadyExists.into());
    }
    let secret = fresh().map_err(|failure| io::Error::other(failure.message().to_owned()))?;
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?; // only its owner may open it
    file.write_all(secret.to_text().as_bytes())?;
    file.persist_noclobber(path).map_err(|error| error.error)?;
    Ok(secret)
}

/// Reads a secret key.
///
/// # Errors
/// When it cannot be read, others can read it too, or it is none.
pub fn load(path: &Path) -> Result<SecretKey, Failure> {
    let metadata = fs::metadata(path).map_err(|error| unreadable(path, &error))?;
    let (name, mode) = (path.display(), metadata.permissions().mode() & 0o777);
    if mode & 0o077 != 0 {
        return Err(Failure::input(format!(
            "{name}: others can read this secret key (mode {mode:03o}); if nobody has, `chmod 600 {name}`, otherwise \
             remove it and make a new one with `restp keygen`"
        )));
    }
    let text = read(path).map_err(|error| unreadable(path, &error))?;
    text.parse()
        .map_err(|error| Failure::input(format!("{name}: {error}")))
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    let name = path.display();
    Failure::input(format!(
        "{name}: the key cannot be read: {error}; name one that you own, or make one with `restp keygen {name}`"
    ))
}

fn read(path: &Path) -> io::Result<String> {
    // Asked before opening: to open a pipe without a writer waits for one.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    let mut text = String::new();
    File::open(path)?.take(MAX_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

/// Public keys, each given itself or in a file with one at the beginning of each line.
///
/// # Errors
/// When one is neither, with the line.
pub fn listed(given: &[String]) -> Result<BTreeSet<PublicKey>, Failure> {
    let mut keys = BTreeSet::new();
    for word in given {
        if let Ok(key) = word.parse() {
            keys.insert(key);
            continue;
        }
        let text = read(Path::new(word)).map_err(|error| {
            Failure::input(format!(
                "--allow {word}: neither a key nor a file of keys ({error}); write what `restp keygen` printed there"
            ))
        })?;
        keys.extend(parse_list(word, &text)?);
    }
    Ok(keys)
}

/// The first word of each line of the file `name`, without empty lines and comments.
///
/// # Errors
/// When one is no key, with the line.
pub fn parse_list(name: &str, text: &str) -> Result<Vec<PublicKey>, Failure> {
    let mut keys = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let word = line.split_whitespace().next();
        if let Some(word) = word.filter(|word| !word.starts_with('#')) {
            let key = word.parse();
            keys.push(key.map_err(|error| Failure::input(format!("{name}, line {number}: {error}")))?);
        }
    }
    Ok(keys)
}

/// Keys of hosts by the address where they were first met.
#[derive(Debug)]
pub struct KnownPeers {
    path: PathBuf,
    lines: Vec<(std::net::SocketAddr, PublicKey)>,
}

/// Hosts remembered at most; those met first are forgotten first.
const MAX_PEERS: usize = 8192;

impl KnownPeers {
    /// This user's; without a place for it nothing is known.
    ///
    /// # Errors
    /// When the file cannot be read or a line of it means nothing: to skip it would be to believe anybody.
    pub fn load() -> Result<Option<Self>, Failure> {
        let Some(path) = of_user("known_peers") else {
            return Ok(None);
        };
        let name = path.display();
        let text = match read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            Err(error) => {
                let rule = "make it readable for you, or remove it to trust on first use again";
                return Err(Failure::input(format!("{name}: {error}; {rule}")));
            }
        };
        Self::parse(path, &text).map(Some)
    }

    /// Those in `text`, the contents of the file at `path`.
    ///
    /// # Errors
    /// When a line means nothing.
    pub fn parse(path: PathBuf, text: &str) -> Result<Self, Failure> {
        let name = path.display();
        let mut lines = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let parsed = line
                .split_once(' ')
                .and_then(|(address, key)| Some((address.parse().ok()?, key.parse().ok()?)));
            lines.push(parsed.ok_or_else(|| {
                Failure::input(format!(
                    "{name}, line {number}: not an address and a key; correct or remove the line"
                ))
            })?);
        }
        Ok(KnownPeers { path, lines })
    }

    /// The key of the host at `address`.
    pub fn key_of(&self, address: std::net::SocketAddr) -> Option<PublicKey> {
        let found = self.lines.iter().rev().find(|(known, _)| *known == address);
        found.map(|(_, key)| *key)
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Remembers the key of a host that was met for the first time.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn learn(&mut self, address: std::net::SocketAddr, key: PublicKey) -> io::Result<()> {
        self.lines.retain(|(known, _)| *known != address);
        self.lines.push((address, key));
        let surplus = self.lines.len().saturating_sub(MAX_PEERS);
        self.lines.drain(..surplus);
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        for (address, key) in &self.lines {
            writeln!(file, "{address} {key}")?;
        }
        file.persist(&self.path)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_written_once_for_its_owner_and_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("restp").join("key");
        let secret = create(&path).unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(load(&path), Ok(secret));
        assert_eq!(create(&path).unwrap_err().kind(), ErrorKind::AlreadyExists);
    }

    #[test]
    fn a_key_that_others_can_read_or_that_is_none_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        create(&path).unwrap();
        for mode in [0o644, 0o640, 0o604, 0o660] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let failure = load(&path).unwrap_err();
            assert!(failure.message().contains("chmod 600"), "{}", failure.message());
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&path, "hello").unwrap();
        assert!(load(&path).unwrap_err().message().contains("restp keygen"));
        let nowhere = load(&folder.path().join("nowhere")).unwrap_err();
        assert!(nowhere.message().contains("cannot be read"));
    }

    #[test]
    fn lists_hold_keys_and_comments() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("clients");
        let keys: Vec<_> = (0..3).map(|_| fresh().unwrap().public()).collect();
        fs::write(&path, format!("# ours\n{} ann\n\n{}\n", keys[0], keys[1])).unwrap();
        let file = path.to_str().unwrap().to_owned();
        let all = listed(&[file.clone(), keys[2].to_string()]).unwrap();
        assert_eq!(all, keys.into_iter().collect());
        fs::write(&path, "# ours\nann\n").unwrap();
        assert!(listed(&[file]).unwrap_err().message().contains("line 2"));
        assert!(
            listed(&["nowhere".into()])
                .unwrap_err()
                .message()
                .contains("neither")
        );
    }

    #[test]
    fn a_known_peer_stays_known() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("restp").join("known_peers");
        let mut peers = KnownPeers {
            path,
            lines: Vec::new(),
        };
        let address = |n: u16| std::net::SocketAddr::from(([127, 0, 0, 1], n));
        let key = fresh().unwrap().public();
        assert_eq!(peers.key_of(address(1)), None);
        peers.learn(address(1), key).unwrap();
        peers.learn(address(1), key).unwrap();
        assert_eq!((peers.key_of(address(1)), peers.lines.len()), (Some(key), 1));
        let text = fs::read_to_string(peers.path()).unwrap();
        assert_eq!(text, format!("127.0.0.1:1 {key}\n"));
    }
}
