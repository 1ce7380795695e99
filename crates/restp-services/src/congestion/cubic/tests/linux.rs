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
        (0..4).map(|_| round(&mut cubic, Time::ZERO)).sum::<u64>()
    };
    let (rfc, linux) = (grown(CubicRules::Rfc9438), grown(CubicRules::Linux));
    assert!((3_500..4_100).contains(&rfc), "{rfc}");
    assert!((1_800..2_200).contains(&linux), "{linux}");
}
