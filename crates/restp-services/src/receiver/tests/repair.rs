//! Repair by encoded packets (ResTP §3.5.8, OP-40, OP-41), with the vectors of ResTP §11.1 and §11.3.

use super::*;
use crate::reliability::FecCode;

const PAYLOADS: [&[u8]; 3] = [b"abc", b"de", b"fghi"];
const ENCODED: &[u8] = b"\x00\x05\x63\x60\x0B\x69";
const BASIC: u8 = 1;

/// Segments begin with 20, and 20 to 22 are `PAYLOADS`.
fn coded(reports: bool) -> Receiver {
    let mut receiver = opening(Some(50));
    receiver.begin_segments(20, Ordering::Ordered, WINDOW, nak(20));
    receiver.repair_by(FecDecoder::new(FecCode::Basic), reports);
    receiver
}

fn arrives(receiver: &mut Receiver, number: u64) -> Arrival {
    let payload = Bytes::from_static(PAYLOADS[(number - 20) as usize]);
    let arrival = receiver.on_segment(at(0), number, Some(payload), None, false);
    arrival.expect("nothing of the end")
}

#[test]
fn the_one_missing_segment_is_rebuilt() {
    let mut receiver = coded(true);
    arrives(&mut receiver, 20);
    arrives(&mut receiver, 22);
    assert_eq!(receiver.on_encoded(BASIC, 20, 3, ENCODED), Repair::Taken);
    let rebuilt = (21, Some(Bytes::from_static(b"de")));
    assert_eq!(receiver.next_rebuilt(), Some(rebuilt));
    assert_eq!(receiver.beyond_repair(), 0, "ResTP §11.3");
    arrives(&mut receiver, 21);
    assert_eq!(receiver.on_encoded(BASIC, 20, 3, ENCODED), Repair::Taken);
    assert_eq!(receiver.next_rebuilt(), None);
}

#[test]
fn a_missing_fin_is_rebuilt_without_payload() {
    let mut receiver = coded(true);
    arrives(&mut receiver, 20);
    assert_eq!(receiver.on_encoded(BASIC, 20, 2, b"\x00\x03abc"), Repair::Taken);
    assert_eq!(receiver.next_rebuilt(), Some((21, None)));
}

#[test]
fn two_missing_segments_are_reported_at_once_to_a_sender_that_retransmits() {
    for (reports, range) in [(true, 2), (false, 0)] {
        let mut receiver = coded(reports);
        arrives(&mut receiver, 20);
        assert_eq!(receiver.on_encoded(BASIC, 20, 3, ENCODED), Repair::Taken);
        assert_eq!(receiver.beyond_repair(), range, "21 and 22 (OP-42)");
        assert_eq!(owed(&mut receiver), u32::from(reports));
    }
}

#[test]
fn what_cannot_be_an_encoded_packet_is_refused() {
    let mut receiver = coded(true);
    assert_eq!(
        receiver.on_encoded(2, 20, 3, ENCODED),
        Repair::Malformed,
        "another code"
    );
    assert_eq!(receiver.on_encoded(BASIC, 20, 3, b"\x00"), Repair::Malformed);
    receiver.on_segment(at(0), 21, None, None, false).unwrap();
    assert_eq!(
        receiver.on_encoded(BASIC, 20, 3, ENCODED),
        Repair::Malformed,
        "beyond the FIN"
    );
    assert_eq!(
        receiver.on_encoded(BASIC, 20, 2, b"\x00\x03abc"),
        Repair::Taken,
        "up to the FIN"
    );
    let rebuilt = (20, Some(Bytes::from_static(b"abc")));
    assert_eq!(receiver.next_rebuilt(), Some(rebuilt));
    let mut plain = segments(None);
    assert_eq!(
        plain.on_encoded(BASIC, 10, 3, ENCODED),
        Repair::Malformed,
        "nobody encodes"
    );
    assert_eq!(plain.beyond_repair(), 0);
}

#[test]
fn what_covers_numbers_beyond_the_window_is_not_looked_at() {
    let mut receiver = coded(true);
    assert_eq!(
        receiver.on_encoded(BASIC, 26, 3, ENCODED),
        Repair::BeyondWindow,
        "20 to 27 are taken"
    );
    assert_eq!(receiver.on_encoded(BASIC, 25, 3, ENCODED), Repair::Taken);
}

#[test]
fn a_segment_that_comes_too_late_still_repairs_others() {
    let mut receiver = coded(true);
    arrives(&mut receiver, 20);
    arrives(&mut receiver, 22);
    assert_eq!(receiver.skip_holes(at(50), None), 1);
    assert_eq!(arrives(&mut receiver, 21), Arrival::Late);
    let mut encoded = ENCODED.to_vec(); // with 23, one byte x
    encoded[1] ^= 1;
    encoded[2] ^= b'x';
    assert_eq!(receiver.on_encoded(BASIC, 20, 4, &encoded), Repair::Taken);
    let rebuilt = (23, Some(Bytes::from_static(b"x")));
    assert_eq!(receiver.next_rebuilt(), Some(rebuilt));
}

#[test]
fn duplicates_take_no_memory_for_repairs_and_nothing_does_at_the_end() {
    let mut receiver = coded(true);
    arrives(&mut receiver, 20);
    assert_eq!(receiver.memory(), 6, "unread, and kept for repairs");
    arrives(&mut receiver, 20);
    assert_eq!(receiver.memory(), 6);
    receiver.stop();
    assert_eq!(receiver.memory(), 3);
    assert_eq!(receiver.on_encoded(BASIC, 20, 3, ENCODED), Repair::Malformed);
}

/// 20 is of the old era and missing, so both eras are here; 21 is rebuilt from 22, which the new era's decoder has (ADR 0007, rule 3).
#[test]
fn while_two_eras_are_here_each_repairs_its_own() {
    let mut receiver = coded(false);
    receiver.turn_at(
        21,
        Ordering::Ordered,
        None,
        Some(FecDecoder::new(FecCode::Basic)),
        true,
    );
    arrives(&mut receiver, 22);
    assert_eq!(
        receiver.on_encoded(BASIC, 21, 2, b"\x00\x06\x02\x02hi"),
        Repair::Taken
    );
    let rebuilt = (21, Some(Bytes::from_static(b"de")));
    assert_eq!(receiver.next_rebuilt(), Some(rebuilt));
    let over_both = receiver.on_encoded(BASIC, 20, 3, ENCODED);
    assert_eq!(over_both, Repair::Malformed, "nobody encodes over a boundary");
}

#[test]
fn when_the_old_era_has_come_the_new_one_is_what_reports() {
    for old_has_come in [false, true] {
        let mut receiver = coded(false);
        receiver.turn_at(
            21,
            Ordering::Ordered,
            None,
            Some(FecDecoder::new(FecCode::Basic)),
            true,
        );
        if old_has_come {
            arrives(&mut receiver, 20);
        }
        assert_eq!(
            receiver.on_encoded(BASIC, 21, 2, b"\x00\x06\x02\x02hi"),
            Repair::Taken
        );
        assert_eq!(receiver.beyond_repair(), if old_has_come { 2 } else { 0 });
    }
}
