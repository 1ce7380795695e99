//! A host's ITP: producer and consumer at once (ITP §III.B). A producer's state is that of its objects, a consumer's that of its
//! retrievals, and a message belongs to either by the Object ID it names.

mod conversation;
mod intake;
mod packet;

pub(super) use packet::{datagram, take_apart};

use super::manifest::Trailer;
use super::parameters::ItpParameters;
use super::publication::{Draft, Publication};
use super::wire::Kind;
use bytes::Bytes;
use conversation::{Announcement, Conversation, Peer, Role};
use restp_base::flow::{CloseReason, Flow, FlowId, FlowStats, OpenError, Read, WriteError};
use restp_base::machine::{Datagram, Earliest, Event, Input, Machine, PathAddress, Wakeup};
use restp_base::time::Time;
use restp_services::connection_management::EPHEMERAL;
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

/// Flows of a host at once.
const MOST_FLOWS: usize = 65_536;
/// Answers that wait to leave.
const MOST_WAITING: usize = 65_536;
/// Bytes of an object: all of it is kept.
const MOST_BYTES: u64 = 1 << 30;

/// What a user sets.
#[derive(Clone, Debug)]
pub struct ItpConfig {
    /// The port that manifests and requests of others may come to.
    pub listen: Option<u16>,
    /// Everything else.
    pub parameters: ItpParameters,
}

/// A host's ITP.
#[derive(Debug)]
pub struct Itp {
    config: ItpConfig,
    flows: BTreeMap<FlowId, Conversation>,
    /// Objects that are served, each with the flow it was written to, by Object ID.
    publications: BTreeMap<u64, (Publication, FlowId)>,
    /// Requests that came: whose, and their numbers.
    by_request: BTreeMap<(SocketAddr, u16, u64), FlowId>,
    /// Retrievals by own port and Object ID.
    by_object: BTreeMap<(u16, u64), FlowId>,
    outbox: VecDeque<Datagram>,
    events: VecDeque<Event>,
    opened: u64,
    requests: u64,
    dropped: u64,
}

impl Itp {
    /// A host without flows.
    pub fn new(config: ItpConfig) -> Self {
        Itp {
            config,
            flows: BTreeMap::new(),
            publications: BTreeMap::new(),
            by_request: BTreeMap::new(),
            by_object: BTreeMap::new(),
            outbox: VecDeque::new(),
            events: VecDeque::new(),
            opened: 0,
            requests: 0,
            dropped: 0,
        }
    }

    /// Asks the application at `port` of the host at `path.remote` for something (FORCE_SEND, ITP §III.D): what it publishes in answer
    /// can be read from the flow.
    ///
    /// # Errors
    /// When no port is free, or the message does not fit a chunk.
    pub fn request(
        &mut self,
        now: Time,
        path: PathAddress,
        port: u16,
        message: Bytes,
    ) -> Result<FlowId, OpenError> {
        let limit = self.config.parameters.chunk_bytes as usize;
        if message.len() > limit {
            let found = message.len();
            let why = format!("a request of {found} bytes does not fit a chunk of {limit}");
            return Err(OpenError::Unsupported(why));
        }
        let local_port = self.free_port(path.remote)?;
        self.requests += 1;
        let asking = Announcement::new(
            now,
            Kind::Request,
            self.requests,
            message,
            self.config.parameters.request,
        );
        Ok(self.add(Self::conversation(
            Peer { path, port },
            local_port,
            Role::Asking(asking),
        )))
    }

    /// Ends the writing to `flow` and publishes it under `name`, which has to be of this content alone for ever. What has a
    /// name given can be published again by whoever has the same content.
    pub fn publish(&mut self, now: Time, flow: FlowId, name: Bytes) -> Option<u64> {
        self.publish_as(now, flow, Some(name))
    }

    /// From now on only those named get the object that was written to `flow`.
    pub fn authorise(&mut self, flow: FlowId, consumer: IpAddr) {
        let mut all = self.publications.values_mut();
        if let Some((publication, _)) = all.find(|(_, of)| *of == flow) {
            publication.authorise(consumer);
        }
    }

    /// Objects that it serves.
    pub fn published(&self) -> usize {
        self.publications.len()
    }

    /// Datagrams dropped because they were malformed, for nobody, or broke a rule.
    pub fn dropped_datagrams(&self) -> u64 {
        self.dropped
    }

    fn free_port(&self, remote: SocketAddr) -> Result<u16, OpenError> {
        let is_used = |port: u16| self.flows.values().any(|flow| flow.local_port == port);
        let mut ports = EPHEMERAL;
        ports
            .find(|port| !is_used(*port))
            .ok_or(OpenError::NoPort(remote))
    }

    fn conversation(peer: Peer, local_port: u16, role: Role) -> Conversation {
        let stats = FlowStats {
            path: Some(peer.path),
            ..FlowStats::default()
        };
        Conversation {
            peer,
            local_port,
            role,
            message: None,
            stats,
        }
    }

