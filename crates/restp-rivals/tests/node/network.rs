//! Nodes on a star of equal delays, where each node may be behind a slow link. A rule judges every datagram.

use bytes::Bytes;
use restp_base::flow::{Flow, FlowId};
use restp_base::machine::{Datagram, Event, Input, Machine, PathAddress};
use restp_base::time::{Duration, Time};
use restp_base::units::Rate;
use restp_rivals::itp::manifest::{self, Digest, TreeBuilder};
use restp_rivals::itp::node::{Item, Keep, Node, NodeConfig, Published, Source, Store, Wanted};
use restp_rivals::itp::trust::Publisher;
use restp_rivals::itp::wire::{Header, Kind};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::task::Poll;

/// From node to node.
pub const DELAY: Duration = Duration::from_millis(20);
pub const CHUNK: u32 = 1000;
/// What a slow link holds.
const QUEUE_BYTES: u64 = 400_000;

/// Turns at one moment, with what is recalled in several; a deadline that stays is a processor that is busy with nothing.
const MOST_TURNS: u32 = 10_000;

/// A datagram that leaves.
#[derive(Clone, Debug)]
pub struct Seen {
    pub from: usize,
    pub to: usize,
    pub header: Header,
    pub bytes: usize,
}

impl Seen {
    pub fn is_data(&self) -> bool {
        matches!(self.header.kind, Kind::Data)
    }
}

/// Does it arrive? It may be changed on the way.
pub type Rule = Box<dyn FnMut(&Seen, &mut Datagram) -> bool>;

pub struct Net {
    pub now: Time,
    pub nodes: Vec<Node>,
    pub rule: Rule,
    pub log: Vec<Seen>,
    /// What leaves a node goes no faster.
    pub rates: Vec<Option<Rate>>,
    free_at: Vec<Time>,
    pub events: Vec<Vec<Event>>,
    /// What each flow of each node has brought.
    pub got: BTreeMap<(usize, FlowId), BTreeMap<Item, Bytes>>,
    wire: BTreeMap<(Time, u64), (usize, Datagram)>,
    order: u64,
}

/// An object in memory.
#[derive(Debug)]
pub struct Memory {
    pub chunks: Vec<Bytes>,
    pub manifests: Vec<Bytes>,
}

impl Source for Memory {
    fn chunk(&mut self, number: u64) -> Poll<Option<Bytes>> {
        Poll::Ready(self.chunks.get(number as usize).cloned())
    }
    fn manifest(&mut self, position: u64) -> Poll<Option<Bytes>> {
        Poll::Ready(self.manifests.get(position as usize).cloned())
    }
}

/// What a consumer has from before; shared, to be looked at.
#[derive(Clone, Debug, Default)]
pub struct Shelf(pub Arc<Mutex<BTreeMap<Item, Bytes>>>);

impl Keep for Shelf {
    fn recall(&mut self, item: Item, _digest: &Digest) -> Option<Bytes> {
        self.0.lock().unwrap().get(&item).cloned()
    }
}

/// A cache in memory that forgets nothing; shared, to be looked at and damaged.
#[derive(Clone, Debug, Default)]
pub struct Hoard {
    pub chunks: Arc<Mutex<BTreeMap<Digest, Bytes>>>,
    pub roots: Arc<Mutex<BTreeMap<Wanted, Bytes>>>,
}

impl Store for Hoard {
    fn get(&mut self, digest: &Digest, _in_doubt: bool) -> Poll<Option<Bytes>> {
        Poll::Ready(self.chunks.lock().unwrap().get(digest).cloned())
    }
    fn put(&mut self, digest: &Digest, payload: &Bytes) {
        self.chunks.lock().unwrap().insert(*digest, payload.clone());
    }
    fn root(&mut self, wanted: &Wanted) -> Poll<Option<Bytes>> {
        Poll::Ready(self.roots.lock().unwrap().get(wanted).cloned())
    }
    fn put_root(&mut self, wanted: &Wanted, body: &Bytes) {
        self.roots.lock().unwrap().insert(*wanted, body.clone());
    }
}

