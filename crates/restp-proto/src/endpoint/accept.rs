//! What happens to a PDU of no known association (OP-26, OP-27): a request to a service opens one, anything else
//! that needed a connection is refused with RST, and what needed none is dropped.

use super::Endpoint;
use super::session::Session;
use super::table::Key;
use crate::association::Association;
use crate::composition::{ValidComposition, accept};
use crate::config::Acceptance;
use crate::connection::{Connection, Consent, Packet, Ports};
use crate::wire::{ErrorControl, Fec, Flags, Header, MpJoin, MpSetup, Services, Setup};
use restp_base::machine::{Datagram, Ecn, PathAddress};
use restp_base::time::Time;
use restp_services::connection_management::{Cookie, Exchange, Flight, Proof};
use restp_services::reliability::FecCode;
use std::sync::Arc;

/// Refusals that may wait to be sent; more are dropped, as the network might.
const MAX_REFUSALS: usize = 64;

/// The services a request asks for: of one path where it asks for several and lacks what joins need.
fn offered(header: &Header, several_paths: bool) -> Services {
    let usable = several_paths && matches!(&header.mp, Some(MpSetup::Capable(capable)) if capable.usable());
    if !header.services.multipath() || usable {
        return header.services;
    }
    header.services.on_one_path()
}

/// Paths between two ports that are looked at for one that has moved.
const MOST_BETWEEN: usize = 64;

/// What tells the first flight of `packet` from another; data that doubles as SYN carries the number after it (OP-17).
fn flight(packet: &Packet<'_>, cookie: Cookie) -> Flight {
    let header = packet.header;
    let number = header.sequence.unwrap_or(0);
    Flight {
        cookie,
        isn: number.wrapping_sub(u32::from(!packet.payload.is_empty())),
        ports: (header.source, header.destination),
    }
}

impl Endpoint {
    pub(super) fn on_unknown(&mut self, now: Time, path: PathAddress, key: Key, packet: Packet<'_>) {
        let flags = packet.header.flags;
        if flags.has(Flags::RST) {
            // Never answered. It may be all that a peer says from its new address; where addresses are not proved anybody may be there.
            if !self.config.addresses_proved || !self.rebind(now, path, key, &packet) {
                self.stats.unserved += 1;
            }
            return;
        }
        let opens = match packet.header.services.setup {
            Setup::Connectionless => !packet.payload.is_empty() || flags == Flags::NONE,
            Setup::ThreeWay => flags.has(Flags::SYN) && !flags.has(Flags::ACK) && packet.payload.is_empty(),
            Setup::Opportunistic if flags.has(Flags::SYN) => !flags.has(Flags::ACK),
            Setup::Opportunistic if !flags.has(Flags::ACK) => {
                // Early data without its SYN, which may still come and is answered; or an encoded packet of a peer that has moved.
                let moved = self.config.addresses_proved && self.rebind(now, path, key, &packet);
                self.stats.unserved += u64::from(!moved);
                return;
            }
            Setup::Opportunistic => false,
        };
        // A request comes again from where its sender has shown to be now: its answer went elsewhere.
        let comes_again = opens && flags.has(Flags::SYN) && self.config.addresses_proved;
        if (!opens || comes_again) && self.rebind(now, path, key, &packet) {
            return;
        }
        if opens && let Some(MpSetup::Join(MpJoin::Syn { token, .. })) = packet.header.mp {
            return self.on_join(now, path, key, &packet, token);
        }
        let Some((composition, opted_in)) = opens.then(|| self.acceptable(&packet)).flatten() else {
            self.stats.unserved += 1;
            // The refusal would end what the peer has answered with, and it answers again by the way that it is asked.
            let answers = self.config.addresses_proved && flags.has(Flags::SYN | Flags::ACK);
            if answers && self.is_known_between(key.ports, packet.peer) {
                return;
            }
            return self.refuse(path, &packet);
        };
        let source = path.remote.ip();
        if !self.table.has_room(source, self.config.max_connections) {
            self.stats.overflowed += 1; // the peer will try again
            return;
        }
        let services = Services::of(&composition);
        let exchange = self.exchange(now, path, &packet, (services.setup, opted_in));
        let early = exchange == Some(Exchange::Trust);
        if !early && !self.table.has_half_open_room(source, self.config.max_half_open) {
            self.stats.overflowed += 1;
            return;
        }
        let isn = self.initial_number(now, path, key.ports);
        let composition = Arc::new(composition);
        if services.multipath() {
            return self.on_capable(now, path, key, packet, composition, exchange);
        }
        let mut connection = Connection::accept(now, composition, services, path, &packet, isn, exchange);
        let port = packet.header.destination;
        let mut offered = self
            .config
            .listeners
            .iter()
            .filter(|listener| listener.port == port);
        let is_exact = offered.any(|listener| listener.acceptance == Acceptance::Exact);
        connection.consent_to(if is_exact {
            Consent::Nothing
        } else {
            self.config.consent()
        });
        let with_data = early && !packet.payload.is_empty();
        if with_data || packet.header.services.setup == Setup::Connectionless {
            connection.handle(now, packet);
        }
        let index = self.table.accept(key, Session::One(connection));
        self.touch(index);
    }

