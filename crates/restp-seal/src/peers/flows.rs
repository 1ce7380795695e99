//! Whose flows are, and of which that is not proved yet.

use super::session::PeerId;
use crate::packet::ConnectionId;
use restp_base::flow::FlowId;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Default)]
pub(super) struct Flows {
    of: BTreeMap<FlowId, PeerId>,
    by_peer: BTreeSet<(PeerId, FlowId)>,
    /// Begun with what a request carried, by somebody who has not shown that he has the answer.
    doubted: BTreeMap<FlowId, Doubt>,
}

struct Doubt {
    session: ConnectionId,
    /// The request itself is by who has the key, today or when it was recorded.
    authentic: bool,
}

impl Flows {
    pub(super) fn enter(&mut self, flow: FlowId, peer: PeerId) {
        self.of.insert(flow, peer);
        self.by_peer.insert((peer, flow));
    }

    /// `flow` began with what came in `session`, in which its peer has proved nothing yet.
    pub(super) fn doubt(&mut self, flow: FlowId, session: ConnectionId, authentic: bool) {
        self.doubted.insert(flow, Doubt { session, authentic });
    }

    pub(super) fn is_doubted(&self, flow: FlowId) -> bool {
        self.doubted.contains_key(&flow)
    }

    /// `peer` has proved its key in `session`: flows that are certainly its own from now on.
    pub(super) fn believe(&mut self, peer: PeerId, session: &ConnectionId) -> Vec<FlowId> {
        let its_own = |flow: &FlowId, doubt: &Doubt| {
            self.of.get(flow) == Some(&peer) && (doubt.authentic || doubt.session == *session)
        };
        let certain = self.doubted.iter().filter(|(flow, doubt)| its_own(flow, doubt));
        let certain: Vec<FlowId> = certain.map(|(flow, _)| *flow).collect();
        self.doubted.retain(|flow, _| !certain.contains(flow));
        certain
    }

    /// Whose `flow` was, and whether that was doubted.
    pub(super) fn leave(&mut self, flow: FlowId) -> Option<(PeerId, bool)> {
        let peer = self.of.remove(&flow)?;
        self.by_peer.remove(&(peer, flow));
        Some((peer, self.doubted.remove(&flow).is_some()))
    }

    pub(super) fn peer(&self, flow: FlowId) -> Option<PeerId> {
        self.of.get(&flow).copied()
    }

    /// Those with `peer`.
    pub(super) fn of(&self, peer: PeerId) -> impl Iterator<Item = FlowId> {
        let all = self.by_peer.range((peer, FlowId(0))..);
        all.take_while(move |(of, _)| *of == peer).map(|(_, flow)| *flow)
    }
}
