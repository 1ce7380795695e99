//! The vectors of CMT §2.10: odd numbers left by path 1, even ones by path 2, 1 to 8 are outstanding. And one path, as RFC 9260
//! §7.2.4 has it.

use super::*;
use crate::ack::AckReport;
use crate::recovery::{LaneId, RttEstimator};
use restp_base::time::{Duration, Time};
use std::ops::RangeInclusive;

mod interpath;

const NOW: Time = Time::ZERO;

/// Paths 1 and 2.
struct Paths {
    board: Scoreboard,
    lanes: [LaneId; 2],
    recovery: [MissingReports; 2],
}

/// What a report did to one path.
#[derive(Debug, PartialEq, Eq)]
struct Path {
    /// Its window may grow.
    grows: bool,
    /// Its lowest number that was sent once and has not arrived.
    awaits: Option<u64>,
    update: LossUpdate,
}

fn paths() -> Paths {
    let mut board = Scoreboard::new(1);
    let second = board.open_lane().expect("room");
    let lanes = [LaneId::FIRST, second];
    for number in 1..=8u64 {
        board.take_in_hand(lanes[usize::from(number % 2 == 0)]);
        assert_eq!(board.on_sent(NOW, 1000), number);
    }
    Paths {
        board,
        lanes,
        recovery: Default::default(),
    }
}

impl Paths {
    /// A report of everything up to `cumulative` and of `gaps`, which answers `packets`.
    fn sack(&mut self, cumulative: u64, gaps: &[RangeInclusive<u64>], packets: u8) -> [Path; 2] {
        let mut report = AckReport::pointer(cumulative + 1);
        report.received = gaps.iter().map(|gap| *gap.start()..gap.end() + 1).collect();
        report.arrivals = packets;
        let at = NOW + Duration::from_millis(50);
        let all = self.board.acknowledge(at, &report).expect("possible");
        [0, 1].map(|path| {
            let lane = self.lanes[path];
            self.board.take_in_hand(lane);
            let feedback = self.board.feedback_in_hand(&all);
            let evidence = Evidence {
                now: at,
                report: &report,
                feedback: &feedback,
                rtt: &RttEstimator::default(),
            };
            Path {
                grows: feedback.advanced > 0,
                awaits: self.board.lowest_on(lane, false),
                update: self.recovery[path].on_feedback(&mut self.board, &evidence),
            }
        })
    }

    /// Reports that each of 2 to 8 is missing.
    fn counts(&self) -> [u64; 7] {
        [2, 3, 4, 5, 6, 7, 8].map(|number| self.recovery[usize::from(number % 2 == 0)].counts_of(number).lost)
    }
}

fn path(grows: bool, awaits: u64) -> Path {
    Path {
        grows,
        awaits: Some(awaits),
        update: LossUpdate::default(),
    }
}

/// Vectors 1 to 3, one after the other.
fn after_three() -> Paths {
    let mut paths = paths();
    assert_eq!(paths.sack(1, &[3..=3], 1), [path(true, 5), path(false, 2)], "1");
    assert_eq!(paths.counts(), [0; 7], "1: nothing is new on path 2");
    assert_eq!(
        paths.sack(1, &[3..=3, 5..=5], 1),
        [path(true, 7), path(false, 2)],
        "2"
    );
    assert_eq!(paths.counts(), [0; 7], "2");
    assert_eq!(paths.sack(1, &[3..=5], 1), [path(false, 7), path(false, 2)], "3");
    assert_eq!(paths.counts(), [1, 0, 0, 0, 0, 0, 0], "3: 4 is newer on path 2");
    paths
}

#[test]
fn vectors_1_to_3_arrivals_of_one_path_say_nothing_of_the_other() {
    after_three();
}

#[test]
fn vector_4_a_report_of_two_packets_beyond_a_number_counts_twice() {
    let mut paths = after_three();
    let [first, second] = paths.sack(1, &[3..=6, 8..=8], 2);
    assert!(!first.grows && !second.grows);
    assert!(paths.board.is_lost(2), "one report, and two more");
    assert_eq!((first.update.lost, second.update.lost), (0, 1));
}

#[test]
fn vector_5_a_report_of_two_paths_counts_once() {
    let mut paths = after_three();
    let [first, second] = paths.sack(1, &[3..=7], 2);
    assert_eq!((first.grows, second.grows), (true, false));
    assert_eq!(paths.counts()[0], 2);
    assert!(!paths.board.is_lost(2));
}

