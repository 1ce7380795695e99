//! A cache between consumers and producers. What it holds it answers; of what it does not hold it asks once, however many wait, and
//! gives all of them what comes. It judges losses on its own side of the path, as a consumer does, and knows no object: the digest in
//! an Interest says what the answer must be, so nobody has to trust the cache, nor the cache those that it asks.

use super::fair::{Queue, Shares};
use super::guard::{Cookie, source_of};
use super::message::{self, Wanted};
use super::shelf;
use super::upstream::{Question, Roots, Upstream, UpstreamReport};
use crate::itp::manifest::{self, Digest};
use crate::itp::parameters::ItpParameters;
use crate::itp::wire::{Header, Kind, Pointer, Refusal, flags};
use bytes::Bytes;
use restp_base::machine::{Datagram, Earliest, PathAddress, Wakeup};
use restp_base::time::{Duration, Time};
use restp_services::sender::Answer;
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::task::{Poll, ready};

/// Chunks that are waited for at once; who asks for more asks again. Half of them are as many as a consumer's window reaches.
const MOST_PENDING: usize = 65_536;
/// Consumers that wait for one chunk, and for all.
const MOST_WAITERS: usize = 1024;
const MOST_WAITERS_IN_ALL: usize = 131_072;
/// What no consumer has asked for during so long is asked for no more: their timers come round within 60 s.
const FORGOTTEN: Duration = Duration::from_secs(60);
/// Questions that only some of those above may still be asked, and that are passed over in one turn because these cannot be asked now.
const MOST_PASSED: usize = 16;
/// What an Interest weighs where nobody knows how large the chunk is: a packet.
const WEIGHT: u32 = 1452;

/// Where chunks are kept, by their digests. `Pending`: it is being read, and is asked for again at the next [`Node::on_disk`].
///
/// [`Node::on_disk`]: super::Node::on_disk
pub trait Store: fmt::Debug + Send {
    /// The chunk with this digest, if it is there. `in_doubt`: it was asked for before, so that what is there may be damaged.
    fn get(&mut self, digest: &Digest, in_doubt: bool) -> Poll<Option<Bytes>>;
    /// Keeps a chunk that has this digest.
    fn put(&mut self, digest: &Digest, payload: &Bytes);
    /// A root manifest with its signature, as a Manifest Message carries it.
    fn root(&mut self, wanted: &Wanted) -> Poll<Option<Bytes>>;
    /// Keeps one.
    fn put_root(&mut self, wanted: &Wanted, body: &Bytes);
}

/// What a cache did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RelayCounters {
    /// Interests answered from the store.
    pub hits: u64,
    /// Interests for something that somebody had asked for already.
    pub joined: u64,
    /// Interests for which a producer was asked.
    pub misses: u64,
    /// Interests turned away, because too much is waited for.
    pub busy: u64,
    /// Bytes of chunks that came from above, and that consumers got.
    pub fetched_bytes: u64,
    /// The same.
    pub served_bytes: u64,
}

/// A consumer that waits, and for what in his words.
#[derive(Clone, Copy, Debug)]
struct Waiter {
    path: PathAddress,
    pointer: Pointer,
    flags: u8,
}

#[derive(Debug)]
struct Pending {
    /// Who asked first: it takes one of his places.
    by: IpAddr,
    waiters: SmallVec<[Waiter; 1]>,
    /// A producer has been asked, and may answer.
    is_open: bool,
    asked_at: Time,
    /// Those above that have something else, or nothing.
    without: SmallVec<[usize; 2]>,
}

/// The cache of a node.
#[derive(Debug)]
pub(super) struct Relay {
    store: Box<dyn Store>,
    weight: Bytes,
    upstreams: Vec<Upstream>,
    turn: usize,
    pending: BTreeMap<Question, Pending>,
    /// Places for what is pending, and for those who wait.
    places: Shares,
    seats: Shares,
    /// Of what is pending, not asked for now.
    queue: Queue<Question>,
    roots: Roots,
    counters: RelayCounters,
}

impl Relay {
    /// Over `store`, asking those at `upstreams`, each in Interests that are numbered from there on.
    pub fn new(
        now: Time,
        parameters: &ItpParameters,
        store: Box<dyn Store>,
        upstreams: &[(PathAddress, u64)],
    ) -> Self {
        Relay {
            store,
            weight: vec![0; WEIGHT as usize].into(),
            upstreams: (upstreams.iter())
                .map(|(path, first)| Upstream::new(now, *path, parameters, *first, WEIGHT))
                .collect(),
            turn: 0,
            pending: BTreeMap::new(),
            places: Shares::new(MOST_PENDING),
            seats: Shares::new(MOST_WAITERS_IN_ALL),
            queue: Queue::new(),
            roots: Roots::new(),
            counters: RelayCounters::default(),
        }
    }

