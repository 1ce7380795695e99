//! The tests that the threat model names are there: a row whose test was renamed shows nothing.

use crate::finding::Finding;
use crate::tree::Tree;
use std::collections::BTreeSet;

const THREATS: &str = "docs/protocol/threats.md";

/// Looks for each test that [`THREATS`] names among the functions of `crates/`.
///
/// # Errors
/// None; the signature is that of every check.
pub fn check(tree: &Tree) -> anyhow::Result<Vec<Finding>> {
    let sources = tree.below("crates").filter(|(path, _)| path.ends_with(".rs"));
    let functions: BTreeSet<&str> = sources
        .flat_map(|(_, text)| text.split("fn ").skip(1))
        .filter_map(|rest| rest.split_once('(').map(|(name, _)| name))
        .collect();
    let lines = tree.text(THREATS).unwrap_or_default().lines().zip(1..);
    let findings = lines.flat_map(|(line, number)| {
        // What stands between two backticks.
        let quoted = line.split('`').skip(1).step_by(2);
        let lost = quoted.filter(|name| is_test(name) && !functions.contains(name));
        lost.map(move |name| {
            Finding::error(
                THREATS,
                number,
                format!("no test is called {name}; name the one that shows this"),
            )
        })
        .collect::<Vec<_>>()
    });
    Ok(findings.collect())
}

/// A sentence of several words; keys and files have fewer.
fn is_test(name: &str) -> bool {
    let is_of_a_name = |c: char| c == '_' || c.is_ascii_lowercase() || c.is_ascii_digit();
    name.chars().all(is_of_a_name) && name.matches('_').count() >= 3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_names_a_test_that_is_there() {
        let source = (
            "crates/restp/src/a.rs",
            "#[test]\nfn nobody_reads_what_is_sealed() {}",
        );
        let said = |page: &str| check(&Tree::from([(THREATS, page), source])).unwrap().len();
        assert_eq!(
            said("| to read | `nobody_reads_what_is_sealed`, `src`, `a_key` |"),
            0
        );
        assert_eq!(said("| to read | `nobody_reads_what_was_sealed` |"), 1);
        assert_eq!(said("nobody_reads_what_was_sealed"), 0, "it is no name of a test");
    }
}
