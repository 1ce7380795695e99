//! What an application can do with the connections of a host.

use super::Tcp;
use super::held::Held;
use crate::mptcp::connection::Connection as Several;
use crate::tcp::connection::Connection;
use bytes::Bytes;
use restp_base::flow::{Flow, FlowId, FlowStats, OpenError, Read, WriteError};
use restp_base::machine::PathAddress;
use restp_base::observe::Loss;
use restp_base::time::Time;
use restp_services::connection_management::{Establishment, Exchange};

impl Tcp {
    /// A connection by name, for a call of the application.
    fn with<T>(&mut self, flow: FlowId, call: impl FnOnce(&mut Held) -> T) -> Option<T> {
        let result = call(&mut self.slots.get_mut(&flow)?.held);
        self.touch(flow);
        Some(result)
    }
}

/// What a connection of one path says to a second one.
fn one_path(path: PathAddress) -> OpenError {
    OpenError::Unsupported(format!(
        "this connection has one path, so {} can be neither added nor removed; choose mptcp, at both ends",
        path.local
    ))
}

impl Flow for Tcp {
    fn open(&mut self, now: Time, path: PathAddress, port: u16) -> Result<FlowId, OpenError> {
        if self.slots.len() >= self.config.max_connections {
            let held = self.slots.len();
            return Err(OpenError::Unsupported(format!(
                "this host already holds its {held} connections; close one first"
            )));
        }
        let Some(key) = self.free_key(path.remote, port) else {
            return Err(OpenError::NoPort(path.remote));
        };
        let (parameters, isn) = (self.parameters.clone(), self.config.initial_sequence);
        let held = if parameters.multipath.is_some() {
            let own = self.fresh_key();
            Held::Several(Box::new(Several::open(
                now, parameters, path, key.ports, isn, own,
            )))
        } else {
            let connection = Connection::open(now, parameters, path, key.ports, isn, None);
            let scheme = if self.parameters.fast_open {
                Establishment::FastOpen
            } else {
                Establishment::ThreeWay
            };
            let shown = Exchange::open(scheme, self.kept.find(now, path.remote, port));
            Held::Single(Box::new(connection.with_exchange(shown)))
        };
        Ok(self.insert(key, held))
    }

    fn add_path(
        &mut self,
        now: Time,
        flow: FlowId,
        path: PathAddress,
        backup: bool,
    ) -> Result<(), OpenError> {
        let added = self.with(flow, |held| Some(held.several()?.add_path(now, path, backup)));
        self.settle(now, flow);
        added.flatten().unwrap_or_else(|| Err(one_path(path)))
    }

    fn remove_path(&mut self, now: Time, flow: FlowId, path: PathAddress) -> Result<(), OpenError> {
        let removed = self.with(flow, |held| Some(held.several()?.remove_path(now, path)));
        removed.flatten().unwrap_or_else(|| Err(one_path(path)))
    }

    fn write(&mut self, now: Time, flow: FlowId, data: Bytes) -> Result<(), WriteError> {
        self.with(flow, |held| held.write(now, data))
            .unwrap_or(Err(WriteError::Closed))
    }

    fn read(&mut self, _now: Time, flow: FlowId) -> Read {
        let Some(slot) = self.slots.get_mut(&flow) else {
            return Read::End;
        };
        let read = slot.held.read();
        if slot.held.owes_acknowledgement() {
            self.touch(flow);
        }
        read
    }

    fn finish(&mut self, _now: Time, flow: FlowId) {
        self.with(flow, |held| held.finish());
    }

    fn abort(&mut self, now: Time, flow: FlowId) {
        self.with(flow, |held| held.abort(now));
    }

    fn release(&mut self, now: Time, flow: FlowId) {
        if let Some(slot) = self.slots.get_mut(&flow) {
            slot.released = true;
            slot.held.discard(now);
            self.touch(flow);
        }
    }

    fn stats(&self, flow: FlowId) -> Option<FlowStats> {
        self.slots.get(&flow).map(|slot| slot.held.stats())
    }

    fn take_losses(&mut self, flow: FlowId, into: &mut Vec<Loss>) -> bool {
        if let Some(slot) = self.slots.get_mut(&flow) {
            slot.held.take_losses(into);
        }
        true
    }
}