    pub fn counters(&self) -> RelayCounters {
        self.counters
    }
    pub fn reports(&self) -> Vec<UpstreamReport> {
        self.upstreams.iter().map(Upstream::report).collect()
    }

    /// A consumer, who has proved where he is, asks for a chunk. What he gets at once.
    pub fn on_interest(
        &mut self,
        now: Time,
        path: PathAddress,
        header: &Header,
        digest: Digest,
    ) -> Poll<Option<Datagram>> {
        let pointer = header.pointer;
        let waiter = Waiter {
            path,
            pointer,
            flags: header.flags & flags::MANIFEST,
        };
        let source = source_of(path.remote.ip());
        let question = Question::of(header, digest);
        if let Some(pending) = self.pending.get_mut(&question) {
            self.counters.joined += 1;
            pending.asked_at = now;
            // What answers it has been asked for before, and comes sooner than the way there and back takes.
            let waiter = Waiter {
                flags: waiter.flags | flags::CACHE,
                ..waiter
            };
            match pending.waiters.iter().position(|known| known.path == path) {
                Some(known) => pending.waiters[known] = waiter,
                None if pending.waiters.len() < MOST_WAITERS && self.seats.take(source) => {
                    pending.waiters.push(waiter);
                }
                None => {}
            }
            return Poll::Ready(None);
        }
        let in_doubt = header.flags & flags::REPEATED != 0;
        if let Some(payload) = ready!(self.store.get(&digest, in_doubt)) {
            self.counters.hits += 1;
            return Poll::Ready(Some(self.answer(&waiter, payload, flags::CACHE)));
        }
        if self.upstreams.is_empty() {
            return Poll::Ready(Some(refuse(&waiter, Refusal::NoNexus)));
        }
        if !self.admits(source) {
            self.counters.busy += 1;
            return Poll::Ready(Some(refuse(&waiter, Refusal::Busy)));
        }
        self.counters.misses += 1;
        self.queue.push_back(source, question);
        let pending = Pending {
            by: source,
            waiters: SmallVec::from_elem(waiter, 1),
            is_open: false,
            asked_at: now,
            without: SmallVec::new(),
        };
        self.pending.insert(question, pending);
        Poll::Ready(None)
    }

    /// May somebody at `source` wait for one more chunk? Then it has the places for that.
    fn admits(&mut self, source: IpAddr) -> bool {
        if !self.places.take(source) {
            return false;
        }
        let has_seat = self.seats.take(source);
        if !has_seat {
            self.places.give_back(source);
        }
        has_seat
    }

    /// `question` is pending no more: who waits for its answer.
    fn end(&mut self, question: &Question) -> SmallVec<[Waiter; 1]> {
        let Some(pending) = self.pending.remove(question) else {
            return SmallVec::new();
        };
        self.places.give_back(pending.by);
        for waiter in &pending.waiters {
            self.seats.give_back(source_of(waiter.path.remote.ip()));
        }
        pending.waiters
    }

    /// A consumer, who has proved where he is, asks for a root.
    pub fn on_request(
        &mut self,
        now: Time,
        path: PathAddress,
        header: &Header,
        wanted: Wanted,
        number: u64,
    ) -> Poll<Option<Datagram>> {
        let root = ready!(self.store.root(&wanted));
        if let Some(body) = root.filter(|body| shelf::check_root(body, &wanted).is_ok()) {
            return Poll::Ready(Some(super::manifest_message(path, header.pointer, body)));
        }
        if self.upstreams.is_empty() || !self.roots.on_request(now, path, header.pointer, wanted, number) {
            let code = if self.upstreams.is_empty() {
                Refusal::NoNexus
            } else {
                Refusal::Busy
            };
            let refusal = message::refusal(header.pointer, 0, code);
            return Poll::Ready(Some(message::datagram(path, &refusal, Bytes::new())));
        }
        Poll::Ready(None)
    }

