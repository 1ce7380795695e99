//! Paths of peers that come from other addresses: the packet counts as from the old one, the new one is asked, and when it
//! answers the machine hears the packet from there.

use crate::machine::Sealed;
use crate::peers::Id;
use crate::validation::{Control, Whence};
use restp_base::machine::{Datagram, Head, Input, Machine, PathAddress};
use restp_base::time::Time;

impl<M: Machine> Sealed<M> {
    /// A genuine packet came on path `space` of session `id`. Where this side spoke first it knows the peer's addresses;
    /// otherwise the datagram is given the address that has answered, and others are asked.
    pub(crate) fn place(&mut self, now: Time, id: Id, space: u8, datagram: &mut Datagram) {
        let Some(session) = self.peers.sessions.get_mut(&id) else {
            return;
        };
        let opened_here = self
            .peers
            .peers
            .get(&session.peer)
            .is_some_and(|peer| peer.opened_here);
        if opened_here {
            return;
        }
        let entropy = &mut self.entropy;
        let look = session.homes.look(now, space, datagram, || entropy.array());
        if let Whence::Elsewhere { home, ask } = look {
            self.stats.elsewhere += 1;
            if let Some(value) = ask {
                self.say(id, datagram.path, Control::Challenge(value));
            }
            datagram.path.remote = home;
        }
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
                let Some(mut last) = session.homes.answered(path.remote, value) else {
                    return;
                };
                let key = self.peers.peers.get(&peer).and_then(|peer| peer.key);
                let may = key.is_some_and(|key| self.peers.may_use(now, Some(peer), &key, path.remote));
                if may {
                    self.peers.route(path.remote, peer);
                    self.stats.moved += 1;
                    self.inner.handle(now, Input::Datagram(&mut last));
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
        if session.sealer.seal(&plain, &mut sealed.head).is_some() {
            self.queue.push_back(sealed);
        }
    }
}
