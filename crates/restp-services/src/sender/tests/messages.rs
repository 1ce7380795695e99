//! What a sender of messages over several paths adds (SCTP, RFC 9260, and CMT): windows that the last segment may overshoot, bursts, credit
//! that counts what is in flight, policies for what was lost.

use super::*;
use crate::recovery::{LaneId, MissingReports};
use std::ops::RangeInclusive;

const FULL: u64 = SEGMENT as u64;
/// First number, and where its credit begins.
const FIRST: u64 = 1;

fn setup(window: u64, credit: u64, target: RetransmitTarget) -> Setup {
    Setup::segments()
        .with(|parameters| {
            parameters.credit = CreditUnit::InFlight;
            parameters.filling = Filling::Overshoot { burst: 4 };
            parameters.retransmit_target = target;
        })
        .with_window(window)
        .with_credit(credit)
}

fn story(window: u64, credit: u64) -> Story {
    let mut story = setup(window, credit, RetransmitTarget::Same).established();
    story.sender.grant_afresh(FIRST, credit);
    story.sender.lane.recovery = Recovery::MissingReports(MissingReports::default());
    story
}

/// A story of two lanes, the second with a window of its own.
fn two(windows: [u64; 2], target: RetransmitTarget) -> (Story, LaneId) {
    let mut story = story(windows[0], 1_000_000);
    story.sender.parameters.retransmit_target = target;
    let script = Arc::new(Mutex::new(Script {
        window: windows[1],
        ..Script::default()
    }));
    let controller = Controller::Custom(Box::new(Scripted(script)));
    let recovery = Recovery::MissingReports(MissingReports::default());
    let id = story
        .sender
        .open_lane(story.now, recovery, controller, RtoParameters::default());
    (story, id.expect("room"))
}

fn send_on(story: &mut Story, lane: LaneId) -> Vec<u64> {
    let now = story.now;
    let sent = std::iter::from_fn(|| story.sender.on(lane, |sender| sender.next(now, false)));
    sent.map(|sent| match sent {
        Transmission::Segment(segment) => segment.number.expect("segments have numbers"),
        other => panic!("{other:?}"),
    })
    .collect()
}

/// The peer has everything below `pointer` and `blocks`, and nothing else; `free` bytes of its buffer are free.
fn on_report(story: &mut Story, pointer: u64, blocks: &[RangeInclusive<u64>], free: u64) {
    let mut report = AckReport::pointer(pointer);
    report.received = blocks
        .iter()
        .map(|block| *block.start()..block.end() + 1)
        .collect();
    report.is_complete = true;
    let grant = Some(Grant {
        at: pointer,
        units: free,
    });
    story
        .on_report(&report, |peer| peer.grant = grant)
        .expect("possible");
}

#[test]
fn a_window_is_filled_until_it_is_full_and_the_last_segment_overshoots() {
    let mut story = story(2 * FULL + 1, 1_000_000);
    story.write(9);
    assert_eq!(story.send(), [1, 2, 3]);
    story.at(100);
    on_report(&mut story, 2, &[], 1_000_000);
    assert_eq!(story.send(), [4]);
}

#[test]
fn a_report_lets_a_burst_of_four_leave_however_wide_the_window() {
    let mut story = story(10 * FULL, 1_000_000);
    story.write(40);
    assert_eq!(story.send().len(), 10);
    story.set_window(30 * FULL);
    story.at(100);
    on_report(&mut story, 3, &[], 1_000_000);
    assert_eq!(story.send(), [11, 12, 13, 14]);
    on_report(&mut story, 4, &[], 1_000_000);
    assert_eq!(story.send(), [15, 16, 17, 18]);
}

#[test]
fn credit_is_what_is_free_less_what_is_in_flight() {
    let mut story = story(100 * FULL, 5 * FULL);
    story.write(20);
    assert_eq!(story.send(), [1, 2, 3, 4, 5]);
    story.at(100);
    on_report(&mut story, 1, &[2..=3], 3 * FULL);
    assert_eq!(story.send(), [] as [u64; 0], "two are held, three in flight");
    on_report(&mut story, 6, &[], 5 * FULL);
    assert_eq!(story.send(), [6, 7, 8, 9], "a burst");
}

#[test]
fn what_the_peer_does_not_name_any_more_is_in_flight_again() {
    let mut story = story(100 * FULL, 1_000_000);
    story.write(8);
    assert_eq!(story.send().len(), 8);
    story.at(100);
    on_report(&mut story, 1, &[2..=2, 6..=8], 1_000_000);
    assert_eq!(story.sender.in_flight(), 4);
    on_report(&mut story, 1, &[2..=3, 6..=6], 1_000_000);
    assert_eq!(story.sender.in_flight(), 5, "3 has come, 7 and 8 were discarded");
}

