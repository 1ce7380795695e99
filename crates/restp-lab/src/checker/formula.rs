//! A formula over the coordinates of a point: numbers, `{dotted.key}`, `+ - * /`, `sqrt( )`, `lru(objects, exponent,
//! room)` and parentheses. Quantities count in seconds, bit/s, bytes or packets. `model_mfr(p)` is what the model of SMT says of a
//! scheme where the share p of the packets is missing, in bit/s.
//!
//! ```text
//! sum = product (("+" | "-") product)*      product = atom (("*" | "/") atom)*
//! atom = number | "{" key "}" | [function] "(" sum ")" | "lru" "(" sum "," sum "," sum ")" | "-" atom
//! function = "sqrt" | "model_cmt" | "model_mfr" | "model_amfr"
//! ```

use crate::model::{Parameters, Scheme, exact, lru_hit_share};
use crate::scenario::{Coordinates, Fault};
use crate::traffic::Popularity;
use crate::unknown::unknown;
use restp_base::units::{Quantity, quantity};
use serde_json::Value;
use std::str::FromStr;
use toml::Spanned;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Formula {
    Number(f64),
    Name(String),
    Negative(Box<Formula>),
    Of(Function, Box<Formula>),
    /// Hits of a cache, by Che's approximation: objects, Zipf's exponent, room.
    Lru(Box<[Formula; 3]>),
    Binary(Box<Formula>, char, Box<Formula>),
}

/// Most objects of a cache: a list of them is made for each value.
const MOST_OBJECTS: f64 = 1e6;

/// A function of one number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Function {
    Root,
    Model(Scheme),
}

const FUNCTIONS: [(&str, Function); 4] = [
    ("sqrt", Function::Root),
    ("model_cmt", Function::Model(Scheme::Cmt)),
    ("model_mfr", Function::Model(Scheme::Mfr)),
    ("model_amfr", Function::Model(Scheme::Amfr)),
];

impl Function {
    fn of(self, number: f64) -> Option<f64> {
        match self {
            Function::Root => Some(number.sqrt()),
            Function::Model(scheme) => {
                let parameters = Parameters {
                    missing: number,
                    ..Parameters::default()
                };
                Some(exact(scheme, parameters).ok()?.throughput_bps)
            }
        }
    }
}

/// Deepest nesting: a file must not exhaust the stack.
const DEEPEST: usize = 64;

impl Formula {
    /// Reads a formula; the error says where it stops making sense.
    pub fn parse(text: &str) -> Result<Formula, String> {
        let mut reader = Reader {
            text,
            rest: text,
            depth: 0,
        };
        let formula = reader.sum()?;
        if !reader.rest.trim_start().is_empty() {
            return Err(reader.expected("+, -, *, / or the end"));
        }
        Ok(formula)
    }

    /// Reads a formula over these axes.
    pub fn over(written: &Spanned<String>, axes: &[&str]) -> Result<Formula, Fault> {
        let formula = Formula::parse(written.get_ref()).map_err(|error| Fault::at(written, error))?;
        let stranger = formula.names().find(|name| !axes.contains(name));
        match stranger {
            Some(name) => Err(Fault::at(written, unknown("axis", name, axes.iter().copied()))),
            None => Ok(formula),
        }
    }

    /// The keys it refers to.
    pub fn names(&self) -> Box<dyn Iterator<Item = &str> + '_> {
        match self {
            Formula::Number(_) => Box::new(std::iter::empty()),
            Formula::Name(name) => Box::new(std::iter::once(name.as_str())),
            Formula::Negative(inner) | Formula::Of(_, inner) => inner.names(),
            Formula::Lru(parts) => Box::new(parts.iter().flat_map(Formula::names)),
            Formula::Binary(left, _, right) => Box::new(left.names().chain(right.names())),
        }
    }

    /// Its value at a point; `None` when a coordinate it needs is no number there, or the value is none: beside an infinite one every
    /// measurement would be within one percent.
    pub fn at(&self, point: &Coordinates) -> Option<f64> {
        self.value(point).filter(|value| value.is_finite())
    }

    fn value(&self, point: &Coordinates) -> Option<f64> {
        Some(match self {
            Formula::Number(number) => *number,
            Formula::Name(name) => coordinate(point.get(name)?)?,
            Formula::Negative(inner) => -inner.value(point)?,
            Formula::Of(function, inner) => function.of(inner.value(point)?)?,
            Formula::Lru(parts) => {
                let [objects, exponent, room] = &**parts;
                let (objects, exponent) = (objects.value(point)?, exponent.value(point)?);
                let is_possible = (1.0..=MOST_OBJECTS).contains(&objects) && (0.0..=10.0).contains(&exponent);
                let popularity = is_possible.then(|| Popularity::zipf(objects as u64, exponent))?;
                lru_hit_share(&popularity, room.value(point)?)
            }
            Formula::Binary(left, operator, right) => {
                let (left, right) = (left.value(point)?, right.value(point)?);
                match operator {
                    '+' => left + right,
                    '-' => left - right,
                    '*' => left * right,
                    _ => left / right,
                }
            }
        })
    }
}

