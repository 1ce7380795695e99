//! The bytes of a manifest: entries one after the other (docs/protocol/file-transfer.md).

use super::manifest::{Entry, Kind, MAX_BYTES, MAX_ENTRIES, Manifest, ManifestError, Modified};

/// Permissions that travel: reading, writing, executing. Nothing gives rights of another user (set-user-id).
const PERMISSIONS: u16 = 0o777;

/// The size of a file whose size is not known yet.
const UNKNOWN: u64 = u64::MAX;

const FOLDER: u8 = 0;
const FILE: u8 = 1;
const LINK: u8 = 2;

impl Manifest {
    /// The bytes of a manifest.
    ///
    /// # Errors
    /// When they are too many.
    pub fn encode(&self) -> Result<Vec<u8>, ManifestError> {
        let mut out = Vec::new();
        for entry in self.entries() {
            let (kind, tail) = match &entry.kind {
                Kind::Folder => (FOLDER, Vec::new()),
                Kind::File(bytes) => (FILE, bytes.unwrap_or(UNKNOWN).to_be_bytes().to_vec()),
                Kind::Link(target) => (LINK, text(target)),
            };
            let parent = entry.parent.map_or(0, |parent| parent as u32 + 1);
            out.push(kind);
            out.extend_from_slice(&parent.to_be_bytes());
            out.extend_from_slice(&entry.mode.to_be_bytes());
            out.extend_from_slice(&entry.modified.seconds.to_be_bytes());
            out.extend_from_slice(&entry.modified.nanoseconds.to_be_bytes());
            out.extend_from_slice(&text(&entry.name));
            out.extend_from_slice(&tail);
        }
        if out.len() > MAX_BYTES {
            return Err(ManifestError::TooLong);
        }
        Ok(out)
    }

    /// Reads what a peer says, and checks every rule.
    ///
    /// # Errors
    /// The first rule it breaks.
    pub fn decode(bytes: &[u8]) -> Result<Self, ManifestError> {
        let mut rest = Rest(bytes);
        let mut entries = Vec::new();
        while !rest.0.is_empty() {
            if entries.len() == MAX_ENTRIES {
                return Err(ManifestError::TooMany);
            }
            entries.push(rest.entry()?);
        }
        Manifest::new(entries)
    }
}

/// Length and bytes. Longer ones are cut; nobody takes them anyway.
fn text(text: &str) -> Vec<u8> {
    let cut = &text.as_bytes()[..text.len().min(usize::from(u16::MAX))];
    let mut out = (cut.len() as u16).to_be_bytes().to_vec();
    out.extend_from_slice(cut);
    out
}

/// What is left to read.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn entry(&mut self) -> Result<Entry, ManifestError> {
        let [kind] = self.take()?;
        let parent = u32::from_be_bytes(self.take()?);
        let mode = u16::from_be_bytes(self.take()?) & PERMISSIONS;
        let modified = Modified {
            seconds: i64::from_be_bytes(self.take()?),
            nanoseconds: u32::from_be_bytes(self.take()?),
        };
        if modified.nanoseconds >= 1_000_000_000 {
            return Err(ManifestError::Damaged("a time is none"));
        }
        let name = self.text()?;
        let kind = match kind {
            FOLDER => Kind::Folder,
            FILE => Kind::File(Some(u64::from_be_bytes(self.take()?)).filter(|bytes| *bytes != UNKNOWN)),
            LINK => Kind::Link(self.text()?),
            _ => return Err(ManifestError::Damaged("an entry of an unknown kind")),
        };
        Ok(Entry {
            parent: (parent as usize).checked_sub(1),
            name,
            mode,
            modified,
            kind,
        })
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], ManifestError> {
        let (first, rest) = self.0.split_first_chunk().ok_or(CUT)?;
        self.0 = rest;
        Ok(*first)
    }

    fn text(&mut self) -> Result<String, ManifestError> {
        let length = u16::from_be_bytes(self.take()?);
        let (text, rest) = self.0.split_at_checked(length.into()).ok_or(CUT)?;
        self.0 = rest;
        let text = std::str::from_utf8(text).map_err(|_| ManifestError::Damaged("a name is not UTF-8"))?;
        Ok(text.into())
    }
}

const CUT: ManifestError = ManifestError::Damaged("it ends in the middle of an entry");

#[cfg(test)]
mod tests {
    use super::super::manifest::tests::{entry, tree};
    use super::*;

    #[test]
    fn the_bytes_are_as_written_in_the_protocol() {
        let one = Manifest::new(vec![entry(None, "a", Kind::File(Some(258)))]).expect("good");
        let expected =
            b"\x01\0\0\0\0\x01\xa0\xff\xff\xff\xff\xff\xff\xff\xfb\0\0\0\x07\0\x01a\0\0\0\0\0\0\x01\x02";
        assert_eq!(one.encode().expect("short"), expected);
        assert!(one.is_one_file());
    }

    #[test]
    fn every_cut_is_noticed() {
        let bytes = Manifest::new(tree()).expect("good").encode().expect("short");
        for cut in 0..bytes.len() {
            // Between two entries nothing is missing but the last ones.
            match Manifest::decode(&bytes[..cut]) {
                Ok(fewer) => assert!(fewer.entries().len() < 5),
                Err(error) => assert!([CUT, ManifestError::Empty].contains(&error), "{error}"),
            }
        }
    }
}
