//! A host's ITP on real networks: it publishes, fetches and caches, each as far as it is asked to. It is another arrangement of what
//! [`host`](super::host) is made of: objects are named by digests and signed, their bytes lie on disks, and nothing is believed of an
//! address before somebody has shown that he receives there. `docs/protocol/itp.md` has the bytes.
//!
//! | File | Holds |
//! |---|---|
//! | `message` | what travels in plain UDP datagrams |
//! | `guard` | cookies that prove addresses; rates of sources |
//! | `answering` | what others ask for |
//! | `shelf` | what is published |
//! | `waiting` | who waits until a disk has read something |
//! | `retrieval`, `origin` | one object that is fetched, and each of its sources |
//! | `relay`, `upstream`, `fair` | a cache: one question above for all who wait below, and no consumer before the others |
//!
//! Disks are behind three traits that somebody above fills: [`Source`], [`Keep`] and [`Store`].

mod answering;
mod fair;
mod guard;
mod message;
mod origin;
mod outbox;
mod relay;
mod retrieval;
mod shelf;
mod upstream;
mod waiting;

pub use super::holding::Item;
pub use message::{FIRST_BYTES, Wanted};
pub use origin::{Complaint, SourceReport};
pub use relay::{RelayCounters, Store};
pub use retrieval::Keep;
pub use shelf::{Published, RootError, Source};
pub use upstream::UpstreamReport;

use super::manifest::Core;
use super::parameters::ItpParameters;
use super::wire::{Header, Kind, Pointer, flags};
use bytes::Bytes;
use guard::Guard;
use outbox::Outbox;
use relay::Relay;
use restp_base::flow::{CloseReason, Flow, FlowId, FlowStats, OpenError, Read, WriteError};
use restp_base::machine::{Datagram, Earliest, Event, Input, Machine, PathAddress, Wakeup};
use restp_base::time::Time;
use restp_base::units::Rate;
use restp_services::recovery::Overtaking;
use retrieval::Retrieval;
use std::collections::{BTreeMap, VecDeque};
use waiting::Waiting;

/// Objects that are fetched at once.
const MOST_FETCHES: usize = 1024;

/// What a user sets.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// How chunks are asked for.
    pub parameters: ItpParameters,
    /// Cookies and numbers that nobody guesses are made with it.
    pub key: [u8; 16],
    /// No source address gets more than this.
    pub per_source: Option<Rate>,
}

/// What a node counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeCounters {
    /// Chunks and manifests that answered Interests, and their bytes.
    pub answers: u64,
    /// The same.
    pub answered_bytes: u64,
    /// Questions that were answered with a cookie.
    pub unproved: u64,
    /// Questions that were not answered, because their source had taken enough, or too many of its questions waited for a disk.
    pub limited: u64,
    /// Datagrams dropped because they were malformed, for nobody, or broke a rule, and answers for which there was no room.
    pub dropped: u64,
}

/// A node.
#[derive(Debug)]
pub struct Node {
    config: NodeConfig,
    guard: Guard,
    published: BTreeMap<u64, Published>,
    fetches: BTreeMap<FlowId, Retrieval>,
    relay: Option<Relay>,
    waiting: Waiting,
    outbox: Outbox,
    /// The last datagram that left was an answer: the next is a question, if there is one.
    has_answered: bool,
    events: VecDeque<Event>,
    opened: u64,
    numbers: u64,
    counters: NodeCounters,
}

impl NodeConfig {
    /// For real networks: a window that asks why chunks are lost, and no end but that of who waits.
    pub fn new(key: [u8; 16]) -> Self {
        NodeConfig {
            parameters: ItpParameters {
                naming: super::manifest::Naming::Hash,
                adapts: true,
                // What a cache holds comes at once and what it has to ask for does not: neither tells of a loss of the other.
                overtaking: Some(Overtaking { deviations: 4 }),
                // 45 MB: a second of 360 Mbit/s.
                buffer_chunks: 32_768,
                ..ItpParameters::default()
            },
            key,
            per_source: None,
        }
    }
}

impl Node {
    /// A node that does nothing yet.
    pub fn new(config: NodeConfig) -> Self {
        Node {
            guard: Guard::new(config.key, config.per_source),
            config,
            published: BTreeMap::new(),
            fetches: BTreeMap::new(),
            relay: None,
            waiting: Waiting::new(),
            outbox: Outbox::new(),
            has_answered: false,
            events: VecDeque::new(),
            opened: 0,
            numbers: 0,
            counters: NodeCounters::default(),
        }
    }

    /// Serves `object` from now on.
    pub fn publish(&mut self, object: Published) {
        self.published.insert(object.wanted().object(), object);
    }

