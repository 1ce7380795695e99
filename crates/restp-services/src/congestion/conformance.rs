//! What holds for every controller, whatever its algorithm.

use super::window::{LARGEST_SEGMENT, LARGEST_WINDOW};
use super::*;
use crate::view::Sibling;
use restp_base::random::Stream;
use restp_base::time::Time;

/// An acknowledgement of `bytes` without a sample of the round-trip time.
pub(super) fn acked(bytes: u64) -> CongestionEvent {
    CongestionEvent::Acked {
        bytes,
        rtt: None,
        rate: None,
    }
}

/// The same with a sample.
pub(super) fn acked_after(bytes: u64, rtt: Duration) -> CongestionEvent {
    CongestionEvent::Acked {
        bytes,
        rtt: Some(rtt),
        rate: None,
    }
}

/// A path about which nothing is known but its segment size.
pub(super) fn path(segment_bytes: u64) -> PathView<'static> {
    PathView {
        now: Time::ZERO,
        segment_bytes,
        in_flight_bytes: 0,
        smoothed_rtt: None,
        latest_rtt: None,
        min_rtt: None,
        application_limited: false,
        in_recovery: false,
        siblings: &[],
    }
}

/// Every algorithm that can be built, in every variant, both ways of counting acknowledgements included.
fn choices() -> Vec<CongestionChoice> {
    let mut choices = CongestionChoice::all().to_vec();
    choices.extend([
        CongestionChoice::Bic(BicParams {
            profile: BicProfile::Paper,
            ..BicParams::default()
        }),
        CongestionChoice::Westwood(WestwoodParams {
            filter: WestwoodFilter::Tustin,
            ..WestwoodParams::default()
        }),
        CongestionChoice::WestwoodPlus(WestwoodPlusParams {
            filter: WestwoodPlusFilter::Pub,
            ..WestwoodPlusParams::default()
        }),
    ]);
    for mut choice in choices.clone() {
        if let Some(common) = choice.common() {
            common.growth = Growth::Acks;
            choices.push(choice);
        }
    }
    choices
}

fn every_kind_of_event() -> [CongestionEvent; 12] {
    [
        CongestionEvent::Sent { bytes: 1000 },
        acked(1000),
        CongestionEvent::Duplicate,
        CongestionEvent::SegmentLost(LostSegment {
            sent_at: Time::ZERO,
            bytes: 1000,
            lost_bytes: 1000,
            sent_in_flight_bytes: 1000,
            delivered_before: 0,
            delivered_total: 0,
            application_limited: false,
        }),
        CongestionEvent::Lost { bytes: 1000 },
        CongestionEvent::Marked { bytes: 1000 },
        CongestionEvent::RecoveryEnded,
        CongestionEvent::Timeout { repeated: false },
        CongestionEvent::Timeout { repeated: true },
        CongestionEvent::Idle {
            gap: Duration::from_secs(1),
        },
        CongestionEvent::Restored,
        CongestionEvent::RouteChanged,
    ]
}

#[test]
fn a_larger_segment_is_seen_with_every_event() {
    for choice in choices() {
        for event in every_kind_of_event() {
            let mut controller = choice.build(1000);
            controller.on(&event, &path(500_000));
            let window = controller.window_bytes();
            assert!(
                window >= 500_000,
                "{} did not see {event:?}: {window}",
                choice.name()
            );
        }
    }
}

/// What says that data has arrived, that some was lost or marked, or that the timer ran out, leaves a trace in every algorithm; what
/// took a loss back, in every one that answers losses.
#[test]
fn every_event_that_means_something_changes_every_algorithm() {
    for choice in choices() {
        if matches!(choice, CongestionChoice::None(_) | CongestionChoice::Rate(_)) {
            continue; // nothing moves them
        }
        let rtt = Duration::from_millis(50);
        // Ten segments are acknowledged; then `events` happen.
        let after = |events: &[CongestionEvent]| {
            let mut controller = choice.build(1000);
            for event in [acked_after(1000, rtt)].repeat(10).iter().chain(events) {
                let view = PathView {
                    in_flight_bytes: controller.window_bytes(),
                    smoothed_rtt: Some(rtt),
                    min_rtt: Some(rtt),
                    ..path(1000)
                };
                controller.on(event, &view);
            }
            (format!("{controller:?}"), controller.window_bytes())
        };
        let lost = CongestionEvent::Lost { bytes: 1000 };
        let marked = CongestionEvent::Marked { bytes: 1000 };
        let mut events = vec![
            acked_after(1000, rtt),
            CongestionEvent::Timeout { repeated: false },
        ];
        match choice {
            CongestionChoice::Bbr(_) => {} // it counts lost segments, not episodes
            CongestionChoice::Bbr1(_) => events.push(lost), // it does not know marks
            _ => events.extend([lost, marked]),
        }
        for event in events {
            assert_ne!(after(&[event]).0, after(&[]).0, "{} and {event:?}", choice.name());
        }
        let [grown, reduced, restored] =
            [&[][..], &[lost], &[lost, CongestionEvent::Restored]].map(|events| after(events).1);
        assert!(
            reduced == grown || restored > reduced,
            "{} does not take a reduction back",
            choice.name()
        );
    }
}

