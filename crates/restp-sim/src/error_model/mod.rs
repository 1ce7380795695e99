//! What a wire does to packets. Every model draws a fixed count of random numbers per packet offered, from a stream
//! of its own named after link, direction and model, whatever the packet's size or fate. Two protocols compared
//! under one seed therefore meet the same pattern packet by packet, and adding a model leaves the others' as it was.

mod burst;
mod corrupt;
mod duplicate;
mod gilbert_elliott;
mod jitter;
mod outage;
mod rate;
mod reorder;
mod scripted;

pub use burst::BurstLoss;
pub use corrupt::Corrupt;
pub use duplicate::Duplicate;
pub use gilbert_elliott::GilbertElliott;
pub use jitter::Jitter;
pub(crate) use jitter::Turns;
pub(crate) use outage::Outages;
pub(crate) use rate::Process as RateProcess;
pub use rate::{LossUnit, RateLoss};
pub use reorder::Reorder;
pub use scripted::Scripted;

use crate::spec_error::SpecError;
use restp_base::random::Stream;
use restp_base::time::{Duration, Time};
use std::ops::Range;

/// Which packets are lost. No loss is an empty list of models.
#[derive(Clone, Debug, PartialEq)]
pub enum ErrorModel {
    /// Independent losses.
    Rate(RateLoss),
    /// Runs of lost packets (transfer control §4.1).
    Burst(BurstLoss),
    /// Two states, good and bad, each with its own loss.
    GilbertElliott(GilbertElliott),
    /// Exactly these packets.
    Scripted(Scripted),
}

impl ErrorModel {
    pub(crate) fn check(&self) -> Result<(), SpecError> {
        match self {
            ErrorModel::Rate(model) => model.check(),
            ErrorModel::Burst(model) => model.check(),
            ErrorModel::GilbertElliott(model) => model.check(),
            ErrorModel::Scripted(model) => model.check(),
        }
    }
}

/// The running form of one [`ErrorModel`].
#[derive(Clone, Debug)]
enum LossProcess {
    Rate(rate::Process),
    Burst(burst::Process),
    GilbertElliott(gilbert_elliott::Process),
    Scripted(scripted::Process),
}

impl LossProcess {
    fn new(model: &ErrorModel, stream: Stream) -> Self {
        match model {
            ErrorModel::Rate(model) => LossProcess::Rate(rate::Process::new(model, stream)),
            ErrorModel::Burst(model) => LossProcess::Burst(burst::Process::new(model, stream)),
            ErrorModel::GilbertElliott(model) => {
                LossProcess::GilbertElliott(gilbert_elliott::Process::new(model, stream))
            }
            ErrorModel::Scripted(model) => LossProcess::Scripted(scripted::Process::new(model)),
        }
    }

    fn loses(&mut self, bytes: u32) -> bool {
        match self {
            LossProcess::Rate(process) => process.loses(bytes),
            LossProcess::Burst(process) => process.loses(),
            LossProcess::GilbertElliott(process) => process.loses(),
            LossProcess::Scripted(process) => process.loses(),
        }
    }
}

/// What chance has in store for one packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fate {
    pub(crate) lost: bool,
    pub(crate) flip_bit: Option<u64>,
    pub(crate) late_by: Option<Duration>,
    pub(crate) jitter: Duration,
    pub(crate) duplicated: bool,
}

/// What the description of a direction leaves to chance.
#[derive(Clone, Copy)]
pub(crate) struct Chance<'a> {
    pub(crate) loss: &'a [ErrorModel],
    pub(crate) loss_during: &'a [Range<Time>],
    pub(crate) corrupt: Option<Corrupt>,
    pub(crate) reorder: Option<Reorder>,
    pub(crate) jitter: Option<Jitter>,
    pub(crate) duplicate: Option<Duplicate>,
}

/// All chance of one direction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Impairments {
    losses: Vec<LossProcess>,
    /// When these lose; none: always.
    during: Option<Outages>,
    corrupt: Option<corrupt::Process>,
    reorder: Option<reorder::Process>,
    jitter: Option<jitter::Process>,
    duplicate: Option<duplicate::Process>,
}

impl Impairments {
    /// The impairments of a checked description, with streams below `name`. `None`: nothing is left to chance.
    pub(crate) fn new(chance: Chance<'_>, seed: u64, name: &str) -> Option<Self> {
        let stream = |model: &str| Stream::named(seed, &format!("{name}/{model}"));
        let impairments = Impairments {
            losses: losses(chance.loss, seed, name),
            during: (!chance.loss_during.is_empty()).then(|| Outages::new(chance.loss_during)),
            corrupt: chance
                .corrupt
                .map(|model| corrupt::Process::new(model, stream("corrupt"))),
            reorder: chance
                .reorder
                .map(|model| reorder::Process::new(model, stream("reorder"))),
            jitter: chance
                .jitter
                .map(|model| jitter::Process::new(model, stream("jitter"))),
            duplicate: chance
                .duplicate
                .map(|model| duplicate::Process::new(model, stream("duplicate"))),
        };
        let idle = impairments.losses.is_empty()
            && impairments.corrupt.is_none()
            && impairments.reorder.is_none()
            && impairments.jitter.is_none()
            && impairments.duplicate.is_none();
        (!idle).then_some(impairments)
    }

    /// Replaces the loss models and their times; the new ones draw from streams below `name`.
    pub(crate) fn set_losses(&mut self, models: &[ErrorModel], seed: u64, name: &str) {
        (self.losses, self.during) = (losses(models, seed, name), None);
    }

