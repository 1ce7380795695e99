//! Credit in bytes for segments of any size, and what makes way for what is missing (RFC 9260 §6.2).

use super::*;

/// The first segment is 10; 500 bytes are held.
fn messages() -> Receiver {
    let mut receiver = opening(None);
    receiver.begin_messages(10, 500, nak(10));
    receiver
}

#[test]
fn free_is_what_is_neither_held_nor_unread_nor_elsewhere() {
    let mut receiver = messages();
    assert_eq!(receiver.free_bytes(0), 500);
    assert_eq!(arrives(&mut receiver, 11, 150), Arrival::OutOfOrder);
    assert_eq!((receiver.free_bytes(0), receiver.free_bytes(100)), (350, 250));
    assert_eq!(arrives(&mut receiver, 10, 50), Arrival::FilledHole);
    assert_eq!(receiver.free_bytes(0), 300);
    assert_eq!(read(&mut receiver), [50, 150]);
    assert_eq!((receiver.free_bytes(0), receiver.free_bytes(501)), (500, 0));
}

#[test]
fn what_is_above_all_is_refused_where_there_is_no_room() {
    let mut receiver = messages();
    assert_eq!(arrives(&mut receiver, 12, 400), Arrival::OutOfOrder);
    assert_eq!(receiver.make_room(14, 150), 0);
    assert_eq!(arrives(&mut receiver, 14, 150), Arrival::BeyondWindow);
    assert_eq!(
        receiver.beyond_hole().expect("a hole").ranges().last(),
        Some(&(12..13))
    );
}

#[test]
fn what_fills_a_hole_takes_the_room_of_the_highest() {
    let mut receiver = messages();
    for number in [13, 14, 16] {
        assert_eq!(arrives(&mut receiver, number, 150), Arrival::OutOfOrder);
    }
    assert_eq!(receiver.make_room(12, 150), 1);
    assert_eq!(arrives(&mut receiver, 12, 150), Arrival::OutOfOrder);
    let held = receiver.beyond_hole().expect("a hole").ranges();
    assert_eq!((held.len(), held.first()), (1, Some(&(12..15))));
    assert_eq!(receiver.free_bytes(0), 50);
    assert_eq!(receiver.make_room(13, 150), 0, "it is here");
    for number in [10, 11] {
        arrives(&mut receiver, number, 10);
    }
    assert_eq!(read(&mut receiver), [10, 10, 150, 150, 150]);
    assert_eq!(arrives(&mut receiver, 15, 10), Arrival::InOrder);
    assert_eq!(
        arrives(&mut receiver, 16, 10),
        Arrival::InOrder,
        "it came a second time"
    );
}
