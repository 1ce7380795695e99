//! What a driver shows of a machine to somebody who only looks: datagrams as they pass the seam, and counters after
//! each step. What is observed never steers, and without an observer nothing is measured for one.

use crate::flow::{FlowId, FlowStats};
use crate::machine::Datagram;
use crate::time::Time;

/// One thing seen.
#[derive(Debug)]
pub enum Seen<'a> {
    /// A datagram leaves.
    Sent(&'a Datagram),
    /// A datagram arrives; its path is the machine's, from its own address to the peer's.
    Received(&'a Datagram),
    /// After a step: the counters and estimates of one flow.
    Measured(FlowId, &'a FlowStats),
}

/// Takes what is seen, in the order of time.
pub type Observer = Box<dyn FnMut(Time, Seen<'_>) + Send>;
