//! One connection over several subflows (RFC 8684): each is a TCP with numbers, repairs and a window of its own. What they
//! share is a service, [`Multipath`]; here is what only MPTCP knows of it.
//!
//! | File | What |
//! |---|---|
//! | `members` | one subflow, as the service sees it |
//! | `joins` | subflows: dialled, joined, ended |
//! | `path_manager` | which pairs are dialled, when again, and what is said of addresses |
//! | `addresses` | what comes of addresses that come and go |
//! | `intake` | what a segment means for the connection |

mod addresses;
mod intake;
mod joins;
mod members;
mod path_manager;

pub(crate) use joins::Join;
pub(crate) use path_manager::Dial;

use crate::subflow::FIRST_DATA;
use crate::tcp::TcpParameters;
use crate::tcp::connection::{Connection as Tcp, UNSCALED, shift_for};
use bytes::Bytes;
use members::Member;
use path_manager::PathManager;
use restp_base::flow::{CloseReason, FlowStats, Read, WriteError};
use restp_base::machine::{Datagram, Wakeup};
use restp_base::observe::Loss;
use restp_base::time::Time;
use restp_services::connection_management::{Key, Keys, Notice};
use restp_services::framing::Framing;
use restp_services::multipath::{
    DataReceiver, DataSender, DataSenderParameters, Multipath, Numbering, Reinjection,
};
use restp_services::path_management::PathMode;
use std::sync::Arc;

/// One end of a connection.
#[derive(Debug)]
pub(crate) struct Connection {
    parameters: Arc<TcpParameters>,
    local_key: Key,
    /// The peer is known to know both keys: joins and announcements may leave.
    settled: bool,
    manager: PathManager,
    /// The last subflow went silent: how long another one is waited for.
    broken_until: Option<Time>,
    /// The application does not read any more.
    discards: bool,
    shared: Multipath<Member>,
}

impl Connection {
    fn new(now: Time, parameters: Arc<TcpParameters>, local_key: Key, opened_here: bool) -> Self {
        let bytes = u64::from(parameters.window.segments) * u64::from(parameters.segment_bytes);
        let shift = if parameters.window_scaling {
            shift_for(bytes)
        } else {
            0
        };
        let units = (bytes >> shift).min(UNSCALED) as u32;
        let pieces = 2 * parameters.window.segments as usize;
        let tx = DataSender::new(DataSenderParameters {
            numbering: Numbering::Bytes,
            first: FIRST_DATA,
            window: 0,
            framing: Framing::Coalesce,
            segment_bytes: parameters.segment_bytes,
            send_buffer: parameters.send_buffer,
            paths: PathMode::Spreading,
            scheduling: parameters.multipath.clone(),
            reinjection: Reinjection::OnTimeout,
            stall_timeout: None,
        });
        let rx = DataReceiver::of_bytes(FIRST_DATA, shift, units, pieces);
        let coupled = parameters.congestion.looks_at_siblings();
        Connection {
            local_key,
            settled: false,
            manager: PathManager::new(opened_here, parameters.redial),
            broken_until: None,
            discards: false,
            shared: Multipath::new(now, opened_here, tx, rx, coupled),
            parameters,
        }
    }

    /// Both keys, once they are known: joins are held to them.
    pub(crate) fn keys(&self) -> Option<Keys> {
        self.shared.paths().iter().find_map(|member| member.tcp.keys())
    }
    pub(crate) fn is_closed(&self) -> bool {
        self.shared.is_closed()
    }
    pub(crate) fn is_half_open(&self) -> bool {
        self.shared.is_half_open()
    }
    pub(crate) fn is_unknown_to_application(&self) -> bool {
        self.shared.is_unknown()
    }
    pub(crate) fn owes_acknowledgement(&self) -> bool {
        let mut members = self.shared.paths().iter();
        members.any(|member| member.tcp.owes_acknowledgement())
    }
    pub(crate) fn poll_notice(&mut self) -> Option<Notice> {
        self.shared.poll_notice()
    }