    fn add(&mut self, conversation: Conversation) -> FlowId {
        let id = FlowId(self.opened);
        self.opened += 1;
        self.flows.insert(id, conversation);
        id
    }

    /// What was written to `flow` becomes an object. None when it is not being written.
    fn publish_as(&mut self, now: Time, id: FlowId, name: Option<Bytes>) -> Option<u64> {
        let parameters = &self.config.parameters;
        let conversation = self.flows.get_mut(&id)?;
        let role = std::mem::replace(&mut conversation.role, Role::Over);
        let Role::Writing { draft, request } = role else {
            conversation.role = role;
            return None;
        };
        let host = conversation.peer.path.local.ip();
        let port = conversation.local_port;
        let name = name.unwrap_or_else(|| format!("{host}:{port}/{}", id.0).into());
        let trailer = Trailer {
            locators: vec![SocketAddr::new(host, port)],
            timeout_ms: parameters.nexus_timeout.as_millis() as u32,
            signature: None,
        };
        let Ok(publication) = Publication::new(now, draft, parameters.naming, name, &trailer) else {
            self.events.push_back(Event::Closed(id, CloseReason::Aborted));
            return None;
        };
        let object = publication.object();
        let manifest = Kind::Manifest { request };
        let announcement = Announcement::new(now, manifest, object, publication.body(), parameters.request);
        conversation.role = Role::Serving { object, announcement };
        self.publications.insert(object, (publication, id));
        Some(object)
    }

    /// What leaves by itself: requests, manifests, Interests.
    fn next_of(&mut self, now: Time, id: FlowId) -> Option<Datagram> {
        let most = self.config.parameters.request.attempts;
        let conversation = self.flows.get_mut(&id)?;
        let (header, payload, peer) = match &mut conversation.role {
            Role::Asking(announcement) => {
                let (header, payload) = announcement.take_due(now, true)?;
                (header, payload, conversation.peer)
            }
            Role::Serving { announcement, .. } => {
                // A manifest in answer to a request leaves once: the request is repeated (ITP OP-20).
                let again = announcement.is_unasked() && announcement.attempts() + 1 < most;
                let (header, payload) = announcement.take_due(now, again)?;
                (header, payload, conversation.peer)
            }
            Role::Fetching(fetch) => {
                let (lane, header, payload) = fetch.consumer.poll(now)?;
                (header, payload, fetch.producer(lane))
            }
            Role::Writing { .. } | Role::Over => return None,
        };
        let ports = (conversation.local_port, peer.port);
        let datagram = packet::datagram(peer.path, ports, &header, payload);
        conversation.stats.sent_packets += 1;
        conversation.stats.sent_bytes += datagram.len() as u64;
        Some(datagram)
    }

    /// The object is served no more, which ends every flow it was written to.
    fn unpublish(&mut self, object: u64) {
        self.publications.remove(&object);
        for (id, conversation) in &mut self.flows {
            if matches!(conversation.role, Role::Serving { object: served, .. } if served == object) {
                conversation.role = Role::Over;
                self.events.push_back(Event::Closed(*id, CloseReason::Finished));
            }
        }
    }

    fn on_deadline(&mut self, now: Time) {
        let ends = |publication: &Publication| publication.ends_at() <= now;
        let over: Vec<u64> = self
            .publications
            .iter()
            .filter(|(_, (publication, _))| ends(publication))
            .map(|(object, _)| *object)
            .collect();
        for object in over {
            self.unpublish(object);
        }
        let due: Vec<FlowId> = self.flows.keys().copied().collect();
        for id in due {
            self.on_flow_deadline(now, id);
        }
    }

    fn on_flow_deadline(&mut self, now: Time, id: FlowId) {
        let parameters = self.config.parameters.request;
        let Some(conversation) = self.flows.get_mut(&id) else {
            return;
        };
        match &mut conversation.role {
            Role::Asking(announcement) if announcement.is_hopeless(now, parameters) => {
                conversation.role = Role::Over;
                let waited = parameters.rto * ((1 << parameters.attempts.min(30)) - 1);
                self.events
                    .push_back(Event::Closed(id, CloseReason::TimedOut(waited)));
            }
            Role::Fetching(fetch) => {
                // From the last to the first: those before one that is given up keep their places.
                let mut given_up = Vec::new();
                for lane in (0..fetch.consumer.lanes()).rev() {
                    given_up.extend(
                        fetch
                            .consumer
                            .on_deadline(now, lane)
                            .map(|silence| (lane, silence)),
                    );
                }
                for (lane, silence) in given_up {
                    self.give_up(id, lane, CloseReason::TimedOut(silence));
                }
            }
            _ => {}
        }
    }
}

impl Machine for Itp {
    fn handle(&mut self, now: Time, input: Input<'_>) {
        match input {
            Input::Datagram(datagram) => self.receive(now, datagram),
            Input::Deadline => self.on_deadline(now),
            Input::PathNotice { .. } | Input::Refused(_) => {}
        }
    }