    /// `held`: the flag that says whether the store had it.
    fn answer(&mut self, waiter: &Waiter, payload: Bytes, held: u8) -> Datagram {
        self.counters.served_bytes += payload.len() as u64;
        let header = Header {
            kind: Kind::Data,
            flags: waiter.flags | flags::HASH | held,
            pointer: waiter.pointer,
        };
        message::datagram(waiter.path, &header, payload)
    }

    /// A message of one of those above. None when it is none that was waited for; else what leaves to consumers.
    pub fn on_answer(
        &mut self,
        now: Time,
        remote: SocketAddr,
        header: &Header,
        payload: Bytes,
    ) -> Option<Vec<Datagram>> {
        let index = self
            .upstreams
            .iter()
            .position(|upstream| upstream.path.remote == remote)?;
        match header.kind {
            Kind::Manifest { request } => {
                let (wanted, waiters) =
                    self.roots
                        .on_manifest(request, index, &payload, &mut self.upstreams)?;
                self.store.put_root(&wanted, &payload);
                let answer = |(path, pointer)| super::manifest_message(path, pointer, payload.clone());
                Some(waiters.into_iter().map(answer).collect())
            }
            Kind::Data => self.on_data(now, index, header, payload),
            Kind::Nack { code, .. } => self.on_refusal(now, index, header, code, payload.first_chunk()),
            Kind::Request | Kind::Interest(_) => None,
        }
    }

    fn on_data(&mut self, now: Time, index: usize, header: &Header, payload: Bytes) -> Option<Vec<Datagram>> {
        let upstream = &mut self.upstreams[index];
        let (number, question) = upstream.answered(header)?;
        let is_awaited = upstream.lane.on_answer(now, Some(number), true) == Answer::Awaited;
        let is_good = manifest::is_named(&payload, &question.digest);
        upstream.on_payload(payload.len(), is_good);
        self.settle(index);
        if !is_good {
            // Whoever asks can name a digest that nothing has, so nobody is given up for this.
            return Some(if is_awaited {
                self.without(index, question)
            } else {
                Vec::new()
            });
        }
        // Wherever it was said to lie, this is it.
        let all = self.pending.range(Question::all(question.digest));
        let answered: Vec<Question> = all.map(|(question, _)| *question).collect();
        if answered.is_empty() {
            return Some(Vec::new());
        }
        self.counters.fetched_bytes += payload.len() as u64;
        self.store.put(&question.digest, &payload);
        let mut answers = Vec::new();
        for question in answered {
            for waiter in self.end(&question) {
                answers.push(self.answer(&waiter, payload.clone(), 0));
            }
        }
        Some(answers)
    }

    /// Upstream `index` does not have what answers this: others are asked, or those who wait are told.
    fn without(&mut self, index: usize, question: Question) -> Vec<Datagram> {
        let count = self.upstreams.len();
        let Some(pending) = self.pending.get_mut(&question) else {
            return Vec::new();
        };
        pending.without.push(index);
        if (0..count).any(|upstream| !pending.without.contains(&upstream)) {
            self.again(question);
            return Vec::new();
        }
        let waiters = self.end(&question);
        waiters
            .iter()
            .map(|waiter| refuse(waiter, Refusal::NoNexus))
            .collect()
    }

    fn on_refusal(
        &mut self,
        now: Time,
        index: usize,
        header: &Header,
        code: Refusal,
        cookie: Option<&Cookie>,
    ) -> Option<Vec<Datagram>> {
        let cookie = cookie.filter(|_| code == Refusal::Unproved);
        if let Some(told) =
            self.roots
                .on_refusal(now, index, header.pointer.object, code, self.upstreams.len())
        {
            self.upstreams[index].take_cookie(cookie);
            let refuse =
                |(path, pointer)| message::datagram(path, &message::refusal(pointer, 0, code), Bytes::new());
            return Some(told.into_iter().map(refuse).collect());
        }
        let (number, question) = self.upstreams[index].answered(header)?;
        if code == Refusal::Busy {
            return Some(Vec::new());
        }
        self.upstreams[index].take_cookie(cookie);
        let answer = self.upstreams[index].lane.on_answer(now, Some(number), true);
        self.settle(index);
        if answer != Answer::Awaited {
            return Some(Vec::new());
        }
        if code != Refusal::Unproved {
            return Some(self.without(index, question));
        }
        self.again(question);
        Some(Vec::new())
    }

