//! Segments of no connection: a SYN to the port served opens one, a SYN with a token joins one, anything else is reset
//! (RFC 9293 §3.10.7.1, §3.10.7.2; RFC 8684 §3.2).

use super::held::Held;
use super::{Key, Tcp};
use crate::mptcp::connection::{Connection as Several, Dial, Join};
use crate::subflow::options::{Capable, Multipath};
use crate::tcp::connection::{Connection, Packet, Ports};
use crate::tcp::fast_open::FastOpen;
use crate::tcp::options::Options;
use crate::tcp::wire::{Flags, Header};
use restp_base::flow::FlowId;
use restp_base::machine::PathAddress;
use restp_base::time::Time;
use restp_services::connection_management::{
    self as management, EPHEMERAL, Exchange, JoinHash, Keys, Nonce, Proof,
};
use std::net::SocketAddr;

/// Resets that may wait to be sent; more are dropped, as the network might.
const MAX_RESETS: usize = 64;

impl Tcp {
    pub(super) fn on_unknown(&mut self, now: Time, path: PathAddress, key: Key, packet: &Packet<'_>) {
        let flags = packet.header.flags;
        let opens = flags.has(Flags::SYN) && !flags.has(Flags::ACK) && !flags.has(Flags::RST);
        let multipath = packet.header.options.multipath;
        if opens && let Some(Multipath::Join { token, .. }) = multipath {
            return self.on_join(now, path, key, packet, token);
        }
        if !opens || self.config.listen != Some(key.ports.local) {
            self.dropped += 1;
            return self.reset(path, packet.header, packet.sequence_length());
        }
        if self.half_open.len() >= self.config.max_half_open
            || self.slots.len() >= self.config.max_connections
        {
            self.dropped += 1; // the peer will try again
            return;
        }
        let (isn, parameters) = (self.config.initial_sequence, self.parameters.clone());
        let several = matches!(
            multipath,
            Some(Multipath::Capable(Capable {
                checksums: false,
                sender: None,
                ..
            }))
        );
        let held = if several && parameters.multipath.is_some() {
            let own = self.fresh_key();
            Held::Several(Box::new(Several::accept(
                now,
                parameters,
                path,
                packet.header,
                isn,
                own,
            )))
        } else {
            let exchange = self.exchange_with(now, path, packet.header);
            let connection = Connection::accept(now, parameters, path, packet.header, isn, None);
            Held::Single(Box::new(connection.answering(
                now,
                exchange,
                packet.payload.clone(),
            )))
        };
        let flow = self.insert(key, held);
        self.half_open.insert(flow);
    }

    /// What a SYN says of cookies, and what is answered (RFC 7413 §4.2.2).
    fn exchange_with(&self, now: Time, path: PathAddress, syn: &Header) -> Option<Exchange> {
        let opted_in = self.parameters.fast_open;
        let client = path.remote.ip();
        let proof = match syn.options.fast_open? {
            FastOpen::Request => Proof::Asked,
            FastOpen::Cookie(shown) if self.mint.verify(now, client, &shown) => Proof::Valid,
            FastOpen::Cookie(_) => Proof::Refused,
        };
        let fresh = self.mint.mint(now, client);
        // Copied cookies shall not take every place there is (RFC 7413 §5.1).
        let room = self.half_open.len() < self.config.max_half_open / 2;
        Exchange::answer(proof, opted_in, room, fresh).filter(|_| opted_in)
    }

    /// A further subflow of the connection that `token` names. What names none is refused and counted.
    fn on_join(&mut self, now: Time, path: PathAddress, key: Key, packet: &Packet<'_>, token: [u8; 4]) {
        let join = Join {
            path,
            ports: key.ports,
            isn: self.config.initial_sequence,
            nonce: self.fresh_nonce(),
        };
        let found = self.by_token.get(&token).copied();
        let slot = found.and_then(|flow| self.slots.get_mut(&flow));
        let admitted = slot.and_then(|slot| {
            let ordinal = slot.held.several()?.admit(now, join, packet.header)?;
            Some(ordinal)
        });
        let (Some(flow), Some(ordinal)) = (found, admitted) else {
            self.dropped += 1;
            return self.reset(path, packet.header, packet.sequence_length());
        };
        self.attach(flow, ordinal, key);
        self.touch(flow);
    }

