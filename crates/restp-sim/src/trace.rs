//! Every step of every packet, for a sink of the caller. What is observed never steers: without a sink the run is
//! the same.

use crate::direction::DropReason;
use crate::host_id::HostId;
use crate::spec::Way;
use restp_base::machine::{Datagram, Ecn};
use restp_base::time::Time;
use std::fmt;

/// One step of one packet. Its `Display` is one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceEvent<'a> {
    /// When.
    pub at: Time,
    /// The packet, numbered in the order sent, copies included.
    pub packet: u64,
    /// Its size on the wire.
    pub bytes: u32,
    /// What happens to it.
    pub step: Step<'a>,
}

/// What happens to a packet. A `line` is `"<link>/<forward|reverse>"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// A host sends it.
    Sent {
        /// The sender.
        from: HostId,
        /// The receiver.
        to: HostId,
    },
    /// A direction takes it.
    Accepted {
        /// The direction.
        line: &'a str,
        /// When it will arrive at the far end.
        due: Time,
        /// The bit that flips on the way.
        flip_bit: Option<u64>,
        /// Marked as having met congestion.
        marked: bool,
    },
    /// A direction makes this copy of another packet.
    Copied {
        /// The direction.
        line: &'a str,
        /// The other packet.
        of: u64,
    },
    /// It is gone.
    Dropped {
        /// The direction.
        line: &'a str,
        /// Why.
        reason: DropReason,
    },
    /// A host receives it.
    Delivered {
        /// The receiver.
        to: HostId,
    },
}

/// A packet that enters a line, as a capture at the sender's end shows it. Copies that a line makes are not seen there.
#[derive(Clone, Copy, Debug)]
pub struct Captured<'a> {
    /// When; where the queue decides on departure, when that is decided.
    pub at: Time,
    /// Which link, by its place in the list.
    pub link: usize,
    /// Its direction.
    pub way: Way,
    /// The packet's contents; its addresses are those of its sender.
    pub datagram: &'a Datagram,
    /// Its mark so far.
    pub ecn: Ecn,
    /// Why the line drops it, if it does so now.
    pub dropped: Option<DropReason>,
}

/// Takes captured packets, in the order of time.
pub type Capture = Box<dyn FnMut(&Captured<'_>) + Send>;

/// Takes trace events.
pub type Sink = Box<dyn FnMut(&TraceEvent<'_>) + Send>;

impl fmt::Display for TraceEvent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} packet {} {} B ",
            self.at.as_nanos(),
            self.packet,
            self.bytes
        )?;
        match self.step {
            Step::Sent { from, to } => write!(f, "sent {from} {to}"),
            Step::Accepted {
                line,
                due,
                flip_bit,
                marked,
            } => {
                write!(f, "accepted {line} due {}", due.as_nanos())?;
                if let Some(bit) = flip_bit {
                    write!(f, " bit {bit}")?;
                }
                f.write_str(if marked { " ce" } else { "" })
            }
            Step::Copied { line, of } => write!(f, "copied {line} of {of}"),
            Step::Dropped { line, reason } => write!(f, "dropped {line} {reason:?}"),
            Step::Delivered { to } => write!(f, "delivered {to}"),
        }
    }
}
