//! What a TCP is made of, and the keys that set it. Keys, units and defaults are ResTP's where both have them, so
//! that a comparison varies what it means to vary.

use restp_base::units;
use restp_services::ack::{
    Acknowledgement, Detail, NakEmission, NakMode, NakParameters, PositiveParameters, Schedule,
};
use restp_services::congestion::{CommonParams, CongestionChoice, Growth};
use restp_services::connection_management::HandshakeParameters;
use restp_services::flow_control::WindowParameters;
use restp_services::recovery::{Again, Holes, LostRepeats, PipeParameters, RecoveryChoice, RtoParameters};
use restp_services::scheduling::Scheduling;
use std::fmt::Display;
use thiserror::Error;

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
    /// With SNACK: a repeat that stays missing for SRTT + 4·RTTVAR leaves again. Default off.
    pub re_snack: bool,
    /// How losses are found. Default: by duplicates (RFC 6582).
    pub recovery: RecoveryChoice,
    /// With the pipe rule: how a repeat that is lost again is found. Default by evidence; RFC 6675 §4 says by the timer.
    pub lost_repeats: LostRepeats,
    /// Payload bytes of a full segment. Default 1400, as ResTP's.
    pub segment_bytes: u32,
    /// Receive window, in full segments. Default 8192.
    pub window: WindowParameters,
    /// Windows may be larger than 65 535 bytes (RFC 7323 §2). Default on: the receiver's buffer is no factor.
    pub window_scaling: bool,
    /// Every segment carries a clock and an echo (RFC 7323 §3). Default off: 12 bytes per segment.
    pub timestamps: bool,
    /// Bounds and patience of the retransmission timer.
    pub rto: RtoParameters,
    /// Repetition of SYN and SYN-ACK. Default 3 s, as ResTP's; RFC 6298 §2.1 says 1 s.
    pub handshake: HandshakeParameters,
    /// Data travel in the SYN once a cookie of the server is known (RFC 7413). Default off.
    pub fast_open: bool,
    /// Bytes an application may have written that are not yet sent. Default 256 KiB.
    pub send_buffer_bytes: usize,
    /// Connections may use several paths (MPTCP), and this chooses among them. Default none: plain TCP.
    pub multipath: Option<Scheduling>,
}

/// Why a key could not be set, or keys do not fit together.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct ParameterError {
    /// The key to blame.
    pub key: String,
    /// The value, the rule and the way out.
    pub message: String,
}

/// Keys that choose an algorithm. They bring its default parameters, so they are set first.
const CHOICES: [&str; 3] = ["congestion", "ack", "recovery"];
/// Keys of numbers and switches.
const NUMBERS: [&str; 27] = [
    "segment",
    "window",
    "window-scaling",
    "timestamps",
    "ack-every",
    "ack-delay",
    "sack-blocks",
    "nak-mode",
    "nak-copies",
    "nak-emission",
    "snack-immediate",
    "re-snack",
    "lost-repeats",
    "flight-limit",
    "random-loss",
    "bbr-draft",
    "rate",
    "initial-window",
    "initial-threshold",
    "growth",
    "rto-floor",
    "rto-ceiling",
    "data-attempts",
    "handshake-rto",
    "handshake-attempts",
    "send-buffer",
    "fast-open",
];

impl TcpParameters {
    /// The TCP that `congestion` gives its name: positive acknowledgement without SACK, recovery by duplicates, as
    /// ResTP's 3WH-ARQ.
    pub fn new(congestion: CongestionChoice) -> Self {
        TcpParameters {
            congestion,
            ack: PositiveParameters::default(),
            detail: Detail::Pointer,
            nak: NakParameters::default(),
            snack_immediate: false,
            re_snack: false,
            recovery: RecoveryChoice::DuplicateAck,
            lost_repeats: LostRepeats::Evidence,
            segment_bytes: 1400,
            window: WindowParameters::default(),
            window_scaling: true,
            timestamps: false,
            rto: RtoParameters::default(),
            handshake: HandshakeParameters::default(),
            send_buffer_bytes: 256 << 10,
            multipath: None,
            fast_open: false,
        }
    }