    fn poll_transmit(&mut self, now: Time, out: &mut Datagram) -> bool {
        if let Some(answer) = self.outbox.pop_front() {
            *out = answer;
            return true;
        }
        let all: Vec<FlowId> = self.flows.keys().copied().collect();
        let next = all.into_iter().find_map(|id| self.next_of(now, id));
        let found = next.is_some();
        if let Some(next) = next {
            *out = next;
        }
        found
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn next_deadline(&self) -> Option<(Time, Wakeup)> {
        let mut earliest = Earliest::NONE;
        for (publication, _) in self.publications.values() {
            earliest = earliest.or(Some(publication.ends_at()), Wakeup::Expiry);
        }
        for conversation in self.flows.values() {
            earliest = match &conversation.role {
                Role::Asking(announcement) | Role::Serving { announcement, .. } => {
                    earliest.or(announcement.next_at(), Wakeup::Retransmission)
                }
                Role::Fetching(fetch) => match fetch.consumer.deadline() {
                    Some((at, why)) => earliest.or(Some(at), why),
                    None => earliest,
                },
                Role::Writing { .. } | Role::Over => earliest,
            };
        }
        earliest.deadline()
    }

    fn held(&self) -> usize {
        self.flows.len()
    }
}

impl Flow for Itp {
    fn open(&mut self, _now: Time, path: PathAddress, port: u16) -> Result<FlowId, OpenError> {
        let local_port = self.free_port(path.remote)?;
        let draft = Draft::new(self.config.parameters.chunk_bytes);
        let role = Role::Writing { draft, request: 0 };
        let id = self.add(Self::conversation(Peer { path, port }, local_port, role));
        self.events.push_back(Event::Connected(id));
        Ok(id)
    }

    /// Adds to the object, which is published when its writer has finished.
    fn write(&mut self, _now: Time, id: FlowId, data: Bytes) -> Result<(), WriteError> {
        let conversation = self.flows.get_mut(&id).ok_or(WriteError::Closed)?;
        let Role::Writing { draft, .. } = &mut conversation.role else {
            return Err(WriteError::Closed);
        };
        let room = MOST_BYTES.saturating_sub(draft.length());
        if data.len() as u64 > room {
            return Err(WriteError::TooLarge {
                size: data.len(),
                limit: room as usize,
            });
        }
        draft.push(data);
        Ok(())
    }

    fn read(&mut self, _now: Time, id: FlowId) -> Read {
        let Some(conversation) = self.flows.get_mut(&id) else {
            return Read::End;
        };
        if let Some(message) = conversation.message.take() {
            return Read::Data(message);
        }
        match &mut conversation.role {
            Role::Fetching(fetch) => match fetch.consumer.read() {
                Some(chunk) => Read::Data(chunk),
                None if fetch.consumer.is_read() => Read::End,
                None => Read::Empty,
            },
            Role::Over => Read::End,
            Role::Writing { .. } | Role::Serving { .. } | Role::Asking(_) => Read::Empty,
        }
    }

    /// A writer's object is published, and its manifest sent to the peer. A reader is done when it has everything.
    fn finish(&mut self, now: Time, id: FlowId) {
        if self.publish_as(now, id, None).is_some() {
            return;
        }
        if let Some(Role::Fetching(fetch)) = self.flows.get_mut(&id).map(|flow| &mut flow.role)
            && fetch.consumer.is_complete()
            && !std::mem::replace(&mut fetch.finished, true)
        {
            self.events.push_back(Event::Closed(id, CloseReason::Finished));
        }
    }

    /// Nobody is told: there is no connection. The object is served no more.
    fn abort(&mut self, now: Time, id: FlowId) {
        if self.flows.contains_key(&id) {
            self.release(now, id);
            let mut served = self.publications.iter().filter(|(_, (_, flow))| *flow == id);
            if let Some(object) = served.next().map(|(object, _)| *object) {
                self.unpublish(object);
            }
            self.events.push_back(Event::Closed(id, CloseReason::Aborted));
        }
    }

    /// What was published is served until its nexus ends.
    fn release(&mut self, _now: Time, id: FlowId) {
        self.flows.remove(&id);
        self.by_request.retain(|_, flow| *flow != id);
        self.by_object.retain(|_, flow| *flow != id);
    }

    fn stats(&self, id: FlowId) -> Option<FlowStats> {
        let conversation = self.flows.get(&id)?;
        let own = conversation.stats.clone();
        Some(match &conversation.role {
            Role::Writing { draft, .. } => FlowStats {
                memory_bytes: draft.length(),
                ..own
            },
            Role::Serving { object, .. } => FlowStats {
                memory_bytes: self
                    .publications
                    .get(object)
                    .map_or(0, |(object, _)| object.memory()),
                ..own
            },
            Role::Fetching(fetch) => FlowStats {
                path: own.path,
                sent_packets: own.sent_packets,
                sent_bytes: own.sent_bytes,
                received_bytes: own.received_bytes,
                rejected_packets: own.rejected_packets,
                ..fetch.consumer.stats()
            },
            Role::Asking(_) | Role::Over => own,
        })
    }
}
