//! The subflows of a connection: opened with it, dialled or joined later, and gone (RFC 8684 §3.1, §3.2).

use super::Connection;
use super::members::Member;
use super::path_manager::{Dial, Ending};
use crate::subflow::Subflow;
use crate::subflow::options::Multipath;
use crate::subflow::set_up::SetUp;
use crate::tcp::TcpParameters;
use crate::tcp::connection::{Connection as Tcp, Ports};
use crate::tcp::wire::Header;
use restp_base::flow::{CloseReason, OpenError, PathState};
use restp_base::machine::PathAddress;
use restp_base::time::{Duration, Time};
use restp_services::connection_management::{Key, Nonce};
use std::sync::Arc;

/// Subflows of a connection at once, those that linger and pairs that wait included: as many as Linux has.
const MAX_SUBFLOWS: usize = 8;
/// How long a connection without a subflow waits for another one (Linux: net.mptcp.close_timeout).
pub(super) const MAKE_AFTER_BREAK: Duration = Duration::from_secs(60);

/// What the host provides for one more subflow: ports, first number, random value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Join {
    pub(crate) path: PathAddress,
    pub(crate) ports: Ports,
    pub(crate) isn: u32,
    pub(crate) nonce: Nonce,
}

impl Connection {
    /// Opens a connection from this side, along `path`.
    pub(crate) fn open(
        now: Time,
        parameters: Arc<TcpParameters>,
        path: PathAddress,
        ports: Ports,
        isn: u32,
        key: Key,
    ) -> Self {
        let mut connection = Self::new(now, parameters.clone(), key, true);
        let tcp = Tcp::open(
            now,
            parameters,
            path,
            ports,
            isn,
            Some(Subflow::new(SetUp::opens(key))),
        );
        connection.manager.begin(path, ports.remote);
        connection.put(0, tcp);
        connection
    }

    /// Answers a SYN that offers to use several paths.
    pub(crate) fn accept(
        now: Time,
        parameters: Arc<TcpParameters>,
        path: PathAddress,
        syn: &Header,
        isn: u32,
        key: Key,
    ) -> Self {
        let mut connection = Self::new(now, parameters.clone(), key, false);
        let tcp = Tcp::accept(
            now,
            parameters,
            path,
            syn,
            isn,
            Some(Subflow::new(SetUp::answers(key))),
        );
        connection.manager.begin(path, syn.source_port);
        connection.put(0, tcp);
        connection
    }

    /// The key of this end, by whose token joins find the connection.
    pub(crate) fn local_key(&self) -> Key {
        self.local_key
    }

    /// One more path to use, as soon as joins are possible. The end that did not open the connection announces its address,
    /// and the other one dials.
    pub(crate) fn add_path(&mut self, now: Time, path: PathAddress, backup: bool) -> Result<(), OpenError> {
        if !self.shared.is_opened_here() {
            return self
                .manager
                .announce(now, path.local)
                .then_some(())
                .ok_or_else(|| {
                    OpenError::Unsupported(format!(
                        "a peer knows {MAX_SUBFLOWS} addresses at most, so {} cannot be announced as well",
                        path.local
                    ))
                });
        }
        if self.manager.candidates() >= MAX_SUBFLOWS {
            return Err(OpenError::Unsupported(format!(
                "a connection has {MAX_SUBFLOWS} subflows at most, so {} cannot be used as well",
                path.local
            )));
        }
        let at_once = !self.parameters.announced_addresses;
        if !self.manager.add(path, backup, at_once) {
            return Err(OpenError::Unsupported(format!(
                "this connection uses {} with {} already",
                path.local, path.remote
            )));
        }
        Ok(())
    }

    /// Breaks off the subflow on `path`; the others carry on. A pair that waits to be dialled is forgotten.
    pub(crate) fn remove_path(&mut self, now: Time, path: PathAddress) -> Result<(), OpenError> {
        let members = || self.shared.paths().iter().enumerate();
        let mut left = members().filter(|(_, member)| !member.gone);
        let found = left.find(|(_, member)| member.tcp.address() == path);
        let found = found.map(|(ordinal, _)| ordinal);
        if !found.map_or(self.manager.uses(path), |ordinal| self.is_usable_beside(ordinal)) {
            return Err(OpenError::Unsupported(format!(
                "no subflow uses {}, or no other one works",
                path.local
            )));
        }
        let mut others = members().filter(|(other, member)| Some(*other) != found && !member.gone);
        let in_use = others.any(|(_, member)| member.tcp.address().local.ip() == path.local.ip());
        self.manager.drop_line(path, in_use);
        if let Some(ordinal) = found {
            self.break_off(now, ordinal);
        }
        Ok(())
    }

    /// Another subflow than `ordinal` can carry data.
    pub(super) fn is_usable_beside(&self, ordinal: usize) -> bool {
        let members = self.shared.paths().iter().enumerate();
        members
            .filter(|(other, _)| *other != ordinal)
            .any(|(_, member)| member.tcp.is_usable())
    }

