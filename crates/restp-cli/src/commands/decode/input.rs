//! Where PDUs come from. What names a file is a file; the rest must be hexadecimal digits.

use super::{capture, frame};
use crate::failure::Failure;
use std::io::Read;
use std::path::Path;

/// One PDU and where it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pdu {
    pub source: String,
    pub bytes: Vec<u8>,
}

/// The PDUs of all arguments: every file on its own, digits together as one PDU. From captures, only UDP payloads
/// from or to `port`, if there is one.
///
/// # Errors
/// When a file cannot be read or is a broken capture, or digits are none.
pub fn pdus(arguments: &[String], port: Option<u16>) -> Result<Vec<Pdu>, Failure> {
    if arguments.iter().all(|argument| argument.trim().is_empty()) {
        return Err(empty("the input"));
    }
    let mut pdus = Vec::new();
    let mut digits = String::new();
    for argument in arguments {
        if argument == "-" {
            pdus.extend(standard_input()?);
        } else if Path::new(argument).exists() {
            pdus.extend(file(argument, port)?);
        } else {
            digits += argument;
        }
    }
    if !digits.trim().is_empty() {
        let bytes = hex(&digits)
            .map_err(|why| Failure::input(format!("\"{digits}\" is neither a file nor a PDU: {why}")))?;
        pdus.push(Pdu {
            source: "argument".into(),
            bytes,
        });
    }
    Ok(pdus)
}

fn empty(what: &str) -> Failure {
    Failure::input(format!(
        "{what} is empty; a PDU has at least one byte: write hexadecimal digits, or name a file"
    ))
}

/// One PDU per line.
fn standard_input() -> Result<Vec<Pdu>, Failure> {
    let mut text = String::new();
    let read = std::io::stdin().read_to_string(&mut text);
    read.map_err(|error| Failure::input(format!("standard input: {error}; write hexadecimal digits")))?;
    if text.trim().is_empty() {
        return Err(empty("standard input"));
    }
    let lines = (1..)
        .zip(text.lines())
        .filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(number, line)| {
            let source = format!("line {number}");
            match hex(line) {
                Ok(bytes) => Ok(Pdu { source, bytes }),
                Err(why) => Err(Failure::input(format!("standard input, {source}: {why}"))),
            }
        })
        .collect()
}

fn file(name: &str, port: Option<u16>) -> Result<Vec<Pdu>, Failure> {
    let complain = |why: String| Failure::input(format!("{name}: {why}"));
    let bytes = std::fs::read(name).map_err(|error| complain(error.to_string()))?;
    if bytes.is_empty() {
        return Err(empty(name));
    }
    let Some(frames) = capture::frames(&bytes) else {
        let source = name.to_owned();
        return Ok(vec![Pdu { source, bytes }]);
    };
    let mut pdus = Vec::new();
    for (number, captured) in (1..).zip(frames) {
        let captured = captured.map_err(|error| complain(error.to_string()))?;
        let Some(datagram) = frame::datagram(captured.link, captured.bytes) else {
            continue;
        };
        if port.is_none_or(|port| datagram.from.port() == port || datagram.to.port() == port) {
            pdus.push(Pdu {
                source: format!("{name}, packet {number}, {} -> {}", datagram.from, datagram.to),
                bytes: datagram.payload.to_vec(),
            });
        }
    }
    Ok(pdus)
}

/// Reads hexadecimal digits; spaces, and the punctuation of dumps, may stand between bytes.
fn hex(text: &str) -> Result<Vec<u8>, String> {
    let mut digits = Vec::with_capacity(text.len() / 2);
    let text = text.trim();
    for c in text.strip_prefix("0x").unwrap_or(text).chars() {
        match c.to_digit(16) {
            Some(digit) => digits.push(digit as u8),
            None if c.is_whitespace() || c == ':' || c == '_' => {}
            None => return Err(format!("'{}' is no hexadecimal digit", c.escape_default())),
        }
    }
    if digits.len() % 2 != 0 {
        return Err(format!("{} hexadecimal digits are no whole bytes", digits.len()));
    }
    Ok(digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_as_people_write_them() {
        assert_eq!(hex("0x0A 0b:0C"), Ok(vec![10, 11, 12]));
        assert_eq!(hex(""), Ok(vec![]));
        assert!(hex("abc").is_err_and(|why| why.contains("3 hex")));
        assert!(hex("zz").is_err_and(|why| why.contains("'z'")));
    }

    #[test]
    fn words_of_one_pdu_may_be_separate_arguments() {
        let words = ["03000000", "00010000", "C3500050"].map(str::to_owned);
        let pdus = pdus(&words, None).expect("digits");
        assert_eq!(pdus.len(), 1);
        assert_eq!(pdus[0].bytes.len(), 12);
    }
}
