//! The text files of the repository, read once, by path from its root.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::Context;

/// Folders that hold products, not sources. Names that begin with a dot are skipped as well, but for [`DOTTED`].
const PRODUCTS: [&str; 4] = ["target", "__pycache__", "corpus", "artifacts"];
const DOTTED: [&str; 4] = [".ci", ".cargo", ".gitignore", ".pre-commit-config.yaml"];
const TEXT: [&str; 10] = [
    "rs", "toml", "md", "py", "pyi", "sh", "json", "yaml", "yml", "html",
];
const TEXT_NAMES: [&str; 4] = ["Cargo.lock", "Makefile", "run", ".gitignore"];

/// Path from the root, with `/`, to the text of the file.
pub struct Tree {
    files: BTreeMap<String, String>,
}

impl Tree {
    /// Reads the repository this program was built in.
    ///
    /// # Errors
    /// A folder or file cannot be read.
    pub fn of_this_repository() -> anyhow::Result<Tree> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .parent()
            .context("xtask lies in the repository")?;
        Tree::read(root)
    }

    /// Reads every text file below `root`.
    ///
    /// # Errors
    /// A folder or file cannot be read.
    pub fn read(root: &Path) -> anyhow::Result<Tree> {
        let mut files = BTreeMap::new();
        read_folder(root, "", &mut files)?;
        Ok(Tree { files })
    }

    /// Paths and texts in the order of the paths.
    pub fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// The files below a folder, given without its closing `/`.
    pub fn below<'a>(&'a self, folder: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.files().filter(move |(path, _)| {
            path.strip_prefix(folder)
                .is_some_and(|rest| rest.starts_with('/'))
        })
    }

    /// The text of one file, if it is there.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }
}

#[cfg(test)]
impl<const N: usize> From<[(&str, &str); N]> for Tree {
    fn from(files: [(&str, &str); N]) -> Tree {
        Tree {
            files: files
                .map(|(path, text)| (path.to_owned(), text.to_owned()))
                .into(),
        }
    }
}

fn read_folder(folder: &Path, prefix: &str, files: &mut BTreeMap<String, String>) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with('.') && !DOTTED.contains(&name.as_str()) {
            continue;
        }
        let path = format!("{prefix}{name}");
        let kind = entry.file_type()?;
        if kind.is_dir() && !is_product(prefix, &name) {
            read_folder(&entry.path(), &format!("{path}/"), files)?;
        } else if kind.is_file() && is_text(&name) {
            let bytes = fs::read(entry.path()).with_context(|| format!("cannot read {path}"))?;
            files.insert(path, String::from_utf8_lossy(&bytes).into_owned());
        }
    }
    Ok(())
}

/// Nothing is built among sources: there `target` is the name of a module.
fn is_product(prefix: &str, name: &str) -> bool {
    let is_source = prefix.contains("/src/");
    !is_source && (PRODUCTS.contains(&name) || name.starts_with("target-"))
}

fn is_text(name: &str) -> bool {
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    TEXT_NAMES.contains(&name) || TEXT.contains(&extension)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_read_and_products_are_not() {
        let root = tempfile::tempdir().unwrap();
        for path in [
            "crates/a/src/lib.rs",
            "crates/a/src/target/tests.rs",
            "crates/a/target/y.rs",
            "target/x.rs",
            ".git/y.md",
            ".ci/run",
            "fuzz/corpus/seed.json",
            "a.pcap",
        ] {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "text").unwrap();
        }
        let tree = Tree::read(root.path()).unwrap();
        let paths: Vec<&str> = tree.files().map(|(path, _)| path).collect();
        let sources = ["crates/a/src/lib.rs", "crates/a/src/target/tests.rs"];
        assert_eq!(paths, [".ci/run", sources[0], sources[1]]);
        assert_eq!(tree.below("crates").count(), 2);
        assert_eq!(tree.below("crate").count(), 0);
    }
}
