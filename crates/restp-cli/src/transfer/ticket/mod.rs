//! A ticket: where a receiver can be reached, as one word that can be copied.
//!
//! ```text
//! "restp2-" base64url( count 1 | addresses | key 32 | capability 8 | CRC-32 of all before )
//! ```
//!
//! The high bit of the count says that the receiver was told to listen at each of these addresses: then they are paths to
//! use at once, and not guesses at how it can be reached.
//!
//! The next bit says that the receiver seals and that its public key follows; without it it is one that neither encrypts nor
//! authenticates.
//!
//! The one after it says that a capability follows: the receiver takes files from who shows it.
//!
//! What all tickets have in common is in [`word`], and so is how those of version 1 differ.

pub(crate) mod word;

use super::Capability;
use super::message::printable;
use restp::PublicKey;
use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;
use thiserror::Error;
use word::{Content, MAX_ADDRESSES, Reader, Writer, reachable};

const NAME: &str = "restp";

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
    /// It stands for no host, or for many.
    #[error(
        "{0}: that is no address of one host; write IP:PORT, such as 127.0.0.1:7000, with an address of the host where `restp recv` or `restp serve` runs"
    )]
    NoHost(SocketAddr),
    /// Characters were lost or changed.
    #[error("the ticket is damaged ({0}); copy the whole word that `restp recv` or `restp serve` printed")]
    Damaged(&'static str),
    /// Of another version.
    #[error(
        "the ticket is of version {0}, only versions 1 and 2 are known here; use the same release of restp on both sides"
    )]
    Version(u8),
}

impl Ticket {
    /// Does `word` begin as tickets do?
    pub fn is_one(word: &str) -> bool {
        word::split(NAME, word).is_some()
    }

    /// Most addresses of one ticket; further ones are left out.
    pub const MAX_ADDRESSES: usize = MAX_ADDRESSES;

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