    /// The TCP that a detail of acknowledgements gives its name: NewReno with the pipe rule (TC §4.1).
    fn reporting(detail: Detail) -> Self {
        TcpParameters {
            detail,
            recovery: RecoveryChoice::Pipe,
            ..TcpParameters::new(CongestionChoice::NewReno(Default::default()))
        }
    }

    /// Names of all TCPs: those of the congestion controls, and of what acknowledgements may say.
    pub fn names() -> impl Iterator<Item = &'static str> {
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
        evidence.single = evidence.single.and(mode);
        evidence.finding(self.lost_repeats)
    }

    /// The TCP called `name`, such as `newreno`, with every pair of `set`. Choices count before numbers, whatever
    /// their order.
    ///
    /// # Errors
    /// When a name, key, value or unit is not understood, or the result makes no sense.
    pub fn from_pairs(name: &str, set: &[(&str, &str)]) -> Result<Self, ParameterError> {
        let choices: Vec<_> = controls(false)
            .map(|(name, choice)| (name, TcpParameters::new(choice)))
            .chain(DETAILS.map(|(name, detail)| (name, TcpParameters::reporting(detail))))
            .collect();
        named("transport", name, &choices)?.with(set)
    }

    /// These parameters, changed by every pair of `set`.
    pub(crate) fn with(mut self, set: &[(&str, &str)]) -> Result<Self, ParameterError> {
        let is_choice = |key: &str| CHOICES.contains(&dashed(key).as_str());
        let (first, then): (Vec<_>, Vec<_>) = set.iter().partition(|(key, _)| is_choice(key));
        for (key, value) in first.into_iter().chain(then) {
            self.set(&dashed(key), value.trim())?;
        }
        self.check()?;
        Ok(self)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), ParameterError> {
        let about = |message: &dyn Display| error(key, format!("{key}: {message}"));
        let bytes = || units::bytes(value).map_err(|why| about(&why));
        let packets = || units::packets(value).map_err(|why| about(&why));
        let span = || units::duration(value).map_err(|why| about(&why));
        let small = |number| small(key, value, number);
        let count = || count(key, value);
        match key {
            "congestion" => {
                let choices: Vec<_> = controls(self.multipath.is_some()).collect();
                self.congestion = named(key, value, &choices)?;
            }
            "ack" => (self.ack, self.detail) = ack(value)?,
            "recovery" => self.recovery = named(key, value, &RecoveryChoice::ALL)?,
            "segment" => self.segment_bytes = small(bytes()?)?,
            "window" => self.window.segments = small(packets()?)?,
            "window-scaling" => self.window_scaling = named(key, value, &SWITCH)?,
            "timestamps" => self.timestamps = named(key, value, &SWITCH)?,
            "ack-every" => self.ack.every = small(packets()?)?,
            "ack-delay" => self.ack.delay = span()?,
            "sack-blocks" => match &mut self.detail {
                Detail::Sack { max_blocks } => *max_blocks = small(count()?)?.min(255) as u8,
                _ => return Err(about(&"it belongs to ack = \"positive+sack\"; choose that")),
            },
            "nak-mode" | "nak-copies" | "nak-emission" if self.detail != Detail::Nak => {
                return Err(about(&"it belongs to ack = \"positive+nak\"; choose that"));
            }
            "nak-mode" => self.nak.mode = named(key, value, &NakMode::ALL)?,
            "nak-copies" => self.nak.copies = small(count()?)?.min(255) as u8,
            "nak-emission" => self.nak.emission = named(key, value, &NakEmission::ALL)?,
            "snack-immediate" | "re-snack" if self.detail != Detail::Snack => {
                return Err(about(&"it belongs to ack = \"positive+snack\"; choose that"));
            }
            "snack-immediate" => self.snack_immediate = named(key, value, &SWITCH)?,
            "re-snack" => self.re_snack = named(key, value, &SWITCH)?,
            "lost-repeats" if self.recovery != RecoveryChoice::Pipe => {
                return Err(about(&"it belongs to recovery = \"pipe\"; choose that"));
            }
            "lost-repeats" => self.lost_repeats = named(key, value, &LostRepeats::ALL)?,
            "flight-limit" | "random-loss" | "bbr-draft" | "rate" | "initial-window"
            | "initial-threshold" | "growth" => self.set_congestion(key, value)?,
            "rto-floor" => self.rto.floor = span()?,
            "rto-ceiling" => self.rto.ceiling = span()?,
            "data-attempts" => self.rto.attempts = small(count()?)?,
            "handshake-rto" => self.handshake.rto = span()?,
            "handshake-attempts" => self.handshake.attempts = small(count()?)?,
            "fast-open" => self.fast_open = named(key, value, &SWITCH)?,
            "send-buffer" => self.send_buffer_bytes = bytes()? as usize,
            _ => {
                let keys = [&CHOICES[..], &NUMBERS].concat().join(", ");
                let message = format!("\"{key}\" is nothing that can be set of TCP; write one of: {keys}");
                return Err(error(key, message));
            }
        }
        Ok(())
    }

    /// The same of a key that belongs to the congestion control.
    fn set_congestion(&mut self, key: &str, value: &str) -> Result<(), ParameterError> {
        let about = |message: &dyn Display| error(key, format!("{key}: {message}"));
        let packets = || units::packets(value).map_err(|why| about(&why));
        let bytes = || units::bytes(value).map_err(|why| about(&why));
        let rate = || units::rate(value).map_err(|why| about(&why));
        let owner = |name| about(&format!("it belongs to congestion = \"{name}\"; choose that"));
        match (key, &mut self.congestion) {
            ("flight-limit", CongestionChoice::None(limit)) => limit.flight_limit_segments = packets()?,
            ("flight-limit", _) => return Err(owner("none")),
            ("random-loss", CongestionChoice::Bbr(bbr)) => {
                bbr.random_loss_percent = small(key, value, count(key, value)?)?;
            }
            ("bbr-draft", CongestionChoice::Bbr(bbr)) => bbr.draft = named(key, value, &SWITCH)?,
            ("random-loss" | "bbr-draft", _) => return Err(owner("bbr")),
            ("rate", CongestionChoice::Rate(fixed)) => fixed.rate = rate()?,
            ("rate", _) => return Err(owner("rate")),
            ("initial-window", congestion) => {
                common(key, congestion)?.initial_window_segments = packets()?;
            }
            ("initial-threshold", congestion) => {
                common(key, congestion)?.initial_threshold_bytes = bytes()?;
            }
            (_, congestion) => common(key, congestion)?.growth = named(key, value, &GROWTH)?,
        }
        Ok(())
    }

    /// What no TCP can do.
    fn check(&self) -> Result<(), ParameterError> {
        let least = |key: &str, found: u64, range: std::ops::RangeInclusive<u64>| {
            let (low, high) = (range.start(), range.end());
            let message = format!("{key} is {found}; write {low} to {high}");
            range.contains(&found).then_some(()).ok_or(error(key, message))
        };
        if let CongestionChoice::Rate(fixed) = self.congestion {
            least("rate", fixed.rate.as_bps(), 1_000..=u64::MAX)?;
        }
        least("segment", self.segment_bytes.into(), 1..=65_000)?;
        least("window", self.window.segments.into(), 1..=65_535)?;
        least("ack-every", self.ack.every.into(), 1..=1_000)?;
        least("handshake-attempts", self.handshake.attempts.into(), 1..=100)?;
        least("send-buffer", self.send_buffer_bytes as u64, 1..=1 << 40)?;
        if let Detail::Sack { max_blocks } = self.detail {
            least("sack-blocks", max_blocks.into(), 1..=4)?;
        }
        least("nak-copies", self.nak.copies.into(), 1..=100)?;
        if self.rto.floor > self.rto.ceiling || self.rto.floor.is_zero() || self.handshake.rto.is_zero() {
            let message = "rto-floor and handshake-rto must be above zero, and rto-floor at most rto-ceiling";
            return Err(error("rto-floor", message.into()));
        }
        if self.recovery == RecoveryChoice::Pipe && self.detail == Detail::Pointer {
            let message = "recovery \"pipe\" lives on what NAK, SACK or SNACK report; \
                           set ack = \"positive+sack\", or recovery = \"duplicate-ack\"";
            return Err(error("recovery", message.into()));
        }
        if self.fast_open && self.multipath.is_some() {
            let message = "fast-open opens connections of one path; leave it out, or choose tcp";
            return Err(error("fast-open", message.into()));
        }
        if self.re_snack && self.lost_repeats == LostRepeats::Timer {
            let message = "re-snack asks for a lost repeat again, lost-repeats \"timer\" never does; \
                           leave one of them out";
            return Err(error("lost-repeats", message.into()));
        }
        Ok(())
    }
}

