//! Packets of a simulated run as a capture file (draft-ietf-opsawg-pcapng), one interface per link. Three kinds of block
//! are less code than a library's interface to them; [`frames`](crate::commands::decode) reads them back in a test.

use crate::failure::Failure;
use restp_lab::Way;
use restp_lab::run::{Frame, FrameSink};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

const SECTION: u32 = 0x0a0d_0d0a;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
const INTERFACE: u32 = 1;
const ENHANCED_PACKET: u32 = 6;

/// LINKTYPE_IPV4: a packet begins with its IPv4 header.
const IPV4: u16 = 228;

/// Options (§4.1 to §4.3).
const COMMENT: u16 = 1;
const APPLICATION: u16 = 4;
const NAME: u16 = 2;
const RESOLUTION: u16 = 9;
const FLAGS: u16 = 2;
/// Ten to the power of minus nine seconds.
const NANOSECONDS: u8 = 9;
const INBOUND: u32 = 0b01;
const OUTBOUND: u32 = 0b10;

/// A capture file on its way. What goes wrong while it is written is kept until [`PacketFile::finish`].
#[derive(Clone, Debug)]
pub struct PacketFile {
    path: PathBuf,
    out: Arc<Mutex<Writing>>,
}

#[derive(Debug)]
struct Writing {
    file: BufWriter<File>,
    fault: Option<io::Error>,
}

impl PacketFile {
    /// Makes the file, with an interface for each of the `links`.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn create<'l>(path: &Path, links: impl Iterator<Item = &'l str>) -> Result<Self, Failure> {
        let open = || {
            let mut file = BufWriter::new(File::create(path)?);
            section(&mut file, links)?;
            Ok(file)
        };
        let file = open().map_err(|error| Failure::input(complaint(path, &error)))?;
        let out = Arc::new(Mutex::new(Writing { file, fault: None }));
        Ok(PacketFile {
            path: path.to_owned(),
            out,
        })
    }

    /// Who writes the packets of a run.
    pub fn sink(&self) -> FrameSink {
        let out = self.out.clone();
        Box::new(move |frame| {
            let mut writing = out.lock().unwrap_or_else(PoisonError::into_inner);
            if writing.fault.is_none() {
                writing.fault = packet(&mut writing.file, frame).err();
            }
        })
    }

    /// The file is complete.
    ///
    /// # Errors
    /// The first thing that went wrong.
    pub fn finish(&self) -> Result<(), Failure> {
        let mut writing = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        let fault = writing.fault.take();
        let written = fault.map_or(Ok(()), Err).and_then(|()| writing.file.flush());
        written.map_err(|error| Failure::operation(complaint(&self.path, &error)))
    }
}

fn complaint(path: &Path, error: &io::Error) -> String {
    format!(
        "{}: cannot be written ({error}); name another file",
        path.display()
    )
}

fn section<'l>(out: &mut impl Write, links: impl Iterator<Item = &'l str>) -> io::Result<()> {
    let mut body = Vec::new();
    body.extend(BYTE_ORDER.to_le_bytes());
    body.extend([1u16.to_le_bytes(), 0u16.to_le_bytes()].concat()); // version 1.0
    body.extend(u64::MAX.to_le_bytes()); // its length is not known yet
    option(&mut body, APPLICATION, b"restp sim");
    block(out, SECTION, body)?;
    for name in links {
        let mut body = Vec::new();
        body.extend([IPV4.to_le_bytes(), [0; 2]].concat());
        body.extend(0u32.to_le_bytes()); // whole packets
        option(&mut body, NAME, name.as_bytes());
        option(&mut body, RESOLUTION, &[NANOSECONDS]);
        block(out, INTERFACE, body)?;
    }
    Ok(())
}

fn packet(out: &mut impl Write, frame: &Frame<'_>) -> io::Result<()> {
    let (nanos, length) = (frame.at.as_nanos(), frame.packet.len() as u32);
    let mut body = Vec::with_capacity(frame.packet.len() + 80);
    for word in [
        frame.link as u32,
        (nanos >> 32) as u32,
        nanos as u32,
        length,
        length,
    ] {
        body.extend(word.to_le_bytes());
    }
    body.extend_from_slice(frame.packet);
    pad(&mut body);
    let way = match frame.way {
        Way::Forward => OUTBOUND,
        Way::Reverse => INBOUND,
    };
    option(&mut body, FLAGS, &way.to_le_bytes());
    if let Some(reason) = frame.dropped {
        option(
            &mut body,
            COMMENT,
            format!("dropped: {reason:?}").to_lowercase().as_bytes(),
        );
    }
    block(out, ENHANCED_PACKET, body)
}

/// A block whose options, if there are any, end here.
fn block(out: &mut impl Write, kind: u32, mut body: Vec<u8>) -> io::Result<()> {
    body.extend([0; 4]);
    let length = (body.len() as u32 + 12).to_le_bytes();
    out.write_all(&kind.to_le_bytes())?;
    out.write_all(&length)?;
    out.write_all(&body)?;
    out.write_all(&length)
}

fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    body.extend(code.to_le_bytes());
    body.extend((value.len() as u16).to_le_bytes());
    body.extend_from_slice(value);
    pad(body);
}

fn pad(body: &mut Vec<u8>) {
    body.resize(body.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::decode::capture::frames;
    use restp_base::time::{Duration, Time};
    use restp_lab::DropReason;

    #[test]
    fn what_is_written_is_read_again() {
        let mut file = Vec::new();
        section(&mut file, ["access", "bottleneck"].into_iter()).unwrap();
        let one = Frame {
            at: Time::ZERO + Duration::from_secs(5),
            link: 1,
            way: Way::Reverse,
            packet: &[0x45, 0, 0, 21, 7],
            dropped: Some(DropReason::Queue),
        };
        packet(&mut file, &one).unwrap();
        let whole = Frame {
            packet: &[0x45; 40],
            dropped: None,
            ..one
        };
        packet(&mut file, &whole).unwrap();
        let read: Vec<_> = frames(&file)
            .expect("a capture")
            .collect::<Result<_, _>>()
            .unwrap();
        let bytes: Vec<&[u8]> = read.iter().map(|captured| captured.bytes).collect();
        assert_eq!(bytes, [one.packet, whole.packet]);
        assert!(read.iter().all(|captured| captured.link == IPV4));
        assert!(file.windows(14).any(|part| part == b"dropped: queue"));
        assert_eq!(file.len() % 4, 0);
    }
}
