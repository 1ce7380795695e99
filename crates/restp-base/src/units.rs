//! Rates, and quantities as people write them: `"10 Mbit/s"`, `"45 ms"`, `"64 KiB"`, `"100 packets"`.
//! A unit is always required; this is the only place that converts between them.

use crate::numeric::mul_div;
use crate::time::Duration;
use std::fmt;
use thiserror::Error;

/// A data rate in bits per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate(u64);

impl Rate {
    /// `n` bits per second.
    pub const fn from_bps(n: u64) -> Self {
        Rate(n)
    }
    /// Bits per second.
    pub const fn as_bps(self) -> u64 {
        self.0
    }
    /// How long `bytes` occupy a line of this rate, rounded up to a nanosecond. A rate of zero never ends.
    pub const fn transmission_time(self, bytes: u64) -> Duration {
        if self.0 == 0 {
            return Duration::MAX;
        }
        // 64-bit arithmetic while it fits: this runs once per packet and hop.
        if bytes < 2_000_000_000 {
            return Duration::from_nanos((bytes * 8_000_000_000).div_ceil(self.0));
        }
        let nanos = (bytes as u128 * 8_000_000_000).div_ceil(self.0 as u128);
        if nanos > u64::MAX as u128 {
            Duration::MAX
        } else {
            Duration::from_nanos(nanos as u64)
        }
    }
    /// Whole bytes that pass in `span`.
    pub const fn bytes_in(self, span: Duration) -> u64 {
        mul_div(self.0, span.as_nanos(), 8_000_000_000)
    }
    /// The rate that carries `bytes` in `span`; the largest rate for an empty span.
    pub const fn of(bytes: u64, span: Duration) -> Rate {
        if span.is_zero() {
            return Rate(u64::MAX);
        }
        Rate(mul_div(bytes, 8_000_000_000, span.as_nanos()))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n if n >= 1_000_000_000 => write!(f, "{} Gbit/s", n as f64 / 1e9),
            n if n >= 1_000_000 => write!(f, "{} Mbit/s", n as f64 / 1e6),
            n if n >= 1_000 => write!(f, "{} kbit/s", n as f64 / 1e3),
            n => write!(f, "{n} bit/s"),
        }
    }
}

/// What a written quantity measures, with its value in the base unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// A rate.
    Rate(Rate),
    /// A span of time.
    Duration(Duration),
    /// A number of bytes.
    Bytes(u64),
    /// A number of packets or segments.
    Packets(u64),
}

/// Why a written quantity was not understood.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UnitError {
    /// There is no number at the start.
    #[error("\"{written}\" does not start with a number; write {wanted}")]
    NoNumber {
        /// The text as written.
        written: String,
        /// What may stand there.
        wanted: Wanted,
    },
    /// No quantity is below zero.
    #[error("\"{written}\" must not be negative; write {wanted}")]
    Negative {
        /// The text as written.
        written: String,
        /// What may stand there.
        wanted: Wanted,
    },
    /// The number has no unit, or one nobody knows.
    #[error("\"{written}\" has {found}; write {wanted}")]
    Unit {
        /// The text as written.
        written: String,
        /// What stands in the place of the unit.
        found: String,
        /// What may stand there.
        wanted: Wanted,
    },
    /// The value is too large to hold.
    #[error("\"{0}\" is too large")]
    TooLarge(String),
}

/// The kind of quantity asked for, as the end of a sentence: what it is, an example and the units it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    what: &'static str,
    example: &'static str,
    units: &'static str,
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} such as \"{}\" (units: {})",
            self.what, self.example, self.units
        )
    }
}

const RATE: Wanted = Wanted {
    what: "a rate",
    example: "10 Mbit/s",
    units: "bit/s, kbit/s, Mbit/s, Gbit/s",
};
const TIME: Wanted = Wanted {
    what: "a span of time",
    example: "10 ms",
    units: "ns, us, ms, s, min, h",
};
const BYTES: Wanted = Wanted {
    what: "a number of bytes",
    example: "64 KiB",
    units: "B, kB, KiB, MB, MiB, GB, GiB",
};
const PACKETS: Wanted = Wanted {
    what: "a number of packets or segments",
    example: "100 packets",
    units: "packets, segments",
};
const ANY: Wanted = Wanted {
    what: "a number and a unit",
    example: "10 Mbit/s",
    units: "bit/s, kbit/s, Mbit/s, Gbit/s for a rate; ns, us, ms, s, min, h for a time; \
        B, kB, KiB, MB, MiB, GB, GiB for bytes; packets, segments",
};

