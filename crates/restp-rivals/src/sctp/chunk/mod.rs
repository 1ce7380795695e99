//! Chunks (RFC 9260 §3.2, §3.3): every byte behind the common header. A length is checked once, here; numbers stay as wide as
//! they travel.

mod cause;
mod data;
mod init;
mod sack;

pub use cause::{Cause, Causes, MOST_CAUSES, MOST_REPORTED_BYTES};
pub use data::{DATA_HEADER_BYTES, Data, Fragment};
pub use init::{Init, MOST_ADDRESSES};
pub use sack::{MOST_BLOCKS, Sack};

use bytes::Bytes;
use restp_base::machine::Head;
use thiserror::Error;

/// Type, flags and length.
pub const CHUNK_HEADER_BYTES: usize = 4;

/// One chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Chunk {
    /// A message, or a part of one.
    Data(Data),
    /// The first packet of a set-up.
    Init(Init),
    /// Its answer, with a cookie.
    InitAck(Init),
    /// What has arrived.
    Sack(Sack),
    /// Is this path alive? What is asked with comes back.
    Heartbeat(Bytes),
    /// It is.
    HeartbeatAck(Bytes),
    /// The association is broken off.
    Abort {
        /// The tag in the header is the one that the peer writes itself (T).
        reflects_tag: bool,
        /// Why.
        causes: Causes,
    },
    /// The peer sends nothing more, and has everything up to this number.
    Shutdown {
        /// Cumulative TSN ack.
        cumulative: u32,
    },
    /// Neither does the other.
    ShutdownAck,
    /// Something was wrong; the association lives.
    Error(Causes),
    /// The cookie of an INIT ACK comes back.
    CookieEcho(Bytes),
    /// The association stands.
    CookieAck,
    /// It is over.
    ShutdownComplete {
        /// As with [`Chunk::Abort`].
        reflects_tag: bool,
    },
    /// Of a type that is not known: the whole chunk.
    Unrecognized(Bytes),
}

/// Why a chunk was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ChunkError {
    /// It ends before what its own lengths promise.
    #[error("a chunk or parameter of {expected} bytes has only {found}")]
    Short {
        /// Bytes that it should have.
        expected: usize,
        /// Bytes that are left.
        found: usize,
    },
    /// Blocks that overlap, run backwards, or say what the cumulative number denies.
    #[error("a gap block from {start} to {end} contradicts what stands before it")]
    Block {
        /// First offset.
        start: u16,
        /// Last offset.
        end: u16,
    },
    /// RFC 9260 §3.3.2: no tag is 0.
    #[error("an INIT with a tag of 0")]
    Zero,
    /// An address of no length that addresses have.
    #[error("an address of {0} bytes")]
    Address(usize),
}

/// T of ABORT and SHUTDOWN COMPLETE.
const REFLECTS: u8 = 1;
/// Of a type that is not known: skipped, not the end of the packet (RFC 9260 §3.2).
const SKIPS: u8 = 0x80;
/// Of a type that is not known: who sent it is to hear that.
const REPORTS: u8 = 0x40;

impl Chunk {
    /// Takes the first chunk off `bytes`.
    ///
    /// # Errors
    /// When a length is wrong or a value cannot be.
    pub fn take(bytes: &mut Bytes) -> Result<Chunk, ChunkError> {
        let length = usize::from(u16_at(bytes, 2)?);
        if length < CHUNK_HEADER_BYTES || length > bytes.len() {
            return Err(ChunkError::Short {
                expected: length.max(CHUNK_HEADER_BYTES),
                found: bytes.len(),
            });
        }
        let (kind, flags) = (bytes[0], bytes[1]);
        let whole = bytes.slice(..length);
        let value = whole.slice(CHUNK_HEADER_BYTES..);
        *bytes = bytes.slice(padded(length).min(bytes.len())..);
        let reflects_tag = flags & REFLECTS != 0;
        Ok(match kind {
            0 => {
                let fragment = Fragment::parse(flags, &value)?;
                let payload = value.slice(DATA_HEADER_BYTES - CHUNK_HEADER_BYTES..);
                Chunk::Data(Data { fragment, payload })
            }
            1 => match Init::parse(&value)? {
                Init { tag: 0, .. } => return Err(ChunkError::Zero),
                init => Chunk::Init(init),
            },
            2 => Chunk::InitAck(Init::parse(&value)?),
            3 => Chunk::Sack(Sack::parse(flags, &value)?),
            4 => Chunk::Heartbeat(value),
            5 => Chunk::HeartbeatAck(value),
            6 => Chunk::Abort {
                reflects_tag,
                causes: Cause::parse_all(&value),
            },
            7 => Chunk::Shutdown {
                cumulative: u32_at(&value, 0)?,
            },
            8 => Chunk::ShutdownAck,
            9 => Chunk::Error(Cause::parse_all(&value)),
            10 => Chunk::CookieEcho(value),
            11 => Chunk::CookieAck,
            14 => Chunk::ShutdownComplete { reflects_tag },
            _ => Chunk::Unrecognized(whole),
        })
    }

