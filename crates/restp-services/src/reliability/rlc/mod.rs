//! A sliding window code: random linear combinations over GF(2^8) (RFC 8681). Each encoded packet combines segments that are
//! still of use, whichever of them were lost: so many that arrive rebuild as many losses.
//!
//! | File | What |
//! |---|---|
//! | `combination` | which segments, and their coefficients (`tinymt`, RFC 8682) |
//! | `window` | the sender's segments, combined |
//! | `encoder` | when an encoded packet leaves |
//! | `code_rate` | how many leave, and what they combine |
//! | `pattern`, `chain` | how segments are lost, as measured and as a model |
//! | `paths` | what each path loses, and by which an encoded packet leaves |
//! | `decoder` | the receiver's equations, solved |

mod chain;
mod code_rate;
mod combination;
mod decoder;
mod encoder;
mod paths;
mod pattern;
#[cfg(test)]
mod tests;
mod tinymt;
mod window;

pub(super) use combination::Combination;
pub(super) use decoder::RlcDecoder;
pub(super) use encoder::{RlcEncoder, RlcParameters};