    /// Draws for one packet offered. Every model draws, whatever the others say and whether it is its time.
    pub(crate) fn draw(&mut self, now: Time, bytes: u32) -> Fate {
        let mut fate = Fate::default();
        for process in &mut self.losses {
            fate.lost |= process.loses(bytes);
        }
        fate.lost &= self.during.as_ref().is_none_or(|times| times.covers(now));
        if let Some(process) = &mut self.corrupt {
            fate.flip_bit = process.flips(bytes);
        }
        if let Some(process) = &mut self.reorder {
            fate.late_by = process.late_by();
        }
        if let Some(process) = &mut self.jitter {
            fate.jitter = process.later_by();
        }
        if let Some(process) = &mut self.duplicate {
            fate.duplicated = process.duplicates();
        }
        fate
    }
}

fn losses(models: &[ErrorModel], seed: u64, name: &str) -> Vec<LossProcess> {
    let named = |index| Stream::named(seed, &format!("{name}/loss/{index}"));
    models
        .iter()
        .enumerate()
        .map(|(index, model)| LossProcess::new(model, named(index)))
        .collect()
}

#[cfg(test)]
pub(crate) mod statistics {
    /// Asserts that `hits` of `trials` independent ones with `probability` lie within three standard deviations.
    pub(crate) fn assert_three_sigma(hits: u64, trials: u64, probability: f64) {
        let expected = trials as f64 * probability;
        let sigma = (expected * (1.0 - probability)).sqrt();
        assert!(
            (hits as f64 - expected).abs() <= 3.0 * sigma,
            "{hits} of {trials}, expected {expected} ± {sigma}"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::DirectionSpec;

    fn rate(probability: f64) -> ErrorModel {
        ErrorModel::Rate(RateLoss {
            probability,
            unit: LossUnit::Packet,
        })
    }
    fn everything() -> DirectionSpec {
        DirectionSpec {
            loss: vec![
                rate(0.3),
                ErrorModel::Rate(RateLoss {
                    probability: 1e-5,
                    unit: LossUnit::Bit,
                }),
                ErrorModel::Burst(BurstLoss {
                    probability: 0.2,
                    sizes: 1..=4,
                }),
                ErrorModel::GilbertElliott(GilbertElliott {
                    p: 0.1,
                    r: 0.2,
                    loss_good: 0.1,
                    loss_bad: 0.8,
                }),
            ],
            corrupt: Some(Corrupt { probability: 0.4 }),
            reorder: Some(Reorder {
                probability: 0.4,
                extra: Duration::from_millis(1),
            }),
            jitter: Some(Jitter {
                most: Duration::from_millis(2),
                reorder: true,
            }),
            duplicate: Some(Duplicate { probability: 0.4 }),
            ..DirectionSpec::default()
        }
    }

    #[test]
    fn the_draws_do_not_depend_on_size() {
        let spec = everything();
        let mut small = Impairments::new(spec.chance(), 1, "link/a/forward").expect("impaired");
        let mut large = small.clone();
        for _ in 0..1000 {
            small.draw(Time::ZERO, 40);
            large.draw(Time::ZERO, 1500);
        }
        // Generators that took the same steps agree on all that follows.
        for _ in 0..100 {
            assert_eq!(small.draw(Time::ZERO, 1000), large.draw(Time::ZERO, 1000));
        }
    }

    #[test]
    fn adding_a_model_leaves_the_others_as_they_were() {
        let pattern = |spec: &DirectionSpec| -> Vec<bool> {
            let mut impairments = Impairments::new(spec.chance(), 1, "link/a/forward").expect("impaired");
            (0..1000)
                .map(|_| impairments.draw(Time::ZERO, 1000).duplicated)
                .collect()
        };
        let alone = DirectionSpec {
            duplicate: everything().duplicate,
            ..DirectionSpec::default()
        };
        assert_eq!(pattern(&alone), pattern(&everything()));
    }

    #[test]
    fn a_higher_loss_rate_loses_the_same_packets_and_more() {
        let pattern = |probability| -> Vec<bool> {
            let spec = DirectionSpec {
                loss: vec![rate(probability)],
                ..DirectionSpec::default()
            };
            let mut impairments = Impairments::new(spec.chance(), 1, "link/a/forward").expect("impaired");
            (0..1000)
                .map(|_| impairments.draw(Time::ZERO, 1000).lost)
                .collect()
        };
        assert!(
            pattern(0.1)
                .iter()
                .zip(pattern(0.2))
                .all(|(&few, many)| !few || many)
        );
    }

    /// Before, between and after them nothing is lost, and the pattern is that of losses at all times.
    #[test]
    fn losses_have_their_times() {
        let at = |millis| Time::ZERO + Duration::from_millis(millis);
        let pattern = |loss_during| -> Vec<u64> {
            let spec = DirectionSpec {
                loss: vec![rate(0.5)],
                loss_during,
                ..DirectionSpec::default()
            };
            let mut impairments = Impairments::new(spec.chance(), 1, "link/a/forward").expect("impaired");
            (0..100)
                .filter(|&millis| impairments.draw(at(millis), 1000).lost)
                .collect()
        };
        let is_time = |millis: &u64| (10..20).contains(millis) || (50..60).contains(millis);
        let mut expected = pattern(vec![]);
        expected.retain(is_time);
        assert!(expected.len() > 4);
        assert_eq!(pattern(vec![at(10)..at(20), at(50)..at(60)]), expected);
    }

    #[test]
    fn a_perfect_wire_leaves_nothing_to_chance() {
        assert!(Impairments::new(DirectionSpec::default().chance(), 1, "x").is_none());
    }
}
