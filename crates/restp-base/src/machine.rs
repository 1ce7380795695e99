//! Seam between a protocol and the world. A [`Machine`] is a host's whole transport: datagrams and time go
//! in, datagrams, events and one deadline come out. It never reads a clock, a socket or a global generator.
//!
//! A driver does the same four things after every input, in this order:
//!
//! 1. [`Machine::poll_transmit`] until it returns `false`,
//! 2. [`Machine::poll_event`] until it returns `None` (an application may write, which asks for 1 again),
//! 3. [`Machine::next_deadline`],
//! 4. sleep until then or until the next datagram, and call [`Machine::handle`].

use crate::flow::{Flow, FlowId};
use crate::observe::Transmitted;
use crate::streams::StreamEvent;
use crate::time::Time;
use bytes::Bytes;
use smallvec::SmallVec;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Two lower-layer addresses: where datagrams leave and where they go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathAddress {
    /// This host's address.
    pub local: SocketAddr,
    /// The peer's address.
    pub remote: SocketAddr,
}

impl PathAddress {
    /// The same path seen from the other end.
    pub const fn reversed(self) -> Self {
        PathAddress {
            local: self.remote,
            remote: self.local,
        }
    }
    /// A path from nowhere to nowhere, for buffers that are filled later.
    pub const UNSET: PathAddress = PathAddress {
        local: SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0),
        remote: SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0),
    };
}

/// Explicit congestion notification of the lower layer (RFC 3168 §5), by its two bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Ecn {
    /// The sender does not take part.
    #[default]
    NotEct = 0b00,
    /// Capable, code 1.
    Ect1 = 0b01,
    /// Capable, code 0: what we send.
    Ect0 = 0b10,
    /// Congestion experienced: a queue marked the datagram instead of dropping it.
    Ce = 0b11,
}

/// Header bytes; those of common headers live inside the value.
pub type Head = SmallVec<[u8; 64]>;

/// One datagram. The bytes on the wire are `head` followed by `body`.
///
/// A sender puts headers into `head` and shares the payload's buffer as `body`; a driver that received one
/// contiguous buffer leaves `head` empty. Both forms mean the same bytes, and a receiver must take either.
#[derive(Clone, Debug)]
pub struct Datagram {
    /// From `local` to `remote` when sent; a receiver sees its own address as `local`.
    pub path: PathAddress,
    /// Congestion mark of the lower layer.
    pub ecn: Ecn,
    /// As sent: the lower layer may cut it into pieces rather than drop it, should it be too large for the path.
    pub may_fragment: bool,
    /// Who sent it, where a layer below knows: nobody else has the same number. 0 where nobody can tell.
    pub peer: u128,
    /// The segment that it carries, for whoever observes; it does not travel.
    pub segment: Option<Transmitted>,
    /// First part of the bytes.
    pub head: Head,
    /// The rest of the bytes.
    pub body: Bytes,
}

/// What a datagram asks for that does no harm when it is handed on twice: a retransmission of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// A flow.
    Flow,
    /// A further path of a flow there is.
    Path,
}

impl Datagram {
    /// A datagram without bytes.
    pub fn empty() -> Self {
        Datagram {
            path: PathAddress::UNSET,
            ecn: Ecn::NotEct,
            may_fragment: false,
            peer: 0,
            segment: None,
            head: Head::new(),
            body: Bytes::new(),
        }
    }
    /// Bytes on the wire.
    pub fn len(&self) -> usize {
        self.head.len() + self.body.len()
    }
    /// True when there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// All bytes in one buffer.
    pub fn to_vec(&self) -> Vec<u8> {
        [&self.head[..], &self.body[..]].concat()
    }
}

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
    Path(FlowId, PathAddress, crate::flow::PathState),
    /// The flow is over; nothing more will come. Its identifier dies with [`Flow::release`].
    Closed(FlowId, crate::flow::CloseReason),
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
