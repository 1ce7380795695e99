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
use restp_base::observe::Transmitted;
use restp_base::time::Time;
use std::net::SocketAddr;

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
        if self.config.listen != Some(message.destination_port)
            || !self.sources.admits(now, peer.path.remote.ip())
        {
            return None;
        }
        if let Some(id) = self.flows.answering(peer.path.remote, peer.port, request) {
            // It came before: the answer is the same (ITP OP-7).
            if let Role::Serving { announcement, .. } = &mut self.flows.get_mut(id)?.role {
                announcement.retransmit(now);
            }
            return Some(());
        }
        if self.flows.len() >= MOST_FLOWS {
            return None;
        }
        let draft = Draft::new(self.config.parameters.chunk_bytes);
        let named = self.config.parameters.names_after_requests;
        let host = SocketAddr::new(peer.path.local.ip(), message.destination_port);
        let name = named.then(|| name_after(host, &message.payload));
        let role = Role::Writing { draft, request, name };
        let id = self.flows.add(Conversation {
            message: Some(message.payload),
            asked_by_peer: Some(request),
            ..Conversation::new(peer, message.destination_port, role)
        });
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
        let port = message.destination_port;
        if let Some(id) = self.flows.fetching(port, object) {
            // It is known. Somebody else may have the same object.
            if let Role::Fetching(fetch) = &mut self.flows.get_mut(id)?.role {
                fetch.add_producer(now, peer);
            }
            return Some(());
        }
        let known = match request {
            0 => None,
            _ => Some(self.flows.asking(port, request)?),
        };
        let may_open = self.config.listen == Some(port) && self.flows.len() < MOST_FLOWS;
        if known.is_none() && (!may_open || self.flows.is_past(now, port, object)) {
            return None;
        }
        let consumer = Consumer::new(&self.config.parameters, object, &core, Delivery::InOrder).ok()?;
        let is_complete = consumer.is_complete();
        let mut fetch = Fetch::new(consumer);
        fetch.add_producer(now, peer);
        let others = trailer.locators.into_iter().map(|locator| Peer {
            path: PathAddress {
                remote: SocketAddr::new(locator.ip(), peer.path.remote.port()),
                ..peer.path
            },
            port: locator.port(),
        });
        fetch.name_producers(now, others, known.is_some());
        let role = Role::Fetching(Box::new(fetch));
        let id = match known {
            Some(id) => {
                self.flows.get_mut(id)?.role = role;
                id
            }
            None => {
                let id = self.flows.add(Conversation::new(peer, port, role));
                self.events.push_back(Event::Accepted(id));
                id
            }
        };
        self.flows.set_fetching(id, object);
        if is_complete {
            self.events.push_back(Event::Readable(id));
        }
        Some(())
    }

    fn on_interest(&mut self, now: Time, path: PathAddress, message: &Message, bytes: u64) -> Option<()> {
        let pointer = message.header.pointer;
        let asked = message.header.flags;
        let answer = self.shelf.change(pointer.object, |served| {
            let flow = served.flow_for(path.remote, message.source_port);
            let answer = served.publication.answer(now, path.remote.ip(), pointer, asked);
            (flow, answer)
        });
        let (flow, answer) = answer.unwrap_or((None, Err(Refusal::NoNexus)));
        if let Some(conversation) = flow.and_then(|flow| self.flows.get_mut(flow)) {
            let payload = answer.as_ref().map_or(0, |(_, payload)| payload.len());
            let is_first = conversation.on_interest(bytes, payload);
            let is_left = conversation.lingers_until.is_some();
            if is_first {
                self.sources.on_proof(path.remote.ip());
            }
            if let Some(flow) = flow.filter(|_| is_left) {
                self.forget(now, flow);
            }
        }
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
        let mut answer = packet::datagram(path, ports, &header, payload);
        let is_chunk = matches!(header.kind, Kind::Data) && flags & flags::MANIFEST == 0;
        answer.segment = is_chunk.then_some(Transmitted {
            number: u64::from(pointer.chunk),
            at: now,
        });
        self.outbox.push_back(answer);
        Some(())
    }

    /// Only those that are asked are listened to.
    fn on_data(&mut self, now: Time, peer: Peer, message: Message, bytes: u64) -> Option<()> {
        let object = message.header.pointer.object;
        let id = self.flows.fetching(message.destination_port, object)?;
        let conversation = self.flows.get_mut(id)?;
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
        if matches!(arrival, Arrival::Readable | Arrival::Taken) {
            fetch.ask_named(now);
        }
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
        let id = self.flows.fetching(message.destination_port, pointer.object)?;
        let Role::Fetching(fetch) = &mut self.flows.get_mut(id)?.role else {
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
        let Some(conversation) = self.flows.get_mut(id) else {
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

/// What the answer to `request` is called by the `host` that gives it.
fn name_after(host: SocketAddr, request: &[u8]) -> Bytes {
    let digest = manifest::digest(request);
    let start = digest.iter().take(16).map(|byte| format!("{byte:02x}"));
    format!("{host}/{}", start.collect::<String>()).into()
}
