//! What a TCP is made of, and the keys that set it. Keys, units and defaults are ResTP's where both have them, so
//! that a comparison varies what it means to vary.

mod keys;

pub use keys::ParameterError;
pub(crate) use keys::{SWITCH, dashed, error, named};

use restp_base::time::Duration;
use restp_services::ack::{Acknowledgement, Detail, NakMode, NakParameters, PositiveParameters};
use restp_services::congestion::{BbrParams, CongestionChoice, CubicParams, CubicRules, HyStartChoice};
use restp_services::connection_management::HandshakeParameters;
use restp_services::flow_control::WindowParameters;
use restp_services::framing::SendBuffer;
use restp_services::recovery::{
    Again, Holes, LostRetransmissions, PipeParameters, RecoveryChoice, Reordering, RtoParameters,
};
use restp_services::scheduling::Scheduling;

/// Segments acknowledged at once when a connection begins (Linux: TCP_MAX_QUICKACKS).
const QUICK_ACKS: u32 = 16;
/// Linux: TCP_RTO_MIN, which bounds four deviations from below.
const LEAST_TIMEOUT: Duration = Duration::from_millis(200);

/// Parameters of one host's TCP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpParameters {
    /// What happens to the window.
    pub congestion: CongestionChoice,
    /// When acknowledgements leave. Default: every second segment, or 40 ms.
    pub ack: PositiveParameters,
    /// What acknowledgements say beside their number, where the peer knows it too. Default nothing.
    pub detail: Detail,
    /// When a gap is named, with NAK.
    pub nak: NakParameters,
    /// The first SNACK begins recovery, not the third duplicate (CCSDS 714.0-B-2 §3.3). Default off (TC §3.2.3).
    pub snack_immediate: bool,
    /// With SNACK: a retransmission that stays missing for SRTT + 4·RTTVAR leaves again. Default off.
    pub re_snack: bool,
    /// How losses are found. Default: by duplicates (RFC 6582).
    pub recovery: RecoveryChoice,
    /// With the pipe rule: what an overtaken segment is taken for. Default lost, by the duplicate threshold.
    pub reordering: Reordering,
    /// A silent tail is asked for (RFC 8985 §7). Default off.
    pub tail_loss_probe: bool,
    /// An episode brings the window down in step with deliveries (RFC 9937). Default off. Not where a rate is steered.
    pub rate_reduction: bool,
    /// What arrives twice is named in the first block of a SACK, and a reduction for what was only late is taken back
    /// (RFC 2883, RFC 3708). Default off.
    pub dsack: bool,
    /// Marks of the network, where the peer wants them too (RFC 3168). Default off.
    pub ecn: bool,
    /// With the pipe rule: how a retransmission that is lost again is found. Default by evidence; RFC 6675 §4 says by the timer.
    pub lost_retransmissions: LostRetransmissions,
    /// Payload bytes of a full segment. Default 1400, as ResTP's.
    pub segment_bytes: u32,
    /// Receive window, in full segments. Default 8192.
    pub window: WindowParameters,
    /// Windows may be larger than 65 535 bytes (RFC 7323 §2). Default on: the receiver's buffer is no factor.
    pub window_scaling: bool,
    /// Every segment carries a clock and an echo (RFC 7323 §3). Default off: 12 bytes per segment.
    pub timestamps: bool,
    /// Bounds and attempts of the retransmission timer.
    pub rto: RtoParameters,
    /// Repetition of SYN and SYN-ACK. Default 3 s, as ResTP's; RFC 6298 §2.1 says 1 s.
    pub handshake: HandshakeParameters,
    /// Data travel in the SYN once a cookie of the server is known (RFC 7413). Default off.
    pub fast_open: bool,
    /// Room for what an application writes. Default 256 KiB for what is not yet sent.
    pub send_buffer: SendBuffer,
    /// Connections may use several paths (MPTCP), and this chooses among them. Default none: plain TCP.
    pub multipath: Option<Scheduling>,
    /// With several paths: one is joined when the peer has announced its address there (ADD_ADDR). Default off: at once.
    pub announced_addresses: bool,
    /// With several paths: a subflow that was reset or went silent is dialled again. Default on.
    pub redial: bool,
}

impl TcpParameters {
    /// The TCP of the published studies: positive acknowledgement without SACK, recovery by duplicates, as ResTP's
    /// 3WH-ARQ.
    pub fn classic(congestion: CongestionChoice) -> Self {
        TcpParameters {
            congestion,
            ack: PositiveParameters::default(),
            detail: Detail::Pointer,
            nak: NakParameters::default(),
            snack_immediate: false,
            re_snack: false,
            recovery: RecoveryChoice::DuplicateAck,
            reordering: Reordering::Threshold,
            tail_loss_probe: false,
            rate_reduction: false,
            dsack: false,
            ecn: false,
            lost_retransmissions: LostRetransmissions::Evidence,
            segment_bytes: 1400,
            window: WindowParameters { segments: 8192 },
            window_scaling: true,
            timestamps: false,
            rto: RtoParameters::default(),
            handshake: HandshakeParameters::default(),
            send_buffer: SendBuffer::of_waiting(256 << 10),
            multipath: None,
            announced_addresses: false,
            redial: true,
            fast_open: false,
        }
    }

