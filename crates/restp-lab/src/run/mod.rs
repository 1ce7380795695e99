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

use crate::scenario::Point;
use restp_base::observe;
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

/// One simulation to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Job {
    /// The point, by its place among the points of a scenario.
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
pub fn jobs(points: &[Point], options: &Options<'_>) -> Result<Vec<Job>, RunError> {
    let runs = |point: &Point| options.runs.unwrap_or(point.plan.runs);
    let total = points.iter().map(runs).fold(0, u64::saturating_add);
    if total > MOST_RUNS {
        return Err(RunError::TooMany {
            total,
            most: MOST_RUNS,
        });
    }
    let mut jobs = Vec::new();
    for (index, point) in points.iter().enumerate() {
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
    points: &[Point],
    jobs: &[Job],
    options: &Options<'_>,
    mut each: impl FnMut(Job, RunResult) -> Result<ControlFlow<()>, RunError>,
) -> Result<ControlFlow<()>, RunError> {
    let work = |index: usize| replicate(points, jobs[index], options);
    as_done(options.threads, jobs.len(), work, |index, result| {
        each(jobs[index], result?)
    })
}

pub(crate) fn replicate(points: &[Point], job: Job, options: &Options<'_>) -> Result<RunResult, RunError> {
    replication::replicate(&points[job.point], job, options)
}
