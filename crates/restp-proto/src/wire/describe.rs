//! A PDU field by field, for people: what `restp decode` prints.

mod paths;

use super::codes::{self, ErrorControl, Flags};
use super::{Cookie, Fec, Header, MpSetup, ParseError, Paths, Services, Tail};
use super::{arq, crc};
use paths::{dss_extension, mp_capable, mp_join};
use restp_services::ack::AckRatio;
use restp_services::ack::Uncarried;
use restp_services::congestion::{CodeSpace, CongestionChoice};
use restp_services::reliability::FecCode;
use std::fmt::Write;

/// One field of a PDU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// First bit of the field, from the start of the PDU: byte `offset / 8`.
    pub offset: usize,
    /// Width in bits.
    pub length: usize,
    /// Name in the specification.
    pub name: &'static str,
    /// The bits as they travel, in hex; a long payload is cut with `…`.
    pub value: String,
    /// What the value says.
    pub meaning: String,
}

/// The fields of the PDU in `pdu` from front to back, without gaps: header, extensions, payload, with
/// verdicts on both CRCs.
///
/// # Errors
/// The PDU does not parse.
pub fn describe(pdu: &[u8]) -> Result<Vec<Field>, ParseError> {
    let (header, length) = Header::parse(pdu, pdu.len())?;
    let (head, payload) = pdu.split_at(length);
    let mut list = List {
        pdu,
        at: 0,
        fields: Vec::new(),
    };
    base(&mut list, &header);
    if crc::announced(&header.base()) {
        crc_extension(&mut list, head, payload);
    }
    if let Some(segments) = header.window {
        list.add(
            "Window",
            16,
            format!("accepts {segments} segments from the acknowledged one on"),
        );
        list.add("Window pad", 16, "ignored");
    }
    if let Tail::Cookie(cookie) = &header.tail {
        list.add("Cookie", 8 * cookie.as_bytes().len(), cookie_meaning(cookie));
    }
    match &header.mp {
        Some(MpSetup::Capable(capable)) => mp_capable(&mut list, capable, header.services.shared_numbers),
        Some(MpSetup::Join(join)) => mp_join(&mut list, join),
        None => {}
    }
    if let Some(dss) = &header.dss {
        dss_extension(&mut list, dss);
    }
    if let Some(fec) = &header.fec {
        list.add("FEC Type", 8, fec_type(fec.kind));
        list.add("FEC Range", 24, fec_range(&header, fec));
    }
    if let Some(number) = header.sequence {
        list.add("Sequence Number", 32, format!("segment {number}"));
        if arq::announced(&header.base()) {
            list.add(
                "Acknowledgement Number",
                32,
                acknowledgement(header.acknowledgement),
            );
        }
    }
    tail(&mut list, &header);
    if !payload.is_empty() {
        list.add(
            "Payload",
            8 * payload.len(),
            payload_meaning(&header, payload.len()),
        );
    }
    Ok(list.fields)
}

/// Fields so far, and the bit after the last one.
struct List<'a> {
    pdu: &'a [u8],
    at: usize,
    fields: Vec<Field>,
}

impl List<'_> {
    /// Appends the next `length` bits.
    fn add(&mut self, name: &'static str, length: usize, meaning: impl Into<String>) {
        let (offset, value) = (self.at, self.hex(length));
        self.fields.push(Field {
            offset,
            length,
            name,
            value,
            meaning: meaning.into(),
        });
        self.at += length;
    }

    /// Some bits as a number, or whole bytes of which the first 32 are shown.
    fn hex(&self, length: usize) -> String {
        const SHOWN: usize = 32;
        let (first, bit) = (self.at / 8, self.at % 8);
        let bytes = &self.pdu[first..(self.at + length).div_ceil(8)];
        if !length.is_multiple_of(8) {
            let number = bytes
                .iter()
                .fold(0u64, |number, byte| number << 8 | u64::from(*byte));
            let number = number >> (8 * bytes.len() - bit - length) & ((1 << length) - 1);
            return format!("{number:#x}");
        }
        let mut text = String::from("0x");
        for byte in bytes.iter().take(SHOWN) {
            let _ = write!(text, "{byte:02x}");
        }
        if bytes.len() > SHOWN {
            text.push('…');
        }
        text
    }

    /// The next byte.
    fn peek(&self) -> u8 {
        self.pdu[self.at / 8]
    }
}