    /// The subflow is reset; the others carry on.
    pub(super) fn break_off(&mut self, now: Time, ordinal: usize) {
        self.shared.paths_mut()[ordinal].tcp.abort();
        self.collect(now, ordinal, None, false);
    }

    /// The next path to join on, now that joins are possible.
    pub(crate) fn take_dial(&mut self, now: Time) -> Option<Dial> {
        let may_join = self.is_settled() && self.shared.is_established();
        may_join.then(|| self.manager.take_dial(now)).flatten()
    }

    /// The pair could not be dialled.
    pub(crate) fn on_undialled(&mut self, now: Time, dial: Dial) {
        self.manager.on_end(now, dial.path, Ending::Failed);
    }

    /// Joins from here; the ordinal of the new subflow. `None` when there is no room for one.
    pub(crate) fn dial(&mut self, now: Time, join: Join, backup: bool) -> Option<usize> {
        let Join { path, ports, isn, .. } = join;
        let ordinal = self.free_ordinal(path)?;
        let address = self.manager.id_of(path.local)?;
        let set_up = SetUp::joins(self.keys()?, join.nonce, address, backup);
        let tcp = Tcp::open(
            now,
            self.parameters.clone(),
            path,
            ports,
            isn,
            Some(Subflow::new(set_up)),
        );
        self.put(ordinal, tcp);
        Some(ordinal)
    }

    /// Answers a SYN that joins; `None` when this connection takes no more.
    pub(crate) fn admit(&mut self, now: Time, join: Join, syn: &Header) -> Option<usize> {
        let Some(Multipath::Join {
            backup,
            nonce,
            address: theirs,
            ..
        }) = syn.options.multipath
        else {
            return None;
        };
        if !self.shared.is_established() {
            return None;
        }
        let ordinal = self.free_ordinal(join.path)?;
        let ours = self.manager.id_of(join.path.local)?;
        let set_up = SetUp::admits(self.keys()?, join.nonce, nonce, (ours, theirs), backup);
        let tcp = Tcp::accept(
            now,
            self.parameters.clone(),
            join.path,
            syn,
            join.isn,
            Some(Subflow::new(set_up)),
        );
        self.put(ordinal, tcp);
        Some(ordinal)
    }

    /// A place for a subflow on `path`: that of an earlier one, a new one, or that of any that is gone.
    fn free_ordinal(&self, path: PathAddress) -> Option<usize> {
        let members = self.shared.paths();
        let free = |member: &Member| member.gone && member.tcp.is_closed();
        let earlier = members
            .iter()
            .position(|member| free(member) && member.tcp.address() == path);
        let new = (members.len() < MAX_SUBFLOWS).then_some(members.len());
        earlier.or(new).or_else(|| members.iter().position(free))
    }

    /// Is the subflow over, so that its ports may be used again?
    pub(crate) fn has_ended(&self, ordinal: usize) -> bool {
        let mut members = self.shared.paths().iter();
        members.nth(ordinal).is_none_or(|member| member.tcp.is_closed())
    }

    /// A subflow is gone: the others take over what it carried. The connection goes with the last one, at once or, where that
    /// went silent, when no other has come for a while.
    pub(super) fn on_member_closed(&mut self, now: Time, ordinal: usize, reason: CloseReason) {
        self.shared.paths_mut()[ordinal].gone = true;
        self.shared.place_again(ordinal);
        self.shared.tell(ordinal, PathState::Closed);
        let path = self.shared.paths()[ordinal].tcp.address();
        self.manager.on_end(now, path, Ending::of(&reason));
        if !self.shared.paths().iter().all(|member| member.gone) {
            return;
        }
        let silent = matches!(reason, CloseReason::TimedOut(_));
        if silent && self.manager.redials() && self.is_settled() && self.shared.is_established() {
            self.broken_until.get_or_insert(now + MAKE_AFTER_BREAK);
        } else {
            self.give_up(now, reason);
        }
    }

    /// The subflow may carry data. The peer dials a pair of addresses again only when its subflow there has ended, so an older
    /// one on the same pair is of no use.
    pub(super) fn on_usable(&mut self, now: Time, ordinal: usize) {
        if self.shared.paths()[ordinal].up {
            return;
        }
        self.shared.paths_mut()[ordinal].up = true;
        self.broken_until = None;
        let path = self.shared.paths()[ordinal].tcp.address();
        self.manager.on_up(now, path);
        for other in 0..self.shared.paths().len() {
            let member = &self.shared.paths()[other];
            if other != ordinal && !member.gone && member.up && member.tcp.address() == path {
                self.break_off(now, other);
            }
        }
    }

    fn put(&mut self, ordinal: usize, tcp: Tcp) {
        let mut member = Member::new(tcp);
        if ordinal < self.shared.paths().len() {
            member = member.in_place_of(&self.shared.paths()[ordinal]);
            self.shared.forget_path(ordinal);
        }
        self.shared.paths_mut().put(ordinal, member);
    }
}
