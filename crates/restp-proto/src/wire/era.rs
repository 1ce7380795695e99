//! Messages about eras (docs/adr/0007): 16 bytes of payload in a packet whose Flow says so.
//!
//! ```text
//! |Verb 8|0 8|   Attempt 16    |
//! |          Era 32            |
//! |        Boundary 32         |
//! |Ord 2, 0 6|Error 8|FEC Type 8|0 8|
//! ```
//!
//! Boundary: the first number of its sender's direction that is of the era; with *propose* and *accept*. The last word: what the services
//! will be; with *propose*. What has no meaning is 0, and ignored on receipt.

use super::codes::{ErrorControl, ORD_FUL, ORD_PAR, Order};

/// Bytes of a message.
const BYTES: usize = 16;

/// What a message says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EraVerb {
    /// The services of the era shall be these.
    Propose {
        /// Ord.
        order: Order,
        /// Error control and acknowledgement technique.
        error: ErrorControl,
        /// FEC Type where packets are encoded, else 0.
        code: u8,
        /// See above.
        boundary: u32,
    },
    /// They shall.
    Accept {
        /// See above.
        boundary: u32,
    },
    /// They shall not.
    Refuse,
    /// The proposer has heard the answer.
    Confirm,
}

/// A message about one era.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EraMessage {
    /// What it says.
    pub verb: EraVerb,
    /// Which of its proposer's proposals it is about.
    pub attempt: u16,
    /// The era: 0 is that of the set-up, and each that was accepted is one more.
    pub era: u32,
}

impl EraMessage {
    /// Reads a payload; none where it is no message.
    pub fn parse(payload: &[u8]) -> Option<Self> {
        let bytes: &[u8; BYTES] = payload.try_into().ok()?;
        let word = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let boundary = word(8);
        let verb = match bytes[0] {
            1 => EraVerb::Propose {
                order: match bytes[12] & (ORD_PAR | ORD_FUL) {
                    0 => Order::Unordered,
                    ORD_PAR => Order::Partial,
                    ORD_FUL => Order::Full,
                    _ => return None,
                },
                error: ErrorControl::from_bits(bytes[13]),
                code: bytes[14],
                boundary,
            },
            2 => EraVerb::Accept { boundary },
            3 => EraVerb::Refuse,
            4 => EraVerb::Confirm,
            _ => return None,
        };
        Some(EraMessage {
            verb,
            attempt: u16::from_be_bytes([bytes[2], bytes[3]]),
            era: word(4),
        })
    }

    /// The payload that says it.
    pub fn emit(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        let (verb, boundary) = match self.verb {
            EraVerb::Propose {
                order,
                error,
                code,
                boundary,
            } => {
                bytes[12] = match order {
                    Order::Unordered => 0,
                    Order::Partial => ORD_PAR,
                    Order::Full => ORD_FUL,
                };
                (bytes[13], bytes[14]) = (error.bits(), code);
                (1, boundary)
            }
            EraVerb::Accept { boundary } => (2, boundary),
            EraVerb::Refuse => (3, 0),
            EraVerb::Confirm => (4, 0),
        };
        bytes[0] = verb;
        bytes[2..4].copy_from_slice(&self.attempt.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.era.to_be_bytes());
        bytes[8..12].copy_from_slice(&boundary.to_be_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_reads_as_it_was_written_and_nothing_else_is_one() {
        let propose = EraVerb::Propose {
            order: Order::Partial,
            error: ErrorControl::ARQ | ErrorControl::FEC | ErrorControl::SAK,
            code: 3,
            boundary: 0x0102_0304,
        };
        for verb in [
            propose,
            EraVerb::Accept { boundary: 7 },
            EraVerb::Refuse,
            EraVerb::Confirm,
        ] {
            let message = EraMessage {
                verb,
                attempt: 0x0A0B,
                era: 0x1112_1314,
            };
            let bytes = message.emit();
            assert_eq!(EraMessage::parse(&bytes), Some(message));
            assert_eq!(EraMessage::parse(&bytes[..15]), None);
            assert_eq!(EraMessage::parse(&[&bytes[..], &[0]].concat()), None);
        }
        for (at, byte) in [(0, 0), (0, 5), (12, 0xC0)] {
            let mut bytes = EraMessage {
                verb: propose,
                attempt: 0,
                era: 1,
            }
            .emit();
            bytes[at] = byte;
            assert_eq!(EraMessage::parse(&bytes), None, "byte {at} = {byte}");
        }
        let message = EraMessage {
            verb: propose,
            attempt: 0x0A0B,
            era: 1,
        };
        let vector = [1, 0, 0x0A, 0x0B, 0, 0, 0, 1, 1, 2, 3, 4, 0x80, 0x54, 3, 0];
        assert_eq!(message.emit(), vector);
    }
}
