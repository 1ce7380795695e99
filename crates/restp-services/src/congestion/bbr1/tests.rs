//! The state machine against the numbers of Linux, on a path of 8 Mbit/s and 50 ms: 50 segments of 1000 bytes.

use super::*;
use crate::congestion::conformance::path;
use crate::recovery::LostSegment;

const SEGMENT: u64 = 1000;
const RTT: Duration = Duration::from_millis(50);
const BDP: u64 = 50 * SEGMENT;
const LINK: u64 = 8_000_000;

/// A controller on a path that delivers a window per round trip, at most [`LINK`].
struct Life {
    bbr: Bbr1,
    now: Time,
    rtt: Duration,
    delivered: u64,
    in_flight: u64,
}

impl Life {
    fn begin() -> Self {
        Life {
            bbr: Bbr1::new(&Bbr1Params, SEGMENT),
            now: Time::ZERO + Duration::from_millis(1),
            rtt: RTT,
            delivered: 0,
            in_flight: 10 * SEGMENT,
        }
    }

    fn tell(&mut self, event: &CongestionEvent) {
        let view = PathView {
            in_flight_bytes: self.in_flight,
            smoothed_rtt: Some(self.rtt),
            now: self.now,
            ..path(SEGMENT)
        };
        self.bbr.on(event, &view);
    }

    /// One acknowledgement of a round trip in which the path delivered at `rate`.
    fn round(&mut self, rate: u64) -> State {
        self.now += self.rtt;
        let bytes = Rate::from_bps(rate).bytes_in(self.rtt);
        let before = self.delivered;
        self.delivered += bytes;
        let sample = RateSample {
            delivered_bytes: bytes,
            interval: self.rtt,
            delivered_before: before,
            delivered_total: self.delivered,
            lost_bytes: 0,
            sent_in_flight_bytes: self.in_flight,
            application_limited: false,
        };
        self.tell(&CongestionEvent::Acked {
            bytes,
            rtt: Some(self.rtt),
            rate: Some(sample),
        });
        self.bbr.state
    }

    /// In ProbeBW, with a bandwidth of [`LINK`].
    fn cruising() -> Self {
        let mut life = Life::begin();
        for _ in 0..5 {
            life.round(LINK);
        }
        life.in_flight = BDP;
        assert_eq!(life.round(LINK), State::ProbeBw);
        life
    }

    fn pace(&self) -> u64 {
        self.bbr.pacing().map_or(0, Rate::as_bps)
    }
}

#[test]
fn it_doubles_until_three_rounds_bring_less_than_a_quarter_more_and_drains() {
    let mut life = Life::begin();
    let mut rate = LINK / 8;
    while rate < LINK {
        assert_eq!(life.round(rate), State::Startup);
        assert_eq!(life.pace(), rate * 2885 * 99 / 100_000);
        rate *= 2;
    }
    assert_eq!(life.round(LINK), State::Startup);
    life.in_flight = 2 * BDP;
    assert_eq!([life.round(LINK), life.round(LINK)], [State::Startup; 2]);
    assert_eq!(life.round(LINK), State::Drain);
    assert_eq!(life.pace(), LINK * 346 * 99 / 100_000);
    life.in_flight = BDP;
    assert_eq!(life.round(LINK), State::ProbeBw);
}

#[test]
fn it_probes_once_in_eight_round_trips_and_drains_what_that_queued() {
    let mut life = Life::cruising();
    let mut paces = Vec::new();
    for _ in 0..32 {
        life.now += Duration::from_millis(1); // a phase is longer than a round trip
        life.in_flight = if life.bbr.phase.0 == 0 {
            BDP * 3 / 2
        } else {
            BDP + 5 * SEGMENT
        };
        life.round(LINK);
        paces.push(life.pace() * 100 / (LINK * 99 / 100));
    }
    let probes: Vec<_> = paces
        .iter()
        .enumerate()
        .filter(|(_, pace)| **pace == 125)
        .collect();
    assert_eq!(probes.len(), 4, "{paces:?}");
    assert!(
        probes
            .iter()
            .all(|(at, _)| paces.get(at + 1).is_none_or(|pace| *pace == 75))
    );
    assert_eq!(paces.iter().filter(|pace| **pace == 100).count(), 24);
}