    /// Of a type that is not known, which says that nothing behind it is to be looked at.
    pub fn ends_packet(&self) -> bool {
        matches!(self, Chunk::Unrecognized(whole) if whole[0] & SKIPS == 0)
    }

    /// Of a type that is not known, and nobody is to hear of it.
    pub fn is_passed_over(&self) -> bool {
        matches!(self, Chunk::Unrecognized(whole) if whole[0] & REPORTS == 0)
    }

    /// Is the tag in its header the one that its receiver writes itself (T)?
    pub fn reflects_tag(&self) -> bool {
        matches!(
            self,
            Chunk::Abort {
                reflects_tag: true,
                ..
            } | Chunk::ShutdownComplete { reflects_tag: true }
        )
    }

    /// Appends the chunk with its padding; of DATA all but payload and padding, which follow elsewhere.
    pub fn emit(&self, out: &mut Head) {
        let at = out.len();
        let bit = |set: &bool| u8::from(*set);
        let (kind, flags) = match self {
            Chunk::Data(data) => (0, data.fragment.flags()),
            Chunk::Init(_) => (1, 0),
            Chunk::InitAck(_) => (2, 0),
            Chunk::Sack(sack) => (3, sack.flags()),
            Chunk::Heartbeat(_) => (4, 0),
            Chunk::HeartbeatAck(_) => (5, 0),
            Chunk::Abort { reflects_tag, .. } => (6, bit(reflects_tag)),
            Chunk::Shutdown { .. } => (7, 0),
            Chunk::ShutdownAck => (8, 0),
            Chunk::Error(_) => (9, 0),
            Chunk::CookieEcho(_) => (10, 0),
            Chunk::CookieAck => (11, 0),
            Chunk::ShutdownComplete { reflects_tag } => (14, bit(reflects_tag)),
            Chunk::Unrecognized(whole) => (whole[0], whole[1]),
        };
        out.extend_from_slice(&[kind, flags, 0, 0]);
        let mut beyond = 0;
        match self {
            Chunk::Data(data) => {
                data.fragment.emit(out);
                beyond = data.payload.len();
            }
            Chunk::Init(init) | Chunk::InitAck(init) => init.emit(out),
            Chunk::Sack(sack) => sack.emit(out),
            Chunk::Heartbeat(bytes) | Chunk::HeartbeatAck(bytes) | Chunk::CookieEcho(bytes) => {
                out.extend_from_slice(bytes);
            }
            Chunk::Shutdown { cumulative } => out.extend_from_slice(&cumulative.to_be_bytes()),
            Chunk::Abort { causes, .. } | Chunk::Error(causes) => {
                causes.iter().for_each(|cause| cause.emit(out))
            }
            Chunk::Unrecognized(whole) => out.extend_from_slice(&whole[CHUNK_HEADER_BYTES..]),
            Chunk::ShutdownAck | Chunk::CookieAck | Chunk::ShutdownComplete { .. } => {}
        }
        let length = out.len() - at + beyond;
        out[at + 2..at + 4].copy_from_slice(&(length as u16).to_be_bytes());
        if beyond == 0 {
            out.resize(at + padded(length), 0);
        }
    }
}

/// The next multiple of four: where the next chunk or parameter begins.
pub(super) fn padded(length: usize) -> usize {
    length.next_multiple_of(4)
}

/// A parameter or cause behind what stands there, padded; its own padding is left to what follows, or to the chunk, whose length does not
/// count it (RFC 9260 §3.2).
fn tlv(kind: u16, value: &[u8], out: &mut Head) {
    out.resize(padded(out.len()), 0);
    out.extend_from_slice(&kind.to_be_bytes());
    out.extend_from_slice(&(4 + value.len() as u16).to_be_bytes());
    out.extend_from_slice(value);
}

fn u16_at(bytes: &[u8], at: usize) -> Result<u16, ChunkError> {
    array(bytes, at).map(u16::from_be_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Result<u32, ChunkError> {
    array(bytes, at).map(u32::from_be_bytes)
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N], ChunkError> {
    let found = bytes.get(at..at + N).and_then(|found| found.try_into().ok());
    found.ok_or(ChunkError::Short {
        expected: at + N,
        found: bytes.len(),
    })
}
