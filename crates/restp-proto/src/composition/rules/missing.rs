//! Parts that have a name and a header code but do not exist yet. A row goes when its part comes.

use super::{Rule, Verdict};
use restp_services::path_management::PathMode;

pub(super) static RULES: &[Rule] = &[Rule {
    id: "no-multipath",
    verdict: Verdict::NotBuilt,
    source: "ResTP §3.3",
    about: &["paths", "scheduling"],
    reason: "several paths for one connection are not built yet",
    instead: &[("paths", "single"), ("scheduling", "none")],
    broken: |c| c.paths != PathMode::Single,
}];
