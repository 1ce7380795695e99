//! ITP's header (ITP §III; layout ITP 4.1, 4.2, which are ours): 20 bytes as TCP's, a type, the manifest pointer and what the type
//! adds. It travels inside UDP, whose length and check sum hold for all of it. Big-endian, 32-bit words.

use restp_base::machine::Head;
use restp_base::ranges::Ranges;
use smallvec::SmallVec;
use thiserror::Error;

/// Bytes of the fixed part.
pub const HEADER_BYTES: usize = 20;
/// The one version there is.
const VERSION: u8 = 1;
/// Most words of a bitmap.
const MOST_WORDS: usize = 32;

/// Bits of the flags field.
pub mod flags {
    /// Chunks are named by their digests.
    pub const HASH: u8 = 0x80;
    /// The last chunk.
    pub const LAST: u8 = 0x40;
    /// The chunk is a manifest.
    pub const MANIFEST: u8 = 0x20;
    /// A cache answers, sooner than the way to the producer and back takes.
    pub const CACHE: u8 = 0x10;
    /// A snapshot of what the consumer holds is there.
    pub const SNAPSHOT: u8 = 0x08;
    /// The chunk was asked for before.
    pub const REPEATED: u8 = 0x04;
}

/// The fixed part of MP(D): which chunk of which object, and which Interest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pointer {
    /// First bytes of the digest of the manifest's core; with a request its number.
    pub object: u64,
    /// Index in the order of the manifest.
    pub chunk: u32,
    /// Of the Interest; of the attempt with a request or a manifest.
    pub sequence: u32,
}

/// What a consumer holds, beside an Interest: an acknowledgement vector, which informs and asks nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// The lowest chunk that is missing.
    pub base: u32,
    /// Bit k, from the highest of the first word: chunk `base` + 1 + k is held.
    pub words: SmallVec<[u32; 4]>,
    /// Data packets that may answer; 0 means 1.
    pub most_packets: u8,
}

/// Why a producer does not answer with data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Nobody knows the object here, or no more.
    NoNexus,
    /// The consumer may not have it.
    NotAuthorised,
    /// The object has no such chunk.
    NoSuchChunk,
    /// Later, perhaps.
    Busy,
    /// The consumer has to show first that it is where it says it is: by the cookie that comes with this.
    Unproved,
}

/// The type of a message, with what belongs to it alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Asks an application for something.
    Request,
    /// Carries a manifest, which answers the request of this number, if any.
    Manifest {
        /// 0 if nobody asked.
        request: u64,
    },
    /// Asks for a chunk.
    Interest(Option<Snapshot>),
    /// Carries a chunk.
    Data,
    /// Refuses one.
    Nack {
        /// Why.
        code: Refusal,
        /// When asking again may help.
        retry_after_ms: u16,
    },
}

/// A header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Its type.
    pub kind: Kind,
    /// Of [`flags`], without [`flags::SNAPSHOT`], which follows from the type.
    pub flags: u8,
    /// The fixed part of MP(D).
    pub pointer: Pointer,
}

/// Why bytes are no ITP message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum WireError {
    /// Fewer bytes than a header, or than it says.
    #[error("{found} bytes are too few: this header has {needed}")]
    Short {
        /// Bytes there are.
        found: usize,
        /// Bytes there have to be.
        needed: usize,
    },
    /// Another version.
    #[error("version {0} is unknown: only 1 is")]
    Version(u8),
    /// No such type.
    #[error("type {0} is unknown: write 1 to 5")]
    Type(u8),
    /// The header's length does not fit its type.
    #[error("a header of type {kind} has {needed} words, this one says {found}")]
    Length {
        /// The type.
        kind: u8,
        /// As written.
        found: usize,
        /// As it has to be.
        needed: usize,
    },
    /// The bitmap is longer than 32 words.
    #[error("a bitmap of {0} words is too long: 32 are the most")]
    Bitmap(usize),
    /// No such reason.
    #[error("refusal {0} is unknown: write 1 to 5")]
    Refusal(u16),
}

