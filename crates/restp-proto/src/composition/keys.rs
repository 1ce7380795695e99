//! Reading and printing of keys: what `--set key=value`, a scenario or a profile file may say.

use super::key::{Key, SetError};
use super::key_table::KEYS;
use super::{Composition, PRESETS, Preset};
use restp_base::names::nearest;

impl Composition {
    /// Sets one key, as `--set key=value` and `set = { key = "value" }` do. A choice brings the default
    /// parameters of its service, so set numbers after choices, or use [`from_pairs`](Self::from_pairs).
    ///
    /// # Errors
    /// When key, choice, number or unit are not understood; the composition is then unchanged.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), SetError> {
        find(key)?.write(self, value.trim())
    }

    /// `base` with every pair set: first `preset`, which replaces the base, then services, then numbers, so
    /// that the order of the pairs does not matter. Of several pairs with one key the last one counts.
    ///
    /// # Errors
    /// As [`set`](Self::set), for the first pair that is not understood.
    pub fn from_pairs<'a>(
        base: Composition,
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, SetError> {
        let mut composition = base;
        let (mut services, mut numbers) = (Vec::new(), Vec::new());
        for (name, value) in pairs {
            if name == "preset" {
                composition = Preset::named(value)
                    .ok_or_else(|| unknown_preset(value))?
                    .composition();
                continue;
            }
            let key = find(name)?;
            let list = if key.service { &mut services } else { &mut numbers };
            list.push((key, value.trim()));
        }
        for (key, value) in services.into_iter().chain(numbers) {
            key.write(&mut composition, value)?;
        }
        Ok(composition)
    }

    /// Key, choice and section of every service.
    pub fn services(&self) -> Vec<(&'static str, String, &'static str)> {
        self.values(true)
    }

    /// Key, value with its unit, and section of every number that has a meaning under the choices made.
    pub fn numbers(&self) -> Vec<(&'static str, String, &'static str)> {
        self.values(false)
    }

    fn values(&self, services: bool) -> Vec<(&'static str, String, &'static str)> {
        let keys = KEYS.iter().filter(|key| key.service == services);
        keys.filter_map(|key| Some((key.name, key.read(self)?, key.section)))
            .collect()
    }
}

fn find(name: &str) -> Result<&'static Key, SetError> {
    let dashed = name.trim().replace('_', "-");
    KEYS.iter()
        .find(|key| key.name == dashed)
        .ok_or_else(|| SetError::Key {
            key: name.into(),
            near: nearest(&dashed, KEYS.iter().map(|key| key.name)),
            names: KEYS.iter().map(|key| key.name).collect(),
        })
}

