//! Keys of hosts (X25519, RFC 7748) and their text: base 32 (RFC 4648 §6) without padding, which people can copy.

use crate::curve::{POINT_BYTES, Pair};
use crate::entropy::Entropy;
use crate::secret::Secret;
use data_encoding::BASE32_NOPAD;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use thiserror::Error;
use zeroize::Zeroizing;

/// Bytes of either key.
pub const KEY_BYTES: usize = POINT_BYTES;

/// Names a host, and nobody else can speak for it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey(pub [u8; KEY_BYTES]);

/// What a host proves its name with.
#[derive(Clone)]
pub struct SecretKey(Arc<Pair>);

impl PartialEq for SecretKey {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}

impl Eq for SecretKey {}

/// Why a text is no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum KeyError {
    /// Characters were lost or added.
    #[error("it has {0} characters where a key has {text}; copy all of it", text = PublicKey::TEXT)]
    Length(usize),
    /// A character was changed.
    #[error("its character {place}, {found:?}, is not one that a key has there; copy it again")]
    Character {
        /// Counted from 1.
        place: usize,
        /// What is there.
        found: char,
    },
    /// Not what `restp keygen` writes.
    #[error("it does not hold a secret key; write one with `restp keygen`")]
    Secret,
}

impl PublicKey {
    /// Characters of its text.
    pub const TEXT: usize = 52;
}

impl SecretKey {
    /// What its text begins with.
    pub const PREFIX: &str = "restp-secret1-";

    /// The key of these bytes.
    pub fn from_bytes(bytes: impl Into<Secret>) -> Self {
        SecretKey(Arc::new(Pair::new(bytes.into())))
    }

    /// A new key from 32 bytes of chance.
    pub fn from_chance(seed: impl Into<Secret>) -> Self {
        Self::from_bytes(Entropy::new(&seed.into()).secret())
    }

    /// The name that goes with it.
    pub fn public(&self) -> PublicKey {
        PublicKey(*self.0.public())
    }

    /// The text for its file.
    pub fn to_text(&self) -> Zeroizing<String> {
        let mut all = Zeroizing::new(String::with_capacity(Self::PREFIX.len() + PublicKey::TEXT + 1));
        all.push_str(Self::PREFIX);
        BASE32_NOPAD.encode_append(self.bytes(), &mut all);
        all[Self::PREFIX.len()..].make_ascii_lowercase();
        all.push('\n');
        all
    }

    pub(crate) fn bytes(&self) -> &[u8; KEY_BYTES] {
        self.0.bytes()
    }

    pub(crate) fn pair(&self) -> Arc<Pair> {
        self.0.clone()
    }
}

impl FromStr for SecretKey {
    type Err = KeyError;

    fn from_str(word: &str) -> Result<Self, KeyError> {
        let encoded = word.trim().strip_prefix(Self::PREFIX);
        encoded
            .and_then(bytes)
            .map(Self::from_bytes)
            .ok_or(KeyError::Secret)
    }
}

impl FromStr for PublicKey {
    type Err = KeyError;

    fn from_str(word: &str) -> Result<Self, KeyError> {
        let word = word.trim();
        bytes(word)
            .map(|bytes| PublicKey(*bytes))
            .ok_or_else(|| mistake(word))
    }
}

fn text(bytes: &[u8; KEY_BYTES]) -> String {
    BASE32_NOPAD.encode(bytes).to_lowercase()
}

fn bytes(word: &str) -> Option<Secret> {
    let word = Zeroizing::new(word.to_ascii_uppercase());
    let mut bytes = Secret::blank();
    // A word of another length would need another number of bytes.
    let fits = word.len() == PublicKey::TEXT;
    let decoded = fits.then(|| BASE32_NOPAD.decode_mut(word.as_bytes(), &mut *bytes))?;
    decoded.ok()?;
    Some(bytes)
}

/// What is wrong with a word that is no key.
fn mistake(word: &str) -> KeyError {
    let length = word.chars().count();
    if length != PublicKey::TEXT {
        return KeyError::Length(length);
    }
    let foreign = |(_, c): &(usize, char)| !matches!(c.to_ascii_lowercase(), 'a'..='z' | '2'..='7');
    // Where all are of the alphabet it is the last one: only its first bit counts.
    let found = (1..).zip(word.chars()).find(foreign);
    let (place, found) = found.unwrap_or((length, word.chars().next_back().unwrap_or_default()));
    KeyError::Character { place, found }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text(&self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({self})")
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretKey")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_public_key_is_that_of_rfc_7748() {
        // §5.2: the base point as secret, after one iteration.
        let mut secret = [0; 32];
        secret[0] = 9;
        let public = data_encoding::HEXLOWER.encode(&SecretKey::from_bytes(secret).public().0);
        assert_eq!(
            public,
            "422c8e7a6227d7bca1350b3e2bb7279f7897b87bb6854b783c60e80311ae3079"
        );
    }

    #[test]
    fn keys_read_back_and_damage_is_noticed() {
        let secret = SecretKey::from_chance([7; 32]);
        assert_eq!(secret.to_text().parse(), Ok(secret.clone()));
        let word = secret.public().to_string();
        assert_eq!(word.len(), 52);
        assert_eq!(word.to_uppercase().parse(), Ok(secret.public()));
        for cut in 0..word.len() {
            assert_eq!(word[..cut].parse::<PublicKey>(), Err(KeyError::Length(cut)));
        }
        for (place, found) in [(1, '1'), (30, 'ü'), (52, 'b')] {
            let with = |(n, c): (usize, char)| if n == place { found } else { c };
            let changed: String = (1..).zip(word.chars()).map(with).collect();
            let mistake = Err(KeyError::Character { place, found });
            assert_eq!(changed.parse::<PublicKey>(), mistake);
        }
        assert_eq!(word.parse::<SecretKey>(), Err(KeyError::Secret));
        assert_eq!(format!("{secret:?}"), "SecretKey", "never shown");
    }
}
