//! One object that is fetched, from several sources at once. Each source first shows the root manifest; from then on it is a lane of the
//! one consumer. What a source sends is held against digests, so that none has to be trusted.

use super::guard::Cookie;
use super::message::{self, Wanted};
use super::origin::{Complaint, LONGEST_WAIT, Origin, SourceReport, Stage, Trip};
use super::shelf;
use crate::itp::consumer::{Arrival, Consumer};
use crate::itp::holding::{Delivery, Item};
use crate::itp::manifest::{Core, Digest};
use crate::itp::parameters::ItpParameters;
use crate::itp::wire::{Header, Kind, Pointer, Refusal, flags};
use bytes::Bytes;
use restp_base::flow::FlowStats;
use restp_base::machine::{Datagram, Earliest, PathAddress, Wakeup};
use restp_base::time::Time;
use std::fmt;
use std::net::SocketAddr;

/// Most sources of one object.
const MOST_SOURCES: usize = 16;
/// Bytes of before that are looked at in one turn: a millisecond of reading and hashing.
const RECALLED_AT_ONCE: u64 = 700_000;
/// Answers in a row that ask for a proof, and nothing else: more than a window of them.
const MOST_UNPROVED: u32 = 20_000;

/// What a consumer has of an object from before.
pub trait Keep: fmt::Debug + Send {
    /// What it has at the place of `item`, if it has something. Whether that is what it should be is found out by its digest.
    fn recall(&mut self, item: Item, digest: &Digest) -> Option<Bytes>;
}

/// A fetch.
#[derive(Debug)]
pub(super) struct Retrieval {
    wanted: Wanted,
    parameters: ItpParameters,
    /// The root, once one came.
    core: Option<Core>,
    /// From [`Retrieval::start`] on.
    consumer: Option<Consumer>,
    keep: Option<Box<dyn Keep>>,
    /// There is more to be recalled at once.
    is_recalling: bool,
    /// What the reader is known not to have.
    missing: Option<Item>,
    sources: Vec<Origin>,
    /// The source of each lane of the consumer.
    lanes: Vec<usize>,
    /// Its reader knows that there is something.
    pub told: bool,
    /// And that nobody is left who could give it.
    pub is_over: bool,
}

impl Retrieval {
    /// Of `wanted`.
    pub fn new(wanted: Wanted, parameters: ItpParameters) -> Self {
        Retrieval {
            wanted,
            parameters,
            core: None,
            consumer: None,
            keep: None,
            is_recalling: false,
            missing: None,
            sources: Vec::new(),
            lanes: Vec::new(),
            told: false,
            is_over: false,
        }
    }

    pub fn wanted(&self) -> Wanted {
        self.wanted
    }
    /// There is something for its reader.
    pub fn has_news(&self) -> bool {
        (self.consumer.as_ref()).is_some_and(|consumer| consumer.has_arrived() || consumer.is_complete())
    }
    pub fn core(&self) -> Option<&Core> {
        self.core.as_ref()
    }
    pub fn is_complete(&self) -> bool {
        self.consumer.as_ref().is_some_and(Consumer::is_complete)
    }
    pub fn is_recalling(&self) -> bool {
        self.is_recalling
    }
    pub fn held_bytes(&self) -> u64 {
        self.consumer.as_ref().map_or(0, Consumer::held_bytes)
    }
    pub fn take_arrived(&mut self) -> Option<(Item, Bytes)> {
        self.consumer.as_mut()?.take_arrived()
    }
    pub fn stats(&self) -> FlowStats {
        let stats = self.consumer.as_ref().map(Consumer::stats).unwrap_or_default();
        FlowStats {
            path: self.sources.first().map(|source| source.path),
            ..stats
        }
    }

    /// There is nobody left who could give it.
    pub fn is_hopeless(&self) -> bool {
        self.sources.iter().all(|source| source.stage == Stage::GivenUp)
    }

    /// One more source. `request`: a number that nobody guesses; nor `first`, where those of Interests begin. False when it is one already, or there are too many.
    pub fn add_source(&mut self, now: Time, path: PathAddress, request: u64, first: u64) -> bool {
        let is_known = self
            .sources
            .iter()
            .any(|source| source.path.remote == path.remote);
        if is_known || self.sources.len() >= MOST_SOURCES {
            return false;
        }
        self.sources.push(Origin::new(now, path, request, first));
        true
    }

