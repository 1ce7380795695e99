//! The `[page]` table as written.

use serde::Deserialize;
use std::collections::BTreeMap;
use toml::Spanned;

pub(super) type Filter = BTreeMap<Spanned<String>, Vec<toml::Value>>;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct RawPage {
    pub title: Option<String>,
    pub introduction: String,
    #[serde(default)]
    pub remarks: String,
    pub columns: Vec<RawColumn>,
    pub axes: Option<Vec<Spanned<String>>>,
    pub across: Option<Spanned<String>>,
    #[serde(default)]
    pub only: Filter,
    #[serde(default)]
    pub figure: Vec<RawFigure>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct RawColumn {
    pub heading: String,
    pub metric: Spanned<String>,
    #[serde(default = "one")]
    pub scale: f64,
    #[serde(default)]
    pub digits: u8,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct RawFigure {
    pub name: String,
    pub caption: String,
    pub x: Spanned<String>,
    pub series: Spanned<String>,
    pub metric: Spanned<String>,
    #[serde(default)]
    pub formulas: BTreeMap<String, Spanned<String>>,
    #[serde(default)]
    pub only: Filter,
    #[serde(default = "one")]
    pub x_scale: f64,
    #[serde(default = "one")]
    pub y_scale: f64,
    pub x_label: String,
    pub y_label: String,
    #[serde(default)]
    pub x_logarithmic: bool,
    #[serde(default)]
    pub y_logarithmic: bool,
}

fn one() -> f64 {
    1.0
}
