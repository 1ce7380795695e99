//! The subflows of a connection: opened with it, dialled or joined later, and gone (RFC 8684 §3.1, §3.2).

use super::Connection;
use super::members::Member;
use crate::mptcp::options::Multipath;
use crate::mptcp::set_up::SetUp;
use crate::mptcp::subflow::Subflow;
use crate::tcp::TcpParameters;
use crate::tcp::connection::{Connection as Tcp, Ports};
use crate::tcp::wire::Header;
use restp_base::flow::{CloseReason, OpenError, PathState};
use restp_base::machine::PathAddress;
use restp_base::time::Time;
use restp_services::connection_management::{Key, Nonce};
use std::sync::Arc;

/// Subflows of a connection in its life, lines that wait included: as many as Linux has at once.
const MAX_SUBFLOWS: usize = 8;

/// A path to join on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dial {
    pub(crate) path: PathAddress,
    pub(crate) backup: bool,
}

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
        connection.put(tcp);
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
        connection.put(tcp);
        connection
    }

    /// The key of this end, by whose token joins find the connection.
    pub(crate) fn local_key(&self) -> Key {
        self.local_key
    }

    /// One more path to use, as soon as joins are possible.
    pub(crate) fn add_path(&mut self, path: PathAddress, backup: bool) -> Result<(), OpenError> {
        if self.shared.paths().len() + self.lines.len() >= MAX_SUBFLOWS {
            return Err(OpenError::Unsupported(format!(
                "a connection has {MAX_SUBFLOWS} subflows at most, so {} cannot be used as well",
                path.local
            )));
        }
        self.lines.push_back(Dial { path, backup });
        Ok(())
    }

    /// Breaks off the subflow on `path`; the others carry on.
    pub(crate) fn remove_path(&mut self, now: Time, path: PathAddress) -> Result<(), OpenError> {
        let on_it = |member: &Member| member.tcp.address() == path;
        let others = self
            .shared
            .paths()
            .iter()
            .any(|member| member.tcp.is_usable() && !on_it(member));
        let found = self
            .shared
            .paths()
            .iter()
            .position(|member| on_it(member) && !member.gone);
        let (Some(ordinal), true) = (found, others) else {
            return Err(OpenError::Unsupported(format!(
                "no subflow uses {}, or no other one works",
                path.local
            )));
        };
        self.shared.paths_mut()[ordinal].tcp.abort();
        self.collect(now, ordinal, None, false);
        Ok(())
    }

    /// The next path to join on, now that joins are possible.
    pub(crate) fn take_dial(&mut self) -> Option<Dial> {
        let settled = self.shared.paths().iter().any(|member| member.tcp.is_settled());
        if settled && self.shared.is_established() {
            return self.lines.pop_front();
        }
        None
    }

    /// Joins from here; the ordinal of the new subflow.
    pub(crate) fn dial(&mut self, now: Time, join: Join, backup: bool) -> Option<usize> {
        let address = self.shared.paths().len() as u8;
        let set_up = SetUp::joins(self.keys()?, join.nonce, address, backup);
        let Join { path, ports, isn, .. } = join;
        let tcp = Tcp::open(
            now,
            self.parameters.clone(),
            path,
            ports,
            isn,
            Some(Subflow::new(set_up)),
        );
        Some(self.put(tcp))
    }

    /// Answers a SYN that joins; `None` when this connection takes no more.
    pub(crate) fn admit(&mut self, now: Time, join: Join, syn: &Header) -> Option<usize> {
        let Some(Multipath::Join { backup, nonce, .. }) = syn.options.multipath else {
            return None;
        };
        if !self.shared.is_established() || self.shared.paths().len() >= MAX_SUBFLOWS {
            return None;
        }
        let address = self.shared.paths().len() as u8;
        let set_up = SetUp::admits(self.keys()?, join.nonce, nonce, address, backup);
        let tcp = Tcp::accept(
            now,
            self.parameters.clone(),
            join.path,
            syn,
            join.isn,
            Some(Subflow::new(set_up)),
        );
        Some(self.put(tcp))
    }

    /// Is the subflow over, so that its ports may be used again?
    pub(crate) fn has_ended(&self, ordinal: usize) -> bool {
        let mut members = self.shared.paths().iter();
        members.nth(ordinal).is_none_or(|member| member.tcp.is_closed())
    }

    /// A subflow is gone: the others take over what it carried. The connection goes with the last one.
    pub(super) fn on_member_closed(&mut self, now: Time, ordinal: usize, reason: CloseReason) {
        self.shared.paths_mut()[ordinal].gone = true;
        self.shared.place_again(ordinal);
        self.shared.tell(ordinal, PathState::Closed);
        if self.shared.paths().iter().all(|member| member.gone) {
            self.lines.clear();
            self.shared.end(now, reason);
        }
    }

    fn put(&mut self, tcp: Tcp) -> usize {
        let ordinal = self.shared.paths().len();
        self.shared.paths_mut().put(ordinal, Member::new(tcp));
        ordinal
    }
}
