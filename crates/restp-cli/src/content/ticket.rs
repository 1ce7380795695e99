//! A ticket of content: where it can be had, who vouches for it, and which it is.
//!
//! ```text
//! "restpc2-" base64url( count 1 | addresses | root 32 | publisher 32 | CRC-32 of all before )
//! ```
//!
//! What all tickets have in common is in [`word`](crate::transfer::ticket::word).

use crate::transfer::Ticket;
use crate::transfer::ticket::TicketError;
use crate::transfer::ticket::word::{Content, MAX_ADDRESSES, Reader, Writer, split};
use restp_rivals::itp::node::Wanted;
use restp_rivals::itp::trust::PublisherKey;
use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

const NAME: &str = "restpc";

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

    fn read(mut rest: Reader<'_>) -> Result<Self, TicketError> {
        let count = rest.number()?;
        let own = |(address, is_relayed)| match is_relayed {
            false => Ok(address),
            true => Err(TicketError::Damaged("an address is of no known family")),
        };
        let addresses = rest.addresses(count)?.into_iter().map(own);
        let addresses = addresses.collect::<Result<_, _>>()?;
        let wanted = Wanted {
            root: rest.take()?,
            publisher: PublisherKey(rest.take()?),
        };
        rest.end()?;
        Ok(ContentTicket { addresses, wanted })
    }
}

impl fmt::Display for ContentTicket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = Writer::of(NAME);
        out.put(&[self.addresses.len() as u8]);
        for address in &self.addresses {
            out.put_address(*address, false);
        }
        out.put(&self.wanted.root);
        out.put(&self.wanted.publisher.0);
        f.write_str(&out.word())
    }
}

impl ContentTicket {
    /// Does `word` begin as tickets of content do?
    pub fn is_one(word: &str) -> bool {
        split(NAME, word).is_some()
    }
}

impl FromStr for ContentTicket {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let Some(parts) = split(NAME, word) else {
            if Ticket::is_one(word) {
                return Err(
                    "this is the ticket of a receiver or server, for `restp send`, `pipe` and others; write the word after \"ticket:\" that \
                     `restp publish` printed"
                        .into(),
                );
            }
            let shown = crate::transfer::printable(word.trim().as_bytes());
            return Err(format!(
                "\"{shown}\" is no ticket of content; write the word after \"ticket:\" that `restp publish` printed"
            ));
        };
        let read = Content::of(parts).and_then(|content| ContentTicket::read(content.reader()?));
        read.map_err(|error| error.to_string().replace("`restp recv`", "`restp publish`"))
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
        assert_eq!(format!(" {word}\n").parse(), Ok(ticket()));
        let before = "restpc1-aebajqaaaiaq7iageaaq3oaaaaaaaaaaaaaaaaaaaeh2djnfuws2ljnfuws2ljnfuws2ljnfuws2ljnfuws2ljnfuws2ljnfljnfuws2ljnfuws2ljnfuws2ljnfuws2ljnfuws2ljnfuws2ljnmats6nq";
        assert_eq!(before.parse(), Ok(ticket()), "of version 1");
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
        let other = "restp2-aeaq".parse::<ContentTicket>().expect_err("of recv");
        assert!(
            other.contains("for `restp send`") && other.contains("restp publish"),
            "{other}"
        );
        let other = "movie".parse::<ContentTicket>().expect_err("no ticket");
        assert!(other.contains("no ticket of content"), "{other}");
    }
}
