//! Damage, and what only looks like it: drops of a queue that has not filled (RED, Floyd and Jacobson 1993).

use super::*;

/// A queue that drops early looks like damage, until less is sent.
#[test]
fn damage_that_follows_what_is_sent_is_a_neighbours() {
    let corrupted = CongestionEvent::Corrupted { bytes: SEGMENT };
    for (follows, mode) in [(true, Mode::Competing), (false, Mode::Alone)] {
        let mut life = Life::alone();
        let window = life.control.window;
        let mut least = window;
        for _ in 0..100 {
            life.round();
            least = least.min(life.control.window);
            if life.control.mode == Mode::Competing {
                break;
            }
            if !follows || life.control.window > window / 10 * 8 {
                life.tell(&corrupted);
            }
        }
        assert!(least <= window / 10 * 7 + 4 * SEGMENT, "a test");
        assert_eq!(life.control.mode, mode);
        if follows {
            assert!(life.control.doubt.follows());
            let before = life.control.window;
            (0..3).for_each(|_| life.round());
            assert!(life.control.window < before + 10 * SEGMENT, "no slow start");
        } else {
            assert!(
                life.control.window > window / 10 * 9,
                "what the test took is back"
            );
        }
    }
}

#[test]
fn damage_that_follows_counts_as_congestion() {
    let corrupted = CongestionEvent::Corrupted { bytes: SEGMENT };
    let mut life = Life::alone();
    life.control.doubt = Doubt::known_to_follow();
    let window = life.control.window;
    life.tell(&corrupted);
    assert_eq!(
        (life.control.mode, life.control.window),
        (Mode::Alone, window / 10 * 7)
    );
    life.round();
    life.tell(&corrupted);
    assert_eq!(life.control.mode, Mode::Competing);
}

/// Where each acknowledgement covers one message smaller than a segment nothing was delivered, and all of it damaged.
#[test]
fn what_is_smaller_than_a_segment_is_delivered_too() {
    let mut life = Life::alone();
    for _ in 0..20 {
        for _ in 0..2_000 {
            life.tell(&CongestionEvent::Acked {
                bytes: SEGMENT - 1,
                rtt: None,
                rate: None,
            });
        }
        life.tell(&CongestionEvent::Corrupted { bytes: SEGMENT });
    }
    assert!(!life.control.damage.starves(100, BASE));
}

/// A flow that tests whether damage follows.
fn testing() -> Life {
    let mut life = Life::alone();
    while !life.control.doubt.is_testing() {
        life.round();
        life.tell(&CongestionEvent::Corrupted { bytes: SEGMENT });
    }
    life
}

#[test]
fn a_test_with_another_window_shows_nothing() {
    let mut life = testing();
    life.lose();
    assert!(!life.control.doubt.is_testing(), "cut");
    assert!(!testing().found().control.doubt.is_testing(), "a queue of others");
}

#[test]
fn who_has_just_lost_his_window_tests_nothing() {
    let mut life = testing();
    let window = life.control.window;
    life.control.doubt = Doubt::due();
    for (share, tests) in [(7, false), (8, true)] {
        life.control.window = window / 7 * share;
        let round = Round {
            held: Held {
                now: 0,
                most: window / 7 * 10,
            },
            queue: Duration::ZERO,
            target: BASE,
            empty: BASE,
            shared: BASE,
            freed: BASE,
            shortest: BASE,
        };
        let view = life.view(BASE);
        life.control.on_round_alone(&round, &view);
        assert_eq!(life.control.doubt.is_testing(), tests, "{share} tenths");
    }
}

/// A neighbour that damage has shown is given time, like any other.
#[test]
fn whether_that_neighbour_is_still_there_is_asked_as_late_as_of_another() {
    let mut life = testing();
    while life.control.mode == Mode::Alone {
        life.round();
    }
    let rounds = (0..100).position(|_| {
        life.control.clear = 0;
        life.others = life.others.max(HOLDS / 3);
        life.round();
        life.control.mode == Mode::Alone
    });
    assert!(rounds >= Some(20), "{rounds:?}");
}
