//! Tails that are asked for, and loss episodes in which the window comes down in proportion (RFC 8985 §7, RFC 9937).

use super::*;

/// As a current TCP.
fn current() -> Setup {
    let mut setup = Setup::bytes().with(|parameters| {
        parameters.reduces_in_proportion = true;
        parameters.probes_tail = true;
        parameters.pointer_only = false;
    });
    setup.recovery = RecoveryChoice::Pipe;
    setup
}

fn losses(heard: &[Heard]) -> usize {
    let lost = |heard: &&Heard| matches!(heard.event, CongestionEvent::Lost { .. });
    heard.iter().filter(lost).count()
}

fn next_wakeup(story: &Story) -> Option<(Time, Wakeup)> {
    story.sender.deadline()
}

#[test]
fn a_silent_tail_is_asked_for_after_two_round_trips_and_the_timeout_waits() {
    let mut story = current().established();
    story.write(3).send();
    assert_eq!(next_wakeup(&story), Some((at(202), Wakeup::Probe)));
    assert_eq!(story.expire(), TimeoutOutcome::Nothing);
    assert_eq!(story.send(), [3], "the last one again");
    assert_eq!(
        story.retransmission_at(),
        Some(at(502)),
        "a timeout after the probe"
    );
    assert_eq!(story.expire(), TimeoutOutcome::Lost);
    assert_eq!(story.send(), [1]);
}

#[test]
fn new_data_is_asked_with_whatever_the_window_says() {
    let mut story = current().with_window(3000).established();
    story.write(5).send();
    story.at(202);
    story.expire();
    assert_eq!(story.send(), [4]);
    story.at(300).sack(1, 4..5);
    assert_eq!(story.sender.counters().retransmitted_packets, 0);
}

#[test]
fn the_peers_window_holds_a_probe_back_to_what_was_sent() {
    let mut story = current().with_credit(3000).established();
    story.write(5).send();
    story.expire();
    assert_eq!(story.send(), [3]);
}

/// What is lost of a tail shows at the probe's acknowledgement, by time: no timeout.
#[test]
fn a_lost_tail_is_repaired_without_a_timeout() {
    let mut story = current().judging(Reordering::Rack).established();
    story.write(6).send();
    story.at(100).ack(3);
    story.expire();
    assert_eq!(story.send(), [6]);
    story.at(402).sack(3, 6..7);
    assert_eq!(story.send(), [3], "one for the one that arrived");
    story.at(502).sack(4, 6..7);
    assert_eq!(story.send(), [4, 5]);
    assert_eq!(story.at(602).ack(7).sender.counters().timeouts, 0);
}

/// RFC 8985 §6.2: one later arrival, and a quarter of the shortest round trip.
#[test]
fn one_later_arrival_and_time_find_a_loss() {
    let mut story = current().judging(Reordering::Rack).established();
    story.write(1).send();
    story.at(10).write(1).send();
    story.at(110).sack(1, 2..3);
    assert_eq!(next_wakeup(&story), Some((at(125), Wakeup::Retransmission)));
    assert_eq!(story.send(), [0; 0]);
    story.expire();
    assert_eq!(story.send(), [1]);
    assert_eq!(story.sender.counters().timeouts, 0);
}

#[test]
fn a_probe_that_repaired_the_only_loss_costs_a_reduction_and_a_needless_one_none() {
    let reductions = |story: &Story| {
        let heard = story.heard();
        let ended = |heard: &&Heard| heard.event == CongestionEvent::RecoveryEnded;
        let reductions = losses(&heard);
        assert_eq!(heard.iter().filter(ended).count(), reductions, "at once");
        reductions
    };
    for needless in [false, true] {
        let mut story = current().established();
        story.write(1).send();
        story.expire();
        assert_eq!(story.send(), [1]);
        story.at(450).ack(2);
        if needless {
            story.at(460).ack(2);
        }
        story.at(500).write(2).send();
        story.at(600).ack(4);
        assert_eq!(reductions(&story), usize::from(!needless), "{needless}");
    }
}