    /// Fetches what is `wanted`. [`Event::Connected`] says that its root manifest is there, which [`Node::root`] shows.
    ///
    /// # Errors
    /// When it is being fetched already, or too much is.
    pub fn fetch(&mut self, wanted: Wanted) -> Result<FlowId, OpenError> {
        let same = self
            .fetches
            .values()
            .any(|fetch| fetch.wanted().object() == wanted.object());
        if same || self.fetches.len() >= MOST_FETCHES {
            return Err(OpenError::Unsupported(
                "this object is being fetched, or too many are".into(),
            ));
        }
        let id = FlowId(self.opened);
        self.opened += 1;
        let parameters = self.config.parameters.clone();
        self.fetches.insert(id, Retrieval::new(wanted, parameters));
        Ok(id)
    }

    /// One more source of a fetch.
    pub fn add_source(&mut self, now: Time, flow: FlowId, path: PathAddress) -> bool {
        let (request, first) = (self.number(), self.first_number());
        let fetch = self.fetches.get_mut(&flow);
        fetch.is_some_and(|fetch| fetch.add_source(now, path, request, first))
    }

    /// The root manifest of a fetch, once it is there.
    pub fn root(&self, flow: FlowId) -> Option<&Core> {
        self.fetches.get(&flow)?.core()
    }

    /// The reader of a fetch is ready; `keep` is what it has from before.
    pub fn start(&mut self, now: Time, flow: FlowId, keep: Box<dyn Keep>) {
        if let Some(fetch) = self.fetches.get_mut(&flow) {
            fetch.start(now, keep);
        }
    }

    /// The next chunk or manifest of a fetch that has come, in no order. None: [`Event::Readable`] says when there is more.
    pub fn take_arrived(&mut self, flow: FlowId) -> Option<(Item, Bytes)> {
        let fetch = self.fetches.get_mut(&flow)?;
        let arrived = fetch.take_arrived();
        fetch.told &= arrived.is_some();
        arrived
    }

    /// Everything of a fetch has come, or was there.
    pub fn is_complete(&self, flow: FlowId) -> bool {
        self.fetches.get(&flow).is_some_and(Retrieval::is_complete)
    }

    /// It is looking at what its reader has from before.
    pub fn is_recalling(&self, flow: FlowId) -> bool {
        self.fetches.get(&flow).is_some_and(Retrieval::is_recalling)
    }

    /// Bytes of chunks that have come, or were there.
    pub fn held_bytes(&self, flow: FlowId) -> u64 {
        self.fetches.get(&flow).map_or(0, Retrieval::held_bytes)
    }

    /// What the sources of a fetch did.
    pub fn sources(&self, flow: FlowId) -> Vec<SourceReport> {
        self.fetches
            .get(&flow)
            .map(Retrieval::reports)
            .unwrap_or_default()
    }

    /// Answers for others from `store`, asking those at `upstreams` for what is not there.
    pub fn relay(&mut self, now: Time, store: Box<dyn Store>, upstreams: &[PathAddress]) {
        let upstreams: Vec<_> = (upstreams.iter())
            .map(|path| (*path, self.first_number()))
            .collect();
        self.relay = Some(Relay::new(now, &self.config.parameters, store, &upstreams));
    }

    /// What the cache did, and those above it.
    pub fn relayed(&self) -> Option<(RelayCounters, Vec<UpstreamReport>)> {
        self.relay
            .as_ref()
            .map(|relay| (relay.counters(), relay.reports()))
    }

