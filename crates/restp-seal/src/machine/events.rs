//! Whose flows are: what the machine tells while it has a datagram is about the session that brought it, and never about
//! whoever has that address when it is asked.

use super::Sealed;
use crate::packet::ConnectionId;
use restp_base::flow::{CloseReason, FlowId, OpenError};
use restp_base::machine::{Datagram, Event, Input, Machine, PathAddress};
use restp_base::time::Time;
use std::net::SocketAddr;

impl<M: Machine> Sealed<M> {
    /// Hands `datagram` of session `id` to the machine; flows that begin with it are those of its peer. Those of who had the
    /// address before it have left, and do not hear it.
    pub(super) fn hand_over(&mut self, now: Time, id: &ConnectionId, datagram: &mut Datagram) {
        self.part_displaced(now);
        datagram.peer = self.peers.number_of(id);
        self.inner.handle(now, Input::Datagram(datagram));
        self.collect(Some(id));
    }

    /// Takes what the machine tells, because of a datagram of session `from` if there was one.
    pub(super) fn collect(&mut self, from: Option<&ConnectionId>) {
        while let Some(event) = self.inner.poll_event() {
            let event = self.on_event(event, from);
            self.events.extend(event);
        }
    }

    fn on_event(&mut self, event: Event, from: Option<&ConnectionId>) -> Option<Event> {
        match event {
            Event::Accepted(flow) => {
                let proved = from.is_none_or(|id| self.peers.enter_from(flow, id));
                if !proved && self.config.awaits_proof {
                    return None; // it is told when it is certain who is there
                }
            }
            Event::Closed(flow, ref reason) => {
                let silent = matches!(reason, CloseReason::TimedOut(_));
                if let Some((fault, addresses)) = self.peers.suspicion(flow).filter(|_| silent) {
                    addresses
                        .iter()
                        .for_each(|address| self.hosts.blame(*address, fault));
                    self.refused.insert(flow);
                }
                let doubted = self.peers.leave(flow);
                if doubted && self.config.awaits_proof {
                    self.unheard.push(flow);
                    return None;
                }
                if self.refused.remove(&flow) {
                    return Some(Event::Closed(flow, CloseReason::Refused));
                }
            }
            _ => {}
        }
        Some(event)
    }

    /// Flows are certainly of who they are said to be of.
    pub(super) fn accept_certain(&mut self, certain: Vec<FlowId>) {
        if self.config.awaits_proof {
            self.events.extend(certain.into_iter().map(Event::Accepted));
        }
    }

    /// Flows leave addresses that belong to another peer now, or end where they have no other.
    pub(super) fn part_displaced(&mut self, now: Time) {
        for (flow, remote) in self.peers.take_displaced() {
            let paths = self.paths_of(flow, remote);
            // Counters tell of paths that have ended, too: those are left already.
            let stays = |path| match self.inner.remove_path(now, flow, path) {
                Ok(()) | Err(OpenError::NoSuchPath(_)) => false,
                Err(_) => true,
            };
            if paths.into_iter().any(stays) {
                self.inner.abort(now, flow);
                self.stats.displaced += 1;
            }
        }
        for flow in std::mem::take(&mut self.unheard) {
            self.inner.release(now, flow);
        }
    }

    fn paths_of(&self, flow: FlowId, remote: SocketAddr) -> Vec<PathAddress> {
        let stats = self.inner.stats(flow).unwrap_or_default();
        let all = stats.paths.iter().map(|path| path.path);
        let mut paths: Vec<_> = all
            .chain(stats.path)
            .filter(|path| path.remote == remote)
            .collect();
        paths.dedup();
        paths
    }
}
