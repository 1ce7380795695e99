//! `restp paths`: the links of this host, and who uses them.

use crate::failure::Failure;
use crate::links::{self, Link, Policy};
use crate::output::Output;
use serde::Serialize;

#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    link: &'a Link,
    /// Commands whose choice it is; of the others the routing table decides, or another link is theirs.
    used_by: Vec<&'static str>,
}

/// Prints them.
///
/// # Errors
/// Exit code 2 when the user's file is wrong, 1 when the system does not tell.
pub fn execute(output: Output) -> Result<(), Failure> {
    let policy = Policy::of_user()?;
    let links = links::all()?;
    let uses = policy.uses(&links);
    let widest = links.iter().map(|link| link.name.len()).max().unwrap_or(0).max(4);
    output.text(&format!(
        "{:widest$}  {:8}  {:20}  used by",
        "link", "state", "addresses"
    ))?;
    for link in &links {
        let takes =
            |names: &Option<Vec<String>>| names.as_ref().is_some_and(|names| names.contains(&link.name));
        let used_by = uses
            .iter()
            .filter(|(_, names)| takes(names))
            .map(|(command, _)| *command);
        let line = Line {
            link,
            used_by: used_by.collect(),
        };
        output.result(&line, |line| {
            let addresses: Vec<_> = line.link.addresses.iter().map(ToString::to_string).collect();
            let (name, state, addresses) = (&line.link.name, line.link.state.name(), addresses.join(", "));
            let row = format!(
                "{name:widest$}  {state:8}  {addresses:20}  {}",
                line.used_by.join(", ")
            );
            row.trim_end().to_owned()
        })?;
    }
    let without = policy.without_link(&links);
    if !without.is_empty() {
        output.text(&format!(
            "{}: no link that {} allows is up: the routing table chooses",
            without.join(", "),
            file()
        ))?;
    }
    let free: Vec<_> = uses
        .iter()
        .filter(|(_, names)| names.is_none())
        .map(|(command, _)| *command)
        .collect();
    if free.is_empty() {
        return Ok(());
    }
    output.text(&format!(
        "{}: the routing table chooses, unless --use or --bind or {} does",
        free.join(", "),
        file()
    ))
}

/// Where the user's choice stands.
fn file() -> String {
    Policy::file().map_or_else(|| "paths.toml".into(), |file| file.display().to_string())
}
