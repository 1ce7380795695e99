//! Paths of peers that come from other addresses: the packet counts as from the old one, the new one is asked, and when it
//! answers the machine hears the packet from there. Of an address that is new altogether nothing is heard before that but
//! the request for a path, so that no path costs a round trip more than without a seal.

use super::Sealed;
use crate::packet::ConnectionId;
use crate::peers::PeerId;
use crate::validation::{Control, PathOrigin};
use restp_base::machine::{Datagram, Machine, PathAddress, Request};
use restp_base::time::Time;

impl<M: Machine> Sealed<M> {
    /// A genuine packet of `peer` came on path `space` of session `id`. The datagram is given the address of its path, and
    /// another one that it came from is asked. False when it has to wait until that has answered.
    pub(super) fn place(
        &mut self,
        now: Time,
        id: ConnectionId,
        peer: PeerId,
        space: u8,
        datagram: &mut Datagram,
    ) -> bool {
        let path = datagram.path;
        let entropy = &mut self.entropy;
        let origin = (self.peers).path_origin(now, &id, space, path.remote, entropy);
        let (known, challenge) = match origin {
            None => return false,
            Some(PathOrigin::Validated) => return true,
            Some(PathOrigin::Elsewhere { known, challenge }) => (known, challenge),
        };
        self.stats.elsewhere += 1;
        // Who says that he is there does not put out another who says so.
        let free = known.is_none() && self.peers.is_free_for(peer, path.remote);
        let joins = free && (self.config.request)(datagram) == Some(Request::Path);
        if joins {
            // What came is to the credit of the address when the datagram is handed on.
            self.peers.on_received(now, peer, path.remote, 0, false);
        } else if let Some(session) = self.peers.session_mut(&id) {
            session.paths().keep(space, datagram);
        }
        if let Some(value) = challenge {
            self.say(id, path, Control::Challenge(value));
        }
        self.peers.time_challenges(&id);
        datagram.path.remote = known.unwrap_or(path.remote);
        known.is_some() || joins
    }

    /// Addresses that session `id` has asked and heard nothing of are asked again.
    pub(super) fn repeat_challenges(&mut self, now: Time, id: ConnectionId) {
        let Some(session) = self.peers.session_mut(&id) else {
            return;
        };
        for (path, value) in session.paths().repeat(now) {
            self.say(id, path, Control::Challenge(value));
        }
        self.peers.time_challenges(&id);
    }

    /// What one seal says to the other.
    pub(super) fn on_control(&mut self, now: Time, id: ConnectionId, path: PathAddress, control: Control) {
        let value = match control {
            // Only where the peer is known to be: who carries copies to and fro would have them carried to him for good.
            Control::Challenge(value) if self.peers.is_at(&id, path.remote) => {
                return self.say(id, path, Control::Response(value));
            }
            Control::Challenge(_) => {
                self.stats.misplaced += 1;
                return;
            }
            Control::Response(value) => value,
        };
        let Some(session) = self.peers.session_mut(&id) else {
            return;
        };
        let peer = session.peer();
        let Some(last) = session.paths().on_response(path.remote, value) else {
            return;
        };
        self.peers.time_challenges(&id);
        if self.peers.on_validated(now, peer, path.remote) {
            self.stats.moved += 1;
            if let Some(mut last) = last {
                self.hand_over(now, &id, &mut last);
            }
        }
    }

    /// Seals `control` for the peer of session `id` and sends it along `path`.
    fn say(&mut self, id: ConnectionId, path: PathAddress, control: Control) {
        let Some(session) = self.peers.session_mut(&id) else {
            return;
        };
        let peer = session.peer();
        if let Some(sealed) = session.seal_control(path, control) {
            self.peers.charge(peer, path.remote, sealed.len());
            self.queue.push_back(sealed);
        }
    }
}
