//! Beside others, and when they are gone (Copa, NSDI 2018, §2.2).

use super::*;

#[test]
fn a_queue_of_others_makes_it_one_cubic_flow_with_the_window_it_had() {
    let life = Life::competing();
    assert!(life.control.window >= HOLDS, "{}", life.control.window);
}

#[test]
fn it_begins_in_slow_start_as_a_new_cubic_flow_unless_congestion_has_ended_that() {
    let grown = |mut life: Life| {
        let before = life.control.window;
        life.round();
        life.control.window - before
    };
    assert!(grown(Life::alone().found()) > 20 * SEGMENT);
    let mut met = Life::alone();
    met.lose();
    assert!(grown(met.found()) < 5 * SEGMENT);
}

#[test]
fn who_would_give_way_to_nobody_does_not() {
    let corrupted = CongestionEvent::Corrupted { bytes: SEGMENT };
    for (clear, mode) in [(CLEAR_ROUNDS - 1, Mode::Competing), (CLEAR_ROUNDS, Mode::Alone)] {
        let mut life = Life::alone();
        for _ in 0..40 {
            life.round();
            life.tell(&corrupted);
        }
        for _ in 0..20 {
            life.control.clear = clear;
            life.lose();
        }
        assert_eq!(life.control.mode, mode);
    }
}

#[test]
fn beside_others_more_acknowledgements_are_wanted() {
    assert_eq!(Life::alone().control.answers(), 0);
    assert_eq!(Life::competing().control.answers(), 32);
}

#[test]
fn when_the_others_are_gone_a_trial_shows_it() {
    let mut life = Life::competing();
    life.others = 0;
    let rounds = (0..200).position(|_| {
        life.round();
        life.control.mode == Mode::Alone && life.control.neighbours.on_found() == Some(0)
    });
    assert!(rounds.is_some());
    (0..10).for_each(|_| life.round());
    assert!(life.rtt() < BASE + BASE / 4, "the queue is gone");
}

#[test]
fn a_trial_beside_others_gives_the_window_back() {
    let mut life = Life::competing();
    let mut before = 0;
    while life.control.mode == Mode::Competing {
        before = life.control.window;
        life.round();
    }
    let during = life.control.window;
    assert!(during < before);
    (0..4).for_each(|_| life.round());
    assert_eq!(life.control.mode, Mode::Competing);
    assert!(life.control.window >= before.min(during * 10 / 7));
}

#[test]
fn corruption_costs_only_who_competes() {
    let corrupted = CongestionEvent::Corrupted { bytes: SEGMENT };
    for (mut life, costs) in [
        (Life::begin(), false),
        (Life::alone(), false),
        (Life::competing(), true),
    ] {
        let before = life.control.window;
        life.tell(&corrupted);
        assert_eq!(life.control.window < before, costs);
    }
}

/// A policer dropped some segments of a window that were taken for damaged and then others that were not, and had half of the window cut: a
/// CUBIC flow had 68 of 78 Mbit/s, and this one 55.
#[test]
fn damage_and_congestion_of_one_window_cut_it_once() {
    let corrupted = CongestionEvent::Corrupted { bytes: SEGMENT };
    let mut life = Life::competing();
    life.tell(&corrupted);
    let cut = life.control.window;
    life.lose();
    assert_eq!(life.control.window, cut, "of the same window of data");
    life.tell(&CongestionEvent::Restored);
    assert_eq!(life.control.window, cut, "what was late has cut nothing");
    life.round();
    life.round();
    let grown = life.control.window;
    life.lose();
    let cut = life.control.window;
    assert!(cut < grown, "of another one");
    life.lose();
    assert!(
        life.control.window < cut,
        "the sender tells of congestion once per window by itself"
    );
}

#[test]
fn congestion_once_costs_three_tenths_and_twice_means_a_neighbour() {
    let mut life = Life::alone();
    let before = life.control.window;
    life.lose();
    assert_eq!(
        (life.control.mode, life.control.window),
        (Mode::Alone, before / 10 * 7)
    );
    life.round();
    life.lose();
    assert_eq!(life.control.mode, Mode::Competing);
}

/// Four segments take 4 ms at 8 Mbit/s.
#[test]
fn what_others_of_its_kind_leave_is_no_queue_but_for_those_who_vary_all_the_time() {
    let mut control = Adaptive::new(&AdaptiveParams, SEGMENT);
    let left = |control: &Adaptive, now, most| {
        let mbits = |rate: u64| Rate::from_bps(rate * 1_000_000);
        control.left_by_others(mbits(now), mbits(most)).as_micros()
    };
    assert_eq!(left(&control, 8, 8), 4_000);
    assert_eq!(left(&control, 9, 8), 4_000, "no less than counts as nothing");
    assert_eq!(left(&control, 5, 8), 6_400, "at the rate of this flow");
    assert_eq!(
        left(&control, 1, 8),
        8_000,
        "two flows, and not as many as a neighbour likes"
    );
    control.noisy = CYCLE_ROUNDS - 1;
    assert_eq!(left(&control, 5, 8), 6_400);
    control.noisy = CYCLE_ROUNDS;
    assert_eq!(left(&control, 5, 8), 4_000, "anything looks like their segments");
}

#[test]
fn an_hour_of_silence_leaves_the_first_window() {
    let mut life = Life::competing();
    assert!(life.control.fades(), "each timeout of it is told");
    let gap = Duration::from_secs(1);
    (0..20).for_each(|_| life.tell(&CongestionEvent::Idle { gap }));
    assert_eq!(life.control.window, INITIAL_SEGMENTS * SEGMENT);
    assert!(!Life::alone().control.fades());
}

/// The state of CUBIC waits while this flow is alone, but what it had lost is repaired meanwhile.
#[test]
fn a_timeout_after_an_episode_that_ended_meanwhile_cuts() {
    let mut life = Life::competing();
    life.lose();
    life.control.mode = Mode::Alone;
    life.tell(&CongestionEvent::RecoveryEnded);
    life.control.mode = Mode::Competing;
    let window = life.control.cubic.window_bytes();
    life.tell(&CongestionEvent::Timeout { repeated: false });
    let threshold = life.control.cubic.snapshot().threshold_bytes.expect("one");
    assert!(
        (window / 10 * 6..window / 10 * 8).contains(&threshold),
        "{threshold} of {window}"
    );
}

/// Until a loss Linux's CUBIC grows by a twentieth a round trip: not where one has shown what the path holds.
#[test]
fn after_congestion_it_begins_at_its_plateau() {
    let mut met = Life::alone();
    met.lose();
    let mut life = met.found();
    let before = life.control.window;
    (0..4).for_each(|_| life.round());
    assert!(
        life.control.window < before + 4 * SEGMENT,
        "{} from {before}",
        life.control.window
    );
}
