#![allow(clippy::single_range_in_vec_init, reason = "a report may hold one range")]

use super::*;
use crate::ack::Detail;
use crate::ordering::Arrived;
use crate::recovery::LaneId;
use restp_base::time::Time;
use smallvec::SmallVec;

mod reordering;
mod vectors;

fn sent_for(count: u64, parameters: PipeParameters) -> (Scoreboard, Pipe) {
    let mut board = Scoreboard::new(10);
    for _ in 0..count {
        board.on_sent(Time::ZERO, 1000);
    }
    (board, Pipe::new(parameters))
}
fn sent(count: u64) -> (Scoreboard, Pipe) {
    sent_for(count, PipeParameters::new(Detail::Sack { max_blocks: 4 }))
}
/// The report arrives `ms` after the start; the smoothed round trip is 100 ms.
fn report(board: &mut Scoreboard, pipe: &mut Pipe, ms: u64, report: &AckReport) -> LossUpdate {
    let mut rtt = RttEstimator::default();
    rtt.sample(Duration::from_millis(100));
    let now = Time::ZERO + Duration::from_millis(ms);
    let feedback = board.acknowledge(now, report).unwrap();
    let evidence = Evidence {
        now,
        report,
        feedback: &feedback,
        rtt: &rtt,
    };
    pipe.on_feedback(board, &evidence)
}
fn ack(board: &mut Scoreboard, pipe: &mut Pipe, cumulative: u64, blocks: &[(u64, u64)]) -> LossUpdate {
    let received: SmallVec<[Range<u64>; 4]> = blocks.iter().map(|(start, end)| *start..*end).collect();
    let report = AckReport {
        cumulative,
        received,
        ..Default::default()
    };
    self::report(board, pipe, 0, &report)
}
fn retransmit(board: &mut Scoreboard, pipe: &mut Pipe) -> Option<u64> {
    retransmit_at(board, pipe, 0)
}
fn retransmit_at(board: &mut Scoreboard, pipe: &mut Pipe, ms: u64) -> Option<u64> {
    let number = board.next_lost()?;
    let order = board.on_retransmitted(Time::ZERO + Duration::from_millis(ms), number)?;
    pipe.on_retransmitted(Time::ZERO + Duration::from_millis(ms), order, number);
    Some(number)
}

#[test]
fn the_worked_example_finds_the_first_hole_at_the_third_report() {
    let (mut board, mut pipe) = sent(8); // 10 to 13 and 16 are lost (ResTP §3.1.9)
    assert_eq!(ack(&mut board, &mut pipe, 10, &[(14, 15)]), LossUpdate::default());
    assert_eq!(ack(&mut board, &mut pipe, 10, &[(14, 16)]), LossUpdate::default());
    let found = ack(&mut board, &mut pipe, 10, &[(17, 18), (14, 16)]);
    assert_eq!(
        found,
        LossUpdate {
            lost: 4,
            began: true,
            ended: false,
            urgent: true,
            ..LossUpdate::default()
        }
    );
    assert_eq!(
        board.in_flight(),
        1,
        "16 is not known to be lost: only one later segment is reported"
    );
    let retransmitted: Vec<_> = std::iter::from_fn(|| retransmit(&mut board, &mut pipe)).collect();
    assert_eq!(retransmitted, [10, 11, 12, 13]);
}

#[test]
fn a_lost_retransmission_is_found_by_three_later_transmissions() {
    let (mut board, mut pipe) = sent(5); // 10 is lost, and its retransmission
    assert!(ack(&mut board, &mut pipe, 10, &[(11, 15)]).began);
    assert_eq!(retransmit(&mut board, &mut pipe), Some(10));
    for _ in 0..3 {
        board.on_sent(Time::ZERO, 1000);
    }
    assert_eq!(ack(&mut board, &mut pipe, 10, &[(11, 17)]).lost, 0);
    let found = ack(&mut board, &mut pipe, 10, &[(11, 18)]);
    assert_eq!(
        found,
        LossUpdate {
            lost: 1,
            began: false,
            ended: false,
            urgent: false,
            ..LossUpdate::default()
        },
        "the same episode"
    );
    assert_eq!(retransmit(&mut board, &mut pipe), Some(10));
    assert!(ack(&mut board, &mut pipe, 18, &[]).ended);
}

