//! Services change while segments are outstanding (ResTP §21): what is out stays out, and is judged by the new services.

use super::ack_demand::AckDemand;
use super::{Sender, SenderParameters};
use crate::congestion::{Congestion, CongestionEvent, Controller};
use crate::recovery::{Recovery, RtoParameters};
use crate::reliability::FecEncoder;
use restp_base::flow::LossCauses;
use restp_base::time::Time;

/// Segments that may leave before anything is known of a path (RFC 6928).
const MOST_SOON: u64 = 10;
/// Two full windows of the header.
pub const MOST_LEAD: u64 = 1 << 17;

/// What replaces parts of a running sender of one lane.
#[derive(Debug)]
pub struct SenderChange {
    /// All of them; `numbered`, `retransmits` and `has_feedback` are those it has.
    pub parameters: SenderParameters,
    /// Bounds of the retransmission timer.
    pub rto: RtoParameters,
    /// Which packets are lost, if others say so from now on.
    pub recovery: Option<Recovery>,
    /// What happens to the window, likewise. It begins anew, and what is in flight counts against its window.
    pub controller: Option<Controller>,
}

impl Sender {
    /// Goes on with other services: nothing outstanding is forgotten, and nothing leaves twice for it.
    pub fn change(&mut self, now: Time, change: SenderChange) {
        let SenderChange {
            parameters,
            rto,
            recovery,
            controller,
        } = change;
        let judged_otherwise = parameters.loss_handling != self.parameters.loss_handling;
        self.parameters = SenderParameters {
            reserved_bytes: self.parameters.reserved_bytes, // as long as the encoder says
            ..parameters
        };
        self.lane.rto.adopt(rto);
        if judged_otherwise {
            self.lane.judge_by(parameters.loss_handling);
        }
        if let Some(recovery) = recovery {
            self.end_episode(now);
            self.lane.recovery = recovery;
        }
        if let Some(controller) = controller {
            self.lane.reduction.end();
            self.lane.controller = controller;
            self.lane.ack_demand = AckDemand::default();
        }
        if !parameters.paces {
            self.lane.gate.stop_pacing();
        }
    }

    /// The next new segment is the first that is encoded by `encoder`, or by none, and leaves `reserved_bytes` of a full one
    /// free for it. What waits to be encoded is not: retransmissions bring what of it is lost.
    pub fn encode_onwards(&mut self, encoder: Option<FecEncoder>, reserved_bytes: u32) {
        let coded = encoder.as_ref().is_some_and(FecEncoder::encodes_once);
        self.board.code_onwards(coded);
        self.parameters.reserved_bytes = reserved_bytes;
        self.encoded_from = self.board.next();
        self.encoder = encoder.map(Box::new);
    }

    /// Does everything that waits leave in segments of `payload_bytes`, though a frame may not be cut?
    pub fn fits_all(&self, payload_bytes: usize) -> bool {
        self.queue.fits_all(payload_bytes)
    }

    /// New segments from the number `number` on wait; with none, none does any more.
    pub fn hold_new_from(&mut self, number: Option<u64>) {
        self.held_from = number;
    }

    /// The next new segment waits, whatever window and credit say.
    pub(super) fn holds_new(&self) -> bool {
        self.held_from.is_some_and(|number| self.board.next() >= number)
    }

    /// So many segments leave in about two round trips, as far as what leaves now tells, and no more than what is written fills for
    /// certain: nobody knows whether the application writes again.
    pub fn lead(&self) -> u64 {
        let outstanding = self.board.next() - self.board.first();
        let written = self.queue.settled_bytes() as u64 / u64::from(self.parameters.segment_bytes.max(1));
        (2 * outstanding + MOST_SOON).min(written).min(MOST_LEAD)
    }

    /// Nobody will tell the controller that the losses of this episode are repaired.
    fn end_episode(&mut self, now: Time) {
        if self.lane.recovery.is_active() {
            self.lane.reduction.end();
            let in_flight = self.board.in_flight_bytes();
            self.tell_controller(now, &CongestionEvent::RecoveryEnded, in_flight);
        }
    }

    /// What losses were taken for so far, where that is inferred.
    pub fn causes(&self) -> Option<LossCauses> {
        self.lane.cutting.as_ref().map(|cutting| cutting.counts())
    }

    /// What the controller does of its own accord, for diagnostics only.
    pub fn mode(&self) -> &'static str {
        self.lane.controller.snapshot().state
    }
}
