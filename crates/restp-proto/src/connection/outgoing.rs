//! What a composition asks of the sender (ResTP §3.5.4 to §3.5.9).

use super::acknowledgement;
use crate::composition::{Composition, ValidComposition};
use crate::wire::Services;
use restp_base::time::Time;
use restp_services::ack::Detail;
use restp_services::congestion::{CongestionChoice, Controller};
use restp_services::flow_control::FlowControl;
use restp_services::framing::SendBuffer;
use restp_services::loss_handling::{Differentiation, LossSignal};
use restp_services::path_management::RetransmitTarget;
use restp_services::recovery::{Recovery, RecoveryChoice, RtoParameters};
use restp_services::sender::{CreditUnit, Filling, Sender, SenderParameters, WindowProbes};

/// Whether segments have numbers: where the header says so, and wherever they may have to leave again.
pub(super) fn is_numbered(composition: &Composition, services: Services) -> bool {
    services.numbered() || composition.reliability.retransmits()
}

/// The sender whose first segment has the number `first`.
pub(super) fn sender(now: Time, composition: &ValidComposition, services: Services, first: u64) -> Sender {
    let parameters = parameters(composition, services);
    let LaneParts {
        recovery,
        controller,
        rto,
    } = lane_parts(composition);
    let mut sender = Sender::new(now, first, first, parameters, recovery, controller, rto);
    sender.bind_credit(composition.flow_control != FlowControl::None);
    if composition.mtu_discovery && parameters.numbered && parameters.has_feedback {
        sender.discover_mtu();
    }
    sender
}

/// What a composition asks of each path of a sender.
pub(crate) struct LaneParts {
    pub(crate) recovery: Recovery,
    pub(crate) controller: Controller,
    pub(crate) rto: RtoParameters,
}

pub(super) fn lane_parts(composition: &ValidComposition) -> LaneParts {
    let episodes_cost = composition
        .loss_handling
        .reaction(LossSignal::Feedback)
        .reduce_window;
    LaneParts {
        recovery: Recovery::new(
            composition.recovery,
            composition.congestion.fast_recovery(),
            episodes_cost,
            acknowledgement::evidence(composition),
        ),
        controller: composition.congestion.build(u64::from(composition.segment_bytes)),
        rto: composition.rto.allowing(composition.ack.unmeasured_wait()),
    }
}

/// The parts that a change of composition replaces.
pub(super) fn parameters(composition: &ValidComposition, services: Services) -> SenderParameters {
    let fixed_window = matches!(composition.congestion, CongestionChoice::None { .. });
    let payload = composition.payload_bytes() as u32;
    SenderParameters {
        framing: composition.framing,
        segment_bytes: composition.segment_bytes,
        reserved_bytes: composition.segment_bytes.saturating_sub(payload),
        send_buffer: SendBuffer::of_waiting(composition.send_buffer_bytes),
        numbered: is_numbered(composition, services),
        retransmits: composition.reliability.retransmits(),
        has_feedback: composition.ack.is_on(),
        pointer_only: matches!(composition.ack.detail, Detail::Pointer | Detail::Nak),
        paces: composition.pacing,
        reduces_in_proportion: false,
        probes_tail: false,
        thins_acks: composition.ack.thins(),
        repairs_cost: composition.reliability.encodes() && composition.fec.counts_as_congestion,
        limits_outstanding: fixed_window && composition.recovery != RecoveryChoice::Pipe,
        loss_handling: composition.loss_handling,
        credit: CreditUnit::Segments,
        window_probes: WindowProbes::Steady,
        filling: Filling::Whole,
        retransmit_target: RetransmitTarget::Asap,
        spares_fresh: false,
        differentiation: Differentiation::Split,
    }
}
