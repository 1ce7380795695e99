//! Drives one machine and its application from the event queue of the simulated network. The same loop as the one
//! over sockets: drain transmissions, drain events, set the timer.

use crate::metrics::Watch;
use crate::scenario::ChangePlan;
use crate::traffic::{Receiver, Sender, TrafficError};
use restp_base::flow::{ChangeError, FlowId};
use restp_base::machine::{Datagram, Event, Input, Machine};
use restp_base::observe::{Changed, Loss};
use restp_base::time::Time;
use restp_sim::{HostId, World};
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Bytes that IPv4 puts before every datagram (RFC 791 §3.1, no options).
pub(crate) const IP_HEADER_BYTES: usize = 20;

/// Changes of services that a host keeps: a run in which there are more shows them early enough.
const MOST_CHANGES: usize = 10_000;

/// One end of one flow, with one address for each of its paths.
pub struct Host {
    /// Its first address, which has its timer.
    id: HostId,
    machine: Box<dyn Machine>,
    /// What uses the machine.
    pub application: Application,
    /// Who looks at the sender's counters after each step, if somebody does.
    pub watch: Option<Watch>,
    /// How the services of its flow have changed.
    changes: Vec<Changed>,
    notices: VecDeque<Notice>,
    planned: VecDeque<ChangePlan>,
}

/// The lower layer of a host tells it that one of its addresses works, or no longer does (ResTP §3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Notice {
    /// When.
    pub at: Time,
    /// The address.
    pub local: SocketAddr,
    /// Does it work from now on?
    pub up: bool,
}

/// What uses a machine.
#[derive(Debug)]
pub enum Application {
    /// Opens and writes.
    Sender(Sender),
    /// Accepts and reads.
    Receiver(Receiver),
}

impl Host {
    /// A host whose timer is set for its application's first step.
    pub fn new(
        id: HostId,
        machine: Box<dyn Machine>,
        application: Application,
        watch: Option<Watch>,
        world: &mut World,
    ) -> Self {
        world.wake_at(id, application.next());
        Host {
            id,
            machine,
            application,
            watch,
            changes: Vec::new(),
            notices: VecDeque::new(),
            planned: VecDeque::new(),
        }
    }

    /// It will be told so, in the order of time.
    pub fn expect(&mut self, notices: impl IntoIterator<Item = Notice>, world: &mut World) {
        self.notices = notices.into_iter().collect();
        world.wake_at(self.id, self.next_own());
    }

    /// Its application will ask for these, in the order of time.
    pub fn plan(&mut self, changes: impl IntoIterator<Item = ChangePlan>, world: &mut World) {
        self.planned = changes.into_iter().collect();
        world.wake_at(self.id, self.next_own());
    }

    /// Its protocol.
    pub fn machine(&self) -> &dyn Machine {
        &*self.machine
    }

    /// What its flow has found lost since the last call goes `into`; none where it sends nothing, or does not tell.
    pub fn take_losses(&mut self, into: &mut Vec<Loss>) -> Option<FlowId> {
        let Application::Sender(sender) = &self.application else {
            return None;
        };
        sender.flow().filter(|flow| self.machine.take_losses(*flow, into))
    }

    /// How the services of its flow have changed so far: the first 10,000 of it.
    pub fn changes(&self) -> &[Changed] {
        &self.changes
    }

    /// A datagram arrived; its path still is the sender's.
    pub fn arrival(&mut self, now: Time, datagram: &mut Datagram) {
        datagram.path = datagram.path.reversed();
        self.machine.handle(now, Input::Datagram(datagram));
    }

    /// The timer ran out: of a notice, of the application, of the protocol, or of several.
    ///
    /// # Errors
    /// When this traffic cannot run over this transport.
    pub fn wake(&mut self, now: Time) -> Result<(), TrafficError> {
        while let Some(notice) = self.notices.pop_front_if(|notice| notice.at <= now) {
            let (local, up) = (notice.local, notice.up);
            self.machine.handle(now, Input::PathNotice { local, up });
        }
        while let Some(change) = self.planned.pop_front_if(|change| Time::ZERO + change.at <= now) {
            self.change(now, &change)?;
        }
        if let Application::Sender(sender) = &mut self.application
            && sender.next() <= now
        {
            sender.wake(now, &mut *self.machine)?;
        }
        if self.machine.next_deadline().is_some_and(|(at, _)| at <= now) {
            self.machine.handle(now, Input::Deadline);
        }
        Ok(())
    }

