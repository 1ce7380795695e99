//! What becomes of a message, by type (ITP §III.A; ITP 3.4).

use super::super::consumer::{Arrival, Consumer};
use super::super::holding::Delivery;
use super::super::manifest::{self, Core, Trailer};
use super::super::publication::Draft;
use super::super::wire::{Header, Kind, Pointer, Refusal, flags};
use super::conversation::{Conversation, Fetch, Peer, Role};
use super::packet::{self, Message};
use super::{Itp, MOST_FLOWS, MOST_WAITING};
use bytes::Bytes;
use restp_base::flow::{CloseReason, FlowId};
use restp_base::machine::{Datagram, Event, PathAddress};
use restp_base::time::Time;

impl Itp {
    pub(super) fn receive(&mut self, now: Time, datagram: &mut Datagram) {
        let path = datagram.path;
        let bytes = datagram.len() as u64;
        let Ok(message) = packet::take_apart(datagram) else {
            self.dropped += 1;
            return;
        };
        let peer = Peer {
            path,
            port: message.source_port,
        };
        let taken = match message.header.kind {
            Kind::Request => self.on_request(now, peer, message),
            Kind::Manifest { request } => self.on_manifest(now, peer, request, &message),
            Kind::Interest(_) => self.on_interest(now, path, &message, bytes),
            Kind::Data => self.on_data(now, peer, message, bytes),
            Kind::Nack { code, .. } => self.on_refusal(peer, &message, code),
        };
        self.dropped += u64::from(taken.is_none());
    }

    fn on_request(&mut self, now: Time, peer: Peer, message: Message) -> Option<()> {
        let request = message.header.pointer.object;
        let key = (peer.path.remote, peer.port, request);
        if let Some(id) = self.by_request.get(&key) {
            // It came before: the answer is the same (ITP OP-7).
            if let Role::Serving { announcement, .. } = &mut self.flows.get_mut(id)?.role {
                announcement.repeat(now);
            }
            return Some(());
        }
        if self.config.listen != Some(message.destination_port) || self.flows.len() >= MOST_FLOWS {
            return None;
        }
        let draft = Draft::new(self.config.parameters.chunk_bytes);
        let role = Role::Writing { draft, request };
        let id = self.add(Conversation {
            message: Some(message.payload),
            ..Self::conversation(peer, message.destination_port, role)
        });
        self.by_request.insert(key, id);
        self.events.extend([Event::Accepted(id), Event::Readable(id)]);
        Some(())
    }

    fn on_manifest(&mut self, now: Time, peer: Peer, request: u64, message: &Message) -> Option<()> {
        let (core, length) = Core::parse(&message.payload).ok()?;
        let trailer = Trailer::parse(&message.payload[length..]).ok()?;
        let object = manifest::object_id(&message.payload[..length]);
        if object != message.header.pointer.object {
            return None;
        }
        let key = (message.destination_port, object);
        if let Some(id) = self.by_object.get(&key) {
            // It is known. Somebody else may have the same object.
            if let Role::Fetching(fetch) = &mut self.flows.get_mut(id)?.role {
                fetch.add_producer(now, peer);
            }
            return Some(());
        }
        let known = match request {
            0 => None,
            _ => Some(self.asking(message.destination_port, request)?),
        };
        let may_open = self.config.listen == Some(message.destination_port) && self.flows.len() < MOST_FLOWS;
        if known.is_none() && !may_open {
            return None;
        }
        let consumer = Consumer::new(&self.config.parameters, object, &core, Delivery::InOrder).ok()?;
        let is_complete = consumer.is_complete();
        let mut fetch = Fetch::new(consumer);
        fetch.add_producer(now, peer);
        for locator in trailer.locators {
            let path = PathAddress {
                remote: std::net::SocketAddr::new(locator.ip(), peer.path.remote.port()),
                ..peer.path
            };
            let port = locator.port();
            fetch.add_producer(now, Peer { path, port });
        }
        let id = match known {
            Some(id) => {
                self.flows.get_mut(&id)?.role = Role::Fetching(Box::new(fetch));
                id
            }
            None => {
                let role = Role::Fetching(Box::new(fetch));
                let id = self.add(Self::conversation(peer, message.destination_port, role));
                self.events.push_back(Event::Accepted(id));
                id
            }
        };
        self.by_object.insert(key, id);
        if is_complete {
            self.events.push_back(Event::Readable(id));
        }
        Some(())
    }

