//! From what the user named to a manifest: every file, folder and link below it, in the order of names.

use super::manifest::{self, Entry, Kind, Manifest, ManifestError, Modified};
use super::source::SourceError;
use glob::{MatchOptions, Pattern};
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// What a transfer is made of, and where it lies.
#[derive(Debug)]
pub struct Found {
    /// The list for the receiver.
    pub manifest: Manifest,
    /// Where each entry lies, and what was found there.
    pub places: Vec<Place>,
    /// What is left out, and why.
    pub left_out: Vec<SourceError>,
    /// The first file of length 0 that holds something all the same, as those of /proc do.
    pub untold: Option<PathBuf>,
}

/// Where an entry lies.
#[derive(Debug)]
pub struct Place {
    path: PathBuf,
    /// Did the user name it? Then links are followed.
    named: bool,
    device: u64,
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
}

/// What stands for standard input.
pub const STDIN: &str = "-";

/// What becomes of what cannot be sent, below what the user named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsendable {
    /// Nothing is sent.
    Refused,
    /// All else is sent.
    LeftOut,
}

/// What is taken of what lies below what the user named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// What becomes of what cannot be sent.
    pub unsendable: Unsendable,
    /// What is not wanted: by its name, or with `/` in it by its path below what was named. Nobody hears of it.
    pub excluded: Vec<Exclusion>,
}

/// Names, or paths, that are not wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exclusion {
    pattern: Pattern,
    /// It speaks of paths below what was named.
    is_path: bool,
}

impl FromStr for Exclusion {
    type Err = String;
    /// `/` in front stands for the folder that was named, `/` behind changes nothing, as in other programs.
    fn from_str(text: &str) -> Result<Self, String> {
        let trimmed = text.trim_end_matches('/');
        let below = trimmed.strip_prefix("./").unwrap_or(trimmed);
        let is_path = below.contains('/') || trimmed.len() > below.len();
        match below.trim_start_matches('/') {
            "" | "." => Err("it names nothing; write a name or a path, such as .git or 'logs/*.tmp'".into()),
            pattern => Ok(Exclusion {
                pattern: Pattern::new(pattern).map_err(|error| error.to_string())?,
                is_path,
            }),
        }
    }
}

impl From<Unsendable> for Selection {
    /// Of everything.
    fn from(unsendable: Unsendable) -> Self {
        Selection {
            unsendable,
            excluded: Vec::new(),
        }
    }
}

impl Selection {
    /// As in a shell, but that stars do not care whether a name begins with a dot.
    fn excludes(&self, below: &Path) -> bool {
        let rules = MatchOptions {
            require_literal_separator: true,
            ..MatchOptions::new()
        };
        let name = below.file_name().map(Path::new).unwrap_or(below);
        self.excluded.iter().any(|excluded| {
            let what = if excluded.is_path { below } else { name };
            excluded.pattern.matches_with(&what.to_string_lossy(), rules)
        })
    }
}

/// Lists everything below `paths`; standard input has a name given.
///
/// # Errors
/// When something cannot be read, is neither file, folder nor link, or breaks a rule of manifests, and is not left out.
pub fn walk(paths: &[PathBuf], name_of_stdin: &str, selection: &Selection) -> Result<Found, SourceError> {
    let mut list = List::default();
    for path in paths {
        if path.as_os_str() == STDIN {
            list.add_stdin(name_of_stdin);
        } else {
            list.add(path.clone(), None, (selection, path))?;
        }
    }
    let (entries, kept, broken) = Manifest::sift(list.entries);
    let mut left_out = list.left_out;
    for error in broken {
        match error {
            // What the user named is meant.
            ManifestError::TopName(_) => return Err(error.into()),
            ManifestError::Twice(path) if !path.contains('/') => {
                return Err(ManifestError::Twice(path).into());
            }
            error => left_out.push(error.into()),
        }
    }
    if selection.unsendable == Unsendable::Refused && !left_out.is_empty() {
        let more = left_out.len() - 1;
        let first = Box::new(left_out.swap_remove(0));
        return Err(SourceError::Unsendable { first, more });
    }
    let mut places: Vec<_> = list.places.into_iter().map(Some).collect();
    let places = kept
        .into_iter()
        .filter_map(|place| places[place].take())
        .collect();
    let manifest = Manifest::new(entries)?;
    // Whether it is too long is known here, before anything is sent.
    manifest.encode()?;
    Ok(Found {
        manifest,
        places,
        left_out,
        untold: list.untold,
    })
}

#[derive(Default)]
struct List {
    entries: Vec<Entry>,
    places: Vec<Place>,
    left_out: Vec<SourceError>,
    untold: Option<PathBuf>,
}

impl List {
    fn add_stdin(&mut self, name: &str) {
        let now = restp::clock::unix_seconds();
        self.entries.push(Entry {
            parent: None,
            name: name.into(),
            mode: 0o644,
            modified: Modified {
                seconds: i64::try_from(now).unwrap_or(i64::MAX),
                nanoseconds: 0,
            },
            kind: Kind::File(None),
        });
        self.places.push(Place {
            path: STDIN.into(),
            named: true,
            device: 0,
            inode: 0,
            bytes: 0,
            modified: (0, 0),
        });
    }

