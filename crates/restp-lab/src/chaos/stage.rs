//! Plays a case: two hosts and the network between them, until nothing is left to happen or the time is up.

use super::host::Host;
use super::trace::{Ending, Trace, What};
use super::{Case, CaseError, Side, liveness, network, ties};
use crate::host::IP_HEADER_BYTES;
use crate::traffic::PORT;
use restp_base::machine::{Datagram, Machine};
use restp_base::random::Stream;
use restp_base::time::Time;
use restp_proto::composition::ValidComposition;
use restp_proto::wire::{Flags, Header};
use restp_proto::{Acceptance, EndpointConfig, InitialNumbers};
use restp_sim::trace::{Step, TraceEvent};
use restp_sim::{Happening, HostId, Way, World};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

/// Makes the machine of one side; tests of the laws wrap it into one that breaks them.
pub type Maker<'a> = &'a (dyn Fn(&EndpointConfig) -> Box<dyn Machine> + Sync);

/// Port of the first flow of a machine (RFC 6335 §6).
const FIRST_PORT: u16 = 49_152;
/// More records than any run of this size leaves.
const STORM: usize = 400_000;
/// More events than any run of this size has at one instant.
const STUCK: u64 = 100_000;

/// Plays `case` with machines of `make`.
///
/// # Errors
/// When the case cannot be run.
pub fn play(case: &Case, make: Maker<'_>) -> Result<Trace, CaseError> {
    let compositions = case.compositions()?;
    let configs = configurations(case, &compositions);
    let mut trace = Trace::default();
    let mut wire = Wire::new(case)?;
    let [client, server] = configs;
    let mut hosts = [
        Host::new(case, Side::Client, client, make),
        Host::new(case, Side::Server, server, make),
    ];
    for (host, id) in hosts.iter().zip(wire.hosts) {
        wire.world.wake_at(id, host.next(Time::ZERO));
    }
    let last = case.healed_at() + liveness::patience(case, &compositions);
    trace.ending = run(&mut hosts, &mut wire, &mut trace, case.healed_at());
    if trace.ending == Ending::TimeUp {
        wire.heal();
        trace.ending = run(&mut hosts, &mut wire, &mut trace, last);
    }
    trace.in_flight = wire.world.totals().in_flight;
    trace.remembered = (0..trace.ends.len())
        .filter(|end| hosts[trace.ends[*end].side.index()].remembers(*end))
        .collect();
    Ok(trace)
}

