use super::*;
use crate::ack::AckReport;
use crate::recovery::{FalseReport, Feedback};
use restp_base::random::Stream;
use restp_base::time::Duration;
use smallvec::smallvec;

mod lanes;

fn at(ms: u64) -> Time {
    Time::ZERO + Duration::from_millis(ms)
}

/// Segments 10..=17 of 100 bytes, sent one per millisecond from 0 on; 10 to 13 and 16 are lost (ResTP §3.1.9).
fn burst() -> Scoreboard {
    let mut board = Scoreboard::new(10);
    for i in 0..8 {
        assert_eq!(board.on_sent(at(i), 100), 10 + i);
    }
    board
}

#[test]
fn what_is_forgotten_is_neither_in_flight_nor_lost_and_late_reports_of_it_say_nothing() {
    let mut board = burst();
    board.mark_all_lost();
    board.forget();
    assert_eq!((board.first(), board.next()), (18, 18));
    assert_eq!(
        (
            board.in_flight(),
            board.in_flight_bytes() + board.outstanding_bytes(),
            board.lost()
        ),
        (0, 0, 0)
    );
    assert_eq!(
        board.acknowledge(at(90), &AckReport::pointer(14)),
        Ok(Feedback::default())
    );
    assert_eq!(board.on_sent(at(91), 100), 18);
}

#[test]
fn blocks_and_pointer_settle_what_they_name() {
    let mut board = burst();
    let report = AckReport {
        cumulative: 10,
        received: smallvec![17..18, 14..16],
        ..Default::default()
    };
    let feedback = board.acknowledge(at(100), &report).unwrap();
    assert_eq!(
        (feedback.advanced, feedback.delivered, feedback.delivered_bytes),
        (0, 3, 300)
    );
    assert!(feedback.duplicate);
    assert_eq!((board.in_flight(), board.in_flight_bytes()), (5, 500));
    assert_eq!(board.overtaken_below(), 5, "14 was the fifth transmission");

    assert!(board.mark_lost(10) && !board.mark_lost(10) && !board.mark_lost(14) && !board.mark_lost(99));
    assert_eq!(board.next_lost(), Some(10));
    assert_eq!(board.on_retransmitted(at(101), 10), Some(9));
    assert_eq!((board.next_lost(), board.lost(), board.in_flight()), (None, 0, 5));

    let feedback = board.acknowledge(at(200), &AckReport::pointer(11)).unwrap();
    assert_eq!(feedback.rtt, None, "Karn: 10 was sent twice");
    let feedback = board.acknowledge(at(200), &AckReport::pointer(18)).unwrap();
    assert_eq!(
        (feedback.advanced, feedback.delivered, feedback.duplicate),
        (7, 4, false)
    );
    assert_eq!(
        feedback.rtt, None,
        "17 is known to be there for long: a receiver that skips may have waited for 16, and never got it"
    );
    assert!(board.is_empty());
}

#[test]
fn what_waited_behind_a_hole_gives_no_round_trip() {
    let mut board = burst();
    board.mark_lost(10);
    board.on_retransmitted(at(150), 10);
    let feedback = board.acknowledge(at(200), &AckReport::pointer(16)).unwrap();
    assert_eq!(
        (feedback.delivered, feedback.rtt),
        (6, None),
        "11 to 15 arrived long ago"
    );
    let feedback = board.acknowledge(at(201), &AckReport::pointer(18)).unwrap();
    assert_eq!(feedback.rtt, Some(Duration::from_millis(194)));
}

#[test]
fn what_a_report_names_when_a_hole_fills_came_before() {
    let mut board = burst();
    board.mark_lost(10);
    board.on_retransmitted(at(150), 10);
    // The pointer stops at the next hole, 12, and a NAK of it proves that 13 is there, perhaps for long.
    let report = AckReport {
        cumulative: 12,
        received: smallvec![13..14],
        missing: smallvec![12..13],
        ..Default::default()
    };
    let feedback = board.acknowledge(at(200), &report).unwrap();
    assert_eq!((feedback.delivered, feedback.rtt), (3, None));
    assert_eq!(board.lane(LaneId::FIRST).news().rtt, None);
}

