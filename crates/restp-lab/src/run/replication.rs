//! One point, one seed, one result.

use super::capture::framing;
use super::observer::{Advancing, End, Nobody, Observer, Shown};
use super::{Job, Options, Watched};
use crate::host::{Application, Host, Notice, address_of, index_of};
use crate::metrics::{CauseLedger, FlowCounts, FlowResult, GroupResult, LinkResult, Measured, Watch, links};
use crate::scenario::{Coordinates, FlowPlan, PathPlan, Plan, Point};
use crate::traffic::{Attempt, Moments, Receiver, Sender, TrafficError};
use restp_base::flow::{FlowId, FlowStats};
use restp_base::machine::{Datagram, PathAddress};
use restp_base::observe::Loss;
use restp_base::random::Stream;
use restp_base::time::{Duration, Time};
use restp_sim::trace::TraceEvent;
use restp_sim::{HostEvent, HostId, LinkStats, NetworkError, World};
use serde::Serialize;
use std::ops::Range;
use thiserror::Error;

/// What one run measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunResult {
    /// The scenario's id.
    pub scenario: String,
    /// Where the point lies in the sweep.
    pub point: Coordinates,
    /// Seed of every random stream of the run.
    pub seed: u64,
    /// Virtual time that passed.
    pub sim_seconds: f64,
    /// Wall time that passed, if the caller lent a stopwatch.
    pub wall_seconds: Option<f64>,
    /// Events of the network: packets at the end of a hop, and timers.
    pub events: u64,
    /// Packets handed to hosts.
    pub packets: u64,
    /// Each flow, in the order written.
    pub flows: Vec<FlowResult>,
    /// Each group of flows, in the order written.
    pub groups: Vec<GroupResult>,
    /// Each link, in the order written.
    pub links: Vec<LinkResult>,
}

/// Why a run could not go on.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum RunError {
    /// The network was refused.
    #[error("{0}")]
    Network(#[from] NetworkError),
    /// A flow's traffic cannot run over its transport.
    #[error("flow \"{flow}\" (seed {seed}): {error}")]
    Traffic {
        /// The flow.
        flow: String,
        /// The run.
        seed: u64,
        /// What happened.
        error: TrafficError,
    },
    /// The same instant never ended.
    #[error(
        "seed {seed}: {STUCK} events happened at {at:?} without time passing; a protocol asks to be woken in the past"
    )]
    Stuck {
        /// The run.
        seed: u64,
        /// When.
        at: Time,
    },
    /// A trace that memory might not hold.
    #[error(
        "seed {seed}: the trace has {most} rows at {:.3} of {:.3} s; shorten duration, look less often (every), or allow more rows",
        .at.as_secs_f64(), .end.as_secs_f64()
    )]
    TraceTooLong {
        /// The run.
        seed: u64,
        /// The limit that was asked for.
        most: usize,
        /// How far it came.
        at: Time,
        /// How far it should have gone.
        end: Time,
    },
    /// More runs than memory holds.
    #[error(
        "{total} runs in all are too many; at most {most} are possible, so ask for fewer points or seeds"
    )]
    TooMany {
        /// Points times seeds.
        total: u64,
        /// The limit.
        most: u64,
    },
    /// Threads could not be started.
    #[error("threads could not be started: {0}")]
    Threads(String),
}

/// More events than any network of this size has at one instant.
const STUCK: u64 = 10_000_000;