    /// What it counted.
    pub fn counters(&self) -> NodeCounters {
        self.counters
    }

    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.guard.number(self.numbers)
    }

    /// Where the numbers of Interests to one source begin: who sees these guesses no others. 31 bits are as good as none to a guesser,
    /// and leave room for the numbers that follow.
    fn first_number(&mut self) -> u64 {
        self.number() >> 33
    }

    fn receive(&mut self, now: Time, datagram: &mut Datagram) {
        let path = datagram.path;
        let taken = message::take_apart(datagram).and_then(|(header, payload)| match header.kind {
            Kind::Request => self.on_request(now, path, &header, &payload),
            Kind::Interest(_) => self.on_interest(now, path, &header, &payload),
            Kind::Manifest { .. } | Kind::Data | Kind::Nack { .. } => {
                self.on_answer(now, path, &header, payload)
            }
        });
        self.counters.dropped += u64::from(taken.is_none());
    }

    fn on_answer(&mut self, now: Time, path: PathAddress, header: &Header, payload: Bytes) -> Option<()> {
        for (id, fetch) in &mut self.fetches {
            let taken = match header.kind {
                Kind::Manifest { request } => {
                    let taken = fetch.on_manifest(now, path.remote, request, &payload);
                    if taken == Some(true) {
                        self.events.push_back(Event::Connected(*id));
                    }
                    taken.map(drop)
                }
                Kind::Data if fetch.wanted().object() == header.pointer.object => {
                    fetch.on_data(now, path.remote, header, payload.clone())
                }
                Kind::Nack { code, .. } => {
                    fetch.on_refusal(now, path.remote, header, code, payload.first_chunk())
                }
                _ => None,
            };
            if taken.is_some() {
                Self::tell(&mut self.events, *id, fetch);
                return Some(());
            }
        }
        let relay = self.relay.as_mut()?;
        for answer in relay.on_answer(now, path.remote, header, payload)? {
            self.push(now, answer);
        }
        Some(())
    }

    /// The next question of a fetch or of the cache.
    fn next_question(&mut self, now: Time) -> Option<Datagram> {
        let asked = self.fetches.iter_mut().find_map(|(id, fetch)| {
            let next = fetch.poll(now);
            Self::tell(&mut self.events, *id, fetch); // what was there from before may be all
            next
        });
        asked.or_else(|| self.relay.as_mut()?.poll(now))
    }

    /// Says once that there is something, and once that nobody is left.
    fn tell(events: &mut VecDeque<Event>, id: FlowId, fetch: &mut Retrieval) {
        if fetch.has_news() && !std::mem::replace(&mut fetch.told, true) {
            events.push_back(Event::Readable(id));
        }
        if fetch.is_hopeless() && !std::mem::replace(&mut fetch.is_over, true) {
            events.push_back(Event::Closed(id, CloseReason::Refused));
        }
    }
}

/// A root for who asked for it with `pointer`.
fn manifest_message(path: PathAddress, pointer: Pointer, body: Bytes) -> Datagram {
    let header = Header {
        kind: Kind::Manifest {
            request: pointer.object,
        },
        flags: flags::HASH,
        pointer,
    };
    message::datagram(path, &header, body)
}

impl Machine for Node {
    fn handle(&mut self, now: Time, input: Input<'_>) {
        match input {
            Input::Datagram(datagram) => self.receive(now, datagram),
            Input::Deadline => {
                self.fetches.values_mut().for_each(|fetch| fetch.on_deadline(now));
                if let Some(relay) = &mut self.relay {
                    relay.on_deadline(now);
                }
            }
            Input::PathNotice { .. } | Input::Refused(_) => {}
        }
    }

    fn poll_transmit(&mut self, now: Time, out: &mut Datagram) -> bool {
        let asks_first = std::mem::take(&mut self.has_answered);
        let question = if asks_first { self.next_question(now) } else { None };
        let next = question.or_else(|| {
            let answer = self.outbox.pop(now);
            self.has_answered = answer.is_some();
            answer
        });
        let next = next.or_else(|| if asks_first { None } else { self.next_question(now) });
        let found = next.is_some();
        if let Some(next) = next {
            *out = next;
        }
        found
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn next_deadline(&self) -> Option<(Time, Wakeup)> {
        let mut earliest = Earliest::of(self.relay.as_ref().and_then(Relay::deadline));
        for (at, why) in self.fetches.values().filter_map(Retrieval::deadline) {
            earliest = earliest.or(Some(at), why);
        }
        earliest = earliest.or(self.outbox.deadline(), Wakeup::Pacing);
        earliest.deadline()
    }

    fn held(&self) -> usize {
        self.fetches.len()
    }
}

impl Flow for Node {
    fn open(&mut self, _now: Time, _path: PathAddress, _port: u16) -> Result<FlowId, OpenError> {
        Err(OpenError::Unsupported(
            "objects are fetched by their names".into(),
        ))
    }

    fn write(&mut self, _now: Time, _flow: FlowId, _data: Bytes) -> Result<(), WriteError> {
        Err(WriteError::Closed)
    }

    fn read(&mut self, _now: Time, flow: FlowId) -> Read {
        match self.is_complete(flow) {
            true => Read::End,
            false => Read::Empty,
        }
    }

    fn finish(&mut self, _now: Time, _flow: FlowId) {}

    /// Nobody is told: there is no connection.
    fn abort(&mut self, _now: Time, flow: FlowId) {
        if self.fetches.contains_key(&flow) {
            self.events.push_back(Event::Closed(flow, CloseReason::Aborted));
        }
    }

    fn release(&mut self, _now: Time, flow: FlowId) {
        self.fetches.remove(&flow);
    }

    fn stats(&self, flow: FlowId) -> Option<FlowStats> {
        self.fetches.get(&flow).map(Retrieval::stats)
    }
}
