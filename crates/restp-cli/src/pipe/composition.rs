//! What carries TCP connections: one association, of which each of them has a stream.

use crate::transfer::carries;
use restp::Composition;

/// Services that decide it, and the choices that do.
const NEEDS: [(&str, &[&str]); 3] = [
    ("connection", &["three-way", "opportunistic", "fast-open"]),
    ("framing", &["streams"]),
    ("reliability", &["arq", "harq"]),
];

/// Each stream is ordered by itself. One of them fills 100 Mbit/s over a geostationary satellite, and what all of them may have waiting
/// is ten times that: programs that stop reading do not hold up the others.
const CHOICES: [(&str, &str); 4] = [
    ("framing", "streams"),
    ("ordering", "unordered"),
    ("stream-window", "8 MiB"),
    ("window", "65535 segments"),
];

/// Gives each TCP connection a stream. Whether the whole carries them is for [`check_fitness`] to say.
pub fn prepare(composition: &mut Composition) {
    for (key, choice) in CHOICES {
        // What a profile has no room for is left out.
        let _ = composition.set(key, choice);
    }
}

/// Checks that `composition` carries streams.
///
/// # Errors
/// When it does not: the service at fault, and what to choose instead.
pub fn check_fitness(composition: &Composition) -> Result<(), String> {
    carries(composition, "TCP connections", &NEEDS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use restp::Preset;

    #[test]
    fn presets_over_one_path_and_several_carry_streams() {
        for preset in ["default", "multipath", "resilient", "cubic"] {
            let preset = Preset::named(preset).expect("a preset").composition();
            for base in [preset.clone(), preset.over_several_paths()] {
                let mut composition = base;
                prepare(&mut composition);
                assert_eq!(check_fitness(&composition), Ok(()));
                let valid = composition.check().expect("valid");
                assert!(valid.warnings().is_empty(), "{:?}", valid.warnings());
            }
        }
        let why = check_fitness(&Composition::default()).expect_err("one sequence of bytes");
        assert!(why.contains("framing = streams"), "{why}");
        let mut voice = Preset::named("voice").expect("a preset").composition();
        prepare(&mut voice);
        let why = check_fitness(&voice).expect_err("it gives up what is late");
        assert!(why.contains("reliability = arq"), "{why}");
    }
}