/// RFC 8985 §7.4.2, case 1: data or a new window beside it hide that the pointer is repeated. The duplicate is named all the same.
#[test]
fn a_probe_that_is_named_as_a_duplicate_costs_no_reduction() {
    for named in [false, true] {
        let mut story = current().established();
        story.write(1).send();
        story.expire();
        assert_eq!(story.send(), [1]);
        story.at(450).ack(2);
        let report = AckReport {
            duplicates: if named { 1..2 } else { 0..0 },
            ..AckReport::pointer(2)
        };
        let heard = story
            .at(460)
            .on_report(&report, |peer| peer.is_bare_duplicate = false);
        assert!(heard.is_ok());
        story.at(500).write(2).send();
        story.at(600).ack(4);
        assert_eq!(losses(&story.heard()), usize::from(!named), "{named}");
    }
}

#[test]
fn what_is_being_repaired_is_not_asked_for() {
    let mut story = current().established();
    story.write(10).send();
    story.at(100).sack(1, 2..3);
    assert!(next_wakeup(&story).is_some_and(|(_, why)| why == Wakeup::Retransmission));
    story.sack(1, 4..7);
    assert!(next_wakeup(&story).is_some_and(|(_, why)| why == Wakeup::Retransmission));
}

/// Ten in flight, one lost, the window cut to five: for every two segments delivered one leaves, and none bursts.
#[test]
fn an_episode_sends_in_proportion_to_what_is_delivered() {
    let mut story = current().with_window(10_000).established();
    story.write(40).send();
    story.at(100).sack(1, 2..4);
    story.set_window(5000);
    let mut left = Vec::new();
    for last in 4..=10 {
        story.sack(1, 2..last + 1);
        left.push(story.send().len());
    }
    assert_eq!(left[0], 1, "the retransmission");
    assert!(left.iter().all(|n| *n <= 1), "{left:?}");
    assert_eq!(
        left.iter().sum::<usize>(),
        5,
        "half of nine that arrived: {left:?}"
    );
    story.at(200).ack(11);
    assert!(story.sender.in_flight() <= 5);
}

/// RFC 5682, RFC 3522: the delay grew, and the first segment was not lost.
#[test]
fn a_needless_timeout_is_taken_back_and_what_it_took_for_lost_does_not_leave_again() {
    let mut setup = current().with_window(5000);
    setup.parameters.probes_tail = false;
    let mut story = setup.judging(Reordering::Adaptive).established();
    story.write(8).send();
    story.at(300);
    assert_eq!(story.sender.on_deadline(story.now), TimeoutOutcome::Lost);
    assert_eq!(story.send(), [1]);
    story.at(330).ack(3);
    let heard: Vec<_> = story.heard().iter().map(|heard| heard.event).collect();
    assert!(heard.contains(&CongestionEvent::Restored), "{heard:?}");
    assert_eq!(story.send(), [6, 7], "new data, nothing again");
    assert_eq!(story.sender.counters().retransmitted_packets, 1);
}

/// The path is not asked for a segment when the deadline comes, but later, and an acknowledgement comes between.
#[test]
fn a_probe_that_has_not_left_when_its_answer_comes_does_not_leave() {
    let mut story = current().with_window(3000).established();
    story.write(5);
    assert_eq!(story.send(), [1, 2, 3]);
    story.expire();
    story.set_window(2000);
    story.at(203).ack(2);
    assert_eq!(story.send(), [0; 0], "no more than the window holds");
    assert_eq!(story.sender.counters().retransmitted_packets, 0);
}

#[test]
fn a_probe_is_charged_to_the_pacer() {
    let mut setup = current();
    setup.parameters.paces = true;
    let mut story = setup.established();
    story.set_rate(Rate::from_bps(8000)); // a segment per second, and eleven at once
    story.write(1).send();
    story.expire();
    assert_eq!(story.send(), [1]);
    assert_eq!(story.write(20).send().len(), 9);
}

#[test]
fn a_probe_that_an_episode_answers_costs_nothing_more() {
    let mut story = current().judging(Reordering::Rack).established();
    story.write(3).send();
    story.expire();
    assert_eq!(story.send(), [3]);
    story.at(402).sack(1, 3..4).send();
    story.at(502).ack(2).send();
    story.at(602).ack(4).write(2).send();
    story.at(702).ack(6);
    assert_eq!(losses(&story.heard()), 1);
}

