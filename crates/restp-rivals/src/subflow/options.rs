//! The MPTCP option (RFC 8684 §3, kind 30), version 1: MP_CAPABLE, MP_JOIN, DSS, ADD_ADDR and REMOVE_ADDR, byte for byte. Other
//! subtypes, and MP_CAPABLE of another version, are stepped over like options of an unknown kind.

use super::addresses;
pub use super::addresses::{AddAddress, Addresses};
use super::dss;
pub use super::dss::{Dss, Mapped, Number};
use restp_base::machine::Head;
use restp_services::connection_management::{Key, Nonce};

/// Kind of every MPTCP option (RFC 8684 §7).
pub(crate) const KIND: u8 = 30;
/// Subtypes (RFC 8684 §7.2), in the upper four bits of the third byte.
const CAPABLE: u8 = 0x00;
const JOIN: u8 = 0x10;
/// The only version whose bytes are known here.
const VERSION: u8 = 1;
/// Bits of MP_CAPABLE: check sums are required (A); no joins to this address (C); keys are hashed with SHA-256 (H).
const CHECKSUM_REQUIRED: u8 = 0x80;
const SHA256: u8 = 0x01;
/// Bit of MP_JOIN: a backup path.
const BACKUP: u8 = 0x01;
/// One MPTCP option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Multipath {
    /// MP_CAPABLE (RFC 8684 §3.1).
    Capable(Capable),
    /// MP_JOIN in a SYN (RFC 8684 §3.2, figure 5).
    Join {
        /// Only when no other path works.
        backup: bool,
        /// Names the sender's address.
        address: u8,
        /// Names the receiver's connection.
        token: [u8; 4],
        /// Fresh value of the sender.
        nonce: Nonce,
    },
    /// MP_JOIN in the answer (figure 6).
    JoinAnswer {
        /// Only when no other path works.
        backup: bool,
        /// Names the sender's address.
        address: u8,
        /// First 64 bits of the sender's HMAC.
        proof: [u8; 8],
        /// Fresh value of the sender.
        nonce: Nonce,
    },
    /// MP_JOIN in the third segment (figure 7): first 160 bits of the sender's HMAC.
    JoinProof([u8; 20]),
    /// Data sequence signal (RFC 8684 §3.3).
    Data(Dss),
    /// ADD_ADDR (RFC 8684 §3.4.1).
    AddAddress(AddAddress),
    /// REMOVE_ADDR (RFC 8684 §3.4.2).
    RemoveAddresses(Addresses),
}

/// MP_CAPABLE: 4, 12, 20 or 22 bytes, as far as the fields are there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capable {
    /// The sender wants check sums over mappings.
    pub checksums: bool,
    /// The sender's key: in the SYN-ACK and behind it.
    pub sender: Option<Key>,
    /// The key it has heard: behind the SYN-ACK.
    pub receiver: Option<Key>,
    /// Bytes of data that the first mapping covers, from the first byte on.
    pub length: Option<u16>,
}

impl Multipath {
    /// Bytes of the option, without padding.
    pub fn bytes(&self) -> usize {
        match self {
            Multipath::Capable(capable) => match capable {
                Capable { sender: None, .. } => 4,
                Capable { receiver: None, .. } => 12,
                Capable { length: None, .. } => 20,
                Capable { .. } => 22,
            },
            Multipath::Join { .. } => 12,
            Multipath::JoinAnswer { .. } => 16,
            Multipath::JoinProof(_) => 24,
            Multipath::Data(dss) => dss.bytes(),
            Multipath::AddAddress(added) => added.bytes(),
            Multipath::RemoveAddresses(removed) => removed.bytes(),
        }
    }

    /// It speaks of addresses, and nothing else in its segment is news.
    pub(crate) fn is_of_addresses(&self) -> bool {
        matches!(self, Multipath::AddAddress(_) | Multipath::RemoveAddresses(_))
    }

