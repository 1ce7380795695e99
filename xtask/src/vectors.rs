//! Every test vector is JSON, and some test reads it: a vector nobody reads proves nothing.

use crate::finding::Finding;
use crate::tree::Tree;

/// Reads `vectors/` and looks for its readers among the tests in Rust and Python.
///
/// # Errors
/// None; the signature is that of every check.
pub fn check(tree: &Tree) -> anyhow::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for (path, text) in tree.below("vectors").filter(|(path, _)| !path.ends_with(".md")) {
        if let Err(error) = serde_json::from_str::<serde_json::Value>(text) {
            findings.push(Finding::error(path, error.line(), format!("not JSON: {error}")));
        }
        if !tree
            .files()
            .any(|(reader, source)| is_test(reader, source) && reads(source, path))
        {
            findings.push(Finding::error(
                path,
                None,
                "no test reads this vector; name it in one, or remove it",
            ));
        }
    }
    Ok(findings)
}

fn is_test(path: &str, source: &str) -> bool {
    (path.starts_with("crates/") && path.ends_with(".rs") && source.contains("#[test]"))
        || (path.starts_with("python/tests/") && path.ends_with(".py"))
}

/// Whether a test names the vector, or goes through the whole folder.
fn reads(source: &str, path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let whole_folder = ["read_dir", ".glob(", ".iterdir("]
        .iter()
        .any(|call| source.contains(call));
    source.contains(name) || (whole_folder && source.contains("vectors"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEST: (&str, &str) = (
        "crates/restp-proto/tests/v.rs",
        "#[test] fn t() { read(\"vectors/base.json\") }",
    );

    #[test]
    fn a_vector_that_is_json_and_read_passes() {
        assert_eq!(
            check(&Tree::from([("vectors/base.json", "[1]"), TEST])).unwrap(),
            []
        );
        let all = (
            "python/tests/test_v.py",
            "for path in Path('vectors').glob('*'): ...",
        );
        assert_eq!(check(&Tree::from([("vectors/new.json", "{}"), all])).unwrap(), []);
    }

    #[test]
    fn broken_json_fails_with_its_line() {
        let found = check(&Tree::from([("vectors/base.json", "{\n1}"), TEST])).unwrap();
        assert_eq!((found.len(), found[0].line), (1, Some(2)));
    }

    #[test]
    fn a_vector_nobody_reads_fails() {
        let mention = ("crates/restp-proto/src/lib.rs", "//! see vectors/other.json");
        let found = check(&Tree::from([("vectors/other.json", "{}"), TEST, mention])).unwrap();
        assert!(found[0].message.contains("no test reads"));
    }
}
