//! The bytes of the protocol. Numbers are big-endian.

use super::{Capability, Digest, manifest};
use thiserror::Error;

/// First bytes of an offer.
const MAGIC: [u8; 4] = *b"RFT\0";
/// The only version.
const VERSION: u8 = 4;
/// Most bytes of a name, as of common file systems.
pub const MAX_NAME_BYTES: usize = 255;
/// Most bytes of an answer's body.
pub const MAX_BODY_BYTES: usize = 1024;

/// What a sender says first: what it may, how long it bears a silent path, and how long the manifest is that follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// What the sender's ticket gives.
    pub capability: Capability,
    /// Its user timeout, in seconds: an outage that one end bears is of no use unless the other does (RFC 5482).
    pub user_timeout_seconds: u32,
    /// Bytes of the manifest.
    pub manifest_bytes: u32,
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
    /// The manifest is empty or too long.
    #[error("a list of files has 1 to {max} bytes, this one has {0}", max = manifest::MAX_BYTES)]
    ManifestLength(u32),
}

impl Offer {
    /// Bytes that say which protocol and version follows, in every version.
    pub const PREFACE_BYTES: usize = 5;
    /// Bytes after that, before the manifest.
    pub const HEAD_BYTES: usize = Capability::BYTES + 4 + 4;

    /// The bytes of the offer.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(Self::PREFACE_BYTES + Self::HEAD_BYTES);
        out.extend_from_slice(&MAGIC);
        out.push(VERSION);
        out.extend_from_slice(self.capability.bytes());
        out.extend_from_slice(&self.user_timeout_seconds.to_be_bytes());
        out.extend_from_slice(&self.manifest_bytes.to_be_bytes());
        out
    }

    /// Reads what is the same in every version.
    ///
    /// # Errors
    /// Another protocol or version.
    pub fn check_preface(bytes: [u8; Self::PREFACE_BYTES]) -> Result<(), OfferError> {
        let [m0, m1, m2, m3, version] = bytes;
        let magic = [m0, m1, m2, m3];
        if magic != MAGIC {
            Err(OfferError::Magic(magic))
        } else if version != VERSION {
            Err(OfferError::Version(version))
        } else {
            Ok(())
        }
    }

    /// Reads the rest.
    ///
    /// # Errors
    /// A length that no manifest has.
    pub fn decode(bytes: &[u8; Self::HEAD_BYTES]) -> Result<Self, OfferError> {
        let [capability @ .., t3, t2, t1, t0, n3, n2, n1, n0] = *bytes;
        let manifest_bytes = u32::from_be_bytes([n3, n2, n1, n0]);
        if manifest_bytes == 0 || manifest_bytes as usize > manifest::MAX_BYTES {
            return Err(OfferError::ManifestLength(manifest_bytes));
        }
        Ok(Offer {
            capability: Capability::from(capability),
            user_timeout_seconds: u32::from_be_bytes([t3, t2, t1, t0]),
            manifest_bytes,
        })
    }
}

/// What becomes of the next bytes of a file. Records of all files follow each other in the order of the manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// So many bytes follow.
    Data(u32),
    /// So many bytes are zero, and take no room on the disk.
    Hole(u32),
    /// So many bytes are as the receiver said that it has them.
    Same(u32),
    /// The file is over; its digest follows.
    End,
    /// It does not come after all, and neither does anything of it that has come stay.
    Left,
}

/// A record is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RecordError {
    #[error("a record of the unknown kind {0}")]
    Kind(u8),
    #[error("a record of {0} bytes that do not come; {most} at most are one", most = Record::MOST_UNSENT)]
    Length(u32),
}

const DATA: u8 = 1;
const HOLE: u8 = 2;
const END: u8 = 3;
const SAME: u8 = 4;
const LEFT: u8 = 5;

impl Record {
    /// Bytes of a record, without what follows it.
    pub const BYTES: usize = 5;