    /// After something happened to a connection of several paths: its peer may know one only, or further paths may be
    /// joined.
    pub(super) fn settle(&mut self, now: Time, flow: FlowId) {
        let Some(several) = self.slots.get_mut(&flow).and_then(|slot| slot.held.several()) else {
            return;
        };
        if let Some(single) = several.take_single(now) {
            let token = own_token(several.local_key());
            self.by_token.remove(&token);
            if let Some(slot) = self.slots.get_mut(&flow) {
                slot.held = Held::Single(Box::new(single));
            }
            return;
        }
        let dial = |this: &mut Self| this.slots.get_mut(&flow)?.held.several()?.take_dial(now);
        while let Some(dial) = dial(self) {
            if self.dial(now, flow, dial).is_none()
                && let Some(several) = self.slots.get_mut(&flow).and_then(|slot| slot.held.several())
            {
                several.on_undialled(now, dial);
            }
        }
    }

    /// One more subflow of `flow`; `None` when there is no port or no place for it.
    fn dial(&mut self, now: Time, flow: FlowId, dial: Dial) -> Option<()> {
        let isn = self.config.initial_sequence;
        let nonce = self.fresh_nonce();
        let keys = &self.slots.get(&flow)?.keys;
        // The peer may still hold the subflow that was there before.
        let last = keys
            .iter()
            .map(|key| key.ports.local)
            .max()
            .filter(|_| dial.again);
        let key = self.free_key_after(last, dial.path.remote, dial.port)?;
        let join = Join {
            path: dial.path,
            ports: key.ports,
            isn,
            nonce,
        };
        let several = self.slots.get_mut(&flow)?.held.several()?;
        let ordinal = several.dial(now, join, dial.backup)?;
        self.attach(flow, ordinal, key);
        Some(())
    }

    /// The subflow `ordinal` of `flow` has these ports, in the place of one that may have been there before.
    fn attach(&mut self, flow: FlowId, ordinal: usize, key: Key) {
        let Some(slot) = self.slots.get_mut(&flow) else {
            return;
        };
        if let Some(place) = slot.keys.get_mut(ordinal) {
            let before = std::mem::replace(place, key);
            if self.by_key.get(&before) == Some(&(flow, ordinal)) {
                self.by_key.remove(&before);
            }
        } else {
            slot.keys.push(key);
        }
        self.by_key.insert(key, (flow, ordinal));
    }

    /// Ports towards `service` at `remote` that no connection uses.
    pub(super) fn free_key(&self, remote: SocketAddr, service: u16) -> Option<Key> {
        self.free_key_after(None, remote, service)
    }

    /// The same, with a local port behind `last` if there is one.
    fn free_key_after(&self, last: Option<u16>, remote: SocketAddr, service: u16) -> Option<Key> {
        let key = |local| Key {
            remote,
            ports: Ports {
                local,
                remote: service,
            },
        };
        let free =
            |local: &u16| !self.by_key.contains_key(&key(*local)) && self.config.listen != Some(*local);
        let behind = EPHEMERAL.filter(|local| last.is_none_or(|last| *local > last));
        behind.chain(EPHEMERAL).find(free).map(key)
    }

    /// A key whose token names no connection yet.
    pub(super) fn fresh_key(&mut self) -> management::Key {
        loop {
            let key = self.chance.bits().to_be_bytes();
            if !self.by_token.contains_key(&own_token(key)) {
                return key;
            }
        }
    }

    fn fresh_nonce(&mut self) -> Nonce {
        (self.chance.bits() as u32).to_be_bytes()
    }

    /// RST with the numbers that make it credible (RFC 9293 §3.5.2); never for an RST.
    pub(super) fn reset(&mut self, path: PathAddress, asked: &Header, sequence_length: u32) {
        if asked.flags.has(Flags::RST) || self.resets.len() >= MAX_RESETS {
            return;
        }
        let mut header = Header {
            source_port: asked.destination_port,
            destination_port: asked.source_port,
            flags: Flags::RST,
            options: Options::default(),
            ..Header::default()
        };
        if asked.flags.has(Flags::ACK) {
            header.sequence = asked.acknowledgement;
        } else {
            header.flags = Flags::RST | Flags::ACK;
            header.acknowledgement = asked.sequence.wrapping_add(sequence_length);
        }
        self.resets.push_back((path, header));
    }
}

/// The token by which a join names the connection with this key.
pub(super) fn own_token(local: management::Key) -> [u8; 4] {
    let keys = Keys {
        local,
        remote: local,
        hash: JoinHash::Sha256,
    };
    keys.own_token()
}
