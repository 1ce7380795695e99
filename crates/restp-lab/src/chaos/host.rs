//! One side: its machine, its clock and its applications. The loop of [`crate::host`], with faults of hosts: a
//! machine that starts again, a clock that leaps, and a lower layer that reports what is true and what is not.

use super::application::{Application, Stage};
use super::faults::Fault;
use super::guests::Guests;
use super::ledger::Party;
use super::paths::{address, at};
use super::seat::{Maker, Seat};
use super::trace::{Trace, What};
use super::watch::{Began, Watch};
use super::wire::Wire;
use super::{Case, Side};
use restp_base::flow::FlowId;
use restp_base::machine::{Datagram, Event, Input, Machine};
use restp_base::time::{Duration, Time};
use restp_proto::EndpointConfig;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

pub struct Host<'a> {
    case: &'a Case,
    side: Side,
    seat: Seat<'a>,
    seal: Watch,
    guests: Guests,
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
            case,
            side,
            seat: Seat::new(case, side, config, make),
            seal: Watch::default(),
            guests: Guests::default(),
            ahead: Duration::ZERO,
            faults: faults.into(),
            application: Application::new(case, side),
        }
    }

    /// A datagram arrives, along this path as this side sees it.
    pub fn arrival(&mut self, now: Time, datagram: &mut Datagram, wire: &mut Wire<'_>, trace: &mut Trace) {
        let early = self.seal.on_arrival(now, self.side, datagram, wire, trace);
        let clock = now + self.ahead;
        self.seat.machine_mut().handle(clock, Input::Datagram(datagram));
        self.take_notes(now, early, wire, trace);
        self.seal.weigh(self.seat.work());
    }

    /// Its timer ran out. True when its machine has been replaced.
    pub fn wake(&mut self, now: Time, wire: &mut Wire<'_>, trace: &mut Trace) -> bool {
        let mut restarted = false;
        while let Some((_, what)) = self.faults.pop_front_if(|(at, _)| *at <= now) {
            match what {
                Break::Restart => {
                    restarted = true;
                    self.finish(now, trace);
                    self.seat.occupy(now + self.ahead);
                    self.application.forget();
                    self.guests.forget();
                    trace.add(now, What::Restarted { side: self.side });
                }
                Break::Jump(by) => {
                    self.ahead += by;
                    trace.add(now, What::Jumped { side: self.side, by });
                }
                Break::Notice { local, up } => {
                    let input = Input::PathNotice { local, up };
                    self.seat.machine_mut().handle(now + self.ahead, input);
                }
            }
        }
        let clock = now + self.ahead;
        if self
            .seat
            .machine()
            .next_deadline()
            .is_some_and(|(at, _)| at <= clock)
        {
            trace.wakeups += 1;
            self.seat.machine_mut().handle(clock, Input::Deadline);
        }
        self.take_notes(now, false, wire, trace);
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
            while self.seat.machine_mut().poll_transmit(clock, &mut wire.out) {
                self.take_notes(now, false, wire, trace);
                if let Some(refused) = wire.send(now, self.side, trace) {
                    self.seat.machine_mut().handle(clock, Input::Refused(refused));
                }
                sent += 1;
                if sent > STUCK {
                    return false;
                }
            }
            self.take_notes(now, false, wire, trace);
            while let Some(event) = self.seat.machine_mut().poll_event() {
                self.take_notes(now, false, wire, trace);
                self.on(now, &event, cause, trace);
            }
            let released = self
                .application
                .act(&mut stage(now, clock, self.seat.machine_mut(), trace));
            let acted = self.guests_act(now, trace);
            self.note_told(now, trace);
            if trace.records.len() == before && !released && !acted {
                return true;
            }
        }
    }

    /// Takes one event of the machine; `cause` as in [`Host::settle`].
    fn on(&mut self, now: Time, event: &Event, cause: Option<usize>, trace: &mut Trace) {
        let mut stage = stage(now, now + self.ahead, self.seat.machine_mut(), trace);
        let cause = match event {
            Event::Accepted(flow) => match self.seal.began(*flow) {
                Some(Began::Guest) => return self.guests.welcome(*flow),
                Some(Began::Conversation(number)) => Some(number),
                None => cause,
            },
            Event::Closed(flow, _) if self.guests.end(*flow, &mut stage) => return,
            _ => cause,
        };
        self.application.on(event, cause, &mut stage);
    }

    /// Puts on record what passed between the engine and the seal, in a datagram with early data or not.
    fn take_notes(&mut self, now: Time, early: bool, wire: &mut Wire<'_>, trace: &mut Trace) {
        for note in self.seat.notes() {
            self.seal
                .take(now, self.side, note, early, &self.application, wire, trace);
        }
    }

    fn guests_act(&mut self, now: Time, trace: &mut Trace) -> bool {
        let told: BTreeMap<FlowId, Party> = (self.guests.flows())
            .filter_map(|flow| Some((flow, self.seat.told(flow)?)))
            .collect();
        let mut stage = stage(now, now + self.ahead, self.seat.machine_mut(), trace);
        self.guests.act(self.case.healed_at(), &told, &mut stage)
    }

    /// Puts on record whose keys the other ends have, once that is told.
    fn note_told(&mut self, now: Time, trace: &mut Trace) {
        for (end, flow) in self.application.flows() {
            if let Some(party) = self
                .seat
                .told(*flow)
                .filter(|party| self.seal.is_news(*end, *party))
            {
                trace.add(now, What::Told { end: *end, party });
            }
        }
    }

    /// Its applications have waited for long enough, and break off what is not over; which ends these are.
    pub fn let_go(&mut self, now: Time, trace: &mut Trace) -> Vec<usize> {
        let mut stage = stage(now, now + self.ahead, self.seat.machine_mut(), trace);
        self.application.let_go(&mut stage)
    }

    /// The life of its machine is over, or the run is.
    pub fn finish(&mut self, now: Time, trace: &mut Trace) {
        if let Some((.., stats)) = self.seat.work() {
            trace.add(now, What::Worked(self.seal.finish(now, &stats)));
        }
    }

    /// When it wants to act, by the clock of the world.
    pub fn next(&self, now: Time) -> Time {
        let deadline = self.seat.machine().next_deadline().map_or(Time::MAX, |(at, _)| {
            Time::from_nanos(at.as_nanos().saturating_sub(self.ahead.as_nanos()))
        });
        let fault = self.faults.front().map_or(Time::MAX, |(at, _)| *at);
        let guests = self.guests.next(self.case.healed_at());
        deadline.min(fault).min(self.application.next(now)).min(guests)
    }

    /// Flows that the machine holds.
    pub fn held(&self) -> usize {
        self.seat.machine().held()
    }

    /// Does the machine still know the flow of `end`?
    pub fn remembers(&self, end: usize) -> bool {
        let flow = self.application.flow(end);
        flow.is_some_and(|flow| self.seat.machine().stats(flow).is_some())
    }
}

fn stage<'s>(now: Time, clock: Time, machine: &'s mut dyn Machine, trace: &'s mut Trace) -> Stage<'s> {
    Stage {
        now,
        clock,
        machine,
        trace,
    }
}
