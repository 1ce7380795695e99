//! Two lanes under one sender: numbers, data and credit are shared, windows, timers and losses are not
//! (Iyengar, Amer and Stewart 2006).

use super::*;
use crate::recovery::LaneId;

/// A second lane with a window and an ear of its own.
pub(super) fn second(story: &mut Story, window: u64) -> (LaneId, Arc<Mutex<Script>>) {
    let pipe = PipeParameters::new(Detail::Sack { max_blocks: 4 });
    let recovery = Recovery::new(RecoveryChoice::Pipe, FastRecovery::NewReno, true, pipe);
    second_with(story, window, recovery)
}

/// The same with another way of finding losses.
pub(super) fn second_with(
    story: &mut Story,
    window: u64,
    recovery: Recovery,
) -> (LaneId, Arc<Mutex<Script>>) {
    let script = Arc::new(Mutex::new(Script {
        window,
        ..Script::default()
    }));
    let controller = Controller::Custom(Box::new(Scripted(Arc::clone(&script))));
    let id = story
        .sender
        .open_lane(story.now, recovery, controller, RtoParameters::default());
    (id.expect("room for a second lane"), script)
}

pub(super) fn two_lanes(windows: [u64; 2]) -> (Story, LaneId, Arc<Mutex<Script>>) {
    let setup = Setup {
        recovery: RecoveryChoice::Pipe,
        ..Setup::segments().with_window(windows[0])
    };
    let mut story = setup.established();
    let (id, script) = second(&mut story, windows[1]);
    (story, id, script)
}

/// Numbers of all that leaves now by `lane`.
pub(super) fn send_on(story: &mut Story, lane: LaneId) -> Vec<u64> {
    let now = story.now;
    std::iter::from_fn(|| story.sender.on(lane, |sender| sender.next(now, false)))
        .map(|sent| match sent {
            Transmission::Segment(segment) => segment.number.expect("segments have numbers"),
            other => panic!("{other:?}"),
        })
        .collect()
}

/// What a controller heard of losses since it was asked last, and what it could see in flight.
pub(super) fn losses(script: &Arc<Mutex<Script>>) -> Vec<(CongestionEvent, u64)> {
    let heard = std::mem::take(&mut script.lock().unwrap().heard);
    let of_interest = |event: &CongestionEvent| {
        matches!(
            event,
            CongestionEvent::Lost { .. } | CongestionEvent::Timeout { .. }
        )
    };
    heard
        .into_iter()
        .filter(|heard| of_interest(&heard.event))
        .map(|heard| (heard.event, heard.in_flight_bytes))
        .collect()
}

pub(super) const LOST: CongestionEvent = CongestionEvent::Lost {
    bytes: SEGMENT as u64,
};

#[test]
fn each_lane_fills_its_own_window_from_the_shared_data() {
    let (mut story, second, _) = two_lanes([3 * SEGMENT as u64, 2 * SEGMENT as u64]);
    story.write(10);
    assert_eq!(story.send(), [1, 2, 3]);
    assert_eq!(send_on(&mut story, second), [4, 5]);
    assert_eq!(story.sender.in_flight(), 3);
    assert_eq!(story.sender.on(second, |sender| sender.in_flight()), 2);
    let mut report = AckReport::pointer(1);
    report.received.push(4..5);
    story.at(50).on_report(&report, |_| {}).expect("possible");
    assert_eq!(
        story.send(),
        [] as [u64; 0],
        "the first lane is as full as before"
    );
    assert_eq!(send_on(&mut story, second), [6]);
}

/// Segments 1 to 4 are on a slow lane. What arrives by the other says nothing about them.
#[test]
fn what_another_lane_has_overtaken_is_late_and_not_lost() {
    let (mut story, second, script) = two_lanes([100 * SEGMENT as u64; 2]);
    story.write(4);
    assert_eq!(story.send(), [1, 2, 3, 4]);
    story.write(8);
    assert_eq!(send_on(&mut story, second).len(), 8);
    story.at(20).sack(1, 5..13);
    assert_eq!(story.sender.counters().lost_packets, 0);
    assert!(losses(&story.script).is_empty() && losses(&script).is_empty());
    story.at(100).sack(1, 2..13);
    assert_eq!(
        losses(&story.script),
        [(LOST, 4 * SEGMENT as u64)],
        "its own lane has"
    );
    assert!(losses(&script).is_empty(), "the cut is the first lane's");
}

