//! The retransmission timer (RFC 6298 §5), and what a timeout lets out.

use super::*;

#[test]
fn the_timer_starts_with_the_first_segment_and_again_with_each_advance_of_the_pointer() {
    let mut story = Setup::segments().established();
    assert_eq!(story.write(1).send(), [1]);
    assert_eq!(story.retransmission_at(), Some(at(300)), "(5.1)");
    assert_eq!(story.at(100).write(1).send(), [2]);
    assert_eq!(story.at(120).ack(1).retransmission_at(), Some(at(300)));
    story.at(150).ack(2);
    assert_eq!(
        story.retransmission_at(),
        Some(at(150) + story.sender.timeout()),
        "(5.3)"
    );
    story.at(200).ack(3);
    assert_eq!(story.sender.deadline(), None, "(5.2)");
}

#[test]
fn the_timer_waits_for_the_set_up() {
    let mut story = Setup::segments().opening();
    assert_eq!(story.write(1).send(), [1]);
    assert_eq!(story.sender.deadline(), None);
    story.sender.establish(at(50), Some(ms(100)), false);
    assert_eq!(story.retransmission_at(), Some(at(350)));
}

#[test]
fn the_timer_of_a_sender_may_start_before_its_set_up_is_complete() {
    let mut story = Setup::segments().opening();
    story.sender.start_timer();
    story.write(1).send();
    assert_eq!(story.retransmission_at(), Some(at(1000)), "RFC 6298 (2.1)");
}

#[test]
fn a_set_up_that_was_retransmitted_measured_nothing_and_leaves_three_seconds() {
    let mut story = Setup::segments().opening();
    story.sender.establish(at(0), None, true);
    assert_eq!(story.sender.timeout(), Duration::from_secs(3), "RFC 6298 (5.7)");
}

#[test]
fn each_timeout_doubles_the_timer_and_the_last_attempt_gives_up() {
    let mut setup = Setup::segments();
    setup.rto.attempts = 3;
    let mut story = setup.established();
    story.at(10).write(1).send();
    for (expiry, repeated) in [(310, false), (910, true), (2110, true)] {
        assert_eq!(story.retransmission_at(), Some(at(expiry)));
        assert_eq!(story.expire(), TimeoutOutcome::Lost);
        let heard = story.heard();
        assert_eq!(heard[0].event, CongestionEvent::Timeout { repeated });
        assert_eq!(
            heard[0].in_flight_bytes, 1000,
            "before anything was taken for lost"
        );
        assert_eq!(story.send(), [1]);
    }
    assert_eq!(story.sender.timeouts_in_row(), 3);
    assert_eq!(story.expire(), TimeoutOutcome::GivesUp(ms(4510 - 10)));
}

#[test]
fn an_acknowledgement_ends_back_off_and_attempts() {
    let mut story = Setup::segments().established();
    story.write(2).send();
    story.expire();
    story.send();
    story.ack(2);
    assert_eq!(story.sender.timeouts_in_row(), 0);
    assert_eq!(story.retransmission_at(), Some(at(600)));
}

#[test]
fn after_a_timeout_one_segment_at_a_time_leaves_until_something_is_acknowledged() {
    let mut story = Setup::segments().established();
    story.write(5).send();
    assert_eq!(story.expire(), TimeoutOutcome::Lost);
    assert!(story.sender.is_failing());
    assert_eq!(story.send(), [1]);
    assert_eq!(story.ack(2).send(), [2, 3, 4, 5]);
    assert!(!story.sender.is_failing());
    let expected = SenderCounters {
        sent_payload_bytes: 10_000,
        retransmitted_packets: 5,
        retransmitted_payload_bytes: 5000,
        encoded_packets: 0,
        lost_packets: 5,
        timed_out_packets: 5,
        timeouts: 1,
    };
    assert_eq!(*story.sender.counters(), expected);
}

#[test]
fn losses_by_corruption_cost_no_window_no_back_off_and_no_attempt() {
    let mut setup = Setup::segments().with(|it| it.loss_handling = LossHandling::Corruption);
    setup.rto.attempts = 1;
    let mut story = setup.established();
    story.write(1).send();
    for expiry in [300, 600, 900] {
        assert_eq!(story.retransmission_at(), Some(at(expiry)));
        assert_eq!(story.expire(), TimeoutOutcome::Lost);
        assert_eq!(story.send(), [1]);
    }
    assert_eq!(story.heard(), []);
}

#[test]
fn a_timeout_without_retransmissions_forgets_what_is_outstanding() {
    let mut setup = Setup::segments().with(|it| it.retransmits = false);
    setup.rto.attempts = 1;
    let mut story = setup.established();
    for round in 0..3 {
        assert_eq!(story.write(3).send().len(), 3, "no caution: round {round}");
        assert_eq!(story.expire(), TimeoutOutcome::Lost);
        assert!(story.sender.is_drained());
        assert_eq!(story.sender.deadline(), None);
    }
    assert_eq!(story.sender.counters().lost_packets, 9);
    assert_eq!(story.sender.counters().retransmitted_packets, 0);
}

#[test]
fn early_calls_do_no_harm() {
    let mut story = Setup::segments().established();
    story.write(1).send();
    assert_eq!(story.at(299).sender.on_deadline(at(299)), TimeoutOutcome::Nothing);
    assert_eq!(story.retransmission_at(), Some(at(300)));
}

#[test]
fn a_link_that_is_back_spares_the_wait_for_a_timer_that_backed_off() {
    let mut story = Setup::segments().established();
    story.write(3).send();
    story.at(100).sender.on_link_up(at(100));
    assert_eq!(story.send(), [], "nothing was amiss");
    story.expire();
    story.send();
    assert_eq!(story.retransmission_at(), Some(at(900)));
    story.at(400).sender.on_link_up(at(400));
    assert_eq!(story.retransmission_at(), Some(at(700)));
    assert_eq!(story.sender.timeouts_in_row(), 0);
    assert_eq!(story.send(), [1]);
}

#[test]
fn who_stops_has_no_timer_and_keeps_no_data() {
    let mut story = Setup::segments().with_credit(1).established();
    story.write(3).send();
    story.sender.stop();
    assert_eq!(story.sender.deadline(), None);
    assert!(story.sender.has_nothing_queued());
    let mut story = Setup::segments().with_credit(0).established();
    story.write(1).segment(false);
    story.sender.stop();
    assert_eq!(story.sender.deadline(), None, "no window probe");
}

#[test]
fn a_link_that_is_back_is_nothing_to_a_sender_that_forgot_what_was_out() {
    let mut story = Setup::segments().with(|it| it.retransmits = false).established();
    story.write(1).send();
    story.expire();
    story.sender.on_link_up(story.now);
    assert_eq!(story.sender.deadline(), None);
}

/// What is missing was given up, the rest has arrived, and the report that would move the pointer beyond is lost.
#[test]
fn the_last_segment_asks_when_nothing_is_missing() {
    let mut story = Setup {
        recovery: RecoveryChoice::Pipe,
        ..Setup::segments()
    }
    .established();
    story.write(3);
    assert_eq!(story.send(), [1, 2, 3]);
    story.at(100).sack(1, 2..4);
    assert!(story.sender.give_up(1));
    for _ in 0..2 {
        assert_eq!(story.send(), []);
        assert_eq!(story.expire(), TimeoutOutcome::Lost);
        assert_eq!(story.send(), [3]);
        story.sack(1, 2..4);
    }
    story.ack(4);
    assert!(story.sender.is_drained());
}
