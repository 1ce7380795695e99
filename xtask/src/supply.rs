//! What the project is built from: locked, from the one registry, with check sums; and the oldest compiler it promises to
//! build with is the one everybody builds and tests with. Advisories are `cargo deny`'s.

use anyhow::Context;
use toml::{Table, Value};

use crate::finding::Finding;
use crate::tree::Tree;

const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Reads the lock file, the root manifest and the toolchain's.
///
/// # Errors
/// One of them is missing or no TOML.
pub fn check(tree: &Tree) -> anyhow::Result<Vec<Finding>> {
    let read = |path: &str| -> anyhow::Result<Table> {
        let text = tree
            .text(path)
            .with_context(|| format!("no {path} at the root"))?;
        text.parse().with_context(|| path.to_owned())
    };
    let mut findings = locked(&read("Cargo.lock")?);
    findings.extend(oldest_compiler(
        &read("Cargo.toml")?,
        &read("rust-toolchain.toml")?,
    ));
    Ok(findings)
}

fn locked(lock: &Table) -> Vec<Finding> {
    let packages = lock.get("package").and_then(Value::as_array);
    let fault = |package: &Value| {
        let word = |key| package.get(key).and_then(Value::as_str);
        let source = word("source")?; // none: a crate of the workspace
        let sound = source == REGISTRY && word("checksum").is_some_and(|sum| sum.len() == 64);
        let message = format!(
            "{} comes from {source} or has no check sum; take dependencies from crates.io",
            word("name").unwrap_or("a package")
        );
        (!sound).then(|| Finding::error("Cargo.lock", None, message))
    };
    packages.into_iter().flatten().filter_map(fault).collect()
}

fn oldest_compiler(root: &Table, toolchain: &Table) -> Option<Finding> {
    let word = |table: &Table, keys: &[&str]| {
        let (last, tables) = keys.split_last()?;
        let inner = tables
            .iter()
            .try_fold(table, |table, key| table.get(*key)?.as_table())?;
        inner.get(*last)?.as_str().map(str::to_owned)
    };
    let promised = word(root, &["workspace", "package", "rust-version"]).unwrap_or_default();
    let pinned = word(toolchain, &["toolchain", "channel"]).unwrap_or_default();
    let same = !promised.is_empty() && (pinned == promised || pinned.starts_with(&format!("{promised}.")));
    let message =
        format!("rust-version is {promised:?}, but {pinned:?} builds and tests it; change both together");
    (!same).then(|| Finding::error("rust-toolchain.toml", None, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_sources_and_missing_sums_are_found() {
        let sum = "a".repeat(64);
        let lock = format!(
            "[[package]]\nname = \"ours\"\n\
             [[package]]\nname = \"good\"\nsource = \"{REGISTRY}\"\nchecksum = \"{sum}\"\n\
             [[package]]\nname = \"bare\"\nsource = \"{REGISTRY}\"\n\
             [[package]]\nname = \"git\"\nsource = \"git+https://example.org/x\"\nchecksum = \"{sum}\"\n"
        );
        let found = locked(&lock.parse().unwrap());
        let text: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(text.len(), 2);
        assert!(text[0].contains("bare") && text[1].contains("git"), "{text:?}");
    }

    #[test]
    fn promised_and_pinned_compilers_are_one() {
        let root: Table = "[workspace.package]\nrust-version = \"1.95\"".parse().unwrap();
        let pinned = |channel: &str| {
            format!("[toolchain]\nchannel = \"{channel}\"")
                .parse::<Table>()
                .unwrap()
        };
        assert!(oldest_compiler(&root, &pinned("1.95.0")).is_none());
        assert!(oldest_compiler(&root, &pinned("1.96.0")).is_some());
        assert!(oldest_compiler(&root, &pinned("1.950.0")).is_some());
        assert!(oldest_compiler(&Table::new(), &pinned("1.95.0")).is_some());
    }
}