const SWITCH: [(&str, bool); 2] = [("on", true), ("off", false)];
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
const GROWTH: [(&str, Growth); 2] = [("bytes", Growth::Bytes), ("acks", Growth::Acks)];

pub(crate) fn error(key: &str, message: String) -> ParameterError {
    ParameterError {
        key: key.into(),
        message,
    }
}

fn small(key: &str, value: &str, number: u64) -> Result<u32, ParameterError> {
    u32::try_from(number).map_err(|_| error(key, format!("{key}: {}", too_large(value))))
}

fn count(key: &str, value: &str) -> Result<u64, ParameterError> {
    let message = || format!("{key}: \"{value}\" is no count; write a whole number, such as \"4\"");
    value.parse().map_err(|_| error(key, message()))
}

fn too_large(value: &str) -> String {
    format!("\"{value}\" is too large; write at most {}", u32::MAX)
}

pub(crate) fn dashed(key: &str) -> String {
    key.trim().replace('_', "-")
}

pub(crate) fn named<T: Clone>(key: &str, value: &str, choices: &[(&str, T)]) -> Result<T, ParameterError> {
    let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
    match choices.iter().find(|(name, _)| *name == value) {
        Some((_, choice)) => Ok(choice.clone()),
        None => {
            let message = format!(
                "\"{value}\" is no choice for {key}; write one of: {}",
                names.join(", ")
            );
            Err(error(key, message))
        }
    }
}

