//! Every order of events of a short story: two endpoints, and a network that may deliver, lose, repeat or reorder each packet
//! while the first choices last, and timers that may come at any time between. From each of these states time and a
//! healed network must bring both ends to rest: data arrived once, both ends closed in order, nothing half open is left,
//! and both had agreed on one composition (ResTP §3.5.5, §3.5.6).

mod common;

use bytes::Bytes;
use common::{PORT, config, contiguous};
use restp_base::flow::{CloseReason, Flow, FlowId, Read};
use restp_base::machine::{Datagram, Event, Input, Machine, PathAddress};
use restp_base::time::{Duration, Time};
use restp_proto::wire::Services;
use restp_proto::{Acceptance, Endpoint};

/// What happens next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    /// The packet at this place on its way to this side arrives.
    Deliver(usize, usize),
    /// The first packet to this side arrives, and its copy stays on the way.
    Twice(usize),
    Lose(usize),
    /// The next timer.
    Tick,
}

struct World {
    now: Time,
    ends: [Endpoint; 2],
    wire: [Vec<Datagram>; 2],
    flows: [Option<FlowId>; 2],
    services: [Option<Services>; 2],
    accepted: usize,
    read: [Vec<u8>; 2],
    closed: [Option<CloseReason>; 2],
    /// Both ends end what they say as soon as they can.
    ending: bool,
    /// The client speaks before it is answered.
    early: bool,
}

const SAID: [&[u8]; 2] = [b"request", b"answer"];

impl World {
    fn new(preset: &str, set: &[(&str, &str)]) -> Self {
        let config = config(preset, set);
        let mut world = World {
            now: Time::ZERO,
            ends: [
                Endpoint::new(config.clone()),
                Endpoint::new(config.listen(PORT, Acceptance::Any)),
            ],
            wire: [vec![], vec![]],
            flows: [None, None],
            services: [None, None],
            accepted: 0,
            read: [vec![], vec![]],
            closed: [None, None],
            ending: true,
            early: false,
        };
        world.open();
        world
    }

    /// The client has been here before, and begins to speak beside its SYN.
    fn warm(preset: &str, set: &[(&str, &str)]) -> Self {
        let mut world = World::new(preset, set);
        world.settle();
        let cookie = world.ends[0].cookies(world.now).next().expect("given");
        let mut client = Endpoint::new(config(preset, set));
        client.keep_cookie(world.now, cookie);
        world.ends[0] = client;
        world.accepted = 0;
        (world.services, world.closed, world.flows) = ([None, None], [None, None], [None, None]);
        world.read = [vec![], vec![]];
        world.early = true;
        world.open();
        world
    }

    fn open(&mut self) {
        let ends = ["10.0.0.1:0", "10.0.0.2:0"].map(|address| address.parse().expect("an address"));
        let path = PathAddress {
            local: ends[0],
            remote: ends[1],
        };
        let flow = self.ends[0].open(self.now, path, PORT).expect("a port");
        self.flows[0] = Some(flow);
        if self.early {
            let said = Bytes::from_static(SAID[0]);
            self.ends[0].write(self.now, flow, said).expect("room");
        }
        self.drain();
    }

    fn choices(&self) -> Vec<Choice> {
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
        all
    }

    fn take(&mut self, choice: Choice) {
        match choice {
            Choice::Deliver(side, place) => {
                let mut datagram = self.wire[side].remove(place);
                self.ends[side].handle(self.now, Input::Datagram(&mut datagram));
            }
            Choice::Twice(side) => {
                let mut copy = self.wire[side][0].clone();
                self.ends[side].handle(self.now, Input::Datagram(&mut copy));
            }
            Choice::Lose(side) => drop(self.wire[side].remove(0)),
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
                self.wire[1 - side].push(contiguous(out.path.reversed(), out.to_vec()));
            }
        }
    }

    /// The applications: each says its sentence, ends, reads to the end, and lets go.
    fn on(&mut self, side: usize, event: Event) {
        match event {
            Event::Connected(flow) | Event::Accepted(flow) => {
                self.accepted += usize::from(side == 1);
                self.flows[side] = Some(flow);
                self.services[side] = self.ends[side]
                    .composition(flow)
                    .map(|agreed| Services::of(agreed));
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
    fn settle(&mut self) {
        let end = self.now + Duration::from_secs(600);
        while self.now < end {
            if self.wire.iter().any(|waiting| !waiting.is_empty()) {
                self.now += Duration::from_millis(10);
                for side in 0..2 {
                    for mut datagram in std::mem::take(&mut self.wire[side]) {
                        self.ends[side].handle(self.now, Input::Datagram(&mut datagram));
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

    fn check(&self, taken: &[Choice]) {
        assert_eq!(self.accepted, 1, "accepted once: {taken:?}");
        assert!(
            self.services[0].is_some() && self.services[0] == self.services[1],
            "one composition: {taken:?}"
        );
        assert_eq!(
            [&self.read[0][..], &self.read[1][..]],
            [SAID[1], SAID[0]],
            "said once: {taken:?}"
        );
        let finished = Some(CloseReason::Finished);
        assert_eq!(
            self.closed,
            [finished.clone(), finished],
            "both end in order: {taken:?}"
        );
        let left = [self.ends[0].connections(), self.ends[1].connections()];
        assert_eq!(left, [0, 0], "nothing is left: {taken:?}");
        assert_eq!(self.deadline(), None, "nobody waits: {taken:?}");
    }
}

/// All sequences of `depth` choices after `begin` has been done; how many there are.
fn explore(begin: &dyn Fn() -> World, depth: usize) -> usize {
    let mut open = vec![Vec::new()];
    let mut ends = 0;
    while let Some(taken) = open.pop() {
        let mut world = begin();
        taken.iter().for_each(|choice| world.take(*choice));
        let choices = world.choices();
        if taken.len() == depth || choices.is_empty() {
            world.settle();
            world.check(&taken);
            ends += 1;
            continue;
        }
        open.extend(choices.into_iter().map(|choice| [&taken[..], &[choice]].concat()));
    }
    ends
}

const SCHEMES: [(&str, &[(&str, &str)]); 3] = [
    ("default", &[("paths", "single")]),
    ("3wh-arq", &[]),
    ("opt-arq", &[]),
];

#[test]
fn every_short_story_of_a_set_up_ends_well() {
    for (preset, set) in SCHEMES {
        let ends = explore(&|| World::new(preset, set), 5);
        assert!(ends > 500, "{preset}: only {ends}");
        println!("{preset}: {ends} stories of a set-up");
    }
}

#[test]
fn every_short_story_of_data_beside_the_syn_ends_well() {
    let ends = explore(&|| World::warm("opt-arq", &[]), 5);
    assert!(ends > 500, "only {ends}");
    println!("{ends} stories of early data");
}

#[test]
fn every_short_story_of_a_release_ends_well() {
    for (preset, set) in SCHEMES {
        let begin = || {
            // Established and all said, before anybody ends.
            let mut world = World::new(preset, set);
            world.ending = false;
            while world
                .read
                .iter()
                .zip([SAID[1], SAID[0]])
                .any(|(read, said)| read != said)
            {
                let next = world.choices().into_iter().next().expect("something goes on");
                world.take(next);
            }
            for side in 0..2 {
                let flow = world.flows[side].expect("established");
                world.ends[side].finish(world.now, flow);
            }
            world.drain();
            world
        };
        let ends = explore(&begin, 5);
        assert!(ends > 500, "{preset}: only {ends}");
        println!("{preset}: {ends} stories of a release");
    }
}
