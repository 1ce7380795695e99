//! The check: once, when a composition is built. After that the type says that it makes sense.

use super::rules::{Rule, Verdict, rules};
use super::{Composition, KEYS};
use restp_services::ack::{LONGEST_WAIT, Schedule};
use restp_services::connection_management::HandshakeParameters;
use restp_services::flow_control::FlowControl;
use restp_services::framing::Framing;
use restp_services::ordering::Ordering;
use restp_services::path_management::{LONGEST_ACK_DELAY, NumberSpace};
use std::fmt;
use std::ops::Deref;
use thiserror::Error;

/// A composition that breaks no rule. There is no other way to one than [`Composition::check`].
#[derive(Clone, Debug, PartialEq)]
pub struct ValidComposition {
    composition: Composition,
    warnings: Vec<Breach>,
}

/// Why a composition, or what a peer asks for, cannot be used.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum Refusal {
    /// Rules are broken.
    #[error("{}", .0.iter().map(Breach::to_string).collect::<Vec<_>>().join("; also "))]
    Broken(Vec<Breach>),
    /// A peer's header names a service by a number that stands for none.
    #[error("{field} = {code} in the peer's header stands for no service here; {allowed}")]
    Code {
        /// The header field (ResTP §3.1.1).
        field: &'static str,
        /// Its value.
        code: u8,
        /// What it may be.
        allowed: &'static str,
    },
}

/// One rule broken by one composition: why it is refused, or what to beware of.
#[derive(Clone, Debug, PartialEq)]
pub struct Breach {
    /// The rule.
    pub rule: &'static Rule,
    /// Key and value of the choices that break it.
    pub given: Vec<(&'static str, String)>,
}

impl Composition {
    /// Judges every rule (ResTP §14). Discouraged choices are allowed and come back as warnings.
    ///
    /// # Errors
    /// Every rule that forbids the composition.
    pub fn check(self) -> Result<ValidComposition, Refusal> {
        let breaches = self.breaches(&[Verdict::Impossible, Verdict::Forbidden]);
        if !breaches.is_empty() {
            return Err(Refusal::Broken(breaches));
        }
        let warnings = self.breaches(&[Verdict::Discouraged]);
        Ok(ValidComposition {
            composition: self,
            warnings,
        })
    }

    /// The nearest valid composition: the way out of the first broken rule, until none is broken. `None` where the ways
    /// out lead nowhere, which no combination of services does.
    pub fn mended(&self) -> Option<ValidComposition> {
        let mut attempt = self.clone();
        for _ in 0..MOST_STEPS {
            match attempt.clone().check() {
                Ok(valid) => return Some(valid),
                Err(Refusal::Broken(breaches)) => {
                    let instead = breaches.first()?.rule.instead.iter().copied();
                    attempt = Composition::from_pairs(attempt, instead).ok()?;
                }
                Err(Refusal::Code { .. }) => return None,
            }
        }
        None
    }

    /// The broken rules among those with one of `verdicts`, in the order of the table.
    fn breaches(&self, verdicts: &[Verdict]) -> Vec<Breach> {
        rules()
            .filter(|rule| verdicts.contains(&rule.verdict) && (rule.broken)(self))
            .map(|rule| Breach {
                rule,
                given: self.given(rule),
            })
            .collect()
    }

    fn given(&self, rule: &Rule) -> Vec<(&'static str, String)> {
        let keys = KEYS.iter().filter(|key| rule.about.contains(&key.name));
        keys.filter_map(|key| Some((key.name, key.read(self)?))).collect()
    }
}

impl ValidComposition {
    /// The discouraged choices in it.
    pub fn warnings(&self) -> &[Breach] {
        &self.warnings
    }

    /// What works better in some circumstances.
    pub fn hints(&self) -> Vec<Breach> {
        self.composition.breaches(&[Verdict::Recommended])
    }

    /// The plain value, to change and check again.
    pub fn into_inner(self) -> Composition {
        self.composition
    }
}

impl ValidComposition {
    /// What each path of an association over several is composed of: numbers, acknowledgements, repairs and a window of
    /// its own. Order, framing and the receive buffer are shared above it.
    pub(crate) fn of_each_path(&self) -> Self {
        let mut below = self.clone();
        below.composition.ordering = Ordering::Unordered;
        below.composition.framing = Framing::Fixed;
        below.composition.flow_control = FlowControl::None;
        below.answer_soon();
        below
    }

    /// The same for paths that share the numbers. Most arrivals are out of order then, and hurry nobody (DAC of CMT §2.5).
    pub(crate) fn of_all_paths(&self) -> Self {
        let mut all = self.clone();
        all.answer_soon();
        if let Schedule::Positive(positive) = &mut all.composition.ack.schedule {
            positive.delays_reordered = true;
        }
        all
    }

    /// Silence of one of several paths is judged after 30 ms: a lone packet is answered well before, unless its sender says that nothing
    /// hurries.
    fn answer_soon(&mut self) {
        if let Schedule::Positive(positive) = &mut self.composition.ack.schedule {
            if positive.thins {
                positive.unhurried = positive.unhurried.max(positive.delay.min(LONGEST_WAIT)); // also a second time
            }
            positive.delay = positive.delay.min(LONGEST_ACK_DELAY);
            positive.delays_reordered = false;
            let rto = &mut self.composition.rto;
            rto.margin = rto.floor.max(positive.delay.max(positive.unhurried) * 2);
        }
    }

    /// The same for a peer that does not share numbers.
    pub(crate) fn numbered_per_path(&self) -> Self {
        let mut changed = self.clone();
        changed.composition.numbering = NumberSpace::PerPath;
        changed
    }

    /// The same with other attempts for set-up packets.
    pub(crate) fn with_handshake(&self, handshake: HandshakeParameters) -> Self {
        let mut changed = self.clone();
        changed.composition.handshake = handshake;
        changed
    }
}

/// More ways out than any composition needs.
const MOST_STEPS: u32 = 16;

impl Deref for ValidComposition {
    type Target = Composition;
    fn deref(&self) -> &Composition {
        &self.composition
    }
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pairs = |pairs: Vec<(&str, &str)>| {
            let written: Vec<_> = pairs
                .iter()
                .map(|(key, value)| format!("{key} = {value}"))
                .collect();
            written.join(", ")
        };
        let Rule {
            id,
            source,
            reason,
            instead,
            ..
        } = self.rule;
        let given = pairs(
            self.given
                .iter()
                .map(|(key, value)| (*key, value.as_str()))
                .collect(),
        );
        write!(
            f,
            "{given}: {reason} ({source}, rule {id}); choose {}",
            pairs(instead.to_vec())
        )
    }
}

#[cfg(test)]
mod cases;
#[cfg(test)]
mod tests;
