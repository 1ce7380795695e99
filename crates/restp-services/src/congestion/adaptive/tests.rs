//! Lives of the controller on a path of one queue, round trip by round trip.

mod damage;
mod neighbours;
mod startup;
mod unused;

use super::*;
use restp_base::time::Time;

const SEGMENT: u64 = 1_000;
const BASE: Duration = Duration::from_millis(100);
/// Bytes that the path holds, 8 Mbit/s.
const HOLDS: u64 = 100 * SEGMENT;

/// A path that others fill, too.
struct Life {
    control: Adaptive,
    now: Time,
    delivered: u64,
    /// Bytes of others on the path.
    others: u64,
    /// Round trips are longer by so much, or shorter, one after the other.
    varies: Duration,
    /// The path has become longer by so much.
    longer: Duration,
    /// The application sends so much in a round trip, and no more.
    sends: Option<u64>,
}

impl Life {
    fn begin() -> Self {
        Life {
            control: Adaptive::new(&AdaptiveParams, SEGMENT),
            now: Time::ZERO,
            delivered: 0,
            others: 0,
            varies: Duration::ZERO,
            longer: Duration::ZERO,
            sends: None,
        }
    }

    /// In the state of a flow that has been alone for a while.
    fn alone() -> Self {
        let mut life = Life::begin();
        (0..30).for_each(|_| life.round());
        assert_eq!(life.control.mode, Mode::Alone);
        life
    }

    /// Others have come, and are found.
    fn found(mut self) -> Self {
        self.others = 2 * HOLDS;
        for _ in 0..20 {
            if self.control.mode == Mode::Competing {
                return self;
            }
            self.round();
        }
        panic!("not found");
    }

    /// Out of slow start.
    fn competing() -> Self {
        let mut life = Life::alone().found();
        life.round();
        life.lose();
        life
    }

    fn view(&self, rtt: Duration) -> PathView<'static> {
        PathView {
            now: self.now,
            segment_bytes: SEGMENT,
            in_flight_bytes: self.control.window,
            smoothed_rtt: Some(rtt),
            latest_rtt: Some(rtt),
            min_rtt: Some(BASE),
            application_limited: self.sends.is_some(),
            in_recovery: false,
            siblings: &[],
        }
    }

    /// How long a round trip takes on average with what is under way.
    fn rtt(&self) -> Duration {
        let under_way = self.flight() + self.others;
        BASE.scaled(under_way, HOLDS)
            .max(BASE + self.longer + self.varies)
    }

    fn flight(&self) -> u64 {
        self.sends.unwrap_or(u64::MAX).min(self.control.window)
    }

    /// What is in flight is acknowledged, ten segments at a time.
    fn round(&mut self) {
        let (rtt, flight, before) = (self.rtt(), self.flight(), self.delivered);
        self.now += rtt;
        let mut left = flight;
        let mut trips = [rtt.saturating_sub(self.varies), rtt + self.varies]
            .into_iter()
            .cycle();
        while left > 0 {
            let bytes = left.min(10 * SEGMENT);
            left -= bytes;
            self.delivered += bytes;
            let rate = RateSample {
                delivered_bytes: flight,
                interval: rtt,
                delivered_before: before,
                delivered_total: self.delivered,
                lost_bytes: 0,
                sent_in_flight_bytes: flight,
                application_limited: self.sends.is_some(),
            };
            self.tell(&CongestionEvent::Acked {
                bytes,
                rtt: trips.next(),
                rate: Some(rate),
            });
        }
    }

    /// Two segments are acknowledged.
    fn answer(&mut self) -> CongestionEvent {
        let (rtt, before) = (self.rtt(), self.delivered);
        self.delivered += 2 * SEGMENT;
        let rate = RateSample {
            delivered_bytes: self.flight(),
            interval: rtt,
            delivered_before: before,
            delivered_total: self.delivered,
            lost_bytes: 0,
            sent_in_flight_bytes: self.flight(),
            application_limited: false,
        };
        CongestionEvent::Acked {
            bytes: 2 * SEGMENT,
            rtt: Some(rtt),
            rate: Some(rate),
        }
    }

    fn tell(&mut self, event: &CongestionEvent) {
        let view = self.view(self.rtt());
        self.control.on(event, &view);
    }

    fn lose(&mut self) {
        self.tell(&CongestionEvent::Lost { bytes: SEGMENT });
    }

    fn mark(&mut self) {
        self.tell(&CongestionEvent::Marked { bytes: SEGMENT });
    }
}

