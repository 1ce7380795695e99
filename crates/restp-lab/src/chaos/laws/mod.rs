//! What must hold whatever happens. Each law is one file; it reads the trace of a run and names the first thing that
//! breaks it. They are judged in their order, so the first one broken is the closest to the cause.

mod complete;
mod conservation;
mod early;
mod encoded;
mod endings;
mod envelopes;
mod eras;
mod evidence;
mod flight;
mod holes;
mod identity;
mod memory;
mod nonces;
mod numbers;
mod once;
mod one_space;
mod order;
mod origin;
mod progress;
mod shared_window;
mod stall;
mod window;
mod wire;
mod work;

use super::trace::{Trace, What};
use super::{Case, Party};
use evidence::{Evidence, Fault};
use serde::Serialize;
use std::fmt;

/// One law.
pub struct Law {
    /// Short name, stable.
    pub name: &'static str,
    /// What it says, in one sentence.
    pub says: &'static str,
    check: fn(&Evidence<'_>) -> Result<(), Fault>,
}

/// Every law.
pub static LAWS: &[Law] = &[
    Law {
        name: "wire",
        says: "every packet sent parses, is emitted again to the same bytes, and is no larger than its segment allows",
        check: wire::check,
    },
    Law {
        name: "conservation",
        says: "every packet and copy is delivered, lost or on its way, once; it arrives as it was sent, at the other end of the path that it took, unless a bit flipped",
        check: conservation::check,
    },
    Law {
        name: "numbers",
        says: "a number never changes its payload, and where paths share the numbers nothing is mapped",
        check: numbers::check,
    },
    Law {
        name: "eras",
        says: "a packet's services are those of its era, by its number and by what both ends have said of eras",
        check: eras::check,
    },
    Law {
        name: "encoded",
        says: "an encoded packet is the sum of the segments it names, and an XOR encodes every segment once",
        check: encoded::check,
    },
    Law {
        name: "window",
        says: "nothing is sent beyond the window that has reached the sender, but one probe at a time, and none where paths share the numbers",
        check: window::check,
    },
    Law {
        name: "flight",
        says: "no more is in flight than the congestion window can be at most: the first one, what its algorithm may add for what was acknowledged, less what it takes away for losses; an open loop sends no faster than its rate; on each path for itself, and what another path carried before may leave once at any time; where paths share the numbers, a report by any of them speaks of all",
        check: flight::check,
    },
    Law {
        name: "once",
        says: "only what was written is read, byte for byte, and where packets are numbered nothing twice",
        check: once::check,
    },
    Law {
        name: "order",
        says: "where order is promised, what is read comes in the order written, and with full reliability without holes",
        check: order::check,
    },
    Law {
        name: "complete",
        says: "with full reliability, what finished at both ends was read to the last byte",
        check: complete::check,
    },
    Law {
        name: "holes",
        says: "where holes may be, what arrives in time and finds room is read, and without losses everything",
        check: holes::check,
    },
    Law {
        name: "memory",
        says: "a flow holds no more than its windows, its send buffer and a little for each segment",
        check: memory::check,
    },
    Law {
        name: "progress",
        says: "once everything is whole, everything comes to an end in bounded time and is forgotten, by the machines too, without storms or needless wakes",
        check: progress::check,
    },
    Law {
        name: "stall",
        says: "while one path is whole, data that waits for a reader who reads does not wait longer than a failure takes to notice and repair",
        check: stall::check,
    },
    Law {
        name: "endings",
        says: "every flow ends once, and finished unless a fault explains another reason",
        check: endings::check,
    },
    Law {
        name: "origin",
        says: "a seal hands up what the other end, or a client with a key of its own, has sealed for it, and nothing else; what ends a flow was sent by its peer",
        check: origin::check,
    },
    Law {
        name: "nonces",
        says: "a seal gives each packet of a session a number of its own, and hands up what it carries once",
        check: nonces::check,
    },
    Law {
        name: "identity",
        says: "the key that is told is that of the host whose bytes are read, and where a key is expected it is that one",
        check: identity::check,
    },
    Law {
        name: "early",
        says: "early data is taken at most once, in all lives of a server, and in the life that took it not again as other data",
        check: early::check,
    },
    Law {
        name: "envelopes",
        says: "until somebody has proved that he is at an address, it gets at most three times the bytes that came from there, and no key; who dials sends nowhere else",
        check: envelopes::check,
    },
    Law {
        name: "work",
        says: "what a seal computes for addresses that prove nothing, and what it holds, is bounded; it believes that a session is forgotten when its peer says so",
        check: work::check,
    },
];

/// A broken law.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Violation {
    /// Its name; `panic` and `runs` stand for a run that did not get to its end.
    pub law: &'static str,
    /// What breaks it.
    pub what: String,
    /// When, in seconds; none when it is the run as a whole.
    pub seconds: Option<f64>,
    /// What happened before it and at it, one thing a line: all of its conversation, where it has one.
    pub records: Vec<String>,
}

impl Violation {
    pub(super) fn whole(law: &'static str, what: impl fmt::Display) -> Self {
        Violation {
            law,
            what: what.to_string(),
            seconds: None,
            records: Vec::new(),
        }
    }
}

