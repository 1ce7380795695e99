//! Stories of partial ordering and partial reliability (ResTP §3.5.7, §3.5.8, §3.7; OP-44, OP-48, OP-49).

use crate::common::call::{Call, FRAME};
use crate::common::*;
use restp_base::flow::{CloseReason, Flow};
use restp_base::random::Stream;
use restp_base::time::Duration;
use restp_proto::wire::{Flags, Snack, Tail};

/// `par-arq` for packets of voice that are of use for 160 ms. One way takes 32 ms (ResTP §4.5).
const VOICE: &[(&str, &str)] = &[("deadline", "160 ms")];
const ONE_WAY: Duration = Duration::from_millis(32);

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// What may report the holes of a partially reliable flow (ResTP §3.7).
const SELECTIVE: [&str; 2] = ["positive+sack", "positive+snack"];

/// `par-arq` with these acknowledgements, changed by `set`.
fn call(ack: &str, set: &[(&str, &str)]) -> Call {
    Call::over(ONE_WAY, &[&[("ack", ack)], set].concat())
}

/// Drops the first `copies` transmissions of frame `frame`.
fn lose(frame: u64, mut copies: u32) -> Rule {
    Box::new(move |seen| {
        let hit = seen.is_data() && seen.payload[..8] == frame.to_be_bytes() && copies > 0;
        copies -= u32::from(hit);
        if hit { Verdict::Drop } else { Verdict::Pass }
    })
}

#[test]
fn one_later_arrival_is_enough_to_retransmit_in_time() {
    for ack in SELECTIVE {
        let mut call = call(ack, VOICE);
        call.pair.rule = lose(3, 1);
        call.speak(10);
        assert_eq!(call.frames(), (0..10).collect::<Vec<_>>());
        let worst = call.heard.iter().map(|(_, delay)| *delay).max();
        assert_eq!(
            worst,
            Some(ms(20 + 32 + 64)),
            "noticed 20 ms later, back and here again"
        );
        assert_eq!(call.copies(3), 2);
    }
}

#[test]
fn a_frame_lost_twice_is_skipped_in_time_for_what_comes_after_it() {
    for ack in SELECTIVE {
        let mut call = call(ack, VOICE);
        call.pair.rule = lose(3, 2);
        call.speak(10);
        assert_eq!(call.frames(), [0, 1, 2, 4, 5, 6, 7, 8, 9]);
        assert!(
            call.heard.iter().all(|(_, delay)| *delay <= ms(160)),
            "{:?}",
            call.heard
        );
        let listener = call.pair.ends[1].stats(call.accepted).unwrap();
        assert_eq!((listener.skipped_segments, listener.duplicate_packets), (1, 0));
    }
}

#[test]
fn the_sender_tries_once_per_round_trip_until_the_pointer_passes() {
    for ack in SELECTIVE {
        let set = &[("hold", "1 s"), ("rto-floor", "5 s")];
        let mut call = call(ack, set);
        call.pair.rule = lose(3, u32::MAX);
        call.speak(120);
        // Held from the arrival of 4 on, which is 1 s; a copy takes 64 ms and up to 20 ms for a later frame to leave.
        let copies = call.copies(3) - 1;
        assert!(
            (11..=16).contains(&copies),
            "{copies} retransmissions in a second"
        );
        assert_eq!(call.heard.len(), 119);
        let speaker = call.pair.ends[0].stats(call.flow).unwrap();
        assert_eq!(
            (speaker.in_flight_segments, speaker.timeouts),
            (0, 0),
            "3 counts as acknowledged"
        );
        let before = call.pair.log.len();
        call.listen(ms(1000));
        assert_eq!(call.pair.log.len(), before, "nothing is tried any more");
    }
}

