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

/// What a request finds at its address.
pub(crate) struct Visit {
    pub(crate) peer: PeerId,
    /// What it carries may be heard before its peer has proved who it is.
    pub(crate) at_once: bool,
    /// The peer hears what is sent in the session that it has.
    pub(crate) goes_on: bool,
}

/// Somebody who asks for a session.
pub(crate) struct Visitor {
    pub(crate) remote: SocketAddr,
    /// Of the request.
    pub(crate) length: usize,
    /// Its token proves that it is at `remote`.
    pub(crate) proved: bool,
    /// Who it says it is.
    pub(crate) key: PublicKey,
    /// Only who has the key can have made the request; perhaps it was recorded.
    pub(crate) authentic: bool,
    /// The session that it says it has.
    pub(crate) beside: Option<ConnectionId>,
}

impl Peers {
    /// Who `visitor` is as far as it says. What its request carries may be heard where nobody else's flows are, and in a request
    /// by who has the key also beside its own as long as they go on.
    pub(crate) fn visited_by(&mut self, visitor: &Visitor) -> Visit {
        let Visitor { remote, proved, .. } = *visitor;
        let owner = self.routes.owner(remote);
        let known = owner.filter(|owner| self.key(*owner) == Some(visitor.key));
        let claim = (!proved).then(|| AmplificationLimit::after(visitor.length));
        if let Some(peer) = known {
            let idle = (self.peers.get(&peer)).is_some_and(|peer| peer.flows == 0 && !peer.opened_here);
            let goes_on = visitor.beside.is_some_and(|name| self.has(peer, &name));
            if proved {
                self.assign(remote, peer, claim);
            } else {
                // Somebody may have said before that he is that peer there, and used up what it may be sent.
                self.credit(peer, remote, visitor.length);
            }
            let at_once = visitor.authentic && (idle || goes_on);
            return Visit {
                peer,
                at_once,
                goes_on,
            };
        }
        let peer = self.meet_client(visitor.key);
        // Who says that he is there does not put out another who says so; who proves it does.
        let at_once = proved || !self.routes.is_claimed(remote);
        if at_once {
            self.assign(remote, peer, claim);
        }
        Visit {
            peer,
            at_once,
            goes_on: false,
        }
    }

    /// Is the peer of session `id` known to be at `remote`?
    pub(crate) fn is_at(&self, id: &ConnectionId, remote: SocketAddr) -> bool {
        let session = self.sessions.get(id);
        session.is_some_and(|session| self.routes.owner(remote) == Some(session.peer()))
    }

    /// Whom `bytes` for `remote` go to, if they may be sent; then they are counted.
    pub(crate) fn send_to(&mut self, remote: SocketAddr, bytes: usize) -> Result<PeerId, NoRoute> {
        self.routes.take(remote, bytes)
    }

    /// May so much be sent there now? Nothing is counted.
    pub(crate) fn may_send_to(&self, remote: SocketAddr, bytes: usize) -> bool {
        self.routes.has_room(remote, bytes)
    }

    /// Counts `bytes` for `peer` at `remote` that are sent whatever its limit says.
    pub(crate) fn charge(&mut self, peer: PeerId, remote: SocketAddr, bytes: usize) {
        self.routes.charge(remote, peer, bytes);
    }

    /// `length` bytes came from `remote`, to its credit. False when it is not an address of `peer`.
    pub(crate) fn credit(&mut self, peer: PeerId, remote: SocketAddr, length: usize) -> bool {
        self.routes.on_received(remote, peer, length)
    }

    /// `peer` is at `remote` too. False when that belongs to another host; a client leaves it to one that was spoken to first.
    pub(crate) fn add_address(&mut self, remote: SocketAddr, peer: PeerId) -> bool {
        let owner = self.routes.owner(remote);
        match owner {
            Some(owner) if owner == peer || self.is_same_at(remote, peer) => return true,
            Some(owner) if !self.is_opened_here(peer) || self.is_opened_here(owner) => return false,
            _ => self.assign(remote, peer, None),
        }
        true
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
        let has_it = self.routes.on_received(remote, peer, length);
        let admitted = has_it || self.may_use(now, peer, remote);
        if admitted && !has_it {
            let claim = (!genuine).then(|| AmplificationLimit::after(length));
            self.assign(remote, peer, claim);
        }
        if admitted && genuine {
            self.on_heard_from(peer, remote);
        }
        admitted
    }

    /// `peer` has answered from `remote`, which is its own now. False when it belongs to somebody else who is there.
    pub(crate) fn on_validated(&mut self, now: Time, peer: PeerId, remote: SocketAddr) -> bool {
        let admitted = self.may_use(now, peer, remote);
        if admitted {
            self.assign(remote, peer, None);
            self.on_heard_from(peer, remote);
        }
        admitted
    }

    /// `peer` was heard from `remote`, which has its key now if it is its own.
    pub(crate) fn on_heard_from(&mut self, peer: PeerId, remote: SocketAddr) {
        self.routes.on_heard_from(remote, peer);
    }

    pub(super) fn assign(&mut self, remote: SocketAddr, peer: PeerId, claim: Option<AmplificationLimit>) {
        let Some(before) = self.routes.assign(remote, peer, claim) else {
            return;
        };
        let other = self.key(before) != self.key(peer);
        if other && self.peers.get(&before).is_some_and(|before| before.flows > 0) {
            self.displaced.push((before, remote));
        }
        self.forget_if_idle(before);
    }

