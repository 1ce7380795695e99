//! Addresses that come and go (RFC 8684 §3.4): ADD_ADDR (subtype 3) with its echo, and REMOVE_ADDR (subtype 4).

use restp_base::machine::Head;
use restp_services::connection_management::Keys;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Subtypes, in the upper four bits of the third byte (RFC 8684 §7.2).
pub(super) const ADD: u8 = 0x30;
pub(super) const REMOVE: u8 = 0x40;
/// Bit of ADD_ADDR: it echoes one of the receiver's addresses.
const ECHO: u8 = 0x01;
/// Identifiers in one REMOVE_ADDR: as many as Linux writes and reads. A longer list counts as none.
const MOST_REMOVED: usize = 8;
/// Bytes of the truncated HMAC.
const PROOF_BYTES: usize = 8;
/// Bytes of a port.
const PORT_BYTES: usize = 2;

/// An address of the sender, or the receiver's come back (RFC 8684 §3.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddAddress {
    /// By which MP_JOIN and REMOVE_ADDR name it.
    pub id: u8,
    /// The address.
    pub ip: IpAddr,
    /// Where joins go to; none: the port of the connection.
    pub port: Option<u16>,
    /// Last 64 bits of the sender's HMAC; none in an echo.
    pub proof: Option<[u8; PROOF_BYTES]>,
}

impl AddAddress {
    /// An announcement by the end that has `keys`.
    pub(crate) fn new(id: u8, ip: IpAddr, keys: Keys) -> Self {
        let plain = AddAddress {
            id,
            ip,
            port: None,
            proof: None,
        };
        AddAddress {
            proof: Some(keys.prove_address(&plain.message())),
            ..plain
        }
    }

    /// What is sent back, so that its sender need not repeat it.
    pub(crate) fn echo(self) -> Self {
        AddAddress { proof: None, ..self }
    }

    /// Is it the peer's, seen from the end that has `keys`?
    pub(crate) fn is_genuine(&self, keys: Keys) -> bool {
        self.proof
            .is_some_and(|proof| keys.verify_address(proof, &self.message()))
    }

    /// What the HMAC is computed over: identifier, address, and the port, or two zeros.
    fn message(&self) -> Vec<u8> {
        let port = self.port.unwrap_or(0).to_be_bytes();
        match self.ip {
            IpAddr::V4(ip) => [&[self.id][..], &ip.octets(), &port].concat(),
            IpAddr::V6(ip) => [&[self.id][..], &ip.octets(), &port].concat(),
        }
    }

    /// Reads what stands behind the third byte, `first`. Which fields are there follows from the length.
    pub(super) fn parse(first: u8, rest: &[u8]) -> Option<Self> {
        let (&id, rest) = rest.split_first()?;
        let (rest, proof) = if first & ECHO == 0 {
            let (rest, proof) = rest.split_last_chunk()?;
            (rest, Some(*proof))
        } else {
            (rest, None)
        };
        let (address, port) = if matches!(rest.len(), 6 | 18) {
            let (address, port) = rest.split_last_chunk()?;
            (address, Some(u16::from_be_bytes(*port)))
        } else {
            (rest, None)
        };
        let ip = match address.len() {
            4 => Ipv4Addr::from(*address.first_chunk::<4>()?).into(),
            16 => Ipv6Addr::from(*address.first_chunk::<16>()?).into(),
            _ => return None,
        };
        Some(AddAddress { id, ip, port, proof })
    }

    /// Bytes of the option, without padding.
    pub(super) fn bytes(&self) -> usize {
        let address = if self.ip.is_ipv4() { 4 } else { 16 };
        let port = self.port.map_or(0, |_| PORT_BYTES);
        4 + address + port + self.proof.map_or(0, |_| PROOF_BYTES)
    }

    /// Appends subtype and fields.
    pub(super) fn emit(&self, out: &mut Head) {
        let echo = if self.proof.is_none() { ECHO } else { 0 };
        out.extend_from_slice(&[ADD | echo, self.id]);
        match self.ip {
            IpAddr::V4(ip) => out.extend_from_slice(&ip.octets()),
            IpAddr::V6(ip) => out.extend_from_slice(&ip.octets()),
        }
        if let Some(port) = self.port {
            out.extend_from_slice(&port.to_be_bytes());
        }
        if let Some(proof) = self.proof {
            out.extend_from_slice(&proof);
        }
    }
}

/// Identifiers of addresses that the sender has no longer (RFC 8684 §3.4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    ids: [u8; MOST_REMOVED],
    count: u8,
}

impl Addresses {
    /// This one alone.
    pub fn one(id: u8) -> Self {
        let mut ids = [0; MOST_REMOVED];
        ids[0] = id;
        Addresses { ids, count: 1 }
    }

    /// The identifiers.
    pub fn ids(&self) -> &[u8] {
        &self.ids[..usize::from(self.count)]
    }

    /// Reads the identifiers. The outer `None`: there is none; the inner one: more than can be taken.
    #[allow(clippy::option_option, reason = "a long list is no error")]
    pub(super) fn parse(rest: &[u8]) -> Option<Option<Self>> {
        let mut ids = [0; MOST_REMOVED];
        let Some(taken) = ids.get_mut(..rest.len()) else {
            return Some(None);
        };
        taken.copy_from_slice(rest);
        let count = rest.len() as u8;
        (count > 0).then_some(Some(Addresses { ids, count }))
    }

