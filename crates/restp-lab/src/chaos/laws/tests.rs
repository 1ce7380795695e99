//! The laws themselves: each is broken on purpose, by a machine that misbehaves or by a change to a trace.

use super::{LAWS, Violation, judge};
use crate::chaos::paths::Further;
use crate::chaos::stage::{self, Maker};
use crate::chaos::trace::{Ending, Trace, What};
use crate::chaos::{Case, Side, Traffic, endpoint};
use bytes::Bytes;
use restp_base::flow::{CloseReason, Flow, FlowId, FlowStats, OpenError, Read, WriteError};
use restp_base::machine::{Datagram, Event, Input, Machine, PathAddress, Wakeup};
use restp_base::time::{Duration, Time};
use restp_proto::wire::{ErrorControl, Header};
use restp_proto::{Endpoint, EndpointConfig};
use std::collections::BTreeSet;

/// A transfer both ways without faults, over `choices`.
fn case(choices: &[(&str, &str)]) -> Case {
    let choices: crate::chaos::swarm::Choices = choices
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect();
    let writes = Traffic::Messages {
        start_ms: 0,
        count: 60,
        smallest: 900,
        largest: 1_300,
        every_us: 1_000,
    };
    let mut case = Case::draw(1);
    (case.faults, case.opens_ms) = (Vec::new(), vec![0]);
    case.hops = vec![crate::chaos::Hop {
        rates_bps: [10_000_000; 2],
        delay_us: 5_000,
        queue_bytes: 200_000,
    }];
    (case.exact, case.heal_ms) = (true, 5_000);
    (case.client, case.server) = (choices.clone(), choices);
    (case.client_writes, case.server_writes) = (writes.clone(), writes);
    case
}

fn reliable() -> Case {
    case(&[
        ("connection", "three-way"),
        ("flow-control", "window"),
        ("window", "20 segments"),
        ("ordering", "ordered"),
        ("reliability", "arq"),
        ("ack", "positive"),
        ("congestion", "newreno"),
    ])
}

/// The same over two paths alike.
fn two_paths() -> Case {
    let mut case = reliable();
    for choices in [&mut case.client, &mut case.server] {
        choices.insert("paths".into(), "spreading".into());
        choices.insert("scheduling".into(), "fastest-rtt".into());
    }
    case.further = vec![Further {
        joins_ms: 0,
        leaves_ms: None,
        backup: false,
        hops: case.hops.clone(),
    }];
    case
}

fn unreliable() -> Case {
    case(&[("connection", "three-way")])
}

fn played(case: &Case, make: Maker<'_>) -> (Trace, Option<Violation>) {
    let trace = stage::play(case, make).expect("a case");
    let violation = judge(case, &trace);
    (trace, violation)
}

#[track_caller]
fn breaks(law: &str, case: &Case, change: impl FnOnce(&mut Trace)) {
    let (mut trace, violation) = played(case, &endpoint);
    assert_eq!(violation, None, "nothing is wrong before");
    change(&mut trace);
    let violation = judge(case, &trace).expect("now something is");
    assert_eq!(violation.law, law, "{violation:?}");
}

/// Changes the first record that `change` finds fit.
fn first(trace: &mut Trace, mut change: impl FnMut(&mut What) -> bool) {
    assert!(
        trace.records.iter_mut().any(|record| change(&mut record.what)),
        "no record fits"
    );
}

#[test]
fn a_changed_trace_breaks_the_law_it_is_about() {
    breaks("wire", &reliable(), |trace| {
        first(trace, |what| match what {
            What::Sent { datagram, .. } => {
                datagram.head[7] = 0x80; // reserved bits are sent as 0
                true
            }
            _ => false,
        })
    });
    breaks("conservation", &reliable(), |trace| {
        let at = trace
            .records
            .iter()
            .position(|record| matches!(record.what, What::Delivered { .. }));
        let again = trace.records[at.expect("a delivery")].clone();
        trace.records.push(again);
    });
    breaks("once", &unreliable(), |trace| {
        first(trace, |what| match what {
            What::Read { data, .. } => {
                *data = Bytes::from(vec![0; data.len()]);
                true
            }
            _ => false,
        })
    });
    breaks("order", &reliable(), |trace| {
        let reads: Vec<usize> = (0..trace.records.len())
            .filter(|index| matches!(trace.records[*index].what, What::Read { end: 1, .. }))
            .collect();
        trace.records.swap(reads[0], reads[1]);
    });
    breaks("complete", &reliable(), |trace| {
        let last = trace
            .records
            .iter()
            .rposition(|record| matches!(record.what, What::Read { end: 1, .. }));
        trace.records.remove(last.expect("a read"));
    });
    breaks("holes", &unreliable(), |trace| {
        let last = trace
            .records
            .iter()
            .rposition(|record| matches!(record.what, What::Read { .. }));
        trace.records.remove(last.expect("a read"));
    });
    breaks("memory", &reliable(), |trace| {
        first(trace, |what| match what {
            What::Holds { bytes, .. } => {
                *bytes = 1 << 30;
                true
            }
            _ => false,
        })
    });
    breaks("endings", &reliable(), |trace| {
        first(trace, |what| match what {
            What::Closed { reason, .. } => {
                *reason = CloseReason::Reset;
                true
            }
            _ => false,
        })
    });
    breaks("progress", &reliable(), |trace| trace.ending = Ending::TimeUp);
    breaks("progress", &reliable(), |trace| trace.remembered.push(0));
    breaks("progress", &reliable(), |trace| trace.held[1] = 1);
    breaks("progress", &reliable(), |trace| trace.wakeups = 1 << 30);
}

