//! A machine behind its lock as a driver sees it, whatever machine it is.

use super::seat::Port;
use super::{Joining, Work};
use crate::driver::shared::{Core, Shared};
use crate::socket::{Screen, Socket, SocketStats};
use bytes::Bytes;
use restp_base::machine::{Datagram, Ecn, Input, Machine, PathAddress};
use restp_base::observe::Seen;
use restp_base::time::Time;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Waker;

/// What a driver does with a machine. Each call takes the lock once; those that are given the time return the one that the machine
/// saw, which is later where a handle's call came between.
pub(crate) trait Hosted: Send + Sync {
    /// The driver is awake, and hands over the deadline if it has come. `None`: the machine is not to be called any more.
    fn wake(&self, now: Time) -> Option<Awake>;

    /// Hands over datagrams, but for those that `screen` keeps out.
    fn receive(&self, now: Time, run: Run, screen: &mut Screen, stats: &mut SocketStats) -> Time;

    /// Fills the outboxes of `ports`. True when the machine has no more; from then on handles wake the driver by `waker`.
    fn collect(&self, work: &mut Work, ports: &mut [Port], waker: &Waker) -> bool;

    /// The kernel refused what was sent on `paths`.
    fn refuse(&self, now: Time, paths: Vec<PathAddress>) -> Time;

    /// Tells those who wait.
    fn tell(&self);

    /// The next deadline.
    fn deadline(&self) -> Option<Time>;

    /// No handle wants anything of it any more.
    fn is_over(&self) -> bool;

    /// It is on these sockets from now on.
    fn follow(&self, sockets: &Arc<[Arc<Socket>]>);

    /// The driver has ended, for this machine at least.
    fn stop(&self, stats: SocketStats);
}

/// What a machine says to a driver that wakes up.
pub(crate) struct Awake {
    pub(super) now: Time,
    pub(super) sockets: Arc<[Arc<Socket>]>,
    pub(super) joining: Vec<Joining>,
}

/// Datagrams of one message for one machine.
pub(crate) struct Run {
    pub(super) path: PathAddress,
    pub(super) ecn: Ecn,
    /// Bytes of each but perhaps the last.
    pub(super) stride: usize,
    pub(super) bytes: Bytes,
}

impl<M: Machine + Send> Shared<M> {
    /// Calls what is behind the lock, unless there was a panic in it. A panic now ends this machine, and none beside it.
    fn turn<T>(&self, act: impl FnOnce(&mut Core<M>) -> T) -> Option<T> {
        let mut core = self.lock();
        if core.broken {
            return None;
        }
        let result = catch_unwind(AssertUnwindSafe(|| act(&mut core)));
        result.inspect_err(|_| core.fail()).ok()
    }
}

impl<M: Machine + Send> Hosted for Shared<M> {
    fn wake(&self, now: Time) -> Option<Awake> {
        self.turn(|core| {
            let now = core.driver_wakes(now);
            let deadline = core.machine.next_deadline();
            if deadline.is_some_and(|(deadline, _)| deadline <= now) {
                core.machine.handle(now, Input::Deadline);
            }
            Awake {
                now,
                sockets: core.sockets.clone(),
                joining: std::mem::take(&mut core.joining),
            }
        })
    }

    fn receive(&self, now: Time, mut run: Run, screen: &mut Screen, stats: &mut SocketStats) -> Time {
        // One lock for all: handles on other threads wait for the datagrams of one message at most.
        let seen = self.turn(|core| {
            let now = core.driver_wakes(now);
            let mut datagram = Datagram::empty();
            while !run.bytes.is_empty() {
                datagram.path = run.path;
                datagram.ecn = run.ecn;
                datagram.head.clear();
                datagram.body = run.bytes.split_to(run.stride.min(run.bytes.len()));
                if !screen.admits(&datagram.body, run.path.remote) {
                    stats.receive_drops += 1;
                    continue;
                }
                stats.received_datagrams += 1;
                core.show(Seen::Received(&datagram));
                core.machine.handle(now, Input::Datagram(&mut datagram));
            }
            now
        });
        seen.unwrap_or(now)
    }

    fn collect(&self, work: &mut Work, ports: &mut [Port], waker: &Waker) -> bool {
        let done = self.turn(|core| {
            work.now = core.driver_wakes(work.now);
            let mut done = false;
            while !done && ports.iter().all(Port::has_room) {
                done = !core.machine.poll_transmit(work.now, &mut work.datagram);
                if done {
                    break;
                }
                core.show(Seen::Sent(&work.datagram));
                let port = ports.iter_mut().find(|port| port.serves(&work.datagram.path));
                if !port.is_some_and(|port| port.push(&work.datagram)) {
                    // Nobody's, or the queue of a blocked socket is full: lost, as in any queue.
                    work.stats.send_drops += 1;
                }
            }
            // What events made the driver do may have to be sent.
            done &= !core.handle_events();
            core.socket_stats = work.stats;
            core.show_flows();
            // Who joins while the driver is awake wakes nobody.
            done &= core.joining.is_empty();
            if done {
                core.driver_sleeps(waker);
            }
            done
        });
        done.unwrap_or(true)
    }

    fn refuse(&self, now: Time, paths: Vec<PathAddress>) -> Time {
        let seen = self.turn(|core| {
            let now = core.driver_wakes(now);
            for path in paths {
                core.machine.handle(now, Input::Refused(path));
            }
            now
        });
        seen.unwrap_or(now)
    }

    fn tell(&self) {
        self.turn(Core::handle_events);
    }

    fn deadline(&self) -> Option<Time> {
        let deadline = self.turn(|core| core.machine.next_deadline());
        deadline.flatten().map(|(deadline, _)| deadline)
    }

    fn is_over(&self) -> bool {
        self.lock().is_over()
    }

    fn follow(&self, sockets: &Arc<[Arc<Socket>]>) {
        self.lock().sockets = sockets.clone();
    }

    fn stop(&self, stats: SocketStats) {
        let mut core = self.lock();
        core.socket_stats = stats;
        core.stop();
    }
}
