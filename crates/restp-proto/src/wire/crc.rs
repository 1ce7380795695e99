//! CRC extension (ResTP §3.1.2): HEC CRC-16, 16 pad bits, and a payload CRC-32 when there is payload. Present
//! if and only if CRC = 1, right after the base PDU, so that it can be verified before parsing on (OP-9).
//!
//! The HEC covers base and all extensions with its own field taken as 0, and is computed after the payload
//! CRC. Bad HEC: drop silently. Good HEC and bad payload CRC: drop the payload, count as corruption, treat
//! as missing. Generators are OP-24.

use super::base::{self, Base};
use super::codes::ErrorControl;
use super::cursor::Reader;
use super::error::ParseError;

/// Neither reflected nor inverted at the end, so that the table alone makes the code.
const HEC: crc::Algorithm<u16> = crc::CRC_16_IBM_3740;
static HEC_TABLE: [u16; 256] = crc::Crc::<u16, crc::Table<1>>::new(&crc::CRC_16_IBM_3740).table()[0];
const HEC_AT: usize = 12;
const PAYLOAD_CRC_AT: usize = 16;

#[inline]
pub(super) fn announced(base: &Base) -> bool {
    base.services.error.has(ErrorControl::CRC)
}

/// Words of the extension when announced.
pub(super) fn words(with_payload: bool) -> usize {
    if with_payload { 2 } else { 1 }
}

/// Passes over the extension: its values are no part of a [`Header`], they are verified on the bytes.
pub(super) fn skip(reader: &mut Reader<'_>, with_payload: bool) -> Result<(), ParseError> {
    reader
        .words(
            words(with_payload),
            "the CRC extension (HEC, and payload CRC before a payload)",
        )
        .map(|_| ())
}

/// Fills in both codes of a finished header that announces them.
pub(super) fn seal(head: &mut [u8], payload: &[u8]) {
    if !payload.is_empty() {
        head[PAYLOAD_CRC_AT..PAYLOAD_CRC_AT + 4].copy_from_slice(&of_payload(payload).to_be_bytes());
    }
    if let Some((hec, _)) = of_header(head) {
        head[HEC_AT..HEC_AT + 2].copy_from_slice(&hec.to_be_bytes());
    }
}

/// CRC-16 of a header with its HEC field taken as 0; the field itself. `None` when the header is too short for it.
#[inline]
pub(super) fn of_header(header: &[u8]) -> Option<(u16, u16)> {
    let (base, rest) = header.split_first_chunk::<HEC_AT>()?;
    let (field, rest) = rest.split_first_chunk()?;
    let zeroed = base.iter().chain(&[0, 0]).chain(rest);
    Some((hec(zeroed), u16::from_be_bytes(*field)))
}

/// CRC-16 of some bytes.
fn hec<'a>(bytes: impl Iterator<Item = &'a u8>) -> u16 {
    bytes.fold(HEC.init, |code, byte| {
        let [high, low] = code.to_be_bytes();
        HEC_TABLE[usize::from(high ^ byte)] ^ u16::from_be_bytes([low, 0])
    })
}

/// CRC-32 of a payload.
pub(super) fn of_payload(payload: &[u8]) -> u32 {
    crc32fast::hash(payload)
}

/// What the codes say of a PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Integrity {
    /// Both are right, or it carries none.
    Whole,
    /// The header is, the payload is not.
    Damaged,
    /// The header is not what was sent: nothing in it is to be believed.
    Unknown,
}

/// Checks both codes of the PDU whose header is `head`, where it announces them. See [`verify_header`].
pub fn verify(head: &[u8], payload: &[u8]) -> Integrity {
    if !verify_header(head) {
        Integrity::Unknown
    } else if verify_payload(head, payload) {
        Integrity::Whole
    } else {
        Integrity::Damaged
    }
}

/// True when the header at the start of `head` carries no HEC or a right one. A header that is cut short or
/// whose length makes no sense is not right.
///
/// A flipped CRC flag looks like a header without CRC: an association that negotiated CRC must refuse it by
/// its services ([`super::Services::agree`]).
pub fn verify_header(head: &[u8]) -> bool {
    let Some(base) = head.first_chunk::<12>() else {
        return false;
    };
    if !carries(base) {
        return true;
    }
    let length = 4 * base::words(base);
    match head.get(..length) {
        Some(header) if length >= PAYLOAD_CRC_AT => {
            of_header(header).is_some_and(|(computed, field)| computed == field)
        }
        _ => false,
    }
}

/// True when the header at the start of `head` carries no payload CRC or the one of `payload`.
pub fn verify_payload(head: &[u8], payload: &[u8]) -> bool {
    let Some(base) = head.first_chunk::<12>() else {
        return false;
    };
    if payload.is_empty() || !carries(base) {
        return true;
    }
    head.get(PAYLOAD_CRC_AT..PAYLOAD_CRC_AT + 4) == Some(&of_payload(payload).to_be_bytes()[..])
}

fn carries(base: &[u8; 12]) -> bool {
    ErrorControl::from_bits(base[3]).has(ErrorControl::CRC)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generators_give_the_published_check_values() {
        assert_eq!(hec(b"123456789".iter()), 0x29B1);
        assert_eq!(of_payload(b"123456789"), 0xCBF4_3926);
    }

    #[test]
    fn any_single_flipped_bit_is_noticed_unless_it_hides_the_crc_itself() {
        let head: [u8; 20] = [
            0x05, 0, 0, 0x20, 0, 1, 0, 0, 0xC3, 0x50, 0, 0x50, 0x81, 0x08, 0, 0, 0xCB, 0xF4, 0x39, 0x26,
        ];
        assert!(verify_header(&head) && verify_payload(&head, b"123456789"));
        assert!(!verify_payload(&head, b"123456788"));
        for bit in 0..160 {
            let mut flipped = head;
            flipped[bit / 8] ^= 0x80 >> (bit % 8);
            let crc_flag = bit / 8 == 3 && bit % 8 == 2;
            assert_eq!(verify_header(&flipped), crc_flag, "bit {bit}");
        }
        for length in 0..20 {
            assert!(!verify_header(&head[..length]));
        }
    }
}