    /// A request for an association over several paths.
    fn on_capable(
        &mut self,
        now: Time,
        path: PathAddress,
        key: Key,
        packet: Packet<'_>,
        composition: Arc<ValidComposition>,
        exchange: Option<Exchange>,
    ) {
        let (services, isn) = (
            Services::of(&composition),
            self.initial_number(now, path, key.ports),
        );
        let own = self.chance(now, path).to_be_bytes();
        let early = exchange == Some(Exchange::Trust) && !packet.payload.is_empty();
        match Association::accept(now, composition, services, path, &packet, (isn, own), exchange) {
            Some(association) => {
                let token = association.keys().map(|keys| keys.own_token());
                let index = self.table.accept(key, Session::Several(association));
                if let Some(token) = token {
                    self.table.set_token(index, token);
                }
                if early && let Some(session) = self.table.at(index) {
                    session.handle(now, 0, packet);
                }
                self.touch(index);
            }
            None => {
                self.stats.refused += 1;
                self.refuse(path, &packet);
            }
        }
    }

    /// A further path for the association that `token` names.
    fn on_join(&mut self, now: Time, path: PathAddress, key: Key, packet: &Packet<'_>, token: [u8; 4]) {
        let room = self.table.len() < self.config.max_connections;
        let Some(index) = self.table.by_token(token).filter(|_| room) else {
            self.stats.refused += 1;
            return self.refuse(path, packet);
        };
        let isn = self.initial_number(now, path, key.ports);
        let nonce = (self.chance(now, path) as u32).to_be_bytes();
        let setup = packet.header.services.setup;
        let exchange = self.exchange(now, path, packet, (setup, false));
        let association = self.table.at(index).and_then(Session::association);
        match association.and_then(|one| one.join(now, path, packet, isn, nonce, exchange)) {
            Some(ordinal) => {
                self.table.add_key(index, key, ordinal as u8);
                self.touch(index);
            }
            None => {
                self.stats.refused += 1;
                self.refuse(path, packet);
            }
        }
    }

    /// Does nothing stand there but, perhaps, what another host has asked for in vain so far?
    fn is_free_for(&mut self, key: &Key, peer: u128) -> bool {
        let Some((index, ordinal)) = self.table.find(key) else {
            return true;
        };
        let session = self.table.at(index);
        session.is_some_and(|session| session.is_asked_for_by_another(ordinal.into(), peer))
    }

    /// Was what waits to be confirmed at the address of `packet` asked for by another host? Where addresses are proved, that of the
    /// packet's sender is, and a request is not: anybody may write it on one.
    pub(super) fn is_asked_for_by_another(
        &mut self,
        index: u32,
        ordinal: usize,
        packet: &Packet<'_>,
    ) -> bool {
        let confirms = !packet.header.flags.has(Flags::SYN) && self.config.addresses_proved;
        let session = self.table.at(index).filter(|_| confirms);
        session.is_some_and(|session| session.is_asked_for_by_another(ordinal, packet.peer))
    }

    /// A packet from an unknown address between known ports: a path whose binding in some NAT has changed, if its
    /// numbers are those of that path, and so is its sender (RFC 9000 §9.3 calls it rebinding). False: it is an unknown peer's.
    pub(super) fn rebind(&mut self, now: Time, path: PathAddress, key: Key, packet: &Packet<'_>) -> bool {
        let Some((old, index, ordinal)) = self.only_between(key.ports, packet) else {
            return false;
        };
        let ordinal_index = usize::from(ordinal);
        let Some(session) = self.table.at(index) else {
            return false;
        };
        let proved = self.config.addresses_proved;
        let Some(left) = session.on_path(ordinal_index, |of| of.moves_to(path, packet, proved)) else {
            return false;
        };
        if let Some(left) = left {
            self.stats.rebound += 1;
            self.table.remove_key(index, &old);
            self.table.add_key(index, key, ordinal);
            if proved {
                self.follow(now, packet.peer, left, path);
            }
            let packet = Packet {
                payload: packet.payload.clone(),
                ..*packet
            };
            if let Some(session) = self.table.at(index) {
                session.handle(now, ordinal_index, packet);
                if proved {
                    session.on_path(ordinal_index, |of| of.on_moved(now));
                }
            }
            self.touch(index);
        } else {
            self.stats.unserved += 1; // it is behind
        }
        true
    }

