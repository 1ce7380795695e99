//! One side: its machine, its clock and its applications. The loop of [`crate::host`], with faults of hosts: a
//! machine that starts again, a clock that leaps, and a lower layer that reports what is true and what is not.

use super::application::{Application, Stage};
use super::faults::Fault;
use super::paths::at;
use super::stage::{Maker, Wire};
use super::trace::{Trace, What};
use super::{Case, Side};
use crate::host::address_of;
use restp_base::machine::{Datagram, Input, Machine, PathAddress};
use restp_base::time::{Duration, Time};
use restp_proto::EndpointConfig;
use std::collections::VecDeque;
use std::net::SocketAddr;

pub struct Host<'a> {
    side: Side,
    config: EndpointConfig,
    make: Maker<'a>,
    machine: Box<dyn Machine>,
    /// How far its clock is ahead of the world's.
    ahead: Duration,
    faults: VecDeque<(Time, Break)>,
    application: Application<'a>,
}

#[derive(Clone, Copy)]
enum Break {
    Restart,
    Jump(Duration),
    Notice { local: SocketAddr, up: bool },
}

/// More packets than any machine sends at one instant.
const STUCK: u64 = 200_000;

impl<'a> Host<'a> {
    pub fn new(case: &'a Case, side: Side, config: EndpointConfig, make: Maker<'a>) -> Self {
        let mut faults: Vec<(Time, Break)> = Vec::new();
        for fault in &case.faults {
            match *fault {
                Fault::Restart { side: of, at_ms } if of == side => faults.push((at(at_ms), Break::Restart)),
                Fault::ClockJump {
                    side: of,
                    at_ms,
                    by_ms,
                } if of == side => {
                    faults.push((at(at_ms), Break::Jump(Duration::from_millis(by_ms))));
                }
                Fault::Notice {
                    side: of,
                    path,
                    at_ms,
                    up,
                } if of == side => {
                    let local = address(side, path).local;
                    faults.push((at(at_ms), Break::Notice { local, up }));
                }
                _ => {}
            }
        }
        faults.sort_by_key(|(at, _)| *at);
        Host {
            side,
            machine: make(&config),
            config,
            make,
            ahead: Duration::ZERO,
            faults: faults.into(),
            application: Application::new(case, side),
        }
    }

    pub fn arrival(&mut self, now: Time, datagram: &mut Datagram) {
        datagram.path = datagram.path.reversed();
        self.machine.handle(now + self.ahead, Input::Datagram(datagram));
    }

    /// Its timer ran out. True when its machine has been replaced.
    pub fn wake(&mut self, now: Time, trace: &mut Trace) -> bool {
        let mut restarted = false;
        while let Some((_, what)) = self.faults.pop_front_if(|(at, _)| *at <= now) {
            match what {
                Break::Restart => {
                    restarted = true;
                    self.machine = (self.make)(&self.config);
                    self.application.forget();
                    trace.add(now, What::Restarted { side: self.side });
                }
                Break::Jump(by) => {
                    self.ahead += by;
                    trace.add(now, What::Jumped { side: self.side, by });
                }
                Break::Notice { local, up } => {
                    let input = Input::PathNotice { local, up };
                    self.machine.handle(now + self.ahead, input);
                }
            }
        }
        let clock = now + self.ahead;
        if self.machine.next_deadline().is_some_and(|(at, _)| at <= clock) {
            trace.wakeups += 1;
            self.machine.handle(clock, Input::Deadline);
        }
        restarted
    }

    /// Everything that follows from one input; `cause` is the conversation of the packet it was. `false`: there is
    /// no end to it.
    #[must_use]
    pub fn settle(
        &mut self,
        now: Time,
        cause: Option<usize>,
        wire: &mut Wire<'_>,
        trace: &mut Trace,
    ) -> bool {
        let clock = now + self.ahead;
        let mut sent = 0;
        loop {
            let before = trace.records.len();
            while self.machine.poll_transmit(clock, &mut wire.out) {
                if let Some(refused) = wire.send(now, self.side, trace) {
                    self.machine.handle(clock, Input::Refused(refused));
                }
                sent += 1;
                if sent > STUCK {
                    return false;
                }
            }
            while let Some(event) = self.machine.poll_event() {
                self.application
                    .on(&event, cause, &mut stage(now, clock, &mut self.machine, trace));
            }
            let released = self
                .application
                .act(&mut stage(now, clock, &mut self.machine, trace));
            if trace.records.len() == before && !released {
                return true;
            }
        }
    }

    /// When it wants to act, by the clock of the world.
    pub fn next(&self, now: Time) -> Time {
        let deadline = self.machine.next_deadline().map_or(Time::MAX, |(at, _)| {
            Time::from_nanos(at.as_nanos().saturating_sub(self.ahead.as_nanos()))
        });
        let fault = self.faults.front().map_or(Time::MAX, |(at, _)| *at);
        deadline.min(fault).min(self.application.next(now))
    }

    /// Flows that the machine holds.
    pub fn held(&self) -> usize {
        self.machine.held()
    }

    /// Does the machine still know the flow of `end`?
    pub fn remembers(&self, end: usize) -> bool {
        let flow = self.application.flow(end);
        flow.is_some_and(|flow| self.machine.stats(flow).is_some())
    }
}

/// The addresses of path number `path`, as `side` sees them.
pub fn address(side: Side, path: usize) -> PathAddress {
    PathAddress {
        local: address_of(2 * path + side.index()),
        remote: address_of(2 * path + side.other().index()),
    }
}

/// The path that a packet of `side` between these addresses takes. The server may know the client by any port that the
/// translator has given it.
pub fn path_of(case: &Case, side: Side, mut pair: PathAddress) -> Option<usize> {
    if side == Side::Server {
        pair.remote.set_port(0);
    }
    (0..case.paths()).find(|path| address(side, *path) == pair)
}

fn stage<'s>(now: Time, clock: Time, machine: &'s mut Box<dyn Machine>, trace: &'s mut Trace) -> Stage<'s> {
    Stage {
        now,
        clock,
        machine: &mut **machine,
        trace,
    }
}
