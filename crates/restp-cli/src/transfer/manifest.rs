//! What a transfer consists of: files, folders and links, in an order in which a folder comes before what is in it.
//!
//! Every rule is checked by [`Manifest::new`], before anything is created: a receiver that holds a manifest has names that
//! mean one thing in its own folder, each once, and links that stay inside.

use super::name::{self, NameError};
use std::collections::BTreeSet;
use thiserror::Error;

/// Entries of one transfer.
pub const MAX_ENTRIES: usize = 200_000;
/// Bytes of one manifest.
pub const MAX_BYTES: usize = 16 << 20;
/// Folders inside of each other.
const MAX_DEPTH: usize = 100;
/// Bytes that a link may hold, as of Linux.
const MAX_TARGET_BYTES: usize = 4095;

/// When something was changed last, since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Modified {
    /// Whole seconds, negative before 1970.
    pub seconds: i64,
    /// And nanoseconds, less than a second.
    pub nanoseconds: u32,
}

/// What an entry is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A folder.
    Folder,
    /// A file of so many bytes; none: that is known at its end, as of standard input.
    File(Option<u64>),
    /// A symbolic link and where it leads, relative to its folder.
    Link(String),
}

/// One file, folder or link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The folder that holds it: the number of an earlier entry; none for what was named by the user.
    pub parent: Option<usize>,
    /// Its name in that folder.
    pub name: String,
    /// Permissions as of `chmod`.
    pub mode: u16,
    /// Time of the last change.
    pub modified: Modified,
    /// What it is.
    pub kind: Kind,
}

/// Entries that obey the rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest(Vec<Entry>);

/// Which rule entries break.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ManifestError {
    /// The bytes are none of a manifest.
    #[error("the list of files is damaged: {0}; use the same release of restp on both sides")]
    Damaged(&'static str),
    /// Nothing to transfer.
    #[error("the list of files is empty")]
    Empty,
    /// Too many.
    #[error(
        "a transfer has at most {MAX_ENTRIES} files, folders and links; send parts of it one after the other"
    )]
    TooMany,
    /// Too long a list.
    #[error("the names of a transfer have at most {MAX_BYTES} bytes; send parts of it one after the other")]
    TooLong,
    /// Too deep.
    #[error("{0}: more than {MAX_DEPTH} folders inside of each other; send the inner one by itself")]
    TooDeep(String),
    /// A name is not taken.
    #[error("{path}: {why}")]
    Name {
        /// The folder it is in.
        path: String,
        /// What is wrong with it.
        why: NameError,
    },
    /// A name that is not taken, of what the user named.
    #[error(transparent)]
    TopName(NameError),
    /// Two entries would be one on systems that do not tell upper from lower case.
    #[error("{0}: there are two of this name, upper and lower case aside; rename one of them")]
    Twice(String),
    /// A link could lead elsewhere.
    #[error("{path} is a link to {target:?}, out of what is sent; remove the link, or send what it leads to")]
    Outside {
        /// The link.
        path: String,
        /// Where it leads.
        target: String,
    },
    /// More bytes than can be counted.
    #[error("the files have more bytes than can be counted")]
    Size,
}

/// The entries of a manifest so far.
#[derive(Default)]
struct Begun {
    manifest: Manifest,
    /// Folders around each.
    depths: Vec<usize>,
    names: BTreeSet<(Option<usize>, String)>,
    bytes: u64,
}

impl Begun {
    /// One more, if it obeys the rules.
    fn add(&mut self, entry: Entry) -> Result<(), ManifestError> {
        let place = self.manifest.0.len();
        self.manifest.0.push(entry);
        self.check(place).inspect_err(|_| {
            self.manifest.0.pop();
        })
    }

