//! Arbitrary bytes as an ITP message and as manifests; then as what a hostile network does to a fetch through a cache: whatever it does,
//! what is handed to the reader is what was published.

use bytes::Bytes;
use restp_base::machine::{Datagram, Event, Input, Machine, PathAddress};
use restp_base::time::{Duration, Time};
use restp_rivals::itp::manifest::{self, Core, Digest, Trailer, TreeBuilder};
use restp_rivals::itp::node::{Item, Keep, Node, NodeConfig, Published, Source, Store, Wanted};
use restp_rivals::itp::trust::Publisher;
use restp_rivals::itp::wire::Header;
use std::collections::{BTreeMap, VecDeque};
use std::task::Poll;

const CHUNK: u32 = 300;
const CHUNKS: usize = 40;
/// Turns of one story, and datagrams under way at once.
const TURNS: usize = 200;
const MOST_UNDER_WAY: usize = 64;

/// One input.
pub fn run(bytes: &[u8]) {
    parsers(bytes);
    story(bytes);
}

fn parsers(bytes: &[u8]) {
    if let Ok((header, length)) = Header::parse(bytes) {
        let sent = header.emit();
        assert_eq!(sent.len(), length, "a header keeps its length");
        assert_eq!(
            Header::parse(&sent),
            Ok((header, length)),
            "what we send means the same"
        );
    }
    if let Ok((core, length)) = Core::parse(bytes) {
        assert!(
            core.digests.len() * size_of::<Digest>() <= length,
            "no more than what is there"
        );
        let sent = core.emit();
        assert_eq!(Core::parse(&sent), Ok((core.clone(), sent.len())));
        if let Ok(shape) = core.shape() {
            assert!(shape.root_level() <= manifest::HIGHEST_LEVEL && shape.inner() <= shape.chunks.max(1));
        }
    }
    if let Ok(trailer) = Trailer::parse(bytes) {
        assert_eq!(Trailer::parse(&trailer.emit()), Ok(trailer));
    }
}

#[derive(Debug)]
struct Memory(Vec<Bytes>, Vec<Bytes>);

impl Source for Memory {
    fn chunk(&mut self, number: u64) -> Poll<Option<Bytes>> {
        Poll::Ready(self.0.get(number as usize).cloned())
    }
    fn manifest(&mut self, position: u64) -> Poll<Option<Bytes>> {
        Poll::Ready(self.1.get(position as usize).cloned())
    }
}

#[derive(Debug)]
struct Nothing;

impl Keep for Nothing {
    fn recall(&mut self, _item: Item, _digest: &Digest) -> Option<Bytes> {
        None
    }
}

#[derive(Debug, Default)]
struct Hoard(BTreeMap<Digest, Bytes>, BTreeMap<Wanted, Bytes>);

impl Store for Hoard {
    fn get(&mut self, digest: &Digest, _in_doubt: bool) -> Poll<Option<Bytes>> {
        Poll::Ready(self.0.get(digest).cloned())
    }
    fn put(&mut self, digest: &Digest, payload: &Bytes) {
        assert_eq!(
            manifest::digest(payload),
            *digest,
            "only what was asked for is kept"
        );
        self.0.insert(*digest, payload.clone());
    }
    fn root(&mut self, wanted: &Wanted) -> Poll<Option<Bytes>> {
        Poll::Ready(self.1.get(wanted).cloned())
    }
    fn put_root(&mut self, wanted: &Wanted, body: &Bytes) {
        self.1.insert(*wanted, body.clone());
    }
}

fn chunk(number: usize) -> Bytes {
    (0..CHUNK as usize)
        .map(|at| (at * 7 + number * 31) as u8)
        .collect()
}

