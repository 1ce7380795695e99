//! Multipath set-up: MPX says which extension, SYN and ACK say which form of it (ResTP §3.1.11, §3.1.12).

use super::Header;
use super::codes::{Flags, MPX_CAPABLE, MPX_JOIN};
use super::cursor::{Reader, Writer};
use super::error::{EmitError, Found, ParseError};
use super::mp_capable::{self, MpCapable};
use super::mp_join::{self, MpJoin};

/// The multipath set-up extension of a packet; at most one fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MpSetup {
    /// MPX = 1.
    Capable(MpCapable),
    /// MPX = 2.
    Join(MpJoin),
}

/// Place of a packet in the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Syn,
    SynAck,
    Ack,
}

impl Form {
    pub(super) fn of(flags: Flags) -> Option<Form> {
        match (flags.has(Flags::SYN), flags.has(Flags::ACK)) {
            (true, false) => Some(Form::Syn),
            (true, true) => Some(Form::SynAck),
            (false, true) => Some(Form::Ack),
            (false, false) => None,
        }
    }
}

impl MpSetup {
    pub(super) fn code(&self) -> u8 {
        match self {
            MpSetup::Capable(_) => MPX_CAPABLE,
            MpSetup::Join(_) => MPX_JOIN,
        }
    }
    pub(super) fn words(&self) -> usize {
        match self {
            MpSetup::Capable(capable) => mp_capable::words(capable.form()),
            MpSetup::Join(join) => mp_join::words(join.form()),
        }
    }
    fn form(&self) -> Form {
        match self {
            MpSetup::Capable(capable) => capable.form(),
            MpSetup::Join(join) => join.form(),
        }
    }
}

/// Words that a legal MPX announces beside `flags`: 0 without one.
pub(super) fn announced_words(mpx: u8, flags: Flags) -> usize {
    match (mpx, Form::of(flags)) {
        (MPX_CAPABLE, Some(form)) => mp_capable::words(form),
        (MPX_JOIN, Some(form)) => mp_join::words(form),
        _ => 0,
    }
}

/// Reads the extension that `mpx`, not 0, announces. `shares`: paths share the numbers.
pub(super) fn parse(
    reader: &mut Reader<'_>,
    mpx: u8,
    flags: Flags,
    shares: bool,
) -> Result<MpSetup, ParseError> {
    let Some(form) = Form::of(flags) else {
        return Err(ParseError::new(
            1,
            "SYN or ACK beside MPX",
            Found::Value(flags.bits().into()),
        ));
    };
    match mpx {
        MPX_CAPABLE => mp_capable::parse(reader, form, shares).map(MpSetup::Capable),
        MPX_JOIN => mp_join::parse(reader, form).map(MpSetup::Join),
        reserved => Err(ParseError::new(6, "MPX 0, 1 or 2", Found::Value(reserved.into()))),
    }
}

#[inline]
pub(super) fn check(header: &Header) -> Result<(), EmitError> {
    match &header.mp {
        Some(mp) if Form::of(header.flags) != Some(mp.form()) => Err(EmitError::Forbidden {
            field: "Flags",
            found: header.flags.bits().into(),
            rule: "SYN and ACK must name the form of the multipath set-up extension that is present",
        }),
        Some(MpSetup::Capable(capable)) if !mp_capable::fits(capable, header.services.shared_numbers) => {
            Err(EmitError::Forbidden {
                field: "MP_CAPABLE Address ID",
                found: capable.address_id.into(),
                rule: "said in the SYN, where paths share the numbers",
            })
        }
        _ => Ok(()),
    }
}

pub(super) fn emit(mp: &MpSetup, out: &mut Writer<'_>) {
    match mp {
        MpSetup::Capable(capable) => mp_capable::emit(capable, out),
        MpSetup::Join(join) => mp_join::emit(join, out),
    }
}