#[test]
fn an_encoded_packet_that_is_not_the_sum_of_its_segments_is_seen() {
    let mut case = reliable();
    for choices in [&mut case.client, &mut case.server] {
        choices.insert("reliability".into(), "harq".into());
    }
    breaks("encoded", &case, |trace| {
        let mut changed = None;
        for record in &mut trace.records {
            let (What::Sent { packet, datagram, .. } | What::Delivered { packet, datagram, .. }) =
                &mut record.what
            else {
                continue;
            };
            let is_encoded = || {
                let (header, _) = Header::parse(&datagram.to_vec(), datagram.len()).expect("a PDU");
                header.services.error.has(ErrorControl::ENC)
            };
            if changed == Some(*packet) || (changed.is_none() && is_encoded()) {
                changed = Some(*packet);
                let mut sum = datagram.body.to_vec();
                *sum.last_mut().expect("a sum") ^= 1;
                datagram.body = sum.into();
            }
        }
        changed.expect("an encoded packet");
    });
}

#[test]
fn a_reader_that_waits_while_a_path_is_whole_breaks_the_law_of_stalls() {
    breaks("stall", &two_paths(), |trace| {
        let read = |what: &What| matches!(what, What::Read { end: 1, .. });
        let reads: Vec<usize> = (0..trace.records.len())
            .filter(|index| read(&trace.records[*index].what))
            .collect();
        // In the middle of the transfer everything stands still for two minutes.
        let later = &mut trace.records[reads[reads.len() / 2]..];
        later
            .iter_mut()
            .for_each(|record| record.at += Duration::from_secs(120));
    });
}

#[test]
fn a_sender_that_overruns_window_flight_or_numbers_is_seen() {
    let impatient = |window: &str, initial: &str| {
        let mut case = reliable();
        for choices in [&mut case.client, &mut case.server] {
            choices.insert("window".into(), window.into());
            choices.insert("initial-window".into(), initial.into());
        }
        case
    };
    // The machines run with wider limits than the case says.
    let law = |claimed: &Case, run: &Case| {
        let (trace, _) = played(run, &endpoint);
        judge(claimed, &trace).expect("a broken law").law
    };
    let wide = impatient("60 segments", "10 segments");
    let narrow = impatient("60 segments", "2 segments");
    assert_eq!(law(&narrow, &wide), "flight");
    breaks("numbers", &reliable(), |trace| {
        let data = |what: &What| matches!(what, What::Sent { from: Side::Client, datagram, .. } if !datagram.body.is_empty());
        let at: Vec<usize> = (0..trace.records.len())
            .filter(|index| data(&trace.records[*index].what))
            .collect();
        let mut again = trace.records[at[0]].clone();
        if let What::Sent { datagram, packet, .. } = &mut again.what {
            datagram.body = Bytes::from(vec![7; datagram.body.len()]);
            *packet = 1 << 40;
        }
        trace.in_flight += 1;
        trace.records.push(again);
    });
    breaks("window", &reliable(), |trace| {
        // The same transfer with windows that are said to be shut.
        for record in &mut trace.records {
            if let What::Sent { datagram, .. } | What::Delivered { datagram, .. } = &mut record.what {
                datagram.head[12..14].copy_from_slice(&[0, 1]);
            }
        }
    });
}

/// A bulk transfer with room for a window that grows, over `choices` beside those of a reliable flow.
fn bulk(choices: &[(&str, &str)]) -> Case {
    let mut case = reliable();
    case.client_writes = Traffic::Bulk {
        start_ms: 0,
        bytes: 400_000,
    };
    case.server_writes = Traffic::Nothing;
    case.hops[0].queue_bytes = 2_000_000;
    for own in [&mut case.client, &mut case.server] {
        own.insert("window".into(), "400 segments".into());
        for (key, value) in choices {
            own.insert((*key).into(), (*value).into());
        }
    }
    case
}

