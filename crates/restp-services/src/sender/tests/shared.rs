//! Lanes whose paths come and go, and of which a scheduler above gives out new data: those of ResTP's shared numbers (OP-54; Iyengar,
//! Amer and Stewart, ToN 14(5), 2006).

use super::lanes::{losses, second, send_on, two_lanes};
use super::*;
use crate::recovery::LaneId;

const WIDE: u64 = 100 * SEGMENT as u64;

/// Numbers of what leaves by the lane in hand of its `share`.
fn send_of(story: &mut Story, share: LaneShare) -> Vec<u64> {
    let now = story.now;
    std::iter::from_fn(|| story.sender.next_of(now, share, false))
        .filter_map(|sent| match sent {
            Transmission::Segment(segment) => segment.number,
            _ => None,
        })
        .collect()
}

#[test]
fn what_a_silent_lane_carries_leaves_by_another_and_no_window_is_cut() {
    let (mut story, second, script) = two_lanes([WIDE; 2]);
    story.write(4);
    assert_eq!(story.send(), [1, 2, 3, 4]);
    assert_eq!(story.sender.yield_lane(), 4);
    assert_eq!((story.sender.in_flight(), story.sender.is_quiet()), (0, true));
    assert_eq!(story.sender.deadline(), None, "its timer has nothing to wait for");
    assert_eq!(send_on(&mut story, second), [1, 2, 3, 4]);
    assert_eq!(story.sender.counters().lost_packets, 0);
    story.at(150).ack(5);
    assert!(losses(&story.script).is_empty() && losses(&script).is_empty());
    assert!(story.sender.is_drained());
}

#[test]
fn a_lane_whose_answers_take_another_way_finds_its_shortest_round_trip_anew() {
    let (mut story, _, _) = two_lanes([WIDE; 2]);
    assert_eq!(story.sender.minimum_rtt(), Some(ms(100)));
    story.heard();
    story.sender.on_route_change(at(10));
    assert_eq!(story.sender.minimum_rtt(), None);
    let events: Vec<_> = story.heard().iter().map(|heard| heard.event).collect();
    assert_eq!(events, [CongestionEvent::RouteChanged]);
    story.at(10).write(1).send();
    story.at(170).ack(2);
    assert_eq!(story.sender.minimum_rtt(), Some(ms(160)));
}

#[test]
fn new_data_leaves_by_a_lane_whose_share_it_is_and_nothing_by_one_without() {
    let (mut story, second, _) = two_lanes([WIDE; 2]);
    story.write(3);
    assert_eq!(send_on(&mut story, second), [1, 2, 3]);
    story.sender.on(second, Sender::yield_lane);
    story.write(1);
    assert!(send_of(&mut story, LaneShare::Nothing).is_empty());
    assert_eq!(send_of(&mut story, LaneShare::Repairs), [1, 2, 3]);
    assert_eq!(send_of(&mut story, LaneShare::All), [4]);
}

#[test]
fn a_lane_that_is_given_to_another_path_knows_nothing_of_the_last_one() {
    let (mut story, second, _) = two_lanes([WIDE; 2]);
    story.write(2);
    send_on(&mut story, second);
    story.at(70).ack(3);
    assert!(story.sender.smoothed_rtt_of(second).is_some());
    story.sender.on(second, Sender::close_lane);
    let script = Arc::new(Mutex::new(Script {
        window: SEGMENT as u64,
        ..Script::default()
    }));
    let controller = Controller::Custom(Box::new(Scripted(script)));
    let pipe = PipeParameters::new(Detail::Sack { max_blocks: 4 });
    let recovery = Recovery::new(RecoveryChoice::Pipe, FastRecovery::NewReno, true, pipe);
    let now = story.now;
    story
        .sender
        .renew_lane(now, second, recovery, controller, RtoParameters::default());
    assert_eq!(story.sender.smoothed_rtt_of(second), None);
    let rtt = ms(30);
    story.sender.on(second, |lane| lane.begin_lane(now, Some(rtt)));
    assert_eq!(story.sender.smoothed_rtt_of(second), Some(rtt));
    story.write(3);
    assert_eq!(send_on(&mut story, second), [3], "its window is the new one's");
}