/// Makes a quantity of one kind from a number of base units.
type Make = fn(u64) -> Quantity;

/// The unit's kind and how many base units (bit/s, ns, B, packets) it holds.
fn unit(name: &str) -> Option<(Make, u64)> {
    let rate: Make = |n| Quantity::Rate(Rate(n));
    let time: Make = |n| Quantity::Duration(Duration::from_nanos(n));
    let bytes: Make = Quantity::Bytes;
    let packets: Make = Quantity::Packets;
    Some(match name {
        "bit/s" | "bps" => (rate, 1),
        "kbit/s" | "kbps" | "kb/s" => (rate, 1_000),
        "Mbit/s" | "Mbps" | "Mb/s" => (rate, 1_000_000),
        "Gbit/s" | "Gbps" | "Gb/s" => (rate, 1_000_000_000),
        "ns" => (time, 1),
        "us" | "µs" => (time, 1_000),
        "ms" => (time, 1_000_000),
        "s" => (time, 1_000_000_000),
        "min" => (time, 60_000_000_000),
        "h" => (time, 3_600_000_000_000),
        "B" | "byte" | "bytes" => (bytes, 1),
        "kB" => (bytes, 1_000),
        "KiB" => (bytes, 1 << 10),
        "MB" => (bytes, 1_000_000),
        "MiB" => (bytes, 1 << 20),
        "GB" => (bytes, 1_000_000_000),
        "GiB" => (bytes, 1 << 30),
        "packet" | "packets" | "segment" | "segments" => (packets, 1),
        _ => return None,
    })
}

/// Reads a number and its unit.
///
/// ```
/// use restp_base::units::{Quantity, Rate, quantity};
/// assert_eq!(quantity("1.5 Mbit/s"), Ok(Quantity::Rate(Rate::from_bps(1_500_000))));
/// assert!(quantity("10").unwrap_err().to_string().contains("no unit"));
/// ```
///
/// # Errors
/// When the number or the unit is missing or unknown, or the value does not fit.
pub fn quantity(written: &str) -> Result<Quantity, UnitError> {
    quantity_of(written, ANY)
}

fn quantity_of(written: &str, wanted: Wanted) -> Result<Quantity, UnitError> {
    let text = written.trim();
    let split = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_'))
        .unwrap_or(text.len());
    let (number, name) = (text[..split].replace('_', ""), text[split..].trim());
    let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
    if whole.is_empty() || fraction.contains('.') {
        let (written, below) = (written.into(), text.strip_prefix(['-', '\u{2212}']));
        let negative = below.is_some_and(|rest| rest.trim_start().starts_with(|c: char| c.is_ascii_digit()));
        return Err(if negative {
            UnitError::Negative { written, wanted }
        } else {
            UnitError::NoNumber { written, wanted }
        });
    }
    let Some((make, scale)) = unit(name) else {
        let found = if name.is_empty() {
            "no unit".into()
        } else {
            format!("the unknown unit \"{name}\"")
        };
        return Err(UnitError::Unit {
            written: written.into(),
            found,
            wanted,
        });
    };
    let too_large = || UnitError::TooLarge(written.into());
    let mut value = whole
        .parse::<u128>()
        .map_err(|_| too_large())?
        .checked_mul(scale.into())
        .ok_or_else(too_large)?;
    let mut digit_scale = u128::from(scale);
    for digit in fraction.bytes() {
        digit_scale /= 10;
        value += u128::from(digit - b'0') * digit_scale;
    }
    Ok(make(u64::try_from(value).map_err(|_| too_large())?))
}

