//! What applications do: a [`Sender`] on the flow's first node, a [`Receiver`] on its last. Both see the protocol
//! only through [`restp_base::flow::Flow`], called by [`crate::host`] after each step of the machine.

mod account;
mod bulk;
mod catalogue;
mod cbr;
mod distribution;
mod pattern;
mod popularity;
mod receiver;
mod sender;
mod voip;
mod web;

pub use account::{Account, Moments};
pub use catalogue::Catalogue;
pub use cbr::{Cbr, Framing};
pub(crate) use distribution::{exp, ln};
pub use popularity::Popularity;
pub use receiver::Receiver;
pub use sender::{Attempt, Sender};
pub use voip::voip;
pub(crate) use web::MOST_BYTES;
pub use web::{Page, Web};

use restp_base::flow::{ChangeError, FlowId, WriteError};
use restp_base::machine::{Machine, PathAddress};
use restp_base::random::Stream;
use restp_base::time::{Duration, Time};
use thiserror::Error;

/// The port every simulated service listens on (RFC 863, discard).
pub const PORT: u16 = 9;

/// What a flow carries.
#[derive(Clone, Debug, PartialEq)]
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
    /// Web pages: the opener asks, the other end answers.
    Web(Web),
    /// Objects of a catalogue: the opener asks, the other end answers.
    Zipf(Catalogue),
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
    #[error("the traffic cannot send its messages: {0}")]
    Message(WriteError),
    /// Its services could not be changed.
    #[error("its services cannot change at {:.3} s: {error}", .at.as_secs_f64())]
    Change {
        /// When.
        at: Time,
        /// Why.
        error: ChangeError,
    },
    /// The flow could not be opened.
    #[error("the flow cannot be opened: {0}")]
    Open(#[from] restp_base::flow::OpenError),
}

/// The part of a sender that differs from traffic to traffic.
#[derive(Debug)]
enum Source {
    Bulk(bulk::Source),
    Cbr(cbr::Source),
    Web(web::Browser),
    Zipf(Box<catalogue::Visitor>),
}

impl Source {
    /// Its messages go on the `pinned` path, if one is. Everything random about it comes from `stream`.
    fn new(traffic: &Traffic, pinned: Option<PathAddress>, stream: Stream) -> Self {
        match traffic {
            Traffic::Bulk => Source::Bulk(bulk::Source::new(u64::MAX)),
            Traffic::File { bytes } => Source::Bulk(bulk::Source::new(*bytes)),
            Traffic::Cbr(cbr) => Source::Cbr(cbr::Source::new(cbr.clone(), pinned)),
            Traffic::Web(web) => Source::Web(web::Browser::new(web.clone(), stream)),
            Traffic::Zipf(of) => Source::Zipf(Box::new(catalogue::Visitor::new(of.clone(), stream))),
        }
    }

    /// Writes what is due at `now` and fits.
    fn pump(&mut self, now: Time, machine: &mut dyn Machine, flow: FlowId) -> Result<(), TrafficError> {
        match self {
            Source::Bulk(source) => source.pump(now, machine, flow),
            Source::Cbr(source) => source.pump(now, machine, flow),
            Source::Web(browser) => browser.pump(now, machine, flow),
            Source::Zipf(visitor) => visitor.pump(now, machine, flow),
        }
    }

    /// When there will be something to write; never while the transport is full.
    fn next(&self) -> Time {
        match self {
            Source::Bulk(_) => Time::MAX,
            Source::Cbr(source) => source.next(),
            Source::Web(browser) => browser.next(),
            Source::Zipf(visitor) => visitor.next(),
        }
    }

    /// The first instant of the flow.
    fn begin(&mut self, now: Time) {
        match self {
            Source::Bulk(_) => {}
            Source::Cbr(source) => source.begin(now),
            Source::Web(browser) => browser.begin(now),
            Source::Zipf(visitor) => visitor.begin(now),
        }
    }

    /// The other end sent this.
    fn take(&mut self, now: Time, data: &[u8]) {
        match self {
            Source::Bulk(_) | Source::Cbr(_) => {}
            Source::Web(browser) => browser.take(now, data.len() as u64),
            Source::Zipf(visitor) => drop(visitor.take(now, data)),
        }
    }

    /// Who asks for objects, each in a flow of its own.
    fn connectionless(&mut self) -> Option<&mut catalogue::Visitor> {
        match self {
            Source::Zipf(visitor) if visitor.is_connectionless() => Some(visitor),
            _ => None,
        }
    }

    /// Who asks for objects of a catalogue.
    fn visitor(&self) -> Option<&catalogue::Visitor> {
        match self {
            Source::Zipf(visitor) => Some(visitor),
            Source::Bulk(_) | Source::Cbr(_) | Source::Web(_) => None,
        }
    }

    /// Messages handed to the transport, where traffic consists of messages.
    fn sent_messages(&self) -> Option<u64> {
        match self {
            Source::Bulk(_) | Source::Web(_) => None,
            Source::Cbr(source) => Some(source.sent()),
            Source::Zipf(visitor) => Some(visitor.asked()),
        }
    }

    /// How long each page took, where traffic consists of pages, and whether these are all.
    fn pages(&self) -> Option<(&[Duration], bool)> {
        match self {
            Source::Bulk(_) | Source::Cbr(_) | Source::Zipf(_) => None,
            Source::Web(browser) => Some((browser.load_times(), browser.is_done())),
        }
    }
}
