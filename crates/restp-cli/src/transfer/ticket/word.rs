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
use crate::address::{DEFAULT_PORT, is_of_one_host};
use data_encoding::{BASE32_NOPAD, BASE64URL_NOPAD};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Most addresses of one ticket; further ones are left out.
pub(crate) const MAX_ADDRESSES: usize = 16;

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
    let version = &start[name.len()..];
    let number = version.parse::<u8>().ok()?;
    // A number is written in one way: other programs take two words for two tickets.
    let is_one = called.eq_ignore_ascii_case(name) && version == number.to_string();
    is_one.then_some((number, digits))
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
            1 => BASE32_NOPAD.decode(digits.to_ascii_uppercase().as_bytes()),
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

    /// So many that can be reached, and whether a relay has them for the host.
    pub fn addresses(&mut self, count: u8) -> Result<Vec<(SocketAddr, bool)>, TicketError> {
        if usize::from(count) > MAX_ADDRESSES {
            return Err(TicketError::Damaged("it has too many addresses"));
        }
        (0..count).map(|_| self.address()).collect()
    }

    fn address(&mut self) -> Result<(SocketAddr, bool), TicketError> {
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

/// A destination is one host, and has a port.
pub(crate) fn reachable(address: SocketAddr) -> Result<SocketAddr, TicketError> {
    match address.port() {
        0 => Err(TicketError::NoPort(address)),
        _ if !is_of_one_host(address.ip()) => Err(TicketError::NoHost(address)),
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
        let read = written.map(|(text, _)| (at(text), text.contains("51")));
        assert_eq!(rest.addresses(written.len() as u8), Ok(read.to_vec()));
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

    /// As a name of many hosts would be, or of none.
    #[test]
    fn an_address_of_no_single_host_is_not_sent_to() {
        for text in [
            "0.0.0.0:9",
            "[::]:9",
            "224.0.0.1:9",
            "[ff02::1]:9",
            "255.255.255.255:9",
            "[::ffff:0.0.0.0]:9",
            "[::ffff:224.0.0.1]:9",
        ] {
            let mut out = Writer::of("restp");
            out.put_address(at(text), false);
            let word = out.word();
            let content = Content::of(split("restp", &word).unwrap()).unwrap();
            let read = content.reader().unwrap().addresses(1);
            assert_eq!(read, Err(TicketError::NoHost(at(text))));
        }
    }

    #[test]
    fn no_letter_of_version_1_stands_for_another_one() {
        let digits = "aebajqaaaiaq7iageaaq3oaaaaaaaaaaaaaaaaaaaeh2da545kia";
        assert!(Content::of((1, digits)).is_ok());
        let dotless = digits.replacen('i', "ı", 1); // whose capital is I as well
        assert!(Content::of((1, &dotless)).is_err());
    }

    #[test]
    fn a_word_begins_with_its_name_and_version() {
        assert_eq!(split("restp", "RESTP2-Ab-c"), Some((2, "Ab-c")));
        for other in [
            "restp-1",
            "restpc2-a",
            "restp2",
            "restp2024-01.tar",
            "restp+2-a",
            "restp02-a",
            "re",
            "réstp2-a",
            "",
        ] {
            assert_eq!(split("restp", other), None, "{other}");
        }
    }
}