impl Snapshot {
    /// Of the chunks `held`, all of which lie beyond `base`, as far as 32 words reach.
    pub fn of(base: u64, held: &Ranges) -> Self {
        let first = base + 1;
        let mut words: SmallVec<[u32; 4]> = SmallVec::new();
        for range in held.iter() {
            let (from, to) = (range.start.max(first) - first, range.end.saturating_sub(first));
            for bit in from..to.min(32 * MOST_WORDS as u64) {
                let word = (bit / 32) as usize;
                if words.len() <= word {
                    words.resize(word + 1, 0);
                }
                words[word] |= 0x8000_0000 >> (bit % 32);
            }
        }
        Snapshot {
            base: base as u32,
            words,
            most_packets: 0,
        }
    }
}

impl Refusal {
    const ALL: [Refusal; 5] = [
        Refusal::NoNexus,
        Refusal::NotAuthorised,
        Refusal::NoSuchChunk,
        Refusal::Busy,
        Refusal::Unproved,
    ];

    fn code(self) -> u16 {
        1 + self as u16
    }
}

impl Kind {
    fn code(&self) -> u8 {
        match self {
            Kind::Request => 1,
            Kind::Manifest { .. } => 2,
            Kind::Interest(_) => 3,
            Kind::Data => 4,
            Kind::Nack { .. } => 5,
        }
    }

    fn words(&self) -> usize {
        match self {
            Kind::Request | Kind::Data | Kind::Interest(None) => 5,
            Kind::Nack { .. } => 6,
            Kind::Manifest { .. } => 7,
            Kind::Interest(Some(snapshot)) => 7 + snapshot.words.len(),
        }
    }
}

impl Header {
    /// Reads the header at the start of `bytes`. Returns it with its length.
    ///
    /// # Errors
    /// When the bytes are none. Nothing is allocated beyond what the packet itself holds.
    pub fn parse(bytes: &[u8]) -> Result<(Header, usize), WireError> {
        let short = |needed| WireError::Short {
            found: bytes.len(),
            needed,
        };
        let fixed = bytes.first_chunk::<HEADER_BYTES>().ok_or(short(HEADER_BYTES))?;
        let (version, kind) = (fixed[0] >> 4, fixed[0] & 0xF);
        if version != VERSION {
            return Err(WireError::Version(version));
        }
        let length = usize::from(fixed[2]) * 4;
        if length > bytes.len() || length < HEADER_BYTES {
            return Err(short(length.max(HEADER_BYTES)));
        }
        let rest = &bytes[HEADER_BYTES..length];
        let kind = Self::parse_kind(kind, fixed[1], rest)?;
        let pointer = Pointer {
            object: u64::from_be_bytes([
                fixed[4], fixed[5], fixed[6], fixed[7], fixed[8], fixed[9], fixed[10], fixed[11],
            ]),
            chunk: word(fixed, 3),
            sequence: word(fixed, 4),
        };
        let flags = fixed[1] & !flags::SNAPSHOT;
        Ok((Header { kind, flags, pointer }, length))
    }

