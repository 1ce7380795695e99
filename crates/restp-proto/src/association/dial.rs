//! Paths to try. Until one is established they race: each next one starts a little after the one before, and the first
//! answer wins, so that a dead path delays nobody. Afterwards the others join (ResTP §3.1.11, §3.1.12), and a path
//! that ended is dialled again.

use super::{Association, Member};
use crate::composition::ValidComposition;
use crate::connection::{Connection, MAX_PATHS, Packet, Ports, Setup, asks_for_integrity, hash_of};
use crate::wire::{self, MpCapable, MpJoin, MpSetup, Services};
use restp_base::flow::FlowStats;
use restp_base::machine::PathAddress;
use restp_base::time::{Duration, Time};
use restp_services::connection_management::{Cookie, Exchange, HandshakeParameters, Key, Nonce};
use std::sync::Arc;

/// Head start of each path over the next in the race (RFC 8305 §5 recommends 250 ms for the Internet's servers; a path
/// costs one packet here, and a dead one shall cost less than 50 ms).
const HEAD_START: Duration = Duration::from_millis(25);
/// Wait before a path that ended, or that nobody answered on, is dialled again.
const REDIAL: Duration = Duration::from_secs(1);
/// A join is asked three times before it is dialled anew: its timer must not double into minutes.
const JOIN: HandshakeParameters = HandshakeParameters {
    rto: Duration::from_secs(1),
    attempts: 3,
};

/// A pair of addresses the association may use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CandidatePath {
    pub(crate) address: PathAddress,
    /// How many were added before it, up to 256: others that are removed do not move it.
    number: u8,
    backup: bool,
    /// When it is to be dialled; none while it is.
    at: Option<Time>,
}

impl CandidatePath {
    pub(super) fn number(&self) -> usize {
        self.number.into()
    }
    pub(super) fn is_waiting(&self) -> bool {
        self.at.is_some()
    }
    pub(super) fn redial(&mut self, now: Time) {
        self.at = Some(now + REDIAL);
    }
    pub(super) fn dial_at(&mut self, at: Time) {
        self.at = Some(at);
    }
    pub(super) fn deadline(&self) -> Option<Time> {
        self.at
    }
}

/// A candidate path to be dialled now: the endpoint has ports, numbers and chance.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dial {
    candidate: usize,
    pub(crate) address: PathAddress,
    pub(crate) port: u16,
}

impl Association {
    /// Opens an association from this side; `address` is dialled first.
    pub(crate) fn open(
        now: Time,
        composition: Arc<ValidComposition>,
        services: Services,
        key: Key,
        address: PathAddress,
        port: u16,
    ) -> Self {
        let mut association = Self::new(now, composition, services, key, port, true);
        association.add_line(now, address, false);
        association
    }

    /// One more pair of addresses to use. `backup`: only when no other path works.
    pub(crate) fn add_line(&mut self, now: Time, address: PathAddress, backup: bool) {
        if self.candidates.len() >= MAX_PATHS
            || self
                .candidates
                .iter()
                .any(|candidate| candidate.address == address)
        {
            return;
        }
        let ahead = self.candidates.len() as u64;
        let at = if self.shared.is_opening() {
            self.opened_at.max(now) + HEAD_START * ahead
        } else {
            now
        };
        let number = self.free_number();
        self.next_number = number.wrapping_add(1);
        self.candidates.push(CandidatePath {
            address,
            number,
            backup,
            at: Some(at),
        });
    }

    /// The next number that no candidate has: after 256 candidates they begin again.
    fn free_number(&self) -> u8 {
        let is_free = |number: &u8| {
            self.candidates
                .iter()
                .all(|candidate| candidate.number != *number)
        };
        let mut numbers = (0..=u8::MAX).map(|ahead| self.next_number.wrapping_add(ahead));
        numbers.find(is_free).unwrap_or_default() // there are fewer candidates
    }

