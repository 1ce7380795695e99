//! Several lanes over one number space (Iyengar, Amer, Stewart 2006): the test vectors of CMT for split fast retransmit and window growth, and those
//! of SMT that tell packets missing within a path from packets that other paths have overtaken.

use super::*;
use crate::ack::Uncarried;

/// Segments of 1000 bytes leave one per millisecond, each by the lane given.
fn sent(first: u64, lanes: &[usize]) -> (Scoreboard, [LaneId; 2]) {
    let mut board = Scoreboard::new(first);
    let ids = [LaneId::FIRST, board.open_lane().expect("a second")];
    for (ms, lane) in lanes.iter().enumerate() {
        board.take_in_hand(ids[*lane]);
        board.on_sent(at(ms as u64), 1000);
    }
    (board, ids)
}

/// What CMT asks of one acknowledgement: missing reports by number, and whether each lane's window may grow.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    /// Numbers that get a missing report, with how much it counts when the receiver delayed it over `delayed` packets.
    reports: Vec<(u64, u64)>,
    grows: [bool; 2],
    lowest: [Option<u64>; 2],
}

/// A SACK with cumulative TSN `cumulative` and gap blocks, all inclusive.
fn sack(
    board: &mut Scoreboard,
    ids: [LaneId; 2],
    delayed: u64,
    cumulative: u64,
    gaps: &[(u64, u64)],
) -> Answer {
    let before = ids.map(|id| [false, true].map(|again| board.lowest_on(id, again)));
    let report = AckReport {
        cumulative: cumulative + 1,
        received: gaps.iter().map(|(start, end)| *start..end + 1).collect(),
        ..Default::default()
    };
    board.acknowledge(at(100), &report).unwrap();
    let delivered = |number: u64| board.is_arrived(number);
    let grows = before.map(|lowest| lowest.into_iter().flatten().any(delivered));
    let news = ids.map(|id| board.lane(id).news().span);
    let mixed = news.iter().flatten().count() > 1;
    let count = |number: &u64| {
        let own = board.lane(board.lane_of(*number)?).news().span;
        let (low, high) = own.filter(|(_, high)| high > number)?;
        debug_assert!(low <= high);
        Some((*number, if mixed || low < *number { 1 } else { delayed }))
    };
    let open = (board.first()..board.next()).filter(|number| !board.is_arrived(*number));
    let reports = open.filter_map(|number| count(&number)).collect();
    let lowest = ids.map(|id| board.lowest_on(id, false));
    Answer {
        reports,
        grows,
        lowest,
    }
}

/// Odd TSNs leave by the first lane, even ones by the second; 1 to 8 are outstanding.
fn interleaved() -> (Scoreboard, [LaneId; 2]) {
    sent(1, &[0, 1, 0, 1, 0, 1, 0, 1])
}

#[test]
fn only_news_of_its_own_lane_reports_a_segment_missing_and_moves_its_window() {
    let (mut board, ids) = interleaved();
    let answer = |reports: &[(u64, u64)], grows, lowest| Answer {
        reports: reports.to_vec(),
        grows,
        lowest,
    };
    let first = sack(&mut board, ids, 1, 1, &[(3, 3)]);
    assert_eq!(first, answer(&[], [true, false], [Some(5), Some(2)]));
    let second = sack(&mut board, ids, 1, 1, &[(3, 3), (5, 5)]);
    assert_eq!(second, answer(&[], [true, false], [Some(7), Some(2)]));
    let third = sack(&mut board, ids, 1, 1, &[(3, 5)]);
    assert_eq!(third, answer(&[(2, 1)], [false, false], [Some(7), Some(2)]));
    let fourth = sack(&mut board, ids, 2, 1, &[(3, 6), (8, 8)]);
    assert_eq!(fourth, answer(&[(2, 2)], [false, false], [Some(7), Some(2)]));

    assert!(board.mark_lost(2), "the third report");
    assert_eq!(ids.map(|id| board.lane(id).losses().len()), [0, 1]);
    assert_eq!(ids.map(|id| board.lane(id).lost()), [0, 1]);
    board.take_in_hand(ids[0]);
    board.on_retransmitted(at(101), 2);
    assert_eq!(ids.map(|id| board.lowest_on(id, true)), [Some(2), None]);
    assert_eq!(ids.map(|id| board.lowest_on(id, false)), [Some(7), None]);
    assert_eq!(ids.map(|id| board.lane(id).in_flight()), [2, 0]);
}

