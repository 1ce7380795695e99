//! What a peer can say about several paths that cannot be (ResTP §3.1.13; OP-21, OP-55): refused and counted, and the
//! association goes on.

use crate::common::*;
use restp_base::flow::{Flow, FlowId};
use restp_base::time::Duration;
use restp_proto::wire::{Dss, Mapping};

const SPREAD: &[(&str, &str)] = &[
    ("scheduling", "fastest-rtt"),
    ("ack", "positive+sack"),
    ("recovery", "pipe"),
    ("window", "64 segments"),
];

fn associated() -> (Pair, (FlowId, FlowId)) {
    associated_with(SPREAD)
}

fn associated_with(set: &[(&str, &str)]) -> (Pair, (FlowId, FlowId)) {
    let mut pair = Pair::new("geo-spread", set);
    let flows = pair.connect();
    pair.write(0, flows.0, b"first");
    pair.run_for(Duration::from_millis(100));
    assert_eq!(pair.read_all(1, flows.1).concat(), b"first");
    (pair, flows)
}

/// The mapping of the last data packet of side 0.
fn last_mapping(pair: &Pair) -> Mapping {
    let data = pair.log.iter().rfind(|seen| seen.from == 0 && seen.is_data());
    data.and_then(|seen| seen.header.dss?.mapping)
        .expect("mapped data")
}

/// Side 1 receives a data packet that follows the last one, with the mapping that `change` makes of the right one.
fn data_with(pair: &mut Pair, change: impl FnOnce(&mut Mapping)) {
    let mut mapping = last_mapping(pair);
    (mapping.dsn, mapping.ssn) = (mapping.dsn.wrapping_add(1), mapping.ssn.wrapping_add(1));
    let sequence = mapping.ssn;
    change(&mut mapping);
    pair.forge(0, b"forged", |header| {
        header.sequence = Some(sequence);
        header.dss = Some(Dss {
            mapping: Some(mapping),
            ..Dss::default()
        });
    });
    pair.run_for(Duration::from_millis(50));
}

fn rejected(pair: &Pair, side: usize, flow: FlowId) -> u64 {
    pair.ends[side].stats(flow).expect("it lives").rejected_packets
}

#[test]
fn data_that_its_mapping_does_not_cover_belongs_nowhere() {
    let (mut pair, flows) = associated();
    data_with(&mut pair, |mapping| mapping.ssn = mapping.ssn.wrapping_add(5));
    data_with(&mut pair, |mapping| mapping.length = 0);
    data_with(&mut pair, |mapping| mapping.payload_crc = Some(1));
    pair.forge(0, b"forged", |header| {
        header.sequence = header.sequence.map(|number| number.wrapping_add(1));
        header.dss = None;
    });
    assert_eq!(rejected(&pair, 1, flows.1), 4);
    assert_eq!(pair.read_all(1, flows.1).len(), 0);
    assert!(pair.transfer(0, flows, &noise(50_000), Duration::from_secs(5)));
}

#[test]
fn a_mapping_without_the_check_sum_that_was_agreed_is_refused() {
    let (mut pair, flows) = associated_with(&[SPREAD, &[("mapping-crc", "on")]].concat());
    data_with(&mut pair, |mapping| mapping.payload_crc = None);
    assert_eq!(rejected(&pair, 1, flows.1), 1);
    assert_eq!(pair.read_all(1, flows.1).len(), 0);
    data_with(&mut pair, |mapping| {
        mapping.payload_crc = Some(crc32fast::hash(b"forged"))
    });
    assert_eq!(rejected(&pair, 1, flows.1), 1);
    assert_eq!(pair.read_all(1, flows.1).concat(), b"forged");
}

#[test]
fn data_beyond_the_shared_window_is_not_kept_and_the_sender_hears_the_window() {
    let (mut pair, flows) = associated();
    let acknowledged = pair.log.len();
    data_with(&mut pair, |mapping| mapping.dsn = mapping.dsn.wrapping_add(64));
    data_with(&mut pair, |mapping| {
        mapping.dsn = mapping.dsn.wrapping_add(1 << 30)
    });
    data_with(&mut pair, |mapping| {
        mapping.dsn = mapping.dsn.wrapping_sub(1 << 30)
    });
    assert!(rejected(&pair, 1, flows.1) >= 2);
    assert!(
        pair.log[acknowledged..]
            .iter()
            .any(|seen| seen.from == 1 && seen.header.window == Some(64))
    );
    assert!(pair.ends[1].stats(flows.1).unwrap().memory_bytes < 40_000);
}

#[test]
fn of_two_packets_for_one_number_the_first_counts_and_what_it_displaced_is_sent_again() {
    let (mut pair, flows) = associated();
    // It takes the path's next number for a later one of the association.
    data_with(&mut pair, |mapping| mapping.dsn = mapping.dsn.wrapping_add(1));
    let now = pair.now;
    for _ in 0..3 {
        pair.ends[0]
            .write(now, flows.0, noise(1400).into())
            .expect("room");
    }
    pair.run_for(Duration::from_secs(2));
    let read = pair.read_all(1, flows.1);
    let expected = [noise(1400), b"forged".to_vec(), noise(1400)];
    assert_eq!(
        read.iter().map(|data| data.len()).collect::<Vec<_>>(),
        expected.map(|data| data.len())
    );
}

#[test]
fn an_acknowledgement_of_what_was_never_sent_is_not_believed() {
    let (mut pair, flows) = associated();
    pair.run_for(Duration::from_millis(50));
    let next = last_mapping(&pair).dsn.wrapping_add(1);
    pair.forge(1, b"", |header| {
        header.dss = Some(Dss {
            data_ack: Some(next.wrapping_add(10)),
            ..Dss::default()
        });
    });
    assert_eq!(rejected(&pair, 0, flows.0), 1);
    assert!(pair.transfer(0, flows, &noise(50_000), Duration::from_secs(5)));
}

#[test]
fn the_end_does_not_move_and_nothing_follows_it() {
    let (mut pair, flows) = associated();
    let end = last_mapping(&pair).dsn.wrapping_add(5);
    let fin = |pair: &mut Pair, dsn: u32| {
        pair.forge(0, b"", |header| {
            header.dss = Some(Dss {
                fin: true,
                data_ack: None,
                mapping: Some(Mapping {
                    dsn,
                    ..Mapping::default()
                }),
            });
        });
    };
    fin(&mut pair, end);
    let before = rejected(&pair, 1, flows.1);
    fin(&mut pair, end.wrapping_add(1));
    fin(&mut pair, end.wrapping_sub(1));
    data_with(&mut pair, |mapping| mapping.dsn = end);
    assert_eq!(rejected(&pair, 1, flows.1) - before, 3);
}
