//! What an application read, and when.

use restp_base::time::{Duration, Time};

/// When to look closer than at totals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moments {
    /// Width of the bins whose bytes are counted apart; none when absent.
    pub bin: Option<Duration>,
    /// Times after which the first byte is noted, rising.
    pub marks: Vec<Time>,
}

/// Totals of what one application read, and the moments asked for.
#[derive(Clone, Debug, Default)]
pub struct Account {
    moments: Moments,
    bytes: u64,
    first: Option<Time>,
    /// Bytes per bin, from time zero.
    bins: Vec<u64>,
    /// First byte at or after each mark, as far as reached.
    after_mark: Vec<Time>,
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
        self.first.get_or_insert(now);
        if let Some(width) = self.moments.bin {
            let bin = (now.as_nanos() / width.as_nanos()) as usize;
            if self.bins.len() <= bin {
                self.bins.resize(bin + 1, 0);
            }
            self.bins[bin] += bytes as u64;
        }
        while self
            .moments
            .marks
            .get(self.after_mark.len())
            .is_some_and(|mark| *mark <= now)
        {
            self.after_mark.push(now);
        }
    }

    /// Bytes read.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// When the first byte was read.
    pub fn first(&self) -> Option<Time> {
        self.first
    }

    /// When the first byte at or after mark number `index` was read.
    pub fn after_mark(&self, index: usize) -> Option<Time> {
        self.after_mark.get(index).copied()
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
            marks: vec![],
        });
        for (ms, bytes) in [(0, 25), (99, 25), (100, 10), (320, 5)] {
            account.enter(at(ms), bytes);
        }
        assert_eq!(account.bins_bps(at(350)), [4000.0, 800.0, 0.0, 800.0]);
        assert_eq!(account.bins_bps(at(500)), [4000.0, 800.0, 0.0, 400.0, 0.0]);
        assert_eq!((account.bytes(), account.first()), (65, Some(at(0))));
    }

    #[test]
    fn the_first_byte_after_each_mark_is_noted() {
        let mut account = Account::new(Moments {
            bin: None,
            marks: vec![at(30), at(300), at(650), at(900)],
        });
        for ms in [10, 31, 40, 700] {
            account.enter(at(ms), 1);
        }
        let seen: Vec<Option<Time>> = (0..4).map(|i| account.after_mark(i)).collect();
        assert_eq!(seen, [Some(at(31)), Some(at(700)), Some(at(700)), None]);
        assert!(account.bins_bps(at(700)).is_empty());
    }
}