fn published() -> Option<Published> {
    let length = u64::from(CHUNK) * CHUNKS as u64;
    let mut tree = TreeBuilder::new(length, CHUNK, Bytes::from_static(b"n")).ok()?;
    let mut manifests = vec![Bytes::new(); tree.shape().inner() as usize];
    let chunks: Vec<Bytes> = (0..CHUNKS).map(chunk).collect();
    for chunk in &chunks {
        for (position, below) in tree.push(chunk) {
            manifests[position as usize] = below;
        }
    }
    let core = tree.finish()?;
    let signature = Publisher::from_seed(&[1; 32])?.sign(&manifest::digest(&core));
    Published::new(&core, signature, Box::new(Memory(chunks, manifests))).ok()
}

fn path(from: u8, to: u8) -> PathAddress {
    PathAddress {
        local: ([10, 0, 0, from], 9).into(),
        remote: ([10, 0, 0, to], 9).into(),
    }
}

/// A consumer, a cache and a producer; the bytes say what becomes of each datagram.
fn story(bytes: &[u8]) {
    let Some(object) = published() else {
        panic!("an object of {CHUNKS} chunks is possible");
    };
    let wanted = object.wanted();
    let mut nodes = [1, 2, 3].map(|key| Node::new(NodeConfig::new([key; 16])));
    let mut now = Time::ZERO;
    nodes[2].publish(object);
    nodes[1].relay(now, Box::new(Hoard::default()), &[path(1, 2)]);
    let Ok(flow) = nodes[0].fetch(wanted) else { return };
    nodes[0].add_source(now, flow, path(0, 1));
    nodes[0].add_source(now, flow, path(0, 2));
    let mut verdicts = bytes.iter().copied();
    let mut under_way: VecDeque<(u8, Datagram)> = VecDeque::new();
    let mut out = Datagram::empty();
    for _ in 0..TURNS {
        for node in &mut nodes {
            while under_way.len() < MOST_UNDER_WAY && node.poll_transmit(now, &mut out) {
                let std::net::IpAddr::V4(to) = out.path.remote.ip() else {
                    continue;
                };
                under_way.push_back((to.octets()[3], out.clone()));
            }
        }
        while let Some(event) = nodes[0].poll_event() {
            if let Event::Connected(flow) = event {
                nodes[0].start(now, flow, Box::new(Nothing));
            }
        }
        while let Some((item, payload)) = nodes[0].take_arrived(flow) {
            if let Item::Chunk(number) = item {
                assert_eq!(
                    payload,
                    chunk(number as usize),
                    "only what was published is handed on"
                );
            }
        }
        if nodes[0].is_complete(flow) {
            return;
        }
        now += Duration::from_millis(1);
        match under_way.pop_front() {
            Some((to, datagram)) => deliver(&mut nodes, now, to, datagram, &mut verdicts, bytes),
            None => now += Duration::from_millis(250),
        }
        for node in &mut nodes {
            if node.next_deadline().is_some_and(|(at, _)| at <= now) {
                node.handle(now, Input::Deadline);
            }
        }
    }
}

/// One in four is changed, lost, doubled or replaced, as the next byte says.
fn deliver(
    nodes: &mut [Node; 3],
    now: Time,
    to: u8,
    mut datagram: Datagram,
    verdicts: &mut impl Iterator<Item = u8>,
    bytes: &[u8],
) {
    let mut whole = datagram.to_vec();
    let verdict = verdicts.next().unwrap_or(0);
    let mut times = 1;
    match verdict {
        0..192 => {}
        192..208 => times = 0,
        208..220 => times = 2,
        220..240 => {
            let at = usize::from(verdicts.next().unwrap_or(20)) % whole.len().max(1);
            if let Some(byte) = whole.get_mut(at) {
                *byte ^= verdicts.next().unwrap_or(1);
            }
        }
        240..250 => whole.truncate(usize::from(verdicts.next().unwrap_or(20))),
        _ => whole = bytes.to_vec(),
    }
    let Some(node) = nodes.get_mut(usize::from(to)) else {
        return;
    };
    datagram.path = datagram.path.reversed();
    for _ in 0..times {
        datagram.head.clear();
        datagram.body = whole.clone().into();
        node.handle(now, Input::Datagram(&mut datagram));
    }
}