    /// Reads what stands behind kind and length. The outer `None`: the length fits no form of the subtype.
    #[allow(clippy::option_option, reason = "an unknown subtype is no error")]
    pub(crate) fn parse(value: &[u8]) -> Option<Option<Self>> {
        let (&first, rest) = value.split_first()?;
        match first & 0xf0 {
            CAPABLE if first & 0x0f == VERSION => Capable::parse(rest).map(Multipath::Capable).map(Some),
            JOIN => Self::parse_join(first & BACKUP != 0, rest).map(Some),
            dss::SUBTYPE => Dss::parse(rest).map(Multipath::Data).map(Some),
            addresses::ADD => AddAddress::parse(first, rest)
                .map(Multipath::AddAddress)
                .map(Some),
            addresses::REMOVE => Some(Addresses::parse(rest)?.map(Multipath::RemoveAddresses)),
            _ => Some(None),
        }
    }

    fn parse_join(backup: bool, rest: &[u8]) -> Option<Self> {
        let (&address, rest) = rest.split_first()?;
        match rest.len() {
            8 => Some(Multipath::Join {
                backup,
                address,
                token: *rest.first_chunk()?,
                nonce: *rest.last_chunk()?,
            }),
            12 => Some(Multipath::JoinAnswer {
                backup,
                address,
                proof: *rest.first_chunk()?,
                nonce: *rest.last_chunk()?,
            }),
            20 => Some(Multipath::JoinProof(*rest.first_chunk()?)),
            _ => None,
        }
    }

    /// Appends the option, without padding.
    pub(crate) fn emit(&self, out: &mut Head) {
        out.extend_from_slice(&[KIND, self.bytes() as u8]);
        match self {
            Multipath::Capable(capable) => {
                let checksums = if capable.checksums { CHECKSUM_REQUIRED } else { 0 };
                out.extend_from_slice(&[CAPABLE | VERSION, checksums | SHA256]);
                let keys = [capable.sender, capable.receiver];
                keys.iter().flatten().for_each(|key| out.extend_from_slice(key));
                if let Some(length) = capable.length {
                    out.extend_from_slice(&length.to_be_bytes());
                }
            }
            Multipath::Join {
                backup,
                address,
                token,
                nonce,
            } => {
                out.extend_from_slice(&[JOIN | u8::from(*backup), *address]);
                out.extend_from_slice(token);
                out.extend_from_slice(nonce);
            }
            Multipath::JoinAnswer {
                backup,
                address,
                proof,
                nonce,
            } => {
                out.extend_from_slice(&[JOIN | u8::from(*backup), *address]);
                out.extend_from_slice(proof);
                out.extend_from_slice(nonce);
            }
            Multipath::JoinProof(proof) => {
                out.extend_from_slice(&[JOIN, 0]);
                out.extend_from_slice(proof);
            }
            Multipath::Data(dss) => dss.emit(out),
            Multipath::AddAddress(added) => added.emit(out),
            Multipath::RemoveAddresses(removed) => removed.emit(out),
        }
    }
}

