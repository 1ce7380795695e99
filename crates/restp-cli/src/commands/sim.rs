//! `restp sim`: one scenario in virtual time.

use crate::args::Sim;
use crate::failure::Failure;
use crate::output::Output;
use crate::pcapng::PacketFile;
use crate::plan;
use crate::progress::Progress;
use crate::qlog;
use restp::clock::Clock;
use restp_lab::checker::{Tally, Verdict};
use restp_lab::run::Watched;
use restp_lab::{Job, Line, Options, Scenario, Summary, report};
use std::ops::ControlFlow;

/// Runs every point with every seed.
///
/// # Errors
/// Exit code 2 for a scenario that is none, 1 when a run or, with `--check`, a claim fails.
pub fn execute(arguments: &Sim, output: Output) -> Result<(), Failure> {
    let scenario = Scenario::read(&arguments.scenario).map_err(Failure::input)?;
    let settings = plan::settings(&arguments.set)?;
    let scenario = scenario.with_all(settings).map_err(Failure::input)?;
    if arguments.check && scenario.checks().is_empty() {
        return Err(Failure::input(format!(
            "{}: there is no [[check]] in this scenario; leave --check out",
            arguments.scenario.display()
        )));
    }
    let clock = Clock::start();
    let stopwatch = || clock.now().as_secs_f64();
    let traces = arguments.qlog.folder()?;
    let packets = packets(&scenario, arguments)?;
    let capture = |_: Job| packets.as_ref().map(PacketFile::sink);
    let observe = |end: &Watched<'_>| {
        let Watched { job, flow, opens } = *end;
        let name = format!("{}-{}-{}-{flow}", scenario.id(), job.point, job.seed);
        traces.as_ref()?.observer(&name, opens)
    };
    let progress = Progress::new();
    let line = progress.thousandths(scenario.id(), runs(&scenario, arguments));
    let advance = |thousandths| line.advance(thousandths, stopwatch());
    let options = Options {
        observe: traces.is_some().then_some(&observe),
        capture: packets.is_some().then_some(&capture),
        advance: Some(&advance),
        seed: arguments.seed,
        runs: arguments.runs,
        stopwatch: Some(&stopwatch),
        ..Options::DEFAULT
    };
    let mut results = Results::default();
    let mut printed = Ok(());
    restp_lab::run(&scenario, &options, |result| {
        printed = progress.aside(|| results.take(result, arguments.check, output));
        match printed {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    })
    .map_err(Failure::operation)?;
    printed?;
    drop(line);
    traces.as_ref().map_or(Ok(()), qlog::Folder::finish)?;
    packets.as_ref().map_or(Ok(()), PacketFile::finish)?;
    results.conclude(&scenario, arguments.check, output)
}

/// The file for packets, if one is asked for.
fn packets(scenario: &Scenario, arguments: &Sim) -> Result<Option<PacketFile>, Failure> {
    let Some(path) = &arguments.pcap else {
        return Ok(None);
    };
    let count = runs(scenario, arguments);
    let [point] = scenario.points() else {
        return Err(Failure::input(format!(
            "--pcap writes one run, and this scenario has {} points; fix the keys it varies with --set",
            scenario.points().len()
        )));
    };
    if count != 1 {
        return Err(Failure::input(format!(
            "--pcap writes one run, and this scenario has {count}; add --runs 1"
        )));
    }
    let links = point.plan.link_names();
    PacketFile::create(path, links.iter().map(String::as_str)).map(Some)
}

fn runs(scenario: &Scenario, arguments: &Sim) -> u64 {
    let points = scenario.points().iter();
    points
        .map(|point| arguments.runs.unwrap_or(point.plan.runs))
        .sum()
}

/// What tables are made of.
#[derive(Default)]
struct Results {
    summaries: Vec<Summary>,
    verdicts: Vec<Verdict>,
}

impl Results {
    fn take(&mut self, line: Line, check: bool, output: Output) -> Result<(), Failure> {
        let wanted = check || !matches!(line, Line::Verdict(_));
        if output.json && wanted {
            output.result(&line, |_| String::new())?;
        }
        match line {
            Line::Run(_) => {}
            Line::Summary(summary) => self.summaries.push(summary),
            Line::Verdict(verdict) => self.verdicts.push(verdict),
        }
        Ok(())
    }

    fn conclude(&self, scenario: &Scenario, check: bool, output: Output) -> Result<(), Failure> {
        output.text(&format!("{}: {}\n", scenario.id(), scenario.title()))?;
        output.text(&report::plain(&report::table(&self.summaries)))?;
        if !check {
            return Ok(());
        }
        output.text("")?;
        output.text(&report::plain(&report::verdicts(&self.verdicts)))?;
        let tally = Tally::of(&self.verdicts);
        if tally.is_clean() {
            return Ok(());
        }
        let all = self.verdicts.len();
        let (failed, none) = (tally.fail, tally.no_data);
        let open = match (failed, none) {
            (failed, 0) => format!("{failed} of {all} claims fail, and nothing explains it"),
            (0, none) => format!("there are no data for {none} of {all} claims"),
            _ => format!("of {all} claims {failed} fail, unexplained, and for {none} there are no data"),
        };
        Err(Failure::operation(open))
    }
}
