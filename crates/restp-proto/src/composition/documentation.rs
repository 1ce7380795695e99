//! The tables of `docs/protocol/composition.md` are those of the code.

use super::{Composition, KEYS, PRESETS, Verdict, rules};
use crate::wire::Services;

use std::sync::Mutex;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/protocol/composition.md");

/// The page is read and written by one test at a time.
static TURN: Mutex<()> = Mutex::new(());

/// Holds the table after the heading `title` to `rows`. With `RESTP_BLESS=1` it writes them there instead.
fn hold(title: &str, rows: &[String]) {
    let turn = TURN.lock();
    let page = std::fs::read_to_string(PAGE).expect("the page of compositions");
    let (before, after) = page.split_once(&format!("\n## {title}\n")).expect(title);
    let end = after.find("\n## ").unwrap_or(after.len());
    let (section, rest) = after.split_at(end);
    let start = section.find("\n|").expect("a table") + 1;
    let (introduction, table) = section.split_at(start);
    let length = table.find("\n\n").map_or(table.len(), |at| at + 1);
    let (table, tail) = table.split_at(length);
    let heading: Vec<_> = table.lines().take(2).collect(); // names of the columns and a rule
    let written = table.lines().skip(2);
    if std::env::var_os("RESTP_BLESS").is_some() {
        let table = [heading.join("\n"), rows.join("\n")].join("\n");
        let page = format!("{before}\n## {title}\n{introduction}{table}\n{tail}{rest}");
        std::fs::write(PAGE, page).expect("the page can be written");
        return drop(turn);
    }
    drop(turn);
    assert!(
        written.eq(rows),
        "docs/protocol/composition.md, table {title}, differs from the code: \
         run RESTP_BLESS=1 cargo test -p restp-proto documentation, and read the change"
    );
}

#[test]
fn the_keys_are_listed() {
    let defaults = Composition::default();
    let rows = KEYS.iter().map(|key| {
        let default = key
            .read(&defaults)
            .map_or("–".into(), |value| format!("`{value}`"));
        let allowed: Vec<_> = match key.allowed().as_slice() {
            [example] => vec![(*example).to_string()],
            choices => choices.iter().map(|choice| format!("`{choice}`")).collect(),
        };
        format!(
            "| `{}` | {} | {default} | {} |",
            key.name,
            allowed.join(", "),
            key.section
        )
    });
    hold("Keys", &rows.collect::<Vec<_>>());
}

#[test]
fn the_presets_are_listed_with_their_bits() {
    let rows = PRESETS.iter().map(|preset| {
        let composition = preset.composition();
        let chosen: Vec<_> = composition
            .services()
            .into_iter()
            .map(|(_, choice, _)| choice)
            .collect();
        let [
            cm,
            framing,
            fc,
            ordering,
            reliability,
            ack,
            recovery,
            loss,
            congestion,
            ..,
        ] = chosen.as_slice()
        else {
            panic!("fewer services than columns");
        };
        let bits = Services::of(&composition);
        format!(
            "| `{}` | {cm} | {framing} | {fc} | {ordering} | {reliability} | {ack} | {recovery} | {loss} | \
             {congestion} | 0x{:02X} | {} | {} |",
            preset.name,
            bits.error.bits(),
            preset.purpose,
            preset.section,
        )
    });
    hold("Presets", &rows.collect::<Vec<_>>());
}

#[test]
fn the_rules_are_listed() {
    let rows = rules().map(|rule| {
        let verdict = match rule.verdict {
            Verdict::Impossible => "impossible",
            Verdict::Forbidden => "forbidden",
            Verdict::Discouraged => "discouraged",
            Verdict::Recommended => "hint",
        };
        let instead = rule
            .instead
            .iter()
            .map(|(key, value)| format!("`{key} = {value}`"));
        let instead: Vec<_> = instead.collect();
        format!(
            "| `{}` | {verdict} | {} | {} | {} |",
            rule.id,
            rule.reason,
            instead.join(", "),
            rule.source
        )
    });
    hold("Rules", &rows.collect::<Vec<_>>());
}
