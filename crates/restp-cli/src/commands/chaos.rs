//! `restp chaos`: random compositions, networks and faults, and laws that hold whatever happens.

use crate::args::Chaos;
use crate::failure::Failure;
use crate::output::Output;
use crate::progress::Progress;
use restp_lab::chaos::{self, Case, Outcome, Summary, Violation};
use serde::Serialize;
use std::ops::ControlFlow;
use std::path::Path;

/// Failures shown in full; of more it is told how many there are.
const SHOWN: u64 = 5;

/// Plays random cases, or those of files.
///
/// # Errors
/// Exit code 1 when a law is broken, 2 for a file that holds no case.
pub fn execute(arguments: &Chaos, output: Output) -> Result<(), Failure> {
    // A panic of a machine is a finding like any other: it is caught, shrunk and printed.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let mut summary = Summary::default();
    let played = if arguments.cases.is_empty() {
        random(arguments, output, &mut summary)
    } else {
        arguments
            .cases
            .iter()
            .try_for_each(|file| named(file, arguments.records, output, &mut summary))
    };
    std::panic::set_hook(hook);
    played?;
    output.result(&Total { summary: &summary }, |total| describe(total.summary))?;
    match summary.violations {
        0 => Ok(()),
        broken => Err(Failure::operation(format!(
            "{broken} of {} runs broke a law",
            summary.runs
        ))),
    }
}

fn random(arguments: &Chaos, output: Output, summary: &mut Summary) -> Result<(), Failure> {
    let progress = Progress::new();
    let line = progress.steps("chaos", arguments.runs);
    let mut printed = Ok(());
    chaos::run(arguments.seed, arguments.runs, |outcome| {
        line.step();
        let repeat = format!("restp chaos --seed {} --runs 1", outcome.case.seed);
        printed = progress.aside(|| take(&outcome, repeat, arguments.records, output, summary));
        match printed {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    })
    .map_err(Failure::operation)?;
    drop(line);
    printed
}

fn named(file: &Path, records: usize, output: Output, summary: &mut Summary) -> Result<(), Failure> {
    let about = |error: &dyn std::fmt::Display| Failure::input(format!("{}: {error}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|error| about(&error))?;
    let case = Case::read(&text).map_err(|error| about(&error))?;
    let repeat = format!("restp chaos {}", file.display());
    take(&chaos::judge(&case), repeat, records, output, summary)
}

fn take(
    outcome: &Outcome,
    repeat: String,
    records: usize,
    output: Output,
    summary: &mut Summary,
) -> Result<(), Failure> {
    summary.add(&outcome.summary);
    let Some(violation) = &outcome.violation else {
        return Ok(());
    };
    summary.violations += 1;
    if summary.violations > SHOWN {
        return output.result(
            &Short {
                seed: outcome.case.seed,
                law: violation.law,
                repeat,
            },
            |short| {
                format!(
                    "seed {}: law \"{}\" broken; {}",
                    short.seed, short.law, short.repeat
                )
            },
        );
    }
    let (case, mut violation) =
        chaos::shrink(&outcome.case).unwrap_or((outcome.case.clone(), violation.clone()));
    let earlier = violation.records.len().saturating_sub(records);
    violation.records.drain(..earlier);
    let failure = Broken {
        seed: outcome.case.seed,
        violation,
        case: case.write(),
        repeat,
    };
    output.result(&failure, Broken::describe)
}

/// A run that broke a law, and the smallest case that does the same.
#[derive(Serialize)]
struct Broken {
    seed: u64,
    #[serde(flatten)]
    violation: Violation,
    case: String,
    repeat: String,
}

/// One of many.
#[derive(Serialize)]
struct Short {
    seed: u64,
    law: &'static str,
    repeat: String,
}

#[derive(Serialize)]
struct Total<'a> {
    summary: &'a Summary,
}

impl Broken {
    fn describe(&self) -> String {
        let mut text = format!(
            "seed {}: law \"{}\" broken: {}\n",
            self.seed, self.violation.law, self.violation.what
        );
        for record in &self.violation.records {
            text += &format!("  {record}\n");
        }
        text += &format!(
            "repeat: {}\nthe smallest case that breaks it, for a file:\n\n",
            self.repeat
        );
        for line in self.case.lines() {
            text += &format!("  {line}\n");
        }
        text
    }
}

fn describe(summary: &Summary) -> String {
    let services: Vec<String> = summary
        .choices
        .iter()
        .map(|(key, values)| {
            let values: Vec<_> = values
                .iter()
                .map(|(value, runs)| format!("{value} {runs}"))
                .collect();
            format!("  {key}: {}", values.join(", "))
        })
        .collect();
    format!(
        "{} runs, {} of them sealed, {} broke a law; {} packets, {} of them lost; {} of {} ends finished, faults explain the others\n\
         runs with each choice\n{}",
        summary.runs,
        summary.sealed,
        summary.violations,
        summary.packets,
        summary.dropped,
        summary.finished,
        summary.ends,
        services.join("\n")
    )
}
