//! Why a claim does not hold, and where: a failure anywhere else, or a larger one, is none that somebody has understood.

use super::judge::Verdict;
use super::rows::Filter;
use crate::scenario::Fault;
use toml::Spanned;

/// A reason, and the failures it stands for.
#[derive(Clone, Debug)]
pub(super) struct Explanation {
    text: String,
    /// At these points.
    at: Filter,
    /// With this much measured.
    between: [f64; 2],
}

impl Explanation {
    /// # Errors
    /// When no reason is given, or nothing lies between the bounds.
    pub fn new(text: Option<&str>, at: Filter, between: &Spanned<[f64; 2]>) -> Result<Self, Fault> {
        let broken = |message: &str| Err(Fault::at(between, message));
        let Some(text) = text else {
            return broken(
                "these points have no reason; say in `explained` why the claim does not hold there",
            );
        };
        let [low, high] = *between.get_ref();
        if low.is_nan() || high.is_nan() || low > high {
            return broken("nothing lies between these bounds; write the lower one first");
        }
        Ok(Explanation {
            text: text.into(),
            at,
            between: [low, high],
        })
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// Does it stand for this verdict?
    pub fn covers(&self, verdict: &Verdict) -> bool {
        let [low, high] = self.between;
        let is_close = verdict
            .measured
            .is_some_and(|measured| (low..=high).contains(&measured));
        verdict.held == Some(false) && is_close && self.at.admits(&verdict.point)
    }
}
