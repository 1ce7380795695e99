//! The handshake (Noise Protocol Framework, revision 34, 2018): two messages, IK where the responder's key is known, IX
//! where it is not, and NNpsk0 where both ends share a secret from before; all over X25519, ChaCha20-Poly1305 and SHA-256.
//! Both ends have their keys after the second message, so that every packet of the answer can be sealed with them.

use crate::curve::{Curve, Pair};
use crate::entropy::Entropy;
use crate::keys::{KEY_BYTES, PublicKey, SecretKey};
use crate::secret::Secret;
use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::{CryptoResolver, DefaultResolver};
use snow::types::{Cipher, Dh, Hash, Random};
use snow::{Builder, HandshakeState};
use std::sync::Arc;
use zeroize::Zeroizing;

/// Bytes of an authentication tag.
const TAG: usize = 16;

/// Which handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// The responder's key is known: its message 1 is for it alone, and may be followed by early data.
    Ik,
    /// It is learnt from message 2; message 1 can be read by all, and nothing in it has been changed.
    Ix,
    /// Both ends have a secret of an earlier handshake, which takes the place of their keys: one multiplication instead of
    /// four, and message 1 takes none to open.
    Resumed,
}

impl Pattern {
    fn name(self) -> &'static str {
        match self {
            Pattern::Ik => "Noise_IK_25519_ChaChaPoly_SHA256",
            Pattern::Ix => "Noise_IX_25519_ChaChaPoly_SHA256",
            Pattern::Resumed => "Noise_NNpsk0_25519_ChaChaPoly_SHA256",
        }
    }

    /// Bytes of message 1 around its payload.
    pub const fn first_overhead(self) -> usize {
        match self {
            Pattern::Ik => 2 * KEY_BYTES + 2 * TAG,
            Pattern::Ix => 2 * KEY_BYTES,
            Pattern::Resumed => KEY_BYTES + TAG,
        }
    }

    /// Bytes of message 2 around its payload.
    pub const fn second_overhead(self) -> usize {
        match self {
            Pattern::Ik | Pattern::Resumed => KEY_BYTES + TAG,
            Pattern::Ix => 2 * KEY_BYTES + 2 * TAG,
        }
    }
}

/// Secrets of a finished handshake: to and from the responder.
pub(crate) struct Split {
    pub(crate) to_responder: Secret,
    pub(crate) to_initiator: Secret,
}

/// What an end knows of the other before the first message.
#[derive(Clone, Copy)]
pub(crate) enum Known<'a> {
    Nothing,
    /// Its key.
    Key(&'a PublicKey),
    /// A secret that nobody else has.
    Secret(&'a [u8; 32]),
}

impl Known<'_> {
    /// The handshake that begins with it.
    pub(crate) fn pattern(self) -> Pattern {
        match self {
            Known::Nothing => Pattern::Ix,
            Known::Key(_) => Pattern::Ik,
            Known::Secret(_) => Pattern::Resumed,
        }
    }
}

/// One end of a handshake.
pub(crate) struct Handshake(HandshakeState);

impl Handshake {
    /// The end that begins.
    pub(crate) fn initiator(
        own: &SecretKey,
        responder: Known<'_>,
        prologue: &[u8],
        entropy: &mut Entropy,
    ) -> Option<Self> {
        let builder = builder(responder.pattern(), own, prologue, entropy)?;
        let builder = match responder {
            Known::Nothing => Ok(builder),
            Known::Key(key) => builder.remote_public_key(&key.0),
            Known::Secret(secret) => builder.psk(0, secret),
        };
        builder.ok()?.build_initiator().ok().map(Handshake)
    }

    /// The end that answers; `secret` is given with [`Pattern::Resumed`] only.
    pub(crate) fn responder(
        pattern: Pattern,
        own: &SecretKey,
        secret: Option<&[u8; 32]>,
        prologue: &[u8],
        entropy: &mut Entropy,
    ) -> Option<Self> {
        let mut builder = builder(pattern, own, prologue, entropy)?;
        if let Some(secret) = secret {
            builder = builder.psk(0, secret).ok()?;
        }
        builder.build_responder().ok().map(Handshake)
    }

    /// Appends the next message to `out`.
    pub(crate) fn write(&mut self, payload: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let begin = out.len();
        out.resize(begin + payload.len() + 4 * KEY_BYTES, 0);
        let length = self.0.write_message(payload, &mut out[begin..]).ok()?;
        out.truncate(begin + length);
        Some(())
    }

    /// The payload of the next message; `None` when it is not genuine.
    pub(crate) fn read(&mut self, message: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        let mut payload = Zeroizing::new(vec![0; message.len()]);
        let length = self.0.read_message(message, &mut payload).ok()?;
        payload.truncate(length);
        Some(payload)
    }

    /// The other end's key, once a message has told it.
    pub(crate) fn remote(&self) -> Option<PublicKey> {
        self.0.get_remote_static()?.try_into().ok().map(PublicKey)
    }

