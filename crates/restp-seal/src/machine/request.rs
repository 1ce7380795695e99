//! Requests for sessions: how a handshake begins here, and how long it is repeated.

use super::Sealed;
use crate::keys::KEY_BYTES;
use crate::noise::{Handshake, Known, Pattern};
use crate::packet::{self, ConnectionId, Request};
use crate::peers::{ClientHandshake, PeerId, Waiting};
use crate::protection::Sealer;
use crate::schedule::Suite;
use restp_base::machine::{Machine, PathAddress};
use restp_base::time::Time;

impl<M: Machine> Sealed<M> {
    /// The handshake called `name`, or else one that begins now, whose first message carries `pdu`.
    pub(super) fn handshake(
        &mut self,
        name: Option<ConnectionId>,
        peer: PeerId,
        path: PathAddress,
        pdu: Vec<u8>,
    ) -> Option<&mut ClientHandshake> {
        match name {
            Some(name) => self.peers.handshakes.get_mut(&name),
            None => self.begin_handshake(peer, path, pdu, None),
        }
    }

    /// Begins a handshake whose first message carries `pdu`, in the place of the one with the one-time key `instead_of`.
    pub(super) fn begin_handshake(
        &mut self,
        peer: PeerId,
        path: PathAddress,
        pdu: Vec<u8>,
        instead_of: Option<[u8; KEY_BYTES]>,
    ) -> Option<&mut ClientHandshake> {
        let key = self.peers.key(peer);
        let token = key.and_then(|key| self.hosts.token(key));
        let resumption = token.and_then(|token| token.resumption);
        let resumption = resumption.filter(|resumption| resumption.client == self.own);
        let known = match (&key, &resumption) {
            (None, _) => Known::Nothing,
            (Some(key), None) => Known::Key(key),
            (Some(_), Some(resumption)) => Known::Secret(&resumption.secret),
        };
        let pattern = known.pattern();
        let name: ConnectionId = self.entropy.array();
        let secret: Option<[u8; 32]> = (pattern != Pattern::Ix).then(|| self.entropy.array());
        let prologue = packet::prologue(pattern, &name);
        let mut noise = Handshake::initiator(&self.config.secret, known, &prologue, &mut self.entropy)?;
        let present = self.peers.session_of(peer).map(|session| session.to());
        let payload = Request {
            fast_aes: self.config.fast_aes,
            epoch: token.unwrap_or_default().epoch,
            early_secret: secret,
            instead_of,
            beside: secret.and(present),
        };
        let mut bytes = packet::hello_header(pattern, &name, &token.unwrap_or_default().address);
        if let Some(resumption) = &resumption {
            bytes.extend_from_slice(&resumption.ticket);
        }
        noise.write(&payload.emit(&pdu), &mut bytes)?;
        let early = secret
            .filter(|_| token.is_some() && instead_of.is_none())
            .map(|secret| Sealer::new(Suite::ChaCha20Poly1305, secret, name, true));
        let handshake = ClientHandshake {
            name,
            path,
            pattern,
            noise,
            bytes,
            pdu,
            early,
            waiting: Waiting::default(),
        };
        Some(self.peers.handshakes.insert(peer, handshake))
    }

    /// Repeats requests that nothing else repeats.
    pub(super) fn on_timer(&mut self, now: Time, peer: PeerId) {
        let (requests, wait) = self.peers.handshakes.repeat(peer);
        self.queue.extend(requests);
        self.peers.timers.set(peer, wait.map(|wait| now + wait));
    }
}
