//! Whose flows are, and of which that is not proved yet.

use super::session::PeerId;
use crate::keys::PublicKey;
use crate::packet::ConnectionId;
use restp_base::flow::FlowId;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

#[derive(Default)]
pub(super) struct Flows {
    of: BTreeMap<FlowId, PeerId>,
    by_peer: BTreeSet<(PeerId, FlowId)>,
    /// Begun with what a request carried, by somebody who has not shown that he has the answer.
    doubted: BTreeMap<FlowId, Doubt>,
    /// Those of them whose request is by who has the key, today or when it was recorded, and where it came from.
    authentic: BTreeMap<(PublicKey, FlowId), SocketAddr>,
}

struct Doubt {
    session: ConnectionId,
    /// Whose it is if that is true.
    key: PublicKey,
}

impl Flows {
    pub(super) fn enter(&mut self, flow: FlowId, peer: PeerId) {
        self.of.insert(flow, peer);
        self.by_peer.insert((peer, flow));
    }

    /// `flow` began with what came in `session`, in which whoever has `key` has proved nothing yet; `from` an address, where only
    /// who has that key can have made it.
    pub(super) fn doubt(
        &mut self,
        flow: FlowId,
        session: ConnectionId,
        key: PublicKey,
        from: Option<SocketAddr>,
    ) {
        self.doubted.insert(flow, Doubt { session, key });
        self.authentic.extend(from.map(|from| ((key, flow), from)));
    }

    pub(super) fn is_doubted(&self, flow: FlowId) -> bool {
        self.doubted.contains_key(&flow)
    }

    /// Its key was proved in `session`: flows that certainly are whose they are said to be from now on.
    pub(super) fn believe(&mut self, session: &ConnectionId) -> Vec<FlowId> {
        let begun = self.doubted.iter().filter(|(_, doubt)| doubt.session == *session);
        let begun: Vec<FlowId> = begun.map(|(flow, _)| *flow).collect();
        begun.iter().for_each(|flow| _ = self.clear(*flow));
        begun
    }

    /// The same where whoever has `key` says something in any session: it may go on in one that it had before. What began without the
    /// key is not looked at, however much of that there is, nor what did not come from `remote`, where it is: that may be a copy.
    pub(super) fn believe_authentic(&mut self, key: PublicKey, remote: SocketAddr) -> Vec<FlowId> {
        let from_key = self.authentic.range((key, FlowId(0))..);
        let its_own: Vec<FlowId> = from_key
            .take_while(|((of, _), _)| *of == key)
            .filter(|(_, from)| **from == remote)
            .map(|((_, flow), _)| *flow)
            .collect();
        its_own.iter().for_each(|flow| _ = self.clear(*flow));
        its_own
    }
    pub(super) fn has_authentic(&self) -> bool {
        !self.authentic.is_empty()
    }

    /// It is not doubted any more. Was it?
    fn clear(&mut self, flow: FlowId) -> bool {
        let Some(doubt) = self.doubted.remove(&flow) else {
            return false;
        };
        self.authentic.remove(&(doubt.key, flow));
        true
    }

    /// Whose `flow` was, and whether that was doubted.
    pub(super) fn leave(&mut self, flow: FlowId) -> Option<(PeerId, bool)> {
        let peer = self.of.remove(&flow)?;
        self.by_peer.remove(&(peer, flow));
        Some((peer, self.clear(flow)))
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

#[cfg(test)]
mod tests {
    use super::*;

    const SESSION: ConnectionId = [1; 8];
    const CLIENT: PublicKey = PublicKey([7; 32]);

    fn at(host: u8) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, host], 1))
    }

    /// A flow of peer 2, whom nobody knows but by the key that its request said.
    fn doubted(from: Option<SocketAddr>) -> Flows {
        let mut flows = Flows::default();
        flows.enter(FlowId(3), 2);
        flows.doubt(FlowId(3), SESSION, CLIENT, from);
        flows
    }

    #[test]
    fn who_goes_on_in_another_session_is_believed_where_it_asked() {
        let mut flows = doubted(Some(at(1)));
        assert!(
            flows.believe_authentic(PublicKey([8; 32]), at(1)).is_empty(),
            "another"
        );
        assert!(flows.is_doubted(FlowId(3)));
        assert_eq!(flows.believe_authentic(CLIENT, at(1)), [FlowId(3)]);
        assert!(!flows.is_doubted(FlowId(3)) && !flows.has_authentic());
        assert!(flows.believe(&SESSION).is_empty(), "told once");
    }

    /// The request may be a copy, sent on by somebody at another address, who would hear what is said there.
    #[test]
    fn a_copy_from_an_address_where_its_client_is_not_is_not_believed() {
        let mut flows = doubted(Some(at(66)));
        assert!(flows.believe_authentic(CLIENT, at(1)).is_empty());
        assert!(flows.is_doubted(FlowId(3)));
        assert_eq!(
            flows.believe(&SESSION),
            [FlowId(3)],
            "who has the answer has the key"
        );
        assert!(!flows.has_authentic());
    }

    #[test]
    fn what_anybody_can_have_made_is_believed_in_its_own_session_alone() {
        let mut flows = doubted(None);
        assert!(!flows.has_authentic());
        assert!(flows.believe_authentic(CLIENT, at(1)).is_empty());
        assert_eq!(flows.leave(FlowId(3)), Some((2, true)), "it left in doubt");
    }
}
