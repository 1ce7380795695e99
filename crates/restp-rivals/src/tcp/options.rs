//! TCP options: maximum segment size (RFC 9293 §3.7.1), window scale and timestamps (RFC 7323 §2.2, §3.2), SACK
//! permitted and SACK (RFC 2018 §2, §3), NAK and its mode, SNACK and the SCPS capability that permits it, MPTCP (RFC 8684),
//! Fast Open (RFC 7413). Unknown ones are stepped over (RFC 9293 §3.1, MUST-6).

use super::fast_open::{self, FastOpen};
use super::nak::{self, Nak};
use super::snack::{self, Snack};
use super::wire::{HEADER_BYTES, WireError};
use crate::subflow::options::{self as mptcp, Multipath};
use restp_base::machine::Head;
use restp_base::sequence::truncate;
use restp_services::ack::NakMode;
use restp_services::ordering::Arrived;
use smallvec::SmallVec;

const END: u8 = 0;
const NO_OPERATION: u8 = 1;
const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;
/// SCPS capabilities (CCSDS 714.0-B-2 §3.2.1): length 4, bits, connection identifier.
const CAPABILITIES: u8 = 20;
/// The bit of the SNACK option.
const CAPABLE_OF_SNACK: u8 = 0x40;

/// Bytes that the data offset leaves for options.
const ROOM: usize = 40;
/// Bytes of timestamps, with two bytes that align them (RFC 7323 appendix A).
pub const TIMESTAMP_BYTES: usize = 12;
/// Bytes of kind and length of SACK, with two bytes that align it.
const SACK_FRAME_BYTES: usize = 4;
/// Bytes of one SACK block.
const BLOCK_BYTES: usize = 8;

/// Received blocks, `(left, right)`: first byte, and one past the last (RFC 2018 §3).
pub type Blocks = SmallVec<[(u32, u32); 4]>;

/// A clock value and its echo, in ticks of the peer that wrote them (RFC 7323 §3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamps {
    /// TSval: the sender's clock.
    pub value: u32,
    /// TSecr: the value it echoes.
    pub echo: u32,
}

/// The options of one header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Most bytes of options and payload that the sender takes in one segment.
    pub mss: Option<u16>,
    /// How far its windows are shifted.
    pub window_scale: Option<u8>,
    /// It understands SACK.
    pub sack_permitted: bool,
    /// Clock and echo.
    pub timestamps: Option<Timestamps>,
    /// Received blocks, the newest first.
    pub sack: Blocks,
    /// It names gaps, each this often.
    pub nak_mode: Option<NakMode>,
    /// One gap.
    pub nak: Option<Nak>,
    /// It understands SNACK.
    pub snack_permitted: bool,
    /// Holes.
    pub snack: Option<Snack>,
    /// What concerns a connection of several paths; the first one in a header counts.
    pub multipath: Option<Multipath>,
    /// A cookie, or a request for one.
    pub fast_open: Option<FastOpen>,
}

/// Bytes that an option of `length` takes in whole words.
pub fn padded(length: usize) -> usize {
    length.next_multiple_of(4)
}

/// How many SACK blocks fit into `room` bytes: 4 into a whole header, 3 beside timestamps (RFC 2018 §3).
pub fn block_room(room: usize) -> usize {
    room.saturating_sub(SACK_FRAME_BYTES) / BLOCK_BYTES
}

/// Bytes that `count` blocks take in a header.
pub fn block_bytes(count: usize) -> usize {
    if count == 0 {
        0
    } else {
        SACK_FRAME_BYTES + count * BLOCK_BYTES
    }
}

/// At most `cap` blocks of `arrived`, [latest first](Arrived::latest_first).
pub fn blocks(arrived: &Arrived, cap: usize) -> Blocks {
    arrived
        .latest_first()
        .take(cap)
        .map(|range| (truncate(range.start), truncate(range.end)))
        .collect()
}

impl Options {
    /// Bytes that a report may still take beside what every segment has: timestamps, MPTCP.
    pub fn room(&self) -> usize {
        let timestamps = self.timestamps.map_or(0, |_| TIMESTAMP_BYTES);
        let multipath = self.multipath.map_or(0, |option| padded(option.bytes()));
        ROOM.saturating_sub(timestamps + multipath)
    }

