//! A recording of when a real line could send, in the format of mahimahi (Netravali et al., USENIX ATC 2015, §3): every
//! line of the file is a time in milliseconds at which 1500 bytes may leave. At the last of them the file begins again.

use restp_base::time::{Duration, Time};
use restp_base::units::Rate;
use std::sync::Arc;
use thiserror::Error;

/// What one opportunity carries: several packets, or a part of a larger one.
const OPPORTUNITY_BYTES: u64 = 1500;
/// The same in billionths of a bit.
const OPPORTUNITY: u64 = OPPORTUNITY_BYTES * 8_000_000_000;
const NANOS_PER_MS: u64 = 1_000_000;

/// When a line can send. What an opportunity has room for beyond the packets that wait is lost with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryTrace {
    /// In milliseconds and in order, the last above zero.
    times: Arc<[u32]>,
}

/// What is wrong with a recording.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TraceError {
    /// Something else than a time.
    #[error(
        "line {line}: \"{written}\" is no time; write whole milliseconds, one opportunity of 1500 bytes a line"
    )]
    Time {
        /// From 1.
        line: usize,
        /// The beginning of what stands there.
        written: String,
    },
    /// Time goes back.
    #[error("line {line}: {time} ms comes after {before} ms; write the times in order")]
    Order {
        /// From 1.
        line: usize,
        /// The earlier time.
        time: u32,
        /// That of the line before.
        before: u32,
    },
    /// Nothing would ever leave, or everything at once.
    #[error("it lasts no time; the last line says when it begins again, so write one above 0")]
    Empty,
}

impl DeliveryTrace {
    /// Reads the text of a recording.
    ///
    /// # Errors
    /// The first line that is not understood, or that there is none.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let mut times: Vec<u32> = Vec::new();
        for (index, written) in text.lines().enumerate() {
            let line = index + 1;
            let time = written.trim().parse().map_err(|_| TraceError::Time {
                line,
                written: written.chars().take(20).collect(),
            })?;
            if let Some(&before) = times.last().filter(|before| time < **before) {
                return Err(TraceError::Order { line, time, before });
            }
            times.push(time);
        }
        match times.last() {
            None | Some(0) => Err(TraceError::Empty),
            Some(_) => Ok(DeliveryTrace { times: times.into() }),
        }
    }

    /// Its mean over its whole length, and not below 1 bit/s.
    pub(super) fn mean(&self) -> Rate {
        let period = Duration::from_nanos(self.period());
        Rate::of(self.times.len() as u64 * OPPORTUNITY_BYTES, period).max(Rate::from_bps(1))
    }

    /// After so many nanoseconds it begins again.
    fn period(&self) -> u64 {
        self.times
            .last()
            .map_or(1, |last| u64::from(*last) * NANOS_PER_MS)
    }

    /// When opportunity number `number` comes, counted from 0 and over all rounds.
    fn time(&self, number: u64) -> Time {
        let count = self.times.len() as u64;
        let within = u64::from(self.times[(number % count) as usize]) * NANOS_PER_MS;
        Time::from_nanos(
            (number / count)
                .saturating_mul(self.period())
                .saturating_add(within),
        )
    }

    /// The first opportunity at `at` or later.
    fn first_from(&self, at: Time) -> u64 {
        let nanos = at.as_nanos();
        // The end of a round is that of its last opportunity, and only then the beginning of the next.
        let round = nanos.saturating_sub(1) / self.period();
        let within = nanos - round * self.period();
        let index = self
            .times
            .partition_point(|time| u64::from(*time) * NANOS_PER_MS < within);
        round * self.times.len() as u64 + index as u64
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Process {
    trace: DeliveryTrace,
    /// The first opportunity of which nothing is used.
    next: u64,
}

impl Process {
    pub(super) fn new(trace: &DeliveryTrace) -> Self {
        Process {
            trace: trace.clone(),
            next: 0,
        }
    }

    /// When `work` billionths of a bit from `at` on are sent, and what the last opportunity used has room for beyond.
    pub(super) fn send(&mut self, at: Time, work: u128) -> (Time, u64) {
        let first = self.next.max(self.trace.first_from(at));
        let count = work.div_ceil(u128::from(OPPORTUNITY));
        self.next = first + count as u64;
        let ahead = count * u128::from(OPPORTUNITY) - work;
        (self.trace.time(self.next - 1), ahead as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Time {
        Time::from_nanos(n * NANOS_PER_MS)
    }

    fn bytes(n: u64) -> u128 {
        u128::from(n * 8_000_000_000)
    }

    fn process(text: &str) -> Process {
        Process::new(&DeliveryTrace::parse(text).expect("a recording"))
    }

    #[test]
    fn a_packet_leaves_with_the_first_opportunity_and_the_file_begins_again() {
        let mut line = process("0\n3\n3\n10\n");
        let times: Vec<Time> = (0..9).map(|_| line.send(ms(0), bytes(1500)).0).collect();
        assert_eq!(times, [0, 3, 3, 10, 10, 13, 13, 20, 20].map(ms));
        assert_eq!(line.send(ms(1004), bytes(1500)).0, ms(1010), "long after");
        assert_eq!(process("4\n10\n").send(ms(10), bytes(1)).0, ms(10));
    }

    #[test]
    fn large_packets_take_several_opportunities_and_leave_the_rest_of_the_last() {
        let mut line = process("1\n2\n3\n4\n");
        assert_eq!(line.send(ms(0), bytes(3200)), (ms(3), bytes(1300) as u64));
        assert_eq!(line.send(ms(3), bytes(1500)).0, ms(4));
    }

    #[test]
    fn the_mean_is_that_of_the_whole_file() {
        let mean = |text| DeliveryTrace::parse(text).expect("a recording").mean().as_bps();
        assert_eq!(mean("0\n3\n3\n10\n"), 4_800_000);
        assert_eq!(mean("4294967295"), 1, "one packet in 49 days is still a rate");
    }

    #[test]
    fn what_is_no_recording_is_refused_with_its_line() {
        let refused = |text: &str| DeliveryTrace::parse(text).expect_err(text).to_string();
        for (text, part) in [
            ("", "no time"),
            ("0\n0\n", "no time"),
            ("1\n\n2\n", "line 2: \"\""),
            ("1\n5\n4\n", "line 3: 4 ms comes after 5 ms"),
            ("1\n2.5\n", "line 2: \"2.5\""),
            ("-1\n", "\"-1\""),
            ("4294967296\n", "\"4294967296\""),
        ] {
            assert!(refused(text).contains(part), "{text:?}: {}", refused(text));
        }
        assert!(
            refused(&"x".repeat(1000)).len() < 200,
            "a long line is not repeated whole"
        );
        assert!(DeliveryTrace::parse("1\r\n2\r\n").is_ok());
    }
}