    fn read(mut rest: Reader<'_>) -> Result<Self, TicketError> {
        let count = rest.number()?;
        let (mut addresses, mut relays) = (Vec::new(), Vec::new());
        for (address, is_relayed) in rest.addresses(count & !(SEVERAL | KEYED | CAPABLE))? {
            let list = if is_relayed { &mut relays } else { &mut addresses };
            list.push(address);
        }
        let key = match count & KEYED {
            0 => None,
            _ => Some(PublicKey(rest.take()?)),
        };
        let capability = match (count & CAPABLE, rest.version()) {
            (0, _) => None,
            (_, 1) => Some(Capability::from(rest.take()?)),
            _ => Some(Capability::of_ticket(rest.take()?)),
        };
        if addresses.is_empty() && relays.is_empty() {
            return Err(TicketError::Damaged("its length is wrong"));
        }
        rest.end()?;
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
        let mut out = Writer::of(NAME);
        out.put(&[self.addresses.len() as u8 | several | keyed | capable]);
        for address in &self.addresses {
            out.put_address(*address, self.relays.contains(address));
        }
        if let Some(key) = &self.key {
            out.put(&key.0);
        }
        if let Some(capability) = &self.capability {
            out.put(capability.in_ticket());
        }
        f.write_str(&out.word())
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
        match word::split(NAME, word) {
            Some(parts) => Ticket::read(Content::of(parts)?.reader()?),
            None => Err(TicketError::Neither(printable(word.as_bytes()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::is_of_one_host;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::net::IpAddr;

    fn ticket() -> Ticket {
        let addresses = ["192.0.2.1:4000", "[2001:db8::1]:4001"];
        Ticket::new(addresses.map(|text| text.parse().expect("an address")).to_vec())
    }

    #[test]
    fn a_ticket_is_one_word_that_reads_back() {
        let word = ticket().to_string();
        assert!(word.starts_with("restp2-"));
        assert!(
            word.bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
        );
        assert_eq!(format!(" {word}\n").parse(), Ok(ticket()));
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
        for cut in "restp2-".len()..word.len() {
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

    /// Relays beyond the sixteenth were relays of which no address was known.
    #[test]
    fn a_ticket_with_too_many_addresses_is_none() {
        for is_relayed in [false, true] {
            for count in [16, 17, 31] {
                let mut out = Writer::of(NAME);
                out.put(&[count]);
                for port in 1..=u16::from(count) {
                    out.put_address(([192, 0, 2, 1], port).into(), is_relayed);
                }
                let read = out.word().parse::<Ticket>();
                assert_eq!(read.is_ok(), count == 16, "{read:?}");
            }
        }
    }

    #[test]
    fn a_changed_or_cut_ticket_is_noticed() {
        let word = ticket().to_string();
        for cut in "restp2-".len()..word.len() {
            let error = word[..cut].parse::<Ticket>().expect_err("cut");
            assert!(matches!(error, TicketError::Damaged(_)), "{error}");
        }
        let mut changed = word.into_bytes();
        let last = changed.len() - 5;
        changed[last] = if changed[last] == b'a' { b'b' } else { b'a' };
        let changed = String::from_utf8(changed).expect("text");
        assert!(matches!(changed.parse::<Ticket>(), Err(TicketError::Damaged(_))));
    }

    /// As earlier releases wrote them, and in capitals as their codes for cameras had them.
    #[test]
    fn a_ticket_of_version_1_is_read() {
        let bare = "restp1-aebajqaaaiaq7iageaaq3oaaaaaaaaaaaaaaaaaaaeh2da545kia";
        assert_eq!(bare.parse(), Ok(ticket()));
        let full = "RESTP1-AFRAJQAAAIAQ7IAWEAAQ3OAAAAAAAAAAAAAAAAAAAEH2DJNFUWS2LJNFUWS2LJNFUWS2LJNFUWS2LJNFUWS2LJNFUWS2LJNFLJNFUWS2LJNFUWS2LJNFUWS2LKPFR57V";
        let read: Ticket = full.parse().unwrap();
        let relay = ticket().addresses()[1];
        let expected = Ticket::new(ticket().addresses()[..1].to_vec())
            .with_relays(vec![relay])
            .with_key(Some(PublicKey([0xA5; 32])))
            .with_capability(Some(Capability::from([0x5A; 16])));
        assert_eq!(read, expected);
        assert_eq!(read.to_string().parse(), Ok(expected));
    }

    #[test]
    fn a_ticket_of_one_address_fits_on_a_line() {
        let address = "192.0.2.1:7070".parse().expect("an address");
        let ticket = Ticket::new(vec![address]).with_key(Some(PublicKey([0xA5; 32])));
        let ticket = ticket.with_capability(Some(Capability::from([0x5A; 16])));
        assert_eq!(ticket.to_string().len(), 74);
    }

    #[test]
    fn other_versions_and_words_are_told_apart() {
        let word = ticket().to_string().replace("restp2", "restp3");
        assert_eq!(word.parse::<Ticket>(), Err(TicketError::Version(3)));
        let neither = "example.org"
            .parse::<Ticket>()
            .expect_err("no address")
            .to_string();
        assert!(
            neither.contains("example.org") && neither.contains("ticket"),
            "{neither}"
        );
        assert!("".parse::<Ticket>().is_err() && "restp2-".parse::<Ticket>().is_err());
    }

    /// Found by fuzzing: it was expected to come back.
    #[test]
    fn the_zone_of_an_address_serves_here_and_does_not_travel() {
        let here: Ticket = "[fe80::1%7]:7000".parse().unwrap();
        assert_eq!(here.addresses()[0].to_string(), "[fe80::1%7]:7000");
        let there: Ticket = here.to_string().parse().unwrap();
        assert_eq!(there.addresses()[0].to_string(), "[fe80::1]:7000");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            places in vec((any::<IpAddr>(), 7069_u16..7072, any::<bool>()), 1..=16),
            networks in any::<bool>(),
            several in any::<bool>(),
            key in any::<Option<[u8; 32]>>(),
            capability in any::<Option<[u8; 8]>>(),
        ) {
            let (mut addresses, mut relays) = (Vec::new(), Vec::new());
            for (index, (ip, port, is_relayed)) in places.into_iter().enumerate() {
                let ip = match ip {
                    IpAddr::V6(ip) if networks => {
                        let network = 0x2001_0db8 << 96 | (index as u128 % 3) << 64;
                        std::net::Ipv6Addr::from_bits(ip.to_bits() << 64 >> 64 | network).into()
                    }
                    ip => ip,
                };
                let address = SocketAddr::new(ip, port);
                if is_of_one_host(ip) && !addresses.contains(&address) && !relays.contains(&address) {
                    let list = if is_relayed { &mut relays } else { &mut addresses };
                    list.push(address);
                }
            }
            prop_assume!(addresses.len() + relays.len() > 0);
            let ticket = if several { Ticket::of_paths(addresses) } else { Ticket::new(addresses) };
            let ticket = ticket.with_relays(relays).with_key(key.map(PublicKey));
            let ticket = ticket.with_capability(capability.map(Capability::of_ticket));
            prop_assert_eq!(ticket.to_string().parse(), Ok(ticket));
        }

        #[test]
        fn anything_may_be_in_a_ticket(
            head in 0_u8..18,
            flags in 0_u8..8,
            bytes in vec(prop_oneof![Just(4), Just(6), Just(0x24), Just(0x34), Just(0x66), Just(0), any::<u8>()], 0..100),
        ) {
            let mut out = Writer::of(NAME);
            out.put(&[head | flags << 5]);
            out.put(&bytes);
            if let Ok(ticket) = out.word().parse::<Ticket>() {
                prop_assert!((1..=MAX_ADDRESSES).contains(&ticket.addresses().len()));
                prop_assert!(ticket.relays().iter().all(|relay| ticket.addresses().contains(relay)));
                let again = ticket.to_string();
                prop_assert_eq!(again.parse::<Ticket>().map(|read| read.to_string()), Ok(again));
            }
        }
    }
}