/// `header` and `payload` reach node `to` as if `from` had sent them.
pub fn inject(net: &mut Net, from: usize, to: usize, header: &Header, payload: &[u8]) {
    let mut datagram = Datagram::empty();
    datagram.path = path(to, from);
    datagram.body = [&header.emit()[..], payload].concat().into();
    net.nodes[to].handle(net.now, Input::Datagram(&mut datagram));
}

/// Flips a bit of the byte at `at`.
pub fn damage(datagram: &mut Datagram, at: usize) {
    let mut changed = datagram.body.to_vec();
    changed[at] ^= 1;
    datagram.body = changed.into();
}

/// Bytes of which no two chunks are alike.
pub fn content(bytes: usize) -> Vec<u8> {
    (0..bytes)
        .map(|at| (at as u32).wrapping_mul(2_654_435_761).to_be_bytes()[0] ^ (at / 997) as u8)
        .collect()
}

/// The parts of an object.
pub fn object(data: &[u8]) -> (Bytes, Memory) {
    object_of(data, CHUNK)
}

fn object_of(data: &[u8], chunk_bytes: u32) -> (Bytes, Memory) {
    let name = Bytes::from_static(b"thing");
    let mut tree = TreeBuilder::new(data.len() as u64, chunk_bytes, name).expect("possible");
    let mut manifests = vec![Bytes::new(); tree.shape().inner() as usize];
    let chunks: Vec<Bytes> = data
        .chunks(chunk_bytes as usize)
        .map(Bytes::copy_from_slice)
        .collect();
    for chunk in &chunks {
        for (position, manifest) in tree.push(chunk) {
            manifests[position as usize] = manifest;
        }
    }
    (tree.finish().expect("whole"), Memory { chunks, manifests })
}

pub fn publisher() -> Publisher {
    Publisher::from_seed(&[9; 32]).expect("a seed")
}

/// `data`, published.
pub fn published(data: &[u8]) -> Published {
    published_in(data, CHUNK)
}

/// `data`, published in chunks of `chunk_bytes`.
pub fn published_in(data: &[u8], chunk_bytes: u32) -> Published {
    let (core, memory) = object_of(data, chunk_bytes);
    let signature = publisher().sign(&manifest::digest(&core));
    Published::new(&core, signature, Box::new(memory)).expect("a root")
}

pub fn address(node: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1 + node as u8], 9))
}

pub fn path(from: usize, to: usize) -> PathAddress {
    PathAddress {
        local: address(from),
        remote: address(to),
    }
}

impl Net {
    pub fn new(nodes: usize) -> Self {
        let node = |index: usize| Node::new(NodeConfig::new([index as u8; 16]));
        Net {
            now: Time::ZERO,
            nodes: (0..nodes).map(node).collect(),
            rule: Box::new(|_, _| true),
            log: Vec::new(),
            rates: vec![None; nodes],
            free_at: vec![Time::ZERO; nodes],
            events: vec![Vec::new(); nodes],
            got: BTreeMap::new(),
            wire: BTreeMap::new(),
            order: 0,
        }
    }

    /// `node` fetches, from each of `sources`, with what it has in `shelf`.
    pub fn fetch(&mut self, node: usize, wanted: Wanted, sources: &[usize]) -> FlowId {
        let flow = self.nodes[node].fetch(wanted).expect("one");
        for source in sources {
            assert!(self.nodes[node].add_source(self.now, flow, path(node, *source)));
        }
        flow
    }