/// One lane times out too often; the other has no path, so it does not count.
#[test]
fn a_lane_without_a_path_does_not_keep_the_sender_from_giving_up() {
    let setup = Setup {
        recovery: RecoveryChoice::Pipe,
        rto: RtoParameters {
            attempts: 1,
            ..RtoParameters::default()
        },
        ..Setup::segments()
    };
    let mut story = setup.established();
    let (other, _) = second(&mut story, WIDE);
    story.sender.on(other, Sender::close_lane);
    story.write(1);
    assert_eq!(story.send(), [1]);
    assert_eq!(story.expire(), TimeoutOutcome::Lost);
    story.send();
    assert!(matches!(story.expire(), TimeoutOutcome::GivesUp(_)));
}

#[test]
fn a_mark_that_is_echoed_by_a_path_cuts_the_window_of_its_lane_alone() {
    let (mut story, second, script) = two_lanes([WIDE; 2]);
    story.write(4);
    story.send();
    let now = story.now;
    story.sender.on(second, |lane| lane.on_lane_mark(now));
    let marks = |script: &Arc<Mutex<Script>>| {
        let heard = &script.lock().unwrap().heard;
        let is_mark = |heard: &&Heard| matches!(heard.event, CongestionEvent::Marked { .. });
        heard.iter().filter(is_mark).count()
    };
    assert_eq!((marks(&story.script), marks(&script)), (0, 1));
}

#[test]
fn a_limited_segment_ends_where_the_limit_is() {
    let (mut story, ..) = two_lanes([WIDE; 2]);
    story.write(2);
    story.sender.limit_new(Some(10));
    assert_eq!(story.sender.next_new_bytes(false), Some(10));
    story.sender.limit_new(None);
    assert_eq!(story.sender.next_new_bytes(false), Some(SEGMENT as u64));
}

/// Every segment of the slow lane fills a hole, and the pointer passes what the fast one has delivered long before.
#[test]
fn a_segment_that_fills_a_hole_tells_the_round_trip_of_its_lane_where_reports_name_all() {
    for trusts in [false, true] {
        let (mut story, second, _) = two_lanes([WIDE; 2]);
        if trusts {
            story.sender.trust_blocks();
        }
        story.write(1);
        assert_eq!(send_on(&mut story, second), [1]);
        story.write(1);
        assert_eq!(story.send(), [2]);
        story.at(20).sack(1, 2..3);
        story.at(300).ack(3);
        let measured = story.sender.smoothed_rtt_of(second);
        assert_eq!(measured, trusts.then_some(ms(300)));
    }
}

#[test]
fn what_has_not_left_by_others_is_on_its_way_when_the_lane_answers() {
    let (mut story, second, _) = two_lanes([WIDE, SEGMENT as u64]);
    story.write(3);
    assert_eq!(story.send(), [1, 2, 3]);
    story.sender.yield_lane();
    assert_eq!(send_on(&mut story, second), [1], "there is no room for more");
    story.at(400).sack(1, 3..4);
    let now = story.now;
    story.sender.resume_lane(now, Some(ms(400)));
    assert_eq!(story.sender.in_flight(), 1);
    assert!(story.send().is_empty(), "nothing leaves twice");
    assert_eq!(story.sender.expected_rtt(), Some(ms(400)));
}