    fn check(&mut self, place: usize) -> Result<(), ManifestError> {
        let Begun {
            manifest,
            depths,
            names,
            bytes,
        } = self;
        let entry = &manifest.0[place];
        let depth = manifest.depth_of(place, depths)?;
        manifest.check_name(place)?;
        let all = match &entry.kind {
            Kind::Folder => *bytes,
            Kind::File(size) => bytes.checked_add(size.unwrap_or(0)).ok_or(ManifestError::Size)?,
            Kind::Link(target) => {
                manifest.check_link(place, target, depth)?;
                *bytes
            }
        };
        if !names.insert((entry.parent, entry.name.to_lowercase())) {
            return Err(ManifestError::Twice(manifest.path(place)));
        }
        *bytes = all;
        depths.push(depth);
        Ok(())
    }
}

impl Manifest {
    /// Of entries that obey the rules.
    ///
    /// # Errors
    /// The first rule they break.
    pub fn new(entries: Vec<Entry>) -> Result<Self, ManifestError> {
        match entries.len() {
            0 => return Err(ManifestError::Empty),
            count if count > MAX_ENTRIES => return Err(ManifestError::TooMany),
            _ => {}
        }
        let mut begun = Begun::default();
        entries.into_iter().try_for_each(|entry| begun.add(entry))?;
        Ok(begun.manifest)
    }

    /// Those of `entries` that obey the rules, without what is in folders that do not: what stays, where each was, and which rules
    /// the others break.
    pub fn sift(entries: Vec<Entry>) -> (Vec<Entry>, Vec<usize>, Vec<ManifestError>) {
        let mut begun = Begun::default();
        let (mut kept, mut broken) = (Vec::new(), Vec::new());
        let mut numbers = vec![None; entries.len()];
        for (place, mut entry) in entries.into_iter().enumerate() {
            if let Some(parent) = entry.parent {
                let Some(number) = numbers.get(parent).copied().flatten() else {
                    continue;
                };
                entry.parent = Some(number);
            }
            match begun.add(entry) {
                Ok(()) => {
                    numbers[place] = Some(kept.len());
                    kept.push(place);
                }
                Err(error) => broken.push(error),
            }
        }
        (begun.manifest.0, kept, broken)
    }

    /// All of them, a folder before what is in it.
    pub fn entries(&self) -> &[Entry] {
        &self.0
    }

    /// The files: their numbers, and their sizes where they are known.
    pub fn files(&self) -> impl Iterator<Item = (usize, Option<u64>)> {
        let files = self.0.iter().enumerate();
        files.filter_map(|(place, entry)| match entry.kind {
            Kind::File(bytes) => Some((place, bytes)),
            _ => None,
        })
    }

    /// Of all files; none where that of one is not known.
    pub fn bytes(&self) -> Option<u64> {
        self.files().map(|(_, bytes)| bytes).sum()
    }

    /// Nothing but one file, without a folder around it?
    pub fn is_one_file(&self) -> bool {
        matches!(
            self.0.as_slice(),
            [Entry {
                kind: Kind::File(_),
                ..
            }]
        )
    }

    /// The same, where the one file has so many bytes.
    #[must_use]
    pub fn resized(&self, bytes: u64) -> Self {
        let mut entries = self.0.clone();
        for entry in &mut entries {
            entry.kind = Kind::File(Some(bytes));
        }
        Manifest(entries)
    }

    /// The path of an entry: names from the outermost folder to its own.
    pub fn path(&self, place: usize) -> String {
        let mut names: Vec<&str> = self
            .lineage(place)
            .map(|place| self.0[place].name.as_str())
            .collect();
        names.reverse();
        names.join("/")
    }

    /// An entry, the folder that holds it, and so on.
    pub fn lineage(&self, place: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(Some(place), |place| self.0[*place].parent)
    }

    /// The names of what the user named.
    pub fn named(&self) -> Vec<&str> {
        let named = self.0.iter().filter(|entry| entry.parent.is_none());
        named.map(|entry| entry.name.as_str()).collect()
    }

    /// The first entry whose name hides from lists.
    pub fn first_hidden(&self) -> Option<usize> {
        self.0.iter().position(|entry| name::hides(&entry.name))
    }

