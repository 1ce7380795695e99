//! How long sent data is kept, and whether it is repeated (ResTP §3.5.8, release rules §A.1).

mod fec_basic;
mod fec_code;
mod fec_decoder;
mod fec_encoder;
mod fec_interleaved;
#[cfg(test)]
mod fec_tests;
mod harq;
mod parity;
mod transmit_buffer;

pub use fec_code::FecCode;
pub use fec_decoder::{FecDecoder, FecOutcome};
pub use fec_encoder::{Encoded, FecEncoder, FecParameters};
pub use harq::LossReport;
pub use parity::LENGTH_BYTES;
pub use transmit_buffer::TransmitBuffer;

/// Reliability service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reliability {
    /// Forget on transmission.
    Unreliable,
    /// Open-loop forward error correction (ResTP §3.5.8).
    Quasi,
    /// Keep until acknowledged, repeat what is lost.
    Arq,
    /// Forward error correction first, repeats for the rest.
    Harq,
    /// ARQ that drops what the receiver has skipped.
    Partial,
}

impl Reliability {
    /// Every service with its name in compositions.
    pub const ALL: [(&'static str, Reliability); 5] = [
        ("unreliable", Reliability::Unreliable),
        ("quasi", Reliability::Quasi),
        ("arq", Reliability::Arq),
        ("harq", Reliability::Harq),
        ("partial", Reliability::Partial),
    ];

    /// True when segments are kept until they are acknowledged, and repeated.
    pub fn repeats(self) -> bool {
        matches!(self, Reliability::Arq | Reliability::Harq | Reliability::Partial)
    }
    /// True when everything sent must arrive.
    pub fn is_full(self) -> bool {
        matches!(self, Reliability::Arq | Reliability::Harq)
    }
    /// True when every reported hole is repeated at once, because a repeat has to beat the reader (ResTP §3.5.9, OP-44).
    pub fn repeats_at_once(self) -> bool {
        self == Reliability::Partial
    }
    /// True when encoded packets are sent.
    pub fn encodes(self) -> bool {
        matches!(self, Reliability::Quasi | Reliability::Harq)
    }
}
