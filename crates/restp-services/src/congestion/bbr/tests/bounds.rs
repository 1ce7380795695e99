//! The shortest round trip, what losses bound, and what comes back (draft-ietf-ccwg-bbr §5.3.4, §5.5).

use super::*;

/// §5.3.4: 5 s without a round trip as short, half of what the path holds, 200 ms and a round.
#[test]
fn a_stale_round_trip_is_probed_for() {
    let mut life = Life::cruising();
    life.rtt = RTT * 6 / 5;
    let began = life.now;
    while life.state() != "probe-rtt" {
        life.round(LINK);
        life.in_flight = BDP;
        assert!(life.now.since(began) < Duration::from_secs(6), "{}", life.state());
    }
    assert!(life.now.since(began) > Duration::from_secs(5));
    let before = 2 * BDP;
    assert_eq!((life.window(), life.pacing()), (BDP / 2, paced(990)));
    life.in_flight = BDP / 2;
    life.rtt = RTT;
    life.round(LINK);
    let low_since = life.now;
    while life.state() == "probe-rtt" {
        life.round(LINK / 2);
    }
    let lasted = life.now.since(low_since);
    assert_eq!(lasted, Duration::from_millis(250), "the first round after 200 ms");
    assert_eq!(life.state(), "probe-bw-cruise");
    assert!(life.window() >= before, "{}", life.window());
}

/// §5.5.7.2: the filter of 10 s.
#[test]
fn a_path_that_became_longer_is_believed_after_ten_seconds() {
    let mut life = Life::cruising();
    life.rtt = RTT * 2;
    let began = life.now;
    while life.bbr.round_trip.shortest == Some(RTT) {
        life.in_flight = life.window().min(2 * BDP);
        life.round(LINK);
        assert!(life.now.since(began) < Duration::from_secs(11));
    }
    assert!(life.now.since(began) > Duration::from_secs(10));
    assert_eq!(life.bbr.round_trip.shortest, Some(RTT * 2));
}

/// Timers and ends add a little to every round trip: with the queue empty the path was slowed down every five seconds.
#[test]
fn round_trips_of_an_empty_queue_need_no_probe() {
    let mut life = Life::cruising();
    for round in 0..1000 {
        life.rtt = RTT + Duration::from_micros(100 + 900 * (round % 2));
        life.round(LINK);
        life.in_flight = BDP;
        assert_ne!(life.state(), "probe-rtt", "round {round}");
    }
    assert_eq!(life.bbr.round_trip.shortest, Some(RTT));
}

/// §5.5.10.3, at the end of the round: what it delivered, or 0.7 of what was.
#[test]
fn losses_beside_a_queue_lower_the_short_term_bounds() {
    let mut life = Life::cruising();
    life.queue();
    life.lose(1);
    life.round(7_000_000);
    assert_eq!(life.pacing(), LINK * 99 / 100, "the round saw 8 Mbit/s");
    life.lose(1);
    life.round(3_000_000);
    assert_eq!(life.pacing(), 7_000_000 * 99 / 100);
    life.lose(1);
    life.round(3_000_000);
    assert_eq!(life.pacing(), 4_900_000 * 99 / 100, "Beta");
    life.probing();
    assert_eq!(
        life.pacing(),
        paced(1250) * 99 / 100,
        "Refill forgets what others did (§5.3.3.3)"
    );
}

#[test]
fn losses_without_a_queue_lower_nothing_up_to_fifteen_percent() {
    let mut life = Life::cruising();
    for _ in 0..3 {
        life.lose(7);
        life.round(7_000_000);
    }
    assert_eq!(life.bbr.usable_bandwidth(), Rate::from_bps(LINK));
    life.lose(8);
    life.round(4_000_000);
    assert_eq!(life.bbr.usable_bandwidth(), Rate::from_bps(7_000_000));
}

/// §5.6.2's margin drains a queue; without one it would only leave the link idle.
#[test]
fn one_percent_is_left_where_a_queue_stands() {
    for (queue, left) in [(0, 1000), (12, 1000), (13, 990), (50, 990)] {
        let mut life = Life::cruising();
        life.rtt = RTT * (100 + queue) / 100;
        (0..3).for_each(|_| life.round(LINK));
        assert_eq!(
            (life.state(), life.pacing()),
            ("probe-bw-cruise", paced(left)),
            "a queue of {queue} % of the round trip"
        );
    }
}

