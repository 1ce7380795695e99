//! What a connection has to tell its application (RFC 9293 §3.9.1.8), before its owner puts a name to it.

use restp_base::flow::{CloseReason, FlowId, PathState};
use restp_base::machine::{Event, PathAddress};
use restp_base::streams::StreamEvent;

/// Something happened to a connection, which does not know its own name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// Established; opened here.
    Connected,
    /// Established; opened by the peer.
    Accepted,
    /// Data, or their end, can be read.
    Readable,
    /// A refused write may be tried again.
    Writable,
    /// What happened to its streams.
    Stream(StreamEvent),
    /// What became of one of its paths.
    Path(PathAddress, PathState),
    /// It is over.
    Closed(CloseReason),
}

impl Notice {
    /// The event of `flow`, for the application.
    pub fn of(self, flow: FlowId) -> Event {
        match self {
            Notice::Connected => Event::Connected(flow),
            Notice::Accepted => Event::Accepted(flow),
            Notice::Readable => Event::Readable(flow),
            Notice::Writable => Event::Writable(flow),
            Notice::Stream(event) => Event::Stream(flow, event),
            Notice::Path(path, state) => Event::Path(flow, path, state),
            Notice::Closed(reason) => Event::Closed(flow, reason),
        }
    }

    /// The exchange is complete; `opened_here`: by this side.
    pub fn established(opened_here: bool) -> Notice {
        if opened_here {
            Notice::Connected
        } else {
            Notice::Accepted
        }
    }
}
