//! `[[flow.change]]`, validated: services that the opener of a flow asks for while it runs (ResTP §21, ADR 0007).

use super::raw::RawFlow;
use crate::registry::{Transport, text_of};
use restp_base::time::Duration;
use restp_base::units;
use restp_sim::config::{Fault, read};

/// What is asked for, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangePlan {
    /// From the beginning of the run.
    pub at: Duration,
    /// Keys of a composition with their values.
    pub set: Vec<(String, String)>,
}

/// Those of a flow over `transport` that is `opened` at this time at the latest, in the order of time. Each is asked for on top of the ones before.
pub(super) fn changes(
    raw: &RawFlow,
    transport: &Transport,
    (opened, duration): (Duration, Duration),
) -> Result<Vec<ChangePlan>, Fault> {
    let mut changes = Vec::new();
    for change in &raw.change {
        let at = read(&change.at, units::duration)?;
        if at >= duration {
            let sentence = "a change at the end of the run or later changes nothing; write an earlier time";
            return Err(Fault::at(&change.at, sentence));
        }
        if at <= opened {
            let sentence =
                "the flow is opened then, or later, and only what runs can change; write a later time";
            return Err(Fault::at(&change.at, sentence));
        }
        let mut set = Vec::new();
        for (key, value) in &change.set {
            let text = text_of(value.get_ref());
            let sentence = || format!("\"{key}\" takes one value, such as \"bic\" or 10");
            set.push((key.clone(), text.ok_or_else(|| Fault::at(value, sentence()))?));
        }
        if set.is_empty() {
            let sentence =
                "nothing is changed; write set = { congestion = \"newreno\" }, or any other service";
            return Err(Fault::at(&change.at, sentence));
        }
        changes.push((&change.at, &change.set, ChangePlan { at, set }));
    }
    changes.sort_by_key(|(_, _, change)| change.at);
    let mut now = transport.clone();
    for (place, written, change) in &changes {
        let key_at = |key: &str| {
            let own = written.iter().find(|(own, _)| own.replace('_', "-") == key);
            own.map(|(_, value)| value)
        };
        now = now
            .reconfigured(&change.set)
            .map_err(|error| match error.key.as_deref().and_then(key_at) {
                Some(value) => Fault::at(value, error),
                None => Fault::at(place, error),
            })?;
    }
    Ok(changes.into_iter().map(|(_, _, change)| change).collect())
}