#[test]
fn vector_6_a_report_across_a_number_counts_once_for_it() {
    let mut paths = paths();
    paths.sack(1, &[], 1);
    assert_eq!(
        paths.sack(1, &[4..=4, 8..=8], 2),
        [path(false, 3), path(false, 2)]
    );
    assert_eq!(paths.counts(), [2, 0, 0, 0, 1, 0, 0]);
}

#[test]
fn vector_7_the_path_that_lost_it_is_cut_and_the_other_waits_for_the_retransmission() {
    let mut paths = after_three();
    let [first, second] = paths.sack(1, &[3..=6, 8..=8], 2);
    assert!(second.update.began && second.update.urgent && !first.update.began);
    paths.board.take_in_hand(paths.lanes[0]);
    paths.board.on_retransmitted(NOW, 2).expect("it was lost");
    assert_eq!(paths.board.lowest_on(paths.lanes[0], true), Some(2));
    assert_eq!(paths.board.lowest_on(paths.lanes[0], false), Some(7));
    assert_eq!(paths.board.lowest_on(paths.lanes[1], false), None);
    let [first, second] = paths.sack(6, &[8..=8], 1);
    assert!(first.grows && !second.grows, "the second version of CUC");
    assert!(second.update.ended, "nothing of its window is open any more");
}

/// One path: the vectors of RFC 9260 §7.2.4, where arrivals below the highest that is news do not count.
fn one_path(count: u64) -> (Scoreboard, MissingReports) {
    let mut board = Scoreboard::new(1);
    (0..count).for_each(|_| assert!(board.on_sent(NOW, 1000) > 0));
    (board, MissingReports::default())
}

fn sack(
    board: &mut Scoreboard,
    recovery: &mut MissingReports,
    cumulative: u64,
    gaps: &[RangeInclusive<u64>],
) -> LossUpdate {
    let mut report = AckReport::pointer(cumulative + 1);
    report.received = gaps.iter().map(|gap| *gap.start()..gap.end() + 1).collect();
    let at = NOW + Duration::from_millis(50);
    let feedback = board.acknowledge(at, &report).expect("possible");
    let evidence = Evidence {
        now: at,
        report: &report,
        feedback: &feedback,
        rtt: &RttEstimator::default(),
    };
    recovery.on_feedback(board, &evidence)
}

#[test]
fn the_third_report_of_later_news_loses_a_segment_and_cuts_once() {
    let (mut board, mut recovery) = one_path(12);
    let mut hear = |cumulative, gaps: &[RangeInclusive<u64>]| {
        let update = sack(&mut board, &mut recovery, cumulative, gaps);
        (update.lost, update.began, update.ended)
    };
    assert_eq!(hear(0, &[2..=2, 6..=6]), (0, false, false));
    assert_eq!(hear(0, &[2..=2, 6..=6]), (0, false, false), "no news");
    assert_eq!(hear(0, &[2..=2, 4..=4, 6..=6]), (0, false, false), "news below 5");
    assert_eq!(
        hear(0, &[2..=2, 4..=4, 6..=7]),
        (2, true, false),
        "1 and 3, not 5"
    );
    assert_eq!(
        hear(0, &[2..=2, 4..=4, 6..=8]),
        (1, false, false),
        "5 in the same window"
    );
    assert_eq!(hear(10, &[]), (0, false, false));
    assert_eq!(hear(12, &[]), (0, false, true));
}

#[test]
fn what_left_again_waits_for_the_timer() {
    let (mut board, mut recovery) = one_path(12);
    for highest in 2..=4 {
        sack(&mut board, &mut recovery, 0, &[2..=highest]);
    }
    assert!(board.is_lost(1));
    board.on_retransmitted(NOW, 1).expect("it was lost");
    for highest in 5..=12 {
        sack(&mut board, &mut recovery, 0, &[2..=highest]);
    }
    assert!(!board.is_lost(1));
}

#[test]
fn of_what_has_arrived_nothing_is_remembered() {
    let (mut board, mut recovery) = one_path(12);
    sack(&mut board, &mut recovery, 0, &[3..=3]);
    assert_eq!(recovery.counts.len(), 2);
    sack(&mut board, &mut recovery, 3, &[]);
    assert!(recovery.counts.is_empty());
}
