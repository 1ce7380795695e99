//! A random valid composition. It is a walk over the key table that keeps what passes the check, so whatever is
//! built enters by itself (Groce and others, "Swarm Testing", ISSTA 2012: leaving services out finds more than
//! using all of them).

use restp_base::random::Stream;
use restp_base::time::Duration;
use restp_proto::composition::{Composition, KEYS, Key, PRESETS, Preset, ValidComposition};
use restp_proto::wire::Services;
use restp_services::path_management::PathMode;
use std::collections::BTreeMap;

/// Keys and values over the preset [`PLAIN`].
pub type Choices = BTreeMap<String, String>;

/// The preset without any service: what a composition differs in from it is what it is made of.
const PLAIN: &str = "unrel";

/// Most steps of the walk over services, of which one in four or so is kept. Short walks stay near a preset: some
/// services are valid only with several others, which no single step brings along.
const STEPS: u64 = 60;
/// How often a number is drawn instead of left at its default: rarely enough that most runs are judged by
/// time-outs in seconds, not milliseconds.
const NUMBERS: f64 = 0.15;

/// Longest that an outage is borne where paths may be killed.
const LONGEST_OUTAGE: Duration = Duration::from_secs(300);

/// The compositions of client and server: the same services, and numbers and local choices that may differ. All for one
/// path, or all for several.
pub fn draw(draw: &mut Stream, several: bool) -> (ValidComposition, ValidComposition) {
    let services: Vec<&Key> = KEYS.iter().filter(|key| key.service).collect();
    let mut client = start(draw, several);
    for _ in 0..draw.below(STEPS) {
        let mut changed = Composition::clone(&client);
        for _ in 0..1 + draw.below(4) {
            let key = services[draw.below(services.len() as u64) as usize];
            set(&mut changed, key, draw);
        }
        keep(&mut client, changed);
    }
    numbers(&mut client, draw);
    let mut server = client.clone();
    if draw.chance(0.5) {
        numbers(&mut server, draw);
        for key in &services {
            let mut changed = Composition::clone(&server);
            set(&mut changed, key, draw);
            if Services::of(&changed) == Services::of(&client) && draw.chance(0.5) {
                keep(&mut server, changed);
            }
        }
    }
    let end = |valid| {
        if several {
            impatient(plainly(valid))
        } else {
            plainly(valid)
        }
    };
    (end(client), end(server))
}

/// Bears an outage for minutes at most. A path that carries one direction only is asked for as long as that: a day of it
/// shows nothing more.
fn impatient(valid: ValidComposition) -> ValidComposition {
    if !valid.loss_handling.probes() || valid.outage_timeout <= LONGEST_OUTAGE {
        return valid;
    }
    let mut changed = Composition::clone(&valid);
    changed.outage_timeout = LONGEST_OUTAGE;
    changed.check().unwrap_or(valid)
}

/// The same without numbers that an earlier choice left behind and that have no meaning any more.
fn plainly(valid: ValidComposition) -> ValidComposition {
    composition(&choices(&valid)).unwrap_or(valid)
}

/// A preset that is built. Messages in time are of one path there, and go over several as well, to which no short walk leads.
fn start(draw: &mut Stream, several: bool) -> ValidComposition {
    let presets = PRESETS.iter().map(Preset::composition);
    let in_time = |composition: &Composition| composition.reliability.is_partial();
    let over_several = presets
        .clone()
        .filter(in_time)
        .map(Composition::over_several_paths);
    let built: Vec<ValidComposition> = presets
        .chain(over_several)
        .filter_map(|composition| composition.check().ok())
        .filter(|valid| (valid.paths != PathMode::Single) == several)
        .collect();
    built[draw.below(built.len() as u64) as usize].clone()
}

fn numbers(chosen: &mut ValidComposition, draw: &mut Stream) {
    for key in KEYS.iter().filter(|key| !key.service) {
        let mut changed = Composition::clone(chosen);
        set(&mut changed, key, draw);
        if draw.chance(NUMBERS)
            && let Ok(valid) = changed.check()
        {
            *chosen = valid;
        }
    }
}

/// Sets `key` to one of the values worth trying; a number without a meaning here changes nothing.
fn set(composition: &mut Composition, key: &Key, draw: &mut Stream) {
    let values = key.samples();
    let value = values[draw.below(values.len() as u64) as usize];
    let _ = composition.set(key.name, value);
}

fn keep(chosen: &mut ValidComposition, changed: Composition) {
    let several = |composition: &Composition| composition.paths != PathMode::Single;
    if let Ok(valid) = changed.check()
        && several(&valid) == several(chosen)
    {
        *chosen = valid; // the network has as many paths
    }
}

/// How `composition` differs from the plain one.
pub fn choices(composition: &Composition) -> Choices {
    let different = |values: Vec<(&'static str, String, &str)>, from: &Composition| -> Choices {
        values
            .into_iter()
            .filter(|(name, value, _)| {
                let key = KEYS.iter().find(|key| key.name == *name);
                key.and_then(|key| key.read(from)).as_ref() != Some(value)
            })
            .map(|(name, value, _)| (name.to_owned(), value))
            .collect()
    };
    let plain = plain();
    let mut all = different(composition.services(), &plain);
    let base = Composition::from_pairs(plain, pairs(&all)).unwrap_or_default();
    all.extend(different(composition.numbers(), &base));
    all
}

/// The composition of these choices.
///
/// # Errors
/// The key that is not understood, or every rule that is broken.
pub fn composition(choices: &Choices) -> Result<ValidComposition, String> {
    Composition::from_pairs(plain(), pairs(choices))
        .map_err(|error| error.to_string())?
        .check()
        .map_err(|refusal| refusal.to_string())
}

fn plain() -> Composition {
    Preset::named(PLAIN).map_or_else(Composition::default, Preset::composition)
}

fn pairs(choices: &Choices) -> impl Iterator<Item = (&str, &str)> {
    choices.iter().map(|(key, value)| (key.as_str(), value.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_choice_that_is_built_is_drawn_sooner_or_later() {
        let drawn: BTreeSet<(&str, String)> = (0..3_000)
            .flat_map(|seed| {
                let (client, _) = draw(&mut Stream::named(seed, "swarm"), seed % 3 == 0);
                client
                    .services()
                    .into_iter()
                    .map(|(key, value, _)| (key, value))
                    .collect::<Vec<_>>()
            })
            .collect();
        for preset in PRESETS {
            let Ok(valid) = preset.composition().check() else {
                continue;
            };
            for (key, value, _) in valid.services() {
                assert!(
                    drawn.contains(&(key, value.clone())),
                    "{key} = {value} of {}",
                    preset.name
                );
            }
        }
    }

    #[test]
    fn choices_are_the_composition() {
        for seed in 0..300 {
            let (client, server) = draw(&mut Stream::named(seed, "swarm"), seed % 3 == 0);
            for valid in [client, server] {
                assert_eq!(composition(&choices(&valid)).as_ref(), Ok(&valid));
            }
        }
    }
}
