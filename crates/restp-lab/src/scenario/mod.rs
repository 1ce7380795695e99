//! Scenario files: from the text as written to validated points.
//!
//! ```text
//! text ─► document (values with their places) ─► sweep: one document per point ─► raw ─► plan
//! ```

mod change;
mod document;
mod error;
mod flow;
mod host;
mod link;
mod map;
mod measure;
mod medium;
mod names;
mod path;
mod plan;
mod profiles;
mod raw;
mod sweep;
#[cfg(test)]
mod tests;
mod traffic;
mod transport;

pub use change::ChangePlan;
pub(crate) use error::unknown;
pub use error::{Place, ScenarioError};
pub use flow::FlowPlan;
pub use host::{HostPlan, HostRole};
pub use measure::GroupPlan;
pub use path::PathPlan;
pub use plan::Plan;
pub(crate) use restp_sim::config::Fault;
pub(crate) use sweep::Axes;
pub use sweep::{Coordinates, Point};

use crate::checker::Check;
use crate::page::Page;
use document::Source;
use restp_proto::composition::ValidComposition;
use std::path::{Path, PathBuf};

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
    pub fn with(mut self, key: &str, value: &str) -> Result<Self, ScenarioError> {
        self.settings.retain(|(known, _)| known != key);
        self.settings.push((key.into(), value.into()));
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
            path::check_count(plan.paths.len(), &plan.transport).map_err(refused)?;
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
        let read = sweep::points(source, dir).and_then(|(points, axes)| {
            let document = source.parse()?;
            let checks = document
                .checks()
                .and_then(|checks| Check::all(checks, &axes, &points[0].plan));
            let page = document.page().and_then(|page| {
                page.map(|page| Page::new(page, &axes, &points[0].plan))
                    .transpose()
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