#[test]
fn all_holes_of_a_burst_leave_at_once() {
    for ack in SELECTIVE {
        let mut call = call(ack, VOICE);
        let mut seen_first = 0;
        call.pair.rule = Box::new(move |seen| {
            seen_first += u64::from(seen.is_data());
            if seen.is_data() && (4..=6).contains(&seen_first) {
                Verdict::Drop
            } else {
                Verdict::Pass
            }
        });
        call.speak(20);
        assert_eq!(call.heard.len(), 20);
        let retransmissions: Vec<_> = (3..6)
            .map(|frame| {
                let copies = call.pair.log.iter();
                let mut copies = copies.filter(|seen| seen.is_data() && seen.payload[7] == frame);
                copies.nth(1).expect("a retransmission").at
            })
            .collect();
        assert!(
            retransmissions.iter().all(|at| *at == retransmissions[0]),
            "{retransmissions:?}"
        );
    }
}

/// The first report after two separate losses names both; each hole leaves again once.
#[test]
fn one_snack_asks_for_every_hole() {
    let mut call = call("positive+snack", VOICE);
    let (mut third, mut fifth) = (lose(3, 1), lose(5, 1));
    call.pair.rule = Box::new(move |seen| {
        // What the listener says of 4 is lost, so that its report of 6 is the first.
        match (third(seen), fifth(seen)) {
            (Verdict::Pass, Verdict::Pass)
                if seen.from == 1
                    && matches!(&seen.header.tail, Tail::Snack(snack) if snack.vector.is_empty()) =>
            {
                Verdict::Drop
            }
            (Verdict::Pass, verdict) | (verdict, _) => verdict,
        }
    });
    call.speak(10);
    let vectors = call
        .pair
        .log
        .iter()
        .filter(|seen| matches!(&seen.header.tail, Tail::Snack(snack) if !snack.vector.is_empty()));
    let first = vectors.map(|seen| seen.at).next().expect("a report of two holes");
    let retransmitted = |frame: u8| {
        let is_copy = |seen: &&Seen| seen.is_data() && seen.payload[7] == frame;
        call.pair
            .log
            .iter()
            .filter(is_copy)
            .nth(1)
            .expect("a retransmission")
            .at
    };
    assert_eq!([retransmitted(3), retransmitted(5)], [first + ONE_WAY; 2]);
    assert_eq!([call.copies(3), call.copies(5)], [2, 2]);
    assert_eq!(call.frames(), (0..10).collect::<Vec<_>>());
}

/// A NAK names one hole in each acknowledgement: too few to beat the reader to all of them (ResTP §3.7).
#[test]
fn holes_named_one_by_one_are_too_few_for_partial_reliability() {
    let refusal = composition("par-arq", &[("ack", "positive+nak")]).check();
    let sentence = refusal.expect_err("refused").to_string();
    assert!(
        sentence.contains("rule partial-needs-selective") && sentence.contains("choose ack = positive+sack"),
        "{sentence}"
    );
}

#[test]
fn an_arrival_after_its_hole_was_skipped_is_late_and_the_sender_learns_where_the_pointer_is() {
    for ack in SELECTIVE {
        let mut call = call(ack, VOICE);
        call.pair.rule = Box::new(|seen| {
            if seen.is_data() && seen.payload[7] == 3 {
                Verdict::Late(ms(400))
            } else {
                Verdict::Pass
            }
        });
        call.speak(40);
        assert_eq!(call.heard.len(), 39);
        assert!(call.is_in_order());
        let listener = call.pair.ends[1].stats(call.accepted).unwrap();
        assert_eq!(listener.late_packets as usize, call.copies(3));
        assert_eq!(listener.duplicate_packets, 0);
    }
}

#[test]
fn a_report_about_what_was_skipped_brings_nothing_back() {
    let mut call = call("positive+snack", VOICE);
    call.pair.rule = lose(3, u32::MAX);
    call.speak(10);
    call.pair.rule = Box::new(|_| Verdict::Pass);
    let is_skipped = |seen: &&Seen| seen.is_data() && seen.payload[..8] == 3_u64.to_be_bytes();
    let skipped = call
        .pair
        .log
        .iter()
        .find(is_skipped)
        .expect("frame 3")
        .header
        .sequence;
    let (copies, before) = (
        call.copies(3),
        call.pair.ends[0].stats(call.flow).expect("a flow"),
    );
    // An old pointer, and a hole that begins at it: the skipped frame is asked for, alone or with all that followed.
    for size in [1, 3, u16::MAX] {
        call.pair.forge(1, b"", |header| {
            let vector = Default::default();
            (header.acknowledgement, header.tail) = (
                skipped,
                Tail::Snack(Snack {
                    offset: 0,
                    size,
                    vector,
                }),
            );
        });
    }
    call.listen(ms(500));
    let after = call.pair.ends[0].stats(call.flow).expect("a flow");
    assert_eq!(call.copies(3), copies);
    assert_eq!(
        (after.in_flight_segments, after.retransmitted_packets),
        (0, before.retransmitted_packets)
    );
    assert!(
        call.pair
            .transfer(0, (call.flow, call.accepted), &[7; 160], ms(500)),
        "the call goes on"
    );
}

