//! Two machines of each witness, joined by 10 ms of delay: a stream arrives whole and ends, an abort is heard, misuse is
//! refused.

use bytes::Bytes;
use restp_base::flow::{CloseReason, FlowId, OpenError, Read, WriteError};
use restp_base::machine::{Datagram, Event, Input, Machine, PathAddress};
use restp_base::time::{Duration, Time};
use restp_witnesses::Witness;
use std::collections::VecDeque;
use std::net::SocketAddr;

const DELAY: Duration = Duration::from_millis(10);

fn path(pair: u8) -> PathAddress {
    let host = |number| SocketAddr::from(([10, 0, 0, number], 0));
    PathAddress {
        local: host(2 * pair + 1),
        remote: host(2 * pair + 2),
    }
}

struct Pair {
    now: Time,
    /// Who opens, who serves.
    ends: [Box<dyn Machine>; 2],
    events: [Vec<Event>; 2],
    /// What each end has read.
    read: [Vec<u8>; 2],
    ended: [bool; 2],
    under_way: VecDeque<(Time, usize, Datagram)>,
    /// Most bytes that were on the way to who serves.
    most_under_way: usize,
}

impl Pair {
    fn new(name: &str) -> Self {
        Pair::set(name, &[])
    }

    fn set(name: &str, set: &[(&str, &str)]) -> Self {
        let witness = Witness::named(name, set).expect("a name").expect("keys");
        Pair {
            now: Time::ZERO,
            ends: [witness.machine(false), witness.machine(true)],
            events: Default::default(),
            read: Default::default(),
            ended: [false; 2],
            under_way: VecDeque::new(),
            most_under_way: 0,
        }
    }

    fn open(&mut self) -> FlowId {
        self.ends[0].open(self.now, path(0), 9).expect("the first one")
    }

    fn settle(&mut self) {
        for index in 0..2 {
            loop {
                let mut out = Datagram::empty();
                while self.ends[index].poll_transmit(self.now, &mut out) {
                    let mut datagram = std::mem::replace(&mut out, Datagram::empty());
                    datagram.path = datagram.path.reversed();
                    self.under_way.push_back((self.now + DELAY, 1 - index, datagram));
                }
                let to_server = self.under_way.iter().filter(|(_, to, _)| *to == 1);
                let bytes = to_server.map(|(_, _, datagram)| datagram.len()).sum();
                self.most_under_way = self.most_under_way.max(bytes);
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
                Read::End => {
                    self.ended[index] = true;
                    return self.ends[index].finish(self.now, flow);
                }
            }
        }
    }

