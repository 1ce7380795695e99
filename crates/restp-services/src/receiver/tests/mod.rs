//! The receiver through its doors, in virtual time. Segments of ours have 100 bytes, and 8 of them make the window.

mod bytes;
mod credit;
mod messages;
mod repair;
mod segments;

use super::*;
use crate::ack::{AckRatio, NakParameters, PositiveParameters, RepeatParameters, Schedule};
use crate::ordering::Arrival;
use restp_base::time::{Duration, Time};

const WINDOW: WindowParameters = WindowParameters { segments: 8 };

fn at(ms: u64) -> Time {
    Time::ZERO + Duration::from_millis(ms)
}

fn nak(next: u64) -> NakReporter {
    NakReporter::new(NakParameters::default(), 8, next)
}

/// Data of so many bytes.
fn data(len: usize) -> Bytes {
    Bytes::from(vec![7; len])
}

/// Every second segment is acknowledged, or a lone one after 40 ms, and the last acknowledgement is repeated.
fn opening(hold_ms: Option<u64>) -> Receiver {
    let positive = Schedule::Positive(PositiveParameters::default());
    let ack = AckTimer::new(positive, Some(RepeatParameters::default()));
    let hold = hold_ms.map(|hold| HoldParameters {
        hold: Some(Duration::from_millis(hold)),
        ..HoldParameters::default()
    });
    Receiver::new(100, WINDOW, ack, nak(0), hold)
}

/// The first segment is 10. A hole may stay for `hold_ms`.
fn segments(hold_ms: Option<u64>) -> Receiver {
    let mut receiver = opening(hold_ms);
    receiver.begin_segments(10, Ordering::Ordered, WINDOW, nak(10));
    receiver
}

/// The same where the peer asks for fewer acknowledgements, and is heard.
fn thinning(ratio: AckRatio) -> Receiver {
    let thin = Schedule::Positive(PositiveParameters {
        thins: true,
        ..PositiveParameters::default()
    });
    let mut receiver = Receiver::new(100, WINDOW, AckTimer::new(thin, None), nak(0), None);
    receiver.begin_segments(10, Ordering::Ordered, WINDOW, nak(10));
    receiver.acknowledgement().on_ratio(ratio);
    receiver
}

/// The first byte is 1000, and 400 bytes are promised, in units of 4.
fn byte_stream() -> Receiver {
    let mut receiver = opening(None);
    receiver.begin_bytes(1000, 2, 100, 3, nak(1000));
    assert_eq!(receiver.advertise(), 100);
    receiver
}

/// A segment of `len` bytes arrives.
fn arrives(receiver: &mut Receiver, number: u64, len: usize) -> Arrival {
    let arrival = receiver.on_segment(at(0), number, Some(data(len)), None, false);
    arrival.expect("nothing of the end")
}

/// One byte arrives in each segment of `numbers`.
fn all_arrive(receiver: &mut Receiver, numbers: std::ops::Range<u64>) {
    for number in numbers {
        assert_eq!(arrives(receiver, number, 1), Arrival::InOrder);
    }
}

/// What the reader gets, by the bytes of each piece.
fn read(receiver: &mut Receiver) -> Vec<usize> {
    std::iter::from_fn(|| match receiver.read(false, false) {
        Read::Data(data) => Some(data),
        Read::Empty | Read::End => None,
    })
    .map(|piece| piece.len())
    .collect()
}

/// How many acknowledgements are owed at once; they leave.
fn owed(receiver: &mut Receiver) -> u32 {
    let mut count = 0;
    while receiver.ack_timer().is_owed() {
        receiver.acknowledgement().on_sent();
        count += 1;
    }
    count
}
