//! A ticket: where a receiver can be reached, as one word that can be copied.
//!
//! ```text
//! "restp1-" base32( version 1 | count 1 | count × (family 1 | address 4 or 16 | port 2) | key 32 | capability 16 | CRC-32 of all before )
//! ```
//!
//! A bit of the family, `10`, says that the address is one that a relay has for the receiver.
//!
//! The next bit of the count says that the receiver seals and that its public key follows; without it it is one that
//! neither encrypts nor authenticates.
//!
//! The one after it says that a capability follows: the receiver takes files from who shows it.
//!
//! The high bit of the count says that the receiver was told to listen at each of these addresses: then they are paths to
//! use at once, and not guesses at how it can be reached.

use super::Capability;
use super::message::printable;
use data_encoding::BASE32_NOPAD;
use restp::PublicKey;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use thiserror::Error;

const PREFIX: &str = "restp1-";
const VERSION: u8 = 1;
const IPV4: u8 = 4;
const IPV6: u8 = 6;
/// In the family: the address is one that a relay has for the receiver.
const RELAYED: u8 = 0x10;

/// The addresses of a receiver, in the order in which to try them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket {
    addresses: Vec<SocketAddr>,
    /// Those of them that relays have for the receiver.
    relays: Vec<SocketAddr>,
    several: bool,
    key: Option<PublicKey>,
    capability: Option<Capability>,
}

/// In the count: a capability follows the key.
const CAPABLE: u8 = 0x20;
/// In the count: a key follows the addresses.
const KEYED: u8 = 0x40;
/// In the count: each address is a path.
const SEVERAL: u8 = 0x80;

/// Why a word is no ticket.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TicketError {
    /// Neither a ticket nor an address.
    #[error(
        "\"{0}\" is neither a ticket nor an address; write the word after \"ticket:\" that `restp recv` or `restp serve` printed, or write IP:PORT, such as 127.0.0.1:7000"
    )]
    Neither(String),
    /// Port 0 stands for any free port of one's own, and for none of another host.
    #[error(
        "{0}: nobody can be reached at port 0; write IP:PORT, such as 127.0.0.1:7000, with the port that `restp recv` or `restp serve` printed"
    )]
    NoPort(SocketAddr),
    /// Characters were lost or changed.
    #[error("the ticket is damaged ({0}); copy the whole word that `restp recv` or `restp serve` printed")]
    Damaged(&'static str),
    /// Of another version.
    #[error(
        "the ticket is of version {0}, only version {VERSION} is known here; use the same release of restp on both sides"
    )]
    Version(u8),
}

impl Ticket {
    /// Does `word` begin as tickets do?
    pub fn is_one(word: &str) -> bool {
        let start = word.trim().get(..PREFIX.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(PREFIX))
    }

    /// Most addresses of one ticket; further ones are left out.
    pub const MAX_ADDRESSES: usize = 16;

    /// A ticket of these addresses.
    pub fn new(mut addresses: Vec<SocketAddr>) -> Self {
        addresses.truncate(Self::MAX_ADDRESSES);
        Ticket {
            addresses,
            relays: Vec::new(),
            several: false,
            key: None,
            capability: None,
        }
    }

    /// A ticket whose addresses are paths to use at once.
    pub fn of_paths(addresses: Vec<SocketAddr>) -> Self {
        let ticket = Ticket::new(addresses);
        Ticket {
            several: ticket.addresses.len() > 1,
            ..ticket
        }
    }

    /// The same, of a receiver with this key.
    #[must_use]
    pub fn with_key(self, key: Option<PublicKey>) -> Self {
        Ticket { key, ..self }
    }

    /// The same, of a receiver that takes files from who shows this.
    #[must_use]
    pub fn with_capability(self, capability: Option<Capability>) -> Self {
        Ticket { capability, ..self }
    }

