//! The page of an experiment: what a scenario's `[page]` says, its claims with their verdicts, figures, results.
//! The same results give the same bytes.
//!
//! ```text
//! [page] ─► raw ─► Page ─┬─► claims.rs   verdicts as a table
//! summaries, verdicts ───┼─► results.rs  means and intervals as a table
//!                        └─► figure.rs   curves with intervals, SVG
//! ```

mod axis;
mod claims;
mod figure;
mod raw;
mod results;
mod value;

pub(crate) use raw::RawPage;

use crate::checker::{Formula, Verdict};
use crate::run::Summary;
use crate::scenario::{Axes, Fault, Plan};
use crate::unknown::unknown;
use raw::{RawColumn, RawFigure};
use serde_json::Value;
use value::Source;

/// What is written about an experiment beside its numbers, and which of them are shown.
#[derive(Clone, Debug)]
pub struct Page {
    title: String,
    introduction: String,
    remarks: String,
    columns: Vec<Column>,
    /// Axes whose values are columns.
    axes: Vec<String>,
    /// The axis whose values stand beside each other.
    across: Option<String>,
    /// Rows that are shown.
    only: Vec<(String, Vec<Value>)>,
    figures: Vec<Figure>,
}

/// One column of numbers.
#[derive(Clone, Debug)]
struct Column {
    heading: String,
    source: Source,
    scale: f64,
    digits: usize,
}

/// One picture: a curve for each value of an axis, over another one.
#[derive(Clone, Debug)]
struct Figure {
    name: String,
    caption: String,
    x: Along,
    series: String,
    source: Source,
    /// Curves of what is expected, by their names.
    formulas: Vec<(String, Formula)>,
    only: Vec<(String, Vec<Value>)>,
    x_scale: f64,
    y_scale: f64,
    x_label: String,
    y_label: String,
    x_logarithmic: bool,
    y_logarithmic: bool,
}

/// What lies along a figure.
#[derive(Clone, Debug)]
enum Along {
    Axis(String),
    /// Time, in bins of so many seconds.
    Time(f64),
}

/// What stands for time in the place of an axis.
const TIME: &str = "time";

/// A file of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its name, without a folder.
    pub name: String,
    /// What stands in it.
    pub text: String,
}

impl Page {
    /// Validates the page of a scenario with these axes, of which `plan` is one point.
    pub(crate) fn new(raw: RawPage, axes: &Axes, plan: &Plan) -> Result<Page, Fault> {
        let keys = || axes.iter().flatten().map(String::as_str);
        let known = |written: &toml::Spanned<String>| match keys().any(|key| key == written.get_ref()) {
            true => Ok(written.get_ref().clone()),
            false => Err(Fault::at(written, unknown("axis", written.get_ref(), keys()))),
        };
        let filter = |written: raw::Filter| {
            let one = |(axis, values): (toml::Spanned<String>, Vec<toml::Value>)| {
                let values = values
                    .iter()
                    .map(|value| serde_json::to_value(value).unwrap_or(Value::Null));
                Ok((known(&axis)?, values.collect()))
            };
            written.into_iter().map(one).collect::<Result<Vec<_>, Fault>>()
        };
        let source = |written: &toml::Spanned<String>| {
            Source::parse(written.get_ref(), plan).map_err(|message| Fault::at(written, message))
        };
        let column = |raw: RawColumn| {
            Ok(Column {
                source: source(&raw.metric)?,
                heading: raw.heading,
                scale: raw.scale,
                digits: usize::from(raw.digits),
            })
        };
        let along = |written: &toml::Spanned<String>, source: &Source| {
            if written.get_ref() != TIME {
                return known(written).map(Along::Axis);
            }
            let width = source.bin(plan).ok_or_else(|| {
                Fault::at(
                    written,
                    "only bins lie along time; write metric = \"flow.NAME.bins_bps\" of a flow with bins",
                )
            })?;
            Ok(Along::Time(width.as_secs_f64()))
        };
        let formula = |(name, written): (String, toml::Spanned<String>)| {
            Formula::over(&written, &keys().collect::<Vec<_>>()).map(|formula| (name, formula))
        };
        let figure = |raw: RawFigure| {
            Ok(Figure {
                x: along(&raw.x, &source(&raw.metric)?)?,
                series: known(&raw.series)?,
                source: source(&raw.metric)?,
                formulas: (raw.formulas.into_iter().map(formula)).collect::<Result<_, Fault>>()?,
                only: filter(raw.only)?,
                name: raw.name,
                caption: raw.caption,
                x_scale: raw.x_scale,
                y_scale: raw.y_scale,
                x_label: raw.x_label,
                y_label: raw.y_label,
                x_logarithmic: raw.x_logarithmic,
                y_logarithmic: raw.y_logarithmic,
            })
        };
        let across = raw.across.as_ref().map(known).transpose()?;
        Ok(Page {
            title: raw.title.unwrap_or_else(|| plan.id.to_uppercase()),
            introduction: raw.introduction,
            remarks: raw.remarks,
            columns: raw
                .columns
                .into_iter()
                .map(column)
                .collect::<Result<_, Fault>>()?,
            axes: match &raw.axes {
                Some(axes) => axes.iter().map(known).collect::<Result<_, Fault>>()?,
                None => keys()
                    .filter(|key| across.as_deref() != Some(*key))
                    .map(str::to_owned)
                    .collect(),
            },
            across,
            only: filter(raw.only)?,
            figures: raw.figure.into_iter().map(figure).collect::<Result<_, Fault>>()?,
        })
    }

    /// The page of experiment `id`, and its figures. `command` is what a reader types for the same.
    pub fn files(&self, id: &str, command: &str, summaries: &[Summary], verdicts: &[Verdict]) -> Vec<File> {
        let pictures = self.figures.iter().map(|figure| File {
            name: format!("{id}-{}.svg", figure.name),
            text: figure.svg(summaries),
        });
        let mut files: Vec<File> = pictures.collect();
        let links: String = files
            .iter()
            .zip(&self.figures)
            .map(|(file, figure)| format!("![{0}]({1})\n\n*{0}*\n\n", figure.caption, file.name))
            .collect();
        let remarks = match self.remarks.trim() {
            "" => String::new(),
            remarks => format!("## Remarks\n\n{remarks}\n\n"),
        };
        let text = format!(
            "# {}\n\n{}\n\n```\n{command}\n```\n\n{links}## Claims\n\n{}\n\n{remarks}## Results\n\n{}\n",
            self.title,
            self.introduction.trim(),
            claims::table(verdicts),
            self.results(summaries),
        );
        files.insert(
            0,
            File {
                name: format!("{id}.md"),
                text,
            },
        );
        files
    }
}

/// Is this point among those wanted?
fn is_shown(only: &[(String, Vec<Value>)], summary: &Summary) -> bool {
    let allows = |(axis, values): &(String, Vec<Value>)| {
        summary
            .point
            .get(axis)
            .is_some_and(|value| values.contains(value))
    };
    only.iter().all(allows)
}

/// A table in Markdown.
fn markdown(headings: &[String], rows: &[Vec<String>]) -> String {
    let line = |cells: &[String]| format!("| {} |", cells.join(" | "));
    let rule = vec!["---".to_owned(); headings.len()];
    let all = [line(headings), line(&rule)]
        .into_iter()
        .chain(rows.iter().map(|row| line(row)));
    all.collect::<Vec<String>>().join("\n")
}
