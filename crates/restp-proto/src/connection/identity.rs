//! Whose a packet is, and where its sender is now (ResTP §3.5.11; RFC 9000 §9).

use super::fec::is_encoded;
use super::packet::Packet;
use super::{Connection, State};
use crate::wire::Flags;
use restp_base::machine::PathAddress;
use restp_base::sequence;
use restp_base::time::Time;
use restp_services::connection_management::EARLY_SEGMENTS;

/// So far back may the numbers lie of a packet that was overtaken while its sender moved.
const TRAIL: u64 = 1 << 16;

impl Connection {
    /// Is `peer` the host at the other end, as a layer below tells?
    pub(crate) fn is_with(&self, peer: u128) -> bool {
        self.peer == Some(peer)
    }
    /// It goes on, with that peer or with one of whom nothing has come yet.
    pub(crate) fn may_be_with(&self, peer: u128) -> bool {
        !self.state.is_over() && self.peer.is_none_or(|own| own == peer)
    }

    /// It waits to be confirmed, and another host than `peer` has asked for it.
    pub(crate) fn is_asked_for_by_another(&self, peer: u128) -> bool {
        matches!(self.state, State::SynReceived(_)) && !self.is_with(peer)
    }

    /// A packet of this path came from another address. When its numbers prove that it is the peer's, or if the address is
    /// `proved`, which a retransmission may be first to show, then that is where the peer is now, and it is told at once what
    /// has arrived, since acknowledgements went to the old address. That is returned.
    pub(crate) fn moves_to(
        &mut self,
        address: PathAddress,
        packet: &Packet<'_>,
        proved: bool,
    ) -> Option<PathAddress> {
        let left = self.address;
        let moves = self.is_of_peer(packet, proved) && self.follows(left, address);
        if moves && proved && self.has_feedback() {
            self.answer_here();
        }
        moves.then_some(left)
    }

    /// It has moved, and its packet was heard: what the timer asked for in vain went to the old address, and leaves again.
    pub(crate) fn on_moved(&mut self, now: Time) {
        if self.has_feedback() && self.lane().is_none() {
            self.sender.on_link_up(now);
        }
    }

    /// The peer is no more where it `left`, but at another address: what went there goes `to` that one.
    pub(crate) fn follows(&mut self, left: PathAddress, to: PathAddress) -> bool {
        let is_open = matches!(
            self.state,
            State::SynReceived(_) | State::Established | State::TimeWait { .. }
        );
        let follows = is_open && self.address == left;
        if follows {
            self.address = to;
        }
        follows
    }

    /// The same for one that is behind: it may be a copy and moves nothing, but a peer that has moved is not refused for it.
    pub(crate) fn trails(&self, packet: &Packet<'_>) -> bool {
        self.is_of_peer(packet, true)
    }

    /// Is the number of the packet one that may come, or the last before them, and does it acknowledge what is outstanding? If it is
    /// known to be from the peer it may be further behind, and an encoded one acknowledges nothing. A SYN is the request that
    /// was answered and not confirmed yet.
    fn is_of_peer(&self, packet: &Packet<'_>, known: bool) -> bool {
        let header = packet.header;
        let (behind, acked) = if known { (TRAIL, TRAIL) } else { (1, 0) };
        let (first, next) = (self.sender.first(), self.sender.next_number());
        let Some(expected) = self.receiver.next() else {
            return false;
        };
        // Behind early data stands more than this side may have room for.
        let beyond = expected + if known { EARLY_SEGMENTS } else { 0 };
        let numbers = expected.saturating_sub(behind)..=self.receiver.edge().max(beyond);
        let answers = first.saturating_sub(acked)..=next;
        let within = |number: u32| numbers.contains(&sequence::expand(expected, number));
        let answers = |number: u32| answers.contains(&sequence::expand(first, number));
        let is_request = || {
            let waits = matches!(self.state, State::SynReceived(_)) && !header.flags.has(Flags::ACK);
            let begins = expected.saturating_sub(EARLY_SEGMENTS)..=expected;
            let after = |number| sequence::expand(expected, number) + u64::from(packet.payload.is_empty());
            waits
                && header
                    .sequence
                    .is_some_and(|number| begins.contains(&after(number)))
        };
        let fits = match header.flags.has(Flags::SYN) {
            true => is_request(),
            false => {
                header.sequence.is_some_and(within)
                    && (header.acknowledgement).map_or(known && is_encoded(header), answers)
            }
        };
        fits && self.is_with(packet.peer) && self.belongs(header, !packet.payload.is_empty())
    }
}
