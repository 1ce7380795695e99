//! What happens to a PDU of no known association (OP-26, OP-27): a request to a service opens one, anything else
//! that needed a connection is refused with RST, and what needed none is dropped.

use super::Endpoint;
use super::table::Key;
use crate::composition::{ValidComposition, accept};
use crate::config::Acceptance;
use crate::connection::{Connection, Packet};
use crate::wire::{ErrorControl, Fec, Flags, Header, Services, Setup};
use restp_base::machine::{Datagram, Ecn, PathAddress};
use restp_base::time::Time;
use restp_services::reliability::FecCode;
use std::sync::Arc;

/// Refusals that may wait to be sent; more are dropped, as the network might.
const MAX_REFUSALS: usize = 64;

impl Endpoint {
    pub(super) fn on_stranger(&mut self, now: Time, path: PathAddress, key: Key, packet: Packet<'_>) {
        let flags = packet.header.flags;
        if flags.has(Flags::RST) {
            self.stats.unserved += 1; // an RST is never answered
            return;
        }
        let opens = match packet.header.services.setup {
            Setup::Connectionless => !packet.payload.is_empty() || flags == Flags::NONE,
            Setup::ThreeWay | Setup::Opportunistic => {
                flags.has(Flags::SYN) && !flags.has(Flags::ACK) && packet.payload.is_empty()
            }
        };
        let Some(composition) = opens.then(|| self.acceptable(&packet)).flatten() else {
            self.stats.unserved += 1;
            return self.refuse(path, &packet);
        };
        let half_open = self.table.half_open() >= self.config.max_half_open;
        if half_open || self.table.len() >= self.config.max_connections {
            self.stats.overflowed += 1; // the peer will try again
            return;
        }
        let (services, isn) = (
            Services::of(&composition),
            self.initial_number(now, path, key.ports),
        );
        match Connection::accept(now, Arc::new(composition), services, path, packet.header, isn) {
            Ok(mut connection) => {
                if packet.header.services.setup == Setup::Connectionless {
                    connection.handle(now, packet);
                }
                let index = self.table.insert(key, connection);
                self.touch(index);
            }
            Err(_) => {
                self.stats.refused += 1;
                self.refuse(path, &packet);
            }
        }
    }

    /// The composition of a request, when a service takes it.
    fn acceptable(&mut self, packet: &Packet<'_>) -> Option<ValidComposition> {
        let header = packet.header;
        let listener = self
            .config
            .listeners
            .iter()
            .find(|listener| listener.port == header.destination)?;
        let is_known = |fec: Fec| FecCode::from_kind(fec.kind).is_some();
        let accepted = accept(header.services, &listener.composition)
            .ok()
            .filter(|_| header.fec.is_none_or(is_known));
        let exact = |composition: &ValidComposition| {
            let own = listener.composition.clone().check();
            own.is_ok_and(|own| Services::of(&own) == Services::of(composition))
        };
        let taken =
            accepted.filter(|composition| listener.acceptance == Acceptance::Any || exact(composition));
        self.stats.refused += u64::from(taken.is_none());
        taken
    }

    /// RST with the numbers that make it credible (RFC 9293 §3.5.2); nothing for what needs no connection.
    fn refuse(&mut self, path: PathAddress, packet: &Packet<'_>) {
        let asked = packet.header;
        if asked.services.setup == Setup::Connectionless {
            return;
        }
        if self.refusals.len() >= MAX_REFUSALS {
            self.stats.overflowed += 1;
            return;
        }
        let mut header = Header::new(asked.services, asked.destination, asked.source);
        header.services.error = header.services.error.without(ErrorControl::ENC);
        header.flags = Flags::RST | Flags::ACK;
        if let Some(number) = asked.sequence {
            let takes_number =
                asked.flags.has(Flags::SYN) || asked.flags.has(Flags::FIN) || !packet.payload.is_empty();
            header.sequence = Some(asked.acknowledgement.unwrap_or(0));
            header.acknowledgement = Some(number.wrapping_add(u32::from(takes_number)));
        }
        header.window = asked.window.map(|_| 0);
        header.fec = asked.services.error.has(ErrorControl::FEC).then(|| Fec {
            kind: asked.fec.map_or(0, |fec| fec.kind),
            range: 0,
        });
        self.refusals.push_back((path, header));
    }

    /// Writes the next refusal into `out`.
    pub(super) fn refuse_next(&mut self, out: &mut Datagram) -> bool {
        while let Some((path, header)) = self.refusals.pop_front() {
            if header.emit(&[], &mut out.head).is_ok() {
                (out.path, out.ecn) = (path, Ecn::NotEct);
                out.body = bytes::Bytes::new();
                return true;
            }
        }
        false
    }
}