#[test]
fn losses_do_not_slow_it_down() {
    let mut life = Life::cruising();
    let (pace, window) = (life.pace(), life.bbr.window_bytes());
    for _ in 0..20 {
        life.tell(&lost(&life));
        life.tell(&CongestionEvent::Lost { bytes: SEGMENT });
        assert!(life.bbr.window_bytes() < window, "packets are conserved at first");
        life.round(LINK);
        life.round(LINK);
        life.tell(&CongestionEvent::RecoveryEnded);
    }
    assert!(life.bbr.window_bytes() >= window);
    assert!(life.pace() >= pace * 3 / 4, "but for the phase of the cycle");
}

#[test]
fn every_ten_seconds_it_empties_the_queue_for_a_fifth_of_one() {
    let mut life = Life::cruising();
    life.rtt = Duration::from_millis(80); // a queue stands
    let mut probing = 0;
    for _ in 0..300 {
        let state = life.round(LINK);
        probing += u32::from(state == State::ProbeRtt);
        if state == State::ProbeRtt {
            assert_eq!(life.bbr.window_bytes(), 4 * SEGMENT);
            life.in_flight = 4 * SEGMENT;
            life.rtt = RTT;
        } else {
            life.in_flight = BDP;
            life.rtt = Duration::from_millis(80);
        }
    }
    // 24 s: two probes of 200 ms and a round trip each.
    assert!((8..=16).contains(&probing), "{probing}");
    assert_eq!(life.bbr.shortest, Some(RTT));
    assert!(life.bbr.window_bytes() > BDP);
}

#[test]
fn the_window_holds_twice_the_path_and_what_acknowledgements_run_ahead() {
    let mut life = Life::cruising();
    for _ in 0..20 {
        life.round(LINK);
    }
    let window = life.bbr.window_bytes();
    assert!((2 * BDP..=3 * BDP + 5 * SEGMENT).contains(&window), "{window}");
}

#[test]
fn after_a_timeout_one_segment_leaves_and_the_window_comes_back() {
    let mut life = Life::cruising();
    life.tell(&CongestionEvent::Timeout { repeated: false });
    assert_eq!(life.bbr.window_bytes(), SEGMENT);
    life.round(LINK);
    life.round(LINK);
    assert!(life.bbr.window_bytes() >= 2 * BDP);
}

/// Time does not begin with the connection.
#[test]
fn a_late_beginning_is_no_old_round_trip() {
    let mut life = Life::begin();
    life.now += ROUND_TRIP_LIFE.scaled(2, 1);
    assert_eq!(life.round(LINK / 8), State::Startup);
}

/// tcp_bbr.c, bbr_update_min_rtt: "Ignore low rate samples during this mode". 200 ms are more rounds here than the bandwidth is
/// remembered for.
#[test]
fn a_probe_for_a_short_round_trip_does_not_hide_the_bandwidth() {
    let mut life = Life::cruising();
    life.rtt = Duration::from_millis(10);
    life.round(LINK);
    life.now += ROUND_TRIP_LIFE;
    life.round(LINK);
    assert_eq!(life.round(LINK), State::ProbeRtt);
    life.in_flight = 4 * SEGMENT;
    let rounds = (0..100).take_while(|_| life.round(LINK / 10) == State::ProbeRtt);
    assert!(rounds.count() > 2 * BANDWIDTH_ROUNDS as usize - 2);
    assert_eq!(life.bbr.bandwidth().as_bps(), LINK);
}

fn lost(life: &Life) -> CongestionEvent {
    CongestionEvent::SegmentLost(LostSegment {
        sent_at: Time::ZERO,
        bytes: SEGMENT,
        lost_bytes: SEGMENT,
        sent_in_flight_bytes: BDP,
        delivered_before: life.delivered,
        delivered_total: life.delivered,
        application_limited: false,
    })
}

