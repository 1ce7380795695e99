use super::parameters::{Invalid, Parameters, Scheme};
use super::round::{Chance, Rules};
use super::{Measures, Sums};
use restp_base::random::Stream;

/// Algorithm 3: the first index whose sum of weights reaches a uniform number.
impl Chance for Stream {
    fn pick(&mut self, weights: &[f64]) -> usize {
        let drawn = self.unit();
        let mut sum = 0.0;
        let reached = |weight: &f64| {
            sum += weight;
            drawn < sum
        };
        weights.iter().position(reached).unwrap_or(weights.len() - 1)
    }
}

/// Plays rounds until `seconds` of the model's time are over, from the stream `model/smt` of `seed`.
///
/// # Errors
/// When a parameter is out of its range.
pub fn monte_carlo(
    scheme: Scheme,
    parameters: Parameters,
    seed: u64,
    seconds: f64,
) -> Result<Measures, Invalid> {
    parameters.check()?;
    let rules = Rules::new(scheme, parameters);
    let mut stream = Stream::named(seed, "model/smt");
    let (mut state, mut sums) = (rules.start(), Sums::default());
    loop {
        let round = rules.round(state, &mut stream);
        sums.add(1.0, &state, &round);
        state = round.next;
        if sums.seconds.partial_cmp(&seconds) != Some(std::cmp::Ordering::Less) {
            return Ok(sums.measures());
        }
    }
}
