//! Stateless reset (RFC 9000 §10.3): a host that has lost a session says so to who still speaks in it, and proves with a token
//! that it is the host which gave the session its name. Nothing is kept for it but the host's secret key.

use crate::keys::SecretKey;
use crate::packet::{ConnectionId, ResetToken};
use crate::schedule::expand;
use zeroize::Zeroizing;

/// Shows that a host with this secret key has forgotten a session: as long as it has the key it can compute the token of each name
/// that it ever gave to one.
pub(crate) struct Resets(Zeroizing<[u8; 32]>);

impl Resets {
    pub(crate) fn of(secret: &SecretKey) -> Self {
        let mut own = Zeroizing::new([0; 32]);
        expand(secret.bytes(), "reset", &[], &mut *own);
        Resets(own)
    }

    pub(crate) fn token(&self, name: &ConnectionId) -> ResetToken {
        let mut token = ResetToken::default();
        expand(&self.0, "session", name, &mut token);
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
