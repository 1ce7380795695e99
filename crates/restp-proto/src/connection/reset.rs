//! Resets, where the two ends disagree about what there is between their ports: a host that has started again, corrections
//! (RFC 9293 §3.5.1, §3.10.7; RFC 5961).

use super::{Connection, DssUpdate, State};
use crate::wire::{Flags, Header};
use restp_base::flow::CloseReason;
use restp_base::sequence;
use restp_base::time::{Duration, Time};
use restp_services::connection_management::{EARLY_SEGMENTS, Establishment};

/// Least distance between two corrections of a peer that believes what cannot be.
const CORRECTION_INTERVAL: Duration = Duration::from_millis(200);

impl Connection {
    /// Our SYN is out and this packet answers something else: the peer still has an association of these ports
    /// that this side knows nothing of, because it has started again (RFC 9293 §3.5.1, half-open).
    pub(crate) fn finds_half_open(&self, header: &Header) -> bool {
        if !matches!(self.state, State::SynSent(_)) || header.flags.has(Flags::RST) {
            return false;
        }
        match header.acknowledgement {
            Some(number) => !self.is_ours(number),
            // Without numbers nothing but the answer to a SYN comes first; early data may overtake that.
            None => {
                let first = self.composition.establishment == Establishment::ThreeWay
                    && !self.services_are_numbered();
                let others = !self.services.agree(&header.services) && !self.declines_paths(header);
                (first || others) && !header.flags.has(Flags::SYN)
            }
        }
    }

    /// Between the same ports its peer asks for other services (RFC 9293 §3.10.7.4).
    pub(super) fn on_other_request(&mut self, now: Time, header: &Header) {
        match self.state {
            // This request was another's, or was changed on its way. A retransmission of the new one finds nothing here.
            State::SynReceived(_) if !self.fell_back_from(header) => {
                self.end(CloseReason::Reset, State::Closed)
            }
            // Nobody refuses what a connectionless one answers, and it stands for nothing that a word could tear down.
            State::Established if self.composition.establishment == Establishment::Connectionless => {
                self.end(CloseReason::Reset, State::Closed);
            }
            // Its peer has started again, or somebody pretends that: who did start again refuses the answer.
            State::Established => self.correct(now),
            _ => {}
        }
    }

    /// A request for several paths that this connection answers as one, three-way, is here once more: with data now, or late.
    fn fell_back_from(&self, header: &Header) -> bool {
        header.services.multipath() && self.services.agree(&header.services.on_one_path())
    }

    /// RST counts when its numbers lie within our windows: an attacker would have to guess both. Returns what it says to an
    /// association.
    pub(super) fn on_reset(&mut self, now: Time, header: &Header) -> DssUpdate {
        let (first, next) = (self.sender.first(), self.sender.next_number());
        let acknowledges = |lowest: u64| {
            header
                .acknowledgement
                .is_some_and(|n| (lowest..=next).contains(&sequence::expand(first, n)))
        };
        let credible = match (&self.state, self.receiver.next()) {
            (State::SynSent(_), _) => acknowledges(first) || !self.services_are_numbered(),
            // The peer may break off before it has heard a number of ours (RFC 9293 §3.10.7.4). It stands behind its early
            // data, of which some may be lost; few enough numbers for nobody to guess (RFC 5961 §3.2).
            (State::SynReceived(_), Some(expected)) if header.acknowledgement.is_none() => {
                let number = header.sequence.map(|n| sequence::expand(expected, n));
                number.is_some_and(|n| (expected..=expected + EARLY_SEGMENTS).contains(&n))
            }
            (_, Some(expected)) => {
                let edge = self.receiver.edge();
                let number = header.sequence.map(|n| sequence::expand(expected, n));
                number.is_some_and(|n| (expected..=edge).contains(&n))
                    && (acknowledges(first) || !self.has_feedback())
            }
            (_, None) => {
                // Nobody sends one where there is no connection to break off.
                !self.services_are_numbered()
                    && self.composition.establishment != Establishment::Connectionless
            }
        };
        if matches!(self.state, State::TimeWait { .. }) {
            self.counters.rejected_packets += 1; // an old retransmission could cut the wait short (RFC 1337 §3)
        } else if self.state.is_over() && credible {
            self.close(); // it was not waiting for us any more
        } else if credible {
            // Of paths that are dialled side by side each may have met an association of its own at the peer: what the refusal of one
            // acknowledges of its early data is not had by the one that answers another.
            if matches!(self.state, State::SynSent(_)) {
                self.end(CloseReason::Refused, State::Closed);
                return DssUpdate::default();
            }
            self.end(CloseReason::Reset, State::Closed);
            return DssUpdate::last(header);
        } else {
            self.refuse(now);
        }
        DssUpdate::default()
    }

    /// A packet that cannot be from where the peer stands: it hears where we stand, but seldom, because two ends
    /// that disagree would answer each other for ever (RFC 5961 §7).
    pub(super) fn refuse(&mut self, now: Time) {
        self.counters.rejected_packets += 1;
        self.correct(now);
    }

    pub(super) fn correct(&mut self, now: Time) {
        if now >= self.correct_from {
            self.correct_from = now + CORRECTION_INTERVAL;
            self.answer_here();
        }
    }
}
