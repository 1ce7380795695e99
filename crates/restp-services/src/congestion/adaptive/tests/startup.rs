//! What ends slow start, and what does not (RFC 9406 §4.2; BBRv3 draft §4.3.1).

use super::*;
use crate::recovery::LostSegment;

/// So many segments of one episode.
fn lose(life: &mut Life, count: u64) {
    for _ in 0..count {
        life.tell(&CongestionEvent::SegmentLost(LostSegment {
            sent_at: life.now,
            bytes: SEGMENT,
            lost_bytes: SEGMENT,
            sent_in_flight_bytes: life.flight(),
            delivered_before: life.delivered,
            delivered_total: life.delivered,
            application_limited: false,
        }));
    }
    life.lose();
}

/// A lost segment told nothing of the path and ended startup: of 50 Mbit/s over 60 ms with 2 % lost a flow had 4 in the first half second, and
/// 9 in the second.
#[test]
fn few_losses_without_a_queue_end_no_startup() {
    let mut life = Life::begin();
    for few in [1, 3, 3, 3] {
        let window = life.control.window;
        life.round();
        lose(&mut life, few);
        assert_eq!(
            (life.control.mode, life.control.window),
            (Mode::Startup, 2 * window)
        );
    }
    let mut life = Life::begin();
    (0..2).for_each(|_| life.round());
    lose(&mut life, 6);
    assert_eq!(life.control.mode, Mode::Alone, "of 40 segments");
    let mut life = Life::begin();
    life.mark();
    assert_eq!(life.control.mode, Mode::Alone);
    let mut life = Life::alone();
    life.control.has_met_congestion = true;
    life.control.ask_anew();
    lose(&mut life, 1);
    assert_eq!(life.control.mode, Mode::Alone, "there is somebody else");
}