    /// `peer` has shown that it is at `path` and no more where it `left`: so are its other flows, also those in which it has nothing
    /// to say (RFC 9000 §9: a connection migrates as a whole).
    fn follow(&mut self, now: Time, peer: u128, left: PathAddress, path: PathAddress) {
        for (old, index, ordinal) in self.table.at_remote(left.remote) {
            let key = Key {
                remote: path.remote,
                ..old
            };
            let free = self.is_free_for(&key, peer);
            let session = self.table.at(index).filter(|_| free);
            let follows = session.and_then(|session| {
                session.on_path(ordinal.into(), |of| {
                    let follows = of.is_with(peer) && of.follows(left, path);
                    if follows {
                        of.on_moved(now);
                    }
                    follows
                })
            });
            if follows == Some(true) {
                self.table.remove_key(index, &old);
                self.table.add_key(index, key, ordinal);
                self.touch(index);
            }
        }
    }

    /// Is there a path to `peer` between `ports` by way of other addresses? A layer below sends by several what was asked for by one.
    fn is_known_between(&mut self, ports: Ports, peer: u128) -> bool {
        let between: Vec<_> = self.table.between(ports).take(MOST_BETWEEN).collect();
        between.into_iter().any(|(_, index, ordinal)| {
            let session = self.table.at(index);
            let known =
                session.and_then(|session| session.on_path(ordinal.into(), |path| path.may_be_with(peer)));
            known.unwrap_or(false)
        })
    }

    /// The one path between `ports` that `packet` may be of, by its sender and its numbers, if there is exactly one.
    fn only_between(&mut self, ports: Ports, packet: &Packet<'_>) -> Option<(Key, u32, u8)> {
        let between: Vec<_> = self.table.between(ports).take(MOST_BETWEEN).collect();
        let mut fitting = between.into_iter().filter(|(_, index, ordinal)| {
            let session = self.table.at(*index);
            let trails =
                session.and_then(|session| session.on_path((*ordinal).into(), |path| path.trails(packet)));
            trails.unwrap_or(false)
        });
        fitting.next().filter(|_| fitting.next().is_none())
    }

    /// How far the set-up of a request goes, by the cookie it shows.
    fn exchange(
        &mut self,
        now: Time,
        path: PathAddress,
        packet: &Packet<'_>,
        (setup, opted_in): (Setup, bool),
    ) -> Option<Exchange> {
        let header = packet.header;
        if setup != Setup::Opportunistic {
            // A request for several paths that was taken for one path, three-way, may have brought data.
            let discarded = setup == Setup::ThreeWay && !packet.payload.is_empty();
            self.stats.early_discarded += u64::from(discarded);
            return None;
        }
        let client = path.remote.ip();
        let room = self.table.early() < self.config.max_early;
        let proof = match header.cookie() {
            None => Proof::Asked,
            Some(cookie) if !self.mint.verify(now, client, cookie) => {
                self.stats.bad_cookies += 1;
                Proof::Refused
            }
            Some(cookie) if opted_in && room && !self.flights.admit(flight(packet, *cookie)) => {
                self.stats.replayed += 1;
                Proof::Refused
            }
            Some(_) => Proof::Valid,
        };
        let exchange = Exchange::answer(proof, opted_in, room, self.mint.mint(now, client));
        let discarded = exchange != Some(Exchange::Trust) && !packet.payload.is_empty();
        self.stats.early_discarded += u64::from(discarded);
        exchange
    }

    /// The composition of a request, when a service takes it, and whether the service takes early data.
    fn acceptable(&mut self, packet: &Packet<'_>) -> Option<(ValidComposition, bool)> {
        let header = packet.header;
        let listener = self
            .config
            .listeners
            .iter()
            .find(|listener| listener.port == header.destination)?;
        let accepted = accept(offered(header, self.config.several_paths), &listener.composition)
            .ok()
            .filter(|composition| {
                let code = header.fec.map(|fec| FecCode::from_kind(fec.kind));
                let fits = |code| composition.reliability.encodes_by(code);
                code.is_none_or(|code| code.is_some_and(fits))
            });
        let exact = |composition: &ValidComposition| {
            let own = listener.composition.clone().check();
            own.is_ok_and(|own| Services::of(&own) == Services::of(composition))
        };
        let taken =
            accepted.filter(|composition| listener.acceptance == Acceptance::Any || exact(composition));
        self.stats.refused += u64::from(taken.is_none());
        let opted_in = listener.composition.establishment.is_opportunistic();
        taken.map(|composition| (composition, opted_in))
    }

    /// RST with the numbers that make it credible (RFC 9293 §3.5.2); nothing for what needs no connection.
    pub(super) fn refuse(&mut self, path: PathAddress, packet: &Packet<'_>) {
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
        header.era = asked.era && !asked.flags.has(Flags::SYN); // or it would belong nowhere there; a request is of none
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
