//! A ticket of content: where it can be had, who vouches for it, and which it is.
//!
//! ```text
//! "restpc1-" base32( version 1 | count 1 | count × (family 1 | address 4 or 16 | port 2) | root 32 | publisher 32 | CRC-32 of all before )
//! ```

use crate::transfer::ticket::{Bytes, TicketError, checksum, emit_address, reachable};
use data_encoding::BASE32_NOPAD;
use restp_rivals::itp::node::Wanted;
use restp_rivals::itp::trust::PublisherKey;
use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

const PREFIX: &str = "restpc1-";
const VERSION: u8 = 1;
/// Most addresses of one ticket; further ones are left out.
const MAX_ADDRESSES: usize = 16;

/// Names an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContentTicket {
    /// Where it can be had.
    pub addresses: Vec<SocketAddr>,
    /// Which it is, and who vouches for it.
    pub wanted: Wanted,
}

impl ContentTicket {
    /// Of these addresses, as many as a ticket holds.
    pub fn new(mut addresses: Vec<SocketAddr>, wanted: Wanted) -> Self {
        addresses.truncate(MAX_ADDRESSES);
        ContentTicket { addresses, wanted }
    }

    fn parse(bytes: &[u8]) -> Result<Self, TicketError> {
        let (content, sum) = bytes
            .split_last_chunk()
            .ok_or(TicketError::Damaged("it is too short"))?;
        if checksum(content) != *sum {
            return Err(TicketError::Damaged("its check sum is wrong"));
        }
        let mut rest = Bytes(content);
        let version = rest.number()?;
        if version != VERSION {
            return Err(TicketError::Version(version));
        }
        let count = usize::from(rest.number()?);
        if count > MAX_ADDRESSES {
            return Err(TicketError::Damaged("it has too many addresses"));
        }
        let addresses = (0..count)
            .map(|_| reachable(rest.address()?))
            .collect::<Result<_, _>>()?;
        let wanted = Wanted {
            root: rest.take()?,
            publisher: PublisherKey(rest.take()?),
        };
        match rest.0.is_empty() {
            true => Ok(ContentTicket { addresses, wanted }),
            false => Err(TicketError::Damaged("its length is wrong")),
        }
    }
}

impl fmt::Display for ContentTicket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut content = vec![VERSION, self.addresses.len() as u8];
        for address in &self.addresses {
            emit_address(&mut content, *address);
        }
        content.extend_from_slice(&self.wanted.root);
        content.extend_from_slice(&self.wanted.publisher.0);
        let sum = checksum(&content);
        content.extend_from_slice(&sum);
        write!(f, "{PREFIX}{}", BASE32_NOPAD.encode(&content).to_lowercase())
    }
}

impl ContentTicket {
    /// Does `word` begin as tickets of content do?
    pub fn is_one(word: &str) -> bool {
        let start = word.trim().get(..PREFIX.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(PREFIX))
    }
}

impl FromStr for ContentTicket {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let word = word.trim();
        if !Self::is_one(word) {
            let shown = crate::transfer::printable(word.as_bytes());
            return Err(format!(
                "\"{shown}\" is no ticket of content; write the word after \"ticket:\" that `restp publish` printed"
            ));
        }
        let digits = word[PREFIX.len()..].to_uppercase();
        let bytes = BASE32_NOPAD.decode(digits.as_bytes());
        let bytes = bytes.map_err(|_| TicketError::Damaged("a character is wrong or missing"));
        let parsed = bytes.and_then(|bytes| ContentTicket::parse(&bytes));
        parsed.map_err(|error| error.to_string().replace("`restp recv`", "`restp publish`"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticket() -> ContentTicket {
        let addresses = ["192.0.2.1:4000", "[2001:db8::1]:4001"];
        let wanted = Wanted {
            root: [0xA5; 32],
            publisher: PublisherKey([0x5A; 32]),
        };
        ContentTicket::new(
            addresses.map(|text| text.parse().expect("an address")).to_vec(),
            wanted,
        )
    }

    #[test]
    fn a_ticket_is_one_word_that_reads_back() {
        let word = ticket().to_string();
        assert_eq!(word.parse(), Ok(ticket()));
        assert_eq!(format!(" {}\n", word.to_uppercase()).parse(), Ok(ticket()));
        let nowhere = ContentTicket::new(Vec::new(), ticket().wanted);
        assert_eq!(nowhere.to_string().parse(), Ok(nowhere));
    }

    #[test]
    fn what_is_cut_changed_or_something_else_is_refused_with_a_way_out() {
        let word = ticket().to_string();
        for cut in 0..word.len() {
            let error = word[..cut].parse::<ContentTicket>().expect_err("cut");
            assert!(error.contains("restp publish"), "{error}");
        }
        let other = "restp1-aeaq".parse::<ContentTicket>().expect_err("of recv");
        assert!(other.contains("no ticket of content"), "{other}");
    }
}
