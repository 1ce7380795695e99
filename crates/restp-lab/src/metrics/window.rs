//! The congestion window of each path of a sender, in the mean over time.

use restp_base::flow::FlowStats;
use restp_base::machine::PathAddress;
use restp_base::time::{Duration, Time};

/// So often it looks: a window changes with every acknowledgement, and its mean over minutes needs no closer look.
const EVERY: Duration = Duration::from_millis(100);

/// Who looks at the windows of one sender.
#[derive(Clone, Debug, Default)]
pub struct WindowMeter {
    next: Time,
    last: Time,
    paths: Vec<Known>,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    path: PathAddress,
    bytes: u64,
    sum: WindowSum,
}

/// A window over the time that it has had one: bytes times nanoseconds, and nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowSum {
    byte_nanos: u128,
    nanos: u128,
}

impl WindowSum {
    /// The mean since `earlier`, in bytes.
    pub fn mean_since(self, earlier: WindowSum) -> Option<f64> {
        let nanos = self.nanos - earlier.nanos;
        (nanos > 0).then(|| (self.byte_nanos - earlier.byte_nanos) as f64 / nanos as f64)
    }
}

impl WindowMeter {
    /// Is it time to look again?
    pub fn is_due(&self, now: Time) -> bool {
        now >= self.next
    }

    /// The sender has these windows now; `whole` is the address of one that does not tell its paths apart.
    pub fn look(&mut self, now: Time, stats: &FlowStats, whole: PathAddress) {
        self.go_on(now);
        self.next = now + EVERY;
        let own = stats
            .paths
            .iter()
            .filter_map(|path| Some((path.path, path.congestion_window_bytes?)));
        let mut windows: Vec<(PathAddress, u64)> = own.collect();
        if windows.is_empty() && stats.paths.len() < 2 {
            windows.push((whole, stats.congestion_window_bytes));
        }
        for (path, bytes) in windows.into_iter().filter(|(_, bytes)| is_window(*bytes)) {
            match self.paths.iter_mut().find(|known| known.path == path) {
                Some(known) => known.bytes = bytes,
                None => self.paths.push(Known {
                    path,
                    bytes,
                    sum: WindowSum::default(),
                }),
            }
        }
    }

    /// What each path has had up to `now`.
    pub fn sums(&self, now: Time) -> Vec<(PathAddress, WindowSum)> {
        let mut until = self.clone();
        until.go_on(now);
        until.paths.iter().map(|known| (known.path, known.sum)).collect()
    }

    /// Nobody has looked since the last time; the windows were as they were then.
    fn go_on(&mut self, now: Time) {
        let nanos = u128::from(now.since(self.last).as_nanos());
        for known in &mut self.paths {
            known.sum.byte_nanos += u128::from(known.bytes) * nanos;
            known.sum.nanos += nanos;
        }
        self.last = now;
    }
}

/// Where nothing limits a sender there is no window, and where there is none yet, neither.
fn is_window(bytes: u64) -> bool {
    (1..u64::MAX / 2).contains(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::address_of;
    use restp_base::flow::PathStats;

    fn path(n: usize) -> PathAddress {
        PathAddress {
            local: address_of(n),
            remote: address_of(9),
        }
    }

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    fn stats(windows: &[u64]) -> FlowStats {
        let of = |(n, bytes): (usize, &u64)| PathStats {
            congestion_window_bytes: Some(*bytes),
            ..PathStats::new(path(n))
        };
        FlowStats {
            paths: windows.iter().enumerate().map(of).collect(),
            ..FlowStats::default()
        }
    }

    #[test]
    fn the_mean_is_over_the_time_that_a_window_was_there() {
        let mut meter = WindowMeter::default();
        assert!(meter.is_due(at(0)));
        meter.look(at(1000), &stats(&[2000]), path(0));
        assert!(!meter.is_due(at(1099)) && meter.is_due(at(1100)));
        meter.look(at(2000), &stats(&[4000, 1000]), path(0));
        let before = meter.sums(at(2000));
        let after = meter.sums(at(3000));
        let mean = |n: usize| after[n].1.mean_since(WindowSum::default());
        assert_eq!([mean(0), mean(1)], [Some(3000.0), Some(1000.0)]);
        assert_eq!(after[0].1.mean_since(before[0].1), Some(4000.0));
        assert_eq!(
            before[1].1.mean_since(WindowSum::default()),
            None,
            "not a moment yet"
        );
    }

    #[test]
    fn a_sender_that_knows_one_path_has_one_window_and_one_without_limit_none() {
        let mut meter = WindowMeter::default();
        let of = |bytes| FlowStats {
            congestion_window_bytes: bytes,
            ..FlowStats::default()
        };
        meter.look(at(0), &of(5000), path(3));
        let sums = meter.sums(at(10));
        assert_eq!(sums.len(), 1);
        assert_eq!(
            (sums[0].0, sums[0].1.mean_since(WindowSum::default())),
            (path(3), Some(5000.0))
        );
        for none in [0, u64::MAX] {
            let mut meter = WindowMeter::default();
            meter.look(at(0), &of(none), path(3));
            assert_eq!(meter.sums(at(10)), []);
        }
    }
}