    /// Bytes of the options that report holes or what lies behind them, without padding (TC §2.6).
    pub fn report_bytes(&self) -> usize {
        let blocks = self.sack.len();
        let sack = if blocks > 0 { 2 + blocks * BLOCK_BYTES } else { 0 };
        let nak = self.nak.as_ref().map_or(0, |_| nak::BYTES);
        sack + nak + self.snack.as_ref().map_or(0, Snack::bytes)
    }

    /// Reads the options behind a header's 20 bytes.
    pub(super) fn parse(bytes: &[u8]) -> Result<Options, WireError> {
        let mut options = Options::default();
        let mut at = 0;
        while let Some(&kind) = bytes.get(at) {
            match kind {
                END => break,
                NO_OPERATION => at += 1,
                _ => {
                    let rest = &bytes[at..];
                    let length = rest.get(1).map_or(0, |length| usize::from(*length));
                    let Some(value) = rest.get(2..length) else {
                        return Err(WireError::Field {
                            offset: HEADER_BYTES + at + 1,
                            expected: "an option length of at least 2, within the header",
                            found: length,
                        });
                    };
                    options.take(kind, value, HEADER_BYTES + at + 1)?;
                    at += length;
                }
            }
        }
        Ok(options)
    }

    /// Takes one option whose length stands at `offset`.
    fn take(&mut self, kind: u8, value: &[u8], offset: usize) -> Result<(), WireError> {
        let wrong = |expected| WireError::Field {
            offset,
            expected,
            found: value.len() + 2,
        };
        let word = |bytes: &[u8]| bytes.iter().fold(0, |word, byte| word << 8 | u32::from(*byte));
        match kind {
            MSS => {
                let bytes = value.try_into().map_err(|_| wrong("length 4 of MSS"))?;
                self.mss = Some(u16::from_be_bytes(bytes));
            }
            WINDOW_SCALE => {
                let [shift] = value.try_into().map_err(|_| wrong("length 3 of window scale"))?;
                self.window_scale = Some(shift);
            }
            SACK_PERMITTED if value.is_empty() => self.sack_permitted = true,
            SACK_PERMITTED => return Err(wrong("length 2 of SACK permitted")),
            TIMESTAMPS if value.len() == 8 => {
                self.timestamps = Some(Timestamps {
                    value: word(&value[..4]),
                    echo: word(&value[4..]),
                });
            }
            TIMESTAMPS => return Err(wrong("length 10 of timestamps")),
            SACK if !value.is_empty() && value.len().is_multiple_of(BLOCK_BYTES) => {
                let blocks = value.chunks_exact(BLOCK_BYTES);
                self.sack = blocks
                    .map(|block| (word(&block[..4]), word(&block[4..])))
                    .collect();
            }
            SACK => return Err(wrong("length 8n + 2 of SACK")),
            CAPABILITIES if value.len() == 2 => self.snack_permitted = value[0] & CAPABLE_OF_SNACK != 0,
            CAPABILITIES => return Err(wrong("length 4 of SCPS capabilities")),
            snack::KIND => {
                let snack = Snack::parse(value).ok_or(wrong("length 6 or more of SNACK"))?;
                self.snack = Some(snack);
            }
            mptcp::KIND => {
                let option = Multipath::parse(value).ok_or(wrong("a length that the MPTCP subtype has"))?;
                self.multipath = self.multipath.or(option);
            }
            fast_open::KIND => self.fast_open = FastOpen::parse(value),
            // Kinds with other uses: what does not look like ours is stepped over.
            nak::KIND => self.nak = self.nak.or(Nak::parse(value)),
            nak::MODE_KIND => self.nak_mode = self.nak_mode.or(nak::parse_mode(value)),
            _ => {}
        }
        Ok(())
    }

