//! Why a claim does not hold, and where: a failure anywhere else, or by more, is none that somebody has understood.

use super::judge::Verdict;
use super::raw::RawExplains;
use super::rows::Filter;
use crate::scenario::Fault;
use std::collections::BTreeMap;
use toml::Spanned;

/// A reason, and the failures it stands for.
#[derive(Clone, Debug)]
pub(super) struct Explanation {
    text: String,
    covered: Vec<Covered>,
}

/// Failures at some points, with so much measured where so much was expected. What a claim compares with may be measured, too.
#[derive(Clone, Debug)]
struct Covered {
    at: Filter,
    measured: Bounds,
    expected: Option<Bounds>,
}

impl Covered {
    fn holds_for(&self, verdict: &Verdict) -> bool {
        let expected = self.expected.as_ref();
        self.measured.hold(verdict.measured)
            && expected.is_none_or(|bounds| bounds.hold(verdict.expected))
            && self.at.admits(&verdict.point)
    }
}

/// From one number to another.
#[derive(Clone, Copy, Debug)]
struct Bounds([f64; 2]);

impl Bounds {
    /// # Errors
    /// When these are not two numbers, the lower one first.
    fn new(written: &Spanned<Vec<f64>>) -> Result<Self, Fault> {
        match written.get_ref()[..] {
            [low, high] if low.is_finite() && high.is_finite() && low <= high => Ok(Bounds([low, high])),
            _ => Err(Fault::at(
                written,
                "these are no bounds; write two numbers, the lower one first",
            )),
        }
    }

    fn hold(self, value: Option<f64>) -> bool {
        let Bounds([low, high]) = self;
        value.is_some_and(|value| (low..=high).contains(&value))
    }
}

impl Explanation {
    /// None where nothing is explained. `filter` reads which points are meant, if there are any; a verdict knows no value of a key that
    /// `is_merged`.
    ///
    /// # Errors
    /// When points have no reason, no verdict can be one of them, or bounds are none.
    pub fn read(
        text: Option<String>,
        explains: &[RawExplains],
        filter: impl Fn(&BTreeMap<Spanned<String>, Vec<toml::Value>>) -> Result<Option<Filter>, Fault>,
        is_merged: impl Fn(&str) -> bool,
    ) -> Result<Option<Self>, Fault> {
        let text = text.filter(|text| !text.trim().is_empty());
        if let (None, Some(first)) = (&text, explains.first()) {
            let message = "these points have no reason; say in `explained` why the claim does not hold there";
            return Err(Fault::at(&first.between, message));
        }
        let mut covered = Vec::new();
        for explains in explains {
            if let Some(written) = explains.filter.keys().find(|key| is_merged(key.get_ref())) {
                let key = written.get_ref();
                let message =
                    format!("the claim speaks of several values of \"{key}\" at once; leave it out here");
                return Err(Fault::at(written, message));
            }
            let Some(at) = filter(&explains.filter)? else {
                continue;
            };
            covered.push(Covered {
                at,
                measured: Bounds::new(&explains.between)?,
                expected: explains.expected.as_ref().map(Bounds::new).transpose()?,
            });
        }
        Ok(text.map(|text| Explanation { text, covered }))
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// Does it stand for this verdict?
    pub fn covers(&self, verdict: &Verdict) -> bool {
        verdict.held == Some(false) && self.covered.iter().any(|covered| covered.holds_for(verdict))
    }
}