#[test]
fn a_lost_segment_leaves_again_by_the_lane_that_is_asked_first() {
    let (mut story, second, script) = two_lanes([4 * SEGMENT as u64, 100 * SEGMENT as u64]);
    story.write(4);
    story.send();
    story.at(100).sack(1, 2..5);
    assert_eq!(send_on(&mut story, second), [1]);
    assert_eq!(story.sender.in_flight(), 0);
    assert_eq!(story.sender.on(second, |sender| sender.in_flight()), 1);
    // Lost again: the second lane finds it by what it sent later, and answers for it.
    story.write(4);
    assert_eq!(send_on(&mut story, second), [5, 6, 7, 8]);
    losses(&story.script);
    story.at(150).sack(1, 2..9);
    assert_eq!(losses(&script), [(LOST, 5 * SEGMENT as u64)]);
    assert!(losses(&story.script).is_empty());
    assert_eq!(story.send(), [1]);
}

#[test]
fn a_timer_takes_what_left_by_its_own_lane_for_lost() {
    let (mut story, second, script) = two_lanes([2 * SEGMENT as u64; 2]);
    story.write(6);
    assert_eq!(story.send(), [1, 2]);
    story.at(100);
    assert_eq!(send_on(&mut story, second), [3, 4]);
    assert_eq!(story.expire(), TimeoutOutcome::Lost);
    assert_eq!(story.now, at(300));
    let timeout = CongestionEvent::Timeout { repeated: false };
    assert_eq!(losses(&story.script), [(timeout, 2 * SEGMENT as u64)]);
    assert!(losses(&script).is_empty());
    assert_eq!(story.sender.on(second, |sender| sender.in_flight()), 2);
    assert_eq!(story.send(), [1], "one at a time until something is acknowledged");
    assert!(!story.sender.on(second, |sender| sender.is_failing()));
}

/// CMT §2.7: what has just come to a lane has not had the time to be answered.
#[test]
fn a_timer_spares_what_left_less_than_a_round_trip_ago() {
    let lost = |spares_fresh| {
        let mut setup = Setup {
            recovery: RecoveryChoice::Pipe,
            ..Setup::segments().with_window(100 * SEGMENT as u64)
        };
        setup.parameters.spares_fresh = spares_fresh;
        let mut story = setup.established();
        second(&mut story, 100 * SEGMENT as u64);
        story.write(1);
        story.send();
        story.at(50).ack(2);
        story.write(2);
        story.send();
        let due = story.sender.deadline().expect("a timer").0;
        story.now = due - ms(10);
        story.write(2);
        story.send();
        assert_eq!(story.expire(), TimeoutOutcome::Lost);
        (story.sender.counters().lost_packets, story.sender.in_flight())
    };
    assert_eq!((lost(true), lost(false)), ((2, 2), (4, 0)));
}

/// A lane whose timer ran out too often is dead. Its data leaves by the other; it is asked whether it lives, and does again
/// with the first answer. Without any other lane that would be the end.
#[test]
fn a_dead_lane_hands_its_data_over_and_the_sender_goes_on() {
    let (mut story, second, _) = two_lanes([100 * SEGMENT as u64; 2]);
    story.write(2);
    assert_eq!(send_on(&mut story, second), [1, 2]);
    let mut timeouts = 0;
    while !story.sender.on(second, |sender| sender.is_in_outage()) {
        assert_ne!(story.sender.deadline(), None, "a timer runs until it is dead");
        assert!(!matches!(story.expire(), TimeoutOutcome::GivesUp(_)));
        send_on(&mut story, second);
        timeouts += 1;
        assert!(timeouts < 100);
    }
    assert_eq!(story.send(), [1, 2]);
    story.write(1);
    assert_eq!(
        send_on(&mut story, second),
        [] as [u64; 0],
        "nothing new leaves by it"
    );
    assert_eq!(story.send(), [3]);
    let now = story.now + ms(100);
    story.now = now;
    story.ack(4);
    assert!(story.sender.is_drained());
}

