//! Size, white space, words, citations, `unsafe`: what a reviewer should not have to say.

use std::ops::RangeInclusive;

use anyhow::Context;
use toml::{Table, Value};

use crate::finding::Finding;
use crate::source::{code_only, has_word, lines_with, permissions};
use crate::tree::Tree;

/// A Rust file with more lines has a second idea.
const LONGEST: usize = 500;

/// This file, which must spell the words out to forbid them.
const HERE: &str = "xtask/src/tidy.rs";

/// Words that do not belong into the project, in lower case: where it was written, and with what, is not its subject;
/// and what is unfinished is finished or removed, not marked.
const FOREIGN: [&str; 12] = [
    "/work/",
    "anthropic",
    "brief.md",
    "chatgpt",
    "claude",
    "co-authored-by",
    "copilot",
    "fixme",
    "language model",
    "openai",
    "subagent",
    "todo:",
];

/// Words of an older dialect, in lower case, each with the field's word for it (RFC 6675, 8684, 9000, 9293).
const DIALECT: [(&str, &str); 20] = [
    ("agenda", "EventQueue"),
    ("deaf_knocker", "pending_session"),
    ("disagreement.rs", "reset.rs"),
    ("for eyes", "for diagnostics only"),
    ("inn", "rx"),
    ("is_bare_repeat", "is_bare_duplicate"),
    ("is_repeated", "is_retransmitted"),
    ("knocker", "new peer"),
    ("lostrepeats", "LostRetransmissions"),
    ("marks.rs", "ecn.rs"),
    ("newcomer", "new peer"),
    ("on_asked", "on_probe_sent"),
    ("on_repeated", "on_retransmitted"),
    ("on_said", "on_dss_update"),
    ("on_stranger", "on_unknown"),
    ("passoffice", "TokenIssuer"),
    ("patience", "timeout"),
    ("see_off", "report"),
    ("stranger.rs", "accept.rs"),
    ("whence", "origin"),
];

/// Files that may hold `unsafe`, each with what forces it. Inside, `#[allow(unsafe_code, reason = "…")]` says why.
const MAY_BE_UNSAFE: [(&str, &str); 1] = [(
    "proofs/src/main.rs",
    "a function that nobody defines, an allocator: it is linked, not run",
)];

/// Files of a service folder that hold no algorithm.
const NO_ALGORITHM: [&str; 4] = ["mod.rs", "choice.rs", "conformance.rs", "tests.rs"];

/// How many lines of a file's own documentation may pass before its source is named.
const CITED_WITHIN: usize = 10;

/// Years a cited paper may bear.
const YEARS: RangeInclusive<u32> = 1960..=2039;

/// Runs all of it.
///
/// # Errors
/// A manifest is not TOML.
pub fn check(tree: &Tree) -> anyhow::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for (path, text) in tree.files() {
        findings.extend(white_space(path, text));
        findings.extend(words(path, text));
        if path.ends_with(".rs") {
            findings.extend(size(path, text));
            findings.extend(citation(path, text));
            findings.extend(unsafe_use(path, text, &MAY_BE_UNSAFE));
        }
        if path.ends_with("/Cargo.toml") {
            findings
                .extend(unsafe_lint(path, text, tree.text("Cargo.toml")).with_context(|| path.to_owned())?);
        }
    }
    Ok(findings)
}

fn size(path: &str, text: &str) -> Option<Finding> {
    let lines = text.lines().count();
    (lines > LONGEST).then(|| {
        Finding::error(
            path,
            None,
            format!("{lines} lines, over {LONGEST}: name its second idea and split"),
        )
    })
}

fn white_space(path: &str, text: &str) -> Vec<Finding> {
    let needs_tabs = path.ends_with("Makefile");
    let mut findings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.contains('\t') && !needs_tabs {
            findings.push(Finding::error(path, index + 1, "tab; use spaces"));
        }
        if line.ends_with([' ', '\t']) {
            findings.push(Finding::error(path, index + 1, "space at the end of the line"));
        }
    }
    findings
}

