//! `restp profiles`: what a connection can be made of.

use crate::args::{CompositionArgs, Profiles};
use crate::failure::Failure;
use crate::output::Output;
use crate::plan;
use restp::{Composition, ValidComposition};
use restp_lab::report;
use restp_proto::composition::{KEYS, NEEDS, Needs, PRESETS, Preset};
use restp_proto::wire::{self, Field, Header, Services};
use serde::Serialize;

/// Lists everything, or shows one composition.
///
/// # Errors
/// Exit code 2 for unknown names, and for a composition that is invalid, with the reason and the nearest valid one.
pub fn execute(arguments: &Profiles, output: Output) -> Result<(), Failure> {
    if arguments.name.is_none() && arguments.set.is_empty() && arguments.needs.is_empty() {
        return list(output);
    }
    let needs = plan::needs(&arguments.needs)?;
    let base = needs
        .composition()
        .map_err(|error| Failure::input(format!("--for {error}")))?;
    let wanted = CompositionArgs {
        profile: arguments.name.clone(),
        set: arguments.set.clone(),
    };
    let composition = plan::composition(base, &wanted, |_| {})?;
    let asked = !arguments.needs.is_empty();
    let name = match &arguments.name {
        Some(name) => name,
        None if asked => "what is needed",
        None => "default",
    };
    let valid = composition.clone().check().map_err(|refusal| {
        let nearest = nearest(&composition);
        Failure::input(format!("{name} cannot be used: {refusal}{nearest}"))
    })?;
    let profile = asked.then(|| Profile::of(&needs));
    output.result(&Shown::of(name, profile, &valid), Shown::describe)
}

/// What meets needs: the lines of a profile file, and how many paths to give it.
#[derive(Serialize)]
struct Profile {
    file: Vec<String>,
    paths: u64,
}

impl Profile {
    fn of(needs: &Needs) -> Self {
        let lines = needs.profile().into_iter();
        Profile {
            file: lines.map(|(key, value)| format!("{key} = \"{value}\"")).collect(),
            paths: needs.paths(),
        }
    }

    fn describe(&self) -> String {
        let mut text = "\n\nProfile file\n".to_owned();
        text += &self
            .file
            .iter()
            .map(|line| format!("  {line}\n"))
            .collect::<String>();
        if self.paths > 1 {
            text += &format!("\nIt needs {} paths that do not fail together.", self.paths);
        }
        text.trim_end().to_owned()
    }
}

/// How to change `composition` into the nearest valid one.
fn nearest(composition: &Composition) -> String {
    let Some(mended) = composition.mended() else {
        return String::new();
    };
    let before = composition.services().into_iter().chain(composition.numbers());
    let before: Vec<_> = before.map(|(key, value, _)| (key, value)).collect();
    let after = mended.services().into_iter().chain(mended.numbers());
    let changes: Vec<_> = after
        .filter(|(key, value, _)| before.iter().any(|(old, was)| old == key && was != value))
        .map(|(key, value, _)| format!("--set \"{key}={value}\""))
        .collect();
    format!("; the nearest valid one: {}", changes.join(" "))
}

/// One preset in the list.
#[derive(Serialize)]
struct Listed {
    preset: &'static str,
    section: &'static str,
    purpose: &'static str,
    /// Why it cannot be used yet, if it cannot.
    refusal: Option<String>,
}

/// One key in the list.
#[derive(Serialize)]
struct ListedKey {
    key: &'static str,
    section: &'static str,
    service: bool,
    allowed: Vec<&'static str>,
}

fn list(output: Output) -> Result<(), Failure> {
    let presets = PRESETS.iter().map(|preset| Listed {
        preset: preset.name,
        section: preset.section,
        purpose: preset.purpose,
        refusal: preset
            .composition()
            .check()
            .err()
            .map(|refusal| refusal.to_string()),
    });
    let keys = KEYS.iter().map(|key| ListedKey {
        key: key.name,
        section: key.section,
        service: key.service,
        allowed: key.allowed(),
    });
    if output.json {
        for preset in presets {
            output.result(&preset, |_| String::new())?;
        }
        for key in keys {
            output.result(&key, |_| String::new())?;
        }
        return Ok(());
    }
    let mut text = "Presets (--profile NAME)\n".to_owned();
    text +=
        &table(presets.map(|preset| [preset.preset.into(), preset.section.into(), preset.purpose.into()]));
    let (services, numbers): (Vec<_>, Vec<_>) = keys.partition(|key| key.service);
    for (title, keys) in [("Services", services), ("Numbers", numbers)] {
        text += &format!("\n{title} (--set KEY=VALUE)\n");
        text += &table(
            keys.into_iter()
                .map(|key| [key.key.into(), key.section.into(), key.allowed.join(", ")]),
        );
    }
    text += "\nNeeds (--for NEED=VALUE)\n";
    text += &table(
        NEEDS
            .iter()
            .map(|(need, allowed)| [(*need).into(), (*allowed).into()]),
    );
    output.text(&text)
}

