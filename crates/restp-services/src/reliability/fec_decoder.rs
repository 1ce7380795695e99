//! What rebuilds lost packets, whichever the code (ResTP §3.5.8).

use super::encoded::Rebuilt;
use super::fec_code::FecCode;
use super::rlc::RlcDecoder;
use super::xor_decoder::{XorDecoder, XorOutcome};
use std::collections::VecDeque;

/// What an encoded packet was good for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FecOutcome {
    /// Nothing of its group was missing, or what was is rebuilt, or may be by others: see [`FecDecoder::take_rebuilt`].
    Taken,
    /// Too much is missing, and nothing else repairs it.
    Failed {
        /// The last packet missing of its group.
        last_missing: u64,
    },
    /// No encoded packet of this code.
    Malformed,
}

/// Keeps payloads and rebuilds missing ones.
#[derive(Debug)]
pub struct FecDecoder {
    code: FecCode,
    method: Method,
    rebuilt: VecDeque<Rebuilt>,
}

#[derive(Debug)]
enum Method {
    Xor(XorDecoder),
    Rlc(RlcDecoder),
}

impl FecDecoder {
    /// Nothing was received.
    pub fn new(code: FecCode) -> Self {
        FecDecoder {
            code,
            method: match code {
                FecCode::Basic | FecCode::Interleaved => Method::Xor(XorDecoder::new(code)),
                FecCode::Rlc => Method::Rlc(RlcDecoder::default()),
            },
            rebuilt: VecDeque::new(),
        }
    }

    /// The code of encoded packets that are understood.
    pub fn code(&self) -> FecCode {
        self.code
    }

    /// The packet `number` was received.
    pub fn on_received(&mut self, number: u64, payload: &[u8]) {
        match &mut self.method {
            Method::Xor(xor) => xor.on_received(number, payload),
            Method::Rlc(rlc) => {
                rlc.on_received(number, payload);
                self.rebuilt.extend(rlc.take_rebuilt());
            }
        }
    }

    /// Takes the encoded packet that covers `range` from `first` on.
    pub fn decode(
        &mut self,
        first: u64,
        range: u32,
        payload: &[u8],
        is_missing: impl Fn(u64) -> bool,
    ) -> FecOutcome {
        match &mut self.method {
            Method::Xor(xor) => match xor.decode(first, range, payload, is_missing) {
                XorOutcome::Complete => FecOutcome::Taken,
                XorOutcome::Rebuilt { number, payload } => {
                    self.rebuilt.push_back((number, payload));
                    FecOutcome::Taken
                }
                XorOutcome::Failed { last_missing } => FecOutcome::Failed { last_missing },
                XorOutcome::Malformed => FecOutcome::Malformed,
            },
            Method::Rlc(rlc) => {
                let is_sound = rlc.decode(first, range, payload);
                self.rebuilt.extend(rlc.take_rebuilt());
                if is_sound {
                    FecOutcome::Taken
                } else {
                    FecOutcome::Malformed
                }
            }
        }
    }

    /// The next packet that was rebuilt.
    pub fn take_rebuilt(&mut self) -> Option<Rebuilt> {
        self.rebuilt.pop_front()
    }

    /// Payload bytes kept.
    pub fn bytes(&self) -> usize {
        match &self.method {
            Method::Xor(xor) => xor.bytes(),
            Method::Rlc(rlc) => rlc.bytes(),
        }
    }
}
