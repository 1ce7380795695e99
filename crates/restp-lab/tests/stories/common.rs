//! What the stories share.

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
