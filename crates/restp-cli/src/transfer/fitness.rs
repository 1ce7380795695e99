//! Which compositions carry a file: those that deliver every byte, once, in order, and say when that is over.

use restp::Composition;
use thiserror::Error;

/// Services that decide it, and the choices that do.
const NEEDS: [(&str, &[&str]); 4] = [
    ("connection", &["three-way", "opportunistic", "fast-open"]),
    ("framing", &["coalesce"]),
    ("ordering", &["ordered"]),
    ("reliability", &["arq", "harq"]),
];

/// A composition that loses, reorders or never ends what it carries.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "{given} cannot carry a file, which must arrive whole and in order; choose {instead}, or --profile default"
)]
pub struct Unfit {
    given: String,
    instead: String,
}

/// Checks that `composition` delivers a file whole and in order.
///
/// # Errors
/// When it does not: every service at fault, and what to choose instead.
pub fn check(composition: &Composition) -> Result<(), Unfit> {
    let faults = unmet(composition, &NEEDS);
    if faults.is_empty() {
        return Ok(());
    }
    let (given, instead): (Vec<_>, Vec<_>) = faults.into_iter().unzip();
    Err(Unfit {
        given: given.join(", "),
        instead: instead.join(", "),
    })
}

/// Of what is needed, services with the choices that do, what `composition` has instead, and the first choice that does.
fn unmet(composition: &Composition, needs: &[(&str, &[&str])]) -> Vec<(String, String)> {
    let services = composition.services();
    let mut faults = Vec::new();
    for (service, fit) in needs {
        let chosen = services.iter().find(|(name, ..)| name == service);
        let choice = chosen.map_or("nothing", |(_, choice, _)| choice);
        if !fit.contains(&choice) {
            faults.push((format!("{service} = {choice}"), format!("{service} = {}", fit[0])));
        }
    }
    faults
}

/// Checks that `composition` carries `what`, for which `needs` are all that is needed.
///
/// # Errors
/// When it does not: a service at fault, and what to choose instead.
pub fn carries(composition: &Composition, what: &str, needs: &[(&str, &[&str])]) -> Result<(), String> {
    match unmet(composition, needs).first() {
        None => Ok(()),
        Some((given, instead)) => Err(format!("{given} carries no {what}; choose {instead}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use restp::Preset;

    fn of(preset: &str) -> Result<(), String> {
        let preset = Preset::named(preset).expect("a preset");
        check(&preset.composition()).map_err(|unfit| unfit.to_string())
    }

    #[test]
    fn bulk_presets_carry_files() {
        for preset in ["default", "3wh-arq", "3wh-harq", "opt-arq", "outage", "arq-only"] {
            assert_eq!(of(preset), Ok(()), "{preset}");
        }
    }

    #[test]
    fn datagrams_and_voice_do_not_and_every_service_at_fault_is_named() {
        let why = of("unrel").expect_err("nothing is delivered for certain");
        for word in [
            "connection = connectionless",
            "framing = fixed",
            "ordering = unordered",
            "reliability = unreliable",
            "whole and in order",
            "reliability = arq",
            "--profile default",
        ] {
            assert!(why.contains(word), "{word}: {why}");
        }
        let why = of("ful-arq").expect_err("a write longer than a segment does not pass");
        assert!(why.starts_with("framing = fixed cannot"), "{why}");
        assert!(of("par-arq").expect_err("skips").contains("ordering = partial"));
    }
}