#[test]
fn acknowledging_what_was_never_sent_changes_nothing() {
    let mut board = burst();
    let refused = board.acknowledge(at(9), &AckReport::pointer(19)).unwrap_err();
    assert_eq!(
        refused,
        FalseReport::Unsent {
            reported: 18,
            next: 18
        }
    );
    let report = AckReport {
        cumulative: 12,
        received: smallvec![14..30],
        ..Default::default()
    };
    assert!(board.acknowledge(at(9), &report).is_err());
    let report = AckReport {
        cumulative: 12,
        missing: smallvec![14..19],
        ..Default::default()
    };
    assert!(
        board.acknowledge(at(9), &report).is_err(),
        "nor can it be missing"
    );
    assert_eq!((board.first(), board.in_flight()), (10, 8));
}

#[test]
fn expecting_next_what_was_received_contradicts_itself() {
    let mut board = burst();
    let mut report = AckReport {
        cumulative: 12,
        received: smallvec![11..13],
        ..Default::default()
    };
    assert_eq!(
        board.acknowledge(at(9), &report),
        Err(FalseReport::Contradiction { pointer: 12 })
    );
    assert_eq!((board.first(), board.in_flight()), (10, 8));
    report.received = smallvec![10..12, 13..14];
    assert_eq!(board.acknowledge(at(9), &report).unwrap().delivered, 3);
}

#[test]
fn a_presumption_leaves_the_pipe_and_can_be_taken_back() {
    let mut board = burst();
    assert!(board.mark_lost(11));
    board.presume(10..12);
    assert_eq!((board.in_flight(), board.lost(), board.arrived()), (6, 0, 2));
    assert_eq!(board.next_lost(), None);
    assert!(board.doubt(&(11..12)) && !board.doubt(&(11..18)));
    assert_eq!((board.in_flight(), board.lost(), board.arrived()), (7, 0, 1));
    let feedback = board.acknowledge(at(9), &AckReport::pointer(11)).unwrap();
    assert_eq!(
        (feedback.delivered, feedback.rtt),
        (1, None),
        "delivered for sure only now, and nobody knows since when"
    );
    board.presume(12..13);
    assert_eq!(board.mark_all_lost(), 7, "silence outweighs a presumption");
}

#[test]
fn a_late_acknowledgement_says_nothing() {
    let mut board = burst();
    board.acknowledge(at(9), &AckReport::pointer(15)).unwrap();
    assert_eq!(
        board.acknowledge(at(9), &AckReport::pointer(12)),
        Ok(Feedback::default())
    );
}

#[test]
fn counts_agree_with_the_entries_under_random_operations() {
    let mut stream = Stream::named(3, "scoreboard");
    for _ in 0..100 {
        let mut board = Scoreboard::new(1 << 32);
        let lanes = [LaneId::FIRST, board.open_lane().expect("a second")];
        for step in 0..200 {
            let (first, next) = (board.first(), board.next());
            let any = |stream: &mut Stream| first + stream.below(next - first + 1);
            let lane = lanes[stream.below(2) as usize];
            board.take_in_hand(lane);
            match stream.below(11) {
                0..=2 => drop(board.on_sent(at(step), 1 + stream.below(1400) as u32)),
                3 => drop(board.mark_lost(any(&mut stream))),
                4 => board.depart_one(),
                5 | 6 => {
                    let (a, b) = (any(&mut stream), any(&mut stream));
                    let range = a.min(b)..a.max(b);
                    if stream.chance(0.5) {
                        board.presume(range);
                    } else {
                        board.doubt(&range);
                    }
                }
                7 => drop(
                    board
                        .next_lost()
                        .map(|number| board.on_retransmitted(at(step), number)),
                ),
                8 => drop(board.give_up(any(&mut stream))),
                9 => drop(board.renege(&(first..any(&mut stream)))),
                _ => {
                    let (a, b, c) = (any(&mut stream), any(&mut stream), any(&mut stream));
                    let block = b.min(c)..b.max(c);
                    let cumulative = if stream.chance(0.5) { first } else { a };
                    let contradicts = block.contains(&cumulative);
                    let report = AckReport {
                        cumulative,
                        received: smallvec![block],
                        ..Default::default()
                    };
                    assert_eq!(board.acknowledge(at(step), &report).is_err(), contradicts);
                }
            }
            let of = |fate| board.entries.iter().filter(move |entry| entry.fate == fate);
            for id in lanes {
                let here = |fate| of(fate).filter(|entry| entry.lane == id);
                let bytes = here(Fate::InFlight)
                    .map(|entry| u64::from(entry.bytes))
                    .sum::<u64>();
                let lane = board.lane(id);
                assert_eq!(lane.in_flight(), here(Fate::InFlight).count() as u64);
                assert_eq!(lane.in_flight_bytes(), bytes);
                assert_eq!(lane.lost(), here(Fate::Lost).count() as u64);
            }
            let kept = board.entries.iter().filter(|entry| entry.fate != Fate::GivenUp);
            let all: u64 = kept.map(|entry| u64::from(entry.bytes)).sum();
            assert_eq!(board.outstanding_bytes, all);
            assert_eq!(board.lost(), of(Fate::Lost).count() as u64);
            assert_eq!(board.delivered.total(), of(Fate::Delivered).count() as u64);
            assert_eq!(board.presumed.total(), of(Fate::Presumed).count() as u64);
            let lowest = (board.first()..board.next())
                .find(|n| board.entries[(n - board.first) as usize].fate == Fate::Lost);
            assert_eq!(board.next_lost(), lowest);
            for (id, again) in [
                (lanes[0], false),
                (lanes[0], true),
                (lanes[1], false),
                (lanes[1], true),
            ] {
                let open = |entry: &Entry| !matches!(entry.fate, Fate::Delivered | Fate::GivenUp);
                let held = |entry: &Entry| entry.lane == id && entry.retransmitted() == again && open(entry);
                let index = board.entries.iter().position(held);
                let expected = index.map(|index| board.first + index as u64);
                assert_eq!(board.lowest_on(id, again), expected);
            }
        }
    }
}

