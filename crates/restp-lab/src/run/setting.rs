//! What a run consists of before it begins: the network, the machines on its nodes with their applications, and who is where.

use crate::host::{Application, Directory, End, Host, Notice, Seat, Timers, address_of};
use crate::metrics::{Sawtooth, Watch};
use crate::scenario::{FlowPlan, HostPlan, HostRole, PathPlan, Plan};
use crate::traffic::{Attempt, Moments, Receiver, Sender};
use restp_base::machine::PathAddress;
use restp_base::random::Stream;
use restp_base::time::{Duration, Time};
use restp_rivals::itp::Cache;
use restp_sim::{HostId, NetworkError, Route, World};
use std::ops::Range;

/// The network and all that is attached to it.
pub(super) struct Setting {
    pub world: World,
    /// Those of the plan first, in the order of `shared`; then one for each end of a flow that has a machine of its own.
    pub hosts: Vec<Host>,
    /// The places in the plan of those that are in it.
    pub shared: Vec<usize>,
    pub caches: Vec<CacheBox>,
    pub directory: Directory,
    /// Whose each place in the network is.
    pub owners: Owners,
    /// Of each flow: its opener and its server.
    seats: Vec<[Place; 2]>,
    /// How coarse timers are, and what draws the rest.
    tick: Option<Duration>,
    seed: u64,
}

/// A host and a seat there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub host: usize,
    pub seat: usize,
}

/// Whose a place in the network is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Owner {
    /// A host's, and where it is one path of a flow, that seat's.
    Host(usize, Option<usize>),
    Cache(usize),
}

/// Of each place in the network, whose it is.
#[derive(Debug, Default)]
pub(super) struct Owners(Vec<Owner>);

/// A cache on the way.
pub(super) struct CacheBox {
    /// Its place in the network, and that in the plan.
    pub id: HostId,
    pub plan: usize,
    pub cache: Cache,
}

/// The addresses of every path of every flow, as its opener sees them: first come those of hosts, one for each path that any of their
/// flows has, then two for each path of each flow, where its ends have machines of their own.
pub(super) fn addresses(plan: &Plan) -> Vec<Vec<PathAddress>> {
    let mut next = 0..;
    let hosts: Vec<Vec<usize>> = (0..plan.hosts.len())
        .map(|host| next.by_ref().take(paths_of(plan, host)).collect())
        .collect();
    let mut of_path = |flow: &FlowPlan, path: usize| {
        let [local, remote] = flow.hosts.map(|host| match host {
            Some(host) => hosts[host][path],
            None => next.next().unwrap_or(usize::MAX),
        });
        PathAddress {
            local: address_of(local),
            remote: address_of(remote),
        }
    };
    let of_flow = |flow: &FlowPlan| (0..flow.paths.len()).map(|path| of_path(flow, path)).collect();
    plan.flows.iter().map(of_flow).collect()
}

/// How many addresses a host has.
fn paths_of(plan: &Plan, host: usize) -> usize {
    let own = plan.flows.iter().filter(|flow| flow.hosts.contains(&Some(host)));
    own.map(|flow| flow.paths.len()).max().unwrap_or(0)
}

impl Owners {
    pub fn of(&self, id: HostId) -> Owner {
        self.0[id.index()]
    }

    /// The end of a flow that the place `id` is of, if it is of one.
    pub fn end_at(&self, id: HostId, hosts: &[Host]) -> Option<End> {
        match self.of(id) {
            Owner::Host(host, Some(seat)) => Some(hosts[host].application(seat).end),
            _ => None,
        }
    }
}