    /// A TCP as Linux 6 sends by default: SACK, timestamps, RACK and tail loss probes (RFC 8985), proportional rate
    /// reduction, needless timeouts taken back, a timer of at least SRTT + 200 ms, acknowledgements at once for the first
    /// segments. Its buffers grow as needed, so only their bounds are here: 4 MiB to send from (`tcp_wmem`), and more than
    /// that to receive into.
    pub fn current(congestion: CongestionChoice) -> Self {
        TcpParameters {
            ack: PositiveParameters {
                quick: QUICK_ACKS,
                ..PositiveParameters::default()
            },
            detail: Detail::Sack {
                max_blocks: Acknowledgement::SACK_BLOCKS,
            },
            recovery: RecoveryChoice::Pipe,
            reordering: Reordering::Rack,
            tail_loss_probe: true,
            rate_reduction: true,
            dsack: true,
            timestamps: true,
            rto: RtoParameters {
                margin: LEAST_TIMEOUT,
                floor: LEAST_TIMEOUT,
                ceiling: Duration::from_secs(120),
                ..RtoParameters::default()
            },
            handshake: HandshakeParameters {
                rto: Duration::from_secs(1),
                ..HandshakeParameters::default()
            },
            send_buffer: SendBuffer::of_flight(4 << 20),
            ..TcpParameters::classic(congestion)
        }
    }

    /// Is it today's, as far as no key has made it another?
    fn is_current(&self) -> bool {
        self.reordering == Reordering::Rack
    }

    /// The TCP that a detail of acknowledgements gives its name: NewReno with the pipe rule (TC §4.1).
    fn reporting(detail: Detail) -> Self {
        TcpParameters {
            detail,
            recovery: RecoveryChoice::Pipe,
            ..TcpParameters::classic(CongestionChoice::NewReno(Default::default()))
        }
    }

    /// Names of all current TCPs: those of the congestion controls.
    pub fn names() -> impl Iterator<Item = &'static str> {
        current_controls(false).map(|(name, _)| name)
    }

    /// Names of all classic TCPs: those of the congestion controls, and of what acknowledgements may say.
    pub fn classic_names() -> impl Iterator<Item = &'static str> {
        controls(false)
            .map(|(name, _)| name)
            .chain(DETAILS.map(|(name, _)| name))
    }

    /// How the peer's reports are taken, when both ends agreed on `detail` and the peer names gaps in this mode.
    pub(super) fn evidence(&self, detail: Detail, mode: Option<NakMode>) -> PipeParameters {
        let mut evidence = PipeParameters::new(detail);
        if detail == Detail::Snack && self.snack_immediate {
            evidence.holes = Holes::AtOnce;
        }
        if detail == Detail::Snack && self.re_snack {
            evidence.again = Again::Late;
        }
        evidence.reordering = self.reordering;
        evidence.single = evidence.single.and(mode);
        evidence.with_lost_retransmissions(self.lost_retransmissions)
    }

    /// The current TCP called `name`, such as `cubic`, with every pair of `set`. Choices count before numbers, whatever
    /// their order.
    ///
    /// # Errors
    /// When a name, key, value or unit is not understood, or the result makes no sense.
    pub fn from_pairs(name: &str, set: &[(&str, &str)]) -> Result<Self, ParameterError> {
        let choices: Vec<_> = current_controls(false)
            .map(|(name, choice)| (name, TcpParameters::current(choice)))
            .collect();
        let known = |error: ParameterError| match name {
            _ if DETAILS.iter().any(|(detail, _)| *detail == name) => {
                let way_out =
                    format!("every tcp has SACK; for what \"{name}\" was, write classic-tcp:{name}");
                keys::error("transport", way_out)
            }
            _ => which_bbr("tcp", name, error),
        };
        named("transport", name, &choices).map_err(known)?.with(set)
    }

    /// The classic TCP called `name`, such as `newreno`, in the same way.
    ///
    /// # Errors
    /// When a name, key, value or unit is not understood, or the result makes no sense.
    pub fn classic_from_pairs(name: &str, set: &[(&str, &str)]) -> Result<Self, ParameterError> {
        let choices: Vec<_> = controls(false)
            .map(|(name, choice)| (name, TcpParameters::classic(choice)))
            .chain(DETAILS.map(|(name, detail)| (name, TcpParameters::reporting(detail))))
            .collect();
        named("transport", name, &choices)?.with(set)
    }
}

/// An `error` that may be about which BBR was meant in a `family`.
pub(crate) fn which_bbr(family: &str, name: &str, error: ParameterError) -> ParameterError {
    match name {
        "bbr" => {
            let way_out =
                format!("there are two versions of bbr; write {family}:bbr1, as in Linux, or {family}:bbr3");
            keys::error("transport", way_out)
        }
        _ => error,
    }
}

/// Details that give a TCP its name.
const DETAILS: [(&str, Detail); 3] = [
    (
        "sack",
        Detail::Sack {
            max_blocks: Acknowledgement::SACK_BLOCKS,
        },
    ),
    ("nak", Detail::Nak),
    ("snack", Detail::Snack),
];

/// Congestion controls: those of one path, or all.
pub(crate) fn controls(coupled: bool) -> impl Iterator<Item = (&'static str, CongestionChoice)> {
    let choices = CongestionChoice::all().into_iter();
    let choices = choices.filter(move |choice| coupled || !choice.is_coupled());
    choices.map(|choice| (choice.name(), choice))
}

/// The same of current TCPs. Linux's `bbr` is version 1; version 3 is the draft's.
pub(crate) fn current_controls(coupled: bool) -> impl Iterator<Item = (&'static str, CongestionChoice)> {
    controls(coupled).map(|(name, choice)| match choice {
        CongestionChoice::Cubic(cubic) => {
            let (hystart, rules) = (HyStartChoice::Linux, CubicRules::Linux);
            let linux = CubicParams {
                hystart,
                rules,
                ..cubic
            };
            (name, CongestionChoice::Cubic(linux))
        }
        CongestionChoice::Bbr(bbr) => {
            let draft = BbrParams { draft: true, ..bbr };
            ("bbr3", CongestionChoice::Bbr(draft))
        }
        choice => (name, choice),
    })
}

#[cfg(test)]
mod tests;