#[derive(Debug, Default)]
struct Recorder {
    seen: u64,
}

impl Congestion for Recorder {
    fn on(&mut self, _: &CongestionEvent, _: &PathView<'_>) {
        self.seen += 1;
    }
    fn window_bytes(&self) -> u64 {
        1000 * self.seen
    }
    fn pacing(&self) -> Option<Rate> {
        Some(Rate::from_bps(self.seen))
    }
    fn snapshot(&self) -> CongestionSnapshot {
        CongestionSnapshot {
            window_bytes: self.window_bytes(),
            threshold_bytes: None,
            state: "recording",
        }
    }
}

#[test]
fn an_algorithm_from_outside_is_asked_like_our_own() {
    let mut controller = Controller::Custom(Box::new(Recorder::default()));
    for event in every_kind_of_event() {
        controller.on(&event, &path(1000));
    }
    let seen = every_kind_of_event().len() as u64;
    assert_eq!(controller.window_bytes(), 1000 * seen);
    assert_eq!(controller.pacing(), Some(Rate::from_bps(seen)));
    assert_eq!(controller.snapshot().state, "recording");
}

#[test]
fn without_congestion_control_nothing_moves_the_limit() {
    let limit = FlightLimit {
        flight_limit_segments: 23,
    };
    let mut controller = CongestionChoice::None(limit).build(1400);
    for event in every_kind_of_event() {
        controller.on(&event, &path(1400));
        assert_eq!(
            (controller.window_bytes(), controller.pacing()),
            (23 * 1400, None)
        );
    }
}

#[test]
fn the_initial_window_is_1_to_10_segments() {
    for (wanted, given) in [(0, 1), (1, 1), (3, 3), (10, 10), (11, 10)] {
        for mut choice in choices() {
            if let Some(common) = choice.common() {
                common.initial_window_segments = wanted;
                assert_eq!(choice.build(1400).window_bytes(), given * 1400);
            }
        }
    }
}

/// Mostly ordinary numbers, sometimes the ends of the range.
fn number(stream: &mut Stream, ordinary: u64) -> u64 {
    match stream.below(20) {
        0 => 0,
        1 => u64::MAX,
        2 => stream.bits(),
        _ => stream.below(ordinary),
    }
}

fn any_event(stream: &mut Stream) -> CongestionEvent {
    let bytes = number(stream, 100_000);
    match stream.below(19) {
        0 => CongestionEvent::Lost { bytes },
        1 => CongestionEvent::Marked { bytes },
        2 => CongestionEvent::RecoveryEnded,
        3 => CongestionEvent::Timeout {
            repeated: stream.chance(0.5),
        },
        4 => CongestionEvent::Idle {
            gap: Duration::from_nanos(bytes),
        },
        5 => CongestionEvent::Restored,
        6..=8 => CongestionEvent::Sent { bytes },
        9 => CongestionEvent::SegmentLost(LostSegment {
            sent_at: Time::ZERO,
            bytes,
            lost_bytes: number(stream, 100_000),
            sent_in_flight_bytes: number(stream, 1_000_000),
            delivered_before: number(stream, 1_000_000),
            delivered_total: number(stream, 1_000_000),
            application_limited: stream.chance(0.2),
        }),
        10..=13 => CongestionEvent::Acked {
            bytes,
            rtt: Some(Duration::from_nanos(number(stream, 1_000_000_000))),
            rate: Some(any_sample(stream)),
        },
        14 => CongestionEvent::Duplicate,
        _ => acked(bytes),
    }
}

