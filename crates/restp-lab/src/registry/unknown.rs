//! What to write in the place of a transport that there is not.

use super::Witness;
use crate::unknown::unknown;
use restp_base::names::hint;
use restp_proto::composition::PRESETS;
use restp_rivals::compositions::rivals;
use std::collections::BTreeSet;

pub(super) fn unknown_transport(name: &str) -> String {
    let rivals = rivals().into_iter().map(|rival| rival.name);
    let names: Vec<String> = rivals
        .chain(Witness::NAMES.map(str::to_owned))
        .chain(PRESETS.iter().map(|preset| format!("restp:{}", preset.name)))
        .chain(["restp:FILE.toml (a profile of your own)".to_owned()])
        .collect();
    let family = |name: &str| name.split(':').next().unwrap_or(name).to_owned();
    let alike: Vec<&str> = (names.iter().map(String::as_str))
        .filter(|known| family(known) == family(name))
        .collect();
    if !alike.is_empty() {
        return unknown("transport", name, alike);
    }
    // There are too many for one sentence.
    let families: BTreeSet<String> = names.iter().map(|name| family(name)).collect();
    let hint = hint(
        name,
        names
            .iter()
            .map(String::as_str)
            .chain(families.iter().map(String::as_str)),
    );
    let families: Vec<_> = families.iter().map(String::as_str).collect();
    format!(
        "there is no transport \"{name}\"; write a name of one of these families, such as tcp:cubic or restp:default: {}{hint}",
        families.join(", ")
    )
}
