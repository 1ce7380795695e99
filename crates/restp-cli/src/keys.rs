//! Keys in files. A secret key is its owner's alone: a file that others may read is refused, because then it is none.

use crate::failure::Failure;
use restp::files::{self, of_user};
use restp::{PublicKey, SecretKey};
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Longest list of keys that is read: 16 000 of them.
const MAX_BYTES: u64 = 1 << 20;

/// Longest file of a secret key that is read; it has 67 bytes.
const MAX_SECRET_BYTES: u64 = 1 << 10;

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
    if fs::symlink_metadata(path).is_ok() {
        return Err(ErrorKind::AlreadyExists.into());
    }
    let secret = fresh().map_err(|failure| io::Error::other(failure.message().to_owned()))?;
    let file = files::prepare(path, secret.to_text().as_bytes())?;
    file.persist_noclobber(path).map_err(|error| error.error)?;
    Ok(secret)
}

/// Reads a secret key.
///
/// # Errors
/// When it cannot be read, somebody else can read it too, or it is none.
pub fn load(path: &Path) -> Result<SecretKey, Failure> {
    let name = path.display();
    let (mut file, metadata) = files::open(path).map_err(|error| unreadable(path, &error))?;
    let own = nix::unistd::geteuid().as_raw();
    if !is_trusted(metadata.uid(), own) {
        let owner = user(metadata.uid());
        return Err(Failure::input(format!(
            "{name}: this secret key belongs to {owner}, who can read and replace it; name one of your own, or make one \
             with `restp keygen`"
        )));
    }
    let mode = metadata.mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(Failure::input(format!(
            "{name}: others can read this secret key (mode {mode:03o}); if nobody has, `chmod 600 {name}`, otherwise \
             remove it and make a new one with `restp keygen {name}`"
        )));
    }
    match files::contents(&mut file, MAX_SECRET_BYTES) {
        Ok(bytes) => parse_secret(path, &bytes),
        Err(error) if error.kind() == ErrorKind::FileTooLarge => Err(damaged(path, FOREIGN)),
        Err(error) => Err(unreadable(path, &error)),
    }
}

/// Who can replace a file speaks with its key: only this user and root may.
fn is_trusted(owner: u32, own: u32) -> bool {
    owner == own || owner == 0
}

/// A user by name, or by number where it has none.
fn user(id: u32) -> String {
    let user = nix::unistd::User::from_uid(id.into());
    user.ok()
        .flatten()
        .map_or_else(|| format!("user {id}"), |user| user.name)
}

/// What is in a file that `restp keygen` did not write.
const FOREIGN: &str = "it holds something else than a secret key of restp";

fn parse_secret(path: &Path, bytes: &[u8]) -> Result<SecretKey, Failure> {
    let text = str::from_utf8(bytes).map_err(|_| damaged(path, FOREIGN))?.trim();
    text.parse().map_err(|_| {
        let begins = text.starts_with(SecretKey::PREFIX) || SecretKey::PREFIX.starts_with(text);
        damaged(
            path,
            match text {
                "" => "it is empty",
                _ if begins => "the secret key in it is damaged, or was cut",
                _ if text.parse::<PublicKey>().is_ok() => "it holds a public key, not the secret one",
                _ => FOREIGN,
            },
        )
    })
}

/// A key that is lost is replaced by another one, which nobody knows yet.
fn damaged(path: &Path, what: &str) -> Failure {
    let name = path.display();
    Failure::input(format!(
        "{name}: {what}; move it away first, make a new one with `restp keygen {name}`, and give its public key to those \
         who knew the old one"
    ))
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    let name = path.display();
    let way = match error.kind() {
        ErrorKind::NotFound => format!("name one that you own, or make one with `restp keygen {name}`"),
        _ => "name a file of your own that holds one".into(),
    };
    Failure::input(format!("{name}: the key cannot be read: {error}; {way}"))
}

/// Public keys, each given itself or in a file with one at the beginning of each line.
///
/// # Errors
/// When one is neither, with the line.
pub fn listed(given: &[String]) -> Result<BTreeSet<PublicKey>, Failure> {
    let mut keys = BTreeSet::new();
    for word in given {
        let mistyped = match word.parse::<PublicKey>() {
            Ok(key) => {
                keys.insert(key);
                continue;
            }
            Err(error) => error,
        };
        let bytes = files::read(Path::new(word), MAX_BYTES).map_err(|error| {
            Failure::input(if error.kind() == ErrorKind::NotFound && resembles_key(word) {
                format!("--allow {word}: {mistyped}")
            } else {
                format!(
                    "--allow {word}: neither a key nor a file of keys ({error}); write what `restp keygen` printed there"
                )
            })
        })?;
        keys.extend(parse_list(word, &String::from_utf8_lossy(&bytes))?);
    }
    Ok(keys)
}

/// Is `word` rather a key with a mistake than the name of a file? Nearly as long, and nearly all letters and digits.
fn resembles_key(word: &str) -> bool {
    let others = word.chars().filter(|c| !c.is_ascii_alphanumeric()).count();
    (PublicKey::TEXT - 12..=PublicKey::TEXT + 12).contains(&word.chars().count())
        && others <= 3
        && !word.contains(['/', '.'])
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

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
    fn a_mistyped_key_says_what_is_wrong_with_it() {
        let word = fresh().unwrap().public().to_string();
        let says = |word: &str| listed(&[word.to_owned()]).unwrap_err().message().to_owned();
        assert!(says(&word[1..]).contains("51 characters where a key has 52"));
        assert!(says(&format!("{word}a7")).contains("54 characters"));
        let wrong = format!("{}1{}", &word[..9], &word[10..]);
        assert!(says(&wrong).contains("character 10, '1'"), "{}", says(&wrong));
        for name in [
            "clients",
            "/etc/restp/those-who-may-send-files-to-this-host-by-night",
        ] {
            assert!(says(name).contains("neither a key nor a file"), "{name}");
        }
    }

    #[test]
    fn a_key_of_another_user_is_refused_with_his_name() {
        assert!(is_trusted(1000, 1000) && is_trusted(0, 1000));
        assert!(!is_trusted(1001, 1000) && !is_trusted(1000, 0));
        assert_eq!(
            (user(0).as_str(), user(4_000_000_000)),
            ("root", "user 4000000000".into())
        );
    }

    #[test]
    fn a_file_that_holds_no_secret_key_says_so_with_a_way_out_that_works() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let secret = create(&path).unwrap();
        let (text, public) = (secret.to_text(), secret.public().to_string());
        let cases: [(&[u8], &str); 7] = [
            (b"", "it is empty"),
            (b"\n", "it is empty"),
            (&text.as_bytes()[..5], "damaged, or was cut"),
            (&text.as_bytes()[..40], "damaged, or was cut"),
            (public.as_bytes(), "a public key"),
            (b"\xff\xfe\x00", "something else"),
            (&[b'a'; 5000], "something else"),
        ];
        for (bytes, what) in cases {
            fs::write(&path, bytes).unwrap();
            let failure = load(&path).unwrap_err();
            let sentence = failure.message();
            assert!(sentence.contains(what), "{what}: {sentence}");
            assert!(sentence.contains("move it away first") && sentence.contains("restp keygen"));
            assert!(!sentence.contains("UTF-8") && !sentence.contains("cannot be read"));
        }
        fs::rename(&path, folder.path().join("old")).unwrap();
        create(&path).unwrap();
        let directory = load(folder.path()).unwrap_err();
        assert!(directory.message().contains("it is a directory") && !directory.message().contains("chmod"));
    }
}