    /// What `rest`, the words behind the fixed part, say of a message of type `code`.
    fn parse_kind(code: u8, flags: u8, rest: &[u8]) -> Result<Kind, WireError> {
        let has = |words: usize| match rest.len() == 4 * words {
            true => Ok(()),
            false => Err(WireError::Length {
                kind: code,
                found: 5 + rest.len() / 4,
                needed: 5 + words,
            }),
        };
        match code {
            1 => has(0).map(|()| Kind::Request),
            2 => has(2).map(|()| Kind::Manifest {
                request: u64::from(word(rest, 0)) << 32 | u64::from(word(rest, 1)),
            }),
            3 if flags & flags::SNAPSHOT == 0 => has(0).map(|()| Kind::Interest(None)),
            3 => {
                has((rest.len() / 4).max(2))?;
                let words = usize::from((word(rest, 1) >> 16) as u16);
                if words > MOST_WORDS {
                    return Err(WireError::Bitmap(words));
                }
                has(2 + words)?;
                Ok(Kind::Interest(Some(Snapshot {
                    base: word(rest, 0),
                    words: (2..2 + words).map(|at| word(rest, at)).collect(),
                    most_packets: (word(rest, 1) >> 8) as u8,
                })))
            }
            4 => has(0).map(|()| Kind::Data),
            5 => {
                has(1)?;
                let code = (word(rest, 0) >> 16) as u16;
                let known = Refusal::ALL.into_iter().find(|refusal| refusal.code() == code);
                Ok(Kind::Nack {
                    code: known.ok_or(WireError::Refusal(code))?,
                    retry_after_ms: word(rest, 0) as u16,
                })
            }
            _ => Err(WireError::Type(code)),
        }
    }

    /// The header's bytes.
    pub fn emit(&self) -> Head {
        let snapshot = match self.kind {
            Kind::Interest(Some(_)) => flags::SNAPSHOT,
            _ => 0,
        };
        let mut head = Head::from_slice(&[
            VERSION << 4 | self.kind.code(),
            self.flags | snapshot,
            self.kind.words() as u8,
            0,
        ]);
        head.extend_from_slice(&self.pointer.object.to_be_bytes());
        head.extend_from_slice(&self.pointer.chunk.to_be_bytes());
        head.extend_from_slice(&self.pointer.sequence.to_be_bytes());
        match &self.kind {
            Kind::Request | Kind::Data | Kind::Interest(None) => {}
            Kind::Manifest { request } => head.extend_from_slice(&request.to_be_bytes()),
            Kind::Interest(Some(snapshot)) => {
                head.extend_from_slice(&snapshot.base.to_be_bytes());
                let sizes = (snapshot.words.len() as u32) << 16 | u32::from(snapshot.most_packets) << 8;
                head.extend_from_slice(&sizes.to_be_bytes());
                for word in &snapshot.words {
                    head.extend_from_slice(&word.to_be_bytes());
                }
            }
            Kind::Nack { code, retry_after_ms } => {
                head.extend_from_slice(&code.code().to_be_bytes());
                head.extend_from_slice(&retry_after_ms.to_be_bytes());
            }
        }
        head
    }
}

