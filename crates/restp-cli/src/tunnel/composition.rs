//! What carries packets: messages in order, each once, so that TCP inside sees neither the losses of a link nor its disorder.

use crate::transfer::carries;
use restp::Composition;

/// Services that decide it, and the choices that do.
const NEEDS: [(&str, &[&str]); 4] = [
    ("connection", &["three-way", "opportunistic", "fast-open"]),
    ("framing", &["fixed"]),
    ("ordering", &["ordered"]),
    ("reliability", &["arq"]),
];

/// Makes each packet a message. Whether the whole carries them is for [`check_fitness`] to say.
pub fn prepare(composition: &mut Composition) {
    // A framing of that name there is.
    let _ = composition.set("framing", "fixed");
}

/// Checks that `composition` carries packets.
///
/// # Errors
/// When it does not: the services at fault, and what to choose instead.
pub fn check_fitness(composition: &Composition) -> Result<(), String> {
    carries(composition, "tunnel", &NEEDS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datagrams;
    use restp::Preset;

    #[test]
    fn one_path_and_several_carry_packets_and_nobody_takes_them_for_datagrams() {
        for preset in ["default", "multipath", "resilient"] {
            let preset = Preset::named(preset).expect("a preset");
            let mut composition = preset.composition();
            prepare(&mut composition);
            assert_eq!(check_fitness(&composition), Ok(()));
            assert!(datagrams::check_fitness(&composition).is_err());
            assert!(composition.check().is_ok());
        }
        assert!(
            check_fitness(&Composition::default())
                .expect_err("a stream")
                .contains("framing = fixed")
        );
    }
}
