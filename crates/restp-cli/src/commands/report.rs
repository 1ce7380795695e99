//! `restp report`: a page of results. The Python package draws it, with the library that draws figures for papers; this
//! command finds the package and hands over.

use crate::args::Report;
use crate::failure::Failure;
use crate::output::Output;
use std::env;
use std::ffi::OsString;
use std::process::{Command, Stdio};

/// Names the interpreter that has the package.
const INTERPRETER: &str = "RESTP_PYTHON";

/// Writes the page.
///
/// # Errors
/// Exit code 1 when there is no Python with the package; otherwise the package's own: 2 for results that are none.
pub fn execute(arguments: &Report, output: Output) -> Result<(), Failure> {
    let python = env::var_os(INTERPRETER).unwrap_or_else(|| "python3".into());
    let absent = |why: String| {
        Failure::operation(format!(
            "{why}; reports are drawn by the Python package: install it with `pip install '.[plot]'` in the repository, or \
             name the interpreter that has it in {INTERPRETER}"
        ))
    };
    let shown = python.to_string_lossy();
    // Away from this folder, where a folder of the same name would stand for the package.
    let found = Command::new(&python)
        .args(["-P", "-c", "import restp.reports, matplotlib"])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| absent(format!("{shown} cannot be started ({error})")))?;
    if !found.status.success() {
        let said = String::from_utf8_lossy(&found.stderr);
        let last = said.lines().last().unwrap_or("no reason given").to_owned();
        return Err(absent(format!("{shown}: {last}")));
    }
    let status = Command::new(&python)
        .args(["-P", "-m", "restp", "report"])
        .args(words(arguments, output))
        .status()
        .map_err(|error| absent(format!("{shown} cannot be started ({error})")))?;
    match status.code() {
        Some(0) => Ok(()),
        // It has said why.
        Some(2) => Err(Failure::input("")),
        _ => Err(Failure::silent()),
    }
}

/// The arguments as the package takes them.
fn words(arguments: &Report, output: Output) -> Vec<OsString> {
    let mut words = Vec::new();
    let options = [
        ("--output", &arguments.output),
        ("--scenario", &arguments.scenario),
    ];
    for (option, value) in options {
        if let Some(value) = value {
            words.push(option.into());
            words.push(value.into());
        }
    }
    if output.json {
        words.push("--json".into());
    }
    words.push("--".into());
    words.push(arguments.results.clone().into());
    words
}