fn run(hosts: &mut [Host<'_>; 2], wire: &mut Wire<'_>, trace: &mut Trace, until: Time) -> Ending {
    let mut arrived = Datagram::empty();
    let (mut instant, mut at_instant) = (Time::ZERO, 0);
    while let Some((now, happening)) = wire.world.next(until, &mut arrived) {
        at_instant = if now == instant { at_instant + 1 } else { 0 };
        instant = now;
        if at_instant > STUCK {
            return Ending::Stuck;
        }
        if trace.records.len() > STORM {
            return Ending::Storm;
        }
        let (Happening::Arrival { host: id } | Happening::Wake { host: id }) = happening;
        let host = &mut hosts[id.index()];
        let packet = wire.note(now, trace);
        let cause = match (happening, packet) {
            (Happening::Arrival { .. }, Some(packet)) => {
                let to = Side::BOTH[id.index()];
                let datagram = arrived.clone();
                trace.add(now, What::Delivered { packet, to, datagram });
                host.arrival(now, &mut arrived);
                wire.conversation_of(packet)
            }
            _ => {
                if host.wake(now, trace) && id == wire.hosts[Side::Client.index()] {
                    wire.first = trace.ends.iter().filter(|end| end.side == Side::Client).count();
                }
                None
            }
        };
        if !host.settle(now, cause, wire, trace) {
            return Ending::Stuck;
        }
        let next = host.next(now);
        wire.world.wake_at(id, next);
    }
    wire.note(until, trace);
    let quiet = wire.world.totals().in_flight == 0
        && hosts.iter().all(|host| host.next(wire.world.now()) == Time::MAX);
    if quiet { Ending::Quiet } else { Ending::TimeUp }
}

/// Both machines: the client opens, the server listens. Numbers begin somewhere, and elsewhere after a restart.
fn configurations(case: &Case, compositions: &[ValidComposition; 2]) -> [EndpointConfig; 2] {
    let mut draw = Stream::named(case.seed, "chaos/numbers");
    let mut config = |composition: &ValidComposition| {
        let mut config = EndpointConfig::new(composition.clone());
        let key = [draw.bits().to_be_bytes(), draw.bits().to_be_bytes()].concat();
        config.initial_numbers = InitialNumbers::Keyed(key.try_into().unwrap_or_default());
        config
    };
    let acceptance = if case.exact {
        Acceptance::Exact
    } else {
        Acceptance::Any
    };
    let [client, server] = compositions;
    [config(client), config(server).listen(PORT, acceptance)]
}

/// The network, and which packet belongs to which conversation.
pub struct Wire<'a> {
    world: World,
    hosts: [HostId; 2],
    hops: &'a [network::Hop],
    /// The packet a machine is sending.
    pub out: Datagram,
    steps: Arc<Mutex<VecDeque<Noted>>>,
    conversations: Vec<Option<usize>>,
    /// The first conversation of the client's present machine.
    first: usize,
    /// The conversation the server has answered last at each of the client's ports.
    answered: BTreeMap<u16, usize>,
    /// The client's first number in each conversation.
    first_numbers: BTreeMap<usize, u32>,
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
    fn new(case: &'a Case) -> Result<Self, CaseError> {
        let broken = |error: &dyn std::fmt::Display| CaseError::Network(error.to_string());
        let links = network::links(&case.hops, &case.faults);
        let mut world = World::new(&links, case.seed).map_err(|error| broken(&error))?;
        ties::shuffle(case, &mut world);
        let steps = Arc::new(Mutex::new(VecDeque::new()));
        let sink = steps.clone();
        world.trace(move |event| {
            if let Some(step) = noted(event) {
                sink.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push_back(step);
            }
        });
        let mut attach = |hop: usize| match world.node(&network::node(hop)) {
            Some(node) => Ok(world.attach(node)),
            None => Err(broken(&"the path has no end")),
        };
        let hosts = [attach(0)?, attach(case.hops.len())?];
        Ok(Wire {
            world,
            hosts,
            hops: &case.hops,
            out: Datagram::empty(),
            steps,
            conversations: Vec::new(),
            first: 0,
            answered: BTreeMap::new(),
            first_numbers: BTreeMap::new(),
        })
    }

    /// Sends what is in `out`.
    pub fn send(&mut self, now: Time, from: Side, trace: &mut Trace) {
        let datagram = self.out.clone();
        let conversation = self.belongs(from, &datagram, trace);
        let wire_bytes = (IP_HEADER_BYTES + datagram.len()) as u32;
        let to = self.hosts[from.other().index()];
        self.world
            .send(now, self.hosts[from.index()], to, wire_bytes, &mut self.out);
        let first = self
            .steps
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop_front();
        if let Some(Noted::Sent(packet)) = first {
            self.remember(packet, conversation);
            trace.add(
                now,
                What::Sent {
                    packet,
                    from,
                    conversation,
                    datagram,
                },
            );
        }
        self.note(now, trace);
    }

    /// Puts on record what the network did since the last time; the packet it handed over, if it did.
    fn note(&mut self, now: Time, trace: &mut Trace) -> Option<u64> {
        let steps = std::mem::take(&mut *self.steps.lock().unwrap_or_else(PoisonError::into_inner));
        let mut delivered = None;
        for step in steps {
            match step {
                Noted::Sent(_) => {}
                Noted::Copied { packet, of } => {
                    self.remember(packet, self.conversation_of(of));
                    trace.add(now, What::Copied { packet, of });
                }
                Noted::Flipped(packet) => trace.add(now, What::Flipped { packet }),
                Noted::Dropped(packet) => trace.add(now, What::Dropped { packet }),
                Noted::Delivered(packet) => delivered = Some(packet),
            }
        }
        delivered
    }

    /// The conversation of a packet. The client's port tells, because a machine gives its flows one after the other.
    /// One that starts again uses them once more; the server goes on with the old conversation until it answers the
    /// SYN of the new one.
    fn belongs(&mut self, from: Side, datagram: &Datagram, trace: &Trace) -> Option<usize> {
        let head = if datagram.head.is_empty() {
            &datagram.body[..]
        } else {
            &datagram.head[..]
        };
        let (header, _) = Header::parse(head, datagram.len()).ok()?;
        let port = if from == Side::Client {
            header.source
        } else {
            header.destination
        };
        let opened = trace.ends.iter().filter(|end| end.side == Side::Client).count();
        let newest = Some(self.first + usize::from(port.checked_sub(FIRST_PORT)?)).filter(|at| *at < opened);
        if from == Side::Client {
            if let (Some(conversation), Some(number)) = (newest, header.sequence) {
                self.first_numbers.entry(conversation).or_insert(number);
            }
            return newest;
        }
        if header.flags.has(Flags::SYN | Flags::ACK)
            && let Some(conversation) = newest
        {
            let first = self
                .first_numbers
                .get(&conversation)
                .map(|first| first.wrapping_add(1));
            if header.acknowledgement.is_none() || header.acknowledgement == first {
                self.answered.insert(port, conversation);
            }
        }
        self.answered.get(&port).copied().or(newest)
    }

    fn remember(&mut self, packet: u64, conversation: Option<usize>) {
        let index = packet as usize;
        if self.conversations.len() <= index {
            self.conversations.resize(index + 1, None);
        }
        self.conversations[index] = conversation;
    }

    fn conversation_of(&self, packet: u64) -> Option<usize> {
        self.conversations.get(packet as usize).copied().flatten()
    }

    /// Nothing is left to chance any more.
    fn heal(&mut self) {
        for hop in 0..self.hops.len() {
            for way in Way::BOTH {
                if let Some(direction) = self.world.direction_mut(&network::link(hop), way) {
                    direction.heal();
                }
            }
        }
    }
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
