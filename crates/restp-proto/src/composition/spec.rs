//! The value: one choice per service, its parameters inside the choice, and the numbers that belong to none.

use restp_base::time::Duration;
use restp_services::ack::Acknowledgement;
use restp_services::congestion::CongestionChoice;
use restp_services::connection_management::{Establishment, HandshakeParameters};
use restp_services::flow_control::FlowControl;
use restp_services::framing::Framing;
use restp_services::loss_handling::LossHandling;
use restp_services::ordering::{HoldParameters, Ordering};
use restp_services::path_management::{AckReturn, NumberSpace, PathMode};
use restp_services::recovery::{LostRetransmissions, RecoveryChoice, Reordering, RtoParameters};
use restp_services::reliability::{FecParameters, LENGTH_BYTES, Reliability};
use restp_services::scheduling::Scheduling;

/// What an association is made of. Plain data: anything can be written down, and
/// [`check`](Composition::check) says whether it makes sense.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Composition {
    /// How the connection begins and ends (ResTP §3.5.5).
    pub establishment: Establishment,
    /// How frames become segments (ResTP §3.5.3, OP-18).
    pub framing: Framing,
    /// Whether the peer's buffer is protected (ResTP §3.5.4).
    pub flow_control: FlowControl,
    /// When a segment is handed up (ResTP §3.5.7).
    pub ordering: Ordering,
    /// How long a hole holds up what came after it, where holes may stay (OP-48). Local.
    pub hold: HoldParameters,
    /// How long sent data is kept, and whether it is retransmitted (ResTP §3.5.8).
    pub reliability: Reliability,
    /// What feedback says and when it is sent (ResTP §3.5.9).
    pub ack: Acknowledgement,
    /// Which packets are lost, and how we know (ResTP §3.5.8). Local: no header bit names it.
    pub recovery: RecoveryChoice,
    /// How the pipe rule finds a retransmission that is lost again (RFC 6675 §4). Local.
    pub lost_retransmissions: LostRetransmissions,
    /// How the pipe rule takes what others have overtaken (RFC 8985 §6.2). Local.
    pub reordering: Reordering,
    /// What a loss is taken for (ResTP §3.6). Local.
    pub loss_handling: LossHandling,
    /// What happens to the window (ResTP §3.5.6).
    pub congestion: CongestionChoice,
    /// Segments are spread in time at the controller's rate (RFC 9002 §7.7). Local.
    pub pacing: bool,
    /// Marks of the network count as congestion (OP-59, RFC 3168). Local.
    pub ecn: bool,
    /// The path is asked how large a segment it carries, from 1100 bytes up to `segment_bytes` (RFC 8899). Local.
    pub mtu_discovery: bool,
    /// CRC-16 over the header and CRC-32 over the payload (ResTP §3.1.2).
    pub crc: bool,
    /// CRC-32 over what a connection number stands for, on every path, if one side asks for it (ResTP §3.1.11, §3.1.13).
    pub mapping_crc: bool,
    /// How many paths carry data, and when (ResTP §3.3).
    pub paths: PathMode,
    /// Whether each path has numbers of its own, or all share one space of them.
    pub numbering: NumberSpace,
    /// By which path acknowledgements return, where all share the numbers (CMT §3). Local.
    pub ack_return: AckReturn,
    /// Which path a segment takes, in spreading mode (ResTP §3.5.10).
    pub scheduling: Option<Scheduling>,

    /// Most payload bytes of a segment, 1 to 65 000. Default 1400: with every header it stays below the 1500
    /// bytes of Ethernet.
    pub segment_bytes: u32,
    /// Code and timer of forward error correction (ResTP §3.5.8), for quasi and harq. The initiator's code is the
    /// association's; the timer is local.
    pub fec: FecParameters,
    /// Repetition of set-up packets (OP-32).
    pub handshake: HandshakeParameters,
    /// Bounds and attempts of the retransmission timer (OP-51, OP-58).
    pub rto: RtoParameters,
    /// Bytes an application may have written that are not yet sent; a write beyond waits. Default 256 KiB.
    pub send_buffer_bytes: usize,
    /// How long a connection whose losses are taken for an outage waits for the link (ResTP §3.6). Default 24 h.
    pub outage_timeout: Duration,
    /// Silence after which a peer counts as gone. Default 60 s (OP-35).
    pub idle_timeout: Duration,
    /// The connection is given up when nothing was acknowledged for this long although data is outstanding, or
    /// the peer's window stays shut (OP-50, RFC 5482). Default 5 min.
    pub progress_timeout: Duration,
}

impl Composition {
    /// When a peer that takes nothing any more is given up (OP-50, RFC 5482): while losses are taken for outages, that is
    /// when the outage is.
    pub fn stall_timeout(&self) -> Duration {
        if self.loss_handling.probes() {
            self.outage_timeout
        } else {
            self.progress_timeout
        }
    }

    /// Most payload bytes of a plain segment: with forward error correction those of an encoded one, less the length
    /// in front of what it repairs (OP-39).
    pub fn payload_bytes(&self) -> usize {
        self.payload_bytes_of(self.segment_bytes)
    }

    /// The same where a path carries segments of `segment_bytes` at most.
    pub fn payload_bytes_of(&self, segment_bytes: u32) -> usize {
        let length = if self.reliability.encodes() {
            LENGTH_BYTES
        } else {
            0
        };
        (segment_bytes as usize).saturating_sub(length)
    }
}
