//! Where Linux departs from RFC 9438, by `tcp_cubic.c`.

use super::super::super::conformance::{acked, acked_after};
use super::*;

fn linux(segments: u64) -> Cubic {
    let params = CubicParams {
        rules: CubicRules::Linux,
        ..CubicParams::default()
    };
    let mut cubic = Cubic::new(&params, SEGMENT);
    let window = &mut cubic.state.window;
    (window.bytes, window.threshold) = (segments * SEGMENT, segments * SEGMENT);
    cubic
}

/// What a window of acknowledgements adds, in thousandths of a segment.
fn round(cubic: &mut Cubic, now: Time) -> u64 {
    let before = cubic.window_bytes();
    for _ in 0..before / SEGMENT {
        let view = full(cubic, now);
        cubic.on(&acked(SEGMENT), &view);
    }
    cubic.window_bytes() - before
}

#[test]
fn until_the_first_loss_linux_grows_by_a_twentieth() {
    let mut cubic = linux(100);
    assert_eq!((round(&mut cubic, Time::ZERO) + 50) / 100, 50, "by five segments");
    lose(&mut cubic, Time::ZERO);
    let (kept, grown) = (cubic.window_bytes() / SEGMENT, round(&mut cubic, Time::ZERO));
    assert!(grown < 1_000, "{grown} beside {kept} segments");
    let view = full(&cubic, Time::ZERO);
    cubic.on(&CongestionEvent::Timeout { repeated: false }, &view);
    while cubic.state.window.in_slow_start() {
        round(&mut cubic, Time::ZERO);
    }
    let (window, grown) = (cubic.window_bytes(), round(&mut cubic, Time::ZERO));
    assert!(
        grown + SEGMENT >= window / 20,
        "after a timeout {grown} of {window}"
    );
}

/// One of so many bytes is in flight.
fn almost_idle(cubic: &Cubic) -> PathView<'static> {
    PathView {
        in_flight_bytes: SEGMENT,
        ..full(cubic, Time::ZERO)
    }
}

const REDUCTIONS: [CongestionEvent; 3] = [
    CongestionEvent::Lost { bytes: SEGMENT },
    CongestionEvent::Marked { bytes: SEGMENT },
    CongestionEvent::Timeout { repeated: false },
];

/// `tcp_cubic.c`: max(cwnd × 717 / 1024, 2), for every kind of reduction.
#[test]
fn linux_keeps_whole_segments_of_its_window() {
    for (bytes, kept) in [
        (2_000, 2),
        (4_900, 2),
        (5_000, 3),
        (11_900, 7),
        (13_000, 9),
        (100_000, 70),
        (1_000_000, 700),
    ] {
        for event in REDUCTIONS {
            let mut cubic = linux(1);
            (cubic.state.window.bytes, cubic.state.window.threshold) = (bytes, bytes);
            let view = almost_idle(&cubic);
            cubic.on(&event, &view);
            let threshold = cubic.snapshot().threshold_bytes;
            assert_eq!(threshold, Some(kept * SEGMENT), "{event:?} with {bytes}");
            if !matches!(event, CongestionEvent::Timeout { .. }) {
                assert_eq!(cubic.window_bytes(), kept * SEGMENT, "{event:?} with {bytes}");
            }
        }
    }
}

#[test]
fn the_rfc_keeps_a_share_of_what_is_in_flight() {
    for event in REDUCTIONS {
        let mut cubic = at_window(100);
        cubic.state.window.threshold = 100 * SEGMENT;
        let view = almost_idle(&cubic);
        cubic.on(&event, &view);
        assert_eq!(cubic.snapshot().threshold_bytes, Some(2 * SEGMENT), "{event:?}");
        let left = if let CongestionEvent::Lost { .. } = event {
            2
        } else {
            1
        };
        assert_eq!(cubic.window_bytes(), left * SEGMENT, "{event:?}");
    }
}

/// 100 segments, 70 after the first loss: 70 × (1024 + 717) / 2048 = 59 is where it comes back to after the second.
#[test]
fn linux_converges_in_whole_segments() {
    let mut cubic = linux(100);
    lose(&mut cubic, Time::ZERO);
    assert_eq!(cubic.state.maximum, 100 * SEGMENT);
    cubic.state.window.bytes += 400; // what is no whole segment does not count
    lose(&mut cubic, Time::ZERO);
    assert_eq!(cubic.state.maximum, 59 * SEGMENT);
}