impl Setting {
    pub fn new(plan: &Plan, seed: u64) -> Result<Self, NetworkError> {
        let mut setting = Setting {
            world: World::with_media(&plan.links, &plan.media, seed)?,
            hosts: Vec::new(),
            caches: Vec::new(),
            directory: Directory::default(),
            shared: Vec::new(),
            owners: Owners::default(),
            seats: Vec::new(),
            tick: plan.timers,
            seed,
        };
        let addresses = addresses(plan);
        for (index, host) in plan.hosts.iter().enumerate() {
            setting.add_machine(plan, index, host, &addresses);
        }
        let starts: Vec<Time> = plan.flows.iter().map(|flow| start(flow, seed)).collect();
        let shared_from = starts.iter().copied().max().unwrap_or(Time::ZERO);
        for (number, flow) in plan.flows.iter().enumerate() {
            let moments = Moments {
                bin: flow.bins,
                outages: flow.outages(),
                shared_from,
            };
            setting.add_flow(number, flow, &addresses[number], seed, (starts[number], moments))?;
        }
        Ok(setting)
    }

    /// Where the opener and the server of a flow are.
    pub fn seats(&self, flow: usize) -> [Place; 2] {
        self.seats[flow]
    }

    /// What is at this place.
    pub fn seat(&self, place: Place) -> &Seat {
        self.hosts[place.host].application(place.seat)
    }

    fn add_machine(&mut self, plan: &Plan, index: usize, host: &HostPlan, addresses: &[Vec<PathAddress>]) {
        let Some(node) = self.world.node(&host.node) else {
            return;
        };
        match &host.role {
            HostRole::Endpoint(transport) => {
                let id = self.attach(self.hosts.len(), None, node, None);
                for _ in 0..paths_of(plan, index) {
                    self.directory.add(id);
                }
                let opened = plan.flows.iter().zip(addresses);
                let opened = opened.filter(|(flow, _)| flow.hosts[0] == Some(index));
                let opens: Vec<PathAddress> = opened.flat_map(|(_, paths)| paths).copied().collect();
                self.shared.push(index);
                let host = Host::new(id, transport.shared_machine(&opens));
                let timers = self.timers();
                self.hosts.push(host.with_timers(timers));
            }
            HostRole::Cache(0) => {}
            HostRole::Cache(bytes) => {
                let id = self.world.tap(node);
                self.owners.0.push(Owner::Cache(self.caches.len()));
                let cache = Cache::new(*bytes);
                self.caches.push(CacheBox {
                    id,
                    plan: index,
                    cache,
                });
            }
        }
    }

    /// Those of the next host.
    fn timers(&self) -> Option<Timers> {
        let draw = || Stream::named(self.seed, &format!("host/{}/timers", self.hosts.len()));
        self.tick.map(|tick| Timers::new(tick, draw()))
    }

    /// A place of `host` in the network.
    fn attach(
        &mut self,
        host: usize,
        seat: Option<usize>,
        node: restp_sim::NodeId,
        route: Option<&Route>,
    ) -> HostId {
        self.owners.0.push(Owner::Host(host, seat));
        self.world.attach_along(node, route.cloned().unwrap_or_default())
    }

