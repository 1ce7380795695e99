//! The header of TCP (RFC 9293 §3.1): 20 bytes and up to 40 of options, big-endian. The check sum covers a pseudo
//! header of the two addresses; it is computed and checked always, in simulation too.

use super::options::Options;
use crate::checksum::Sum;
use restp_base::machine::{Head, PathAddress};
use std::ops::BitOr;
use thiserror::Error;

/// Bytes of a header without options.
pub const HEADER_BYTES: usize = 20;
/// Protocol number in IP, part of the check sum (RFC 9293 §3.1).
pub const IP_PROTOCOL: u8 = 6;

/// The control bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    /// No more data from the sender.
    pub const FIN: Flags = Flags(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: Flags = Flags(0x02);
    /// Reset the connection.
    pub const RST: Flags = Flags(0x04);
    /// Hand the data up now.
    pub const PSH: Flags = Flags(0x08);
    /// The acknowledgement field is in use.
    pub const ACK: Flags = Flags(0x10);
    /// A mark of the network has arrived; in a SYN, marks are wanted (RFC 3168 §6.1).
    pub const ECE: Flags = Flags(0x40);
    /// The window was reduced for one.
    pub const CWR: Flags = Flags(0x80);

    /// True when every bit of `flags` is set.
    pub fn has(self, flags: Flags) -> bool {
        self.0 & flags.0 == flags.0
    }
}

impl BitOr for Flags {
    type Output = Flags;
    fn bitor(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

/// The header's fields. Data offset and check sum are computed when it is written; the urgent pointer is not
/// used (RFC 6093) and written as zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Where a reply goes.
    pub source_port: u16,
    /// Which service is meant.
    pub destination_port: u16,
    /// Number of the first byte of payload; of the SYN, when there is one.
    pub sequence: u32,
    /// Number of the byte expected next, when ACK is set.
    pub acknowledgement: u32,
    /// Control bits.
    pub flags: Flags,
    /// Bytes the sender of this header takes, beginning with the one acknowledged, shifted right by its scale.
    pub window: u16,
    /// Options.
    pub options: Options,
}

/// Why bytes are no TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum WireError {
    /// A field breaks its rule.
    #[error("offset {offset}: expected {expected}, found {found}")]
    Field {
        /// Where, in bytes from the start of the header.
        offset: usize,
        /// The rule.
        expected: &'static str,
        /// The value there.
        found: usize,
    },
    /// The check sum does not fit the bytes: damaged on the way.
    #[error("offset 16: expected the check sum of these bytes, found 0x{field:04x}")]
    Checksum {
        /// What the header says.
        field: u16,
    },
}

impl Header {
    /// Reads and checks the header of a segment that consists of `bytes` followed by `rest`, received on `path`.
    /// Returns it with its length in bytes; `bytes` must hold all of it.
    ///
    /// # Errors
    /// When a length is impossible, a known option has the wrong length, or the check sum does not fit.
    pub fn parse(bytes: &[u8], rest: &[u8], path: PathAddress) -> Result<(Header, usize), WireError> {
        let Some(fixed) = bytes.first_chunk::<HEADER_BYTES>() else {
            return Err(WireError::Field {
                offset: bytes.len(),
                expected: "20 bytes of header",
                found: bytes.len(),
            });
        };
        let length = usize::from(fixed[12] >> 4) * 4;
        let Some(options) = bytes.get(HEADER_BYTES..length) else {
            return Err(WireError::Field {
                offset: 12,
                expected: "a data offset of 5 to 15 words within the segment",
                found: length / 4,
            });
        };
        let half = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
        let word = |at: usize| u32::from(half(at)) << 16 | u32::from(half(at + 2));
        let mut sum = Sum::pseudo_header(path, IP_PROTOCOL, (bytes.len() + rest.len()) as u32);
        sum.add(bytes);
        sum.add(rest);
        if sum.folded() != 0xffff {
            return Err(WireError::Checksum { field: half(16) });
        }
        let header = Header {
            source_port: half(0),
            destination_port: half(2),
            sequence: word(4),
            acknowledgement: word(8),
            flags: Flags(fixed[13]),
            window: half(14),
            options: Options::parse(options)?,
        };
        Ok((header, length))
    }