    /// Everything that follows from one input. `hosts` has a place in the network for every address, in their order;
    /// `sent` sees each datagram before it leaves.
    ///
    /// # Errors
    /// When this traffic cannot run over this transport.
    pub fn settle(
        &mut self,
        now: Time,
        world: &mut World,
        hosts: &[HostId],
        out: &mut Box<Datagram>,
        mut sent: impl FnMut(&Datagram),
    ) -> Result<(), TrafficError> {
        loop {
            while self.machine.poll_transmit(now, out) {
                sent(out);
                let of = |address| index_of(address).and_then(|index| hosts.get(index));
                // A datagram to an address of nobody leaves the network, as it would behind a default route.
                if let (Some(&from), Some(&to)) = (of(out.path.local), of(out.path.remote)) {
                    world.send(now, from, to, (IP_HEADER_BYTES + out.len()) as u32, out);
                }
            }
            let Some(mut event) = self.machine.poll_event() else {
                break;
            };
            loop {
                self.application.on(now, &event, &mut *self.machine)?;
                match self.machine.poll_event() {
                    Some(next) => event = next,
                    None => break,
                }
            }
        }
        let flow = match &self.application {
            Application::Sender(sender) => sender.flow(),
            Application::Receiver(receiver) => receiver.flow(),
        };
        if let Some(flow) = flow {
            self.machine.take_changes(now, flow, &mut self.changes);
            self.changes.truncate(MOST_CHANGES);
            if let Some(watch) = &mut self.watch
                && let Some(stats) = self.machine.stats(flow)
            {
                watch.look(now, stats);
            }
        }
        let deadline = self.machine.next_deadline().map_or(Time::MAX, |(at, _)| at);
        world.wake_at(self.id, deadline.min(self.next_own()));
        Ok(())
    }

    /// Asks for what is planned. A flow that is over has nothing to change.
    fn change(&mut self, now: Time, change: &ChangePlan) -> Result<(), TrafficError> {
        let Application::Sender(sender) = &self.application else {
            return Ok(());
        };
        let is_open = sender.is_connected();
        let asked = match sender.flow() {
            Some(flow) => self.machine.reconfigure(now, flow, &change.set),
            None => Err(ChangeError::NotRunning),
        };
        match asked {
            Err(ChangeError::NotRunning) if is_open => Ok(()),
            Err(error) => Err(TrafficError::Change { at: now, error }),
            Ok(_) => Ok(()),
        }
    }

    /// When the first of its application, its notices and its plan is due.
    fn next_own(&self) -> Time {
        let notice = self.notices.front().map(|notice| notice.at);
        let planned = self.planned.front().map(|change| Time::ZERO + change.at);
        let first = notice.into_iter().chain(planned).min();
        self.application.next().min(first.unwrap_or(Time::MAX))
    }
}

impl Application {
    fn next(&self) -> Time {
        match self {
            Application::Sender(sender) => sender.next(),
            Application::Receiver(_) => Time::MAX,
        }
    }

    fn on(&mut self, now: Time, event: &Event, machine: &mut dyn Machine) -> Result<(), TrafficError> {
        match self {
            Application::Sender(sender) => sender.on(now, event, machine),
            Application::Receiver(receiver) => {
                receiver.on(now, event, machine);
                Ok(())
            }
        }
    }
}

/// Address number `index` of the network: 10.x.y.z, counted from 10.0.0.1. Protocols run directly over IPv4, so
/// there is no port.
pub fn address_of(index: usize) -> SocketAddr {
    let [_, x, y, z] = (index as u32 + 1).to_be_bytes();
    SocketAddr::from((Ipv4Addr::new(10, x, y, z), 0))
}

/// The number of this address.
pub fn index_of(address: SocketAddr) -> Option<usize> {
    let IpAddr::V4(v4) = address.ip() else { return None };
    let [10, x, y, z] = v4.octets() else { return None };
    (u32::from_be_bytes([0, x, y, z]) as usize).checked_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_numbers() {
        assert_eq!(address_of(0).to_string(), "10.0.0.1:0");
        assert_eq!(address_of(8191).to_string(), "10.0.32.0:0");
        for index in [0, 1, 255, 256, 8191] {
            assert_eq!(index_of(address_of(index)), Some(index));
        }
        assert_eq!(index_of(SocketAddr::from((Ipv4Addr::new(10, 0, 0, 0), 0))), None);
        assert_eq!(
            index_of(SocketAddr::from((Ipv4Addr::new(192, 168, 0, 1), 0))),
            None
        );
    }
}
