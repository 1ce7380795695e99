//! What both ends say, one message each. Big-endian.

use crate::pipe::Answer;
use crate::transfer::Capability;
use bytes::{BufMut, Bytes, BytesMut};
use restp_base::time::Duration;
use std::collections::BTreeMap;

const MAGIC: [u8; 4] = *b"RPD\0";
const VERSION: u8 = 1;
const ANSWER: u8 = 2;
const DATA: u8 = 3;
const PART: u8 = 4;
const END: u8 = 5;
/// Marks the last part of a datagram.
const LAST: u8 = 0x80;
/// In front of a whole datagram, and of a part.
const DATA_HEADER_BYTES: usize = 3;
const PART_HEADER_BYTES: usize = 5;
/// Most bytes of the name of a place.
const MAX_NAME_BYTES: usize = 300;
/// Most bytes of a datagram (RFC 768: 16 bits of length).
pub const MAX_DATAGRAM_BYTES: usize = 65_535;

/// What can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// The flows go to this place.
    Connect = 1,
    /// Who sends to this place has flows to who asks.
    Listen = 2,
    /// Packets of IP go both ways.
    Tunnel = 3,
}

/// What who connects says first, until it is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Open {
    /// What its ticket gives.
    pub capability: Capability,
    /// How long a datagram is of use; none: it is sent once.
    pub deadline: Option<Duration>,
    /// What it wants.
    pub operation: Operation,
    /// Where.
    pub place: String,
}

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// A request.
    Open(Open),
    /// Its answer.
    Answer(Answer),
    /// A whole datagram of a flow.
    Data { flow: u16, datagram: Bytes },
    /// A part of one: of the datagram with this number, the part with this index.
    Part {
        flow: u16,
        number: u8,
        index: u8,
        is_last: bool,
        part: Bytes,
    },
    /// A flow is over.
    End { flow: u16 },
}

impl Message {
    /// What `bytes` say; none: nothing.
    pub fn decode(bytes: &Bytes) -> Option<Self> {
        let flow = |at: usize| Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]));
        match *bytes.first()? {
            first if first == MAGIC[0] => Open::decode(bytes).map(Message::Open),
            ANSWER => Answer::decode(&bytes[1..]).map(Message::Answer),
            DATA => Some(Message::Data {
                flow: flow(1)?,
                datagram: bytes.slice(DATA_HEADER_BYTES..),
            }),
            PART if bytes.len() > PART_HEADER_BYTES => Some(Message::Part {
                flow: flow(1)?,
                number: bytes[3],
                index: bytes[4] & !LAST,
                is_last: bytes[4] & LAST != 0,
                part: bytes.slice(PART_HEADER_BYTES..),
            }),
            END if bytes.len() == DATA_HEADER_BYTES => Some(Message::End { flow: flow(1)? }),
            _ => None,
        }
    }

    /// Its bytes.
    pub fn encode(&self) -> Bytes {
        let mut out = BytesMut::new();
        match self {
            Message::Open(open) => open.encode(&mut out),
            Message::Answer(answer) => {
                out.put_u8(ANSWER);
                out.extend_from_slice(&answer.encode());
            }
            Message::Data { flow, datagram } => {
                out.put_u8(DATA);
                out.put_u16(*flow);
                out.extend_from_slice(datagram);
            }
            Message::Part {
                flow,
                number,
                index,
                is_last,
                part,
            } => {
                out.put_u8(PART);
                out.put_u16(*flow);
                out.put_u8(*number);
                out.put_u8(index | if *is_last { LAST } else { 0 });
                out.extend_from_slice(part);
            }
            Message::End { flow } => {
                out.put_u8(END);
                out.put_u16(*flow);
            }
        }
        out.freeze()
    }

    /// The messages of at most `limit` bytes that carry `datagram`, the one with this `number` of those that need several.
    pub fn of_datagram(flow: u16, datagram: &[u8], number: u8, limit: usize) -> Vec<Bytes> {
        if datagram.len() + DATA_HEADER_BYTES <= limit {
            let datagram = Bytes::copy_from_slice(datagram);
            return vec![Message::Data { flow, datagram }.encode()];
        }
        let parts = datagram.chunks(limit.saturating_sub(PART_HEADER_BYTES).max(1));
        let last = parts.len() - 1;
        if last >= usize::from(LAST) {
            return Vec::new(); // no segment is that small
        }
        let message = |(index, part): (usize, &[u8])| {
            let message = Message::Part {
                flow,
                number,
                index: index as u8,
                is_last: index == last,
                part: Bytes::copy_from_slice(part),
            };
            message.encode()
        };
        parts.enumerate().map(message).collect()
    }
}

impl Open {
    fn encode(&self, out: &mut BytesMut) {
        out.extend_from_slice(&MAGIC);
        out.put_u8(VERSION);
        out.extend_from_slice(self.capability.bytes());
        out.put_u8(self.operation as u8);
        let deadline = self.deadline.map_or(0, Duration::as_millis);
        out.put_u32(u32::try_from(deadline).unwrap_or(u32::MAX));
        out.extend_from_slice(self.place.as_bytes());
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (magic, rest) = bytes.split_first_chunk::<4>()?;
        let ([version], rest) = rest.split_first_chunk::<1>()?;
        let (capability, rest) = rest.split_first_chunk::<{ Capability::BYTES }>()?;
        let ([operation], rest) = rest.split_first_chunk::<1>()?;
        let (deadline, place) = rest.split_first_chunk::<4>()?;
        if *magic != MAGIC || *version != VERSION || place.len() > MAX_NAME_BYTES {
            return None;
        }
        let deadline = u64::from(u32::from_be_bytes(*deadline));
        Some(Open {
            capability: Capability::from(*capability),
            deadline: (deadline > 0).then(|| Duration::from_millis(deadline)),
            operation: match operation {
                1 => Operation::Connect,
                2 => Operation::Listen,
                3 => Operation::Tunnel,
                _ => return None,
            },
            place: String::from_utf8(place.to_vec()).ok()?,
        })
    }
}