/// To the letter of RFC 6675 a retransmission is not sent again, neither for later reports nor for its age.
#[test]
fn with_the_literal_rule_only_the_timer_finds_a_lost_retransmission() {
    for detail in [Detail::Sack { max_blocks: 4 }, Detail::Snack] {
        let parameters = PipeParameters::new(detail).with_lost_retransmissions(LostRetransmissions::Timer);
        let (mut board, mut pipe) = sent_for(5, parameters); // 10 is lost, and its retransmission
        let missing: &[_] = if detail == Detail::Snack { &[10..11] } else { &[] };
        let heard = |board: &mut Scoreboard, pipe: &mut Pipe, end| {
            report(board, pipe, 900, &snack(10, &[11..end], missing)).lost
        };
        let first = [12, 13, 14, 15].map(|end| heard(&mut board, &mut pipe, end));
        assert_eq!(first, [0, 0, 1, 0], "{detail:?}");
        assert_eq!(retransmit(&mut board, &mut pipe), Some(10));
        for end in 16..25 {
            board.on_sent(Time::ZERO, 1000);
            assert_eq!(heard(&mut board, &mut pipe, end), 0, "{detail:?}");
        }
        assert!(
            pipe.retransmissions.is_empty(),
            "nothing waits for a judgement that does not come"
        );
        pipe.on_timeout(&board, true);
        assert_eq!(board.mark_all_lost(), 1);
        assert_eq!(retransmit(&mut board, &mut pipe), Some(10));
    }
}

/// A SNACK without vector shows one later segment, however many came; each duplicate stands for one.
#[test]
fn a_lost_retransmission_behind_the_only_hole_is_found_by_three_later_duplicates() {
    let (mut board, mut pipe) = sent_for(5, PipeParameters::new(Detail::Snack)); // 10 is lost, and its retransmission
    let one_hole = snack(10, &[11..12], &[10..11]);
    let mut heard = |board: &mut Scoreboard| report(board, &mut pipe, 0, &one_hole);
    assert_eq!([heard(&mut board).began, heard(&mut board).began], [false; 2]);
    assert!(heard(&mut board).began, "the third");
    assert_eq!(heard(&mut board).lost, 0, "14");
    assert_eq!((board.arrived(), board.in_flight()), (4, 0));
    let order = board.on_retransmitted(Time::ZERO, 10).unwrap();
    pipe.on_retransmitted(Time::ZERO, order, 10);
    for _ in 0..3 {
        board.on_sent(Time::ZERO, 1000);
    }
    let mut heard = |board: &mut Scoreboard| report(board, &mut pipe, 0, &one_hole);
    assert_eq!([heard(&mut board).lost, heard(&mut board).lost], [0; 2]);
    assert_eq!(
        heard(&mut board).lost,
        1,
        "15, 16 and 17 have overtaken the retransmission"
    );
    assert_eq!(board.next_lost(), Some(10));
}

/// A packet that the network doubles makes one duplicate too many.
#[test]
fn an_arrival_too_many_is_taken_back_when_a_hole_is_named() {
    let (mut board, mut pipe) = sent_for(6, PipeParameters::new(Detail::Snack)); // 10 and 13 are lost, 12 comes twice
    for _ in 0..3 {
        report(&mut board, &mut pipe, 0, &snack(10, &[11..12], &[10..11]));
    }
    assert!(board.is_arrived(13), "presumed");
    report(
        &mut board,
        &mut pipe,
        0,
        &snack(10, &[11..13, 14..15], &[10..11, 13..14]),
    );
    assert!(!board.is_arrived(13));
    let retransmitted: Vec<_> = std::iter::from_fn(|| retransmit(&mut board, &mut pipe)).collect();
    assert_eq!(retransmitted, [10, 13]);
}

#[test]
fn reordering_by_less_than_three_is_not_loss() {
    let (mut board, mut pipe) = sent(6);
    assert_eq!(ack(&mut board, &mut pipe, 10, &[(11, 13)]).lost, 0);
    assert_eq!(ack(&mut board, &mut pipe, 13, &[]).lost, 0);
}