/// bbr_is_next_cycle_phase: where the buffer holds no quarter more, a loss ends the probe, also the first of an episode.
#[test]
fn a_loss_ends_a_probe_that_lasted_for_a_round_trip() {
    for loses in [false, true] {
        let mut life = Life::cruising();
        life.bbr.phase = (0, life.now);
        life.now += Duration::from_millis(1);
        life.in_flight = SEGMENT;
        if loses {
            life.tell(&lost(&life));
            life.tell(&CongestionEvent::Lost { bytes: SEGMENT });
        }
        life.round(LINK);
        assert_eq!(life.bbr.phase.0, usize::from(loses));
    }
}

/// bbr_is_next_cycle_phase asks for what was in flight before the acknowledgement.
#[test]
fn a_probe_ends_when_enough_was_in_flight_for_it() {
    let enough = BDP * 5 / 4 + 5 * SEGMENT;
    for (in_flight, phase) in [(enough - BDP, 1), (enough - BDP - 1, 0)] {
        let mut life = Life::cruising();
        life.bbr.phase = (0, life.now);
        life.now += Duration::from_millis(1);
        life.in_flight = in_flight;
        life.round(LINK);
        assert_eq!(life.bbr.phase.0, phase);
    }
}

/// bbr_cwnd_event, CA_EVENT_TX_START.
#[test]
fn a_pause_longer_than_the_probe_ends_it() {
    let mut life = Life::cruising();
    life.now += ROUND_TRIP_LIFE;
    assert_eq!(life.round(LINK), State::ProbeRtt);
    life.in_flight = SEGMENT;
    assert_eq!(life.round(LINK), State::ProbeRtt, "since now it lasts");
    for (pause, state) in [(200, State::ProbeRtt), (1, State::ProbeBw)] {
        life.now += Duration::from_millis(pause);
        let view = PathView {
            now: life.now,
            in_flight_bytes: SEGMENT,
            application_limited: true,
            ..path(SEGMENT)
        };
        life.bbr.on(&CongestionEvent::Sent { bytes: SEGMENT }, &view);
        assert_eq!(life.bbr.state, state);
    }
    assert!(life.bbr.window_bytes() > BDP);
}

#[test]
fn startup_never_slows_its_pace_down() {
    let mut life = Life::begin();
    life.round(LINK);
    let pace = life.pace();
    life.bbr.bandwidth = WindowedMax::new(BANDWIDTH_ROUNDS);
    life.round(LINK / 2);
    assert_eq!(life.pace(), pace);
}

#[test]
fn a_pause_is_a_probe_for_the_round_trip() {
    let mut life = Life::cruising();
    life.now += ROUND_TRIP_LIFE;
    let view = PathView {
        now: life.now,
        in_flight_bytes: SEGMENT,
        application_limited: true,
        ..path(SEGMENT)
    };
    life.bbr.on(&CongestionEvent::Sent { bytes: SEGMENT }, &view);
    assert_eq!(life.round(LINK), State::ProbeBw);
}

#[test]
fn packets_are_conserved_for_one_round_and_a_timeout_gives_its_window_back() {
    let mut life = Life::cruising();
    let window = life.bbr.window_bytes();
    life.tell(&CongestionEvent::Lost { bytes: SEGMENT });
    assert!(life.bbr.conserving);
    life.round(LINK);
    assert!(!life.bbr.conserving);
    life.tell(&CongestionEvent::RecoveryEnded);
    life.tell(&CongestionEvent::Timeout { repeated: false });
    life.tell(&CongestionEvent::Timeout { repeated: true });
    life.tell(&CongestionEvent::RecoveryEnded);
    assert!(life.bbr.window_bytes() >= window);
}

#[test]
fn what_the_application_limits_shows_more_bandwidth_but_not_less() {
    let mut bbr = Life::cruising().bbr;
    for (bytes, expected) in [(BDP / 2, LINK), (2 * BDP, 2 * LINK)] {
        bbr.on_sample(&RateSample {
            delivered_bytes: bytes,
            interval: RTT,
            delivered_before: 0,
            delivered_total: bytes,
            lost_bytes: 0,
            sent_in_flight_bytes: BDP,
            application_limited: true,
        });
        assert_eq!(bbr.bandwidth().as_bps(), expected);
    }
}
