//! Frames of capture files: pcap (draft-ietf-opsawg-pcap) and pcapng (draft-ietf-opsawg-pcapng). Two formats of
//! framing are less code than a library's interface to them; every length comes from the file and is checked.

use thiserror::Error;

/// One captured frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Captured<'a> {
    /// Link type (LINKTYPE_…).
    pub link: u16,
    pub bytes: &'a [u8],
}

/// A capture that breaks off or contradicts itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the capture is damaged at byte {at}: expected {expected}")]
pub struct Damage {
    at: usize,
    expected: &'static str,
}

/// The frames of a capture; `None` when `file` is no capture.
pub fn frames(file: &[u8]) -> Option<Frames<'_>> {
    let magic: [u8; 4] = *file.first_chunk()?;
    let (format, big_endian) = match magic {
        [0xa1, 0xb2, 0xc3, 0xd4] | [0xa1, 0xb2, 0x3c, 0x4d] => (Format::Pcap, true),
        [0xd4, 0xc3, 0xb2, 0xa1] | [0x4d, 0x3c, 0xb2, 0xa1] => (Format::Pcap, false),
        // The first block says in its own first field which order it is written in.
        [0x0a, 0x0d, 0x0d, 0x0a] => (Format::PcapNg, false),
        _ => return None,
    };
    Some(Frames {
        file,
        at: 0,
        format,
        big_endian,
        links: Vec::new(),
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Pcap,
    PcapNg,
}

/// Reads on from frame to frame; ends after the first damage.
#[derive(Debug)]
pub struct Frames<'a> {
    file: &'a [u8],
    at: usize,
    format: Format,
    big_endian: bool,
    /// Link type of every interface of the section (pcapng), or of the file.
    links: Vec<u16>,
}

const PCAP_HEADER: usize = 24;
const PCAP_RECORD: usize = 16;

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;

impl<'a> Iterator for Frames<'a> {
    type Item = Result<Captured<'a>, Damage>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.file.len() {
            return None;
        }
        let frame = match self.format {
            Format::Pcap => self.record().map(Some),
            Format::PcapNg => self.packet_block(),
        };
        if frame.is_err() {
            self.at = self.file.len();
        }
        frame.transpose()
    }
}

