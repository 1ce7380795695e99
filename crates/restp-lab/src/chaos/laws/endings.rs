//! Every flow ends once, finished unless a fault explains another reason; nothing is read after the end.

use super::evidence::{Evidence, Fault};
use crate::chaos::liveness;
use crate::chaos::trace::{End, What};
use restp_base::flow::CloseReason;
use std::collections::BTreeSet;

pub fn check(evidence: &Evidence<'_>) -> Result<(), Fault> {
    let trace = evidence.trace;
    let (mut open, mut over, mut ended) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for (index, record) in trace.records.iter().enumerate() {
        match &record.what {
            What::Began { end } => drop(open.insert(*end)),
            What::Restarted { side } => open.retain(|end: &usize| trace.ends[*end].side != *side),
            What::Closed { end, reason } => {
                let side = trace.ends[*end].side;
                open.remove(end);
                if !over.insert(*end) {
                    return Err(Fault::at(
                        index,
                        format!("{side} is told twice that its flow is over"),
                    ));
                }
                if !is_explained(evidence, *end, reason) {
                    return Err(Fault::at(
                        index,
                        format!("{side} is told \"{reason}\", which nothing explains"),
                    ));
                }
            }
            What::ReadEnd { end } => drop(ended.insert(*end)),
            What::Read { end, .. } if ended.contains(end) => {
                let side = trace.ends[*end].side;
                return Err(Fault::at(index, format!("{side} reads after the end")));
            }
            What::Unexpected { side, what } => return Err(Fault::at(index, format!("{side}: {what}"))),
            _ => {}
        }
    }
    match open.first() {
        None => Ok(()),
        Some(end) => {
            let End {
                side, conversation, ..
            } = trace.ends[*end];
            let last = trace.records.len() - 1;
            Err(Fault::at(
                last,
                format!("conversation {conversation} of {side} never ended"),
            ))
        }
    }
}

/// Does the case explain why a flow ended like this?
fn is_explained(evidence: &Evidence<'_>, end: usize, reason: &CloseReason) -> bool {
    let trace = evidence.trace;
    let End {
        side,
        conversation,
        again,
    } = trace.ends[end];
    let broken_off = |of: Option<usize>| {
        trace.records.iter().any(|record| match record.what {
            What::Aborted { end } => {
                trace.ends[end].conversation == conversation && of.is_none_or(|of| of == end)
            }
            _ => false,
        })
    };
    let gives_up = |side| liveness::may_give_up(evidence.case, side, evidence.composition(side));
    let reliable = evidence.composition(side).reliability.repeats();
    match reason {
        CloseReason::Finished => true,
        CloseReason::Aborted => broken_off(Some(end)),
        // One side gives up and says so, or says so in vain.
        CloseReason::TimedOut(_) | CloseReason::Reset | CloseReason::Refused => {
            again
                || broken_off(None)
                || trace.broken(conversation)
                || gives_up(side)
                || gives_up(side.other())
                // Without repeats the end of one side may be lost, and the other learns that nobody is there.
                || (!reliable && *reason == CloseReason::Reset)
        }
    }
}
