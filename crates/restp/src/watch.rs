//! Keeps sockets and paths in step with this host's links, addresses and routes, until the endpoint stops.

use crate::driver::shared::Shared;
use crate::locals;
use crate::netlink::Changes;
use restp_base::machine::Machine;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

/// Acts on every change.
pub(crate) async fn follow<M: Machine>(shared: Arc<Shared<M>>, mut changes: Changes) {
    loop {
        let stopped = poll_fn(|cx| {
            let mut core = shared.lock();
            if core.stopped {
                return Poll::Ready(());
            }
            core.stop_watchers.register(cx);
            Poll::Pending
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