impl Capable {
    /// A form of 24 bytes has a check sum, which is ignored as that of a DSS.
    fn parse(rest: &[u8]) -> Option<Self> {
        let (&flags, rest) = rest.split_first()?;
        if !matches!(rest.len(), 0 | 8 | 16 | 18 | 20) {
            return None;
        }
        let length = rest
            .get(16..18)
            .map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]));
        Some(Capable {
            checksums: flags & CHECKSUM_REQUIRED != 0,
            sender: rest.first_chunk().copied(),
            receiver: rest.get(8..).and_then(|rest| rest.first_chunk()).copied(),
            length,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Key = [1, 2, 3, 4, 5, 6, 7, 8];
    const B: Key = [0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18];

    #[track_caller]
    fn both_ways(option: Multipath, expected: &[u8]) {
        let mut out = Head::new();
        option.emit(&mut out);
        assert_eq!(out[..], *expected);
        assert_eq!(usize::from(expected[1]), expected.len());
        assert_eq!(option.bytes(), expected.len());
        assert_eq!(Multipath::parse(&expected[2..]), Some(Some(option)));
    }

    /// RFC 8684 §3.1, figure 4: lengths 4, 12, 20 and 22; version 1; bit H for HMAC-SHA256.
    #[test]
    fn capable_byte_by_byte() {
        let mut capable = Capable::default();
        both_ways(Multipath::Capable(capable), &[30, 4, 0x01, 0x01]);
        capable.sender = Some(A);
        both_ways(
            Multipath::Capable(capable),
            &[30, 12, 0x01, 0x01, 1, 2, 3, 4, 5, 6, 7, 8],
        );
        capable.receiver = Some(B);
        let keys = [
            30, 20, 0x01, 0x01, 1, 2, 3, 4, 5, 6, 7, 8, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,
        ];
        both_ways(Multipath::Capable(capable), &keys);
        capable.length = Some(1400);
        let with_data = [&[30, 22], &keys[2..], &[0x05, 0x78]].concat();
        both_ways(Multipath::Capable(capable), &with_data);
        let with_checksum = [&with_data[2..], &[0xab, 0xcd]].concat();
        assert_eq!(
            Multipath::parse(&with_checksum),
            Some(Some(Multipath::Capable(capable)))
        );
        let required = Capable {
            checksums: true,
            ..Capable::default()
        };
        both_ways(Multipath::Capable(required), &[30, 4, 0x01, 0x81]);
    }

    /// RFC 8684 §3.2, figures 5 to 7: lengths 12, 16 and 24.
    #[test]
    fn join_byte_by_byte() {
        let (address, nonce) = (2, [0xaa, 0xbb, 0xcc, 0xdd]);
        let syn = Multipath::Join {
            backup: true,
            address,
            token: [9, 8, 7, 6],
            nonce,
        };
        both_ways(syn, &[30, 12, 0x11, 2, 9, 8, 7, 6, 0xaa, 0xbb, 0xcc, 0xdd]);
        let answer = Multipath::JoinAnswer {
            backup: false,
            address,
            proof: A,
            nonce,
        };
        both_ways(
            answer,
            &[30, 16, 0x10, 2, 1, 2, 3, 4, 5, 6, 7, 8, 0xaa, 0xbb, 0xcc, 0xdd],
        );
        let third = [&[30, 24, 0x10, 0][..], &[7; 20]].concat();
        both_ways(Multipath::JoinProof([7; 20]), &third);
    }

    #[test]
    fn other_versions_and_subtypes_are_stepped_over_and_wrong_lengths_are_not() {
        assert_eq!(Multipath::parse(&[0x00, 0x01]), Some(None), "version 0");
        assert_eq!(Multipath::parse(&[0x50, 1]), Some(None), "MP_PRIO");
        let wrong: [&[u8]; 9] = [
            &[],
            &[0x01],
            &[0x01, 0x01, 1],
            &[0x10],
            &[0x10, 0, 1, 2, 3],
            &[0x20],
            &[0x20, 0x01, 1, 2, 3],
            &[0x20, 0x03, 1, 2, 3, 4],
            &[0x20, 0x01, 1, 2, 3, 4, 5, 6],
        ];
        for bytes in wrong {
            assert_eq!(Multipath::parse(bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn whatever_is_read_is_written_again_to_the_same_meaning() {
        let mut chance = restp_base::random::Stream::named(1, "multipath options");
        for _ in 0..20_000 {
            let bytes: Vec<u8> = (0..chance.below(39))
                .map(|_| chance.bits() as u8 & 0x4f | chance.bits() as u8 & 0x30)
                .collect();
            let Some(Some(option)) = Multipath::parse(&bytes) else {
                continue;
            };
            let mut out = Head::new();
            option.emit(&mut out);
            assert_eq!(Multipath::parse(&out[2..]), Some(Some(option)));
        }
    }
}
