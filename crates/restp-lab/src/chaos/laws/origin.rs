//! A seal hands up what its peer has sealed, and nothing else; what ends a flow was sent by the other end of it, as long as that
//! is there: a path that a copy has opened may be the last one of a flow that its peer has left.

use super::evidence::{Evidence, Fault};
use crate::chaos::trace::What;
use crate::chaos::{Party, Side};

pub fn check(evidence: &Evidence<'_>) -> Result<(), Fault> {
    let trace = evidence.trace;
    let first_use = evidence.case.seal.as_ref().is_some_and(|seal| !seal.pinned);
    for (index, record) in trace.records.iter().enumerate() {
        match record.what {
            // Whoever has a key is served, and may say what he likes in flows of his own.
            What::Strange {
                to: Side::Server,
                party: Some(Party::Liar),
                ..
            } => {}
            // Whoever meets the server for the first time, or says so, may have invented all of his request.
            What::Strange {
                to: Side::Server,
                request: true,
                ..
            } if first_use => {}
            What::Strange { to, .. } => {
                let what = format!("the seal of {to} hands up what nobody has sealed for it");
                return Err(Fault::at(index, what));
            }
            What::EndedBy { end, party } => {
                let side = trace.ends[end].side;
                if party != Some(Party::Side(side.other())) && !trace.is_left_alone(end, index) {
                    let what = format!("what somebody else said ends a flow of {side}");
                    return Err(Fault::at(index, what));
                }
            }
            _ => {}
        }
    }
    Ok(())
}
