//! A packet (RFC 9260 §3): common header, CRC32c over all of it, chunks. A sender's DATA keeps the buffer of its payload.

use super::chunk::{Chunk, ChunkError, DATA_HEADER_BYTES, padded};
use bytes::{Bytes, BytesMut};
use crc::{CRC_32_ISCSI, Crc, Table};
use restp_base::machine::{Datagram, Head};
use restp_services::connection_management::Ports;
use smallvec::SmallVec;
use thiserror::Error;

/// Ports, tag, check sum.
pub const HEADER_BYTES: usize = 12;
/// Where the check sum stands.
const SUM: std::ops::Range<usize> = 8..12;
/// CRC32c (RFC 9260 appendix A), sixteen bytes at a time.
const CRC32C: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISCSI);

/// The common header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The sender's port.
    pub source_port: u16,
    /// The receiver's.
    pub destination_port: u16,
    /// Verification tag: the one the receiver chose, or 0 beside INIT.
    pub tag: u32,
}

/// A packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    /// The common header.
    pub header: Header,
    /// What it carries, one at least.
    pub chunks: SmallVec<[Chunk; 2]>,
}

/// Why a packet was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum WireError {
    /// No room for header and one chunk.
    #[error("{0} bytes are no SCTP packet; one has at least 16")]
    Short(usize),
    /// Damaged, or not SCTP.
    #[error("the CRC32c of the packet is {found:08x}; its header says {expected:08x}")]
    Sum {
        /// As the header says.
        expected: u32,
        /// As its bytes have it.
        found: u32,
    },
    /// One of its chunks.
    #[error("{error}")]
    Chunk {
        /// Whom it speaks to.
        header: Header,
        /// What is wrong with it.
        error: ChunkError,
    },
    /// INIT, INIT ACK and SHUTDOWN COMPLETE travel alone (RFC 9260 §4.3).
    #[error("a chunk that has to travel alone has company")]
    Company,
}

impl Packet {
    /// Understands a datagram in either of its two forms, and takes its buffers.
    ///
    /// # Errors
    /// When it is damaged, or any of its chunks is malformed: then nothing of it is believed.
    pub fn parse(datagram: &mut Datagram) -> Result<Packet, WireError> {
        let is_own_form = datagram.head.len() == HEADER_BYTES + DATA_HEADER_BYTES
            && datagram.head[12] == 0
            && !datagram.body.is_empty();
        let bytes = match &datagram.head[..] {
            [] => std::mem::take(&mut datagram.body),
            _ if is_own_form => return Packet::parse_data(datagram),
            _ => Bytes::from(datagram.to_vec()),
        };
        let header = Header::parse(&bytes, &[])?;
        let mut rest = bytes.slice(HEADER_BYTES..);
        let mut chunks = SmallVec::new();
        let mut travels_alone = false;
        while !rest.is_empty() {
            let chunk = Chunk::take(&mut rest).map_err(|error| WireError::Chunk { header, error })?;
            let ends = chunk.ends_packet();
            travels_alone |= chunk.travels_alone();
            if !chunk.is_passed_over() {
                chunks.push(chunk);
            }
            if ends {
                break;
            }
        }
        if travels_alone && chunks.len() > 1 {
            return Err(WireError::Company);
        }
        Ok(Packet { header, chunks })
    }

