//! Stories of what acknowledgements say about holes (ResTP §3.1.8, §3.1.9, §3.5.9; OP-16, OP-44, OP-53).

use crate::common::*;
use restp_base::flow::{Flow, FlowId};
use restp_base::random::Stream;
use restp_base::time::Duration;
use restp_proto::wire::{ErrorControl, Flags, Snack, Tail};

const NAK: &[(&str, &str)] = &[("ack", "positive+nak"), ("recovery", "pipe")];
const SACK: &[(&str, &str)] = &[("ack", "positive+sack"), ("recovery", "pipe")];
const SNACK: &[(&str, &str)] = &[("ack", "positive+snack"), ("recovery", "pipe")];

fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// Segments 1 to 9 arrive; of 10 to 17 only 14, 15 and 17 do (ResTP §3.1.9). What the receiver answers to these three:
/// whether SAK is set, and the report.
fn worked_example(set: &[(&str, &str)]) -> Vec<(bool, Tail)> {
    let mut pair = Pair::new("3wh-arq", set);
    let (flow, _) = pair.connect();
    pair.write(0, flow, &noise(9 * 1400));
    pair.run_for(secs(1));
    pair.rule = lose_segments(&[1, 2, 3, 4, 7]);
    let before = pair.log.len();
    pair.write(0, flow, &noise(8 * 1400));
    pair.run_for(Duration::from_millis(25));
    pair.log[before..]
        .iter()
        .filter(|seen| seen.from == 1)
        .map(|seen| {
            (
                seen.header.services.error.has(ErrorControl::SAK),
                seen.header.tail.clone(),
            )
        })
        .take(3)
        .collect()
}

fn hole(offset: u16, size: u16, vector: &[u32]) -> Tail {
    Tail::Snack(Snack {
        offset,
        size,
        vector: vector.iter().copied().collect(),
    })
}

#[test]
fn snack_has_a_vector_from_the_second_hole_on_and_says_so_in_each_packet() {
    let expected = [
        (false, hole(0, 4, &[])),
        (false, hole(0, 4, &[])),
        (true, hole(0, 4, &[0xD000_0000])),
    ];
    assert_eq!(worked_example(SNACK), expected);
}

#[test]
fn nak_names_one_hole_in_each_acknowledgement_and_never_has_a_vector() {
    let expected = [
        (false, hole(0, 4, &[])),
        (false, hole(0, 4, &[])),
        (false, hole(6, 1, &[])),
    ];
    assert_eq!(worked_example(NAK), expected);
}

#[test]
fn nak_is_set_in_every_packet_and_sak_in_those_that_set_up_or_have_a_vector() {
    let mut pair = Pair::new("3wh-arq", SNACK);
    let flows = pair.connect();
    pair.rule = lose_segments(&[12, 14, 15, 19]);
    assert!(pair.transfer(0, flows, &noise(100_000), secs(5)));
    for seen in &pair.log {
        let error = seen.header.services.error;
        let vector = matches!(&seen.header.tail, Tail::Snack(snack) if !snack.vector.is_empty());
        assert!(error.has(ErrorControl::NAK));
        assert_eq!(
            error.has(ErrorControl::SAK),
            vector || seen.header.flags.has(Flags::SYN),
            "{seen:?}"
        );
    }
}

#[test]
fn the_same_losses_are_repaired_without_the_timer_whatever_names_them() {
    for set in [SACK, NAK, SNACK] {
        let mut pair = Pair::new("3wh-arq", set);
        let flows = pair.connect();
        pair.rule = lose_segments(&[12, 14, 15, 19, 40, 41, 42, 60]);
        assert!(pair.transfer(0, flows, &noise(200_000), secs(5)));
        let stats = pair.ends[0].stats(flows.0).unwrap();
        assert_eq!((stats.retransmitted_packets, stats.timeouts), (8, 0), "{set:?}");
    }
}

/// A voice whose third segment is lost, and its retransmission. A SNACK of one hole shows one later segment however many came;
/// the duplicates tell of the others.
#[test]
fn a_slow_flow_finds_its_lost_retransmission_by_later_segments_unless_it_is_told_to_wait() {
    let timeouts = |set: &[(&str, &str)], rule: (&str, &str)| {
        let set: Vec<_> = set.iter().copied().chain([rule]).collect();
        let mut pair = Pair::new("ful-arq", &set);
        let flows = pair.connect();
        let mut data = Vec::new();
        pair.rule = Box::new(move |seen| {
            let number = seen.header.sequence.filter(|_| seen.is_data());
            data.extend(number);
            let copies = data.iter().filter(|sent| data.get(2) == Some(*sent)).count();
            if number.is_some() && number == data.get(2).copied() && copies <= 2 {
                Verdict::Drop
            } else {
                Verdict::Pass
            }
        });
        for _ in 0..40 {
            pair.write(0, flows.0, &noise(160));
            pair.run_for(Duration::from_millis(20));
        }
        pair.run_for(secs(2));
        let stats = pair.ends[0].stats(flows.0).unwrap();
        assert_eq!(stats.retransmitted_packets, 2, "{set:?}");
        stats.timeouts
    };
    for set in [SACK, SNACK] {
        assert_eq!(timeouts(set, ("lost-repeats", "evidence")), 0, "{set:?}");
        assert_eq!(timeouts(set, ("lost-repeats", "timer")), 1, "{set:?}");
    }
}

