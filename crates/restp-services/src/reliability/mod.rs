//! How long sent data is kept, and whether it is retransmitted (ResTP §3.5.8, release rules §A.1).

mod encoded;
mod fec_code;
mod fec_decoder;
mod fec_encoder;
mod gf256;
mod harq;
mod rlc;
mod sum;
mod transmit_buffer;
mod xor_basic;
mod xor_decoder;
mod xor_encoder;
mod xor_interleaved;
#[cfg(test)]
mod xor_tests;

pub use encoded::{Encoded, Rebuilt};
pub use fec_code::FecCode;
pub use fec_decoder::{FecDecoder, FecOutcome};
pub use fec_encoder::{FecEncoder, FecParameters};
pub use gf256::add_scaled;
pub use harq::LossReport;
pub use sum::LENGTH_BYTES;
pub use transmit_buffer::TransmitBuffer;

/// Reliability service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reliability {
    /// Forget on transmission.
    Unreliable,
    /// Open-loop forward error correction (ResTP §3.5.8).
    Quasi,
    /// Keep until acknowledged, retransmit what is lost.
    Arq,
    /// Forward error correction first, retransmissions for the rest.
    Harq,
    /// ARQ that drops what the receiver has skipped.
    Partial,
    /// The same, with forward error correction where a retransmission would come too late.
    PartialFec,
}

impl Reliability {
    /// Every service with its name in compositions.
    pub const ALL: [(&'static str, Reliability); 6] = [
        ("unreliable", Reliability::Unreliable),
        ("quasi", Reliability::Quasi),
        ("arq", Reliability::Arq),
        ("harq", Reliability::Harq),
        ("partial", Reliability::Partial),
        ("partial+fec", Reliability::PartialFec),
    ];

    /// True when segments are kept until they are acknowledged, and retransmitted.
    pub fn retransmits(self) -> bool {
        matches!(
            self,
            Reliability::Arq | Reliability::Harq | Reliability::Partial | Reliability::PartialFec
        )
    }
    /// True when everything sent must arrive.
    pub fn is_full(self) -> bool {
        matches!(self, Reliability::Arq | Reliability::Harq)
    }
    /// True when what the receiver has skipped is dropped. Every reported hole is retransmitted at once then, because a
    /// retransmission has to beat the reader (ResTP §3.5.9, OP-44).
    pub fn is_partial(self) -> bool {
        matches!(self, Reliability::Partial | Reliability::PartialFec)
    }
    /// True when encoded packets are sent.
    pub fn encodes(self) -> bool {
        matches!(
            self,
            Reliability::Quasi | Reliability::Harq | Reliability::PartialFec
        )
    }
    /// May encoded packets be of this code? The sliding window leaves to retransmissions what they bring in time, which under full
    /// reliability is all; an XOR is there whether a retransmission would be in time or not.
    pub fn encodes_by(self, code: FecCode) -> bool {
        match self {
            Reliability::Quasi => true,
            Reliability::Harq => code != FecCode::Rlc,
            Reliability::PartialFec => code == FecCode::Rlc,
            Reliability::Unreliable | Reliability::Arq | Reliability::Partial => false,
        }
    }
    /// The code of its encoded packets unless another is chosen.
    pub fn default_code(self) -> FecCode {
        match self {
            Reliability::PartialFec => FecCode::Rlc,
            _ => FecCode::default(),
        }
    }
}