    /// The form in which DATA leaves this host: the payload stays where it is.
    fn parse_data(datagram: &mut Datagram) -> Result<Packet, WireError> {
        let header = Header::parse(&datagram.head, &datagram.body)?;
        let mut head = BytesMut::from(&datagram.head[HEADER_BYTES..]);
        let length = usize::from(u16::from_be_bytes([head[2], head[3]]));
        let payload = length.saturating_sub(DATA_HEADER_BYTES);
        let wrong = |error| WireError::Chunk { header, error };
        if payload == 0 || padded(payload) != datagram.body.len() {
            return Err(wrong(ChunkError::Short {
                expected: length,
                found: DATA_HEADER_BYTES + datagram.body.len(),
            }));
        }
        // The codec reads the head with one byte of payload; the real one takes its place.
        let short = (DATA_HEADER_BYTES + 1) as u16;
        head[2..4].copy_from_slice(&short.to_be_bytes());
        head.extend_from_slice(&datagram.body[..1]);
        let mut chunks = SmallVec::new();
        if let Chunk::Data(mut data) = Chunk::take(&mut head.freeze()).map_err(wrong)? {
            data.payload = std::mem::take(&mut datagram.body);
            data.payload.truncate(payload);
            chunks.push(Chunk::Data(data));
        }
        Ok(Packet { header, chunks })
    }

    /// Writes the packet. `out.path` and the rest of the datagram stay.
    pub fn emit(&self, out: &mut Datagram) {
        out.head = Head::new();
        out.body = Bytes::new();
        self.header.emit(&mut out.head);
        match &self.chunks[..] {
            [chunk @ Chunk::Data(data)] => {
                chunk.emit(&mut out.head);
                out.body = with_padding(&data.payload);
            }
            chunks => {
                for chunk in chunks {
                    chunk.emit(&mut out.head);
                    if let Chunk::Data(data) = chunk {
                        out.head.extend_from_slice(&with_padding(&data.payload));
                    }
                }
            }
        }
        let sum = sum(&out.head, &out.body);
        // The generator works from the low end, so the sum travels that way round (RFC 9260 appendix A).
        out.head[SUM].copy_from_slice(&sum.to_le_bytes());
    }
}

impl Chunk {
    fn travels_alone(&self) -> bool {
        matches!(
            self,
            Chunk::Init(_) | Chunk::InitAck(_) | Chunk::ShutdownComplete { .. }
        )
    }
}

impl Header {
    /// The header of a packet in two parts, the first of which has room for it and one chunk.
    ///
    /// # Errors
    /// When it has not, or the packet is damaged.
    pub fn parse(head: &[u8], body: &[u8]) -> Result<Header, WireError> {
        let [a, b, c, d, e, f, g, h, i, j, k, l, _, _, _, _, ..] = *head else {
            return Err(WireError::Short(head.len() + body.len()));
        };
        let (expected, found) = (u32::from_le_bytes([i, j, k, l]), sum(head, body));
        if expected != found {
            return Err(WireError::Sum { expected, found });
        }
        Ok(Header {
            source_port: u16::from_be_bytes([a, b]),
            destination_port: u16::from_be_bytes([c, d]),
            tag: u32::from_be_bytes([e, f, g, h]),
        })
    }

    /// The ports as the receiver sees them.
    pub fn ports(&self) -> Ports {
        Ports {
            local: self.destination_port,
            remote: self.source_port,
        }
    }

    fn emit(&self, out: &mut Head) {
        out.extend_from_slice(&self.source_port.to_be_bytes());
        out.extend_from_slice(&self.destination_port.to_be_bytes());
        out.extend_from_slice(&self.tag.to_be_bytes());
        out.extend_from_slice(&[0; 4]);
    }
}

/// The CRC32c of a packet in two parts, its own field taken for 0.
fn sum(head: &[u8], body: &[u8]) -> u32 {
    let mut digest = CRC32C.digest();
    digest.update(&head[..SUM.start]);
    digest.update(&[0; 4]);
    digest.update(&head[SUM.end..]);
    digest.update(body);
    digest.finalize()
}

fn with_padding(payload: &Bytes) -> Bytes {
    let whole = padded(payload.len());
    if whole == payload.len() {
        return payload.clone();
    }
    let mut bytes = BytesMut::with_capacity(whole);
    bytes.extend_from_slice(payload);
    bytes.resize(whole, 0);
    bytes.freeze()
}

#[cfg(test)]
mod tests;