    /// Asks `question` once more, before what was never asked.
    fn again(&mut self, question: Question) {
        if let Some(pending) = self.pending.get_mut(&question)
            && std::mem::take(&mut pending.is_open)
        {
            self.queue.push_front(pending.by, question);
        }
    }

    fn settle(&mut self, index: usize) {
        let mut lost = Vec::new();
        self.upstreams[index].lane.settle(|question| lost.push(question));
        lost.into_iter().rev().for_each(|question| self.again(question));
    }

    pub fn on_deadline(&mut self, now: Time) {
        for index in 0..self.upstreams.len() {
            self.upstreams[index].lane.on_deadline(now);
            self.settle(index);
        }
    }

    /// What leaves next: a request for a root, or an Interest.
    pub fn poll(&mut self, now: Time) -> Option<Datagram> {
        if let Some((index, wanted, pointer)) = self.roots.poll(now, self.upstreams.len()) {
            let upstream = &self.upstreams[index];
            let header = Header {
                kind: Kind::Request,
                flags: flags::HASH,
                pointer,
            };
            let payload = wanted.emit(upstream.cookie.as_ref());
            return Some(message::datagram(upstream.path, &header, payload));
        }
        let count = self.upstreams.len();
        let mut passed = 0;
        while let Some(question) = self.queue.front() {
            let Some(pending) = self.pending.get_mut(&question).filter(|pending| !pending.is_open) else {
                self.queue.drop_front();
                continue;
            };
            let is_silent = |upstream: usize| self.upstreams[upstream].lane.is_silent();
            let is_left = |upstream: &usize| !pending.without.contains(upstream);
            // Where all who answer do not have it, those who wait ask again: it must not keep what others have.
            let is_lost = !pending.without.is_empty() && (0..count).filter(is_left).all(is_silent);
            if is_lost || now.since(pending.asked_at) > FORGOTTEN {
                self.end(&question);
                continue;
            }
            let mut turns = (0..count).map(|step| (self.turn + step) % count);
            let asked = turns.find_map(|index| {
                let lane = &mut self.upstreams[index].lane;
                if pending.without.contains(&index) {
                    lane.rest(now);
                    return None;
                }
                Some((index, lane.ask(now, question, &self.weight)?))
            });
            let Some((index, number)) = asked else {
                // What all may be asked nobody can be asked now; what some may, others perhaps.
                if pending.without.is_empty() || passed >= MOST_PASSED {
                    return None;
                }
                passed += 1;
                self.queue.rotate();
                continue;
            };
            self.turn = (index + 1) % count;
            // Whoever does not answer is probed, and must not keep what others have.
            let is_silent = |index: usize| self.upstreams[index].lane.is_silent();
            pending.is_open = !is_silent(index) || (0..count).all(is_silent);
            if pending.is_open {
                self.queue.pop();
            }
            return Some(self.upstreams[index].interest(&question, number));
        }
        self.upstreams
            .iter_mut()
            .for_each(|upstream| upstream.lane.rest(now));
        None
    }

    pub fn deadline(&self) -> Option<(Time, Wakeup)> {
        let mut earliest = Earliest::NONE;
        for (at, why) in self
            .upstreams
            .iter()
            .filter_map(|upstream| upstream.lane.deadline())
        {
            earliest = earliest.or(Some(at), why);
        }
        earliest
            .or(self.roots.deadline(), Wakeup::Retransmission)
            .deadline()
    }
}

fn refuse(waiter: &Waiter, code: Refusal) -> Datagram {
    message::datagram(
        waiter.path,
        &message::refusal(waiter.pointer, waiter.flags & flags::MANIFEST, code),
        Bytes::new(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Empty;

    impl Store for Empty {
        fn get(&mut self, _: &Digest, _: bool) -> Poll<Option<Bytes>> {
            Poll::Ready(None)
        }
        fn put(&mut self, _: &Digest, _: &Bytes) {}
        fn root(&mut self, _: &Wanted) -> Poll<Option<Bytes>> {
            Poll::Ready(None)
        }
        fn put_root(&mut self, _: &Wanted, _: &Bytes) {}
    }

    /// Both are given back together, so that what only one of them has would never come back.
    #[test]
    fn who_gets_no_seat_takes_no_place() {
        let mut relay = Relay::new(Time::ZERO, &ItpParameters::default(), Box::new(Empty), &[]);
        relay.seats = Shares::new(0);
        assert!(!relay.admits(IpAddr::from([10, 0, 0, 1])));
        assert_eq!(relay.places.taken(), 0);
    }
}
