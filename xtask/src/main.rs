//! Checks of the repository that the compiler cannot make: `cargo xtask all`, or one of them by name.
//!
//! | Check | Watches |
//! |---|---|
//! | `layers` | no dependency points up or sideways ([`layers`]) |
//! | `cycles` | modules of a crate depend in one direction ([`cycles`]) |
//! | `tidy` | size of files, white space, words, citations, `unsafe` ([`tidy`]) |
//! | `clock` | no clock, global randomness or hash order below the drivers ([`clock`]) |
//! | `vectors` | every test vector is JSON and some test reads it ([`vectors`]) |
//! | `cites` | which open points and sections the code cites; for information ([`cites`]) |
//! | `named` | the threat model names tests that are there ([`named`]) |
//! | `index` | `docs/README.md` names every page and no other ([`index`]) |
//! | `licences` | what dependencies ask for, and which come twice, against `deny.toml` ([`licences`]) |
//! | `supply` | locked dependencies of one registry, one promised compiler ([`supply`]) |
#![allow(clippy::print_stdout, reason = "a check speaks to whoever started it")]

mod cites;
mod clock;
mod cycles;
mod finding;
mod index;
mod layers;
mod licences;
mod named;
mod source;
mod supply;
mod tidy;
mod tree;
mod vectors;

use std::process::ExitCode;

use anyhow::bail;

use crate::finding::{Finding, Severity};
use crate::tree::Tree;

type Check = fn(&Tree) -> anyhow::Result<Vec<Finding>>;

const CHECKS: [(&str, Check); 10] = [
    ("layers", layers::check),
    ("cycles", cycles::check),
    ("tidy", tidy::check),
    ("clock", clock::check),
    ("vectors", vectors::check),
    ("cites", cites::check),
    ("named", named::check),
    ("index", index::check),
    ("licences", licences::check),
    ("supply", supply::check),
];

fn main() -> ExitCode {
    match run(std::env::args().nth(1).as_deref()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Runs the check called `name`, or every one for `all`; true when none found an error.
fn run(name: Option<&str>) -> anyhow::Result<bool> {
    let names = CHECKS.map(|(name, _)| name).join(", ");
    let Some(name) = name else {
        bail!("name a check: {names}, or all")
    };
    if name != "all" && !CHECKS.iter().any(|(known, _)| *known == name) {
        bail!("no check is called {name:?}; there are {names}, and all");
    }
    let tree = Tree::of_this_repository()?;
    let mut clean = true;
    for (known, check) in CHECKS {
        if name != "all" && name != known {
            continue;
        }
        let findings = check(&tree)?;
        let errors = findings
            .iter()
            .filter(|finding| finding.severity == Severity::Error)
            .count();
        for finding in &findings {
            println!("{finding}");
        }
        println!(
            "xtask {known}: {}",
            if errors == 0 {
                "ok".to_owned()
            } else {
                format!("{errors} errors")
            }
        );
        clean &= errors == 0;
    }
    Ok(clean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_no_check_is_refused_with_the_allowed_ones() {
        let refusal = run(Some("tidyy")).unwrap_err().to_string();
        assert!(
            refusal.contains("tidyy")
                && refusal
                    .contains("layers, cycles, tidy, clock, vectors, cites, named, index, licences, supply"),
            "{refusal}"
        );
        assert!(run(None).is_err());
    }
}
