//! Duplication: a second copy arrives right behind the first. One draw per packet.

use restp_base::random::Stream;

/// Lets some packets arrive twice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Duplicate {
    /// Probability per packet.
    pub probability: f64,
}

#[derive(Clone, Debug)]
pub(super) struct Process {
    model: Duplicate,
    stream: Stream,
}

impl Process {
    pub(super) fn new(model: Duplicate, stream: Stream) -> Self {
        Process { model, stream }
    }

    pub(super) fn duplicates(&mut self) -> bool {
        self.stream.chance(self.model.probability)
    }
}

#[cfg(test)]
mod tests {
    use super::super::statistics::assert_three_sigma;
    use super::*;

    #[test]
    fn the_share_given_arrives_twice() {
        let mut process = Process::new(Duplicate { probability: 0.02 }, Stream::named(1, "duplicate"));
        let twice = (0..100_000).filter(|_| process.duplicates()).count() as u64;
        assert_three_sigma(twice, 100_000, 0.02);
    }
}
