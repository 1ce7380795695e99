//! Seam between a protocol and an application: open, write, read, close, by flow.

mod stats;

pub use stats::{FlowStats, Inferred, LossCauses, PathStats};

use crate::datagram::PathAddress;
use crate::findings::{Changed, Loss};
use crate::streams::Streams;
use crate::time::{Duration, Time};
use bytes::Bytes;
use thiserror::Error;

/// Names one flow (connection or association) of one machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub u64);

/// Why a flow ended.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CloseReason {
    /// Both directions were finished and acknowledged.
    #[error("finished")]
    Finished,
    /// The peer does not serve this port, or does not accept the composition.
    #[error(
        "the peer refused the connection (nobody serves that port, or it does not accept this composition)"
    )]
    Refused,
    /// The peer broke off.
    #[error("the peer broke off the connection")]
    Reset,
    /// This side broke off.
    #[error("this side broke off the connection")]
    Aborted,
    /// Nothing came back within the attempts or the time allowed.
    #[error("the peer did not answer for {:.1} s", .0.as_secs_f64())]
    TimedOut(Duration),
}

/// What one path of a flow is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathState {
    /// It carries data, or could.
    Up,
    /// An answer is overdue: what was on it is retransmitted elsewhere.
    Suspect,
    /// It is taken for dead, and probed.
    Down,
    /// It has ended.
    Closed,
}

/// Why [`Flow::open`] failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OpenError {
    /// Every local port towards this peer is in use.
    #[error("all local ports towards {0} are in use; close a connection first")]
    NoPort(std::net::SocketAddr),
    /// The machine was not set up to open flows.
    #[error("{0}")]
    Unsupported(String),
    /// The flow does not use this address of the host, or no longer does.
    #[error("{0} is no path of this flow")]
    NoSuchPath(std::net::SocketAddr),
}

/// Why [`Flow::write`] did not take the data.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WriteError {
    /// The send buffer is full; wait for [`Event::Writable`](crate::machine::Event::Writable).
    #[error("the send buffer is full; wait until the flow is writable")]
    Blocked,
    /// With fixed framing one message must fit into one segment.
    #[error(
        "a message of {size} bytes does not fit into a segment of {limit}; send less or choose framing = \"coalesce\""
    )]
    TooLarge {
        /// Bytes of the message.
        size: usize,
        /// Bytes a segment carries.
        limit: usize,
    },
    /// Where segments are numbered, an empty message cannot be told from an acknowledgement.
    #[error("an empty message cannot be sent where segments are numbered; send at least one byte")]
    Empty,
    /// The flow carries streams.
    #[error("the flow carries streams; open one and write to that")]
    Streams,
    /// The sending direction is finished, or the flow does not exist.
    #[error("the flow is closed for writing")]
    Closed,
}

/// What it takes to change the services of a running flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// They are as asked for already.
    Nothing,
    /// What this end decides alone: it has changed.
    Local,
    /// What the peer has to know: it is asked, and [`Flow::take_changes`] says what became of it.
    Agreed,
}

/// Why the services of a flow cannot be changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ChangeError {
    /// This machine, or this flow, has services that stay.
    #[error("{0}")]
    Unsupported(String),
    /// What the set-up has settled for as long as the flow lives.
    #[error("{key} is settled when a flow is opened: it is {from} and cannot become {to}; open another flow")]
    Settled {
        /// Which service or number.
        key: &'static str,
        /// What it is.
        from: String,
        /// What it was to be.
        to: String,
    },
    /// The services that were asked for are none, or do not go together.
    #[error("{0}")]
    Invalid(String),
    /// The peer has said, when the flow was set up, that it knows no changes.
    #[error("the peer knows no changes of {key}; change what is local, or open another flow")]
    PeerCannot {
        /// What it would have to agree on.
        key: &'static str,
    },
    /// The flow is not established, or over.
    #[error("the flow is not established, or over; services change while it runs")]
    NotRunning,
}

/// What [`Flow::read`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Read {
    /// One message (fixed framing) or the next bytes of the stream (coalesce).
    Data(Bytes),
    /// Nothing yet.
    Empty,
    /// The peer has finished and everything was read, or the flow is over.
    End,
}

/// What an application can do with the flows of a machine.
pub trait Flow {
    /// Opens a flow to the service `port` of the host at `path.remote`.
    ///
    /// # Errors
    /// When no local port is free or this machine cannot open flows.
    fn open(&mut self, now: Time, path: PathAddress, port: u16) -> Result<FlowId, OpenError>;

