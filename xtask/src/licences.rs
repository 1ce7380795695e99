//! What the crates we build from ask for, and which of them come in several versions, against `deny.toml`: the part of
//! `cargo deny` that needs neither that program nor a network, so that it is checked everywhere.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use anyhow::{Context, bail};
use serde_json::Value as Json;
use spdx::{Expression, Licensee, ParseMode};
use toml::{Table, Value};

use crate::finding::Finding;
use crate::tree::Tree;

/// Asks cargo for the packages of `Cargo.lock`, and reads the rules.
///
/// # Errors
/// There are no rules, or cargo cannot tell the packages.
pub fn check(tree: &Tree) -> anyhow::Result<Vec<Finding>> {
    let text = tree.text("deny.toml").context("no deny.toml at the root")?;
    let rules = Rules::read(&text.parse().context("deny.toml")?)?;
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--locked", "--all-features", "--format-version", "1"])
        .args(["--filter-platform", "host-tuple"]) // others' crates need not be here
        .output()
        .context("cargo metadata")?;
    if !output.status.success() {
        bail!(
            "cargo metadata: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    let metadata: Json = serde_json::from_slice(&output.stdout).context("cargo metadata")?;
    let packages = packages(&metadata);
    let mut findings = rules.licences(&packages);
    findings.extend(rules.versions(&packages));
    Ok(findings)
}

/// A dependency.
struct Package {
    name: String,
    version: String,
    licence: Option<String>,
}

/// Those that come from somewhere; the workspace's own have no source.
fn packages(metadata: &Json) -> Vec<Package> {
    let all = metadata["packages"].as_array().into_iter().flatten();
    let word = |package: &Json, key: &str| package[key].as_str().map(str::to_owned);
    all.filter(|package| !package["source"].is_null())
        .filter_map(|package| {
            Some(Package {
                name: word(package, "name")?,
                version: word(package, "version")?,
                licence: word(package, "license"),
            })
        })
        .collect()
}

struct Rules {
    allowed: Vec<Licensee>,
    /// What single crates may ask for beyond that.
    exceptions: BTreeMap<String, Vec<Licensee>>,
    /// `name@version`: not counted among several versions.
    skipped: BTreeSet<String>,
}

impl Rules {
    fn read(rules: &Table) -> anyhow::Result<Self> {
        let part = |name: &str| rules.get(name).and_then(Value::as_table);
        let licences = part("licenses").context("deny.toml: no [licenses]")?;
        let crates = |table: Option<&Table>, key: &str| {
            let list = table.and_then(|table| table.get(key)).and_then(Value::as_array);
            list.cloned().unwrap_or_default()
        };
        let name = |entry: &Value| entry.get("crate").and_then(Value::as_str).map(str::to_owned);
        let exceptions = crates(Some(licences), "exceptions");
        let exceptions = exceptions.iter().filter_map(|entry| Some((name(entry)?, entry)));
        Ok(Rules {
            allowed: licensees(licences.get("allow"))?,
            exceptions: exceptions
                .map(|(name, entry)| Ok((name, licensees(entry.get("allow"))?)))
                .collect::<anyhow::Result<_>>()?,
            skipped: crates(part("bans"), "skip").iter().filter_map(name).collect(),
        })
    }

    fn licences(&self, packages: &[Package]) -> Vec<Finding> {
        let fault = |package: &Package| {
            let Some(licence) = &package.licence else {
                return Some("names no licence".to_owned());
            };
            let Ok(expression) = Expression::parse_mode(licence, ParseMode::LAX) else {
                return Some(format!("has a licence nobody can read: {licence:?}"));
            };
            let own = self.exceptions.get(&package.name).into_iter().flatten();
            let allowed: Vec<&Licensee> = self.allowed.iter().chain(own).collect();
            let fits = expression.evaluate(|asked| allowed.iter().any(|licensee| licensee.satisfies(asked)));
            (!fits).then(|| format!("asks for {licence}, which deny.toml does not allow"))
        };
        let finding = |package: &Package| {
            let Package { name, version, .. } = package;
            fault(package).map(|fault| Finding::error("deny.toml", None, format!("{name} {version} {fault}")))
        };
        packages.iter().filter_map(finding).collect()
    }

    fn versions(&self, packages: &[Package]) -> Vec<Finding> {
        let mut counted: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for package in packages {
            let skips = |skipped: &String| {
                let (name, version) = skipped.split_once('@').unwrap_or((skipped, ""));
                let rest = package.version.strip_prefix(version);
                name == package.name && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            };
            if !self.skipped.iter().any(skips) {
                counted.entry(&package.name).or_default().insert(&package.version);
            }
        }
        let several = counted.into_iter().filter(|(_, versions)| versions.len() > 1);
        let finding = |(name, versions): (&str, BTreeSet<&str>)| {
            let versions: Vec<&str> = versions.into_iter().collect();
            let message = format!(
                "{name} comes in versions {}; use one, or skip the older and say whose it is",
                versions.join(" and ")
            );
            Finding::error("deny.toml", None, message)
        };
        several.map(finding).collect()
    }
}

fn licensees(list: Option<&Value>) -> anyhow::Result<Vec<Licensee>> {
    let list = list
        .and_then(Value::as_array)
        .context("deny.toml: no list of licences")?;
    let licensee = |word: &Value| {
        let word = word.as_str().context("deny.toml: a licence is a word")?;
        Licensee::parse(word).with_context(|| format!("deny.toml: {word:?} is no licence"))
    };
    list.iter().map(licensee).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> Rules {
        let text = "[licenses]\nallow = [\"MIT\", \"Apache-2.0\"]\n\
                    exceptions = [{ crate = \"odd\", allow = [\"NCSA\"] }]\n\
                    [bans]\nskip = [{ crate = \"old@0.1\", reason = \"theirs\" }]";
        Rules::read(&text.parse().unwrap()).unwrap()
    }

    fn package(name: &str, version: &str, licence: Option<&str>) -> Package {
        Package {
            name: name.to_owned(),
            version: version.to_owned(),
            licence: licence.map(str::to_owned),
        }
    }

    #[test]
    fn a_licence_must_be_one_of_those_allowed() {
        let fine = [
            "MIT",
            "MIT OR GPL-3.0-only",
            "MIT/Apache-2.0",
            "MIT AND Apache-2.0",
        ];
        let fine = fine.map(|licence| package("fine", "1.0.0", Some(licence)));
        assert!(rules().licences(&fine).is_empty());
        let not = [
            Some("GPL-3.0-only"),
            Some("MIT AND NCSA"),
            Some("who knows?"),
            None,
        ];
        let not = not.map(|licence| package("not", "1.0.0", licence));
        assert_eq!(rules().licences(&not).len(), 4);
        assert!(
            rules()
                .licences(&[package("odd", "1.0.0", Some("MIT AND NCSA"))])
                .is_empty()
        );
    }

    #[test]
    fn two_versions_are_found_and_skipped_ones_are_not() {
        let of = |name, versions: &[&str]| -> Vec<Package> {
            versions
                .iter()
                .map(|version| package(name, version, None))
                .collect()
        };
        assert!(rules().versions(&of("old", &["0.1.7", "0.2.0"])).is_empty());
        assert_eq!(rules().versions(&of("old", &["0.10.7", "0.2.0"])).len(), 1);
        assert_eq!(rules().versions(&of("new", &["1.0.0", "2.0.0"])).len(), 1);
        assert!(rules().versions(&of("new", &["1.0.0", "1.0.0"])).is_empty());
    }
}
