//! How often each of many objects is asked for: by the law of Zipf, the i-th most popular one in proportion to i to the power of -s.

use super::distribution::{exp, ln};
use restp_base::random::Stream;

/// The shares of objects, the most popular one first.
#[derive(Clone, Debug, PartialEq)]
pub struct Popularity {
    /// The share of each with all before it.
    until: Vec<f64>,
}

impl Popularity {
    /// Of so many objects, one at least, with this exponent: 0 for objects that are all alike.
    pub fn zipf(objects: u64, exponent: f64) -> Self {
        let weight = |rank: u64| exp(-exponent * ln(rank as f64));
        let mut sum = 0.0;
        let mut until: Vec<f64> = (1..=objects.max(1))
            .map(|rank| {
                sum += weight(rank);
                sum
            })
            .collect();
        until.iter_mut().for_each(|share| *share /= sum);
        Popularity { until }
    }

    /// The share of each object.
    pub fn shares(&self) -> impl Iterator<Item = f64> {
        let before = std::iter::once(0.0).chain(self.until.iter().copied());
        self.until
            .iter()
            .zip(before)
            .map(|(until, before)| until - before)
    }

    /// An object, by its rank from 0. One number is drawn.
    pub fn draw(&self, stream: &mut Stream) -> u64 {
        let drawn = stream.unit();
        let rank = self.until.partition_point(|until| *until <= drawn);
        rank.min(self.until.len() - 1) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_fall_with_the_rank_and_sum_to_one() {
        let shares: Vec<f64> = Popularity::zipf(4, 1.0).shares().collect();
        // 1 + 1/2 + 1/3 + 1/4 = 25/12.
        for (share, expected) in shares.iter().zip([0.48, 0.24, 0.16, 0.12]) {
            assert!((share - expected).abs() < 1e-12, "{shares:?}");
        }
        let alike: Vec<f64> = Popularity::zipf(5, 0.0).shares().collect();
        assert!(alike.iter().all(|share| (share - 0.2).abs() < 1e-12), "{alike:?}");
    }

    #[test]
    fn objects_are_drawn_as_often_as_they_are_popular() {
        let popularity = Popularity::zipf(100, 0.8);
        let mut stream = Stream::named(1, "zipf");
        let mut counts = [0u64; 100];
        (0..200_000).for_each(|_| counts[popularity.draw(&mut stream) as usize] += 1);
        for (count, share) in counts.iter().zip(popularity.shares()) {
            let expected = share * 200_000.0;
            // Five standard deviations of a count.
            assert!(
                (*count as f64 - expected).abs() < 5.0 * expected.sqrt(),
                "{count} of {expected}"
            );
        }
        assert_eq!(Popularity::zipf(1, 0.8).draw(&mut stream), 0);
    }
}
