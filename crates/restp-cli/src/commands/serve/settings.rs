//! What `restp serve` is to do: as the file of `--config` says, and the command line on top of it.

use crate::address::{DEFAULT_PORT, NoAddress, to_listen_at};
use crate::args::{CompositionArgs, ContentArgs, HostArgs, MonitorArgs, SealArgs, Serve, one_or_more};
use crate::failure::Failure;
use crate::keys;
use crate::pipe::AllowList;
use crate::plan;
use crate::toml_file::{TomlFile, Word};
use restp::PublicKey;
use restp_base::time::Duration;
use restp_proto::composition::Composition;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use toml::Spanned;

/// Connections at once where nobody says otherwise.
const MAX_CONNECTIONS: usize = 512;

/// How long a peer may be silent where nobody says otherwise.
const TIMEOUT: &str = "10m";

const RULE: &str = "`restp help serve` shows a file, and docs/forward.md every key of it";

/// What is to be done.
pub struct Settings {
    pub host: HostArgs,
    pub allowed: AllowList,
    /// Keys, and files of them.
    pub keys: Vec<String>,
    pub max_connections: usize,
    pub user_timeout: Duration,
}

/// The file as written.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
struct Written {
    listen: Vec<Spanned<Word>>,
    allow: Vec<Spanned<String>>,
    keys: Vec<Spanned<String>>,
    open: bool,
    relay: Vec<String>,
    publish: Vec<PathBuf>,
    cache: Option<PathBuf>,
    cache_size: Option<Word>,
    upstream: Vec<Word>,
    metrics: Option<Spanned<Word>>,
    key: Option<PathBuf>,
    timeout: Option<Spanned<Word>>,
    max_connections: Option<Spanned<Word>>,
    profile: Option<Spanned<String>>,
    set: BTreeMap<String, Spanned<Word>>,
}

/// What the arguments and their file say.
///
/// # Errors
/// With the line, when the file says what cannot be; when there is none; when nothing may be reached.
pub fn settings(arguments: &Serve) -> Result<Settings, Failure> {
    let mut settings = match &arguments.config {
        Some(path) => read(path, arguments.host.composition.profile.is_none())?,
        None => Settings::of_nothing()?,
    };
    let HostArgs {
        listen,
        composition,
        seal,
        allow,
        open,
        relay,
        content,
        qr,
        monitor,
    } = &arguments.host;
    let (places, keys): (Vec<_>, Vec<_>) = allow.iter().cloned().partition(|word| AllowList::is_place(word));
    let places = AllowList::of(&places).map_err(|why| Failure::input(format!("--allow {why}")))?;
    let added = settings.allowed.extend(places);
    added.map_err(|why| Failure::input(format!("--allow {why}")))?;
    if settings.allowed.words().is_empty() {
        let taken = match keys.first() {
            Some(word) => {
                format!("--allow {word:?} is no place, and so is taken for a key or a file of keys; ")
            }
            None => String::new(),
        };
        return Err(Failure::input(format!(
            "{taken}name what may be reached, such as --allow tcp:127.0.0.1:22, or allow = [\"tcp:127.0.0.1:22\"] in the file of --config"
        )));
    }
    settings.keys.extend(keys);
    let host = &mut settings.host;
    if !listen.is_empty() {
        host.listen.clone_from(listen);
    }
    host.open |= open;
    host.qr |= qr;
    host.relay.extend_from_slice(relay);
    host.content.publish.extend_from_slice(&content.publish);
    host.content.upstream.extend_from_slice(&content.upstream);
    if content.cache.is_some() {
        host.content.cache.clone_from(&content.cache);
    }
    if content.cache_size.is_some() {
        host.content.cache_size.clone_from(&content.cache_size);
    }
    if monitor.metrics.is_some() {
        host.monitor.metrics.clone_from(&monitor.metrics);
    }
    host.seal.plain = seal.plain;
    if seal.key.is_some() {
        host.seal.key.clone_from(&seal.key);
    }
    if composition.profile.is_some() {
        host.composition.profile.clone_from(&composition.profile);
    }
    host.composition.set.extend_from_slice(&composition.set);
    if let Some(most) = arguments.max_connections {
        settings.max_connections = most.get();
    }
    if let Some(text) = &arguments.timeout {
        settings.user_timeout = plan::timeout(text)?;
    }
    Ok(settings)
}

