//! The index of the documentation, `docs/README.md`: every page is in it, and it names no other.

use std::collections::BTreeSet;

use crate::finding::Finding;
use crate::tree::Tree;

const INDEX: &str = "docs/README.md";

/// Compares what the index links with the pages below `docs/`.
///
/// # Errors
/// None; the signature is that of every check.
pub fn check(tree: &Tree) -> anyhow::Result<Vec<Finding>> {
    let pages = tree.below("docs").map(|(path, _)| path);
    let pages = pages.filter(|path| path.ends_with(".md") && *path != INDEX);
    Ok(compare(tree.text(INDEX).unwrap_or_default(), &pages.collect()))
}

fn compare(index: &str, pages: &BTreeSet<&str>) -> Vec<Finding> {
    let links = index
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next());
    let own = links.filter(|link| link.ends_with(".md") && !link.starts_with("../"));
    let linked: BTreeSet<String> = own.map(|link| format!("docs/{link}")).collect();
    let missing = pages.iter().filter(|page| !linked.contains(**page));
    let missing = missing.map(|page| Finding::error(INDEX, None, format!("does not name {page}")));
    let gone = linked.iter().filter(|link| !pages.contains(link.as_str()));
    let gone = gone.map(|link| Finding::error(INDEX, None, format!("names {link}, which is no page")));
    missing.chain(gone).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_is_not_named_and_a_name_without_page_are_found() {
        let index =
            "| [cli](cli.md) | [old](results/old.md) |\nsee [it](../ARCHITECTURE.md), [books](notebooks/)";
        let found = compare(index, &BTreeSet::from(["docs/cli.md", "docs/results/new.md"]));
        let found: Vec<_> = found.iter().map(ToString::to_string).collect();
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("docs/results/new.md") && found[1].contains("docs/results/old.md"));
    }
}