    /// Appends the options, in whole words. SACK blocks that find no room are left out.
    pub(super) fn emit(&self, out: &mut Head) {
        let start = out.len();
        if let Some(mss) = self.mss {
            out.extend_from_slice(&[MSS, 4]);
            out.extend_from_slice(&mss.to_be_bytes());
        }
        match self.sack_permitted {
            true => out.extend_from_slice(&[SACK_PERMITTED, 2]),
            false if self.timestamps.is_some() => out.extend_from_slice(&[NO_OPERATION; 2]),
            false => {}
        }
        if let Some(Timestamps { value, echo }) = self.timestamps {
            out.extend_from_slice(&[TIMESTAMPS, 10]);
            out.extend_from_slice(&value.to_be_bytes());
            out.extend_from_slice(&echo.to_be_bytes());
        } else if self.sack_permitted {
            out.extend_from_slice(&[NO_OPERATION; 2]);
        }
        if let Some(shift) = self.window_scale {
            out.extend_from_slice(&[NO_OPERATION, WINDOW_SCALE, 3, shift]);
        }
        if let Some(mode) = self.nak_mode {
            out.extend_from_slice(&[NO_OPERATION, nak::MODE_KIND, 3, nak::mode_code(mode)]);
        }
        if self.snack_permitted {
            out.extend_from_slice(&[CAPABILITIES, 4, CAPABLE_OF_SNACK, 0]);
        }
        if let Some(nak) = self.nak {
            out.extend_from_slice(&[NO_OPERATION, nak::KIND, nak::BYTES as u8]);
            out.extend_from_slice(&nak.first.to_be_bytes());
            out.push(nak.segments);
        }
        if let Some(snack) = &self.snack {
            let padding = padded(snack.bytes()) - snack.bytes();
            out.extend(std::iter::repeat_n(NO_OPERATION, padding));
            out.extend_from_slice(&[snack::KIND, snack.bytes() as u8]);
            out.extend_from_slice(&snack.offset.to_be_bytes());
            out.extend_from_slice(&snack.size.to_be_bytes());
            out.extend_from_slice(&snack.vector);
        }
        if let Some(option) = &self.multipath {
            option.emit(out);
            pad(out, option.bytes());
        }
        if let Some(option) = &self.fast_open {
            option.emit(out);
            pad(out, option.bytes());
        }
        let left = (start + ROOM - out.len()).saturating_sub(SACK_FRAME_BYTES) / BLOCK_BYTES;
        let count = self.sack.len().min(left);
        if count > 0 {
            out.extend_from_slice(&[NO_OPERATION, NO_OPERATION, SACK, (2 + count * BLOCK_BYTES) as u8]);
            for (left, right) in &self.sack[..count] {
                out.extend_from_slice(&left.to_be_bytes());
                out.extend_from_slice(&right.to_be_bytes());
            }
        }
    }
}

