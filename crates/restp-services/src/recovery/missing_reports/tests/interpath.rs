//! The vectors of SMT §1: numbers of two paths in blocks, and what each arrival says of those that are missing.

use super::*;
use crate::loss_handling::{LateAfter, Member};

const REPORTS: Differentiation = Differentiation::InterPath {
    member: Member::Owner,
    late_after: LateAfter::Reports(3),
};

/// Two paths, each with its numbers, and a receiver that answers every arrival.
struct Blocks {
    board: Scoreboard,
    recovery: [MissingReports; 2],
    arrived: Vec<u64>,
    update: [LossUpdate; 2],
}

impl Blocks {
    /// 1 to `middle` left by the first path, and what follows to `last` by the second.
    fn new(differentiation: Differentiation, middle: u64, last: u64) -> Self {
        let mut board = Scoreboard::new(1);
        let second = board.open_lane().expect("room");
        for number in 1..=last {
            let lane = if number > middle { second } else { LaneId::FIRST };
            board.take_in_hand(lane);
            assert_eq!(board.on_sent(NOW, 1500), number);
        }
        Blocks {
            board,
            recovery: [0, 1].map(|_| MissingReports::new(differentiation)),
            arrived: Vec::new(),
            update: Default::default(),
        }
    }

    /// These arrive, and one report answers them all.
    fn arrive(&mut self, numbers: impl IntoIterator<Item = u64>) {
        self.arrived.extend(numbers);
        let has = |number: &u64| self.arrived.contains(number);
        let pointer = (1..).find(|number| !has(number)).expect("one is missing");
        let mut report = AckReport::pointer(pointer);
        let beyond = self.arrived.iter().filter(|number| **number > pointer);
        let mut beyond: Vec<_> = beyond.map(|number| *number..number + 1).collect();
        beyond.sort_by_key(|range| range.start);
        report.received.extend(beyond);
        let all = self.board.acknowledge(NOW, &report).expect("possible");
        for path in 0..2 {
            self.board.take_in_hand(LaneId::nth(path));
            let feedback = self.board.feedback_in_hand(&all);
            let evidence = Evidence {
                now: NOW,
                report: &report,
                feedback: &feedback,
                rtt: &RttEstimator::default(),
            };
            self.update[path] = self.recovery[path].on_feedback(&mut self.board, &evidence);
        }
    }

    /// The same, each with a report of its own.
    fn one_by_one(&mut self, numbers: impl IntoIterator<Item = u64>) {
        numbers.into_iter().for_each(|number| self.arrive([number]));
    }

    /// What each of `numbers` was reported as: so often lost, so often late.
    fn reports<const N: usize>(&self, numbers: [u64; N]) -> [(u64, u64); N] {
        numbers.map(|number| {
            let lane = self.board.lane_of(number).expect("outstanding");
            let counts = self.recovery[lane.index()].counts_of(number);
            (counts.lost, counts.late)
        })
    }
}

#[test]
fn vector_1_holes_of_a_report_are_missing() {
    let mut blocks = Blocks::new(REPORTS, 19, 19);
    blocks.arrive((1..=13).chain([15, 16, 19]));
    let missing: Vec<u64> = (14..=19)
        .filter(|number| !blocks.board.is_arrived(*number))
        .collect();
    assert_eq!(missing, [14, 17, 18]);
    assert_eq!(blocks.reports([14, 17, 18]), [(1, 0); 3]);
}

#[test]
fn vector_2_what_only_another_path_has_overtaken_is_late() {
    let mut blocks = Blocks::new(REPORTS, 7, 10);
    blocks.one_by_one([1, 8, 2, 3, 4]);
    assert_eq!(blocks.reports([5, 6, 7]), [(0, 1); 3]);
}

#[test]
fn vector_3_what_its_own_path_has_overtaken_is_lost() {
    let mut blocks = Blocks::new(REPORTS, 7, 10);
    blocks.one_by_one([1, 3, 5]);
    assert_eq!(blocks.reports([2, 4, 6]), [(2, 0), (1, 0), (0, 0)]);
    blocks.arrive([7]);
    assert_eq!(blocks.reports([4, 6]), [(2, 0), (1, 0)]);
    assert!(blocks.board.is_lost(2) && !blocks.board.is_late(2));
    assert!(blocks.update[0].began && blocks.update[0].lost == 1);
}

