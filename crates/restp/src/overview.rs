//! All connections of an endpoint as somebody sees them who only looks: counters, paths, what each is made of.

use crate::Transport;
use crate::driver::shared::Shared;
use crate::endpoint::Endpoint;
use restp_base::flow::{Flow, FlowId, FlowStats};
use restp_proto::{StreamCounts, ValidComposition};
use restp_seal::{PublicKey, SealStats};
use std::sync::{Arc, Weak};

/// A way to look at an endpoint that does not keep it alive.
#[derive(Clone)]
pub struct Overview {
    shared: Weak<Shared<Transport>>,
}

/// One connection at the moment of the look.
#[derive(Clone, Debug)]
pub struct ConnectionView {
    /// Its name in this endpoint, which no other connection of it has had.
    pub id: FlowId,
    /// Both ends know of it.
    pub established: bool,
    /// The key that the other end has proved; `None` without a seal.
    pub peer_key: Option<PublicKey>,
    /// As negotiated.
    pub composition: Option<ValidComposition>,
    /// How many streams it carries; `None` where it carries none.
    pub streams: Option<StreamCounts>,
    /// Counters and estimates.
    pub stats: FlowStats,
}

/// What an endpoint does.
#[derive(Clone, Debug, Default)]
pub struct EndpointView {
    /// Its connections, those that were opened first in front.
    pub connections: Vec<ConnectionView>,
    /// What the seal counted; zeros without one.
    pub seal: SealStats,
}

impl Endpoint {
    /// A way to look at this endpoint from elsewhere.
    pub fn overview(&self) -> Overview {
        Overview {
            shared: Arc::downgrade(&self.shared),
        }
    }
}

impl Overview {
    /// What the endpoint does now; `None` once it is gone.
    pub fn look(&self) -> Option<EndpointView> {
        let shared = self.shared.upgrade()?;
        let core = shared.lock();
        let seal = core.machine.seal();
        let connections = core.flows.iter().filter_map(|(&id, state)| {
            // The engine has forgotten those that are over.
            let stats = core.machine.stats(id)?;
            Some(ConnectionView {
                id,
                established: state.established,
                peer_key: seal.and_then(|seal| seal.flow_key(id)),
                composition: core.machine.engine().composition(id).cloned(),
                streams: core.machine.engine().stream_counts(id),
                stats,
            })
        });
        Some(EndpointView {
            connections: connections.collect(),
            seal: seal.map_or_else(SealStats::default, restp_seal::Sealed::seal_stats),
        })
    }
}
