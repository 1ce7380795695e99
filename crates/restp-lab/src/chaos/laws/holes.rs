//! Without repeats something may be missing, but not without a cause. In a run in which no packet was lost, late or
//! hit, no machine restarted, every reader read and nobody is impatient, everything written is read.

use super::evidence::{Evidence, Fault};
use crate::chaos::trace::What;
use crate::chaos::{Side, liveness};
use bytes::Bytes;
use restp_base::flow::CloseReason;

pub fn check(evidence: &Evidence<'_>) -> Result<(), Fault> {
    let (trace, case) = (evidence.trace, evidence.case);
    let lost = trace
        .records
        .iter()
        .any(|record| matches!(record.what, What::Dropped { .. }));
    let gives_up = |side: &Side| liveness::may_give_up(case, *side, evidence.composition(*side));
    let full = evidence.composition(Side::Client).reliability.is_full();
    if full || lost || !case.faults.is_empty() || Side::BOTH.iter().any(gives_up) {
        return Ok(());
    }
    for (reader, end) in trace.ends.iter().enumerate() {
        let Some(writer) = trace.counterpart(reader) else {
            continue;
        };
        let finished = |end| trace.closed(end) == Some(&CloseReason::Finished);
        if end.again || !finished(reader) || !finished(writer) {
            continue;
        }
        let read: usize = trace.read(reader).map(Bytes::len).sum();
        let written: usize = trace.written(writer).map(Bytes::len).sum();
        if read < written {
            let what = format!(
                "{} read {read} of {written} bytes, and nothing was lost",
                end.side
            );
            return Err(Fault::whole(what));
        }
    }
    Ok(())
}
