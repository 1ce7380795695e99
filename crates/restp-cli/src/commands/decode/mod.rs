//! `restp decode`: PDUs field by field.
//!
//! | File | Holds |
//! |---|---|
//! | `input` | where PDUs come from: digits, files, standard input |
//! | `capture` | pcap and pcapng: frames of a capture file |
//! | `frame` | payloads of captured frames |
//! | `sealed` | what is outside the seal of a datagram |

pub(crate) mod capture;
mod frame;
mod input;
mod sealed;

use crate::args::Decode;
use crate::failure::Failure;
use crate::output::{self, Output};
use input::Pdu;
use restp_lab::report;
use restp_proto::wire::{self, ErrorControl, Header};
use sealed::Outside;
use serde::Serialize;

/// Prints every PDU.
///
/// # Errors
/// Exit code 2 when the input cannot be read, 1 when a PDU is malformed or damaged.
pub fn execute(arguments: &Decode, output: Output) -> Result<(), Failure> {
    let pdus = input::pdus(&arguments.input, arguments.port)?;
    if pdus.is_empty() {
        return Err(Failure::input("there is no UDP payload in the input"));
    }
    let (mut bad, mut sealed) = (0, 0);
    for pdu in &pdus {
        let decoded = Decoded::of(pdu);
        sealed += usize::from(decoded.sealed.is_some());
        if let Some(complaint) = decoded.complaint() {
            bad += 1;
            output::note(format!("error: {}: {complaint}", pdu.source));
        }
        if output.json || decoded.error.is_none() {
            output.result(&decoded, Decoded::describe)?;
        }
    }
    if sealed > 0 {
        output::note(format!(
            "{sealed} of {} are sealed: what is encrypted is not shown, and was not checked",
            pdus.len()
        ));
    }
    match bad {
        0 => Ok(()),
        _ if pdus.len() == 1 => Err(Failure::silent()),
        _ => Err(Failure::operation(format!(
            "{bad} of {} PDUs would be dropped",
            pdus.len()
        ))),
    }
}

/// One PDU as printed.
#[derive(Debug, Serialize)]
struct Decoded {
    source: String,
    bytes: usize,
    fields: Vec<DecodedField>,
    header_bytes: Option<usize>,
    payload_bytes: Option<usize>,
    /// Whether the codes are right; absent without CRC.
    header_crc_good: Option<bool>,
    payload_crc_good: Option<bool>,
    /// What it is called where it is sealed: the PDU inside cannot be read.
    sealed: Option<&'static str>,
    error: Option<Malformation>,
}

#[derive(Debug, Serialize)]
struct DecodedField {
    offset_bits: usize,
    length_bits: usize,
    name: &'static str,
    value: String,
    meaning: String,
}

/// The rule a receiver would drop the PDU for.
#[derive(Debug, Serialize)]
struct Malformation {
    offset: usize,
    expected: &'static str,
    found: String,
    message: String,
}

impl Decoded {
    fn of(pdu: &Pdu) -> Self {
        let mut decoded = Decoded {
            source: pdu.source.clone(),
            bytes: pdu.bytes.len(),
            fields: Vec::new(),
            header_bytes: None,
            payload_bytes: None,
            header_crc_good: None,
            payload_crc_good: None,
            sealed: None,
            error: None,
        };
        if sealed::is_sealed(&pdu.bytes) {
            decoded.take_outside(&pdu.bytes);
            return decoded;
        }
        let parsed = Header::parse(&pdu.bytes, pdu.bytes.len());
        let read = parsed.and_then(|parsed| Ok((parsed, wire::describe(&pdu.bytes)?)));
        match read {
            Ok(((header, length), fields)) => {
                let (head, payload) = pdu.bytes.split_at(length);
                if header.services.error.has(ErrorControl::CRC) {
                    decoded.header_crc_good = Some(wire::verify_header(head));
                    decoded.payload_crc_good =
                        (!payload.is_empty()).then(|| wire::verify_payload(head, payload));
                }
                decoded.header_bytes = Some(length);
                decoded.payload_bytes = Some(payload.len());
                let fields = fields.into_iter().map(|field| DecodedField {
                    offset_bits: field.offset,
                    length_bits: field.length,
                    name: field.name,
                    value: field.value,
                    meaning: field.meaning,
                });
                decoded.fields = fields.collect();
            }
            Err(error) => {
                decoded.error = Some(Malformation {
                    offset: error.offset,
                    expected: error.expected,
                    found: error.found.to_string(),
                    message: error.to_string(),
                });
            }
        }
        decoded
    }

