//! Startup and Drain (draft-ietf-ccwg-bbr §5.3.1, §5.3.2).

use super::*;

/// §5.6.2: before there is a sample, the initial window per round trip, times 2.773. §5.6.4: what is acknowledged is added.
#[test]
fn startup_paces_at_four_times_the_logarithm_of_two() {
    let mut life = Life::begin();
    life.round(1_000_000);
    assert_eq!(life.state(), "startup");
    assert_eq!(
        life.pacing(),
        4_436_800,
        "2.773 · 10 segments in 50 ms, not the 1 Mbit/s delivered"
    );
    life.round(4_000_000);
    assert_eq!(life.pacing(), 4_000_000 * 2773 / 1000);
    assert_eq!(life.window(), 10_000 + 6_250 + 25_000);
}

/// §5.6.4.6: the first window's acknowledgements count before there is a rate to speak of, and pacing lets it double.
#[test]
fn the_first_window_doubles_and_so_does_the_second() {
    let mut life = Life::begin();
    life.acks = 5;
    life.acknowledge(16_000); // the estimate knows nothing yet
    assert_eq!(life.window(), 10_000 + life.delivered);
    (0..4).for_each(|_| life.acknowledge(1_600_000));
    let (window, pacing) = (life.window(), life.pacing());
    assert_eq!(window, 10_000 + life.delivered);
    life.round(3_200_000);
    assert_eq!(life.window(), window + 20_000);
    assert!(pacing >= 2 * 10_000 * 8 * 20, "{pacing} bit/s");
    assert!(
        life.pacing() >= 2 * 2 * 10_000 * 8 * 20,
        "{} bit/s",
        life.pacing()
    );
}

/// §5.5.9: while the rate doubles, acknowledgements run ahead of it; those that waited in a queue prove nothing.
#[test]
fn what_waited_in_a_queue_does_not_run_ahead_in_startup() {
    let grown = |rtt: Duration| {
        let mut life = Life::begin();
        for speed in [1, 2, 4, 8] {
            life.round(speed * 1_000_000);
        }
        life.rtt = rtt;
        life.round(LINK);
        assert_eq!(life.state(), "startup");
        life.window()
    };
    let before = 10_000 + 6_250 + 12_500 + 25_000 + BDP;
    assert_eq!(grown(RTT), before + BDP);
    assert_eq!(
        grown(RTT * 3 / 2),
        before,
        "twice what the path holds, and no more"
    );
}

/// What ten acknowledgements of a first window at this distance leave of it after the round.
fn after_train(apart: Duration) -> u64 {
    let mut life = Life::begin();
    life.now += RTT;
    for _ in 0..10 {
        life.train(apart);
    }
    life.window()
}

#[test]
fn a_first_window_that_comes_back_close_together_is_multiplied_by_up_to_four() {
    let us = Duration::from_micros;
    assert_eq!(
        after_train(us(100)),
        40_000,
        "500 segments fit, and four windows are enough"
    );
    assert_eq!(after_train(us(400)), 31_250, "125 fit: a quarter of them");
    assert_eq!(after_train(us(1000)), 20_000, "50 fit, so it doubles as ever");
    let mut lost = Life::begin();
    lost.now += RTT;
    lost.in_flight = 10 * SEGMENT;
    (0..5).for_each(|_| lost.train(us(100)));
    lost.lose(2); // more than damage explains
    (0..5).for_each(|_| lost.train(us(100)));
    assert!(lost.window() <= 20_000, "{}", lost.window());
}

/// §5.3.1.2, §5.3.2.
#[test]
fn three_rounds_without_growth_end_startup_and_drain_paces_at_half() {
    let mut life = Life::begin();
    for speed in [2, 4, 8, 8, 8] {
        life.round(speed * 1_000_000);
    }
    assert_eq!(life.state(), "startup");
    life.in_flight = 2 * BDP;
    life.round(LINK);
    assert_eq!((life.state(), life.pacing()), ("drain", paced(500)));
    life.round(LINK);
    assert_eq!(life.state(), "drain", "more in flight than the path holds");
    life.in_flight = BDP;
    life.round(LINK);
    assert_eq!(life.state(), "probe-bw-cruise", "Down has nothing left to empty");
}

/// §5.3.1.3: six losses in a round of recovery, more than 2 %, and (ours) a queue.
#[test]
fn six_losses_beside_a_queue_end_startup() {
    let state_after = |losses, rtt_ms: u64, in_recovery| {
        let mut life = Life::begin();
        for speed in [1, 2, 4, 8] {
            life.in_flight = BDP;
            life.round(speed * 1_000_000);
        }
        life.rtt = Duration::from_millis(rtt_ms);
        life.in_recovery = in_recovery;
        life.round(LINK);
        life.round(LINK);
        life.lose(losses);
        life.in_flight = 90 * SEGMENT;
        life.tell(CongestionEvent::Lost {
            bytes: losses * SEGMENT,
        });
        // No growth was seen in two rounds; a third would end Startup by itself.
        life.round(LINK * 5 / 4);
        (life.state(), life.upper())
    };
    // What the round delivered: 10 Mbit/s in 75 ms; more than the 62 500 bytes that the path holds.
    assert_eq!(state_after(6, 75, true), ("drain", Some(93_750)));
    assert_eq!(state_after(5, 75, true), ("startup", None));
    assert_eq!(state_after(6, 75, false), ("startup", None));
    assert_eq!(state_after(6, 50, true), ("startup", None), "damage");
}

/// Before, what little has arrived says nothing of the path.
#[test]
fn what_the_path_delivers_is_known_once_the_pipe_was_full() {
    let mut life = Life::begin();
    life.round(LINK / 10);
    assert_eq!(life.bbr.delivers(), None);
    life.full();
    let known = life.bbr.delivers().map(|rate| rate.as_bps());
    assert_eq!(known, Some(LINK));
}
