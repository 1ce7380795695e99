//! MP_CAPABLE (ResTP §3.1.11): opens the master subflow. Present if and only if MPX = 1 (OP-10).
//!
//! | Field | Bits | SYN | SYN-ACK | ACK |
//! |---|---|---|---|---|
//! | Flags A..H | 8 | yes | yes | yes |
//! | pad | 16 | 0 | 0 | 0 |
//! | Address ID (project) where paths share the numbers; otherwise pad | 8 | yes | 0 | 0 |
//! | Sender's key (connection initiator's) | 64 | yes | no | yes |
//! | Receiver's key (responder's) | 64 | no | yes | yes |

use super::codes::CAPABLE_CRYPTO;
use super::cursor::{Reader, Writer};
use super::error::ParseError;
use super::mp::Form;
use std::fmt;

/// A 64-bit key of one end.
pub type Key = [u8; 8];

/// Flags A..H and the keys that belong to the packet's place in the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MpCapable {
    /// A = integrity required, B = 0, C..H = crypto algorithms (`codes::CAPABLE_*`).
    pub flags: u8,
    /// In the SYN, where paths share the numbers: as in MP_JOIN, how many addresses the sender had added before this one. Elsewhere 0.
    pub address_id: u8,
    /// The key of the initiator, of the responder, or both.
    pub keys: Keys,
}

/// Which keys travel, by the packet that carries them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Keys {
    /// In the SYN.
    Initiator(Key),
    /// In the SYN-ACK.
    Responder(Key),
    /// In the ACK.
    Both {
        /// The initiator's key.
        initiator: Key,
        /// The responder's key.
        responder: Key,
    },
}

impl fmt::Debug for Keys {
    /// Without the keys: both together admit another path to the association.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Keys::Initiator(_) => "Initiator",
            Keys::Responder(_) => "Responder",
            Keys::Both { .. } => "Both",
        })
    }
}

impl MpCapable {
    /// False when no crypto algorithm is selected: then the extension is ignored.
    pub fn usable(&self) -> bool {
        self.flags & CAPABLE_CRYPTO != 0
    }
    pub(super) fn form(&self) -> Form {
        match self.keys {
            Keys::Initiator(_) => Form::Syn,
            Keys::Responder(_) => Form::SynAck,
            Keys::Both { .. } => Form::Ack,
        }
    }
}

pub(super) const fn words(form: Form) -> usize {
    match form {
        Form::Syn | Form::SynAck => 3,
        Form::Ack => 5,
    }
}

/// Does this packet say which address it leaves from?
fn names_address(form: Form, shares: bool) -> bool {
    shares && form == Form::Syn
}

/// `shares`: paths share the numbers.
pub(super) fn parse(reader: &mut Reader<'_>, form: Form, shares: bool) -> Result<MpCapable, ParseError> {
    const NAME: &str = "MP_CAPABLE (3 words in SYN and SYN-ACK, 5 in ACK)";
    let &[flags, _, _, address_id] = reader.take(NAME)?;
    let first = *reader.take(NAME)?;
    let keys = match form {
        Form::Syn => Keys::Initiator(first),
        Form::SynAck => Keys::Responder(first),
        Form::Ack => Keys::Both {
            initiator: first,
            responder: *reader.take(NAME)?,
        },
    };
    Ok(MpCapable {
        flags,
        address_id: if names_address(form, shares) {
            address_id
        } else {
            0
        },
        keys,
    })
}

/// Is the address said where it is read?
pub(super) fn fits(capable: &MpCapable, shares: bool) -> bool {
    capable.address_id == 0 || names_address(capable.form(), shares)
}

pub(super) fn emit(capable: &MpCapable, out: &mut Writer<'_>) {
    out.put(&[capable.flags, 0, 0, capable.address_id]);
    match &capable.keys {
        Keys::Initiator(key) | Keys::Responder(key) => out.put(key),
        Keys::Both { initiator, responder } => {
            out.put(initiator);
            out.put(responder);
        }
    }
}