/// The law that `run` breaks when it is judged as if its machines had been told what `claimed` says.
#[track_caller]
fn judged_as(claimed: &Case, run: &Case) -> &'static str {
    let (trace, violation) = played(run, &endpoint);
    assert_eq!(violation, None, "nothing is wrong with what it was told");
    judge(claimed, &trace).expect("a broken law").law
}

#[test]
fn a_window_that_grows_faster_than_its_algorithm_is_seen() {
    let (doubles, adds) = (bulk(&[]), bulk(&[("initial-threshold", "14000 B")]));
    assert_eq!(judged_as(&adds, &doubles), "flight");
}

/// A long transfer of which the network loses what leaves between `from_ms` and `until_ms`.
fn with_outage(choices: &[(&str, &str)], [from_ms, until_ms]: [u64; 2]) -> Case {
    let mut case = bulk(choices);
    case.client_writes = Traffic::Bulk {
        start_ms: 0,
        bytes: 2_000_000, // there is more to send when the loss is noticed
    };
    case.faults = vec![crate::chaos::Fault::Outage {
        hop: 0,
        from: Side::Client,
        from_ms,
        until_ms,
    }];
    case
}

/// RFC 5681 (4) leaves half, Kelly's Scalable seven eighths. Selective acknowledgements repair all of it within a round trip,
/// or the window would not be used.
#[test]
fn a_window_that_a_loss_cuts_too_little_is_seen() {
    let lossy = |congestion| {
        let choices = [
            ("congestion", congestion),
            ("ack", "positive+sack"),
            ("recovery", "pipe"),
        ];
        with_outage(&choices, [100, 102])
    };
    assert_eq!(judged_as(&lossy("newreno"), &lossy("scalable")), "flight");
}

/// RFC 5681 §3.1: one segment. Where losses count as corruption the window stays.
#[test]
fn a_window_that_a_timeout_leaves_as_it_was_is_seen() {
    let silent = |loss| with_outage(&[("loss", loss)], [100, 300]);
    assert_eq!(judged_as(&silent("congestion"), &silent("corruption")), "flight");
}

/// The trace is changed into one in which only the first segments are ever acknowledged: what the sender goes on sending
/// overruns any window, whatever model it comes from.
#[test]
fn a_window_that_grows_without_acknowledgements_is_seen_with_every_kind_of_controller() {
    const ACKNOWLEDGED: u32 = 4;
    for choices in [
        &[("congestion", "newreno")][..],
        &[("congestion", "cubic")],
        &[("congestion", "bbr"), ("ack", "positive+sack"), ("pacing", "on")],
    ] {
        breaks("flight", &bulk(choices), |trace| {
            let mut first = None;
            rewrite(trace, Side::Server, |header| {
                let number = header.acknowledgement.expect("an acknowledgement");
                let first = *first.get_or_insert(number);
                let acknowledged = number.wrapping_sub(first).min(ACKNOWLEDGED);
                header.acknowledgement = Some(first.wrapping_add(acknowledged));
            });
        });
    }
}

/// Changes the headers of what `from` sends, where it leaves and where it arrives.
fn rewrite(trace: &mut Trace, from: Side, mut change: impl FnMut(&mut Header)) {
    for record in &mut trace.records {
        let datagram = match &mut record.what {
            What::Sent {
                from: of, datagram, ..
            } if *of == from => datagram,
            What::Delivered { to, datagram, .. } if *to != from => datagram,
            _ => continue,
        };
        let bytes = datagram.to_vec();
        let (mut header, length) = Header::parse(&bytes, bytes.len()).expect("a PDU");
        change(&mut header);
        header
            .emit(&bytes[length..], &mut datagram.head)
            .expect("a header");
    }
}

#[test]
fn a_packet_that_changes_its_path_is_seen() {
    breaks("conservation", &two_paths(), |trace| {
        first(trace, |what| match what {
            What::Delivered { path, .. } => {
                *path = 1 - *path;
                true
            }
            _ => false,
        })
    });
}

#[test]
fn a_segment_that_arrives_and_is_never_read_is_seen_although_others_are_lost() {
    let mut case = unreliable();
    case.faults = vec![crate::chaos::Fault::Loss {
        hop: 0,
        from: Side::Client,
        rate: 0.1,
    }];
    breaks("holes", &case, |trace| {
        let last = trace
            .records
            .iter()
            .rposition(|record| matches!(record.what, What::Read { end: 1, .. }));
        trace.records.remove(last.expect("a read"));
    });
}

