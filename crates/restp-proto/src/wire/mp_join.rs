//! MP_JOIN (ResTP §3.1.12): adds a subflow. Present if and only if MPX = 2 (OP-10).
//!
//! | Packet | Contents |
//! |---|---|
//! | SYN | pad 20, Flags 4 (lowest bit B: backup only), Address ID 8, Receiver's Token 32, Sender's Random 32 |
//! | SYN-ACK | pad 20, Flags 4, Address ID 8, truncated HMAC 64, Sender's Random 32 (OP-22) |
//! | ACK | HMAC 160 |

use super::codes::JOIN_BACKUP;
use super::cursor::{Reader, Writer};
use super::error::ParseError;
use super::mp::Form;

/// What each packet of the join handshake carries. Tokens, random values and HMACs are bytes as they travel
/// (how they are made: OP-23).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MpJoin {
    /// The initiator of the subflow asks.
    Syn {
        /// B: use this subflow only when the others fail.
        backup: bool,
        /// Local index of the address the subflow starts from.
        address_id: u8,
        /// Names the connection: first 32 bits of SHA-1 over the receiver's key.
        token: [u8; 4],
        /// Fresh random value of the sender.
        random: [u8; 4],
    },
    /// The responder answers.
    SynAck {
        /// B, repeated.
        backup: bool,
        /// Local index of the responder's address.
        address_id: u8,
        /// Leftmost 64 bits of HMAC-B.
        hmac: [u8; 8],
        /// Fresh random value of the sender.
        random: [u8; 4],
    },
    /// The initiator proves itself.
    Ack {
        /// HMAC-A.
        hmac: [u8; 20],
    },
}

impl MpJoin {
    pub(super) fn form(&self) -> Form {
        match self {
            MpJoin::Syn { .. } => Form::Syn,
            MpJoin::SynAck { .. } => Form::SynAck,
            MpJoin::Ack { .. } => Form::Ack,
        }
    }
}

pub(super) const fn words(form: Form) -> usize {
    match form {
        Form::Syn => 3,
        Form::SynAck => 4,
        Form::Ack => 5,
    }
}

pub(super) fn parse(reader: &mut Reader<'_>, form: Form) -> Result<MpJoin, ParseError> {
    const NAME: &str = "MP_JOIN (3 words in SYN, 4 in SYN-ACK, 5 in ACK)";
    if form == Form::Ack {
        return Ok(MpJoin::Ack {
            hmac: *reader.take(NAME)?,
        });
    }
    let &[_, _, flags, address_id] = reader.take(NAME)?;
    let backup = flags & JOIN_BACKUP != 0;
    Ok(if form == Form::Syn {
        MpJoin::Syn {
            backup,
            address_id,
            token: *reader.take(NAME)?,
            random: *reader.take(NAME)?,
        }
    } else {
        MpJoin::SynAck {
            backup,
            address_id,
            hmac: *reader.take(NAME)?,
            random: *reader.take(NAME)?,
        }
    })
}

pub(super) fn emit(join: &MpJoin, out: &mut Writer<'_>) {
    match join {
        MpJoin::Syn {
            backup,
            address_id,
            token,
            random,
        } => {
            out.put(&[0, 0, u8::from(*backup), *address_id]);
            out.put(token);
            out.put(random);
        }
        MpJoin::SynAck {
            backup,
            address_id,
            hmac,
            random,
        } => {
            out.put(&[0, 0, u8::from(*backup), *address_id]);
            out.put(hmac);
            out.put(random);
        }
        MpJoin::Ack { hmac } => out.put(hmac),
    }
}
