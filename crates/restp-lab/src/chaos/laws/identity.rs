//! Who is told to be at the other end is there: his are the bytes that are read, and where a key is expected it is his.

use super::evidence::{Evidence, Fault};
use crate::chaos::trace::What;
use crate::chaos::{LIE, Party};

pub fn check(evidence: &Evidence<'_>) -> Result<(), Fault> {
    let trace = evidence.trace;
    for (index, record) in trace.records.iter().enumerate() {
        match &record.what {
            What::Told { end, party } => {
                let side = trace.ends[*end].side;
                if *party != Party::Side(side.other()) {
                    let what = format!(
                        "{side} is told that it talks to somebody else than {}",
                        side.other()
                    );
                    return Err(Fault::at(index, what));
                }
            }
            What::Guest { told, data }
                if !matches!(told, None | Some(Party::Liar)) || data.iter().any(|byte| *byte != LIE) =>
            {
                let what =
                    "the server takes a guest for somebody else, or reads from him what he did not say";
                return Err(Fault::at(index, what));
            }
            _ => {}
        }
    }
    Ok(())
}
