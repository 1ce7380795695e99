//! Which peer may use which address: who has answered from it, has it; who only says so, claims it.

use super::Peers;
use super::capacity::IDLE;
use super::routes::NoRoute;
use super::session::PeerId;
use crate::entropy::Entropy;
use crate::keys::PublicKey;
use crate::limits::AmplificationLimit;
use crate::packet::ConnectionId;
use crate::validation::PathOrigin;
use restp_base::time::Time;
use std::net::SocketAddr;

impl Peers {
    /// Who has `remote`.
    pub(crate) fn at(&self, remote: SocketAddr) -> Option<PeerId> {
        self.routes.owner(remote)
    }

    /// Whom `bytes` for `remote` go to, if they may be sent; then they are counted.
    pub(crate) fn send_to(&mut self, remote: SocketAddr, bytes: usize) -> Result<PeerId, NoRoute> {
        self.routes.take(remote, bytes)
    }

    /// Counts `bytes` for `remote` that answer more than they are.
    pub(crate) fn charge(&mut self, remote: SocketAddr, bytes: usize) {
        self.routes.charge(remote, bytes);
    }

    /// `peer` is at `remote` too, unless that belongs to somebody.
    pub(crate) fn add_address(&mut self, remote: SocketAddr, peer: PeerId) {
        if self.routes.owner(remote).is_none() {
            self.assign(remote, peer, None);
        }
    }

    /// A datagram of `peer` with `length` bytes came from `remote`, to its credit. False when the address belongs to somebody
    /// else who is there; otherwise it is now that of `peer`, which only claims it unless the datagram is `genuine`.
    pub(crate) fn on_received(
        &mut self,
        now: Time,
        peer: PeerId,
        remote: SocketAddr,
        length: usize,
        genuine: bool,
    ) -> bool {
        if self.routes.on_received(remote, peer, length) {
            return true;
        }
        let admitted = self.may_use(now, peer, remote);
        if admitted {
            let claim = (!genuine).then(|| AmplificationLimit::after(length));
            self.assign(remote, peer, claim);
        }
        admitted
    }

    /// `peer` has answered from `remote`, which is its own now. False when it belongs to somebody else who is there.
    pub(crate) fn on_validated(&mut self, now: Time, peer: PeerId, remote: SocketAddr) -> bool {
        let admitted = self.may_use(now, peer, remote);
        if admitted {
            self.assign(remote, peer, None);
        }
        admitted
    }

    pub(super) fn assign(&mut self, remote: SocketAddr, peer: PeerId, claim: Option<AmplificationLimit>) {
        if let Some(before) = self.routes.assign(remote, peer, claim) {
            self.forget_if_idle(before);
        }
    }

    /// May packets of `peer` come from `remote`?
    fn may_use(&self, now: Time, peer: PeerId, remote: SocketAddr) -> bool {
        match self.routes.owner(remote) {
            Some(owner) if owner == peer => true,
            // Where this side spoke first it knows the addresses; others may move.
            None => self.key(peer).is_some() && !self.is_opened_here(peer),
            Some(_) => self.key(peer).is_some_and(|key| self.may_take(now, &key, remote)),
        }
    }

    /// May the host `key` have `remote`? Yes where it has it, and where nobody is.
    pub(crate) fn may_take(&self, now: Time, key: &PublicKey, remote: SocketAddr) -> bool {
        let Some(owner) = self.routes.owner(remote) else {
            return true;
        };
        self.key(owner).as_ref() == Some(key)
            || self.routes.is_claimed(remote)
            || !self.is_present(now, owner)
    }

    /// Has `peer` flows, or was it heard of late?
    fn is_present(&self, now: Time, id: PeerId) -> bool {
        let Some(peer) = self.peers.get(&id) else {
            return false;
        };
        let session = peer.session.and_then(|session| self.sessions.get(&session));
        let recent = session.is_some_and(|session| session.is_finished() && session.silence(now) < IDLE);
        recent || peer.opened_here || peer.flows > 0
    }

    /// Where a genuine packet of path `space` of session `id` came from, as [`ValidatedPaths::on_packet`]. Where this side
    /// spoke first it knows the addresses of its peer.
    ///
    /// [`ValidatedPaths::on_packet`]: crate::validation::ValidatedPaths::on_packet
    pub(crate) fn path_origin(
        &mut self,
        now: Time,
        id: &ConnectionId,
        space: u8,
        remote: SocketAddr,
        entropy: &mut Entropy,
    ) -> Option<PathOrigin> {
        let session = self.sessions.get_mut(id)?;
        let peer = session.peer();
        if self.peers.get(&peer)?.opened_here {
            return Some(PathOrigin::Validated);
        }
        let is_validated = || self.routes.is_validated(remote, peer);
        Some((session.paths()).on_packet(now, space, remote, is_validated, entropy))
    }
}