    fn take_outside(&mut self, bytes: &[u8]) {
        match Outside::of(bytes) {
            Some(outside) => {
                self.sealed = Some(outside.name);
                self.fields = outside.fields;
                self.header_bytes = Some(outside.open_bytes);
                self.payload_bytes = Some(outside.closed_bytes);
            }
            None => {
                let found = format!("0x{:02x} and {} bytes", bytes[0], bytes.len());
                let expected = "a datagram of the seal, as its first bit says";
                self.error = Some(Malformation {
                    offset: 0,
                    expected,
                    message: format!("at byte 0: expected {expected}, found {found}"),
                    found,
                });
            }
        }
    }

    /// Why a receiver would drop it.
    fn complaint(&self) -> Option<String> {
        match (&self.error, self.header_crc_good, self.payload_crc_good) {
            (Some(error), _, _) => Some(error.message.clone()),
            (None, Some(false), _) => Some("the CRC-16 of the header is wrong".into()),
            (None, _, Some(false)) => Some("the CRC-32 of the payload is wrong".into()),
            _ => None,
        }
    }

    fn describe(&self) -> String {
        let Decoded { source, bytes, .. } = self;
        let (header, payload) = (self.header_bytes.unwrap_or(0), self.payload_bytes.unwrap_or(0));
        let headings = ["byte", "bits", "name", "value", "meaning"]
            .map(String::from)
            .to_vec();
        let fields = self.fields.iter().map(|field| {
            vec![
                place(field.offset_bits),
                field.length_bits.to_string(),
                field.name.into(),
                field.value.clone(),
                field.meaning.clone(),
            ]
        });
        let rows: Vec<Vec<String>> = [headings].into_iter().chain(fields).collect();
        let table = report::plain(&rows);
        let bytes = output::bytes(*bytes as u64);
        match self.sealed {
            Some(name) => {
                format!("{source}: {bytes}, sealed ({name}): {header} open, {payload} encrypted\n{table}")
            }
            None => format!("{source}: {bytes}, header {header}, payload {payload}\n{table}"),
        }
    }
}

/// The byte a field begins in, with its bit where that is not the first.
fn place(bits: usize) -> String {
    match bits % 8 {
        0 => (bits / 8).to_string(),
        bit => format!("{}.{bit}", bits / 8),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(hex: &str) -> Decoded {
        let bytes = data_encoding::HEXUPPER.decode(hex.as_bytes()).expect("digits");
        Decoded::of(&Pdu {
            source: "test".into(),
            bytes,
        })
    }

    #[test]
    fn codes_are_judged_where_they_are_announced() {
        let good = decoded(
            "050000200001000 0C350005081080000CBF43926313233343536373839"
                .replace(' ', "")
                .as_str(),
        );
        assert_eq!(
            (good.header_crc_good, good.payload_crc_good),
            (Some(true), Some(true))
        );
        assert_eq!((good.header_bytes, good.payload_bytes), (Some(20), Some(9)));
        assert!(good.complaint().is_none());
        let damaged = decoded("0500002000010000C350005081080000CBF43926313233343536373838");
        assert!(damaged.complaint().is_some_and(|why| why.contains("CRC-32")));
        assert_eq!(decoded("0300000000010000C3500050").header_crc_good, None);
    }

    #[test]
    fn a_malformed_pdu_names_offset_rule_and_what_was_found() {
        let error = decoded("1300000000010000C3500050").error.expect("version 1");
        assert_eq!((error.offset, error.expected), (0, "Version 0"));
        assert!(error.message.contains("0x01"), "{}", error.message);
    }

    #[test]
    fn a_sealed_datagram_is_no_malformed_pdu() {
        let packet = decoded(&format!("C3{}", "00".repeat(40)));
        assert_eq!((packet.sealed, packet.complaint()), (Some("Packet"), None));
        assert!(
            packet
                .describe()
                .contains("sealed (Packet): 15 open, 26 encrypted"),
            "{}",
            packet.describe()
        );
        let neither = decoded("8800").complaint().expect("neither");
        assert!(
            neither.contains("a datagram of the seal") && neither.contains("0x88 and 2 bytes"),
            "{neither}"
        );
    }

    #[test]
    fn a_field_inside_a_byte_shows_its_bit() {
        assert_eq!(
            (place(0), place(4), place(16)),
            ("0".into(), "0.4".into(), "2".into())
        );
    }
}
