//! Which open points (`OP-n`) and sections (`ResTP §x.y`) the code cites, and which the documents name but no code does.
//!
//! For information: a point may be settled in prose alone.

use std::collections::BTreeSet;

use crate::finding::Finding;
use crate::tree::Tree;

const OPEN_POINTS: &str = "docs/protocol/open-points.md";

/// Compares the citations in `crates/` with the documents.
///
/// # Errors
/// None; the signature is that of every check.
pub fn check(tree: &Tree) -> anyhow::Result<Vec<Finding>> {
    let code = Cited::in_files(tree.below("crates").filter(|(path, _)| path.ends_with(".rs")));
    let docs = Cited::in_files(tree.below("docs"));
    let mut notes = vec![
        Finding::note(
            "crates",
            format!(
                "cites {} open points: {}",
                code.points.len(),
                points(&code.points)
            ),
        ),
        Finding::note(
            "crates",
            format!(
                "cites {} sections: {}",
                code.sections.len(),
                sections(&code.sections)
            ),
        ),
        Finding::note(
            "docs",
            format!(
                "sections no code cites: {}",
                sections(&(&docs.sections - &code.sections))
            ),
        ),
    ];
    if let Some(text) = tree.text(OPEN_POINTS) {
        let listed = Cited::in_files([(OPEN_POINTS, text)].into_iter());
        let uncited = points(&(&listed.points - &code.points));
        notes.push(Finding::note(
            OPEN_POINTS,
            format!("open points no code cites: {uncited}"),
        ));
    }
    Ok(notes)
}

#[derive(Default)]
struct Cited {
    points: BTreeSet<u32>,
    sections: BTreeSet<Vec<u32>>,
}

impl Cited {
    fn in_files<'a>(files: impl Iterator<Item = (&'a str, &'a str)>) -> Cited {
        let mut cited = Cited::default();
        for line in files.flat_map(|(_, text)| text.lines()) {
            cited.points.extend(
                line.split("OP-")
                    .skip(1)
                    .filter_map(|rest| numbers(rest).first().copied()),
            );
            // "ResTP §3.1.3, §3.1.9" cites two sections; another document's name ends the list.
            for list in line.split("ResTP §").skip(1) {
                for item in list.split('§') {
                    let number = numbers(item);
                    let behind = item.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
                    cited.sections.extend((!number.is_empty()).then_some(number));
                    if !matches!(behind.trim(), "," | "and" | ", and" | "to" | ";" | "") {
                        break;
                    }
                }
            }
        }
        cited
    }
}

/// The dotted number at the beginning of `text`, empty where there is none.
fn numbers(text: &str) -> Vec<u32> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    text[..end]
        .split('.')
        .map_while(|part| part.parse().ok())
        .collect()
}

fn points(numbers: &BTreeSet<u32>) -> String {
    listed(numbers.iter().map(|number| format!("OP-{number}")))
}

fn sections(numbers: &BTreeSet<Vec<u32>>) -> String {
    listed(numbers.iter().map(|parts| {
        format!(
            "§{}",
            parts.iter().map(u32::to_string).collect::<Vec<_>>().join(".")
        )
    }))
}

fn listed(items: impl Iterator<Item = String>) -> String {
    let items: Vec<String> = items.collect();
    if items.is_empty() {
        "none".to_owned()
    } else {
        items.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notes(code: &str, open_points: &str) -> Vec<String> {
        let tree = Tree::from([("crates/restp-proto/src/a.rs", code), (OPEN_POINTS, open_points)]);
        check(&tree)
            .unwrap()
            .into_iter()
            .map(|note| note.message)
            .collect()
    }

    #[test]
    fn cited_and_uncited_points_are_told_apart() {
        let notes = notes("// OP-7, OP-17.\n", "## OP-7\n## OP-8\n");
        assert_eq!(notes[0], "cites 2 open points: OP-7, OP-17");
        assert_eq!(notes[3], "open points no code cites: OP-8");
    }

    #[test]
    fn a_list_of_sections_belongs_to_its_document() {
        let notes = notes(
            "/// ResTP §3.1.9, §3.1.10. RFC 6298 §2; ResTP §4.\n",
            "ResTP §9.9 matters",
        );
        assert_eq!(notes[1], "cites 3 sections: §3.1.9, §3.1.10, §4");
        assert_eq!(notes[2], "sections no code cites: §9.9");
    }
}