/// Half of the acknowledgements are lost and a tenth of the data: every scheme goes on, and those that show
/// what arrived retransmit little that was there.
#[test]
fn a_lossy_way_back_slows_no_scheme_to_a_halt() {
    for set in [SACK, NAK, SNACK] {
        for seed in 0..5 {
            let mut chance = Stream::named(seed, "network");
            let mut pair = Pair::new("arq-only", set);
            let flows = pair.connect();
            pair.rule = Box::new(move |seen| match (seen.is_data(), chance.below(100)) {
                (true, 0..10) | (false, 0..50) => Verdict::Drop,
                _ => Verdict::Pass,
            });
            let done = pair.transfer(0, flows, &noise(300_000), secs(60));
            assert!(done, "{set:?}, seed {seed}");
            let (sent, got) = (pair.ends[0].stats(flows.0), pair.ends[1].stats(flows.1));
            let (retransmitted, twice) = (
                sent.unwrap().retransmitted_packets,
                got.unwrap().duplicate_packets,
            );
            // A sender that hears only NAKs does not know what arrived, and after a timeout retransmits it all.
            assert!(
                set == NAK || twice * 4 < retransmitted,
                "{set:?}, seed {seed}: {twice} of {retransmitted}"
            );
        }
    }
}

/// Reports ride on data only where it leaves room; acknowledgements of their own carry the rest.
#[test]
fn two_senders_at_once_repair_each_others_losses() {
    for set in [NAK, SNACK] {
        let mut chance = Stream::named(3, "network");
        let mut pair = Pair::new("3wh-arq", set);
        let flows = pair.connect();
        pair.rule = Box::new(move |_| {
            if chance.below(20) == 0 {
                Verdict::Drop
            } else {
                Verdict::Pass
            }
        });
        let data = noise(100_000);
        pair.write(1, flows.1, &data);
        assert!(pair.transfer(0, flows, &data, secs(60)));
        pair.run_for(secs(10));
        let got: usize = pair.read_all(0, flows.0).iter().map(|data| data.len()).sum();
        assert_eq!(got, data.len(), "{set:?}");
    }
}

/// Eight segments are out, none arrives; what a report of the peer makes of them: in flight, lost, reports refused.
fn forged(set: &[(&str, &str)], tails: &[Tail]) -> Vec<(u64, u64, u64)> {
    let mut pair = Pair::new("3wh-arq", set);
    let (flow, _): (FlowId, FlowId) = pair.connect();
    pair.rule = silent(0);
    pair.write(0, flow, &noise(1400 * 8));
    pair.run_for(Duration::from_millis(1));
    let mut heard = |tail: &Tail| {
        pair.forge(1, b"", |header| {
            header.services.error = header.services.error | ErrorControl::NAK | ErrorControl::SAK;
            header.tail = tail.clone();
        });
        let stats = pair.ends[0].stats(flow).expect("a flow");
        (
            stats.in_flight_segments,
            stats.lost_packets,
            stats.rejected_packets,
        )
    };
    tails.iter().map(&mut heard).collect()
}

#[test]
fn vectors_that_lie_are_refused_and_change_nothing() {
    let lies = [
        hole(0, 9, &[]), // beyond what was sent
        hole(7, 1, &[]), // nothing was sent that could end it
        hole(u16::MAX, u16::MAX, &[]),
        hole(0, 1, &[u32::MAX]), // more received than sent
        hole(0, 1, &[0, 0x8000_0000]),
        hole(0, 0, &[0x8000_0000]), // received what it expects next
        hole(0, 1, &[u32::MAX; 200]),
    ];
    for set in [NAK, SNACK] {
        let expected: Vec<_> = (1..=lies.len() as u64).map(|refused| (8, 0, refused)).collect();
        assert_eq!(forged(set, &lies), expected, "{set:?}");
    }
}

#[test]
fn reports_that_say_nothing_or_the_same_again_do_no_harm() {
    let said = [
        hole(0, 0, &[]),            // a hole of nothing
        hole(0, 0, &[0]),           // and a vector of nothing
        hole(0, 3, &[0x9000_0000]), // 3 and 6 received, 0 to 2, 4 and 5 missing
        hole(0, 3, &[0x9000_0000]),
        hole(4, 2, &[]), // the second hole alone
    ];
    assert_eq!(
        forged(SNACK, &said),
        [(7, 0, 0), (6, 0, 0), (3, 5, 0), (3, 5, 0), (3, 5, 0)],
        "each is a duplicate and proves one arrival; the third makes both holes lost, and one segment leaves again"
    );
}
