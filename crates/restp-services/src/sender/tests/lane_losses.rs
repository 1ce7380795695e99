//! When the controller of one of several lanes is told of losses and of marks: once per window of its own, whatever others lack
//! (Iyengar, Amer and Stewart 2006; RFC 3168 §6.1.2).

use super::lanes::{LOST, losses, second, send_on, two_lanes};
use super::*;
use crate::recovery::LaneId;

/// The second lane's loss is repaired while the first still lacks segment 1: the next loss is an episode of its own.
#[test]
fn an_episode_ends_when_its_own_lane_is_through() {
    let (mut story, second, script) = two_lanes([SEGMENT as u64, 100 * SEGMENT as u64]);
    story.write(1);
    assert_eq!(story.send(), [1]);
    for (begin, episode) in [(2, 1), (7, 2)] {
        story.write(5);
        let numbers: Vec<u64> = (begin..begin + 5).collect();
        assert_eq!(send_on(&mut story, second), numbers);
        let mut report = AckReport::pointer(1);
        report.received.extend((begin > 2).then_some(2..begin));
        report.received.push(begin + 1..begin + 5);
        story
            .at(100 * episode - 50)
            .on_report(&report, |_| {})
            .expect("possible");
        assert_eq!(losses(&script).len(), 1, "episode {episode}");
        assert_eq!(send_on(&mut story, second), [begin]);
        story.at(100 * episode - 10).sack(1, 2..begin + 5);
    }
}

/// The same where causes are inferred: as long as the first lane lacked a segment nothing was told of what the second one lost.
#[test]
fn what_a_lane_loses_is_told_once_per_window_of_its_own() {
    let setup = Setup {
        recovery: RecoveryChoice::Pipe,
        ..Setup::segments().with_window(SEGMENT as u64)
    };
    let setup = setup.with(|it| (it.loss_handling, it.pointer_only) = (LossHandling::Adaptive, false));
    let mut story = setup.established();
    let (second, script) = second(&mut story, 100 * SEGMENT as u64);
    story.write(1);
    assert_eq!(story.send(), [1]);
    for (episode, begin) in [(1, 2), (2, 14), (3, 26)] {
        story.write(12);
        assert_eq!(send_on(&mut story, second).len(), 12);
        let mut report = AckReport::pointer(1);
        report.received.extend((begin > 2).then_some(2..begin));
        report.received.push(begin + 4..begin + 12);
        story
            .at(100 * episode - 50)
            .on_report(&report, |_| {})
            .expect("possible");
        let heard = std::mem::take(&mut script.lock().unwrap().heard);
        let told = heard.iter().filter(|heard| {
            let event = heard.event;
            matches!(
                event,
                CongestionEvent::Lost { .. } | CongestionEvent::Corrupted { .. }
            )
        });
        assert_eq!(told.count(), 1, "episode {episode}");
        assert_eq!(send_on(&mut story, second).len(), 4);
        story.at(100 * episode - 10).sack(1, 2..begin + 12);
    }
}

#[test]
fn a_loss_after_one_that_another_lane_repaired_is_an_episode_of_its_own() {
    let (mut story, second, script) = two_lanes([100 * SEGMENT as u64; 2]);
    for (begin, at_ms) in [(1, 100), (5, 300)] {
        story.write(4);
        assert_eq!(send_on(&mut story, second), Vec::from_iter(begin..begin + 4));
        story.at(at_ms).sack(begin, begin + 1..begin + 4);
        assert_eq!(losses(&script), [(LOST, 4 * SEGMENT as u64)]);
        assert_eq!(story.send(), [begin]);
        story.at(at_ms + 50).ack(begin + 4);
    }
}

/// So many marks a controller has heard of.
fn marks(script: &Arc<Mutex<Script>>) -> usize {
    let heard = &script.lock().unwrap().heard;
    let is_mark = |heard: &&Heard| matches!(heard.event, CongestionEvent::Marked { .. });
    heard.iter().filter(is_mark).count()
}

/// Does `number`, which leaves by `lane`, tell that the window was cut?
fn tells(story: &mut Story, lane: LaneId, number: u64) -> bool {
    story
        .sender
        .on(lane, |sender| sender.takes_window_reduced(number))
}

