//! One TCP connection: a handful of services, two short lists of calls ([`intake`], [`outlet`]), and the state they
//! share. Drained as ResTP's: [`Connection::poll_transmit`] until `false`, notices, [`Connection::deadline`].

mod agreement;
mod dsack;
mod early;
mod ecn;
mod intake;
mod multipath;
mod outlet;
mod state;
mod timers;

pub(crate) use agreement::{UNSCALED, shift_for};
pub(crate) use intake::{Packet, Verdict};
pub(crate) use restp_services::connection_management::Ports;

use super::parameters::TcpParameters;
use super::wire::Header;
use crate::subflow::Subflow;
use agreement::Agreed;
use bytes::Bytes;
use dsack::Duplicates;
use ecn::EcnState;
use restp_base::flow::{CloseReason, FlowStats, Read, WriteError};
use restp_base::machine::{Datagram, PathAddress};
use restp_base::observe::Loss;
use restp_base::sequence;
use restp_base::time::Time;
use restp_services::ack::{AckTimer, Detail, NakReporter, Schedule};
use restp_services::connection_management::{Cookie, Exchange, Handshake, Notice, Release, TIME_WAIT};
use restp_services::flow_control::WindowParameters;
use restp_services::framing::Boundaries;
use restp_services::receiver::Receiver;
use restp_services::sender::Sender;
use state::State;
use std::collections::VecDeque;
use std::sync::Arc;

/// First number of the sender's segments, which never travel.
const FIRST_SEGMENT: u64 = sequence::ORIGIN;

/// One end of a connection.
#[derive(Debug)]
pub(crate) struct Connection {
    parameters: Arc<TcpParameters>,
    ports: Ports,
    state: State,
    address: PathAddress,
    sender: Sender,
    /// Where its segments lie among the bytes.
    numbers: Boundaries,
    /// Window field of the last acknowledgement, to tell an update from a duplicate.
    advertised: u16,
    receiver: Receiver,
    /// The byte behind the peer's SYN.
    first_received: u64,
    agreed: Agreed,
    ecn: EcnState,
    /// What arrives twice is named, by both ends.
    duplicates: Option<Box<Duplicates>>,
    /// Its part in a connection of several paths.
    subflow: Option<Box<Subflow>>,
    /// What the set-up says of cookies, and whether data may travel before it is complete.
    exchange: Option<Exchange>,
    /// A cookie from the server, for the next time.
    fresh_cookie: Option<Cookie>,
    release: Release,
    stats: FlowStats,
    notices: VecDeque<Notice>,
    opened_here: bool,
    opened_at: Time,
    /// An end that nobody holds any more waits for the peer's FIN until then.
    orphan_until: Option<Time>,
}

impl Connection {
    /// Opens a connection from this side.
    pub(crate) fn open(
        now: Time,
        parameters: Arc<TcpParameters>,
        address: PathAddress,
        ports: Ports,
        isn: u32,
        subflow: Option<Subflow>,
    ) -> Self {
        let state = State::SynSent(Handshake::start(now, parameters.handshake));
        let mut connection = Self::new(now, parameters, address, ports, isn, state);
        connection.subflow = subflow.map(Box::new);
        connection
    }

    /// Answers a SYN.
    pub(crate) fn accept(
        now: Time,
        parameters: Arc<TcpParameters>,
        address: PathAddress,
        syn: &Header,
        isn: u32,
        subflow: Option<Subflow>,
    ) -> Self {
        let ports = Ports {
            local: syn.destination_port,
            remote: syn.source_port,
        };
        let state = State::SynReceived(Handshake::start(now, parameters.handshake));
        let mut connection = Self::new(now, parameters, address, ports, isn, state);
        connection.opened_here = false;
        connection.subflow = subflow.map(Box::new);
        connection.learn(syn);
        connection
    }

    fn new(
        now: Time,
        parameters: Arc<TcpParameters>,
        address: PathAddress,
        ports: Ports,
        isn: u32,
        state: State,
    ) -> Self {
        let first_byte = sequence::ORIGIN + u64::from(isn) + 1; // the SYN takes one
        Connection {
            ports,
            state,
            address,
            sender: parameters.sender(now, FIRST_SEGMENT, first_byte),
            numbers: Boundaries::new(FIRST_SEGMENT, first_byte),
            advertised: 0,
            receiver: Receiver::new(
                parameters.segment_bytes,
                WindowParameters { segments: 0 },
                AckTimer::new(Schedule::Positive(parameters.ack), None),
                NakReporter::new(parameters.nak, 1, sequence::ORIGIN),
                None,
            ),
            first_received: sequence::ORIGIN,
            agreed: Agreed {
                segment_bytes: parameters.segment_bytes,
                peer_shift: 0,
                detail: Detail::Pointer,
                unit: u64::from(parameters.segment_bytes),
                clock: None,
            },
            ecn: EcnState::default(),
            duplicates: None,
            subflow: None,
            exchange: None,
            fresh_cookie: None,
            release: Release::default(),
            stats: FlowStats {
                path: Some(address),
                ..FlowStats::default()
            },
            notices: VecDeque::new(),
            opened_here: true,
            opened_at: now,
            orphan_until: None,
            parameters,
        }
    }

