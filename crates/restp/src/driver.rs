//! The loop that turns a [`Machine`] on real sockets. It is the loop of the simulator's host with a clock, and
//! knows no protocol: any machine runs over UDP through it.
//!
//! One task owns sockets and timer. The machine itself stands behind a lock that application handles share, so
//! a write or a read is one function call on the machine: no queue between application and protocol, no copy,
//! and no wake-up per message. The driver is woken once for all the calls an application makes between two of
//! its turns, and what they produced leaves in batches.

use crate::clock::Clock;
use crate::shared::Shared;
use crate::socket::{Inbox, Outbox, Screen, Socket, SocketStats, ecn_of};
use restp_base::machine::{Datagram, Input, Machine, PathAddress};
use restp_base::observe::Seen;
use restp_base::time::{Duration, Time};
use restp_seal::gate::Gate;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Receive-and-send rounds of one wake-up. A flood keeps the task busy no longer than this (about 3 000 full
/// datagrams, one millisecond); then the runtime's other tasks have their turn.
const ROUNDS: usize = 4;

/// Full outboxes sent in one round before the sockets are read again: acknowledgements must not wait.
const SENDS_PER_ROUND: usize = 4;

/// How long a closed endpoint answers late repetitions of its peers before its sockets go away.
const LINGER: Duration = Duration::from_millis(500);

/// The shortest sleep the runtime's timer knows; also the pause after an error of a receive.
const TICK: Duration = Duration::from_millis(1);

/// The task that owns sockets and timer. It ends when its endpoint is closed and every flow is over.
pub(crate) struct Driver<M: Machine> {
    shared: Arc<Shared<M>>,
    clock: Clock,
    now: Time,
    inbox: Inbox,
    /// The sockets this wake-up works with; they change with the addresses of this host.
    sockets: Arc<[Arc<Socket>]>,
    gate: Option<Gate>,
    ports: Vec<Port>,
    /// Reused for every datagram out.
    datagram: Datagram,
    timer: Pin<Box<tokio::time::Sleep>>,
    /// What the timer is set to. It may be earlier than needed: then the wake-up does nothing, which is cheaper
    /// than to move the timer for each packet that moves a deadline.
    armed: Option<Time>,
    linger_until: Option<Time>,
    stats: SocketStats,
}

/// A socket and what waits to leave through it.
struct Port {
    socket: Arc<Socket>,
    screen: Screen,
    outbox: Outbox,
    /// The kernel has no room for it; the task wakes when there is.
    blocked: bool,
}

impl Port {
    fn new(socket: Arc<Socket>, gate: Option<Gate>) -> Self {
        Port {
            socket,
            screen: Screen::new(gate),
            outbox: Outbox::new(),
            blocked: false,
        }
    }
}

/// How a round of sending ended.
#[derive(PartialEq, Eq)]
enum Sending {
    /// Nothing more to send; handles wake the driver from now on.
    Done,
    /// There is more, and its turn is over.
    More,
    /// The kernel has no room in any socket; the task wakes when there is.
    Blocked,
}

impl<M: Machine> Driver<M> {
    /// `gate`: what tells unknown peers from others, if the machine does.
    pub(crate) fn new(shared: Arc<Shared<M>>, gate: Option<Gate>) -> Self {
        let (clock, sockets) = {
            let core = shared.lock();
            (core.clock(), core.sockets.clone())
        };
        Driver {
            ports: (sockets.iter().cloned())
                .map(|socket| Port::new(socket, gate.clone()))
                .collect(),
            gate,
            sockets,
            shared,
            clock,
            now: Time::ZERO,
            inbox: Inbox::new(),
            datagram: Datagram::empty(),
            timer: Box::pin(tokio::time::sleep_until(clock.instant(Time::ZERO).into())),
            armed: None,
            linger_until: None,
            stats: SocketStats::default(),
        }
    }

    /// Reads the clock, and hands over the deadline if it has come. False when the machine is not to be called any more.
    fn wake_up(&mut self) -> bool {
        self.now = self.clock.now();
        if self.armed.is_some_and(|armed| armed <= self.now) {
            self.armed = None;
        }
        let mut core = self.shared.lock();
        self.now = core.driver_wakes(self.now);
        if core.broken {
            return false;
        }
        if !Arc::ptr_eq(&self.sockets, &core.sockets) {
            self.sockets = core.sockets.clone();
            let before = std::mem::take(&mut self.ports);
            let kept = |socket: &Arc<Socket>| before.iter().any(|port| Arc::ptr_eq(&port.socket, socket));
            let added: Vec<_> = self
                .sockets
                .iter()
                .filter(|socket| !kept(socket))
                .cloned()
                .collect();
            let current = |port: &Port| {
                self.sockets
                    .iter()
                    .any(|socket| Arc::ptr_eq(socket, &port.socket))
            };
            self.ports = before.into_iter().filter(current).collect();
            let gate = &self.gate;
            (self.ports).extend(added.into_iter().map(|socket| Port::new(socket, gate.clone())));
        }
        if core
            .machine
            .next_deadline()
            .is_some_and(|(deadline, _)| deadline <= self.now)
        {
            core.machine.handle(self.now, Input::Deadline);
        }
        true
    }

    /// Reads every socket once. True when one of them may have more.
    fn receive(&mut self, cx: &mut Context<'_>) -> bool {
        let mut more = false;
        for Port { socket, screen, .. } in &mut self.ports {
            socket.screened_by(screen, self.now);
            match socket.poll_receive(cx, &mut self.inbox) {
                Poll::Pending => continue,
                Poll::Ready(Ok(())) => more = true,
                Poll::Ready(Err(error)) => {
                    tracing::debug!(%error, local = %socket.local(), "receiving failed");
                    self.stats.receive_errors += 1;
                    continue;
                }
            }
            self.stats.receive_calls += 1;
            // These may have come after the last reading, by as long as the system withheld the processor since: with that
            // time a round trip would look shorter than the path allows, and nothing forgets a shortest round trip soon.
            self.now = self.clock.now();
            for (meta, mut bytes) in self.inbox.messages() {
                if meta.stride == 0 || meta.addr.port() == 0 {
                    self.stats.receive_drops += 1;
                    continue;
                }
                let (path, ecn) = (socket.path(&meta), ecn_of(&meta));
                // One lock per message: handles on other threads wait for its datagrams at most.
                let mut core = self.shared.lock();
                self.now = core.driver_wakes(self.now);
                while !bytes.is_empty() {
                    self.datagram.path = path;
                    self.datagram.ecn = ecn;
                    self.datagram.head.clear();
                    self.datagram.body = bytes.split_to(meta.stride.min(bytes.len()));
                    if !screen.admits(&self.datagram.body, path.remote) {
                        self.stats.receive_drops += 1;
                        continue;
                    }
                    self.stats.received_datagrams += 1;
                    core.show(Seen::Received(&self.datagram));
                    core.machine.handle(self.now, Input::Datagram(&mut self.datagram));
                }
            }
        }
        more
    }

    /// Takes from the machine and sends, one round of outboxes after the other. A socket without room keeps what it has,
    /// and the others go on.
    fn send(&mut self, cx: &mut Context<'_>) -> Sending {
        for _ in 0..SENDS_PER_ROUND {
            self.flush(cx);
            if !self.ports.is_empty() && self.ports.iter().all(|port| port.blocked) {
                self.shared.lock().handle_events();
                return Sending::Blocked;
            }
            if self.collect(cx) {
                // The last datagrams. Where the kernel has no room now, its notice wakes the task.
                return if self.flush(cx) {
                    Sending::More
                } else {
                    Sending::Done
                };
            }
        }
        Sending::More
    }

    /// Fills the outboxes. True when the machine has no more; from then on handles wake the driver.
    fn collect(&mut self, cx: &mut Context<'_>) -> bool {
        self.now = self.clock.now();
        let mut core = self.shared.lock();
        self.now = core.driver_wakes(self.now);
        let mut done = false;
        while !done
            && self
                .ports
                .iter()
                .all(|port| port.blocked || port.outbox.has_room())
        {
            done = !core.machine.poll_transmit(self.now, &mut self.datagram);
            if done {
                break;
            }
            core.show(Seen::Sent(&self.datagram));
            let path = &self.datagram.path;
            let port = self.ports.iter_mut().find(|port| port.socket.serves(path));
            match port {
                Some(port) if port.outbox.has_room() && path.remote.port() != 0 => {
                    port.outbox.push(&self.datagram, port.socket.max_segments());
                }
                // Nobody's, or the queue of a blocked socket is full: lost, as in any queue.
                _ => self.stats.send_drops += 1,
            }
        }
        // What events made the driver do may have to be sent.
        done &= !core.handle_events();
        core.socket_stats = self.stats;
        core.show_flows();
        if done {
            core.driver_sleeps(cx.waker());
        }
        done
    }

    /// Hands the outboxes to the kernel, and tells the machine which paths it refused. True when that may have made the
    /// machine do something.
    fn flush(&mut self, cx: &mut Context<'_>) -> bool {
        let mut refused: Vec<PathAddress> = Vec::new();
        for Port {
            socket,
            outbox,
            blocked,
            ..
        } in &mut self.ports
        {
            *blocked = false;
            for batch in outbox.batches().iter_mut().filter(|batch| !batch.is_sent()) {
                *blocked |= socket.poll_send(cx, batch, &mut self.stats).is_pending();
                if batch.is_refused() && !refused.contains(batch.path()) {
                    refused.push(*batch.path());
                }
            }
            if !*blocked {
                outbox.clear();
            }
        }
        if refused.is_empty() {
            return false;
        }
        self.stats.refusals += refused.len() as u64;
        let mut core = self.shared.lock();
        self.now = core.driver_wakes(self.now);
        for path in refused {
            core.machine.handle(self.now, Input::Refused(path));
        }
        true
    }

    /// The end of the driver, if it has come.
    fn is_over(&mut self) -> bool {
        let core = self.shared.lock();
        if !core.is_over() {
            return false;
        }
        let until = *self.linger_until.get_or_insert(self.now + LINGER);
        let idle =
            core.machine.next_deadline().is_none() && self.ports.iter().all(|port| port.outbox.is_empty());
        idle || self.now >= until
    }

    /// Sets the timer to the next deadline.
    fn sleep(&mut self, cx: &mut Context<'_>, receive_failed: bool) {
        let deadline = self
            .shared
            .lock()
            .machine
            .next_deadline()
            .map(|(deadline, _)| deadline);
        let retry = receive_failed.then_some(self.now + TICK);
        let screens = self.ports.iter().map(|port| port.screen.wakes());
        let wakes = [deadline, self.linger_until, retry].into_iter().chain(screens);
        let Some(mut wake) = wakes.flatten().min() else {
            return;
        };
        // A deadline that was handled and still stands waits for something else, such as room in the kernel.
        if wake <= self.now {
            wake = self.now + TICK;
        }
        if self.armed.is_none_or(|armed| wake < armed) {
            self.timer.as_mut().reset(self.clock.instant(wake).into());
            self.armed = Some(wake);
        }
        if self.timer.as_mut().poll(cx).is_ready() {
            self.armed = None;
            cx.waker().wake_by_ref();
        }
    }
}

impl<M: Machine> Future for Driver<M>
where
    Self: Unpin,
{
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let driver = self.get_mut();
        if !driver.wake_up() {
            return Poll::Ready(());
        }
        let errors = driver.stats.receive_errors;
        for _ in 0..ROUNDS {
            let received = driver.receive(cx);
            let sending = driver.send(cx);
            if !received && sending != Sending::More {
                if driver.is_over() {
                    return Poll::Ready(());
                }
                driver.sleep(cx, driver.stats.receive_errors > errors);
                return Poll::Pending;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl<M: Machine> Drop for Driver<M> {
    /// Also when the runtime shuts down or the machine panicked: nobody waits for ever.
    fn drop(&mut self) {
        let mut core = self.shared.lock();
        core.socket_stats = self.stats;
        core.stop();
    }
}
