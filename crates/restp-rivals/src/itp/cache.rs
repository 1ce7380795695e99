//! A box on the way (ITP §III.C, §VII): it looks at ITP that passes, keeps the data, and answers Interests for what it holds in the
//! producer's name. Interests for what somebody else has asked for already wait for that; the producer is asked once. Where chunks are
//! named by their digests it answers with nothing else than what was asked for, and nobody has to trust it; where they are named by numbers
//! consumers do.

mod pending;

use super::content_store::{ContentStore, Name};
use super::host::{datagram, take_apart};
use super::manifest::{self, DIGEST_BYTES};
use super::wire::{Header, Kind, flags};
use bytes::Bytes;
use pending::{Pending, Waiting};
use restp_base::machine::Datagram;
use restp_base::time::Time;
use std::net::SocketAddr;

/// A cache.
#[derive(Debug)]
pub struct Cache {
    store: ContentStore,
    pending: Pending,
    misses: u64,
}

/// What a cache counted: of Interests, each in one of the first three.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounters {
    /// Answered from the store.
    pub hits: u64,
    /// Passed on to the producer.
    pub misses: u64,
    /// Kept until what somebody else had asked for came.
    pub merged: u64,
    /// Chunks forgotten for want of room.
    pub evicted: u64,
}

impl Cache {
    /// One that holds `limit` bytes of chunks at most.
    pub fn new(limit: u64) -> Self {
        Cache {
            store: ContentStore::new(limit),
            pending: Pending::default(),
            misses: 0,
        }
    }

    /// Looks at a datagram that passes, and says whether it goes on, unchanged. What the cache sends itself is added to `answers`.
    pub fn on_passing(&mut self, now: Time, passing: &Datagram, answers: &mut Vec<Datagram>) -> bool {
        let Ok(message) = take_apart(&mut passing.clone()) else {
            return true;
        };
        let header = &message.header;
        let name = |producer| Name {
            producer,
            object: header.pointer.object,
            is_manifest: header.flags & flags::MANIFEST != 0,
            chunk: header.pointer.chunk,
        };
        match header.kind {
            Kind::Data => {
                let name = name(SocketAddr::new(passing.path.local.ip(), message.source_port));
                let addressee = SocketAddr::new(passing.path.remote.ip(), message.destination_port);
                self.on_data(now, name, (addressee, header), message.payload, answers);
                true
            }
            Kind::Nack { .. } => {
                // Those that wait ask again, each for itself.
                let name = name(SocketAddr::new(passing.path.local.ip(), message.source_port));
                self.pending.forget(&name);
                true
            }
            Kind::Interest(_) => {
                let name = name(SocketAddr::new(
                    passing.path.remote.ip(),
                    message.destination_port,
                ));
                let asks = Waiting {
                    path: passing.path,
                    ports: (message.source_port, message.destination_port),
                    pointer: header.pointer,
                    digest: message.payload.first_chunk::<DIGEST_BYTES>().copied(),
                };
                self.on_interest(now, name, asks, answers)
            }
            Kind::Request | Kind::Manifest { .. } => true,
        }
    }

    /// What its store and it have counted.
    pub fn counters(&self) -> CacheCounters {
        let store = self.store.counters();
        CacheCounters {
            hits: store.hits,
            misses: self.misses,
            merged: self.pending.merged(),
            evicted: store.evicted,
        }
    }

    /// Answers from the store, waits, or lets the Interest go on.
    fn on_interest(&mut self, now: Time, name: Name, asks: Waiting, answers: &mut Vec<Datagram>) -> bool {
        if let Some((kept, payload)) = self.store.peek(&name) {
            if asks.takes(&payload) {
                self.store.get(&name);
                answers.push(answer(&asks, kept, payload));
                return false;
            }
            self.store.remove(&name); // somebody lied, and the producer will not
        }
        let goes_on = self.pending.ask(now, name, asks);
        self.misses += u64::from(goes_on);
        goes_on
    }

    /// Keeps what was asked for through this cache, and gives it to those that wait.
    fn on_data(
        &mut self,
        now: Time,
        name: Name,
        (addressee, header): (SocketAddr, &Header),
        payload: Bytes,
        answers: &mut Vec<Datagram>,
    ) {
        let Some(waiting) = self.pending.answered(now, &name, addressee, &header.pointer) else {
            return;
        };
        for waits in waiting.filter(|waits| waits.takes(&payload)) {
            answers.push(answer(&waits, header.flags, payload.clone()));
        }
        self.store.insert(name, header.flags, payload);
    }
}

/// Does it contain what was asked for, as far as that was said?
impl Waiting {
    fn takes(&self, payload: &Bytes) -> bool {
        let is = |digest| manifest::is_named(payload, digest);
        self.digest.as_ref().is_none_or(is)
    }
}

/// Data in the producer's name.
fn answer(asks: &Waiting, kept: u8, payload: Bytes) -> Datagram {
    let header = Header {
        kind: Kind::Data,
        flags: kept | flags::CACHE,
        pointer: asks.pointer,
    };
    let (consumer, producer) = asks.ports;
    datagram(asks.path.reversed(), (producer, consumer), &header, payload)
}
