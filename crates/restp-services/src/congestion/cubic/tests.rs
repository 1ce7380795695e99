//! RFC 9438 with its own numbers: reductions, stages of avoidance, undo, and time that does not count.

use super::super::conformance::{acked, path};
use super::super::cubic_curve::tests::rfc_curve;
use super::*;

mod linux;

const SEGMENT: u64 = 1000;
const RTT: Duration = Duration::from_millis(50);

/// A controller in slow start with a window of `segments`.
fn at_window(segments: u64) -> Cubic {
    let mut cubic = Cubic::new(&CubicParams::default(), SEGMENT);
    cubic.on(&acked(10 * SEGMENT), &path(SEGMENT));
    while cubic.window_bytes() < segments * SEGMENT {
        let missing = segments * SEGMENT - cubic.window_bytes();
        cubic.on(&acked(missing), &path(SEGMENT));
    }
    cubic
}

/// The view of a path with everything in flight that `cubic` allows.
fn full(cubic: &Cubic, now: Time) -> PathView<'static> {
    PathView {
        now,
        in_flight_bytes: cubic.window_bytes(),
        smoothed_rtt: Some(RTT),
        ..path(SEGMENT)
    }
}

fn lose(cubic: &mut Cubic, now: Time) {
    let view = full(cubic, now);
    cubic.on(&CongestionEvent::Lost { bytes: SEGMENT }, &view);
}

#[test]
fn a_loss_takes_three_tenths() {
    let mut cubic = at_window(100);
    lose(&mut cubic, Time::ZERO);
    assert_eq!(
        (cubic.window_bytes(), cubic.snapshot().threshold_bytes),
        (70_000, Some(70_000))
    );
    assert_eq!(cubic.state.maximum, 100_000);
}

#[test]
fn the_window_runs_along_the_curve_for_a_minute() {
    let mut cubic = at_window(200);
    lose(&mut cubic, Time::ZERO);
    // A smooth stream of acknowledgements: a window per round trip, every 0.1 ms a 500th of it.
    let step = Duration::from_micros(100);
    let mut now = Time::ZERO;
    let mut owed = 0;
    while now < Time::ZERO + Duration::from_secs(60) {
        owed += cubic.window_bytes();
        let view = full(&cubic, now);
        cubic.on(&acked(owed / 500), &view);
        owed %= 500;
        let stage = cubic.state.stage.expect("avoidance");
        let expected = rfc_curve(now.as_secs_f64(), 200.0, 140.0).max(stage.estimate / SEGMENT as f64);
        let window = cubic.window_bytes() as f64 / SEGMENT as f64;
        assert!(
            (window - expected).abs() < 1.0,
            "at {now:?}: {window}, RFC {expected}"
        );
        now += step;
    }
    assert!(
        cubic.window_bytes() > 60_000 * SEGMENT,
        "the convex region was reached"
    );
}

#[test]
fn one_acknowledgement_adds_the_distance_to_the_target_over_the_window() {
    let mut cubic = at_window(1000);
    lose(&mut cubic, Time::ZERO);
    let view = full(&cubic, Time::ZERO);
    cubic.on(&acked(SEGMENT), &view);
    // t = 0: W_cubic(0) = 700 is not yet Reno's 700 + 0.53/700, so Reno's window counts.
    assert_eq!(cubic.window_bytes(), 700_000);
    let now = Time::ZERO + Duration::from_secs(1);
    let view = full(&cubic, now);
    cubic.on(&acked(SEGMENT), &view);
    // K = ∛750 = 9.0856; W_cubic(1.05) = 0.4 (1.05 − 9.0856)³ + 1000 = 792.452; 92 452 × 1000 / 700 000 = 132.
    assert_eq!(cubic.window_bytes(), 700_132);
    // 131.94, then 131.68 with what was left before: no fraction of a byte is lost.
    cubic.on(&acked(SEGMENT), &view);
    assert_eq!(cubic.window_bytes(), 700_263);
    cubic.on(&acked(SEGMENT), &view);
    assert_eq!(cubic.window_bytes(), 700_395);
}

