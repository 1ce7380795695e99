//! What a receiver of several paths keeps (RFC 8684 §3.3).

use super::*;

/// Each costs more memory than the byte that the window counts.
#[test]
fn tiny_pieces_that_nobody_reads_are_bounded() {
    let mut rx = DataReceiver::of_bytes(FIRST, 0, 1 << 20, 16);
    let taken = (0..100_000).position(|number| {
        rx.on_data(at(0), FIRST + number, Bytes::from_static(b"x")) == Ok(Arrival::BeyondWindow)
    });
    assert_eq!(taken, Some(crate::receiver::MAX_PIECES));
}
