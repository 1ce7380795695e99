//! Writes, what leaves before the set-up is complete, and senders without numbers or feedback (ResTP §3.5.5).

use super::*;

#[test]
fn a_write_is_refused_when_the_buffer_is_full_and_taken_again_when_half_is_free() {
    let setup = Setup::segments().with(|it| it.send_buffer = SendBuffer::of_waiting(4000));
    let mut story = setup.opening();
    assert!(!story.sender.takes_writes_again(), "nobody was refused");
    story.write(4);
    assert_eq!(story.sender.queued_bytes(), 4000);
    assert!(!story.sender.write(at(0), Bytes::from_static(b"x")));
    story.segment(false);
    assert!(!story.sender.takes_writes_again(), "3000 wait");
    story.segment(false);
    assert!(story.sender.takes_writes_again() && !story.sender.takes_writes_again());
}

#[test]
fn empty_datagrams_are_bounded_in_number() {
    let mut story = Setup::segments().with(|it| it.framing = Framing::Fixed).opening();
    let taken = (0..20_000).filter(|_| story.sender.write(at(0), Bytes::new()));
    assert_eq!(taken.count(), 16_384);
}

#[test]
fn the_first_write_begins_the_wait_for_progress() {
    let mut story = Setup::segments().opening();
    story.at(40).write(1).at(50).write(1);
    assert_eq!(story.sender.progress_at(), at(40));
    story.sender.establish(at(60), None, false);
    assert_eq!(story.sender.progress_at(), at(60));
    story.send();
    story.at(65).write(1);
    assert_eq!(story.sender.progress_at(), at(60));
    story.at(70).ack(2);
    assert_eq!((story.sender.progress_at(), story.sender.reports()), (at(70), 1));
    story.at(80).ack(2);
    assert_eq!((story.sender.progress_at(), story.sender.reports()), (at(70), 1));
    assert!(story.sender.waits_for_peer());
    story.send();
    story.ack(4);
    assert!(!story.sender.waits_for_peer());
}

#[test]
fn a_packet_of_the_set_up_takes_what_it_has_room_for() {
    let mut story = Setup::segments().opening();
    story.write(1);
    let first = story.sender.next_in_set_up(at(0), 400).unwrap();
    assert_eq!((first.len(), story.sender.next_number()), (400, 2));
    assert_eq!(story.sender.counters().sent_payload_bytes, 400);
    assert_eq!(story.sender.in_flight(), 1);
    let rest = story.sender.next_in_set_up(at(0), 4000).unwrap();
    assert_eq!(rest.len(), 600);
    assert_eq!(story.sender.next_in_set_up(at(0), 400), None);
}

fn early(story: &mut Story, may_retransmit: bool, beside: Option<usize>) -> Option<(u64, usize)> {
    let segment = story.sender.next_early(story.now, may_retransmit, beside)?;
    Some((
        segment.number.unwrap(),
        segment.payload.map_or(0, |data| data.len()),
    ))
}

#[test]
fn early_data_leaves_room_for_the_set_up_and_keeps_credit_and_window() {
    let mut story = Setup::segments().with_credit(3).with_window(1800).opening();
    assert_eq!(early(&mut story, false, Some(200)), None, "nothing was written");
    story.write(5);
    assert_eq!(early(&mut story, false, None), None, "the exchange allows none");
    assert_eq!(early(&mut story, false, Some(200)), Some((1, 800)));
    assert_eq!(early(&mut story, false, Some(200)), Some((2, 800)));
    assert_eq!(early(&mut story, false, Some(200)), None, "the window");
    story.set_window(9000);
    assert_eq!(early(&mut story, false, Some(2000)), Some((3, 1)));
    assert_eq!(early(&mut story, false, Some(200)), None, "the credit");
    assert_eq!(story.sender.deadline(), None, "the set-up timer stands in");
}

#[test]
fn early_data_keeps_the_flight_limit() {
    let mut setup = Setup::segments().with_window(2000);
    setup.parameters.limits_outstanding = true;
    let mut story = setup.opening();
    story.write(5);
    assert_eq!(early(&mut story, false, Some(0)), Some((1, 1000)));
    assert_eq!(early(&mut story, false, Some(0)), Some((2, 1000)));
    story.ack(1);
    assert_eq!(early(&mut story, false, Some(0)), None);
}

