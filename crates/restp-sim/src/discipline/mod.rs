//! Who may wait in the queue in front of a serialiser. Called once per packet that finds the line busy; a packet
//! that finds it idle is sent at once and never waits.
//!
//! A discipline decides on the packet's arrival. The virtual clock of the line knows then already when the packet
//! would be sent, so no event is needed when it leaves the queue.

mod backlog;
mod drop_tail;

pub(crate) use backlog::Backlog;
pub use drop_tail::QueueLimit;

/// The discipline of one direction.
#[derive(Clone, Debug)]
pub(crate) enum Discipline {
    /// Everything is welcome until the queue is full.
    DropTail(QueueLimit),
}

impl Discipline {
    /// May a packet of `bytes` join those that wait?
    pub(crate) fn admits(&mut self, waiting: &Backlog, bytes: u32) -> bool {
        match self {
            Discipline::DropTail(limit) => limit.admits(waiting, bytes),
        }
    }
}