/// What a shaper had saved left at the rate of the link behind it. Measured by that, four segments take no time, and whatever waits
/// is somebody else's: this flow filled the whole buffer.
#[test]
fn what_a_shaper_has_saved_makes_nobody_a_neighbour() {
    let mut life = Life::begin();
    let short = Duration::from_millis(1);
    for round in 0..400 {
        let bytes = if round < 3 { 64 * SEGMENT } else { 5 * SEGMENT };
        life.now += short;
        let before = life.delivered;
        life.delivered += bytes;
        let rate = RateSample {
            delivered_bytes: bytes,
            interval: short,
            delivered_before: before,
            delivered_total: life.delivered,
            lost_bytes: 0,
            sent_in_flight_bytes: bytes,
            application_limited: false,
        };
        // The four segments that wait take most of a round trip.
        let rtt = if round < 3 { short / 10 } else { short / 10 * 9 };
        let event = CongestionEvent::Acked {
            bytes,
            rtt: Some(rtt),
            rate: Some(rate),
        };
        let view = life.view(rtt);
        life.control.on(&event, &view);
        assert!(round < 120 || life.control.mode == Mode::Alone, "in {round}");
    }
}

#[test]
fn startup_doubles_and_ends_with_the_first_queue() {
    let mut life = Life::begin();
    let windows: Vec<_> = (0..4)
        .map(|_| {
            life.round();
            life.control.window / SEGMENT
        })
        .collect();
    assert_eq!(windows[..3], [20, 40, 80]);
    while life.control.mode == Mode::Startup {
        assert!(life.control.window <= 2 * HOLDS);
        life.round();
    }
    // What the second acknowledgement that sees it makes of it; smoothed round trips of a `Life` are ahead of its samples.
    let window = life.control.window;
    assert!((HOLDS..=HOLDS + 12 * SEGMENT).contains(&window), "{window}");
}

/// The last acknowledgement of a flight waited for a segment that did not come, and was taken for a queue: startup ended with a seventh of
/// what the path holds.
#[test]
fn an_acknowledgement_that_waited_ends_no_startup() {
    let mut life = Life::begin();
    life.round();
    for longer in [Duration::from_millis(40), Duration::ZERO] {
        life.longer = longer;
        life.now += BASE;
        let answer = life.answer();
        life.tell(&answer);
        assert_eq!(life.control.mode, Mode::Startup, "{longer}");
    }
    life.longer = Duration::from_millis(40);
    life.now += BASE;
    for mode in [Mode::Startup, Mode::Alone] {
        let answer = life.answer();
        life.tell(&answer);
        assert_eq!(life.control.mode, mode, "two in a row are a queue");
    }
}

/// What a link holds back is in flight, too: a flow that took it for a queue would leave a tenth of the path unused.
#[test]
fn round_trips_that_vary_are_no_queue() {
    let varies = BASE / 10;
    let mut life = Life {
        varies,
        ..Life::begin()
    };
    for round in 0..100 {
        life.round();
        let least = if round < 30 { 0 } else { HOLDS + HOLDS / 10 };
        assert!(life.control.window >= least, "{} in {round}", life.control.window);
    }
    assert_eq!(life.control.mode, Mode::Alone);
    assert!(life.rtt() <= BASE + varies * 2);
}

/// Another route, or a way back on which an acknowledgement takes its time: who took that for a queue would share with nobody.
#[test]
fn a_path_that_becomes_longer_is_no_queue() {
    for percent in [6, 30, 200] {
        let mut life = Life::alone();
        life.longer = BASE * percent / 100;
        for _ in 0..100 {
            life.round();
            assert_eq!(life.control.mode, Mode::Alone, "{percent} % longer");
        }
        let (window, holds) = (life.control.window, HOLDS + HOLDS * percent / 100);
        assert!(window >= holds, "{percent} % longer: {window}");
    }
}

/// A queue as long as it was before the window was cut for another reason is not compared with that one.
#[test]
fn rounds_before_a_cut_say_nothing_of_those_after_it() {
    let mut life = Life::alone();
    let (own, freed) = (4 * SEGMENT, Duration::from_millis(4));
    let round = |control: &mut Adaptive, window| control.trips.on_round(window, BASE, own, freed);
    for _ in 0..5 {
        assert!(!round(&mut life.control, HOLDS));
    }
    life.control.settle(HOLDS / 2);
    assert!(!round(&mut life.control, HOLDS / 2));
}

#[test]
fn alone_it_keeps_the_path_full_and_a_few_segments_in_the_queue() {
    let mut life = Life::alone();
    for _ in 0..100 {
        life.round();
        let window = life.control.window;
        assert!((HOLDS..=HOLDS + 12 * SEGMENT).contains(&window), "{window}");
    }
    assert_eq!(life.control.mode, Mode::Alone);
    let pace = life.control.pacing().unwrap();
    assert!(pace <= Rate::of(life.control.window, BASE), "{pace}");
}

#[test]
fn what_startup_had_sent_costs_nothing_afterwards() {
    let mut life = Life::begin();
    while life.control.mode == Mode::Startup {
        life.round();
    }
    let window = life.control.window;
    life.lose();
    assert_eq!((life.control.mode, life.control.window), (Mode::Alone, window));
    life.control.startup.aftermath = life.control.rounds.count;
    life.lose();
    assert!(life.control.window < window, "three rounds later");
}

#[test]
fn a_cut_that_was_for_nothing_is_taken_back() {
    for mut life in [Life::alone(), Life::competing()] {
        let (mode, window) = (life.control.mode, life.control.window);
        life.lose();
        assert!(life.control.window < window);
        life.tell(&CongestionEvent::Restored);
        assert_eq!(life.control.mode, mode);
        assert!(life.control.window >= window);
        life.control.window = 10 * SEGMENT;
        life.tell(&CongestionEvent::Restored);
        assert_eq!(life.control.window, 10 * SEGMENT, "once");
    }
}

