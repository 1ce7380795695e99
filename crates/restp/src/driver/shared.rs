//! What an application's handles and the driver share: the machine behind a lock, the flows as their handles see
//! them, and who waits for what.

use super::Joining;
use crate::clock::Clock;
use crate::locals::{Locals, Present, makes_sense};
use crate::socket::{Socket, SocketStats};
use crate::waiters::{StreamWaiters, Waiters};
use restp_base::flow::{CloseReason, FlowId, PathState, Read};
use restp_base::machine::{Event, Input, Machine, PathAddress};
use restp_base::observe::{Changed, Observer, Seen};
use restp_base::streams::StreamEvent;
use restp_base::time::Time;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Waker;

/// Established flows that nobody has accepted yet; further ones are broken off.
const MAX_BACKLOG: usize = 1024;

/// News of paths kept for a handle that does not ask; the oldest go first.
const MAX_PATH_EVENTS: usize = 256;

/// What an application's handles and the driver share.
pub(crate) struct Shared<M> {
    core: Mutex<Core<M>>,
}

impl<M: Machine> Shared<M> {
    pub(crate) fn new(machine: M, locals: Locals) -> Arc<Self> {
        let sockets = locals.sockets();
        Self::on(machine, locals, sockets, Clock::start())
    }

    /// A machine on sockets of another one, which opens and closes them as addresses come and go.
    pub(crate) fn beside(machine: M, sockets: Arc<[Arc<Socket>]>, clock: Clock) -> Arc<Self> {
        Self::on(machine, Locals::default(), sockets, clock)
    }

    fn on(machine: M, locals: Locals, sockets: Arc<[Arc<Socket>]>, clock: Clock) -> Arc<Self> {
        let core = Core {
            machine,
            sockets,
            locals,
            joining: Vec::new(),
            clock,
            now: Time::ZERO,
            flows: BTreeMap::new(),
            backlog: VecDeque::new(),
            acceptors: Waiters::default(),
            sleeping: None,
            closing: false,
            stopped: false,
            broken: false,
            stop_watchers: Waiters::default(),
            socket_stats: SocketStats::default(),
            observer: None,
        };
        Arc::new(Shared {
            core: Mutex::new(core),
        })
    }

    /// The machine and what surrounds it. After a panic inside the machine nothing calls it any more: the driver
    /// ends and every flow is over.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Core<M>> {
        self.core.lock().unwrap_or_else(|poisoned| {
            let mut core = poisoned.into_inner();
            core.fail();
            core
        })
    }
}

/// The machine, its flows as the application sees them, and who waits for what.
pub(crate) struct Core<M> {
    pub(crate) machine: M,
    locals: Locals,
    /// Those of `locals` that are open; another value whenever they change.
    pub(crate) sockets: Arc<[Arc<Socket>]>,
    /// Machines that the driver of this one is to run as well.
    pub(crate) joining: Vec<Joining>,
    clock: Clock,
    now: Time,
    pub(crate) flows: BTreeMap<FlowId, FlowState>,
    pub(crate) backlog: VecDeque<FlowId>,
    pub(crate) acceptors: Waiters,
    /// The driver's waker while it sleeps; while it is awake, or about to be, there is none to call.
    sleeping: Option<Waker>,
    /// No handle accepts any more: the driver ends with its last flow.
    closing: bool,
    /// The driver has ended. What has arrived can still be read.
    pub(crate) stopped: bool,
    /// The machine panicked; it is not to be called any more.
    pub(crate) broken: bool,
    pub(crate) stop_watchers: Waiters,
    pub(crate) socket_stats: SocketStats,
    /// Who is shown what passes and what is counted, if somebody is.
    pub(crate) observer: Option<Observer>,
}

impl<M: Machine> Core<M> {
    /// The time of the present wake-up: of the driver while it is awake, of the caller while it sleeps.
    pub(crate) fn now(&mut self) -> Time {
        if self.sleeping.is_some() {
            self.now = self.clock.now();
        }
        self.now
    }