    pub fn reports(&self) -> Vec<SourceReport> {
        let report = |(index, source): (usize, &Origin)| {
            let lane = self.lanes.iter().position(|of| *of == index);
            let path = lane.and_then(|lane| Some(self.consumer.as_ref()?.path(lane)));
            SourceReport {
                remote: source.path.remote,
                serves: lane.is_some(),
                bytes: source.bytes,
                refused: source.refused,
                complaint: source.complaint,
                srtt: path.and_then(|(srtt, _)| srtt),
                window_bytes: path.map_or(0, |(_, window)| window),
            }
        };
        self.sources.iter().enumerate().map(report).collect()
    }

    /// The reader is ready for chunks; `keep` is what it has from before. Only once the root is there.
    pub fn start(&mut self, now: Time, keep: Box<dyn Keep>) {
        let (Some(core), None) = (&self.core, &self.consumer) else {
            return;
        };
        let object = self.wanted.object();
        let mut parameters = self.parameters.clone();
        // Its bytes are what takes memory.
        let packets = u64::from(core.chunk_bytes.div_ceil(parameters.chunk_bytes)).max(1);
        parameters.buffer_chunks = (parameters.buffer_chunks / packets).max(1);
        // It was checked when it came.
        self.consumer = Consumer::new(&parameters, object, core, Delivery::AsHeld).ok();
        self.keep = Some(keep);
        self.is_recalling = true;
        for source in 0..self.sources.len() {
            self.open_lane(now, source);
        }
    }

    fn open_lane(&mut self, now: Time, source: usize) {
        if let Some(consumer) = &mut self.consumer
            && self.sources[source].stage == Stage::Ready
        {
            consumer.add_numbered_lane(now, self.sources[source].numbers.clone());
            self.lanes.push(source);
        }
    }

    fn close_lane(&mut self, lane: usize) -> usize {
        let index = self.lanes.remove(lane);
        if let Some(consumer) = &mut self.consumer {
            self.sources[index].numbers.end = consumer.remove_lane(lane);
        }
        index
    }

    /// What leaves next: a request for the root, or an Interest.
    pub fn poll(&mut self, now: Time) -> Option<Datagram> {
        if self.is_complete() {
            return None;
        }
        for source in &mut self.sources {
            let Stage::Asking { next_at, wait } = &mut source.stage else {
                continue;
            };
            if *next_at > now {
                continue;
            }
            (*next_at, *wait) = (now + *wait, (*wait * 2).min(LONGEST_WAIT));
            let header = Header {
                kind: Kind::Request,
                flags: flags::HASH,
                pointer: Pointer {
                    object: source.request,
                    chunk: 0,
                    sequence: source.attempt,
                },
            };
            source.attempt += 1;
            let payload = self.wanted.emit(source.cookie.as_ref());
            return Some(message::datagram(source.path, &header, payload));
        }
        self.recall();
        if self.is_recalling {
            return None;
        }
        let (lane, header, digest) = self.consumer.as_mut()?.poll(now)?;
        let source = &self.sources[self.lanes[lane]];
        let payload = message::interest(&digest, source.cookie.as_ref());
        Some(message::datagram(source.path, &header, payload))
    }

    /// What the reader has from before is taken, up to what it has not.
    fn recall(&mut self) {
        let (Some(consumer), Some(keep)) = (&mut self.consumer, &mut self.keep) else {
            return;
        };
        let most = (RECALLED_AT_ONCE / consumer.chunk_bytes()).max(1);
        let recalled = consumer.recall(most, self.missing, |item, digest| keep.recall(item, digest));
        self.is_recalling = recalled.is_ok();
        self.missing = recalled.err().flatten();
    }

    /// The source at `remote` has sent a root.
    ///
    /// # Errors
    /// None when nobody asked for it. True when it is the first that is good.
    pub fn on_manifest(&mut self, now: Time, remote: SocketAddr, request: u64, body: &[u8]) -> Option<bool> {
        let index = self.source_at(remote)?;
        let source = &mut self.sources[index];
        if source.request != request || !matches!(source.stage, Stage::Asking { .. }) {
            return None;
        }
        match shelf::check_root(body, &self.wanted) {
            Err(error) => {
                source.give_up(error.into());
                Some(false)
            }
            Ok(core) => {
                source.stage = Stage::Ready;
                source.complaint = None;
                let is_first = self.core.is_none();
                self.core.get_or_insert(core);
                self.open_lane(now, index);
                Some(is_first)
            }
        }
    }

