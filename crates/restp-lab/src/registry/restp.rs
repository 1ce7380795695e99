//! ResTP by preset or profile file.

use super::seal::seal;
use super::{Ends, TransportError};
use crate::one_stream::OneStream;
use crate::traffic::PORT;
use crate::unknown::unknown;
use restp_base::flow::ChangeError;
use restp_base::machine::PathAddress;
use restp_base::time::{Duration, Time};
use restp_proto::composition::{Composition, PRESETS, Preset, SetError, ValidComposition, change};
use restp_proto::config::{Acceptance, EndpointConfig};
use restp_proto::endpoint::Endpoint;
use restp_services::connection_management::{CookieMint, CookieParameters, KeptCookie};
use std::path::Path;

/// Presets that use all of several paths, as with the command line.
const SPREADING: [&str; 3] = ["default", "voice", "video"];

/// The composition called `profile`, changed by the pairs of `set`, for one path or `several`.
pub(super) fn composition(
    several: bool,
    profile: &str,
    set: &[(&str, &str)],
    dir: &Path,
) -> Result<ValidComposition, TransportError> {
    let names_paths = set.iter().any(|(key, _)| *key == "paths");
    let spreads = several && SPREADING.contains(&profile) && !names_paths;
    let (base, own) = if let Some(preset) = Preset::named(profile).filter(|_| spreads) {
        (preset.composition().over_several_paths(), Pairs::new())
    } else if profile.ends_with(".toml") {
        (Composition::default(), read(&dir.join(profile))?)
    } else {
        (Composition::default(), preset(profile)?)
    };
    let all = own
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .chain(set.iter().copied());
    let composition = Composition::from_pairs(base, all).map_err(|error| {
        let blamed = key_of(&error);
        let key = set
            .iter()
            .find(|(key, _)| key.replace('_', "-") == blamed)
            .map(|(key, _)| (*key).to_owned());
        TransportError {
            key,
            message: error.to_string(),
        }
    })?;
    composition.check().map_err(TransportError::whole)
}

/// `from` after a change of `set` while it runs.
pub(super) fn changed(
    from: &ValidComposition,
    set: &[(String, String)],
) -> Result<ValidComposition, TransportError> {
    let pairs = set.iter().map(|(key, value)| (&**key, &**value));
    let to = Composition::from_pairs(Composition::clone(from), pairs).map_err(|error| TransportError {
        key: Some(key_of(&error)),
        message: error.to_string(),
    })?;
    let to = to.check().map_err(TransportError::whole)?;
    change(from, &to).map_err(|error| TransportError {
        key: match &error {
            ChangeError::Settled { key, .. } => Some((*key).to_owned()),
            _ => None,
        },
        message: error.to_string(),
    })?;
    Ok(to)
}

/// The opener opens flows of `composition` along `path`, the server serves exactly these. Data beside the SYN needs a
/// cookie from an earlier contact; the opener has one. With `follows` the server takes what the opener changes, too.
pub(super) fn ends(composition: &ValidComposition, path: PathAddress, sealed: bool, follows: bool) -> Ends {
    let client = EndpointConfig::new(composition.clone());
    let acceptance = if follows {
        Acceptance::Any
    } else {
        Acceptance::Exact
    };
    let mut server = client.clone().listen(PORT, acceptance);
    server.weaker_services = follows;
    let cookies = server.cookies;
    let one = |config| OneStream::new(Endpoint::new(config), 0);
    let (mut client, server) = (one(client), one(server));
    let met = composition.establishment.is_opportunistic();
    if met {
        client
            .inner_mut()
            .keep_cookie(Time::ZERO, kept_cookie(cookies, path));
    }
    if sealed {
        return seal(client, server, path, met);
    }
    Ends {
        client: Box::new(client),
        server: Box::new(server),
    }
}

/// One endpoint that opens flows of `composition` along these paths, and serves whatever others open.
pub(super) fn shared(composition: &ValidComposition, opens: &[PathAddress]) -> Box<Endpoint> {
    let mut config = EndpointConfig::new(composition.clone()).listen(PORT, Acceptance::Any);
    config.weaker_services = true;
    let cookies = config.cookies;
    let mut endpoint = Endpoint::new(config);
    for path in opens
        .iter()
        .filter(|_| composition.establishment.is_opportunistic())
    {
        endpoint.keep_cookie(Time::ZERO, kept_cookie(cookies, *path));
    }
    Box::new(endpoint)
}

/// What an opener along `path` keeps from an earlier contact with a server that makes its cookies so.
pub(super) fn kept_cookie(cookies: CookieParameters, path: PathAddress) -> KeptCookie {
    KeptCookie {
        server: path.remote,
        port: PORT,
        cookie: CookieMint::new(cookies).mint(Time::ZERO, path.local.ip()),
        remaining: CONTACT_LASTS,
    }
}

/// No experiment starts a flow later than this.
const CONTACT_LASTS: Duration = Duration::from_secs(12 * 3600);

type Pairs = Vec<(String, String)>;

fn preset(name: &str) -> Result<Pairs, TransportError> {
    if Preset::named(name).is_none() {
        let names = PRESETS.iter().map(|preset| preset.name);
        let file = ["a profile file that ends in .toml"];
        return Err(TransportError::whole(unknown("preset", name, names.chain(file))));
    }
    Ok(vec![("preset".into(), name.into())])
}

/// A profile file: `preset = "3wh-arq"` and changes to it, one `key = value` per line.
fn read(file: &Path) -> Result<Pairs, TransportError> {
    let about =
        |message: &dyn std::fmt::Display| TransportError::whole(format!("{}: {message}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|error| {
        about(&format!(
            "cannot be read ({error}); name a profile file beside the scenario, or a preset"
        ))
    })?;
    let table: toml::Table = toml::from_str(&text).map_err(|error| about(&error))?;
    table
        .into_iter()
        .map(|(key, value)| match text_of(&value) {
            Some(text) => Ok((key, text)),
            None => Err(about(&format!(
                "\"{key}\" takes one value, such as \"bic\" or 10"
            ))),
        })
        .collect()
}

/// A simple TOML value as it would be written on a command line.
pub(crate) fn text_of(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Array(_) | toml::Value::Table(_) => None,
        simple => Some(simple.to_string()),
    }
}

/// The key an error is about, with dashes.
fn key_of(error: &SetError) -> String {
    match error {
        SetError::Key { key, .. } => key.replace('_', "-"),
        SetError::Choice { key, .. }
        | SetError::Quantity { key, .. }
        | SetError::Count { key, .. }
        | SetError::TooLarge { key, .. }
        | SetError::Idle { key, .. } => (*key).to_owned(),
    }
}
