//! A scenario file as a whole: what is simulated, what is claimed of it, what is written about it; and one run of it all.

use crate::checker::{self, Check, RawCheck, Verdict};
use crate::page::{Page, RawPage};
use crate::run::{Options, RunError, RunResult, Summary, in_order, jobs, replicate};
use crate::scenario::{Place, Point, ScenarioError, Source, check_count, points};
use crate::unknown::unknown;
use restp_proto::composition::ValidComposition;
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

#[derive(Deserialize)]
struct Checks {
    #[serde(default)]
    check: Vec<RawCheck>,
}

#[derive(Deserialize)]
struct Pages {
    page: Option<RawPage>,
}

/// A scenario of which every point has been validated.
#[derive(Clone, Debug)]
pub struct Scenario {
    text: String,
    file: Option<PathBuf>,
    settings: Vec<(String, String)>,
    points: Vec<Point>,
    checks: Vec<Check>,
    page: Option<Page>,
}

impl Scenario {
    /// Reads and validates a scenario file. Names of profile files in it start at its own folder.
    ///
    /// # Errors
    /// When the file cannot be read, or anything in it is not understood or impossible.
    pub fn read(file: &Path) -> Result<Self, ScenarioError> {
        let text = std::fs::read_to_string(file).map_err(|error| ScenarioError {
            file: Some(file.to_owned()),
            place: Place::File,
            key: String::new(),
            message: format!("cannot be read ({error}); name a scenario file (TOML)"),
        })?;
        Scenario::written(text, Some(file.to_owned()), vec![])
    }

    /// Validates a scenario given as text.
    ///
    /// # Errors
    /// When anything in it is not understood or impossible.
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        Scenario::written(text.into(), None, vec![])
    }

    /// Validates a scenario given as the text of `file`, which is not read, with all `settings` (see
    /// [`Scenario::with`]) at once.
    ///
    /// # Errors
    /// When anything in it is not understood or impossible.
    pub fn written(
        text: String,
        file: Option<PathBuf>,
        settings: Vec<(String, String)>,
    ) -> Result<Self, ScenarioError> {
        Scenario {
            text,
            file,
            settings,
            points: vec![],
            checks: vec![],
            page: None,
        }
        .validated()
    }

    /// The same scenario with `key` set to `value`, as if `[sweep]` held it as a list: one value fixes the key, a
    /// TOML list varies it. A value that is not TOML is taken as a string, so `udp` and `10 Mbit/s` need no quotes.
    ///
    /// # Errors
    /// When there is no such key, or the value is not allowed there.
    pub fn with(self, key: &str, value: &str) -> Result<Self, ScenarioError> {
        self.with_all([(key.into(), value.into())])
    }

    /// The same for several keys, which may be possible only together.
    ///
    /// # Errors
    /// As for one.
    pub fn with_all(
        mut self,
        settings: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, ScenarioError> {
        for (key, value) in settings {
            self.settings.retain(|(known, _)| *known != key);
            self.settings.push((key, value));
        }
        self.validated()
    }

    /// The same scenario with the flow called `flow` made of `composition` at every point, whatever the file says: so
    /// algorithms from outside, which have no name in a file, are simulated. Settings that follow take it back.
    ///
    /// # Errors
    /// When there is no such flow, it is not ResTP's, or its paths or its traffic do not suit the composition.
    pub fn composed(mut self, flow: &str, composition: &ValidComposition) -> Result<Self, ScenarioError> {
        let refused = |message: String| ScenarioError {
            file: None,
            place: Place::Setting("composition".into()),
            key: format!("flow.{flow}"),
            message,
        };
        for point in &mut self.points {
            let flows = &mut point.plan.flows;
            let Some(plan) = flows.iter_mut().find(|plan| plan.name == flow) else {
                let known = flows.iter().map(|plan| plan.name.as_str());
                return Err(refused(unknown("flow", flow, known)));
            };
            let changed = plan.transport.clone().recomposed(composition.clone());
            plan.transport = changed.map_err(|error| refused(error.message))?;
            check_count(plan.paths.len(), &plan.transport).map_err(refused)?;
        }
        Ok(self)
    }

    /// Short name.
    pub fn id(&self) -> &str {
        self.points.first().map_or("", |point| &point.plan.id)
    }

    /// One line about the scenario.
    pub fn title(&self) -> &str {
        self.points.first().map_or("", |point| &point.plan.title)
    }

    /// The points of the sweep, the last axis written varying fastest; one point without a sweep.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// The claims to hold the results against.
    pub fn checks(&self) -> &[Check] {
        &self.checks
    }

    /// What is written about it beside its numbers, if anything is.
    pub fn page(&self) -> Option<&Page> {
        self.page.as_ref()
    }

    fn validated(mut self) -> Result<Self, ScenarioError> {
        let source = Source {
            text: &self.text,
            settings: &self.settings,
        };
        let dir = self
            .file
            .as_deref()
            .and_then(Path::parent)
            .unwrap_or(Path::new(""));
        let read = points(source, dir).and_then(|(points, axes)| {
            let document = source.parse()?;
            let checks = document
                .read::<Checks>()
                .and_then(|checks| Check::all(checks.check, &axes, &points, self.settings.is_empty()));
            let page = document.read::<Pages>().and_then(|pages| {
                let page = pages.page.map(|page| Page::new(page, &axes, &points[0].plan));
                page.transpose()
            });
            checks
                .and_then(|checks| Ok((points, checks, page?)))
                .map_err(|fault| document.explain(fault))
        });
        match read {
            Ok((points, checks, page)) => Ok(Scenario {
                points,
                checks,
                page,
                ..self
            }),
            Err(mut error) => {
                error.file = self.file.take();
                Err(error)
            }
        }
    }
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
    let points = scenario.points();
    let jobs = jobs(points, options)?;
    let (mut runs, mut judged): (Vec<RunResult>, Vec<RunResult>) = (Vec::new(), Vec::new());
    let mut done = 0;
    let work = |index: usize| replicate(points, jobs[index], options);
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
