//! The laws themselves: each is broken on purpose, by a machine that misbehaves or by a change to a trace.

use super::{LAWS, Violation, judge};
use crate::chaos::paths::Further;
use crate::chaos::seat::Maker;
use crate::chaos::stage;
use crate::chaos::trace::{Ending, Trace, What};
use crate::chaos::{Case, Side, Traffic, endpoint};
use bytes::Bytes;
use restp_base::flow::CloseReason;
use restp_base::time::Duration;
use restp_proto::wire::{ErrorControl, Header};
use std::collections::BTreeSet;

mod eras;
mod flight;
mod sealed;
mod streams;
mod unfaithful;

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
    (case.faults, case.opens_ms, case.seal) = (Vec::new(), vec![0], None);
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
                datagram.head[3] |= 0x01; // reserved bits are sent as 0
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
