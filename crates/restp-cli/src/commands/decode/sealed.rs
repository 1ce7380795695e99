//! What anybody can read of a sealed datagram, without a key (docs/protocol/sealed.md).

use super::DecodedField;
use restp_seal::packet::{CID_BYTES, DATA_HEADER, DataHeader, Packet, Pattern, SEALED, answer_message_bytes};
use restp_seal::schedule::TAG_BYTES;

/// A sealed datagram from outside.
pub struct Outside {
    /// What it is called.
    pub name: &'static str,
    /// What can be read.
    pub fields: Vec<DecodedField>,
    /// Bytes before what is encrypted, and those.
    pub open_bytes: usize,
    pub closed_bytes: usize,
}

/// Does a datagram with these bytes say that it is sealed?
pub fn is_sealed(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(|first| first & SEALED != 0)
}

impl Outside {
    /// None: it is no datagram of the seal.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        let (name, receiver, more) = match Packet::parse(bytes)? {
            Packet::Hello(hello) => {
                let name = match hello.pattern {
                    Pattern::Ik => "Hello, IK",
                    Pattern::Ix => "Hello, IX",
                    Pattern::Resumed => "Hello, resumed",
                };
                let ticket = hello.ticket.map(|ticket| ("Ticket", ticket.len()));
                let token = Some(("Token", hello.token.len()));
                (name, "the client", token.into_iter().chain(ticket).collect())
            }
            Packet::Answer { rest, .. } if rest.len() < answer_message_bytes(Pattern::Resumed) => {
                return None;
            }
            Packet::Answer { .. } => ("Answer", "the client", vec![]),
            Packet::Retry { token, .. } => ("Retry", "the client", vec![("Token", token.len())]),
            Packet::Foreign { key, .. } => ("Foreign", "the client", vec![("Public key", key.0.len())]),
            Packet::Stale { .. } => ("Stale", "the client", vec![]),
            Packet::Reset { token, .. } => (
                "Reset",
                "the packet that it answers",
                vec![("Reset token", token.len())],
            ),
            Packet::Data(header) => return Some(Self::packet(bytes, header)),
        };
        let mut fields = Fields::new(bytes);
        fields.take("Type", 1, name.into());
        fields.take("Connection id", CID_BYTES, format!("of {receiver}"));
        for (name, length) in more {
            fields.take(name, length, String::new());
        }
        Some(fields.outside(name, "Noise message"))
    }

    fn packet(bytes: &[u8], header: DataHeader) -> Self {
        let (name, receiver) = match header.early {
            true => ("Early packet", "the client, who sends it"),
            false => ("Packet", "its receiver"),
        };
        let mut fields = Fields::new(bytes);
        fields.take("Type", 1, format!("{name}, path {}", header.space));
        fields.take("Connection id", CID_BYTES, format!("of {receiver}"));
        fields.take("Number", DATA_HEADER - 1 - CID_BYTES, header.number.to_string());
        let closed = bytes.len() - DATA_HEADER;
        fields.take(
            "PDU",
            closed - TAG_BYTES,
            "encrypted; whoever has the keys can read it".into(),
        );
        fields.take("Tag", TAG_BYTES, String::new());
        let fields = fields.found;
        Outside {
            name,
            fields,
            open_bytes: DATA_HEADER,
            closed_bytes: closed,
        }
    }
}

/// Fields one after the other.
struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
    found: Vec<DecodedField>,
}

/// More bytes than these are not shown.
const SHOWN: usize = 16;

impl<'a> Fields<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Fields {
            bytes,
            at: 0,
            found: Vec::new(),
        }
    }

    fn take(&mut self, name: &'static str, length: usize, meaning: String) {
        let bytes = &self.bytes[self.at..][..length];
        let digits = data_encoding::HEXLOWER.encode(&bytes[..length.min(SHOWN)]);
        let more = if length > SHOWN { "…" } else { "" };
        self.found.push(DecodedField {
            offset_bits: 8 * self.at,
            length_bits: 8 * length,
            name,
            value: format!("{digits}{more}"),
            meaning,
        });
        self.at += length;
    }

    /// What is left is encrypted, but for keys that are used once.
    fn outside(mut self, name: &'static str, rest: &'static str) -> Outside {
        let (open_bytes, closed_bytes) = (self.at, self.bytes.len() - self.at);
        if closed_bytes > 0 {
            self.take(
                rest,
                closed_bytes,
                "encrypted, but for a key that is used once".into(),
            );
        }
        Outside {
            name,
            fields: self.found,
            open_bytes,
            closed_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(bytes: &[u8]) -> (&'static str, Vec<(&'static str, usize)>) {
        let outside = Outside::of(bytes).expect("sealed");
        let end = outside
            .fields
            .iter()
            .map(|field| field.length_bits)
            .sum::<usize>()
            / 8;
        assert_eq!(end, bytes.len(), "each byte is in a field");
        assert_eq!(outside.open_bytes + outside.closed_bytes, bytes.len());
        let fields = outside.fields.iter();
        (
            outside.name,
            fields.map(|field| (field.name, field.offset_bits / 8)).collect(),
        )
    }

    /// docs/protocol/sealed.md, "Datagrams".
    #[test]
    fn each_datagram_of_the_table_is_told_with_its_open_parts() {
        let of = |first: u8, length: usize| [&[first][..], &vec![7; length - 1]].concat();
        let (kind, id) = (("Type", 0), ("Connection id", 1));
        for (first, length, name, parts) in [
            (0x80, 200, "Hello, IK", &[("Token", 9), ("Noise message", 25)][..]),
            (0x81, 200, "Hello, IX", &[("Token", 9), ("Noise message", 25)]),
            (0x82, 300, "Answer", &[("Noise message", 9)]),
            (0x83, 25, "Retry", &[("Token", 9)]),
            (0x84, 41, "Foreign", &[("Public key", 9)]),
            (
                0x85,
                300,
                "Hello, resumed",
                &[("Token", 9), ("Ticket", 25), ("Noise message", 85)],
            ),
            (0x86, 9, "Stale", &[]),
            (0x87, 25, "Reset", &[("Reset token", 9)]),
            (0xC3, 60, "Packet", &[("Number", 9), ("PDU", 15), ("Tag", 44)]),
            (
                0xE0,
                60,
                "Early packet",
                &[("Number", 9), ("PDU", 15), ("Tag", 44)],
            ),
        ] {
            let expected = [&[kind, id][..], parts].concat();
            assert_eq!(named(&of(first, length)), (name, expected));
            assert!(is_sealed(&of(first, length)));
        }
        for (first, length) in [
            (0x82, 9),
            (0x83, 24),
            (0x88, 25),
            (0xC0, 30),
            (0x00, 60),
            (0xD0, 60),
        ] {
            assert!(Outside::of(&of(first, length)).is_none(), "{first:x}");
        }
        assert!(!is_sealed(&[0x05]) && !is_sealed(&[]));
    }

    #[test]
    fn a_packet_tells_its_path_and_number() {
        let mut bytes = vec![0; 40];
        (bytes[0], bytes[14]) = (0xC3, 9);
        let fields = Outside::of(&bytes).expect("a packet").fields;
        assert_eq!(fields[0].meaning, "Packet, path 3");
        assert_eq!(fields[2].meaning, "9");
    }
}
