//! Bytes that nobody else may know. They lie on the heap, so that moving them leaves no copy behind, are wiped when they are
//! dropped or replaced, and are never shown.
//!
//! Functions take them by reference and write them in place. What the libraries keep is wiped by them (aws-lc-rs: keys, HMAC, HKDF), but
//! for the chaining key of a handshake (`docs/protocol/threats.md`). `secrecy::SecretBox` wipes and hides as well, but holds no
//! array that can be cloned and compared, and no test can see what it wiped.

use std::fmt;
use std::ops::{Deref, DerefMut};
use zeroize::{Zeroize, ZeroizeOnDrop};

/// A secret of `N` bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret<const N: usize = 32>(Box<[u8; N]>);

impl<const N: usize> Secret<N> {
    /// The secret in `bytes`, which are wiped.
    pub fn take(bytes: &mut [u8; N]) -> Self {
        let secret = Secret(Box::new(*bytes));
        bytes.zeroize();
        secret
    }

    /// Zeros, for whoever writes a secret there.
    pub fn blank() -> Self {
        Secret(Box::new([0; N]))
    }
}

impl<const N: usize> From<[u8; N]> for Secret<N> {
    fn from(mut bytes: [u8; N]) -> Self {
        Secret::take(&mut bytes)
    }
}

impl<const N: usize> Deref for Secret<N> {
    type Target = [u8; N];

    fn deref(&self) -> &[u8; N] {
        &self.0
    }
}

impl<const N: usize> DerefMut for Secret<N> {
    fn deref_mut(&mut self) -> &mut [u8; N] {
        &mut self.0
    }
}

impl<const N: usize> Drop for Secret<N> {
    fn drop(&mut self) {
        #[cfg(test)]
        let before = self.0.to_vec();
        self.0.zeroize();
        #[cfg(test)]
        wiped::note(before, &self.0[..]);
    }
}

impl<const N: usize> ZeroizeOnDrop for Secret<N> {}

impl<const N: usize> fmt::Debug for Secret<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// What was wiped in this thread, for tests.
#[cfg(test)]
pub(crate) mod wiped {
    use std::cell::RefCell;

    thread_local! {
        static WIPED: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
    }

    pub(super) fn note(before: Vec<u8>, after: &[u8]) {
        assert!(
            after.iter().all(|byte| *byte == 0),
            "it is zeros when it is let go"
        );
        WIPED.with_borrow_mut(|wiped| wiped.push(before));
    }

    /// Secrets that were wiped while `act` ran.
    pub(crate) fn during(act: impl FnOnce()) -> Vec<Vec<u8>> {
        WIPED.with_borrow_mut(Vec::clear);
        act();
        WIPED.with_borrow_mut(std::mem::take)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_wiped_when_dropped_replaced_or_taken_out_and_never_shown() {
        let mut bytes = [7; 32];
        let mut secret = Secret::take(&mut bytes);
        assert_eq!((bytes, *secret), ([0; 32], [7; 32]));
        assert_eq!(wiped::during(|| secret = [8; 32].into()), [vec![7; 32]]);
        assert_eq!(format!("{secret:?}"), "Secret");
        let mut kept = Some(secret);
        assert_eq!(wiped::during(|| kept = None), [vec![8; 32]]);
        assert_eq!(kept, None);
    }
}
