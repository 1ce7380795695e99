//! The cycle of ProbeBW (draft-ietf-ccwg-bbr §5.3.3).

use super::*;

/// §5.3.3, §5.6.1: gains of the four phases, and how each ends.
#[test]
fn a_cycle_cruises_refills_goes_up_and_comes_down() {
    let mut life = Life::cruising();
    let began = life.now;
    assert_eq!((life.pacing(), life.window()), (paced(1000), 2 * BDP + EXTRA));
    while life.state() == "probe-bw-cruise" {
        life.round(LINK);
    }
    // §5.3.3.8: 2 to 3 seconds, or as many rounds as segments fit: 50, of which up to two count before Cruise.
    let waited = life.now.since(began);
    assert!(
        (Duration::from_secs(2)..Duration::from_millis(2600)).contains(&waited),
        "{waited:?}"
    );
    assert_eq!((life.state(), life.pacing()), ("probe-bw-refill", paced(1000)));
    life.round(LINK);
    assert_eq!((life.state(), life.pacing()), ("probe-bw-up", paced(1250)));
    life.round(LINK);
    // 2.25 of what the path holds, and two segments so that bursts do not end the probe (§5.6.4.2).
    assert_eq!(life.window(), BDP * 9 / 4 + EXTRA + 2 * SEGMENT);
    life.in_flight = BDP * 5 / 4;
    life.round(LINK);
    assert_eq!(life.state(), "probe-bw-up");
    life.round(LINK);
    assert_eq!(
        (life.state(), life.pacing()),
        ("probe-bw-down", paced(900)),
        "three rounds without growth"
    );
    life.round(LINK);
    assert_eq!(life.state(), "probe-bw-down");
    life.in_flight = BDP;
    life.round(LINK);
    assert_eq!((life.state(), life.pacing()), ("probe-bw-cruise", paced(1000)));
}

/// §5.3.3.8.2: as soon as Reno would have regained what a loss costs it.
#[test]
fn a_path_of_few_segments_is_probed_sooner() {
    let mut life = Life::begin();
    life.rtt = Duration::from_millis(10);
    for speed in [2, 4, 8, 8, 8, 8] {
        life.round(speed * 1_000_000);
    }
    let mut rounds = 0;
    while life.state() != "probe-bw-refill" {
        life.round(LINK);
        rounds += 1;
    }
    assert!((8..=13).contains(&rounds), "{rounds} rounds for ten segments");
}

/// Our rule beside §5.3.3.6: two rounds are enough where a queue grows that was not there before.
#[test]
fn a_probe_that_brings_only_a_queue_ends_a_round_sooner() {
    for (stood, expected) in [(false, "probe-bw-down"), (true, "probe-bw-up")] {
        let mut life = Life::cruising();
        if stood {
            life.queue();
        }
        life.probing();
        life.acks = 4;
        life.round(LINK);
        life.rtt = RTT * 3 / 2;
        life.round(LINK);
        assert_eq!(life.state(), expected, "a queue before the probe: {stood}");
    }
}

#[test]
fn more_bandwidth_keeps_up_going_and_is_remembered_for_two_cycles() {
    let mut life = Life::cruising();
    life.probing();
    for speed in [10, 13, 17] {
        life.round(speed * 1_000_000);
        assert_eq!(life.state(), "probe-bw-up");
    }
    assert_eq!(life.pacing(), 17_000_000 * 5 / 4);
    for _ in 0..3 {
        life.round(17_000_000);
    }
    assert_eq!(life.state(), "probe-bw-down");
    for cycle in [17_000_000, LINK] {
        life.in_flight = BDP;
        life.probing();
        assert_eq!(life.pacing(), cycle * 5 / 4);
        while life.state() == "probe-bw-up" {
            life.round(LINK);
        }
    }
}

/// §5.5.10.2: 2 % of what is in flight; the bound is where the threshold was passed, and 15 % of it is left to others.
#[test]
fn losses_beside_a_queue_end_a_probe_and_bound_what_is_in_flight() {
    let mut life = Life::cruising();
    life.queue(); // somebody else's: Up goes on beside it
    life.probing();
    life.in_flight = 60 * SEGMENT;
    life.queue();
    life.in_flight = 80 * SEGMENT;
    life.lose(1);
    assert_eq!((life.state(), life.upper()), ("probe-bw-up", None), "1.25 %");
    life.lose(2);
    assert_eq!(life.state(), "probe-bw-down");
    // 79 segments before the second loss, one of them lost: 0.58 / 0.98 of a segment more would have been 2 %.
    assert_eq!(life.upper(), Some(79_591));
    life.rtt = RTT;
    life.in_flight = 70 * SEGMENT;
    life.round(LINK);
    assert_eq!((life.state(), life.window()), ("probe-bw-down", 79_591));
    life.in_flight = BDP;
    life.round(LINK);
    assert_eq!(life.state(), "probe-bw-cruise");
    life.round(LINK);
    assert_eq!(life.window(), 79_591 - 79_591 * 15 / 100);
}

/// Twice the headroom while others keep a queue, the draft's again when it is gone.
#[test]
fn a_queue_that_others_keep_doubles_the_headroom() {
    let mut life = Life::cruising();
    life.bbr.upper = 60 * SEGMENT;
    life.round(LINK);
    assert_eq!(life.window(), 51 * SEGMENT);
    life.queue();
    assert_eq!((life.state(), life.window()), ("probe-bw-cruise", 42 * SEGMENT));
    life.rtt = RTT;
    life.round(LINK);
    life.round(LINK);
    assert_eq!((life.state(), life.window()), ("probe-bw-cruise", 51 * SEGMENT));
}

#[test]
fn losses_without_a_queue_end_a_probe_from_fifteen_percent_on() {
    let mut life = Life::cruising();
    life.probing();
    life.in_flight = 60 * SEGMENT;
    life.lose(9);
    assert_eq!(life.state(), "probe-bw-up");
    life.lose(10);
    assert_eq!(life.state(), "probe-bw-down");
}

/// §5.3.3.5: one segment in the first round at the bound, then 2, 4, …
#[test]
fn a_bound_that_holds_is_raised_faster_and_faster() {
    let mut life = Life::cruising();
    life.acks = 25;
    life.bbr.upper = 60 * SEGMENT;
    life.probing();
    for round in 0..5 {
        let before = life.upper().unwrap();
        for _ in 0..life.acks {
            life.in_flight = life.window() - BDP / life.acks;
            life.acknowledge(LINK);
        }
        // Per window acknowledged; a round is a little less than a window here.
        let (grown, most) = ((life.upper().unwrap() - before) / SEGMENT, 1 << round);
        assert!(
            (most / 2..=most + 1).contains(&grown),
            "round {round}: {grown} segments"
        );
    }
    assert_eq!(
        life.state(),
        "probe-bw-up",
        "the bound, not the path, held it back"
    );
}
