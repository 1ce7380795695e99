//! Jitter: every packet takes longer by a time of its own. One draw per packet.

use restp_base::random::Stream;
use restp_base::time::{Duration, Time};

/// A delay that differs from packet to packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jitter {
    /// The most by which a packet arrives later; every time up to it is as likely as any other.
    pub most: Duration,
    /// Whoever is faster overtakes. Without, nobody arrives before those ahead.
    pub reorder: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Process {
    most: Duration,
    stream: Stream,
}

impl Process {
    pub(super) fn new(model: Jitter, stream: Stream) -> Self {
        Process {
            most: model.most,
            stream,
        }
    }

    pub(super) fn later_by(&mut self) -> Duration {
        Duration::from_nanos(self.stream.below(self.most.as_nanos().saturating_add(1)))
    }
}

/// Who arrives behind whom, on a line with jitter.
#[derive(Clone, Debug)]
pub(crate) struct Turns {
    may_overtake: bool,
    /// Nobody so far arrives later.
    latest: Time,
}

impl Turns {
    pub(crate) fn new(model: Jitter) -> Self {
        Turns {
            may_overtake: model.reorder,
            latest: Time::ZERO,
        }
    }

    /// When a packet that could arrive at `at` does, and whether that is behind all others.
    pub(crate) fn take(&mut self, at: Time) -> (Time, bool) {
        if self.may_overtake && at < self.latest {
            return (at, false);
        }
        self.latest = self.latest.max(at);
        (self.latest, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_up_to_the_most_is_as_likely_as_any_other() {
        let model = Jitter {
            most: Duration::from_millis(10),
            reorder: false,
        };
        let mut process = Process::new(model, Stream::named(1, "jitter"));
        let drawn: Vec<u64> = (0..100_000).map(|_| process.later_by().as_nanos()).collect();
        assert!(drawn.iter().all(|nanos| *nanos <= 10_000_000));
        for tenth in 0..10 {
            let within = tenth * 1_000_000..(tenth + 1) * 1_000_000;
            let hits = drawn.iter().filter(|nanos| within.contains(*nanos)).count();
            super::super::statistics::assert_three_sigma(hits as u64, 100_000, 0.1);
        }
    }

    #[test]
    fn a_faster_packet_waits_for_those_ahead_or_overtakes_them() {
        let at = Time::from_nanos;
        let turns = |reorder| {
            let most = Duration::from_millis(1);
            let mut turns = Turns::new(Jitter { most, reorder });
            [10, 30, 20, 30, 40].map(|n| turns.take(at(n)))
        };
        let behind = [10, 30, 30, 30, 40].map(|n| (at(n), true));
        assert_eq!(turns(false), behind);
        let mut overtaken = behind;
        overtaken[2] = (at(20), false);
        assert_eq!(turns(true), overtaken);
    }
}
