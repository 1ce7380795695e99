//! One key of a composition: what may be written for it, and where that goes.

mod unit;

pub(super) use unit::{Slot, Unit};

use super::Composition;
use restp_base::names::nearest;
use restp_base::units::UnitError;
use thiserror::Error;

/// One key.
pub struct Key {
    /// As written; `_` may stand for `-`.
    pub name: &'static str,
    /// Where the specification speaks of it.
    pub section: &'static str,
    /// True for a choice of service, false for a number or another parameter of a choice.
    pub service: bool,
    /// The choice it belongs to, for a parameter of one.
    pub(super) needs: &'static str,
    pub(super) access: Access,
}

/// Why a key could not be set.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SetError {
    /// Nothing has this name.
    #[error("\"{key}\" is no service and no number{}; write one of: {}", hint(*.near), names.join(", "))]
    Key {
        /// As written.
        key: String,
        /// What was probably meant.
        near: Option<&'static str>,
        /// Every key.
        names: Vec<&'static str>,
    },
    /// The service has no such choice.
    #[error("\"{value}\" is no choice for {key}{}; write one of: {}", hint(*.near), choices.join(", "))]
    Choice {
        /// The service.
        key: &'static str,
        /// As written.
        value: String,
        /// What was probably meant.
        near: Option<&'static str>,
        /// Every choice.
        choices: Vec<&'static str>,
    },
    /// The number or its unit is not understood.
    #[error("{key}: {why}")]
    Quantity {
        /// The number.
        key: &'static str,
        /// What is wrong with it.
        why: UnitError,
    },
    /// Not a plain count.
    #[error("{key}: \"{value}\" is no count; write a whole number without a unit, such as \"4\"")]
    Count {
        /// The number.
        key: &'static str,
        /// As written.
        value: String,
    },
    /// No field holds so large a number.
    #[error("{key}: \"{value}\" is too large; write at most {most}")]
    TooLarge {
        /// The number.
        key: &'static str,
        /// As written.
        value: String,
        /// The largest value the field holds.
        most: String,
    },
    /// The number belongs to a choice that is not in use.
    #[error(
        "{key} = \"{value}\" has no meaning here: {key} belongs to {needs}; choose that, or leave {key} out"
    )]
    Idle {
        /// The number.
        key: &'static str,
        /// As written.
        value: String,
        /// The choice it belongs to.
        needs: &'static str,
    },
}

impl Key {
    /// What may be written: the choices, or an example with its unit.
    pub fn allowed(&self) -> Vec<&'static str> {
        match &self.access {
            Access::Choice { choices, .. } => choices(),
            Access::Number { unit, .. } => vec![unit.example()],
        }
    }

    /// Values worth trying: every choice, or numbers from small to large with their unit. Which of them are valid
    /// depends on the other keys.
    pub fn samples(&self) -> Vec<&'static str> {
        match &self.access {
            Access::Choice { choices, .. } => choices(),
            Access::Number { unit, .. } => unit.samples().to_vec(),
        }
    }

    /// The value as it would be written; `None` when it has no meaning under the choices made.
    pub fn read(&self, composition: &Composition) -> Option<String> {
        // Fields are reached by mutable paths only; reading goes over a copy.
        let copy = &mut composition.clone();
        match &self.access {
            Access::Choice { read, .. } => read(copy),
            Access::Number { unit, slot } => slot(copy).map(|slot| unit.write(slot.load())),
        }
    }

    /// What nobody understands is said before what has no meaning here.
    pub(super) fn write(&'static self, composition: &mut Composition, value: &str) -> Result<(), SetError> {
        let key = self.name;
        let idle = || SetError::Idle {
            key,
            value: value.into(),
            needs: self.needs,
        };
        match &self.access {
            Access::Choice { write, .. } => write(composition, value).ok_or_else(|| {
                let choices = self.allowed();
                if choices.contains(&value) {
                    return idle();
                }
                let near = nearest(value, choices.iter().copied());
                SetError::Choice {
                    key,
                    value: value.into(),
                    near,
                    choices,
                }
            }),
            Access::Number { unit, slot } => {
                let number = unit.read(key, value)?;
                let slot = slot(composition).ok_or_else(idle)?;
                slot.store(number).map_err(|most| SetError::TooLarge {
                    key,
                    value: value.into(),
                    most: unit.write(most),
                })
            }
        }
    }
}

/// How a key reaches its field.
pub(super) enum Access {
    /// One of several names.
    Choice {
        choices: fn() -> Vec<&'static str>,
        read: fn(&mut Composition) -> Option<String>,
        write: fn(&mut Composition, &str) -> Option<()>,
    },
    /// A number; no slot when the choice it belongs to is not in use.
    Number {
        unit: Unit,
        slot: fn(&mut Composition) -> Option<&mut dyn Slot>,
    },
}

fn hint(near: Option<&'static str>) -> String {
    near.map_or_else(String::new, |word| format!(" (did you mean \"{word}\"?)"))
}
