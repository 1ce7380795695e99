//! All flows of a host, and which of them have something to do. Whoever gets hold of a flow to change it leaves a mark, and only flows
//! with a mark are looked at again: what a step costs does not grow with the flows that have no part in it.

use super::conversation::{Conversation, Role};
use restp_base::flow::FlowId;
use restp_base::machine::Wakeup;
use restp_base::time::{Duration, Time};
use restp_services::connection_management::{EPHEMERAL, LocalPorts};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;

/// Objects that were retrieved and are remembered at most.
const MOST_PAST: usize = 65_536;

/// Flows by what they are found by.
#[derive(Debug)]
pub(super) struct Flows {
    all: BTreeMap<FlowId, Conversation>,
    opened: u64,
    /// Changed since the last [`settle`](Flows::settle).
    marked: Vec<FlowId>,
    /// Those that may have something to send.
    ready: BTreeSet<FlowId>,
    due: BTreeSet<(Time, FlowId)>,
    /// Requests that came: whose, and their numbers.
    by_request: BTreeMap<(SocketAddr, u16, u64), FlowId>,
    /// Requests that are out, by own port and number.
    by_question: BTreeMap<(u16, u64), FlowId>,
    /// Retrievals by own port and Object ID.
    by_object: BTreeMap<(u16, u64), FlowId>,
    /// Retrievals that are over, and until when their manifests may still come again.
    past: BTreeSet<(u16, u64)>,
    past_until: VecDeque<(Time, (u16, u64))>,
    ports: LocalPorts,
    used: BTreeMap<u16, usize>,
}

impl Default for Flows {
    fn default() -> Self {
        Flows {
            all: BTreeMap::new(),
            opened: 0,
            marked: Vec::new(),
            ready: BTreeSet::new(),
            due: BTreeSet::new(),
            by_request: BTreeMap::new(),
            by_question: BTreeMap::new(),
            by_object: BTreeMap::new(),
            past: BTreeSet::new(),
            past_until: VecDeque::new(),
            ports: LocalPorts::new(*EPHEMERAL.start()),
            used: BTreeMap::new(),
        }
    }
}

impl Flows {
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// The number that the next flow gets.
    pub fn next_id(&self) -> FlowId {
        FlowId(self.opened)
    }

    /// A port that no flow uses, if there is one.
    pub fn free_port(&mut self) -> Option<u16> {
        let used = &self.used;
        self.ports.find(|port| !used.contains_key(&port))
    }

    pub fn add(&mut self, conversation: Conversation) -> FlowId {
        let id = self.next_id();
        self.opened += 1;
        *self.used.entry(conversation.local_port).or_default() += 1;
        if let Some(number) = conversation.asked_by_peer {
            let Conversation { peer, .. } = &conversation;
            self.by_request.insert((peer.path.remote, peer.port, number), id);
        }
        if let Role::Asking(announcement) = &conversation.role {
            let key = (conversation.local_port, announcement.request());
            self.by_question.insert(key, id);
        }
        self.all.insert(id, conversation);
        self.mark(id);
        id
    }

    pub fn get(&self, id: FlowId) -> Option<&Conversation> {
        self.all.get(&id)
    }

    /// A flow that is changed, after which it may have something to send.
    pub fn get_mut(&mut self, id: FlowId) -> Option<&mut Conversation> {
        let conversation = self.all.get_mut(&id)?;
        self.ready.insert(id);
        self.marked.push(id);
        Some(conversation)
    }

    /// The flow that is asked for something to send. Without [`rest`](Flows::rest) it is asked again.
    pub fn first_ready(&mut self) -> Option<(FlowId, &mut Conversation)> {
        while let Some(id) = self.ready.first().copied() {
            if self.all.contains_key(&id) {
                self.marked.push(id);
                return self.all.get_mut(&id).map(|conversation| (id, conversation));
            }
            self.ready.remove(&id);
        }
        None
    }

    /// It has nothing to send until it changes.
    pub fn rest(&mut self, id: FlowId) {
        self.ready.remove(&id);
    }

