//! A trace with its packets decoded: what every law looks at.

use crate::chaos::trace::{Trace, What};
use crate::chaos::{Case, CaseError, Fault as CaseFault, Side};
use bytes::Bytes;
use restp_base::flow::CloseReason;
use restp_base::sequence;
use restp_proto::composition::{ValidComposition, accept};
use restp_proto::wire::{ErrorControl, Header, Mapping, Services};
use restp_services::path_management::PathMode;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// What a law finds.
#[derive(Clone, Debug)]
pub struct Fault {
    /// The record at which it shows.
    pub record: Option<usize>,
    /// What is wrong.
    pub what: String,
}

impl Fault {
    pub fn at(record: usize, what: impl fmt::Display) -> Self {
        Fault {
            record: Some(record),
            what: what.to_string(),
        }
    }
    pub fn whole(what: impl fmt::Display) -> Self {
        Fault {
            record: None,
            what: what.to_string(),
        }
    }
}

/// One packet as its machine sent it.
pub struct Pdu {
    pub path: usize,
    pub conversation: Option<usize>,
    /// The connection, over the run: one of several in a conversation over several paths.
    pub strand: Option<usize>,
    /// The server's association.
    association: Option<usize>,
    pub header: Header,
    pub payload: Bytes,
}

impl Pdu {
    /// What the numbers of `side`'s association count in: a client has one in each conversation, a server may have taken
    /// several requests of a client that races.
    pub fn numbering(&self, side: Side) -> Option<(Side, usize)> {
        let number = match side {
            Side::Client => self.conversation,
            Side::Server => self.association,
        };
        Some((side, number?))
    }

    /// The association's number of the segment it carries.
    pub fn mapping(&self) -> Option<Mapping> {
        self.header.dss?.mapping.filter(|_| self.is_data())
    }

    /// Its payload is a segment, not several of them in code, nor a question how large one may be, nor a message about eras.
    pub fn is_data(&self) -> bool {
        let says_something_else = self.header.probe || self.header.about_eras;
        !self.payload.is_empty() && !self.header.services.error.has(ErrorControl::ENC) && !says_something_else
    }
}

/// A case, what became of it, and the packets in it.
pub struct Evidence<'a> {
    pub case: &'a Case,
    pub trace: &'a Trace,
    /// The client's, and what its request makes of the server's: not everything in that is the server's own choice.
    pub compositions: [ValidComposition; 2],
    /// By number; copies look at what they are copies of.
    pdus: BTreeMap<u64, Pdu>,
    copies: BTreeMap<u64, u64>,
    flipped: BTreeSet<u64>,
    /// Of every packet that arrives intact, the one its machine sent.
    arrived: BTreeSet<u64>,
}

impl<'a> Evidence<'a> {
    pub fn new(case: &'a Case, trace: &'a Trace) -> Result<Self, CaseError> {
        let [client, server] = case.compositions()?;
        let server = accept(Services::of(&client), &server).unwrap_or(server);
        let mut evidence = Evidence {
            case,
            trace,
            compositions: [client, server],
            pdus: BTreeMap::new(),
            copies: BTreeMap::new(),
            flipped: BTreeSet::new(),
            arrived: BTreeSet::new(),
        };
        for record in &trace.records {
            match &record.what {
                What::Sent {
                    packet,
                    path,
                    owner,
                    datagram,
                    ..
                } => {
                    let bytes = Bytes::from(datagram.to_vec());
                    if let Ok((header, length)) = Header::parse(&bytes, bytes.len()) {
                        let pdu = Pdu {
                            path: *path,
                            conversation: owner.map(|owner| owner.conversation),
                            strand: owner.map(|owner| owner.strand),
                            association: owner.map(|owner| owner.association),
                            header,
                            payload: bytes.slice(length..),
                        };
                        evidence.pdus.insert(*packet, pdu);
                    }
                }
                What::Copied { packet, of } => {
                    let original = evidence.original(*of);
                    evidence.copies.insert(*packet, original);
                    if evidence.flipped.contains(of) {
                        evidence.flipped.insert(*packet);
                    }
                }
                What::Flipped { packet } => drop(evidence.flipped.insert(*packet)),
                What::Delivered { packet, .. } if !evidence.flipped.contains(packet) => {
                    let original = evidence.original(*packet);
                    evidence.arrived.insert(original);
                }
                _ => {}
            }
        }
        Ok(evidence)
    }