/// Congestion controls: those of one path, or all.
fn controls(coupled: bool) -> impl Iterator<Item = (&'static str, CongestionChoice)> {
    let choices = CongestionChoice::all().into_iter();
    let choices = choices.filter(move |choice| coupled || !choice.is_coupled());
    choices.map(|choice| (choice.name(), choice))
}

fn ack(value: &str) -> Result<(PositiveParameters, Detail), ParameterError> {
    let technique = Acknowledgement::from_name(value).filter(|technique| technique.repeat.is_none());
    match technique.map(|technique| (technique.schedule, technique.detail)) {
        Some((Schedule::Positive(parameters), detail)) => Ok((parameters, detail)),
        _ => {
            let message = format!(
                "\"{value}\" is no choice for ack; write one of: positive, positive+nak, \
                                   positive+sack, positive+snack"
            );
            Err(error("ack", message))
        }
    }
}

/// Start and growth of an algorithm with a window.
fn common<'a>(key: &str, choice: &'a mut CongestionChoice) -> Result<&'a mut CommonParams, ParameterError> {
    let name = choice.name();
    choice.common().ok_or_else(|| {
        let message = format!("congestion \"{name}\" has no {key}; leave it out, or choose newreno or cubic");
        error(key, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use restp_base::time::Duration;

    fn refused(name: &str, set: &[(&str, &str)]) -> ParameterError {
        TcpParameters::from_pairs(name, set).expect_err("refused")
    }

    #[test]
    fn every_key_can_be_set_and_none_is_forgotten() {
        let values = [
            ("congestion", "cubic"),
            ("ack", "positive+sack"),
            ("recovery", "pipe"),
            ("segment", "1000 B"),
            ("window", "100 segments"),
            ("window_scaling", "off"),
            ("timestamps", "on"),
            ("ack-every", "1 packet"),
            ("ack-delay", "200 ms"),
            ("sack-blocks", "3"),
            ("lost-repeats", "timer"),
            ("initial-window", "2 segments"),
            ("initial-threshold", "65535 B"),
            ("growth", "acks"),
            ("rto-floor", "1 s"),
            ("rto-ceiling", "90 s"),
            ("data-attempts", "9"),
            ("handshake-rto", "1 s"),
            ("handshake-attempts", "2"),
            ("send-buffer", "64 KiB"),
            ("fast-open", "on"),
        ];
        let others = [
            ("nak", "nak-mode", "quasi-reliable"),
            ("nak", "nak-copies", "5"),
            ("nak", "nak-emission", "every-ack"),
            ("snack", "snack-immediate", "on"),
            ("snack", "re-snack", "on"),
        ];
        for (name, key, value) in others {
            let set = TcpParameters::from_pairs(name, &[(key, value)]).unwrap();
            assert_ne!(set, TcpParameters::from_pairs(name, &[]).unwrap(), "{key}");
            assert!(
                refused("sack", &[(key, value)])
                    .message
                    .contains(&format!("positive+{name}"))
            );
        }
        let own = [
            ("none", "flight-limit", "32 packets"),
            ("bbr", "random-loss", "2"),
            ("bbr", "bbr-draft", "on"),
            ("rate", "rate", "2 Mbit/s"),
        ];
        assert_eq!(
            values.len() + others.len() + own.len(),
            CHOICES.len() + NUMBERS.len()
        );
        for (name, key, value) in own {
            let set = TcpParameters::from_pairs(name, &[(key, value)]).unwrap();
            assert_ne!(set, TcpParameters::from_pairs(name, &[]).unwrap(), "{key}");
        }
        let all = TcpParameters::from_pairs("newreno", &values).unwrap();
        for (key, value) in values {
            let without: Vec<_> = values.into_iter().filter(|(other, _)| *other != key).collect();
            assert_ne!(
                TcpParameters::from_pairs("newreno", &without).as_ref(),
                Ok(&all),
                "{key} = {value} changes nothing"
            );
        }
        assert_eq!((all.ack.every, all.detail), (1, Detail::Sack { max_blocks: 3 }));
        assert_eq!(all.handshake.rto, Duration::from_secs(1));
    }

    #[test]
    fn choices_count_before_numbers_whatever_their_order() {
        let set = [("initial-window", "3 segments"), ("congestion", "newreno")];
        let CongestionChoice::NewReno(params) = TcpParameters::from_pairs("cubic", &set).unwrap().congestion
        else {
            panic!("not NewReno")
        };
        assert_eq!(params.initial_window_segments, 3);
    }

    #[test]
    fn errors_name_the_key_the_value_and_the_way_out() {
        for (set, key, says) in [
            ([("pacing", "on")], "pacing", "congestion, ack, recovery, segment"),
            ([("congestion", "newrenno")], "congestion", "newreno, bic, cubic"),
            ([("ack", "delayed+nak")], "ack", "positive, positive+nak"),
            ([("segment", "1000")], "segment", "no unit"),
            ([("segment", "0 B")], "segment", "1 to 65000"),
            ([("recovery", "pipe")], "recovery", "positive+sack"),
            ([("sack-blocks", "3")], "sack-blocks", "positive+sack"),
            ([("lost-repeats", "timer")], "lost-repeats", "pipe"),
            ([("flight-limit", "3 packets")], "flight-limit", "none"),
            ([("data-attempts", "many")], "data-attempts", "\"many\""),
            ([("rto-floor", "90 s")], "rto-floor", "rto-ceiling"),
        ] {
            let error = refused("newreno", &set);
            assert_eq!(error.key, key, "{error}");
            assert!(error.message.contains(says), "{error}");
        }
        let error = refused("snack", &[("re-snack", "on"), ("lost-repeats", "timer")]);
        assert_eq!(error.key, "lost-repeats", "{error}");
        let error = refused("none", &[("growth", "acks")]);
        assert!(error.message.contains("\"none\" has no growth"), "{error}");
        assert!(
            refused("vegass", &[])
                .message
                .contains("\"vegass\" is no choice for transport")
        );
    }
}
