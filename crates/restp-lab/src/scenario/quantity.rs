//! Written quantities with their place.

use super::error::Fault;
use restp_base::time::Duration;
use restp_base::units::{Rate, UnitError};
use std::fmt::Display;
use toml::Spanned;

/// Reads a quantity with one of the readers of [`restp_base::units`].
pub(super) fn read<T>(
    written: &Spanned<String>,
    reader: impl Fn(&str) -> Result<T, UnitError>,
) -> Result<T, Fault> {
    reader(written.get_ref()).map_err(|error| Fault::at(written, error))
}

/// Refuses zero.
pub(super) fn positive<W: Display, T: Default + PartialEq>(
    written: &Spanned<W>,
    value: T,
) -> Result<T, Fault> {
    if value == T::default() {
        return Err(Fault::at(
            written,
            format!("{} is nothing; write more than zero", written.get_ref()),
        ));
    }
    Ok(value)
}

/// The time between messages of `bytes` at `rate`, rounded to a nanosecond.
pub(super) fn interval(rate: Rate, bytes: u64) -> Duration {
    let nanos =
        (u128::from(bytes) * 8_000_000_000 + u128::from(rate.as_bps() / 2)) / u128::from(rate.as_bps());
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}
