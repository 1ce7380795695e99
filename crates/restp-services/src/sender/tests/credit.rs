//! What the peer's window lets out (ResTP §3.5.4, RFC 9293 §3.8.6), and what asks whether it is still shut.

use super::*;

#[test]
fn each_segment_takes_a_unit_of_credit_in_segments() {
    let mut story = Setup::segments().with_credit(3).established();
    assert_eq!(story.write(6).send(), [1, 2, 3]);
    assert_eq!(story.sender.credit_edge(), 4);
    assert_eq!(story.grant(4, 4, 2).send(), [4, 5]);
}

#[test]
fn each_byte_takes_a_unit_and_what_does_not_fit_waits_whole() {
    let mut story = Setup::bytes().with_credit(2999).established();
    assert_eq!(story.write(3).send(), [1, 2], "no 999 bytes: RFC 9293 §3.8.6.2.1");
    assert_eq!(story.grant(3, FIRST_CREDIT + 2000, 1000).send(), [3]);
}

#[test]
fn the_fin_takes_a_unit_of_either_credit() {
    for (setup, data, fin) in [(Setup::bytes(), 1000, 1001), (Setup::segments(), 1, 2)] {
        let mut story = setup.with_credit(data).established();
        assert_eq!(story.write(1).send(), [1]);
        assert_eq!(story.segment(true), None);
        let end = story.grant(1, FIRST_CREDIT, fin).segment(true).unwrap();
        assert_eq!((end.number, end.payload, end.is_new), (Some(2), None, true));
    }
}

#[test]
fn an_older_grant_does_not_move_the_edge() {
    let mut story = Setup::segments().with_credit(3).established();
    story.write(5).send();
    story.grant(4, 4, 0).grant(3, 3, 10);
    assert_eq!((story.sender.credit_edge(), story.send()), (4, vec![]));
}

#[test]
fn credit_that_does_not_bind_holds_nothing_back() {
    let mut story = Setup::segments().with_credit(0).established();
    assert_eq!(story.sender.binding_edge(), Some(FIRST_CREDIT));
    story.sender.bind_credit(false);
    assert_eq!(story.sender.binding_edge(), None);
    assert_eq!(story.write(2).send(), [1, 2]);
}

#[test]
fn segments_beyond_a_window_that_shrank_wait_but_for_the_lowest() {
    let after = |setup: Setup, units| {
        let mut story = setup.established();
        story.write(5).send();
        story.sender.grant_afresh(FIRST_CREDIT, units);
        story.sender.retransmit_all();
        story.send()
    };
    assert_eq!(after(Setup::segments(), 2), [1, 2]);
    assert_eq!(
        after(Setup::segments(), 0),
        [1],
        "it asks whether that is still so"
    );
    assert_eq!(
        after(Setup::bytes(), 0),
        [1, 2, 3, 4, 5],
        "bytes once granted stay granted"
    );
}

#[test]
fn credit_may_begin_afresh_below_what_was_heard_before() {
    let mut story = Setup::segments().established();
    story.write(5).send();
    story.grant(4, 4, 8);
    story.sender.grant_afresh(1, 4);
    assert_eq!(story.sender.credit_edge(), 5);
}

#[test]
fn a_shut_window_is_probed_once_per_timeout_with_a_whole_segment() {
    let mut story = Setup::segments().with_credit(0).established();
    assert_eq!(story.write(2).segment(false), None);
    assert_eq!(story.sender.deadline(), Some((at(300), Wakeup::Probe)));
    assert!(story.sender.waits_for_peer());
    assert_eq!(story.at(299).segment(false), None);
    let probe = story.at(300).segment(false).unwrap();
    assert_eq!((probe.number, probe.is_new), (Some(1), true));
    assert_eq!(probe.payload.map(|data| data.len()), Some(SEGMENT));
    for expiry in [600, 900, 1200] {
        assert_eq!(story.segment(false), None);
        assert_eq!(
            story.retransmission_at(),
            Some(at(expiry)),
            "OP-25: it does not back off"
        );
        assert_eq!(story.expire(), TimeoutOutcome::Nothing);
        assert_eq!(story.segment(false).unwrap().number, Some(1));
    }
    assert_eq!((story.sender.counters().timeouts, story.heard()), (0, vec![]));
}

#[test]
fn probes_of_a_byte_window_are_one_byte_and_back_off() {
    let mut story = Setup::bytes().with_credit(0).established();
    story.write(1).segment(false);
    let probe = story.at(300).segment(false).unwrap();
    assert_eq!(probe.payload.map(|data| data.len()), Some(1));
    for expiry in [600, 1200, 2400] {
        assert_eq!(story.retransmission_at(), Some(at(expiry)), "RFC 9293 §3.8.6.1");
        assert_eq!(story.expire(), TimeoutOutcome::Nothing);
        assert_eq!(story.segment(false).unwrap().number, Some(1));
    }
    story.grant(1, FIRST_CREDIT, 0);
    assert_eq!(story.expire(), TimeoutOutcome::Nothing);
    assert_eq!(
        story.retransmission_at(),
        Some(at(4800 + 600)),
        "the peer lives: the back-off begins afresh"
    );
    assert_eq!((story.sender.counters().timeouts, story.heard()), (0, vec![]));
    assert!(!story.sender.is_failing());
}