/// A coordinate as a number; none where it is a name.
pub(crate) fn coordinate(value: &Value) -> Option<f64> {
    let Value::String(text) = value else {
        return value.as_f64();
    };
    Some(match quantity(text).ok()? {
        Quantity::Duration(span) => span.as_secs_f64(),
        Quantity::Rate(rate) => rate.as_bps() as f64,
        Quantity::Bytes(count) | Quantity::Packets(count) => count as f64,
    })
}

struct Reader<'a> {
    text: &'a str,
    rest: &'a str,
    depth: usize,
}

impl Reader<'_> {
    fn sum(&mut self) -> Result<Formula, String> {
        let mut left = self.product()?;
        while let Some(operator) = self.take(&['+', '-']) {
            left = Formula::Binary(Box::new(left), operator, Box::new(self.product()?));
        }
        Ok(left)
    }

    fn product(&mut self) -> Result<Formula, String> {
        let mut left = self.atom()?;
        while let Some(operator) = self.take(&['*', '/']) {
            left = Formula::Binary(Box::new(left), operator, Box::new(self.atom()?));
        }
        Ok(left)
    }

    fn atom(&mut self) -> Result<Formula, String> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(format!("the formula is nested more than {DEEPEST} deep"));
        }
        if let Some(rest) = self.rest.trim_start().strip_prefix("lru") {
            self.rest = rest;
            let lru = self.lru()?;
            self.depth -= 1;
            return Ok(lru);
        }
        let called = |(name, function): &(&'static str, Function)| {
            let rest = self.rest.trim_start().strip_prefix(name)?;
            Some((*name, *function, rest))
        };
        let function = FUNCTIONS.iter().find_map(called);
        if let Some((_, _, rest)) = function {
            self.rest = rest;
        }
        let first = if function.is_some() {
            &['('][..]
        } else {
            &['(', '{', '-'][..]
        };
        let atom = match self.take(first) {
            Some('(') => {
                let inner = self.sum()?;
                self.take(&[')']).ok_or_else(|| self.expected(")"))?;
                match function {
                    Some((_, function, _)) => Formula::Of(function, Box::new(inner)),
                    None => inner,
                }
            }
            Some('{') => {
                let end = closing(self.rest).ok_or_else(|| self.expected("}"))?;
                let name = self.rest[..end].trim().to_owned();
                self.rest = &self.rest[end + 1..];
                Formula::Name(name)
            }
            Some(_) => Formula::Negative(Box::new(self.atom()?)),
            None => match function {
                Some((name, _, _)) => return Err(self.expected(&format!("( after {name}"))),
                None => self.number()?,
            },
        };
        self.depth -= 1;
        Ok(atom)
    }

    fn lru(&mut self) -> Result<Formula, String> {
        self.take(&['('])
            .ok_or_else(|| self.expected("( after lru, with objects, exponent, room"))?;
        let objects = self.sum()?;
        self.take(&[',']).ok_or_else(|| self.expected(", exponent"))?;
        let exponent = self.sum()?;
        self.take(&[',']).ok_or_else(|| self.expected(", room"))?;
        let room = self.sum()?;
        self.take(&[')']).ok_or_else(|| self.expected(")"))?;
        Ok(Formula::Lru(Box::new([objects, exponent, room])))
    }

    fn number(&mut self) -> Result<Formula, String> {
        let rest = self.rest.trim_start();
        let plain = |i: usize, c: char| {
            c.is_ascii_digit()
                || c == '.'
                || c == 'e'
                || ((c == '-' || c == '+') && i > 0 && rest.as_bytes()[i - 1] == b'e')
        };
        let end = rest
            .char_indices()
            .find(|&(i, c)| !plain(i, c))
            .map_or(rest.len(), |(i, _)| i);
        let number = f64::from_str(&rest[..end]).map_err(|_| self.expected("a number, {key} or ("))?;
        self.rest = &rest[end..];
        Ok(Formula::Number(number))
    }

    fn take(&mut self, any: &[char]) -> Option<char> {
        let rest = self.rest.trim_start();
        let first = rest.chars().next().filter(|c| any.contains(c))?;
        self.rest = &rest[first.len_utf8()..];
        Some(first)
    }

    fn expected(&self, what: &str) -> String {
        let at = self.text.len() - self.rest.trim_start().len();
        format!(
            "\"{}\" stops making sense at byte {at}; expected {what}",
            self.text
        )
    }
}

