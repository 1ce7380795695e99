//! Why a claim does not hold, and where: a failure anywhere else, or a larger one, is none that somebody has understood.

use super::judge::Verdict;
use super::rows::Filter;
use crate::scenario::Fault;
use toml::Spanned;

/// A reason, and the failures it stands for.
#[derive(Clone, Debug)]
pub(super) struct Explanation {
    text: String,
    covered: Vec<Covered>,
}

/// Failures at some points, with so much measured.
#[derive(Clone, Debug)]
pub(super) struct Covered {
    at: Filter,
    between: [f64; 2],
}

impl Covered {
    /// # Errors
    /// When no reason is given, or nothing lies between the bounds.
    pub fn new(at: Filter, between: &Spanned<[f64; 2]>, has_reason: bool) -> Result<Self, Fault> {
        let [low, high] = *between.get_ref();
        let message = if !has_reason {
            "these points have no reason; say in `explained` why the claim does not hold there"
        } else if low.is_nan() || high.is_nan() || low > high {
            "nothing lies between these bounds; write the lower one first"
        } else {
            let between = [low, high];
            return Ok(Covered { at, between });
        };
        Err(Fault::at(between, message))
    }

    fn holds_for(&self, verdict: &Verdict) -> bool {
        let [low, high] = self.between;
        let is_close = |measured: f64| (low..=high).contains(&measured);
        verdict.measured.is_some_and(is_close) && self.at.admits(&verdict.point)
    }
}

impl Explanation {
    pub fn new(text: String, covered: Vec<Covered>) -> Self {
        Explanation { text, covered }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// Does it stand for this verdict?
    pub fn covers(&self, verdict: &Verdict) -> bool {
        verdict.held == Some(false) && self.covered.iter().any(|covered| covered.holds_for(verdict))
    }
}
