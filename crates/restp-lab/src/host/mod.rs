//! Drives one machine and its applications from the event queue of the simulated network. The same loop as the one
//! over sockets: drain transmissions, drain events, set the timer.

mod address;
mod seat;
mod timers;

pub use address::{Directory, address_of, index_of};
pub use seat::{Application, End, Seat};
pub use timers::Timers;

use crate::traffic::TrafficError;
use restp_base::flow::FlowId;
use restp_base::machine::{Datagram, Event, Input, Machine, PathAddress};
use restp_base::observe::Loss;
use restp_base::time::Time;
use restp_sim::{HostId, World};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;

/// Bytes that IPv4 puts before every datagram (RFC 791 §3.1, no options).
pub(crate) const IP_HEADER_BYTES: usize = 20;

/// A machine with its applications: one end of one flow, or of many. It has an address for each of their paths.
pub struct Host {
    /// Where its timer is.
    id: HostId,
    machine: Box<dyn Machine>,
    seats: Vec<Seat>,
    /// Which seat the datagrams along a path are for, as this host sees it, where there are several.
    by_path: BTreeMap<PathAddress, usize>,
    /// Which seat a flow of the machine is for, where there are several.
    by_flow: BTreeMap<FlowId, usize>,
    /// When each seat is due, where there are several.
    due: BTreeSet<(Time, usize)>,
    notices: VecDeque<Notice>,
    /// The seats that the present step has to do with.
    touched: Vec<usize>,
    /// How late it wakes, if its timers are not exact.
    timers: Option<Timers>,
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

/// Why an application cannot go on, and which.
pub type Failure = (End, TrafficError);

impl Host {
    /// A machine whose timer is that of `id`, without applications.
    pub fn new(id: HostId, machine: Box<dyn Machine>) -> Self {
        Host {
            id,
            machine,
            seats: Vec::new(),
            by_path: BTreeMap::new(),
            by_flow: BTreeMap::new(),
            due: BTreeSet::new(),
            notices: VecDeque::new(),
            touched: Vec::new(),
            timers: None,
        }
    }

    /// The same with timers as coarse as these. Applications keep their own time.
    #[must_use]
    pub fn with_timers(self, timers: Option<Timers>) -> Self {
        Host { timers, ..self }
    }

    /// One more application, whose datagrams come along `paths`, as this host sees them.
    pub fn seat(&mut self, seat: Seat, paths: impl IntoIterator<Item = PathAddress>, world: &mut World) {
        let number = self.seats.len();
        self.by_path.extend(paths.into_iter().map(|path| (path, number)));
        self.seats.push(seat);
        self.rank(number);
        world.wake_at(self.id, self.next_own());
    }

    /// It will be told so, besides what it knows.
    pub fn expect(&mut self, notices: impl IntoIterator<Item = Notice>, world: &mut World) {
        self.notices.extend(notices);
        self.notices.make_contiguous().sort();
        world.wake_at(self.id, self.next_own());
    }

    /// Its protocol.
    pub fn machine(&self) -> &dyn Machine {
        &*self.machine
    }

    /// What the flow of `seat` has found lost since the last call goes `into`; none where it sends nothing, or does not tell.
    pub fn take_losses(&mut self, seat: usize, into: &mut Vec<Loss>) -> Option<FlowId> {
        self.seats[seat].take_losses(&mut *self.machine, into)
    }

    /// How many applications use it.
    pub fn seats(&self) -> usize {
        self.seats.len()
    }

    /// Application number `seat`.
    pub fn application(&self, seat: usize) -> &Seat {
        &self.seats[seat]
    }

    /// The seats that the last step had to do with, in their order.
    pub fn touched(&self) -> &[usize] {
        &self.touched
    }

    /// A datagram arrived for `seat`, if it is for one of them; its path still is the sender's.
    pub fn arrival(&mut self, now: Time, seat: Option<usize>, datagram: &mut Datagram) {
        self.touched.clear();
        self.touched.extend(seat);
        datagram.path = datagram.path.reversed();
        self.machine.handle(now, Input::Datagram(datagram));
    }

    /// The timer ran out: of a notice, of an application, of the protocol, or of several.
    ///
    /// # Errors
    /// When some traffic cannot run over this transport.
    pub fn wake(&mut self, now: Time) -> Result<(), Failure> {
        self.touched.clear();
        while let Some(notice) = self.notices.pop_front_if(|notice| notice.at <= now) {
            let (local, up) = (notice.local, notice.up);
            self.machine.handle(now, Input::PathNotice { local, up });
            self.touched.extend(0..self.seats.len());
        }
        let first = self.touched.len();
        while let Some(seat) = self.next_due(now) {
            self.touched.push(seat);
        }
        for index in first..self.touched.len() {
            let seat = self.touched[index];
            let application = &mut self.seats[seat];
            application
                .wake(now, &mut *self.machine)
                .map_err(|error| (application.end, error))?;
            self.follow(seat);
        }
        if self.machine.next_deadline().is_some_and(|(at, _)| at <= now) {
            self.machine.handle(now, Input::Deadline);
            // Whose timer it was shows in what is sent, and in counters, which somebody may watch.
            let watched = self
                .seats
                .iter()
                .enumerate()
                .filter(|(_, seat)| seat.watch.is_some());
            match self.seats.len() {
                1 => self.touched.push(0),
                _ => self.touched.extend(watched.map(|(number, _)| number)),
            }
        }
        Ok(())
    }