/// NAK of `hole`, with what it proves of its neighbours (TC §3.2.2, observation 1).
fn nak(pointer: u64, hole: Range<u64>) -> AckReport {
    let before = hole.start - 1..hole.start;
    let after = hole.end..hole.end + 1;
    AckReport {
        cumulative: pointer,
        received: [before, after]
            .into_iter()
            .filter(|r| r.start > pointer)
            .collect(),
        missing: [hole].into_iter().collect(),
        ..Default::default()
    }
}

fn with_nak(mode: NakMode) -> PipeParameters {
    PipeParameters {
        single: Some(mode),
        ..PipeParameters::new(Detail::Nak)
    }
}

/// NAK(4380, 2), NAK(1460, 1) and NAK(7300, 1) in segments of 1460 bytes, from 10 on instead of 0.
#[test]
fn two_naks_in_a_row_prove_all_between_them_where_naks_are_near_certain() {
    let between = |mode| {
        let (mut board, mut pipe) = sent_for(8, with_nak(mode));
        report(&mut board, &mut pipe, 0, &nak(11, 13..15));
        assert_eq!(board.arrived(), 2, "12 and 15");
        let (mut board, mut pipe) = sent_for(8, with_nak(mode));
        report(&mut board, &mut pipe, 0, &nak(11, 11..12));
        report(&mut board, &mut pipe, 0, &nak(11, 15..16));
        let open: Vec<_> = (11..18).filter(|n| board.in_flight_since(*n).is_some()).collect();
        open
    };
    assert_eq!(
        between(NakMode::QuasiReliable),
        [11, 15, 17],
        "12, 13, 14 and 16 have arrived"
    );
    assert_eq!(
        between(NakMode::Unreliable),
        [11, 13, 15, 17],
        "nobody vouches for 13"
    );
}

#[test]
fn a_late_nak_takes_back_what_was_presumed() {
    let (mut board, mut pipe) = sent_for(8, with_nak(NakMode::QuasiReliable));
    report(&mut board, &mut pipe, 0, &AckReport::pointer(11));
    report(&mut board, &mut pipe, 0, &nak(11, 11..12));
    report(&mut board, &mut pipe, 0, &nak(11, 16..17));
    assert!(board.in_flight_since(14).is_none(), "presumed");
    let found = report(&mut board, &mut pipe, 0, &nak(11, 14..15));
    assert_eq!((found.lost, found.began), (3, true));
    let retransmitted: Vec<_> = std::iter::from_fn(|| retransmit(&mut board, &mut pipe)).collect();
    assert_eq!(retransmitted, [11, 14, 16]);
}

#[test]
fn the_timer_forgets_what_was_presumed() {
    let (mut board, mut pipe) = sent_for(8, with_nak(NakMode::QuasiReliable));
    report(&mut board, &mut pipe, 0, &nak(11, 11..12));
    report(&mut board, &mut pipe, 0, &nak(11, 16..17));
    pipe.on_timeout(&board, true);
    board.mark_all_lost();
    assert_eq!(
        board.lost(),
        4,
        "11, 13, 14, 16 but not the neighbours 12, 15, 17"
    );
}

#[test]
fn a_hole_whose_nak_was_lost_is_named_by_a_partial_acknowledgement() {
    let (mut board, mut pipe) = sent_for(10, with_nak(NakMode::Unreliable)); // 11 and 15 are lost
    report(&mut board, &mut pipe, 0, &AckReport::pointer(11));
    report(&mut board, &mut pipe, 0, &nak(11, 11..12));
    report(&mut board, &mut pipe, 0, &AckReport::pointer(11));
    assert!(report(&mut board, &mut pipe, 0, &AckReport::pointer(11)).began);
    for _ in 0..4 {
        report(&mut board, &mut pipe, 0, &AckReport::pointer(11));
    }
    assert_eq!(retransmit(&mut board, &mut pipe), Some(11));
    assert_eq!(board.lost(), 0);
    assert_eq!(report(&mut board, &mut pipe, 0, &AckReport::pointer(15)).lost, 1);
    assert_eq!(retransmit(&mut board, &mut pipe), Some(15));
}

fn snack(pointer: u64, received: &[Range<u64>], missing: &[Range<u64>]) -> AckReport {
    AckReport {
        cumulative: pointer,
        received: received.iter().cloned().collect(),
        missing: missing.iter().cloned().collect(),
        ..Default::default()
    }
}

