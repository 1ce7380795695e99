//! The bytes of the protocol. Numbers are big-endian.

use super::{Capability, Digest};
use thiserror::Error;

/// First bytes of an offer.
const MAGIC: [u8; 4] = *b"RFT\0";
/// The only version.
const VERSION: u8 = 2;
/// Most bytes of a name, as of common file systems.
pub const MAX_NAME_BYTES: usize = 255;
/// Most bytes of an answer's body.
pub const MAX_BODY_BYTES: usize = 1024;

/// What a sender says first: the name of the file and how many bytes will follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// File name without a folder.
    pub name: String,
    /// Bytes of data.
    pub bytes: u64,
    /// What the sender's ticket gives.
    pub capability: Capability,
}

/// What is wrong with an offer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OfferError {
    /// Another protocol.
    #[error("this is no file transfer: it begins with {0:02x?}")]
    Magic([u8; 4]),
    /// Another version of this protocol.
    #[error(
        "version {0} of the file transfer protocol is not known here, only version {VERSION}; use the same release of restp on both sides"
    )]
    Version(u8),
    /// The name is empty or too long.
    #[error("a file name has 1 to {MAX_NAME_BYTES} bytes, this one has {0}")]
    NameLength(u16),
    /// The name is not UTF-8.
    #[error("the file name is not UTF-8")]
    NotText,
}

impl Offer {
    /// Bytes before the name.
    pub const HEAD_BYTES: usize = 15;

    /// The bytes of the offer. A name longer than its field is cut; the receiver refuses such names anyway.
    pub fn encode(&self) -> Vec<u8> {
        let name = &self.name.as_bytes()[..self.name.len().min(usize::from(u16::MAX))];
        let mut out = Vec::with_capacity(Self::HEAD_BYTES + name.len());
        out.extend_from_slice(&MAGIC);
        out.push(VERSION);
        out.extend_from_slice(&self.bytes.to_be_bytes());
        out.extend_from_slice(&(name.len() as u16).to_be_bytes());
        out.extend_from_slice(name);
        out.extend_from_slice(self.capability.bytes());
        out
    }

    /// Reads the fixed part: number of data bytes, and length of the name that follows; then comes the capability.
    ///
    /// # Errors
    /// Another protocol or version, or a length no name has.
    pub fn head(bytes: &[u8; Self::HEAD_BYTES]) -> Result<(u64, usize), OfferError> {
        let [m0, m1, m2, m3, version, size @ .., n1, n0] = *bytes;
        let magic = [m0, m1, m2, m3];
        if magic != MAGIC {
            return Err(OfferError::Magic(magic));
        }
        if version != VERSION {
            return Err(OfferError::Version(version));
        }
        let length = u16::from_be_bytes([n1, n0]);
        if length == 0 || usize::from(length) > MAX_NAME_BYTES {
            return Err(OfferError::NameLength(length));
        }
        Ok((u64::from_be_bytes(size), usize::from(length)))
    }

    /// Reads the name.
    ///
    /// # Errors
    /// When it is not UTF-8.
    pub fn name(bytes: Vec<u8>) -> Result<String, OfferError> {
        String::from_utf8(bytes).map_err(|_| OfferError::NotText)
    }
}

/// What a receiver says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The offer is taken.
    Accepted,
    /// The offer is not taken: why, and the way out.
    Refused(String),
    /// The file is complete and in its place; its digest as the receiver computed it.
    Verified(Digest),
    /// The transfer failed at the receiver.
    Failed(String),
}

/// What is wrong with an answer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AnswerError {
    /// The kind is none.
    #[error("an answer of the unknown kind {0}")]
    Kind(u8),
    /// The body is too long, or a digest is not one.
    #[error("an answer with a body of {0} bytes")]
    Length(u16),
}

const ACCEPTED: u8 = 1;
const REFUSED: u8 = 2;
const VERIFIED: u8 = 3;
const FAILED: u8 = 4;

impl Answer {
    /// Bytes before the body.
    pub const HEAD_BYTES: usize = 3;

    /// The bytes of the answer; a long sentence is cut.
    pub fn encode(&self) -> Vec<u8> {
        let (kind, body): (u8, &[u8]) = match self {
            Answer::Accepted => (ACCEPTED, &[]),
            Answer::Refused(why) => (REFUSED, cut(why)),
            Answer::Verified(digest) => (VERIFIED, digest),
            Answer::Failed(why) => (FAILED, cut(why)),
        };
        let mut out = vec![kind];
        out.extend_from_slice(&(body.len() as u16).to_be_bytes());
        out.extend_from_slice(body);
        out
    }

