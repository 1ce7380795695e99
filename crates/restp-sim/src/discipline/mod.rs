//! Who may wait in the queue in front of a serialiser, and who leaves it.
//!
//! [Drop-tail](QueueLimit) and [RED](Red) decide on a packet's arrival. The virtual clock of the line knows then
//! already when the packet would be sent, so no event is needed when it leaves the queue. [CoDel](Codel) and
//! [FQ-CoDel](FqCodel) decide on its departure, and what they decide depends on packets that come behind it: CoDel
//! spares a packet behind which less than one packet waits, and FQ-CoDel lets a new flow overtake. They hold their
//! packets until the line is free, at one event per departure.

mod backlog;
mod codel;
mod drop_tail;
mod fair_queue;
mod fq_codel;
mod held;
mod red;

pub(crate) use backlog::Backlog;
pub use codel::Codel;
pub use drop_tail::QueueLimit;
pub use fair_queue::FairQueue;
pub use fq_codel::FqCodel;
pub(crate) use held::Held;
pub use red::Red;

use crate::spec_error::SpecError;
use restp_base::machine::Ecn;
use restp_base::random::Stream;
use restp_base::time::{Duration, Time};

/// A queue as its user describes it: the discipline with its parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Queue {
    /// Everything is welcome until the queue is full.
    DropTail(QueueLimit),
    /// Random early detection.
    Red(Red),
    /// Controlled delay.
    Codel(Codel),
    /// Controlled delay, with a queue for each flow.
    FqCodel(FqCodel),
}

impl Default for Queue {
    fn default() -> Self {
        Queue::DropTail(QueueLimit::default())
    }
}

impl From<QueueLimit> for Queue {
    fn from(limit: QueueLimit) -> Self {
        Queue::DropTail(limit)
    }
}

impl Queue {
    /// The most that may wait.
    pub const fn limit(&self) -> QueueLimit {
        match self {
            Queue::DropTail(limit) => *limit,
            Queue::Red(red) => red.limit,
            Queue::Codel(codel) => codel.limit,
            Queue::FqCodel(fq) => fq.codel.limit,
        }
    }

    /// This queue with another limit.
    #[must_use]
    pub const fn with_limit(mut self, limit: QueueLimit) -> Queue {
        match &mut self {
            Queue::DropTail(own) => *own = limit,
            Queue::Red(red) => red.limit = limit,
            Queue::Codel(codel) => codel.limit = limit,
            Queue::FqCodel(fq) => fq.codel.limit = limit,
        }
        self
    }

    pub(crate) fn check(&self) -> Result<(), SpecError> {
        if self.limit() == QueueLimit::Bdp {
            return Err(SpecError::UnresolvedBdp);
        }
        match self {
            Queue::DropTail(_) => Ok(()),
            Queue::Red(red) => red.check(),
            Queue::Codel(codel) => codel.check(),
            Queue::FqCodel(fq) => fq.check(),
        }
    }
}

/// A packet that reaches a queue whose discipline decides on arrival.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    /// For how long the line has had nothing to send; `None` while it sends.
    pub(crate) idle: Option<Duration>,
    pub(crate) bytes: u32,
    pub(crate) ecn: Ecn,
    /// Drawn when the packet was offered, uniform from 0 to 1.
    pub(crate) luck: f64,
}

/// What a discipline says to an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    Pass,
    Mark,
    Drop,
}

/// The running form of a [`Queue`].
#[derive(Clone, Debug)]
pub(crate) enum Discipline {
    DropTail(QueueLimit),
    Red(Box<red::Process>),
    Codel(Box<codel::Process>),
    FqCodel(Box<fq_codel::Process>),
}

impl Discipline {
    /// The discipline of a checked description in front of a line of `rate_bps`, with its random stream below `name`.
    pub(crate) fn new(queue: &Queue, rate_bps: u64, seed: u64, name: &str) -> Self {
        let stream = || Stream::named(seed, &format!("{name}/queue"));
        match queue {
            Queue::DropTail(limit) => Discipline::DropTail(*limit),
            Queue::Red(red) => Discipline::Red(Box::new(red::Process::new(red, rate_bps, stream()))),
            Queue::Codel(codel) => Discipline::Codel(Box::new(codel::Process::new(codel))),
            Queue::FqCodel(fq) => Discipline::FqCodel(Box::new(fq_codel::Process::new(fq, stream()))),
        }
    }

    /// The packet's luck. As with every model that draws, once per packet offered, whatever becomes of it.
    pub(crate) fn draw(&mut self) -> f64 {
        match self {
            Discipline::Red(red) => red.draw(),
            _ => 0.0,
        }
    }

    /// Does it decide when packets leave?
    pub(crate) const fn holds(&self) -> bool {
        matches!(self, Discipline::Codel(_) | Discipline::FqCodel(_))
    }

    /// May a packet join those that wait? Only for disciplines that decide on arrival.
    #[inline(always)]
    pub(crate) fn admit(&mut self, arrival: Arrival, waiting: &Backlog) -> Admission {
        match self {
            Discipline::DropTail(limit) => {
                let room =
                    arrival.idle.is_some() || limit.admits(waiting.packets(), waiting.bytes(), arrival.bytes);
                if room { Admission::Pass } else { Admission::Drop }
            }
            Discipline::Red(red) => red.admit(arrival, waiting),
            Discipline::Codel(_) | Discipline::FqCodel(_) => {
                unreachable!("a discipline that holds its packets")
            }
        }
    }

    /// Takes in a packet. What has to go for it, itself perhaps, is added to `dropped`.
    pub(crate) fn enqueue(&mut self, packet: Held, dropped: &mut Vec<Held>) {
        match self {
            Discipline::Codel(codel) => codel.enqueue(packet, dropped),
            Discipline::FqCodel(fq) => fq.enqueue(packet, dropped),
            Discipline::DropTail(_) | Discipline::Red(_) => unreachable!("a discipline that holds nothing"),
        }
    }

    /// The line is free at `now`: the packet to send and whether it is marked. What is dropped first is added to
    /// `dropped`.
    pub(crate) fn dequeue(&mut self, now: Time, dropped: &mut Vec<Held>) -> Option<(Held, bool)> {
        match self {
            Discipline::Codel(codel) => codel.dequeue(now, dropped),
            Discipline::FqCodel(fq) => fq.dequeue(now, dropped),
            Discipline::DropTail(_) | Discipline::Red(_) => None,
        }
    }

    /// Packets and bytes held.
    pub(crate) fn held(&self) -> (u64, u64) {
        match self {
            Discipline::Codel(codel) => codel.held(),
            Discipline::FqCodel(fq) => fq.held(),
            Discipline::DropTail(_) | Discipline::Red(_) => (0, 0),
        }
    }
}