    /// What it says of bytes that do not come is about so many at most: a receiver has to work on them, and looks between two records
    /// whether there is still somebody who sends.
    pub const MOST_UNSENT: u32 = 256 << 20;

    /// The bytes of the record.
    pub fn encode(self) -> [u8; Self::BYTES] {
        let (kind, length) = match self {
            Record::Data(length) => (DATA, length),
            Record::Hole(length) => (HOLE, length),
            Record::Same(length) => (SAME, length),
            Record::End => (END, 0),
            Record::Left => (LEFT, 0),
        };
        let [n3, n2, n1, n0] = length.to_be_bytes();
        [kind, n3, n2, n1, n0]
    }

    /// Reads one.
    ///
    /// # Errors
    /// When its kind is none.
    pub fn decode([kind, length @ ..]: [u8; Self::BYTES]) -> Result<Self, RecordError> {
        let length = u32::from_be_bytes(length);
        match kind {
            DATA => Ok(Record::Data(length)),
            HOLE | SAME if length > Record::MOST_UNSENT => Err(RecordError::Length(length)),
            HOLE => Ok(Record::Hole(length)),
            END => Ok(Record::End),
            LEFT => Ok(Record::Left),
            SAME => Ok(Record::Same(length)),
            other => Err(RecordError::Kind(other)),
        }
    }
}

/// What a receiver says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The offer is taken.
    Accepted,
    /// The offer is not taken: why, and the way out.
    Refused(String),
    /// Everything is complete and in its place; its digest as the receiver computed it, and files that were there already.
    Verified(Digest, u64),
    /// The transfer failed at the receiver.
    Failed(String),
    /// Of so many further files it has nothing.
    Nothing(u32),
    /// Of the next file it has so many bytes; the digests of their chunks follow.
    Has(u64),
    /// Digests of the next chunks.
    Digests(Vec<Digest>),
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
const NOTHING: u8 = 5;
const HAS: u8 = 6;
const DIGESTS: u8 = 7;

impl Answer {
    /// Bytes before the body.
    pub const HEAD_BYTES: usize = 3;

    /// The bytes of the answer; a long sentence is cut.
    pub fn encode(&self) -> Vec<u8> {
        let (kind, body) = match self {
            Answer::Accepted => (ACCEPTED, Vec::new()),
            Answer::Refused(why) => (REFUSED, cut(why)),
            Answer::Verified(digest, skipped) => (VERIFIED, [&digest[..], &skipped.to_be_bytes()].concat()),
            Answer::Failed(why) => (FAILED, cut(why)),
            Answer::Nothing(files) => (NOTHING, files.to_be_bytes().to_vec()),
            Answer::Has(bytes) => (HAS, bytes.to_be_bytes().to_vec()),
            Answer::Digests(digests) => (DIGESTS, digests.concat()),
        };
        let mut out = vec![kind];
        out.extend_from_slice(&(body.len() as u16).to_be_bytes());
        out.extend_from_slice(&body);
        out
    }

    /// Reads kind and length of the body that follows.
    ///
    /// # Errors
    /// When the length is too large for any answer.
    pub fn head([kind, n1, n0]: [u8; Self::HEAD_BYTES]) -> Result<(u8, usize), AnswerError> {
        let length = u16::from_be_bytes([n1, n0]);
        if !(ACCEPTED..=DIGESTS).contains(&kind) {
            return Err(AnswerError::Kind(kind));
        }
        if usize::from(length) > MAX_BODY_BYTES {
            return Err(AnswerError::Length(length));
        }
        Ok((kind, usize::from(length)))
    }

