//! Arrays of a fixed length. Where TOML is read, values behind the last of an array or a tuple are passed over: what somebody wrote there
//! would be a mistake that nobody tells him.

use serde::de::{Deserialize, Deserializer, Error};
use std::ops::Deref;

/// So many values, and no more.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exactly<T, const N: usize>(pub [T; N]);

impl<T, const N: usize> Deref for Exactly<T, N> {
    type Target = [T; N];
    fn deref(&self) -> &[T; N] {
        &self.0
    }
}

impl<'de, T: Deserialize<'de>, const N: usize> Deserialize<'de> for Exactly<T, N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let all = Vec::<T>::deserialize(deserializer)?;
        let found = all.len();
        let exactly = all.try_into().map(Exactly);
        exactly.map_err(|_| D::Error::custom(format!("{N} values stand here, and not {found}")))
    }
}
