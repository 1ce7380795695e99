//! DSS (ResTP §3.1.13): maps subflow numbers to connection numbers and carries the connection-level ACK.
//! Present if and only if the DSS bit is set (OP-10); 1 + A + 2M + C words.
//!
//! | Field | Bits | Present | Meaning |
//! |---|---|---|---|
//! | F | 1 | always | DATA_FIN: connection-level FIN; the mapping covers the last data |
//! | M, A, C | 1 each | always | mapping, Data ACK, payload CRC present (C is a bit of this project, OP-21) |
//! | pad | 12 | always | 0 |
//! | Data-level length | 16 | always | packets covered by the mapping; 0 when M = 0 |
//! | Data ACK | 32 | A = 1 | connection-level cumulative acknowledgement |
//! | DSN, SSN | 32 each | M = 1 | first connection-level and first subflow-level number of the mapping |
//! | Payload CRC-32 | 32 | M = 1 and C = 1 | over the mapped payload |
//!
//! Beside a cookie only M = 1, A = 0, C = 0 is legal, so that the cookie's length can be told.

use super::base::Base;
use super::codes::{DSS_ACK, DSS_CRC, DSS_FIN, DSS_MAPPING};
use super::cursor::{Reader, Writer};
use super::error::{EmitError, Found, ParseError};
use super::{Header, cookie};

/// Words of the only form that is legal beside a cookie.
pub(super) const WORDS_BESIDE_COOKIE: usize = 3;

/// Connection-level numbers of a multipath packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dss {
    /// F: DATA_FIN.
    pub fin: bool,
    /// Data ACK (A = 1).
    pub data_ack: Option<u32>,
    /// Mapping (M = 1).
    pub mapping: Option<Mapping>,
}

/// `length` packets from subflow number `ssn` on are the connection's packets from `dsn` on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mapping {
    /// First connection-level number.
    pub dsn: u32,
    /// First subflow-level number.
    pub ssn: u32,
    /// Packets covered.
    pub length: u16,
    /// CRC-32 over the mapped payload (C = 1), when integrity was negotiated with MP_CAPABLE.A.
    pub payload_crc: Option<u32>,
}

impl Dss {
    pub(super) fn words(&self) -> usize {
        let mapping = self
            .mapping
            .map_or(0, |m| 2 + usize::from(m.payload_crc.is_some()));
        1 + usize::from(self.data_ack.is_some()) + mapping
    }
}

pub(super) fn parse(reader: &mut Reader<'_>, beside_cookie: bool) -> Result<Dss, ParseError> {
    const NAME: &str = "a DSS of 1 + A + 2M + C words";
    let at = reader.offset();
    let first = reader.word(NAME)?;
    let has = |bit| first & bit != 0;
    if has(DSS_CRC) && !has(DSS_MAPPING) {
        return Err(ParseError::new(at, "DSS.C only with DSS.M", Found::Value(first)));
    }
    if beside_cookie && (!has(DSS_MAPPING) || has(DSS_ACK) || has(DSS_CRC)) {
        return Err(ParseError::new(
            at,
            "M = 1, A = 0, C = 0 in a DSS beside a cookie",
            Found::Value(first),
        ));
    }
    let data_ack = if has(DSS_ACK) {
        Some(reader.word(NAME)?)
    } else {
        None
    };
    let mapping = if has(DSS_MAPPING) {
        let (dsn, ssn) = (reader.word(NAME)?, reader.word(NAME)?);
        let payload_crc = if has(DSS_CRC) {
            Some(reader.word(NAME)?)
        } else {
            None
        };
        Some(Mapping {
            dsn,
            ssn,
            length: first as u16,
            payload_crc,
        })
    } else {
        None
    };
    Ok(Dss {
        fin: has(DSS_FIN),
        data_ack,
        mapping,
    })
}

#[inline]
pub(super) fn check(header: &Header, base: &Base) -> Result<(), EmitError> {
    match &header.dss {
        Some(dss) if cookie::announced(base) && !dss.fits_beside_cookie() => Err(EmitError::Forbidden {
            field: "DSS",
            found: dss.first_word(),
            rule: "beside a cookie it has a mapping without CRC and no Data ACK",
        }),
        _ => Ok(()),
    }
}

pub(super) fn emit(dss: &Dss, out: &mut Writer<'_>) {
    out.word(dss.first_word());
    dss.data_ack.into_iter().for_each(|number| out.word(number));
    if let Some(Mapping {
        dsn,
        ssn,
        payload_crc,
        ..
    }) = dss.mapping
    {
        out.word(dsn);
        out.word(ssn);
        payload_crc.into_iter().for_each(|crc| out.word(crc));
    }
}

impl Dss {
    fn fits_beside_cookie(&self) -> bool {
        self.data_ack.is_none()
            && matches!(
                self.mapping,
                Some(Mapping {
                    payload_crc: None,
                    ..
                })
            )
    }
    fn first_word(&self) -> u32 {
        let bit = |set: bool, bit: u32| if set { bit } else { 0 };
        let mapping = self.mapping.as_ref();
        bit(self.fin, DSS_FIN)
            | bit(mapping.is_some(), DSS_MAPPING)
            | bit(self.data_ack.is_some(), DSS_ACK)
            | bit(mapping.is_some_and(|m| m.payload_crc.is_some()), DSS_CRC)
            | mapping.map_or(0, |m| m.length.into())
    }
}