#[test]
fn what_is_given_up_is_neither_in_flight_nor_sent_again() {
    let mut board = burst();
    board.mark_lost(11);
    assert!(board.give_up(10) && board.give_up(11) && !board.give_up(11) && !board.give_up(99));
    assert_eq!(
        (board.in_flight(), board.lost(), board.outstanding_bytes()),
        (6, 0, 600)
    );
    board.presume(10..12);
    assert_eq!((board.mark_all_lost(), board.next_lost()), (6, Some(12)));
    let report = AckReport {
        received: smallvec![11..12],
        ..AckReport::pointer(10)
    };
    let arrived = board.acknowledge(at(9), &report).unwrap();
    assert_eq!((arrived.delivered, arrived.rtt), (1, None));
    let passed = board.acknowledge(at(9), &AckReport::pointer(12)).unwrap();
    assert_eq!(
        (passed.advanced, passed.delivered),
        (2, 0),
        "10 may have been skipped"
    );
    assert_eq!(board.outstanding_bytes(), 600);
}

#[test]
fn what_the_receiver_discarded_is_in_flight_again_and_its_age_no_round_trip() {
    let mut board = burst();
    let report = AckReport {
        received: smallvec![12..14, 16..18],
        ..AckReport::pointer(10)
    };
    board.acknowledge(at(9), &report).unwrap();
    assert_eq!(board.renege(&(13..17)), 2);
    assert_eq!((board.in_flight(), board.arrived()), (6, 2));
    assert_eq!(board.in_flight_since(13), Some((at(3), false)));
    let again = board.acknowledge(at(500), &report).unwrap();
    assert_eq!((again.delivered, again.rtt), (2, None));
}

/// RFC 8985 §7: a probe leaves again on suspicion, so its duplicate shows nothing of a loss.
#[test]
fn duplicates_count_for_what_was_lost_and_left_again_once_it_has_arrived() {
    let mut board = burst();
    board.expect_duplicates();
    let twice = |pointer, numbers| AckReport {
        duplicates: numbers,
        ..AckReport::pointer(pointer)
    };
    board.mark_lost(10);
    board.on_retransmitted(at(100), 10);
    board.on_probed(11);
    let mut late = |ms, pointer, numbers| {
        board
            .acknowledge(at(ms), &twice(pointer, numbers))
            .map(|it| it.late)
    };
    assert_eq!(late(300, 10, 10..11), Ok(0), "it has not arrived once");
    assert_eq!(late(300, 18, 11..18), Ok(0), "none of them was lost");
    assert_eq!(late(300, 18, 0..u64::MAX), Ok(1));
    assert_eq!(late(300, 18, 10..11), Ok(0), "once");
}

