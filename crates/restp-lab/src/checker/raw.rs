//! A `[[check]]` table as written.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use toml::Spanned;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct RawCheck {
    pub id: String,
    pub text: String,
    pub published: Option<String>,
    pub explained: Option<String>,
    #[serde(default)]
    pub explains: Vec<RawExplains>,
    pub metric: Spanned<String>,
    #[serde(default, rename = "where")]
    pub filter: BTreeMap<Spanned<String>, Vec<toml::Value>>,
    #[serde(default)]
    pub pool: Vec<Spanned<String>>,
    pub expect: RawExpect,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct RawExplains {
    #[serde(default, rename = "where")]
    pub filter: BTreeMap<Spanned<String>, Vec<toml::Value>>,
    pub between: Spanned<Vec<f64>>,
    pub expected: Option<Spanned<Vec<f64>>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RawExpect {
    Near(RawNear),
    Compare(RawCompare),
    Trend(RawTrend),
    Bound(RawBound),
    Rank(RawRank),
    Spread(RawSpread),
    Premium(RawPremium),
    Premiums(RawPremiums),
    Gain(RawGain),
    Steady(RawSteady),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct RawNear {
    pub value: Spanned<String>,
    pub within: Spanned<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct RawCompare {
    pub axis: Spanned<String>,
    pub left: toml::Value,
    pub relation: Relation,
    pub right: toml::Value,
    pub factor: Option<f64>,
    pub plus: Option<Spanned<String>>,
    pub within: Option<Spanned<String>>,
    pub tolerance: Option<Spanned<String>>,
    #[serde(default)]
    pub each: Each,
    #[serde(default)]
    pub average: bool,
    #[serde(default)]
    pub beyond_chance: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct RawPremium {
    pub axis: Spanned<String>,
    pub of: toml::Value,
    pub over: toml::Value,
    pub value: Spanned<String>,
    pub points: f64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct RawPremiums {
    pub axis: Spanned<String>,
    pub larger: RawPair,
    pub smaller: RawPair,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct RawPair {
    pub of: toml::Value,
    pub over: toml::Value,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct RawBound {
    pub relation: Relation,
    pub value: Spanned<String>,
    #[serde(default)]
    pub each: Each,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct RawTrend {
    pub along: Spanned<String>,
    pub direction: Direction,
    pub within: Option<Spanned<String>>,
    #[serde(default)]
    pub beyond_chance: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct RawRank {
    pub axis: Spanned<String>,
    pub are: Vec<toml::Value>,
    pub place: Place,
    #[serde(default)]
    pub average: bool,
    #[serde(default)]
    pub beyond_chance: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct RawSpread {
    pub axis: Spanned<String>,
    pub within: Spanned<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct RawSteady {
    pub within: Spanned<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct RawGain {
    pub axis: Spanned<String>,
    pub of: toml::Value,
    pub over: toml::Value,
    pub along: Spanned<String>,
    pub direction: Direction,
}

/// Which end of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Place {
    Highest,
    Lowest,
}

/// How the left side stands to the right one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Relation {
    Equal,
    AtLeast,
    AtMost,
}

impl Relation {
    /// Does it hold, when `right` may be off by `slack`?
    pub fn holds(self, left: f64, right: f64, slack: f64) -> bool {
        match self {
            Relation::Equal => (left - right).abs() <= slack,
            Relation::AtLeast => left >= right - slack,
            Relation::AtMost => left <= right + slack,
        }
    }
}

impl fmt::Display for Relation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Relation::Equal => "equal to",
            Relation::AtLeast => "at least",
            Relation::AtMost => "at most",
        })
    }
}

/// What is compared: means over all runs, or every run with the run of the same seed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Each {
    #[default]
    Mean,
    Run,
}

/// Which way a trend goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Direction {
    Rising,
    Falling,
}

impl Direction {
    pub fn verb(self) -> &'static str {
        match self {
            Direction::Rising => "rises",
            Direction::Falling => "falls",
        }
    }

    /// Of a step that goes this way.
    pub fn sign(self) -> f64 {
        match self {
            Direction::Rising => 1.0,
            Direction::Falling => -1.0,
        }
    }
}
