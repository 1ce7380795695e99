//! Header flags and composition (OP-27): the initiator's choices travel as service bits in every packet; the
//! responder derives its own composition from them and answers with the same bits, or refuses.
//!
//! Bits name services, never numbers, and not what each end decides for itself: recovery, loss handling, pacing,
//! ECN. Of the ACK module they show the details only, so it is on if and only if somebody uses it: ARQ, Cong or
//! FC. The table of rules holds a composition to that.

use super::{Composition, Refusal, ValidComposition};
use crate::wire::codes::{CONG_NEW_RENO, CONG_NONE, FC_STREAMS, FC_WINDOW};
use crate::wire::{self, ErrorControl, Order, Paths, Scheduler, Services, Setup};
use restp_services::ack::{Acknowledgement, DelayedParameters, Detail, PositiveParameters, Schedule};
use restp_services::congestion::{CodeSpace, CongestionChoice};
use restp_services::connection_management::Establishment;
use restp_services::flow_control::{FlowControl, WindowParameters};
use restp_services::framing::{Framing, StreamLimits};
use restp_services::loss_handling::LossHandling;
use restp_services::ordering::Ordering;
use restp_services::path_management::{NumberSpace, PathMode};
use restp_services::recovery::RecoveryChoice;
use restp_services::reliability::Reliability;
use restp_services::scheduling::Scheduling;

impl Services {
    /// The service bits of a composition (ResTP §3.1.1), as its SYN carries them. Only those of a
    /// [`ValidComposition`] stand for it alone.
    pub fn of(c: &Composition) -> Self {
        Services {
            order: match c.ordering {
                Ordering::Unordered => Order::Unordered,
                Ordering::Partial => Order::Partial,
                Ordering::Ordered => Order::Full,
            },
            setup: match c.establishment {
                Establishment::Connectionless => Setup::Connectionless,
                Establishment::ThreeWay => Setup::ThreeWay,
                Establishment::Opportunistic | Establishment::FastOpen => Setup::Opportunistic,
            },
            error: error_bits(c),
            paths: match (c.paths, &c.scheduling) {
                (PathMode::Single, _) => Paths::Single,
                // The two variants of hot-standby are local policy (OP-54).
                (PathMode::HotStandby | PathMode::Overflow, _) => Paths::HotStandby,
                (PathMode::Spreading, Some(Scheduling::RoundRobin)) => {
                    Paths::Spreading(Scheduler::RoundRobin)
                }
                (PathMode::Spreading, Some(Scheduling::FastestRtt)) => {
                    Paths::Spreading(Scheduler::FastestRtt)
                }
                // Every other scheduler is local policy: each end chooses for what it sends.
                (PathMode::Spreading, _) => Paths::Spreading(Scheduler::Undeclared),
            },
            shared_numbers: c.numbering == NumberSpace::Shared,
            congestion: stated(&c.congestion, code_space(c.paths)),
            flow_control: match c.flow_control {
                FlowControl::None => 0,
                FlowControl::Window(_) if c.framing.has_streams() => FC_STREAMS,
                FlowControl::Window(_) => FC_WINDOW,
            },
            framing: match c.framing {
                Framing::Fixed => wire::Framing::Fixed,
                Framing::Coalesce | Framing::Streams(_) => wire::Framing::Coalesce,
            },
        }
    }
}

fn error_bits(c: &Composition) -> ErrorControl {
    let detail = match c.ack.detail {
        Detail::Pointer => ErrorControl::NONE,
        Detail::Nak => ErrorControl::NAK,
        Detail::Sack { .. } => ErrorControl::SAK,
        Detail::Snack => ErrorControl::NAK | ErrorControl::SAK,
    };
    [
        (c.reliability.retransmits(), ErrorControl::ARQ),
        (c.reliability.encodes(), ErrorControl::FEC),
        (c.crc, ErrorControl::CRC),
        (matches!(c.ack.schedule, Schedule::Delayed(_)), ErrorControl::DEL),
    ]
    .into_iter()
    .filter(|(on, _)| *on)
    .fold(detail, |bits, (_, bit)| bits | bit)
}