/// Bytes that a controller heard of as delivered since it was asked last, report by report.
fn delivered(script: &Arc<Mutex<Script>>) -> Vec<u64> {
    let heard = std::mem::take(&mut script.lock().unwrap().heard);
    let bytes = |heard: Heard| match heard.event {
        CongestionEvent::Acked { bytes, .. } => Some(bytes),
        _ => None,
    };
    heard.into_iter().filter_map(bytes).collect()
}

#[test]
fn a_report_tells_each_lane_of_its_own_deliveries_and_round_trip() {
    let (mut story, second, script) = two_lanes([100 * SEGMENT as u64; 2]);
    story.write(3);
    assert_eq!(story.send(), [1, 2, 3]);
    story.at(60).write(2);
    assert_eq!(send_on(&mut story, second), [4, 5]);
    story.at(80).ack(6);
    assert_eq!(
        (delivered(&story.script), delivered(&script)),
        (vec![3000], vec![2000])
    );
    assert_eq!(
        story.sender.on(second, |sender| sender.smoothed_rtt()),
        Some(ms(20))
    );
    let smoothed = Duration::from_micros(97_500);
    assert_eq!(
        story.sender.smoothed_rtt(),
        Some(smoothed),
        "7/8 of 100 ms and 1/8 of 80 ms"
    );
}

/// RFC 9260 §6.3.2: a timer watches what is outstanding by its own lane, from when that left.
#[test]
fn a_timer_begins_afresh_where_another_lane_took_over_what_it_watched() {
    let (mut story, second, _) = two_lanes([100 * SEGMENT as u64; 2]);
    story.write(4);
    assert_eq!(send_on(&mut story, second), [1, 2, 3, 4]);
    story.at(100).sack(1, 2..5);
    assert_eq!(story.send(), [1]);
    story.at(390).write(1);
    let timer = |story: &mut Story| story.sender.on(second, |sender| sender.lane.rto.deadline());
    let running = timer(&mut story).expect("since the loss was found");
    assert_eq!(send_on(&mut story, second), [5]);
    assert!(timer(&mut story).expect("it watches 5") > running + ms(200));
}

/// RFC 9260 §6.3.2 (R4).
#[test]
fn what_the_peer_discarded_of_a_lane_at_rest_has_a_timer() {
    let (mut story, second, _) = two_lanes([100 * SEGMENT as u64; 2]);
    story.write(1);
    assert_eq!(story.send(), [1]);
    story.write(2);
    assert_eq!(send_on(&mut story, second), [2, 3]);
    story.at(50).sack(1, 2..4);
    assert_eq!(story.sender.renege(at(60), &(2..4)), 2);
    story.at(90).ack(2);
    assert!(story.retransmission_at().is_some(), "the first lane is through");
    assert_eq!(story.expire(), TimeoutOutcome::Lost);
    assert_eq!(story.send(), [2, 3]);
}

#[test]
fn what_arrives_by_another_lane_does_not_revive_a_dead_one() {
    let (mut story, second, _) = two_lanes([SEGMENT as u64, 100 * SEGMENT as u64]);
    story.write(3);
    assert_eq!(send_on(&mut story, second), [1, 2, 3]);
    story.sender.on(second, |sender| sender.probe_only(at(0)));
    story.write(20);
    for number in 4..20 {
        assert_eq!(story.send(), [number]);
        story.at(200 * number);
        story.sender.on_deadline(story.now);
        send_on(&mut story, second);
        story.sack(1, 4..number + 1);
    }
    assert!(story.sender.on(second, |sender| sender.is_in_outage()));
    story.at(4100).sack(1, 3..20); // the probe was the last of its lane
    assert!(!story.sender.on(second, |sender| sender.is_in_outage()));
}

