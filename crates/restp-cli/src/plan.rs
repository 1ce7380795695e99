//! From arguments as typed to values that make sense: compositions, settings, times.

use crate::args::CompositionArgs;
use crate::failure::Failure;
use restp::{Composition, Preset, ValidComposition};
use restp_base::time::Duration;
use restp_base::units;
use restp_proto::composition::Needs;
use std::collections::BTreeMap;
use std::path::Path;
use toml::Spanned;

/// Keys and values in the order given.
pub type Pairs = Vec<(String, String)>;

/// Reads `KEY=VALUE` arguments.
///
/// # Errors
/// When one has no `=`.
pub fn settings(arguments: &[String]) -> Result<Pairs, Failure> {
    pairs("--set", arguments, "congestion=newreno")
}

/// Reads the arguments of an option that takes `KEY=VALUE`.
fn pairs(option: &str, arguments: &[String], example: &str) -> Result<Pairs, Failure> {
    let pair = |argument: &String| match argument.split_once('=') {
        Some((key, value)) => Ok((key.trim().to_owned(), value.trim().to_owned())),
        None => Err(Failure::input(format!(
            "{option} \"{argument}\" has no \"=\"; write KEY=VALUE, such as {example}"
        ))),
    };
    arguments.iter().map(pair).collect()
}

/// What `--for KEY=VALUE` arguments ask for.
///
/// # Errors
/// When one is not understood, with what may be asked for.
pub fn needs(arguments: &[String]) -> Result<Needs, Failure> {
    let mut needs = Needs::default();
    for (key, value) in pairs("--for", arguments, "reliability=partial")? {
        needs
            .set(&key, &value)
            .map_err(|error| Failure::input(format!("--for {error}")))?;
    }
    Ok(needs)
}

/// Reads a span of time as people type it: `5m`, `7d`, `30` for seconds, or with any unit of time.
///
/// # Errors
/// When it is none.
pub fn time(option: &str, text: &str) -> Result<Duration, Failure> {
    let text = text.trim();
    let number = text
        .trim_end_matches(|c: char| c.is_ascii_alphabetic())
        .trim_end();
    let (written, times) = match text[number.len()..].trim() {
        "" if !number.is_empty() => (format!("{number} s"), 1),
        "m" => (format!("{number} min"), 1),
        "d" => (format!("{number} h"), 24),
        _ => (text.to_owned(), 1),
    };
    let time = units::duration(&written).map_err(|error| {
        let more = match error {
            units::UnitError::TooLarge(_) => "",
            _ => ", or as 30, 5m or 7d",
        };
        Failure::input(format!("{option} {error}{more}"))
    })?;
    let days = time.as_nanos().checked_mul(times).map(Duration::from_nanos);
    days.ok_or_else(|| Failure::input(format!("{option} \"{text}\" is too long")))
}

/// Reads a limit to what is sent in a second.
///
/// # Errors
/// When it is no rate, or less than a byte a second.
pub fn limit(text: &str) -> Result<units::Rate, Failure> {
    let rate = units::rate(text).map_err(|error| Failure::input(format!("--limit {error}")))?;
    if rate < units::Rate::from_bps(8) {
        let rule = "write at least 8 bit/s, such as \"20Mbit/s\"";
        return Err(Failure::input(format!(
            "--limit \"{text}\" is too little; {rule}"
        )));
    }
    Ok(rate)
}

/// Reads a span of time that is longer than nothing.
///
/// # Errors
/// When it is none.
pub fn timeout(text: &str) -> Result<Duration, Failure> {
    let time = time("--timeout", text)?;
    if time < Duration::from_millis(1) {
        let rule = "write at least 1 ms, such as \"30 s\"";
        return Err(Failure::input(format!(
            "--timeout \"{text}\" is too short; {rule}"
        )));
    }
    Ok(time)
}

/// The composition that `--profile` and `--set` describe, unchecked, over `base`. `tune` sees the profile before
/// `--set` has the last word.
///
/// # Errors
/// Unknown names, keys, choices and units, with what is allowed; for a file, with the line.
pub fn composition(
    base: Composition,
    arguments: &CompositionArgs,
    tune: impl FnOnce(&mut Composition),
) -> Result<Composition, Failure> {
    let base = match arguments.profile.as_deref() {
        None => base,
        Some(profile) => named(base, profile)?,
    };
    // A preset stands for a profile wherever it is named.
    let is_preset = |(key, _): &(String, String)| key == "preset";
    let (presets, set): (Pairs, Pairs) = settings(&arguments.set)?.into_iter().partition(is_preset);
    let with = |base, pairs| {
        Composition::from_pairs(base, borrowed(pairs))
            .map_err(|error| Failure::input(format!("--set {error}")))
    };
    let mut base = with(base, &presets)?;
    tune(&mut base);
    with(base, &set)
}

/// Checks a composition and prints what to beware of.
///
/// # Errors
/// Why it is invalid, and the nearest valid choice.
pub fn checked(composition: Composition) -> Result<ValidComposition, Failure> {
    let valid = composition
        .check()
        .map_err(|refusal| Failure::input(format!("this composition cannot be used: {refusal}")))?;
    for warning in valid.warnings() {
        crate::output::note(format!("warning: {warning}"));
    }
    Ok(valid)
}