    /// May packets of `peer` come from `remote`?
    fn may_use(&self, now: Time, peer: PeerId, remote: SocketAddr) -> bool {
        match self.routes.owner(remote) {
            Some(owner) if owner == peer => true,
            // Where this side spoke first it knows the addresses; others may move.
            _ if self.is_opened_here(peer) => self.is_same_at(remote, peer),
            None => self.key(peer).is_some(),
            Some(_) => self.key(peer).is_some_and(|key| self.may_take(now, &key, remote)),
        }
    }

    /// Was the host of `peer` heard from `remote`, as another peer of this side?
    fn is_same_at(&self, remote: SocketAddr, peer: PeerId) -> bool {
        let owner = self.routes.owner(remote);
        let same = |owner: &PeerId| self.key(peer).is_some() && self.key(*owner) == self.key(peer);
        owner
            .filter(same)
            .is_some_and(|owner| self.proved_key(owner).is_some() && self.routes.is_heard(remote))
    }

    /// Does nobody but the host of `peer` say that `remote` is its own?
    pub(crate) fn is_free_for(&self, peer: PeerId, remote: SocketAddr) -> bool {
        let owner = self.routes.owner(remote);
        owner.is_none_or(|owner| owner == peer || self.key(owner) == self.key(peer))
    }

    /// The key of the host at `remote`, once it has proved it there.
    pub(crate) fn key_at(&self, remote: SocketAddr) -> Option<PublicKey> {
        let owner = self.routes.owner(remote)?;
        self.proved_key(owner).filter(|_| self.routes.is_heard(remote))
    }

    /// Who has `remote` and may be opened a flow to: a host that must have `expected`, or has shown that it has it.
    pub(crate) fn server_at(&self, remote: SocketAddr, expected: Option<PublicKey>) -> Option<PeerId> {
        let owner = self.routes.owner(remote)?;
        let peer = self.peers.get(&owner)?;
        let is_asked = peer.opened_here && (expected.is_none() || peer.key == expected);
        let key = self.key_at(remote);
        let is_right = key.is_some() && expected.is_none_or(|expected| key == Some(expected));
        (is_asked || is_right).then_some(owner)
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

    /// Challenges of session `id` have left, or were answered: when the next one leaves again.
    pub(crate) fn time_challenges(&mut self, id: &ConnectionId) {
        let deadline = (self.sessions.get_mut(id)).and_then(|session| session.paths().deadline());
        self.challenges.set(*id, deadline);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::Limits;

    const SERVER: PublicKey = PublicKey([2; 32]);
    const ROOM: Limits = Limits {
        half_open: 8,
        sessions: 8,
    };

    fn at(host: u8) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, host], 1))
    }

    /// Somebody at `host` says that he is `key`.
    fn visitor(host: u8, key: PublicKey, proved: bool) -> Visitor {
        Visitor {
            remote: at(host),
            length: 100,
            proved,
            key,
            authentic: false,
            beside: None,
        }
    }

    /// This host has dialled the server at 2.
    fn dialled() -> (Peers, PeerId) {
        let mut peers = Peers::new(ROOM);
        let server = peers.meet_server(Some(SERVER), at(2));
        (peers, server)
    }

    /// It has proved its key, and was heard from `host`.
    fn proves(peers: &mut Peers, peer: PeerId, host: u8) {
        peers.peers.get_mut(&peer).expect("it is known").session = Some([1; 8]);
        peers.on_heard_from(peer, at(host));
    }

    /// Its packets, sent from where somebody is or says that he is, would take the flows there.
    #[test]
    fn a_host_that_was_dialled_is_where_it_was_dialled() {
        let (mut peers, server) = dialled();
        assert!(peers.on_received(Time::ZERO, server, at(2), 100, true));
        assert!(
            !peers.on_received(Time::ZERO, server, at(9), 100, true),
            "nobody's"
        );
        for key in [PublicKey([66; 32]), SERVER] {
            for proved in [false, true] {
                peers.visited_by(&visitor(9, key, proved));
                assert!(!peers.on_received(Time::ZERO, server, at(9), 100, true), "{key}");
            }
        }
        let guest = peers.visited_by(&visitor(9, SERVER, true)).peer;
        proves(&mut peers, guest, 9);
        assert!(
            peers.on_received(Time::ZERO, server, at(9), 100, true),
            "the server came from there"
        );
    }

    /// Anybody can say that he is the server, at the address that a path shall lead to.
    #[test]
    fn an_address_that_somebody_claims_in_the_name_of_a_server_is_free_for_it() {
        for (proved, is_it) in [(false, false), (true, false), (true, true)] {
            let (mut peers, server) = dialled();
            let guest = peers.visited_by(&visitor(9, SERVER, proved)).peer;
            if is_it {
                proves(&mut peers, guest, 9);
            }
            assert!(peers.add_address(at(9), server));
            assert_eq!(
                peers.routes.owner(at(9)),
                Some(if is_it { guest } else { server })
            );
        }
    }

    #[test]
    fn who_claims_an_address_is_not_put_out_by_who_claims_it_next() {
        let mut peers = Peers::new(ROOM);
        let first = peers.visited_by(&visitor(9, PublicKey([1; 32]), false)).peer;
        let second = peers.visited_by(&visitor(8, PublicKey([66; 32]), true)).peer;
        assert!(peers.is_free_for(first, at(9)) && !peers.is_free_for(second, at(9)));
        assert!(peers.is_free_for(second, at(7)));
        let again = peers.visited_by(&visitor(7, PublicKey([1; 32]), false)).peer;
        assert!(
            peers.is_free_for(again, at(9)),
            "the same host, as who raced for it"
        );
    }
}