/// Acknowledgements tell of the queue of a probe for a round trip after it is drained. The bounds they lowered held for
/// the two seconds to the next probe.
#[test]
fn losses_of_the_own_probe_lower_no_bound() {
    let mut life = Life::begin();
    life.full();
    life.rtt = RTT * 2;
    life.round(LINK);
    life.round(LINK);
    life.lose(2);
    let sent_before = life.delivered;
    life.in_flight = BDP;
    life.round(LINK);
    assert_eq!(life.state(), "probe-bw-cruise");
    assert!(life.bbr.sees_queue());
    life.tell(CongestionEvent::SegmentLost(LostSegment {
        sent_at: Time::ZERO,
        bytes: SEGMENT,
        lost_bytes: SEGMENT,
        sent_in_flight_bytes: 2 * BDP,
        delivered_before: sent_before,
        delivered_total: life.delivered,
        application_limited: false,
    }));
    life.round(LINK / 2);
    life.round(LINK / 2);
    assert_eq!(life.bbr.usable_bandwidth(), Rate::from_bps(LINK));
    life.lose(1);
    life.round(LINK / 2);
    life.round(LINK / 2);
    assert!(
        life.bbr.usable_bandwidth() < Rate::from_bps(LINK),
        "this one left after it"
    );
}

/// §5.6.4.4: in the first round of recovery only what leaves the network is replaced.
#[test]
fn recovery_conserves_for_a_round_and_gives_the_window_back() {
    let mut life = Life::cruising();
    life.queue();
    life.lose(1);
    let before = life.window();
    life.in_flight = 60 * SEGMENT;
    life.tell(CongestionEvent::Lost { bytes: SEGMENT });
    assert_eq!(life.window(), 59 * SEGMENT);
    life.tell(CongestionEvent::RecoveryEnded);
    assert_eq!(life.window(), before);
    life.tell(CongestionEvent::Timeout { repeated: false });
    assert_eq!(life.window(), SEGMENT);
    life.tell(CongestionEvent::RecoveryEnded);
    assert_eq!(life.window(), before);
}

/// §5.5.11.2.
#[test]
fn a_spurious_recovery_lifts_what_it_had_lowered() {
    let mut life = Life::cruising();
    life.queue();
    let before = life.window();
    life.lose(1);
    life.tell(CongestionEvent::Lost { bytes: SEGMENT });
    life.round(3_000_000);
    life.lose(1);
    life.round(3_000_000);
    assert!(life.bbr.usable_bandwidth() < Rate::from_bps(LINK));
    life.tell(CongestionEvent::Restored);
    assert_eq!(life.bbr.usable_bandwidth(), Rate::from_bps(LINK));
    assert_eq!(life.window(), before);
}

/// §5.4.1: paced at the bandwidth, whatever the phase; and no ProbeRTT, for silence has emptied the queue.
#[test]
fn sending_again_after_silence_is_paced_at_the_bandwidth() {
    let mut life = Life::cruising();
    life.probing();
    assert_eq!(life.pacing(), paced(1250));
    life.now += Duration::from_secs(20);
    life.in_flight = SEGMENT;
    life.application_limited = true;
    life.tell(CongestionEvent::Sent { bytes: SEGMENT });
    assert_eq!(life.pacing(), paced(1000));
    life.rtt = RTT * 6 / 5;
    life.round(LINK / 4);
    assert_ne!(life.state(), "probe-rtt");
    assert_eq!(
        life.bbr.usable_bandwidth(),
        Rate::from_bps(LINK),
        "the application's rate is not the path's"
    );
}

/// A mark is a loss that was not necessary (OP-59).
#[test]
fn a_mark_ends_a_probe_at_what_is_in_flight() {
    let mut life = Life::cruising();
    life.probing();
    life.in_flight = 60 * SEGMENT;
    life.tell(CongestionEvent::Marked { bytes: SEGMENT });
    assert_eq!(
        (life.state(), life.upper()),
        ("probe-bw-down", Some(60 * SEGMENT))
    );
}