    /// The same, of a receiver that is reached at these addresses of relays as well, where no other one leads to it.
    #[must_use]
    pub fn with_relays(mut self, relays: Vec<SocketAddr>) -> Self {
        self.addresses
            .truncate(Self::MAX_ADDRESSES.saturating_sub(relays.len()));
        self.addresses.extend(&relays);
        self.addresses.truncate(Self::MAX_ADDRESSES);
        self.relays.extend(relays);
        self
    }

    /// Those of its addresses that relays have for the receiver.
    pub fn relays(&self) -> &[SocketAddr] {
        &self.relays
    }

    /// What lets its holder send; none where the receiver does not ask for it.
    pub fn capability(&self) -> Option<Capability> {
        self.capability.clone()
    }

    /// The key of the receiver; none if it does not seal.
    pub fn key(&self) -> Option<PublicKey> {
        self.key
    }

    /// Are its addresses paths to use at once?
    pub fn has_paths(&self) -> bool {
        self.several
    }

    /// Where to try, in this order.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    fn parse(bytes: &[u8]) -> Result<Self, TicketError> {
        let Some((content, sum)) = bytes.split_last_chunk() else {
            return Err(TicketError::Damaged("it is too short"));
        };
        if checksum(content) != *sum {
            return Err(TicketError::Damaged("its check sum is wrong"));
        }
        let mut rest = Bytes(content);
        let version = rest.number()?;
        if version != VERSION {
            return Err(TicketError::Version(version));
        }
        let count = rest.number()?;
        let (mut addresses, mut relays) = (Vec::new(), Vec::new());
        for _ in 0..count & !(SEVERAL | KEYED | CAPABLE) {
            let (address, is_relayed) = rest.marked_address()?;
            let list = if is_relayed { &mut relays } else { &mut addresses };
            list.push(reachable(address)?);
        }
        let key = match count & KEYED {
            0 => None,
            _ => Some(PublicKey(rest.take()?)),
        };
        let capability = match count & CAPABLE {
            0 => None,
            _ => Some(Capability::from(rest.take()?)),
        };
        if addresses.is_empty() && relays.is_empty() || !rest.0.is_empty() {
            return Err(TicketError::Damaged("its length is wrong"));
        }
        let ticket = match count & SEVERAL {
            0 => Ticket::new(addresses),
            _ => Ticket::of_paths(addresses),
        };
        Ok(ticket
            .with_relays(relays)
            .with_key(key)
            .with_capability(capability))
    }
}

/// Without the zone of an IPv6 address, which is a number of this host alone (RFC 4007 §6).
impl fmt::Display for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let several = if self.several { SEVERAL } else { 0 };
        let keyed = if self.key.is_some() { KEYED } else { 0 };
        let capable = if self.capability.is_some() { CAPABLE } else { 0 };
        let mut content = vec![VERSION, self.addresses.len() as u8 | several | keyed | capable];
        for address in &self.addresses {
            let family = content.len();
            emit_address(&mut content, *address);
            if self.relays.contains(address) {
                content[family] |= RELAYED;
            }
        }
        if let Some(key) = &self.key {
            content.extend_from_slice(&key.0);
        }
        if let Some(capability) = &self.capability {
            content.extend_from_slice(capability.bytes());
        }
        let sum = checksum(&content);
        content.extend_from_slice(&sum);
        write!(f, "{PREFIX}{}", BASE32_NOPAD.encode(&content).to_lowercase())
    }
}

impl FromStr for Ticket {
    type Err = TicketError;

    /// A ticket, or one bare address.
    fn from_str(word: &str) -> Result<Self, TicketError> {
        let word = word.trim();
        if let Ok(address) = word.parse() {
            return Ok(Ticket::new(vec![reachable(address)?]));
        }
        let Some(encoded) = word
            .get(..PREFIX.len())
            .filter(|start| start.eq_ignore_ascii_case(PREFIX))
        else {
            return Err(TicketError::Neither(printable(word.as_bytes())));
        };
        let bytes = BASE32_NOPAD
            .decode(word[encoded.len()..].to_uppercase().as_bytes())
            .map_err(|_| TicketError::Damaged("a character is wrong or missing"))?;
        Ticket::parse(&bytes)
    }
}

