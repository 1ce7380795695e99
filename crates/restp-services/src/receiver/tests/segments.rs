//! Numbered segments and datagrams (ResTP §3.5.7): delivered, held, refused, skipped; and what that makes due.

use super::*;

fn fin(receiver: &mut Receiver, number: u64) -> Result<Arrival, Contradiction> {
    receiver.on_segment(at(0), number, None, None, false)
}

#[test]
fn segments_are_read_in_order_and_a_hole_is_shown() {
    let mut receiver = segments(None);
    assert_eq!(arrives(&mut receiver, 10, 1), Arrival::InOrder);
    assert_eq!((receiver.next(), receiver.beyond_hole()), (Some(11), None));
    assert_eq!(arrives(&mut receiver, 13, 4), Arrival::OutOfOrder);
    assert_eq!(arrives(&mut receiver, 12, 3), Arrival::OutOfOrder);
    let beyond = receiver.beyond_hole().unwrap().ranges();
    assert_eq!((beyond.first(), beyond.len()), (Some(&(12..14)), 1));
    assert_eq!(receiver.next_gap(), Some(11..12));
    assert_eq!(receiver.held_bytes(), 8);
    assert!(receiver.is_missing(11) && !receiver.is_missing(12) && !receiver.is_missing(10));
    assert_eq!(arrives(&mut receiver, 11, 2), Arrival::FilledHole);
    assert_eq!(read(&mut receiver), [1, 2, 3, 4]);
    assert_eq!((receiver.next(), receiver.held_bytes()), (Some(14), 0));
}

#[test]
fn before_the_first_number_is_known_nothing_is_taken() {
    let mut receiver = opening(Some(50));
    assert_eq!(arrives(&mut receiver, 10, 1), Arrival::BeyondWindow);
    assert_eq!(
        (receiver.next(), receiver.end(), receiver.next_gap()),
        (None, None, None)
    );
    assert!(receiver.beyond_hole().is_none() && receiver.hold_deadline(None).is_none());
    assert_eq!(
        (receiver.skip_holes(at(1000), None), receiver.held_bytes()),
        (0, 0)
    );
    assert_eq!((receiver.window_shift(), owed(&mut receiver)), (0, 0));
    assert!(!receiver.is_missing(10));
}

#[test]
fn a_segment_in_order_waits_for_a_second_or_for_the_timer() {
    let mut receiver = segments(None);
    arrives(&mut receiver, 10, 1);
    assert_eq!(receiver.ack_timer().deadline(), Some(at(40)));
    assert!(!receiver.ack_timer().is_owed());
    arrives(&mut receiver, 11, 1);
    assert_eq!(owed(&mut receiver), 1);
}

#[test]
fn where_the_peer_wants_few_acknowledgements_a_new_hole_is_reported_at_once_and_once() {
    let mut receiver = thinning(AckRatio::of_flight(32, 0));
    let owed_for = |receiver: &mut Receiver, number| {
        arrives(receiver, number, 1);
        owed(receiver)
    };
    let owed = [10, 11, 13, 14, 15, 16, 17].map(|number| owed_for(&mut receiver, number));
    assert_eq!(owed, [0, 0, 1, 0, 0, 0, 1], "13 opens it, four more come");
    assert_eq!(owed_for(&mut receiver, 12), 1, "the hole is filled");
}

#[test]
fn everything_but_the_next_segment_in_order_is_acknowledged_at_once() {
    let mut receiver = segments(None);
    for (number, arrival) in [
        (12, Arrival::OutOfOrder),
        (10, Arrival::FilledHole),
        (10, Arrival::Duplicate),
        (11, Arrival::FilledHole),
        (21, Arrival::BeyondWindow),
    ] {
        assert_eq!(arrives(&mut receiver, number, 1), arrival);
        assert_eq!(owed(&mut receiver), 1, "{arrival:?}");
    }
}

#[test]
fn only_news_begins_a_spell_after_which_the_acknowledgement_is_repeated() {
    let duplicates = |number: u64| {
        let mut receiver = segments(Some(0));
        arrives(&mut receiver, 11, 1);
        receiver.skip_holes(at(0), None);
        owed(&mut receiver);
        receiver.acknowledgement().on_deadline(at(150));
        owed(&mut receiver);
        receiver.acknowledgement().on_deadline(at(300));
        owed(&mut receiver);
        assert_eq!(receiver.ack_timer().deadline(), None, "two duplicates (OP-47)");
        arrives(&mut receiver, number, 1);
        owed(&mut receiver);
        receiver.ack_timer().deadline().is_some()
    };
    assert!(duplicates(12) && duplicates(13), "in order, and out of order");
    assert!(!duplicates(11), "a duplicate");
    assert!(!duplicates(10), "too late");
    assert!(!duplicates(30), "beyond the window");
}