#[test]
fn a_silent_set_up_retransmits_early_data_one_at_a_time_and_cuts_no_window() {
    let mut story = Setup::segments().opening();
    story.sender.on_set_up_timeout();
    assert_eq!(story.sender.counters().timeouts, 0, "nothing was out");
    story.write(2);
    early(&mut story, false, Some(0));
    early(&mut story, false, Some(0));
    story.sender.on_set_up_timeout();
    assert_eq!(early(&mut story, false, None), None);
    assert_eq!(early(&mut story, true, None), Some((1, 1000)));
    assert_eq!(early(&mut story, true, None), None);
    let counters = story.sender.counters();
    assert_eq!((counters.timeouts, counters.lost_packets), (1, 2));
    assert_eq!(story.heard(), [], "RFC 5681 §3.1");
}

#[test]
fn early_data_that_is_not_retransmitted_is_forgotten_with_the_set_up_packet() {
    let mut story = Setup::segments().with(|it| it.retransmits = false).opening();
    story.write(3);
    early(&mut story, false, Some(0));
    story.sender.on_set_up_timeout();
    assert!(story.sender.is_drained() && !story.sender.is_failing());
    assert_eq!(story.send(), [2, 3]);
}

#[test]
fn other_parameters_take_what_was_written() {
    let mut story = Setup::segments().opening();
    let mut written = SendQueue::new(Framing::Coalesce);
    written.push(Bytes::from(vec![7; SEGMENT]));
    let parameters = Setup::segments().with(|it| it.reserved_bytes = 400).parameters;
    story.sender.adopt(written, parameters);
    let sizes: Vec<_> = std::iter::from_fn(|| story.segment(false))
        .map(|segment| segment.payload.unwrap().len())
        .collect();
    assert_eq!(sizes, [600, 400]);
}

#[test]
fn the_set_up_settles_the_size_of_a_segment() {
    let mut story = Setup::segments().opening();
    let pipe = PipeParameters::new(Detail::Pointer);
    let recovery = Recovery::new(RecoveryChoice::Timer, FastRecovery::NewReno, true, pipe);
    story.sender.agree(500, recovery);
    assert_eq!(story.sender.segment_bytes(), 500);
    story.write(1);
    assert_eq!(story.segment(false).unwrap().payload.unwrap().len(), 500);
    story.send();
    story.ack(1).ack(1).ack(1).ack(1);
    assert_eq!(story.send(), [], "by the timer alone");
    story.heard();
    story
        .on_report(&AckReport::pointer(1), |peer| peer.echoes_mark = true)
        .unwrap();
    let marked = CongestionEvent::Marked { bytes: 500 };
    assert!(story.heard().iter().any(|heard| heard.event == marked));
}

#[test]
fn datagrams_without_numbers_leave_nothing_behind() {
    let mut story = Setup::segments()
        .with(|it| (it.numbered, it.has_feedback, it.retransmits) = (false, false, false))
        .with_credit(0)
        .with_window(10)
        .established();
    story.sender.bind_credit(false);
    story.write(2);
    for _ in 0..2 {
        let datagram = story.segment(false).unwrap();
        assert_eq!((datagram.number, datagram.is_new), (None, true));
    }
    assert!(story.sender.is_drained() && story.sender.deadline().is_none());
    assert_eq!(story.sender.counters().sent_payload_bytes, 2000);
}

#[test]
fn without_feedback_a_segment_leaves_the_books_as_it_leaves_the_host() {
    let mut story = Setup::segments()
        .with(|it| (it.has_feedback, it.retransmits) = (false, false))
        .with_window(10)
        .established();
    assert_eq!(story.write(3).send(), [1, 2, 3]);
    assert!(story.sender.is_drained() && story.sender.deadline().is_none());
    assert_eq!(story.script.lock().unwrap().heard, [], "nobody controls it");
    assert_eq!(story.sender.counters().sent_payload_bytes, 3000);
}

#[test]
fn a_segment_that_leaves_is_told_to_the_controller() {
    let mut story = Setup::segments().established();
    story.write(1).send();
    let heard = story.script.lock().unwrap().heard.clone();
    assert_eq!(heard.len(), 1);
    assert_eq!(heard[0].event, CongestionEvent::Sent { bytes: 1000 });
    assert_eq!(heard[0].in_flight_bytes, 1000);
}

#[test]
fn memory_is_what_waits_and_what_may_leave_again() {
    let mut story = Setup::segments().established();
    let empty = story.sender.memory();
    story.write(2);
    assert_eq!(story.sender.memory() - empty, 2000);
    story.send();
    assert!(story.sender.memory() - empty >= 2000);
    story.ack(2);
    assert!(story.sender.memory() - empty < 2000);
    story.sender.stop();
    assert!(story.sender.memory() - empty < 1000);
    let mut forgets = Setup::segments().with(|it| it.retransmits = false).established();
    forgets.write(2).send();
    assert!(forgets.sender.memory() - empty < 2000);
}
