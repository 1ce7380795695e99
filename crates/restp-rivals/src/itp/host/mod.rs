//! A host's ITP: producer and consumer at once (ITP §III.B). A producer's state is that of its objects, a consumer's that of its
//! retrievals, and a message belongs to either by the Object ID it names.

mod conversation;
mod flows;
mod intake;
mod packet;
mod shelf;
mod sources;
#[cfg(test)]
mod tests;

pub(super) use packet::{datagram, take_apart};

use super::manifest::Trailer;
use super::parameters::ItpParameters;
use super::publication::{Draft, Publication};
use super::wire::Kind;
use bytes::Bytes;
use conversation::{Announcement, Conversation, Peer, Role};
use flows::Flows;
use restp_base::flow::{CloseReason, Flow, FlowId, FlowStats, OpenError, Read, WriteError};
use restp_base::machine::{Datagram, Earliest, Event, Input, Machine, PathAddress, Wakeup};
use restp_base::time::{Duration, Time};
use shelf::Shelf;
use sources::Sources;
use std::collections::VecDeque;
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
    flows: Flows,
    shelf: Shelf,
    sources: Sources,
    outbox: VecDeque<Datagram>,
    events: VecDeque<Event>,
    requests: u64,
    dropped: u64,
}

impl Itp {
    /// A host without flows.
    pub fn new(config: ItpConfig) -> Self {
        Itp {
            config,
            flows: Flows::default(),
            shelf: Shelf::default(),
            sources: Sources::default(),
            outbox: VecDeque::new(),
            events: VecDeque::new(),
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
        let role = Role::Asking(asking);
        let id = self
            .flows
            .add(Conversation::new(Peer { path, port }, local_port, role));
        self.flows.settle();
        Ok(id)
    }

    /// Ends the writing to `flow` and publishes it under `name`, which has to be of this content alone for ever. What has a
    /// name given can be published again by whoever has the same content.
    pub fn publish(&mut self, now: Time, flow: FlowId, name: Bytes) -> Option<u64> {
        let object = self.publish_as(now, flow, Some(name));
        self.flows.settle();
        object
    }

    /// From now on only those named get the object that was written to `flow`.
    pub fn authorise(&mut self, flow: FlowId, consumer: IpAddr) {
        if let Some(Role::Serving { object, .. }) = self.flows.get(flow).map(|flow| &flow.role) {
            self.shelf
                .change(*object, |served| served.publication.authorise(consumer));
        }
    }

    /// Objects that it serves.
    pub fn published(&self) -> usize {
        self.shelf.len()
    }

    /// Datagrams dropped because they were malformed, for nobody, or broke a rule.
    pub fn dropped_datagrams(&self) -> u64 {
        self.dropped
    }

    fn free_port(&mut self, remote: SocketAddr) -> Result<u16, OpenError> {
        self.flows.free_port().ok_or(OpenError::NoPort(remote))
    }

    /// What was written to `flow` becomes an object. None when it is not being written.
    fn publish_as(&mut self, now: Time, id: FlowId, name: Option<Bytes>) -> Option<u64> {
        let parameters = &self.config.parameters;
        let conversation = self.flows.get_mut(id)?;
        let role = std::mem::replace(&mut conversation.role, Role::Over);
        let Role::Writing {
            draft,
            request,
            name: settled,
        } = role
        else {
            conversation.role = role;
            return None;
        };
        let host = conversation.peer.path.local.ip();
        let port = conversation.local_port;
        let name = name.or(settled);
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
        let consumer = (conversation.peer.path.remote, conversation.peer.port);
        self.shelf.add(publication, id, consumer);
        Some(object)
    }

    /// What leaves by itself: requests, manifests, Interests.
    fn next(&mut self, now: Time) -> Option<Datagram> {
        let most = self.config.parameters.request.attempts;
        while let Some((id, conversation)) = self.flows.first_ready() {
            if let Some(datagram) = next_of(now, conversation, most) {
                return Some(datagram);
            }
            self.flows.rest(id);
        }
        None
    }

    /// The object is served no more, which ends every flow it was written to.
    fn unpublish(&mut self, now: Time, object: u64) {
        for id in self.shelf.remove(object) {
            let Some(conversation) = self.flows.get_mut(id) else {
                continue;
            };
            conversation.role = Role::Over;
            if conversation.lingers_until.is_some() {
                self.forget(now, id);
            } else {
                self.events.push_back(Event::Closed(id, CloseReason::Finished));
            }
        }
    }

    /// How long a manifest that nobody asked for goes on coming: its waits double.
    fn announced_for(&self) -> Duration {
        let request = self.config.parameters.request;
        request.rto * ((1 << request.attempts.min(30)) - 1)
    }

    /// The flow is forgotten, and what it was published as goes on.
    fn forget(&mut self, now: Time, id: FlowId) {
        let late = self.announced_for();
        if let Some(conversation) = self.flows.remove(now, id, late)
            && let Role::Serving { object, .. } = conversation.role
        {
            let Peer { path, port } = conversation.peer;
            self.shelf.leave(object, (path.remote, port), id);
        }
    }

    fn on_deadline(&mut self, now: Time) {
        while let Some(object) = self.shelf.over(now) {
            self.unpublish(now, object);
        }
        for id in self.flows.due(now) {
            self.on_flow_deadline(now, id);
        }
    }

    fn on_flow_deadline(&mut self, now: Time, id: FlowId) {
        let parameters = self.config.parameters.request;
        let waited = self.announced_for();
        let Some(conversation) = self.flows.get_mut(id) else {
            return;
        };
        if conversation.lingers_until.is_some_and(|until| until <= now) {
            return self.forget(now, id);
        }
        match &mut conversation.role {
            Role::Asking(announcement) if announcement.is_hopeless(now, parameters) => {
                conversation.role = Role::Over;
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
        self.flows.settle();
    }

    fn poll_transmit(&mut self, now: Time, out: &mut Datagram) -> bool {
        if let Some(answer) = self.outbox.pop_front() {
            *out = answer;
            return true;
        }
        let next = self.next(now);
        self.flows.settle();
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
        let ends = self.shelf.first_end().map(|at| (at, Wakeup::Expiry));
        let earliest = Earliest::of(ends);
        match self.flows.deadline() {
            Some((at, why)) => earliest.or(Some(at), why),
            None => earliest,
        }
        .deadline()
    }

    fn held(&self) -> usize {
        self.flows.len()
    }
}

impl Flow for Itp {
    fn open(&mut self, _now: Time, path: PathAddress, port: u16) -> Result<FlowId, OpenError> {
        let local_port = self.free_port(path.remote)?;
        let draft = Draft::new(self.config.parameters.chunk_bytes);
        let role = Role::Writing {
            draft,
            request: 0,
            name: None,
        };
        let id = self
            .flows
            .add(Conversation::new(Peer { path, port }, local_port, role));
        self.flows.settle();
        self.events.push_back(Event::Connected(id));
        Ok(id)
    }

    fn request(
        &mut self,
        now: Time,
        path: PathAddress,
        port: u16,
        message: Bytes,
    ) -> Result<FlowId, OpenError> {
        Itp::request(self, now, path, port, message)
    }

    /// Adds to the object, which is published when its writer has finished.
    fn write(&mut self, _now: Time, id: FlowId, data: Bytes) -> Result<(), WriteError> {
        let conversation = self.flows.get_mut(id).ok_or(WriteError::Closed)?;
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
        let read = self.flows.get_mut(id).map_or(Read::End, Conversation::read);
        self.flows.settle();
        read
    }

    /// A writer's object is published, and its manifest sent to the peer. A reader is done when it has everything.
    fn finish(&mut self, now: Time, id: FlowId) {
        if self.publish_as(now, id, None).is_none()
            && let Some(Role::Fetching(fetch)) = self.flows.get_mut(id).map(|flow| &mut flow.role)
            && fetch.consumer.is_complete()
            && !std::mem::replace(&mut fetch.finished, true)
        {
            self.events.push_back(Event::Closed(id, CloseReason::Finished));
        }
        self.flows.settle();
    }

    /// Nobody is told: there is no connection. The object is served no more.
    fn abort(&mut self, now: Time, id: FlowId) {
        let Some(conversation) = self.flows.get(id) else {
            return;
        };
        let served = match conversation.role {
            Role::Serving { object, .. } => Some(object),
            _ => None,
        };
        self.forget(now, id);
        if let Some(object) = served {
            self.unpublish(now, object);
        }
        self.events.push_back(Event::Closed(id, CloseReason::Aborted));
        self.flows.settle();
    }

    /// What was published is served until its nexus ends. Until the peer is known to have its manifest, that may be asked for again.
    fn release(&mut self, now: Time, id: FlowId) {
        let until = now + self.announced_for();
        match self.flows.get_mut(id) {
            Some(conversation) if conversation.may_be_asked() => conversation.lingers_until = Some(until),
            _ => self.forget(now, id),
        }
        self.flows.settle();
    }

    fn stats(&self, id: FlowId) -> Option<FlowStats> {
        let conversation = self.flows.get(id)?;
        let own = conversation.stats.clone();
        Some(match &conversation.role {
            Role::Writing { draft, .. } => FlowStats {
                memory_bytes: draft.length(),
                ..own
            },
            Role::Serving { object, .. } => FlowStats {
                memory_bytes: self
                    .shelf
                    .get(*object)
                    .map_or(0, |served| served.publication.memory()),
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

/// What a flow sends by itself, if it has something.
fn next_of(now: Time, conversation: &mut Conversation, most: u32) -> Option<Datagram> {
    let (header, payload, peer) = match &mut conversation.role {
        Role::Asking(announcement) => {
            let (header, payload) = announcement.take_due(now, true)?;
            (header, payload, conversation.peer)
        }
        Role::Serving { announcement, .. } => {
            // A manifest in answer to a request leaves once: the request is retransmitted (ITP OP-20).
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
