//! Congestion marks of the network (RFC 3168 §6.1): agreed in the SYNs, echoed until the sender says that it has reacted.

use super::Connection;
use crate::tcp::wire::{Flags, Header};
use bytes::Bytes;
use restp_base::machine::Ecn;

/// What one end knows of marks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EcnState {
    /// Both ends want them.
    agreed: bool,
    /// As receiver: a mark was seen, and the sender has not said that it reacted.
    echoes: bool,
}

/// Both bits of a SYN that asks for marks.
const ASKS: Flags = Flags(Flags::ECE.0 | Flags::CWR.0);

impl EcnState {
    /// The peer's SYN, or its answer to ours (RFC 3168 §6.1.1). A peer that reflects what it does not understand
    /// answers with both bits.
    pub(super) fn learn(&mut self, wanted: bool, flags: Flags) {
        self.agreed = wanted
            && if flags.has(Flags::ACK) {
                flags.has(Flags::ECE) && !flags.has(Flags::CWR)
            } else {
                flags.has(ASKS)
            };
    }

    /// What our SYN, or our answer, says.
    pub(super) fn greeting(self, wanted: bool, answers: bool) -> Flags {
        match (answers, wanted, self.agreed) {
            (false, true, _) => ASKS,
            (true, _, true) => Flags::ECE,
            _ => Flags::default(),
        }
    }

    /// A segment with `payload` came with this codepoint.
    pub(super) fn on_segment(&mut self, header: &Header, payload: &Bytes, ecn: Ecn) {
        if self.agreed && !payload.is_empty() {
            self.echoes &= !header.flags.has(Flags::CWR);
            self.echoes |= ecn == Ecn::Ce;
        }
    }

    /// The peer says that it saw a mark.
    pub(super) fn is_echoed(self, flags: Flags) -> bool {
        self.agreed && flags.has(Flags::ECE) && !flags.has(Flags::SYN)
    }
}

impl Connection {
    /// The codepoint and the bit of a segment that carries new data (§6.1.5: what is sent again carries none).
    pub(super) fn mark_new_data(&mut self, number: u64, header: &mut Header) -> Ecn {
        if !self.ecn.agreed {
            return Ecn::NotEct;
        }
        if self.sender.takes_window_reduced(number) {
            header.flags = header.flags | Flags::CWR;
        }
        Ecn::Ect0
    }

    /// The bit of an acknowledgement.
    pub(super) fn echo_mark(&self, header: &mut Header) {
        if self.ecn.echoes {
            header.flags = header.flags | Flags::ECE;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_that_reflects_both_bits_wants_no_marks() {
        let answer = |flags| {
            let mut state = EcnState::default();
            state.learn(true, Flags::SYN | Flags::ACK | flags);
            state.agreed
        };
        assert!(answer(Flags::ECE));
        assert!(!answer(ASKS) && !answer(Flags::CWR) && !answer(Flags::default()));
    }

    /// RFC 3168 §6.1.3: a segment may say that the window was reduced and be marked anew.
    #[test]
    fn marks_of_data_are_echoed_until_the_window_was_reduced() {
        let mut state = EcnState {
            agreed: true,
            ..EcnState::default()
        };
        let mut hear = |flags, payload: &'static [u8], ecn| {
            let header = Header {
                flags,
                ..Header::default()
            };
            state.on_segment(&header, &Bytes::from_static(payload), ecn);
            state.echoes
        };
        assert!(
            !hear(Flags::ACK, b"", Ecn::Ce),
            "pure acknowledgements cannot be marked"
        );
        assert!(hear(Flags::ACK, b"data", Ecn::Ce));
        assert!(hear(Flags::ACK, b"data", Ecn::Ect0));
        assert!(hear(Flags::ACK | Flags::CWR, b"data", Ecn::Ce));
        assert!(hear(Flags::ACK | Flags::CWR, b"", Ecn::NotEct));
        assert!(!hear(Flags::ACK | Flags::CWR, b"data", Ecn::Ect0));
    }
}