#[test]
fn a_mark_cuts_the_window_of_the_lane_that_it_came_back_for() {
    let (mut story, second, script) = two_lanes([100 * SEGMENT as u64; 2]);
    story.write(2);
    assert_eq!(story.send(), [1, 2]);
    story.write(1);
    assert_eq!(send_on(&mut story, second), [3]);
    let mut report = AckReport::pointer(1);
    report.received.push(3..4);
    story
        .at(50)
        .on_report(&report, |peer| peer.echoes_mark = true)
        .expect("possible");
    assert_eq!((marks(&story.script), marks(&script)), (0, 1));
    story.write(1);
    assert_eq!(send_on(&mut story, second), [4]);
    assert!(tells(&mut story, second, 4));
    let mut report = AckReport::pointer(1);
    report.received.push(3..5);
    story
        .at(100)
        .on_report(&report, |peer| peer.echoes_mark = true)
        .expect("possible");
    assert_eq!(marks(&script), 2, "a window later, whatever the first lane lacks");
}

/// The first lane's segments take the numbers that come next, so a number says nothing of what the receiver has heard on the second.
#[test]
fn an_echo_is_one_of_the_same_mark_until_its_own_lane_has_told_of_the_cut() {
    let (mut story, second, script) = two_lanes([100 * SEGMENT as u64; 2]);
    story.write(3);
    assert_eq!(send_on(&mut story, second), [1, 2, 3]);
    let on_report = |story: &mut Story, ms, pointer, blocks: &[(u64, u64)]| {
        let mut report = AckReport::pointer(pointer);
        let blocks = blocks.iter().map(|(from, to)| *from..*to);
        report.received.extend(blocks);
        story
            .at(ms)
            .on_report(&report, |peer| peer.echoes_mark = true)
            .expect("possible");
    };
    on_report(&mut story, 50, 2, &[]);
    assert_eq!(marks(&script), 1);
    story.write(2);
    assert_eq!(story.send(), [4, 5]);
    on_report(&mut story, 60, 3, &[]);
    story.write(1);
    assert_eq!(send_on(&mut story, second), [6]);
    assert!(tells(&mut story, second, 6));
    on_report(&mut story, 70, 4, &[]);
    assert_eq!(marks(&script), 1, "6 is on its way");
    on_report(&mut story, 120, 4, &[(6, 7)]);
    assert_eq!(marks(&script), 2);
    story.write(2);
    assert_eq!(story.send(), [7, 8]);
    on_report(&mut story, 130, 4, &[(6, 7)]);
    assert_eq!(marks(&script), 2, "nothing left by it since");
    assert_eq!(marks(&story.script), 0);
}

/// The first lane falls silent, and the second carries what it had out, for many round trips of its own. What it loses of its own
/// then is an episode all the same.
#[test]
fn what_a_lane_took_over_is_not_of_its_window() {
    let (mut story, second, script) = two_lanes([4 * SEGMENT as u64, 4 * SEGMENT as u64]);
    story.write(4);
    assert_eq!(story.send(), [1, 2, 3, 4]);
    story.write(4);
    assert_eq!(send_on(&mut story, second), [5, 6, 7, 8]);
    let on_report = |story: &mut Story, ms, blocks: &[(u64, u64)]| {
        let mut report = AckReport::pointer(1);
        let blocks = blocks.iter().map(|(from, to)| *from..*to);
        report.received.extend(blocks);
        story.at(ms).on_report(&report, |_| {}).expect("possible");
    };
    on_report(&mut story, 50, &[(6, 9)]);
    assert_eq!(losses(&script), [(LOST, 4 * SEGMENT as u64)]);
    story.sender.yield_lane();
    assert_eq!(send_on(&mut story, second), [1, 2, 3, 4]);
    script.lock().unwrap().window = 100 * SEGMENT as u64;
    assert_eq!(send_on(&mut story, second), [5]);
    story.write(4);
    assert_eq!(send_on(&mut story, second), [9, 10, 11, 12]);
    on_report(&mut story, 100, &[(2, 9), (10, 13)]);
    assert_eq!(
        losses(&script).len(),
        1,
        "9, though it carries 1 to 4, which the first lane lost"
    );
}
