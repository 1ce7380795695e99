//! Verdicts as a table: claim, published, measured with its 95 % interval, verdict.

use super::markdown;
use super::results::plain;
use crate::checker::{Outcome, Verdict};

/// With more verdicts than this a page counts them claim by claim, and lists only those that do not hold.
const MANY: usize = 45;

pub(super) fn table(verdicts: &[Verdict]) -> String {
    let mut text = if verdicts.is_empty() {
        "None are checked here.".to_owned()
    } else if verdicts.len() <= MANY {
        one_by_one(&verdicts.iter().collect::<Vec<&Verdict>>())
    } else {
        counted(verdicts)
    };
    for (check, why) in explanations(verdicts) {
        text.push_str(&format!("\n\n**{check} does not hold.** {why}"));
    }
    text
}

/// Why claims do not hold, each once.
fn explanations(verdicts: &[Verdict]) -> Vec<(&str, &str)> {
    let mut all: Vec<(&str, &str)> = Vec::new();
    for verdict in verdicts.iter().filter(|verdict| verdict.held == Some(false)) {
        if let Some(why) = &verdict.explained
            && all.iter().all(|(check, _)| *check != verdict.check)
        {
            all.push((&verdict.check, why.trim()));
        }
    }
    all
}

fn counted(verdicts: &[Verdict]) -> String {
    let mut claims: Vec<(&Verdict, usize, usize)> = Vec::new();
    for verdict in verdicts {
        let held = usize::from(verdict.outcome() == Outcome::Holds);
        match claims.iter_mut().find(|(first, ..)| first.check == verdict.check) {
            Some((_, holds, all)) => (*holds, *all) = (*holds + held, *all + 1),
            None => claims.push((verdict, held, 1)),
        }
    }
    let published = verdicts.iter().any(|verdict| verdict.published.is_some());
    let row = |(first, holds, all): &(&Verdict, usize, usize)| {
        let mut row = vec![first.check.clone(), first.text.clone()];
        row.extend(published.then(|| first.published.clone().unwrap_or_default()));
        row.push(format!("{holds} of {all}"));
        row
    };
    let rows: Vec<Vec<String>> = claims.iter().map(row).collect();
    let mut headings = vec!["claim".to_owned(), "says".to_owned()];
    headings.extend(published.then(|| "published".to_owned()));
    headings.push("holds at".into());
    let table = markdown(&headings, &rows);
    let failed: Vec<&Verdict> = verdicts
        .iter()
        .filter(|verdict| verdict.outcome() != Outcome::Holds)
        .collect();
    if failed.is_empty() {
        return table;
    }
    format!(
        "{table}\n\nWhere a claim does not hold:\n\n{}",
        one_by_one(&failed)
    )
}

fn one_by_one(verdicts: &[&Verdict]) -> String {
    let published = verdicts.iter().any(|verdict| verdict.published.is_some());
    let row = |verdict: &&Verdict| {
        let at: Vec<String> = verdict.point.values().map(plain).collect();
        let mut row = vec![verdict.check.clone(), at.join(", "), verdict.text.clone()];
        row.extend(published.then(|| verdict.published.clone().unwrap_or_default()));
        row.push(verdict.expected.map_or_else(|| "–".to_owned(), number));
        row.push(measured(verdict));
        let outcome = match verdict.outcome() {
            Outcome::Holds => "holds",
            Outcome::Explained => "**fails**",
            Outcome::Fails => "**fails**, unexplained",
            Outcome::NoData => "no data",
        };
        row.push(outcome.into());
        row
    };
    let rows: Vec<Vec<String>> = verdicts.iter().map(row).collect();
    let mut headings = vec!["claim".to_owned(), "at".to_owned(), "says".to_owned()];
    headings.extend(published.then(|| "published".to_owned()));
    headings.extend(["expected", "measured", "verdict"].map(String::from));
    markdown(&headings, &rows)
}

fn measured(verdict: &Verdict) -> String {
    let Some(mean) = verdict.measured else {
        return "–".into();
    };
    match verdict.high {
        Some(high) if high > mean => format!("{} ± {}", number(mean), number(high - mean)),
        _ => number(mean),
    }
}

/// Whole numbers and large ones with thousands apart, others with four digits.
fn number(value: f64) -> String {
    if value.abs() >= 1000.0 || value == value.trunc() {
        return thousands(value);
    }
    let digits = (3 - value.abs().log10().floor() as i32).clamp(0, 12) as usize;
    let text = format!("{value:.digits$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn thousands(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    if value < 0.0 && digits != "0" {
        format!("-{text}")
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_four_digits_and_large_ones_are_grouped() {
        let written = [0.0, 0.012344, 0.5, 12.3456, 999.96, 1234.5, -1234567.0].map(number);
        assert_eq!(
            written,
            ["0", "0.01234", "0.5", "12.35", "1000", "1,234", "-1,234,567"]
        );
    }
}
