//! A byte stream (RFC 9293 §3.10.7.4).

use super::*;
use crate::ordering::Stretch;

fn stretch(start: u64, len: usize, fin: bool) -> Stretch {
    let payload = data(len);
    Stretch { start, payload, fin }
}

fn arrives(receiver: &mut Receiver, start: u64, len: usize) -> Arrival {
    receiver.on_bytes(at(0), stretch(start, len, false), None)
}

#[test]
fn bytes_are_read_in_order_and_a_hole_is_shown() {
    let mut receiver = byte_stream();
    assert_eq!(arrives(&mut receiver, 1000, 10), Arrival::InOrder);
    assert_eq!((receiver.next(), receiver.beyond_hole()), (Some(1010), None));
    assert_eq!(arrives(&mut receiver, 1020, 10), Arrival::OutOfOrder);
    let beyond = receiver.beyond_hole().unwrap().ranges();
    assert_eq!((beyond.first(), beyond.len()), (Some(&(1020..1030)), 1));
    assert_eq!(receiver.next_gap(), Some(1010..1018), "8 at most");
    assert_eq!((receiver.held_bytes(), receiver.memory()), (20, 20));
    assert_eq!(arrives(&mut receiver, 1010, 10), Arrival::FilledHole);
    assert_eq!(read(&mut receiver), [10, 10, 10]);
    assert!(
        !receiver.is_missing(1040),
        "segments are missing, bytes are not asked for"
    );
}

#[test]
fn each_kind_of_store_takes_its_own() {
    let mut receiver = segments(None);
    assert_eq!(arrives(&mut receiver, 10, 1), Arrival::BeyondWindow);
    assert!(!receiver.contradicts(&stretch(0, 1, true)));
    let mut receiver = byte_stream();
    let segment = receiver.on_segment(at(0), 1000, Some(data(1)), None, false);
    assert_eq!(
        (segment, receiver.next()),
        (Ok(Arrival::BeyondWindow), Some(1000))
    );
    assert_eq!(owed(&mut receiver), 0);
}

#[test]
fn everything_but_the_next_bytes_is_acknowledged_at_once_and_a_fin_too() {
    let mut receiver = byte_stream();
    arrives(&mut receiver, 1000, 10);
    assert_eq!(
        (owed(&mut receiver), receiver.ack_timer().deadline()),
        (0, Some(at(40)))
    );
    for (start, arrival) in [
        (1020, Arrival::OutOfOrder),
        (1010, Arrival::FilledHole),
        (1010, Arrival::Duplicate),
        (5000, Arrival::BeyondWindow),
    ] {
        assert_eq!(arrives(&mut receiver, start, 10), arrival);
        assert_eq!(owed(&mut receiver), 1, "{arrival:?}");
    }
    let last = receiver.on_bytes(at(0), stretch(1030, 1, true), None);
    assert_eq!((last, owed(&mut receiver)), (Arrival::InOrder, 1));
}

#[test]
fn the_end_is_known_when_every_byte_before_the_fin_is_there() {
    let mut receiver = byte_stream();
    receiver.on_bytes(at(0), stretch(1010, 5, true), None);
    assert_eq!(receiver.end(), None);
    assert!(receiver.contradicts(&stretch(1010, 7, false)));
    assert!(!receiver.contradicts(&stretch(1010, 5, false)));
    arrives(&mut receiver, 1000, 10);
    assert_eq!(receiver.end(), Some(1015));
}

#[test]
fn nothing_is_taken_that_was_not_promised() {
    let mut receiver = opening(None);
    receiver.begin_bytes(1000, 2, 100, 3, nak(1000));
    assert_eq!(arrives(&mut receiver, 1000, 1), Arrival::BeyondWindow);
    receiver.advertise();
    assert_eq!(arrives(&mut receiver, 1000, 500), Arrival::InOrder);
    assert_eq!(receiver.next(), Some(1400), "the rest is cut off");
}

#[test]
fn pieces_are_bounded_whatever_their_size() {
    let mut receiver = opening(None);
    receiver.begin_bytes(0, 0, 65_535, 3, nak(0));
    receiver.advertise();
    for start in 0..16_384 {
        assert_eq!(arrives(&mut receiver, start, 1), Arrival::InOrder);
    }
    assert_eq!(arrives(&mut receiver, 16_384, 1), Arrival::BeyondWindow);
    receiver.read(false, false);
    assert_eq!(arrives(&mut receiver, 16_384, 1), Arrival::InOrder);
    for start in [20_000, 20_002, 20_004] {
        receiver.read(false, false);
        assert_eq!(arrives(&mut receiver, start, 1), Arrival::OutOfOrder);
    }
    assert_eq!(
        arrives(&mut receiver, 20_006, 1),
        Arrival::BeyondWindow,
        "three out of order"
    );
}