#[test]
fn an_immediate_snack_begins_recovery_and_is_no_third_duplicate() {
    let parameters = PipeParameters {
        holes: Holes::AtOnce,
        ..PipeParameters::new(Detail::Snack)
    };
    let (mut board, mut pipe) = sent_for(6, parameters);
    let found = report(&mut board, &mut pipe, 0, &snack(10, &[12..13], &[10..12]));
    assert_eq!((found.lost, found.began, found.urgent), (2, true, true));
    while retransmit(&mut board, &mut pipe).is_some() {}
    let again = report(&mut board, &mut pipe, 900, &snack(10, &[12..14], &[10..12]));
    assert_eq!(
        again,
        LossUpdate::default(),
        "retransmissions are judged by what overtakes them"
    );
}

/// One look at it, when only another lane had brought something later, was not the last one.
#[test]
fn a_hole_of_one_lane_is_asked_once_that_lane_has_brought_something_later() {
    let parameters = PipeParameters {
        holes: Holes::AtOnce,
        ..PipeParameters::new(Detail::Snack)
    };
    let (mut board, mut pipe) = sent_for(1, parameters);
    let other = board.open_lane().expect("a second");
    board.take_in_hand(other);
    board.on_sent(Time::ZERO, 1000);
    board.take_in_hand(LaneId::FIRST);
    board.on_sent(Time::ZERO, 1000);
    let found = report(&mut board, &mut pipe, 50, &snack(10, &[11..12], &[10..11]));
    assert_eq!(found.lost, 0);
    let found = report(&mut board, &mut pipe, 60, &snack(10, &[11..13], &[10..11]));
    assert_eq!(found.lost, 1);
}

#[test]
fn a_retransmission_that_stays_missing_is_retransmitted_again_after_srtt_and_four_variations() {
    let parameters = PipeParameters {
        again: Again::Late,
        ..PipeParameters::new(Detail::Snack)
    };
    let (mut board, mut pipe) = sent_for(6, parameters);
    for end in 12..15 {
        report(&mut board, &mut pipe, 10, &snack(10, &[11..end], &[10..11]));
    }
    assert_eq!(retransmit_at(&mut board, &mut pipe, 10), Some(10));
    let mut lost_at = |ms| report(&mut board, &mut pipe, ms, &snack(10, &[11..15], &[10..11])).lost;
    assert_eq!((lost_at(309), lost_at(310)), (0, 1), "100 ms + 4 times 50 ms");
}

/// RFC 2018 §4: the first block has the segment that caused the acknowledgement. Blocks that come again tell of none.
#[test]
fn beside_blocks_a_duplicate_acknowledgement_is_no_departure() {
    let parameters = PipeParameters::new(Detail::Sack { max_blocks: 4 }).in_time();
    let (mut board, mut pipe) = sent_for(8, parameters);
    for blocks in [&[][..], &[(12, 13)]] {
        ack(&mut board, &mut pipe, 10, blocks);
        let in_flight = board.in_flight();
        (0..3).for_each(|_| {
            ack(&mut board, &mut pipe, 10, blocks);
        });
        assert_eq!(board.in_flight(), in_flight, "{blocks:?}");
    }
}

/// RFC 6582 §4.1: what the retransmissions of a timeout bring out at the receiver is no arrival, while they are under way and after.
#[test]
fn duplicates_that_retransmissions_of_a_timeout_cause_are_no_departures() {
    let (mut board, mut pipe) = sent_for(4, PipeParameters::new(Detail::Snack));
    pipe.on_timeout(&board, true);
    board.mark_all_lost();
    for _ in 0..4 {
        retransmit(&mut board, &mut pipe);
    }
    for _ in 0..3 {
        ack(&mut board, &mut pipe, 10, &[]);
    }
    assert_eq!(board.in_flight(), 4, "the peer had 10 to 13");
    for _ in 0..2 {
        board.on_sent(Time::ZERO, 1000);
    }
    ack(&mut board, &mut pipe, 14, &[]);
    assert_eq!(board.in_flight(), 2, "repaired: 14 and 15 are new");
    ack(&mut board, &mut pipe, 14, &[]);
    assert_eq!(board.in_flight(), 1, "a duplicate of theirs is an arrival");
    ack(&mut board, &mut pipe, 16, &[]);
    for _ in 0..3 {
        board.on_sent(Time::ZERO, 1000);
    }
    assert_eq!(board.in_flight(), 3);
}