fn base(list: &mut List<'_>, header: &Header) {
    let words = usize::from(list.pdu[6] & 0xF0 | list.pdu[0] & 0x0F);
    list.add("Version", 4, "ResTP version 0");
    list.add(
        "HL",
        4,
        format!("header of {words} words = {} bytes, with HLX", 4 * words),
    );
    list.add("Flags", 8, named(header.flags.names()));
    services(list, header);
    list.add("k", 4, format!("path count or ordinal {}", header.k));
    list.add("HLX", 4, "high nibble of the header length");
    let mpx = match &header.mp {
        None => "no multipath set-up",
        Some(MpSetup::Capable(_)) => "MP_CAPABLE present",
        Some(MpSetup::Join(_)) => "MP_JOIN present",
    };
    list.add("MPX", 2, mpx);
    list.add(
        "DSS",
        1,
        if header.dss.is_some() {
            "DSS present"
        } else {
            "no DSS"
        },
    );
    let framing = if header.services.framing == codes::Framing::Coalesce {
        "coalesce"
    } else {
        "fixed-size"
    };
    list.add("FRM", 1, framing);
    let era = match (header.flags.has(codes::Flags::SYN), header.era) {
        (true, true) => "eras are known",
        (true, false) => "eras are not known",
        (false, true) => "an odd era",
        (false, false) => "an even era",
    };
    list.add("Era", 1, era);
    let repaired = format!("{} segments rebuilt, modulo 8", header.repaired);
    list.add("Repaired", 3, repaired);
    list.add("Ratio", 3, ratio(header.ack_ratio));
    let probe = if header.probe {
        "probe of the largest packet"
    } else {
        "no probe"
    };
    list.add("Probe", 1, probe);
    list.add("Source port", 16, header.source.to_string());
    list.add("Destination port", 16, header.destination.to_string());
}

fn ratio(ratio: AckRatio) -> String {
    match ratio {
        AckRatio::SCHEDULE => "acknowledge by the schedule".into(),
        AckRatio::UNHURRIED => "acknowledge by the schedule, without hurry".into(),
        asked => format!("acknowledge every {} segments", asked.segments()),
    }
}

/// The service bits: what every packet repeats (ResTP §3.2).
fn services(list: &mut List<'_>, header: &Header) {
    let services = &header.services;
    list.add("Ord", 2, format!("{:?}", services.order).to_lowercase());
    let flow = list.peek() & 0x3F;
    let bits = [
        (codes::FLOW_CKI, "CKI"),
        (codes::FLOW_CON, "CON"),
        (codes::FLOW_OPT, "OPT"),
        (codes::FLOW_CXF, "CXF"),
        (codes::FLOW_SHARED, "SHN"),
        (codes::FLOW_ERA, "ERA"),
    ];
    let names = bits
        .iter()
        .filter(|(bit, _)| flow & bit != 0)
        .map(|(_, name)| *name);
    let scheme = match services.setup {
        codes::Setup::Connectionless => "connectionless",
        codes::Setup::ThreeWay => "three-way",
        codes::Setup::Opportunistic => "opportunistic",
    };
    let numbers = if services.shared_numbers {
        ", numbers shared by all paths"
    } else {
        ""
    };
    list.add("Flow", 6, format!("{}: {scheme}{numbers}", named(names)));
    list.add(
        "Error",
        8,
        format!("{}: {}", named(services.error.names()), technique(services.error)),
    );
    paths(list, services);
}

/// Those of paths, and of what limits a sender.
fn paths(list: &mut List<'_>, services: &Services) {
    list.add(
        "P",
        2,
        match services.paths {
            Paths::Single => "single path",
            Paths::HotStandby => "multipath, hot-standby",
            Paths::Spreading(_) => "multipath, spreading",
        },
    );
    list.add(
        "Sched",
        2,
        match services.paths {
            Paths::Spreading(codes::Scheduler::RoundRobin) => "RRS: round robin",
            Paths::Spreading(codes::Scheduler::FastestRtt) => "FRS: fastest round-trip time",
            Paths::Spreading(codes::Scheduler::Undeclared) => "no scheduler declared",
            Paths::Single | Paths::HotStandby => "without meaning outside spreading",
        },
    );
    let space = if services.multipath() {
        CodeSpace::SeveralPaths
    } else {
        CodeSpace::OnePath
    };
    let congestion = match (services.multipath(), services.congestion) {
        (_, codes::CONG_NONE) => "no congestion control",
        (true, codes::CONG_NEW_RENO) => "newreno, or one without a code; a window per subflow",
        (false, codes::CONG_NEW_RENO) => "newreno, or one without a code",
        (_, code) => {
            CongestionChoice::from_code(code, space).map_or("unassigned algorithm", |choice| choice.name())
        }
    };
    list.add("Cong", 4, congestion);
    let flow_control = match services.flow_control {
        0 => "no flow control",
        codes::FC_WINDOW => "WIN: window",
        codes::FC_STREAMS => "WIN: window, and one per stream",
        _ => "unassigned technique",
    };
    list.add("FC", 4, flow_control);
}

