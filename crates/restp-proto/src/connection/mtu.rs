//! Questions to a path, how large a packet it carries, and answers to those of the peer (RFC 8899 §4.1). Both look like
//! repeats of what the other end has long had, so that one that knows nothing of them drops and acknowledges them.

use super::{Connection, pdu_builder as pdu};
use bytes::Bytes;
use restp_base::machine::Datagram;
use restp_base::sequence;
use restp_base::time::Time;
use restp_services::path_management::PathMtu;

/// A data packet of several paths has a mapping that a question has not: five words (ResTP §3.1.13).
const MAPPING_BYTES: usize = 20;
/// An answer says how long the payload was that it answers.
const ANSWER_BYTES: usize = 2;

impl Connection {
    /// What is known of the path at first. Who gets no feedback cannot ask.
    pub(super) fn path_mtu(&self) -> PathMtu {
        let wanted = self.composition.segment_bytes;
        if self.composition.mtu_discovery && self.services_are_numbered() && self.has_feedback() {
            PathMtu::unknown(wanted)
        } else {
            PathMtu::known(wanted)
        }
    }

    /// Most payload bytes of a segment on this path.
    pub(super) fn payload_bytes(&self) -> usize {
        self.composition.payload_bytes_of(self.path.mtu.segment_bytes())
    }

    /// As one of several paths: what a segment may have that leaves here now, and one that may have to.
    pub(crate) fn largest_segment_bytes(&self) -> u32 {
        self.path.mtu.segment_bytes()
    }
    pub(crate) fn expected_segment_bytes(&self) -> u32 {
        self.path.mtu.expected_bytes()
    }

    /// An answer that is owed, or a question that is due.
    pub(super) fn send_mtu_probe(&mut self, now: Time, out: &mut Datagram) -> bool {
        if let Some(length) = self.mtu_answer.take() {
            return pdu::probe(self, out, Bytes::copy_from_slice(&length.to_be_bytes()));
        }
        let Some(bytes) = self.path.mtu.question(now) else {
            return false;
        };
        let patience = self.path.rto.value(&self.path.rtt);
        self.path.mtu.on_asked(now, bytes, patience);
        let length = bytes as usize + self.mapping_bytes();
        self.pace(now, length as u64);
        pdu::probe(self, out, Bytes::from(vec![0; length]))
    }

    /// A question is answered, an answer is taken; neither is data. One that is no repeat by its number is a forgery.
    pub(super) fn on_mtu_probe(&mut self, now: Time, number: Option<u32>, payload: &Bytes) {
        let repeats = |number| {
            let next = self.inn.reassembly.as_ref().map(|reassembly| reassembly.next())?;
            (sequence::expand(next, number) < next).then_some(())
        };
        if number.and_then(repeats).is_none() {
            self.counters.rejected_packets += 1;
            return;
        }
        let Ok(answer) = <[u8; ANSWER_BYTES]>::try_from(&payload[..]) else {
            self.mtu_answer = u16::try_from(payload.len()).ok();
            return;
        };
        let bytes = usize::from(u16::from_be_bytes(answer)).saturating_sub(self.mapping_bytes());
        if self.path.mtu.on_answer(now, bytes as u32) {
            self.on_link_up(now); // the path works: what is outstanding is repeated, in pieces where it is too large
        }
    }

    fn mapping_bytes(&self) -> usize {
        if self.subflow.is_some() { MAPPING_BYTES } else { 0 }
    }
}
