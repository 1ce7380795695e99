//! Stateless reset (RFC 9000 §10.3): a host that has lost a session says so to who still speaks in it, and proves with a token
//! that it is the host which gave the session its name. Nothing is kept for it but the host's secret key.

use crate::keys::SecretKey;
use crate::packet::{ConnectionId, RESET_TOKEN_BYTES, ResetToken};
use crate::schedule::expand;
use crate::secret::Secret;
use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign};

/// Shows that a host with this secret key has forgotten a session: as long as it has the key it can compute the token of each name
/// that it ever gave to one.
pub(crate) struct Resets(Key);

impl Resets {
    pub(crate) fn of(secret: &SecretKey) -> Self {
        let mut own = Secret::<32>::blank();
        expand(secret.bytes(), "reset", &[], &mut *own);
        Resets(Key::new(HMAC_SHA256, &own[..]))
    }

    pub(crate) fn token(&self, name: &ConnectionId) -> ResetToken {
        // The first block of an expansion (RFC 5869 §2.3), with a key that is made ready once.
        let info = [&b"restp seal session"[..], name, &[1]].concat();
        let mut token = ResetToken::default();
        token.copy_from_slice(&sign(&self.0, &info).as_ref()[..RESET_TOKEN_BYTES]);
        token
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_of_a_name_follows_from_the_key_alone() {
        let of = |key: u8| Resets::of(&SecretKey::from_chance([key; 32]));
        let token = of(1).token(b"session.");
        assert_eq!(token, of(1).token(b"session."), "after a restart, too");
        assert_ne!(token, of(2).token(b"session."));
        assert_ne!(token, of(1).token(b"session,"));
    }
}
