//! `[measure]` and `[[group]]`, validated: which part of a run counts, and which flows are looked at together.

use super::flow::FlowPlan;
use super::raw::{Each, RawGroup, RawMeasure};
use crate::unknown::unknown;
use restp_base::time::{Duration, Time};
use restp_base::units;
use restp_sim::config::{Fault, read};
use std::ops::Range;

/// Flows that are looked at together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupPlan {
    /// Its name in results.
    pub name: String,
    /// The flows, by their places in the plan and in that order.
    pub flows: Vec<usize>,
    /// What is compared with what.
    pub each: Each,
}

/// The part of a run of this duration that counts; all of it when nothing is said.
pub(super) fn window(raw: Option<&RawMeasure>, duration: Duration) -> Result<Range<Time>, Fault> {
    let (from, to) = raw.map_or((None, None), |raw| (raw.from.as_ref(), raw.to.as_ref()));
    let start = from.map_or(Ok(Duration::ZERO), |from| read(from, units::duration))?;
    let end = to.map_or(Ok(duration), |to| read(to, units::duration))?;
    let refused = |sentence: String| match from.filter(|_| end <= duration).or(to).or(from) {
        Some(place) => Err(Fault::at(place, sentence)),
        None => Err(Fault {
            span: 0..0,
            message: sentence,
        }),
    };
    if end > duration {
        return refused(format!(
            "the run ends at {duration}, before {end}; measure to its end at most"
        ));
    }
    if start >= end {
        return refused(format!(
            "nothing lies between {start} and {end}; write the earlier time as from"
        ));
    }
    Ok(Time::ZERO + start..Time::ZERO + end)
}

/// The groups of these flows.
pub(super) fn groups(raw: &[RawGroup], flows: &[FlowPlan]) -> Result<Vec<GroupPlan>, Fault> {
    let mut all: Vec<GroupPlan> = Vec::new();
    for group in raw {
        let name = group.name.get_ref();
        if name.is_empty() || all.iter().any(|other| other.name == *name) {
            let sentence =
                format!("\"{name}\" is no name for a group, or that of another; give each its own");
            return Err(Fault::at(&group.name, sentence));
        }
        let mut members = vec![false; flows.len()];
        for written in group.flows.get_ref() {
            let pattern = written.get_ref();
            let matches = |flow: &FlowPlan| match pattern.strip_suffix('*') {
                Some(beginning) => flow.name.starts_with(beginning),
                None => flow.name == *pattern,
            };
            members
                .iter_mut()
                .zip(flows)
                .for_each(|(member, flow)| *member |= matches(flow));
            if !flows.iter().any(matches) {
                let names = flows.iter().map(|flow| flow.name.as_str());
                return Err(Fault::at(written, unknown("flow", pattern, names)));
            }
        }
        let members = members.iter().enumerate().filter(|(_, member)| **member);
        let members: Vec<usize> = members.map(|(index, _)| index).collect();
        if members.is_empty() {
            return Err(Fault::at(
                &group.flows,
                "a group without flows measures nothing; name one, or write \"*\"",
            ));
        }
        all.push(GroupPlan {
            name: name.clone(),
            flows: members,
            each: group.each,
        });
    }
    Ok(all)
}
