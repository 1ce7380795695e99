//! What a TCP asks of its sender.

use super::parameters::TcpParameters;
use restp_base::time::Time;
use restp_services::ack::{Detail, NakMode};
use restp_services::framing::Framing;
use restp_services::loss_handling::{Differentiation, LossHandling};
use restp_services::path_management::RetransmitTarget;
use restp_services::recovery::{Recovery, RecoveryChoice};
use restp_services::sender::{CreditUnit, Filling, Sender, SenderParameters, WindowProbes};

impl TcpParameters {
    /// The sender whose first segment has the number `first` and begins with the byte `first_byte`.
    pub(super) fn sender(&self, now: Time, first: u64, first_byte: u64) -> Sender {
        let controller = self.congestion.build(u64::from(self.segment_bytes));
        let sending = self.sending(self.segment_bytes);
        let recovery = self.recovery_of(Detail::Pointer, None);
        Sender::new(now, first, first_byte, sending, recovery, controller, self.rto)
    }

    /// What holds for segments of `segment_bytes`.
    pub(super) fn sending(&self, segment_bytes: u32) -> SenderParameters {
        SenderParameters {
            framing: Framing::Coalesce,
            segment_bytes,
            reserved_bytes: 0,
            send_buffer: self.send_buffer,
            numbered: true,
            retransmits: true,
            has_feedback: true,
            pointer_only: true,
            // As the kernel's TCP: where the congestion control decides a rate.
            paces: self.congestion.needs_pacing(),
            reduces_in_proportion: self.rate_reduction && !self.congestion.needs_pacing(),
            probes_tail: self.tail_loss_probe,
            thins_acks: false, // TCP's header has no room to ask
            repairs_cost: false,
            limits_outstanding: false,
            loss_handling: LossHandling::Congestion,
            credit: CreditUnit::Bytes,
            window_probes: WindowProbes::BackingOff,
            filling: Filling::Whole,
            retransmit_target: RetransmitTarget::Asap,
            spares_fresh: false,
            differentiation: Differentiation::Split,
        }
    }

    /// Recovery when acknowledgements say `detail`, and the peer names gaps in this mode. The pipe rule needs reports;
    /// where none were agreed on, duplicates have to do.
    pub(super) fn recovery_of(&self, detail: Detail, mode: Option<NakMode>) -> Recovery {
        let choice = match self.recovery {
            RecoveryChoice::Pipe if detail == Detail::Pointer => RecoveryChoice::DuplicateAck,
            choice => choice,
        };
        let fast = self.congestion.fast_recovery();
        Recovery::new(choice, fast, true, self.evidence(detail, mode))
    }
}
