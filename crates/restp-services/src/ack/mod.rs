//! What the feedback says and when it is sent (ResTP §3.5.9). The receiver tells [`AckTimer`] about arrivals and
//! asks whether an acknowledgement is due; every codec decodes what it received to an [`AckReport`].

mod delayed;
mod duplicate;
mod nak;
mod positive;
mod ratio;
mod report;
mod timer;
mod uncarried;

pub use delayed::DelayedParameters;
pub use duplicate::RepeatParameters;
pub use nak::{NakEmission, NakMode, NakParameters, NakReporter};
pub use positive::PositiveParameters;
pub use ratio::{AckRatio, LONGEST_WAIT};
pub use report::AckReport;
pub use timer::{AckTimer, Place};
pub use uncarried::Uncarried;

use restp_base::time::Duration;

/// When acknowledgements are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// Never: there are no acknowledgements.
    None,
    /// Every second packet, and every packet while something is missing.
    Positive(PositiveParameters),
    /// Once per period (OP-46).
    Delayed(DelayedParameters),
}

/// What an acknowledgement says beyond the receiver's pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Nothing.
    Pointer,
    /// One hole (NACK).
    Nak,
    /// Received blocks, the newest first (RFC 2018), at most `max_blocks` of them.
    Sack {
        /// Cap on the number of blocks (ResTP §3.1.8).
        max_blocks: u8,
    },
    /// A hole and a bit vector of what follows.
    Snack,
}

impl Detail {
    /// The same where several paths share the numbers: what a slower path still carries makes each number of a faster one a
    /// block of its own.
    pub fn of_many_paths(self) -> Self {
        match self {
            Detail::Sack { max_blocks } => Detail::Sack {
                max_blocks: max_blocks.max(Acknowledgement::MANY_BLOCKS),
            },
            other => other,
        }
    }
}

/// Acknowledgement technique: a schedule, a level of detail, and the option to repeat the last ACK when idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledgement {
    /// When.
    pub schedule: Schedule,
    /// What.
    pub detail: Detail,
    /// Repeat the last ACK after idle time (duplicate-ACK option, OP-47).
    pub repeat: Option<RepeatParameters>,
}

impl Acknowledgement {
    /// Default cap on SACK blocks (ResTP §18).
    pub const SACK_BLOCKS: u8 = 4;
    /// The same where several paths share the numbers: as many as fit an acknowledgement on every path.
    pub const MANY_BLOCKS: u8 = 32;

    /// No acknowledgements.
    pub const NONE: Acknowledgement = Acknowledgement {
        schedule: Schedule::None,
        detail: Detail::Pointer,
        repeat: None,
    };

    /// Positive acknowledgement with the defaults of ResTP §18.
    pub fn positive() -> Self {
        let schedule = Schedule::Positive(PositiveParameters::default());
        Acknowledgement {
            schedule,
            detail: Detail::Pointer,
            repeat: None,
        }
    }

    /// The same with SACK blocks.
    pub fn with_sack(self) -> Self {
        Acknowledgement {
            detail: Detail::Sack {
                max_blocks: Self::SACK_BLOCKS,
            },
            ..self
        }
    }

    /// True when the module is plugged in.
    pub fn is_on(&self) -> bool {
        self.schedule != Schedule::None
    }

    /// Each end acknowledges as seldom as the other asks for ([`AckRatio`]).
    pub fn thins(&self) -> bool {
        matches!(
            self.schedule,
            Schedule::Positive(PositiveParameters { thins: true, .. })
        )
    }

    /// The same, thinned out where much is in flight ([`AckRatio`]).
    pub fn thinned(mut self) -> Self {
        if let Schedule::Positive(positive) = &mut self.schedule {
            positive.thins = true;
        }
        self
    }

    /// How long a sender may wait for an acknowledgement beyond the round trips it has measured: a period that does not
    /// follow them.
    pub fn unmeasured_wait(&self) -> Duration {
        match self.schedule {
            Schedule::Delayed(DelayedParameters { period: Some(period) }) => period,
            _ => Duration::ZERO,
        }
    }

    /// The name in compositions: parts joined by `+`, such as `positive+sack`.
    pub fn name(&self) -> String {
        let mut parts = vec![match self.schedule {
            Schedule::None => "none",
            Schedule::Positive(_) => "positive",
            Schedule::Delayed(_) => "delayed",
        }];
        match self.detail {
            Detail::Pointer => {}
            Detail::Nak => parts.push("nak"),
            Detail::Sack { .. } => parts.push("sack"),
            Detail::Snack => parts.push("snack"),
        }
        if self.repeat.is_some() {
            parts.push("repeat");
        }
        parts.join("+")
    }

    /// Understands such a name; `None` when a part is unknown or named twice.
    pub fn from_name(name: &str) -> Option<Self> {
        let mut parts = name.split('+');
        let schedule = match parts.next()? {
            "none" => Schedule::None,
            "positive" => Schedule::Positive(PositiveParameters::default()),
            "delayed" => Schedule::Delayed(DelayedParameters::default()),
            _ => return None,
        };
        let mut technique = Acknowledgement {
            schedule,
            detail: Detail::Pointer,
            repeat: None,
        };
        for part in parts {
            match part {
                "repeat" if technique.repeat.is_none() => {
                    technique.repeat = Some(RepeatParameters::default())
                }
                _ if technique.detail != Detail::Pointer => return None,
                "nak" => technique.detail = Detail::Nak,
                "sack" => {
                    technique.detail = Detail::Sack {
                        max_blocks: Self::SACK_BLOCKS,
                    }
                }
                "snack" => technique.detail = Detail::Snack,
                _ => return None,
            }
        }
        Some(technique)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_nonsense_is_refused() {
        for schedule in ["none", "positive", "delayed"] {
            for detail in ["", "+nak", "+sack", "+snack"] {
                for repeat in ["", "+repeat"] {
                    let name = format!("{schedule}{detail}{repeat}");
                    assert_eq!(Acknowledgement::from_name(&name).unwrap().name(), name);
                }
            }
        }
        for wrong in [
            "",
            "sack",
            "positive+sack+snack",
            "positive+repeat+repeat",
            "positive+sock",
        ] {
            assert_eq!(Acknowledgement::from_name(wrong), None, "{wrong}");
        }
    }
}
