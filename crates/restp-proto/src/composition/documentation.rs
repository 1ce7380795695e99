//! The tables of `docs/protocol/composition.md` are those of the code.

use super::{Composition, KEYS, PRESETS, Verdict, rules};
use crate::wire::Services;

const PAGE: &str = include_str!("../../../../docs/protocol/composition.md");

/// Holds the table after the heading `title` to `rows`; a failure prints what belongs there.
fn hold(title: &str, rows: Vec<String>) {
    let (_, section) = PAGE.split_once(&format!("\n## {title}\n")).expect(title);
    let section = section.split("\n## ").next().unwrap_or_default();
    let lines = section.lines().filter(|line| line.starts_with('|'));
    let written: Vec<_> = lines.skip(2).collect(); // heading and rule of the table
    assert!(written == rows, "{title}: write\n{}", rows.join("\n"));
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
    hold("Keys", rows.collect());
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
        let missing = rules().filter(|rule| rule.verdict == Verdict::NotBuilt && (rule.broken)(&composition));
        let missing: Vec<_> = missing.map(|rule| format!("`{}`", rule.id)).collect();
        format!(
            "| `{}` | {cm} | {framing} | {fc} | {ordering} | {reliability} | {ack} | {recovery} | {loss} | \
             {congestion} | 0x{:02X} | {} | {} | {} |",
            preset.name,
            bits.error.bits(),
            preset.purpose,
            preset.section,
            if missing.is_empty() {
                "yes".into()
            } else {
                missing.join(", ")
            },
        )
    });
    hold("Presets", rows.collect());
}

#[test]
fn the_rules_are_listed() {
    let rows = rules().map(|rule| {
        let verdict = match rule.verdict {
            Verdict::Impossible => "impossible",
            Verdict::Forbidden => "forbidden",
            Verdict::NotBuilt => "not built",
            Verdict::Discouraged => "discouraged",
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
    hold("Rules", rows.collect());
}