    /// Lets time pass for `seconds`.
    fn run(&mut self, seconds: u64) {
        let end = self.now + Duration::from_secs(seconds);
        loop {
            self.settle();
            let due = |machine: &dyn Machine| machine.next_deadline().map_or(Time::MAX, |(at, _)| at);
            let timers = [due(&*self.ends[0]), due(&*self.ends[1])];
            let arrival = self.under_way.front().map_or(Time::MAX, |(at, ..)| *at);
            let next = timers[0].min(timers[1]).min(arrival).max(self.now);
            if next > end {
                self.now = end;
                return;
            }
            self.now = next;
            if arrival <= next {
                let (_, to, mut datagram) = self.under_way.pop_front().expect("it arrives");
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

    fn has(&self, index: usize, event: &Event) -> bool {
        self.events[index].contains(event)
    }
}

#[test]
fn a_stream_arrives_whole_and_ends_on_both_sides() {
    for name in Witness::NAMES {
        let mut pair = Pair::new(name);
        let flow = pair.open();
        let text: Vec<u8> = (0..300_000u32).map(|n| (n / 7) as u8).collect();
        pair.ends[0]
            .write(pair.now, flow, Bytes::from(text.clone()))
            .expect("room");
        let full = pair.ends[0].write(pair.now, flow, Bytes::from_static(b"more"));
        assert_eq!(full, Err(WriteError::Blocked), "{name}");
        pair.run(5);
        assert!(
            pair.has(0, &Event::Connected(flow)) && pair.has(1, &Event::Accepted(flow)),
            "{name}"
        );
        assert!(pair.has(0, &Event::Writable(flow)), "{name}");
        pair.ends[0].finish(pair.now, flow);
        let late = pair.ends[0].write(pair.now, flow, Bytes::from_static(b"late"));
        assert_eq!(late, Err(WriteError::Closed), "{name}");
        pair.run(30);
        assert_eq!(pair.read[1].len(), text.len(), "{name}");
        assert!(
            pair.read[1] == text && pair.ended == [true; 2],
            "{name}: {:?}",
            pair.ended
        );
        for index in 0..2 {
            let closed = Event::Closed(flow, CloseReason::Finished);
            assert!(pair.has(index, &closed), "{name}: {:?}", pair.events[index]);
        }
        let [sent, received] = [0, 1].map(|index| pair.ends[index].stats(flow).expect("it was opened"));
        assert!(sent.sent_payload_bytes >= text.len() as u64, "{name}");
        assert_eq!(received.delivered_bytes, text.len() as u64, "{name}");
        assert!(sent.handshake.is_some_and(|took| took >= DELAY + DELAY), "{name}");
    }
}

#[test]
fn both_ends_may_talk() {
    for name in Witness::NAMES {
        let mut pair = Pair::new(name);
        let flow = pair.open();
        pair.ends[0]
            .write(pair.now, flow, Bytes::from_static(b"question"))
            .expect("room");
        pair.run(2);
        pair.ends[1]
            .write(pair.now, flow, Bytes::from_static(b"answer"))
            .expect("room");
        pair.run(2);
        assert_eq!(
            (&pair.read[1][..], &pair.read[0][..]),
            (&b"question"[..], &b"answer"[..]),
            "{name}"
        );
    }
}

/// What a path of any rate has under way is what the windows allow.
#[test]
fn the_windows_of_a_quic_bound_what_is_under_way() {
    for name in ["quic:quinn", "mpquic:noq"] {
        let most = |set: &[(&str, &str)]| {
            let mut pair = Pair::set(name, set);
            let flow = pair.open();
            pair.run(1);
            let data = Bytes::from(vec![7; 8 << 10]);
            for _ in 0..300 {
                for _ in 0..100 {
                    if pair.ends[0].write(pair.now, flow, data.clone()).is_err() {
                        break;
                    }
                }
                pair.now += Duration::from_millis(1);
                pair.run(0);
            }
            assert!(pair.read[1].len() > 100_000, "{name} {set:?}");
            pair.most_under_way
        };
        let unbounded = most(&[]);
        assert!(unbounded > 200_000, "{name}: {unbounded}");
        for key in ["stream-window", "connection-window", "send-window"] {
            let found = most(&[(key, "32 KiB")]);
            // With headers, and acknowledgements beside the data.
            assert!((20_000..40_000).contains(&found), "{name} {key}: {found}");
        }
    }
}

#[test]
fn an_abort_ends_the_connection_here_and_is_heard_there() {
    for name in ["mpquic:noq", "quic:quinn", "tcp:smoltcp"] {
        let mut pair = Pair::new(name);
        let flow = pair.open();
        pair.run(1);
        pair.ends[0].abort(pair.now, flow);
        pair.run(1);
        assert!(pair.has(0, &Event::Closed(flow, CloseReason::Aborted)), "{name}");
        assert!(
            pair.has(1, &Event::Closed(flow, CloseReason::Reset)),
            "{name}: {:?}",
            pair.events[1]
        );
    }
}

#[test]
fn what_a_witness_cannot_do_is_refused() {
    for name in Witness::NAMES {
        let mut pair = Pair::new(name);
        let flow = pair.open();
        let again = pair.ends[0].open(pair.now, path(1), 9);
        assert!(matches!(again, Err(OpenError::Unsupported(_))), "{name}");
        let several = Witness::named(name, &[]).unwrap().unwrap().takes_several_paths();
        let second = pair.ends[0].add_path(pair.now, flow, path(1), false);
        assert_eq!(second.is_ok(), several, "{name}");
    }
}

#[test]
fn bytes_of_nobody_are_dropped() {
    for name in Witness::NAMES {
        let mut pair = Pair::new(name);
        let flow = pair.open();
        for length in [0, 1, 7, 8, 9, 12, 40, 1200] {
            let mut datagram = Datagram::empty();
            datagram.path = path(0);
            datagram.body = Bytes::from(vec![0xff; length]);
            pair.ends[0].handle(pair.now, Input::Datagram(&mut datagram.clone()));
            datagram.path = path(0).reversed();
            pair.ends[1].handle(pair.now, Input::Datagram(&mut datagram));
        }
        pair.run(3);
        assert!(pair.has(0, &Event::Connected(flow)), "{name}");
    }
}