impl Settings {
    fn of_nothing() -> Result<Self, Failure> {
        Ok(Settings {
            host: HostArgs::default(),
            allowed: AllowList::default(),
            keys: Vec::new(),
            max_connections: MAX_CONNECTIONS,
            user_timeout: plan::timeout(TIMEOUT)?,
        })
    }
}

/// `is_all`: no profile of the command line takes the place of the file's.
fn read(path: &Path, is_all: bool) -> Result<Settings, Failure> {
    let file = TomlFile::read(path)?;
    let file =
        file.ok_or_else(|| Failure::input(format!("--config {}: no such file; {RULE}", path.display())))?;
    let written: Written = file.parse(RULE)?;
    let mut settings = Settings::of_nothing()?;
    for place in &written.allow {
        let one = AllowList::of(&[place.get_ref().clone()]);
        let one = one.and_then(|one| settings.allowed.extend(one));
        one.map_err(|why| {
            let hint = "; keys stand in `keys`";
            file.wrong(&place.span(), format!("allow: {why}{hint}"))
        })?;
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    for word in &written.keys {
        // A file is looked for beside this one.
        let name = match word.get_ref().parse::<PublicKey>() {
            Ok(_) => word.get_ref().clone(),
            Err(_) => folder.join(word.get_ref()).display().to_string(),
        };
        let listed = keys::listed(std::slice::from_ref(&name));
        listed.map_err(|failure| {
            let why = failure.message().trim_start_matches("--allow ");
            file.wrong(&word.span(), format!("keys: {why}"))
        })?;
        settings.keys.push(name);
    }
    if let Some(text) = &written.timeout {
        let time = plan::timeout(&text.get_ref().0);
        settings.user_timeout = time.map_err(|failure| {
            let why = failure.message().trim_start_matches("--timeout ");
            file.wrong(&text.span(), format!("timeout: {why}"))
        })?;
    }
    if let Some(most) = &written.max_connections {
        let count = one_or_more(&most.get_ref().0);
        let wrong = |why| file.wrong(&most.span(), format!("max-connections: {why}"));
        settings.max_connections = count.map_err(wrong)?.get();
    }
    for (key, word) in written
        .listen
        .iter()
        .map(|word| ("listen", word))
        .chain(written.metrics.iter().map(|word| ("metrics", word)))
    {
        // A name that leads nowhere may do so later.
        if let Err(NoAddress::Wrong(why)) = to_listen_at(&word.get_ref().0, DEFAULT_PORT) {
            return Err(file.wrong(&word.span(), format!("{key}: {why}")));
        }
    }
    if let Some(word) = &written.metrics
        && word
            .get_ref()
            .0
            .rsplit(':')
            .next()
            .is_none_or(|port| port.parse::<u16>().is_err())
    {
        let why = format!(
            "metrics: {:?} has no port; write 9100 or 192.0.2.1:9100",
            word.get_ref().0
        );
        return Err(file.wrong(&word.span(), why));
    }
    settings.host = HostArgs {
        listen: written
            .listen
            .into_iter()
            .map(|word| word.into_inner().0)
            .collect(),
        composition: composition(&file, folder, written.profile, &written.set, is_all)?,
        seal: SealArgs {
            key: written.key.map(|key| folder.join(key)),
            plain: false,
        },
        allow: Vec::new(),
        open: written.open,
        relay: written.relay,
        content: ContentArgs {
            publish: written.publish.iter().map(|path| folder.join(path)).collect(),
            cache: written.cache.map(|cache| folder.join(cache)),
            cache_size: written.cache_size.map(|word| word.0),
            upstream: written.upstream.into_iter().map(|word| word.0).collect(),
        },
        qr: false,
        monitor: MonitorArgs {
            metrics: written.metrics.map(|word| word.into_inner().0),
        },
    };
    Ok(settings)
}

/// What `profile` and `set` say. Files of profiles are looked for beside this one. What is not understood is said here, where that is
/// known: `is_all` there is to be composed.
fn composition(
    file: &TomlFile,
    folder: &Path,
    profile: Option<Spanned<String>>,
    set: &BTreeMap<String, Spanned<Word>>,
    is_all: bool,
) -> Result<CompositionArgs, Failure> {
    let refused = |arguments: &CompositionArgs| {
        let composed = plan::composition(Composition::default(), arguments, |_| {});
        composed.err().filter(|_| is_all)
    };
    let mut arguments = CompositionArgs::default();
    if let Some(written) = profile {
        let (span, profile) = (written.span(), written.into_inner());
        arguments.profile = Some(match profile.ends_with(".toml") {
            true => folder.join(profile).display().to_string(),
            false => profile,
        });
        if let Some(failure) = refused(&arguments) {
            return Err(file.wrong(&span, format!("profile: {}", failure.message())));
        }
    }
    let written = |(key, word): (&String, &Spanned<Word>)| format!("{key}={}", word.get_ref().0);
    let all = CompositionArgs {
        set: set.iter().map(written).collect(),
        ..arguments
    };
    let Some(failure) = refused(&all) else {
        return Ok(all);
    };
    // Pairs count together: the one without which the others are understood is wrong.
    let is_culprit = |index: &usize| {
        let mut others = all.clone();
        others.set.remove(*index);
        refused(&others).is_none()
    };
    let index = (0..all.set.len()).find(is_culprit).unwrap_or(0);
    let why = failure.message().trim_start_matches("--set ");
    let span = set.values().nth(index).map_or(0..0, Spanned::span);
    Err(file.wrong(&span, format!("set: {why}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Arguments, Command};
    use clap::Parser;

    fn of(text: &str, words: &[&str]) -> Result<Settings, String> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("serve.toml");
        std::fs::write(&path, text).expect("written");
        std::fs::write(folder.path().join("own.toml"), "preset = \"cubic\"\n").expect("written");
        let config = ["restp", "serve", "--config", path.to_str().expect("a name")];
        let arguments = Arguments::try_parse_from(config.iter().chain(words)).expect("arguments");
        let Command::Serve(arguments) = arguments.command else {
            panic!("serve");
        };
        settings(&arguments).map_err(|failure| failure.message().to_owned())
    }

    #[test]
    fn the_command_line_stands_on_top_of_the_file() {
        let text = "listen = [\"127.0.0.1:7000\"]\nallow = [\"tcp:a:1\"]\ntimeout = \"1m\"\nmax-connections = 9\n\
                    key = \"own.key\"\nprofile = \"own.toml\"\nset = { congestion = \"newreno\" }\n";
        let settings = of(text, &[]).expect("settings");
        assert_eq!(settings.host.listen, ["127.0.0.1:7000"]);
        assert_eq!(settings.allowed.words(), ["tcp:a:1"]);
        assert_eq!(
            (settings.user_timeout, settings.max_connections),
            (Duration::from_secs(60), 9)
        );
        assert_eq!(settings.host.composition.set, ["congestion=newreno"]);
        assert!(
            settings.host.seal.key.is_some_and(|key| key.is_absolute()),
            "beside the file"
        );
        let profile = settings.host.composition.profile.expect("a profile");
        assert!(Path::new(&profile).is_absolute(), "as well: {profile}");
        let words = [
            "--listen",
            "0",
            "--allow",
            "udp:b:2",
            "--timeout",
            "2m",
            "--max-connections",
            "7",
        ];
        let settings = of(text, &words).expect("settings");
        assert_eq!(settings.host.listen, ["0"]);
        assert_eq!(settings.allowed.words(), ["tcp:a:1", "udp:b:2"]);
        assert_eq!(
            (settings.user_timeout, settings.max_connections),
            (Duration::from_secs(120), 7)
        );
    }

    /// A number may stand before the service that it belongs to, and a profile of the command line has its own.
    #[test]
    fn pairs_of_a_file_count_together() {
        let allow = "allow = [\"tcp:a:1\"]\n";
        let set = |text: &str, words: &[&str]| of(&format!("{allow}set = {{ {text} }}"), words).map(|_| ());
        assert_eq!(set("abe = \"on\", congestion = \"cubic\"", &[]), Ok(()));
        assert_eq!(set("bic-profile = \"sim\", congestion = \"bic\"", &[]), Ok(()));
        let wrong = set("abe = \"on\", congestion = \"bic\"", &[]).expect_err("it has none");
        assert!(wrong.contains("line 2: set: abe"), "{wrong}");
        assert_eq!(set("abe = \"on\"", &["--profile", "cubic"]), Ok(()));
    }

    #[test]
    fn numbers_need_no_quotes() {
        let text = "listen = [4000]\nallow = [\"tcp:a:1\"]\ntimeout = 30\nmetrics = 9100\nupstream = [7072]\nset = { sack-blocks = 3 }\n";
        let settings = of(text, &[]).expect("settings");
        assert_eq!(settings.user_timeout, Duration::from_secs(30));
        assert_eq!(settings.host.listen, ["4000"]);
        assert_eq!(settings.host.content.upstream, ["7072"]);
        assert_eq!(settings.host.monitor.metrics.as_deref(), Some("9100"));
        assert_eq!(settings.host.composition.set, ["sack-blocks=3"]);
    }

    #[test]
    fn what_is_wrong_is_said_with_line_key_and_way_out() {
        for (text, words) in [
            (
                "\nalow = []",
                &["serve.toml: line 2", "`alow`", "`allow`", "restp help serve"][..],
            ),
            (
                "allow = [\"tcp:a:1\",\n\"tcp:a\"]",
                &["line 2", "allow: \"tcp:a\"", "tcp:HOST:PORT"],
            ),
            (
                "allow = [\"tcp:a:1\"]\n\ntimeout = \"soon\"",
                &["line 3", "timeout: "],
            ),
            (
                "allow = [\"tcp:a:1\"]\nkeys = [\"nowhere\"]",
                &["line 2", "keys: ", "neither a key nor a file"],
            ),
            (
                "allow = [\"tunnel:10.9.0.1/30\",\n\"tunnel:10.9.0.2/30\"]",
                &["line 2", "allow: tunnel:10.9.0.2/30", "of its own"],
            ),
            (
                "open = true\nallow = [\"tcp:a:1\"]\nallow = []",
                &["line 3", "duplicate key"],
            ),
            (
                "set = { congestion = [1] }",
                &["line 1", "expected a string or a number"],
            ),
            (
                "max-connections = 0",
                &["line 1", "max-connections: write a whole number from 1 on"],
            ),
            ("\nmax-connections = -3", &["line 2", "from 1 on"]),
            ("\nlisten = [-1]", &["line 2", "listen: \"-1\" is no address"]),
            (
                "listen = [4000,\n70000]",
                &["line 2", "listen: \"70000\" is no address"],
            ),
            (
                "\nmetrics = 99999",
                &["line 2", "metrics: \"99999\" is no address"],
            ),
            (
                "\nmetrics = \"127.0.0.1\"",
                &["line 2", "metrics: \"127.0.0.1\" has no port"],
            ),
            (
                "\nprofile = \"nope\"",
                &["line 2", "profile: \"nope\" is no choice"],
            ),
            (
                "set = { congestion = \"cubic\", loss = \"foo\" }",
                &["line 1", "set: \"foo\" is no choice for loss"],
            ),
            ("[set]\nfoo = 1", &["line 2", "set: \"foo\" is no service"]),
            ("allow = \"tcp:a:1\"", &["line 1", "sequence"]),
            ("allow = [", &["line 1"]),
            ("listen = [\"0\"]", &["--allow tcp:127.0.0.1:22", "--config"]),
        ] {
            let why = of(text, &[]).err().unwrap_or_else(|| panic!("{text}"));
            for word in words {
                assert!(why.contains(word), "{word}: {why}");
            }
        }
        let why = of("", &["--allow", "127.0.0.1:22"]).err().expect("no place");
        assert!(why.contains("\"127.0.0.1:22\" is no place"), "{why}");
    }
}
