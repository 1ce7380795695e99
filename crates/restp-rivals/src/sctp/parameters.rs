//! What an SCTP is made of, and the keys that set it. Keys and units are TCP's where both have them. Constants are those of
//! RFC 9260 §16. The schemes of SMT and what it compares them with are in `schemes`.

mod schemes;

pub use schemes::Spread;

use crate::tcp::parameters::{ParameterError, dashed, error, named};
use restp_base::time::{Duration, Time};
use restp_base::units;
use restp_services::ack::PositiveParameters;
use restp_services::congestion::{ByteCountingParams, CongestionChoice, Controller};
use restp_services::connection_management::HandshakeParameters;
use restp_services::framing::{Framing, SendBuffer};
use restp_services::loss_handling::{Differentiation, LossHandling};
use restp_services::path_management::{AckReturn, RetransmitTarget};
use restp_services::recovery::{MissingReports, Recovery, RtoParameters};
use restp_services::sender::{CreditUnit, Filling, Sender, SenderParameters, WindowProbes};

/// A buffer that never is a factor: 65 535 · 2¹⁴ bytes (CMT §1.3).
const UNLIMITED: u64 = 65_535 << 14;

/// Parameters of one host's SCTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SctpParameters {
    /// New data leaves by all paths at once (CMT).
    pub concurrent: bool,
    /// By which path what was lost leaves again.
    pub target: RetransmitTarget,
    /// What the arrivals of several paths say of what is missing. Default those of its own path alone say something.
    pub differentiation: Differentiation,
    /// How new data is spread over the paths. Default as CMT has it.
    pub spread: Spread,
    /// By which path acknowledgements return. Default by the one that data came by.
    pub ack_return: AckReturn,
    /// Data leaves by the first so many paths alone while one of them works (CMT §3: the paths after `d`). Default all.
    pub data_paths: usize,
    /// Holes do not hurry acknowledgements, which count packets instead. Default with CMT.
    pub dac: bool,
    /// The timer of a path takes nothing for lost that left less than a round trip ago, perhaps from another path (the T3 amendment of
    /// Iyengar, Amer, Stewart, Comput. Commun. 30(4), 2007). Default with CMT.
    pub spares_fresh: bool,
    /// When acknowledgements leave. Default every second packet, or 200 ms.
    pub ack: PositiveParameters,
    /// Payload bytes of a full DATA chunk. Default 1400, as TCP's.
    pub segment_bytes: u32,
    /// Bytes of a message at most. What does not fit into a chunk is fragmented. Default a chunk.
    pub message_bytes: Option<u32>,
    /// Bytes that wait for their reader or for what is missing, in all. Default as TCP's window.
    pub receive_buffer_bytes: u64,
    /// Bytes written that are not yet sent. Default 256 KiB.
    pub send_buffer_bytes: usize,
    /// Start of the window, and what a packet counts: 1500 bytes (CMT §4.4).
    pub window: ByteCountingParams,
    /// Packets that one acknowledgement may release on a path. Default 4.
    pub most_burst: u64,
    /// Bounds of the retransmission timer: 1 s to 60 s.
    pub rto: RtoParameters,
    /// Repetition of INIT and COOKIE ECHO: 1 s, nine times in all.
    pub handshake: HandshakeParameters,
    /// An idle path is asked whether it lives. Default every 30 s.
    pub heartbeat: Option<Duration>,
    /// Unanswered in a row before a path is not used any more. Default 5.
    pub path_attempts: u32,
    /// The same for all paths before the association is given up. Default 10.
    pub association_attempts: u32,
    /// Losses in a million packets of each path, for [`RetransmitTarget::LossRate`].
    pub losses_per_million: Vec<u32>,
}

/// Keys of SCTP.
const KEYS: [&str; 31] = [
    "segment",
    "message",
    "receive-buffer",
    "send-buffer",
    "packet",
    "initial-threshold",
    "threshold-floor",
    "max-burst",
    "ack-every",
    "ack-delay",
    "ack-return",
    "data-paths",
    "dac",
    "heartbeat",
    "path-attempts",
    "data-attempts",
    "rto-initial",
    "rto-floor",
    "rto-ceiling",
    "rto-tick",
    "handshake-rto",
    "handshake-attempts",
    "loss-rates",
    "retransmit",
    "member",
    "late-after",
    "late-pivot",
    "late-cycles",
    "late-share",
    "spare-fresh",
    "bandwidths",
];

