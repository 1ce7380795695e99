//! What a host has published: objects by ID, each with the flows it was written to, and when their nexuses end.

use super::super::publication::Publication;
use restp_base::flow::FlowId;
use restp_base::time::Time;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// Objects that are served.
#[derive(Debug, Default)]
pub(super) struct Shelf {
    objects: BTreeMap<u64, Served>,
    ends: BTreeSet<(Time, u64)>,
}

/// An object, and the flows that it was written to.
#[derive(Debug)]
pub(super) struct Served {
    pub publication: Publication,
    /// By the consumer that each was written for.
    flows: BTreeSet<(SocketAddr, u16, FlowId)>,
}

impl Served {
    /// The flow for the consumer at this address and port; another, where it comes by itself.
    pub fn flow_for(&self, consumer: SocketAddr, port: u16) -> Option<FlowId> {
        let (first, last) = (FlowId(0), FlowId(u64::MAX));
        let own = self.flows.range((consumer, port, first)..=(consumer, port, last));
        let found = own.last().or_else(|| self.flows.first());
        found.map(|(_, _, flow)| *flow)
    }
}

impl Shelf {
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    pub fn get(&self, object: u64) -> Option<&Served> {
        self.objects.get(&object)
    }

    /// Serves `publication`, which was written to `flow` for the consumer at this address and port. One that is served already stays as it
    /// is, and lives on.
    pub fn add(&mut self, publication: Publication, flow: FlowId, (consumer, port): (SocketAddr, u16)) {
        let (object, ends_at) = (publication.object(), publication.ends_at());
        let served = self.objects.entry(object).or_insert_with(|| {
            self.ends.insert((ends_at, object));
            let flows = BTreeSet::new();
            Served { publication, flows }
        });
        served.flows.insert((consumer, port, flow));
        self.change(object, |served| served.publication.live_until(ends_at));
    }

    /// Does something to an object that may move its end.
    pub fn change<T>(&mut self, object: u64, does: impl FnOnce(&mut Served) -> T) -> Option<T> {
        let served = self.objects.get_mut(&object)?;
        let was = served.publication.ends_at();
        let done = does(served);
        let is = served.publication.ends_at();
        if was != is {
            self.ends.remove(&(was, object));
            self.ends.insert((is, object));
        }
        Some(done)
    }

    /// Serves `object` no more. The flows that it was written to are returned.
    pub fn remove(&mut self, object: u64) -> BTreeSet<FlowId> {
        let served = self.objects.remove(&object);
        if let Some(served) = &served {
            self.ends.remove(&(served.publication.ends_at(), object));
        }
        let flows = served.map_or_else(BTreeSet::new, |served| served.flows);
        flows.into_iter().map(|(_, _, flow)| flow).collect()
    }

    /// The object goes on without this flow.
    pub fn leave(&mut self, object: u64, (consumer, port): (SocketAddr, u16), flow: FlowId) {
        if let Some(served) = self.objects.get_mut(&object) {
            served.flows.remove(&(consumer, port, flow));
        }
    }

    /// When the first nexus ends.
    pub fn first_end(&self) -> Option<Time> {
        self.ends.first().map(|(at, _)| *at)
    }

    /// An object whose nexus has ended.
    pub fn over(&self, now: Time) -> Option<u64> {
        self.ends
            .first()
            .filter(|(at, _)| *at <= now)
            .map(|(_, object)| *object)
    }
}