/// What the responder makes of the initiator's service bits. `local` gives what bits do not say: every number,
/// and loss handling, pacing and ECN where they have a meaning. Recovery is by the pipe rule when holes or
/// blocks are reported, by duplicates otherwise.
///
/// # Errors
/// When the bits name no service or break a rule: the answer is RST (OP-27).
pub fn accept(bits: Services, local: &Composition) -> Result<ValidComposition, Refusal> {
    let paths = match bits.paths {
        Paths::Single => PathMode::Single,
        Paths::HotStandby if local.paths == PathMode::Overflow => PathMode::Overflow,
        Paths::HotStandby => PathMode::HotStandby,
        Paths::Spreading(_) => PathMode::Spreading,
    };
    let congestion = congestion(bits, local)?;
    let controlled = bits.congestion != CONG_NONE;
    let flow_control = match (bits.flow_control, local.flow_control) {
        (0, _) => FlowControl::None,
        (FC_WINDOW | FC_STREAMS, FlowControl::Window(parameters)) => FlowControl::Window(parameters),
        (FC_WINDOW | FC_STREAMS, FlowControl::None) => FlowControl::Window(WindowParameters::default()),
        (code, _) => {
            return Err(unknown(
                "FC",
                code,
                "0 is none, 1 is window, 2 is window with streams",
            ));
        }
    };
    let reliability = reliability(bits);
    let mut fec = local.fec;
    if !reliability.encodes_by(fec.code) {
        fec.code = reliability.default_code(); // whoever opens says which; see Connection::accept
    }
    let feedback = reliability.retransmits() || controlled || bits.flow_control != 0;
    let ack = acknowledgement(bits, feedback, local);
    Composition {
        establishment: match bits.setup {
            Setup::Connectionless => Establishment::Connectionless,
            Setup::ThreeWay => Establishment::ThreeWay,
            // What a client puts inside its SYN is its own policy.
            Setup::Opportunistic if local.establishment == Establishment::FastOpen => Establishment::FastOpen,
            Setup::Opportunistic => Establishment::Opportunistic,
        },
        framing: framing(bits, local)?,
        flow_control,
        ordering: match bits.order {
            Order::Unordered => Ordering::Unordered,
            Order::Partial => Ordering::Partial,
            Order::Full => Ordering::Ordered,
        },
        reliability,
        ack,
        recovery: match (ack.schedule, ack.detail) {
            (Schedule::None, _) | (Schedule::Delayed(_), Detail::Pointer) => RecoveryChoice::Timer,
            (Schedule::Positive(_), Detail::Pointer) => RecoveryChoice::DuplicateAck,
            (_, Detail::Nak | Detail::Sack { .. } | Detail::Snack) => RecoveryChoice::Pipe,
        },
        loss_handling: match local.loss_handling {
            LossHandling::Outage | LossHandling::Adaptive if !reliability.retransmits() => {
                LossHandling::Congestion
            }
            cause => cause,
        },
        // Pacing is ours to choose, unless the algorithm that the peer names is nothing without it.
        pacing: (local.pacing && feedback) || congestion.needs_pacing(),
        congestion,
        ecn: local.ecn && controlled,
        mtu_discovery: local.mtu_discovery && feedback,
        crc: bits.error.has(ErrorControl::CRC),
        fec,
        mapping_crc: local.mapping_crc && bits.paths != Paths::Single && !bits.shared_numbers,
        paths,
        numbering: if bits.shared_numbers {
            NumberSpace::Shared
        } else {
            NumberSpace::PerPath
        },
        scheduling: match bits.paths {
            Paths::Single | Paths::HotStandby => None,
            Paths::Spreading(Scheduler::Undeclared) => {
                Some(undeclared(&local.scheduling, bits.shared_numbers))
            }
            Paths::Spreading(Scheduler::RoundRobin) => Some(Scheduling::RoundRobin),
            Paths::Spreading(Scheduler::FastestRtt) => Some(Scheduling::FastestRtt),
        },
        ..local.clone()
    }
    .check()
}

/// Streams are coalesced, and have windows of their own.
fn framing(bits: Services, local: &Composition) -> Result<Framing, Refusal> {
    match (bits.framing, bits.flow_control) {
        (wire::Framing::Fixed, FC_STREAMS) => Err(unknown("FC", FC_STREAMS, "2 goes with FRM")),
        (wire::Framing::Fixed, _) => Ok(Framing::Fixed),
        (wire::Framing::Coalesce, FC_STREAMS) if local.framing.has_streams() => Ok(local.framing),
        (wire::Framing::Coalesce, FC_STREAMS) => Ok(Framing::Streams(StreamLimits::DEFAULT)),
        (wire::Framing::Coalesce, _) => Ok(Framing::Coalesce),
    }
}