    /// The pair is neither used nor dialled any more; what it carries goes over another. False when no other works;
    /// none when it is no path of this association.
    pub(crate) fn remove_line(&mut self, now: Time, address: PathAddress) -> Option<bool> {
        // A path that the peer dialled has no candidate here.
        let candidate = self
            .candidates
            .iter()
            .position(|candidate| candidate.address == address);
        let is_it = |member: &Member| match candidate {
            Some(_) => member.candidate == candidate && !member.vacant,
            None => member.connection.address() == address && !member.vacant,
        };
        let ordinal = self.shared.paths().iter().position(is_it);
        if candidate.is_none() && ordinal.is_none() {
            return None;
        }
        let paths = self.shared.paths();
        let other_that = |does: fn(&Member) -> bool| {
            let mut all = paths.iter().enumerate();
            all.any(|(index, member)| Some(index) != ordinal && does(member))
        };
        let works = ordinal.is_some_and(|ordinal| paths[ordinal].works());
        // One that does not work takes nothing along, as long as another may come back.
        let remains = if works {
            Member::works
        } else {
            Member::is_established
        };
        if !other_that(remains) {
            return Some(false);
        }
        if let Some(candidate) = candidate {
            self.candidates.remove(candidate);
            for member in self.shared.paths_mut().iter_mut() {
                member.candidate = match member.candidate {
                    Some(own) if own == candidate => None, // not dialled again
                    Some(own) => Some(own - usize::from(own > candidate)),
                    None => None,
                };
            }
        }
        if let Some(ordinal) = ordinal {
            self.with(ordinal, |connection| connection.abort(now));
            self.collect(now, ordinal);
        }
        Some(true)
    }

    /// The next candidate whose time has come.
    pub(crate) fn poll_dial(&mut self, now: Time) -> Option<Dial> {
        let due = |candidate: &CandidatePath| candidate.at.is_some_and(|at| at <= now);
        let candidate = self.candidates.iter().position(due)?;
        let live = self.shared.paths().iter().filter(|member| !member.vacant);
        if self.shared.is_over() || live.count() >= MAX_PATHS {
            return None;
        }
        self.candidates[candidate].at = None;
        Some(Dial {
            candidate,
            address: self.candidates[candidate].address,
            port: self.port,
        })
    }

    /// A candidate is dialled from `ports`. Returns the path's ordinal.
    pub(crate) fn dial(
        &mut self,
        now: Time,
        dial: Dial,
        ports: Ports,
        isn: u32,
        nonce: Nonce,
        cookie: Option<Cookie>,
    ) -> usize {
        let candidate = self.candidates.get(dial.candidate);
        let backup = candidate.is_some_and(|candidate| candidate.backup);
        let number = candidate.map_or(0, |candidate| candidate.number);
        let keys = self.keys().filter(|_| self.shared.is_established());
        let (setup, below) = match keys {
            None => (self.capable(number), self.below.clone()),
            Some(keys) => {
                let join = Setup::Join {
                    keys,
                    local: nonce,
                    remote: None,
                    address_id: number,
                    backup,
                };
                (join, Arc::new(self.below.with_handshake(JOIN)))
            }
        };
        let joins = keys.is_some();
        let cookie = cookie.filter(|_| !joins); // data waits until the join is verified (OP-36)
        let ordinal = self.vacancy();
        let k = if joins { ordinal as u8 + 1 } else { 1 };
        let isn = self.number_of_syn(isn);
        let mut connection = Connection::open(now, below, self.services, dial.address, ports, isn, cookie)
            .into_path(setup, k.clamp(1, MAX_PATHS as u8), self.has_integrity());
        if joins && !self.give_lane(now, &mut connection) {
            connection.abort(now); // dialled again when one is free
        }
        let member = Member::new(connection, backup && joins, Some(dial.candidate));
        self.shared.paths_mut().put(ordinal, member);
        ordinal
    }

    /// The number of a SYN: where paths share the numbers, that of the first one.
    fn number_of_syn(&self, own: u32) -> u32 {
        match &self.stream {
            Some(stream) => stream.initial_number,
            None if self.services.shared_numbers && !self.shared.is_opened_here() => {
                let mut members = self.shared.paths().iter();
                members
                    .find(|member| !member.vacant)
                    .map_or(own, |first| first.connection.initial_number())
            }
            None => own,
        }
    }