impl Default for SctpParameters {
    fn default() -> Self {
        SctpParameters {
            concurrent: false,
            target: RetransmitTarget::Alternate,
            differentiation: Differentiation::Split,
            spread: Spread::Bursts,
            ack_return: AckReturn::Any,
            data_paths: usize::MAX,
            dac: false,
            spares_fresh: false,
            ack: PositiveParameters {
                delay: Duration::from_millis(200),
                ..PositiveParameters::default()
            },
            segment_bytes: 1400,
            message_bytes: None,
            receive_buffer_bytes: 8192 * 1400,
            send_buffer_bytes: 256 << 10,
            window: ByteCountingParams {
                packet_bytes: 1500,
                ..ByteCountingParams::default()
            },
            most_burst: 4,
            rto: RtoParameters {
                floor: Duration::from_secs(1),
                ceiling: Duration::from_secs(60),
                attempts: u32::MAX, // the association counts
                ..RtoParameters::default()
            },
            handshake: HandshakeParameters {
                rto: Duration::from_secs(1),
                attempts: 9,
            },
            heartbeat: Some(Duration::from_secs(30)),
            path_attempts: 5,
            association_attempts: 10,
            losses_per_million: Vec::new(),
        }
    }
}

impl SctpParameters {
    /// SCTP, changed by every pair of `set`.
    ///
    /// # Errors
    /// When a key, value or unit is not understood, or the result makes no sense.
    pub fn from_pairs(set: &[(&str, &str)]) -> Result<Self, ParameterError> {
        SctpParameters::default().with(set)
    }

    /// CMT with the retransmission policy called `name`, in the same way.
    ///
    /// # Errors
    /// When the name, a key, value or unit is not understood, or the result makes no sense.
    pub fn concurrent_from_pairs(name: &str, set: &[(&str, &str)]) -> Result<Self, ParameterError> {
        let parameters = SctpParameters {
            concurrent: true,
            dac: true,
            spares_fresh: true,
            target: named("transport", name, &RetransmitTarget::ALL)?,
            ..SctpParameters::default()
        };
        parameters.with(set)
    }

