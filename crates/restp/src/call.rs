//! What a machine can do besides flows: an application calls it under the lock of its endpoint, and waits until it has something.

use crate::connection::Connection;
use crate::driver::shared::{Core, Shared};
use crate::endpoint::Endpoint;
use crate::waiters::until;
use restp_base::flow::{CloseReason, FlowId};
use restp_base::machine::Machine;
use restp_base::time::Time;
use std::fmt;
use std::sync::{Arc, Weak};

impl<M: Machine + Send + Unpin + 'static> Endpoint<M> {
    /// Calls the machine, for what it can do besides flows, with the time of the call.
    pub fn call<R>(&self, act: impl FnOnce(&mut M, Time) -> R) -> R {
        call(&mut self.shared.lock(), act)
    }

    /// Who calls the machine as well, from a thread that works for it, say, and does not keep it.
    pub fn caller(&self) -> Caller<M> {
        Caller(Arc::downgrade(&self.shared))
    }

    /// The handle of a flow that the machine has opened in [`Endpoint::call`].
    pub fn adopt(&self, flow: FlowId) -> Connection<M> {
        let mut core = self.shared.lock();
        core.flows.entry(flow).or_default();
        drop(core);
        Connection::new(self.shared.clone(), flow)
    }
}

fn call<M: Machine, R>(core: &mut Core<M>, act: impl FnOnce(&mut M, Time) -> R) -> R {
    let now = core.now();
    let result = act(&mut core.machine, now);
    core.wake_driver();
    result
}

/// Calls the machine of an endpoint for as long as that runs.
pub struct Caller<M>(Weak<Shared<M>>);

impl<M: Machine> Caller<M> {
    /// As [`Endpoint::call`]. `None`: it has stopped.
    pub fn call<R>(&self, act: impl FnOnce(&mut M, Time) -> R) -> Option<R> {
        let shared = self.0.upgrade()?;
        let mut core = shared.lock();
        (!core.stopped).then(|| call(&mut core, act))
    }
}

impl<M> fmt::Debug for Caller<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller").finish_non_exhaustive()
    }
}

impl<M: Machine> Connection<M> {
    /// Looks at the machine whenever something has come for this flow, until `look` finds what it looks for.
    ///
    /// # Errors
    /// Why the flow ended before that.
    pub async fn until<R>(&self, mut look: impl FnMut(&mut M, Time) -> Option<R>) -> Result<R, CloseReason> {
        until(|| {
            let mut core = self.shared.lock();
            let now = core.now();
            if let Some(found) = look(&mut core.machine, now) {
                core.wake_driver();
                return Ok(Ok(found));
            }
            match core.flows.get(&self.flow) {
                None => Ok(Err(CloseReason::Aborted)),
                Some(state) => match &state.closed {
                    Some(reason) => Ok(Err(reason.clone())),
                    None => Err(state.readers.wait()),
                },
            }
        })
        .await
    }
}
