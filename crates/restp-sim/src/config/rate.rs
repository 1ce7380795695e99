//! What `rate = …` stands for.

use super::{Exactly, Fault, Written, positive, read};
use crate::rate::{DeliveryTrace, LinkRate, Walk};
use restp_base::time::Time;
use restp_base::units;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, IntoDeserializer, MapAccess, Visitor};
use std::fmt;
use std::io::{self, Read};
use toml::Spanned;

/// Opens a file that a link names. Whoever reads the file with the link knows in which folder.
pub type OpenFile<'a> = dyn Fn(&str) -> io::Result<Box<dyn Read>> + 'a;

/// Recordings longer than this are refused. 32 MiB: more than an hour at 12 Mbit/s.
const MOST_TRACE_BYTES: u64 = 32 << 20;

/// `rate = "10 Mbit/s"` or `rate = { … }`.
#[derive(Debug)]
pub enum Speed {
    /// Always the same.
    Constant(Written),
    /// One that changes.
    Changing(Box<Changing>),
}

/// `rate = { … }`: exactly one of these.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub struct Changing {
    steps: Option<Spanned<Vec<Exactly<Spanned<Written>, 2>>>>,
    walk: Option<Spanned<RawWalk>>,
    trace: Option<Spanned<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
struct RawWalk {
    min: Spanned<Written>,
    max: Spanned<Written>,
    step: Spanned<Written>,
    every: Spanned<Written>,
}

impl Speed {
    /// The rate, in a file where it is `written`.
    pub(super) fn read(written: &Spanned<Speed>, open: &OpenFile<'_>) -> Result<LinkRate, Fault> {
        let changing = match written.get_ref() {
            Speed::Constant(text) => {
                let text = Spanned::new(written.span(), text.clone());
                return Ok(positive(&text, read(&text, units::rate)?)?.into());
            }
            Speed::Changing(changing) => changing,
        };
        match (&changing.steps, &changing.walk, &changing.trace) {
            (Some(raw), None, None) => checked(raw, steps(raw.get_ref())?),
            (None, Some(raw), None) => checked(raw, walk(raw.get_ref())?),
            (None, None, Some(file)) => recording(file, open).map(LinkRate::Trace),
            _ => Err(Fault::at(
                written,
                "a rate changes in one way; write steps, walk or trace, and one of them only",
            )),
        }
    }
}

fn checked<T>(written: &Spanned<T>, rate: LinkRate) -> Result<LinkRate, Fault> {
    match rate.check() {
        Ok(()) => Ok(rate),
        Err(error) => Err(Fault::at(written, error)),
    }
}

fn steps(raw: &[Exactly<Spanned<Written>, 2>]) -> Result<LinkRate, Fault> {
    let step = |Exactly([at, rate]): &Exactly<Spanned<Written>, 2>| {
        Ok((Time::ZERO + read(at, units::duration)?, read(rate, units::rate)?))
    };
    raw.iter()
        .map(step)
        .collect::<Result<_, _>>()
        .map(LinkRate::Steps)
}

fn walk(raw: &RawWalk) -> Result<LinkRate, Fault> {
    let rate = |written| read(written, units::rate);
    Ok(LinkRate::Walk(Walk {
        min: rate(&raw.min)?,
        max: rate(&raw.max)?,
        step: rate(&raw.step)?,
        every: read(&raw.every, units::duration)?,
    }))
}

fn recording(file: &Spanned<String>, open: &OpenFile<'_>) -> Result<DeliveryTrace, Fault> {
    let name = file.get_ref();
    let mut text = String::new();
    let read = open(name).and_then(|content| content.take(MOST_TRACE_BYTES + 1).read_to_string(&mut text));
    if let Err(error) = read {
        let sentence = format!("\"{name}\" cannot be read ({error}); name a recording of mahimahi");
        return Err(Fault::at(file, sentence));
    }
    if text.len() as u64 > MOST_TRACE_BYTES {
        let most = MOST_TRACE_BYTES >> 20;
        let sentence =
            format!("\"{name}\" is longer than {most} MiB; cut it, a recording begins again by itself");
        return Err(Fault::at(file, sentence));
    }
    DeliveryTrace::parse(&text).map_err(|error| Fault::at(file, format!("\"{name}\", {error}")))
}

impl<'de> Deserialize<'de> for Speed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Speed;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number and its unit in quotes, such as \"10 Mbit/s\", or a table with steps, walk or trace")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Speed, E> {
                Written::deserialize(text.into_deserializer()).map(Speed::Constant)
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Speed, E> {
                Written::deserialize(number.into_deserializer()).map(Speed::Constant)
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Speed, E> {
                Written::deserialize(number.into_deserializer()).map(Speed::Constant)
            }
            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Speed, E> {
                Written::deserialize(number.into_deserializer()).map(Speed::Constant)
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Speed, A::Error> {
                Box::<Changing>::deserialize(MapAccessDeserializer::new(map)).map(Speed::Changing)
            }
        }
        deserializer.deserialize_any(Either)
    }
}
