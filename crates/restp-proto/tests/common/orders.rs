//! Every order of events of a short story: two machines, and a network that may deliver, lose, duplicate or reorder each packet
//! while the first choices last, and timers that may come at any time between. The applications each say a sentence, end, and
//! let go. What these machines are, and what more must be true of them, the story says.
#![allow(dead_code, reason = "each story uses a part of the harness")]

use crate::common::{PORT, contiguous};
use bytes::Bytes;
use restp_base::flow::{CloseReason, FlowId, Read};
use restp_base::machine::{Datagram, Event, Input, Machine, PathAddress};
use restp_base::time::{Duration, Time};
use restp_proto::wire::Services;
use std::net::SocketAddr;

/// What happens next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The packet at this place on its way to this side arrives.
    Deliver(usize, usize),
    /// The first packet to this side arrives, and its copy stays on the way.
    Twice(usize),
    Lose(usize),
    /// The next timer.
    Tick,
    /// An attacker's move.
    Attack(Attack),
}

/// What an attacker does. He sees everything; what he sends to a side comes before what is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attack {
    /// The first, or the last, that was ever sent to this side comes again.
    Replay(usize, bool),
    /// The first packet on its way to this side comes from the attacker's address, too.
    Elsewhere(usize),
    /// The first packet on its way to this side is another in this byte, from the front or from the back.
    Change(usize, isize),
    /// What begins with this byte is invented for this side, in the name of the session or handshake spoken of last.
    Invent(usize, u8),
}

/// The attacker's address.
pub fn attacker() -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 66], 6_666))
}

/// A datagram as a host had it.
pub struct Passed {
    /// 0 the client, 1 the server.
    pub host: usize,
    pub sent: bool,
    /// Where to, or from where.
    pub remote: SocketAddr,
    pub bytes: Vec<u8>,
}

pub struct World<M> {
    pub now: Time,
    pub ends: [M; 2],
    wire: [Vec<Datagram>; 2],
    /// Whatever either host sent or was given, in order.
    pub passed: Vec<Passed>,
    pub flows: [Option<FlowId>; 2],
    pub services: [Option<Services>; 2],
    pub accepted: usize,
    pub read: [Vec<u8>; 2],
    pub closed: [Option<CloseReason>; 2],
    /// Both ends end what they say as soon as they can.
    pub ending: bool,
    /// The client speaks before it is answered.
    early: bool,
    /// Moves that the attacker has left, and what he may invent for each side.
    pub attacks: usize,
    pub inventions: [&'static [u8]; 2],
    /// The server sees the client here.
    seen_as: Option<SocketAddr>,
    path: PathAddress,
    agreed: fn(&M, FlowId) -> Option<Services>,
}

pub const SAID: [&[u8]; 2] = [b"request", b"answer"];

impl<M: Machine> World<M> {
    /// The client is first and its path as it sees it; `agreed` tells the services of a flow.
    pub fn new(
        now: Time,
        ends: [M; 2],
        path: PathAddress,
        agreed: fn(&M, FlowId) -> Option<Services>,
    ) -> Self {
        World {
            now,
            ends,
            wire: [vec![], vec![]],
            passed: vec![],
            flows: [None, None],
            services: [None, None],
            accepted: 0,
            read: [vec![], vec![]],
            closed: [None, None],
            ending: true,
            early: false,
            attacks: 0,
            inventions: [&[], &[]],
            seen_as: None,
            path,
            agreed,
        }
    }

    /// Another client in the place of the first one; what that one did is no part of the story.
    pub fn come_again(&mut self, client: M) {
        self.ends[0] = client;
        self.accepted = 0;
        (self.services, self.closed, self.flows) = ([None, None], [None, None], [None, None]);
        self.read = [vec![], vec![]];
    }

    /// The client opens a flow; `early`: and begins to speak at once.
    pub fn open(mut self, early: bool) -> Self {
        self.early = early;
        let flow = self.ends[0].open(self.now, self.path, PORT).expect("a port");
        self.flows[0] = Some(flow);
        if self.early {
            let said = Bytes::from_static(SAID[0]);
            self.ends[0].write(self.now, flow, said).expect("room");
        }
        self.drain();
        self
    }

    /// Without choices, until both have heard what the other one says.
    pub fn hear_all(&mut self) {
        while self.read != [SAID[1], SAID[0]] {
            let next = self.choices().into_iter().next().expect("something goes on");
            self.take(next);
        }
    }

