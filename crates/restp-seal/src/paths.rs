//! Paths of peers that come from other addresses: the packet counts as from the old one, the new one is asked, and when it
//! answers the machine hears the packet from there. Of an address that is new altogether nothing is heard before that but
//! the request for a path, so that no path costs a round trip more than without a seal.

use crate::machine::Sealed;
use crate::peers::Id;
use crate::validation::{Control, Whence};
use restp_base::machine::{Datagram, Head, Input, Machine, PathAddress, Request};
use restp_base::time::Time;

impl<M: Machine> Sealed<M> {
    /// A genuine packet came on path `space` of session `id`. Where this side spoke first it knows the peer's
    /// addresses; otherwise the datagram is given the address that has answered, and others are asked. False when it has to
    /// wait until its own has.
    pub(crate) fn place(&mut self, now: Time, id: Id, space: u8, datagram: &mut Datagram) -> bool {
        let Some(session) = self.peers.sessions.get_mut(&id) else {
            return false;
        };
        let (peer, path) = (session.peer, datagram.path);
        if (self.peers.peers.get(&peer)).is_some_and(|peer| peer.opened_here) {
            return true;
        }
        let (entropy, routes) = (&mut self.entropy, &self.peers.routes);
        let is_home = || (routes.get(&path.remote)).is_some_and(|route| route.is_home_of(peer));
        let whence = (session.homes).look(now, space, path.remote, is_home, || entropy.array());
        let Whence::Elsewhere { home, ask } = whence else {
            return true;
        };
        self.stats.elsewhere += 1;
        let joins = home.is_none() && (self.config.request)(datagram) == Some(Request::Path);
        if !joins {
            session.homes.keep(space, datagram);
        } else if self.peers.at(path.remote) != Some(peer) && self.may_use(now, peer, path.remote) {
            self.peers.claim(path.remote, peer, 0);
        }
        if let Some(value) = ask {
            self.say(id, path, Control::Challenge(value));
        }
        datagram.path.remote = home.unwrap_or(path.remote);
        home.is_some() || joins
    }

    /// What one seal says to the other.
    pub(crate) fn on_control(&mut self, now: Time, id: Id, path: PathAddress, control: Control) {
        match control {
            Control::Challenge(value) => self.say(id, path, Control::Response(value)),
            Control::Response(value) => {
                let Some(session) = self.peers.sessions.get_mut(&id) else {
                    return;
                };
                let peer = session.peer;
                let Some(last) = session.homes.answered(path.remote, value) else {
                    return;
                };
                if self.may_use(now, peer, path.remote) {
                    self.peers.route(path.remote, peer);
                    self.stats.moved += 1;
                    if let Some(mut last) = last {
                        self.inner.handle(now, Input::Datagram(&mut last));
                    }
                }
            }
        }
    }

    /// Seals `control` for the peer of session `id` and sends it along `path`.
    fn say(&mut self, id: Id, path: PathAddress, control: Control) {
        let Some(session) = self.peers.sessions.get_mut(&id) else {
            return;
        };
        let plain = Datagram {
            path,
            head: Head::from_slice(&control.emit()),
            ..Datagram::empty()
        };
        let mut sealed = Datagram {
            path,
            ..Datagram::empty()
        };
        if session.sealer.seal(&plain, &mut sealed.head).is_none() {
            return;
        }
        let route = self.peers.routes.get_mut(&path.remote);
        if let Some(claim) = route.and_then(|route| route.claim.as_mut()) {
            claim.charge(sealed.len());
        }
        self.queue.push_back(sealed);
    }
}