/// Each wait for what was lost made the next one longer, without end.
#[test]
fn a_silence_is_a_round_trip_up_to_twice_the_timer() {
    for (silence, counts) in [(1_200, true), (1_201, false)] {
        let (mut story, _, _) = two_lanes([WIDE; 2]);
        story.sender.lane.rtt.restart(ms(200));
        assert_eq!(story.sender.timeout(), ms(600));
        story.write(1).send();
        story.sender.yield_lane();
        story.at(silence).ack(2);
        story.sender.lane.rtt.restart(ms(200));
        let now = story.now;
        story.sender.resume_lane(now, Some(ms(silence)));
        let expected = if counts { silence } else { 200 };
        assert_eq!(story.sender.expected_rtt(), Some(ms(expected)));
    }
}

/// The lane is asked whenever it is silent, answers that, and is believed: the peer has nothing of what it carried.
#[test]
fn a_lane_that_answers_only_questions_finds_what_it_lost_by_its_timer() {
    let (mut story, second, _) = two_lanes([WIDE, SEGMENT as u64]);
    story.write(1);
    assert_eq!(send_on(&mut story, second), [1], "it is full");
    story.write(3);
    assert_eq!(story.send(), [2, 3, 4]);
    let (expires_at, rtt) = (story.sender.deadline(), story.sender.expected_rtt());
    for silence in [50, 100, 150] {
        story.at(silence);
        let now = story.now;
        story.sender.yield_lane();
        assert!(send_on(&mut story, second).is_empty(), "there is no room");
        story.sender.resume_lane(now, Some(ms(silence)));
        assert_eq!(story.sender.deadline(), expires_at, "it goes on where it was");
    }
    assert_eq!(story.sender.expected_rtt(), rtt, "silence is no round trip");
    assert_eq!(story.expire(), TimeoutOutcome::Lost);
    assert_eq!(story.send(), [2]);
}

/// Only one path is up, and taken for dead: it comes back by answers that are news, or by those to questions.
#[test]
fn a_path_that_shares_its_numbers_with_none_yet_comes_back_as_one_of_several() {
    let setup = Setup {
        recovery: RecoveryChoice::Pipe,
        ..Setup::segments()
    };
    let mut story = setup.established();
    story.sender.trust_blocks();
    story.write(3);
    assert_eq!(story.send(), [1, 2, 3]);
    story.at(10).sack(1, 3..4);
    let now = story.now;
    story.sender.probe_lane_only(now);
    assert_eq!(story.expire(), TimeoutOutcome::Nothing);
    assert_eq!(story.send(), [2], "that 3 has arrived is known");
    assert!(!story.sender.is_quiet());
    story.sender.retransmit_all();
    assert!(
        story.sender.is_quiet(),
        "nothing is on its way that could be answered"
    );
}

/// Its timer has stopped, and questions of another kind wait until it asks no more.
#[test]
fn a_lane_taken_for_dead_is_not_probed_when_others_have_brought_all_it_carried() {
    let (mut story, second, _) = two_lanes([WIDE; 2]);
    story.write(2);
    assert_eq!(story.send(), [1, 2]);
    let now = story.now;
    story.sender.probe_lane_only(now);
    story.expire();
    assert_eq!(story.send(), [2]);
    story.sender.yield_lane();
    assert_eq!(send_on(&mut story, second), [1, 2]);
    assert!(story.sender.is_in_outage());
    story.at(1500).ack(3);
    assert!(story.sender.is_drained() && !story.sender.is_in_outage());
}

/// Both lanes have every hole retransmitted at once, as partial reliability does.
fn two_lanes_in_time() -> (Story, LaneId) {
    let pipe = PipeParameters::new(Detail::Sack { max_blocks: 32 }).in_time();
    let recovery = || Recovery::new(RecoveryChoice::Pipe, FastRecovery::NewReno, true, pipe);
    let (mut story, second, _) = two_lanes([WIDE; 2]);
    story.sender.lane.recovery = recovery();
    let id = second;
    story.sender.on(id, |sender| sender.lane.recovery = recovery());
    story.sender.trust_blocks();
    (story, second)
}

