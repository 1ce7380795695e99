//! Seam between a protocol and the world. A [`Machine`] is a host's whole transport: datagrams and time go
//! in, datagrams, events and one deadline come out. It never reads a clock, a socket or a global generator.
//!
//! A driver does the same four things after every input, in this order:
//!
//! 1. [`Machine::poll_transmit`] until it returns `false`,
//! 2. [`Machine::poll_event`] until it returns `None` (an application may write, which asks for 1 again),
//! 3. [`Machine::next_deadline`],
//! 4. sleep until then or until the next datagram, and call [`Machine::handle`].

pub use crate::datagram::{Datagram, Ecn, Head, PathAddress, Request};
use crate::flow::{CloseReason, Flow, FlowId, PathState};
use crate::streams::StreamEvent;
use crate::time::Time;
use std::net::SocketAddr;

/// What the world tells a machine.
#[derive(Debug)]
pub enum Input<'a> {
    /// A datagram arrived. The machine may take its buffers.
    Datagram(&'a mut Datagram),
    /// The deadline of [`Machine::next_deadline`] has come (or passed, or nearly so: early calls do no harm).
    Deadline,
    /// The lower layer reports a local address as usable or not (cross-layer notice, ResTP §3.4).
    PathNotice {
        /// The local address that changed.
        local: SocketAddr,
        /// Usable now?
        up: bool,
    },
    /// The lower layer refused to take a datagram for this pair of addresses: no route, forbidden. It may take one for
    /// another pair, even from the same address.
    Refused(PathAddress),
}

/// Why a machine wants to wake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wakeup {
    /// A retransmission or handshake timer.
    Retransmission,
    /// An acknowledgement that waited long enough.
    Acknowledgement,
    /// The pacer allows the next segment.
    Pacing,
    /// Segments have waited long enough to be encoded (forward error correction).
    Encoding,
    /// A probe: zero window, outage, keep-alive.
    Probe,
    /// A state ends: idle connection, TIME-WAIT, hold time.
    Expiry,
}

/// The earliest of several deadlines, and why it is one. Of two at one time the first that was told stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Earliest {
    at: Time,
    why: Wakeup,
}

impl Earliest {
    /// None yet.
    pub const NONE: Earliest = Earliest {
        at: Time::MAX,
        why: Wakeup::Expiry,
    };

    /// That of a part, if it has one.
    pub fn of(part: Option<(Time, Wakeup)>) -> Self {
        part.map_or(Self::NONE, |(at, why)| Earliest { at, why })
    }

    /// This or `at`, whichever is earlier.
    #[must_use]
    pub fn or(self, at: Option<Time>, why: Wakeup) -> Self {
        match at {
            Some(at) if at < self.at => Earliest { at, why },
            _ => self,
        }
    }

    /// The deadline, if there is one.
    pub fn deadline(self) -> Option<(Time, Wakeup)> {
        (self.at != Time::MAX).then_some((self.at, self.why))
    }
}

/// What a machine tells the application, per flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A peer opened this flow; it is established.
    Accepted(FlowId),
    /// A flow this side opened is established.
    Connected(FlowId),
    /// Data, or the end of data, can be read.
    Readable(FlowId),
    /// A write that was refused for lack of room may be tried again.
    Writable(FlowId),
    /// What happened to the streams of a flow that has some.
    Stream(FlowId, StreamEvent),
    /// One path of a flow over several of them changed its state.
    Path(FlowId, PathAddress, PathState),
    /// The flow is over; nothing more will come. Its identifier dies with [`Flow::release`].
    Closed(FlowId, CloseReason),
}

/// A host's transport. See the module for the order in which to call it.
pub trait Machine: Flow {
    /// Takes one input at `now`. `now` never goes backwards; a driver whose clock does repeats the last value.
    fn handle(&mut self, now: Time, input: Input<'_>);

    /// Writes the next datagram to send into `out`, replacing what it held. `false`: nothing to send now.
    fn poll_transmit(&mut self, now: Time, out: &mut Datagram) -> bool;

    /// The next event. Moves it out and changes nothing else.
    fn poll_event(&mut self) -> Option<Event>;

    /// When to call [`Machine::handle`] with [`Input::Deadline`], and why. May be early, never late.
    fn next_deadline(&self) -> Option<(Time, Wakeup)>;

    /// Flows that it holds, with those that no application knows. For diagnostics only.
    fn held(&self) -> usize;
}