#[test]
fn in_time_every_hole_leaves_at_once_and_once_per_round_trip() {
    for detail in [Detail::Sack { max_blocks: 4 }, Detail::Snack] {
        let (mut board, mut pipe) = sent_for(8, PipeParameters::new(detail).in_time());
        let missing: &[_] = if detail == Detail::Snack {
            &[10..12, 13..15]
        } else {
            &[]
        };
        let heard = snack(10, &[15..16, 12..13], missing);
        let found = report(&mut board, &mut pipe, 100, &heard);
        assert_eq!((found.lost, found.began), (4, true), "{detail:?}");
        let retransmitted: Vec<_> =
            std::iter::from_fn(|| retransmit_at(&mut board, &mut pipe, 100)).collect();
        assert_eq!(retransmitted, [10, 11, 13, 14]);
        let mut lost_at = |ms| report(&mut board, &mut pipe, ms, &heard).lost;
        assert_eq!([120, 140, 199, 200].map(&mut lost_at), [0, 0, 0, 4], "{detail:?}");
        assert!(
            pipe.retransmissions.is_empty(),
            "nothing waits for a judgement that does not come"
        );
    }
}

#[test]
fn a_segment_is_spared_until_three_have_overtaken_the_encoded_packet() {
    let parameters = PipeParameters::new(Detail::Sack { max_blocks: 4 });
    let (mut board, mut pipe) = (Scoreboard::coded(10), Pipe::new(parameters));
    for number in 10..20 {
        board.on_sent(Time::ZERO, 1000);
        if number == 15 {
            assert_eq!(
                ack(&mut board, &mut pipe, 10, &[(11, 15)]).lost,
                0,
                "not encoded yet"
            );
            board.on_encoded();
        }
    }
    assert_eq!(
        ack(&mut board, &mut pipe, 10, &[(11, 18)]).lost,
        0,
        "16 and 17 came later"
    );
    assert!(ack(&mut board, &mut pipe, 10, &[(11, 19)]).began);
    assert_eq!(retransmit(&mut board, &mut pipe), Some(10));
}

/// What a peer whose window holds `window` segments reports after each arrival, when the first is lost and every
/// `spacing`th after it.
fn reports_with_holes(window: u64, spacing: u64, detail: Detail) -> impl Iterator<Item = AckReport> {
    let arrivals = (11..10 + window).filter(move |number| !(number - 10).is_multiple_of(spacing));
    arrivals.scan(Arrived::default(), move |arrived, number| {
        arrived.insert(number..number + 1);
        let holes: SmallVec<[Range<u64>; 2]> = arrived.ranges().holes(10).collect();
        let (received, missing) = match detail {
            Detail::Snack if holes.len() == 1 => (SmallVec::from_iter([11..12]), holes),
            Detail::Snack => (arrived.ranges().iter().cloned().collect(), holes),
            _ => (arrived.latest_first().take(4).cloned().collect(), SmallVec::new()),
        };
        Some(AckReport {
            cumulative: 10,
            received,
            missing,
            ..Default::default()
        })
    })
}

/// The segments of a window arrive one by one behind a hole: each costs a few looks at the record, however many
/// there are.
#[test]
fn what_is_new_in_a_report_costs_what_is_new_in_it() {
    for detail in [Detail::Sack { max_blocks: 4 }, Detail::Snack] {
        for holes in [Holes::Overtaken, Holes::InRecovery, Holes::AtOnce] {
            let looks_per_report = |window, spacing| {
                let parameters = PipeParameters {
                    holes,
                    ..PipeParameters::new(detail)
                };
                let (mut board, mut pipe) = sent_for(window, parameters);
                let mut reports = 0;
                for heard in reports_with_holes(window, spacing, detail) {
                    report(&mut board, &mut pipe, 0, &heard);
                    while retransmit(&mut board, &mut pipe).is_some() {}
                    reports += 1;
                }
                board.looks.get() / reports
            };
            for holes in [1, 10] {
                let small = looks_per_report(100, 100 / holes);
                assert!(small <= 12, "{small} looks: {detail:?}, {holes:?}");
                for window in [1000, 10_000] {
                    let large = looks_per_report(window, window / holes);
                    assert!(large <= small, "{large} of {window}: {detail:?}, {holes:?}");
                }
            }
        }
    }
}