    /// Data has come from `remote`. None when it is nothing that was asked for there.
    pub fn on_data(&mut self, now: Time, remote: SocketAddr, header: &Header, payload: Bytes) -> Option<()> {
        let lane = self.lane_at(remote)?;
        let bytes = payload.len() as u64;
        let source = &mut self.sources[self.lanes[lane]];
        let consumer = self.consumer.as_mut()?;
        let is_manifest = header.flags & flags::MANIFEST != 0;
        if !consumer.is_answer(lane, &header.pointer, is_manifest) {
            return None;
        }
        let trip = source.trip(now, header);
        let arrival = consumer.on_data(now, lane, header, payload, trip != Trip::Shorter);
        match arrival {
            Arrival::Readable | Arrival::Taken => {
                source.bytes += bytes;
                source.unproved = 0;
            }
            Arrival::Duplicate => {}
            Arrival::Refused => source.refused += 1,
            Arrival::Untrusted => {
                source.refused += 1;
                let index = self.close_lane(lane);
                self.sources[index].give_up(Complaint::Lies);
            }
            Arrival::Rejected => return None,
        }
        if trip == Trip::Longer && arrival != Arrival::Untrusted {
            let index = self.close_lane(lane);
            self.open_lane(now, index);
        }
        Some(())
    }

    /// The source at `remote` refuses what it was asked for, or wants a proof first. None when it was not asked.
    pub fn on_refusal(
        &mut self,
        now: Time,
        remote: SocketAddr,
        header: &Header,
        code: Refusal,
        cookie: Option<&Cookie>,
    ) -> Option<()> {
        let index = self.source_at(remote)?;
        let source = &mut self.sources[index];
        let is_request =
            header.pointer.object == source.request && matches!(source.stage, Stage::Asking { .. });
        if is_request {
            return source.on_refused_request(now, code, cookie);
        }
        if header.pointer.object != self.wanted.object() {
            return None;
        }
        let lane = self.lanes.iter().position(|of| *of == index)?;
        let is_manifest = header.flags & flags::MANIFEST != 0;
        let consumer = self.consumer.as_mut()?;
        match code {
            Refusal::Unproved => {
                if !consumer.on_other_answer(now, lane, &header.pointer, is_manifest) {
                    return None;
                }
                source.cookie = Some(*cookie?);
                source.unproved += 1;
                if source.unproved > MOST_UNPROVED {
                    self.close_lane(lane);
                    self.sources[index].give_up(Complaint::Unproved);
                }
            }
            Refusal::Busy => {} // it is asked again when its time is out
            Refusal::NoNexus | Refusal::NoSuchChunk | Refusal::NotAuthorised => {
                if !consumer.is_refusal_for(lane, &header.pointer, is_manifest) {
                    return None;
                }
                self.close_lane(lane);
                let complaint = match code {
                    Refusal::NotAuthorised => Complaint::Forbids,
                    _ => Complaint::HasNot,
                };
                self.sources[index].retire(now, complaint);
            }
        }
        Some(())
    }

    pub fn on_deadline(&mut self, now: Time) {
        // From the last to the first: those before one that is given up keep their places.
        for lane in (0..self.lanes.len()).rev() {
            let silence = (self.consumer.as_mut()).and_then(|consumer| consumer.on_deadline(now, lane));
            if silence.is_some() {
                let index = self.close_lane(lane);
                self.sources[index].retire(now, Complaint::HasNot);
            }
        }
    }

    pub fn deadline(&self) -> Option<(Time, Wakeup)> {
        if self.is_complete() {
            return None;
        }
        let mut earliest = Earliest::of(self.consumer.as_ref().and_then(Consumer::deadline));
        for source in &self.sources {
            if let Stage::Asking { next_at, .. } = source.stage {
                earliest = earliest.or(Some(next_at), Wakeup::Retransmission);
            }
        }
        if self.is_recalling {
            earliest = earliest.or(Some(Time::ZERO), Wakeup::Pacing);
        }
        earliest.deadline()
    }

    fn source_at(&self, remote: SocketAddr) -> Option<usize> {
        self.sources
            .iter()
            .position(|source| source.path.remote == remote)
    }

    fn lane_at(&self, remote: SocketAddr) -> Option<usize> {
        (self.lanes.iter()).position(|source| self.sources[*source].path.remote == remote)
    }
}
