//! From what a flow needs and what its paths may suffer to a composition: the service specification *ss* and the threat
//! model *tm* of ResTP §3.4, with the contents of OP-56. The answer is a preset and the keys changed in it, so that it can
//! be read, written into a profile file and changed; whether it goes together is judged by the rules of every composition.

use super::{Composition, KEYS, Preset, SetError};
use restp_base::time::Duration;
use restp_base::units::{self, UnitError};
use restp_services::loss_handling::LossHandling;
use thiserror::Error;

/// Most payload bytes of a segment that no preset changes: a larger frame cannot stay whole.
const SEGMENT_BYTES: u64 = 1400;
/// The header counts paths with four bits (ResTP §3.1.1).
const MOST_FAILURES: u64 = 14;

/// How much of what is sent has to arrive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arrival {
    /// What the network delivers.
    None,
    /// More than that, without asking anybody: forward error correction.
    Quasi,
    /// What can still be of use.
    Partial,
    /// All of it.
    #[default]
    Full,
}

/// In which order it has to come out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// As it arrives.
    None,
    /// In order, with holes where waiting would cost too much.
    Partial,
    /// As it was sent.
    Full,
}

/// How much capacity there is for how much the flow wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bandwidth {
    /// The way back is narrow, lossy or asymmetric.
    Narrow,
    /// Nothing special.
    #[default]
    Ordinary,
    /// The flow takes what several paths give together.
    Hungry,
}

/// What a flow needs, and what it has to survive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Needs {
    /// How much has to arrive. Default: all.
    pub reliability: Arrival,
    /// In which order. Default: as much order as there is reliability.
    pub ordering: Option<Order>,
    /// Data is of use until this long after it was sent. Default: for ever.
    pub deadline: Option<Duration>,
    /// Bytes of the largest frame, where frames have to stay whole. Default: a stream of bytes.
    pub frame_bytes: Option<u64>,
    /// The start may not take a round trip.
    pub early_start: bool,
    /// The class of bandwidth.
    pub bandwidth: Bandwidth,
    /// What losses come from. Default: adaptive, for who does not know.
    pub loss: LossHandling,
    /// Paths that may fail at the same time.
    pub failures: u64,
}

/// Every need as `--for KEY=VALUE` says it, with what may stand there.
pub const NEEDS: &[(&str, &str)] = &[
    ("reliability", "none, quasi, partial, full"),
    ("ordering", "none, partial, full"),
    ("deadline", "a span of time such as \"160 ms\""),
    ("frame", "a number of bytes such as \"160 B\""),
    ("early-start", "on, off"),
    ("bandwidth", "narrow, ordinary, hungry"),
    ("loss", "adaptive, congestion, corruption, outage"),
    ("failures", "0 to 14 paths at the same time"),
];

/// Why a need is not understood.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NeedError {
    /// Nothing has this name.
    #[error("\"{key}\" is no need; write one of: {}", NEEDS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", "))]
    Key {
        /// As written.
        key: String,
    },
    /// It cannot be that.
    #[error("{key}: \"{value}\" cannot be needed; write {allowed}")]
    Value {
        /// The need.
        key: &'static str,
        /// As written.
        value: String,
        /// What may stand there.
        allowed: &'static str,
    },
    /// The number or its unit is not understood.
    #[error("{key}: {why}")]
    Quantity {
        /// The need.
        key: &'static str,
        /// What is wrong with it.
        why: UnitError,
    },
    /// A frame that no segment holds.
    #[error(
        "frame: {0} B do not stay whole in a segment of {SEGMENT_BYTES} B; cut frames to that, or leave frame out and \
         write their lengths into a stream"
    )]
    Frame(u64),
}

impl Default for Needs {
    fn default() -> Self {
        Needs {
            reliability: Default::default(),
            ordering: Default::default(),
            deadline: Default::default(),
            frame_bytes: Default::default(),
            early_start: Default::default(),
            bandwidth: Default::default(),
            loss: LossHandling::Adaptive,
            failures: Default::default(),
        }
    }
}

