//! The scenario text as a tree that remembers where each value is written, so that a sweep can replace a
//! value and a complaint still finds its line.

use super::error::{Place, ScenarioError};
use super::raw::TOP;
use crate::unknown::unknown;
use restp_sim::config::Fault;
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub(super) type Value<'t> = Spanned<DeValue<'t>>;
type Table<'t> = DeTable<'t>;

#[derive(Clone)]
pub(crate) struct Document<'t> {
    source: Source<'t>,
    root: Table<'t>,
}

/// What a scenario was written as: the file, and settings from outside it.
#[derive(Clone, Copy)]
pub(crate) struct Source<'t> {
    pub text: &'t str,
    /// `(key, value)`. Setting `i` counts as byte `text.len() + 1 + i`.
    pub settings: &'t [(String, String)],
}

impl<'t> Source<'t> {
    pub fn parse(self) -> Result<Document<'t>, ScenarioError> {
        match DeTable::parse(self.text) {
            Ok(root) => Ok(Document {
                source: self,
                root: root.into_inner(),
            }),
            Err(error) => Err(Document {
                source: self,
                root: Table::new(),
            }
            .explain(error.into())),
        }
    }

    /// Setting `i`: its value is any TOML value, or else a plain string.
    pub fn setting(self, i: usize) -> (Spanned<String>, Value<'t>) {
        let (key, written) = &self.settings[i];
        let at = self.text.len() + 1 + i;
        let plain = || Spanned::new(0..0, DeValue::String(Cow::Borrowed(written.as_str())));
        let value = DeValue::parse(written).unwrap_or_else(|_| plain());
        (
            Spanned::new(at..at + 1, key.clone()),
            moved_to(&(at..at + 1), value),
        )
    }
}

impl<'t> Document<'t> {
    /// Refuses an empty file, the first key at the top that nobody knows, since what it was meant for would be missed
    /// elsewhere, and then what is missing at the top.
    pub fn check_top(&self) -> Result<(), Fault> {
        if self.root.is_empty() {
            return Err(Fault {
                span: 0..0,
                message: "the scenario is empty; write id, duration, a [[link]] or a [[medium]] with stations, and a [[flow]]".into(),
            });
        }
        let strangers = self
            .root
            .keys()
            .filter(|key| !TOP.contains(&key.get_ref().as_ref()));
        if let Some(key) = strangers.min_by_key(|key| key.span().start) {
            return Err(Fault {
                span: key.span(),
                message: unknown("key", key.get_ref(), TOP),
            });
        }
        for (key, example) in [("id", "id = \"lossy-link\""), ("duration", "duration = \"30 s\"")] {
            if !self.root.contains_key(key) {
                return Err(Fault {
                    span: 0..0,
                    message: format!("there is no {key}; write one at the top, such as {example}"),
                });
            }
        }
        Ok(())
    }

    /// Takes a top-level table out of the tree.
    pub fn take(&mut self, key: &str) -> Option<Value<'t>> {
        self.root.remove(key)
    }

    /// Replaces what stands at the dotted `key`; `*` in place of a name means all of them.
    pub fn replace(&mut self, key: &Spanned<String>, value: &Value<'t>) -> Result<(), Fault> {
        let parts: Vec<&str> = key.get_ref().split('.').collect();
        match parts[..] {
            [
                kind @ ("link" | "medium" | "station" | "host" | "flow"),
                name,
                ref rest @ ..,
            ] => {
                for element in self.named(key, kind, name)? {
                    match (rest, value.get_ref()) {
                        ([], DeValue::Table(fields)) => merge(element, fields),
                        ([], _) => return Err(Fault::at(value, WHOLE_ELEMENT)),
                        _ => insert(element, key, rest, value)?,
                    }
                }
                Ok(())
            }
            [top @ ("duration" | "seed" | "runs" | "title" | "profile" | "timers")] => {
                insert(&mut self.root, key, &[top], value)
            }
            ["measure"] => match value.get_ref() {
                DeValue::Table(_) => insert(&mut self.root, key, &["measure"], value),
                _ => Err(Fault::at(value, WHOLE_WINDOW)),
            },
            ["measure", field] => insert(&mut self.root, key, &["measure", field], value),
            _ => {
                let sentence = format!(
                    "\"{}\" names nothing that can be swept or set; {WAYS}",
                    key.get_ref()
                );
                Err(Fault::at(key, sentence))
            }
        }
    }

    /// What [`Document::replace`] writes with these values, each from its element down, but for labels, which name a value of its axis and
    /// change nothing; sorted.
    pub fn written(&self, key: &str, values: &[Value<'t>]) -> BTreeSet<Vec<String>> {
        let parts: Vec<String> = key.split('.').map(str::to_owned).collect();
        let below = match &parts[..] {
            [_, _, ..] if parts[0] != "measure" => parts[2..].to_vec(),
            _ => return BTreeSet::from([parts]),
        };
        let mut leaves = BTreeSet::new();
        for value in values {
            match (below.is_empty(), value.get_ref()) {
                (true, DeValue::Table(fields)) => leaves.extend(
                    fields
                        .iter()
                        .filter(|(name, _)| name.get_ref() != "label")
                        .flat_map(|(name, value)| leaf(name.get_ref(), value)),
                ),
                _ => leaves.extend([below.clone()]),
            }
        }
        let (kind, name) = (&parts[0], &parts[1]);
        let called = self.names(kind).filter(|called| name == "*" || name == called);
        called
            .flat_map(|called| {
                let element = [kind.clone(), called.to_owned()];
                leaves.iter().map(move |leaf| [&element[..], leaf].concat())
            })
            .collect()
    }

    fn names(&self, kind: &str) -> impl Iterator<Item = &str> {
        let elements = self
            .root
            .get(kind)
            .and_then(|elements| elements.get_ref().as_array());
        let elements = elements.into_iter().flat_map(|elements| elements.iter());
        elements.filter_map(|element| element.get_ref().as_table()?.get("name")?.get_ref().as_str())
    }

    /// The elements `kind` called `name`, or all of them for `*`.
    fn named(&mut self, key: &Spanned<String>, kind: &str, name: &str) -> Result<Vec<&mut Table<'t>>, Fault> {
        let mut names = Vec::new();
        let mut found = Vec::new();
        if let Some(DeValue::Array(elements)) = self.root.get_mut(kind).map(Spanned::get_mut) {
            for element in elements.iter_mut() {
                let DeValue::Table(table) = element.get_mut() else {
                    continue;
                };
                let Some(called) = table.get("name").and_then(|name| name.get_ref().as_str()) else {
                    continue;
                };
                let called = called.to_owned();
                if name == "*" || name == called {
                    found.push(table);
                }
                names.push(called);
            }
        }
        if found.is_empty() {
            let names = names.iter().map(String::as_str).chain(["*"]);
            return Err(Fault::at(key, unknown(kind, name, names)));
        }
        Ok(found)
    }

    /// Reads the tree as it now stands.
    pub fn read<T: Deserialize<'t>>(&self) -> Result<T, Fault> {
        let root = Spanned::new(0..self.source.text.len(), self.root.clone());
        Ok(T::deserialize(toml::de::Deserializer::from(root))?)
    }

    /// Turns bytes into a line (or a setting) and a key.
    pub fn explain(&self, fault: Fault) -> ScenarioError {
        let Source { text, settings } = self.source;
        let start = fault.span.start;
        let place = match start.checked_sub(text.len() + 1).and_then(|i| settings.get(i)) {
            Some((key, value)) => Place::Setting(format!("{key}={value}")),
            None => Place::Line(fault.line(text)),
        };
        ScenarioError {
            file: None,
            place,
            key: fault.key(&self.root),
            message: fault.message,
        }
    }
}

