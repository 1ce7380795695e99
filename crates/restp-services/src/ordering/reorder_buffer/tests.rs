use super::*;

const EDGE: u64 = 1000;

fn feed(buffer: &mut Reassembly, numbers: &[u64]) -> (Vec<Arrival>, Vec<u8>) {
    let mut ready = VecDeque::new();
    let arrivals = numbers
        .iter()
        .map(|n| {
            buffer.insert(
                Time::ZERO,
                *n,
                Some(Bytes::from(vec![*n as u8])),
                EDGE,
                &mut ready,
            )
        })
        .collect();
    (arrivals, ready.iter().map(|payload| payload[0]).collect())
}

#[test]
fn ordered_holds_until_predecessors_are_out() {
    use Arrival::*;
    let mut buffer = Reassembly::new(Ordering::Ordered, 10);
    let (arrivals, delivered) = feed(&mut buffer, &[10, 14, 15, 17, 14, 11, 12, 13, 9]);
    assert_eq!(
        arrivals,
        [
            InOrder, OutOfOrder, OutOfOrder, OutOfOrder, Duplicate, FilledHole, FilledHole, FilledHole,
            Duplicate
        ]
    );
    assert_eq!(delivered, [10, 11, 12, 13, 14, 15]);
    assert_eq!(
        (buffer.next(), buffer.held_bytes(), buffer.has_hole()),
        (16, 1, true)
    );
    assert_eq!(feed(&mut buffer, &[16]).1, [16, 17]);
    assert_eq!(
        (buffer.next(), buffer.held_bytes(), buffer.has_hole()),
        (18, 0, false)
    );
}

#[test]
fn unordered_delivers_on_arrival_and_still_once() {
    let mut buffer = Reassembly::new(Ordering::Unordered, 0);
    assert_eq!(feed(&mut buffer, &[2, 0, 2, 1, 0, 3]).1, [2, 0, 1, 3]);
    assert_eq!(buffer.next(), 4);
}

#[test]
fn another_order_holds_from_a_number_on_and_waits_for_what_is_below() {
    let mut buffer = Reassembly::new(Ordering::Unordered, 0);
    buffer.turn_at(4, Ordering::Ordered);
    assert_eq!(
        feed(&mut buffer, &[2, 5, 0, 4]).1,
        [2, 0],
        "4 and 5 wait for 1 and 3"
    );
    assert_eq!(feed(&mut buffer, &[3, 1]).1, [3, 1, 4, 5]);
    assert_eq!(feed(&mut buffer, &[7, 6]).1, [6, 7]);
    let mut buffer = Reassembly::new(Ordering::Ordered, 0);
    buffer.turn_at(3, Ordering::Unordered);
    assert_eq!(
        feed(&mut buffer, &[1, 4, 6, 0]).1,
        [0, 1],
        "not even 4, although nobody wants it in order"
    );
    assert_eq!(feed(&mut buffer, &[2]).1, [2, 4, 6]);
    assert_eq!(feed(&mut buffer, &[8, 3, 5]).1, [8, 3, 5]);
    assert_eq!((buffer.next(), buffer.held_bytes()), (7, 0));
    let mut buffer = Reassembly::new(Ordering::Ordered, 0);
    feed(&mut buffer, &[0]);
    buffer.turn_at(1, Ordering::Unordered);
    assert_eq!(
        feed(&mut buffer, &[2, 1]).1,
        [2, 1],
        "at once where nothing is below"
    );
}

#[test]
fn a_hole_is_not_skipped_beyond_the_number_where_skipping_ends() {
    let mut buffer = Reassembly::new(Ordering::Partial, 0);
    buffer.turn_at(2, Ordering::Ordered);
    feed(&mut buffer, &[5]);
    assert_eq!(buffer.skip_hole(Time::ZERO, u64::MAX, &mut VecDeque::new()), 2);
    assert_eq!(
        (buffer.next(), buffer.is_missing(2), buffer.held_bytes()),
        (2, true, 1)
    );
    assert_eq!(feed(&mut buffer, &[2, 4, 3]).1, [2, 3, 4, 5]);
}

#[test]
fn nothing_at_or_beyond_the_edge_is_stored() {
    let mut buffer = Reassembly::new(Ordering::Ordered, 0);
    assert_eq!(feed(&mut buffer, &[EDGE, EDGE + 5]).0, [Arrival::BeyondWindow; 2]);
    assert!(!buffer.has_hole());
    let mut ready = VecDeque::new();
    let probe = Some(Bytes::from_static(b"x"));
    assert_eq!(
        buffer.insert(Time::ZERO, 0, probe, 0, &mut ready),
        Arrival::BeyondWindow,
        "a shut window"
    );
    assert_eq!((ready.len(), buffer.next()), (0, 0));
}

