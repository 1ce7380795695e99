//! With full reliability, what finished at both ends was read to the last byte.

use super::evidence::{Evidence, Fault};
use crate::chaos::Side;
use bytes::Bytes;
use restp_base::flow::CloseReason;

pub fn check(evidence: &Evidence<'_>) -> Result<(), Fault> {
    if !evidence.composition(Side::Client).reliability.is_full() {
        return Ok(());
    }
    let trace = evidence.trace;
    for (reader, end) in trace.ends.iter().enumerate() {
        let Some(writer) = trace.counterpart(reader) else {
            continue;
        };
        let finished = |end| trace.closed(end) == Some(&CloseReason::Finished);
        if end.again || trace.forgot(reader) || !finished(reader) || !finished(writer) {
            continue;
        }
        let read: usize = trace.read(reader).map(Bytes::len).sum();
        let written: usize = trace.written(writer).map(Bytes::len).sum();
        if read != written {
            let what = format!(
                "{} read {read} of {written} bytes, and both ends finished",
                end.side
            );
            return Err(Fault::whole(what));
        }
    }
    Ok(())
}