fn unknown_preset(value: &str) -> SetError {
    let choices: Vec<_> = PRESETS.iter().map(|preset| preset.name).collect();
    SetError::Choice {
        key: "preset",
        value: value.into(),
        near: nearest(value, choices.iter().copied()),
        choices,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use restp_base::time::Duration;
    use restp_services::congestion::CongestionChoice;

    fn default() -> Composition {
        Composition::default()
    }

    #[test]
    fn every_value_prints_as_what_sets_it() {
        let base = Preset::named("unrel").unwrap().composition();
        for preset in PRESETS {
            let composition = preset.composition();
            let values = [composition.numbers(), composition.services()].concat();
            let pairs = values.iter().map(|(key, value, _)| (*key, value.as_str()));
            assert_eq!(Composition::from_pairs(base.clone(), pairs), Ok(composition));
        }
    }

    #[test]
    fn numbers_take_their_units() {
        let pairs = [
            ("window", "64 segments"),
            ("ack_every", "1 packet"),
            ("ack-delay", "10 ms"),
            ("ack-thinning", "on"),
            ("sack-blocks", "3"),
            ("segment", "1200 B"),
            ("initial-window", "4 segments"),
            ("growth", "acks"),
            ("handshake-rto", "1 s"),
            ("rto-floor", "1 s"),
            ("data-attempts", "6"),
            ("send-buffer", "64 KiB"),
            ("progress-timeout", "2 min"),
            ("congestion", "newreno"),
        ];
        let composition = Composition::from_pairs(default(), pairs).unwrap();
        assert_eq!(composition.segment_bytes, 1200);
        assert_eq!(composition.send_buffer_bytes, 65536);
        assert_eq!(composition.rto.floor, Duration::from_secs(1));
        assert_eq!(composition.rto.attempts, 6);
        assert_eq!(composition.progress_timeout, Duration::from_secs(120));
        for (key, value, _) in composition.numbers() {
            let written = pairs.iter().find(|(name, _)| name.replace('_', "-") == key);
            let rewritten = match written {
                Some((_, "1 packet")) => "1 packets",
                Some((_, "64 KiB")) => "65536 B",
                Some((_, "2 min")) => "120 s",
                Some((_, same)) => same,
                None => continue,
            };
            assert_eq!(value, rewritten, "{key}");
        }
    }

    #[test]
    fn a_time_may_be_left_to_a_rule_where_there_is_one() {
        let pairs = [
            ("preset", "unrel"),
            ("hold", "5 ms"),
            ("deadline", "160 ms"),
            ("frame-interval", "10 ms"),
        ];
        let mut composition = Composition::from_pairs(default(), pairs).unwrap();
        assert_eq!(composition.hold.hold, Some(Duration::from_millis(5)));
        assert_eq!(composition.hold.deadline, Some(Duration::from_millis(160)));
        assert_eq!(composition.hold.frame_interval, Duration::from_millis(10));
        composition.set("hold", "auto").unwrap();
        composition.set("deadline", "none").unwrap();
        assert_eq!((composition.hold.hold, composition.hold.deadline), (None, None));
        assert!(composition.set("deadline", "auto").is_err());
        assert!(composition.set("frame-interval", "auto").is_err());
    }

    #[test]
    fn every_congestion_control_has_its_own_parameters_and_no_other_has_them() {
        let own = [
            ("bic", "bic-profile", "paper"),
            ("bic", "fast-convergence", "off"),
            ("cubic", "fast-convergence", "off"),
            ("cubic", "hystart", "off"),
            ("vegas", "vegas-alpha", "1 segments"),
            ("vegas", "vegas-beta", "3 segments"),
            ("vegas", "vegas-gamma", "2 segments"),
            ("westwood", "westwood-filter", "tustin"),
            ("westwood+", "westwood-plus-filter", "pub"),
            ("veno", "veno-beta", "4 segments"),
            ("hybla", "reference-rtt", "50 ms"),
        ];
        for (congestion, key, value) in own {
            let mut composition = default();
            composition.set("congestion", congestion).unwrap();
            composition.set(key, value).unwrap();
            let written = composition.numbers().into_iter().find(|(name, ..)| *name == key);
            assert_eq!(written.map(|(_, value, _)| value).as_deref(), Some(value));
            composition.set("congestion", "reno").unwrap();
            assert!(
                matches!(composition.set(key, value), Err(SetError::Idle { .. })),
                "{key}"
            );
        }
        for name in CongestionChoice::all().iter().map(CongestionChoice::name) {
            let common = ["initial-window", "initial-threshold", "growth"];
            let mut composition = default();
            composition.set("congestion", name).unwrap();
            let has = common.map(|key| composition.numbers().iter().any(|(name, ..)| *name == key));
            assert_eq!(has, [composition.congestion.common().is_some(); 3], "{name}");
        }
    }

    #[test]
    fn what_a_mark_costs_is_a_parameter_where_rfc_8511_gives_a_number() {
        let takes = |congestion: &&str| {
            let mut composition = default();
            composition.set("congestion", congestion).unwrap();
            composition.set("abe", "on").is_ok()
        };
        let names: Vec<_> = CongestionChoice::all()
            .iter()
            .map(CongestionChoice::name)
            .collect();
        let those: Vec<_> = names.into_iter().filter(takes).collect();
        assert_eq!(those, ["newreno", "cubic", "reno"]);
    }

    #[test]
    fn a_preset_is_the_base_wherever_it_stands() {
        let pairs = [("flight-limit", "32 segments"), ("preset", "arq-only")];
        let composition = Composition::from_pairs(default(), pairs).unwrap();
        let limit = composition
            .numbers()
            .into_iter()
            .find(|(key, ..)| *key == "flight-limit");
        assert_eq!(limit.unwrap().1, "32 segments");
        assert_eq!(composition.ack.name(), "positive");
    }

    #[test]
    fn errors_name_the_value_the_rule_and_the_way_out() {
        let said = |key: &str, value: &str| {
            let mut composition = default();
            let error = composition.set(key, value).unwrap_err().to_string();
            assert_eq!(composition, default(), "a refused value changes nothing");
            error
        };
        let contains = |sentence: String, parts: &[&str]| {
            for part in parts {
                assert!(sentence.contains(part), "{sentence}: no {part}");
            }
        };
        contains(
            said("congstion", "cubic"),
            &["\"congstion\"", "did you mean \"congestion\"?", "idle-timeout"],
        );
        contains(
            said("congestion", "cubik"),
            &["\"cubik\"", "did you mean \"cubic\"?", "newreno, bic"],
        );
        contains(
            said("ack", "positive+sack+snack"),
            &["\"positive+sack+snack\"", "positive+snack"],
        );
        contains(said("window", "64"), &["window", "\"64\"", "no unit", "segments"]);
        contains(said("window", "64 ms"), &["another kind", "segments"]);
        contains(
            said("window", "5000000000 segments"),
            &["too large", "4294967295 segments"],
        );
        contains(said("sack-blocks", "four"), &["\"four\"", "whole number"]);
        contains(said("sack-blocks", "300"), &["\"300\"", "255"]);
        contains(
            said("flight-limit", "3 segments"),
            &["flight-limit belongs to congestion = none"],
        );
        contains(said("growth", "byte"), &["\"byte\" is no choice", "bytes, acks"]);
        contains(
            said("flight-limit", "-3 segments"),
            &["flight-limit", "\"-3 segments\" must not be negative"],
        );
        contains(
            said("flight-limit", "3"),
            &["flight-limit", "no unit", "segments"],
        );
        contains(said("pacing", "maybe"), &["\"maybe\"", "on, off"]);
        let error = Composition::from_pairs(default(), [("preset", "3wh-ark")]).unwrap_err();
        contains(error.to_string(), &["\"3wh-ark\"", "did you mean \"3wh-arq\"?"]);
    }
}
