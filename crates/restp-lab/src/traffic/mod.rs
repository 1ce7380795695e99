//! What applications do: a [`Sender`] on the flow's first node, a [`Receiver`] on its last. Both see the protocol
//! only through [`restp_base::flow::Flow`], called by [`crate::host`] after each step of the machine.

mod bulk;
mod cbr;
mod receiver;
mod sender;

pub use cbr::Cbr;
pub use receiver::Receiver;
pub use sender::Sender;

use restp_base::flow::{FlowId, WriteError};
use restp_base::machine::Machine;
use restp_base::time::Time;
use thiserror::Error;

/// The port every simulated service listens on (RFC 863, discard).
pub const PORT: u16 = 9;

/// What a flow carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// Bytes without end, as fast as the transport takes them.
    Bulk,
    /// So many bytes, as fast as the transport takes them, then the end.
    File {
        /// Length of the file.
        bytes: u64,
    },
    /// Messages at a constant rate.
    Cbr(Cbr),
}

/// Why a run cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TrafficError {
    /// The transport takes any amount at once, so "as fast as possible" has no answer.
    #[error(
        "this transport took {taken} bytes at one instant: nothing limits it, so bulk and file have no rate; use cbr"
    )]
    Unlimited {
        /// Bytes taken without time passing.
        taken: u64,
    },
    /// A message does not fit.
    #[error("cbr cannot send its messages: {0}")]
    Message(WriteError),
    /// The flow could not be opened.
    #[error("the flow cannot be opened: {0}")]
    Open(#[from] restp_base::flow::OpenError),
}

/// The part of a sender that differs from traffic to traffic.
#[derive(Debug)]
enum Source {
    Bulk(bulk::Source),
    Cbr(cbr::Source),
}

impl Source {
    fn new(traffic: &Traffic) -> Self {
        match traffic {
            Traffic::Bulk => Source::Bulk(bulk::Source::new(u64::MAX)),
            Traffic::File { bytes } => Source::Bulk(bulk::Source::new(*bytes)),
            Traffic::Cbr(cbr) => Source::Cbr(cbr::Source::new(cbr.clone())),
        }
    }

    /// Writes what is due at `now` and fits.
    fn pump(&mut self, now: Time, machine: &mut dyn Machine, flow: FlowId) -> Result<(), TrafficError> {
        match self {
            Source::Bulk(source) => source.pump(now, machine, flow),
            Source::Cbr(source) => source.pump(now, machine, flow),
        }
    }

    /// When there will be something to write; never while the transport is full.
    fn next(&self) -> Time {
        match self {
            Source::Bulk(_) => Time::MAX,
            Source::Cbr(source) => source.next(),
        }
    }

    /// The first instant of the flow.
    fn begin(&mut self, now: Time) {
        if let Source::Cbr(source) = self {
            source.begin(now);
        }
    }

    /// Messages handed to the transport, where traffic consists of messages.
    fn sent_messages(&self) -> Option<u64> {
        match self {
            Source::Bulk(_) => None,
            Source::Cbr(source) => Some(source.sent()),
        }
    }
}