    /// Shows what passes.
    pub(crate) fn show(&mut self, seen: Seen<'_>) {
        if let Some(observer) = &mut self.observer {
            observer(self.now, seen);
        }
    }

    /// Shows what every flow has lost since the last time, and its counters.
    pub(crate) fn show_flows(&mut self) {
        let Some(observer) = &mut self.observer else {
            return;
        };
        let (mut losses, mut changes) = (Vec::new(), Vec::new());
        for (flow, state) in &mut self.flows {
            self.machine.take_changes(self.now, *flow, &mut changes);
            for changed in changes.drain(..) {
                observer(self.now, Seen::Changed(*flow, &changed));
                state.keep(changed);
            }
            self.machine.take_losses(*flow, &mut losses);
            for loss in losses.drain(..) {
                observer(self.now, Seen::Lost(*flow, &loss));
            }
            if let Some(stats) = self.machine.stats(*flow) {
                observer(self.now, Seen::Measured(*flow, &stats));
            }
        }
    }

    /// The driver is awake. Returns the time of its wake-up, or that of a handle's call which came between: what
    /// the machine sees never goes backwards.
    pub(crate) fn driver_wakes(&mut self, now: Time) -> Time {
        self.sleeping = None;
        self.now = self.now.max(now);
        self.now
    }

    /// The driver has nothing more to do; from now on handles wake it.
    pub(crate) fn driver_sleeps(&mut self, waker: &Waker) {
        self.sleeping = Some(waker.clone());
    }

    /// Has everything come to its end? A handle may outlive its flow, to read what has arrived.
    pub(crate) fn is_over(&self) -> bool {
        self.closing && self.flows.values().all(|state| state.closed.is_some())
    }

    /// The machine has panicked.
    pub(crate) fn fail(&mut self) {
        if !self.broken {
            self.broken = true;
            self.stop();
            self.wake_driver();
        }
    }

    /// The driver has ended, and nobody waits for ever.
    pub(crate) fn stop(&mut self) {
        self.stopped = true;
        self.closing = true;
        self.backlog.clear();
        for joining in self.joining.drain(..) {
            joining.machine.stop(self.socket_stats);
        }
        for state in self.flows.values_mut().filter(|state| state.closed.is_none()) {
            state.close(CloseReason::Aborted);
        }
        self.acceptors.wake();
        self.stop_watchers.wake();
    }

    /// The clock all times of this machine are read from.
    pub(crate) fn clock(&self) -> Clock {
        self.clock
    }

    /// The machine may have something to send, or another deadline. Read [`Core::now`] first.
    pub(crate) fn wake_driver(&mut self) {
        if let Some(driver) = self.sleeping.take() {
            driver.wake();
        }
    }

    /// May sockets come later, with an address that a link gets?
    pub(crate) fn follows_links(&self) -> bool {
        self.locals.follow_links()
    }

    /// This host has the addresses `present`, or its routes have changed: sockets, the machine and flows that take
    /// every path follow.
    pub(crate) fn on_network_change(&mut self, present: &[Present]) {
        let change = self.locals.update(present);
        self.sockets = self.locals.sockets();
        let now = self.now();
        let moved = self.follow_routes();
        let elsewhere = |(local, _): &(SocketAddr, bool)| !moved.contains(local);
        let notices = change.notices.into_iter().filter(elsewhere);
        for (local, up) in notices.chain(moved.iter().map(|local| (*local, true))) {
            self.machine.handle(now, Input::PathNotice { local, up });
        }
        for local in change.added {
            for (flow, state) in &self.flows {
                for &remote in state.remotes.iter().filter(|remote| makes_sense(local, **remote)) {
                    // A flow that has become one of a single path stays so.
                    let _ = self
                        .machine
                        .add_path(now, *flow, PathAddress { local, remote }, false);
                }
            }
        }
        self.wake_driver();
    }