    /// Until `done`, or for `most`.
    pub fn run(&mut self, most: Duration, shelf: &Shelf, done: impl Fn(&Net) -> bool) {
        let end = self.now + most;
        self.settle(shelf);
        let mut turns = 0;
        while !done(self) {
            let deadlines = self
                .nodes
                .iter()
                .filter_map(|node| node.next_deadline().map(|(at, _)| at));
            let arrival = self.wire.first_key_value().map(|((at, _), _)| *at);
            let Some(next) = deadlines.chain(arrival).min() else {
                return;
            };
            turns = if self.now < next { 0 } else { turns + 1 };
            assert!(turns < MOST_TURNS, "time stands still at {:?}", self.now);
            self.now = self.now.max(next);
            if self.now > end {
                self.now = end;
                return;
            }
            while let Some(entry) = self.wire.first_entry().filter(|entry| entry.key().0 <= self.now) {
                let (node, mut datagram) = entry.remove();
                self.nodes[node].handle(self.now, Input::Datagram(&mut datagram));
            }
            for node in &mut self.nodes {
                if node.next_deadline().is_some_and(|(at, _)| at <= self.now) {
                    node.handle(self.now, Input::Deadline);
                }
            }
            self.settle(shelf);
        }
    }

    fn settle(&mut self, shelf: &Shelf) {
        let mut datagram = Datagram::empty();
        for index in 0..self.nodes.len() {
            loop {
                while self.nodes[index].poll_transmit(self.now, &mut datagram) {
                    self.send(index, datagram.clone());
                }
                let mut acted = false;
                while let Some(event) = self.nodes[index].poll_event() {
                    acted |= self.act(index, &event, shelf);
                    self.events[index].push(event);
                }
                if !acted {
                    break;
                }
            }
        }
    }

    fn act(&mut self, index: usize, event: &Event, shelf: &Shelf) -> bool {
        match event {
            Event::Connected(flow) => {
                self.nodes[index].start(self.now, *flow, Box::new(shelf.clone()));
                true
            }
            Event::Readable(flow) => {
                let got = self.got.entry((index, *flow)).or_default();
                while let Some((item, payload)) = self.nodes[index].take_arrived(*flow) {
                    assert!(got.insert(item, payload).is_none(), "each once");
                }
                !self.nodes[index].is_complete(*flow)
            }
            _ => false,
        }
    }

    fn send(&mut self, from: usize, mut datagram: Datagram) {
        let whole = datagram.to_vec();
        let (header, _) = Header::parse(&whole).expect("only messages leave");
        let SocketAddr::V4(remote) = datagram.path.remote else {
            panic!("only IPv4 here");
        };
        let to = usize::from(remote.ip().octets()[3]) - 1;
        let seen = Seen {
            from,
            to,
            header,
            bytes: whole.len(),
        };
        self.log.push(seen.clone());
        datagram.head.clear();
        datagram.body = whole.into();
        datagram.path = datagram.path.reversed();
        let leaves = self.now.max(self.free_at[from]);
        let waiting = self.rates[from].map_or(0, |rate| rate.bytes_in(leaves.since(self.now)));
        if !(self.rule)(&seen, &mut datagram) || waiting > QUEUE_BYTES || to >= self.nodes.len() {
            return;
        }
        let takes = self.rates[from].map_or(Duration::ZERO, |rate| {
            rate.transmission_time(seen.bytes as u64 + 28)
        });
        self.free_at[from] = leaves + takes;
        self.order += 1;
        self.wire
            .insert((leaves + takes + DELAY, self.order), (to, datagram));
    }

    pub fn is_complete(&self, node: usize, flow: FlowId) -> bool {
        self.nodes[node].is_complete(flow)
    }

    /// The bytes of an object, put together.
    pub fn bytes(&self, node: usize, flow: FlowId) -> Vec<u8> {
        let chunks = self.got[&(node, flow)]
            .iter()
            .filter(|(item, _)| matches!(item, Item::Chunk(_)));
        chunks.flat_map(|(_, payload)| payload.to_vec()).collect()
    }

    /// How many data packets `from` has sent.
    pub fn data_from(&self, from: usize) -> usize {
        self.log
            .iter()
            .filter(|seen| seen.from == from && seen.is_data())
            .count()
    }

    pub fn release(&mut self, node: usize, flow: FlowId) {
        self.nodes[node].release(self.now, flow);
    }
}

/// A generator for losses (Knuth's constants): the same in each run.
pub fn dice(mut state: u64) -> impl FnMut(u64) -> bool {
    move |one_in| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33).is_multiple_of(one_in)
    }
}