#[test]
fn linux_gives_the_window_back_and_the_curve_begins_anew() {
    let undone = |mut cubic: Cubic| {
        round(&mut cubic, Time::ZERO);
        let before = cubic.window_bytes();
        let view = full(&cubic, Time::ZERO);
        cubic.on(&CongestionEvent::Lost { bytes: SEGMENT }, &view);
        cubic.on(&CongestionEvent::Restored, &view);
        assert_eq!(cubic.window_bytes(), before);
        let state = cubic.state;
        (state.stage.is_some(), state.maximum / SEGMENT, before / SEGMENT)
    };
    let (runs_on, maximum, before) = undone(linux(100));
    assert_eq!(
        (runs_on, maximum),
        (false, before),
        "the curve of the reduction stays"
    );
    let (runs_on, maximum, _) = undone(Cubic {
        rules: CubicRules::Rfc9438,
        ..linux(100)
    });
    assert_eq!((runs_on, maximum), (true, 0), "as before the first loss");
}

/// Where round trips grow, each slow start of Linux ends early, and only the first of RFC 9406.
#[test]
fn hystart_judges_slow_starts_behind_timeouts_in_linux_alone() {
    let ends_early = |rules| {
        let mut cubic = Cubic {
            rules,
            ends_slow_start: HyStartChoice::Linux,
            ..linux(400)
        };
        let view = full(&cubic, Time::ZERO);
        cubic.on(&CongestionEvent::Timeout { repeated: false }, &view);
        let threshold = cubic.state.window.threshold;
        let mut now = Time::ZERO;
        while cubic.state.window.in_slow_start() {
            let trip = RTT + Duration::from_micros(cubic.window_bytes() / 2);
            now += trip;
            for _ in 0..cubic.window_bytes() / SEGMENT {
                let view = full(&cubic, now);
                cubic.on(&acked_after(SEGMENT, trip), &view);
            }
        }
        cubic.state.window.threshold < threshold
    };
    assert!(ends_early(CubicRules::Linux));
    assert!(!ends_early(CubicRules::Rfc9438));
}

/// Beyond the last maximum RFC 9438 adds a whole segment a round trip where it follows Reno.
#[test]
fn reno_stays_slow_in_linux() {
    let grown = |rules| {
        let mut cubic = linux(10);
        (cubic.rules, cubic.state.maximum, cubic.state.prior) = (rules, 10 * SEGMENT, 10 * SEGMENT);
        let rounds: Vec<u64> = (0..24).map(|_| round(&mut cubic, Time::ZERO)).collect();
        (rounds[..4].iter().sum::<u64>(), rounds[4..].iter().sum::<u64>())
    };
    let (first, rfc) = grown(CubicRules::Rfc9438);
    assert!((3_500..4_100).contains(&first), "{first}");
    assert!((18_500..20_100).contains(&rfc), "{rfc}");
    let (first, linux) = grown(CubicRules::Linux);
    assert!(first < 2_120, "not more than 0.53 of a segment a round: {first}");
    assert!((9_900..10_700).contains(&linux), "{linux}");
}

/// `delay_min`: a queue of ten round trips does not lead the window further along the curve.
#[test]
fn linux_looks_ahead_by_the_shortest_round_trip() {
    let later = Time::ZERO + Duration::from_millis(1_000);
    for (rules, ahead) in [(CubicRules::Linux, 0.05), (CubicRules::Rfc9438, 0.5)] {
        let mut cubic = Cubic {
            rules,
            ..linux(1_000)
        };
        (cubic.state.maximum, cubic.state.prior) = (1_400 * SEGMENT, 1_400 * SEGMENT);
        let view = |now, cubic: &Cubic| PathView {
            smoothed_rtt: Some(RTT * 10),
            min_rtt: Some(RTT),
            ..full(cubic, now)
        };
        let at_once = view(Time::ZERO, &cubic);
        cubic.on(&acked(1), &at_once);
        let aim = rfc_curve(1.0 + ahead, 1_400.0, 1_000.0);
        let acknowledged = 10;
        let view = view(later, &cubic);
        cubic.on(&acked(acknowledged * SEGMENT), &view);
        let grown = (cubic.window_bytes() - 1_000 * SEGMENT) as f64 / SEGMENT as f64;
        let expected = (aim - 1_000.0) * acknowledged as f64 / 1_000.0;
        assert!(
            (grown - expected).abs() < 0.1,
            "{rules:?}: {grown}, not {expected}"
        );
    }
}

