//! The network between the hosts of a case: what crosses it, what its translators and attackers make of that.

use super::adversary::{self, Adversary, Fate, Injection};
use super::conversations::{Conversations, Owner};
use super::ledger::{Ledger, Party, Saying};
use super::trace::{Mark, Trace, What};
use super::{Case, CaseError, Side, network, paths};
use crate::host::IP_HEADER_BYTES;
use bytes::Bytes;
use restp_base::machine::{Datagram, PathAddress};
use restp_base::time::Time;
use restp_seal::packet::Packet;
use restp_sim::trace::{Step, TraceEvent};
use restp_sim::{HostId, Way, World};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// The network, and which packet belongs to which conversation.
pub struct Wire<'a> {
    case: &'a Case,
    pub(super) world: World,
    /// The client's and the server's place on each path.
    pub(super) hosts: Vec<[HostId; 2]>,
    /// The packet a machine is sending.
    pub out: Box<Datagram>,
    steps: Arc<Mutex<VecDeque<Noted>>>,
    owners: Vec<Option<Owner>>,
    pub(super) conversations: Conversations,
    /// Under the seal: who said what, and everybody else.
    ledger: Ledger,
    adversary: Option<Adversary<'a>>,
    /// Wakes the attackers.
    pub(super) attackers: HostId,
}

/// A step of a packet, as the network's trace tells it.
#[derive(Clone, Copy)]
enum Noted {
    Sent(u64),
    Copied { packet: u64, of: u64 },
    Flipped(u64),
    Dropped(u64),
    Delivered(u64),
}

impl<'a> Wire<'a> {
    pub(super) fn new(case: &'a Case, several: bool) -> Result<Self, CaseError> {
        let broken = |error: &dyn std::fmt::Display| CaseError::Network(error.to_string());
        let mut world = World::new(&network::links(case), case.seed).map_err(|error| broken(&error))?;
        let steps = Arc::new(Mutex::new(VecDeque::new()));
        let sink = steps.clone();
        world.trace(move |event| {
            if let Some(step) = noted(event) {
                sink.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push_back(step);
            }
        });
        let ends = network::ends(case).map(|name| world.node(&name));
        let [Some(from), Some(to)] = ends else {
            return Err(broken(&"the paths have no ends"));
        };
        let mut hosts = Vec::new();
        for path in 0..case.paths() {
            let links = network::route(case, path);
            let route = world.topology().along(from, to, &links);
            let route = route.map_err(|error| broken(&error))?;
            let back = route.reversed();
            hosts.push([world.attach_along(from, route), world.attach_along(to, back)]);
        }
        Ok(Wire {
            case,
            attackers: world.attach(from),
            ledger: Ledger::default(),
            adversary: Adversary::new(case),
            world,
            hosts,
            out: Box::new(Datagram::empty()),
            steps,
            owners: Vec::new(),
            conversations: Conversations::new(several),
        })
    }

    /// Who sealed what, where the ends are sealed.
    pub fn sealed(&self) -> Option<&Ledger> {
        self.adversary.as_ref().map(|_| &self.ledger)
    }

    /// Sends what is in `out`. Returns the pair of addresses if the lower layer refuses it.
    pub fn send(&mut self, now: Time, from: Side, trace: &mut Trace) -> Option<PathAddress> {
        if self.adversary.is_some() && !self.passes_attackers(now, from, trace) {
            return None;
        }
        let datagram = self.out.clone();
        let Some(path) = paths::path_of(self.case, from, datagram.path) else {
            let PathAddress { local, remote } = datagram.path;
            let what = format!("it sends from {local} to {remote}, which is no path");
            trace.add(now, What::Unexpected { side: from, what });
            return None;
        };
        if from == Side::Client {
            self.out.path.local.set_port(paths::binding(self.case, path, now));
        }
        let owner = match self.adversary {
            None => self.owner(from, path, &datagram, trace),
            Some(_) => None,
        };
        let wire_bytes = (IP_HEADER_BYTES + datagram.len()) as u32;
        let hosts = self.hosts[path];
        let [from_host, to_host] = [hosts[from.index()], hosts[from.other().index()]];
        self.world
            .send(now, from_host, to_host, wire_bytes, &mut self.out);
        let first = self
            .steps
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop_front();
        if let Some(Noted::Sent(packet)) = first {
            if self.adversary.is_none() {
                self.remember(packet, owner);
            }
            trace.add_packet(
                now,
                What::Sent {
                    packet,
                    from,
                    path,
                    owner,
                    datagram: Datagram::clone(&datagram),
                },
            );
        }
        self.note(now, trace);
        paths::refuses(self.case, from, path, now).then_some(datagram.path)
    }

    fn owner(&mut self, from: Side, path: usize, datagram: &Datagram, trace: &Trace) -> Option<Owner> {
        let opened = trace.ends.iter().filter(|end| end.side == Side::Client).count();
        self.conversations.owner(from, path, datagram, opened)
    }

    /// The engine of `from` sends a PDU into its seal.
    pub fn say(&mut self, now: Time, from: Side, datagram: &Datagram, trace: &mut Trace) {
        let pdu = Bytes::from(datagram.to_vec());
        let path = paths::path_of(self.case, from, datagram.path);
        let packet = self.ledger.say(Party::Side(from), pdu, path);
        if let (Some(packet), Some(path)) = (packet, path) {
            let owner = self.owner(from, path, datagram, trace);
            self.remember(packet, owner);
            let datagram = datagram.clone();
            trace.add(
                now,
                What::Sent {
                    packet,
                    from,
                    path,
                    owner,
                    datagram,
                },
            );
        }
    }

