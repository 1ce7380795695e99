//! Keeps sockets and paths in step with this host's links, addresses and routes, until the endpoint stops.

use crate::driver::shared::Shared;
use crate::locals;
use crate::netlink::Changes;
use crate::waiters::until;
use restp_base::machine::Machine;
use std::sync::Arc;

/// Acts on every change.
pub(crate) async fn follow<M: Machine>(shared: Arc<Shared<M>>, mut changes: Changes) {
    loop {
        let stopped = until(|| {
            let core = shared.lock();
            if core.stopped {
                Ok(())
            } else {
                Err(core.stop_watchers.wait())
            }
        });
        tokio::select! {
            () = stopped => return,
            changed = changes.next() => if let Err(error) = changed {
                return tracing::debug!(%error, "changes of this host's addresses are not noticed any more");
            },
        }
        // Without a list nothing is known to have gone.
        if let Ok(present) = locals::present() {
            let mut core = shared.lock();
            if !core.stopped {
                core.on_network_change(&present);
            }
        }
    }
}