#[test]
fn nothing_follows_a_fin_and_nothing_replaces_it() {
    let mut receiver = segments(None);
    assert_eq!(fin(&mut receiver, 12), Ok(Arrival::OutOfOrder));
    owed(&mut receiver);
    let after = receiver.on_segment(at(0), 13, Some(data(1)), None, false);
    let instead = receiver.on_segment(at(0), 12, Some(data(1)), None, false);
    assert_eq!((after, instead), (Err(Contradiction), Err(Contradiction)));
    assert_eq!(
        (fin(&mut receiver, 11), fin(&mut receiver, 13)),
        (Err(Contradiction), Err(Contradiction))
    );
    assert_eq!(
        (owed(&mut receiver), receiver.held_bytes()),
        (0, 0),
        "nothing has changed"
    );
    assert_eq!(fin(&mut receiver, 12), Ok(Arrival::Duplicate));
    arrives(&mut receiver, 10, 1);
    assert_eq!(receiver.end(), None);
    arrives(&mut receiver, 11, 1);
    assert_eq!(receiver.end(), Some(12));
}

#[test]
fn a_fin_that_is_not_taken_is_not_believed() {
    let mut receiver = segments(None);
    assert_eq!(fin(&mut receiver, 18), Ok(Arrival::BeyondWindow));
    assert_eq!(fin(&mut receiver, 11), Ok(Arrival::OutOfOrder));
    arrives(&mut receiver, 10, 1);
    assert_eq!(receiver.end(), Some(11));
}

/// The window promises 8 segments of 100 bytes, and the peer's may be larger.
#[test]
fn what_is_held_and_unread_is_bounded_in_bytes() {
    let mut receiver = segments(None);
    assert_eq!(arrives(&mut receiver, 11, 400), Arrival::OutOfOrder);
    assert_eq!(arrives(&mut receiver, 12, 401), Arrival::BeyondWindow);
    assert_eq!(arrives(&mut receiver, 12, 400), Arrival::OutOfOrder);
    assert_eq!(receiver.held_bytes(), 800);
    assert_eq!(
        arrives(&mut receiver, 10, 5000),
        Arrival::FilledHole,
        "nothing unread is before it"
    );
    assert_eq!(
        arrives(&mut receiver, 13, 1),
        Arrival::BeyondWindow,
        "5800 are unread"
    );
    read(&mut receiver);
    assert_eq!(arrives(&mut receiver, 13, 300), Arrival::InOrder);
    assert_eq!(arrives(&mut receiver, 14, 501), Arrival::BeyondWindow);
    assert_eq!(arrives(&mut receiver, 14, 500), Arrival::InOrder);
}

#[test]
fn an_expected_segment_is_not_refused_for_what_is_held_behind_it() {
    let mut receiver = segments(None);
    arrives(&mut receiver, 10, 1);
    arrives(&mut receiver, 12, 700);
    assert_eq!(
        arrives(&mut receiver, 11, 799),
        Arrival::FilledHole,
        "800 with what is unread"
    );
}

#[test]
fn a_segment_out_of_order_is_held_within_the_bound_however_empty_the_store() {
    let mut receiver = segments(None);
    assert_eq!(arrives(&mut receiver, 12, 801), Arrival::BeyondWindow);
    assert_eq!(arrives(&mut receiver, 12, 800), Arrival::OutOfOrder);
}

#[test]
fn datagrams_are_bounded_in_number_and_in_bytes() {
    let mut receiver = opening(None);
    assert!((0..8).all(|_| receiver.on_datagram(data(1))));
    assert!(!receiver.on_datagram(data(1)), "eight wait");
    assert_eq!(read(&mut receiver), [1; 8]);
    assert!(receiver.on_datagram(data(500)));
    assert!(!receiver.on_datagram(data(301)));
    assert!(receiver.on_datagram(data(300)));
    assert_eq!(receiver.held_bytes(), 800);
}

#[test]
fn a_hole_is_skipped_when_it_has_been_held_long_enough() {
    let mut receiver = segments(Some(50));
    receiver
        .on_segment(at(100), 12, Some(data(1)), None, false)
        .unwrap();
    receiver
        .on_segment(at(110), 15, Some(data(2)), None, false)
        .unwrap();
    assert_eq!(receiver.hold_deadline(None), Some(at(150)));
    assert_eq!(receiver.skip_holes(at(149), None), 0);
    assert_eq!(receiver.skip_holes(at(150), None), 2);
    assert_eq!((receiver.next(), read(&mut receiver)), (Some(13), vec![1]));
    assert_eq!(receiver.hold_deadline(None), Some(at(160)));
    assert_eq!(receiver.skip_holes(at(160), None), 2);
    assert_eq!((receiver.next(), read(&mut receiver)), (Some(16), vec![2]));
    assert_eq!(arrives(&mut receiver, 14, 1), Arrival::Late);
}

