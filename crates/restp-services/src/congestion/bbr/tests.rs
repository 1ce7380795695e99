//! The state machine against the draft's numbers, on a path of 8 Mbit/s and 50 ms: 50 segments of 1000 bytes.

use super::*;
use crate::congestion::conformance::path;

const SEGMENT: u64 = 1000;
const RTT: Duration = Duration::from_millis(50);
const BDP: u64 = 50 * SEGMENT;
const LINK: u64 = 8_000_000;
/// One acknowledgement in a round is aggregation of a whole one (§5.5.9).
const EXTRA: u64 = BDP;

/// A controller and what it was told last.
struct Life {
    bbr: Bbr,
    now: Time,
    rtt: Duration,
    delivered: u64,
    in_flight: u64,
    in_recovery: bool,
    application_limited: bool,
    /// Acknowledgements of a round.
    acks: u64,
}

impl Life {
    fn begin() -> Self {
        Life {
            bbr: Bbr::new(&BbrParams::default(), SEGMENT),
            now: Time::ZERO,
            rtt: RTT,
            delivered: 0,
            in_flight: 10 * SEGMENT,
            in_recovery: false,
            application_limited: false,
            acks: 1,
        }
    }

    /// In Cruise, with a bandwidth of [`LINK`].
    fn cruising() -> Self {
        let mut life = Life::begin();
        life.full();
        life.in_flight = BDP;
        life.round(LINK);
        life.round(LINK);
        life.round(LINK);
        assert_eq!(life.state(), "probe-bw-cruise");
        life
    }

    /// Rounds that double the rate up to [`LINK`], and three more that tell that the pipe is full.
    fn full(&mut self) {
        for speed in [1, 2, 4, 8, 8, 8, 8] {
            self.in_flight = 2 * BDP;
            self.round(speed * 1_000_000);
        }
        assert_eq!(self.state(), "drain");
    }

    fn probing(&mut self) {
        for _ in 0..70 {
            self.round(LINK);
            if self.state() == "probe-bw-up" {
                return;
            }
        }
        panic!("never in Up");
    }

    fn view(&self) -> PathView<'static> {
        PathView {
            now: self.now,
            in_flight_bytes: self.in_flight,
            smoothed_rtt: Some(self.rtt),
            in_recovery: self.in_recovery,
            application_limited: self.application_limited,
            ..path(SEGMENT)
        }
    }

    fn tell(&mut self, event: CongestionEvent) {
        let view = self.view();
        self.bbr.on(&event, &view);
    }

    /// A round trip whose acknowledgements show `speed`.
    fn round(&mut self, speed: u64) {
        (0..self.acks).for_each(|_| self.acknowledge(speed));
    }

    fn acknowledge(&mut self, speed: u64) {
        let round = Rate::from_bps(speed).bytes_in(self.rtt);
        let bytes = round / self.acks;
        self.now += self.rtt / self.acks;
        self.delivered += bytes;
        self.tell(CongestionEvent::Acked {
            bytes,
            rtt: Some(self.rtt),
            rate: Some(RateSample {
                delivered_bytes: round,
                interval: self.rtt,
                delivered_before: self.delivered.saturating_sub(round),
                delivered_total: self.delivered,
                lost_bytes: 0,
                sent_in_flight_bytes: self.in_flight,
                application_limited: self.application_limited,
            }),
        });
    }

    /// `count` segments of those that left a round trip ago were lost.
    fn lose(&mut self, count: u64) {
        for lost in 1..=count {
            self.tell(CongestionEvent::SegmentLost(LostSegment {
                bytes: SEGMENT,
                lost_bytes: lost * SEGMENT,
                sent_in_flight_bytes: self.in_flight,
                delivered_before: self.delivered,
                delivered_total: self.delivered,
                application_limited: false,
            }));
        }
    }

    /// A queue of half a round trip for as long as it takes to be seen.
    fn queue(&mut self) {
        self.rtt = RTT * 3 / 2;
        self.round(LINK);
        self.round(LINK);
    }

    fn state(&self) -> &'static str {
        self.bbr.snapshot().state
    }
    fn pacing(&self) -> u64 {
        self.bbr.pacing().map_or(0, |rate| rate.as_bps())
    }
    fn window(&self) -> u64 {
        self.bbr.window_bytes()
    }
    fn upper(&self) -> Option<u64> {
        self.bbr.snapshot().threshold_bytes
    }
}

/// `gain` thousandths of the link's rate: without a queue nothing is taken off (§5.6.2).
fn paced(gain: u64) -> u64 {
    LINK * gain / 1000
}

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
    assert_eq!((life.window(), life.pacing()), (BDP / 2, paced(1000)));
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
fn one_percent_is_left_where_a_queue_is_seen() {
    let mut life = Life::cruising();
    assert_eq!(life.pacing(), LINK);
    life.rtt = RTT * 3 / 2;
    life.round(LINK);
    life.round(LINK);
    life.round(LINK);
    assert_eq!(
        (life.state(), life.pacing()),
        ("probe-bw-cruise", LINK * 99 / 100)
    );
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
