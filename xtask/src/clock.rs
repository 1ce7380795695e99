//! Determinism below the drivers: no clock, no global randomness, no hash order.
//!
//! Clippy's disallowed lists say the same by type; this text scan also sees code that is compiled for no one today, and
//! `src/` cannot opt out of it. A test or example that measures may, by clippy's permission with its reason.

use crate::finding::Finding;
use crate::layers::pure_crates;
use crate::source::{code_only, lines_with, permissions};
use crate::tree::Tree;

const TOKENS: [(&str, &str); 6] = [
    ("Instant::now", "time is an input: take `now: Time`"),
    ("SystemTime", "time is an input: take `now: Time`"),
    ("thread_rng", "chance comes from a named `Stream`"),
    ("rand::random", "chance comes from a named `Stream`"),
    (
        "HashMap",
        "its order differs between runs: use BTreeMap or an index",
    ),
    (
        "HashSet",
        "its order differs between runs: use BTreeSet or an index",
    ),
];

/// The one file that makes an instant: engines of others count in std's instants, from an arbitrary first one.
const EPOCH: &str = "crates/restp-witnesses/src/clock.rs";

/// Reads every Rust file of layers 1 to 3.
///
/// # Errors
/// None; the signature is that of every check.
pub fn check(tree: &Tree) -> anyhow::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for folder in pure_crates() {
        for (path, text) in tree.below(&folder).filter(|(path, _)| path.ends_with(".rs")) {
            let code = code_only(text);
            if path == EPOCH || measures(path, &code) {
                continue;
            }
            for (token, way_out) in TOKENS {
                findings.extend(
                    lines_with(&code, token)
                        .map(|line| Finding::error(path, line, format!("{token}: {way_out}"))),
                );
            }
        }
    }
    Ok(findings)
}

fn measures(path: &str, code: &str) -> bool {
    !path.contains("/src/") && permissions(code, "clippy::disallowed_methods").contains(&true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_token_is_found_below_the_drivers() {
        for (token, _) in TOKENS {
            let text = format!("fn f() {{\n    let _ = {token};\n}}");
            let found = check(&Tree::from([("crates/restp-sim/src/world.rs", text.as_str())])).unwrap();
            assert_eq!((found.len(), found[0].line), (1, Some(2)), "{token}");
        }
    }

    #[test]
    fn drivers_comments_and_longer_words_are_free() {
        let tree = Tree::from([
            ("crates/restp/src/clock.rs", "Instant::now()"),
            (
                "crates/restp-base/src/time.rs",
                "// never Instant::now\nlet s = \"SystemTime\";",
            ),
            ("crates/restp-base/src/x.rs", "struct NoHashMapHere;"),
        ]);
        assert_eq!(check(&tree).unwrap(), []);
    }

    #[test]
    fn only_outside_src_and_with_a_reason_may_a_file_measure() {
        let permitted =
            "#[allow(clippy::disallowed_methods, reason = \"a stopwatch\")]\nfn f() { Instant::now() }";
        let unexplained = "#[allow(clippy::disallowed_methods)]\nfn f() { Instant::now() }";
        let errors = |path: &str, text: &str| check(&Tree::from([(path, text)])).unwrap().len();
        assert_eq!(errors("crates/restp-proto/tests/speed.rs", permitted), 0);
        assert_eq!(errors("crates/restp-proto/tests/speed.rs", unexplained), 1);
        assert_eq!(errors("crates/restp-proto/src/speed.rs", permitted), 1);
    }
}