    /// The flow whose request has this number.
    fn asking(&self, port: u16, request: u64) -> Option<FlowId> {
        let asks = |conversation: &&Conversation| match &conversation.role {
            Role::Asking(announcement) => {
                conversation.local_port == port && announcement.request() == request
            }
            _ => false,
        };
        let found = self.flows.iter().find(|(_, conversation)| asks(conversation));
        found.map(|(id, _)| *id)
    }

    fn on_interest(&mut self, now: Time, path: PathAddress, message: &Message, bytes: u64) -> Option<()> {
        let pointer = message.header.pointer;
        let answer = match self.publications.get_mut(&pointer.object) {
            None => Err(Refusal::NoNexus),
            Some((publication, flow)) => {
                let answer = publication.answer(now, path.remote.ip(), pointer, message.header.flags);
                if let Some(conversation) = self.flows.get_mut(flow) {
                    conversation.on_interest(bytes, answer.as_ref().map_or(0, |(_, payload)| payload.len()));
                }
                answer
            }
        };
        let (kind, flags, payload) = match answer {
            Ok((flags, payload)) => (Kind::Data, flags, payload),
            Err(code) => {
                let nack = Kind::Nack {
                    code,
                    retry_after_ms: 0,
                };
                (nack, message.header.flags & flags::MANIFEST, Bytes::new())
            }
        };
        if self.outbox.len() >= MOST_WAITING {
            return None;
        }
        let header = Header { kind, flags, pointer };
        let ports = (message.destination_port, message.source_port);
        self.outbox
            .push_back(packet::datagram(path, ports, &header, payload));
        Some(())
    }

    /// Only those that are asked are listened to.
    fn on_data(&mut self, now: Time, peer: Peer, message: Message, bytes: u64) -> Option<()> {
        let key = (message.destination_port, message.header.pointer.object);
        let id = *self.by_object.get(&key)?;
        let conversation = self.flows.get_mut(&id)?;
        let Role::Fetching(fetch) = &mut conversation.role else {
            return None;
        };
        let Some(lane) = fetch.lane_of(peer) else {
            conversation.stats.rejected_packets += 1;
            return None;
        };
        conversation.stats.received_bytes += bytes;
        let arrival = fetch
            .consumer
            .on_data(now, lane, &message.header, message.payload, true);
        let is_complete = fetch.consumer.is_complete();
        match arrival {
            Arrival::Readable => self.events.push_back(Event::Readable(id)),
            Arrival::Taken if is_complete => self.events.push_back(Event::Readable(id)),
            Arrival::Taken | Arrival::Duplicate | Arrival::Refused => {}
            Arrival::Rejected => {
                conversation.stats.rejected_packets += 1;
                return None;
            }
            Arrival::Untrusted => self.give_up(id, lane, CloseReason::Reset),
        }
        Some(())
    }

    /// A producer that is asked does not have it, or not for us; nobody else can say so. One that is busy is asked again when its
    /// Interest times out.
    fn on_refusal(&mut self, peer: Peer, message: &Message, code: Refusal) -> Option<()> {
        let pointer: &Pointer = &message.header.pointer;
        let id = *self.by_object.get(&(message.destination_port, pointer.object))?;
        let Role::Fetching(fetch) = &mut self.flows.get_mut(&id)?.role else {
            return None;
        };
        let is_manifest = message.header.flags & flags::MANIFEST != 0;
        let lane = fetch.lane_of(peer)?;
        if !fetch.consumer.is_refusal_for(lane, pointer, is_manifest) {
            return None;
        }
        if code != Refusal::Busy {
            self.give_up(id, lane, CloseReason::Refused);
        }
        Some(())
    }

    /// The producer of `lane` is of no use: the others are asked, or the retrieval is over for this reason.
    pub(super) fn give_up(&mut self, id: FlowId, lane: usize, reason: CloseReason) {
        let Some(conversation) = self.flows.get_mut(&id) else {
            return;
        };
        let Role::Fetching(fetch) = &mut conversation.role else {
            return;
        };
        if !fetch.remove_producer(lane) {
            conversation.stats = fetch.consumer.stats();
            conversation.role = Role::Over;
            self.events.push_back(Event::Closed(id, reason));
        }
    }
}
