//! One point, one seed, one result.

use super::capture::framing;
use super::observer::{Advancing, Nobody, Observer, Shown};
use super::result::{RunError, RunResult, STUCK};
use super::setting::{Owner, Setting};
use super::{Job, Options, Watched};
use crate::host::{Application, IP_HEADER_BYTES, Seat};
use crate::metrics::{
    CauseLedger, FlowCounts, FlowResult, GroupResult, HostCounts, Measured, RepairMeter, WindowMeter, links,
};
use crate::scenario::{HostPlan, Plan, Point};
use crate::traffic::{Receiver, Sender, Traffic};
use restp_base::machine::Datagram;
use restp_base::observe::Loss;
use restp_base::time::Time;
use restp_sim::trace::TraceEvent;
use restp_sim::{HostEvent, LinkStats};
use std::ops::Range;

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
    run.setting.world.trace(sink);
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
        run.setting.world.capture(framing(&point.plan, sink));
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
    setting: Setting,
    /// Of each flow: why its sender lost segments, and whether it says which.
    ledgers: Vec<(CauseLedger, bool)>,
    /// Of each flow: what its sender's losses cost the receiver.
    repairs: Vec<RepairMeter>,
    /// What each host of the plan sent and received.
    counts: Vec<HostCounts>,
    /// Of each flow: the windows of its sender.
    meters: Vec<WindowMeter>,
    /// What had been counted when the measurement began and when it ended, where that is within the run.
    marks: [Option<Mark>; 2],
    end: Time,
    /// Flows that are finished, and how many are not.
    finished: Vec<bool>,
    open: usize,
}

/// Everything counted up to a moment. The default is that of the beginning.
#[derive(Default)]
struct Mark {
    at: Time,
    flows: Vec<FlowCounts>,
    hosts: Vec<HostCounts>,
    links: Vec<LinkStats>,
}