#[test]
fn what_left_again_long_ago_is_forgotten() {
    let mut board = Scoreboard::new(0);
    board.expect_duplicates();
    for number in 0..100_000 {
        board.on_sent(at(0), 100);
        if number % 2 == 0 {
            board.mark_lost(number);
            board.on_retransmitted(at(0), number);
        }
        board
            .acknowledge(at(300), &AckReport::pointer(number + 1))
            .unwrap();
    }
    assert!(board.memory() < 1 << 19, "{}", board.memory());
    assert!(!board.awaits_duplicates(&(0..80_000)) && board.awaits_duplicates(&(90_000..90_002)));
}

/// One segment that is sent in vain five times a second, for an hour: each transmission kept what it found.
#[test]
fn what_leaves_again_and_again_unheard_takes_no_more_memory() {
    let mut board = Scoreboard::new(1);
    board.on_sent(at(0), 1);
    for probe in 1..18_000 {
        board.mark_all_lost();
        board.on_retransmitted(at(200 * probe), 1);
        assert!(board.memory() < 1 << 12, "{}", board.memory());
    }
    assert_eq!(
        board
            .acknowledge(at(3_700_000), &AckReport::pointer(2))
            .unwrap()
            .delivered,
        1
    );
}

#[test]
fn as_many_as_the_threshold_says_overtake_a_segment() {
    let mut board = Scoreboard::new(1).with_duplicate_threshold(5);
    (0..8).for_each(|_| {
        board.on_sent(at(0), 100);
    });
    let mut overtaken = |end| {
        let report = AckReport {
            received: smallvec![2..end],
            ..AckReport::pointer(1)
        };
        board.acknowledge(at(9), &report).unwrap();
        board.overtaken_below() > 1
    };
    assert_eq!([6, 7].map(&mut overtaken), [false, true]);
}

/// By whichever rule, and once each: the last transmission is meant, and what was lost before anybody asked is not told.
#[test]
fn an_observer_is_told_which_transmissions_were_declared_lost() {
    let mut board = burst();
    assert!(board.mark_lost(10));
    let told = |board: &mut Scoreboard| -> Vec<(u64, Time)> {
        let observed = board.take_observed();
        observed
            .map(|(_, segment, is_late)| {
                assert!(!is_late);
                (segment.number, segment.at)
            })
            .collect()
    };
    assert_eq!(told(&mut board), []);
    assert!(board.mark_lost(12) && !board.mark_lost(12));
    assert_eq!(told(&mut board), [(12, at(2))]);
    board.on_retransmitted(at(50), 12);
    let report = AckReport {
        received: smallvec![14..18],
        ..AckReport::pointer(10)
    };
    board.acknowledge(at(60), &report).unwrap();
    board.mark_all_lost();
    assert_eq!(told(&mut board), [(11, at(1)), (12, at(50)), (13, at(3))]);
    assert_eq!(told(&mut board), []);
}

/// Before it left again, and after, when the answer comes too soon for that: the transmission that was declared lost is meant.
#[test]
fn an_observer_is_told_which_of_them_were_only_late() {
    let mut board = burst();
    assert_eq!(board.take_observed().count(), 0);
    let arrive = |board: &mut Scoreboard, ms: u64, received| {
        let report = AckReport {
            received,
            ..AckReport::pointer(10)
        };
        board.acknowledge(at(ms), &report).unwrap();
    };
    arrive(&mut board, 50, smallvec![14..15]); // a round trip of 46 ms
    assert!(board.mark_lost(11) && board.mark_lost(12) && board.mark_lost(13));
    board.on_retransmitted(at(60), 12);
    board.on_retransmitted(at(60), 13);
    arrive(&mut board, 70, smallvec![11..13, 14..15]);
    arrive(&mut board, 110, smallvec![11..15]);
    let told: Vec<_> = board
        .take_observed()
        .map(|(_, sent, late)| (sent.number, sent.at, late))
        .collect();
    let lost = [(11, at(1), false), (12, at(2), false), (13, at(3), false)];
    assert_eq!(told[..3], lost);
    assert_eq!(told[3..], [(11, at(1), true), (12, at(2), true)], "13 was lost");
}