/// Where the brace ends that was opened before `text`: names of many flows have braces of their own (`flow.f-{i}.count`).
fn closing(text: &str) -> Option<usize> {
    let mut open = 1;
    text.char_indices().find_map(|(at, c)| {
        open += i32::from(c == '{') - i32::from(c == '}');
        (open == 0).then_some(at)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_may_have_braces_of_its_own() {
        let formula = Formula::parse("2 / ({flow.f-{i}.count} + 2)").unwrap();
        assert_eq!(formula.names().collect::<Vec<_>>(), ["flow.f-{i}.count"]);
        assert!(
            Formula::parse("{flow.f-{i}.count")
                .unwrap_err()
                .contains("expected }")
        );
    }

    fn value(text: &str) -> Option<f64> {
        let mut point = Coordinates::new();
        point.insert("link.b.loss.rate".into(), 0.1.into());
        point.insert("link.b.delay".into(), "20 ms".into());
        point.insert("link.b.rate".into(), "2 Mbit/s".into());
        point.insert("flow.a.transport".into(), "udp".into());
        Formula::parse(text).unwrap().at(&point)
    }

    #[test]
    fn products_bind_before_sums_and_left_before_right() {
        assert_eq!(value("1 + 2 * 3 - 4 / 2"), Some(5.0));
        assert_eq!(value("8 / 2 / 2"), Some(2.0));
        assert_eq!(value("-(1 + 2) * 3"), Some(-9.0));
        assert_eq!(value("1.12e6 * (1 - {link.b.loss.rate})"), Some(1_008_000.0));
        assert_eq!(value("1e-3 + 2"), Some(2.001));
        assert_eq!(value("6 / sqrt(2 + 7) / 2"), Some(1.0));
        assert_eq!(value("model_amfr(0.03 * 0)"), Some(1e6), "nothing is missing");
        assert_eq!(value("model_amfr(2)"), None, "no share");
    }

    #[test]
    fn quantities_count_in_plain_units() {
        assert_eq!(value("2 * {link.b.delay}"), Some(0.04));
        assert_eq!(value("{link.b.rate} / 8"), Some(250_000.0));
    }

    #[test]
    fn hits_of_a_cache_are_those_of_the_model() {
        let expected = lru_hit_share(&Popularity::zipf(100, 0.8), 10.0);
        assert_eq!(value("lru(100, 0.8, 1 + 9) - 0"), Some(expected));
        assert_eq!(value("lru(0, 0.8, 9)"), None, "no objects");
        assert!(
            Formula::parse("lru(1, 2)")
                .unwrap_err()
                .contains("expected , room")
        );
        assert!(Formula::parse("lru 1").unwrap_err().contains("( after lru"));
    }

    #[test]
    fn a_coordinate_that_is_no_number_has_no_value() {
        assert_eq!(value("1 + {flow.a.transport}"), None);
        assert_eq!(value("{flow.b.transport}"), None);
    }

    #[test]
    fn nonsense_is_pointed_at() {
        let error = Formula::parse("1 + * 2").unwrap_err();
        assert!(error.contains("byte 4") && error.contains("a number"), "{error}");
        assert!(Formula::parse("(1 + 2").unwrap_err().contains("expected )"));
        assert!(Formula::parse("sqrt 2").unwrap_err().contains("( after sqrt"));
        assert!(Formula::parse("{a").unwrap_err().contains("expected }"));
        assert!(Formula::parse("1 2").unwrap_err().contains("the end"));
        assert!(
            Formula::parse(&"(".repeat(100_000))
                .unwrap_err()
                .contains("nested")
        );
    }
}
