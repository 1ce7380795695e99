//! Whom an address belongs to: one peer at a time.

use super::session::PeerId;
use crate::limits::AmplificationLimit;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Addresses of one peer at most: one for each path, and some that changed.
const MAX_ADDRESSES: usize = 32;

/// Why nothing may be sent to an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoRoute {
    /// It belongs to nobody.
    Unknown,
    /// It would get more than its amplification limit.
    Withheld,
}

#[derive(Default)]
pub(super) struct Routes {
    by_address: BTreeMap<SocketAddr, Route>,
    /// Oldest first.
    addresses: BTreeMap<PeerId, Vec<SocketAddr>>,
}

struct Route {
    peer: PeerId,
    /// The peer only said so, in a request for a path, and has not answered from there: what is sent there is limited, and
    /// whoever else comes from there gets the address.
    claim: Option<AmplificationLimit>,
    /// It was heard from there: nobody has only told this host that it is there.
    heard: bool,
}

impl Routes {
    /// Who has `remote`.
    pub(super) fn owner(&self, remote: SocketAddr) -> Option<PeerId> {
        self.by_address.get(&remote).map(|route| route.peer)
    }

    /// Does its owner only say that `remote` is its own?
    pub(super) fn is_claimed(&self, remote: SocketAddr) -> bool {
        self.by_address
            .get(&remote)
            .is_some_and(|route| route.claim.is_some())
    }

    /// Has `peer` answered from `remote`?
    pub(super) fn is_validated(&self, remote: SocketAddr, peer: PeerId) -> bool {
        self.owner(remote) == Some(peer) && !self.is_claimed(remote)
    }

    /// Was its owner heard from `remote`, and does not only say so?
    pub(super) fn is_heard(&self, remote: SocketAddr) -> bool {
        let route = self.by_address.get(&remote);
        route.is_some_and(|route| route.heard && route.claim.is_none())
    }

    /// Something genuine of `peer` came from `remote`.
    pub(super) fn on_heard_from(&mut self, remote: SocketAddr, peer: PeerId) {
        let route = self.by_address.get_mut(&remote);
        if let Some(route) = route.filter(|route| route.peer == peer) {
            route.heard = true;
        }
    }

    /// The addresses of `peer`.
    pub(super) fn of(&self, peer: PeerId) -> &[SocketAddr] {
        self.addresses.get(&peer).map_or(&[], Vec::as_slice)
    }

    /// `remote` belongs to `peer` from now on; `claim` is the limit where it only says so. The peer that lost it is returned.
    pub(super) fn assign(
        &mut self,
        remote: SocketAddr,
        peer: PeerId,
        claim: Option<AmplificationLimit>,
    ) -> Option<PeerId> {
        let before = self.by_address.get(&remote);
        let heard = before.is_some_and(|route| route.peer == peer && route.heard);
        let before = self.by_address.insert(remote, Route { peer, claim, heard });
        let before = before.map(|route| route.peer);
        if before == Some(peer) {
            return None;
        }
        if let Some(addresses) = before.and_then(|before| self.addresses.get_mut(&before)) {
            addresses.retain(|address| *address != remote);
        }
        let addresses = self.addresses.entry(peer).or_default();
        addresses.push(remote);
        if addresses.len() > MAX_ADDRESSES {
            self.by_address.remove(&addresses.remove(0));
        }
        before
    }

    /// `length` bytes came from `remote`. False when it does not belong to `peer`.
    pub(super) fn on_received(&mut self, remote: SocketAddr, peer: PeerId, length: usize) -> bool {
        let route = self
            .by_address
            .get_mut(&remote)
            .filter(|route| route.peer == peer);
        let Some(route) = route else {
            return false;
        };
        if let Some(claim) = &mut route.claim {
            claim.on_received(length);
        }
        true
    }

    /// Whom `bytes` for `remote` go to, if they may be sent; then they are counted.
    pub(super) fn take(&mut self, remote: SocketAddr, bytes: usize) -> Result<PeerId, NoRoute> {
        let route = self.by_address.get_mut(&remote).ok_or(NoRoute::Unknown)?;
        let fits = route.claim.as_mut().is_none_or(|claim| claim.take(bytes));
        if fits {
            Ok(route.peer)
        } else {
            Err(NoRoute::Withheld)
        }
    }

    /// Does the limit of `remote` leave so much?
    pub(super) fn has_room(&self, remote: SocketAddr, bytes: usize) -> bool {
        let route = self.by_address.get(&remote);
        route.is_some_and(|route| route.claim.is_none_or(|claim| claim.leaves(bytes)))
    }

    /// Counts `bytes` for `peer` that are sent whatever its limit says.
    pub(super) fn charge(&mut self, remote: SocketAddr, peer: PeerId, bytes: usize) {
        let route = self.by_address.get_mut(&remote);
        let route = route.filter(|route| route.peer == peer);
        if let Some(claim) = route.and_then(|route| route.claim.as_mut()) {
            claim.charge(bytes);
        }
    }

    /// `peer` has no address any more.
    pub(super) fn forget(&mut self, peer: PeerId) {
        for address in self.addresses.remove(&peer).unwrap_or_default() {
            self.by_address.remove(&address);
        }
    }
}
