//! How packets of one path are lost: a Markov chain of two states (Gilbert, Bell System Technical Journal 1960).

/// Good packets arrive, bad ones are lost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chain {
    pub(super) loss: f64,
    /// What is left after one step of what the last packet says of the next.
    memory: f64,
}

impl Chain {
    /// So large a share is lost, and so many in a row, in the mean.
    pub(super) fn new(loss: f64, burst: f64) -> Self {
        let loss = loss.min(0.99);
        let memory = 1.0 - 1.0 / (burst * (1.0 - loss));
        Chain {
            loss,
            memory: memory.clamp(0.0, 0.99),
        }
    }

    /// The same from one packet to the next, where an encoded packet leaves behind each `every` segments: half a step farther.
    pub(super) fn between(&self, every: u16) -> Chain {
        let closer = (self.memory.sqrt() - self.memory) / f64::from(every);
        Chain {
            memory: self.memory + closer,
            ..*self
        }
    }

    /// The probability that so many of `packets` beside one that is lost are lost, for each number below `lost`. The chain is the
    /// same forwards and backwards.
    pub(super) fn losses_beside(&self, packets: u16, lost: u16) -> Vec<f64> {
        self.losses(packets, lost, 1.0)
    }

    /// The same of `packets` of which nothing else is known.
    pub(super) fn losses_of(&self, packets: u16, lost: u16) -> Vec<f64> {
        self.losses(packets, lost, self.loss)
    }

    /// The packet before the first is lost with the probability `lost_before`.
    fn losses(&self, packets: u16, lost: u16, lost_before: f64) -> Vec<f64> {
        let to_bad = self.loss * (1.0 - self.memory);
        let stays_bad = to_bad + self.memory;
        // By the number of losses so far: the last packet arrived, or did not.
        let (mut good, mut bad) = (vec![0.0; usize::from(lost)], vec![0.0; usize::from(lost)]);
        if let (Some(good), Some(bad)) = (good.first_mut(), bad.first_mut()) {
            (*good, *bad) = (1.0 - lost_before, lost_before);
        }
        for _ in 0..packets {
            let mut carried = 0.0; // from the place before, with one loss more
            for (good, bad) in good.iter_mut().zip(&mut bad) {
                let loses = *good * to_bad + *bad * stays_bad;
                *good = *good * (1.0 - to_bad) + *bad * (1.0 - stays_bad);
                *bad = std::mem::replace(&mut carried, loses);
            }
        }
        good.iter().zip(&bad).map(|(good, bad)| good + bad).collect()
    }

    /// After one that is lost: the probability that all those arrive that are so many steps from one another, the first from the
    /// one lost. An encoded packet is half a step behind the segment that it leaves with.
    pub(super) fn all_arrive(&self, steps: impl Iterator<Item = u16>) -> f64 {
        let mut probability = 1.0;
        let mut lost_before = 1.0;
        for step in steps {
            let memory = match step {
                0 => self.memory.sqrt(),
                _ => (0..step).fold(1.0, |memory, _| memory * self.memory),
            };
            let lost = self.loss * (1.0 - memory) + lost_before * memory;
            probability *= 1.0 - lost;
            lost_before = 0.0;
        }
        probability
    }
}

/// The probability that at least `lost` packets are, of several groups that lose independently: for each group the probability of so
/// many losses, for each number below `lost`.
pub(super) fn more_lost(groups: impl IntoIterator<Item = Vec<f64>>, lost: u16) -> f64 {
    let mut all = vec![0.0; usize::from(lost)];
    if let Some(none) = all.first_mut() {
        *none = 1.0;
    }
    for group in groups {
        let sum = |count: usize| (0..=count).map(|here| group[here] * all[count - here]).sum();
        all = (0..all.len()).map(sum).collect();
    }
    1.0 - all.iter().sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Beside one that is lost.
    fn beside(chain: &Chain, before: u16, after: u16, lost: u16) -> f64 {
        more_lost(
            [before, after].map(|packets| chain.losses_beside(packets, lost)),
            lost,
        )
    }

    /// Sums of the binomial distribution, where there is no memory.
    #[test]
    fn without_bursts_losses_are_independent() {
        let chain = Chain::new(0.05, 1.0 / 0.95);
        assert!((beside(&chain, 2, 3, 1) - (1.0 - 0.95f64.powi(5))).abs() < 1e-12);
        assert!((beside(&chain, 4, 1, 2) - 0.022_592_5).abs() < 1e-6);
        assert!((chain.all_arrive([3, 0].into_iter()) - 0.95 * 0.95).abs() < 1e-9);
        assert_eq!(beside(&chain, 3, 0, 0), 1.0);
    }

    #[test]
    fn in_a_burst_the_next_is_lost_as_the_burst_is_long() {
        let chain = Chain::new(0.05, 3.0);
        assert!((beside(&chain, 0, 1, 1) - 2.0 / 3.0).abs() < 1e-12);
        assert!((chain.all_arrive([1].into_iter()) - 1.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn of_another_path_what_is_lost_here_says_nothing() {
        let chain = Chain::new(0.05, 3.0);
        let one = |packets| more_lost([chain.losses_of(packets, 1)], 1);
        assert!((one(1) - 0.05).abs() < 1e-12);
        assert!((one(2) - (1.0 - 0.95 * (1.0 - 0.05 / 3.0 / 0.95))).abs() < 1e-12);
        let both = more_lost([chain.losses_beside(1, 2), chain.losses_of(1, 2)], 2);
        assert!((both - 2.0 / 3.0 * 0.05).abs() < 1e-12);
        assert_eq!(more_lost([chain.losses_of(3, 0)], 0), 1.0);
    }
}
