//! From the network to the machine: packets are opened, everything else is part of a handshake. It all comes from anybody:
//! what is not genuine is a counter, and nothing is kept for an address in proportion to what it says.

use super::Sealed;
use crate::packet::{self, DATA_HEADER, DataHeader, Packet};
use crate::protection::Refusal;
use crate::schedule::TAG_BYTES;
use crate::validation::Control;
use restp_base::machine::{Datagram, Machine};
use restp_base::time::Time;

impl<M: Machine> Sealed<M> {
    pub(super) fn on_datagram(&mut self, now: Time, datagram: &mut Datagram) {
        if !datagram.head.is_empty() {
            datagram.body = datagram.to_vec().into();
            datagram.head.clear();
        }
        let bytes = datagram.body.clone();
        if bytes.first().is_none_or(|first| first & packet::SEALED == 0) {
            self.stats.plain += 1;
            return;
        }
        match Packet::parse(&bytes) {
            Some(Packet::Data(header)) => self.on_data(now, &header, datagram),
            Some(Packet::Hello(hello)) => self.on_hello(now, datagram.path, bytes.len(), &hello),
            Some(Packet::Answer { to, rest }) => self.on_answer(now, datagram, to, rest),
            Some(Packet::Retry { to, .. } | Packet::Foreign { to, .. } | Packet::Stale { to })
                if !self.peers.handshakes.is_asked(&to, datagram.path.remote) =>
            {
                self.stats.unknown += 1;
            }
            Some(Packet::Retry { to, token }) => self.on_retry(now, to, token),
            Some(Packet::Foreign { to, key }) => self.on_foreign(to, key),
            Some(Packet::Stale { to }) => self.on_stale(to),
            Some(Packet::Reset { of, token }) => self.on_reset(now, datagram.path, &of, &token),
            None => self.stats.malformed += 1,
        }
    }

    pub(super) fn on_data(&mut self, now: Time, header: &DataHeader, datagram: &mut Datagram) {
        let id = self.peers.receiver(header, datagram.path.remote);
        let session = id.and_then(|id| Some((id, self.peers.session_mut(&id)?)));
        let Some((id, session)) = session else {
            let overtakes = !header.early && self.peers.handshakes.keep(&header.to, datagram);
            if !overtakes {
                self.stats.unknown += 1;
                // Early data says what its client is called, or anything: perhaps a session that goes on.
                if !header.early {
                    self.say_unknown(now, datagram.path, &header.to);
                }
            }
            return;
        };
        let (peer, length) = (session.peer(), datagram.body.len());
        let sealed = &datagram.body[DATA_HEADER..];
        let mut opened = self.arena.place(sealed.len() - TAG_BYTES);
        let from = (datagram.path.remote, length);
        match session.open(now, header, sealed, from, &mut opened) {
            Ok(()) => {}
            Err(Refusal::Forged) => {
                self.stats.forged += 1;
                return;
            }
            Err(Refusal::Replayed) => {
                self.stats.replayed += 1;
                return;
            }
        }
        let finishes = !header.early && !session.is_finished();
        datagram.body = opened.freeze();
        if let Some(control) = Control::parse(&datagram.body) {
            return self.on_control(now, id, datagram.path, control);
        }
        if header.early {
            if self.peers.credit(peer, datagram.path.remote, length) {
                self.stats.opened += 1;
                return self.hand_over(now, &id, datagram);
            }
            self.stats.misplaced += 1;
            return;
        }
        let placed = self.place(now, id, peer, header.space, datagram);
        let remote = datagram.path.remote;
        if placed && !(self.peers).on_received(now, peer, remote, length, true) {
            self.stats.misplaced += 1;
            return;
        }
        if finishes {
            self.on_proof(now, &id, remote);
        }
        self.stats.opened += 1;
        if placed {
            self.hand_over(now, &id, datagram);
        }
    }
}
