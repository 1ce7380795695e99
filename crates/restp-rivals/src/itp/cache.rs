//! A box on the way (ITP §III.C, §VII): it looks at ITP that passes, keeps the data, and answers Interests for what it holds in the
//! producer's name. It knows no consumer. Where chunks are named by their digests it answers with nothing else than what was asked for, and
//! nobody has to trust it; where they are named by numbers consumers do.

use super::content_store::{ContentStore, Name, StoreCounters};
use super::host::{datagram, take_apart};
use super::manifest::{self, DIGEST_BYTES};
use super::wire::{Header, Kind, flags};
use restp_base::machine::{Datagram, PathAddress};
use std::net::SocketAddr;

/// A cache.
#[derive(Debug)]
pub struct Cache {
    store: ContentStore,
}

impl Cache {
    /// One that holds `limit` bytes of chunks at most.
    pub fn new(limit: u64) -> Self {
        Cache {
            store: ContentStore::new(limit),
        }
    }

    /// Looks at a datagram that passes. What comes back leaves in its stead, in the other direction; otherwise the datagram goes on
    /// unchanged.
    pub fn on_passing(&mut self, passing: &Datagram) -> Option<Datagram> {
        let message = take_apart(&mut passing.clone()).ok()?;
        let header = &message.header;
        let is_manifest = header.flags & flags::MANIFEST != 0;
        let name = |producer| Name {
            producer,
            object: header.pointer.object,
            is_manifest,
            chunk: header.pointer.chunk,
        };
        match header.kind {
            Kind::Data => {
                let producer = SocketAddr::new(passing.path.local.ip(), message.source_port);
                self.store.insert(name(producer), header.flags, message.payload);
                None
            }
            Kind::Interest(_) => {
                let producer = SocketAddr::new(passing.path.remote.ip(), message.destination_port);
                let name = name(producer);
                let (kept, payload) = self.store.get(&name)?;
                let wanted = message.payload.first_chunk::<DIGEST_BYTES>();
                if wanted.is_some_and(|wanted| manifest::digest(&payload) != *wanted) {
                    self.store.remove(&name); // somebody lied, and the producer will not
                    return None;
                }
                let answer = Header {
                    kind: Kind::Data,
                    flags: kept | flags::CACHE,
                    pointer: header.pointer,
                };
                let path: PathAddress = passing.path.reversed();
                let ports = (message.destination_port, message.source_port);
                Some(datagram(path, ports, &answer, payload))
            }
            Kind::Request | Kind::Manifest { .. } | Kind::Nack { .. } => None,
        }
    }

    /// What its store counted.
    pub fn counters(&self) -> StoreCounters {
        self.store.counters()
    }
}
