//! What an application read, and when.

use restp_base::time::{Duration, Time};
use std::ops::Range;

/// When to look closer than at totals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moments {
    /// Width of the bins whose bytes are counted apart; none when absent.
    pub bin: Option<Duration>,
    /// Times in which silence is measured, and after which the first byte is noted; in order and apart.
    pub outages: Vec<Range<Time>>,
    /// From then on all flows of the run are open: what is read later is counted apart.
    pub shared_from: Time,
}

/// Totals of what one application read, and the moments asked for.
#[derive(Clone, Debug, Default)]
pub struct Account {
    moments: Moments,
    bytes: u64,
    /// Those read since all flows were open.
    shared: u64,
    first: Option<Time>,
    last: Option<Time>,
    /// Bytes per bin, from time zero.
    bins: Vec<u64>,
    /// First byte at or after the end of each outage, as far as reached.
    resumed: Vec<Time>,
    /// Longest time without a byte that touches each outage, as far as reached.
    pauses: Vec<Duration>,
}

impl Account {
    /// Nothing read yet.
    pub fn new(moments: Moments) -> Self {
        Account {
            moments,
            ..Account::default()
        }
    }

    /// Enters what was read at `now`.
    pub fn enter(&mut self, now: Time, bytes: usize) {
        self.bytes += bytes as u64;
        if now >= self.moments.shared_from {
            self.shared += bytes as u64;
        }
        self.first.get_or_insert(now);
        if let Some(width) = self.moments.bin {
            let bin = (now.as_nanos() / width.as_nanos()) as usize;
            if self.bins.len() <= bin {
                self.bins.resize(bin + 1, 0);
            }
            self.bins[bin] += bytes as u64;
        }
        self.measure_silence(now);
        let ended = |outage: &Range<Time>| outage.end <= now;
        while self.moments.outages.get(self.resumed.len()).is_some_and(ended) {
            self.resumed.push(now);
        }
        self.last = Some(now);
    }

    /// The time since the last byte touches every outage that is not over when it begins.
    fn measure_silence(&mut self, now: Time) {
        let since = self.last.unwrap_or(now);
        let open = self.resumed.len();
        for (index, outage) in self.moments.outages.iter().enumerate().skip(open) {
            if outage.start > now {
                break;
            }
            if self.pauses.len() <= index {
                self.pauses.resize(index + 1, Duration::ZERO);
            }
            self.pauses[index] = self.pauses[index].max(now.since(since));
        }
    }

    /// Bytes read.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Those read since all flows were open.
    pub fn shared(&self) -> u64 {
        self.shared
    }

    /// When the last flow of the run is opened.
    pub fn shared_from(&self) -> Time {
        self.moments.shared_from
    }

    /// When the first byte was read.
    pub fn first(&self) -> Option<Time> {
        self.first
    }

    /// When the first byte at or after the end of outage number `index` was read.
    pub fn resumed(&self, index: usize) -> Option<Time> {
        self.resumed.get(index).copied()
    }

    /// The longest time without a byte, until `end`, that touches outage number `index`.
    pub fn pause(&self, index: usize, end: Time) -> Option<Duration> {
        let until_now = self.pauses.get(index).copied().unwrap_or_default();
        let outage = self.moments.outages.get(index)?;
        let still = self.resumed.len() <= index && outage.start < end;
        let last = if still {
            end.since(self.last?)
        } else {
            Duration::ZERO
        };
        Some(until_now.max(last))
    }

    /// Bits per second in each bin up to `end`; empty when none were asked for.
    pub fn bins_bps(&self, end: Time) -> Vec<f64> {
        let Some(width) = self.moments.bin else {
            return Vec::new();
        };
        let rate = |(i, from): (usize, u64)| {
            let span = (end.as_nanos() - from).min(width.as_nanos());
            self.bins.get(i).copied().unwrap_or(0) as f64 * 8e9 / span as f64
        };
        (0..end.as_nanos())
            .step_by(width.as_nanos() as usize)
            .enumerate()
            .map(rate)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn bins_cover_the_run_and_the_last_one_may_be_shorter() {
        let mut account = Account::new(Moments {
            bin: Some(Duration::from_millis(100)),
            ..Moments::default()
        });
        for (ms, bytes) in [(0, 25), (99, 25), (100, 10), (320, 5)] {
            account.enter(at(ms), bytes);
        }
        assert_eq!(account.bins_bps(at(350)), [4000.0, 800.0, 0.0, 800.0]);
        assert_eq!(account.bins_bps(at(500)), [4000.0, 800.0, 0.0, 400.0, 0.0]);
        assert_eq!((account.bytes(), account.first()), (65, Some(at(0))));
    }

    #[test]
    fn the_silence_in_each_outage_is_measured_and_the_first_byte_after_it_noted() {
        let mut account = Account::new(Moments {
            bin: None,
            outages: vec![
                at(20)..at(30),
                at(100)..at(300),
                at(500)..at(650),
                at(800)..at(900),
            ],
            shared_from: at(40),
        });
        for ms in [10, 31, 40, 700] {
            account.enter(at(ms), 1);
        }
        let seen: Vec<Option<Time>> = (0..4).map(|i| account.resumed(i)).collect();
        assert_eq!(seen, [Some(at(31)), Some(at(700)), Some(at(700)), None]);
        let pauses = |end| {
            Vec::from_iter(
                (0..4)
                    .filter_map(|i| account.pause(i, end))
                    .map(|p| p.as_millis()),
            )
        };
        assert_eq!(pauses(at(700)), [21, 660, 660, 0]);
        assert_eq!(pauses(at(1000)), [21, 660, 660, 300]);
        assert!(account.bins_bps(at(700)).is_empty());
        assert_eq!(account.shared(), 2, "at 40 and at 700 ms");
    }
}
