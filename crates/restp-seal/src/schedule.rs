//! From a shared secret to the key of each packet: HKDF-Expand with SHA-256 (RFC 5869 §2.3). Each path of each direction
//! has keys of its own and takes a new one every 2²⁰ packets, below the limits of RFC 9001 §6.6 (2²³ for AES-GCM). What
//! is behind is forgotten: a key that leaks later opens nothing from before.

use crate::secret::Secret;
use aws_lc_rs::aead::{AES_128_GCM, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Prk};
use std::fmt;

/// Bytes of the tag behind a sealed packet.
pub const TAG_BYTES: usize = 16;

/// Paths that a session numbers apart, at most: as many as an association has (ResTP §3.1.1).
pub const SPACES: u8 = 16;

/// Packets of one path sealed with one key.
pub const PACKETS_PER_KEY: u64 = 1 << 20;

/// Which cipher seals the packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Suite {
    /// Where both processors have instructions for it.
    Aes128Gcm = 1,
    /// Everywhere else.
    ChaCha20Poly1305 = 2,
}

impl Suite {
    /// The suite of code `code`.
    pub fn from_code(code: u8) -> Option<Self> {
        [Suite::Aes128Gcm, Suite::ChaCha20Poly1305]
            .into_iter()
            .find(|suite| *suite as u8 == code)
    }

    fn algorithm(self) -> &'static Algorithm {
        match self {
            Suite::Aes128Gcm => &AES_128_GCM,
            Suite::ChaCha20Poly1305 => &CHACHA20_POLY1305,
        }
    }
}

/// A length as the library wants it told.
struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

/// `out` = HKDF-Expand(`secret`, "restp seal " ‖ `label` ‖ `context`).
pub(crate) fn expand(secret: &[u8; 32], label: &str, context: &[u8], out: &mut [u8]) {
    let prk = Prk::new_less_safe(HKDF_SHA256, secret);
    let info = [b"restp seal ", label.as_bytes(), context];
    // The lengths used here are far below the limit of 255 blocks, the only thing that can fail.
    if let Ok(material) = prk.expand(&info, Length(out.len())) {
        let _ = material.fill(out);
    }
}

/// The secret of path `space` of a direction.
pub fn space_secret(secret: &[u8; 32], space: u8) -> Secret {
    let mut out = Secret::blank();
    expand(secret, "path", &[space], &mut *out);
    out
}

/// Secrets of a direction's paths that have not been used yet. As long as all keys are first ones they follow from the
/// direction's; when the first path takes another key that one is forgotten, and so are those of paths in use: from what is
/// left nobody computes a key that is behind.
pub(crate) enum PathSecrets {
    Whole(Secret),
    Parted(Box<[Option<Secret>; SPACES as usize]>),
}

impl PathSecrets {
    pub(crate) fn new(direction: Secret) -> Self {
        PathSecrets::Whole(direction)
    }

    /// That of path `space`, if it has not been used.
    pub(crate) fn of(&self, space: u8) -> Option<Secret> {
        match self {
            PathSecrets::Whole(direction) => Some(space_secret(direction, space)),
            PathSecrets::Parted(left) => left[usize::from(space % SPACES)].clone(),
        }
    }

    /// Path `space` keeps its own from now on.
    pub(crate) fn spend(&mut self, space: u8) {
        if let PathSecrets::Parted(left) = self {
            left[usize::from(space % SPACES)] = None;
        }
    }

    /// Do they follow from one?
    pub(crate) fn are_whole(&self) -> bool {
        matches!(self, PathSecrets::Whole(_))
    }

    /// A path has taken another key: each secret stands alone from now on, and those of the paths that are `used` are gone.
    pub(crate) fn part(&mut self, used: impl Fn(u8) -> bool) {
        let left = |space: usize| self.of(space as u8).filter(|_| !used(space as u8));
        let left = std::array::from_fn(left);
        *self = PathSecrets::Parted(Box::new(left));
    }
}

/// The keys of one path in one direction.
pub struct Keys {
    suite: Suite,
    packets_per_key: u64,
    generation: u64,
    secret: Secret,
    key: Key,
    /// For packets that were overtaken.
    previous: Option<Key>,
    /// The generation after this one and its secret, computed once: packets that say to be of it cost no more than others.
    next: Option<(Secret, Key)>,
}

struct Key {
    key: LessSafeKey,
    iv: Secret<12>,
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keys({:?}, generation {})", self.suite, self.generation) // no secret in logs
    }
}

impl Key {
    fn derive(suite: Suite, secret: &[u8; 32]) -> Option<Key> {
        let (mut key, mut iv) = (Secret::<32>::blank(), Secret::blank());
        let key = &mut key[..suite.algorithm().key_len()];
        expand(secret, "key", &[suite as u8], key);
        expand(secret, "iv", &[suite as u8], &mut *iv);
        let key = UnboundKey::new(suite.algorithm(), key).ok()?;
        Some(Key {
            key: LessSafeKey::new(key),
            iv,
        })
    }