#[test]
fn vector_4_ranges_of_the_paths_move_with_their_own_arrivals() {
    let mut blocks = Blocks::new(REPORTS, 7, 14);
    blocks.arrive(1..=4);
    blocks.arrive(8..=11);
    assert_eq!(blocks.reports([5, 6, 7]), [(0, 1); 3]);
    let mut range = |path: usize| {
        blocks.board.take_in_hand(LaneId::nth(path));
        let lowest = blocks.board.lowest_on(LaneId::nth(path), false);
        (lowest.map(|number| number - 1), blocks.board.last_in_hand())
    };
    assert_eq!([0, 1].map(&mut range), [(Some(4), Some(7)), (Some(11), Some(14))]);
}

#[test]
fn vector_5_losses_on_both_paths_are_told_by_each_of_them() {
    let mut blocks = Blocks::new(REPORTS, 7, 10);
    blocks.one_by_one([1, 3, 5, 7, 8, 10]);
    assert!(blocks.board.is_lost(2));
    let lost = blocks.reports([4, 6, 9]).map(|(lost, _)| lost);
    assert_eq!(lost, [2, 1, 1]);
    assert_eq!(blocks.reports([9]), [(1, 0)], "no other path says anything of 9");
}

/// SMT §3.4: a copy leaves, and no window is cut.
#[test]
fn three_reports_of_another_path_make_a_segment_late_and_cut_nothing() {
    let mut blocks = Blocks::new(REPORTS, 7, 10);
    blocks.one_by_one([8, 9]);
    assert_eq!(blocks.update, [LossUpdate::default(); 2]);
    blocks.arrive([10]);
    let first = blocks.update[0];
    assert_eq!(
        (first.late, first.lost, first.began, first.urgent),
        (7, 0, false, true)
    );
    assert!((1..=7).all(|number| blocks.board.is_lost(number) && blocks.board.is_late(number)));
    assert_eq!(blocks.board.lane(LaneId::FIRST).in_flight(), 0);
    blocks.board.take_in_hand(LaneId::nth(1));
    blocks
        .board
        .on_retransmitted(NOW, 1)
        .expect("it waits to leave again");
    assert!(!blocks.board.is_late(1), "what has left again is on its way");
    blocks.arrive([2]);
    assert!(!blocks.board.is_late(2), "and what has arrived is not late");
}

#[test]
fn the_threshold_of_lateness_is_what_it_was_set_to_and_that_of_losses_stays() {
    let mut blocks = Blocks::new(REPORTS, 7, 20);
    blocks.recovery[0].expect_late_after(5);
    blocks.one_by_one(8..12);
    assert_eq!(blocks.reports([1, 7]), [(0, 4); 2]);
    blocks.arrive([12]);
    assert_eq!(blocks.update[0].late, 7);
    let mut blocks = Blocks::new(REPORTS, 7, 20);
    blocks.recovery[0].expect_late_after(5);
    blocks.one_by_one(2..5);
    assert_eq!(blocks.update[0].lost, 1);
}

/// NMT of SMT §2.1: one path is taken for all there are, and every fast retransmit cuts.
#[test]
fn where_nothing_tells_paths_apart_lateness_is_loss_and_cuts_again_and_again() {
    let mut blocks = Blocks::new(Differentiation::Nothing, 3, 12);
    blocks.one_by_one([4, 5, 6]);
    assert!(blocks.update[0].began && blocks.update[0].lost == 3);
    blocks.one_by_one([8, 9, 10]);
    assert!(blocks.update[1].began && blocks.update[1].lost == 1);
    blocks.one_by_one([12]);
    assert!(!blocks.recovery[1].is_active(), "no window is held for it");
}

/// Split fast retransmit ignores exactly what IMPD counts as late (SMT §3.4).
#[test]
fn split_reports_leave_out_what_the_others_call_late() {
    let mut split = Blocks::new(Differentiation::Split, 7, 14);
    let mut told = Blocks::new(REPORTS, 7, 14);
    told.recovery[0].expect_late_after(100);
    for number in [1, 8, 3, 9, 11, 5] {
        split.arrive([number]);
        told.arrive([number]);
        for missing in (2..=13).filter(|number| !split.board.is_arrived(*number)) {
            let [(lost, late)] = split.reports([missing]);
            assert_eq!((lost, late), (told.reports([missing])[0].0, 0), "{missing}");
        }
    }
}
