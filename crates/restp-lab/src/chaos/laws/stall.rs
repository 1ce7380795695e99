//! Never a stall while one path is whole: data that was written, and that a reader who reads has not got, moves within
//! the time that a failure takes to notice and repair.
//!
//! The bound follows from the numbers of the case. A path that dies is noticed after two timeouts (OP-54), the second
//! of which is twice as long, and the timer that runs may have been set behind full queues; before that a path that has
//! come back joins anew before its own time-out. What is retransmitted on the whole path may be lost in its queue and
//! retransmitted there, thrice as long each time. Every wait is counted once, at its longest.

use super::evidence::{Evidence, Fault};
use crate::chaos::trace::What;
use crate::chaos::{Side, liveness};
use restp_base::time::Time;
use std::collections::BTreeMap;

/// One end that reads.
#[derive(Clone, Copy, Default)]
struct Reader {
    written: u64,
    read: u64,
    /// When it last read, or the wait began.
    since: Time,
    over: bool,
}

pub fn check(evidence: &Evidence<'_>) -> Result<(), Fault> {
    let (case, trace) = (evidence.case, evidence.trace);
    if !evidence.several_paths() {
        return Ok(()); // its only path is whole when everything is: the law of progress
    }
    let gives_up = |side: &Side| liveness::may_give_up(case, *side, evidence.composition(*side));
    if Side::BOTH.iter().any(gives_up) {
        return Ok(()); // a set-up that gives up within a round trip never joins
    }
    let bound = liveness::stall(case, &evidence.compositions);
    let mut readers: BTreeMap<usize, Reader> = BTreeMap::new();
    for (index, record) in trace.records.iter().enumerate() {
        let now = record.at;
        for (end, reader) in &mut readers {
            let side = trace.ends[*end].side;
            let since = reader.since.max(liveness::undisturbed_since(case, side, now));
            if !reader.over && reader.read < reader.written && now.since(since) > bound && now > since {
                let waits = reader.written - reader.read;
                let what = format!(
                    "{side} waits for {waits} bytes since {:.3} s although a path is whole; {bound} are explained",
                    since.as_secs_f64()
                );
                return Err(Fault::at(index, what));
            }
        }
        match &record.what {
            What::Began { end } => {
                readers.insert(
                    *end,
                    Reader {
                        since: now,
                        over: trace.ends[*end].again,
                        ..Reader::default()
                    },
                );
                // Both ends know of the conversation from here on.
                if let Some(reader) = trace.counterpart(*end).and_then(|other| readers.get_mut(&other)) {
                    reader.since = now;
                }
            }
            What::Wrote { end, data } => {
                if let Some(reader) = counterpart(evidence, *end, &mut readers) {
                    if reader.read == reader.written {
                        reader.since = now;
                    }
                    reader.written += data.len() as u64;
                }
            }
            What::Read { end, data } => {
                if let Some(reader) = readers.get_mut(end) {
                    reader.read += data.len() as u64;
                    reader.since = now;
                }
            }
            What::Closed { end, .. } | What::Aborted { end } => {
                let of = trace.ends[*end].conversation;
                over(&mut readers, |end| trace.ends[end].conversation == of);
            }
            // What a machine has forgotten nobody gets.
            What::Restarted { .. } => over(&mut readers, |_| true),
            What::Jumped { .. } => readers.values_mut().for_each(|reader| reader.since = now),
            _ => {}
        }
    }
    Ok(())
}

fn over(readers: &mut BTreeMap<usize, Reader>, which: impl Fn(usize) -> bool) {
    let ended = readers.iter_mut().filter(|(end, _)| which(**end));
    ended.for_each(|(_, reader)| reader.over = true);
}

/// The reader of what `end` writes.
fn counterpart<'r>(
    evidence: &Evidence<'_>,
    end: usize,
    readers: &'r mut BTreeMap<usize, Reader>,
) -> Option<&'r mut Reader> {
    readers.get_mut(&evidence.trace.counterpart(end)?)
}
