//! One application on a machine: one end of one flow.

use crate::metrics::{Sawtooth, Watch};
use crate::scenario::ChangePlan;
use crate::traffic::{Receiver, Sender, TrafficError};
use restp_base::flow::{ChangeError, FlowId, FlowStats};
use restp_base::machine::{Event, Machine};
use restp_base::observe::{Changed, Loss};
use restp_base::time::Time;
use std::collections::VecDeque;

/// Changes of services that are kept: a run in which there are more shows them early enough.
const MOST_CHANGES: usize = 10_000;

/// One end of one flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// The flow, by its place in the plan.
    pub flow: usize,
    /// Is it the one that opens the flow and sends?
    pub opens: bool,
}

/// An application with what is known of its end of the flow.
#[derive(Debug)]
pub struct Seat {
    /// Whose it is.
    pub end: End,
    /// What uses the machine.
    pub application: Application,
    /// Who looks at the sender's counters after each step, if somebody does.
    pub watch: Option<Watch>,
    /// Who looks at the window of the end that has one, if somebody does.
    pub sawtooth: Option<Sawtooth>,
    /// How the services of its flow have changed.
    changes: Vec<Changed>,
    planned: VecDeque<ChangePlan>,
    /// When it is due, as its host has noted.
    pub(super) noted: Time,
}

/// What uses a machine.
#[derive(Debug)]
pub enum Application {
    /// Opens and writes.
    Sender(Sender),
    /// Accepts and reads.
    Receiver(Receiver),
}

impl Seat {
    /// Nothing has happened yet.
    pub fn new(end: End, application: Application, watch: Option<Watch>) -> Self {
        Seat {
            end,
            application,
            watch,
            sawtooth: None,
            changes: Vec::new(),
            planned: VecDeque::new(),
            noted: Time::MAX,
        }
    }

    /// Its application will ask for these, in the order of time.
    #[must_use]
    pub fn planning(mut self, changes: impl IntoIterator<Item = ChangePlan>) -> Self {
        self.planned = changes.into_iter().collect();
        self
    }

    /// How the services of its flow have changed so far: the first 10,000 of it.
    pub fn changes(&self) -> &[Changed] {
        &self.changes
    }

    /// Its flow, once there is one.
    pub fn flow(&self) -> Option<FlowId> {
        match &self.application {
            Application::Sender(sender) => sender.flow(),
            Application::Receiver(receiver) => receiver.flow(),
        }
    }

    /// Counters of its flow, once there is one, with those of the flows before.
    pub fn stats(&self, machine: &dyn Machine) -> Option<FlowStats> {
        let mut stats = machine.stats(self.flow()?)?;
        if let Application::Sender(sender) = &self.application
            && sender.past().sent_packets > 0
        {
            stats.add(sender.past());
        }
        Some(stats)
    }

    /// What its flow has found lost since the last call goes `into`; none where it sends nothing, or does not tell.
    pub(super) fn take_losses(&self, machine: &mut dyn Machine, into: &mut Vec<Loss>) -> Option<FlowId> {
        let Application::Sender(sender) = &self.application else {
            return None;
        };
        sender.flow().filter(|flow| machine.take_losses(*flow, into))
    }

    /// When its application or its plan is due.
    pub(super) fn next(&self) -> Time {
        let planned = self.planned.front().map(|change| Time::ZERO + change.at);
        self.application.next().min(planned.unwrap_or(Time::MAX))
    }

    /// Time has passed.
    pub(super) fn wake(&mut self, now: Time, machine: &mut dyn Machine) -> Result<(), TrafficError> {
        while let Some(change) = self.planned.pop_front_if(|change| Time::ZERO + change.at <= now) {
            self.change(now, &change, machine)?;
        }
        match &mut self.application {
            Application::Sender(sender) if sender.next() <= now => sender.wake(now, machine),
            Application::Sender(_) | Application::Receiver(_) => Ok(()),
        }
    }

    pub(super) fn on(
        &mut self,
        now: Time,
        event: &Event,
        machine: &mut dyn Machine,
    ) -> Result<(), TrafficError> {
        match &mut self.application {
            Application::Sender(sender) => sender.on(now, event, machine),
            Application::Receiver(receiver) => {
                receiver.on(now, event, machine);
                Ok(())
            }
        }
    }

    /// A step is over: what has changed is noted.
    pub(super) fn note(&mut self, now: Time, machine: &mut dyn Machine) {
        if self.sawtooth.is_some()
            && let Some(stats) = self.flow().and_then(|flow| machine.stats(flow))
            && let Some(sawtooth) = &mut self.sawtooth
        {
            sawtooth.look(now, stats.congestion_window_bytes, stats.srtt);
        }
        if let Some(flow) = self.flow() {
            machine.take_changes(now, flow, &mut self.changes);
            self.changes.truncate(MOST_CHANGES);
            if let Some(watch) = &mut self.watch
                && let Some(stats) = machine.stats(flow)
            {
                watch.look(now, stats);
            }
        }
    }

    /// Asks for what is planned. A flow that is over has nothing to change.
    fn change(
        &mut self,
        now: Time,
        change: &ChangePlan,
        machine: &mut dyn Machine,
    ) -> Result<(), TrafficError> {
        let Application::Sender(sender) = &self.application else {
            return Ok(());
        };
        let is_open = sender.is_connected();
        let asked = match sender.flow() {
            Some(flow) => machine.reconfigure(now, flow, &change.set),
            None => Err(ChangeError::NotRunning),
        };
        match asked {
            Err(ChangeError::NotRunning) if is_open => Ok(()),
            Err(error) => Err(TrafficError::Change { at: now, error }),
            Ok(_) => Ok(()),
        }
    }
}

impl Application {
    fn next(&self) -> Time {
        match self {
            Application::Sender(sender) => sender.next(),
            Application::Receiver(_) => Time::MAX,
        }
    }
}
