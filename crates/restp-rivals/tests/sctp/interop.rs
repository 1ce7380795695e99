//! With the SCTP of others: sctp-proto opens or serves, and what both say is understood, with losses and reordering.

use super::network::{Net, chance, ms, noise, sctp};
use bytes::Bytes;
use restp_base::flow::{CloseReason, FlowId, Read};
use restp_base::machine::{Datagram, Event, Input, Machine};
use restp_base::time::{Duration, Time};
use restp_rivals::sctp::{Sctp, SctpConfig};
use restp_witnesses::Witness;
use std::collections::BTreeMap;

/// The port that sctp-proto opens to and serves.
const PORT: u16 = 5000;
const ONE_WAY: Duration = Duration::from_millis(10);

/// Two ends, one of which is ours.
struct Pair {
    now: Time,
    ends: [Box<dyn Machine>; 2],
    events: [Vec<Event>; 2],
    read: [Vec<u8>; 2],
    wire: BTreeMap<(Time, u64), (usize, Datagram)>,
    order: u64,
    chance: restp_base::random::Stream,
    loss: f64,
    reordering: f64,
}

impl Pair {
    fn new(ours_opens: bool, seed: u64, loss: f64, reordering: f64) -> Self {
        let ours = Sctp::new(SctpConfig {
            listen: (!ours_opens).then_some(PORT),
            ..SctpConfig::new(sctp(&[("segment", "1200 B")]))
        });
        let theirs = Witness::named("sctp:sctp-proto", &[])
            .expect("a name")
            .expect("no keys");
        let ends: [Box<dyn Machine>; 2] = if ours_opens {
            [Box::new(ours), theirs.machine(true)]
        } else {
            [theirs.machine(false), Box::new(ours)]
        };
        Pair {
            now: Time::ZERO,
            ends,
            events: Default::default(),
            read: Default::default(),
            wire: BTreeMap::new(),
            order: 0,
            chance: chance(seed),
            loss,
            reordering,
        }
    }

    fn settle(&mut self) {
        for index in 0..2 {
            loop {
                let mut out = Datagram::empty();
                while self.ends[index].poll_transmit(self.now, &mut out) {
                    let mut datagram = std::mem::replace(&mut out, Datagram::empty());
                    datagram.path = datagram.path.reversed();
                    let late = if self.chance.chance(self.reordering) {
                        ms(self.chance.below(30))
                    } else {
                        Duration::ZERO
                    };
                    if !self.chance.chance(self.loss) {
                        self.order += 1;
                        let key = (self.now + ONE_WAY + late, self.order);
                        self.wire.insert(key, (1 - index, datagram));
                    }
                }
                let Some(event) = self.ends[index].poll_event() else {
                    break;
                };
                if let Event::Readable(flow) = event {
                    self.read_all(index, flow);
                }
                self.events[index].push(event);
            }
        }
    }

    fn read_all(&mut self, index: usize, flow: FlowId) {
        loop {
            match self.ends[index].read(self.now, flow) {
                Read::Data(data) => self.read[index].extend_from_slice(&data),
                Read::Empty => return,
                Read::End => return self.ends[index].finish(self.now, flow),
            }
        }
    }

    fn run_for(&mut self, span: Duration) {
        let until = self.now + span;
        loop {
            self.settle();
            let due = |machine: &dyn Machine| machine.next_deadline().map_or(Time::MAX, |(at, _)| at);
            let timers = [due(&*self.ends[0]), due(&*self.ends[1])];
            let arrival = self.wire.first_key_value().map_or(Time::MAX, |((at, _), _)| *at);
            let next = timers[0].min(timers[1]).min(arrival).max(self.now);
            if next > until {
                self.now = until;
                return;
            }
            self.now = next;
            if arrival <= next {
                let (_, (to, mut datagram)) = self.wire.pop_first().expect("it arrives");
                self.ends[to].handle(next, Input::Datagram(&mut datagram));
            } else {
                for (machine, at) in self.ends.iter_mut().zip(timers) {
                    if at <= next {
                        machine.handle(next, Input::Deadline);
                    }
                }
            }
        }
    }

    /// Both ends send `bytes`, the opener then ends it.
    fn exchange(&mut self, bytes: usize) {
        let text = noise(bytes);
        let flow = self.ends[0]
            .open(self.now, Net::path(0), PORT)
            .expect("a free port");
        self.run_for(Duration::from_secs(20));
        let accepted = self.events[1].iter().find_map(|event| match event {
            Event::Accepted(flow) => Some(*flow),
            _ => None,
        });
        let flows = [flow, accepted.expect("accepted")];
        let mut written = [0, 0];
        let deadline = self.now + Duration::from_secs(300);
        while self.now < deadline && self.read.iter().any(|read| read.len() < bytes) {
            for end in 0..2 {
                while written[end] < bytes {
                    let to = bytes.min(written[end] + 1200);
                    let part = Bytes::copy_from_slice(&text[written[end]..to]);
                    match self.ends[end].write(self.now, flows[end], part) {
                        Ok(()) => written[end] = to,
                        Err(_) => break,
                    }
                }
            }
            self.run_for(ms(20));
        }
        assert!(
            self.read == [text.clone(), text],
            "{:?}",
            self.read.each_ref().map(Vec::len)
        );
        self.ends[0].finish(self.now, flow);
        self.run_for(Duration::from_secs(60));
    }
}

#[test]
fn both_directions_arrive_whole_and_the_association_ends() {
    for ours_opens in [true, false] {
        let mut pair = Pair::new(ours_opens, 1, 0.0, 0.0);
        pair.exchange(1_000_000);
        for (end, events) in pair.events.iter().enumerate() {
            let closed = |event: &Event| matches!(event, Event::Closed(_, CloseReason::Finished));
            assert!(
                events.iter().any(closed),
                "ours opens: {ours_opens}, {end}: {events:?}"
            );
        }
    }
}

#[test]
fn losses_and_reordering_are_repaired() {
    for (loss, reordering) in [(0.03, 0.0), (0.0, 0.1), (0.05, 0.05)] {
        for ours_opens in [true, false] {
            for seed in 0..4 {
                Pair::new(ours_opens, seed, loss, reordering).exchange(300_000);
            }
        }
    }
}