/// Runs `point` with `seed`, and shows every step of every packet to `sink`. The result is the same as without.
///
/// # Errors
/// When the run cannot go on.
pub fn traced(
    point: &Point,
    seed: u64,
    sink: impl FnMut(&TraceEvent<'_>) + Send + 'static,
) -> Result<RunResult, RunError> {
    let mut run = Replication::new(&point.plan, seed)?;
    run.world.trace(sink);
    run.until_the_end(&mut Nobody)?;
    Ok(run.result(point, None))
}

/// Runs `point` with `seed`, and lets `observer` look on. The result is the same as without.
///
/// # Errors
/// When the run cannot go on, or the observer has seen enough.
pub(super) fn observed(
    point: &Point,
    seed: u64,
    observer: &mut impl Observer,
) -> Result<RunResult, RunError> {
    let mut run = Replication::new(&point.plan, seed)?;
    run.until_the_end(observer)?;
    Ok(run.result(point, None))
}

/// Does `job`, whose point is `point`.
pub(super) fn replicate(point: &Point, job: Job, options: &Options<'_>) -> Result<RunResult, RunError> {
    let stopwatch = options.stopwatch;
    let started = stopwatch.map(|read| read());
    let mut run = Replication::new(&point.plan, job.seed)?;
    if let Some(sink) = options.capture.and_then(|capture| capture(job)) {
        run.world.capture(framing(&point.plan, sink));
    }
    match options.observe {
        None => run.under(Nobody, options.advance)?,
        Some(observe) => {
            let flows = point.plan.flows.iter();
            let ends = flows.flat_map(|flow| [true, false].map(|opens| (flow.name.as_str(), opens)));
            let shown = ends.map(|(flow, opens)| observe(&Watched { job, flow, opens }));
            run.under(Shown::to(shown.collect()), options.advance)?;
        }
    }
    let wall_seconds = stopwatch.zip(started).map(|(read, started)| read() - started);
    Ok(run.result(point, wall_seconds))
}

struct Replication<'a> {
    plan: &'a Plan,
    seed: u64,
    world: World,
    /// Two per flow: the sender's, then the receiver's.
    hosts: Vec<Host>,
    /// Places in the network: of each path of each flow, the sender's end, then the receiver's.
    addresses: Vec<HostId>,
    /// The host each of them belongs to.
    owners: Vec<usize>,
    /// Of each flow: why its sender lost segments, and whether it says which.
    ledgers: Vec<(CauseLedger, bool)>,
    /// What had been counted when the measurement began and when it ended, where that is within the run.
    marks: [Option<Mark>; 2],
    end: Time,
}

/// Everything counted up to a moment. The default is that of the beginning.
#[derive(Default)]
struct Mark {
    at: Time,
    flows: Vec<FlowCounts>,
    links: Vec<LinkStats>,
}

impl<'a> Replication<'a> {
    fn new(plan: &'a Plan, seed: u64) -> Result<Self, RunError> {
        let mut world = World::with_media(&plan.links, &plan.media, seed)?;
        let (mut addresses, mut owners) = (Vec::new(), Vec::new());
        let mut hosts = Vec::with_capacity(2 * plan.flows.len());
        let starts: Vec<Time> = plan.flows.iter().map(|flow| start(flow, seed)).collect();
        let shared_from = starts.iter().copied().max().unwrap_or(Time::ZERO);
        for (flow, start) in plan.flows.iter().zip(starts) {
            let (from, to) = (hosts.len(), hosts.len() + 1);
            let first = addresses.len();
            for path in &flow.paths {
                for (owner, name, route) in [(from, &flow.from, &path.there), (to, &flow.to, &path.back)] {
                    let node = world.node(name).ok_or_else(|| NetworkError::Unreachable {
                        from: flow.from.clone(),
                        to: flow.to.clone(),
                    })?;
                    addresses.push(world.attach_along(node, route.clone()));
                    owners.push(owner);
                }
            }
            let attempts = attempts(flow, first);
            let moments = Moments {
                bin: flow.bins,
                outages: flow.outages(),
                shared_from,
            };
            let notices = notices(flow, &attempts);
            let ends = flow.transport.machines(attempts[0].path);
            let stream = Stream::named(seed, &format!("flow/{}/traffic", flow.name));
            let pinned = flow.pinned.map(|path| attempts[path].path);
            let sender = Sender::new(attempts, pinned, start, &flow.traffic, stream, moments.clone());
            // Who would have to be watched is the receiver: it has the window and the timers.
            let watched = !moments.outages.is_empty() && !flow.transport.is_receiver_driven();
            let watch = watched.then(|| Watch::new(moments.outages.clone(), flow.rtt()));
            let receiver = Receiver::new(&flow.traffic, moments);
            let (sender, receiver) = (Application::Sender(sender), Application::Receiver(receiver));
            hosts.push(Host::new(
                addresses[first],
                ends.client,
                sender,
                watch,
                &mut world,
            ));
            hosts.push(Host::new(
                addresses[first + 1],
                ends.server,
                receiver,
                None,
                &mut world,
            ));
            hosts[from].plan(flow.changes.iter().cloned(), &mut world);
            for (host, notices) in hosts[from..].iter_mut().zip(notices) {
                host.expect(notices, &mut world);
            }
        }
        Ok(Replication {
            plan,
            seed,
            world,
            hosts,
            addresses,
            owners,
            ledgers: plan.flows.iter().map(|_| Default::default()).collect(),
            marks: [None, None],
            end: Time::ZERO + plan.duration,
        })
    }

