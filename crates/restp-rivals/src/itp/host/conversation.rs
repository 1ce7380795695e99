//! One flow of a host: what is published in it, asked for in it, or fetched in it.

use super::super::consumer::Consumer;
use super::super::publication::Draft;
use super::super::wire::{Header, Kind, Pointer};
use bytes::Bytes;
use restp_base::flow::{FlowStats, Read};
use restp_base::machine::{Earliest, PathAddress, Wakeup};
use restp_base::time::{Duration, Time};
use restp_services::connection_management::HandshakeParameters;

/// Most producers that are asked for one object.
const MOST_PRODUCERS: usize = 16;

/// Bytes of the headers of an answer, of which a refusal has four more.
const ANSWER_BYTES: usize = crate::udp::wire::HEADER_BYTES + crate::itp::wire::HEADER_BYTES;

/// Where a peer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Peer {
    pub path: PathAddress,
    pub port: u16,
}

/// State of one flow.
#[derive(Debug)]
pub(super) struct Conversation {
    pub peer: Peer,
    pub local_port: u16,
    pub role: Role,
    /// A request that came, until it is read.
    pub message: Option<Bytes>,
    pub stats: FlowStats,
    /// The number of the request that it answers.
    pub asked_by_peer: Option<u64>,
    /// The number of its own request, while that is out.
    pub question: Option<u64>,
    /// The object that it retrieves, or has.
    pub object: Option<u64>,
    /// Its application has gone, and until then its manifest may be asked for again.
    pub lingers_until: Option<Time>,
    /// Its deadline, as the table of flows has it.
    pub noted: Option<Time>,
}

#[derive(Debug)]
pub(super) enum Role {
    /// The application writes what is to be published, in answer to the request of this number, if it is one, and of this name, if that
    /// is settled.
    Writing {
        draft: Draft,
        request: u64,
        name: Option<Bytes>,
    },
    /// The object is published, and its manifest announced.
    Serving { object: u64, announcement: Announcement },
    /// A request is out.
    Asking(Announcement),
    /// The object is asked for chunk by chunk.
    Fetching(Box<Fetch>),
    /// Nothing more will come.
    Over,
}

/// A retrieval and whom it asks.
#[derive(Debug)]
pub(super) struct Fetch {
    pub consumer: Consumer,
    /// One for each lane of the consumer, in the same order.
    producers: Vec<Peer>,
    /// Others that the manifest names. They are asked once its sender has given something: a manifest that nobody asked for may come from
    /// anywhere, and must not have Interests sent to whomever it names.
    named: Vec<Peer>,
    /// Its application has said that it wants nothing more.
    pub finished: bool,
}

/// A message that leaves again until something comes of it (ITP OP-7): a request, or a manifest that nobody asked for.
#[derive(Debug)]
pub(super) struct Announcement {
    kind: Kind,
    object: u64,
    payload: Bytes,
    attempt: u32,
    wait: Duration,
    next_at: Option<Time>,
}

impl Announcement {
    pub fn new(now: Time, kind: Kind, object: u64, payload: Bytes, parameters: HandshakeParameters) -> Self {
        Announcement {
            kind,
            object,
            payload,
            attempt: 0,
            wait: parameters.rto,
            next_at: Some(now),
        }
    }

    /// It answers no request, and asks itself.
    pub fn is_unasked(&self) -> bool {
        matches!(self.kind, Kind::Manifest { request: 0 })
    }
    /// How often it has left.
    pub fn attempts(&self) -> u32 {
        self.attempt
    }
    /// Of a request: its number.
    pub fn request(&self) -> u64 {
        self.object
    }
    pub fn next_at(&self) -> Option<Time> {
        self.next_at
    }
    /// Something came of it.
    pub fn stop(&mut self) {
        self.next_at = None;
    }
    /// Somebody asks for it.
    pub fn retransmit(&mut self, now: Time) {
        self.next_at = Some(now);
    }
    /// It has left as often as it may, and the last wait is over.
    pub fn is_hopeless(&self, now: Time, parameters: HandshakeParameters) -> bool {
        self.attempt >= parameters.attempts && self.next_at.is_some_and(|at| at <= now)
    }

    /// What leaves now. `again`: it leaves again after a wait twice as long, if nothing comes of it.
    pub fn take_due(&mut self, now: Time, again: bool) -> Option<(Header, Bytes)> {
        self.next_at.filter(|at| *at <= now)?;
        self.next_at = again.then_some(now + self.wait);
        self.wait = self.wait * 2;
        let pointer = Pointer {
            object: self.object,
            chunk: 0,
            sequence: self.attempt,
        };
        self.attempt += 1;
        let header = Header {
            kind: self.kind.clone(),
            flags: 0,
            pointer,
        };
        Some((header, self.payload.clone()))
    }
}