#[test]
fn the_target_is_at_most_half_a_window_ahead() {
    let mut cubic = at_window(100);
    lose(&mut cubic, Time::ZERO);
    let view = full(&cubic, Time::ZERO);
    cubic.on(&acked(SEGMENT), &view);
    let before = cubic.window_bytes();
    let view = full(&cubic, Time::ZERO + Duration::from_secs(60));
    cubic.on(&acked(SEGMENT), &view); // the curve stands at 69 000 segments
    // Half of 70 007 is 35 003, times 1000 over 70 007 is 499.99.
    assert_eq!((before, cubic.window_bytes()), (70_007, 70_506));
}

#[test]
fn on_short_paths_the_window_is_reno_s_estimate_to_the_byte() {
    let mut cubic = at_window(20);
    lose(&mut cubic, Time::ZERO);
    assert_eq!(cubic.window_bytes(), 14_000);
    let (mut estimate, mut window) = (14.0, 14.0);
    let mut now = Time::ZERO;
    for _ in 0..400 {
        let view = PathView {
            smoothed_rtt: Some(Duration::from_millis(1)),
            ..full(&cubic, now)
        };
        cubic.on(&acked(SEGMENT), &view);
        // RFC 9438 §4.3 with α = 3 (1 − 0.7) / (1 + 0.7) below cwnd_prior = 20 segments, 1 from there on.
        let alpha: f64 = if estimate < 20.0 {
            3.0 * (1.0 - 0.7) / (1.0 + 0.7)
        } else {
            1.0
        };
        estimate += alpha / window;
        window = cubic.window_bytes() as f64 / SEGMENT as f64;
        assert!((window - estimate).abs() < 0.0015, "{window}, RFC {estimate}");
        now += Duration::from_micros(50);
    }
    assert!(window > 25.0, "both values of α were in use: {window}");
}

#[test]
fn a_window_that_shrinks_from_loss_to_loss_makes_room() {
    let mut cubic = at_window(100);
    lose(&mut cubic, Time::ZERO);
    assert_eq!(cubic.state.maximum, 100_000);
    lose(&mut cubic, Time::ZERO);
    // RFC 9438 §4.7: 70 < 100, so W_max = 70 · (1 + 0.7) / 2 = 59.5; the window itself falls by β.
    assert_eq!((cubic.state.maximum, cubic.window_bytes()), (59_500, 49_000));
    let mut steady = Cubic {
        fast_convergence: false,
        ..at_window(100)
    };
    lose(&mut steady, Time::ZERO);
    lose(&mut steady, Time::ZERO);
    assert_eq!((steady.state.maximum, steady.window_bytes()), (70_000, 49_000));
}

#[test]
fn every_loss_begins_a_curve_of_its_own() {
    let mut cubic = at_window(100);
    lose(&mut cubic, Time::ZERO);
    let view = full(&cubic, Time::ZERO);
    cubic.on(&acked(SEGMENT), &view);
    let now = Time::ZERO + Duration::from_secs(3);
    lose(&mut cubic, now);
    let view = full(&cubic, now);
    cubic.on(&acked(SEGMENT), &view);
    let stage = cubic.state.stage.expect("avoidance");
    assert_eq!((stage.began, stage.plateau), (now, cubic.state.maximum as f64));
}

#[test]
fn after_a_timeout_avoidance_begins_at_its_own_plateau() {
    let mut cubic = at_window(100);
    lose(&mut cubic, Time::ZERO);
    let view = full(&cubic, Time::ZERO);
    cubic.on(&CongestionEvent::Timeout { repeated: false }, &view);
    assert_eq!(
        (cubic.window_bytes(), cubic.snapshot().threshold_bytes),
        (1000, Some(49_000))
    );
    let view = full(&cubic, Time::ZERO);
    cubic.on(&CongestionEvent::Timeout { repeated: true }, &view);
    assert_eq!(cubic.snapshot().threshold_bytes, Some(49_000));
    while cubic.snapshot().state == "slow-start" {
        let view = full(&cubic, Time::ZERO);
        cubic.on(
            &acked(view.in_flight_bytes.min(49_000 - view.in_flight_bytes)),
            &view,
        );
    }
    assert_eq!(cubic.window_bytes(), 49_000);
    let view = full(&cubic, Time::ZERO);
    cubic.on(&acked(SEGMENT), &view);
    let stage = cubic.state.stage.expect("avoidance");
    // RFC 9438 §4.8: K = 0 and W_max = cwnd, not the 100 segments of before.
    assert_eq!((stage.plateau_after, stage.plateau), (0.0, 49_000.0));
    assert_eq!(cubic.state.prior, 70_000);
}

