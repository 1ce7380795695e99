//! What ends slow start, and what does not (RFC 9406 §4.2; BBRv3 draft §4.3.1).

use super::*;
use crate::recovery::LostSegment;

/// So many segments of one episode.
fn lose(life: &mut Life, count: u64) {
    told(life, count);
    life.lose();
}

/// So many more of an episode that has begun.
fn told(life: &mut Life, count: u64) {
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
    for (rounds, losses, goes_on) in [
        (0, 3, true),
        (0, 4, false),
        (2, 4, true),
        (2, 5, true),
        (2, 6, false),
    ] {
        let mut life = Life::begin();
        (0..rounds).for_each(|_| life.round());
        told(&mut life, losses);
        let is_starting = life.control.mode == Mode::Startup;
        assert_eq!(is_starting, goes_on, "{losses} of {}", 10 << rounds);
    }
    let mut life = Life::begin();
    (0..2).for_each(|_| life.round());
    for _ in 0..2 {
        lose(&mut life, 5);
        life.round();
    }
    assert_eq!(life.control.mode, Mode::Startup, "each round by itself");
    let mut life = Life::begin();
    life.control.startup.queued = 1;
    told(&mut life, 1);
    assert_eq!(life.control.mode, Mode::Alone, "a queue has begun");
    let mut life = Life::alone();
    life.control.has_met_congestion = true;
    life.control.ask_anew();
    lose(&mut life, 1);
    assert_eq!(life.control.mode, Mode::Alone, "there is somebody else");
}

/// What ends it and was not lost after all is undone, whatever else the same report tells; what it goes on with is no reduction to undo.
#[test]
fn only_what_ended_startup_is_undone() {
    let mut life = Life::begin();
    (0..2).for_each(|_| life.round());
    let window = life.control.window;
    lose(&mut life, 6);
    assert!(life.control.mode == Mode::Alone && life.control.window <= window);
    life.tell(&CongestionEvent::Restored);
    assert_eq!((life.control.mode, life.control.window), (Mode::Startup, window));
    let mut life = Life::begin();
    life.round();
    lose(&mut life, 1);
    assert_eq!(life.control.mode, Mode::Startup);
    while life.control.mode == Mode::Startup {
        life.round();
    }
    life.tell(&CongestionEvent::Restored);
    assert_eq!(life.control.mode, Mode::Alone, "a queue ended it");
}

/// A call that loses segments answers by sending less.
#[test]
fn who_does_not_fill_the_window_answers_the_first_loss() {
    let mut life = Life::begin();
    life.sends = Some(5 * SEGMENT);
    (0..3).for_each(|_| life.round());
    lose(&mut life, 1);
    assert_eq!(life.control.mode, Mode::Alone);
}

/// 50 Mbit/s over 600 ms: as long as round trips had the queue of the start, half of the rate was all that left, and the window was cut to that.
#[test]
fn the_queue_of_a_start_drains_at_the_rate_of_the_path_and_then_does_not_slow_the_flow() {
    let mut life = Life::begin();
    while life.control.mode == Mode::Startup {
        life.round();
    }
    let rate = life.control.rate.unwrap();
    let paces = |control: &mut Adaptive, window| {
        control.window = window;
        control.pacing().unwrap()
    };
    assert_eq!(paces(&mut life.control, HOLDS / 2), rate);
    (0..5).for_each(|_| life.round());
    assert!(paces(&mut life.control, HOLDS / 2).as_bps() * 4 < rate.as_bps() * 3);
}

/// A round trip without a queue, whose first answer has waited: the rate that it shows is a hundredth.
fn round_after_a_pause(life: &mut Life, pauses: bool) {
    life.now += BASE;
    let (flight, before) = (life.flight(), life.delivered);
    for answer in 0..10 {
        life.delivered += flight / 10;
        let waited = if answer == 0 && pauses { 100 } else { 1 };
        let rate = RateSample {
            delivered_bytes: flight,
            interval: BASE * waited,
            delivered_before: before,
            delivered_total: life.delivered,
            lost_bytes: 0,
            sent_in_flight_bytes: flight,
            application_limited: false,
        };
        life.tell(&CongestionEvent::Acked {
            bytes: flight / 10,
            rtt: Some(BASE),
            rate: Some(rate),
        });
    }
}

/// Where some segments come late, flights are apart: the pause was taken for the rate of the path, which then grew no more.
#[test]
fn a_pause_between_two_flights_is_not_the_rate_of_the_path() {
    let mut life = Life::begin();
    for round in 0..8 {
        round_after_a_pause(&mut life, round >= 2);
        assert_eq!(life.control.mode, Mode::Startup);
    }
    let window = life.control.window;
    assert_eq!(window, (INITIAL_SEGMENTS * SEGMENT) << 8);
    round_after_a_pause(&mut life, true);
    lose(&mut life, window / SEGMENT);
    assert_eq!(life.control.mode, Mode::Alone);
    assert!(
        life.control.window >= window,
        "what the last round has carried: {}",
        life.control.window
    );
    let mut full = Life::begin();
    (0..4).for_each(|_| round_after_a_pause(&mut full, false));
    let held = full.control.window;
    for _ in 0..6 {
        if full.control.mode == Mode::Startup {
            full.control.window = held;
            round_after_a_pause(&mut full, true);
        }
    }
    assert_eq!(
        full.control.mode,
        Mode::Alone,
        "a rate that grows no more ends it"
    );
    assert!(
        full.control.window > held / 10 * 9,
        "{} of {held}",
        full.control.window
    );
}
