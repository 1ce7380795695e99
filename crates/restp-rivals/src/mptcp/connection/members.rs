//! The subflows of a connection: opened with it, dialled or joined later, and gone (RFC 8684 §3.1, §3.2).

use super::{Connection, State};
use crate::mptcp::options::Multipath;
use crate::mptcp::set_up::SetUp;
use crate::mptcp::subflow::Subflow;
use crate::tcp::TcpParameters;
use crate::tcp::connection::{Connection as Tcp, Ports};
use crate::tcp::wire::Header;
use restp_base::flow::{CloseReason, FlowStats, OpenError, PathState, PathStats};
use restp_base::machine::PathAddress;
use restp_base::time::Time;
use restp_services::connection_management::{Key, Nonce, Notice};
use std::sync::Arc;

/// Subflows of a connection in its life, lines that wait included: as many as Linux has at once.
pub(super) const MAX_SUBFLOWS: usize = 8;

/// One subflow.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) tcp: Tcp,
    /// What the application was last told of it.
    pub(super) told: Option<PathState>,
    /// Times its data were given to others because its timer ran out.
    pub(super) reinjections: u64,
    /// It has ended, and what it carried was seen to.
    pub(super) gone: bool,
}

impl Member {
    fn new(tcp: Tcp) -> Self {
        Member {
            tcp,
            told: None,
            reinjections: 0,
            gone: false,
        }
    }

    /// Its counters, as those of one path.
    pub(super) fn stats(&self) -> FlowStats {
        let stats = self.tcp.stats();
        let path = PathStats {
            path: self.tcp.address(),
            sent_packets: stats.sent_packets,
            sent_bytes: stats.sent_bytes,
            received_bytes: stats.received_bytes,
            lost_packets: stats.lost_packets,
            srtt: stats.srtt,
            suspicions: self.reinjections,
            down_events: 0,
        };
        FlowStats {
            paths: vec![path],
            ..stats
        }
    }
}

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
        connection.members.push(Member::new(tcp));
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
        connection.members.push(Member::new(tcp));
        connection
    }

    /// The key of this end, by whose token joins find the connection.
    pub(crate) fn local_key(&self) -> Key {
        self.local_key
    }

    /// One more path to use, as soon as joins are possible.
    pub(crate) fn add_path(&mut self, path: PathAddress, backup: bool) -> Result<(), OpenError> {
        if self.members.len() + self.lines.len() >= MAX_SUBFLOWS {
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
            .members
            .iter()
            .any(|member| member.tcp.is_usable() && !on_it(member));
        let found = self
            .members
            .iter()
            .position(|member| on_it(member) && !member.gone);
        let (Some(ordinal), true) = (found, others) else {
            return Err(OpenError::Unsupported(format!(
                "no subflow uses {}, or no other one works",
                path.local
            )));
        };
        self.members[ordinal].tcp.abort();
        self.collect(now, ordinal);
        Ok(())
    }

    /// The next path to join on, now that joins are possible.
    pub(crate) fn take_dial(&mut self) -> Option<Dial> {
        let settled = self.members.iter().any(|member| member.tcp.is_settled());
        if settled && self.state == State::Established {
            return self.lines.pop_front();
        }
        None
    }

    /// Joins from here; the ordinal of the new subflow.
    pub(crate) fn dial(&mut self, now: Time, join: Join, backup: bool) -> Option<usize> {
        let address = self.members.len() as u8;
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
        self.members.push(Member::new(tcp));
        Some(self.members.len() - 1)
    }

    /// Answers a SYN that joins; `None` when this connection takes no more.
    pub(crate) fn admit(&mut self, now: Time, join: Join, syn: &Header) -> Option<usize> {
        let Some(Multipath::Join { backup, nonce, .. }) = syn.options.multipath else {
            return None;
        };
        if self.state != State::Established || self.members.len() >= MAX_SUBFLOWS {
            return None;
        }
        let address = self.members.len() as u8;
        let set_up = SetUp::admits(self.keys()?, join.nonce, nonce, address, backup);
        let tcp = Tcp::accept(
            now,
            self.parameters.clone(),
            join.path,
            syn,
            join.isn,
            Some(Subflow::new(set_up)),
        );
        self.members.push(Member::new(tcp));
        Some(self.members.len() - 1)
    }

    /// Is the subflow over, so that its ports may be used again?
    pub(crate) fn has_ended(&self, ordinal: usize) -> bool {
        self.members
            .get(ordinal)
            .is_none_or(|member| member.tcp.is_closed())
    }

    /// A subflow is gone: the others take over what it carried. The connection goes with the last one.
    pub(super) fn on_member_closed(&mut self, ordinal: usize, reason: CloseReason) {
        self.members[ordinal].gone = true;
        self.salvage(ordinal);
        self.tell(ordinal, PathState::Closed);
        if self.members.iter().all(|member| member.gone) {
            self.end(reason);
        }
    }

    /// Tells the application what became of a path, once.
    pub(super) fn tell(&mut self, ordinal: usize, state: PathState) {
        let member = &mut self.members[ordinal];
        if member.told != Some(state) && (member.told.is_some() || state == PathState::Up) {
            member.told = Some(state);
            self.notices.push_back(Notice::Path(member.tcp.address(), state));
        }
    }

    /// The subflow `ordinal` learns of the others, where its congestion control looks at them (RFC 6356 §3).
    pub(super) fn introduce(&mut self, ordinal: usize) {
        if !self.parameters.congestion.is_coupled() {
            return;
        }
        let mut siblings = std::mem::take(self.members[ordinal].tcp.siblings());
        siblings.clear();
        let others = self.members.iter().enumerate().filter(|(other, member)| {
            *other != ordinal && member.tcp.is_usable() && !member.tcp.is_failing() && !member.tcp.is_backup()
        });
        siblings.extend(others.filter_map(|(_, member)| member.tcp.as_sibling()));
        *self.members[ordinal].tcp.siblings() = siblings;
    }

    /// The subflow that works best: no failing one, no backup, then the least round-trip time.
    pub(super) fn best(&self) -> Option<usize> {
        let members = self.members.iter().enumerate();
        let usable = members.filter(|(_, member)| member.tcp.is_usable());
        let rank = |member: &Member| {
            let tcp = &member.tcp;
            (tcp.is_failing(), tcp.is_backup(), tcp.smoothed_rtt())
        };
        usable
            .min_by_key(|(ordinal, member)| (rank(member), *ordinal))
            .map(|(ordinal, _)| ordinal)
    }
}