impl Needs {
    /// Says one need.
    ///
    /// # Errors
    /// When name, value or unit are not understood; nothing is changed then.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), NeedError> {
        let name = name.replace('_', "-");
        let Some((key, allowed)) = NEEDS.iter().copied().find(|(key, _)| *key == name) else {
            return Err(NeedError::Key { key: name });
        };
        let value = value.trim();
        let wrong = || NeedError::Value {
            key,
            value: value.into(),
            allowed,
        };
        let quantity = |why| NeedError::Quantity { key, why };
        match key {
            "reliability" => self.reliability = choice(RELIABILITY, value).ok_or_else(wrong)?,
            "ordering" => self.ordering = Some(choice(ORDERING, value).ok_or_else(wrong)?),
            "deadline" => self.deadline = Some(units::duration(value).map_err(quantity)?),
            "frame" => {
                let bytes = units::bytes(value).map_err(quantity)?;
                if bytes > SEGMENT_BYTES {
                    return Err(NeedError::Frame(bytes));
                }
                self.frame_bytes = Some(bytes);
            }
            "early-start" => self.early_start = choice(SWITCH, value).ok_or_else(wrong)?,
            "bandwidth" => self.bandwidth = choice(BANDWIDTH, value).ok_or_else(wrong)?,
            "loss" => self.loss = choice(&LossHandling::ALL, value).ok_or_else(wrong)?,
            _ => {
                let failures = value.parse().ok().filter(|failures| *failures <= MOST_FAILURES);
                self.failures = failures.ok_or_else(wrong)?;
            }
        }
        Ok(())
    }

    /// k: one path more than may fail at the same time (OP-56).
    pub fn paths(&self) -> u64 {
        self.failures + 1
    }

    /// A preset, and what to change in it, as a profile file says it.
    pub fn profile(&self) -> Vec<(&'static str, String)> {
        let spread = self.failures > 0 && self.bandwidth == Bandwidth::Hungry;
        // A message that is given up is one for all paths.
        let shares = self.failures > 0 && self.reliability == Arrival::Partial;
        let mut pairs = vec![("preset", self.preset(spread).to_owned())];
        let mut set = |key, value: &str| pairs.push((key, value.to_owned()));
        let retransmits = matches!(self.reliability, Arrival::Partial | Arrival::Full);
        let ordering = self.ordering.unwrap_or(match self.reliability {
            Arrival::None | Arrival::Quasi => Order::None,
            Arrival::Partial => Order::Partial,
            Arrival::Full => Order::Full,
        });
        let numbered = self.reliability != Arrival::None || ordering != Order::None;
        if numbered {
            // The first number is agreed on there; without numbers data leaves at once (ResTP §3.5.5).
            let early = self.early_start;
            set("connection", if early { "opportunistic" } else { "three-way" });
        }
        if self.reliability == Arrival::Quasi {
            set("reliability", "quasi");
        }
        set(
            "ordering",
            match ordering {
                Order::None => "unordered",
                Order::Partial => "partial",
                Order::Full => "ordered",
            },
        );
        if self.frame_bytes.is_some() || ordering == Order::None {
            set("framing", "fixed");
        }
        if retransmits {
            // ResTP §3.5.9: blocks where there is room for them, a vector where there is little.
            let narrow = self.bandwidth == Bandwidth::Narrow && !shares;
            set("ack", if narrow { "positive+snack" } else { "positive+sack" });
            set("recovery", "pipe");
        }
        match self.loss {
            LossHandling::Congestion => set("loss", "congestion"),
            LossHandling::Outage => set("loss", "outage"),
            LossHandling::Adaptive => {} // the preset knows
            LossHandling::Corruption => {
                set("loss", "corruption");
                set("congestion", "none"); // ResTP §3.6
                set("ecn", "off");
            }
        }
        if self.failures > 0 && !spread {
            set("paths", "hot-standby"); // ResTP §3.3.2: no coupled windows and no scheduler are needed
        }
        if shares {
            set("numbering", "shared");
        }
        if shares && spread {
            set("paths", "spreading");
            set("scheduling", "round-robin");
        }
        if let Some(deadline) = self.deadline.filter(|_| ordering != Order::None) {
            set("deadline", &deadline.to_string());
        }
        keep_changes(&mut pairs);
        pairs
    }

    /// The preset that is nearest.
    fn preset(&self, spread: bool) -> &'static str {
        match self.reliability {
            Arrival::None | Arrival::Quasi => "unrel",
            Arrival::Partial => "par-arq",
            Arrival::Full if spread => "multipath",
            Arrival::Full => match self.loss {
                LossHandling::Adaptive => "default",
                LossHandling::Congestion => "cubic",
                LossHandling::Corruption => "arq-only",
                LossHandling::Outage => "resilient",
            },
        }
    }

    /// The composition, not yet checked: needs may contradict each other, and the rules say how.
    ///
    /// # Errors
    /// When a need has no meaning beside the others.
    pub fn composition(&self) -> Result<Composition, SetError> {
        let profile = self.profile();
        let pairs = profile.iter().map(|(key, value)| (*key, value.as_str()));
        Composition::from_pairs(Composition::default(), pairs)
    }
}

/// Leaves out what the preset, which comes first, says already.
fn keep_changes(pairs: &mut Vec<(&'static str, String)>) {
    let preset = pairs.first().and_then(|(_, name)| Preset::named(name));
    let base = preset.map(Preset::composition).unwrap_or_default();
    let said = |name: &str| KEYS.iter().find(|key| key.name == name)?.read(&base);
    pairs.retain(|(key, value)| said(key).as_ref() != Some(value));
}

const RELIABILITY: &[(&str, Arrival)] = &[
    ("none", Arrival::None),
    ("quasi", Arrival::Quasi),
    ("partial", Arrival::Partial),
    ("full", Arrival::Full),
];
const ORDERING: &[(&str, Order)] = &[
    ("none", Order::None),
    ("partial", Order::Partial),
    ("full", Order::Full),
];
const BANDWIDTH: &[(&str, Bandwidth)] = &[
    ("narrow", Bandwidth::Narrow),
    ("ordinary", Bandwidth::Ordinary),
    ("hungry", Bandwidth::Hungry),
];
const SWITCH: &[(&str, bool)] = &[("on", true), ("off", false)];

fn choice<T: Copy>(choices: &[(&str, T)], value: &str) -> Option<T> {
    let found = choices.iter().find(|(name, _)| *name == value);
    found.map(|(_, choice)| *choice)
}

#[cfg(test)]
mod tests;