    /// Asks the service `port` of the host at `path.remote` for an object with one message, where objects are asked for without a
    /// connection: what it answers is read from the flow.
    ///
    /// # Errors
    /// When no local port is free, the message is too large, or this machine has connections.
    fn request(
        &mut self,
        _now: Time,
        _path: PathAddress,
        _port: u16,
        _message: Bytes,
    ) -> Result<FlowId, OpenError> {
        Err(OpenError::Unsupported(
            "this transport has connections; open one and write the request".into(),
        ))
    }

    /// Gives the flow one more pair of addresses to use; `backup`: only when no other path works. While the flow is being
    /// opened the pairs race, afterwards they join. Where this end has not opened it, MPTCP tells the peer of `path.local`.
    ///
    /// # Errors
    /// When the flow, or this machine, has one path only.
    fn add_path(
        &mut self,
        _now: Time,
        _flow: FlowId,
        path: PathAddress,
        _backup: bool,
    ) -> Result<(), OpenError> {
        Err(OpenError::Unsupported(format!(
            "this transport has one path and cannot use {} as well",
            path.local
        )))
    }

    /// Takes a pair of addresses away from the flow: what it carries goes on over the others.
    ///
    /// # Errors
    /// When the flow does not use the pair, or no other path of it works.
    fn remove_path(&mut self, _now: Time, _flow: FlowId, path: PathAddress) -> Result<(), OpenError> {
        Err(OpenError::Unsupported(format!(
            "this transport has one path and cannot do without {}",
            path.local
        )))
    }

    /// Hands over data to send: one message with fixed framing, bytes of a stream otherwise. All or nothing.
    ///
    /// # Errors
    /// When there is no room, the message is too large, or the flow is closed for writing.
    fn write(&mut self, now: Time, flow: FlowId, data: Bytes) -> Result<(), WriteError>;

    /// The same, on a path of the application's choice. While that path does not answer another carries the data; where a
    /// flow has one path only, that is the path.
    ///
    /// # Errors
    /// As [`write`](Flow::write).
    fn write_on(
        &mut self,
        now: Time,
        flow: FlowId,
        data: Bytes,
        _path: PathAddress,
    ) -> Result<(), WriteError> {
        self.write(now, flow, data)
    }

    /// Takes the next data in order of delivery.
    fn read(&mut self, now: Time, flow: FlowId) -> Read;

    /// No more writes will come: everything written is delivered, then the direction ends. Where a flow carries streams none is
    /// opened any more, and it ends when all are over.
    fn finish(&mut self, now: Time, flow: FlowId);

    /// The streams of a flow that carries some; its own [`write`](Flow::write) and [`read`](Flow::read) carry nothing then. None
    /// where it carries none, or is gone.
    fn streams(&mut self, _now: Time, _flow: FlowId) -> Option<&mut dyn Streams> {
        None
    }

    /// Breaks the flow off at once and tells the peer.
    fn abort(&mut self, now: Time, flow: FlowId);

    /// The application is done with this flow: unread data is dropped, the identifier dies as soon as the
    /// protocol is done with it too.
    fn release(&mut self, now: Time, flow: FlowId);

    /// Counters of one flow, while it exists.
    fn stats(&self, flow: FlowId) -> Option<FlowStats>;

    /// Adds what was found lost since the last call to `into`, for whoever observes; the first call begins the record, and
    /// without one nothing is kept. False where the machine does not tell.
    fn take_losses(&mut self, _flow: FlowId, _into: &mut Vec<Loss>) -> bool {
        false
    }

    /// Changes services of the flow while it runs: keys and values as in a composition, on top of those in force.
    ///
    /// # Errors
    /// When a service stays as it was set up, what is asked for is not valid, or the peer cannot follow. Nothing is changed
    /// then.
    fn reconfigure(
        &mut self,
        _now: Time,
        _flow: FlowId,
        _set: &[(String, String)],
    ) -> Result<Change, ChangeError> {
        Err(ChangeError::Unsupported(
            "this transport has services that stay; use restp".into(),
        ))
    }

    /// Adds how the services of the flow changed since the last call to `into`, as [`take_losses`](Flow::take_losses) does of
    /// losses.
    fn take_changes(&mut self, _now: Time, _flow: FlowId, _into: &mut Vec<Changed>) -> bool {
        false
    }
}

#[cfg(test)]
mod tests;
