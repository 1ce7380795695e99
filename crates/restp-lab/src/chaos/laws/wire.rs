//! Every packet sent parses, is emitted again to the same bytes, and is no larger than its segment allows.

use super::evidence::{Evidence, Fault};
use crate::chaos::trace::What;
use restp_base::machine::Head;
use restp_proto::wire::{Header, Tail};

/// A question how large a packet a path carries stands for a segment with its mapping, and has none itself.
const MAPPING_BYTES: usize = 20;
/// An answer to it has two bytes, however small segments are.
const ANSWER_BYTES: usize = 2;
/// So has a message about eras sixteen.
const ERA_MESSAGE_BYTES: usize = 16;

pub fn check(evidence: &Evidence<'_>) -> Result<(), Fault> {
    for (index, record) in evidence.trace.records.iter().enumerate() {
        let What::Sent { from, datagram, .. } = &record.what else {
            continue;
        };
        let bytes = datagram.to_vec();
        let (header, length) = Header::parse(&bytes, bytes.len())
            .map_err(|error| Fault::at(index, format!("what {from} sends is no PDU: {error}")))?;
        let mut again = Head::new();
        header
            .emit(&bytes[length..], &mut again)
            .map_err(|error| Fault::at(index, format!("what {from} sends cannot be said again: {error}")))?;
        if again[..] != bytes[..length] {
            return Err(Fault::at(index, format!("what {from} sends is said in two ways")));
        }
        let mut segment = evidence.composition(*from).segment_bytes as usize;
        if header.probe {
            let mapping = if evidence.several_paths() {
                MAPPING_BYTES
            } else {
                0
            };
            segment = (segment + mapping).max(ANSWER_BYTES);
        }
        if header.about_eras {
            segment = segment.max(ERA_MESSAGE_BYTES);
        }
        let payload = bytes.len() - length;
        if payload > segment {
            let what = format!("{from} sends {payload} bytes in a segment of {segment}");
            return Err(Fault::at(index, what));
        }
        if payload > 0 && bytes.len() > segment + plain_length(&header, length) {
            let what = format!(
                "{from} sends {} bytes where a full segment takes {}",
                bytes.len(),
                segment + plain_length(&header, length)
            );
            return Err(Fault::at(index, what));
        }
    }
    Ok(())
}

/// Bytes of the header without blocks and holes, which ride only where the payload leaves room. A cookie must ride.
fn plain_length(header: &Header, length: usize) -> usize {
    let plain = match header.tail {
        Tail::None | Tail::Cookie(_) => return length,
        Tail::Sack(_) | Tail::Snack(_) => Header {
            tail: Tail::None,
            ..header.clone()
        },
    };
    plain.words(true).map_or(length, |words| 4 * words)
}