    /// A peer opens an association with its key in MP_CAPABLE.
    pub(crate) fn accept(
        now: Time,
        composition: Arc<ValidComposition>,
        services: Services,
        address: PathAddress,
        syn: &Packet<'_>,
        (isn, key): (u32, Key),
        exchange: Option<Exchange>,
    ) -> Option<Self> {
        let Some(MpSetup::Capable(MpCapable {
            flags,
            address_id,
            keys: wire::Keys::Initiator(remote),
        })) = syn.header.mp
        else {
            return None;
        };
        let mut association = Self::new(now, composition, services, key, syn.header.destination, false);
        let setup = Setup::Capable {
            local: key,
            remote: Some(remote),
            hash: hash_of(flags),
            address_id,
        };
        let below = association.below.clone();
        let integrity = association.has_integrity() || asks_for_integrity(flags);
        let connection = Connection::accept(now, below, services, address, syn, isn, exchange)
            .into_path(setup, 1, integrity);
        let founder = Member {
            told_line: Some(address_id.into()),
            ..Member::new(connection, false, None)
        };
        association.shared.paths_mut().put(0, founder);
        if let Some(keys) = association.keys() {
            association.begin(keys, syn.header.window);
        }
        association.collect(now, 0); // a valid cookie establishes it at once
        Some(association)
    }

    /// A peer joins with a further path. None when the association takes no more, or is with somebody else: the token is no secret.
    pub(crate) fn join(
        &mut self,
        now: Time,
        address: PathAddress,
        syn: &Packet<'_>,
        isn: u32,
        nonce: Nonce,
        exchange: Option<Exchange>,
    ) -> Option<usize> {
        let Some(MpSetup::Join(MpJoin::Syn {
            backup,
            address_id,
            random,
            ..
        })) = syn.header.mp
        else {
            return None;
        };
        let live = self.shared.paths().iter().filter(|member| !member.vacant).count();
        let keys = self
            .keys()
            .filter(|_| !self.shared.is_over() && live < MAX_PATHS)
            .filter(|_| self.any(|connection| connection.is_with(syn.peer)))?;
        let setup = Setup::Join {
            keys,
            local: nonce,
            remote: Some(random),
            address_id,
            backup,
        };
        let below = self.below.clone();
        let isn = self.number_of_syn(isn);
        let connection = Connection::accept(now, below, self.services, address, syn, isn, exchange);
        let ordinal = self.vacancy();
        let mut path = connection.into_path(setup, syn.header.k, self.has_integrity());
        if !self.give_lane(now, &mut path) {
            return None;
        }
        let member = Member {
            told_line: Some(address_id.into()),
            ..Member::new(path, backup, None)
        };
        self.shared.paths_mut().put(ordinal, member);
        Some(ordinal)
    }

    /// The ordinal a new path gets: the lowest that nobody has any more.
    fn vacancy(&self) -> usize {
        let vacant = self.shared.paths().iter().position(|member| member.vacant);
        vacant.unwrap_or(self.shared.paths().len())
    }

    /// A path that has ended: the endpoint forgets its ports, its ordinal may be given again.
    pub(crate) fn poll_vacated(&mut self) -> Option<(usize, PathAddress, Ports)> {
        let ended = |member: &Member| member.connection.is_closed() && !member.vacant;
        let ordinal = self.shared.paths().iter().position(ended)?;
        let member = &mut self.shared.paths_mut()[ordinal];
        member.vacant = true;
        let past = FlowStats {
            congestion_window_bytes: 0,
            memory_bytes: 0,
            in_flight_segments: 0,
            ..member.stats()
        };
        let lane = member.connection.lane();
        let vacated = (ordinal, member.connection.address(), member.connection.ports());
        self.shared.counters().add(&past);
        if let (Some(stream), Some(lane)) = (&mut self.stream, lane) {
            stream.free_lane(lane);
            stream.owed.retain(|owed| *owed != ordinal);
        }
        Some(vacated)
    }

    /// One path is established: the race, if there was one, is over, and the others join.
    pub(super) fn end_race(&mut self, now: Time, winner: usize) {
        for ordinal in 0..self.shared.paths().len() {
            let member = &mut self.shared.paths_mut()[ordinal];
            if ordinal == winner || member.vacant || member.connection.is_established() {
                continue;
            }
            self.shared.place_again(ordinal);
            let member = &mut self.shared.paths_mut()[ordinal];
            member.connection.abort(now);
            member.candidate = None; // another is dialled on it
            while member.connection.poll_notice().is_some() {} // it was never more than an attempt
        }
        let won = self.shared.paths()[winner].candidate;
        for (index, candidate) in self.candidates.iter_mut().enumerate() {
            if Some(index) != won {
                candidate.at = Some(now);
            }
        }
    }
}
