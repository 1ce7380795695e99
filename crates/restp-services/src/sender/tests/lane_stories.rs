//! Lanes over random delays and losses, and lanes that fall silent (Iyengar, Amer and Stewart 2006).

use super::lanes::{send_on, two_lanes};
use super::*;
use crate::ack::Uncarried;
use crate::recovery::LaneId;
use restp_base::random::Stream;
use restp_base::ranges::Ranges;
use std::collections::BTreeMap;

/// What is under way on one lane: first in, first out, after a delay of its own.
struct Line {
    id: LaneId,
    delay: Duration,
    under_way: BTreeMap<(Time, u64), u64>,
}

/// Two lanes of unequal delay that keep order and lose segments at random. The peer reports each arrival with the three
/// newest blocks. Whatever is found lost was dropped, nothing flies beyond a window, and all of it arrives.
#[test]
fn only_what_was_dropped_is_found_lost_whatever_the_delays() {
    for seed in 0..200 {
        let mut chance = Stream::named(seed, "lanes");
        let windows = [1 + chance.below(20), 1 + chance.below(20)].map(|segments| segments * SEGMENT as u64);
        let (mut story, second, _) = two_lanes(windows);
        let mut lines = [LaneId::FIRST, second].map(|id| Line {
            id,
            delay: ms(5 + chance.below(60)),
            under_way: BTreeMap::new(),
        });
        let (mut arrived, mut dropped, mut order) = (Ranges::new(), 0_u64, 0);
        story.write(100);
        while !story.sender.is_drained() || !story.sender.has_nothing_queued() {
            for (line, window) in lines.iter_mut().zip(windows) {
                for number in send_on(&mut story, line.id) {
                    order += 1;
                    if chance.chance(0.05) {
                        dropped += 1;
                    } else {
                        line.under_way.insert((story.now + line.delay, order), number);
                    }
                }
                let in_flight = story.sender.on(line.id, |sender| sender.in_flight());
                assert!(
                    in_flight * SEGMENT as u64 <= window + SEGMENT as u64,
                    "seed {seed}"
                );
            }
            let next = |line: &Line| line.under_way.first_key_value().map(|((at, _), _)| *at);
            let arrival = lines.iter().filter_map(next).min();
            let timer = story.sender.deadline().map(|(at, _)| at);
            let now = arrival.into_iter().chain(timer).min().expect("not stuck");
            story.now = story.now.max(now);
            if arrival == Some(now) {
                let line = lines
                    .iter_mut()
                    .find(|line| next(line) == Some(now))
                    .expect("found");
                let (_, number) = line.under_way.pop_first().expect("found");
                arrived.insert(number..number + 1);
                let pointer = arrived.covering(1).map_or(1, |range| range.end);
                let mut report = AckReport::pointer(pointer);
                report
                    .received
                    .extend(arrived.iter().filter(|range| range.start > pointer).cloned());
                story.on_report(&report, |_| {}).expect("possible");
            } else {
                // A whole window may be lost, or a retransmission.
                assert!(!matches!(
                    story.sender.on_deadline(now),
                    TimeoutOutcome::GivesUp(_)
                ));
            }
        }
        assert!(
            arrived.covering(1).is_some_and(|range| *range == (1..101)),
            "seed {seed}"
        );
        let counters = story.sender.counters();
        let by_timer = counters.timed_out_packets;
        assert!(
            counters.lost_packets - by_timer <= dropped,
            "seed {seed}: {dropped} dropped, {counters:?}"
        );
    }
}

/// All that it carries is rebuilt from what the other one brings: the silence is its own, and goes on while that is so.
#[test]
fn a_lane_whose_segments_are_rebuilt_is_silent_since_the_first_of_them() {
    let (mut story, second, _) = two_lanes([100 * SEGMENT as u64; 2]);
    let mut uncarried = Uncarried::default();
    let silence = |story: &mut Story, lane| {
        let unanswered = story.sender.on(lane, |sender| sender.unanswered(None));
        unanswered.map(|unanswered| unanswered.since)
    };
    for number in [1, 3, 5] {
        story.at(100 * number).write(1);
        assert_eq!(story.send(), [number]);
        story.write(1);
        assert_eq!(send_on(&mut story, second), [number + 1]);
        uncarried.insert(number);
        let report = AckReport {
            uncarried,
            ..AckReport::pointer(number + 2)
        };
        story
            .at(100 * number + 50)
            .on_report(&report, |_| ())
            .expect("possible");
        assert_eq!(silence(&mut story, LaneId::FIRST), Some(at(100)), "{number}");
        assert_eq!(silence(&mut story, second), None);
    }
    story.at(600).write(1);
    assert_eq!(story.send(), [7]);
    let report = AckReport {
        uncarried,
        ..AckReport::pointer(8)
    };
    story.at(650).on_report(&report, |_| ()).expect("possible");
    assert_eq!(silence(&mut story, LaneId::FIRST), None, "it answers");
}

/// What left before it was found silent says nothing of it afterwards.
#[test]
fn what_a_lane_lost_before_it_was_taken_up_again_is_no_new_silence() {
    let (mut story, second, _) = two_lanes([100 * SEGMENT as u64; 2]);
    let mut uncarried = Uncarried::default();
    let mut names = |story: &mut Story, time: u64, number: u64, pointer: u64| {
        uncarried.insert(number);
        let report = AckReport {
            uncarried,
            ..AckReport::pointer(pointer)
        };
        story.at(time).on_report(&report, |_| ()).expect("possible");
        silence_of_first(story)
    };
    story.at(100).write(1);
    assert_eq!(story.send(), [1]);
    story.write(1);
    assert_eq!(send_on(&mut story, second), [2]);
    story.write(1);
    assert_eq!(story.send(), [3]);
    assert_eq!(names(&mut story, 150, 1, 3), Some(at(100)));
    story.sender.yield_lane();
    assert_eq!(silence_of_first(&mut story), None, "others carry it");
    assert_eq!(names(&mut story, 160, 3, 4), Some(at(100)));
    story.at(170).write(1);
    assert_eq!(story.send(), [4]);
    story.at(200).sender.resume_lane(at(200), None);
    assert_eq!(names(&mut story, 220, 4, 5), None);
}

fn silence_of_first(story: &mut Story) -> Option<Time> {
    let unanswered = story.sender.on(LaneId::FIRST, |sender| sender.unanswered(None));
    unanswered.map(|unanswered| unanswered.since)
}