#[test]
fn the_peer_of_a_shut_window_may_be_given_up_only_when_it_is_silent() {
    let mut setup = Setup::bytes().with_credit(0);
    setup.rto.attempts = 2;
    let mut story = setup.established();
    story.write(1).segment(false);
    story.at(300).segment(false);
    for _ in 0..5 {
        assert_eq!(story.expire(), TimeoutOutcome::Nothing);
        story.grant(1, FIRST_CREDIT, 0).segment(false);
    }
    story.expire();
    story.expire();
    assert!(matches!(story.expire(), TimeoutOutcome::GivesUp(_)));
}

#[test]
fn credit_sends_the_probe_again_at_once_and_what_waits_after_it() {
    let mut story = Setup::segments().with_credit(0).established();
    story.write(3).segment(false);
    story.at(300).segment(false);
    assert_eq!(story.at(400).grant(1, FIRST_CREDIT, 0).send(), []);
    assert_eq!(story.grant(1, FIRST_CREDIT, 2).send(), [1, 2]);
    assert_eq!(story.grant(1, FIRST_CREDIT, 2).send(), [], "once");
}

#[test]
fn credit_is_no_news_for_what_is_no_probe() {
    let mut story = Setup::segments().with_credit(2).established();
    story.write(3).send();
    assert_eq!(story.grant(1, FIRST_CREDIT, 3).send(), [3]);
    assert_eq!(story.send(), []);
}

#[test]
fn a_probe_that_is_taken_ends_the_question() {
    let mut story = Setup::segments().with_credit(0).established();
    story.write(3).segment(false);
    story.at(300).segment(false);
    story.at(400).grant(2, 2, 1);
    assert_eq!(story.send(), [2]);
    assert_eq!(story.expire(), TimeoutOutcome::Lost, "2 is no probe");
}

#[test]
fn no_probe_is_due_while_credit_or_an_acknowledgement_is_to_come() {
    let mut story = Setup::segments().with_credit(0).established();
    story.write(3).segment(false);
    assert_eq!(story.at(200).grant(1, FIRST_CREDIT, 1).send(), [1]);
    assert_eq!(story.sender.deadline(), Some((at(500), Wakeup::Retransmission)));
    assert_eq!(story.at(301).segment(false), None);
    assert_eq!(story.at(350).grant(2, 2, 0).segment(false), None);
    let (probe_at, why) = story.sender.deadline().unwrap();
    assert_eq!((probe_at, why), (at(350) + story.sender.timeout(), Wakeup::Probe));
}

#[test]
fn a_fin_behind_a_shut_window_is_probed_for() {
    let mut story = Setup::bytes().with_credit(0).established();
    assert_eq!(story.segment(false), None);
    assert_eq!(story.sender.deadline(), None, "there is nothing to ask for");
    assert_eq!(story.segment(true), None);
    assert_eq!(story.at(300).segment(true).unwrap().payload, None);
}

#[test]
fn a_probe_that_is_taken_by_a_window_still_shut_is_a_probe_no_more() {
    let mut story = Setup::segments().with_credit(0).established();
    story.write(3).segment(false);
    story.at(300).segment(false);
    story.at(400).grant(2, 2, 0);
    story.sender.grant(2, 5);
    assert_eq!(story.send(), [2, 3]);
    assert_eq!(story.expire(), TimeoutOutcome::Lost);
}

#[test]
fn a_probe_that_does_not_leave_again_is_forgotten_like_other_segments() {
    let setup = Setup::segments().with(|it| it.retransmits = false);
    let mut story = setup.with_credit(0).established();
    story.write(3).segment(false);
    story.at(300).segment(false);
    assert_eq!(story.expire(), TimeoutOutcome::Lost);
    assert!(story.sender.is_drained());
    story.sender.grant(2, 1);
    assert_eq!(story.send(), [2]);
    story.grant(2, 2, 1);
    assert_eq!(story.sender.in_flight(), 1, "2 is no probe");
}

#[test]
fn a_grant_ends_the_back_off_of_window_probes_alone() {
    let mut story = Setup::bytes().established();
    story.write(1).send();
    assert_eq!(story.expire(), TimeoutOutcome::Lost);
    story.send();
    story.grant(1, FIRST_CREDIT, 5000);
    assert_eq!(story.sender.timeouts_in_row(), 1);
}