    /// Writes the header of a segment that carries `payload` along `path` into `out`, replacing what it held.
    pub fn emit(&self, payload: &[u8], path: PathAddress, out: &mut Head) {
        out.clear();
        out.extend_from_slice(&self.source_port.to_be_bytes());
        out.extend_from_slice(&self.destination_port.to_be_bytes());
        out.extend_from_slice(&self.sequence.to_be_bytes());
        out.extend_from_slice(&self.acknowledgement.to_be_bytes());
        out.extend_from_slice(&[0, self.flags.0]);
        out.extend_from_slice(&self.window.to_be_bytes());
        out.extend_from_slice(&[0; 4]); // check sum, urgent pointer
        self.options.emit(out);
        out[12] = (out.len() / 4) as u8 * 0x10;
        let mut sum = Sum::pseudo_header(path, IP_PROTOCOL, (out.len() + payload.len()) as u32);
        sum.add(out);
        sum.add(payload);
        out[16..18].copy_from_slice(&(!sum.folded()).to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::options::Timestamps;
    use std::net::{Ipv4Addr, SocketAddr};

    fn path() -> PathAddress {
        let at = |last| SocketAddr::from((Ipv4Addr::new(10, 0, 0, last), 0));
        PathAddress {
            local: at(1),
            remote: at(2),
        }
    }

    fn emitted(header: &Header, payload: &[u8]) -> Vec<u8> {
        let mut head = Head::new();
        header.emit(payload, path(), &mut head);
        head.to_vec()
    }

    /// Added up by hand, word by word: pseudo header 0a00 0001 0a00 0002 0006 001b; header c000 0050 0000 0001
    /// 0000 0002 5018 ffff 0000; payload 6162 6364 6566 6700. Their sum is 3 b5ba, folded b5bd; its complement 4a42.
    #[test]
    fn a_segment_byte_by_byte() {
        let header = Header {
            source_port: 0xc000,
            destination_port: 80,
            sequence: 1,
            acknowledgement: 2,
            flags: Flags::ACK | Flags::PSH,
            window: 0xffff,
            options: Options::default(),
        };
        let expected = [
            0xc0, 0x00, 0x00, 0x50, 0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x18, 0xff, 0xff, SUM[0], SUM[1], 0, 0,
        ];
        assert_eq!(emitted(&header, b"abcdefg"), expected);
        assert_eq!(
            Header::parse(&expected, b"abcdefg", path().reversed()),
            Ok((header.clone(), 20))
        );
        let whole = [&expected[..], b"abcdefg"].concat();
        assert_eq!(
            Header::parse(&whole, b"", path()),
            Ok((header, 20)),
            "the same bytes in one buffer"
        );
    }
    const SUM: [u8; 2] = [0x4a, 0x42];

    /// Options as most hosts write them in a SYN (RFC 9293 §3.2, RFC 7323 appendix A).
    #[test]
    fn a_syn_with_every_option() {
        let header = Header {
            source_port: 1,
            destination_port: 2,
            flags: Flags::SYN,
            options: Options {
                mss: Some(1460),
                sack_permitted: true,
                timestamps: Some(Timestamps {
                    value: 0x0102_0304,
                    echo: 0,
                }),
                window_scale: Some(7),
                ..Options::default()
            },
            ..Header::default()
        };
        let bytes = emitted(&header, b"");
        assert_eq!(bytes[12], 0xa0);
        assert_eq!(
            bytes[20..],
            [
                2, 4, 0x05, 0xb4, // MSS
                4, 2, // SACK permitted
                8, 10, 1, 2, 3, 4, 0, 0, 0, 0, // timestamps
                1, 3, 3, 7, // window scale
            ]
        );
        assert_eq!(Header::parse(&bytes, b"", path()), Ok((header, 40)));
    }

    #[test]
    fn every_changed_bit_is_noticed() {
        let bytes = [&emitted(&Header::default(), b"hello")[..], b"hello"].concat();
        assert!(Header::parse(&bytes, b"", path()).is_ok());
        for bit in 0..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(Header::parse(&changed, b"", path()).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn lengths_are_checked_first_and_errors_name_offset_rule_and_value() {
        assert!(matches!(
            Header::parse(&[0; 19], b"", path()),
            Err(WireError::Field { offset: 19, .. })
        ));
        for words in [0u8, 4, 6] {
            let mut bytes = [0; 20];
            bytes[12] = words << 4;
            let error = Header::parse(&bytes, b"", path()).unwrap_err();
            let sentence = error.to_string();
            assert!(
                sentence.contains("offset 12") && sentence.contains(&format!("found {words}")),
                "{sentence}"
            );
        }
        let damaged = Header::parse(&[[0; 12], [0x50; 12]].concat(), b"", path()).unwrap_err();
        assert_eq!(damaged, WireError::Checksum { field: 0x5050 });
    }
}