#[test]
fn a_mixed_report_and_one_across_a_segment_count_once_although_delayed() {
    let (mut board, ids) = interleaved();
    sack(&mut board, ids, 1, 1, &[(3, 5)]);
    let mixed = sack(&mut board, ids, 2, 1, &[(3, 7)]);
    assert_eq!(mixed.reports, [(2, 1)]);
    assert_eq!(mixed.grows, [true, false]);

    let (mut board, ids) = interleaved();
    sack(&mut board, ids, 1, 1, &[]);
    let across = sack(&mut board, ids, 2, 1, &[(4, 4), (8, 8)]);
    assert_eq!(across.reports, [(2, 2), (6, 1)]);
    assert_eq!(across.grows, [false, false]);
    assert_eq!(across.lowest, [Some(3), Some(2)]);
}

/// Missing numbers: those that their own lane has overtaken, and those that only others have.
fn missing(board: &Scoreboard) -> (Vec<u64>, Vec<u64>) {
    let highest = (board.first()..board.next()).rfind(|number| board.is_arrived(*number));
    let open = (board.first()..highest.unwrap_or(0)).filter(|number| !board.is_arrived(*number));
    open.partition(|number| {
        let lane = board.lane_of(*number).map(|id| board.lane(id).latest_delivered());
        board.order_in_flight(*number) < lane
    })
}

#[test]
fn what_its_own_lane_has_not_overtaken_is_late_and_not_lost() {
    let lanes = [0, 0, 0, 0, 0, 0, 0, 1, 1, 1];
    let arrive = |order: &[u64]| {
        let (mut board, _) = sent(1, &lanes);
        let mut arrived = Ranges::new();
        for number in order {
            arrived.insert(*number..number + 1);
            let pointer = arrived.covering(1).map_or(1, |range| range.end);
            let report = AckReport {
                cumulative: pointer,
                received: arrived
                    .iter()
                    .filter(|range| range.start > pointer)
                    .cloned()
                    .collect(),
                ..Default::default()
            };
            board.acknowledge(at(100), &report).unwrap();
        }
        missing(&board)
    };
    assert_eq!(arrive(&[1, 8, 2, 3, 4]), (vec![], vec![5, 6, 7]));
    assert_eq!(arrive(&[1, 3, 5, 7]), (vec![2, 4, 6], vec![]));
    assert_eq!(arrive(&[1, 3, 5, 7, 8, 10]), (vec![2, 4, 6, 9], vec![]));
}

/// The second lane needs 80 ms, the first 20. Segment 2 is declared lost and leaves again by the first.
#[test]
fn a_report_before_the_retransmission_can_be_answered_shows_that_the_segment_was_late() {
    let late_after = |ms: Option<u64>| {
        let (mut board, ids) = sent(1, &[0, 1]);
        board.acknowledge(at(20), &AckReport::pointer(2)).unwrap();
        board.mark_lost(2);
        if ms.is_some() {
            board.take_in_hand(ids[0]);
            board.on_retransmitted(at(30), 2);
        }
        let report = AckReport::pointer(3);
        let feedback = board.acknowledge(at(30 + ms.unwrap_or(0)), &report).unwrap();
        (feedback.late, ids.map(|id| board.lane(id).news().late))
    };
    assert_eq!(late_after(None), (1, [0, 1]), "it had not even left again");
    assert_eq!(
        late_after(Some(19)),
        (1, [0, 1]),
        "the lane that declared it lost was wrong"
    );
    assert_eq!(
        late_after(Some(20)),
        (0, [0, 0]),
        "as fast as that lane was before"
    );
}

