//! How the services of a flow changed while it ran.

use restp_base::observe::Changed;
use restp_base::time::Time;
use serde::Serialize;

/// One service that is not what it was.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChangeResult {
    /// Since when, in seconds of the run.
    pub at_s: f64,
    /// At which end: `opener` or `server`.
    pub end: &'static str,
    /// Which: the key of a composition, or `mode` for what a controller makes of the path.
    pub key: &'static str,
    /// What it was.
    pub from: String,
    /// What it is, or what was wanted where it was refused.
    pub to: String,
    /// Who wanted it, in the word of [`restp_base::observe::Why::name`].
    pub why: &'static str,
}

impl ChangeResult {
    /// What the `opener` of a flow and its `server` noted, in the order of time.
    pub(super) fn of(opener: &[Changed], server: &[Changed]) -> Vec<Self> {
        let ends = [("opener", opener), ("server", server)];
        let all = ends
            .iter()
            .flat_map(|(end, changes)| changes.iter().map(|changed| Self::at(end, changed)));
        let mut all: Vec<_> = all.collect();
        all.sort_by(|one, other| one.at_s.total_cmp(&other.at_s));
        all
    }

    fn at(end: &'static str, changed: &Changed) -> Self {
        ChangeResult {
            end,
            at_s: changed.at.since(Time::ZERO).as_secs_f64(),
            key: changed.key,
            from: changed.from.clone(),
            to: changed.to.clone(),
            why: changed.why.name(),
        }
    }
}