macro_rules! reader {
    ($name:ident, $variant:ident, $type:ty, $wanted:ident, $what:literal) => {
        #[doc = concat!("Reads ", $what, ".\n\n# Errors\nWhen the text is not a number with such a unit.")]
        pub fn $name(written: &str) -> Result<$type, UnitError> {
            match quantity_of(written, $wanted)? {
                Quantity::$variant(value) => Ok(value),
                _ => Err(UnitError::Unit {
                    written: written.into(),
                    found: "a unit of another kind".into(),
                    wanted: $wanted,
                }),
            }
        }
    };
}
reader!(rate, Rate, Rate, RATE, "a rate");
reader!(duration, Duration, Duration, TIME, "a span of time");
reader!(bytes, Bytes, u64, BYTES, "a number of bytes");
reader!(packets, Packets, u64, PACKETS, "a number of packets or segments");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_quantities() {
        assert_eq!(rate("10 Mbit/s"), Ok(Rate(10_000_000)));
        assert_eq!(rate("1.12 Mbit/s"), Ok(Rate(1_120_000)));
        assert_eq!(duration("10 us"), Ok(Duration::from_micros(10)));
        assert_eq!(duration("0.01 ms"), Ok(Duration::from_micros(10)));
        assert_eq!(bytes("64 KiB"), Ok(65536));
        assert_eq!(packets("1 packet"), Ok(1));
    }

    #[test]
    fn errors_name_the_value_and_the_way_out() {
        let sentence = rate("10 ms").unwrap_err().to_string();
        assert!(
            sentence.contains("\"10 ms\"") && sentence.contains("Mbit/s"),
            "{sentence}"
        );
        let sentence = duration("7 fortnights").unwrap_err().to_string();
        assert!(
            sentence.contains("fortnights") && sentence.contains("ms"),
            "{sentence}"
        );
        assert!(matches!(rate("Mbit/s"), Err(UnitError::NoNumber { .. })));
        assert!(matches!(rate("1.2.3 Mbit/s"), Err(UnitError::NoNumber { .. })));
        assert!(matches!(
            rate("99999999999999999999 Gbit/s"),
            Err(UnitError::TooLarge(_))
        ));
    }

    #[test]
    fn the_way_out_is_of_the_kind_asked_for() {
        for (error, parts) in [
            (rate("10").unwrap_err(), ["no unit", "\"10 Mbit/s\"", "Gbit/s"]),
            (duration("10").unwrap_err(), ["no unit", "\"10 ms\"", "min, h"]),
            (
                duration("soon").unwrap_err(),
                ["\"soon\"", "a span of time", "\"10 ms\""],
            ),
            (bytes("many").unwrap_err(), ["\"many\"", "bytes", "\"64 KiB\""]),
            (
                packets("64 ms").unwrap_err(),
                ["another kind", "\"100 packets\"", "segments"],
            ),
        ] {
            let sentence = error.to_string();
            for part in parts {
                assert!(sentence.contains(part), "no {part} in: {sentence}");
            }
            let rates = sentence.contains("Mbit/s");
            assert_eq!(rates, sentence.contains("a rate"), "{sentence}");
        }
    }

    #[test]
    fn nothing_is_below_zero() {
        for sentence in [
            duration("-10 ms").unwrap_err().to_string(),
            rate("- 1 Mbit/s").unwrap_err().to_string(),
            bytes("-1").unwrap_err().to_string(),
        ] {
            assert!(sentence.contains("must not be negative"), "{sentence}");
        }
        assert!(matches!(duration("-"), Err(UnitError::NoNumber { .. })));
    }

    #[test]
    fn transmission_time_rounds_up() {
        assert_eq!(
            Rate(10_000_000).transmission_time(1500),
            Duration::from_micros(1200)
        );
        assert_eq!(Rate(3).transmission_time(1).as_nanos(), 2_666_666_667);
        assert_eq!(Rate(0).transmission_time(1), Duration::MAX);
        assert_eq!(Rate(8).transmission_time(u64::MAX), Duration::MAX);
        assert_eq!(Rate(8_000).bytes_in(Duration::from_secs(2)), 2_000);
        assert_eq!(Rate::of(2_000, Duration::from_secs(2)), Rate(8_000));
    }
}
