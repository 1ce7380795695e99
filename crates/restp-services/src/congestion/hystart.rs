//! HyStart++ (RFC 9406): the first slow start ends when round trips begin to take longer, before the queue overflows.
//! Without it a window grows to twice what path and queue hold, and the receiver keeps all of that behind the first
//! hole.

use super::hystart_linux::LinuxHyStart;
use super::window::segment_of;
use crate::view::PathView;
use restp_base::time::Duration;

/// Samples a round needs before it says anything (N_RTT_SAMPLE).
const ENOUGH_SAMPLES: u32 = 8;
/// Rounds of cautious growth before slow start is over (CSS_ROUNDS).
const CAUTIOUS_ROUNDS: u32 = 5;
/// Growth is divided by this while cautious (CSS_GROWTH_DIVISOR).
const CAUTIOUS_DIVISOR: u64 = 4;
/// Bounds of the delay that counts as an increase (MIN_RTT_THRESH, MAX_RTT_THRESH), and its share of a round trip.
const LEAST_INCREASE: Duration = Duration::from_millis(4);
const MOST_INCREASE: Duration = Duration::from_millis(16);
const INCREASE_DIVISOR: u64 = 8;

/// How a first slow start ends before it overflows the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HyStartChoice {
    /// It does not.
    Off,
    /// HyStart++: with caution first.
    Rfc9406,
    /// HyStart as Linux has it: at once, and by trains of acknowledgements as well.
    Linux,
}

impl HyStartChoice {
    /// All with their names in compositions.
    pub const ALL: [(&'static str, HyStartChoice); 3] = [
        ("on", HyStartChoice::Rfc9406),
        ("off", HyStartChoice::Off),
        ("linux", HyStartChoice::Linux),
    ];
}

/// The chosen rule at work.
#[derive(Clone, Copy, Debug)]
pub(super) enum SlowStart {
    Rfc9406(HyStart),
    Linux(LinuxHyStart),
}

impl SlowStart {
    pub fn new(choice: HyStartChoice) -> Option<Self> {
        match choice {
            HyStartChoice::Off => None,
            HyStartChoice::Rfc9406 => Some(SlowStart::Rfc9406(HyStart::default())),
            HyStartChoice::Linux => Some(SlowStart::Linux(LinuxHyStart::default())),
        }
    }

    /// There is no slow start now: rounds of the next one begin anew.
    pub fn rest(&mut self) {
        match self {
            SlowStart::Rfc9406(start) => *start = HyStart::default(),
            SlowStart::Linux(start) => start.rest(),
        }
    }

    /// `bytes` were acknowledged with a round-trip sample, or none; the window holds `window` bytes.
    pub fn advise(&mut self, view: &PathView<'_>, bytes: u64, rtt: Option<Duration>, window: u64) -> Advice {
        match self {
            SlowStart::Rfc9406(start) => start.advise(bytes, rtt, view.in_flight_bytes),
            SlowStart::Linux(start) => {
                let segments = window / segment_of(view);
                if start.is_over(view.now, bytes, rtt, view.in_flight_bytes, segments) {
                    Advice::Stop
                } else {
                    Advice::Grow(bytes)
                }
            }
        }
    }
}

/// What slow start should do with an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Advice {
    /// Grow by this many bytes.
    Grow(u64),
    /// It is over: the threshold is the window as it is.
    Stop,
}

/// State of RFC 9406 §4.2. A round ends when what was in flight at its beginning has been acknowledged.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HyStart {
    round_left: u64,
    samples: u32,
    round_minimum: Option<Duration>,
    last_minimum: Option<Duration>,
    cautious: Option<Cautious>,
}

/// Conservative slow start: the increase may have been noise.
#[derive(Clone, Copy, Debug)]
struct Cautious {
    /// The round trip that made us cautious; a smaller one clears the suspicion.
    baseline: Duration,
    rounds_left: u32,
}

impl HyStart {
    /// `bytes` were acknowledged with a round-trip sample, or none, and `in_flight` bytes are out now.
    pub fn advise(&mut self, bytes: u64, rtt: Option<Duration>, in_flight: u64) -> Advice {
        if let Some(rtt) = rtt {
            self.samples += 1;
            self.round_minimum = Some(self.round_minimum.map_or(rtt, |minimum| minimum.min(rtt)));
            self.judge();
        }
        self.round_left = self.round_left.saturating_sub(bytes);
        if self.round_left == 0 && self.next_round(in_flight) {
            return Advice::Stop;
        }
        Advice::Grow(match self.cautious {
            Some(_) => bytes / CAUTIOUS_DIVISOR,
            None => bytes,
        })
    }

