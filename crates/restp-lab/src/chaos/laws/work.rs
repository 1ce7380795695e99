//! What strangers can make a seal do: handshakes for addresses that prove nothing come at a bounded rate, one datagram is
//! computed with once, sessions and unfinished handshakes are counted, and nobody but the peer says that it has forgotten one.

use super::evidence::{Evidence, Fault};
use crate::chaos::seat::{HALF_OPEN, SESSIONS};
use crate::chaos::trace::What;

pub fn check(evidence: &Evidence<'_>) -> Result<(), Fault> {
    let Some(seal) = &evidence.case.seal else {
        return Ok(());
    };
    for (index, record) in evidence.trace.records.iter().enumerate() {
        let What::Worked(work) = record.what else {
            continue;
        };
        // Its clock may be ahead of the world's.
        let jumps = evidence
            .trace
            .records
            .iter()
            .filter_map(|record| match record.what {
                What::Jumped { by, .. } => Some(by),
                _ => None,
            });
        let life = jumps.fold(work.life, |sum, by| sum + by);
        // Requests of two kinds, each with a second at once.
        let rate = 2 * u64::from(seal.unproved_per_second);
        let bounds = [
            (
                work.unproved,
                rate * (life.as_nanos() / 1_000_000_000 + 2),
                "handshakes for unproved addresses",
            ),
            (work.computed, work.requests, "handshakes"),
            (
                work.tried,
                work.packets + work.requests,
                "packets and requests opened",
            ),
            (work.forgotten, work.resets, "sessions taken for forgotten"),
            (work.half_open as u64, HALF_OPEN as u64, "unfinished handshakes"),
            (work.sessions as u64, (SESSIONS + HALF_OPEN) as u64, "sessions"),
        ];
        if let Some((number, bound, of)) = bounds.into_iter().find(|(number, bound, _)| number > bound) {
            return Err(Fault::at(
                index,
                format!("{number} {of} where {bound} are explained"),
            ));
        }
    }
    Ok(())
}