    /// The one TCP that is left when the peer knows no other, with everything written so far.
    pub(crate) fn take_single(&mut self, now: Time) -> Option<Tcp> {
        let mut members = self.shared.paths().iter();
        let alone = members.position(|member| member.tcp.is_alone())?;
        let (member, written, ends) = self.shared.take_single(alone);
        let mut tcp = member.tcp;
        tcp.adopt(written);
        if ends {
            tcp.finish();
        }
        if self.discards {
            tcp.discard(now);
        }
        Some(tcp)
    }

    /// Takes data to send. See [`restp_base::flow::Flow::write`].
    pub(crate) fn write(&mut self, _now: Time, data: Bytes) -> Result<(), WriteError> {
        match self.shared.write(data, None) {
            Err(WriteError::Empty) => Ok(()), // a stream knows no empty piece
            result => result,
        }
    }

    /// Takes the next bytes for the reader.
    pub(crate) fn read(&mut self) -> Read {
        self.shared.read()
    }

    /// No more writes will come.
    pub(crate) fn finish(&mut self) {
        self.shared.finish();
    }

    /// Breaks off on every subflow.
    pub(crate) fn abort(&mut self, now: Time) {
        self.manager.stop();
        self.shared.break_off(now, CloseReason::Aborted);
    }

    /// The application has lost interest: what is unread is dropped, and no more will be written.
    pub(crate) fn discard(&mut self) {
        self.shared.discard(true);
        self.discards = true;
        self.finish();
    }

    /// Both directions are over: the subflows end (RFC 8684 §3.3.3), those that do not answer are broken off.
    fn conclude(&mut self, now: Time) {
        if !self.shared.concludes(now) {
            return;
        }
        self.manager.stop();
        for member in self.shared.paths_mut().iter_mut() {
            if member.tcp.sender().is_failing() {
                member.tcp.abort();
            } else {
                member.tcp.finish();
            }
        }
    }

    /// Writes the next segment into `out`; `false` when there is nothing to send now.
    pub(crate) fn poll_transmit(&mut self, now: Time, out: &mut Datagram) -> bool {
        self.pass_on_notices();
        let sent = self.shared.poll_transmit(now, out);
        if let Some(ordinal) = sent
            && self.shared.paths()[ordinal].tcp.is_closed()
        {
            self.collect(now, ordinal, None, false);
        }
        sent.is_some()
    }

    /// When to call [`Connection::on_deadline`], and why.
    pub(crate) fn deadline(&self) -> Option<(Time, Wakeup)> {
        let own = self.address_deadline().map(|at| (at, Wakeup::Retransmission));
        self.shared.deadline().into_iter().chain(own).min()
    }

    /// Acts on every deadline that has come.
    pub(crate) fn on_deadline(&mut self, now: Time) {
        for ordinal in 0..self.shared.paths().len() {
            let paths = self.shared.paths();
            let is_left = !paths[ordinal].gone || !paths[ordinal].tcp.is_closed();
            if is_left && paths.is_due(ordinal, now) {
                self.shared.paths_mut().introduce(now, ordinal);
                let timed_out = self.shared.paths_mut()[ordinal].tcp.on_deadline(now);
                self.collect(now, ordinal, None, timed_out);
            }
        }
        self.shared.on_deadline(now);
        self.on_address_deadline(now);
    }

    /// See [`restp_base::flow::Flow::take_losses`].
    pub(crate) fn take_losses(&mut self, into: &mut Vec<Loss>) {
        self.shared.take_losses(into);
    }

    pub(crate) fn stats(&self) -> FlowStats {
        let mut total = self.shared.stats();
        let best = self.shared.paths().best().unwrap_or(0);
        if let Some(member) = self.shared.paths().iter().nth(best) {
            total.path = Some(member.tcp.address());
            total.srtt = member.tcp.sender().smoothed_rtt();
            total.rto = Some(member.tcp.sender().timeout());
        }
        total
    }
}