    /// What people call it: the first that the user named, and how many more.
    pub fn title(&self) -> String {
        match self.named().as_slice() {
            [] => "nothing".into(),
            [only] => (*only).into(),
            [first, more @ ..] => format!("{first} and {} more", more.len()),
        }
    }

    /// Folders around an entry; it must be in an earlier one.
    fn depth_of(&self, place: usize, depths: &[usize]) -> Result<usize, ManifestError> {
        let Some(parent) = self.0[place].parent else {
            return Ok(0);
        };
        if parent >= place || self.0[parent].kind != Kind::Folder {
            return Err(ManifestError::Damaged("an entry is in no folder"));
        }
        match depths[parent] + 1 {
            MAX_DEPTH.. => Err(ManifestError::TooDeep(self.path(parent))),
            depth => Ok(depth),
        }
    }

    fn check_name(&self, place: usize) -> Result<(), ManifestError> {
        let entry = &self.0[place];
        name::check(&entry.name).map_err(|why| match entry.parent {
            None => ManifestError::TopName(why),
            Some(parent) => ManifestError::Name {
                path: self.path(parent),
                why,
            },
        })
    }

    /// A link stays inside of the folder that the user named. `..` may only come first: after a name it would lead up from wherever
    /// a link of that name leads.
    fn check_link(&self, place: usize, target: &str, depth: usize) -> Result<(), ManifestError> {
        let mut parts = target.split('/').skip_while(|part| *part == "..");
        let ups = target.split('/').take_while(|part| *part == "..").count();
        let is_name = |part: &str| part != ".." && !part.is_empty() && !part.chars().any(char::is_control);
        let is_inside = depth > ups && target.len() <= MAX_TARGET_BYTES && parts.all(is_name);
        if is_inside && !target.is_empty() {
            return Ok(());
        }
        Err(ManifestError::Outside {
            path: self.path(place),
            target: target.chars().take(100).collect(),
        })
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    #[test]
    fn what_breaks_a_rule_is_left_out_with_what_is_in_it() {
        let entries = vec![
            entry(None, "top", Kind::Folder),
            entry(Some(0), "CON", Kind::Folder),
            entry(Some(1), "in it", Kind::File(Some(1))),
            entry(Some(0), "a", Kind::File(Some(2))),
            entry(Some(0), "A", Kind::File(Some(4))),
            entry(Some(0), "inner", Kind::Folder),
            entry(Some(5), "out", link("../../x")),
            entry(Some(5), "b", Kind::File(Some(8))),
        ];
        let (stays, kept, broken) = Manifest::sift(entries);
        assert_eq!(kept, [0, 3, 5, 7]);
        let manifest = Manifest::new(stays).expect("good");
        assert_eq!(manifest.path(3), "top/inner/b");
        assert_eq!(manifest.bytes(), Some(10));
        let said: Vec<_> = broken.iter().map(ToString::to_string).collect();
        assert_eq!(said.len(), 3, "{said:?}");
        for (sentence, part) in said.iter().zip(["CON", "top/A", "top/inner/out"]) {
            assert!(sentence.contains(part), "{said:?}");
        }
    }

    /// Of 1970, readable for its owner's group.
    pub fn entry(parent: Option<usize>, name: &str, kind: Kind) -> Entry {
        Entry {
            parent,
            name: name.into(),
            mode: 0o640,
            modified: Modified {
                seconds: -5,
                nanoseconds: 7,
            },
            kind,
        }
    }

    fn link(target: &str) -> Kind {
        Kind::Link(target.into())
    }

    pub fn tree() -> Vec<Entry> {
        vec![
            entry(None, "photos", Kind::Folder),
            entry(Some(0), "summer", Kind::Folder),
            entry(Some(1), "a.jpg", Kind::File(Some(258))),
            entry(Some(1), "best", link("../summer/a.jpg")),
            entry(None, "b", Kind::File(Some(1))),
        ]
    }

    #[test]
    fn a_manifest_reads_back_and_knows_its_paths() {
        let manifest = Manifest::new(tree()).expect("good");
        assert_eq!(
            Manifest::decode(&manifest.encode().expect("short")),
            Ok(manifest.clone())
        );
        assert_eq!(manifest.path(3), "photos/summer/best");
        assert_eq!(
            (manifest.bytes(), manifest.title().as_str()),
            (Some(259), "photos and 1 more")
        );
        assert_eq!(
            manifest.files().collect::<Vec<_>>(),
            [(2, Some(258)), (4, Some(1))]
        );
        assert!(!manifest.is_one_file());
    }

    fn refused(entries: Vec<Entry>) -> String {
        let bytes = Manifest(entries).encode().expect("short");
        Manifest::decode(&bytes).expect_err("refused").to_string()
    }

    #[test]
    fn rules_for_names_hold_for_every_part_of_a_path() {
        for (name, word) in [
            ("..", "holds a path"),
            ("a/b", "holds a path"),
            ("/etc", "holds a path"),
            (".restp-x.part", "reserved"),
            ("-rf", "begins with"),
            ("a\u{202e}b", "direction"),
            ("NUL", "reserved"),
            (&"x".repeat(65_535), "65535 bytes"),
        ] {
            let top = vec![entry(None, name, Kind::Folder)];
            let inner = vec![
                entry(None, "d", Kind::Folder),
                entry(Some(0), name, Kind::File(Some(0))),
            ];
            assert!(refused(top).contains(word), "{word}");
            let why = refused(inner);
            assert!(why.starts_with("d: ") && why.contains(word), "{why}");
        }
    }

    #[test]
    fn names_that_differ_in_case_alone_are_refused() {
        let both = |a: &str, b: &str| vec![entry(None, a, Kind::File(Some(0))), entry(None, b, Kind::Folder)];
        assert!(refused(both("Grüße", "GRÜßE")).contains("two of this name"));
        assert!(refused(both("a", "a")).contains("two of this name"));
    }

    #[test]
    fn what_is_in_no_folder_is_refused() {
        for parent in [0, 1, 2, 7] {
            let entries = vec![
                entry(None, "f", Kind::File(Some(0))),
                entry(Some(parent), "g", Kind::File(Some(0))),
            ];
            assert!(refused(entries).contains("in no folder"));
        }
        let through = vec![
            entry(None, "d", Kind::Folder),
            entry(Some(0), "l", link("x")),
            entry(Some(1), "f", Kind::File(Some(0))),
        ];
        assert!(
            refused(through).contains("in no folder"),
            "nothing is put through a link"
        );
    }

    #[test]
    fn links_stay_inside() {
        let led = |target: &str| {
            Manifest::new(vec![
                entry(None, "d", Kind::Folder),
                entry(Some(0), "e", Kind::Folder),
                entry(Some(1), "l", link(target)),
            ])
        };
        for inside in ["a", "../a", "a/b", ".", "./a", ".."] {
            assert!(led(inside).is_ok(), "{inside}");
        }
        for outside in [
            "",
            "/etc/passwd",
            "../..",
            "../../x",
            "a/../..",
            "a/..",
            "a//b",
            "a\n",
        ] {
            assert!(led(outside).is_err(), "{outside}");
        }
        assert!(
            Manifest::new(vec![entry(None, "l", link("a"))]).is_err(),
            "beside what was named"
        );
    }

    #[test]
    fn depth_size_and_number_are_bounded() {
        let mut deep: Vec<_> = (0..150usize)
            .map(|n| entry(n.checked_sub(1), "d", Kind::Folder))
            .collect();
        assert!(refused(deep.clone()).contains("more than 100"));
        deep.truncate(100);
        assert!(Manifest::new(deep).is_ok());
        let huge = ["a", "b"].map(|name| entry(None, name, Kind::File(Some(u64::MAX - 1))));
        assert!(refused(huge.to_vec()).contains("counted"));
        let many = (0..=MAX_ENTRIES).map(|n| entry(None, &n.to_string(), Kind::Folder));
        assert_eq!(Manifest::new(many.collect()), Err(ManifestError::TooMany));
    }
}