/// What was in flight was little, so one acknowledgement ended the slow start after the timeout, and the curve of before it went
/// on: the window leapt from two segments to what Reno would have had.
#[test]
fn a_slow_start_of_one_acknowledgement_ends_the_curve_of_before_the_timeout_too() {
    let mut cubic = at_window(100);
    lose(&mut cubic, Time::ZERO);
    let view = full(&cubic, Time::ZERO);
    cubic.on(&acked(SEGMENT), &view);
    let before = cubic.state.stage.expect("avoidance");
    let now = Time::ZERO + Duration::from_secs(1);
    let mut view = full(&cubic, now);
    view.in_flight_bytes = SEGMENT;
    cubic.on(&CongestionEvent::Timeout { repeated: false }, &view);
    assert_eq!(cubic.snapshot().threshold_bytes, Some(2 * SEGMENT));
    for _ in 0..2 {
        let view = full(&cubic, now);
        cubic.on(&acked(SEGMENT), &view);
        assert!(cubic.window_bytes() <= 3 * SEGMENT, "{}", cubic.window_bytes());
    }
    let stage = cubic.state.stage.expect("avoidance");
    assert!(stage.began == now && stage.estimate < before.estimate);
}

#[test]
fn a_spurious_reduction_brings_back_the_curve_too() {
    let mut cubic = at_window(100);
    lose(&mut cubic, Time::ZERO);
    let view = full(&cubic, Time::ZERO);
    cubic.on(&acked(SEGMENT), &view);
    let before = cubic.state;
    let view = full(&cubic, Time::ZERO);
    cubic.on(&CongestionEvent::Timeout { repeated: false }, &view);
    assert_eq!(cubic.window_bytes(), 1000);
    cubic.on(&CongestionEvent::Restored, &view);
    assert_eq!(cubic.window_bytes(), before.window.bytes);
    assert_eq!(cubic.state.maximum, 100_000);
    let (now, then) = (
        cubic.state.stage.expect("restored"),
        before.stage.expect("avoidance"),
    );
    assert_eq!(
        (now.began, now.plateau_after, now.estimate),
        (then.began, then.plateau_after, then.estimate)
    );
}

#[test]
fn time_the_application_does_not_use_does_not_move_the_curve() {
    let pause = Duration::from_secs(30);
    let grown = |paused: bool| {
        let mut cubic = at_window(100);
        lose(&mut cubic, Time::ZERO);
        let mut now = Time::ZERO;
        for round in 0..40 {
            let view = full(&cubic, now);
            cubic.on(&acked(view.in_flight_bytes), &view);
            if paused && round == 20 {
                now += pause;
                let view = PathView {
                    application_limited: true,
                    ..full(&cubic, now)
                };
                cubic.on(&acked(SEGMENT), &view);
            }
            if paused && round == 30 {
                now += pause;
                let view = PathView {
                    in_flight_bytes: SEGMENT,
                    ..full(&cubic, now)
                };
                cubic.on(&CongestionEvent::Sent { bytes: SEGMENT }, &view);
            }
            now += RTT;
        }
        cubic.window_bytes()
    };
    assert_eq!(grown(true), grown(false));
}