/// What leaves again because its lane is silent was declared lost by nobody: that it comes after all takes back no loss.
#[test]
fn what_a_lane_has_yielded_is_no_loss_that_proves_late() {
    for leaves in [false, true] {
        let (mut board, ids) = sent(1, &[0, 0, 1]);
        board.acknowledge(at(22), &AckReport::pointer(2)).unwrap();
        board.take_in_hand(ids[1]);
        assert_eq!(board.mark_all_late(), 1);
        board.take_in_hand(ids[0]);
        if leaves {
            board.on_retransmitted(at(30), 3);
        }
        let feedback = board.acknowledge(at(35), &AckReport::pointer(4)).unwrap();
        let late = ids.map(|id| board.lane(id).news().late);
        assert_eq!((feedback.late, late), (0, [0, 0]), "it left again: {leaves}");
    }
}

#[test]
fn a_path_that_takes_the_place_of_another_begins_with_nothing() {
    let (mut board, ids) = sent(1, &[0, 1, 1, 1]);
    board.acknowledge(at(101), &AckReport::pointer(3)).unwrap();
    board.take_in_hand(ids[1]);
    assert_eq!(board.mark_all_late(), 2);
    board.renew_lane(ids[1]);
    assert_eq!(
        (board.lane(ids[1]).lost(), board.lane(ids[1]).latest_delivered()),
        (2, 0)
    );
    board.restore_late();
    assert_eq!(board.restore_lost(), []);
    assert_eq!(board.in_flight(), 0, "the new path has carried nothing");
    assert_eq!(board.own_head(), 5, "nor is it of its window");
    board.on_retransmitted(at(120), 4);
    assert_eq!((board.head(), board.own_head()), (3, 5), "it takes that over");
    let feedback = board.acknowledge(at(300), &AckReport::pointer(4)).unwrap();
    assert_eq!(
        (feedback.delivered, feedback.rtt),
        (1, None),
        "3 came by the old one"
    );
    assert_eq!(board.lane(ids[1]).news(), LaneNews::default());
    let here = board.feedback_in_hand(&feedback);
    assert_eq!((here.advanced, here.head_arrived), (0, false));
    assert_eq!(board.lane(ids[1]).latest_delivered(), 0);
}

/// The new path counted what the old one had sent: four times what it carries, in its window and for BBR's rate.
#[test]
fn what_an_earlier_path_brought_is_no_rate_of_the_one_in_its_place() {
    let (mut board, ids) = sent(1, &[0, 1, 1, 1]);
    board.take_in_hand(ids[1]);
    board.renew_lane(ids[1]);
    let new = board.on_sent(at(100), 1000);
    let feedback = board.acknowledge(at(120), &AckReport::pointer(new + 1)).unwrap();
    assert_eq!(feedback.delivered, 5);
    let news = board.lane(ids[1]).news();
    assert_eq!((news.delivered, news.delivered_bytes), (1, 1000));
    assert_eq!(news.rate.map(|rate| rate.delivered_bytes), Some(1000));
    let here = board.feedback_in_hand(&feedback);
    assert_eq!((here.advanced, here.delivered), (1, 1));
}

#[test]
fn what_was_rebuilt_of_an_earlier_path_is_no_loss_of_the_one_in_its_place() {
    for renewed in [false, true] {
        let (mut board, ids) = sent(1, &[0, 1, 1]);
        if renewed {
            board.renew_lane(ids[1]);
        }
        let mut uncarried = Uncarried::default();
        uncarried.insert_all(2..4);
        let rebuilt = AckReport {
            uncarried,
            ..AckReport::pointer(4)
        };
        board.acknowledge(at(50), &rebuilt).unwrap();
        let news = board.lane(ids[1]).news();
        assert_eq!(
            (news.uncarried, news.uncarried_since.is_some()),
            if renewed { (0, false) } else { (2, true) }
        );
    }
}

