//! What all tickets have in common: a name with a version, then digits of bytes, whose last four check the others.
//!
//! ```text
//! name "2-" base64url( content | CRC-32 )
//! address = family 1 | address 4, 8 or 16 | port 0 or 2
//! ```
//!
//! The family is 4 or 6. Further bits of it: `10`, the address is one that a relay has for the host; `20`, the port is that of the
//! address before it, and 7070 in the first; `40`, the first 8 bytes are those of the IPv6 address before it.
//!
//! Version 1 is read as before: base 32 in any case, the version before the content, every port and every address written out.

use super::TicketError;
use crate::address::DEFAULT_PORT;
use data_encoding::{BASE32_NOPAD, BASE64URL_NOPAD};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

const VERSION: u8 = 2;
const IPV4: u8 = 4;
const IPV6: u8 = 6;
const RELAYED: u8 = 0x10;
const SAME_PORT: u8 = 0x20;
const SAME_NETWORK: u8 = 0x40;

/// The version of `word` and its digits, if it begins as tickets called `name` do.
pub(crate) fn split<'a>(name: &str, word: &'a str) -> Option<(u8, &'a str)> {
    let (start, digits) = word.trim().split_once('-')?;
    let called = start.get(..name.len())?;
    let version = start[name.len()..].parse().ok()?;
    called.eq_ignore_ascii_case(name).then_some((version, digits))
}

/// Bytes that were not damaged on their way.
pub(crate) struct Content {
    version: u8,
    bytes: Vec<u8>,
}

impl Content {
    /// Of these digits of a ticket of this version.
    pub fn of((version, digits): (u8, &str)) -> Result<Self, TicketError> {
        let decoded = match version {
            1 => BASE32_NOPAD.decode(digits.to_uppercase().as_bytes()),
            VERSION => BASE64URL_NOPAD.decode(digits.as_bytes()),
            _ => return Err(TicketError::Version(version)),
        };
        let mut bytes = decoded.map_err(|_| TicketError::Damaged("a character is wrong or missing"))?;
        let Some((content, sum)) = bytes.split_last_chunk() else {
            return Err(TicketError::Damaged("it is too short"));
        };
        if checksum(content) != *sum {
            return Err(TicketError::Damaged("its check sum is wrong"));
        }
        bytes.truncate(content.len());
        Ok(Content { version, bytes })
    }

    /// From its beginning.
    pub fn reader(&self) -> Result<Reader<'_>, TicketError> {
        let mut reader = Reader {
            version: self.version,
            rest: &self.bytes,
            port: DEFAULT_PORT,
            network: None,
        };
        match self.version {
            1 => match reader.number()? {
                1 => Ok(reader),
                other => Err(TicketError::Version(other)),
            },
            _ => Ok(reader),
        }
    }
}

/// What is left to read.
pub(crate) struct Reader<'a> {
    version: u8,
    rest: &'a [u8],
    /// Of the address before.
    port: u16,
    /// Of the IPv6 address before.
    network: Option<[u8; 8]>,
}

impl Reader<'_> {
    /// Of the ticket.
    pub fn version(&self) -> u8 {
        self.version
    }

    pub fn take<const N: usize>(&mut self) -> Result<[u8; N], TicketError> {
        let (first, rest) = self
            .rest
            .split_first_chunk()
            .ok_or(TicketError::Damaged("its length is wrong"))?;
        self.rest = rest;
        Ok(*first)
    }

    pub fn number(&mut self) -> Result<u8, TicketError> {
        let [number] = self.take()?;
        Ok(number)
    }

    /// One that can be reached, and whether a relay has it for the host.
    pub fn address(&mut self) -> Result<(SocketAddr, bool), TicketError> {
        let unknown = TicketError::Damaged("an address is of no known family");
        let family = self.number()?;
        let marks = match self.version {
            1 => RELAYED,
            _ => RELAYED | SAME_PORT | SAME_NETWORK,
        };
        let ip = match (family & !marks, family & SAME_NETWORK) {
            (IPV4, 0) => IpAddr::from(self.take::<4>()?),
            (IPV6, 0) => IpAddr::from(self.take::<16>()?),
            (IPV6, _) => {
                let [network, host] = [self.network.ok_or(unknown)?, self.take()?].map(u64::from_be_bytes);
                Ipv6Addr::from_bits(u128::from(network) << 64 | u128::from(host)).into()
            }
            _ => return Err(unknown),
        };
        if family & SAME_PORT == 0 {
            self.port = u16::from_be_bytes(self.take()?);
        }
        self.network = network(ip).or(self.network);
        let address = reachable(SocketAddr::new(ip, self.port))?;
        Ok((address, family & RELAYED != 0))
    }

    /// Nothing is left.
    pub fn end(self) -> Result<(), TicketError> {
        match self.rest.is_empty() {
            true => Ok(()),
            false => Err(TicketError::Damaged("its length is wrong")),
        }
    }
}