impl<'a> Replication<'a> {
    fn new(plan: &'a Plan, seed: u64) -> Result<Self, RunError> {
        Ok(Replication {
            plan,
            seed,
            setting: Setting::new(plan, seed)?,
            ledgers: plan.flows.iter().map(|_| Default::default()).collect(),
            repairs: vec![RepairMeter::default(); plan.flows.len()],
            counts: vec![HostCounts::default(); plan.hosts.len()],
            meters: plan.flows.iter().map(|_| WindowMeter::default()).collect(),
            marks: [None, None],
            end: Time::ZERO + plan.duration,
            finished: vec![false; plan.flows.len()],
            open: plan.flows.len(),
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
        let mut losses = Vec::new();
        loop {
            let until = self.next_mark().unwrap_or(self.end);
            let Some((now, event)) = self.setting.world.next(until, &mut arrived) else {
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
            match self.setting.owners.of(id) {
                Owner::Cache(cache) => self.show(now, cache, &mut arrived),
                Owner::Host(host, seat) => {
                    let arrived = matches!(event, HostEvent::Arrival { .. }).then_some((seat, &mut arrived));
                    self.step(now, host, arrived, &mut out, observer)?;
                    self.after(now, host, &mut losses, observer)?;
                }
            }
            if self.open == 0 {
                self.end = now;
                return Ok(());
            }
        }
    }

    /// A cache is shown what passes.
    fn show(&mut self, now: Time, index: usize, passing: &mut Box<Datagram>) {
        let Setting {
            world,
            caches,
            directory,
            ..
        } = &mut self.setting;
        let shown = &mut caches[index];
        let counts = &mut self.counts[shown.plan];
        counts.on_received(passing.len());
        let mut answers = Vec::new();
        if shown.cache.on_passing(now, passing, &mut answers) {
            world.pass_on(now, passing);
        }
        for answer in answers {
            let Some((_, to)) = directory.places(answer.path) else {
                continue;
            };
            counts.on_sent(answer.len(), answer.body.len());
            let bytes = (IP_HEADER_BYTES + answer.len()) as u32;
            world.send(now, shown.id, to, bytes, &mut Box::new(answer));
        }
    }

    /// A host takes a datagram, for a seat if it is for one, or its timer has run out; and does what follows.
    fn step(
        &mut self,
        now: Time,
        index: usize,
        arrived: Option<(Option<usize>, &mut Box<Datagram>)>,
        out: &mut Box<Datagram>,
        observer: &mut impl Observer,
    ) -> Result<(), RunError> {
        let Setting {
            world,
            hosts,
            directory,
            shared,
            ..
        } = &mut self.setting;
        let host = &mut hosts[index];
        let shared = shared.get(index);
        let mut shared = shared.map(|plan| (&self.plan.hosts[*plan], &mut self.counts[*plan]));
        let step = match arrived {
            Some((seat, datagram)) => {
                if let Some(seat) = seat {
                    let end = host.application(seat).end;
                    if let Some(segment) = datagram.segment.filter(|_| !end.opens) {
                        self.repairs[end.flow].on_arrived(now, segment);
                    }
                    observer.arrived(now, end, datagram);
                }
                if let Some((_, counts)) = &mut shared {
                    counts.on_received(datagram.len());
                }
                host.arrival(now, seat, datagram);
                Ok(())
            }
            None => host.wake(now),
        };
        let sent = |end: Option<_>, datagram: &Datagram| {
            if let Some(end) = end {
                observer.sent(now, end, datagram);
            }
            if let Some((plan, counts)) = &mut shared {
                let numbers = plan
                    .transport()
                    .and_then(|transport| transport.numbers(datagram, datagram.path.reversed()));
                counts.on_sent(datagram.len(), numbers.map_or(0, |numbers| numbers.payload_bytes));
            }
        };
        step.and_then(|()| host.settle(now, world, directory, out, sent))
            .map_err(|(end, error)| RunError::Traffic {
                flow: self.plan.flows[end.flow].name.clone(),
                seed: self.seed,
                error,
            })
    }

    /// What becomes of the flows that a step of a host had to do with.
    fn after(
        &mut self,
        now: Time,
        index: usize,
        losses: &mut Vec<Loss>,
        observer: &mut impl Observer,
    ) -> Result<(), RunError> {
        for number in 0..self.setting.hosts[index].touched().len() {
            let seat = self.setting.hosts[index].touched()[number];
            let end = self.setting.hosts[index].application(seat).end;
            if end.opens {
                self.note_losses(now, index, seat, losses, observer);
                self.note_windows(now, index, seat);
            }
            let Setting { world, hosts, .. } = &mut self.setting;
            let host = &hosts[index];
            observer.settled(now, host.application(seat), host, world)?;
            if !self.finished[end.flow] && self.is_finished(end.flow) {
                self.finished[end.flow] = true;
                self.open -= 1;
            }
        }
        Ok(())
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
        let counts = |flow: usize| {
            let Some((sender, receiver)) = self.ends(flow) else {
                return FlowCounts::default();
            };
            let [from, to] = self.setting.seats(flow).map(|place| {
                let machine = self.setting.hosts[place.host].machine();
                self.setting.seat(place).stats(machine)
            });
            let (ledger, tells) = &self.ledgers[flow];
            let counts = FlowCounts::of((sender, from), (receiver, to), tells.then(|| ledger.causes()));
            let counts = match self.plan.flows[flow].asks_for_data() {
                true => counts.driven_by_receiver(),
                false => counts,
            };
            FlowCounts {
                repairs: self.repairs[flow].sum(),
                windows: self.meters[flow].sums(at),
                ..counts
            }
        };
        Mark {
            at,
            flows: (0..self.plan.flows.len()).map(counts).collect(),
            hosts: (0..self.plan.hosts.len())
                .map(|host| self.host_counts(host))
                .collect(),
            links: self.setting.world.link_stats(),
        }
    }

    fn host_counts(&self, host: usize) -> HostCounts {
        let cache = self.setting.caches.iter().find(|cache| cache.plan == host);
        HostCounts {
            cache: cache.map(|shown| shown.cache.counters()),
            ..self.counts[host]
        }
    }

    /// What the network has lost, and what the sender at a seat takes for lost.
    fn note_losses(
        &mut self,
        now: Time,
        host: usize,
        seat: usize,
        losses: &mut Vec<Loss>,
        observer: &mut impl Observer,
    ) {
        let Setting {
            world, hosts, owners, ..
        } = &mut self.setting;
        for lost in world.take_lost() {
            let end = owners.end_at(lost.from, hosts);
            if let Some(end) = end.filter(|end| end.opens) {
                self.ledgers[end.flow].0.on_lost(lost);
                self.repairs[end.flow].on_lost(lost.segment);
            }
        }
        let end = self.setting.hosts[host].application(seat).end;
        let Some(flow) = self.setting.hosts[host].take_losses(seat, losses) else {
            return;
        };
        let (ledger, tells) = &mut self.ledgers[end.flow];
        *tells = true;
        for loss in losses.drain(..) {
            if let Some((from, _)) = self.setting.directory.places(loss.path) {
                ledger.on_declared(from, &loss);
            }
            observer.lost(now, end, flow, &loss);
        }
    }

    /// What window the sender at a seat has.
    fn note_windows(&mut self, now: Time, host: usize, seat: usize) {
        let host = &self.setting.hosts[host];
        let seat = host.application(seat);
        let meter = &mut self.meters[seat.end.flow];
        if !meter.is_due(now) {
            return;
        }
        if let Application::Sender(sender) = &seat.application
            && let Some(stats) = sender.flow().and_then(|id| host.machine().stats(id))
        {
            meter.look(now, &stats, sender.paths()[0].path);
        }
    }

    fn ends(&self, flow: usize) -> Option<(&Sender, &Receiver)> {
        let [from, to] = self.setting.seats(flow).map(|place| self.setting.seat(place));
        match (&from.application, &to.application) {
            (Application::Sender(sender), Application::Receiver(receiver)) => Some((sender, receiver)),
            _ => None,
        }
    }

    fn is_finished(&self, flow: usize) -> bool {
        let traffic = &self.plan.flows[flow].traffic;
        // Asked after every event, so what has no end comes first.
        !matches!(traffic, Traffic::Bulk)
            && self
                .ends(flow)
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
            let [opener, server]: [&Seat; 2] = self.setting.seats(i).map(|place| self.setting.seat(place));
            let measured = Measured {
                sender,
                receiver,
                watch: opener.watch.as_ref(),
                sawtooth: opener.sawtooth.as_ref().or(server.sawtooth.as_ref()),
                changes: [opener.changes(), server.changes()],
                counts: [before.flows.get(i).unwrap_or(&nothing), &after.flows[i]],
                window: before.at..after.at,
                end: self.end,
            };
            Some(FlowResult::new(plan, &measured))
        });
        let flows: Vec<FlowResult> = flows.collect();
        let host = |(index, plan): (usize, &HostPlan)| {
            let was = before.hosts.get(index).copied().unwrap_or_default();
            after.hosts[index].since(was, &plan.name)
        };
        RunResult {
            scenario: self.plan.id.clone(),
            point: point.coordinates.clone(),
            seed: self.seed,
            sim_seconds: self.end.since(Time::ZERO).as_secs_f64(),
            wall_seconds,
            events: self.setting.world.events(),
            packets: self.setting.world.totals().delivered,
            groups: self
                .plan
                .groups
                .iter()
                .map(|group| GroupResult::new(group, &flows))
                .collect(),
            flows,
            hosts: self.plan.hosts.iter().enumerate().map(host).collect(),
            links: links(&before.links, &after.links, after.at.since(before.at)),
        }
    }
}
