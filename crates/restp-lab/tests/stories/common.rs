//! What the stories share.

use restp_lab::run::RunResult;
use restp_lab::{Line, Options, Scenario, run};
use std::ops::ControlFlow;
use std::path::PathBuf;

/// A scenario file of the project.
pub fn file(name: &str) -> Scenario {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../scenarios/restp")
        .join(name);
    Scenario::read(&path).unwrap_or_else(|error| panic!("{error}"))
}

/// Every line of output.
pub fn lines(scenario: &Scenario, options: &Options<'_>) -> Vec<Line> {
    let mut lines = Vec::new();
    let done = run(scenario, options, |line| {
        lines.push(line);
        ControlFlow::Continue(())
    });
    done.unwrap_or_else(|error| panic!("{error}"));
    lines
}

/// A scenario given as text, with some keys set.
pub fn with(text: &str, settings: &[(&str, &str)]) -> Scenario {
    let scenario = Scenario::parse(text).unwrap_or_else(|error| panic!("{error}"));
    settings.iter().fold(scenario, |scenario, (key, value)| {
        scenario
            .with(key, value)
            .unwrap_or_else(|error| panic!("{error}"))
    })
}

/// Every run of every point.
pub fn runs(scenario: &Scenario) -> Vec<RunResult> {
    let all = lines(scenario, &Options::DEFAULT).into_iter();
    all.filter_map(|line| match line {
        Line::Run(run) => Some(run),
        Line::Summary(_) | Line::Verdict(_) => None,
    })
    .collect()
}