/// A ticket that is being written.
pub(crate) struct Writer {
    name: &'static str,
    content: Vec<u8>,
    port: u16,
    network: Option<[u8; 8]>,
}

impl Writer {
    /// Called `name`, with nothing in it.
    pub fn of(name: &'static str) -> Self {
        Writer {
            name,
            content: Vec::new(),
            port: DEFAULT_PORT,
            network: None,
        }
    }

    pub fn put(&mut self, bytes: &[u8]) {
        self.content.extend_from_slice(bytes);
    }

    /// As [`Reader::address`] reads it.
    pub fn put_address(&mut self, address: SocketAddr, is_relayed: bool) {
        let own = network(address.ip());
        let (same_port, same_network) = (address.port() == self.port, own.is_some() && own == self.network);
        let mark = |is_set, mark| if is_set { mark } else { 0 };
        let marks = mark(is_relayed, RELAYED) | mark(same_port, SAME_PORT) | mark(same_network, SAME_NETWORK);
        match address.ip() {
            IpAddr::V4(ip) => {
                self.put(&[IPV4 | marks]);
                self.put(&ip.octets());
            }
            IpAddr::V6(ip) => {
                self.put(&[IPV6 | marks]);
                self.put(&ip.octets()[if same_network { 8 } else { 0 }..]);
            }
        }
        if !same_port {
            self.put(&address.port().to_be_bytes());
        }
        self.port = address.port();
        self.network = own.or(self.network);
    }

    /// The whole ticket.
    pub fn word(mut self) -> String {
        let sum = checksum(&self.content);
        self.put(&sum);
        format!("{}{VERSION}-{}", self.name, BASE64URL_NOPAD.encode(&self.content))
    }
}

fn network(ip: IpAddr) -> Option<[u8; 8]> {
    match ip {
        IpAddr::V4(_) => None,
        IpAddr::V6(ip) => Some(((ip.to_bits() >> 64) as u64).to_be_bytes()),
    }
}

/// A destination has a port.
pub(crate) fn reachable(address: SocketAddr) -> Result<SocketAddr, TicketError> {
    match address.port() {
        0 => Err(TicketError::NoPort(address)),
        _ => Ok(address),
    }
}

/// CRC-32 (IEEE 802.3): a slip of the copying hand is noticed.
fn checksum(bytes: &[u8]) -> [u8; 4] {
    crc32fast::hash(bytes).to_be_bytes()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is a failed test")]

    use super::*;

    fn at(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn addresses_say_what_the_one_before_did_not() {
        let written = [
            ("192.0.2.1:7070", 5),
            ("192.0.2.2:4000", 7),
            ("[2001:db8::1]:4000", 17),
            ("198.51.100.1:4000", 5),
            ("[2001:db8::ffff:0:0:2]:4000", 9),
            ("[2001:db8::3]:4001", 11),
            ("[2001:db8:0:1::1]:4001", 17),
        ];
        let mut out = Writer::of("restp");
        let mut before = 0;
        for (text, length) in written {
            out.put_address(at(text), text.contains("51"));
            assert_eq!(out.content.len() - before, length, "{text}");
            before = out.content.len();
        }
        let word = out.word();
        let content = Content::of(split("restp", &word).unwrap()).unwrap();
        let mut rest = content.reader().unwrap();
        for (text, _) in written {
            assert_eq!(rest.address(), Ok((at(text), text.contains("51"))));
        }
        assert_eq!(rest.end(), Ok(()));
    }

    #[test]
    fn an_address_that_leans_on_nothing_is_no_address() {
        for family in [IPV4 | SAME_NETWORK, IPV6 | SAME_NETWORK, 5, IPV4 | 0x80] {
            let content = Content {
                version: VERSION,
                bytes: [&[family][..], &[1; 18]].concat(),
            };
            let mut rest = content.reader().unwrap();
            assert!(
                matches!(rest.address(), Err(TicketError::Damaged(_))),
                "{family:x}"
            );
        }
    }

    #[test]
    fn a_word_begins_with_its_name_and_version() {
        assert_eq!(split("restp", "RESTP2-Ab-c"), Some((2, "Ab-c")));
        for other in [
            "restp-1",
            "restpc2-a",
            "restp2",
            "restp2024-01.tar",
            "re",
            "réstp2-a",
            "",
        ] {
            assert_eq!(split("restp", other), None, "{other}");
        }
    }
}