/// Numbers 1 and 2 are on a slow lane; 3, 4 and 5 are on a fast one.
#[test]
fn a_hole_is_retransmitted_at_once_when_its_own_lane_shows_it() {
    let (mut story, second) = two_lanes_in_time();
    story.write(2);
    assert_eq!(story.send(), [1, 2]);
    story.write(3);
    assert_eq!(send_on(&mut story, second), [3, 4, 5]);
    story.at(20).sack(1, 4..6);
    assert_eq!(
        story.sender.lost_on(second),
        1,
        "3: later ones have come by its lane"
    );
    assert_eq!(
        story.sender.lost_on(LaneId::FIRST),
        0,
        "nothing is known of 1 and 2"
    );
    assert_eq!(send_on(&mut story, second), [3]);
    story.at(100).sack(1, 2..6);
    assert_eq!(story.sender.lost_on(LaneId::FIRST), 1);
    assert_eq!(story.send(), [1]);
}

/// Its timer does not run out meanwhile, and the others do not wait.
#[test]
fn a_retransmission_that_is_lost_again_and_again_holds_up_nothing_else() {
    let (mut story, second) = two_lanes_in_time();
    story.write(1);
    assert_eq!(story.send(), [1]);
    for number in 2..40 {
        story.write(1);
        assert!(story.send().contains(&number));
        story.at(60 * number);
        if number > 2 {
            story.sack(1, 2..number); // the last one is still under way
        }
        let now = story.now;
        story.sender.on_deadline(now);
    }
    assert_eq!(story.sender.counters().timeouts, 0);
    assert!(story.sender.counters().retransmitted_packets > 10);
    assert!(story.sender.on(second, |lane| lane.is_quiet()));
}

/// Published compositions keep their timers: over one path only the pointer restarts it (RFC 6298 (5.3)).
#[test]
fn over_one_path_what_is_named_beyond_the_pointer_restarts_no_timer() {
    let mut story = Setup {
        recovery: RecoveryChoice::Pipe,
        ..Setup::segments()
    }
    .established();
    let pipe = PipeParameters::new(Detail::Sack { max_blocks: 32 }).in_time();
    story.sender.lane.recovery = Recovery::new(RecoveryChoice::Pipe, FastRecovery::NewReno, true, pipe);
    story.write(3);
    assert_eq!(story.send(), [1, 2, 3]);
    story.at(50).sack(1, 2..3);
    assert_eq!(story.send(), [1]);
    let deadline = story.sender.deadline();
    story.at(60).sack(1, 2..4);
    assert_eq!(story.sender.deadline(), deadline);
}

/// It is no younger for leaving again by the same lane.
#[test]
fn what_leaves_again_by_a_silent_lane_waits_since_it_left_first() {
    let (mut story, second, _) = two_lanes([WIDE; 2]);
    story.write(2);
    assert_eq!(story.send(), [1, 2]);
    let since = |story: &Story| story.sender.unanswered(None).map(|due| due.since);
    assert_eq!(since(&story), Some(ms_at(0)));
    story.at(100).sender.retransmit_all();
    assert_eq!(story.send(), [1, 2]);
    assert_eq!(since(&story), Some(ms_at(0)));
    assert_eq!(
        story.sender.carries_since(),
        Some(ms_at(100)),
        "it is no round trip from the first time on"
    );
    story.at(150).ack(3);
    assert_eq!(story.sender.carries_since(), None);
    story.at(900).write(1);
    assert_eq!(story.send(), [3]);
    assert_eq!(
        since(&story),
        Some(ms_at(900)),
        "what was answered counts no more"
    );
    story.at(950).sender.yield_lane();
    assert_eq!(send_on(&mut story, second), [3]);
    story.at(2000).ack(4);
    story.write(1);
    assert_eq!(story.send(), [4]);
    assert_eq!(since(&story), Some(ms_at(2000)), "others have brought it");
}

fn ms_at(ms: u64) -> Time {
    Time::ZERO + Duration::from_millis(ms)
}