/// A probe that the window does not take shows what is missing before it, and left as long ago as any other arrival.
#[test]
fn with_a_deadline_a_probe_leaves_what_it_shows_no_more_time_than_others() {
    let rtt = Some(Duration::from_millis(60));
    let hold = HoldParameters {
        hold: None,
        deadline: Some(Duration::from_millis(200)),
        frame_interval: Duration::from_millis(4),
    };
    let ack = AckTimer::new(Schedule::Positive(PositiveParameters::default()), None);
    let mut receiver = Receiver::new(100, WINDOW, ack, nak(0), Some(hold));
    receiver.begin_segments(10, Ordering::Partial, WINDOW, nak(10));
    let beyond = receiver
        .on_segment(at(100), 10_000, Some(data(1)), rtt, true)
        .unwrap();
    assert_eq!(beyond, Arrival::BeyondWindow);
    assert_eq!(receiver.hold_deadline(rtt), Some(at(70 + 196)));
}

/// What is missing left before what shows it, by whichever path: a slow path shows it later, and leaves less time.
#[test]
fn with_a_deadline_a_hole_is_as_old_as_what_came_behind_it() {
    let round_trip = |ms| Some(Duration::from_millis(ms));
    let hold = HoldParameters {
        hold: None,
        deadline: round_trip(200),
        frame_interval: Duration::from_millis(4),
    };
    let ack = AckTimer::new(Schedule::Positive(PositiveParameters::default()), None);
    let mut receiver = Receiver::new(100, WINDOW, ack, nak(0), Some(hold));
    receiver.begin_segments(10, Ordering::Partial, WINDOW, nak(10));
    receiver
        .on_segment(at(100), 13, Some(data(1)), round_trip(20), false)
        .unwrap();
    receiver.skip_holes(at(277), round_trip(160)); // of three in a row the first ones left earlier
    assert_eq!(receiver.next(), Some(10));
    receiver
        .on_segment(at(110), 11, Some(data(2)), round_trip(160), false)
        .unwrap();
    assert_eq!(receiver.hold_deadline(round_trip(160)), Some(at(30 + 196)));
    assert_eq!(receiver.skip_holes(at(226), round_trip(160)), 1);
    assert_eq!((receiver.next(), read(&mut receiver)), (Some(12), vec![2]));
    assert_eq!(receiver.hold_deadline(round_trip(20)), Some(at(90 + 196)), "12");
}

#[test]
fn holes_that_are_due_together_are_skipped_together() {
    let mut receiver = segments(Some(50));
    arrives(&mut receiver, 12, 1);
    arrives(&mut receiver, 14, 1);
    assert_eq!(receiver.skip_holes(at(50), None), 3);
}

#[test]
fn a_hole_stays_where_everything_must_arrive() {
    let mut receiver = segments(None);
    arrives(&mut receiver, 12, 1);
    assert_eq!(receiver.hold_deadline(None), None);
    assert_eq!(
        (receiver.skip_holes(at(100_000), None), receiver.next()),
        (0, Some(10))
    );
}

#[test]
fn a_probe_of_a_sender_that_retransmits_nothing_shows_what_is_lost_for_good() {
    let skipped = |lost_for_good| {
        let mut receiver = segments(Some(50));
        let probe = receiver.on_segment(at(0), 18, Some(data(1)), None, lost_for_good);
        assert_eq!(probe, Ok(Arrival::BeyondWindow));
        receiver.skip_holes(at(50), None)
    };
    assert_eq!(skipped(true), 9, "10 to 18");
    assert_eq!(skipped(false), 0);
}

#[test]
fn a_reader_is_told_once_until_it_finds_nothing() {
    let mut receiver = segments(None);
    assert!(!receiver.has_news(false));
    arrives(&mut receiver, 10, 1);
    assert!(receiver.has_news(false) && !receiver.has_news(false));
    read(&mut receiver);
    assert!(!receiver.has_news(false) && receiver.has_news(true), "the end");
}

#[test]
fn what_is_unread_is_dropped_and_what_comes_too_if_asked() {
    for from_now_on in [false, true] {
        let mut receiver = segments(None);
        arrives(&mut receiver, 10, 1);
        receiver.discard(from_now_on);
        assert_eq!(receiver.held_bytes(), 0);
        arrives(&mut receiver, 11, 1);
        assert_eq!(receiver.has_news(false), !from_now_on);
        receiver.discard(false);
        arrives(&mut receiver, 12, 1);
        assert!(!receiver.has_news(false), "told before, or of no interest");
        assert_eq!(read(&mut receiver).len(), usize::from(!from_now_on));
    }
}

#[test]
fn somebody_else_may_take_everything_for_the_reader() {
    let mut receiver = segments(None);
    arrives(&mut receiver, 10, 1);
    arrives(&mut receiver, 11, 2);
    assert_eq!(receiver.drain().count(), 2);
    assert_eq!(receiver.held_bytes(), 0);
}
