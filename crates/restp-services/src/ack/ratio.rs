//! How many segments one acknowledgement covers, told by who sends them (RFC 5690, draft-ietf-quic-ack-frequency): only the
//! sender knows how much is in flight. A paced sender needs a few acknowledgements per round trip, whatever its rate
//! (TACK, SIGCOMM 2020).
//!
//! A ratio is an eighth to a sixteenth of the flight, and 64 segments at most: so many leave for one acknowledgement, and short
//! queues have no room for more. A round trip contains the wait in the queue of the way back: where that is thin the wait
//! grows, the flight with it, and acknowledgements become rarer. Of a flight below 1,024 segments no more than 16 ever stand
//! in that queue.

use restp_base::time::Duration;

/// Acknowledge after so many segments: as the receiver's own schedule says, hurrying or not, or after 4, 8, … 128.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AckRatio(u8);

/// Acknowledgements per flight, at least: HyStart++ judges a round by eight samples (RFC 9406 §4.3).
const LEAST_PER_FLIGHT: u64 = 8;
/// So long a lone segment may wait for its acknowledgement if nothing hurries (OP-45).
pub const LONGEST_WAIT: Duration = Duration::from_millis(40);
/// What the field of the header can say.
const LARGEST_CODE: u8 = 7;
/// The most that is asked for: 64 segments.
const LARGEST_ASKED: u8 = 5;

impl AckRatio {
    /// As the receiver's schedule says.
    pub const SCHEDULE: AckRatio = AckRatio(0);
    /// The same, and a lone one may wait: more is to be sent, and the round trip is long beside [`LONGEST_WAIT`].
    pub const UNHURRIED: AckRatio = AckRatio(LARGEST_CODE);

    /// For so many segments in flight, answered by `answers` acknowledgements at least. Below four segments for each the schedule
    /// counts: small windows need every acknowledgement to grow.
    pub fn of_flight(segments: u64, answers: u64) -> Self {
        AckRatio(LARGEST_ASKED).at_most(segments / answers.max(LEAST_PER_FLIGHT))
    }

    /// The same, or one of at most so many segments per acknowledgement.
    pub fn at_most(self, segments: u64) -> Self {
        let doublings = segments.checked_ilog2().unwrap_or(0) as u8;
        AckRatio(self.0.min(doublings.saturating_sub(1)))
    }

    /// So many times twice the segments per acknowledgement.
    pub fn doubled(self, times: u8) -> Self {
        AckRatio(self.0.saturating_add(times).min(LARGEST_ASKED))
    }

    /// The schedule of who is asked; where `rtt` is that of a path with more to send, and a wait is short beside it, without hurry. Silence is
    /// judged after two round trips.
    pub fn by_schedule(rtt: Option<Duration>) -> Self {
        let is_long = rtt.is_some_and(|rtt| rtt >= LONGEST_WAIT * 2);
        if is_long { Self::UNHURRIED } else { Self::SCHEDULE }
    }

    /// Segments per acknowledgement; one where the schedule counts.
    pub fn segments(self) -> u32 {
        match self {
            Self::SCHEDULE | Self::UNHURRIED => 1,
            AckRatio(code) => 2 << code,
        }
    }

    /// The three bits that travel.
    pub fn code(self) -> u8 {
        self.0
    }

    /// What three bits say; higher ones are dropped.
    pub fn from_code(code: u8) -> Self {
        AckRatio(code & LARGEST_CODE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flight_is_answered_by_eight_to_sixteen_acknowledgements_and_a_small_one_by_the_schedule() {
        for segments in 0..32 {
            assert_eq!(AckRatio::of_flight(segments, 0), AckRatio::SCHEDULE);
        }
        for segments in 32..1024 {
            let answers = segments / u64::from(AckRatio::of_flight(segments, 0).segments());
            assert!((8..16).contains(&answers), "{segments}: {answers}");
        }
        assert_eq!(AckRatio::of_flight(u64::MAX, 0).segments(), 64);
    }

    #[test]
    fn nothing_hurries_on_a_path_whose_round_trip_is_twice_the_wait() {
        let asked = |ms| AckRatio::by_schedule(Some(Duration::from_millis(ms)));
        assert_eq!([asked(79), asked(80)], [AckRatio::SCHEDULE, AckRatio::UNHURRIED]);
        assert_eq!(AckRatio::by_schedule(None), AckRatio::SCHEDULE);
        assert_eq!(AckRatio::UNHURRIED.segments(), 1);
    }

    #[test]
    fn codes_round_trip() {
        let all: Vec<_> = (0..8).map(AckRatio::from_code).collect();
        assert_eq!(
            all.iter().map(|ratio| ratio.segments()).collect::<Vec<_>>(),
            [1, 4, 8, 16, 32, 64, 128, 1]
        );
        assert!(
            all.iter()
                .all(|ratio| AckRatio::from_code(ratio.code()) == *ratio)
        );
        assert_eq!(AckRatio::from_code(0xFF), AckRatio::from_code(7));
    }

    #[test]
    fn twice_as_many_segments_and_never_more_than_are_asked_for() {
        let doubled = |ratio: AckRatio, times| ratio.doubled(times).segments();
        assert_eq!(
            [0, 1, 2].map(|times| doubled(AckRatio::SCHEDULE, times)),
            [1, 4, 8]
        );
        assert_eq!([5, 6, u8::MAX].map(|times| doubled(AckRatio(1), times)), [64; 3]);
    }
}