/// The second lane's report left later and came first.
#[test]
fn of_two_lanes_an_overtaken_report_changes_nothing() {
    let (mut story, second) = two([4 * FULL; 2], RetransmitTarget::Same);
    story.write(20);
    assert_eq!((story.send().len(), send_on(&mut story, second).len()), (4, 4));
    story.at(100);
    on_report(&mut story, 1, &[2..=3, 5..=6], 4 * FULL);
    let in_flight = story.sender.in_flight();
    on_report(&mut story, 1, &[2..=3], 6 * FULL);
    assert_eq!(
        story.sender.in_flight(),
        in_flight,
        "and nothing of it was discarded"
    );
}

/// Number 5 is the first on the second lane.
fn lose_5(story: &mut Story) {
    story.at(100);
    for highest in [6, 7, 8] {
        on_report(story, 5, &[6..=highest], 1_000_000);
    }
}

#[test]
fn what_a_lane_lost_leaves_by_the_lane_of_the_policy() {
    use RetransmitTarget::{Alternate, Asap, Same, Window};
    for (target, windows, by_first) in [
        (Same, [40, 4], false),
        (Alternate, [40, 4], false),
        (Window, [40, 4], true),
        (Window, [4, 40], false),
        (Asap, [40, 4], true),
    ] {
        let (mut story, second) = two(windows.map(|segments| segments * FULL), target);
        story.write(8);
        let (mut first, mut other) = (Vec::new(), Vec::new());
        for _ in 0..4 {
            first.extend(story.segment(false).and_then(|segment| segment.number));
        }
        other.extend(send_on(&mut story, second));
        assert_eq!((first, other), (vec![1, 2, 3, 4], vec![5, 6, 7, 8]));
        lose_5(&mut story);
        let sent = [story.send(), send_on(&mut story, second)];
        let expected = if by_first {
            [vec![5], vec![]]
        } else {
            [vec![], vec![5]]
        };
        assert_eq!(sent, expected, "{target:?} {windows:?}");
    }
}

#[test]
fn one_retransmission_of_a_loss_leaves_although_its_lane_is_full_and_others_wait() {
    let (mut story, second) = two([9 * FULL, 4 * FULL], RetransmitTarget::Window);
    story.write(4);
    assert_eq!(send_on(&mut story, second), [1, 2, 3, 4]);
    story.write(30);
    assert_eq!(story.send().len(), 9);
    story.sender.on(second, |sender| sender.board.mark_all_lost());
    assert_eq!(story.send(), [] as [u64; 0], "full");
    story
        .sender
        .on(second, |sender| sender.lane.gate.retransmit_at_once(true));
    assert_eq!(story.send(), [1]);
    assert_eq!(story.send(), [] as [u64; 0]);
}

#[test]
fn what_a_lane_lost_that_is_used_no_more_leaves_by_another() {
    let (mut story, second) = two([40 * FULL, 4 * FULL], RetransmitTarget::Same);
    story.write(4);
    assert_eq!(send_on(&mut story, second), [1, 2, 3, 4]);
    story.sender.on(second, |sender| {
        sender.board.mark_all_lost();
        sender.set_active(false);
    });
    assert_eq!(send_on(&mut story, second), [] as [u64; 0]);
    assert_eq!(story.send(), [1, 2, 3, 4]);
}

#[test]
fn an_answer_to_a_heartbeat_measures_its_lane_and_ends_its_back_off() {
    let (mut story, second) = two([40 * FULL, 4 * FULL], RetransmitTarget::Same);
    story.write(1);
    assert_eq!(send_on(&mut story, second), [1]);
    story.expire();
    assert_eq!(story.sender.on(second, |sender| sender.timeouts_in_row()), 1);
    story.sender.on(second, |sender| sender.on_echo(ms(70)));
    assert_eq!(story.sender.on(second, |sender| sender.timeouts_in_row()), 0);
    let measured = story.sender.on(second, |sender| sender.smoothed_rtt());
    assert_eq!(measured, Some(ms(70)));
}

/// RFC 9260 §6.2.1: a report that another has overtaken says nothing of what was discarded.
#[test]
fn an_overtaken_report_takes_nothing_back() {
    let mut story = story(10 * FULL, 1_000_000);
    story.write(9);
    assert_eq!(story.send().len(), 9);
    story.at(100);
    on_report(&mut story, 5, &[7..=9], 1_000_000);
    on_report(&mut story, 3, &[4..=4], 1_000_000);
    assert!((7..=9).all(|number| story.sender.board.is_arrived(number)));
    on_report(&mut story, 5, &[8..=9], 1_000_000);
    assert!(!story.sender.board.is_arrived(7), "this one does");
}