#[test]
fn the_pointer_that_skipped_is_told_at_once() {
    for ack in SELECTIVE {
        let mut call = call(ack, VOICE);
        call.pair.rule = lose(3, u32::MAX);
        call.speak(5);
        let tail = call
            .pair
            .log
            .iter()
            .rfind(|seen| seen.from == 1)
            .expect("an acknowledgement");
        assert_eq!(tail.header.flags, Flags::ACK);
        assert_eq!(tail.header.tail, Tail::None, "nothing is missing any more");
        // 4 was here 32 ms after it was spoken; its predecessor is waited for 160 − 32 − 20 ms.
        assert_eq!(tail.at, call.began + FRAME * 4 + ms(32 + 108));
    }
}

#[test]
fn the_age_of_what_was_skipped_is_no_round_trip() {
    for ack in ["positive+sack", "positive+nak", "positive+snack"] {
        let set = &[
            ("ordering", "partial"),
            ("recovery", "pipe"),
            ("reliability", "unreliable"),
        ];
        let mut call = call(ack, &[VOICE, set].concat());
        call.pair.rule = lose(3, 1);
        call.speak(12);
        assert_eq!(call.heard.len(), 11);
        let srtt = call.pair.ends[0].stats(call.flow).unwrap().srtt.unwrap();
        assert!(srtt <= ms(72), "{srtt}; 3 was skipped 192 ms after it left");
    }
}

#[test]
fn an_end_behind_a_skipped_hole_is_reached() {
    for ack in SELECTIVE {
        let mut call = call(ack, VOICE);
        call.pair.rule = lose(4, u32::MAX);
        call.speak(4);
        call.pair.write(0, call.flow, &[0, 0, 0, 0, 0, 0, 0, 4]);
        call.pair.ends[0].finish(call.pair.now, call.flow);
        call.pair.ends[1].finish(call.pair.now, call.accepted);
        call.pair.run_for(Duration::from_secs(100));
        assert_eq!(call.pair.closed(0), Some(&CloseReason::Finished));
        assert_eq!(call.pair.closed(1), Some(&CloseReason::Finished));
    }
}

/// What ResTP §4.5 measured: two per cent lost on the way there and back, 99 s of talk.
#[test]
fn voice_over_two_per_cent_loss_keeps_its_deadline() {
    for ack in SELECTIVE {
        let (mut lost, mut late, mut in_network) = (0, 0, 0);
        for seed in 0..3 {
            let mut call = call(ack, VOICE);
            let mut draw = Stream::named(seed, "loss");
            call.pair.rule = Box::new(move |_| {
                if draw.chance(0.02) {
                    Verdict::Drop
                } else {
                    Verdict::Pass
                }
            });
            call.speak(4949);
            assert!(call.is_in_order());
            let dropped = |seen: &&Seen| seen.is_data() && seen.verdict == Verdict::Drop;
            in_network += call.pair.log.iter().filter(dropped).count();
            lost += 4949 - call.heard.len();
            late += call.heard.iter().filter(|(_, delay)| *delay > ms(160)).count();
        }
        assert!(in_network > 200, "{in_network} lost in the network");
        assert!(10 * lost <= in_network, "{lost} of {in_network} lost for good");
        assert!(
            1000 * (lost + late) <= 6 * 3 * 4949,
            "{lost} lost and {late} late"
        );
    }
}
