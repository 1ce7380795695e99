//! One connection on one path: a handful of services, two short lists of calls ([`intake`], [`outlet`]), and the
//! state they share.
//!
//! Its owner drains it in this order after every call: [`Connection::poll_transmit`] until `false`, events,
//! [`Connection::deadline`].

mod acknowledgement;
mod application;
mod change;
mod ecn;
mod era_talk;
mod eras;
mod fec;
mod identity;
mod intake;
mod liveness;
mod mtu;
mod outgoing;
mod outlet;
mod packet;
mod pdu_builder;
mod receive;
mod reset;
mod state;
mod stats;
mod subflow;
mod timers;

pub(crate) use application::{WriteTo, write};
pub(crate) use packet::Packet;
pub(crate) use receive::kept;
pub(crate) use receive::{granted, window_bytes};
pub(crate) use restp_services::connection_management::Ports;
pub(crate) use subflow::{DssUpdate, MAX_PATHS, Setup, Stream, Turn, asks_for_integrity, hash_of};
pub(crate) use timers::STANDBY_INTERVAL;

use state::State;

use crate::composition::{Composition, Terms, ValidComposition};
use crate::wire::{Flags, Services};
use bytes::Bytes;
use change::Changes;
pub(crate) use change::Record;
pub(crate) use eras::Consent;
use eras::Eras;
use liveness::Liveness;
use restp_base::flow::FlowStats;
use restp_base::machine::{Datagram, PathAddress};
use restp_base::observe::Loss;
use restp_base::sequence;
use restp_base::time::Time;
use restp_services::connection_management::{Cookie, Establishment, Exchange, Handshake, Notice, Release};
use restp_services::framing::Streams;
use restp_services::receiver::Receiver;
use restp_services::reliability::FecCode;
use restp_services::sender::Sender;
use stats::Counters;
use std::collections::VecDeque;
use std::sync::Arc;
use subflow::Subflow;

/// Explicit congestion notification (RFC 3168 §6.1, OP-59).
#[derive(Debug, Default)]
struct EcnState {
    agreed: bool,
    /// As receiver: a mark was seen and the sender has not confirmed its reaction yet.
    echo: bool,
}

/// One end of an association.
#[derive(Debug)]
pub(crate) struct Connection {
    composition: Arc<ValidComposition>,
    /// As the set-up said.
    services: Services,
    eras: Eras,
    ports: Ports,
    state: State,
    address: PathAddress,
    /// Who is at the other end, as far as the layer below knows; nobody has been heard yet: none.
    peer: Option<u128>,
    /// The number after that of our SYN.
    origin: u64,
    sender: Sender,
    /// Window last advertised by the peer, to tell an update from a duplicate.
    advertised: u16,
    /// SYN-ACKs sent whose acknowledgement has not come.
    unconfirmed_answers: u32,
    receiver: Receiver,
    /// When a peer that believes what cannot be may be corrected again.
    correct_from: Time,
    /// Segments of a server whose first number is not known yet: its SYN-ACK is lost or late.
    unplaced: Vec<(u32, Bytes)>,
    release: Release,
    /// How far an opportunistic exchange goes; `None` for an ordinary one.
    exchange: Option<Exchange>,
    /// A cookie that the peer has given and nobody has taken yet.
    given: Option<Cookie>,
    ecn: EcnState,
    counters: Counters,
    changes: Changes,
    notices: VecDeque<Notice>,
    /// This side opened the association.
    opened_here: bool,
    /// The application knows of it: it opened it, or was told that it was accepted.
    announced: bool,
    /// Is the peer there?
    liveness: Liveness,
    /// The third packet of the set-up has to leave, by itself and before any data (ResTP §3.5.5): what the peer measures
    /// by it is a round trip.
    confirmation_due: bool,
    /// Length of a question about the path's largest packet that is to be answered.
    mtu_answer: Option<u16>,
    /// It is one of several paths.
    subflow: Option<Box<Subflow>>,
}

impl Connection {
    /// Opens an association from this side, with the cookie that the peer has given earlier.
    pub(crate) fn open(
        now: Time,
        composition: Arc<ValidComposition>,
        services: Services,
        address: PathAddress,
        ports: Ports,
        isn: u32,
        cookie: Option<Cookie>,
    ) -> Self {
        let exchange = Exchange::open(composition.establishment, cookie);
        let state = match composition.establishment {
            Establishment::Connectionless => State::Established,
            Establishment::ThreeWay | Establishment::Opportunistic | Establishment::FastOpen => {
                State::SynSent(Handshake::start(now, composition.handshake))
            }
        };
        let mut connection = Self::new(now, composition, services, address, ports, isn, state);
        connection.encode_by(connection.composition.fec.code);
        connection.begin_streams();
        connection.exchange = exchange;
        if exchange.is_some() {
            connection.sender.bind_credit(false); // the exchange says how much, until the peer does (OP-33)
        }
        if connection.state == State::Established {
            connection.notices.push_back(Notice::Connected);
        }
        connection
    }

