//! A path that the application has left unused for a while (RFC 7661 §1).

use super::*;

/// Of a call over a path that is then asked for all, because another one has died: what the call took says nothing of what it holds.
#[test]
fn a_path_that_nobody_has_used_up_is_asked_as_at_first() {
    let mut life = Life::begin();
    let sends = 20 * SEGMENT;
    life.sends = Some(sends);
    life.round();
    life.lose();
    assert_eq!(life.control.mode, Mode::Alone);
    (0..CLEAR_ROUNDS).for_each(|_| life.round());
    let (window, pace) = (life.control.window, life.control.pacing());
    life.round();
    assert_eq!((life.control.mode, life.control.window), (Mode::Alone, window));
    assert_eq!(life.control.pacing(), pace, "nobody asks");
    life.sends = None;
    life.control.doubt.begin(window);
    life.round();
    assert_eq!(life.control.window, 2 * window);
    assert!(!life.control.doubt.is_testing(), "what is sent has changed");
    (0..10).for_each(|_| life.round());
    assert_eq!(life.control.mode, Mode::Alone);
    assert!(life.control.window >= HOLDS);
}

/// Or what an application sends now and then would leave at twice the rate of the path, and lose what a short queue does not take.
#[test]
fn who_does_not_ask_for_more_is_alone_and_congestion_costs_him() {
    let mut life = Life::alone();
    life.sends = Some(HOLDS / 5);
    (0..2 * CLEAR_ROUNDS).for_each(|_| life.round());
    let window = life.control.window;
    life.lose();
    assert_eq!(
        (life.control.mode, life.control.window),
        (Mode::Alone, window / 10 * 7)
    );
}

#[test]
fn nine_rounds_are_no_while_and_one_in_use_begins_it_anew() {
    for (rounds, is_asked) in [([0, 9], false), ([0, 10], true), ([5, 5], false)] {
        let mut life = Life::alone();
        for unused in rounds {
            life.sends = None;
            life.round();
            assert_eq!(life.control.mode, Mode::Alone);
            life.sends = Some(HOLDS / 5);
            (0..unused).for_each(|_| life.round());
        }
        life.sends = None;
        life.control.window = HOLDS / 5;
        life.round();
        assert_eq!(life.control.window >= HOLDS / 5 * 2, is_asked, "{rounds:?}");
    }
}

/// Bursts that a short queue does not take would else double into it each time.
#[test]
fn who_has_asked_anew_knows_the_answer_for_ten_seconds() {
    let mut life = Life::alone();
    let mut asks = |after: Duration| {
        life.sends = Some(HOLDS / 10);
        (0..CLEAR_ROUNDS).for_each(|_| life.round());
        (life.sends, life.control.window) = (None, HOLDS / 5);
        life.now += after;
        life.control.startup.pipe.is_full = true;
        life.round();
        let is_asked = life.control.mode == Mode::Startup && life.control.window >= HOLDS / 5 * 2;
        (0..20).for_each(|_| life.round());
        assert_eq!(life.control.mode, Mode::Alone);
        is_asked
    };
    let (soon, later) = (Duration::ZERO, MOST_LIFE);
    assert_eq!([soon, soon, later].map(&mut asks), [true, false, true]);
}

#[test]
fn a_start_that_nobody_has_used_up_counts_for_nothing() {
    let mut life = Life::begin();
    life.sends = Some(5 * SEGMENT);
    (0..2 * CLEAR_ROUNDS).for_each(|_| life.round());
    life.lose();
    life.sends = None;
    let window = life.control.window;
    life.round();
    assert_eq!(life.control.mode, Mode::Alone);
    assert!(life.control.window < 2 * window);
}

#[test]
fn where_something_waits_or_the_path_is_used_up_it_is_known() {
    for (sends, others) in [(Some(20 * SEGMENT), HOLDS), (None, 0)] {
        let mut life = Life::alone();
        (life.sends, life.others) = (sends, others);
        for _ in 0..2 * CLEAR_ROUNDS {
            life.round();
            assert_ne!(life.control.mode, Mode::Startup, "{sends:?}");
        }
        life.sends = None;
        life.round();
        assert_ne!(life.control.mode, Mode::Startup, "{sends:?}");
    }
}

#[test]
fn rounds_in_which_something_waited_are_no_part_of_a_while() {
    let mut life = Life::alone();
    life.sends = Some(HOLDS / 5);
    for others in [0, HOLDS, 0] {
        life.others = others;
        (0..5).for_each(|_| life.round());
        assert_eq!(life.control.mode, Mode::Alone);
    }
    (life.sends, life.control.window) = (None, HOLDS / 5);
    life.round();
    assert!(life.control.window < HOLDS / 5 * 2);
}

/// A neighbour that shows himself in between decides.
#[test]
fn who_competes_does_not_ask() {
    let mut life = Life::competing();
    for _ in 0..=CLEAR_ROUNDS {
        life.control.unused.on_round(true);
    }
    life.round();
    assert_eq!(life.control.mode, Mode::Competing);
}
