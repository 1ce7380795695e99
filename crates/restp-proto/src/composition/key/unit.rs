//! Numbers of keys: how each is written with its unit, and the fields that hold them.

use super::SetError;
use restp_base::time::Duration;
use restp_base::units::{self, Rate};

/// What a number counts, and so how it is written.
#[derive(Clone, Copy)]
pub(in crate::composition) enum Unit {
    Bytes,
    Segments,
    Packets,
    Rate,
    Time,
    /// Or the word [`AUTO`]: a rule finds it.
    TimeOrAuto,
    /// Or the word [`NONE`].
    TimeOrNone,
    Count,
}

/// What stands for the largest number of bytes, a limit that is never reached.
const UNLIMITED: &str = "unlimited";

/// What stands for a span of time that is not set: another number tells it, or nobody asks for it.
const AUTO: &str = "auto";
const NONE: &str = "none";

/// How a span of time that is not set passes a [`Slot`].
const UNSET: u64 = u64::MAX;

impl Unit {
    pub(super) fn example(self) -> &'static str {
        match self {
            Unit::Bytes => "a number of bytes such as \"1400 B\" or \"256 KiB\"",
            Unit::Segments => "a number of segments such as \"32 segments\"",
            Unit::Packets => "a number of packets such as \"2 packets\"",
            Unit::Rate => "a rate such as \"10 Mbit/s\"",
            Unit::Time => "a span of time such as \"40 ms\"",
            Unit::TimeOrAuto => "a span of time such as \"40 ms\", or \"auto\"",
            Unit::TimeOrNone => "a span of time such as \"40 ms\", or \"none\"",
            Unit::Count => "a plain count such as \"4\"",
        }
    }

    pub(super) fn samples(self) -> &'static [&'static str] {
        match self {
            Unit::Bytes => &[
                "1 B", "8 B", "100 B", "536 B", "1400 B", "9000 B", "64 KiB", "256 KiB", "1 MiB",
            ],
            Unit::Segments => &[
                "1 segments",
                "2 segments",
                "7 segments",
                "10 segments",
                "64 segments",
                "8192 segments",
                "65535 segments",
            ],
            Unit::Packets => &["1 packets", "2 packets", "8 packets", "255 packets"],
            Unit::Time => &[
                "0 ms", "1 ms", "10 ms", "40 ms", "200 ms", "500 ms", "1 s", "3 s", "10 s", "60 s", "300 s",
            ],
            Unit::TimeOrAuto => &[AUTO, "1 ms", "10 ms", "100 ms", "1 s"],
            Unit::TimeOrNone => &[NONE, "1 ms", "100 ms", "1 s"],
            Unit::Rate => &["100 kbit/s", "1 Mbit/s", "100 Mbit/s"],
            Unit::Count => &["1", "2", "3", "4", "8", "15", "32"],
        }
    }

    pub(super) fn read(self, key: &'static str, value: &str) -> Result<u64, SetError> {
        match self {
            Unit::Bytes if value == UNLIMITED => Ok(u64::MAX),
            Unit::Bytes => units::bytes(value),
            Unit::Segments | Unit::Packets => units::packets(value),
            Unit::Rate => units::rate(value).map(Rate::as_bps),
            Unit::TimeOrAuto if value == AUTO => Ok(UNSET),
            Unit::TimeOrNone if value == NONE => Ok(UNSET),
            Unit::Time | Unit::TimeOrAuto | Unit::TimeOrNone => {
                units::duration(value).map(Duration::as_nanos)
            }
            Unit::Count => {
                return value.parse().map_err(|_| SetError::Count {
                    key,
                    value: value.into(),
                });
            }
        }
        .map_err(|why| SetError::Quantity { key, why })
    }

    pub(super) fn write(self, number: u64) -> String {
        match self {
            Unit::Bytes if number == u64::MAX => UNLIMITED.into(),
            Unit::Bytes => format!("{number} B"),
            Unit::Segments => format!("{number} segments"),
            Unit::Packets => format!("{number} packets"),
            Unit::Rate => format!("{number} bit/s"),
            Unit::TimeOrAuto if number == UNSET => AUTO.into(),
            Unit::TimeOrNone if number == UNSET => NONE.into(),
            Unit::Time | Unit::TimeOrAuto | Unit::TimeOrNone => Duration::from_nanos(number).to_string(),
            Unit::Count => number.to_string(),
        }
    }
}

/// A field that holds a number, whatever its width.
pub(in crate::composition) trait Slot {
    fn load(&self) -> u64;
    /// Refuses a number that does not fit, with the largest that does.
    fn store(&mut self, number: u64) -> Result<(), u64>;
}

macro_rules! slots {
    ($($width:ty),+) => {
        $(impl Slot for $width {
            fn load(&self) -> u64 {
                *self as u64
            }
            fn store(&mut self, number: u64) -> Result<(), u64> {
                *self = <$width>::try_from(number).map_err(|_| <$width>::MAX as u64)?;
                Ok(())
            }
        })+
    };
}
slots!(u8, u32, u64, usize);

impl Slot for Duration {
    fn load(&self) -> u64 {
        self.as_nanos()
    }
    fn store(&mut self, number: u64) -> Result<(), u64> {
        *self = Duration::from_nanos(number);
        Ok(())
    }
}

impl Slot for Rate {
    fn load(&self) -> u64 {
        self.as_bps()
    }
    fn store(&mut self, number: u64) -> Result<(), u64> {
        *self = Rate::from_bps(number);
        Ok(())
    }
}

impl Slot for Option<Duration> {
    fn load(&self) -> u64 {
        self.map_or(UNSET, Duration::as_nanos)
    }
    fn store(&mut self, number: u64) -> Result<(), u64> {
        *self = (number != UNSET).then_some(Duration::from_nanos(number));
        Ok(())
    }
}