#[test]
fn a_skipped_hole_lets_what_came_after_it_out() {
    let mut buffer = Reassembly::new(Ordering::Ordered, 0);
    feed(&mut buffer, &[2, 3]);
    let later = Time::from_nanos(3);
    let mut ready = VecDeque::new();
    buffer.insert(later, 6, Some(Bytes::from_static(b"6")), EDGE, &mut ready);
    let hold = Duration::from_millis(110);
    assert_eq!(buffer.hold_deadline(hold), Some(Time::ZERO + hold));
    assert_eq!(buffer.skip_hole(Time::from_nanos(5), u64::MAX, &mut ready), 2);
    assert_eq!((ready.len(), buffer.next()), (2, 4));
    assert_eq!(
        buffer.hold_deadline(hold),
        Some(later + hold),
        "the next hole has waited since 6 came, not since the first was skipped"
    );
    assert_eq!(buffer.skip_hole(Time::ZERO, u64::MAX, &mut ready), 2);
    assert_eq!(
        (buffer.next(), buffer.skip_hole(Time::ZERO, u64::MAX, &mut ready)),
        (7, 0)
    );
}

#[test]
fn a_hole_waits_from_the_first_later_arrival_in_whatever_order_they_come() {
    let mut buffer = Reassembly::new(Ordering::Partial, 0);
    let mut ready = VecDeque::new();
    for (at, number) in [(1, 9), (2, 1), (3, 4), (4, 5), (6, 0)] {
        let payload = Some(Bytes::from_static(b"x"));
        buffer.insert(Time::from_nanos(at), number, payload, EDGE, &mut ready);
        assert_eq!(
            buffer.hold_deadline(Duration::ZERO),
            Some(Time::from_nanos(1)),
            "9 was first, and every hole so far lies before it"
        );
    }
    assert_eq!(buffer.next(), 2);
    buffer.insert(Time::from_nanos(7), 20, None, EDGE, &mut ready);
    buffer.skip_hole(Time::from_nanos(8), u64::MAX, &mut ready);
    buffer.skip_hole(Time::from_nanos(8), u64::MAX, &mut ready);
    assert_eq!(
        (buffer.next(), buffer.hold_deadline(Duration::ZERO)),
        (10, Some(Time::from_nanos(7))),
        "before 20"
    );
}

#[test]
fn what_comes_after_it_was_skipped_is_late_and_no_duplicate() {
    let mut buffer = Reassembly::new(Ordering::Partial, 0);
    feed(&mut buffer, &[0, 3]);
    assert_eq!(buffer.skip_hole(Time::ZERO, u64::MAX, &mut VecDeque::new()), 2);
    let (arrivals, delivered) = feed(&mut buffer, &[1, 2, 3, 0]);
    assert_eq!(
        arrivals,
        [
            Arrival::Late,
            Arrival::Late,
            Arrival::Duplicate,
            Arrival::Duplicate
        ]
    );
    assert_eq!((delivered.len(), buffer.next()), (0, 4));
}

#[test]
fn the_memory_of_skipped_numbers_is_bounded() {
    let mut buffer = Reassembly::new(Ordering::Partial, 0);
    let mut ready = VecDeque::new();
    for number in 0..100_000 {
        buffer.insert(Time::ZERO, 2 * number + 1, None, u64::MAX, &mut ready);
        assert_eq!(buffer.skip_hole(Time::ZERO, u64::MAX, &mut ready), 1);
    }
    assert!(buffer.skipped.len() as u64 <= REMEMBERED_SKIPS);
    assert_eq!(feed(&mut buffer, &[0]).0, [Arrival::Duplicate], "long forgotten");
}

#[test]
fn what_was_sent_and_never_came_is_a_hole_although_nothing_follows_it() {
    let mut buffer = Reassembly::new(Ordering::Ordered, 0);
    buffer.expect_below(Time::ZERO, 3);
    feed(&mut buffer, &[0]);
    let mut ready = VecDeque::new();
    assert!(buffer.hold_deadline(Duration::ZERO).is_some());
    assert_eq!(buffer.skip_hole(Time::ZERO, u64::MAX, &mut ready), 2);
    assert_eq!((buffer.next(), buffer.hold_deadline(Duration::ZERO)), (3, None));
    buffer.expect_below(Time::ZERO, 4);
    feed(&mut buffer, &[3]);
    assert_eq!(buffer.skip_hole(Time::ZERO, u64::MAX, &mut ready), 0);
    assert_eq!(buffer.hold_deadline(Duration::ZERO), None);
}

#[test]
fn a_number_without_payload_counts_and_delivers_nothing() {
    let mut buffer = Reassembly::new(Ordering::Ordered, 0);
    let mut ready = VecDeque::new();
    buffer.insert(Time::ZERO, 1, None, EDGE, &mut ready);
    buffer.insert(Time::ZERO, 0, Some(Bytes::from_static(b"x")), EDGE, &mut ready);
    assert_eq!((ready.len(), buffer.next()), (1, 2));
}