#[test]
fn what_an_earlier_path_lost_is_not_late_by_the_one_in_its_place() {
    for leaves in [false, true] {
        let (mut board, ids) = sent(1, &[0, 0, 1, 1]);
        board.take_observed().for_each(drop);
        board.acknowledge(at(20), &AckReport::pointer(2)).unwrap();
        board.take_in_hand(ids[1]);
        assert_eq!(board.mark_all_lost(), 2);
        board.renew_lane(ids[1]);
        if leaves {
            board.take_in_hand(ids[0]);
            board.on_retransmitted(at(30), 3);
        }
        let feedback = board.acknowledge(at(31), &AckReport::pointer(4)).unwrap();
        let late = ids.map(|id| board.lane(id).news().late);
        assert_eq!((feedback.late, late), (0, [0, 0]), "it left again: {leaves}");
        assert!(board.take_observed().all(|(_, _, is_late)| !is_late));
    }
}

#[test]
fn who_observes_hears_what_was_late_of_the_lane_that_lost_it() {
    let (mut board, ids) = sent(1, &[0, 0, 1, 1]);
    board.take_observed().for_each(drop);
    board.acknowledge(at(20), &AckReport::pointer(2)).unwrap();
    board.take_in_hand(ids[1]);
    assert_eq!(board.mark_all_lost(), 2);
    board.take_in_hand(ids[0]);
    board.on_retransmitted(at(30), 3);
    board.acknowledge(at(31), &AckReport::pointer(4)).unwrap();
    let late: Vec<_> = board
        .take_observed()
        .filter(|(_, _, is_late)| *is_late)
        .map(|(lane, what, _)| (lane, what.number))
        .collect();
    assert_eq!(late, [(ids[1], 3)]);
}

#[test]
fn a_lane_waits_for_what_it_took_over_and_its_window_does_not() {
    let (mut board, ids) = sent(1, &[0, 0, 1, 1]);
    board.mark_all_late();
    board.take_in_hand(ids[0]);
    board.on_retransmitted(at(50), 3);
    assert_eq!((board.head(), board.own_head()), (1, 1));
    board.acknowledge(at(60), &AckReport::pointer(3)).unwrap();
    assert_eq!(
        (board.own_head_before(), board.head(), board.own_head()),
        (Some(1), 3, 5)
    );
    board.take_in_hand(ids[1]);
    assert_eq!(board.own_head(), 4, "what was lost there and has not left");
}

#[test]
fn a_timeout_of_one_lane_leaves_the_other_alone() {
    let (mut board, ids) = interleaved();
    board.take_in_hand(ids[1]);
    assert_eq!(board.mark_all_lost(), 4);
    assert_eq!(ids.map(|id| board.lane(id).in_flight_bytes()), [4000, 0]);
    assert_eq!(ids.map(|id| board.lane(id).lost()), [0, 4]);
    assert_eq!(
        (board.in_flight(), board.lost(), board.next_lost()),
        (0, 4, Some(2))
    );
}

/// Numbers 10 to 15 alternate between two lanes.
#[test]
fn that_a_number_is_missing_is_told_by_its_own_lane_alone() {
    let (mut board, lanes) = sent(10, &[0, 1, 0, 1, 0, 1]);
    let told = |board: &mut Scoreboard, lane: usize, range: Range<u64>| {
        board.take_in_hand(lanes[lane]);
        board.first_told_missing(&range).map(|(number, ..)| number)
    };
    let report = AckReport {
        received: smallvec::smallvec![13..14],
        ..AckReport::pointer(10)
    };
    board.acknowledge(at(100), &report).unwrap();
    assert_eq!(told(&mut board, 0, 10..13), None, "13 went by the other");
    assert_eq!(told(&mut board, 1, 10..13), Some(11));
    assert_eq!(told(&mut board, 1, 12..99), None, "15 left later");
    assert_eq!(told(&mut board, 1, 0..11), None);
    board.mark_lost(11);
    assert_eq!(told(&mut board, 1, 10..13), None, "known");
    board.take_in_hand(lanes[0]);
    board.on_retransmitted(at(110), 11);
    let again = board.first_told_missing(&(10..13));
    assert_eq!(
        again,
        Some((11, at(110), false)),
        "its age tells, where it left last"
    );
    assert_eq!(told(&mut board, 1, 10..13), None);
}