fn congestion(bits: Services, local: &Composition) -> Result<CongestionChoice, Refusal> {
    let space = if bits.multipath() {
        CodeSpace::SeveralPaths
    } else {
        CodeSpace::OnePath
    };
    let code = bits.congestion;
    let usable = bits.multipath() || !local.congestion.is_coupled();
    if usable && stated(&local.congestion, space) == code {
        return Ok(local.congestion.clone());
    }
    CongestionChoice::from_code(code, space).ok_or_else(|| unknown("Cong", code, "0 is none, 1 is newreno"))
}

/// What the Cong field says of an algorithm: its own code, or that of NewReno. Who has no code is local policy: the peer
/// does what it does beside NewReno, and whoever has such an algorithm keeps it when NewReno's code comes (OP-6).
fn stated(congestion: &CongestionChoice, space: CodeSpace) -> u8 {
    congestion.code(space).unwrap_or(CONG_NEW_RENO)
}

/// What this end schedules by when the peer leaves it open: its own choice, unless a header bit would have named that, or it needs
/// copies where each number has one path.
fn undeclared(local: &Option<Scheduling>, shared_numbers: bool) -> Scheduling {
    match local {
        None | Some(Scheduling::RoundRobin | Scheduling::FastestRtt) => Scheduling::Guard,
        Some(Scheduling::Redundant) if shared_numbers => Scheduling::Guard,
        Some(other) => other.clone(),
    }
}

/// What the codes of the congestion field mean in a path mode (OP-6).
pub(super) fn code_space(paths: PathMode) -> CodeSpace {
    match paths {
        PathMode::Single => CodeSpace::OnePath,
        PathMode::HotStandby | PathMode::Overflow | PathMode::Spreading => CodeSpace::SeveralPaths,
    }
}

/// ARQ with PAR means partial reliability, with FEC HARQ (ResTP §3.5.8). All three at once, which the specification leaves open,
/// are partial reliability with FEC.
fn reliability(bits: Services) -> Reliability {
    let (arq, fec) = (
        bits.error.has(ErrorControl::ARQ),
        bits.error.has(ErrorControl::FEC),
    );
    match (arq, fec) {
        (false, false) => Reliability::Unreliable,
        (false, true) => Reliability::Quasi,
        (true, true) if bits.order == Order::Partial => Reliability::PartialFec,
        (true, true) => Reliability::Harq,
        (true, false) if bits.order == Order::Partial => Reliability::Partial,
        (true, false) => Reliability::Arq,
    }
}

fn acknowledgement(bits: Services, feedback: bool, local: &Composition) -> Acknowledgement {
    let schedule = match (bits.error.has(ErrorControl::DEL), local.ack.schedule) {
        (true, Schedule::Delayed(period)) => Schedule::Delayed(period),
        (true, _) => Schedule::Delayed(DelayedParameters::default()),
        (false, Schedule::Positive(parameters)) if feedback => Schedule::Positive(PositiveParameters {
            thins: parameters.thins && bits.error.has(ErrorControl::SAK),
            ..parameters
        }),
        (false, _) if feedback => Schedule::Positive(PositiveParameters::default()),
        (false, _) => Schedule::None,
    };
    let detail = match (
        bits.error.has(ErrorControl::NAK),
        bits.error.has(ErrorControl::SAK),
    ) {
        (false, false) => Detail::Pointer,
        (true, false) => Detail::Nak,
        (true, true) => Detail::Snack,
        (false, true) => match local.ack.detail {
            Detail::Sack { max_blocks } => Detail::Sack { max_blocks },
            _ => Detail::Sack {
                max_blocks: Acknowledgement::SACK_BLOCKS,
            },
        },
    };
    Acknowledgement {
        schedule,
        detail: if bits.shared_numbers && local.numbering == NumberSpace::PerPath {
            detail.of_many_paths()
        } else {
            detail
        },
        repeat: local.ack.repeat.filter(|_| schedule != Schedule::None),
    }
}

fn unknown(field: &'static str, code: u8, allowed: &'static str) -> Refusal {
    Refusal::Code { field, code, allowed }
}

#[cfg(test)]
mod tests;