fn any_sample(stream: &mut Stream) -> RateSample {
    RateSample {
        delivered_bytes: number(stream, 1_000_000),
        interval: Duration::from_nanos(number(stream, 1_000_000_000)),
        delivered_before: number(stream, 1_000_000_000),
        delivered_total: number(stream, 1_000_000_000),
        lost_bytes: number(stream, 100_000),
        sent_in_flight_bytes: number(stream, 1_000_000),
        application_limited: stream.chance(0.2),
    }
}

fn any_view<'a>(stream: &mut Stream, now: Time, siblings: &'a [Sibling]) -> PathView<'a> {
    let rtt = stream
        .chance(0.8)
        .then(|| Duration::from_nanos(number(stream, 1_000_000_000)));
    PathView {
        now,
        segment_bytes: if stream.chance(0.9) {
            1400
        } else {
            number(stream, 9000)
        },
        in_flight_bytes: number(stream, 1_000_000),
        smoothed_rtt: rtt,
        latest_rtt: rtt,
        min_rtt: rtt,
        application_limited: stream.chance(0.2),
        in_recovery: stream.chance(0.2),
        siblings,
    }
}

fn any_siblings(stream: &mut Stream) -> Vec<Sibling> {
    let count = stream.below(3);
    (0..count)
        .map(|_| Sibling {
            window_bytes: number(stream, 1_000_000),
            smoothed_rtt: Duration::from_nanos(number(stream, 1_000_000_000)),
            loss_interval_bytes: number(stream, 1_000_000),
            shares_queue: stream.chance(0.5),
            cut_at: stream
                .chance(0.5)
                .then(|| Time::ZERO + Duration::from_nanos(number(stream, 1_000_000_000_000))),
        })
        .collect()
}

/// The windows of a random life, with the laws checked at every event.
fn life(choice: &CongestionChoice, seed: u64) -> Vec<u64> {
    let mut stream = Stream::named(seed, choice.name());
    let mut controller = choice.build(1400);
    let mut now = Time::ZERO;
    let mut windows = Vec::new();
    for _ in 0..2000 {
        now += Duration::from_nanos(number(&mut stream, 50_000_000).min(1 << 50));
        let siblings = any_siblings(&mut stream);
        let (event, view) = (any_event(&mut stream), any_view(&mut stream, now, &siblings));
        let before = controller.window_bytes();
        controller.on(&event, &view);
        let window = controller.window_bytes();
        let said = format!(
            "{} seed {seed}: {before} → {window} at {event:?}, {view:?}",
            choice.name()
        );
        assert!(
            window >= view.segment_bytes.clamp(1, LARGEST_SEGMENT),
            "less than one segment: {said}"
        );
        assert_eq!(controller.snapshot().window_bytes, window, "{said}");
        if !matches!(choice, CongestionChoice::None { .. }) {
            assert!(window <= LARGEST_WINDOW, "{said}");
        }
        if !matches!(choice, CongestionChoice::None { .. }) && !choice.needs_pacing() {
            let held = view.application_limited || view.in_recovery;
            let may_grow = match event {
                CongestionEvent::Acked { .. } => !held,
                CongestionEvent::Restored => true,
                // The window is set to the threshold (TC §2.3.6).
                CongestionEvent::RecoveryEnded => {
                    matches!(
                        choice,
                        CongestionChoice::Westwood(_) | CongestionChoice::WestwoodPlus(_)
                    )
                }
                _ => false,
            };
            assert!(
                may_grow || window <= before.max(view.segment_bytes),
                "grew: {said}"
            );
            let steps_down = !held
                && matches!(
                    choice,
                    CongestionChoice::Vegas(_)
                        | CongestionChoice::Yeah(_)
                        | CongestionChoice::WVegas(_)
                        | CongestionChoice::Olia(_)
                );
            let may_shrink = match event {
                CongestionEvent::Acked { .. } => steps_down,
                CongestionEvent::Sent { .. } | CongestionEvent::Duplicate => false,
                _ => true,
            };
            assert!(may_shrink || window >= before, "shrank: {said}");
        }
        let _ = controller.pacing();
        windows.push(window);
    }
    windows
}

#[test]
fn no_sequence_of_events_breaks_a_window() {
    for choice in choices() {
        for seed in 1..=50 {
            life(&choice, seed);
        }
    }
}

#[test]
fn the_same_events_give_the_same_windows() {
    for choice in choices() {
        assert_eq!(life(&choice, 7), life(&choice, 7));
    }
}
