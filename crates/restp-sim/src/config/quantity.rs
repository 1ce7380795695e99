//! Written quantities with their place.

use super::Fault;
use restp_base::units::UnitError;
use std::fmt::Display;
use toml::Spanned;

/// Reads a quantity with one of the readers of [`restp_base::units`].
///
/// # Errors
/// What the reader says, with the place.
pub fn read<T>(written: &Spanned<String>, reader: impl Fn(&str) -> Result<T, UnitError>) -> Result<T, Fault> {
    reader(written.get_ref()).map_err(|error| Fault::at(written, error))
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
