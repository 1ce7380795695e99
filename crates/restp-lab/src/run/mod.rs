//! From points and seeds to results: replications on all cores, results in the order of points and seeds.

mod capture;
mod columns;
mod observer;
mod parallel;
mod replication;
mod result;
mod setting;
mod summary;
mod traces;

pub use capture::{Frame, FrameSink};
pub use columns::{Column, Table};
use parallel::as_done;
pub(crate) use parallel::in_order;
pub use replication::traced;
pub use result::{RunError, RunResult};
pub(crate) use summary::number;
pub use summary::{Numbers, Summary};
pub use traces::{Traces, TracesWanted, traces};

use crate::checker::{self, Verdict};
use crate::scenario::{Point, Scenario};
use restp_base::observe;
use serde::Serialize;
use std::ops::ControlFlow;

/// How to run, apart from what the scenario says.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// Threads; all processors when absent.
    pub threads: Option<usize>,
    /// Seed of the first run, in the place of the scenario's.
    pub seed: Option<u64>,
    /// Number of runs per point, in the place of the scenario's.
    pub runs: Option<u64>,
    /// Seconds of wall time since some fixed moment. Without it results say nothing of wall time.
    pub stopwatch: Option<&'a (dyn Fn() -> f64 + Sync)>,
    /// Who is shown what passes at an end of a flow, if somebody is. What is seen changes nothing.
    pub observe: Option<&'a Observe<'a>>,
    /// Who is shown the packets of a run, if somebody is.
    pub capture: Option<&'a (dyn Fn(Job) -> Option<FrameSink> + Sync)>,
    /// Who is told how far the runs have come, in thousandths of a run since the last time.
    pub advance: Option<&'a (dyn Fn(u64) + Sync)>,
}

/// Gives an end of a flow its observer, or none.
pub type Observe<'a> = dyn Fn(&Watched<'_>) -> Option<observe::Observer> + Sync + 'a;

/// One end of one flow in one run, for whoever wants to look at it.
#[derive(Clone, Copy, Debug)]
pub struct Watched<'a> {
    /// The run.
    pub job: Job,
    /// The flow.
    pub flow: &'a str,
    /// Did this end open it?
    pub opens: bool,
}

impl Options<'_> {
    /// As the scenario says, on all processors.
    pub const DEFAULT: Options<'static> = Options {
        threads: None,
        seed: None,
        runs: None,
        stopwatch: None,
        observe: None,
        capture: None,
        advance: None,
    };
}

/// One line of output.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Line {
    /// One point, one seed.
    Run(RunResult),
    /// One point, all seeds.
    Summary(Summary),
    /// One claim at one point.
    Verdict(Verdict),
}

/// Runs every point of a scenario with every seed. `each` gets the runs of a point in the order of their seeds,
/// then its summary, then the next point; the verdicts on the scenario's claims come last. It may stop the rest
/// with [`ControlFlow::Break`].
///
/// # Errors
/// The first run, in that order, that could not go on.
pub fn run(
    scenario: &Scenario,
    options: &Options<'_>,
    mut each: impl FnMut(Line) -> ControlFlow<()>,
) -> Result<(), RunError> {
    let jobs = jobs(scenario, options)?;
    let (mut runs, mut judged): (Vec<RunResult>, Vec<RunResult>) = (Vec::new(), Vec::new());
    let mut done = 0;
    let work = |index: usize| replicate(scenario, jobs[index], options);
    let outcome = in_order(options.threads, jobs.len(), work, |result| {
        let result = result?;
        runs.push(result.clone());
        if each(Line::Run(result)).is_break() {
            return Ok(ControlFlow::Break(()));
        }
        done += 1;
        if jobs
            .get(done)
            .is_some_and(|next| next.point == jobs[done - 1].point)
        {
            return Ok(ControlFlow::Continue(()));
        }
        let summary = Summary::of(&runs);
        if !scenario.checks().is_empty() {
            judged.append(&mut runs);
        }
        runs.clear();
        Ok(summary.map_or(ControlFlow::Continue(()), |summary| each(Line::Summary(summary))))
    })?;
    if outcome.is_continue() {
        for verdict in checker::judge(scenario.checks(), &judged) {
            if each(Line::Verdict(verdict)).is_break() {
                break;
            }
        }
    }
    Ok(())
}

/// One simulation to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Job {
    /// The point, by its place among [`Scenario::points`].
    pub point: usize,
    /// The seed.
    pub seed: u64,
}

/// The most runs of one scenario.
const MOST_RUNS: u64 = 1_000_000;

/// Every point with every seed, in the order of results.
///
/// # Errors
/// When there are too many.
pub fn jobs(scenario: &Scenario, options: &Options<'_>) -> Result<Vec<Job>, RunError> {
    let runs = |point: &Point| options.runs.unwrap_or(point.plan.runs);
    let total = scenario.points().iter().map(runs).fold(0, u64::saturating_add);
    if total > MOST_RUNS {
        return Err(RunError::TooMany {
            total,
            most: MOST_RUNS,
        });
    }
    let mut jobs = Vec::new();
    for (index, point) in scenario.points().iter().enumerate() {
        let first = options.seed.unwrap_or(point.plan.seed);
        let seeds = first..first.saturating_add(runs(point));
        jobs.extend(seeds.map(|seed| Job { point: index, seed }));
    }
    Ok(jobs)
}

/// Does these jobs, whose points must exist, on `options.threads`; `each` gets every result as soon as it is there and may stop the rest
/// with [`ControlFlow::Break`].
///
/// # Errors
/// The first run that could not go on, or the error of `each`.
pub fn run_jobs(
    scenario: &Scenario,
    jobs: &[Job],
    options: &Options<'_>,
    mut each: impl FnMut(Job, RunResult) -> Result<ControlFlow<()>, RunError>,
) -> Result<ControlFlow<()>, RunError> {
    let work = |index: usize| replicate(scenario, jobs[index], options);
    as_done(options.threads, jobs.len(), work, |index, result| {
        each(jobs[index], result?)
    })
}

fn replicate(scenario: &Scenario, job: Job, options: &Options<'_>) -> Result<RunResult, RunError> {
    replication::replicate(&scenario.points()[job.point], job, options)
}
