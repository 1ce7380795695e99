//! Summaries as a table for people, results as CSV for other tools.

use crate::checker::{Outcome, Verdict};
use crate::run::Summary;
use crate::scenario::Coordinates;
use serde_json::{Map, Value};
use std::fmt::Write;

/// One line per flow of each summary: where, which, and the means with half their 95 % intervals.
pub fn table(summaries: &[Summary]) -> Vec<Vec<String>> {
    let mut rows = vec![HEADINGS.map(String::from).to_vec()];
    for summary in summaries {
        for flow in &summary.summary.flows {
            let text = |field: &str| flow.get(field).and_then(Value::as_str).unwrap_or("").to_owned();
            rows.push(vec![
                // The transport has a column of its own.
                coordinates(&summary.point, |key| !key.ends_with(".transport")),
                text("name"),
                text("transport"),
                summary.summary.runs.to_string(),
                mean(flow, "goodput_bps", 1e-6),
                mean(flow, "completion_s", 1.0),
                mean(flow, "latency_mean_ms", 1.0),
                mean(flow, "lost_messages", 1.0),
                mean(flow, "retransmitted_packets", 1.0),
                mean(flow, "timeouts", 1.0),
            ]);
        }
    }
    rows
}

const HEADINGS: [&str; 10] = [
    "point",
    "flow",
    "transport",
    "runs",
    "goodput Mbit/s",
    "completion s",
    "latency ms",
    "lost",
    "retransmitted",
    "timeouts",
];

/// One line per verdict: claim, expected, measured, verdict.
pub fn verdicts(verdicts: &[Verdict]) -> Vec<Vec<String>> {
    let headings = ["check", "point", "claim", "expected", "measured", "verdict"];
    let mut rows = vec![headings.map(String::from).to_vec()];
    for verdict in verdicts {
        let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), short);
        rows.push(vec![
            verdict.check.clone(),
            coordinates(&verdict.point, |_| true),
            verdict.claim.clone(),
            number(verdict.expected),
            number(verdict.measured),
            outcome(verdict.outcome()).to_owned(),
        ]);
    }
    rows
}

fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Holds => "holds",
        Outcome::Explained => "fails, explained",
        Outcome::Fails => "FAILS",
        Outcome::NoData => "no data",
    }
}

/// Rows in columns of equal width, two spaces apart.
pub fn plain(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count())
            .max()
    };
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, &width) in row.iter().zip(&widths) {
            // Writing into a string cannot fail.
            let _ = write!(line, "{cell:<width$}  ");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// `loss.rate=0.01 …`: axes that `shown` admits, each by the end of its key.
fn coordinates(point: &Coordinates, shown: impl Fn(&str) -> bool) -> String {
    let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    point
        .iter()
        .filter(|(key, _)| shown(key))
        .map(|(key, value)| format!("{}={}", end_of(key), plain(value)))
        .collect::<Vec<String>>()
        .join(" ")
}

/// What a key says beside the name of its link or flow: `link.b.loss.rate` is `loss.rate`, `flow.a.set.window` is
/// `window`.
fn end_of(key: &str) -> &str {
    let end = key.splitn(3, '.').nth(2).unwrap_or(key);
    end.strip_prefix("set.").unwrap_or(end)
}

/// `1.234 ± 0.005`, or `-` where the metric has no value.
fn mean(record: &Map<String, Value>, field: &str, scale: f64) -> String {
    let Some(interval) = record.get(field) else {
        return "-".into();
    };
    let part = |name: &str| interval.get(name).and_then(Value::as_f64);
    let Some(mean) = part("mean") else {
        return "-".into();
    };
    match part("high") {
        Some(high) => format!("{} ± {}", short(mean * scale), short((high - mean) * scale)),
        None => short(mean * scale),
    }
}

/// Four significant digits or so, without an exponent in the usual range.
fn short(number: f64) -> String {
    match number.abs() {
        size if size == 0.0 || size >= 1000.0 => format!("{number:.0}"),
        size if size >= 100.0 => format!("{number:.1}"),
        size if size >= 10.0 => format!("{number:.2}"),
        size if size >= 0.001 => format!("{number:.4}"),
        _ => format!("{number:.2e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let rows = [["a", "bb"], ["ccc", "d"]].map(|row| row.map(String::from).to_vec());
        assert_eq!(plain(&rows), "a    bb\nccc  d\n");
    }

    #[test]
    fn numbers_keep_four_digits() {
        assert_eq!(
            [0.0, 1.00812, 12.3456, 123.456, 12345.6].map(short),
            ["0", "1.0081", "12.35", "123.5", "12346"]
        );
    }
}