    /// Reads the body. What a peer says is shown to people: control characters do not reach the terminal.
    ///
    /// # Errors
    /// When the kind is none, or its body is not as long as it must be.
    pub fn body(kind: u8, body: &[u8]) -> Result<Answer, AnswerError> {
        let other_length = AnswerError::Length(body.len() as u16);
        let answer = match kind {
            ACCEPTED => body.is_empty().then_some(Answer::Accepted),
            REFUSED => Some(Answer::Refused(printable(body))),
            VERIFIED => body.split_first_chunk().and_then(|(digest, skipped)| {
                Some(Answer::Verified(
                    *digest,
                    u64::from_be_bytes(skipped.try_into().ok()?),
                ))
            }),
            FAILED => Some(Answer::Failed(printable(body))),
            NOTHING => number(body).map(|files| Answer::Nothing(u32::from_be_bytes(files))),
            HAS => number(body).map(|bytes| Answer::Has(u64::from_be_bytes(bytes))),
            DIGESTS => match body.as_chunks() {
                (digests, []) => Some(Answer::Digests(digests.to_vec())),
                _ => None,
            },
            other => return Err(AnswerError::Kind(other)),
        };
        answer.ok_or(other_length)
    }
}

fn number<const N: usize>(body: &[u8]) -> Option<[u8; N]> {
    body.try_into().ok()
}

fn cut(sentence: &str) -> Vec<u8> {
    sentence.as_bytes()[..sentence.floor_char_boundary(MAX_BODY_BYTES)].to_vec()
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
        let (preface, head) = bytes.split_first_chunk().expect("long enough");
        Offer::check_preface(*preface)?;
        Offer::decode(head.try_into().expect("nothing else"))
    }

    #[test]
    fn an_offer_as_written_in_the_protocol() {
        let offer = Offer {
            capability: Capability::from(*b"0123456789abcdef"),
            user_timeout_seconds: 3600,
            manifest_bytes: 258,
        };
        let bytes = offer.encode();
        assert_eq!(
            bytes, *b"RFT\0\x040123456789abcdef\0\0\x0e\x10\0\0\x01\x02",
            "magic, version, capability, user timeout, length of the manifest"
        );
        assert_eq!(read(&bytes), Ok(offer));
    }

    #[test]
    fn other_protocols_versions_and_lengths_are_refused_with_a_sentence() {
        let good = Offer {
            capability: Capability::none(),
            user_timeout_seconds: 30,
            manifest_bytes: 1,
        }
        .encode();
        let changed = |at: usize, byte: u8| {
            let mut bytes = good.clone();
            bytes[at] = byte;
            read(&bytes).unwrap_err().to_string()
        };
        assert!(changed(0, b'G').contains("no file transfer"));
        assert!(changed(4, 2).contains("version 2"), "{}", changed(4, 2));
        assert!(changed(28, 0).contains("this one has 0"));
        assert!(changed(25, 1).contains("16777217"), "{}", changed(25, 1));
    }

    #[test]
    fn records_survive_the_way() {
        for record in [
            Record::Data(258),
            Record::Hole(Record::MOST_UNSENT),
            Record::Same(1),
            Record::End,
        ] {
            assert_eq!(Record::decode(record.encode()), Ok(record));
        }
        assert_eq!(Record::decode([0; 5]), Err(RecordError::Kind(0)));
        let too_many = Record::MOST_UNSENT + 1;
        for record in [Record::Hole(too_many), Record::Same(too_many)] {
            assert_eq!(
                Record::decode(record.encode()),
                Err(RecordError::Length(too_many))
            );
        }
        assert!(Record::decode(Record::Data(u32::MAX).encode()).is_ok());
    }

    #[test]
    fn answers_survive_the_way() {
        let long = "ü".repeat(2000);
        for answer in [
            Answer::Accepted,
            Answer::Refused("no".into()),
            Answer::Verified([7; 32], 258),
            Answer::Failed(String::new()),
            Answer::Nothing(258),
            Answer::Has(1 << 40),
            Answer::Digests(vec![[7; 32]; 32]),
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
        assert_eq!(Answer::body(5, &[0; 8]), Err(AnswerError::Length(8)));
        assert_eq!(Answer::body(7, &[0; 33]), Err(AnswerError::Length(33)));
        assert_eq!(
            Answer::body(2, b"\x1b[2Jgone"),
            Ok(Answer::Refused("\u{fffd}[2Jgone".into()))
        );
    }
}