impl Fetch {
    /// From nobody yet.
    pub fn new(consumer: Consumer) -> Self {
        Fetch {
            consumer,
            producers: Vec::new(),
            named: Vec::new(),
            finished: false,
        }
    }

    /// Somebody has the object, and is asked from now on.
    pub fn add_producer(&mut self, now: Time, peer: Peer) {
        if self.producers.len() < MOST_PRODUCERS && !self.producers.contains(&peer) {
            self.producers.push(peer);
            self.consumer.add_lane(now);
        }
    }

    /// A manifest names others that have the object. They are asked at once where it `answers` a request.
    pub fn name_producers(&mut self, now: Time, others: impl Iterator<Item = Peer>, answers: bool) {
        self.named.extend(others.take(MOST_PRODUCERS));
        if answers {
            self.ask_named(now);
        }
    }

    /// Those that the manifest names are asked as well from now on.
    pub fn ask_named(&mut self, now: Time) {
        for peer in std::mem::take(&mut self.named) {
            self.add_producer(now, peer);
        }
    }

    /// Who is asked on `lane`.
    pub fn producer(&self, lane: usize) -> Peer {
        self.producers[lane]
    }

    /// The lane on which `peer` is asked, if it is.
    pub fn lane_of(&self, peer: Peer) -> Option<usize> {
        self.producers.iter().position(|producer| *producer == peer)
    }

    /// The producer of `lane` is of no use. False when there is no other.
    pub fn remove_producer(&mut self, lane: usize) -> bool {
        self.producers.remove(lane);
        self.consumer.remove_lane(lane);
        !self.producers.is_empty()
    }
}

impl Conversation {
    /// With this peer; nothing is known of it but its role.
    pub fn new(peer: Peer, local_port: u16, role: Role) -> Self {
        let question = match &role {
            Role::Asking(announcement) => Some(announcement.request()),
            _ => None,
        };
        Conversation {
            peer,
            local_port,
            role,
            message: None,
            stats: FlowStats {
                path: Some(peer.path),
                ..FlowStats::default()
            },
            asked_by_peer: None,
            question,
            object: None,
            lingers_until: None,
            noted: None,
        }
    }

    /// When it wants to wake.
    pub fn deadline(&self) -> Option<(Time, Wakeup)> {
        match &self.role {
            Role::Asking(announcement) | Role::Serving { announcement, .. } => Earliest::NONE
                .or(announcement.next_at(), Wakeup::Retransmission)
                .or(self.lingers_until, Wakeup::Expiry)
                .deadline(),
            Role::Fetching(fetch) => fetch.consumer.deadline(),
            Role::Writing { .. } | Role::Over => None,
        }
    }

    /// Its manifest is not known to have arrived: it is to leave, or whoever asked for it may ask again.
    pub fn may_be_asked(&self) -> bool {
        let Role::Serving { announcement, .. } = &self.role else {
            return false;
        };
        announcement.next_at().is_some() || (self.asked_by_peer.is_some() && self.stats.received_packets == 0)
    }

    /// What its reader gets.
    pub fn read(&mut self) -> Read {
        if let Some(message) = self.message.take() {
            return Read::Data(message);
        }
        match &mut self.role {
            Role::Fetching(fetch) => match fetch.consumer.read() {
                Some(chunk) => Read::Data(chunk),
                None if fetch.consumer.is_read() => Read::End,
                None => Read::Empty,
            },
            Role::Over => Read::End,
            Role::Writing { .. } | Role::Serving { .. } | Role::Asking(_) => Read::Empty,
        }
    }

    /// Somebody asked for a chunk of what is served here, with a datagram of `bytes`, and got `payload` bytes of it. Its manifest
    /// has arrived, then. Is that news?
    pub fn on_interest(&mut self, bytes: u64, payload: usize) -> bool {
        let is_first = self.stats.received_packets == 0;
        if let Role::Serving { announcement, .. } = &mut self.role {
            announcement.stop();
        }
        self.stats.received_packets += 1;
        self.stats.received_bytes += bytes;
        self.stats.sent_packets += 1;
        self.stats.sent_bytes += (ANSWER_BYTES + payload) as u64;
        self.stats.sent_payload_bytes += payload as u64;
        is_first
    }
}
