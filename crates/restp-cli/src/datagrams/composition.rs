//! What carries datagrams: messages that stay whole, and are not waited for longer than they are of use.

use crate::transfer::carries;
use restp::{Composition, Preset};
use restp_base::time::Duration;

/// Services that decide it, and the choices that do.
const NEEDS: [(&str, &[&str]); 3] = [
    ("connection", &["three-way", "opportunistic", "fast-open"]),
    ("framing", &["fixed"]),
    ("ordering", &["unordered", "partial"]),
];

/// As the composition for datagrams that are of use until `deadline`: preset `video`; without one each is sent once, at once and
/// in no order: who sends it answers for its rate, as without a forward (RFC 8085 §3.1.11).
///
/// # Errors
/// Never, as long as the preset exists.
pub fn composition(deadline: Option<Duration>) -> Result<Composition, String> {
    if let Some(deadline) = deadline {
        let preset = Preset::named("video").ok_or("no preset video")?;
        let mut composition = preset.composition();
        composition.hold.deadline = Some(deadline);
        return Ok(composition);
    }
    let set = [
        ("framing", "fixed"),
        ("ordering", "unordered"),
        ("reliability", "unreliable"),
        ("loss", "congestion"),
        ("congestion", "none"),
        ("flight-limit", "8192 segments"),
        ("pacing", "off"),
        ("ecn", "off"),
        ("ack-thinning", "off"),
    ];
    Composition::from_pairs(Composition::default(), set).map_err(|error| error.to_string())
}

/// The preset called `profile`, if what it carries is of use for a while only.
pub fn in_time(profile: &str) -> Option<Composition> {
    let named = ["voice", "video"]
        .contains(&profile)
        .then(|| Preset::named(profile));
    named.flatten().map(Preset::composition)
}

/// How long what `composition` carries is of use.
pub fn deadline_of(composition: &Composition) -> Option<Duration> {
    composition
        .reliability
        .retransmits()
        .then_some(composition.hold.deadline)?
}

/// Checks that `composition` carries datagrams.
///
/// # Errors
/// When it does not: the services at fault, and what to choose instead.
pub fn check_fitness(composition: &Composition) -> Result<(), String> {
    carries(composition, "datagrams", &NEEDS).map_err(|why| format!("{why}, or --profile video"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_are_valid_and_carry_datagrams() {
        for deadline in [None, Some(Duration::from_millis(100))] {
            let composition = composition(deadline).expect("one");
            assert_eq!(check_fitness(&composition), Ok(()));
            assert_eq!(deadline_of(&composition), deadline);
            let valid = composition.check().expect("valid");
            assert_eq!(valid.warnings().len(), 0, "{:?}", valid.warnings());
            assert!(valid.payload_bytes() >= 1398, "SRT's datagrams stay whole");
        }
        let several = composition(Some(Duration::from_millis(100)))
            .expect("one")
            .over_several_paths();
        assert_eq!(check_fitness(&several), Ok(()));
        assert_eq!(deadline_of(&several), Some(Duration::from_millis(100)));
        let valid = several.check().expect("valid");
        assert_eq!(valid.warnings().len(), 0, "{:?}", valid.warnings());
        assert!(valid.payload_bytes() >= 1398, "SRT's datagrams stay whole");
        for profile in ["voice", "video"] {
            let several = in_time(profile).expect("one").over_several_paths();
            assert_eq!(check_fitness(&several), Ok(()));
            assert!(
                several.reliability.encodes() && several.check().is_ok(),
                "{profile}"
            );
        }
        assert!(in_time("default").is_none() && in_time("par-arq").is_none());
        let why = check_fitness(&Composition::default()).expect_err("a stream");
        assert!(
            why.contains("framing = coalesce") && why.contains("--profile video"),
            "{why}"
        );
    }
}