fn words(path: &str, text: &str) -> Vec<Finding> {
    if path == HERE {
        return Vec::new();
    }
    let lines = text.lines().enumerate();
    let found = lines.flat_map(|(index, line)| {
        let line = line.to_lowercase();
        let foreign = FOREIGN
            .iter()
            .filter(|word| has_word(&line, word))
            .map(|word| format!("{word:?} does not belong into the project"));
        let dialect = DIALECT
            .iter()
            .filter(|(word, _)| has_word(&line, word))
            .map(|(word, better)| format!("{word:?}: the field says {better:?}"));
        let messages: Vec<_> = foreign.chain(dialect).collect();
        messages.into_iter().map(move |message| (index + 1, message))
    });
    found
        .map(|(line, message)| Finding::error(path, line, message))
        .collect()
}

/// Every algorithm says where it is specified.
fn citation(path: &str, text: &str) -> Option<Finding> {
    let (_, file) = path
        .strip_prefix("crates/restp-services/src/")?
        .rsplit_once('/')?;
    if NO_ALGORITHM.contains(&file) {
        return None;
    }
    let cited = text
        .lines()
        .map_while(|line| line.strip_prefix("//!"))
        .take(CITED_WITHIN)
        .any(names_a_source);
    (!cited).then(|| {
        let forms = "`ResTP §3.5.9`, `OP-45`, `RFC 6298 §2` or a paper with its year";
        Finding::error(
            path,
            1,
            format!("no source in the first {CITED_WITHIN} lines of its documentation: cite {forms}"),
        )
    })
}

fn names_a_source(line: &str) -> bool {
    let number_behind = |mark: &str| {
        line.match_indices(mark)
            .any(|(at, _)| line[at + mark.len()..].starts_with(|c: char| c.is_ascii_digit()))
    };
    let mut numbers = line.split(|c: char| !c.is_ascii_alphanumeric());
    ["§", "RFC ", "OP-"].into_iter().any(number_behind)
        || numbers.any(|word| word.len() == 4 && word.parse().is_ok_and(|year| YEARS.contains(&year)))
}

/// `unsafe` and its permission stand only in the files that are allowed to, and the permission gives its reason.
fn unsafe_use(path: &str, text: &str, allowed: &[(&str, &str)]) -> Vec<Finding> {
    let code = code_only(text);
    if allowed.iter().any(|(file, _)| *file == path) {
        let unexplained = permissions(&code, "unsafe_code")
            .into_iter()
            .filter(|explained| !explained);
        return unexplained
            .map(|_| Finding::error(path, None, "unsafe_code permitted without a reason"))
            .collect();
    }
    let found = ["unsafe", "allow(unsafe_code", "expect(unsafe_code"]
        .into_iter()
        .flat_map(|token| lines_with(&code, token));
    found
        .map(|line| {
            Finding::error(
                path,
                line,
                format!("unsafe; if nothing else will do, list the file in {HERE}"),
            )
        })
        .collect()
}

/// Every package forbids `unsafe` by lint, on its own or with the workspace.
fn unsafe_lint(path: &str, text: &str, workspace: Option<&str>) -> anyhow::Result<Option<Finding>> {
    let manifest: Table = text.parse()?;
    if !manifest.contains_key("package") {
        return Ok(None);
    }
    let lints = manifest.get("lints");
    let inherits = lints
        .and_then(|lints| lints.get("workspace"))
        .and_then(Value::as_bool)
        .unwrap_or(false);
    let forbidden = if inherits {
        let root: Table = workspace.context("no Cargo.toml at the root")?.parse()?;
        refuses_unsafe(root.get("workspace").and_then(|workspace| workspace.get("lints")))
    } else {
        refuses_unsafe(lints)
    };
    let message = "the package does not refuse unsafe code: inherit the workspace's lints";
    Ok((!forbidden).then(|| Finding::error(path, None, message)))
}

