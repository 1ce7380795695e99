//! Modules of a crate depend on each other in one direction: no cycle between folders, and few between files beside each other. Paths inside
//! macros are not read.

use crate::finding::Finding;
use crate::tree::Tree;
use anyhow::Context;
use petgraph::algo::tarjan_scc;
use petgraph::graphmap::DiGraphMap;
use std::collections::{BTreeMap, BTreeSet};
use syn::visit::{self, Visit};

/// Cycles between files beside each other that a crate may have.
const MOST: usize = 4;

/// The place of a module, from the root of its crate.
type Place = Vec<String>;

/// Reads every crate.
///
/// # Errors
/// A file is not Rust.
pub fn check(tree: &Tree) -> anyhow::Result<Vec<Finding>> {
    let mut crates: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
    for (path, text) in tree.below("crates").filter(|(path, _)| path.ends_with(".rs")) {
        if let Some((root, _)) = path.split_once("/src/") {
            crates.entry(root).or_default().push((path, text));
        }
    }
    let mut findings = Vec::new();
    for (root, files) in crates {
        findings.extend(check_crate(root, &files)?);
    }
    Ok(findings)
}

fn check_crate(root: &str, files: &[(&str, &str)]) -> anyhow::Result<Vec<Finding>> {
    let mut modules: BTreeMap<Place, Uses> = BTreeMap::new();
    for (path, text) in files {
        let place = place_of(path);
        let mut uses = Uses::default();
        let file = syn::parse_file(text).with_context(|| (*path).to_owned())?;
        uses.visit_file(&file);
        modules.insert(place, uses);
    }
    let tests: Vec<Place> = modules
        .iter()
        .flat_map(|(place, uses)| uses.tests.iter().map(|name| below(place, name)))
        .collect();
    modules.retain(|place, _| !tests.iter().any(|test| place.starts_with(test)));

    let mut cycles = Vec::new();
    let parents: BTreeSet<&[String]> = modules
        .keys()
        .filter_map(|place| Some(place.split_last()?.1))
        .collect();
    for parent in parents {
        cycles.extend(among(parent, &modules));
    }
    let between_files = cycles.iter().filter(|cycle| !cycle.has_folder).count();
    let too_many = between_files > MOST;
    let told = cycles.iter().filter(|cycle| cycle.has_folder || too_many);
    Ok(told.map(|cycle| cycle.finding(root)).collect())
}

/// `crates/a/src/b/mod.rs` and `crates/a/src/b.rs` are both `b`.
fn place_of(path: &str) -> Place {
    let inside = path.split_once("/src/").map_or(path, |(_, inside)| inside);
    let mut place: Place = inside
        .trim_end_matches(".rs")
        .split('/')
        .map(str::to_owned)
        .collect();
    if matches!(place.last().map(String::as_str), Some("mod" | "lib" | "main")) {
        place.pop();
    }
    place
}

fn below(place: &[String], name: &str) -> Place {
    [place, &[name.to_owned()]].concat()
}

/// Children of one module that need each other.
struct Cycle {
    parent: Place,
    members: Vec<String>,
    has_folder: bool,
}

impl Cycle {
    fn finding(&self, root: &str) -> Finding {
        let kind = if self.has_folder { "folders" } else { "files" };
        let at = [&[root.to_owned(), "src".to_owned()], &self.parent[..]]
            .concat()
            .join("/");
        let members = self.members.join(", ");
        Finding::error(
            &at,
            None,
            format!(
                "{members} depend on each other; no cycle between {kind}: move what both need below them"
            ),
        )
    }
}

/// Cycles among the children of `parent`, each with all that lies below it.
fn among(parent: &[String], modules: &BTreeMap<Place, Uses>) -> Vec<Cycle> {
    let child = |place: &Place| place.strip_prefix(parent).and_then(|rest| rest.first().cloned());
    let names: BTreeSet<String> = modules.keys().filter_map(child).collect();
    let folders: BTreeSet<String> = modules
        .keys()
        .filter(|place| place.len() > parent.len() + 1)
        .filter_map(child)
        .collect();
    let mut graph: DiGraphMap<&str, ()> = DiGraphMap::new();
    for (place, uses) in modules {
        let Some(from) = child(place).and_then(|name| names.get(&name)) else {
            continue;
        };
        for used in &uses.found {
            let to = child(&resolved(place, used, modules)).and_then(|name| names.get(&name));
            if let Some(to) = to.filter(|to| *to != from) {
                graph.add_edge(from, to, ());
            }
        }
    }
    let cycles = tarjan_scc(&graph).into_iter().filter(|members| members.len() > 1);
    cycles
        .map(|members| {
            let mut members: Vec<String> = members.into_iter().map(str::to_owned).collect();
            members.sort();
            Cycle {
                parent: parent.to_vec(),
                has_folder: members.iter().any(|name| folders.contains(name)),
                members,
            }
        })
        .collect()
}

/// The module that a path leads to from `place`, as deep as there are files. Names that modules have from others are followed.
fn resolved(place: &[String], used: &[String], modules: &BTreeMap<Place, Uses>) -> Place {
    followed(place, used, modules, MOST_NAMES)
}

/// Most names in a row that stand for each other.
const MOST_NAMES: usize = 8;

fn followed(place: &[String], used: &[String], modules: &BTreeMap<Place, Uses>, most: usize) -> Place {
    let (mut at, mut rest): (Place, _) = match used.first().map(String::as_str) {
        Some("crate") => (Vec::new(), &used[1..]),
        _ => (place.to_vec(), used),
    };
    while let Some((first, more)) = rest.split_first()
        && matches!(first.as_str(), "super" | "self")
    {
        if first == "super" {
            at.pop();
        }
        rest = more;
    }
    while let Some((name, more)) = rest.split_first() {
        let deeper = below(&at, name);
        if modules.contains_key(&deeper) {
            (at, rest) = (deeper, more);
            continue;
        }
        let names = modules.get(&at).map(|uses| &uses.names);
        return match names.and_then(|names| names.get(name)) {
            Some(stands_for) if most > 0 => followed(&at, stands_for, modules, most - 1),
            _ => at,
        };
    }
    at
}

