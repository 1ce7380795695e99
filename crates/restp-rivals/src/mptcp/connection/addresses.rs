//! What comes of addresses that come and go (RFC 8684 §3.4): the [path manager](super::path_manager) decides, subflows end and
//! say so.

use super::Connection;
use super::members::Member;
use crate::subflow::options::{AddAddress, Addresses};
use restp_base::flow::CloseReason;
use restp_base::time::{Duration, Time};
use std::net::{IpAddr, SocketAddr};

impl Connection {
    /// The peer is known to know both keys, on whatever subflow it said so.
    pub(super) fn is_settled(&mut self) -> bool {
        let paths = self.shared.paths();
        self.settled = self.settled || paths.iter().any(|member| member.tcp.is_settled());
        self.settled
    }

    /// An address of the peer, or the echo of one of ours. A forged one is counted, and nothing else comes of it.
    pub(super) fn on_announced(&mut self, added: AddAddress) {
        if added.proof.is_none() {
            self.manager.on_echo(added);
        } else if self.keys().is_some_and(|keys| added.is_genuine(keys)) {
            self.manager.on_announced(added);
        } else {
            self.shared.counters().rejected_packets += 1;
        }
    }

    /// The peer has some of its addresses no longer: their subflows end, but for the last one that works. As in Linux they are
    /// not asked first whether they do (RFC 8684 §3.4.2).
    pub(super) fn on_removed(&mut self, now: Time, removed: &Addresses) {
        let members = self.shared.paths().iter().enumerate();
        let is_of = |member: &Member| {
            let address = member.tcp.remote_address();
            address.is_some_and(|id| removed.ids().contains(&id))
        };
        // Their resets may have been here before.
        let concerned: Vec<(usize, IpAddr)> = members
            .filter(|(_, member)| is_of(member))
            .map(|(ordinal, member)| (ordinal, member.tcp.address().remote.ip()))
            .collect();
        let ips: Vec<IpAddr> = concerned.iter().map(|(_, ip)| *ip).collect();
        self.manager.on_removed(removed, &ips);
        for (ordinal, _) in concerned {
            if !self.shared.paths()[ordinal].gone {
                self.break_off_beside_others(now, ordinal);
            }
        }
    }

    /// The lower layer says that our address works, or no longer does: its subflows end and the peer hears of it, as when a
    /// network manager takes an endpoint away from Linux.
    pub(crate) fn on_local_address(&mut self, now: Time, local: SocketAddr, up: bool) {
        let paths = self.shared.paths();
        let concerned: Vec<usize> = (0..paths.len())
            .filter(|ordinal| !up && !paths[*ordinal].gone)
            .filter(|ordinal| paths[*ordinal].tcp.address().local.ip() == local.ip())
            .collect();
        self.manager.on_local(now, local, up);
        for ordinal in concerned {
            self.break_off_beside_others(now, ordinal);
        }
    }

    fn break_off_beside_others(&mut self, now: Time, ordinal: usize) {
        if self.is_usable_beside(ordinal) {
            self.break_off(now, ordinal);
        }
    }

    /// What is to be said of addresses goes to the best subflow, one at a time.
    pub(super) fn pass_on_notices(&mut self) {
        let Some(notice) = self.manager.next_notice() else {
            return;
        };
        if !self.is_settled() {
            return;
        }
        if let Some(best) = self.shared.paths().best()
            && self.shared.paths_mut()[best].tcp.notify(notice)
        {
            self.manager.notice_taken();
        }
    }

    /// When a pair may be dialled again, an announcement leaves again, or nobody is waited for any more.
    pub(super) fn address_deadline(&self) -> Option<Time> {
        let manager = self.manager.deadline().filter(|_| self.settled);
        manager.into_iter().chain(self.broken_until).min()
    }

    /// Acts on these deadlines; who may dial asks [`Connection::take_dial`].
    pub(super) fn on_address_deadline(&mut self, now: Time) {
        if self.is_settled()
            && let Some(keys) = self.keys()
        {
            let timeout = self.longest_timeout();
            self.manager.on_deadline(now, timeout, keys);
        }
        if let Some(until) = self.broken_until.filter(|until| *until <= now) {
            self.give_up(
                now,
                CloseReason::TimedOut(super::joins::MAKE_AFTER_BREAK + now.since(until)),
            );
        }
    }

    /// The longest retransmission timer of the subflows.
    fn longest_timeout(&self) -> Duration {
        let members = self.shared.paths().iter().filter(|member| !member.gone);
        members
            .map(|member| member.tcp.sender().timeout())
            .max()
            .unwrap_or(self.parameters.rto.initial)
    }

    /// No subflow is left, and none is waited for.
    pub(super) fn give_up(&mut self, now: Time, reason: CloseReason) {
        self.broken_until = None;
        self.manager.stop();
        self.shared.end(now, reason);
    }
}