    /// Answers a SYN (or, without a connection, the first datagram) of a peer. What it carries is not taken here.
    pub(crate) fn accept(
        now: Time,
        composition: Arc<ValidComposition>,
        services: Services,
        address: PathAddress,
        syn: &Packet<'_>,
        isn: u32,
        exchange: Option<Exchange>,
    ) -> Self {
        let header = syn.header;
        let ports = Ports {
            local: header.destination,
            remote: header.source,
        };
        if composition.establishment == Establishment::Connectionless {
            let state = State::Established;
            let mut connection = Self::new(now, composition, services, address, ports, isn, state);
            connection.opened_here = false;
            connection.peer = Some(syn.peer);
            connection.notices.push_back(Notice::Accepted);
            return connection;
        }
        let code = header.fec.and_then(|fec| FecCode::from_kind(fec.kind));
        let composition = encoding_by(composition, code);
        let state = State::SynReceived(Handshake::start(now, composition.handshake));
        let mut connection = Self::new(now, composition, services, address, ports, isn, state);
        (connection.opened_here, connection.announced) = (false, false);
        connection.begin_streams();
        connection.peer = Some(syn.peer);
        connection.learn_peer_number(syn);
        connection.ecn.agreed = connection.composition.ecn && header.flags.has(Flags::ECE | Flags::CWR);
        connection.encode_by(code.unwrap_or_default());
        connection.eras.understood = header.era && connection.knows_eras();
        connection.exchange = exchange;
        if connection.takes_early_data() {
            connection.announce();
        }
        connection
    }

    fn new(
        now: Time,
        composition: Arc<ValidComposition>,
        services: Services,
        address: PathAddress,
        ports: Ports,
        isn: u32,
        state: State,
    ) -> Self {
        let first = sequence::ORIGIN + u64::from(isn) + 1;
        let mut connection = Connection {
            services,
            eras: Eras::new(Terms::at_first(&composition, services), &composition),
            ports,
            state,
            address,
            peer: None,
            origin: first,
            sender: outgoing::sender(now, &composition, services, first),
            advertised: 0,
            unconfirmed_answers: 0,
            receiver: receive::receiver(&composition),
            correct_from: now,
            unplaced: Vec::new(),
            release: Release::default(),
            exchange: None,
            given: None,
            ecn: EcnState::default(),
            counters: Counters::new(now),
            changes: Changes::default(),
            notices: VecDeque::new(),
            opened_here: true,
            announced: true,
            liveness: Liveness::new(now, sequence::truncate(first)),
            confirmation_due: false,
            mtu_answer: None,
            subflow: None,
            composition,
        };
        if connection.state == State::Established {
            connection.sender.establish(now, None, false);
        }
        connection
    }

    pub(crate) fn composition(&self) -> &Arc<ValidComposition> {
        &self.composition
    }
    pub(crate) fn is_closed(&self) -> bool {
        matches!(self.state, State::Closed)
    }
    /// The application has never heard of it, so it will not let it go either.
    pub(crate) fn is_unknown(&self) -> bool {
        !self.announced
    }
    pub(crate) fn is_half_open(&self) -> bool {
        matches!(self.state, State::SynReceived(_))
    }
    /// The peer has shown a valid cookie: its address is proved, and its data is taken.
    pub(crate) fn takes_early_data(&self) -> bool {
        self.exchange == Some(Exchange::Trust)
    }

    /// Its path begins at `local`.
    pub(crate) fn is_on(&self, local: std::net::SocketAddr) -> bool {
        self.address.local == local
    }

    /// Reading has made an acknowledgement due.
    pub(crate) fn wants_turn(&self) -> bool {
        self.receiver.ack_timer().is_owed()
    }

    /// Is there something to tell the application?
    pub(crate) fn has_notices(&self) -> bool {
        !self.notices.is_empty()
    }

    /// Moves the next notice out; changes nothing else.
    pub(crate) fn poll_notice(&mut self) -> Option<Notice> {
        self.notices.pop_front()
    }

    pub(crate) fn stats(&self) -> FlowStats {
        stats::of(self)
    }

    /// See [`restp_base::flow::Flow::take_losses`].
    pub(crate) fn take_losses(&mut self, into: &mut Vec<Loss>) {
        let address = self.address;
        self.sender.take_losses(|_| address, into);
    }

    fn services_are_numbered(&self) -> bool {
        self.services.numbered() || self.composition.reliability.retransmits()
    }

    fn begin_streams(&mut self) {
        let (here, composition) = (self.opened_here, &self.composition);
        if let Some(streams) = self.sender.streams_mut() {
            streams.begin(
                here,
                receive::window_bytes(composition),
                composition.send_buffer_bytes,
            );
        }
    }

    /// Its streams, where it carries some.
    pub(crate) fn streams(&self) -> Option<&Streams> {
        self.sender.streams()
    }
    /// The same, to be written and read.
    pub(crate) fn streams_mut(&mut self) -> Option<&mut Streams> {
        self.sender.streams_mut()
    }
    /// Streams may be written now, by the application or because the peer takes more.
    pub(crate) fn begin_progress(&mut self, now: Time) {
        self.sender.begin_progress(now);
    }

    /// True when the peer acknowledges what we send.
    fn has_feedback(&self) -> bool {
        self.composition.ack.is_on()
    }

    /// Writes the next datagram into `out`; `false` when there is nothing to send now.
    pub(crate) fn poll_transmit(&mut self, now: Time, out: &mut Datagram) -> bool {
        outlet::poll(self, now, out)
    }
}

/// The association's code is that of who opens it.
fn encoding_by(composition: Arc<ValidComposition>, code: Option<FecCode>) -> Arc<ValidComposition> {
    let mut other = Composition::clone(&composition);
    other.fec.code = code.unwrap_or(other.fec.code);
    if !other.reliability.encodes() || other.fec == composition.fec {
        return composition;
    }
    other.check().map_or(composition, Arc::new)
}