    /// Notes when those that have changed want to wake.
    pub fn settle(&mut self) {
        while let Some(id) = self.marked.pop() {
            let Some(conversation) = self.all.get_mut(&id) else {
                continue;
            };
            let next = conversation.deadline().map(|(at, _)| at);
            let noted = std::mem::replace(&mut conversation.noted, next);
            if noted != next {
                self.due.extend(next.map(|at| (at, id)));
                if let Some(noted) = noted {
                    self.due.remove(&(noted, id));
                }
            }
        }
    }

    /// The first deadline of them all.
    pub fn deadline(&self) -> Option<(Time, Wakeup)> {
        debug_assert!(self.marked.is_empty(), "what has changed has settled");
        let (_, id) = self.due.first()?;
        self.all.get(id)?.deadline()
    }

    /// Those whose deadlines have come.
    pub fn due(&self, now: Time) -> Vec<FlowId> {
        let due = self.due.iter().take_while(|(at, _)| *at <= now);
        due.map(|(_, id)| *id).collect()
    }

    /// The flow that answers this request.
    pub fn answering(&self, peer: SocketAddr, port: u16, number: u64) -> Option<FlowId> {
        self.by_request.get(&(peer, port, number)).copied()
    }

    /// The flow whose request this is.
    pub fn asking(&self, port: u16, number: u64) -> Option<FlowId> {
        self.by_question.get(&(port, number)).copied()
    }

    /// The retrieval of this object.
    pub fn fetching(&self, port: u16, object: u64) -> Option<FlowId> {
        self.by_object.get(&(port, object)).copied()
    }

    /// `id` retrieves `object` from now on.
    pub fn set_fetching(&mut self, id: FlowId, object: u64) {
        let Some(conversation) = self.get_mut(id) else {
            return;
        };
        let port = conversation.local_port;
        if let Some(number) = conversation.question.take() {
            self.by_question.remove(&(port, number));
        }
        if let Some(conversation) = self.all.get_mut(&id) {
            conversation.object = Some(object);
        }
        self.by_object.insert((port, object), id);
    }

    /// The object was retrieved here a short time ago: whoever announces it now is late.
    pub fn is_past(&mut self, now: Time, port: u16, object: u64) -> bool {
        while let Some((_, key)) = self.past_until.pop_front_if(|(until, _)| *until <= now) {
            self.past.remove(&key);
        }
        self.past.contains(&(port, object))
    }

    /// Forgets a flow. Manifests of what it retrieved are late for so long.
    pub fn remove(&mut self, now: Time, id: FlowId, late: Duration) -> Option<Conversation> {
        let conversation = self.all.remove(&id)?;
        self.ready.remove(&id);
        if let Some(noted) = conversation.noted {
            self.due.remove(&(noted, id));
        }
        let Conversation {
            peer,
            local_port: port,
            ..
        } = conversation;
        if let Some(count) = self.used.get_mut(&port) {
            *count -= 1;
            if *count == 0 {
                self.used.remove(&port);
            }
        }
        if let Some(number) = conversation.asked_by_peer {
            self.by_request.remove(&(peer.path.remote, peer.port, number));
        }
        if let Some(number) = conversation.question {
            self.by_question.remove(&(port, number));
        }
        if let Some(object) = conversation.object {
            self.by_object.remove(&(port, object));
            if self.past.insert((port, object)) {
                self.past_until.push_back((now + late, (port, object)));
            }
            if self.past.len() > MOST_PAST
                && let Some((_, oldest)) = self.past_until.pop_front()
            {
                self.past.remove(&oldest);
            }
        }
        Some(conversation)
    }

    /// Those that have something to do, for tests of what a step looks at.
    #[cfg(test)]
    pub fn busy(&self) -> usize {
        self.ready.len() + self.marked.len()
    }

    fn mark(&mut self, id: FlowId) {
        self.ready.insert(id);
        self.marked.push(id);
    }
}