    /// Both ends end what they say.
    pub fn finish(&mut self) {
        for side in 0..2 {
            let flow = self.flows[side].expect("established");
            self.ends[side].finish(self.now, flow);
        }
        self.drain();
    }

    fn give(&mut self, side: usize, mut datagram: Datagram) {
        self.passed.push(Passed {
            host: side,
            sent: false,
            remote: datagram.path.remote,
            bytes: datagram.to_vec(),
        });
        self.ends[side].handle(self.now, Input::Datagram(&mut datagram));
    }

    pub fn choices(&self) -> Vec<Choice> {
        let mut all = vec![];
        for side in 0..2 {
            let waiting = self.wire[side].len();
            all.extend((0..waiting.min(2)).map(|place| Choice::Deliver(side, place)));
            if waiting > 0 {
                all.extend([Choice::Lose(side), Choice::Twice(side)]);
            }
        }
        if self.deadline().is_some() {
            all.push(Choice::Tick);
        }
        if self.attacks > 0 {
            (0..2).for_each(|side| all.extend(self.attacks_on(side).map(Choice::Attack)));
        }
        all
    }

    fn attacks_on(&self, side: usize) -> impl Iterator<Item = Attack> {
        let sent = self.sent_to(side).count();
        let replays = [false, true].into_iter().take(sent.min(2));
        let waits = usize::from(!self.wire[side].is_empty());
        let changes = [
            Attack::Elsewhere(side),
            Attack::Change(side, 3),
            Attack::Change(side, -1),
        ];
        let inventions = self.inventions[side].iter().filter(move |_| sent > 0);
        (replays.map(move |last| Attack::Replay(side, last)))
            .chain(changes.into_iter().take(3 * waits))
            .chain(inventions.map(move |kind| Attack::Invent(side, *kind)))
    }

    /// What was ever sent to `side`; not what went to the attacker: who carries that on is a router.
    fn sent_to(&self, side: usize) -> impl DoubleEndedIterator<Item = &Passed> {
        let sent = self.passed.iter();
        sent.filter(move |passed| passed.sent && passed.host != side && passed.remote != attacker())
    }

    /// A datagram as it comes to `side` from its peer.
    fn arriving(&self, side: usize, bytes: Vec<u8>) -> Datagram {
        let mut path = if side == 0 {
            self.path
        } else {
            self.path.reversed()
        };
        if let Some(outside) = self.seen_as.filter(|_| side == 1) {
            path.remote = outside;
        }
        contiguous(path, bytes)
    }

    fn attack(&mut self, attack: Attack) {
        self.attacks -= 1;
        match attack {
            Attack::Replay(side, last) => {
                let mut sent: Vec<Vec<u8>> = self.sent_to(side).map(|sent| sent.bytes.clone()).collect();
                let bytes = if last { sent.pop() } else { sent.drain(..).next() };
                let bytes = bytes.expect("offered");
                let again = self.arriving(side, bytes);
                self.give(side, again);
            }
            Attack::Elsewhere(side) => {
                let mut copy = self.wire[side][0].clone();
                copy.path.remote = attacker();
                self.give(side, copy);
            }
            Attack::Change(side, at) => {
                let mut bytes = self.wire[side].remove(0).to_vec();
                let place = at.rem_euclid(bytes.len() as isize) as usize;
                bytes[place] ^= 1;
                let changed = self.arriving(side, bytes);
                self.give(side, changed);
            }
            Attack::Invent(side, kind) => {
                let named = self.passed.iter().rfind(|passed| passed.sent);
                let name = named.expect("offered").bytes[1..9].to_vec();
                let rest: &[u8] = match kind {
                    0x86 => &[],
                    0x84 => &[7; 32],
                    0x83 | 0x87 => &[7; 16],
                    _ => &[7; 200],
                };
                let invented = self.arriving(side, [&[kind][..], &name, rest].concat());
                self.give(side, invented);
            }
        }
    }

    /// A translator shows the client at `outside` from now on.
    pub fn relocate(&mut self, outside: SocketAddr) {
        self.seen_as = Some(outside);
    }