    /// `top` is what the user named, at or above `path`.
    fn add(
        &mut self,
        path: PathBuf,
        parent: Option<usize>,
        (selection, top): (&Selection, &Path),
    ) -> Result<(), SourceError> {
        if self.entries.len() == manifest::MAX_ENTRIES {
            return Err(ManifestError::TooMany.into());
        }
        let failed = |source| SourceError::open(&path, source);
        let named = parent.is_none();
        let what = if named {
            fs::metadata(&path)
        } else {
            fs::symlink_metadata(&path)
        };
        let what = what.map_err(failed)?;
        let kind = if what.is_dir() {
            Kind::Folder
        } else if what.is_file() {
            Kind::File(Some(what.len()))
        } else if what.is_symlink() {
            let target = fs::read_link(&path).map_err(failed)?;
            Kind::Link(
                target
                    .into_os_string()
                    .into_string()
                    .map_err(|_| SourceError::Name(path.clone()))?,
            )
        } else {
            return Err(SourceError::Special(path));
        };
        let place = Place::new(path, named, &what);
        if matches!(kind, Kind::File(_)) {
            // What cannot be read is said before anything is sent, and so is what would arrive empty.
            let mut file = place.open()?;
            if what.len() == 0 && !(named && self.untold.is_some()) {
                let failed = |source| SourceError::open(place.path(), source);
                let is_untold = holds_something(&mut file).map_err(failed)?;
                if is_untold && !named {
                    return Err(SourceError::Untold(place.path));
                }
                if is_untold {
                    self.untold = Some(place.path.clone());
                }
            }
        }
        let is_folder = kind == Kind::Folder;
        self.entries.push(Entry {
            parent,
            name: name(&place.path)?,
            mode: (what.mode() & 0o777) as u16,
            modified: Modified {
                seconds: what.mtime(),
                nanoseconds: what.mtime_nsec() as u32,
            },
            kind,
        });
        let number = self.places.len();
        let path = place.path.clone();
        self.places.push(place);
        if is_folder {
            let children = match children(&path) {
                Err(error) if !named => {
                    self.left_out.push(error);
                    Vec::new()
                }
                children => children?,
            };
            let is_wanted = |child: &PathBuf| {
                child
                    .strip_prefix(top)
                    .is_ok_and(|below| !selection.excludes(below))
            };
            for child in children.into_iter().filter(is_wanted) {
                match self.add(child, Some(number), (selection, top)) {
                    Err(SourceError::Manifest(error)) => return Err(error.into()),
                    Err(error) => self.left_out.push(error),
                    Ok(()) => {}
                }
            }
        }
        Ok(())
    }
}

/// Does a file hold something although it says to be empty? One that has just been written to no longer says so.
fn holds_something(file: &mut File) -> io::Result<bool> {
    let read = file.take(1).read_to_end(&mut Vec::new())?;
    Ok(read > 0 && file.metadata()?.len() == 0)
}

fn children(folder: &Path) -> Result<Vec<PathBuf>, SourceError> {
    let failed = |source| SourceError::open(folder, source);
    let entries = fs::read_dir(folder).map_err(failed)?;
    let paths: io::Result<Vec<_>> = entries.map(|entry| Ok(entry?.path())).collect();
    let mut paths = paths.map_err(failed)?;
    paths.sort();
    Ok(paths)
}

/// The last part of `path`; that of `.` and `..` is what they stand for.
fn name(path: &Path) -> Result<String, SourceError> {
    let real;
    let name = match path.file_name() {
        Some(name) => name,
        None => {
            real = fs::canonicalize(path).map_err(|source| SourceError::open(path, source))?;
            real.file_name().unwrap_or_default()
        }
    };
    let name = name.to_str().ok_or_else(|| SourceError::Name(path.into()))?;
    Ok(name.to_owned())
}