/// A composition in full.
#[derive(Serialize)]
struct Shown {
    name: String,
    section: Option<&'static str>,
    purpose: Option<&'static str>,
    /// With `--for`.
    profile: Option<Profile>,
    services: Vec<Setting>,
    numbers: Vec<Setting>,
    header: String,
    fields: Vec<ShownField>,
    warnings: Vec<String>,
    hints: Vec<String>,
}

#[derive(Serialize)]
struct Setting {
    key: &'static str,
    value: String,
    section: &'static str,
}

/// A field of the base header.
#[derive(Serialize)]
struct ShownField {
    offset_bits: usize,
    length_bits: usize,
    name: &'static str,
    value: String,
    meaning: String,
}

impl Shown {
    fn of(name: &str, profile: Option<Profile>, valid: &ValidComposition) -> Self {
        let settings = |values: Vec<(&'static str, String, &'static str)>| {
            let settings = values
                .into_iter()
                .map(|(key, value, section)| Setting { key, value, section });
            settings.collect()
        };
        let preset = Preset::named(name);
        let (header, fields) = base_header(valid);
        Shown {
            name: name.into(),
            section: preset.map(|preset| preset.section),
            purpose: preset.map(|preset| preset.purpose),
            profile,
            services: settings(valid.services()),
            numbers: settings(valid.numbers()),
            header,
            fields,
            warnings: valid.warnings().iter().map(ToString::to_string).collect(),
            hints: valid.hints().iter().map(ToString::to_string).collect(),
        }
    }

    fn describe(&self) -> String {
        let mut text = self.name.clone();
        if let (Some(section), Some(purpose)) = (self.section, self.purpose) {
            text += &format!(" ({section}): {purpose}");
        }
        text += &self.profile.as_ref().map(Profile::describe).unwrap_or_default();
        for (title, settings) in [("Services", &self.services), ("Numbers", &self.numbers)] {
            text += &format!("\n\n{title}\n");
            text += table(
                settings
                    .iter()
                    .map(|it| [it.key.into(), it.value.clone(), it.section.into()]),
            )
            .trim_end();
        }
        text += &format!("\n\nHeader of a packet without data: {}\n", self.header);
        text += &table(self.fields.iter().map(|field| {
            [
                format!("bit {}", field.offset_bits),
                format!("{} = {}", field.name, field.value),
                field.meaning.clone(),
            ]
        }));
        for warning in &self.warnings {
            text += &format!("\nwarning: {warning}\n");
        }
        for hint in &self.hints {
            text += &format!("\nhint: {hint}\n");
        }
        text
    }
}

/// The base header of such a connection, in hex and field by field.
fn base_header(composition: &Composition) -> (String, Vec<ShownField>) {
    let mut header = Header::new(Services::of(composition), 0, 0);
    header.window = (header.services.flow_control != 0).then_some(0);
    let numbered = header.services.numbered() || composition.reliability.retransmits();
    header.sequence = numbered.then_some(0);
    let mut head = Default::default();
    if header.emit(&[], &mut head).is_err() {
        return Default::default();
    }
    let hex = data_encoding::HEXUPPER.encode(&head);
    let fields: Vec<Field> = wire::describe(&head).unwrap_or_default();
    let fields = fields.into_iter().map(|field| ShownField {
        offset_bits: field.offset,
        length_bits: field.length,
        name: field.name,
        value: field.value,
        meaning: field.meaning,
    });
    (words(&hex), fields.collect())
}

/// Eight digits to a word.
fn words(hex: &str) -> String {
    let words: Vec<_> = hex
        .as_bytes()
        .chunks(8)
        .map(|word| String::from_utf8_lossy(word))
        .collect();
    words.join(" ")
}

/// Rows with an indent.
fn table<const N: usize>(rows: impl Iterator<Item = [String; N]>) -> String {
    let rows: Vec<Vec<String>> = rows.map(|row| row.to_vec()).collect();
    let plain = report::plain(&rows);
    plain.lines().map(|line| format!("  {line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_that_is_built_shows_a_header_that_reads_back() {
        for preset in PRESETS {
            let Ok(valid) = preset.composition().check() else {
                continue;
            };
            let shown = Shown::of(preset.name, None, &valid);
            assert!(!shown.fields.is_empty(), "{}", preset.name);
            assert!(shown.describe().contains("congestion"));
        }
    }
}
