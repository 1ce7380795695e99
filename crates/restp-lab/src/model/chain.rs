use super::parameters::{Invalid, Parameters, Scheme};
use super::round::{Chance, Outcome, Rules, State};
use super::{Measures, Sums};
use std::collections::BTreeMap;
use thiserror::Error;

/// The distribution stands still when a step moves no more than this share of it.
const STILL: f64 = 1e-9;
const STEPS: u32 = 50_000;

/// Why there is no solution.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum Unsettled {
    /// A parameter is out of its range.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The distribution moves on.
    #[error("the distribution of the model still moves after {STEPS} steps")]
    Moves,
}

/// The measures of the stationary distribution, π = πQ, over all states that can be reached.
///
/// # Errors
/// When a parameter is out of its range, or the distribution does not settle.
pub fn exact(scheme: Scheme, parameters: Parameters) -> Result<Measures, Unsettled> {
    parameters.check()?;
    let chain = Chain::new(&Rules::new(scheme, parameters));
    let shares = chain.stationary().ok_or(Unsettled::Moves)?;
    let mut sums = Sums::default();
    for (share, row) in shares.iter().zip(&chain.rows) {
        for (chance, round) in &row.rounds {
            sums.add(share * chance, &row.from, round);
        }
    }
    Ok(sums.measures())
}

/// A state, every round that can begin there, and where they lead.
struct Row {
    from: State,
    rounds: Vec<(f64, Outcome)>,
    next: BTreeMap<usize, f64>,
}

/// States that can be reached, from the first on.
struct Chain {
    rows: Vec<Row>,
}

impl Chain {
    fn new(rules: &Rules) -> Self {
        let mut states = vec![rules.start()];
        let mut index = BTreeMap::from([(rules.start(), 0)]);
        let mut rows = Vec::new();
        while let Some(&from) = states.get(rows.len()) {
            let rounds = every(|chance| rules.round(from, chance));
            let mut next = BTreeMap::new();
            for (chance, round) in &rounds {
                let place = *index.entry(round.next).or_insert_with(|| {
                    states.push(round.next);
                    states.len() - 1
                });
                *next.entry(place).or_insert(0.0) += chance;
            }
            rows.push(Row { from, rounds, next });
        }
        Chain { rows }
    }

    /// By power iteration from the first state; every chain here can stay where it is, so it has no period.
    fn stationary(&self) -> Option<Vec<f64>> {
        let sparse: Vec<Vec<(usize, f64)>> = self
            .rows
            .iter()
            .map(|row| row.next.iter().map(|(&to, &chance)| (to, chance)).collect())
            .collect();
        let mut shares = vec![0.0; sparse.len()];
        shares[0] = 1.0;
        for _ in 0..STEPS {
            let mut after = vec![0.0; shares.len()];
            for (share, row) in shares.iter().zip(&sparse) {
                for &(to, chance) in row {
                    after[to] += share * chance;
                }
            }
            let moved: f64 = shares.iter().zip(&after).map(|(a, b)| (a - b).abs()).sum();
            shares = after;
            if moved < STILL {
                return Some(shares);
            }
        }
        None
    }
}

/// Follows a script of picks, and takes the first possible one where the script ends.
#[derive(Default)]
struct Script {
    picks: Vec<(usize, Vec<f64>)>,
    at: usize,
}

impl Chance for Script {
    fn pick(&mut self, weights: &[f64]) -> usize {
        if self.at == self.picks.len() {
            let first = possible(weights, 0).unwrap_or(0);
            self.picks.push((first, weights.to_vec()));
        }
        self.at += 1;
        self.picks[self.at - 1].0
    }
}

impl Script {
    fn probability(&self) -> f64 {
        self.picks.iter().map(|(pick, weights)| weights[*pick]).product()
    }

    /// The next script: the last pick that has another possibility takes it. False when there is none.
    fn advance(&mut self) -> bool {
        self.at = 0;
        while let Some((pick, weights)) = self.picks.pop() {
            if let Some(other) = possible(&weights, pick + 1) {
                self.picks.push((other, weights));
                return true;
            }
        }
        false
    }
}

fn possible(weights: &[f64], from: usize) -> Option<usize> {
    (from..weights.len()).find(|&index| weights[index] > 0.0)
}

/// Every way in which `play` can go, with its probability.
fn every<T>(mut play: impl FnMut(&mut Script) -> T) -> Vec<(f64, T)> {
    let mut script = Script::default();
    let mut ways = Vec::new();
    loop {
        let way = play(&mut script);
        ways.push((script.probability(), way));
        if !script.advance() {
            return ways;
        }
    }
}
