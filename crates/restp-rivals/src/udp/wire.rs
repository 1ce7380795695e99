//! The header of RFC 768: source port, destination port, length, check sum; big-endian, 8 bytes.

use crate::checksum::Sum;
use restp_base::machine::PathAddress;
use thiserror::Error;

/// Bytes of a header.
pub const HEADER_BYTES: usize = 8;
/// Protocol number in IP (RFC 768, "Protocol Application"), part of the check sum.
pub const IP_PROTOCOL: u8 = 17;

/// The header's fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Where a reply goes.
    pub source_port: u16,
    /// Which service is meant.
    pub destination_port: u16,
    /// Bytes of header and payload.
    pub length: u16,
    /// One's complement of the one's complement sum; 0 means that the sender computed none.
    pub checksum: u16,
}

/// Why bytes are no UDP datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum WireError {
    /// Fewer bytes than a header.
    #[error("{found} bytes are too few: a UDP header has 8")]
    Short {
        /// Bytes there are.
        found: usize,
    },
    /// The length field and the datagram disagree.
    #[error("the length field (offset 4) says {field} bytes, the datagram has {found}")]
    Length {
        /// What the header says.
        field: u16,
        /// Bytes there are.
        found: usize,
    },
    /// The check sum does not fit the bytes.
    #[error("the check sum (offset 6) is 0x{field:04x}, the bytes give 0x{computed:04x}")]
    Checksum {
        /// What the header says.
        field: u16,
        /// What the bytes give.
        computed: u16,
    },
}

impl Header {
    /// Reads and checks the header of a datagram that consists of `bytes` followed by `rest`, received on `path`.
    ///
    /// # Errors
    /// When the bytes are too few, or length or check sum do not fit.
    pub fn parse(bytes: &[u8], rest: &[u8], path: PathAddress) -> Result<Header, WireError> {
        let found = bytes.len() + rest.len();
        let Some(fixed) = bytes.first_chunk::<HEADER_BYTES>() else {
            return Err(WireError::Short { found: bytes.len() });
        };
        let field = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
        let header = Header {
            source_port: field(0),
            destination_port: field(2),
            length: field(4),
            checksum: field(6),
        };
        if usize::from(header.length) != found {
            return Err(WireError::Length {
                field: header.length,
                found,
            });
        }
        if header.checksum != 0 {
            let computed = Header {
                checksum: 0,
                ..header
            }
            .checksum_over(&[&bytes[HEADER_BYTES..], rest], path);
            if computed != header.checksum {
                return Err(WireError::Checksum {
                    field: header.checksum,
                    computed,
                });
            }
        }
        Ok(header)
    }

    /// The header of `payload` with its check sum, for `path`.
    pub fn of(source_port: u16, destination_port: u16, payload: &[u8], path: PathAddress) -> Header {
        Header::over(source_port, destination_port, &[payload], path)
    }

    /// The same of a payload in several parts.
    pub fn over(source_port: u16, destination_port: u16, parts: &[&[u8]], path: PathAddress) -> Header {
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        let length = u16::try_from(HEADER_BYTES + bytes).unwrap_or(u16::MAX);
        let header = Header {
            source_port,
            destination_port,
            length,
            checksum: 0,
        };
        Header {
            checksum: header.checksum_over(parts, path),
            ..header
        }
    }

    /// The header's bytes.
    pub fn emit(&self) -> [u8; HEADER_BYTES] {
        let ([a, b], [c, d]) = (
            self.source_port.to_be_bytes(),
            self.destination_port.to_be_bytes(),
        );
        let ([e, f], [g, h]) = (self.length.to_be_bytes(), self.checksum.to_be_bytes());
        [a, b, c, d, e, f, g, h]
    }

    /// One's complement sum over pseudo-header, header and payload (RFC 768; RFC 8200 §8.1 for IPv6); a sum of
    /// zero is sent as all ones.
    fn checksum_over(&self, payload: &[&[u8]], path: PathAddress) -> u16 {
        let mut sum = Sum::pseudo_header(path, IP_PROTOCOL, u32::from(self.length));
        sum.add(&self.emit());
        for part in payload {
            sum.add(part);
        }
        match !sum.folded() {
            0 => 0xffff,
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, SocketAddr};

    fn path() -> PathAddress {
        let at = |last| SocketAddr::from((Ipv4Addr::new(10, 0, 0, last), 0));
        PathAddress {
            local: at(1),
            remote: at(2),
        }
    }

    #[test]
    fn a_header_round_trips_in_both_forms() {
        let header = Header::of(49152, 7, b"hello", path());
        let bytes = [&header.emit()[..], b"hello"].concat();
        assert_eq!(Header::parse(&bytes, b"", path().reversed()), Ok(header));
        assert_eq!(
            Header::parse(&bytes[..8], &bytes[8..], path().reversed()),
            Ok(header)
        );
    }

    #[test]
    fn every_changed_bit_is_noticed() {
        let header = Header::of(49152, 7, b"hello", path());
        let bytes = [&header.emit()[..], b"hello"].concat();
        for bit in 0..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(Header::parse(&changed, b"", path()).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn errors_name_offset_and_values() {
        assert_eq!(
            Header::parse(&[0; 7], b"", path()),
            Err(WireError::Short { found: 7 })
        );
        let sentence = Header::parse(&[0, 1, 0, 2, 0, 9, 0, 0], b"", path())
            .unwrap_err()
            .to_string();
        assert!(
            sentence.contains("says 9 bytes") && sentence.contains("has 8"),
            "{sentence}"
        );
    }
}