fn refuses_unsafe(lints: Option<&Value>) -> bool {
    let level = lints
        .and_then(|lints| lints.get("rust"))
        .and_then(|rust| rust.get("unsafe_code"));
    matches!(level.and_then(Value::as_str), Some("forbid" | "deny"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVICE: &str = "crates/restp-services/src/ack/delayed.rs";

    #[test]
    fn a_long_file_fails() {
        assert!(size("a.rs", &"x\n".repeat(LONGEST)).is_none());
        assert!(size("a.rs", &"x\n".repeat(LONGEST + 1)).is_some());
    }

    #[test]
    fn tabs_and_trailing_space_are_found_with_their_line() {
        let lines: Vec<_> = white_space("a.rs", "x\n\ty\nz ")
            .into_iter()
            .map(|finding| finding.line)
            .collect();
        assert_eq!(lines, [Some(2), Some(3)]);
        assert_eq!(white_space("Makefile", "a:\n\tb"), []);
    }

    #[test]
    fn foreign_words_are_found_in_any_case_and_own_words_are_not() {
        for word in FOREIGN.into_iter().chain(DIALECT.map(|(word, _)| word)) {
            assert_eq!(
                words("README.md", &format!("see ({}).", word.to_uppercase())).len(),
                1,
                "{word}"
            );
        }
        assert_eq!(
            words("README.md", "a network/workload, claudette, methodology"),
            []
        );
    }

    #[test]
    fn an_algorithm_without_a_source_fails() {
        assert!(citation(SERVICE, "//! Delays.\n\n// RFC 1122\n").is_some());
        for source in [
            "ResTP §3.5.9",
            "OP-45",
            "RFC 1122 §4",
            "Brakmo and Peterson, 1995",
        ] {
            assert_eq!(
                citation(SERVICE, &format!("//! Delays.\n//! {source}.\n")),
                None,
                "{source}"
            );
        }
    }

    #[test]
    fn only_algorithms_need_a_source() {
        for path in [
            "crates/restp-services/src/view.rs",
            "crates/restp-services/src/ack/mod.rs",
            "crates/restp/src/x.rs",
        ] {
            assert_eq!(citation(path, "//! Words.\n"), None);
        }
    }

    #[test]
    fn unsafe_stands_only_where_it_is_listed_and_explained() {
        assert_eq!(unsafe_use("a.rs", "unsafe { f() }", &[]).len(), 1);
        assert_eq!(unsafe_use("a.rs", "#![allow(unsafe_code)]", &[]).len(), 1);
        assert_eq!(
            unsafe_use(
                "a.rs",
                "#![forbid(unsafe_code)] // unsafe\nlet s = \"unsafe\";",
                &[]
            ),
            []
        );
        let listed = [("a.rs", "system call")];
        assert_eq!(
            unsafe_use(
                "a.rs",
                "#[allow(unsafe_code, reason = \"ioctl\")]\nunsafe {}",
                &listed
            ),
            []
        );
        assert_eq!(
            unsafe_use("a.rs", "#[allow(unsafe_code)]\nunsafe {}", &listed).len(),
            1
        );
    }

    #[test]
    fn a_package_that_permits_unsafe_fails() {
        let root = Some("[workspace.lints.rust]\nunsafe_code = \"deny\"");
        let verdict = |text: &str, root| unsafe_lint("Cargo.toml", text, root).unwrap().is_none();
        assert!(verdict("[package]\n[lints]\nworkspace = true", root));
        assert!(verdict("[package]\n[lints.rust]\nunsafe_code = \"forbid\"", root));
        assert!(verdict("[workspace]", root));
        assert!(!verdict("[package]", root));
        assert!(!verdict(
            "[package]\n[lints]\nworkspace = true",
            Some("[workspace]")
        ));
    }
}