fn technique(error: ErrorControl) -> &'static str {
    match (error.has(ErrorControl::NAK), error.has(ErrorControl::SAK)) {
        (true, true) => "SNACK, vector allowed",
        (true, false) => "SNACK, one hole",
        (false, true) => "SACK",
        (false, false) => "no selective report",
    }
}

fn crc_extension(list: &mut List<'_>, head: &[u8], payload: &[u8]) {
    let verdict = |good: bool, computed: String| {
        if good {
            "good".to_owned()
        } else {
            format!("BAD, computed {computed}: drop")
        }
    };
    let hec = format!(
        "{:#06x}",
        crc::of_header(head).map_or(0, |(computed, _)| computed)
    );
    list.add("HEC CRC-16", 16, verdict(crc::verify_header(head), hec));
    list.add("CRC pad", 16, "ignored");
    if !payload.is_empty() {
        let computed = format!("{:#010x}", crc::of_payload(payload));
        list.add(
            "Payload CRC-32",
            32,
            verdict(crc::verify_payload(head, payload), computed),
        );
    }
}

fn cookie_meaning(cookie: &Cookie) -> String {
    format!("minted by the server, {} bytes", cookie.as_bytes().len())
}

fn fec_type(kind: u8) -> &'static str {
    match kind {
        0 => "undefined",
        codes::FEC_BASIC => "XOR of consecutive packets",
        codes::FEC_INTERLEAVED => "XOR of every other packet",
        codes::FEC_RLC => "sliding window over GF(2^8)",
        _ => "unassigned type",
    }
}

fn fec_range(header: &Header, fec: &Fec) -> String {
    let range = fec.range;
    if header.flags.has(Flags::SYN) {
        "set-up: no range".into()
    } else if header.services.error.has(ErrorControl::ENC) {
        match FecCode::from_kind(fec.kind) {
            Some(code @ FecCode::Rlc) => {
                let mut covered = code.covered(0, range);
                let stride = covered.nth(1).unwrap_or(1);
                let count = code.covered(0, range).count();
                format!(
                    "{count} packets, each {stride} after the last, with key {}",
                    range >> 12
                )
            }
            _ => format!("{range} packets encoded in the payload"),
        }
    } else if fec.kind == codes::FEC_RLC {
        let pointer = u64::from(header.acknowledgement.unwrap_or(0)) + (1 << 32);
        let uncarried = Uncarried::from_range(range, pointer).iter();
        let uncarried: Vec<String> = uncarried.map(|number| (number as u32).to_string()).collect();
        if uncarried.is_empty() {
            "nothing rebuilt or given up lately".into()
        } else {
            format!("rebuilt or given up: {}", uncarried.join(", "))
        }
    } else if range == 0 {
        "nothing outstanding".into()
    } else {
        format!("loss range: {range} packets from the acknowledged one on")
    }
}

fn acknowledgement(number: Option<u32>) -> String {
    match number {
        Some(number) => format!("nothing below {number} is needed"),
        None => "not valid without ACK".into(),
    }
}

fn tail(list: &mut List<'_>, header: &Header) {
    match &header.tail {
        Tail::None | Tail::Cookie(_) => {}
        Tail::Sack(blocks) => {
            for (left, right) in blocks {
                list.add("SACK Left Edge", 32, format!("received from {left}"));
                list.add("SACK Right Edge", 32, format!("up to and with {right}"));
            }
        }
        Tail::Snack(snack) => {
            let (offset, size) = (snack.offset, snack.size);
            list.add(
                "Hole1 Offset",
                16,
                format!("hole starts {offset} after the acknowledged segment"),
            );
            list.add("Hole1 Size", 16, format!("{size} segments missing"));
            if !snack.vector.is_empty() {
                let ones: u32 = snack.vector.iter().map(|word| word.count_ones()).sum();
                let meaning = format!("{ones} segments received after the hole; 1 received, 0 missing");
                list.add("Bit Vector", 32 * snack.vector.len(), meaning);
            }
        }
    }
}

fn payload_meaning(header: &Header, bytes: usize) -> String {
    let kind = if header.services.error.has(ErrorControl::ENC) {
        "FEC-encoded"
    } else {
        "application data"
    };
    format!("{bytes} bytes, {kind}")
}

fn named(names: impl Iterator<Item = &'static str>) -> String {
    let list: Vec<_> = names.collect();
    if list.is_empty() {
        "none".into()
    } else {
        list.join("+")
    }
}