    /// Paths of sockets that are bound to no address go on from the one that the routing table chooses now, if this host has lost
    /// theirs: the lost ones of those that go on.
    fn follow_routes(&self) -> BTreeSet<SocketAddr> {
        let mut moved = BTreeSet::new();
        for socket in self
            .sockets
            .iter()
            .filter(|socket| socket.local().ip().is_unspecified())
        {
            let stats = self.flows.keys().filter_map(|flow| self.machine.stats(*flow));
            let all = stats.flat_map(|stats| stats.paths.into_iter().map(|path| path.path).chain(stats.path));
            let lost = all.filter(|path| socket.serves(path) && self.locals.has_lost(path.local.ip()));
            let lost: BTreeSet<PathAddress> = lost.collect();
            let follow = |path: PathAddress| Some((path, socket.source_for(path.remote).ok()?));
            let paths: Vec<_> = lost.into_iter().filter_map(follow).collect();
            moved.extend(paths.iter().map(|(path, _)| path.local));
            socket.set_moved(paths);
        }
        moved
    }

    /// No new flows: those not accepted are broken off, and the driver ends with the last one.
    pub(crate) fn close(&mut self) {
        self.closing = true;
        while let Some(flow) = self.backlog.pop_front() {
            self.discard(flow);
        }
        self.acceptors.wake();
        self.wake_driver();
    }

    /// Breaks a flow off and forgets it.
    pub(crate) fn discard(&mut self, flow: FlowId) {
        self.remove(flow);
        if !self.stopped {
            let now = self.now();
            self.machine.abort(now, flow);
            self.machine.release(now, flow);
            self.wake_driver();
        }
    }

    /// Lets a flow come to its end by itself: what was written is delivered, what arrives is dropped.
    pub(crate) fn detach(&mut self, flow: FlowId) {
        let over = self.stopped || self.flows.get(&flow).is_none_or(|state| state.closed.is_some());
        if over {
            self.forget(flow);
        } else if let Some(state) = self.flows.get_mut(&flow) {
            state.detached = true;
            self.drop_unread(flow);
            self.refuse_streams(flow);
        }
        self.wake_driver();
    }

    fn drop_unread(&mut self, flow: FlowId) {
        let now = self.now();
        while let Read::Data(_) = self.machine.read(now, flow) {}
    }

    /// Nobody will accept what the peer opens.
    fn refuse_streams(&mut self, flow: FlowId) {
        let now = self.now();
        if let Some(streams) = self.machine.streams(now, flow) {
            while let Some(id) = streams.accept() {
                streams.stop(id, 0);
                streams.reset(id, 0);
            }
        }
    }

    /// Tells those who wait. True when the machine was called on the way.
    pub(crate) fn handle_events(&mut self) -> bool {
        let mut acted = false;
        while let Some(event) = self.machine.poll_event() {
            trace(&event);
            match event {
                Event::Accepted(flow) if self.closing || self.backlog.len() >= MAX_BACKLOG => {
                    acted = true;
                    self.discard(flow);
                }
                Event::Accepted(flow) => {
                    self.flows.insert(
                        flow,
                        FlowState {
                            established: true,
                            ..FlowState::default()
                        },
                    );
                    self.backlog.push_back(flow);
                    self.acceptors.wake();
                }
                Event::Closed(flow, reason) => match self.flows.get_mut(&flow) {
                    Some(state) if state.detached => {
                        acted = true;
                        self.forget(flow);
                    }
                    Some(state) => state.close(reason),
                    None => {}
                },
                Event::Readable(flow) => match self.flows.get_mut(&flow) {
                    Some(state) if state.detached => {
                        acted = true;
                        self.drop_unread(flow);
                    }
                    Some(state) => {
                        state.readers.wake();
                        state.streams.on_last(); // of a flow with streams, only its end can be read
                    }
                    None => {}
                },
                Event::Writable(flow) => {
                    if let Some(state) = self.flows.get_mut(&flow) {
                        state.writers.wake();
                    }
                }
                Event::Path(flow, path, state) => {
                    if let Some(known) = self.flows.get_mut(&flow) {
                        known.news.push_back(PathEvent { path, state });
                        if known.news.len() > MAX_PATH_EVENTS {
                            known.news.pop_front();
                        }
                        known.path_watchers.wake();
                    }
                }
                Event::Stream(flow, event) => match self.flows.get_mut(&flow) {
                    Some(state) if state.detached && event == StreamEvent::Opened => {
                        acted = true;
                        self.refuse_streams(flow);
                    }
                    Some(state) => state.streams.on_event(event),
                    None => {}
                },
                Event::Connected(flow) => {
                    if let Some(state) = self.flows.get_mut(&flow) {
                        state.established = true;
                        state.watchers.wake();
                        state.readers.wake(); // of what a machine can do besides flows
                    }
                }
            }
        }
        acted
    }