    pub fn take(&mut self, choice: Choice) {
        match choice {
            Choice::Deliver(side, place) => {
                let datagram = self.wire[side].remove(place);
                self.give(side, datagram);
            }
            Choice::Twice(side) => {
                let copy = self.wire[side][0].clone();
                self.give(side, copy);
            }
            Choice::Lose(side) => drop(self.wire[side].remove(0)),
            Choice::Attack(attack) => self.attack(attack),
            Choice::Tick => {
                self.now = self.now.max(self.deadline().expect("offered"));
                for end in &mut self.ends {
                    if end.next_deadline().is_some_and(|(at, _)| at <= self.now) {
                        end.handle(self.now, Input::Deadline);
                    }
                }
            }
        }
        self.drain();
    }

    fn deadline(&self) -> Option<Time> {
        let deadlines = self.ends.iter().filter_map(|end| end.next_deadline());
        deadlines.map(|(at, _)| at).min()
    }

    fn drain(&mut self) {
        let mut out = Datagram::empty();
        for side in [0, 1, 0, 1] {
            while let Some(event) = self.ends[side].poll_event() {
                self.on(side, event);
            }
            while self.ends[side].poll_transmit(self.now, &mut out) {
                let (bytes, remote) = (out.to_vec(), out.path.remote);
                // What goes to the attacker, or to an address that a translator has given away, reaches nobody.
                let client = self.seen_as.unwrap_or(self.path.local);
                if side == 0 || remote == client {
                    let arriving = self.arriving(1 - side, bytes.clone());
                    self.wire[1 - side].push(arriving);
                }
                self.passed.push(Passed {
                    host: side,
                    sent: true,
                    remote,
                    bytes,
                });
            }
        }
    }

    /// The applications: each says its sentence, ends, reads to the end, and lets go.
    fn on(&mut self, side: usize, event: Event) {
        match event {
            Event::Connected(flow) | Event::Accepted(flow) => {
                self.accepted += usize::from(side == 1);
                self.flows[side] = Some(flow);
                self.services[side] = (self.agreed)(&self.ends[side], flow);
                if side == 1 || !self.early {
                    let said = Bytes::from_static(SAID[side]);
                    self.ends[side].write(self.now, flow, said).expect("room");
                }
                if self.ending {
                    self.ends[side].finish(self.now, flow);
                }
            }
            Event::Closed(flow, reason) => {
                self.closed[side] = Some(reason);
                self.ends[side].release(self.now, flow);
            }
            _ => {}
        }
        if let Some(flow) = self.flows[side] {
            while let Read::Data(data) = self.ends[side].read(self.now, flow) {
                self.read[side].extend_from_slice(&data);
            }
        }
    }

    /// The network is whole from here on, packets in order, 10 ms each way.
    pub fn settle(&mut self) {
        let end = self.now + Duration::from_secs(600);
        while self.now < end {
            if self.wire.iter().any(|waiting| !waiting.is_empty()) {
                self.now += Duration::from_millis(10);
                for side in 0..2 {
                    for datagram in std::mem::take(&mut self.wire[side]) {
                        self.give(side, datagram);
                    }
                }
                self.drain();
            } else if self.deadline().is_some_and(|at| at < end) {
                self.take(Choice::Tick);
            } else {
                break;
            }
        }
    }

    /// The law that is broken at the end, if any.
    pub fn broken(&self) -> Option<&'static str> {
        let finished = Some(CloseReason::Finished);
        let laws = [
            (self.accepted == 1, "accepted once"),
            (
                self.services[0].is_some() && self.services[0] == self.services[1],
                "one composition",
            ),
            (self.read == [SAID[1], SAID[0]], "said once"),
            (self.closed == [finished.clone(), finished], "both end in order"),
            (self.deadline().is_none(), "nobody waits"),
        ];
        laws.into_iter().find(|(holds, _)| !holds).map(|(_, law)| law)
    }
}

/// All sequences of `depth` choices after `begin` has been done, at the end of each of which `broken` names no law; how many
/// there are.
pub fn explore<M: Machine>(
    begin: &dyn Fn() -> World<M>,
    depth: usize,
    broken: &dyn Fn(&mut World<M>) -> Option<&'static str>,
) -> usize {
    let mut open = vec![Vec::new()];
    let mut ends = 0;
    while let Some(taken) = open.pop() {
        let mut world = begin();
        taken.iter().for_each(|choice| world.take(*choice));
        let choices = world.choices();
        if taken.len() == depth || choices.is_empty() {
            world.settle();
            assert_eq!(broken(&mut world), None, "{taken:?}");
            ends += 1;
            continue;
        }
        open.extend(choices.into_iter().map(|choice| [&taken[..], &[choice]].concat()));
    }
    ends
}
