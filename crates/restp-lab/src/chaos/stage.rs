//! Plays a case: two hosts and the network between them, until nothing is left to happen or the time is up.

use super::conversations::FIRST_PORT;
use super::host::Host;
use super::seat::Maker;
use super::trace::{Ending, Trace, What};
use super::wire::Wire;
use super::{Case, CaseError, Side, liveness};
use crate::traffic::PORT;
use restp_base::machine::{Datagram, Ecn};
use restp_base::random::Stream;
use restp_base::time::Time;
use restp_proto::composition::ValidComposition;
use restp_proto::{Acceptance, EndpointConfig, InitialNumbers};
use restp_services::path_management::PathMode;
use restp_sim::HostEvent;

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
    let mut wire = Wire::new(case, compositions[0].paths != PathMode::Single)?;
    trace.wire = wire.sealed().map(|_| Vec::new());
    let [client, server] = configs;
    let mut hosts = [
        Host::new(case, Side::Client, client, make),
        Host::new(case, Side::Server, server, make),
    ];
    for (host, id) in hosts.iter().zip(wire.hosts[0]) {
        wire.world.wake_at(id, host.next(Time::ZERO));
    }
    wire.watch_attackers();
    let longest_run = liveness::longest_run(case, &compositions);
    let last = case.healed_at() + longest_run;
    trace.ending = run(&mut hosts, &mut wire, &mut trace, case.healed_at());
    if trace.ending == Ending::TimeUp {
        wire.heal();
        trace.ending = run(&mut hosts, &mut wire, &mut trace, last);
    }
    if trace.ending == Ending::TimeUp && case.may_wait_in_vain() {
        for side in Side::BOTH {
            let host = &mut hosts[side.index()];
            let let_go = host.let_go(last, &mut trace);
            trace.let_go.extend(let_go);
            if !settle(host, last, side, None, &mut wire, &mut trace) {
                trace.ending = Ending::Stuck;
            }
        }
        if trace.ending == Ending::TimeUp {
            trace.ending = run(&mut hosts, &mut wire, &mut trace, last + longest_run);
        }
    }
    for host in &mut hosts {
        host.finish(wire.world.now(), &mut trace);
    }
    trace.in_flight = wire.world.totals().in_flight;
    trace.remembered = (0..trace.ends.len())
        .filter(|end| hosts[trace.ends[*end].side.index()].remembers(*end))
        .collect();
    trace.held = hosts.each_ref().map(Host::held);
    Ok(trace)
}

fn run(hosts: &mut [Host<'_>; 2], wire: &mut Wire<'_>, trace: &mut Trace, until: Time) -> Ending {
    let mut arrived = Box::new(Datagram::empty());
    let (mut instant, mut at_instant) = (Time::ZERO, 0);
    while let Some((now, event)) = wire.world.next(until, &mut arrived) {
        at_instant = if now == instant { at_instant + 1 } else { 0 };
        instant = now;
        if at_instant > STUCK {
            return Ending::Stuck;
        }
        if trace.records.len() > STORM || trace.packets().len() > STORM {
            return Ending::Storm;
        }
        let (HostEvent::Arrival { host: id } | HostEvent::Wake { host: id }) = event;
        if id == wire.attackers {
            wire.note(now, trace);
            for injection in wire.attack(now) {
                let to = injection.to;
                arrived.path = injection.path;
                arrived.head.clear();
                arrived.body = injection.bytes.into();
                arrived.ecn = Ecn::NotEct;
                hosts[to.index()].arrival(now, &mut arrived, wire, trace);
                if !settle(&mut hosts[to.index()], now, to, None, wire, trace) {
                    return Ending::Stuck;
                }
            }
            wire.watch_attackers();
            continue;
        }
        let (path, to) = (id.index() / 2, Side::BOTH[id.index() % 2]);
        let host = &mut hosts[to.index()];
        let packet = wire.note(now, trace);
        let cause = match (event, packet) {
            (HostEvent::Arrival { .. }, Some(packet)) if !wire.translate(now, path, to, &mut arrived) => {
                trace.add_packet(now, What::Dropped { packet });
                continue;
            }
            (HostEvent::Arrival { .. }, Some(packet)) => {
                let datagram = Datagram::clone(&arrived);
                let delivered = What::Delivered {
                    packet,
                    to,
                    path,
                    datagram,
                };
                trace.add_packet(now, delivered);
                arrived.path = arrived.path.reversed();
                host.arrival(now, &mut arrived, wire, trace);
                let plain = wire.sealed().is_none();
                wire.owner_of(packet)
                    .filter(|_| plain)
                    .map(|owner| owner.conversation)
            }
            _ => {
                if host.wake(now, wire, trace) && to == Side::Client {
                    wire.conversations.first =
                        trace.ends.iter().filter(|end| end.side == Side::Client).count();
                }
                None
            }
        };
        if !settle(host, now, to, cause, wire, trace) {
            return Ending::Stuck;
        }
    }
    wire.note(until, trace);
    let quiet = wire.world.totals().in_flight == 0
        && hosts.iter().all(|host| host.next(wire.world.now()) == Time::MAX);
    if quiet { Ending::Quiet } else { Ending::TimeUp }
}

/// Everything that follows at `to`, until it sleeps; `false`: there is no end to it.
fn settle(
    host: &mut Host<'_>,
    now: Time,
    to: Side,
    cause: Option<usize>,
    wire: &mut Wire<'_>,
    trace: &mut Trace,
) -> bool {
    let settled = host.settle(now, cause, wire, trace);
    let next = host.next(now);
    wire.world.wake_at(wire.hosts[0][to.index()], next);
    wire.watch_attackers();
    settled
}

/// Both machines: the client opens, the server listens. Numbers begin somewhere, and elsewhere after a restart.
fn configurations(case: &Case, compositions: &[ValidComposition; 2]) -> [EndpointConfig; 2] {
    let mut draw = Stream::named(case.seed, "chaos/numbers");
    let mut config = |composition: &ValidComposition| {
        let mut config = EndpointConfig::new(composition.clone());
        let key = [draw.bits().to_be_bytes(), draw.bits().to_be_bytes()].concat();
        config.initial_numbers = InitialNumbers::Keyed(key.try_into().unwrap_or_default());
        config.first_port = Some(FIRST_PORT);
        config.weaker_services = !case.changes.is_empty();
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
