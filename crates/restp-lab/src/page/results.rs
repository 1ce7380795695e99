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
        let mut headings: Vec<String> = self.axes.iter().map(|axis| end_of(axis)).collect();
        headings.extend(named.then(|| "flow".to_owned()));
        headings.extend(self.columns.iter().map(|column| column.heading.clone()));
        headings.push("runs".into());
        let mut rows = Vec::new();
        for summary in &shown {
            let flows = if split { summary.summary.flows.len() } else { 1 };
            for flow in 0..flows {
                let name = || summary.summary.flows.get(flow)?.get("name")?.as_str();
                let at = self
                    .axes
                    .iter()
                    .map(|axis| summary.point.get(axis).map_or_else(String::new, plain));
                let mut row: Vec<String> = at.collect();
                row.extend(named.then(|| name().unwrap_or_default().to_owned()));
                let values = self.columns.iter().map(|column| column.cell(summary, flow));
                row.extend(values);
                row.push(summary.summary.runs.to_string());
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
}

impl Column {
    fn cell(&self, summary: &Summary, flow: usize) -> String {
        let number = |value: f64| format!("{:.*}", self.digits, value * self.scale);
        match self.source.of(summary, flow) {
            None => "–".into(),
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