/// Word `at` of `bytes`, which has one there.
fn word(bytes: &[u8], at: usize) -> u32 {
    bytes[4 * at..]
        .first_chunk()
        .map_or(0, |word| u32::from_be_bytes(*word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const OBJECT: u64 = 0xCDD5_A23C_1EBC_5BAC;

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
        let value = |digit: u8| char::from(digit).to_digit(16).unwrap_or_default() as u8;
        digits
            .chunks(2)
            .map(|pair| value(pair[0]) << 4 | value(pair[1]))
            .collect()
    }

    fn pointer() -> Pointer {
        Pointer {
            object: OBJECT,
            chunk: 3,
            sequence: 7,
        }
    }

    /// ITP 4.4: of ten chunks 0, 1, 2, 4, 5 and 8 are held.
    #[test]
    fn the_interest_of_the_specification() {
        let mut held = Ranges::new();
        for chunk in [4, 5, 8] {
            held.insert(chunk..chunk + 1);
        }
        let snapshot = Snapshot::of(3, &held);
        assert_eq!(
            (snapshot.base, snapshot.words.as_slice()),
            (3, &[0xC800_0000][..])
        );
        let header = Header {
            kind: Kind::Interest(Some(snapshot)),
            flags: 0,
            pointer: pointer(),
        };
        let wire = bytes("13080800 CDD5A23C 1EBC5BAC 00000003 00000007 00000003 00010000 C8000000");
        assert_eq!(header.emit().as_slice(), wire);
        assert_eq!(Header::parse(&wire), Ok((header, wire.len())));
    }

    #[test]
    fn the_data_header_of_the_specification() {
        let header = Header {
            kind: Kind::Data,
            flags: 0,
            pointer: pointer(),
        };
        let wire = bytes("14000500 CDD5A23C 1EBC5BAC 00000003 00000007");
        assert_eq!(header.emit().as_slice(), wire);
        assert_eq!(Header::parse(&wire), Ok((header, HEADER_BYTES)));
    }

    #[test]
    fn a_snapshot_reaches_as_far_as_32_words() {
        let mut held = Ranges::new();
        held.insert(1..5000);
        let snapshot = Snapshot::of(0, &held);
        assert_eq!(snapshot.words.as_slice(), [u32::MAX; 32]);
        assert!(Snapshot::of(5, &Ranges::new()).words.is_empty());
    }

    #[test]
    fn what_is_wrong_is_named() {
        let data = bytes("14000500 CDD5A23C 1EBC5BAC 00000003 00000007");
        let with = |at: usize, byte: u8| {
            let mut changed = data.clone();
            changed[at] = byte;
            Header::parse(&changed).expect_err("refused")
        };
        assert_eq!(
            Header::parse(&data[..19]),
            Err(WireError::Short {
                found: 19,
                needed: 20
            })
        );
        assert_eq!(with(0, 0x24), WireError::Version(2));
        assert_eq!(with(0, 0x10), WireError::Type(0));
        assert_eq!(with(0, 0x16), WireError::Type(6));
        assert_eq!(
            with(2, 6),
            WireError::Short {
                found: 20,
                needed: 24
            }
        );
        assert_eq!(
            with(2, 4),
            WireError::Short {
                found: 20,
                needed: 20
            }
        );
        let needed = WireError::Length {
            kind: 5,
            found: 5,
            needed: 6,
        };
        assert_eq!(with(0, 0x15), needed);
        let long = bytes("13080700 00000000 00000000 00000000 00000000 00000000 FFFF0000");
        assert_eq!(Header::parse(&long), Err(WireError::Bitmap(0xFFFF)));
        let unknown = bytes("15000600 00000000 00000000 00000000 00000000 00060000");
        assert_eq!(Header::parse(&unknown), Err(WireError::Refusal(6)));
    }

    fn any_kind() -> impl Strategy<Value = Kind> {
        let words = prop::collection::vec(any::<u32>(), 0..=MOST_WORDS);
        let snapshot = (any::<u32>(), words, any::<u8>()).prop_map(|(base, words, most_packets)| Snapshot {
            base,
            words: words.into(),
            most_packets,
        });
        prop_oneof![
            Just(Kind::Request),
            Just(Kind::Data),
            any::<u64>().prop_map(|request| Kind::Manifest { request }),
            prop::option::of(snapshot).prop_map(Kind::Interest),
            (0usize..4, any::<u16>()).prop_map(|(code, retry_after_ms)| Kind::Nack {
                code: Refusal::ALL[code],
                retry_after_ms
            }),
        ]
    }

    proptest! {
        #[test]
        fn every_header_survives_the_wire(
            kind in any_kind(),
            flags in any::<u8>().prop_map(|flags| flags & !flags::SNAPSHOT),
            object in any::<u64>(),
            chunk in any::<u32>(),
            sequence in any::<u32>(),
        ) {
            let header = Header { kind, flags, pointer: Pointer { object, chunk, sequence } };
            let wire = header.emit();
            prop_assert_eq!(Header::parse(&wire), Ok((header, wire.len())));
        }

        #[test]
        fn no_bytes_break_the_parser(
            mut bytes in prop::collection::vec(any::<u8>(), 0..200),
            kind in 0u8..7,
        ) {
            let _ = Header::parse(&bytes);
            if let Some(first) = bytes.first_mut() {
                *first = VERSION << 4 | kind;
            }
            if let Ok((header, length)) = Header::parse(&bytes) {
                let again = header.emit();
                prop_assert_eq!(again.len(), length);
                prop_assert_eq!(Header::parse(&again), Ok((header, length)));
            }
        }
    }
}
