//! What a scheduler above may ask and tell (ResTP §3.3).

use super::*;
use crate::path_management::Unanswered;
use crate::scheduling::{Candidate, Fate};

fn segment() -> Bytes {
    Bytes::from(vec![7; SEGMENT])
}

#[test]
fn assigned_segments_have_their_numbers_before_they_leave() {
    let mut story = Setup::segments()
        .with(|it| it.framing = Framing::Fixed)
        .established();
    assert_eq!(story.sender.assign(at(0), segment()), 1);
    assert_eq!(story.sender.assign(at(0), segment()), 2);
    assert_eq!(story.send(), [1, 2]);
    assert_eq!(story.sender.assign(at(0), segment()), 3);
    story.sender.unassign();
    assert_eq!(story.send(), []);
    assert_eq!(story.sender.assign(at(0), segment()), 3);
}

#[test]
fn the_first_segment_assigned_begins_the_wait_for_progress() {
    let mut story = Setup::segments().established();
    story.sender.assign(at(40), segment());
    story.sender.assign(at(50), segment());
    assert_eq!(story.sender.progress_at(), at(40));
    story.send();
    story.sender.assign(at(60), segment());
    assert_eq!(story.sender.progress_at(), at(40));
}

#[test]
fn a_path_takes_a_segment_when_window_queue_and_repairs_leave_room() {
    let mut story = Setup::segments().with_window(2000).established();
    assert!(story.sender.takes(at(0), 1000));
    story.sender.assign(at(0), segment());
    assert!(!story.sender.takes(at(0), 1000), "one at a time");
    story.send();
    assert!(story.sender.takes(at(0), 1000) && !story.sender.takes(at(0), 1001));
    story.sender.retransmit_all();
    assert!(!story.sender.takes(at(0), 1000), "repairs come first");
}

#[test]
fn a_flight_limit_is_a_limit_for_assignments_too() {
    let mut setup = Setup::segments().with_window(2000);
    setup.parameters.limits_outstanding = true;
    let mut story = setup.established();
    story.write(2).send();
    story.ack(1);
    assert!(!story.sender.takes(at(0), 1000));
}

#[test]
fn what_a_failed_path_had_leaves_whatever_the_window_says() {
    let mut setup = Setup::segments().with_window(1000);
    setup.parameters.limits_outstanding = true;
    let mut story = setup.established();
    story.write(1).send();
    story.sender.assign(at(0), segment());
    story.sender.assign(at(0), segment());
    assert_eq!(story.send(), []);
    story.sender.send_at_once();
    assert_eq!(story.send(), [2, 3]);
    story.sender.assign(at(0), segment());
    assert_eq!(story.send(), [], "once");
}

#[test]
fn an_assigned_window_probe_that_is_lost_is_no_congestion() {
    let mut story = Setup::segments().with_credit(0).established();
    story.sender.bind_credit(false);
    story.sender.assign(at(0), segment());
    story.sender.set_window_probe();
    assert_eq!(story.send(), [1]);
    assert_eq!(story.expire(), TimeoutOutcome::Nothing);
    assert_eq!((story.send(), story.heard()), (vec![1], vec![]));
}

#[test]
fn the_fate_of_a_number_is_open_lost_or_arrived() {
    let mut story = Setup::segments().established();
    story.write(3).send();
    let fates = |story: &Story| [1, 2, 3, 4].map(|number| story.sender.fate(number));
    story.ack(2);
    assert_eq!(fates(&story), [Fate::Arrived, Fate::Open, Fate::Open, Fate::Open]);
    story.sender.retransmit_all();
    assert_eq!(fates(&story), [Fate::Arrived, Fate::Lost, Fate::Lost, Fate::Open]);
    story.send();
    assert_eq!(story.sender.fate(2), Fate::Lost, "its first transmission was");
}

#[test]
fn a_number_is_open_since_it_left_last() {
    let mut story = Setup::segments().established();
    story.at(10).write(1).send();
    assert!(story.sender.is_open_since(1, at(10)) && !story.sender.is_open_since(1, at(11)));
    story.ack(2);
    assert!(!story.sender.is_open_since(1, at(0)));
}

#[test]
fn a_candidate_shows_what_was_measured() {
    let mut story = Setup::segments().with_window(5000).established();
    story.write(2).send();
    story.at(180).ack(2);
    let expected = Candidate {
        path: 3,
        has_room: true,
        smoothed_rtt: ms(110),
        min_rtt: ms(100),
        rtt_variation: Duration::from_micros(57_500),
        carries_bytes: 5000,
        in_flight_bytes: 1000,
        weight: 2,
    };
    assert_eq!(story.sender.candidate(3, 2, true, ms(7)), expected);
    story.script.lock().unwrap().delivers = Some(Rate::from_bps(160_000));
    let slower = story.sender.candidate(3, 2, true, ms(7));
    assert_eq!(slower.carries_bytes, 2200, "20 kB/s in 110 ms");
    story.script.lock().unwrap().delivers = Some(Rate::from_bps(16_000_000));
    assert_eq!(story.sender.candidate(3, 2, true, ms(7)).carries_bytes, 5000);
    let unknown = Setup::segments().opening().sender.candidate(0, 1, false, ms(7));
    assert_eq!((unknown.smoothed_rtt, unknown.min_rtt), (ms(7), ms(7)));
    assert_eq!((unknown.rtt_variation, unknown.has_room), (Duration::ZERO, false));
}

#[test]
fn the_answer_due_first_is_to_data_or_else_to_a_keep_alive() {
    let mut story = Setup::segments().established();
    assert_eq!(story.sender.unanswered(None), None);
    let asked = Unanswered {
        since: at(5),
        last_answer: at(0),
    };
    assert_eq!(story.sender.unanswered(Some(at(5))), Some(asked));
    story.at(10).write(1).send();
    story.at(20).write(1).send();
    story.at(30).ack(2);
    let data = Unanswered {
        since: at(20),
        last_answer: at(30),
    };
    assert_eq!(story.sender.unanswered(Some(at(5))), Some(data));
}

#[test]
fn a_duplicate_is_an_answer_where_the_pointer_is_all_that_is_said() {
    for (pointer_only, answered_at) in [(true, at(50)), (false, at(0))] {
        let mut story = Setup::segments()
            .with(|it| it.pointer_only = pointer_only)
            .established();
        story.write(2).send();
        story.at(50).ack(1);
        assert_eq!(story.sender.unanswered(None).unwrap().last_answer, answered_at);
    }
}

#[test]
fn a_sibling_is_shown_once_its_round_trip_was_measured() {
    let story = Setup::segments().opening();
    assert_eq!(story.sender.as_sibling(), None);
    let story = Setup::segments().with_window(5000).established();
    let sibling = story.sender.as_sibling().unwrap();
    assert_eq!((sibling.window_bytes, sibling.smoothed_rtt), (5000, ms(100)));
}

#[test]
fn a_packet_that_says_something_else_is_no_answer() {
    let mut story = Setup::segments().established();
    story.write(2).send();
    story.now = at(50);
    let other = story.on_report(&AckReport::pointer(1), |peer| peer.is_bare_duplicate = false);
    assert_eq!(other, Ok(()));
    assert_eq!(story.sender.unanswered(None).unwrap().last_answer, at(0));
}