/// `cnt` of what Reno would have: the window goes there with each acknowledgement, by half of itself a round trip at most.
#[test]
fn linux_goes_to_reno_and_does_not_jump() {
    for (rules, grown) in [(CubicRules::Linux, 100), (CubicRules::Rfc9438, 10_000)] {
        let mut cubic = Cubic { rules, ..linux(100) };
        (cubic.state.maximum, cubic.state.prior) = (101 * SEGMENT, 101 * SEGMENT);
        let view = full(&cubic, Time::ZERO);
        cubic.on(&acked(1), &view);
        cubic.state.stage.as_mut().expect("avoidance").estimate = 110.0 * SEGMENT as f64;
        cubic.on(&acked(SEGMENT), &view);
        let now = cubic.window_bytes() - 100 * SEGMENT;
        assert!(now.abs_diff(grown) <= 10, "{rules:?}: {now}");
    }
}

/// `tcp_enter_loss`: the episode has had its cut. What a timer of its own cuts for is another matter.
#[test]
fn in_linux_a_timer_that_runs_out_in_recovery_cuts_no_more() {
    let threshold = |rules, ended: bool| {
        let mut cubic = Cubic { rules, ..linux(100) };
        lose(&mut cubic, Time::ZERO);
        let view = full(&cubic, Time::ZERO);
        if ended {
            cubic.on(&CongestionEvent::RecoveryEnded, &view);
        }
        cubic.on(&CongestionEvent::Timeout { repeated: false }, &view);
        assert_eq!(cubic.window_bytes(), SEGMENT);
        let threshold = cubic.state.window.threshold / SEGMENT;
        cubic.on(&CongestionEvent::Restored, &view);
        (threshold, cubic.window_bytes() / SEGMENT)
    };
    assert_eq!(
        threshold(CubicRules::Linux, false),
        (70, 1),
        "and nothing is given back of it"
    );
    assert_eq!(threshold(CubicRules::Linux, true), (49, 70));
    assert_eq!(threshold(CubicRules::Rfc9438, false), (49, 70));
    let mut second = linux(100);
    lose(&mut second, Time::ZERO);
    let view = full(&second, Time::ZERO);
    for kept in [70, 2] {
        second.on(&CongestionEvent::Timeout { repeated: false }, &view);
        assert_eq!(
            second.state.window.threshold,
            kept * SEGMENT,
            "the first one has ended it"
        );
    }
}

/// `tcp_cwnd_restart`: once for every timeout that passes.
#[test]
fn silence_halves_a_window_of_linux_and_the_threshold_remembers_three_quarters() {
    let rest = |rules, threshold: u64| {
        let mut cubic = Cubic { rules, ..linux(100) };
        cubic.state.window.threshold = threshold * SEGMENT;
        (0..5)
            .map(|_| {
                let view = full(&cubic, Time::ZERO);
                cubic.on(&CongestionEvent::Idle { gap: RTT }, &view);
                let Window { bytes, threshold, .. } = cubic.state.window;
                (bytes / SEGMENT, threshold / SEGMENT)
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(
        rest(CubicRules::Linux, 50),
        [(50, 75), (25, 75), (12, 75), (10, 75), (10, 75)]
    );
    assert_eq!(rest(CubicRules::Linux, 90)[0], (50, 90));
    assert_eq!(rest(CubicRules::Rfc9438, 50), [(10, 50); 5]);
    let mut small = linux(3);
    small.on(&CongestionEvent::Idle { gap: RTT }, &full(&linux(3), Time::ZERO));
    assert_eq!(
        small.window_bytes(),
        3 * SEGMENT,
        "it does not grow to the initial one"
    );
    assert!(linux(1).fades() && !at_window(10).fades());
}