    /// Everything that follows from one input. `sent` sees each datagram before it leaves, and the end it is of.
    ///
    /// # Errors
    /// When some traffic cannot run over this transport.
    pub fn settle(
        &mut self,
        now: Time,
        world: &mut World,
        directory: &Directory,
        out: &mut Box<Datagram>,
        mut sent: impl FnMut(Option<End>, &Datagram),
    ) -> Result<(), Failure> {
        loop {
            while self.machine.poll_transmit(now, out) {
                let seat = self.seat_along(out.path);
                self.touch(seat);
                sent(seat.map(|seat| self.seats[seat].end), out);
                // A datagram to an address of nobody leaves the network, as it would behind a default route.
                if let Some((from, to)) = directory.places(out.path) {
                    world.send(now, from, to, (IP_HEADER_BYTES + out.len()) as u32, out);
                }
            }
            let Some(mut event) = self.machine.poll_event() else {
                break;
            };
            loop {
                self.on(now, &event)?;
                match self.machine.poll_event() {
                    Some(next) => event = next,
                    None => break,
                }
            }
        }
        self.touched.sort_unstable();
        self.touched.dedup();
        for &seat in &self.touched {
            self.seats[seat].note(now, &mut *self.machine);
        }
        let mut deadline = self.machine.next_deadline().map_or(Time::MAX, |(at, _)| at);
        if let Some(timers) = &mut self.timers {
            deadline = timers.wakes(deadline);
        }
        world.wake_at(self.id, deadline.min(self.next_own()));
        Ok(())
    }

    fn on(&mut self, now: Time, event: &Event) -> Result<(), Failure> {
        let (Event::Accepted(flow)
        | Event::Connected(flow)
        | Event::Readable(flow)
        | Event::Writable(flow)
        | Event::Stream(flow, _)
        | Event::Path(flow, ..)
        | Event::Closed(flow, _)) = *event;
        let Some(seat) = self.seat_of(flow) else {
            return Ok(());
        };
        self.touch(Some(seat));
        let application = &mut self.seats[seat];
        application
            .on(now, event, &mut *self.machine)
            .map_err(|error| (application.end, error))?;
        self.follow(seat);
        if matches!(event, Event::Closed(..)) {
            self.by_flow.remove(&flow);
        }
        Ok(())
    }

    /// The seat that `flow` is for. Those that others opened are known by their addresses.
    fn seat_of(&mut self, flow: FlowId) -> Option<usize> {
        if self.seats.len() == 1 {
            return Some(0);
        }
        if let Some(seat) = self.by_flow.get(&flow) {
            return Some(*seat);
        }
        let seat = self.seat_along(self.machine.stats(flow)?.path?)?;
        self.by_flow.insert(flow, seat);
        Some(seat)
    }

    fn seat_along(&self, path: PathAddress) -> Option<usize> {
        if self.seats.len() == 1 {
            return Some(0);
        }
        self.by_path.get(&path).copied()
    }

    /// `seat` has done something: its flow may be another, and its time.
    fn follow(&mut self, seat: usize) {
        if self.seats.len() > 1
            && let Some(flow) = self.seats[seat].flow()
        {
            self.by_flow.insert(flow, seat);
        }
        self.rank(seat);
    }

    fn touch(&mut self, seat: Option<usize>) {
        if self.touched.last() != seat.as_ref() {
            self.touched.extend(seat);
        }
    }

    /// Notes when seat `number` is due.
    fn rank(&mut self, number: usize) {
        let seat = &mut self.seats[number];
        let next = seat.next();
        if next != seat.noted {
            self.due.remove(&(seat.noted, number));
            if next != Time::MAX {
                self.due.insert((next, number));
            }
            seat.noted = next;
        }
    }

    /// A seat that is due. Each is due once at one time.
    fn next_due(&mut self, now: Time) -> Option<usize> {
        let (at, seat) = *self.due.first()?;
        if at > now {
            return None;
        }
        self.due.pop_first();
        self.seats[seat].noted = Time::MAX;
        Some(seat)
    }

    /// When the first of its applications and its notices is due.
    fn next_own(&self) -> Time {
        let notice = self.notices.front().map_or(Time::MAX, |notice| notice.at);
        self.due.first().map_or(notice, |(at, _)| notice.min(*at))
    }
}
