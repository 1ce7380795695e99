//! What a flow or a host is made of: a name and the keys of `set`, with those of the profile where they are silent.

use super::flow::Surroundings;
use super::raw::RawSet;
use crate::registry::{Transport, text_of};
use restp_sim::config::Fault;
use toml::Spanned;

/// The transport called `name` over one path or `several`, changed by `set`. The profile speaks where `set` is silent, to every transport that has a timer.
pub(super) fn transport(
    name: &Spanned<String>,
    written: &RawSet,
    (several, seal): (bool, bool),
    surroundings: &Surroundings<'_>,
) -> Result<Transport, Fault> {
    let mut set = Vec::new();
    for (key, value) in surroundings.profile.iter().flat_map(|profile| profile.set) {
        let own = written.keys().any(|own| own.replace('_', "-") == key);
        if !own && Transport::has_timers(name.get_ref()) {
            set.push((key, value.to_owned()));
        }
    }
    for (key, value) in written {
        let Some(text) = text_of(value.get_ref()) else {
            return Err(Fault::at(
                value,
                format!("\"{key}\" takes one value, such as \"bic\" or 10"),
            ));
        };
        set.push((key.as_str(), text));
    }
    let pairs: Vec<(&str, &str)> = set.iter().map(|(key, text)| (*key, text.as_str())).collect();
    let plain = Transport::over(several, name.get_ref(), &pairs, surroundings.dir);
    let transport = if seal {
        plain.and_then(Transport::sealed)
    } else {
        plain
    };
    transport.map_err(
        |error| match error.key.as_ref().and_then(|key| written.get(key)) {
            Some(value) => Fault::at(value, error),
            None => Fault::at(name, error),
        },
    )
}
