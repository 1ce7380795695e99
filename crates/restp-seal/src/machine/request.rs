//! Requests for sessions: how a handshake begins here, and how long it is repeated.

use super::Sealed;
use crate::keys::KEY_BYTES;
use crate::noise::{Handshake, Known, Pattern};
use crate::packet::{self, ConnectionId, Request};
use crate::peers::{ClientHandshake, PeerId, Waiting};
use crate::protection::Sealer;
use crate::schedule::Suite;
use crate::secret::Secret;
use crate::token::{AddressToken, Epoch};
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
        let resumption = token.as_ref().and_then(|token| token.resumption.as_ref());
        let resumption = resumption.filter(|resumption| resumption.client == self.own);
        let known = match (&key, resumption) {
            (None, _) => Known::Nothing,
            (Some(key), None) => Known::Key(key),
            (Some(_), Some(resumption)) => Known::Secret(&resumption.secret),
        };
        let pattern = known.pattern();
        let name: ConnectionId = self.entropy.array();
        let secret: Option<Secret> = (pattern != Pattern::Ix).then(|| self.entropy.secret());
        let prologue = packet::prologue(pattern, &name);
        let mut noise = Handshake::initiator(&self.config.secret, known, &prologue, &mut self.entropy)?;
        let present = self.peers.session_of(peer).map(|session| session.to());
        let payload = Request {
            fast_aes: self.config.fast_aes,
            epoch: token.as_ref().map_or_else(Epoch::default, |token| token.epoch),
            beside: present.filter(|_| secret.is_some()),
            early_secret: secret.clone(),
            instead_of,
        };
        let address = token
            .as_ref()
            .map_or_else(AddressToken::default, |token| token.address);
        let mut bytes = packet::hello_header(pattern, &name, &address);
        if let Some(resumption) = resumption {
            bytes.extend_from_slice(&resumption.ticket);
        }
        noise.write(&payload.emit(&pdu), &mut bytes)?;
        let early = secret
            .filter(|_| token.is_some() && instead_of.is_none())
            .map(|secret| Sealer::new(Suite::ChaCha20Poly1305, secret, name, true))
            .map(|sealer| sealer.lasting(self.config.packets_per_key));
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