/// As [`Bytes::address`] reads it.
pub(crate) fn emit_address(content: &mut Vec<u8>, address: SocketAddr) {
    match address.ip() {
        IpAddr::V4(ip) => {
            content.push(IPV4);
            content.extend_from_slice(&ip.octets());
        }
        IpAddr::V6(ip) => {
            content.push(IPV6);
            content.extend_from_slice(&ip.octets());
        }
    }
    content.extend_from_slice(&address.port().to_be_bytes());
}

/// A destination has a port.
pub(crate) fn reachable(address: SocketAddr) -> Result<SocketAddr, TicketError> {
    match address.port() {
        0 => Err(TicketError::NoPort(address)),
        _ => Ok(address),
    }
}

/// CRC-32 (IEEE 802.3): a slip of the copying hand is noticed.
pub(crate) fn checksum(bytes: &[u8]) -> [u8; 4] {
    crc32fast::hash(bytes).to_be_bytes()
}

/// What is left to read.
pub(crate) struct Bytes<'a>(pub(crate) &'a [u8]);

impl Bytes<'_> {
    pub(crate) fn take<const N: usize>(&mut self) -> Result<[u8; N], TicketError> {
        let (first, rest) = self
            .0
            .split_first_chunk()
            .ok_or(TicketError::Damaged("its length is wrong"))?;
        self.0 = rest;
        Ok(*first)
    }

    pub(crate) fn number(&mut self) -> Result<u8, TicketError> {
        let [number] = self.take()?;
        Ok(number)
    }

    pub(crate) fn address(&mut self) -> Result<SocketAddr, TicketError> {
        match self.marked_address()? {
            (address, false) => Ok(address),
            (_, true) => Err(TicketError::Damaged("an address is of no known family")),
        }
    }

    /// And whether it is one of a relay.
    fn marked_address(&mut self) -> Result<(SocketAddr, bool), TicketError> {
        let family = self.number()?;
        let ip = match family & !RELAYED {
            IPV4 => IpAddr::from(self.take::<4>()?),
            IPV6 => IpAddr::from(self.take::<16>()?),
            _ => return Err(TicketError::Damaged("an address is of no known family")),
        };
        let address = SocketAddr::new(ip, u16::from_be_bytes(self.take()?));
        Ok((address, family & RELAYED != 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticket() -> Ticket {
        let addresses = ["192.0.2.1:4000", "[2001:db8::1]:4001"];
        Ticket::new(addresses.map(|text| text.parse().expect("an address")).to_vec())
    }

    #[test]
    fn a_ticket_is_one_word_that_reads_back() {
        let word = ticket().to_string();
        assert!(word.starts_with(PREFIX) && word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-'));
        assert_eq!(word.parse(), Ok(ticket()));
        assert_eq!(format!(" {}\n", word.to_uppercase()).parse(), Ok(ticket()));
    }

    #[test]
    fn a_ticket_says_whether_its_addresses_are_paths() {
        let paths = Ticket::of_paths(ticket().addresses().to_vec());
        assert!(paths.has_paths() && !ticket().has_paths());
        assert_eq!(paths.to_string().parse(), Ok(paths.clone()));
        assert!(!Ticket::of_paths(paths.addresses()[..1].to_vec()).has_paths());
    }

    #[test]
    fn a_ticket_may_hold_a_key_and_a_capability() {
        let (key, capability) = (PublicKey([0xA5; 32]), Capability::from([0x5A; 16]));
        let keyed = Ticket::of_paths(ticket().addresses().to_vec()).with_key(Some(key));
        let bare = keyed.clone();
        let keyed = keyed.with_capability(Some(capability.clone()));
        assert_eq!(bare.to_string().parse(), Ok(bare.clone()));
        assert_eq!((keyed.capability(), bare.capability()), (Some(capability), None));
        assert_eq!(keyed.to_string().parse(), Ok(keyed.clone()));
        assert_eq!((keyed.key(), ticket().key()), (Some(key), None));
        let word = keyed.to_string();
        for cut in PREFIX.len()..word.len() {
            let error = word[..cut].parse::<Ticket>().expect_err("cut");
            assert!(matches!(error, TicketError::Damaged(_)), "{error}");
        }
    }

    #[test]
    fn a_ticket_tells_addresses_of_relays_from_others() {
        let relays =
            ["198.51.100.7:41000", "[2001:db8::7]:41000"].map(|text| text.parse().expect("an address"));
        let relayed = ticket().with_relays(relays.to_vec());
        assert_eq!(relayed.to_string().parse(), Ok(relayed.clone()));
        assert_eq!(relayed.addresses().len(), 4);
        assert_eq!((relayed.relays(), ticket().relays()), (&relays[..], &[][..]));
        let only = Ticket::new(Vec::new()).with_relays(relays.to_vec());
        assert_eq!(only.to_string().parse(), Ok(only.clone()));
        let many = vec![ticket().addresses()[0]; Ticket::MAX_ADDRESSES];
        let full = Ticket::new(many).with_relays(relays.to_vec());
        assert_eq!(full.addresses().len(), Ticket::MAX_ADDRESSES);
        assert!(
            full.addresses().ends_with(&relays),
            "who needs the relay has no other way"
        );
    }

    #[test]
    fn a_bare_address_is_a_ticket_of_one() {
        let one: Ticket = "127.0.0.1:9".parse().expect("an address");
        assert_eq!(one.addresses(), ["127.0.0.1:9".parse().expect("an address")]);
    }

    #[test]
    fn port_0_is_nobodys() {
        let address: SocketAddr = "127.0.0.1:0".parse().expect("an address");
        assert_eq!("127.0.0.1:0".parse::<Ticket>(), Err(TicketError::NoPort(address)));
        let word = Ticket::new(vec![address]).to_string();
        assert_eq!(word.parse::<Ticket>(), Err(TicketError::NoPort(address)));
    }

    #[test]
    fn a_changed_or_cut_ticket_is_noticed() {
        let word = ticket().to_string();
        for cut in PREFIX.len()..word.len() {
            let error = word[..cut].parse::<Ticket>().expect_err("cut");
            assert!(matches!(error, TicketError::Damaged(_)), "{error}");
        }
        let mut changed = word.into_bytes();
        let last = changed.len() - 5;
        changed[last] = if changed[last] == b'a' { b'b' } else { b'a' };
        let changed = String::from_utf8(changed).expect("text");
        assert!(matches!(changed.parse::<Ticket>(), Err(TicketError::Damaged(_))));
    }

    #[test]
    fn other_versions_and_words_are_told_apart() {
        let mut content = vec![2, 0];
        content.extend_from_slice(&checksum(&[2, 0]));
        let word = format!("{PREFIX}{}", BASE32_NOPAD.encode(&content));
        assert_eq!(word.parse::<Ticket>(), Err(TicketError::Version(2)));
        let neither = "example.org"
            .parse::<Ticket>()
            .expect_err("no address")
            .to_string();
        assert!(
            neither.contains("example.org") && neither.contains("ticket"),
            "{neither}"
        );
        assert!("".parse::<Ticket>().is_err() && "restp1-".parse::<Ticket>().is_err());
    }

    /// Found by fuzzing: it was expected to come back.
    #[test]
    fn the_zone_of_an_address_serves_here_and_does_not_travel() {
        let here: Ticket = "[fe80::1%7]:7000".parse().unwrap();
        assert_eq!(here.addresses()[0].to_string(), "[fe80::1%7]:7000");
        let there: Ticket = here.to_string().parse().unwrap();
        assert_eq!(there.addresses()[0].to_string(), "[fe80::1]:7000");
    }
}