    /// The secrets, after the second message.
    pub(crate) fn split(mut self) -> Option<Split> {
        if !self.0.is_handshake_finished() {
            return None;
        }
        let mut raw = self.0.dangerously_get_raw_split();
        Some(Split {
            to_responder: Secret::take(&mut raw.0),
            to_initiator: Secret::take(&mut raw.1),
        })
    }
}

fn builder<'a>(
    pattern: Pattern,
    own: &'a SecretKey,
    prologue: &'a [u8],
    entropy: &mut Entropy,
) -> Option<Builder<'a>> {
    let primitives = Primitives {
        seed: entropy.secret(),
        own: own.pair(),
    };
    let builder = Builder::with_resolver(pattern.name().parse().ok()?, Box::new(primitives));
    builder
        .local_private_key(own.bytes())
        .ok()?
        .prologue(prologue)
        .ok()
}

/// The library's primitives, but for the curve, and with chance from the given seed in the place of the system's.
struct Primitives {
    seed: Secret,
    own: Arc<Pair>,
}

impl CryptoResolver for Primitives {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        Some(Box::new(Entropy::new(&self.seed)))
    }
    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        (*choice == DHChoice::Curve25519).then(|| Box::new(Curve(self.own.clone())) as Box<dyn Dh>)
    }
    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        DefaultResolver.resolve_hash(choice)
    }
    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        DefaultResolver.resolve_cipher(choice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Pattern; 3] = [Pattern::Ik, Pattern::Ix, Pattern::Resumed];

    fn ends(pattern: Pattern, believed: &SecretKey) -> (Handshake, Handshake) {
        let (client, server) = (SecretKey::from_chance([1; 32]), SecretKey::from_chance([2; 32]));
        let mut entropy = Entropy::new(&[3; 32]);
        let (key, secret) = (believed.public(), believed.bytes());
        let known = match pattern {
            Pattern::Ik => Known::Key(&key),
            Pattern::Ix => Known::Nothing,
            Pattern::Resumed => Known::Secret(secret),
        };
        let shared = (pattern == Pattern::Resumed).then(|| server.bytes());
        (
            Handshake::initiator(&client, known, b"prologue", &mut entropy).unwrap(),
            Handshake::responder(pattern, &server, shared, b"prologue", &mut entropy).unwrap(),
        )
    }

    #[test]
    fn two_messages_of_the_stated_sizes_give_both_ends_the_same_secrets() {
        for pattern in ALL {
            let (mut client, mut server) = ends(pattern, &SecretKey::from_chance([2; 32]));
            let (mut first, mut second) = (Vec::new(), Vec::new());
            client.write(b"SYN", &mut first).unwrap();
            assert_eq!(first.len(), pattern.first_overhead() + 3);
            assert_eq!(&server.read(&first).unwrap()[..], b"SYN");
            server.write(b"yes", &mut second).unwrap();
            assert_eq!(second.len(), pattern.second_overhead() + 3);
            assert_eq!(&client.read(&second).unwrap()[..], b"yes");
            let told = |of| (pattern != Pattern::Resumed).then(|| SecretKey::from_chance([of; 32]).public());
            assert_eq!((server.remote(), client.remote()), (told(1), told(2)));
            let (a, b) = (client.split().unwrap(), server.split().unwrap());
            assert_eq!(
                (&a.to_responder, &a.to_initiator),
                (&b.to_responder, &b.to_initiator)
            );
            assert_ne!(a.to_responder, a.to_initiator);
        }
    }

    #[test]
    fn a_message_for_another_key_or_with_a_changed_bit_is_not_genuine() {
        for pattern in [Pattern::Ik, Pattern::Resumed] {
            let (mut client, mut server) = ends(pattern, &SecretKey::from_chance([9; 32]));
            let mut first = Vec::new();
            client.write(b"SYN", &mut first).unwrap();
            assert!(server.read(&first).is_none());
        }
        for pattern in ALL {
            let right = SecretKey::from_chance([2; 32]);
            let mut first = Vec::new();
            ends(pattern, &right).0.write(b"SYN", &mut first).unwrap();
            for bit in 0..first.len() * 8 {
                let (mut client, mut server) = ends(pattern, &right);
                let (mut sent, mut second) = (Vec::new(), Vec::new());
                client.write(b"SYN", &mut sent).unwrap();
                sent[bit / 8] ^= 0x80 >> (bit % 8);
                let answered = server.read(&sent).and_then(|_| server.write(b"", &mut second));
                // X25519 leaves the top bit of a point out (RFC 7748 §5); the transcript has it.
                let noticed = answered.is_none() || client.read(&second).is_none();
                assert!(noticed, "{pattern:?} bit {bit}");
            }
        }
    }

    #[test]
    fn before_the_second_message_there_are_no_secrets() {
        let (mut client, _) = ends(Pattern::Ix, &SecretKey::from_chance([2; 32]));
        client.write(b"", &mut Vec::new()).unwrap();
        assert!(client.split().is_none());
    }
}