/// Puts the parts of one datagram together: they leave one behind another, so those of one datagram at a time are kept.
#[derive(Debug, Default)]
pub struct Assembly {
    of: Option<(u16, u8)>,
    last: Option<u8>,
    parts: BTreeMap<u8, Bytes>,
    bytes: usize,
}

impl Assembly {
    /// Takes one part; the flow and its datagram when that was the last one missing.
    pub fn take(&mut self, message: &Message) -> Option<(u16, Bytes)> {
        let Message::Part {
            flow,
            number,
            index,
            is_last,
            part,
        } = message
        else {
            return None;
        };
        if self.of != Some((*flow, *number)) {
            *self = Assembly::default();
            self.of = Some((*flow, *number));
        }
        if *is_last {
            self.last = Some(*index);
        }
        if self.parts.insert(*index, part.clone()).is_none() {
            self.bytes += part.len();
        }
        let whole = self
            .last
            .is_some_and(|last| self.parts.len() == usize::from(last) + 1);
        let beyond = |last: u8| self.parts.range(last + 1..).next().is_some();
        if self.bytes > MAX_DATAGRAM_BYTES || self.last.is_some_and(beyond) {
            *self = Assembly::default();
        } else if whole {
            let mut datagram = BytesMut::with_capacity(self.bytes);
            self.parts
                .values()
                .for_each(|part| datagram.extend_from_slice(part));
            *self = Assembly::default();
            return Some((*flow, datagram.freeze()));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipe::Refusal;
    use proptest::prelude::*;

    fn open(deadline: Option<Duration>) -> Open {
        Open {
            capability: Capability::from(*b"0123456789abcdef"),
            deadline,
            operation: Operation::Listen,
            place: "listen-udp:a:1".into(),
        }
    }

    #[test]
    fn messages_as_written_in_the_protocol() {
        let bytes = |message: Message| {
            let bytes = message.encode();
            assert_eq!(Message::decode(&bytes), Some(message));
            bytes
        };
        let asked = bytes(Message::Open(open(Some(Duration::from_millis(250)))));
        assert_eq!(
            asked[..],
            *b"RPD\0\x010123456789abcdef\x02\0\0\0\xfalisten-udp:a:1"
        );
        bytes(Message::Open(open(None)));
        let said = bytes(Message::Answer(Answer::Accepted("a:1".into())));
        assert_eq!(said[..], *b"\x02\0\0\x03a:1");
        bytes(Message::Answer(Answer::Refused(Refusal::not_allowed("udp:a:1"))));
        let datagram = Bytes::from_static(b"hello");
        assert_eq!(
            bytes(Message::Data { flow: 258, datagram })[..],
            *b"\x03\x01\x02hello"
        );
        assert_eq!(bytes(Message::End { flow: 1 })[..], *b"\x05\0\x01");
        let (flow, number, index, is_last) = (1, 7, 2, true);
        let part = Bytes::from_static(b"x");
        let part = bytes(Message::Part {
            flow,
            number,
            index,
            is_last,
            part,
        });
        assert_eq!(part[..], *b"\x04\0\x01\x07\x82x");
    }

    #[test]
    fn large_datagrams_take_several_messages_in_any_order() {
        let datagram: Vec<u8> = (0..65_507_u32).map(|byte| byte as u8).collect();
        for limit in [600, 1338] {
            let messages = Message::of_datagram(3, &datagram, 9, limit);
            assert!(messages.iter().all(|message| message.len() <= limit));
            let mut assembly = Assembly::default();
            let mut whole = messages.iter().rev().filter_map(|message| {
                let message = Message::decode(message).expect("a message");
                assembly.take(&message)
            });
            let (flow, bytes) = whole.next().expect("a datagram");
            assert_eq!((flow, &bytes[..]), (3, &datagram[..]));
            assert!(whole.next().is_none());
        }
        assert_eq!(
            Message::of_datagram(3, &[0; 1332], 0, 1338).len(),
            1,
            "SRT's largest"
        );
        assert_eq!(Message::of_datagram(3, &[], 0, 1338).len(), 1);
    }

    #[test]
    fn a_datagram_with_a_missing_part_is_given_up_for_the_next() {
        let parts = |number| Message::of_datagram(1, &[number; 100], number, 50);
        let mut assembly = Assembly::default();
        let mut take = |bytes: &Bytes| assembly.take(&Message::decode(bytes).expect("a message"));
        let (first, second) = (parts(1), parts(2));
        assert!(first[1..].iter().all(|part| take(part).is_none()));
        let whole: Vec<_> = second.iter().filter_map(take).collect();
        assert_eq!(whole, [(1, Bytes::copy_from_slice(&[2; 100]))]);
    }

    #[test]
    fn a_part_behind_the_last_one_belongs_to_no_datagram() {
        let part = |index, is_last| Message::Part {
            flow: 1,
            number: 1,
            index,
            is_last,
            part: Bytes::from_static(b"x"),
        };
        let mut assembly = Assembly::default();
        for (index, is_last) in [(0, false), (9, false), (2, true)] {
            assert_eq!(assembly.take(&part(index, is_last)), None);
        }
    }

    proptest! {
        #[test]
        fn whatever_comes_is_a_message_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..400), kind in 0_u8..7) {
            let mut bytes = bytes;
            if let Some(first) = bytes.first_mut() {
                *first = kind;
            }
            let mut assembly = Assembly::default();
            if let Some(message) = Message::decode(&bytes.into()) {
                assembly.take(&message);
            }
        }
    }
}