#[test]
fn after_silence_slow_start_leads_back_to_the_curve() {
    let mut cubic = at_window(100);
    lose(&mut cubic, Time::ZERO);
    let view = full(&cubic, Time::ZERO);
    cubic.on(&acked(SEGMENT), &view);
    let view = full(&cubic, Time::ZERO + Duration::from_secs(1));
    cubic.on(&acked(SEGMENT), &view);
    let now = Time::ZERO + Duration::from_secs(5);
    let view = full(&cubic, now);
    cubic.on(
        &CongestionEvent::Idle {
            gap: Duration::from_secs(5),
        },
        &view,
    );
    assert_eq!(
        (cubic.window_bytes(), cubic.snapshot().state),
        (10_000, "slow-start")
    );
    for _ in 0..4 {
        let view = full(&cubic, now);
        cubic.on(&acked(view.in_flight_bytes), &view);
    }
    let stage = cubic.state.stage.expect("avoidance");
    assert_eq!(stage.began, now);
    assert!(
        (stage.plateau_after - 4.217).abs() < 0.001,
        "K by the saved W_max: {}",
        stage.plateau_after
    );
}

#[test]
fn a_mark_may_leave_one_segment_where_a_loss_leaves_two() {
    let small = |event| {
        let mut cubic = at_window(10);
        let view = PathView {
            in_flight_bytes: 2 * SEGMENT,
            ..path(SEGMENT)
        };
        cubic.on(&event, &view);
        (cubic.window_bytes(), cubic.snapshot().threshold_bytes)
    };
    assert_eq!(
        small(CongestionEvent::Lost { bytes: SEGMENT }),
        (2000, Some(2000))
    );
    assert_eq!(
        small(CongestionEvent::Marked { bytes: SEGMENT }),
        (1400, Some(2000))
    ); // RFC 9438 §4.6
}

#[test]
fn a_mark_in_avoidance_may_cost_half_of_what_a_loss_costs() {
    let kept = |abe, event| {
        let common = CommonParams {
            abe,
            ..CommonParams::default()
        };
        let mut cubic = Cubic::new(
            &CubicParams {
                common,
                ..CubicParams::default()
            },
            SEGMENT,
        );
        let view = PathView {
            in_flight_bytes: 10 * SEGMENT,
            ..path(SEGMENT)
        };
        let first = CongestionEvent::Marked { bytes: SEGMENT };
        cubic.on(&first, &view);
        let after_first = cubic.window_bytes();
        let view = PathView {
            in_flight_bytes: after_first,
            ..path(SEGMENT)
        };
        cubic.on(&event, &view);
        (after_first, cubic.window_bytes(), cubic.state.maximum)
    };
    let (marked, lost) = (
        CongestionEvent::Marked { bytes: SEGMENT },
        CongestionEvent::Lost { bytes: SEGMENT },
    );
    // The first mark ends slow start; 7000 below the last maximum converge fast to (1 + β) / 2 of them.
    assert_eq!(
        kept(true, marked),
        (7000, 5950, 6475),
        "RFC 8511 §3.1, RFC 9438 §4.7"
    );
    assert_eq!(kept(true, lost), (7000, 4900, 5950));
    assert_eq!(kept(false, marked), (7000, 4900, 5950));
}

#[test]
fn seven_tenths_are_kept_to_the_byte() {
    for bytes in (0..100).chain([u64::MAX]) {
        let exact = u128::from(bytes) * 7 / 10;
        let (_, kept) = CubicRules::Rfc9438.reduced(0, bytes, CubicRules::Rfc9438.beta(), SEGMENT);
        assert_eq!(u128::from(kept), exact, "of {bytes}");
    }
}

/// Two parts of a flow that are cut together are that flow: after some losses their windows together are its window.
#[test]
fn parts_that_are_cut_together_are_one_flow() {
    let step = Duration::from_millis(1);
    let life = |parts: u32| {
        let mut cubic = at_window(200 / u64::from(parts));
        cubic.set_parts(parts);
        let mut now = Time::ZERO;
        for millis in 0..24_000u64 {
            if millis % 6_000 == 0 {
                lose(&mut cubic, now);
            }
            let view = full(&cubic, now);
            cubic.on(&acked(cubic.window_bytes() / 50), &view);
            now += step;
        }
        cubic.window_bytes() * u64::from(parts)
    };
    let (whole, halves) = (life(1), life(2));
    assert!(whole.abs_diff(halves) < whole / 100, "{whole} and {halves}");
}
