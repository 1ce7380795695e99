//! Randomness of the operating system.

use restp_seal::Secret;
use std::io;

/// Bytes of the operating system's randomness.
pub(crate) fn random<const N: usize>() -> io::Result<Secret<N>> {
    let mut bytes = Secret::blank();
    getrandom::fill(&mut *bytes).map_err(io::Error::other)?;
    Ok(bytes)
}
