//! What a driver shows of a machine to somebody who only looks: datagrams as they pass the seam, losses as they are found,
//! and counters after each step. What is observed never steers, and without an observer nothing is measured for one.

use crate::datagram::Datagram;
pub use crate::datagram::Transmitted;
pub use crate::findings::{Cause, Changed, Loss, Why};
use crate::flow::{FlowId, FlowStats};
use crate::time::Time;

/// One thing seen.
#[derive(Debug)]
pub enum Seen<'a> {
    /// A datagram leaves.
    Sent(&'a Datagram),
    /// A datagram arrives; its path is the machine's, from its own address to the peer's.
    Received(&'a Datagram),
    /// A segment of the flow was found lost.
    Lost(FlowId, &'a Loss),
    /// A service of the flow changed.
    Changed(FlowId, &'a Changed),
    /// After a step: the counters and estimates of one flow.
    Measured(FlowId, &'a FlowStats),
}

/// Takes what is seen, in the order of time.
pub type Observer = Box<dyn FnMut(Time, Seen<'_>) + Send>;
