//! Written quantities with their place.

use super::Fault;
use restp_base::units::UnitError;
use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor};
use std::fmt::{self, Display};
use toml::Spanned;

/// A quantity as written. A number without quotes is kept as its text, so that its reader can say which unit is
/// missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written(String);

impl Written {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Written {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Written;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number and its unit in quotes, such as \"10 Mbit/s\" or \"10 ms\"")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Written, E> {
                Ok(Written(text.into()))
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Written, E> {
                Ok(Written(number.to_string()))
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Written, E> {
                Ok(Written(number.to_string()))
            }
            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Written, E> {
                Ok(Written(number.to_string()))
            }
        }
        deserializer.deserialize_any(Text)
    }
}

/// The spans of `outage = ["20 s..30 s"]`.
#[derive(Clone, Debug, Default)]
pub struct Outages(pub(super) Vec<Spanned<Written>>);

impl<'de> Deserialize<'de> for Outages {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List;
        impl<'de> Visitor<'de> for List {
            type Value = Outages;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of spans of time, such as [\"20 s..30 s\"]")
            }
            fn visit_seq<A: de::SeqAccess<'de>>(self, mut list: A) -> Result<Outages, A::Error> {
                let mut spans = Vec::new();
                while let Some(span) = list.next_element()? {
                    spans.push(span);
                }
                Ok(Outages(spans))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Outages, E> {
                Err(no_list(text))
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Outages, E> {
                Err(no_list(number))
            }
            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Outages, E> {
                Err(no_list(number))
            }
        }
        fn no_list<E: de::Error>(found: impl Display) -> E {
            E::custom(format_args!(
                "\"{found}\" is not a list of spans of time, each with its units; write [\"20 s..30 s\"]"
            ))
        }
        deserializer.deserialize_any(List)
    }
}

/// Reads a quantity with one of the readers of [`restp_base::units`].
///
/// # Errors
/// What the reader says, with the place.
pub fn read<T>(
    written: &Spanned<Written>,
    reader: impl Fn(&str) -> Result<T, UnitError>,
) -> Result<T, Fault> {
    reader(written.get_ref().as_str()).map_err(|error| Fault::at(written, error))
}

/// Refuses zero.
///
/// # Errors
/// When `value` is nothing.
pub fn positive<W: Display, T: Default + PartialEq>(written: &Spanned<W>, value: T) -> Result<T, Fault> {
    if value == T::default() {
        return Err(Fault::at(
            written,
            format!("{} is nothing; write more than zero", written.get_ref()),
        ));
    }
    Ok(value)
}