    /// Bytes of the option, without padding.
    pub(super) fn bytes(&self) -> usize {
        3 + self.ids().len()
    }

    /// Appends subtype and identifiers.
    pub(super) fn emit(&self, out: &mut Head) {
        out.push(REMOVE);
        out.extend_from_slice(self.ids());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subflow::options::Multipath;
    use restp_services::connection_management::JoinHash;

    const A: [u8; 8] = [1, 2, 3, 4, 5, 6, 7, 8];
    const B: [u8; 8] = [0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18];
    const V4: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 1, 2));
    const V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1));

    fn keys(local: [u8; 8], remote: [u8; 8]) -> Keys {
        Keys {
            local,
            remote,
            hash: JoinHash::Sha256,
        }
    }

    #[track_caller]
    fn both_ways(option: Multipath, expected: &[u8]) {
        let mut out = Head::new();
        option.emit(&mut out);
        assert_eq!((&out[..], option.bytes()), (expected, expected.len()));
        assert_eq!(usize::from(expected[1]), expected.len());
        assert_eq!(Multipath::parse(&expected[2..]), Some(Some(option)));
    }

    /// RFC 8684 §3.4.1, figure 12: 16 and 28 bytes, 2 more with a port, 8 less in an echo. The HMACs are those of Python's hmac.
    #[test]
    fn announcements_byte_by_byte() {
        let v4 = AddAddress::new(5, V4, keys(A, B));
        let proof = [0x5b, 0xc9, 0xf0, 0x7a, 0x52, 0xe1, 0x99, 0xbd];
        let bytes = [&[30, 16, 0x30, 5, 10, 0, 1, 2][..], &proof].concat();
        both_ways(Multipath::AddAddress(v4), &bytes);
        both_ways(Multipath::AddAddress(v4.echo()), &[30, 8, 0x31, 5, 10, 0, 1, 2]);
        let with_port = AddAddress {
            port: Some(8080),
            ..v4
        };
        let bytes = [&[30, 18, 0x30, 5, 10, 0, 1, 2, 0x1f, 0x90][..], &proof].concat();
        both_ways(Multipath::AddAddress(with_port), &bytes);
        let echo = [30, 10, 0x31, 5, 10, 0, 1, 2, 0x1f, 0x90];
        both_ways(Multipath::AddAddress(with_port.echo()), &echo);
        let v6 = AddAddress::new(6, V6, keys(A, B));
        let address = [&[0x20, 0x01, 0x0d, 0xb8][..], &[0; 11], &[1]].concat();
        let proof = [0x99, 0xa8, 0xb5, 0x7f, 0x8a, 0xab, 0x50, 0x18];
        let bytes = [&[30, 28, 0x30, 6][..], &address, &proof].concat();
        both_ways(Multipath::AddAddress(v6), &bytes);
        let bytes = [&[30, 20, 0x31, 6][..], &address].concat();
        both_ways(Multipath::AddAddress(v6.echo()), &bytes);
    }

    #[test]
    fn an_announcement_is_genuine_with_the_keys_address_and_port_of_its_sender() {
        let announced = AddAddress::new(5, V4, keys(A, B));
        let peer = keys(B, A);
        assert!(announced.is_genuine(peer));
        assert!(!announced.is_genuine(keys(A, B)), "reflected");
        assert!(!announced.echo().is_genuine(peer), "an echo proves nothing");
        let changes: [fn(&mut AddAddress); 4] = [
            |other| other.id = 6,
            |other| other.ip = Ipv4Addr::new(10, 0, 1, 3).into(),
            |other| other.port = Some(8080),
            |other| other.proof = other.proof.map(|proof| proof.map(|byte| byte ^ 1)),
        ];
        for change in changes {
            let mut other = announced;
            change(&mut other);
            assert!(!other.is_genuine(peer), "{other:?}");
        }
    }

    /// RFC 8684 §3.4.2, figure 13: 3 bytes and one for each identifier.
    #[test]
    fn removals_byte_by_byte() {
        both_ways(Multipath::RemoveAddresses(Addresses::one(7)), &[30, 4, 0x40, 7]);
        let Some(Some(Multipath::RemoveAddresses(three))) = Multipath::parse(&[0x40, 1, 2, 3]) else {
            panic!("three identifiers")
        };
        assert_eq!(three.ids(), [1, 2, 3]);
        both_ways(Multipath::RemoveAddresses(three), &[30, 6, 0x40, 1, 2, 3]);
    }

    #[test]
    fn wrong_lengths_are_refused_and_long_lists_stepped_over() {
        for rest in [0, 1, 4, 5, 9, 11, 14, 20, 26, 31] {
            let bytes = [&[0x30][..], &vec![0; rest]].concat();
            assert_eq!(Multipath::parse(&bytes), None, "{rest} bytes");
        }
        for rest in [0, 1, 4, 6, 8, 16, 18] {
            let bytes = [&[0x31][..], &vec![0; rest]].concat();
            assert_eq!(Multipath::parse(&bytes), None, "{rest} bytes");
        }
        assert_eq!(Multipath::parse(&[0x40]), None);
        assert_eq!(Multipath::parse(&[0x40, 1, 2, 3, 4, 5, 6, 7, 8, 9]), Some(None));
    }
}
