//! The keys that set a TCP, and what no TCP can do.

use super::{TcpParameters, controls, current_controls};
use restp_base::names::hint;
use restp_base::units;
use restp_services::ack::{Acknowledgement, Detail, NakEmission, NakMode, PositiveParameters, Schedule};
use restp_services::congestion::{CommonParams, CongestionChoice, CubicRules, Growth, HyStartChoice};
use restp_services::recovery::{LostRetransmissions, RecoveryChoice, Reordering};
use std::fmt::Display;
use thiserror::Error;

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
pub(super) const CHOICES: [&str; 3] = ["congestion", "ack", "recovery"];
/// Keys of numbers and switches.
pub(super) const NUMBERS: [&str; 35] = [
    "segment",
    "window",
    "window-scaling",
    "timestamps",
    "ack-every",
    "ack-delay",
    "ack-quick",
    "sack-blocks",
    "nak-mode",
    "nak-copies",
    "nak-emission",
    "snack-immediate",
    "re-snack",
    "lost-repeats",
    "reordering",
    "tail-loss-probe",
    "rate-reduction",
    "dsack",
    "ecn",
    "flight-limit",
    "random-loss",
    "bbr-draft",
    "hystart",
    "cubic",
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
                let several = self.multipath.is_some();
                let choices: Vec<_> = match self.is_current() {
                    true => current_controls(several).collect(),
                    false => controls(several).collect(),
                };
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
            "ack-quick" => self.ack.quick = small(packets()?)?,
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
            "reordering" if self.recovery != RecoveryChoice::Pipe => {
                return Err(about(&"it belongs to recovery = \"pipe\"; choose that"));
            }
            "reordering" => self.reordering = named(key, value, &Reordering::ALL)?,
            "tail-loss-probe" => self.tail_loss_probe = named(key, value, &SWITCH)?,
            "rate-reduction" => self.rate_reduction = named(key, value, &SWITCH)?,
            "dsack" if !matches!(self.detail, Detail::Sack { .. }) => {
                return Err(about(&"it belongs to ack = \"positive+sack\"; choose that"));
            }
            "dsack" => self.dsack = named(key, value, &SWITCH)?,
            "ecn" => self.ecn = named(key, value, &SWITCH)?,
            "lost-repeats" => self.lost_retransmissions = named(key, value, &LostRetransmissions::ALL)?,
            "flight-limit" | "random-loss" | "bbr-draft" | "hystart" | "cubic" | "rate"
            | "initial-window" | "initial-threshold" | "growth" => self.set_congestion(key, value)?,
            "rto-floor" => self.rto.floor = span()?,
            "rto-ceiling" => self.rto.ceiling = span()?,
            "data-attempts" => self.rto.attempts = small(count()?)?,
            "handshake-rto" => self.handshake.rto = span()?,
            "handshake-attempts" => self.handshake.attempts = small(count()?)?,
            "fast-open" => self.fast_open = named(key, value, &SWITCH)?,
            "send-buffer" => self.send_buffer = self.send_buffer.sized(small(bytes()?)? as usize),
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
            ("hystart", CongestionChoice::Cubic(cubic)) => {
                cubic.hystart = named(key, value, &HyStartChoice::ALL)?;
            }
            ("cubic", CongestionChoice::Cubic(cubic)) => {
                cubic.rules = named(key, value, &CubicRules::ALL)?;
            }
            ("hystart" | "cubic", _) => return Err(owner("cubic")),
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
        least(
            "send-buffer",
            self.send_buffer.bytes() as u64,
            1..=u64::from(u32::MAX),
        )?;
        if let Detail::Sack { max_blocks } = self.detail {
            least("sack-blocks", max_blocks.into(), 1..=4)?;
        }
        least("nak-copies", self.nak.copies.into(), 1..=100)?;
        if self.rto.floor > self.rto.ceiling || self.rto.floor.is_zero() || self.handshake.rto.is_zero() {
            let message = "rto-floor and handshake-rto must be above zero, and rto-floor at most rto-ceiling";
            return Err(error("rto-floor", message.into()));
        }
        if self.reordering != Reordering::Threshold && self.lost_retransmissions == LostRetransmissions::Timer
        {
            let message = "reordering gives a segment time to come, lost-repeats \"timer\" gives it until the timeout; \
                           leave one of them out";
            return Err(error("reordering", message.into()));
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
        if self.re_snack && self.lost_retransmissions == LostRetransmissions::Timer {
            let message = "re-snack asks for a lost repeat again, lost-repeats \"timer\" never does; \
                           leave one of them out";
            return Err(error("lost-repeats", message.into()));
        }
        Ok(())
    }
}

pub(crate) const SWITCH: [(&str, bool); 2] = [("on", true), ("off", false)];
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
                "\"{value}\" is no choice for {key}; write one of: {}{}",
                names.join(", "),
                hint(value, names.iter().copied())
            );
            Err(error(key, message))
        }
    }
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