impl<'a> Frames<'a> {
    fn record(&mut self) -> Result<Captured<'a>, Damage> {
        if self.at == 0 {
            let link = self.number(20, "a file header of 24 bytes")?;
            self.links.push(link as u16);
            self.at = PCAP_HEADER;
        }
        let length = self.number(self.at + 8, "a packet record of 16 bytes")? as usize;
        let bytes = self.bytes(self.at + PCAP_RECORD, length, "the captured bytes")?;
        self.at += PCAP_RECORD + length;
        Ok(Captured {
            link: self.links[0],
            bytes,
        })
    }

    /// Skips blocks without packets.
    fn packet_block(&mut self) -> Result<Option<Captured<'a>>, Damage> {
        while self.at < self.file.len() {
            let start = self.at;
            let kind = self.number(start, "a block")?;
            if kind == SECTION {
                let order = self.bytes(start + 8, 4, "the byte order of a section")?;
                self.big_endian = order == [0x1a, 0x2b, 0x3c, 0x4d];
                self.links.clear();
            }
            let length = self.number(start + 4, "the length of a block")? as usize;
            if length < 12 || !length.is_multiple_of(4) {
                return Err(self.damage(start + 4, "a block length of at least 12, in steps of 4"));
            }
            let block = self.bytes(start, length, "the whole block")?;
            let body = &block[8..length - 4];
            self.at = start + length;
            match kind {
                INTERFACE => {
                    let link = body.first_chunk().map(|pair| self.short(*pair));
                    self.links
                        .push(link.ok_or_else(|| self.damage(start + 8, "a link type"))?);
                }
                ENHANCED_PACKET => {
                    let interface = self.number(start + 8, "an interface")? as usize;
                    let captured = self.number(start + 20, "a captured length")? as usize;
                    let bytes = body.get(20..).and_then(|bytes| bytes.get(..captured));
                    return self.captured(start, interface, bytes).map(Some);
                }
                SIMPLE_PACKET => {
                    let original = self.number(start + 8, "an original length")? as usize;
                    let bytes = body.get(4..).map(|bytes| &bytes[..original.min(bytes.len())]);
                    return self.captured(start, 0, bytes).map(Some);
                }
                _ => {}
            }
        }
        Ok(None)
    }

    fn captured(
        &self,
        start: usize,
        interface: usize,
        bytes: Option<&'a [u8]>,
    ) -> Result<Captured<'a>, Damage> {
        let link = self.links.get(interface).copied();
        let link = link.ok_or_else(|| self.damage(start + 8, "an interface described before"))?;
        let bytes = bytes.ok_or_else(|| self.damage(start + 20, "a captured length within the block"))?;
        Ok(Captured { link, bytes })
    }

    fn bytes(&self, from: usize, length: usize, expected: &'static str) -> Result<&'a [u8], Damage> {
        let rest = self.file.get(from..).unwrap_or(&[]);
        rest.get(..length).ok_or_else(|| self.damage(from, expected))
    }

    fn number(&self, from: usize, expected: &'static str) -> Result<u32, Damage> {
        let bytes = self.bytes(from, 4, expected)?;
        let word = [bytes[0], bytes[1], bytes[2], bytes[3]];
        Ok(if self.big_endian {
            u32::from_be_bytes(word)
        } else {
            u32::from_le_bytes(word)
        })
    }

    fn short(&self, pair: [u8; 2]) -> u16 {
        if self.big_endian {
            u16::from_be_bytes(pair)
        } else {
            u16::from_le_bytes(pair)
        }
    }

    fn damage(&self, at: usize, expected: &'static str) -> Damage {
        Damage { at, expected }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(file: &[u8]) -> Vec<Result<Captured<'_>, Damage>> {
        frames(file).expect("a capture").collect()
    }

    fn pcap(numbers: impl Fn(u32) -> [u8; 4]) -> Vec<u8> {
        let words = [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65535, 101, 0, 0, 3, 3];
        let mut file: Vec<u8> = words.into_iter().flat_map(numbers).collect();
        file.extend_from_slice(b"abc");
        file
    }

    fn block(kind: u32, body: &[u8]) -> Vec<u8> {
        let length = 12 + body.len().next_multiple_of(4);
        let mut block = [kind.to_le_bytes(), (length as u32).to_le_bytes()].concat();
        block.extend_from_slice(body);
        block.resize(length - 4, 0);
        block.extend_from_slice(&(length as u32).to_le_bytes());
        block
    }

    fn pcapng() -> Vec<u8> {
        let section = [&0x1a2b_3c4d_u32.to_le_bytes()[..], &[0; 12]].concat();
        let packet = [[0; 12].as_slice(), &[3, 0, 0, 0], &[3, 0, 0, 0], b"abc"].concat();
        [
            block(SECTION, &section),
            block(INTERFACE, &[101, 0, 0, 0, 0, 0, 0, 0]),
            block(5, &[0; 8]),
            block(ENHANCED_PACKET, &packet),
            block(SIMPLE_PACKET, &[&[2, 0, 0, 0][..], b"xy"].concat()),
        ]
        .concat()
    }

    #[test]
    fn frames_of_both_formats_and_byte_orders() {
        let abc = Captured {
            link: 101,
            bytes: b"abc",
        };
        assert_eq!(all(&pcap(u32::to_be_bytes)), [Ok(abc)]);
        assert_eq!(all(&pcap(u32::to_le_bytes)), [Ok(abc)]);
        let xy = Captured {
            link: 101,
            bytes: b"xy",
        };
        assert_eq!(all(&pcapng()), [Ok(abc), Ok(xy)]);
        assert!(frames(b"something else").is_none() && frames(b"").is_none());
    }

    #[test]
    fn a_capture_cut_anywhere_is_damage_and_not_a_panic() {
        for file in [pcap(u32::to_be_bytes), pcapng()] {
            for cut in 4..file.len() {
                let _ = all(&file[..cut]);
            }
            let last = all(&file[..file.len() - 1]).pop();
            assert!(matches!(last, Some(Err(_))), "{last:?}");
        }
    }

    #[test]
    fn lengths_beyond_the_file_are_damage() {
        let mut file = pcap(u32::to_be_bytes);
        file[32..36].copy_from_slice(&u32::MAX.to_be_bytes());
        assert!(matches!(all(&file)[..], [Err(_)]));
        let mut file = pcapng();
        file[4..8].copy_from_slice(&8_u32.to_le_bytes());
        assert!(matches!(all(&file)[..], [Err(_)]));
    }
}