#[test]
fn a_shared_window_that_is_overrun_is_seen() {
    breaks("window", &two_paths(), |trace| {
        for side in Side::BOTH {
            rewrite(trace, side, |header| header.window = header.window.map(|_| 1));
        }
    });
}

/// A machine that hands up, or sends, something else than it should.
struct Unfaithful {
    inner: Endpoint,
    sin: Sin,
    reads: u64,
    held: Option<Bytes>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Sin {
    Drops,
    Repeats,
    Swaps,
    Changes,
    NeverEnds,
    Panics,
}

impl Flow for Unfaithful {
    fn open(&mut self, now: Time, path: PathAddress, port: u16) -> Result<FlowId, OpenError> {
        self.inner.open(now, path, port)
    }
    fn write(&mut self, now: Time, flow: FlowId, data: Bytes) -> Result<(), WriteError> {
        self.inner.write(now, flow, data)
    }
    fn read(&mut self, now: Time, flow: FlowId) -> Read {
        let waits = self.sin == Sin::Swaps && self.reads == 5;
        if let Some(held) = self.held.take_if(|_| !waits) {
            return Read::Data(held);
        }
        let Read::Data(data) = self.inner.read(now, flow) else {
            return self.inner.read(now, flow);
        };
        self.reads += 1;
        if self.reads != 5 {
            return Read::Data(data);
        }
        match self.sin {
            Sin::Drops => self.inner.read(now, flow),
            Sin::Repeats => {
                self.held = Some(data.clone());
                Read::Data(data)
            }
            Sin::Swaps => {
                self.held = Some(data); // until after the next
                Read::Empty
            }
            Sin::Changes => Read::Data(Bytes::from(vec![1; data.len()])),
            Sin::Panics => panic!("a machine that panics"),
            Sin::NeverEnds => Read::Data(data),
        }
    }
    fn finish(&mut self, now: Time, flow: FlowId) {
        if self.sin != Sin::NeverEnds {
            self.inner.finish(now, flow);
        }
    }
    fn abort(&mut self, now: Time, flow: FlowId) {
        self.inner.abort(now, flow);
    }
    fn release(&mut self, now: Time, flow: FlowId) {
        self.inner.release(now, flow);
    }
    fn stats(&self, flow: FlowId) -> Option<FlowStats> {
        self.inner.stats(flow)
    }
}

impl Machine for Unfaithful {
    fn handle(&mut self, now: Time, input: Input<'_>) {
        self.inner.handle(now, input);
    }
    fn poll_transmit(&mut self, now: Time, out: &mut Datagram) -> bool {
        self.inner.poll_transmit(now, out)
    }
    fn poll_event(&mut self) -> Option<Event> {
        self.inner.poll_event()
    }
    fn next_deadline(&self) -> Option<(Time, Wakeup)> {
        self.inner.next_deadline()
    }
    fn held(&self) -> usize {
        self.inner.held()
    }
}

#[test]
fn an_unfaithful_machine_is_found_out() {
    let law = |case: &Case, sin: Sin| {
        let make = move |config: &EndpointConfig| -> Box<dyn Machine> {
            Box::new(Unfaithful {
                inner: Endpoint::new(config.clone()),
                sin,
                reads: 0,
                held: None,
            })
        };
        let outcome = crate::chaos::judge_with(case, &make);
        outcome
            .violation
            .unwrap_or_else(|| panic!("{sin:?} is not seen"))
            .law
    };
    assert_eq!(law(&reliable(), Sin::Drops), "order");
    assert_eq!(law(&reliable(), Sin::Swaps), "order");
    assert_eq!(law(&reliable(), Sin::Repeats), "once");
    assert_eq!(law(&reliable(), Sin::Changes), "once");
    assert_eq!(law(&unreliable(), Sin::Drops), "holes");
    assert_eq!(law(&reliable(), Sin::NeverEnds), "progress");
    assert_eq!(law(&reliable(), Sin::Panics), "panic");
}

#[test]
fn every_law_has_a_name_and_a_sentence_of_its_own() {
    let names: BTreeSet<_> = LAWS.iter().map(|law| law.name).collect();
    let sentences: BTreeSet<_> = LAWS.iter().map(|law| law.says).collect();
    assert_eq!((names.len(), sentences.len()), (LAWS.len(), LAWS.len()));
}

#[test]
fn the_page_lists_every_law() {
    let page = include_str!("../../../../../docs/chaos.md");
    for law in LAWS {
        let row = format!("| `{}` | {} |", law.name, law.says);
        assert!(page.contains(&row), "write\n{row}");
    }
}
