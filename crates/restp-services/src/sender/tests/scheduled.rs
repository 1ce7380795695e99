//! A scheduler gives lanes what is new (ResTP §3.5.10): what it leaves out is not limited by its window (RFC 7661 §4).

use super::lanes::{send_on, two_lanes};
use super::*;
use crate::multipath::{LanePath, LaneScheduler, Written};
use crate::path_management::PathMode;
use crate::recovery::LaneId;
use restp_base::machine::PathAddress;

/// The first lane and another one.
fn lanes(second: LaneId) -> [LanePath; 2] {
    let address = PathAddress {
        local: ([10, 0, 0, 1], 1).into(),
        remote: ([10, 0, 0, 2], 1).into(),
    };
    [(0, LaneId::nth(0)), (1, second)].map(|(ordinal, lane)| LanePath {
        ordinal,
        lane,
        address,
        share: ordinal,
    })
}

/// Of data that is of use until the `deadline`.
fn scheduler(deadline: Option<Duration>) -> LaneScheduler {
    let (mode, segment) = (PathMode::Spreading, SEGMENT as u32);
    LaneScheduler::new(mode, None, 1, segment, deadline, &mut Written::nothing())
}

fn choose(story: &mut Story, scheduler: &mut LaneScheduler, lanes: &[LanePath]) -> Option<usize> {
    scheduler.choose(story.now, &mut story.sender, lanes, false)
}

/// By the slow lane all would be late. It takes nothing, and its window has nothing to do with it (RFC 7661 §1).
#[test]
fn a_lane_that_is_too_slow_for_what_is_sent_is_not_limited_by_its_window() {
    let (mut story, slow, script) = two_lanes([SEGMENT as u64, 100 * SEGMENT as u64]);
    story.write(2);
    assert_eq!(send_on(&mut story, slow), [1, 2]);
    story.at(300).ack(2);
    let lanes = lanes(slow);
    let mut scheduler = scheduler(Some(ms(200)));
    story.write(5);
    assert_eq!(choose(&mut story, &mut scheduler, &lanes), Some(0));
    assert_eq!(scheduler.take_late().to_vec(), [1]);
    assert_eq!(story.segment(false).and_then(|segment| segment.number), Some(3));
    assert_eq!(choose(&mut story, &mut scheduler, &lanes), None);
    assert_eq!(scheduler.take_late().to_vec(), [1]);
    script.lock().unwrap().heard.clear();
    story.at(310).ack(3);
    let heard = script.lock().unwrap().heard.clone();
    assert!(matches!(heard[0].event, CongestionEvent::Acked { .. }));
    assert!(heard.iter().all(|heard| heard.application_limited), "{heard:?}");
}

/// What is chosen is in use, and so is what the next segment may be given.
#[test]
fn a_lane_is_passed_over_only_where_nothing_is_chosen() {
    let (mut story, second, _) = two_lanes([SEGMENT as u64; 2]);
    let mut scheduler = scheduler(None);
    story.write(2);
    let lanes = lanes(second);
    assert!(choose(&mut story, &mut scheduler, &lanes).is_some());
    for lane in lanes {
        assert!(
            !story
                .sender
                .on(lane.lane, |sender| sender.lane.gate.is_passed_over())
        );
    }
}