impl Place {
    fn new(path: PathBuf, named: bool, what: &Metadata) -> Self {
        Place {
            path,
            named,
            device: what.dev(),
            inode: what.ino(),
            bytes: what.len(),
            modified: (what.mtime(), what.mtime_nsec()),
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a file, which must be the one that was found below what the user named.
    ///
    /// # Errors
    /// When it is another one, or cannot be read.
    pub fn open(&self) -> Result<File, SourceError> {
        use rustix::fs::{Mode, OFlags};
        // To open a pipe that has taken its place would wait for a writer; a link could lead anywhere.
        let follow = if self.named {
            OFlags::empty()
        } else {
            OFlags::NOFOLLOW
        };
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | follow;
        let file = rustix::fs::open(&self.path, flags, Mode::empty());
        let file: File = file
            .map_err(|source| SourceError::open(&self.path, source.into()))?
            .into();
        if !self.named {
            self.check(&file)?;
        }
        Ok(file)
    }

    /// Is `file` still the one that was found, and as it was then?
    ///
    /// # Errors
    /// What happened to it.
    pub fn check(&self, file: &File) -> Result<(), SourceError> {
        let found = file
            .metadata()
            .map_err(|source| SourceError::open(&self.path, source))?;
        let how = if (found.dev(), found.ino()) != (self.device, self.inode) {
            "was replaced".into()
        } else if found.len() != self.bytes {
            return Err(self.resized(found.len()));
        } else if (found.mtime(), found.mtime_nsec()) != self.modified {
            "was written to".into()
        } else {
            return Ok(());
        };
        Err(self.changed(how))
    }

    /// It has another length now.
    pub fn resized(&self, bytes: u64) -> SourceError {
        let how = if bytes > self.bytes { "grew" } else { "shrank" };
        self.changed(format!(
            "{how} from {} to {}",
            self.bytes,
            crate::output::bytes(bytes)
        ))
    }

    fn changed(&self, how: String) -> SourceError {
        SourceError::Changed {
            path: self.path.clone(),
            how,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_folder_is_listed_in_the_order_of_names() {
        let dir = tempfile::tempdir().expect("a folder");
        let top = dir.path().join("top");
        fs::create_dir_all(top.join("b")).expect("made");
        fs::write(top.join("b/x"), "123").expect("written");
        fs::write(top.join("a"), "").expect("written");
        symlink("../a", top.join("b/l")).expect("linked");
        let found = walk(std::slice::from_ref(&top), "", &Unsendable::Refused.into()).expect("lists");
        let paths: Vec<_> = (0..5).map(|place| found.manifest.path(place)).collect();
        assert_eq!(paths, ["top", "top/a", "top/b", "top/b/l", "top/b/x"]);
        assert_eq!(found.manifest.bytes(), Some(3));
        let dot = walk(&[top.join("b/..")], "", &Unsendable::Refused.into()).expect("lists");
        assert_eq!(dot.manifest.title(), "top");
    }

    #[test]
    fn what_is_neither_file_folder_nor_link_is_named() {
        let dir = tempfile::tempdir().expect("a folder");
        let top = dir.path().join("top");
        fs::create_dir(&top).expect("made");
        let _socket = std::os::unix::net::UnixListener::bind(top.join("s")).expect("bound");
        let sentence = walk(&[top], "", &Unsendable::Refused.into())
            .expect_err("a socket")
            .to_string();
        assert!(
            sentence.contains("top/s") && sentence.contains("no regular file"),
            "{sentence}"
        );
    }

    #[test]
    fn what_cannot_be_sent_is_left_out_where_that_is_asked() {
        let dir = tempfile::tempdir().expect("a folder");
        let top = dir.path().join("top");
        fs::create_dir_all(top.join("inner")).expect("made");
        let _socket = std::os::unix::net::UnixListener::bind(top.join("inner/s")).expect("bound");
        fs::write(top.join("inner/t"), "12").expect("written");
        fs::write(top.join("a"), "1").expect("written");
        fs::write(top.join("A"), "1").expect("written");
        symlink("/etc/passwd", top.join("inner/l")).expect("linked");
        let of = |unsendable: Unsendable| walk(std::slice::from_ref(&top), "", &unsendable.into());
        let sentence = of(Unsendable::Refused).expect_err("three").to_string();
        assert!(
            sentence.ends_with("(and 2 more that cannot be sent)"),
            "{sentence}"
        );
        let found = of(Unsendable::LeftOut).expect("the rest");
        let paths: Vec<_> = (0..4).map(|place| found.manifest.path(place)).collect();
        assert_eq!(paths, ["top", "top/A", "top/inner", "top/inner/t"]);
        assert_eq!(found.places[3].path(), top.join("inner/t"));
        assert_eq!(found.left_out.len(), 3);
        let named = walk(&[top.join("inner/s")], "", &Unsendable::LeftOut.into());
        assert!(named.is_err(), "what is named is meant");
    }

    #[test]
    fn a_file_that_was_replaced_is_not_opened() {
        let dir = tempfile::tempdir().expect("a folder");
        let top = dir.path().join("top");
        fs::create_dir(&top).expect("made");
        fs::write(top.join("a"), "1").expect("written");
        fs::write(dir.path().join("secret"), "2").expect("written");
        let found = walk(std::slice::from_ref(&top), "", &Unsendable::Refused.into()).expect("lists");
        fs::rename(top.join("a"), dir.path().join("old")).expect("moved");
        symlink("../secret", top.join("a")).expect("linked");
        assert!(found.places[1].open().is_err(), "a link");
        fs::remove_file(top.join("a")).expect("removed");
        fs::write(dir.path().join("new"), "1").expect("written");
        fs::rename(dir.path().join("new"), top.join("a")).expect("moved");
        let sentence = found.places[1].open().expect_err("another").to_string();
        assert!(sentence.contains("was replaced"), "{sentence}");
    }
}