const WAYS: &str = "write link.NAME.KEY, medium.NAME.KEY, station.NAME.KEY, host.NAME.KEY or flow.NAME.KEY (NAME may be *), measure, measure.from, measure.to, duration, seed, runs, title, profile or timers";
const WHOLE_WINDOW: &str = "a window as a whole takes a table, such as { from = \"10 s\", to = \"70 s\" }";
const WHOLE_ELEMENT: &str = "a link, medium, station, host or flow as a whole takes a table of the keys to replace, \
    such as { transport = \"udp\" }";

/// What [`merge`] replaces of an element for the field `name`.
fn leaf(name: &str, value: &Value<'_>) -> Vec<Vec<String>> {
    match (name, value.get_ref()) {
        ("set", DeValue::Table(set)) => {
            let keys = set.keys().map(|key| key.get_ref().to_string());
            keys.map(|key| vec![name.to_owned(), key]).collect()
        }
        _ => vec![vec![name.to_owned()]],
    }
}

/// Puts `fields` in the place of those of `element`. The keys of `set` are independent of each other, so one `set`
/// adds to the other.
fn merge<'t>(element: &mut Table<'t>, fields: &Table<'t>) {
    for (key, value) in fields {
        match (
            key.get_ref().as_ref(),
            element.get_mut(key.get_ref().as_ref()).map(Spanned::get_mut),
            value.get_ref(),
        ) {
            ("set", Some(DeValue::Table(known)), DeValue::Table(more)) => known.extend(more.clone()),
            _ => {
                element.remove(key.get_ref().as_ref());
                element.insert(key.clone(), value.clone());
            }
        }
    }
}

/// Puts `value` at `path` below `table`, making the tables on the way.
fn insert<'t>(
    table: &mut Table<'t>,
    key: &Spanned<String>,
    path: &[&str],
    value: &Value<'t>,
) -> Result<(), Fault> {
    let Some((&first, rest)) = path.split_first() else {
        return Ok(());
    };
    let name = Spanned::new(key.span(), Cow::Owned(first.to_owned()));
    if rest.is_empty() {
        table.remove(first);
        table.insert(name, value.clone());
        return Ok(());
    }
    let below = table
        .entry(name)
        .or_insert_with(|| Spanned::new(key.span(), DeValue::Table(Table::new())));
    match below.get_mut() {
        DeValue::Table(below) => insert(below, key, rest, value),
        other => {
            let kind = other.type_str();
            let sentence = format!(
                "\"{}\" goes through \"{first}\", which holds a {kind}, not a table",
                key.get_ref()
            );
            Err(Fault::at(key, sentence))
        }
    }
}

/// The same value, written somewhere else.
fn moved_to<'t>(span: &Range<usize>, value: Value<'t>) -> Value<'t> {
    let moved = match value.into_inner() {
        DeValue::Array(elements) => {
            DeValue::Array(elements.into_iter().map(|one| moved_to(span, one)).collect())
        }
        DeValue::Table(table) => {
            let fields = table.into_iter();
            let fields =
                fields.map(|(key, one)| (Spanned::new(span.clone(), key.into_inner()), moved_to(span, one)));
            DeValue::Table(fields.collect())
        }
        simple => simple,
    };
    Spanned::new(span.clone(), moved)
}