#[test]
fn a_probe_that_a_timeout_answers_costs_nothing_more_and_none_follows() {
    let mut story = current().established();
    story.write(1).send();
    story.expire();
    assert_eq!(story.send(), [1]);
    assert_eq!(story.expire(), TimeoutOutcome::Lost);
    assert_eq!(story.send(), [1]);
    assert!(next_wakeup(&story).is_some_and(|(_, why)| why == Wakeup::Retransmission));
    story.at(2000).ack(2).write(1).send();
    story.at(2100).ack(3);
    assert_eq!(losses(&story.heard()), 0, "the timeout is what it costs");
}

/// RFC 9937 §6.2, SafeACK: progress that shows a further loss is replaced one for one.
#[test]
fn an_acknowledgement_that_shows_a_further_loss_lets_no_extra_segment_leave() {
    let mut story = current().with_window(10_000).established();
    story.write(40).send();
    story.set_window(100_000);
    story.at(100).sack(1, 2..5);
    assert_eq!(story.send(), [1, 11, 12]);
    story.at(150).sack(5, 6..9);
    assert_eq!(story.send(), [5, 13, 14, 15]);
}

#[test]
fn an_episode_that_time_begins_sends_in_proportion_too() {
    let mut setup = current().with_window(10_000).judging(Reordering::Rack);
    setup.parameters.probes_tail = false;
    let mut story = setup.established();
    story.write(20).send();
    story.at(100).sack(1, 2..3);
    story.set_window(9000);
    story.expire();
    assert_eq!(story.send(), [1], "and nothing new");
}

/// What time finds lost within an episode makes room for its retransmission.
#[test]
fn a_loss_that_time_finds_within_an_episode_leaves_at_once() {
    let mut story = current()
        .with_window(6000)
        .judging(Reordering::Rack)
        .established();
    story.write(6).send();
    story.at(50).write(0).at(100).sack(1, 2..5);
    assert_eq!(story.send(), [1]);
    story.write(3);
    assert_eq!(story.send(), [7, 8]);
    story.at(110).sack(1, 2..6);
    assert_eq!(story.send(), [9]);
    story.at(160).sack(1, 2..6);
    story.at(210).sack(1, 2..6);
    assert_eq!(story.send(), [0; 0]);
}

#[test]
fn a_peer_without_selective_acknowledgement_is_neither_probed_nor_sent_to_in_proportion() {
    let mut story = current().opening();
    let pipe = PipeParameters::new(Detail::Pointer);
    let recovery = Recovery::new(RecoveryChoice::DuplicateAck, FastRecovery::NewReno, true, pipe);
    story.sender.agree(SEGMENT as u32, recovery);
    let parameters = &story.sender.parameters;
    assert!(!parameters.probes_tail && !parameters.reduces_in_proportion);
}

/// Linux: sk_stream_is_writeable.
#[test]
fn a_third_of_a_send_buffer_that_holds_the_flight_has_to_be_free() {
    let mut story = current()
        .with(|parameters| {
            parameters.send_buffer = SendBuffer::of_flight(9 * SEGMENT);
        })
        .established();
    story.write(9).send();
    assert!(!story.sender.write(at(0), Bytes::from_static(b"more")));
    for (pointer, again) in [(3, false), (4, true)] {
        story.at(100).ack(pointer);
        assert_eq!(story.sender.takes_writes_again(), again);
    }
}

/// What the last acknowledgement of an episode shows to be lost begins another: whoever hears both hears the end first.
#[test]
fn an_episode_ends_before_the_next_one_begins() {
    let mut story = current().established();
    story.write(30).send();
    story.at(100).sack(1, 2..31);
    assert_eq!(story.send(), [1]);
    let next = story.write(8).send();
    assert!(next.len() > 5, "{next:?}");
    story.heard();
    story.at(200).sack(31, 33..31 + next.len() as u64);
    let events: Vec<_> = story.heard().iter().map(|heard| heard.event).collect();
    let at = |wanted: fn(&CongestionEvent) -> bool| events.iter().position(wanted);
    let ended = at(|event| *event == CongestionEvent::RecoveryEnded);
    let began = at(|event| matches!(event, CongestionEvent::Lost { .. }));
    assert!(ended.is_some() && ended < began, "{events:?}");
}