    /// What was sent as this packet: itself, or what it is a copy of.
    pub fn original(&self, packet: u64) -> u64 {
        self.copies.get(&packet).copied().unwrap_or(packet)
    }

    /// A packet as it was sent; none when it is no PDU.
    pub fn pdu(&self, packet: u64) -> Option<&Pdu> {
        self.pdus.get(&self.original(packet))
    }

    /// A packet that arrives, unless a bit of it flipped on the way: nothing of it is believed then.
    pub fn intact(&self, packet: u64) -> Option<&Pdu> {
        self.pdu(packet).filter(|_| !self.flipped.contains(&packet))
    }

    /// Does what was sent as `packet` arrive intact, itself or as a copy?
    pub fn arrives(&self, packet: u64) -> bool {
        self.arrived.contains(&packet)
    }

    /// Is there a time at which the reader of `side` does not read?
    pub fn pauses(&self, side: Side) -> bool {
        let pauses =
            |fault: &CaseFault| matches!(fault, CaseFault::PauseReading { side: of, .. } if *of == side);
        self.case.faults.iter().any(pauses)
    }

    /// Did this end last until both had finished, in one life of its machine?
    pub fn finishes(&self, end: usize) -> bool {
        let finished = self.trace.closed(end) == Some(&CloseReason::Finished);
        !self.trace.ends[end].again && finished && !self.trace.forgot(end)
    }

    pub fn composition(&self, side: Side) -> &ValidComposition {
        &self.compositions[side.index()]
    }

    /// Does an application ask for another value of one of these keys?
    pub fn changes(&self, keys: &[&str]) -> bool {
        let names = |key: &String| keys.contains(&key.as_str());
        self.case.changes.iter().any(|wish| wish.set.keys().any(names))
    }

    /// May conversations have several paths? Then paths have numbers of their own, and data has the association's too.
    pub fn several_paths(&self) -> bool {
        self.composition(Side::Client).paths != PathMode::Single
    }

    /// The conversation that something is about.
    pub fn conversation(&self, what: &What) -> Option<usize> {
        match what {
            What::Sent { packet, .. }
            | What::Copied { packet, .. }
            | What::Flipped { packet }
            | What::Dropped { packet }
            | What::Delivered { packet, .. } => self.pdu(*packet)?.conversation,
            What::Began { end }
            | What::Wrote { end, .. }
            | What::Read { end, .. }
            | What::ReadEnd { end }
            | What::Finished { end }
            | What::Aborted { end }
            | What::Closed { end, .. }
            | What::Asked { end, .. }
            | What::Holds { end, .. } => Some(self.trace.ends[*end].conversation),
            What::Early { packet } => self.pdu(*packet)?.conversation,
            What::Told { end, .. } | What::EndedBy { end, .. } => Some(self.trace.ends[*end].conversation),
            What::Restarted { .. }
            | What::Jumped { .. }
            | What::Unexpected { .. }
            | What::Strange { .. }
            | What::Guest { .. }
            | What::Came { .. }
            | What::Went { .. }
            | What::Worked(_) => None,
        }
    }

    /// The segments that `side` sent in a conversation: by number, or in the order sent where they have none.
    pub fn segments(&self, side: Side, conversation: usize) -> Vec<&Bytes> {
        let mut near = None;
        let mut segments: BTreeMap<u64, &Bytes> = BTreeMap::new();
        for record in &self.trace.records {
            let What::Sent { packet, from, .. } = &record.what else {
                continue;
            };
            let Some(pdu) = self.pdu(*packet) else { continue };
            if *from != side || pdu.conversation != Some(conversation) {
                continue;
            }
            let place = match pdu.header.sequence {
                Some(number) => {
                    let number =
                        sequence::expand(near.unwrap_or(sequence::ORIGIN + u64::from(number)), number);
                    near = Some(number);
                    number
                }
                None => segments.len() as u64,
            };
            if pdu.is_data() {
                segments.insert(place, &pdu.payload);
            }
        }
        segments.into_values().collect()
    }
}