/// A preset, or a profile file.
fn named(base: Composition, profile: &str) -> Result<Composition, Failure> {
    if profile.ends_with(".toml") {
        let text = std::fs::read_to_string(profile);
        let text =
            text.map_err(|error| Failure::input(format!("{profile}: {error}; name a profile file")))?;
        return file(base, &text).map_err(|why| Failure::input(format!("{profile}: {why}")));
    }
    if let Some(preset) = Preset::named(profile) {
        return Ok(preset.composition());
    }
    let mut sentence = match Composition::from_pairs(base, [("preset", profile)]) {
        Err(error) => error.to_string(),
        Ok(_) => String::new(),
    };
    if Path::new(profile).exists() {
        sentence += "; a profile file must end in .toml";
    }
    Err(Failure::input(sentence))
}

/// A profile file: `preset = "3wh-arq"` and changes to it, one `key = value` per line.
fn file(base: Composition, text: &str) -> Result<Composition, String> {
    let table: BTreeMap<Spanned<String>, toml::Value> =
        toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())?;
    let mut lines = Vec::new();
    let mut pairs = Pairs::new();
    for (key, value) in table {
        let line = 1 + text[..key.span().start].matches('\n').count();
        let key = key.into_inner();
        let value = match value {
            toml::Value::String(text) => text,
            toml::Value::Array(_) | toml::Value::Table(_) => {
                return Err(format!(
                    "line {line}: \"{key}\" takes one value, such as congestion = \"cubic\""
                ));
            }
            simple => simple.to_string(),
        };
        lines.push(line);
        pairs.push((key, value));
    }
    Composition::from_pairs(base.clone(), borrowed(&pairs)).map_err(|error| {
        // The pair without which there is another error, or none, is the one at fault.
        let blamed = (0..pairs.len()).find(|without| {
            let others = borrowed(&pairs).enumerate().filter(|(at, _)| at != without);
            Composition::from_pairs(base.clone(), others.map(|(_, pair)| pair))
                .err()
                .as_ref()
                != Some(&error)
        });
        match blamed {
            Some(at) => format!("line {}: {error}", lines[at]),
            None => error.to_string(),
        }
    })
}

fn borrowed(pairs: &Pairs) -> impl Iterator<Item = (&str, &str)> {
    pairs.iter().map(|(key, value)| (key.as_str(), value.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(profile: Option<&str>, set: &[&str]) -> Result<Composition, Failure> {
        let arguments = CompositionArgs {
            profile: profile.map(str::to_owned),
            set: set.iter().map(|text| (*text).to_owned()).collect(),
        };
        composition(Composition::default(), &arguments, |_| {})
    }

    fn complaint<T: std::fmt::Debug>(result: Result<T, Failure>) -> String {
        result.expect_err("refused").message().to_owned()
    }

    #[test]
    fn settings_change_the_profile() {
        let changed = of(
            Some("arq-only"),
            &["ack=positive+sack", "flight-limit = 700 segments"],
        );
        let numbers = changed.expect("understood").numbers();
        assert!(
            numbers.contains(&("flight-limit", "700 segments".into(), "OP-50")),
            "{numbers:?}"
        );
    }

    #[test]
    fn settings_have_the_last_word_but_a_preset_among_them_is_tuned() {
        let arguments = CompositionArgs {
            profile: None,
            set: ["rto-floor=300 ms", "preset=resilient"]
                .map(str::to_owned)
                .to_vec(),
        };
        let tune = |composition: &mut Composition| {
            composition.outage_timeout = Duration::from_secs(5);
            composition.rto.floor = Duration::from_secs(1);
        };
        let composition = composition(Composition::default(), &arguments, tune).expect("understood");
        assert!(composition.loss_handling.probes());
        assert_eq!(composition.outage_timeout, Duration::from_secs(5));
        assert_eq!(composition.rto.floor, Duration::from_millis(300));
    }

    #[test]
    fn wrong_settings_are_answered_with_the_allowed_ones() {
        let sentence = complaint(of(None, &["congestion=cubik"]));
        assert!(
            sentence.contains("did you mean \"cubic\"") && sentence.contains("newreno"),
            "{sentence}"
        );
        let sentence = complaint(of(None, &["congestion"]));
        assert!(sentence.contains("KEY=VALUE"), "{sentence}");
        let sentence = complaint(of(Some("arq-onyl"), &[]));
        assert!(sentence.contains("did you mean \"arq-only\""), "{sentence}");
    }

    #[test]
    fn an_invalid_composition_says_why_and_what_else() {
        let composition = of(None, &["ack=none"]).expect("understood");
        let sentence = complaint(checked(composition));
        assert!(sentence.contains("choose"), "{sentence}");
    }

    #[test]
    fn a_profile_file_names_the_line_at_fault() {
        let good = "# mine\npreset = \"arq-only\"\n\nflight-limit = \"9 segments\"\n";
        assert!(file(Composition::default(), good).is_ok());
        for (text, line) in [
            ("preset = \"default\"\n\nconjestion = \"bic\"\n", 3),
            ("preset = \"default\"\ncongestion = \"fast\"\n", 2),
            ("\nsegment = 1400\n", 2),
            ("ack = [\"sack\"]\n", 1),
            ("ack = \"positive\"\npaths = \n", 2),
        ] {
            let why = file(Composition::default(), text).expect_err(text);
            assert!(why.contains(&format!("line {line}")), "{text}: {why}");
        }
    }

    #[test]
    fn times_are_as_people_type_them() {
        for (text, seconds) in [
            ("2 s", 2),
            ("30", 30),
            ("5m", 300),
            ("1.5 h", 5400),
            ("7d", 604_800),
            ("2 min", 120),
        ] {
            assert_eq!(timeout(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        assert!(complaint(timeout("0")).contains("at least"));
        for none in ["", "m", "5 x", "-3", "300000d"] {
            let sentence = complaint(timeout(none));
            assert!(sentence.starts_with("--timeout"), "{none}: {sentence}");
        }
    }
}