    /// The seal of `side` hands a PDU up that came along `path`: who said it.
    pub fn on_received(&mut self, side: Side, path: PathAddress, pdu: &[u8]) -> Option<Saying> {
        let path = paths::path_of(self.case, side, path);
        self.ledger.on_received(side.other(), path, pdu)
    }

    /// A sealed datagram is about to leave: what attackers make of it. False when it goes no further.
    fn passes_attackers(&mut self, now: Time, from: Side, trace: &mut Trace) -> bool {
        let Some(adversary) = &mut self.adversary else {
            return true;
        };
        let bytes = self.out.to_vec();
        let path = self.out.path;
        if let (Side::Server, Some(Packet::Retry { token, .. })) = (from, Packet::parse(&bytes)) {
            self.ledger.ask(path.remote, token);
        }
        self.ledger.make(Party::Side(from), &bytes);
        let went = What::Went {
            from,
            to: path.remote,
            bytes: bytes.len(),
            reaches: adversary::reaches(self.case, from, path, now)
                .filter(|_| from == Side::Client || carries_keys(&bytes)),
            mark: Mark::of(&bytes),
        };
        trace.add(now, went);
        let Some(number) = paths::path_of(self.case, from, path) else {
            adversary.receive(now, path.remote, &bytes, &mut self.ledger);
            return false;
        };
        let mut seen = paths::address(from.other(), number);
        if from == Side::Client {
            seen.remote.set_port(paths::binding(self.case, number, now));
        }
        match adversary.on_passing(now, from, seen, &bytes) {
            Fate::Passes => true,
            Fate::Vanishes => false,
            Fate::Becomes(bytes) => {
                self.out.head.clear();
                self.out.body = bytes.into();
                true
            }
        }
    }

    /// What comes from attackers now.
    pub(super) fn attack(&mut self, now: Time) -> Vec<Injection> {
        let ledger = &mut self.ledger;
        (self.adversary.as_mut()).map_or_else(Vec::new, |adversary| adversary.act(now, ledger))
    }

    /// Wakes the attackers when they want to act.
    pub(super) fn watch_attackers(&mut self) {
        if let Some(adversary) = &self.adversary {
            self.world.wake_at(self.attackers, adversary.next());
        }
    }

    /// The translator of `path` knows the address that a packet for the client was sent to; the client sees its own.
    pub(super) fn translate(&self, now: Time, path: usize, to: Side, datagram: &mut Datagram) -> bool {
        let remote = &mut datagram.path.remote;
        let known = to == Side::Server || remote.port() == paths::binding(self.case, path, now);
        if to == Side::Client {
            remote.set_port(0);
        }
        known
    }

    /// Puts on record what the network did since the last time; the packet it handed over, if it did.
    pub(super) fn note(&mut self, now: Time, trace: &mut Trace) -> Option<u64> {
        let steps = std::mem::take(&mut *self.steps.lock().unwrap_or_else(PoisonError::into_inner));
        let mut delivered = None;
        for step in steps {
            match step {
                Noted::Sent(_) => {}
                Noted::Copied { packet, of } => {
                    if self.adversary.is_none() {
                        self.remember(packet, self.owner_of(of));
                    }
                    trace.add_packet(now, What::Copied { packet, of });
                }
                Noted::Flipped(packet) => trace.add_packet(now, What::Flipped { packet }),
                Noted::Dropped(packet) => trace.add_packet(now, What::Dropped { packet }),
                Noted::Delivered(packet) => delivered = Some(packet),
            }
        }
        delivered
    }

    fn remember(&mut self, packet: u64, owner: Option<Owner>) {
        let index = packet as usize;
        if self.owners.len() <= index {
            self.owners.resize(index + 1, None);
        }
        self.owners[index] = owner;
    }

    pub fn owner_of(&self, packet: u64) -> Option<Owner> {
        self.owners.get(packet as usize).copied().flatten()
    }

    /// Nothing is left to chance any more.
    pub(super) fn heal(&mut self) {
        for path in 0..self.case.paths() {
            for (hop, way) in self
                .case
                .hops_of(path)
                .flat_map(|hop| Way::BOTH.map(|way| (hop, way)))
            {
                if let Some(direction) = self.world.direction_mut(&network::link(hop), way) {
                    direction.heal();
                }
            }
        }
    }
}

/// May it be an answer, or a packet of a session? Whoever gets something else gets no keys.
fn carries_keys(sealed: &[u8]) -> bool {
    !matches!(
        Packet::parse(sealed),
        Some(Packet::Retry { .. } | Packet::Foreign { .. } | Packet::Stale { .. } | Packet::Reset { .. })
    )
}

fn noted(event: &TraceEvent<'_>) -> Option<Noted> {
    let packet = event.packet;
    match event.step {
        Step::Sent { .. } => Some(Noted::Sent(packet)),
        Step::Copied { of, .. } => Some(Noted::Copied { packet, of }),
        Step::Accepted {
            flip_bit: Some(_), ..
        } => Some(Noted::Flipped(packet)),
        Step::Accepted { .. } => None,
        Step::Dropped { .. } => Some(Noted::Dropped(packet)),
        Step::Delivered { .. } => Some(Noted::Delivered(packet)),
    }
}
