//! The digest that both ends of a transfer must agree on.

use super::{Digest, Manifest, hex};
use sha2::{Digest as _, Sha256};

/// That of one file is its SHA-256. That of several is the SHA-256 of the lines that `sha256sum` prints of them, in the order of the
/// manifest, so that it can be had without this program.
pub struct Agreement {
    is_one_file: bool,
    only: Digest,
    lines: Sha256,
}

impl Agreement {
    /// Of no file yet.
    pub fn on(manifest: &Manifest) -> Self {
        Agreement {
            is_one_file: manifest.is_one_file(),
            only: Digest::default(),
            lines: Sha256::new(),
        }
    }

    /// The next file at `path` has this digest.
    pub fn add(&mut self, path: &str, digest: Digest) {
        self.only = digest;
        self.lines.update(format!("{}  {path}\n", hex(&digest)));
    }

    /// Of all files.
    pub fn digest(self) -> Digest {
        if self.is_one_file {
            self.only
        } else {
            self.lines.finalize().into()
        }
    }
}

/// Hashes `bytes` zeros.
pub fn hash_zeros(hash: &mut Sha256, mut bytes: u64) {
    static ZEROS: [u8; 4 << 10] = [0; 4 << 10];
    while bytes > 0 {
        let part = bytes.min(ZEROS.len() as u64);
        hash.update(&ZEROS[..part as usize]);
        bytes -= part;
    }
}

#[cfg(test)]
mod tests {
    use super::super::manifest::{Entry, Kind, Modified};
    use super::*;

    #[test]
    fn several_files_have_the_digest_of_the_lines_of_sha256sum() {
        let file = |name: &str| Entry {
            parent: None,
            name: name.into(),
            mode: 0,
            modified: Modified::default(),
            kind: Kind::File(Some(1)),
        };
        let of = |names: &[&str]| {
            let manifest = Manifest::new(names.iter().map(|name| file(name)).collect()).expect("good");
            let mut agreement = Agreement::on(&manifest);
            for name in names {
                agreement.add(name, [0xab; 32]);
            }
            agreement.digest()
        };
        assert_eq!(of(&["a"]), [0xab; 32]);
        let line = |name: &str| format!("{}  {name}\n", "ab".repeat(32));
        let both = Sha256::digest(line("a") + &line("b"));
        assert_eq!(of(&["a", "b"]), <Digest>::from(both));
    }

    #[test]
    fn zeros_are_hashed_as_if_they_were_read() {
        let mut hash = Sha256::new();
        hash_zeros(&mut hash, 200_001);
        assert_eq!(hash.finalize(), Sha256::digest(vec![0; 200_001]));
    }
}
