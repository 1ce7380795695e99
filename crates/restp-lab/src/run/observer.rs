//! Looking on while a point runs. What is observed never steers: a run gives the same result with and without.

use super::RunError;
use crate::host::Host;
use restp_base::machine::Datagram;
use restp_base::time::Time;
use restp_sim::World;

/// One end of one flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// The flow, by its place in the plan.
    pub flow: usize,
    /// Is it the one that opens the flow and sends?
    pub opens: bool,
}

/// Sees what hosts do.
pub trait Observer {
    /// A datagram arrived; its path still is that of its sender.
    fn arrived(&mut self, now: Time, end: End, datagram: &Datagram);

    /// A datagram leaves.
    fn sent(&mut self, now: Time, end: End, datagram: &Datagram);

    /// A host has done everything that followed from one input.
    ///
    /// # Errors
    /// To end the run.
    fn settled(&mut self, now: Time, end: End, host: &Host, world: &mut World) -> Result<(), RunError>;
}

/// Nobody looks on.
pub struct Nobody;

impl Observer for Nobody {
    fn arrived(&mut self, _: Time, _: End, _: &Datagram) {}
    fn sent(&mut self, _: Time, _: End, _: &Datagram) {}
    fn settled(&mut self, _: Time, _: End, _: &Host, _: &mut World) -> Result<(), RunError> {
        Ok(())
    }
}
