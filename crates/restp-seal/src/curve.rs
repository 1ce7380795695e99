//! X25519 (RFC 7748) for handshakes and names. Its multiplications are nearly all that a handshake costs, so the public half
//! of a key is computed once.

use crate::secret::Secret;
use aws_lc_rs::agreement::{PrivateKey, UnparsedPublicKey, X25519, agree};
use snow::types::{Dh, Random};
use std::sync::Arc;

/// Bytes of either half of a key, and of what two of them agree on.
pub(crate) const POINT_BYTES: usize = 32;

/// A secret and what follows from it.
pub(crate) struct Pair {
    bytes: Secret,
    public: [u8; POINT_BYTES],
    /// Of 32 bytes there always is one.
    secret: Option<PrivateKey>,
}

impl Pair {
    pub(crate) fn new(bytes: Secret) -> Self {
        let secret = PrivateKey::from_private_key(&X25519, &bytes[..]).ok();
        let public = secret
            .as_ref()
            .and_then(|secret| secret.compute_public_key().ok());
        Pair {
            bytes,
            public: public
                .and_then(|public| public.as_ref().try_into().ok())
                .unwrap_or_default(),
            secret,
        }
    }

    pub(crate) fn bytes(&self) -> &[u8; POINT_BYTES] {
        &self.bytes
    }

    pub(crate) fn public(&self) -> &[u8; POINT_BYTES] {
        &self.public
    }
}

/// One key of a handshake, as the library wants it.
pub(crate) struct Curve(pub(crate) Arc<Pair>);

impl Dh for Curve {
    fn name(&self) -> &'static str {
        "25519"
    }

    fn pub_len(&self) -> usize {
        POINT_BYTES
    }

    fn priv_len(&self) -> usize {
        POINT_BYTES
    }

    /// The key it has already, as a rule: then nothing is computed.
    fn set(&mut self, secret: &[u8]) {
        if secret != self.0.bytes() && secret.len() == POINT_BYTES {
            let mut own = Secret::<POINT_BYTES>::blank();
            own.copy_from_slice(secret);
            self.0 = Arc::new(Pair::new(own));
        }
    }

    fn generate(&mut self, chance: &mut dyn Random) -> Result<(), snow::Error> {
        let mut bytes = Secret::<POINT_BYTES>::blank();
        chance.try_fill_bytes(&mut *bytes)?;
        self.0 = Arc::new(Pair::new(bytes));
        Ok(())
    }

    fn pubkey(&self) -> &[u8] {
        &self.0.public
    }

    fn privkey(&self) -> &[u8] {
        self.0.bytes()
    }

    /// An error where all of the result would be zero, whatever the secret (RFC 7748 §6.1).
    fn dh(&self, other: &[u8], out: &mut [u8]) -> Result<(), snow::Error> {
        let secret = self.0.secret.as_ref().ok_or(snow::Error::Dh)?;
        let other = UnparsedPublicKey::new(&X25519, other.get(..POINT_BYTES).ok_or(snow::Error::Dh)?);
        agree(secret, other, snow::Error::Dh, |shared| {
            out.get_mut(..shared.len())
                .ok_or(snow::Error::Dh)?
                .copy_from_slice(shared);
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> [u8; 32] {
        let bytes = data_encoding::HEXLOWER.decode(text.as_bytes()).unwrap();
        bytes.try_into().unwrap()
    }

    #[test]
    fn multiplication_is_that_of_rfc_7748() {
        // §5.2, the first vector.
        let secret = hex("a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4");
        let point = hex("e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c");
        let mut out = [0; 32];
        Curve(Arc::new(Pair::new(secret.into())))
            .dh(&point, &mut out)
            .unwrap();
        assert_eq!(
            out,
            hex("c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552")
        );
    }

    #[test]
    fn a_point_that_makes_every_secret_the_same_is_refused() {
        let own = Curve(Arc::new(Pair::new([7; 32].into())));
        for low in [0, 1] {
            let mut point = [0; 32];
            point[0] = low;
            assert!(own.dh(&point, &mut [0; 32]).is_err());
        }
    }
}
