//! The timer of a lane, the only one or one of several, waits for the lowest number that is out by it (RFC 9260 §6.3.2, R3).

use super::lanes::{losses, second_with, send_on, two_lanes};
use super::*;
use crate::recovery::MissingReports;

/// Segment 1 is on a slow lane, and all that the other carried arrives before it.
#[test]
fn a_timer_restarts_with_the_lowest_of_its_lane_and_stops_with_the_last() {
    let (mut story, second, _) = two_lanes([100 * SEGMENT as u64; 2]);
    story.write(1);
    assert_eq!(story.send(), [1]);
    let first = story.sender.deadline();
    story.at(50).write(2);
    assert_eq!(send_on(&mut story, second), [2, 3]);
    let timer = |story: &mut Story| story.sender.on(second, |sender| sender.lane.rto.deadline());
    let begun = timer(&mut story);
    story.at(70).sack(1, 3..4);
    assert_eq!(timer(&mut story), begun, "2 is the lowest");
    story.at(80).sack(1, 2..4);
    assert_eq!(timer(&mut story), None);
    assert_eq!(story.sender.deadline(), first, "1 is waited for as before");
}

/// RFC 9260 §6.3.2 (R3), §7.2.4 (4): 1 is lost twice on the second lane. New data that arrives there, and new data that is lost there,
/// do not keep its timer from running out, or 1 would never leave again.
#[test]
fn a_timer_runs_out_for_the_lowest_of_its_lane_whatever_else_happens_there() {
    let setup = Setup {
        recovery: RecoveryChoice::Pipe,
        ..Setup::segments().with_window(100 * SEGMENT as u64)
    };
    let mut story = setup.established();
    let reports = Recovery::MissingReports(MissingReports::default());
    let (second, _) = second_with(&mut story, 100 * SEGMENT as u64, reports);
    let timer = |story: &mut Story| story.sender.on(second, |sender| sender.lane.rto.deadline());
    story.write(5);
    assert_eq!(send_on(&mut story, second), [1, 2, 3, 4, 5]);
    // Three reports of what overtook it; the last one also restarts the timer, as 1 is what leaves again.
    story.at(80).sack(1, 2..4);
    story.at(90).sack(1, 2..5);
    story.at(100).sack(1, 2..6);
    assert_eq!(send_on(&mut story, second), [1]);
    let watching = timer(&mut story).expect("1 is out");
    story.at(120).write(2);
    assert_eq!(send_on(&mut story, second), [6, 7]);
    story.at(170).sack(1, 2..8);
    assert_eq!(
        timer(&mut story),
        Some(watching),
        "6 and 7 have arrived, and 1 has not"
    );
    story.at(200).write(4);
    assert_eq!(send_on(&mut story, second), [8, 9, 10, 11]);
    for (ms, upto) in [(240, 10), (245, 11), (250, 12)] {
        let mut report = AckReport::pointer(1);
        report.received.extend([2..8, 9..upto]);
        story.at(ms).on_report(&report, |_| {}).expect("possible");
    }
    assert_eq!(timer(&mut story), Some(watching), "8 is lost, and 1 is lower");
    let late = watching.since(Time::ZERO).as_millis() + 1;
    assert!(late < 600, "{late}");
    story.at(late);
    assert_eq!(story.sender.on_deadline(story.now), TimeoutOutcome::Lost);
    assert_eq!(send_on(&mut story, second)[0], 1);
}

/// The retransmission of 1 is lost as well. What the lane sends for the first time moves its pointer (CUC), again and again; the timer
/// has to run out all the same.
#[test]
fn a_lost_retransmission_is_found_by_the_timer_while_new_data_goes_on() {
    let mut story = Setup::segments().with_window(SEGMENT as u64).established();
    let recovery = Recovery::MissingReports(MissingReports::default());
    let (second, script) = second_with(&mut story, 100 * SEGMENT as u64, recovery);
    story.write(1);
    assert_eq!(story.send(), [1]);
    story.write(4);
    assert_eq!(send_on(&mut story, second), [2, 3, 4, 5]);
    for arrived in 4..7 {
        story.at(50).sack(1, 3..arrived);
    }
    assert_eq!(send_on(&mut story, second), [2], "and is lost again");
    losses(&script);
    let mut arrived = 6;
    let mut timeouts = 0;
    for step in 0..40 {
        story.at(60 + 20 * step).write(2);
        send_on(&mut story, second);
        let now = story.now;
        let due = |at: Option<Time>| at.is_some_and(|at| at <= now);
        if due(story.sender.on(second, |sender| sender.lane.rto.deadline())) {
            story.sender.on_deadline(now);
            timeouts += 1;
            break;
        }
        arrived += 2;
        story.sack(1, 3..arrived);
    }
    assert_eq!(timeouts, 1, "the timer of the second lane has run out");
    assert_eq!(send_on(&mut story, second), [2]);
}

/// RFC 9260 §7.2.4 (4), over one path as over several: the retransmission of 1 is lost, and then 5 and 9 are. What leaves again for them
/// does not keep the timer from running out for 1.
#[test]
fn over_one_path_later_losses_do_not_restart_the_timer_that_waits_for_the_lowest() {
    let mut story = Setup::segments().with_window(100 * SEGMENT as u64).established();
    story.sender.lane.recovery = Recovery::MissingReports(MissingReports::default());
    story.write(12);
    assert_eq!(story.send().len(), 12);
    story.at(80).sack(1, 2..3).sack(1, 2..4);
    assert_eq!(
        story.retransmission_at(),
        Some(at(300)),
        "two reports are no loss"
    );
    story.at(100).sack(1, 2..5);
    assert_eq!(story.send(), [1]);
    let watching = at(100) + story.sender.timeout();
    assert_eq!(story.retransmission_at(), Some(watching), "1 itself leaves again");
    let arrived = [2..5, 6..9];
    for (ms, lost, before) in [(150, 5, &arrived[..1]), (200, 9, &arrived)] {
        for reports in 1..4 {
            let mut report = AckReport::pointer(1);
            report.received.extend(before.iter().cloned());
            report.received.push(lost + 1..lost + 1 + reports);
            story.at(ms).on_report(&report, |_| {}).expect("possible");
        }
        assert_eq!(story.send(), [lost]);
        assert_eq!(
            story.retransmission_at(),
            Some(watching),
            "1 is lower than {lost}"
        );
    }
    assert_eq!(story.expire(), TimeoutOutcome::Lost);
    assert_eq!(story.now, watching);
    assert_eq!(story.send()[0], 1);
}
