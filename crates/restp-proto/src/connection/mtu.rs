//! Questions to a path, how large a packet it carries, and answers to those of the peer (RFC 8899 §4.1). Both look like
//! retransmissions of what the other end has long had, so that one that knows nothing of them drops and acknowledges them.

use super::{Connection, pdu_builder as pdu};
use bytes::Bytes;
use restp_base::machine::Datagram;
use restp_base::sequence;
use restp_base::time::Time;

/// A data packet of several paths has a mapping that a question has not: five words (ResTP §3.1.13).
const MAPPING_BYTES: usize = 20;
/// An answer says how long the payload was that it answers.
const ANSWER_BYTES: usize = 2;

impl Connection {
    /// Asks whether the path carries segments of `bytes`.
    pub(super) fn send_mtu_probe(&mut self, now: Time, bytes: u32, out: &mut Datagram) -> bool {
        let length = bytes as usize + self.mapping_bytes();
        self.sender.on_mtu_probe(now, bytes, length as u64);
        pdu::probe(self, out, Bytes::from(vec![0; length]))
    }

    /// The length that an answer is to name now.
    pub(super) fn take_mtu_answer(&mut self) -> Option<u16> {
        self.mtu_answer.take()
    }

    /// A question is answered, an answer is taken; neither is data. A packet number seen for the first
    /// time here must be forged: genuine ones are retransmissions.
    pub(super) fn on_mtu_probe(&mut self, now: Time, number: Option<u32>, payload: &Bytes) {
        let retransmits = |number| {
            let next = self.receiver.next()?;
            (sequence::expand(next, number) < next).then_some(())
        };
        if number.and_then(retransmits).is_none() {
            self.counters.rejected_packets += 1;
            return;
        }
        let Ok(answer) = <[u8; ANSWER_BYTES]>::try_from(&payload[..]) else {
            self.mtu_answer = u16::try_from(payload.len()).ok();
            return;
        };
        let bytes = usize::from(u16::from_be_bytes(answer)).saturating_sub(self.mapping_bytes());
        self.sender.on_mtu_answer(now, bytes as u32);
    }

    fn mapping_bytes(&self) -> usize {
        if self.numbers_data() { 0 } else { MAPPING_BYTES }
    }
}
