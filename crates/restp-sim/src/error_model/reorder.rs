//! Reordering: some packets take longer, and those behind them overtake. One draw per packet.

use restp_base::random::Stream;
use restp_base::time::Duration;

/// Delays some packets beyond their turn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reorder {
    /// Probability per packet.
    pub probability: f64,
    /// How much later such a packet arrives.
    pub extra: Duration,
}

#[derive(Clone, Debug)]
pub(super) struct Process {
    model: Reorder,
    stream: Stream,
}

impl Process {
    pub(super) fn new(model: Reorder, stream: Stream) -> Self {
        Process { model, stream }
    }

    pub(super) fn late_by(&mut self) -> Option<Duration> {
        self.stream
            .chance(self.model.probability)
            .then_some(self.model.extra)
    }
}

#[cfg(test)]
mod tests {
    use super::super::statistics::assert_three_sigma;
    use super::*;

    #[test]
    fn the_share_given_is_late_by_the_time_given() {
        let model = Reorder {
            probability: 0.05,
            extra: Duration::from_millis(3),
        };
        let mut process = Process::new(model, Stream::named(1, "reorder"));
        let late: Vec<Duration> = (0..100_000).filter_map(|_| process.late_by()).collect();
        assert_three_sigma(late.len() as u64, 100_000, 0.05);
        assert!(late.iter().all(|&extra| extra == Duration::from_millis(3)));
    }
}