/// Nothing is ever answered. What a dead lane carried goes to the other, and back.
#[test]
fn a_sender_whose_lanes_have_all_failed_gives_up() {
    let (mut story, second, _) = two_lanes([4 * SEGMENT as u64; 2]);
    story.write(1);
    let mut timeouts = 0;
    loop {
        send_on(&mut story, second);
        story.send();
        if let TimeoutOutcome::GivesUp(silence) = story.expire() {
            assert_eq!(silence, story.now.since(at(0)));
            break;
        }
        timeouts += 1;
        assert!(timeouts < 1000, "for ever");
    }
}

/// An idle lane that takes up work is no sign of life.
#[test]
fn only_acknowledgements_and_the_first_segment_outstanding_are_progress() {
    let (mut story, second, _) = two_lanes([SEGMENT as u64; 2]);
    story.write(1);
    send_on(&mut story, second);
    story.at(100).ack(2);
    story.at(1000).write(2);
    assert_eq!(story.send(), [2]);
    story.at(5000);
    assert_eq!(send_on(&mut story, second), [3]);
    assert_eq!(story.sender.progress_at(), at(1000));
}

/// Reports and timers are of all lanes, whichever is in hand, and a question may hold others.
#[test]
fn questions_may_be_nested() {
    let (mut story, second, _) = two_lanes([3 * SEGMENT as u64, 2 * SEGMENT as u64]);
    let (third, _) = self::second(&mut story, SEGMENT as u64);
    story.write(10);
    story.send();
    send_on(&mut story, second);
    send_on(&mut story, third);
    let flights = story.sender.on(second, |sender| {
        let others = [LaneId::FIRST, third, second].map(|id| sender.on(id, |sender| sender.in_flight()));
        (others, sender.in_flight())
    });
    assert_eq!(flights, ([3, 1, 2], 2));
    let report = AckReport::pointer(7);
    let peer = PeerReport {
        report: &report,
        grant: None,
        is_bare_duplicate: true,
        echoed_rtt: None,
        echoes_mark: false,
        repaired: 0,
    };
    let now = at(50);
    let heard = story.sender.on(third, |sender| sender.on_feedback(now, &peer));
    heard.expect("possible");
    for (id, rtt) in [(LaneId::FIRST, 93_750), (second, 50_000), (third, 50_000)] {
        let smoothed = story.sender.on(id, |sender| sender.smoothed_rtt());
        assert_eq!(smoothed, Some(Duration::from_micros(rtt)), "once for each");
    }
}

#[test]
fn lanes_are_for_what_leaves_again() {
    let setup = Setup::segments().with(|parameters| parameters.retransmits = false);
    let mut story = setup.established();
    let recovery = Recovery::Timer(Default::default());
    let controller = Controller::Custom(Box::new(Scripted(Arc::default())));
    let opened = story
        .sender
        .open_lane(at(0), recovery, controller, RtoParameters::default());
    assert_eq!(opened, None);
}

#[test]
fn what_is_given_up_is_not_sent_again_and_what_the_peer_discarded_is_in_flight_again() {
    let (mut story, second, _) = two_lanes([100 * SEGMENT as u64; 2]);
    story.write(8);
    assert_eq!(story.send().len(), 8);
    story.at(100).sack(1, 2..9);
    assert!(story.sender.give_up(1) && !story.sender.give_up(1));
    assert_eq!(send_on(&mut story, second), [] as [u64; 0]);
    assert_eq!(story.sender.in_flight(), 0);
    assert_eq!(story.sender.renege(story.now, &(4..6)), 2);
    assert_eq!(story.sender.in_flight(), 2);
    story.at(1000);
    assert_eq!(story.expire(), TimeoutOutcome::Lost);
    assert_eq!(story.send(), [4], "and is lost when nobody acknowledges it");
}
