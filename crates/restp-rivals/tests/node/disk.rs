//! Disks that take their time: who asks for what is on them waits, and nobody else does.

use super::cache::{Asker, invented};
use super::network::*;
use bytes::Bytes;
use restp_base::time::Duration;
use restp_rivals::itp::manifest::{self, Digest};
use restp_rivals::itp::node::{Item, Published, Source, Store, Wanted};
use std::sync::{Arc, Mutex};
use std::task::Poll;

const LONG: Duration = Duration::from_secs(600);
/// Much less than anybody waits before he asks again.
const TURN: Duration = Duration::from_millis(1);

/// Reads one thing after the other, when it is told to.
#[derive(Debug)]
struct Slow<D, Q>(Arc<Mutex<Reading<D, Q>>>);

impl<D, Q> Clone for Slow<D, Q> {
    fn clone(&self) -> Self {
        Slow(self.0.clone())
    }
}

#[derive(Debug)]
struct Reading<D, Q> {
    disk: D,
    wanted: Option<Q>,
    read: Option<Q>,
    reads: Vec<Q>,
}

impl<D, Q: Copy + PartialEq> Slow<D, Q> {
    fn new(disk: D) -> Self {
        Slow(Arc::new(Mutex::new(Reading {
            disk,
            wanted: None,
            read: None,
            reads: Vec::new(),
        })))
    }

    fn ask<R>(&self, question: Q, answer: impl FnOnce(&mut D) -> Poll<R>) -> Poll<R> {
        let mut reading = self.0.lock().unwrap();
        if reading.read == Some(question) {
            return answer(&mut reading.disk);
        }
        reading.wanted.get_or_insert(question);
        Poll::Pending
    }

    /// False: nobody wants anything.
    fn read(&self) -> bool {
        let mut reading = self.0.lock().unwrap();
        reading.read = reading.wanted.take();
        let read = reading.read;
        reading.reads.extend(read);
        read.is_some()
    }

    fn reads(&self) -> Vec<Q> {
        self.0.lock().unwrap().reads.clone()
    }
}