    fn judge(&mut self) {
        let Some(current) = self.round_minimum.filter(|_| self.samples >= ENOUGH_SAMPLES) else {
            return;
        };
        match (self.cautious, self.last_minimum) {
            (Some(cautious), _) if current < cautious.baseline => self.cautious = None,
            (None, Some(last)) => {
                let increase = (last / INCREASE_DIVISOR).max(LEAST_INCREASE).min(MOST_INCREASE);
                if current >= last + increase {
                    self.cautious = Some(Cautious {
                        baseline: current,
                        rounds_left: CAUTIOUS_ROUNDS,
                    });
                }
            }
            _ => {}
        }
    }

    /// Begins a round. True when the cautious rounds are used up.
    fn next_round(&mut self, in_flight: u64) -> bool {
        self.round_left = in_flight.max(1);
        self.last_minimum = self.round_minimum.take().or(self.last_minimum);
        self.samples = 0;
        let Some(cautious) = &mut self.cautious else {
            return false;
        };
        cautious.rounds_left = cautious.rounds_left.saturating_sub(1);
        cautious.rounds_left == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: u64 = 1000;

    /// Rounds of 20 segments with these round trips in milliseconds; what each of their acknowledgements allowed.
    fn rounds(start: &mut HyStart, trips: &[u64]) -> Vec<Advice> {
        trips
            .iter()
            .map(|ms| {
                let advice = |_| start.advise(SEGMENT, Some(Duration::from_millis(*ms)), 20 * SEGMENT);
                let advice: Vec<_> = (0..20).map(advice).collect();
                if advice.contains(&Advice::Stop) {
                    Advice::Stop
                } else {
                    advice[19]
                }
            })
            .collect()
    }

    #[test]
    fn an_increase_of_an_eighth_makes_cautious_and_five_rounds_end_it() {
        let mut start = HyStart::default();
        let advice = rounds(&mut start, &[80, 80, 90, 90, 90, 90, 90, 90, 90]);
        assert_eq!(
            advice[..2],
            [Advice::Grow(SEGMENT); 2],
            "the first acknowledgement is a round of its own"
        );
        // CSS_ROUNDS counts the round in which it began.
        assert_eq!(advice[2..7], [Advice::Grow(SEGMENT / 4); 5]);
        assert_eq!(advice[7], Advice::Stop);
    }

    /// N_RTT_SAMPLE. The first of these acknowledgements still belongs to the round before.
    #[test]
    fn a_round_needs_eight_samples_to_say_anything() {
        let cautious_after = |samples: u64| {
            let mut start = HyStart::default();
            rounds(&mut start, &[80, 80]);
            for _ in 0..samples {
                start.advise(SEGMENT, Some(Duration::from_millis(200)), 20 * SEGMENT);
            }
            start.cautious.is_some()
        };
        assert_eq!((cautious_after(1 + 7), cautious_after(1 + 8)), (false, true));
    }

    /// MIN_RTT_THRESH and MAX_RTT_THRESH: 4 and 16 ms; an eighth in between.
    #[test]
    fn an_increase_counts_from_four_to_sixteen_milliseconds_on() {
        for (trip, least) in [(8, 4), (80, 10), (800, 16)] {
            for (increase, expected) in [(least - 1, SEGMENT), (least, SEGMENT / 4)] {
                let mut start = HyStart::default();
                let advice = rounds(&mut start, &[trip, trip, trip + increase]);
                assert_eq!(
                    advice[2],
                    Advice::Grow(expected),
                    "{increase} ms more than {trip}"
                );
            }
        }
    }

    #[test]
    fn an_increase_of_less_than_the_threshold_is_none() {
        let mut start = HyStart::default();
        assert_eq!(rounds(&mut start, &[80, 80, 89, 80]).len(), 4);
        let mut start = HyStart::default();
        assert!(
            rounds(&mut start, &[80, 80, 88, 88, 88, 88, 88])
                .iter()
                .all(|a| *a == Advice::Grow(SEGMENT))
        );
        let mut short = HyStart::default();
        assert!(
            rounds(&mut short, &[1, 1, 4, 4, 4, 4])
                .iter()
                .all(|a| *a == Advice::Grow(SEGMENT)),
            "4 ms at least"
        );
    }

    #[test]
    fn a_suspicion_that_clears_up_lets_slow_start_go_on() {
        let mut start = HyStart::default();
        let advice = rounds(&mut start, &[80, 80, 95, 80, 80, 80, 80, 80, 80, 80]);
        assert_eq!(advice[2], Advice::Grow(SEGMENT / 4));
        assert!(
            advice[4..].iter().all(|a| *a == Advice::Grow(SEGMENT)),
            "{advice:?}"
        );
    }

    #[test]
    fn without_samples_it_has_no_opinion() {
        let mut start = HyStart::default();
        assert!((0..1000).all(|_| start.advise(SEGMENT, None, 20 * SEGMENT) == Advice::Grow(SEGMENT)));
    }
}