    /// What we take, in bytes, whatever the field can say.
    fn window_bytes(&self) -> u64 {
        u64::from(self.parameters.window.segments) * u64::from(self.parameters.segment_bytes)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state == State::Closed
    }
    pub(crate) fn is_half_open(&self) -> bool {
        matches!(self.state, State::SynReceived(_))
    }
    /// The application never heard of it, so it will never release it.
    pub(crate) fn is_unknown_to_application(&self) -> bool {
        !self.opened_here && self.stats.handshake.is_none() && !self.trusts()
    }
    /// Reading has made an acknowledgement due.
    pub(crate) fn owes_acknowledgement(&self) -> bool {
        self.receiver.ack_timer().is_owed()
    }
    /// Moves the next notice out; changes nothing else.
    pub(crate) fn poll_notice(&mut self) -> Option<Notice> {
        self.notices.pop_front()
    }

    /// Takes data to send. See [`restp_base::flow::Flow::write`].
    pub(crate) fn write(&mut self, now: Time, data: Bytes) -> Result<(), WriteError> {
        if self.release.is_wanted() || self.state.is_over() {
            return Err(WriteError::Closed);
        }
        if self.sender.write(now, data) {
            Ok(())
        } else {
            Err(WriteError::Blocked)
        }
    }

    /// Takes the next bytes for the reader.
    pub(crate) fn read(&mut self) -> Read {
        let ended = self.release.remote_finished() || self.state.is_over();
        self.receiver.read(ended, self.state == State::Established)
    }

    /// RCV.NXT; the byte behind nothing before the peer's SYN.
    fn receive_next(&self) -> u64 {
        self.receiver.next().unwrap_or(sequence::ORIGIN)
    }

    /// No more writes will come.
    pub(crate) fn finish(&mut self) {
        self.release.finish();
    }

    /// Breaks off and tells the peer.
    pub(crate) fn abort(&mut self) {
        if !self.state.is_over() {
            self.end(CloseReason::Aborted, State::Resetting);
        }
    }

    /// The application has lost interest: what is unread is dropped, and no more will be written.
    pub(crate) fn discard(&mut self, now: Time) {
        self.receiver.discard(true);
        self.finish();
        self.orphan_until = Some(now + TIME_WAIT);
    }

    pub(crate) fn stats(&self) -> FlowStats {
        let duplicates = self.duplicates.as_ref().map_or(0, |known| known.memory());
        let sending = self.sender.memory() + self.numbers.memory() + duplicates;
        let sent = self.sender.counters();
        let receiving = self.receiver.memory();
        let (delivered_bytes, delivered_messages) = self.receiver.delivered();
        FlowStats {
            delivered_bytes,
            delivered_messages,
            sent_payload_bytes: sent.sent_payload_bytes,
            retransmitted_packets: sent.retransmitted_packets,
            retransmitted_payload_bytes: sent.retransmitted_payload_bytes,
            lost_packets: sent.lost_packets,
            timed_out_packets: sent.timed_out_packets,
            timeouts: sent.timeouts,
            srtt: self.sender.smoothed_rtt(),
            rto: Some(self.sender.timeout()),
            congestion_window_bytes: self.sender.window_bytes(),
            memory_bytes: (size_of::<Connection>() + sending + receiving) as u64,
            in_flight_segments: self.sender.in_flight(),
            ..self.stats.clone()
        }
    }

    /// See [`restp_base::flow::Flow::take_losses`].
    pub(crate) fn take_losses(&mut self, into: &mut Vec<Loss>) {
        let address = self.address;
        self.sender.take_losses(|_| address, into);
    }

    /// Writes the next segment into `out`; `false` when there is nothing to send now.
    pub(crate) fn poll_transmit(&mut self, now: Time, out: &mut Datagram) -> bool {
        outlet::poll(self, now, out)
    }
}
