//! What the peer may send (ResTP §3.5.4, RFC 9293 §3.8.6).

use super::*;
use crate::ordering::Stretch;

#[test]
fn the_window_shrinks_with_what_is_unread_and_keeps_its_edge() {
    let mut receiver = segments(None);
    assert_eq!((receiver.advertise(), receiver.edge()), (8, 18));
    all_arrive(&mut receiver, 10..15);
    assert_eq!((receiver.advertise(), receiver.edge()), (3, 18));
    assert_eq!(arrives(&mut receiver, 18, 1), Arrival::BeyondWindow);
    assert_eq!(
        arrives(&mut receiver, 17, 1),
        Arrival::OutOfOrder,
        "what was promised is taken"
    );
}

#[test]
fn a_window_stands_before_the_peer_is_known() {
    let mut receiver = opening(None);
    assert_eq!((receiver.advertise(), receiver.edge()), (8, sequence::ORIGIN + 8));
    assert!(receiver.on_datagram(data(1)));
    assert_eq!(receiver.edge(), sequence::ORIGIN + 8);
}

/// RFC 1122 §4.2.3.3: half the window, or anything while it was shut.
#[test]
fn an_update_is_due_once_when_reading_opens_a_shut_window() {
    let mut receiver = segments(None);
    receiver.advertise();
    all_arrive(&mut receiver, 10..18);
    owed(&mut receiver);
    assert_eq!(receiver.advertise(), 0);
    receiver.offer_window();
    assert_eq!(owed(&mut receiver), 0, "nothing was read");
    for _ in 0..3 {
        receiver.read(false, true);
    }
    assert_eq!(owed(&mut receiver), 1);
    assert_eq!(receiver.advertise(), 3);
    receiver.read(false, true);
    assert_eq!(owed(&mut receiver), 0, "the peer knows of three");
}

#[test]
fn a_grant_that_another_field_carries_needs_no_update() {
    let mut receiver = segments(None);
    receiver.advertise();
    all_arrive(&mut receiver, 10..18);
    receiver.advertise();
    owed(&mut receiver);
    read(&mut receiver);
    receiver.needs_no_update();
    receiver.offer_window();
    assert_eq!(owed(&mut receiver), 0);
    assert_eq!(receiver.edge(), 26);
}

#[test]
fn a_window_of_bytes_is_shifted_and_counts_unread_units_that_have_begun() {
    let mut receiver = byte_stream();
    assert_eq!((receiver.window_shift(), receiver.edge()), (2, 1400));
    for (start, len) in [(1000, 399), (1399, 1)] {
        let stretch = Stretch {
            start,
            payload: data(len),
            fin: false,
        };
        assert_eq!(receiver.on_bytes(at(0), stretch, None), Arrival::InOrder);
    }
    assert_eq!(receiver.advertise(), 0);
    assert!(matches!(receiver.read(true, false), Read::Data(_)));
    assert_eq!(receiver.delivered(), (399, 1));
    assert_eq!(receiver.advertise(), 99, "one byte takes a unit of 4");
    assert_eq!(receiver.edge(), 1400 + 4 * 99);
}

#[test]
fn bytes_once_promised_stay_promised() {
    let mut receiver = byte_stream();
    receiver.promise_units(99);
    receiver.promise_bytes(399);
    assert_eq!(receiver.edge(), 1400);
    receiver.promise_units(101);
    assert_eq!(receiver.edge(), 1404);
    receiver.promise_bytes(500);
    assert_eq!(receiver.edge(), 1500);
    let mut receiver = segments(None);
    receiver.promise_units(100);
    receiver.promise_bytes(100);
    assert_eq!(receiver.edge(), 18, "segments are promised by their window");
}
