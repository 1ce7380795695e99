//! Runs a scenario file and prints one JSON object per line: `cargo run --release --example scenario -- FILE
//! [KEY=VALUE]… [--threads N] [--table]`. With `--table` it prints the tables of the summaries and verdicts.

use restp_lab::{Line, Options, Scenario, report, run};
use std::error::Error;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("name a scenario file")?;
    let mut scenario = Scenario::read(Path::new(&file))?;
    let mut options = Options::DEFAULT;
    let mut table = false;
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--table" => table = true,
            "--threads" => options.threads = Some(arguments.next().ok_or("how many threads?")?.parse()?),
            setting => {
                let (key, value) = setting.split_once('=').ok_or("a setting is written KEY=VALUE")?;
                scenario = scenario.with(key, value)?;
            }
        }
    }
    let (mut summaries, mut verdicts) = (Vec::new(), Vec::new());
    let mut out = std::io::stdout().lock();
    let mut failed = None;
    run(&scenario, &options, |line| {
        if !table {
            let written = serde_json::to_string(&line).map_err(Box::<dyn Error>::from);
            if let Err(error) = written.and_then(|text| Ok(writeln!(out, "{text}")?)) {
                failed = Some(error);
                return ControlFlow::Break(());
            }
        }
        match line {
            Line::Run(_) => {}
            Line::Summary(summary) => summaries.push(summary),
            Line::Verdict(verdict) => verdicts.push(verdict),
        }
        ControlFlow::Continue(())
    })?;
    if table {
        writeln!(out, "{}", report::plain(&report::table(&summaries)))?;
        writeln!(out, "{}", report::plain(&report::verdicts(&verdicts)))?;
    }
    failed.map_or(Ok(()), Err)
}