    /// Its streams may outlive its handle: who waits for one of them finds that it is over.
    fn remove(&mut self, flow: FlowId) {
        if let Some(mut state) = self.flows.remove(&flow) {
            state.wake_all();
        }
    }

    fn forget(&mut self, flow: FlowId) {
        self.remove(flow);
        if !self.stopped {
            let now = self.now();
            self.machine.release(now, flow);
        }
    }
}

/// What becomes of flows, for logs; that data moves is no news.
fn trace(event: &Event) {
    match event {
        Event::Accepted(flow) => tracing::debug!(flow = flow.0, "accepted"),
        Event::Connected(flow) => tracing::debug!(flow = flow.0, "established"),
        Event::Closed(flow, reason) => tracing::debug!(flow = flow.0, %reason, "over"),
        Event::Path(flow, path, state) => {
            let (local, remote) = (path.local, path.remote);
            tracing::debug!(flow = flow.0, %local, %remote, ?state, "path");
        }
        Event::Readable(_) | Event::Writable(_) | Event::Stream(..) => {}
    }
}

/// One flow as its handle sees it.
#[derive(Debug, Default)]
pub(crate) struct FlowState {
    pub(crate) established: bool,
    pub(crate) closed: Option<CloseReason>,
    /// Its handle is gone after a finish: it ends by itself.
    detached: bool,
    pub(crate) readers: Waiters,
    pub(crate) writers: Waiters,
    /// Those who wait for the beginning or the end.
    pub(crate) watchers: Waiters,
    /// What became of its paths, and who waits for that.
    pub(crate) news: VecDeque<PathEvent>,
    pub(crate) path_watchers: Waiters,
    /// Where it takes every path to, those from later addresses of this host included.
    pub(crate) remotes: Vec<SocketAddr>,
    /// Who waits for something of its streams.
    pub(crate) streams: StreamWaiters,
    /// How its services changed, of what an observer was shown and the application has not asked for.
    pub(crate) changes: VecDeque<Changed>,
}

/// Changes that are kept for an application; the oldest go first.
const MOST_CHANGES: usize = 256;

impl FlowState {
    /// Until the application asks.
    fn keep(&mut self, changed: Changed) {
        if self.changes.len() >= MOST_CHANGES {
            self.changes.pop_front();
        }
        self.changes.push_back(changed);
    }

    fn close(&mut self, reason: CloseReason) {
        self.closed = Some(reason);
        self.wake_all();
    }

    fn wake_all(&mut self) {
        self.readers.wake();
        self.writers.wake();
        self.watchers.wake();
        self.path_watchers.wake();
        self.streams.wake_all();
    }
}

/// What became of one path of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathEvent {
    /// Which.
    pub path: PathAddress,
    /// What it is good for now.
    pub state: PathState,
}