impl Source for Slow<Memory, Item> {
    fn chunk(&mut self, number: u64) -> Poll<Option<Bytes>> {
        self.ask(Item::Chunk(number), |memory| memory.chunk(number))
    }
    fn manifest(&mut self, position: u64) -> Poll<Option<Bytes>> {
        self.ask(Item::Manifest(position), |memory| memory.manifest(position))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stored {
    Chunk(Digest),
    Root(Wanted),
}

impl Store for Slow<Hoard, Stored> {
    fn get(&mut self, digest: &Digest, in_doubt: bool) -> Poll<Option<Bytes>> {
        self.ask(Stored::Chunk(*digest), |hoard| hoard.get(digest, in_doubt))
    }
    fn put(&mut self, digest: &Digest, payload: &Bytes) {
        self.0.lock().unwrap().disk.put(digest, payload);
    }
    fn root(&mut self, wanted: &Wanted) -> Poll<Option<Bytes>> {
        self.ask(Stored::Root(*wanted), |hoard| hoard.root(wanted))
    }
    fn put_root(&mut self, wanted: &Wanted, body: &Bytes) {
        self.0.lock().unwrap().disk.put_root(wanted, body);
    }
}

/// `data`, published from a disk that is slow.
fn slow(data: &[u8]) -> (Published, Slow<Memory, Item>) {
    let (core, memory) = object(data);
    let signature = publisher().sign(&manifest::digest(&core));
    let disk = Slow::new(memory);
    let published = Published::new(&core, signature, Box::new(disk.clone()));
    (published.unwrap(), disk)
}

/// `node` is told whenever its disk has read something, until `done`.
fn work<D, Q: Copy + PartialEq>(net: &mut Net, node: usize, disk: &Slow<D, Q>, done: impl Fn(&Net) -> bool) {
    for _ in 0..10_000 {
        if done(net) {
            return;
        }
        if disk.read() {
            let now = net.now;
            net.nodes[node].on_disk(now);
        }
        net.run(TURN, &Shelf::default(), &done);
    }
    panic!("it never ends");
}

#[test]
fn a_disk_that_does_not_answer_holds_up_nobody_else() {
    let (stalled, data) = (content(50_000), content(400_000));
    let mut net = Net::new(3);
    let (published_slowly, disk) = slow(&stalled);
    let wanted = published_slowly.wanted();
    net.nodes[2].publish(published_slowly);
    net.nodes[2].publish(published(&data));
    let waits = net.fetch(0, wanted, &[2]);
    let other = net.fetch(1, published(&data).wanted(), &[2]);
    net.run(LONG, &Shelf::default(), |net| net.is_complete(1, other));
    assert_eq!(net.bytes(1, other), data);
    assert!(!net.is_complete(0, waits) && disk.reads().is_empty());
    work(&mut net, 2, &disk, |net| net.is_complete(0, waits));
    assert_eq!(net.bytes(0, waits), stalled);
}

#[test]
fn what_several_wait_for_is_read_once_and_in_the_order_of_their_questions() {
    let data = content(60_000);
    let mut net = Net::new(4);
    let (published, disk) = slow(&data);
    let wanted = published.wanted();
    net.nodes[3].publish(published);
    let flows: Vec<_> = (0..3).map(|node| net.fetch(node, wanted, &[3])).collect();
    let all = |net: &Net| (0..3).all(|node| net.is_complete(node, flows[node]));
    work(&mut net, 3, &disk, all);
    for (node, flow) in flows.iter().enumerate() {
        assert_eq!(net.bytes(node, *flow), data);
    }
    let asked = net.log.iter().filter(|seen| seen.from == 0 && seen.to == 3);
    let order: Vec<Item> = asked
        .filter(|seen| matches!(seen.header.kind, restp_rivals::itp::wire::Kind::Interest(_)))
        .map(
            |seen| match seen.header.flags & restp_rivals::itp::wire::flags::MANIFEST {
                0 => Item::Chunk(seen.header.pointer.chunk.into()),
                _ => Item::Manifest(seen.header.pointer.chunk.into()),
            },
        )
        .collect();
    // The first question of each was answered with a cookie.
    let mut expected = Vec::new();
    for item in order {
        if !expected.contains(&item) {
            expected.push(item);
        }
    }
    assert_eq!(disk.reads(), expected);
}

#[test]
fn a_cache_with_a_slow_disk_answers_from_it_and_asks_above_for_what_is_not_there() {
    let data = content(60_000);
    let mut net = Net::new(4);
    let (cache, producer) = (2, 3);
    net.nodes[producer].publish(published(&data));
    let disk = Slow::new(Hoard::default());
    let above = [path(cache, producer)];
    net.nodes[cache].relay(net.now, Box::new(disk.clone()), &above);
    let wanted = published(&data).wanted();
    let first = net.fetch(0, wanted, &[cache]);
    work(&mut net, cache, &disk, |net| net.is_complete(0, first));
    assert_eq!(net.bytes(0, first), data);
    let sent = net.log.iter().filter(|seen| seen.from == producer).count();
    let second = net.fetch(1, wanted, &[cache]);
    work(&mut net, cache, &disk, |net| net.is_complete(1, second));
    assert_eq!(net.bytes(1, second), data);
    assert_eq!(net.log.iter().filter(|seen| seen.from == producer).count(), sent);
    let (counters, _) = net.nodes[cache].relayed().unwrap();
    assert_eq!(
        (counters.hits, counters.misses),
        (63, 63),
        "60 chunks, 3 manifests"
    );
    let mut reads = disk.reads();
    assert_eq!(reads.len(), 2 * (1 + 63), "each once for each");
    reads.sort();
    reads.dedup();
    assert_eq!(reads.len(), 1 + 63);
}

/// A disk that does not answer, and somebody who asks for more and more.
#[test]
fn who_asks_for_much_leaves_others_a_place_to_wait() {
    let mut net = Net::new(1);
    net.nodes[0].relay(net.now, Box::new(Slow::new(Hoard::default())), &[]);
    let mut waited = Vec::new();
    for node in [8, 9] {
        let mut asker = Asker::new(&mut net, node, 0);
        for number in 0..10_000 {
            asker.ask(&mut net, 1, number, &invented(number));
        }
        waited.push(net.nodes[0].waiting());
    }
    assert_eq!(waited, [4096, 4096 + 2048]);
    assert_eq!(net.nodes[0].counters().limited, 2 * 10_000 - 4096 - 2048);
    net.run(TURN, &Shelf::default(), |_| false);
    assert!(net.log.is_empty(), "as in a queue that is full");
}
