//! What is wrong with a file, where it is written, and what may stand there.

use restp_base::names::hint;
use std::fmt;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A complaint with the bytes it is about.
#[derive(Clone, Debug)]
pub struct Fault {
    /// Where the offending text is written.
    pub span: Range<usize>,
    /// The value, the rule and the way out.
    pub message: String,
}

impl Fault {
    /// A complaint about a value that remembers where it is written.
    pub fn at<T>(written: &Spanned<T>, message: impl fmt::Display) -> Self {
        Fault {
            span: written.span(),
            message: message.to_string(),
        }
    }

    /// The line of `text` it is about, from 1.
    pub fn line(&self, text: &str) -> usize {
        let before = &text.as_bytes()[..self.span.start.min(text.len())];
        1 + before.iter().filter(|&&byte| byte == b'\n').count()
    }

    /// The dotted key it is about, with the elements of a list by their `name`: `link.bottleneck.loss.rate`. Empty
    /// for a complaint about the whole.
    pub fn key(&self, root: &DeTable<'_>) -> String {
        if self.span.is_empty() {
            return String::new();
        }
        let mut narrowest = Narrowest {
            span: &self.span,
            length: usize::MAX,
            path: String::new(),
        };
        narrowest.search(root, "");
        narrowest.path
    }
}

impl From<toml::de::Error> for Fault {
    /// The parser names an unknown key and those it expected in back-quotes; a near miss gets a hint.
    fn from(error: toml::de::Error) -> Self {
        let message = error.message();
        let mut quoted = message.split('`').skip(1).step_by(2);
        let hint = match (message.starts_with("unknown "), quoted.next()) {
            (true, Some(word)) => hint(word, quoted),
            _ => String::new(),
        };
        Fault {
            span: error.span().unwrap_or(0..0),
            message: plain(message).replace('`', "\"") + &hint,
        }
    }
}

/// What a parser expects, in words of those who write files.
fn plain(message: &str) -> String {
    if message == "invalid type: unit variant, expected newtype variant" {
        return "the name alone is not enough: write its parameters behind it, which may be none, such as { codel = {} } or { bulk = {} }".into();
    }
    let Some((found, expected)) = message.rsplit_once(", expected ") else {
        return message.to_owned();
    };
    let words = match expected {
        "f64" if found.contains('%') => "a number: 0.01 for 1 %",
        "f64" => "a number, such as 0.01",
        "u64" | "usize" => "a whole number, 0 or more",
        "u32" => "a whole number from 0 to 4294967295",
        "u16" => "a whole number from 0 to 65535",
        "u8" => "a whole number from 0 to 255",
        "a boolean" => "true or false",
        _ => return message.to_owned(),
    };
    format!("{found}, expected {words}")
}

/// The smallest entry so far whose key or value covers `span`.
struct Narrowest<'s> {
    span: &'s Range<usize>,
    length: usize,
    path: String,
}

impl Narrowest<'_> {
    fn search(&mut self, table: &DeTable<'_>, path: &str) {
        for (key, value) in table {
            let here = if path.is_empty() {
                key.get_ref().to_string()
            } else {
                format!("{path}.{}", key.get_ref())
            };
            self.consider(&key.span(), &here);
            self.search_value(value, &here);
        }
    }

    fn search_value(&mut self, value: &Spanned<DeValue<'_>>, path: &str) {
        self.consider(&value.span(), path);
        match value.get_ref() {
            DeValue::Table(table) => self.search(table, path),
            DeValue::Array(elements) => {
                for (i, element) in elements.iter().enumerate() {
                    let table = element.get_ref().as_table();
                    let name = table.and_then(|table| table.get("name")?.get_ref().as_str());
                    let here = name.map_or_else(|| format!("{path}[{i}]"), |name| format!("{path}.{name}"));
                    self.search_value(element, &here);
                }
            }
            _ => {}
        }
    }

    fn consider(&mut self, candidate: &Range<usize>, path: &str) {
        let covers =
            candidate.start <= self.span.start && self.span.end <= candidate.end && !candidate.is_empty();
        if covers && candidate.len() <= self.length {
            (self.length, self.path) = (candidate.len(), path.to_owned());
        }
    }
}