    /// The vector, its last eight bytes XOR the packet's number.
    fn nonce(&self, number: u64) -> Nonce {
        let mut nonce = *self.iv;
        nonce[4..]
            .iter_mut()
            .zip(number.to_be_bytes())
            .for_each(|(byte, digit)| *byte ^= digit);
        Nonce::assume_unique_for_key(nonce)
    }

    fn open(&self, number: u64, header: &[u8], sealed: &[u8], opened: &mut [u8]) -> bool {
        let Some((text, tag)) = sealed.split_last_chunk::<TAG_BYTES>() else {
            return false;
        };
        (self.key)
            .open_separate_gather(self.nonce(number), Aad::from(header), text, tag, opened)
            .is_ok()
    }
}

impl Keys {
    /// The keys of a path whose secret is `secret`. `None` never, as long as the suites' key lengths are right.
    pub fn new(suite: Suite, secret: impl Into<Secret>) -> Option<Self> {
        let secret = secret.into();
        Some(Keys {
            suite,
            packets_per_key: PACKETS_PER_KEY,
            generation: 0,
            key: Key::derive(suite, &secret)?,
            secret,
            previous: None,
            next: None,
        })
    }

    /// The same, where each key seals `packets` packets.
    pub(crate) fn lasting(mut self, packets: u64) -> Self {
        self.packets_per_key = packets;
        self
    }

    /// Those of generation `generation`, without the way there.
    #[cfg(test)]
    pub(crate) fn in_generation(suite: Suite, secret: impl Into<Secret>, generation: u64) -> Option<Self> {
        let keys = Keys::new(suite, secret)?;
        Some(Keys { generation, ..keys })
    }

    /// Keys taken after the first.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// Encrypts `bytes` in place as packet `number`, and returns the tag that also covers `header`. Each number is used
    /// once, in rising order.
    pub fn seal(&mut self, number: u64, header: &[u8], bytes: &mut [u8]) -> Option<[u8; TAG_BYTES]> {
        while self.generation < number / self.packets_per_key {
            self.advance()?;
            self.previous = None;
        }
        let nonce = self.key.nonce(number);
        let tag = self
            .key
            .key
            .seal_in_place_separate_tag(nonce, Aad::from(header), bytes)
            .ok()?;
        tag.as_ref().try_into().ok()
    }

    /// Decrypts `sealed`, whose last [`TAG_BYTES`] are the tag, into `opened`, which is as long without it. True when packet
    /// `number` with `header` is genuine; otherwise what is in `opened` is nobody's.
    pub fn open(&mut self, number: u64, header: &[u8], sealed: &[u8], opened: &mut [u8]) -> bool {
        let wanted = number / self.packets_per_key;
        if wanted == self.generation {
            return self.key.open(number, header, sealed, opened);
        }
        if wanted + 1 == self.generation {
            let previous = self.previous.as_ref();
            return previous.is_some_and(|key| key.open(number, header, sealed, opened));
        }
        // Only a genuine packet moves the keys on, and by one generation: more than that many in a row are not lost.
        if wanted != self.generation + 1 {
            return false;
        }
        if self.next.is_none() {
            self.next = self.derive_next();
        }
        let next = self.next.as_ref();
        let genuine = next.is_some_and(|(_, key)| key.open(number, header, sealed, opened));
        genuine && self.advance().is_some()
    }

    fn derive_next(&self) -> Option<(Secret, Key)> {
        let mut secret = Secret::blank();
        expand(&self.secret, "next", &[], &mut *secret);
        let key = Key::derive(self.suite, &secret)?;
        Some((secret, key))
    }