    /// Goes on until the end while `observer` looks on, and `advance` is told how far it has come.
    fn under(
        &mut self,
        mut observer: impl Observer,
        advance: Option<&(dyn Fn(u64) + Sync)>,
    ) -> Result<(), RunError> {
        let Some(tell) = advance else {
            return self.until_the_end(&mut observer);
        };
        let mut observer = Advancing::new(observer, self.plan.duration, tell);
        self.until_the_end(&mut observer)?;
        observer.finish();
        Ok(())
    }

    fn until_the_end(&mut self, observer: &mut impl Observer) -> Result<(), RunError> {
        let (mut arrived, mut out) = (Box::new(Datagram::empty()), Box::new(Datagram::empty()));
        let (mut instant, mut at_instant) = (Time::ZERO, 0u64);
        let mut finished = vec![false; self.plan.flows.len()];
        let mut open = finished.len();
        let mut losses = Vec::new();
        loop {
            let until = self.next_mark().unwrap_or(self.end);
            let Some((now, event)) = self.world.next(until, &mut arrived) else {
                if self.next_mark().is_none() {
                    return Ok(());
                }
                self.set_mark(until);
                continue;
            };
            at_instant = if now == instant { at_instant + 1 } else { 0 };
            instant = now;
            if at_instant > STUCK {
                return Err(RunError::Stuck {
                    seed: self.seed,
                    at: now,
                });
            }
            let (HostEvent::Arrival { host: id } | HostEvent::Wake { host: id }) = event;
            let index = self.owners[id.index()];
            let end = End {
                flow: index / 2,
                opens: index.is_multiple_of(2),
            };
            let host = &mut self.hosts[index];
            let step = match event {
                HostEvent::Arrival { .. } => {
                    observer.arrived(now, end, &arrived);
                    host.arrival(now, &mut arrived);
                    Ok(())
                }
                HostEvent::Wake { .. } => host.wake(now),
            };
            let sent = |datagram: &Datagram| observer.sent(now, end, datagram);
            step.and_then(|()| host.settle(now, &mut self.world, &self.addresses, &mut out, sent))
                .map_err(|error| {
                    let flow = self.plan.flows[index / 2].name.clone();
                    RunError::Traffic {
                        flow,
                        seed: self.seed,
                        error,
                    }
                })?;
            if end.opens {
                self.note_losses(now, end, &mut losses, observer);
            }
            observer.settled(now, end, &self.hosts[index], &mut self.world)?;
            let flow = index / 2;
            if !finished[flow] && self.finished(flow) {
                finished[flow] = true;
                open -= 1;
                if open == 0 {
                    self.end = now;
                    return Ok(());
                }
            }
        }
    }

    /// When the measurement begins or ends next, within the run.
    fn next_mark(&self) -> Option<Time> {
        let [before, after] = &self.marks;
        let Range { start, end } = self.plan.measure;
        let begins = Some(start).filter(|start| before.is_none() && *start > Time::ZERO);
        begins.or(Some(end).filter(|end| after.is_none() && *end < self.end))
    }

    fn set_mark(&mut self, at: Time) {
        let begins = at == self.plan.measure.start;
        self.marks[usize::from(!begins)] = Some(self.mark(at));
    }

    /// Everything counted until now.
    fn mark(&self, at: Time) -> Mark {
        let stats = |host: usize, flow: Option<FlowId>| -> Option<FlowStats> {
            self.hosts[host].machine().stats(flow?)
        };
        let counts = |flow: usize| {
            let Some((sender, receiver)) = self.ends(flow) else {
                return FlowCounts::default();
            };
            let (ledger, tells) = &self.ledgers[flow];
            let counts = FlowCounts::of(
                (sender, stats(2 * flow, sender.flow())),
                (receiver, stats(2 * flow + 1, receiver.flow())),
                tells.then(|| ledger.causes()),
            );
            match self.plan.flows[flow].transport.is_receiver_driven() {
                true => counts.driven_by_receiver(),
                false => counts,
            }
        };
        Mark {
            at,
            flows: (0..self.plan.flows.len()).map(counts).collect(),
            links: self.world.link_stats(),
        }
    }