/// The path that carried it brought nothing: no news, no round trip, nothing that overtakes, and nothing that waits any more.
#[test]
fn what_the_peer_has_rebuilt_or_given_up_is_no_news_of_the_lane_that_lost_it() {
    let (mut board, ids) = sent(1, &[0, 1, 0, 1]);
    let mut uncarried = Uncarried::default();
    [1, 3].into_iter().for_each(|number| uncarried.insert(number));
    let report = AckReport {
        uncarried,
        received: smallvec![3..5],
        ..AckReport::pointer(2)
    };
    let all = board.acknowledge(at(50), &report).unwrap();
    assert_eq!(
        (all.delivered, all.rtt),
        (1, Some(Duration::from_millis(47))),
        "4 alone"
    );
    let [first, second] = ids.map(|id| board.lane(id).news());
    assert_eq!(
        (first.delivered, first.uncarried, first.uncarried_since),
        (0, 2, Some(at(0)))
    );
    assert_eq!(
        (second.delivered, second.uncarried, second.uncarried_since),
        (1, 0, None)
    );
    board.take_in_hand(ids[0]);
    assert!(!board.feedback_in_hand(&all).is_progress());
    assert_eq!((board.in_flight(), board.head()), (0, 5));
    board.take_in_hand(ids[1]);
    assert_eq!((board.in_flight(), board.head()), (1, 2));
    let again = board.acknowledge(at(60), &report).unwrap();
    assert_eq!(
        (again.delivered, board.lane(ids[0]).news().uncarried),
        (0, 0),
        "told once"
    );
    let all = board
        .acknowledge(
            at(70),
            &AckReport {
                uncarried,
                ..AckReport::pointer(5)
            },
        )
        .unwrap();
    assert_eq!((all.advanced, all.delivered), (3, 1));
}

/// A peer may say anything of what it has rebuilt: what was never sent is not believed, and what has arrived stays arrived.
#[test]
fn only_what_is_outstanding_can_have_been_rebuilt() {
    let (mut board, ids) = sent(1, &[0, 1, 0, 1]);
    let told = |number: u64| {
        let mut uncarried = Uncarried::default();
        uncarried.insert(number);
        AckReport {
            uncarried,
            ..AckReport::pointer(2)
        }
    };
    for number in [0, 1, 5, 400] {
        board.acknowledge(at(50), &told(number)).unwrap();
        assert!(
            ids.iter().all(|id| board.lane(*id).news().uncarried == 0),
            "{number}"
        );
    }
    board.give_up(3);
    board.acknowledge(at(50), &told(3)).unwrap();
    assert_eq!((board.outstanding_bytes(), board.is_arrived(3)), (3000, true));
}

/// What left before something that has come says nothing of how long the lane has been silent.
#[test]
fn a_lane_is_silent_since_what_left_after_its_last_arrival() {
    let (mut board, ids) = sent(1, &[0, 0, 0, 1]);
    let told = |number: u64, received: Option<Range<u64>>| {
        let mut uncarried = Uncarried::default();
        uncarried.insert(number);
        AckReport {
            uncarried,
            received: received.into_iter().collect(),
            ..AckReport::pointer(1)
        }
    };
    let since = |board: &Scoreboard| board.lane(ids[0]).news().uncarried_since;
    let mut second = AckReport::pointer(1);
    second.received.push(2..3);
    board.acknowledge(at(50), &second).unwrap();
    board.acknowledge(at(60), &told(1, Some(2..3))).unwrap();
    assert_eq!(since(&board), None, "2 has come");
    board.acknowledge(at(70), &told(3, Some(2..3))).unwrap();
    assert_eq!(since(&board), Some(at(2)));
}