    fn add_flow(
        &mut self,
        number: usize,
        flow: &FlowPlan,
        addresses: &[PathAddress],
        seed: u64,
        (start, moments): (Time, Moments),
    ) -> Result<(), NetworkError> {
        let mut own = self.hosts.len()..;
        let places = flow.hosts.map(|shared| match shared {
            Some(host) => Place {
                host,
                seat: self.hosts[host].seats(),
            },
            None => Place {
                host: own.next().unwrap_or(usize::MAX),
                seat: 0,
            },
        });
        let first = self.attach_paths(flow, addresses, places)?;
        let attempts = attempts(flow, addresses);
        let ends = flow.transport.machines(addresses[0]);
        for (index, machine) in [ends.client, ends.server].into_iter().enumerate() {
            if flow.hosts[index].is_none() {
                let timers = self.timers();
                self.hosts
                    .push(Host::new(first[index], machine).with_timers(timers));
            }
        }
        let stream = Stream::named(seed, &format!("flow/{}/traffic", flow.name));
        let pinned = flow.pinned.map(|path| attempts[path].path);
        // Who would have to be watched is the receiver: it has the window and the timers.
        let watched = !moments.outages.is_empty() && !flow.transport.is_receiver_driven();
        let watch = watched.then(|| Watch::new(moments.outages.clone(), flow.rtt()));
        let mut receiver = Receiver::new(&flow.traffic, moments.clone());
        if flow.transport.waits_for_announcements() {
            let further = addresses.iter().skip(1);
            receiver = receiver.announcing(further.map(|path| path.reversed()));
        }
        let sender = Sender::new(attempts, pinned, start, &flow.traffic, stream, moments);
        let end = |opens| End { flow: number, opens };
        let mut sender = Seat::new(end(true), Application::Sender(sender), watch);
        let mut receiver = Seat::new(end(false), Application::Receiver(receiver), None);
        if flow.sawtooth {
            // The window is at the end that retransmits.
            let has_window = if flow.asks_for_data() {
                &mut receiver
            } else {
                &mut sender
            };
            has_window.sawtooth = Some(Sawtooth::default());
        }
        let seats = [sender.planning(flow.changes.iter().cloned()), receiver];
        for ((seat, place), opens) in seats.into_iter().zip(places).zip([true, false]) {
            let paths = addresses
                .iter()
                .map(|path| if opens { *path } else { path.reversed() });
            let host = &mut self.hosts[place.host];
            host.seat(seat, paths, &mut self.world);
            host.expect(notices(flow, addresses, opens), &mut self.world);
        }
        self.seats.push(places);
        Ok(())
    }

    /// Puts both ends of every path of a flow into the network. Returns those of the first.
    fn attach_paths(
        &mut self,
        flow: &FlowPlan,
        addresses: &[PathAddress],
        places: [Place; 2],
    ) -> Result<[HostId; 2], NetworkError> {
        let unreachable = || NetworkError::Unreachable {
            from: flow.from.clone(),
            to: flow.to.clone(),
        };
        let mut first = None;
        for (path, address) in flow.paths.iter().zip(addresses) {
            let mut ids = Vec::with_capacity(2);
            let ends = [(&flow.from, &path.there), (&flow.to, &path.back)];
            for (index, (name, route)) in ends.into_iter().enumerate() {
                let node = self.world.node(name).ok_or_else(unreachable)?;
                let Place { host, seat } = places[index];
                let id = self.attach(host, Some(seat), node, Some(route));
                if flow.hosts[index].is_none() {
                    self.directory.add(id);
                }
                ids.push(id);
            }
            if flow.hosts != [None, None] {
                self.directory.join(*address, (ids[0], ids[1]));
            }
            first.get_or_insert([ids[0], ids[1]]);
        }
        first.ok_or_else(unreachable)
    }
}

/// When a flow is opened: its start, and a uniform part of its spread from a stream of its own.
fn start(flow: &FlowPlan, seed: u64) -> Time {
    let spread = flow.start_spread.as_nanos();
    let drawn = Stream::named(seed, &format!("flow/{}/start", flow.name)).below(spread.saturating_add(1));
    Time::ZERO + flow.start + Duration::from_nanos(drawn)
}

/// The paths of a flow with these addresses.
fn attempts(flow: &FlowPlan, addresses: &[PathAddress]) -> Vec<Attempt> {
    let one = |(path, plan): (&PathAddress, &PathPlan)| Attempt {
        path: *path,
        backup: plan.backup,
    };
    addresses.iter().zip(&flow.paths).map(one).collect()
}

/// What the opener of a flow, or who serves it, is told of its paths, where the flow has notices.
fn notices(flow: &FlowPlan, addresses: &[PathAddress], opens: bool) -> Vec<Notice> {
    let paths = flow.paths.iter().zip(addresses).filter(|_| flow.notice);
    let of_path = |(path, address): (&PathPlan, &PathAddress)| {
        let local = if opens { address.local } else { address.remote };
        let both = |outage: &Range<Time>| {
            [(outage.start, false), (outage.end, true)].map(|(at, up)| Notice { at, local, up })
        };
        path.outages.iter().flat_map(both).collect::<Vec<Notice>>()
    };
    paths.flat_map(of_path).collect()
}