    /// Names of all policies of CMT.
    pub fn policies() -> impl Iterator<Item = &'static str> {
        RetransmitTarget::ALL.into_iter().map(|(name, _)| name)
    }

    fn with(mut self, set: &[(&str, &str)]) -> Result<Self, ParameterError> {
        for (key, value) in set {
            self.set(&dashed(key), value.trim())?;
        }
        self.ack.delays_reordered = self.dac;
        self.check()?;
        Ok(self)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), ParameterError> {
        let about = |message: String| error(key, format!("{key}: {message}"));
        let bytes = || units::bytes(value).map_err(|why| about(why.to_string()));
        let packets = || units::packets(value).map_err(|why| about(why.to_string()));
        let span = || units::duration(value).map_err(|why| about(why.to_string()));
        let small =
            |number: u64| u32::try_from(number).map_err(|_| about(format!("\"{value}\" is too large")));
        let count = || {
            let why = |_| {
                about(format!(
                    "\"{value}\" is no count; write a whole number, such as \"4\""
                ))
            };
            value.parse::<u32>().map_err(why)
        };
        match key {
            "segment" => self.segment_bytes = small(bytes()?)?,
            "message" => self.message_bytes = Some(small(bytes()?)?),
            "receive-buffer" if value == "unlimited" => self.receive_buffer_bytes = UNLIMITED,
            "receive-buffer" => self.receive_buffer_bytes = bytes()?,
            "send-buffer" => self.send_buffer_bytes = bytes()? as usize,
            "packet" => self.window.packet_bytes = bytes()?,
            "initial-threshold" => self.window.initial_threshold_bytes = bytes()?,
            "threshold-floor" => self.window.floor_packets = packets()?,
            "max-burst" if value == "off" => self.most_burst = u64::from(u32::MAX),
            "max-burst" => self.most_burst = packets()?,
            "ack-every" => self.ack.every = small(packets()?)?,
            "ack-delay" => self.ack.delay = span()?,
            "ack-return" => self.ack_return = value.parse().map_err(|()| about(ACK_RETURN.into()))?,
            "dac" => self.dac = named(key, value, &[("on", true), ("off", false)])?,
            "spare-fresh" => self.spares_fresh = named(key, value, &[("on", true), ("off", false)])?,
            "heartbeat" if value == "off" => self.heartbeat = None,
            "heartbeat" => self.heartbeat = Some(span()?),
            "path-attempts" => self.path_attempts = count()?,
            "data-attempts" => self.association_attempts = count()?,
            "rto-initial" => self.rto.initial = span()?,
            "rto-floor" => self.rto.floor = span()?,
            "rto-ceiling" => self.rto.ceiling = span()?,
            "rto-tick" => self.rto.tick = span()?,
            "handshake-rto" => self.handshake.rto = span()?,
            "handshake-attempts" => self.handshake.attempts = count()?,
            "data-paths" => {
                let paths = value.parse().ok().filter(|paths| *paths > 0);
                self.data_paths = paths.ok_or_else(|| about(DATA_PATHS.into()))?;
            }
            "loss-rates" => {
                let rates = value.split(',').map(|rate| per_million(rate.trim()));
                let all: Option<Vec<_>> = rates.collect();
                self.losses_per_million = all.ok_or_else(|| about(LOSS_RATES.into()))?;
            }
            "retransmit" => self.target = named(key, value, &schemes::TARGETS)?,
            _ if self.set_scheme(key, value)? => {}
            _ => {
                let message = format!(
                    "\"{key}\" is nothing that can be set of SCTP; write one of: {}",
                    KEYS.join(", ")
                );
                return Err(error(key, message));
            }
        }
        Ok(())
    }

    /// What no SCTP can do.
    fn check(&self) -> Result<(), ParameterError> {
        let least = |key: &str, found: u64, range: std::ops::RangeInclusive<u64>| {
            let (low, high) = (range.start(), range.end());
            let message = format!("{key} is {found}; write {low} to {high}");
            range.contains(&found).then_some(()).ok_or(error(key, message))
        };
        let segment = u64::from(self.segment_bytes);
        least("segment", segment, 1..=64_000)?;
        least("message", self.longest_message() as u64, 1..=1 << 24)?;
        // RFC 9260 §3.3.2: a receiver takes at least 1500 bytes.
        least(
            "receive-buffer",
            self.receive_buffer_bytes,
            1500.max(segment)..=UNLIMITED,
        )?;
        least(
            "send-buffer",
            self.send_buffer_bytes as u64,
            1..=u64::from(u32::MAX),
        )?;
        least("packet", self.window.packet_bytes, 0..=65_535)?;
        least("threshold-floor", self.window.floor_packets, 1..=65_535)?;
        least("max-burst", self.most_burst, 1..=u64::from(u32::MAX))?;
        least("ack-every", self.ack.every.into(), 1..=1_000)?;
        if self.dac {
            // The count has two bits (CMT §2.5).
            least("ack-every", self.ack.every.into(), 1..=3)?;
        }
        least("handshake-attempts", self.handshake.attempts.into(), 1..=100)?;
        let zero = [self.rto.floor, self.rto.initial, self.handshake.rto]
            .iter()
            .any(|span| span.is_zero());
        if zero || self.rto.floor > self.rto.ceiling || self.heartbeat.is_some_and(|every| every.is_zero()) {
            let message = "rto-initial, rto-floor, handshake-rto and heartbeat must be above zero, and rto-floor at most rto-ceiling";
            return Err(error("rto-floor", message.into()));
        }
        if self.target == RetransmitTarget::LossRate && self.losses_per_million.is_empty() {
            let message =
                "retransmissions by loss rate need the rate of each path; write loss-rates = \"1 %, 5 %\"";
            return Err(error("loss-rates", message.into()));
        }
        self.check_scheme()
    }

    /// Bytes of a message at most.
    pub(super) fn longest_message(&self) -> usize {
        self.message_bytes.unwrap_or(self.segment_bytes) as usize
    }

    pub(super) fn controller(&self) -> Controller {
        CongestionChoice::ByteCounting(self.window).build(u64::from(self.segment_bytes))
    }

    pub(super) fn recovery(&self) -> Recovery {
        Recovery::MissingReports(MissingReports::new(self.differentiation))
    }

    /// The sender whose first chunk has the number `first`.
    pub(super) fn sender(&self, now: Time, first: u64) -> Sender {
        let parameters = SenderParameters {
            framing: Framing::Fixed,
            segment_bytes: self.segment_bytes,
            reserved_bytes: 0,
            send_buffer: SendBuffer::of_waiting(self.send_buffer_bytes),
            numbered: true,
            retransmits: true,
            has_feedback: true,
            pointer_only: false,
            paces: false,
            reduces_in_proportion: false,
            probes_tail: false,
            thins_acks: false,
            repairs_cost: false,
            limits_outstanding: false,
            loss_handling: LossHandling::Congestion,
            credit: CreditUnit::InFlight,
            window_probes: WindowProbes::Counted,
            filling: Filling::Overshoot {
                burst: self.most_burst,
            },
            retransmit_target: self.target,
            spares_fresh: self.spares_fresh,
            differentiation: self.differentiation,
        };
        let (recovery, controller) = (self.recovery(), self.controller());
        Sender::new(now, first, first, parameters, recovery, controller, self.rto)
    }
}