#[test]
fn what_acknowledgements_hold_back_may_leave_beyond_the_window() {
    let mut life = Life::alone();
    let window = life.control.window;
    let batch = 8 * SEGMENT; // of the ten, two are held back in any case
    assert_eq!(life.control.window_bytes(), window + 2 * batch);
    assert_eq!(life.control.snapshot().window_bytes, life.control.window_bytes());
    life.control.window = 16 * SEGMENT;
    assert_eq!(
        life.control.window_bytes(),
        20 * SEGMENT,
        "an eighth of the window, twice"
    );
}

#[test]
fn what_is_not_delivered_does_not_count() {
    let mut life = Life::alone();
    *life.control.alone = Alone::default();
    let held = life.control.held().unwrap();
    for _ in 0..40 {
        life.control.window = (life.control.window * 2).min(10 * HOLDS);
        let before = life.control.window;
        life.control.grow(before);
        assert!(life.control.window <= before.max(held / 2 * 3 + 4 * SEGMENT));
    }
}

#[test]
fn a_path_holds_two_segments_more_where_acknowledgements_wait() {
    let control = Life::alone().control;
    assert_eq!(control.held_at(Rate::of(HOLDS, BASE)), Some(HOLDS + 2 * SEGMENT));
}

#[test]
fn with_a_short_queue_it_grows_by_two_segments_in_a_round() {
    let mut life = Life::alone();
    *life.control.alone = Alone::default();
    life.control.window = HOLDS + 2 * SEGMENT;
    let before = life.control.window;
    life.round();
    let grown = life.control.window - before;
    // The first ten segments of the round come before it is judged.
    assert!((1_700..=2_000).contains(&grown), "{grown}");
}

/// Whoever is told that nothing was lost is where he was, and not in a slow start that was over.
#[test]
fn a_loss_that_was_none_brings_no_slow_start_back() {
    let mut life = Life::competing();
    for _ in 0..5 {
        life.round();
    }
    life.lose();
    life.tell(&CongestionEvent::Restored);
    let before = life.control.window;
    life.round();
    let grown = life.control.window - before;
    assert!(grown < 10 * SEGMENT, "{grown} of {before}");
}

#[test]
fn what_an_application_did_not_send_is_not_the_rate_of_the_path() {
    let mut life = Life::alone();
    let known = life.control.rate;
    for (bytes, learnt) in [(HOLDS / 2, false), (2 * HOLDS, true)] {
        let rate = RateSample {
            delivered_bytes: bytes,
            interval: BASE,
            delivered_before: life.delivered,
            delivered_total: life.delivered + bytes,
            lost_bytes: 0,
            sent_in_flight_bytes: bytes,
            application_limited: true,
        };
        life.delivered += bytes;
        life.tell(&CongestionEvent::Acked {
            bytes: SEGMENT,
            rtt: Some(BASE),
            rate: Some(rate),
        });
        assert_eq!(life.control.rate != known, learnt);
    }
}

/// Another path through the same queue was cut: this one is, once; one with a queue of its own says nothing.
#[test]
fn who_competes_in_the_queue_of_another_path_is_cut_with_it() {
    use crate::view::Sibling;
    for (shares_queue, is_cut) in [(true, true), (false, false)] {
        let mut life = Life::competing();
        life.now += Duration::from_secs(1);
        let siblings = [Sibling {
            shares_queue,
            cut_at: Some(life.now),
            ..Sibling::default()
        }];
        let before = life.control.window;
        for _ in 0..3 {
            let view = PathView {
                siblings: &siblings,
                ..life.view(life.rtt())
            };
            let rtt = Some(life.rtt());
            let event = CongestionEvent::Acked {
                bytes: SEGMENT,
                rtt,
                rate: None,
            };
            life.control.on(&event, &view);
        }
        let expected = if is_cut { before / 10 * 7 } else { before };
        assert!(
            life.control.window.abs_diff(expected) < 2 * SEGMENT,
            "{} after {before}",
            life.control.window
        );
        assert_eq!(life.control.cut_at() == Some(life.now), is_cut);
    }
}

/// The way back became longer, not the queue: who stays alone would otherwise find a neighbour in every round trip.
#[test]
fn a_longer_way_back_is_no_queue() {
    let mut life = Life::alone();
    let longer = BASE * 2;
    let acked = CongestionEvent::Acked {
        bytes: SEGMENT,
        rtt: Some(longer),
        rate: None,
    };
    let queue = |life: &mut Life| {
        life.now += longer * 2;
        let view = life.view(longer);
        life.control.on(&acked, &view);
        life.control.trips.queue()
    };
    assert!(queue(&mut life) >= Some(BASE / 2));
    life.tell(&CongestionEvent::RouteChanged);
    assert_eq!(queue(&mut life), Some(Duration::ZERO));
}