/// The first law that the run of `case` breaks.
pub fn judge(case: &Case, trace: &Trace) -> Option<Violation> {
    let evidence = match Evidence::new(case, trace) {
        Ok(evidence) => evidence,
        Err(error) => return Some(Violation::whole("runs", error)),
    };
    LAWS.iter().find_map(|law| {
        let fault = (law.check)(&evidence).err()?;
        let record = fault.record.and_then(|index| trace.records.get(index));
        Some(Violation {
            law: law.name,
            what: fault.what,
            seconds: record.map(|record| record.at.as_secs_f64()),
            records: fault
                .record
                .map_or_else(Vec::new, |index| shown(&evidence, index)),
        })
    })
}

/// The records up to `last`, of its conversation where it has one.
fn shown(evidence: &Evidence<'_>, last: usize) -> Vec<String> {
    let records = &evidence.trace.records;
    let about = evidence.conversation(&records[last].what);
    records[..=last]
        .iter()
        .filter(|record| about.is_none() || evidence.conversation(&record.what) == about)
        .map(|record| {
            format!(
                "{:>12.6} {}",
                record.at.as_secs_f64(),
                describe(evidence, &record.what)
            )
        })
        .collect()
}

fn describe(evidence: &Evidence<'_>, what: &What) -> String {
    let side = |end: &usize| evidence.trace.ends[*end].side;
    match what {
        What::Sent { packet, from, .. } => format!("{from} sends {}", packet_line(evidence, *packet)),
        What::Delivered { packet, to, .. } => format!("{to} receives {}", packet_line(evidence, *packet)),
        What::Copied { packet, of } => format!("packet {packet} is a copy of {of}"),
        What::Flipped { packet } => format!("a bit of packet {packet} flips"),
        What::Dropped { packet } => format!("packet {packet} is lost"),
        What::Asked { end, set, answer } => format!("{} asks for {set}: {answer}", side(end)),
        What::Restarted { side } => format!("{side} starts again"),
        What::Jumped { side, by } => format!("the clock of {side} leaps by {by}"),
        What::Unexpected { side, what } => format!("{side}: {what}"),
        What::Began { end } => format!("{} begins a conversation", side(end)),
        What::Wrote { end, data } => format!("{} writes {} bytes", side(end), data.len()),
        What::Read { end, data } => format!("{} reads {} bytes", side(end), data.len()),
        What::ReadEnd { end } => format!("{} reads the end", side(end)),
        What::Finished { end } => format!("{} finishes", side(end)),
        What::Aborted { end } => format!("{} breaks off", side(end)),
        What::Closed { end, reason } => format!("{} is told: {reason}", side(end)),
        What::Holds { end, bytes } => format!("{} holds {bytes} bytes", side(end)),
        What::Strange { to, party, .. } => format!("the seal of {to} hands up what {} said", name(*party)),
        What::Early { packet } => format!("packet {packet} was early data"),
        What::Told { end, party } => format!("{} is told that it talks to {}", side(end), name(Some(*party))),
        What::EndedBy { end, party } => format!("what {} said ends the flow of {}", name(*party), side(end)),
        What::Guest { told, data } => {
            format!(
                "the server reads {} bytes of a guest, told as {}",
                data.len(),
                name(*told)
            )
        }
        What::Came { to, from, bytes, .. } => format!("{bytes} bytes come to {to} from {from}"),
        What::Went { from, to, bytes, .. } => format!("{from} sends {bytes} bytes to {to}"),
        What::Worked(work) => format!("{work:?}"),
    }
}

fn name(party: Option<Party>) -> String {
    match party {
        Some(Party::Side(side)) => side.to_string(),
        Some(Party::Liar) => "a liar".into(),
        Some(Party::Impostor) => "an impostor".into(),
        None => "nobody".into(),
    }
}

/// Number, flags and sizes of a packet.
fn packet_line(evidence: &Evidence<'_>, packet: u64) -> String {
    let Some(pdu) = evidence.pdu(packet) else {
        return format!("packet {packet}, which is no PDU");
    };
    let header = &pdu.header;
    let mut line = match evidence.several_paths() {
        true => format!("packet {packet} on path {}:", pdu.path),
        false => format!("packet {packet}:"),
    };
    for name in header.flags.names() {
        line += &format!(" {name}");
    }
    if let Some(sequence) = header.sequence {
        line += &format!(" number {sequence}");
    }
    if let Some(acknowledgement) = header.acknowledgement {
        line += &format!(" acknowledges {acknowledgement}");
    }
    if let Some(window) = header.window {
        line += &format!(" window {window}");
    }
    if let Some(dss) = header.dss {
        line += &dss.mapping.map_or_else(String::new, |mapping| {
            format!(" is number {} of all", mapping.dsn)
        });
        line += &dss
            .data_ack
            .map_or_else(String::new, |number| format!(" acknowledges {number} of all"));
        line += if dss.fin { " and ends" } else { "" };
    }
    line + &format!(" with {} bytes {:?}", pdu.payload.len(), header.tail)
}

#[cfg(test)]
mod tests;
