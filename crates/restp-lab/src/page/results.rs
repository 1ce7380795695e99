//! Means and intervals as a table.

use super::value::{Measured, Source};
use super::{Column, Page, is_shown, markdown};
use crate::run::Summary;
use serde_json::Value;

impl Page {
    /// One row per point, or per flow of each point.
    pub(super) fn results(&self, summaries: &[Summary]) -> String {
        let shown: Vec<&Summary> = summaries
            .iter()
            .filter(|summary| is_shown(&self.only, summary))
            .collect();
        let by_flow = |column: &Column| matches!(column.source, Source::EachFlow { .. });
        let split = self.columns.iter().any(by_flow);
        let named = split && shown.iter().any(|summary| summary.summary.flows.len() > 1);
        let (values, points) = self.beside(&shown);
        let mut headings: Vec<String> = self.axes.iter().map(|axis| end_of(axis)).collect();
        headings.extend(named.then(|| "flow".to_owned()));
        for column in &self.columns {
            headings.extend(values.iter().map(|value| column.headed(value)));
        }
        headings.push("runs".into());
        let mut rows = Vec::new();
        for beside in &points {
            let Some(first) = beside.iter().flatten().next() else {
                continue;
            };
            let flows = if split { first.summary.flows.len() } else { 1 };
            for flow in 0..flows {
                let name = || first.summary.flows.get(flow)?.get("name")?.as_str();
                let mut row = self.place(first);
                row.extend(named.then(|| name().unwrap_or_default().to_owned()));
                for column in &self.columns {
                    let cell = |point: &Option<&Summary>| {
                        point.map_or_else(|| NOTHING.into(), |point| column.cell(point, flow))
                    };
                    row.extend(beside.iter().map(cell));
                }
                row.push(first.summary.runs.to_string());
                rows.push(row);
            }
        }
        let omitted = match summaries.len() - shown.len() {
            0 => String::new(),
            _ => format!(" Of {} points {} are shown.", summaries.len(), shown.len()),
        };
        format!(
            "Mean and half the 95 % interval over the seeds.{omitted}\n\n{}",
            markdown(&headings, &rows)
        )
    }

    /// What stands in the columns of the axes.
    fn place(&self, summary: &Summary) -> Vec<String> {
        let at = |axis: &String| summary.point.get(axis).map_or_else(String::new, plain);
        self.axes.iter().map(at).collect()
    }

    /// The values that stand across, and the points of each row in their order; one point a row where nothing does.
    fn beside<'a>(&self, shown: &[&'a Summary]) -> (Vec<String>, Vec<Vec<Option<&'a Summary>>>) {
        let Some(across) = &self.across else {
            return (
                vec![String::new()],
                shown.iter().map(|point| vec![Some(*point)]).collect(),
            );
        };
        let value = |point: &Summary| point.point.get(across).map_or_else(String::new, plain);
        let mut values: Vec<String> = Vec::new();
        for value in shown.iter().map(|point| value(point)) {
            if !values.contains(&value) {
                values.push(value);
            }
        }
        let mut rows: Vec<(Vec<String>, Vec<Option<&Summary>>)> = Vec::new();
        for point in shown {
            let (place, value) = (self.place(point), value(point));
            let column = values.iter().position(|known| *known == value).unwrap_or(0);
            let same =
                |row: &&mut (Vec<String>, Vec<Option<&Summary>>)| row.0 == place && row.1[column].is_none();
            match rows.iter_mut().find(same) {
                Some((_, row)) => row[column] = Some(point),
                None => {
                    let mut row = vec![None; values.len()];
                    row[column] = Some(*point);
                    rows.push((place, row));
                }
            }
        }
        (values, rows.into_iter().map(|(_, row)| row).collect())
    }
}

/// What a table says where there is no number.
const NOTHING: &str = "–";

impl Column {
    /// Its heading, over this value of what stands across.
    fn headed(&self, value: &str) -> String {
        let parts = [self.heading.as_str(), value];
        let said: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        said.join(", ")
    }

    fn cell(&self, summary: &Summary, flow: usize) -> String {
        let number = |value: f64| format!("{:.*}", self.digits, value * self.scale);
        match self.source.of(summary, flow) {
            None => NOTHING.into(),
            Some(Measured { mean, half: None }) => number(mean),
            Some(Measured {
                mean,
                half: Some(half),
            }) => format!("{} ± {}", number(mean), number(half)),
        }
    }
}

/// What a key says last.
fn end_of(key: &str) -> String {
    key.rsplit('.').next().unwrap_or(key).to_owned()
}

/// A coordinate as text; lists of names with commas between.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) if parts.iter().all(Value::is_string) => {
            parts.iter().map(plain).collect::<Vec<String>>().join(", ")
        }
        other => other.to_string(),
    }
}