    fn advance(&mut self) -> Option<()> {
        let (secret, key) = self.next.take().or_else(|| self.derive_next())?;
        self.secret = secret; // the one before is wiped
        self.previous = Some(std::mem::replace(&mut self.key, key));
        self.generation += 1;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::wiped;

    fn keys(suite: Suite) -> Keys {
        Keys::new(suite, [7; 32]).unwrap()
    }

    fn sealed(keys: &mut Keys, number: u64) -> Vec<u8> {
        let mut bytes = b"attack at dawn".to_vec();
        let tag = keys.seal(number, b"header", &mut bytes).unwrap();
        bytes.extend_from_slice(&tag);
        bytes
    }

    fn opens(keys: &mut Keys, number: u64, header: &[u8], sealed: &[u8]) -> bool {
        let mut opened = vec![0; sealed.len().saturating_sub(TAG_BYTES)];
        let genuine = keys.open(number, header, sealed, &mut opened);
        assert!(!genuine || opened == b"attack at dawn");
        genuine
    }

    #[test]
    fn what_is_sealed_opens_once_header_number_and_path_are_right() {
        for suite in [Suite::Aes128Gcm, Suite::ChaCha20Poly1305] {
            let bytes = sealed(&mut keys(suite), 5);
            assert!(opens(&mut keys(suite), 5, b"header", &bytes));
            assert!(!opens(&mut keys(suite), 6, b"header", &bytes));
            assert!(!opens(&mut keys(suite), 5, b"HEADER", &bytes));
            assert!(!opens(&mut keys(suite), 5, b"header", &bytes[..TAG_BYTES - 1]));
            let mut other = Keys::new(suite, space_secret(&[7; 32], 1)).unwrap();
            assert!(!opens(&mut other, 5, b"header", &bytes));
        }
        assert_eq!(Suite::from_code(2), Some(Suite::ChaCha20Poly1305));
        assert_eq!(Suite::from_code(0), None);
    }

    #[test]
    fn a_new_key_every_so_many_packets_and_stragglers_still_open() {
        let (mut sender, mut receiver) = (keys(Suite::Aes128Gcm), keys(Suite::Aes128Gcm));
        let late = sealed(&mut sender, PACKETS_PER_KEY - 1);
        let first = sealed(&mut sender, PACKETS_PER_KEY);
        let third = sealed(&mut sender, 2 * PACKETS_PER_KEY);
        assert!(opens(&mut receiver, PACKETS_PER_KEY, b"header", &first));
        assert!(opens(&mut receiver, PACKETS_PER_KEY - 1, b"header", &late));
        assert!(opens(&mut receiver, 2 * PACKETS_PER_KEY, b"header", &third));
        assert!(opens(&mut receiver, PACKETS_PER_KEY, b"header", &first));
        let again = opens(&mut receiver, PACKETS_PER_KEY - 1, b"header", &late);
        assert!(!again, "its key is gone");
    }

    #[test]
    fn once_a_key_is_behind_nothing_leads_back_to_it() {
        let mut secrets = PathSecrets::new([7; 32].into());
        let first = secrets.of(3);
        assert!(first.is_some() && secrets.are_whole());
        secrets.part(|space| space == 3);
        assert_eq!((secrets.of(3), secrets.are_whole()), (None, false));
        assert_eq!(
            secrets.of(5),
            Some(space_secret(&[7; 32], 5)),
            "unused paths can still begin"
        );
        secrets.spend(5);
        assert_eq!(secrets.of(5), None);
    }

    #[test]
    fn a_secret_that_is_dropped_is_wiped() {
        let direction = [7; 32];
        let path = |space| space_secret(&direction, space).to_vec();
        let mut secrets = PathSecrets::new(direction.into());
        let wiped = wiped::during(|| secrets.part(|space| space == 3));
        assert!(wiped.contains(&direction.to_vec()) && wiped.contains(&path(3)));
        assert!(wiped::during(|| secrets.spend(5)).contains(&path(5)));
        assert!(wiped::during(|| drop(secrets)).contains(&path(6)));
    }

    #[test]
    fn a_secret_that_another_one_replaces_is_wiped() {
        let mut keys = keys(Suite::ChaCha20Poly1305);
        let (first, iv) = (keys.secret.to_vec(), keys.key.iv.to_vec());
        let wiped = wiped::during(|| {
            sealed(&mut keys, PACKETS_PER_KEY);
        });
        assert!(
            wiped.contains(&first) && wiped.contains(&iv),
            "secret and key of the first generation"
        );
        let (second, next) = (
            keys.secret.to_vec(),
            keys.derive_next().map(|(secret, _)| secret.to_vec()),
        );
        let wiped = wiped::during(|| {
            let forged = [0; TAG_BYTES];
            assert!(!keys.open(2 * PACKETS_PER_KEY, b"", &forged, &mut []));
            drop(keys);
        });
        assert!(wiped.contains(&second), "of the session that is over");
        assert!(
            next.is_some_and(|next| wiped.contains(&next)),
            "and what was computed ahead"
        );
    }

    #[test]
    fn a_packet_moves_the_keys_on_by_one_generation_and_no_more() {
        for (ahead, moves) in [(1, true), (2, false), (16, false), (4096, false)] {
            let (mut sender, mut receiver) = (keys(Suite::Aes128Gcm), keys(Suite::Aes128Gcm));
            let number = ahead * PACKETS_PER_KEY;
            let bytes = sealed(&mut sender, number);
            assert_eq!(opens(&mut receiver, number, b"header", &bytes), moves, "{ahead}");
            assert_eq!(receiver.generation(), if moves { ahead } else { 0 });
        }
    }

    #[test]
    fn a_forged_number_does_not_move_the_keys() {
        let (mut sender, mut receiver) = (keys(Suite::Aes128Gcm), keys(Suite::Aes128Gcm));
        let bytes = sealed(&mut sender, 1);
        let mut computed: Option<[u8; 32]> = None;
        for generation in [1, 2, 16, 1 << 27, 1, 1] {
            let number = generation * PACKETS_PER_KEY;
            assert!(!opens(&mut receiver, number, b"header", &bytes));
            let next = receiver.next.as_mut().expect("asked for by the first");
            assert!(computed.is_none_or(|before| before == *next.0));
            *next.0 = computed.map_or([7; 32], |before| before);
            computed = Some([7; 32]);
        }
        assert_eq!(receiver.generation(), 0);
        assert!(opens(&mut receiver, 1, b"header", &bytes));
    }
}