    /// What the network has lost, and what the sender of a flow takes for lost.
    fn note_losses(&mut self, now: Time, end: End, losses: &mut Vec<Loss>, observer: &mut impl Observer) {
        for lost in self.world.take_lost() {
            let owner = self.owners[lost.from.index()];
            if owner.is_multiple_of(2) {
                self.ledgers[owner / 2].0.on_lost(lost);
            }
        }
        let Some(flow) = self.hosts[2 * end.flow].take_losses(losses) else {
            return;
        };
        let (ledger, tells) = &mut self.ledgers[end.flow];
        *tells = true;
        for loss in losses.drain(..) {
            let from = index_of(loss.path.local).and_then(|index| self.addresses.get(index));
            if let Some(from) = from {
                ledger.on_declared(*from, &loss);
            }
            observer.lost(now, end, flow, &loss);
        }
    }

    fn ends(&self, flow: usize) -> Option<(&Sender, &Receiver)> {
        match (
            &self.hosts[2 * flow].application,
            &self.hosts[2 * flow + 1].application,
        ) {
            (Application::Sender(sender), Application::Receiver(receiver)) => Some((sender, receiver)),
            _ => None,
        }
    }

    fn finished(&self, flow: usize) -> bool {
        let traffic = &self.plan.flows[flow].traffic;
        self.ends(flow)
            .is_some_and(|(sender, receiver)| FlowResult::finished(traffic, sender, receiver))
    }

    fn result(&self, point: &Point, wall_seconds: Option<f64>) -> RunResult {
        let last = self.mark(self.end);
        let beginning = Mark::default();
        let [before, after] = &self.marks;
        let after = after.as_ref().unwrap_or(&last);
        // A run that was over before the measurement began has measured nothing.
        let missed = self.plan.measure.start > Time::ZERO;
        let before = before.as_ref().unwrap_or(if missed { after } else { &beginning });
        let nothing = FlowCounts::default();
        let flows = self.plan.flows.iter().enumerate().filter_map(|(i, plan)| {
            let (sender, receiver) = self.ends(i)?;
            let measured = Measured {
                sender,
                receiver,
                watch: self.hosts[2 * i].watch.as_ref(),
                changes: [self.hosts[2 * i].changes(), self.hosts[2 * i + 1].changes()],
                counts: [before.flows.get(i).unwrap_or(&nothing), &after.flows[i]],
                window: before.at..after.at,
                end: self.end,
            };
            Some(FlowResult::new(plan, &measured))
        });
        let flows: Vec<FlowResult> = flows.collect();
        RunResult {
            scenario: self.plan.id.clone(),
            point: point.coordinates.clone(),
            seed: self.seed,
            sim_seconds: self.end.since(Time::ZERO).as_secs_f64(),
            wall_seconds,
            events: self.world.events(),
            packets: self.world.totals().delivered,
            groups: self
                .plan
                .groups
                .iter()
                .map(|group| GroupResult::new(group, &flows))
                .collect(),
            flows,
            links: links(&before.links, &after.links, after.at.since(before.at)),
        }
    }
}

/// When a flow is opened: its start, and a uniform part of its spread from a stream of its own.
fn start(flow: &FlowPlan, seed: u64) -> Time {
    let spread = flow.start_spread.as_nanos();
    let drawn = Stream::named(seed, &format!("flow/{}/start", flow.name)).below(spread.saturating_add(1));
    Time::ZERO + flow.start + Duration::from_nanos(drawn)
}

/// The paths of a flow whose first address is number `first`.
fn attempts(flow: &FlowPlan, first: usize) -> Vec<Attempt> {
    let one = |(index, path): (usize, &PathPlan)| Attempt {
        path: PathAddress {
            local: address_of(first + 2 * index),
            remote: address_of(first + 2 * index + 1),
        },
        backup: path.backup,
    };
    flow.paths.iter().enumerate().map(one).collect()
}

/// What the sender and the receiver of a flow are told of its paths, where the flow has notices.
fn notices(flow: &FlowPlan, attempts: &[Attempt]) -> [Vec<Notice>; 2] {
    [true, false].map(|sends| {
        let paths = flow.paths.iter().zip(attempts).filter(|_| flow.notice);
        let of_path = |(path, attempt): (&PathPlan, &Attempt)| {
            let local = if sends {
                attempt.path.local
            } else {
                attempt.path.remote
            };
            let both = |outage: &Range<Time>| {
                [(outage.start, false), (outage.end, true)].map(|(at, up)| Notice { at, local, up })
            };
            path.outages.iter().flat_map(both).collect::<Vec<Notice>>()
        };
        let mut all: Vec<Notice> = paths.flat_map(of_path).collect();
        all.sort();
        all
    })
}