/// Paths from `crate`, `super` or `self` in code that is not for tests, and which child modules are.
#[derive(Default)]
struct Uses {
    found: Vec<Vec<String>>,
    tests: Vec<String>,
    /// What stands in the module by a path of `use`, public or not: its children see all of them.
    names: BTreeMap<String, Vec<String>>,
    /// Inline modules around what is being read.
    inline: usize,
}

impl Uses {
    /// `super` in an inline module is the file itself.
    fn add(&mut self, mut path: Vec<String>) {
        let supers = path.iter().take_while(|name| *name == "super").count();
        if matches!(path.first().map(String::as_str), Some("crate" | "super" | "self")) {
            let here = "self".to_owned();
            path.splice(..supers.min(self.inline), (supers > 0).then_some(here));
            self.found.push(path);
        }
    }

    fn add_name(&mut self, mut path: Vec<String>, ident: &syn::Ident, name: &syn::Ident) {
        if ident != "self" {
            path.push(ident.to_string());
        }
        if self.inline == 0 {
            self.names.insert(name.to_string(), path.clone());
        }
        self.add(path);
    }

    fn add_tree(&mut self, mut before: Vec<String>, tree: &syn::UseTree) {
        match tree {
            syn::UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.add_tree(before, &path.tree);
            }
            syn::UseTree::Group(group) => group
                .items
                .iter()
                .for_each(|tree| self.add_tree(before.clone(), tree)),
            syn::UseTree::Name(syn::UseName { ident }) => self.add_name(before, ident, ident),
            syn::UseTree::Rename(syn::UseRename { ident, rename, .. }) => {
                self.add_name(before, ident, rename)
            }
            syn::UseTree::Glob(_) => self.add(before),
        }
    }
}

fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let condition = attribute
            .path()
            .is_ident("cfg")
            .then(|| attribute.parse_args::<syn::Path>());
        condition.is_some_and(|path| path.is_ok_and(|path| path.is_ident("test")))
    })
}

impl<'ast> Visit<'ast> for Uses {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let attributes = match item {
            syn::Item::Mod(item) => &item.attrs,
            syn::Item::Fn(item) => &item.attrs,
            syn::Item::Impl(item) => &item.attrs,
            syn::Item::Use(item) => &item.attrs,
            _ => return visit::visit_item(self, item),
        };
        if !is_for_tests(attributes) {
            visit::visit_item(self, item);
        } else if let syn::Item::Mod(item) = item {
            self.tests.push(item.ident.to_string());
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if !is_for_tests(&item.attrs) {
            visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        self.inline += 1;
        visit::visit_item_mod(self, item);
        self.inline -= 1;
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.add_tree(Vec::new(), &item.tree);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.add(
            path.segments
                .iter()
                .map(|segment| segment.ident.to_string())
                .collect(),
        );
        visit::visit_path(self, path);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is a failed test")]

    use super::*;

    fn told<const N: usize>(files: [(&str, &str); N]) -> Vec<String> {
        let files = files.map(|(path, text)| (format!("crates/x/src/{path}"), text));
        let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        let findings = check_crate("crates/x", &files).unwrap();
        findings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn folders_that_need_each_other_are_told() {
        let told = told([
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a/mod.rs", "pub mod deep; use crate::b::B;"),
            ("a/deep.rs", "pub struct Deep;"),
            ("b.rs", "pub struct B { of: crate::a::deep::Deep }"),
            ("c.rs", "use crate::{a, b}; use self::a as other;"),
        ]);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains("crates/x/src: a, b depend"), "{told:?}");
    }

    /// They hid what a folder takes from beside it.
    #[test]
    fn names_that_a_parent_hands_on_are_followed() {
        let told = told([
            ("lib.rs", "mod a; mod b; pub use b::Inner as Outer; use a::deep;"),
            ("a/mod.rs", "pub mod deep;"),
            ("a/deep.rs", "use crate::Outer;"),
            ("b.rs", "use super::deep;"),
        ]);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains("a, b depend"), "{told:?}");
    }

    #[test]
    fn files_may_need_each_other_now_and_then() {
        let pair = |n: usize| {
            let at = |which: &str| format!("crates/x/src/{which}{n}.rs");
            [
                (at("a"), format!("use super::b{n};")),
                (at("b"), format!("fn f() -> crate::a{n}::A {{}}")),
            ]
        };
        let told = |pairs| {
            let files: Vec<_> = (0..pairs).flat_map(pair).collect();
            let files: Vec<_> = files
                .iter()
                .map(|(path, text)| (path.as_str(), text.as_str()))
                .collect();
            check_crate("crates/x", &files).unwrap().len()
        };
        assert_eq!((told(MOST), told(MOST + 1)), (0, MOST + 1));
    }

    #[test]
    fn tests_and_what_is_further_up_do_not_count() {
        let told = told([
            ("lib.rs", "mod a; mod b; pub struct Top;"),
            (
                "a.rs",
                "mod inner; #[cfg(test)] mod check; use super::Top; mod inline { use super::inner::I; }",
            ),
            (
                "a/inner.rs",
                "use super::super::Top; #[cfg(test)] mod tests { use crate::b::B; }",
            ),
            ("a/check.rs", "use crate::b::B;"),
            ("b.rs", "use crate::a; #[cfg(test)] use std::fmt;"),
        ]);
        assert_eq!(told, [""; 0]);
    }
}