/// Fills up the last word of an option of `length` bytes.
fn pad(out: &mut Head, length: usize) {
    out.extend(std::iter::repeat_n(NO_OPERATION, padded(length) - length));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn emitted(options: &Options) -> Vec<u8> {
        let mut head = Head::new();
        options.emit(&mut head);
        head.to_vec()
    }

    /// Segments 0 to 5 of 1460 bytes, of which 1, 3 and 4 are lost; 2 and then 5 have arrived (RFC 2018 §4: the
    /// block of the newest arrival comes first; RFC 2018 §3: length 18 for two blocks).
    #[test]
    fn two_blocks_byte_by_byte() {
        let mut arrived = Arrived::default();
        arrived.insert(2920..4380);
        arrived.insert(7300..8760);
        let sack = blocks(&arrived, block_room(ROOM));
        let options = Options {
            sack,
            ..Options::default()
        };
        let expected = [
            1, 1, 0x05, 0x12, 0x00, 0x00, 0x1c, 0x84, 0x00, 0x00, 0x22, 0x38, 0x00, 0x00, 0x0b, 0x68, 0x00,
            0x00, 0x11, 0x1c,
        ];
        assert_eq!(emitted(&options), expected);
        assert_eq!(Options::parse(&expected), Ok(options));
        assert_eq!(blocks(&arrived, 1).to_vec(), [(7300, 8760)]);
    }

    /// The same losses as NAK and as SNACK, after 2 and after 5 have arrived, and what permits them in a SYN.
    #[test]
    fn nak_and_snack_byte_by_byte() {
        let nak = |first, segments| Options {
            nak: Some(Nak { first, segments }),
            ..Options::default()
        };
        let snack = |vector: &[u8]| Options {
            snack: Some(Snack {
                offset: 0,
                size: 1,
                vector: vector.iter().copied().collect(),
            }),
            ..Options::default()
        };
        let mode = |mode| Options {
            nak_mode: Some(mode),
            ..Options::default()
        };
        let permitted = Options {
            snack_permitted: true,
            ..Options::default()
        };
        for (options, bytes) in [
            (nak(1460, 1), &[1, 0x0A, 7, 0, 0, 0x05, 0xB4, 1][..]),
            (nak(4380, 2), &[1, 0x0A, 7, 0, 0, 0x11, 0x1C, 2]),
            (snack(&[]), &[1, 1, 0x15, 6, 0, 0, 0, 1]),
            (snack(&[0x90]), &[1, 0x15, 7, 0, 0, 0, 1, 0x90]),
            (mode(NakMode::Unreliable), &[1, 253, 3, 0]),
            (mode(NakMode::QuasiReliable), &[1, 253, 3, 1]),
            (permitted, &[20, 4, 0x40, 0]),
        ] {
            assert_eq!(emitted(&options), bytes);
            assert_eq!(Options::parse(bytes), Ok(options));
        }
        for other_use in [[10, 3, 9, 1], [253, 3, 7, 1], [253, 4, 0, 0]] {
            assert_eq!(
                Options::parse(&other_use),
                Ok(Options::default()),
                "{other_use:?}"
            );
        }
    }

    #[test]
    fn four_blocks_fit_alone_and_three_beside_timestamps() {
        assert_eq!(block_room(Options::default().room()), 4);
        let mut options = Options {
            sack: (0..6).map(|n| (n * 10, n * 10 + 5)).collect(),
            ..Options::default()
        };
        assert_eq!(Options::parse(&emitted(&options)).unwrap().sack.len(), 4);
        options.timestamps = Some(Timestamps { value: 1, echo: 2 });
        assert_eq!(block_room(options.room()), 3);
        let bytes = emitted(&options);
        assert_eq!(bytes.len(), 40);
        let read = Options::parse(&bytes).unwrap();
        assert_eq!((read.sack.len(), read.timestamps), (3, options.timestamps));
        assert_eq!(bytes.len(), TIMESTAMP_BYTES + block_bytes(3));
    }

    /// Two no-operations align a data sequence signal of 26 bytes; one block finds room behind it, as with Linux.
    #[test]
    fn a_data_sequence_signal_leaves_room_for_one_block() {
        let options = Options {
            multipath: Some(Multipath::Data(mptcp::Dss {
                ack: Some(mptcp::Number::Long(1)),
                mapping: Some(mptcp::Mapped {
                    data: mptcp::Number::Long(2),
                    subflow: 3,
                    length: 4,
                }),
                fin: false,
            })),
            sack: (0..6).map(|n| (n * 10, n * 10 + 5)).collect(),
            ..Options::default()
        };
        let bytes = emitted(&options);
        assert_eq!((bytes.len(), block_room(options.room())), (40, 1));
        assert_eq!((bytes[0], &bytes[26..28]), (30, &[1, 1][..]));
        let read = Options::parse(&bytes).unwrap();
        assert_eq!((read.multipath, read.sack.len()), (options.multipath, 1));
    }

    #[test]
    fn unknown_options_are_stepped_over_and_the_end_ends() {
        let bytes = [254, 4, 9, 9, 1, 3, 3, 2, 0, 5, 99, 99];
        let expected = Options {
            window_scale: Some(2),
            ..Options::default()
        };
        assert_eq!(Options::parse(&bytes), Ok(expected));
    }

    #[test]
    fn impossible_lengths_are_errors_at_their_offset() {
        for (bytes, offset, found) in [
            (&[254, 0, 0, 0][..], 21, 0),
            (&[1, 254, 1, 0], 22, 1),
            (&[254, 5, 0, 0], 21, 5),
            (&[1, 1, 1, 254], 24, 0),
            (&[2, 3, 0, 0], 21, 3),
            (&[3, 4, 0, 0], 21, 4),
            (&[4, 4, 0, 0], 21, 4),
            (&[5, 2, 0, 0], 21, 2),
            (&[5, 4, 0, 0], 21, 4),
            (&[8, 4, 0, 0], 21, 4),
            (&[20, 3, 0, 0], 21, 3),
            (&[21, 5, 0, 0, 0], 21, 5),
            (&[30, 2, 0, 0], 21, 2),
            (&[30, 5, 1, 1, 0], 21, 5),
        ] {
            match Options::parse(bytes) {
                Err(WireError::Field {
                    offset: o, found: f, ..
                }) => assert_eq!((o, f), (offset, found), "{bytes:?}"),
                other => panic!("{bytes:?} gave {other:?}"),
            }
        }
    }
}