    /// Reads kind and length of the body that follows.
    ///
    /// # Errors
    /// When the length is too large for any answer.
    pub fn head([kind, n1, n0]: [u8; Self::HEAD_BYTES]) -> Result<(u8, usize), AnswerError> {
        let length = u16::from_be_bytes([n1, n0]);
        if !(ACCEPTED..=FAILED).contains(&kind) {
            return Err(AnswerError::Kind(kind));
        }
        if usize::from(length) > MAX_BODY_BYTES {
            return Err(AnswerError::Length(length));
        }
        Ok((kind, usize::from(length)))
    }

    /// Reads the body. Sentences of a peer are for eyes: control characters do not reach the terminal.
    ///
    /// # Errors
    /// When the kind is none, or its body is not as long as it must be.
    pub fn body(kind: u8, body: &[u8]) -> Result<Answer, AnswerError> {
        match kind {
            ACCEPTED if body.is_empty() => Ok(Answer::Accepted),
            REFUSED => Ok(Answer::Refused(printable(body))),
            VERIFIED => match body.try_into() {
                Ok(digest) => Ok(Answer::Verified(digest)),
                Err(_) => Err(AnswerError::Length(body.len() as u16)),
            },
            FAILED => Ok(Answer::Failed(printable(body))),
            ACCEPTED => Err(AnswerError::Length(body.len() as u16)),
            other => Err(AnswerError::Kind(other)),
        }
    }
}

fn cut(sentence: &str) -> &[u8] {
    &sentence.as_bytes()[..sentence.floor_char_boundary(MAX_BODY_BYTES)]
}

/// Text of a peer without anything that could steer a terminal.
pub fn printable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes)
        .chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<Offer, OfferError> {
        let (head, name) = bytes.split_first_chunk().expect("long enough");
        let (bytes, length) = Offer::head(head)?;
        let (name, capability) = name.split_last_chunk().expect("a capability");
        assert_eq!(length, name.len());
        let (name, capability) = (Offer::name(name.into())?, Capability::from(*capability));
        Ok(Offer {
            name,
            bytes,
            capability,
        })
    }

    #[test]
    fn an_offer_as_written_in_the_protocol() {
        let offer = Offer {
            name: "a.txt".into(),
            bytes: 258,
            capability: Capability::from(*b"0123456789abcdef"),
        };
        let bytes = offer.encode();
        assert_eq!(
            bytes, *b"RFT\0\x02\0\0\0\0\0\0\x01\x02\0\x05a.txt0123456789abcdef",
            "magic, version, size, length, name, capability"
        );
        assert_eq!(read(&bytes), Ok(offer));
    }

    #[test]
    fn other_protocols_versions_and_lengths_are_refused_with_a_sentence() {
        let good = Offer {
            name: "a".into(),
            bytes: 0,
            capability: Capability::none(),
        }
        .encode();
        let changed = |at: usize, byte: u8| {
            let mut bytes = good.clone();
            bytes[at] = byte;
            read(&bytes).unwrap_err().to_string()
        };
        assert!(changed(0, b'G').contains("no file transfer"));
        assert!(changed(4, 1).contains("version 1"), "{}", changed(4, 1));
        assert!(changed(14, 0).contains("1 to 255"));
        assert!(changed(13, 1).contains("257"));
        assert!(changed(15, 0xff).contains("UTF-8"));
    }

    #[test]
    fn answers_survive_the_way() {
        let long = "ü".repeat(2000);
        for answer in [
            Answer::Accepted,
            Answer::Refused("no".into()),
            Answer::Verified([7; 32]),
            Answer::Failed(String::new()),
        ] {
            let bytes = answer.encode();
            let (head, body) = bytes.split_first_chunk().expect("long enough");
            let (kind, length) = Answer::head(*head).expect("a head");
            assert_eq!(length, body.len());
            assert_eq!(Answer::body(kind, body), Ok(answer));
        }
        assert_eq!(Answer::Failed(long).encode().len(), 3 + MAX_BODY_BYTES);
    }

    #[test]
    fn answers_that_are_none() {
        assert_eq!(Answer::head([9, 0, 0]), Err(AnswerError::Kind(9)));
        assert_eq!(Answer::head([1, 255, 255]), Err(AnswerError::Length(65535)));
        assert_eq!(Answer::body(3, &[1]), Err(AnswerError::Length(1)));
        assert_eq!(Answer::body(1, &[1]), Err(AnswerError::Length(1)));
        assert_eq!(
            Answer::body(2, b"\x1b[2Jgone"),
            Ok(Answer::Refused("\u{fffd}[2Jgone".into()))
        );
    }
}