const ACK_RETURN: &str = "write \"any\", or the number of a path from 1 on";
const DATA_PATHS: &str = "write how many paths data leaves by, from 1 on";
const LOSS_RATES: &str = "write the rate of each path, such as \"1 %, 5 %\"";

/// "1 %" or "0.01".
fn per_million(written: &str) -> Option<u32> {
    let (number, one) = match written.strip_suffix('%') {
        Some(percent) => (percent.trim(), 10_000.0),
        None => (written, 1_000_000.0),
    };
    let rate = number.parse::<f64>().ok()? * one;
    (0.0..=1_000_000.0).contains(&rate).then_some(rate as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(set: &[(&str, &str)]) -> ParameterError {
        SctpParameters::concurrent_from_pairs("cwnd", set).expect_err("refused")
    }

    #[test]
    fn names_are_policies_and_keys_are_understood() {
        for name in SctpParameters::policies() {
            let set = [("loss-rates", "1 %, 0.05")];
            let cmt = SctpParameters::concurrent_from_pairs(name, &set).expect("a policy");
            assert!(cmt.concurrent && cmt.dac && cmt.ack.delays_reordered, "{name}");
            assert!(cmt.spares_fresh, "{name}");
            assert_eq!(cmt.losses_per_million, [10_000, 50_000]);
        }
        let set = [
            ("ack_return", "2"),
            ("dac", "off"),
            ("receive-buffer", "32 KiB"),
            ("heartbeat", "off"),
            ("max-burst", "8 packets"),
            ("threshold-floor", "2 packets"),
            ("rto-tick", "500 ms"),
        ];
        let sctp = SctpParameters::from_pairs(&set).expect("keys");
        assert_eq!(sctp.ack_return, AckReturn::Fixed(1));
        assert_eq!((sctp.receive_buffer_bytes, sctp.heartbeat), (32_768, None));
        assert_eq!(
            (sctp.window.floor_packets, sctp.rto.tick),
            (2, Duration::from_millis(500))
        );
        assert_eq!((sctp.dac, sctp.most_burst, sctp.concurrent), (false, 8, false));
        let unlimited = SctpParameters::from_pairs(&[("receive-buffer", "unlimited")]).expect("a word");
        assert_eq!(unlimited.receive_buffer_bytes, 1_073_725_440);
    }

    #[test]
    fn what_cannot_be_is_refused_by_its_key() {
        for (key, value) in [
            ("ack-return", "0"),
            ("ack-return", "both"),
            ("data-paths", "0"),
            ("data-paths", "one"),
            ("dac", "maybe"),
            ("spare-fresh", "yes"),
            ("receive-buffer", "100 B"),
            ("receive-buffer", "4 GiB"),
            ("ack-every", "4 packets"),
            ("loss-rates", "often"),
            ("segment", "0 B"),
            ("max-burst", "0 packets"),
            ("threshold-floor", "0 packets"),
            ("rto-tick", "often"),
            ("window", "10 packets"),
            ("rto-floor", "2 min"),
        ] {
            assert_eq!(refused(&[(key, value)]).key, key, "{key} = {value}");
        }
        let error = SctpParameters::concurrent_from_pairs("lossrate", &[]).expect_err("refused");
        assert_eq!(error.key, "loss-rates");
        let error = SctpParameters::concurrent_from_pairs("cwd", &[]).expect_err("refused");
        assert!(error.message.contains("cwnd"), "{error}");
    }
}
