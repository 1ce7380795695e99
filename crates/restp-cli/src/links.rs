//! The links of this host, and which of them a transfer uses: what the command line says, or the user's file does (the user
//! agent and the link monitor of SMT §1).

use crate::args::LinkArgs;
use crate::failure::Failure;
use crate::output::note;
use crate::toml_file::TomlFile;
use restp::{Local, files};
use serde::{Deserialize, Serialize};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// An interface with its addresses, but for those that mean nothing elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Link {
    pub name: String,
    pub state: State,
    pub addresses: Vec<IpAddr>,
}

/// Whether a link leads anywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// The kernel has a route from it to other networks.
    Up,
    /// Only its own network can be reached.
    NoRoute,
    /// Switched off, or without a carrier.
    Down,
    /// This host itself.
    Loopback,
}

impl State {
    pub fn name(self) -> &'static str {
        match self {
            State::Up => "up",
            State::NoRoute => "no route",
            State::Down => "down",
            State::Loopback => "loopback",
        }
    }
}

/// Addresses for documentation (RFC 5737, RFC 3849): whoever has a route to them has one to everywhere.
const ELSEWHERE: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)),
    IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)),
];

/// Every link that has an address, in the order of the kernel.
///
/// # Errors
/// When the system does not tell.
pub fn all() -> Result<Vec<Link>, Failure> {
    let found = if_addrs::get_if_addrs();
    let found = found.map_err(|error| Failure::operation(format!("the links of this host: {error}")))?;
    let mut links: Vec<Link> = Vec::new();
    for one in found.into_iter().filter(|one| !one.is_link_local()) {
        let place = links.iter().position(|link| link.name == one.name);
        let place = place.unwrap_or_else(|| {
            links.push(Link {
                state: if one.is_loopback() {
                    State::Loopback
                } else {
                    State::Down
                },
                name: one.name.clone(),
                addresses: Vec::new(),
            });
            links.len() - 1
        });
        let link = &mut links[place];
        link.addresses.push(one.ip());
        match link.state {
            State::Down if one.is_oper_up() => link.state = State::NoRoute,
            _ => {}
        }
        if link.state == State::NoRoute && has_route(&link.name, one.ip()) {
            link.state = State::Up;
        }
    }
    Ok(links)
}

/// Asks the kernel, which looks a route up when a socket is connected; nothing is sent.
fn has_route(link: &str, from: IpAddr) -> bool {
    let asked = || {
        let to = ELSEWHERE[usize::from(from.is_ipv6())];
        let socket = Socket::new(
            Domain::for_address((from, 0).into()),
            Type::DGRAM,
            Some(Protocol::UDP),
        )?;
        let _ = socket.bind_device(Some(link.as_bytes())); // where it is forbidden the source address has to do
        socket.bind(&SockAddr::from(SocketAddr::new(from, 0)))?;
        socket.connect(&SockAddr::from(SocketAddr::new(to, 9)))
    };
    asked().is_ok()
}

/// Which links, and how many of them at once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Choice {
    /// By name, the preferred first; `None`: every one that is up.
    #[serde(default, rename = "use")]
    links: Option<Vec<String>>,
    /// At most so many.
    #[serde(default)]
    paths: Option<NonZeroUsize>,
}

impl Choice {
    /// Of `links` those that it takes, in the order of preference; `None` where the routing table chooses.
    fn among(&self, links: &[Link]) -> Option<Vec<String>> {
        let works = |link: &&Link| matches!(link.state, State::Up | State::NoRoute);
        let most = self.paths.map_or(usize::MAX, NonZeroUsize::get);
        let names: Vec<String> = match (&self.links, self.paths) {
            (Some(wanted), _) => {
                let usable = |name: &&String| {
                    links
                        .iter()
                        .any(|link| link.name == **name && link.state != State::Down)
                };
                wanted.iter().filter(usable).take(most).cloned().collect()
            }
            (None, Some(_)) => links
                .iter()
                .filter(works)
                .take(most)
                .map(|link| link.name.clone())
                .collect(),
            (None, None) => return None,
        };
        Some(names)
    }
}

/// A command that reaches other hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    Send,
    Pipe,
    Forward,
    Tunnel,
}

impl Use {
    pub const ALL: [Use; 4] = [Use::Send, Use::Pipe, Use::Forward, Use::Tunnel];

    pub fn name(self) -> &'static str {
        match self {
            Use::Send => "send",
            Use::Pipe => "pipe",
            Use::Forward => "forward",
            Use::Tunnel => "tunnel",
        }
    }
}

/// The user's file.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    #[serde(default, rename = "use")]
    links: Option<Vec<String>>,
    #[serde(default)]
    paths: Option<NonZeroUsize>,
    #[serde(default)]
    send: Option<Choice>,
    #[serde(default)]
    pipe: Option<Choice>,
    #[serde(default)]
    forward: Option<Choice>,
    #[serde(default)]
    tunnel: Option<Choice>,
}

impl Policy {
    /// Where it lies: below `XDG_CONFIG_HOME`, or `.config` in `HOME`; `None` where neither is an absolute path.
    pub fn file() -> Option<PathBuf> {
        files::below("XDG_CONFIG_HOME", ".config", "paths.toml")
    }

    /// That of this user; one that chooses nothing where there is no file.
    ///
    /// # Errors
    /// When the file cannot be read, or says something else.
    pub fn of_user() -> Result<Self, Failure> {
        Self::file().map_or_else(|| Ok(Policy::default()), |path| Self::read(&path))
    }

    fn read(path: &Path) -> Result<Self, Failure> {
        let rule = "write `use = [\"wlan0\", \"wwan0\"]` and `paths = 2`, for all or in [send], [pipe], [forward], [tunnel]";
        match TomlFile::read(path)? {
            Some(file) => file.parse(rule),
            None => Ok(Policy::default()),
        }
    }

    /// What holds for `command`: its own table where there is one.
    fn choice(&self, command: Use) -> Choice {
        let own = match command {
            Use::Send => &self.send,
            Use::Pipe => &self.pipe,
            Use::Forward => &self.forward,
            Use::Tunnel => &self.tunnel,
        };
        own.clone().unwrap_or_else(|| Choice {
            links: self.links.clone(),
            paths: self.paths,
        })
    }

    /// The links that each command takes now.
    pub fn uses(&self, links: &[Link]) -> BTreeMap<&'static str, Option<Vec<String>>> {
        let each = Use::ALL.map(|command| (command.name(), self.choice(command).among(links)));
        each.into()
    }

    /// Commands that have a choice of links of which none is here and up.
    pub fn without_link(&self, links: &[Link]) -> Vec<&'static str> {
        let uses = self.uses(links).into_iter();
        let none = uses.filter(|(_, names)| names.as_ref().is_some_and(Vec::is_empty));
        none.map(|(command, _)| command).collect()
    }
}

/// What `command` binds to reach `addresses`: as its arguments say, or the user's file where they say nothing; empty where the
/// routing table chooses. The file is about links to other hosts, so it says nothing of this one.
///
/// # Errors
/// When a link that was named is not there, none of them is up, or the file is wrong.
pub fn locals(command: Use, arguments: &LinkArgs, addresses: &[SocketAddr]) -> Result<Vec<Local>, Failure> {
    if !arguments.bind.is_empty() {
        return Ok(arguments.bind.clone());
    }
    let chosen = if arguments.links.is_empty() && arguments.paths.is_none() {
        let choice = Policy::of_user()?.choice(command);
        if choice == Choice::default() || addresses.iter().all(|address| address.ip().is_loopback()) {
            return Ok(Vec::new());
        }
        let chosen = choice.among(&all()?).unwrap_or_default();
        if chosen.is_empty() {
            note("no link that your paths.toml allows is up: the routing table chooses");
        }
        chosen
    } else {
        named(arguments)?
    };
    Ok(chosen.into_iter().map(Local::Interface).collect())
}

/// Says which of the interfaces in `locals` have no address yet: perhaps one is mistyped, perhaps it comes later.
pub fn tell_of_those_without_an_address(locals: &[Local]) {
    let Ok(links) = all() else { return };
    for local in locals {
        if let Local::Interface(name) = local
            && links.iter().all(|link| link.name != *name)
        {
            let name = name.escape_debug();
            note(format!("{name} has no address now; it is used once it has one"));
        }
    }
}

/// The links that --use and --paths stand for.
fn named(arguments: &LinkArgs) -> Result<Vec<String>, Failure> {
    let links = all()?;
    let names: Vec<_> = links.iter().map(|link| &link.name[..]).collect();
    if let Some(name) = arguments.links.iter().find(|name| !names.contains(&&name[..])) {
        return Err(Failure::input(format!(
            "--use {}: no link of this host with an address has that name; there are {} (`restp paths` shows them)",
            name.escape_debug(),
            names.join(", ")
        )));
    }
    let wanted = (!arguments.links.is_empty()).then(|| arguments.links.clone());
    let choice = Choice {
        links: wanted,
        paths: arguments.paths,
    };
    let chosen = choice.among(&links).unwrap_or_default();
    if chosen.is_empty() {
        let none = match &choice.links {
            Some(names) => format!("--use {}: none of them is up", names.join(",")),
            None => "--paths: no link to other hosts is up".to_owned(),
        };
        return Err(Failure::input(format!(
            "{none}; `restp paths` shows the links of this host"
        )));
    }
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::fs;

    fn links() -> Vec<Link> {
        let link = |name: &str, state| Link {
            name: name.into(),
            state,
            addresses: vec![Ipv4Addr::new(10, 0, 0, 1).into()],
        };
        vec![
            link("lo", State::Loopback),
            link("eth0", State::Up),
            link("wlan0", State::Up),
            link("tun0", State::NoRoute),
            link("wwan0", State::Down),
        ]
    }

    fn chosen(policy: &str, command: Use) -> Option<Vec<String>> {
        let policy: Policy = toml::from_str(policy).unwrap();
        policy.choice(command).among(&links())
    }

    #[test]
    fn a_file_names_links_by_preference_and_how_many() {
        let names = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        assert_eq!(chosen("", Use::Send), None, "the routing table chooses");
        let all = "use = [\"wwan0\", \"wlan0\", \"usb7\", \"eth0\"]\n";
        assert_eq!(
            chosen(all, Use::Send),
            names(&["wlan0", "eth0"]),
            "what is down or away is passed over"
        );
        assert_eq!(chosen(&format!("{all}paths = 1"), Use::Pipe), names(&["wlan0"]));
        assert_eq!(
            chosen("paths = 2", Use::Send),
            names(&["eth0", "wlan0"]),
            "never loopback by itself"
        );
        assert_eq!(chosen("paths = 9", Use::Send), names(&["eth0", "wlan0", "tun0"]));
        assert_eq!(
            chosen("use = [\"lo\"]", Use::Send),
            names(&["lo"]),
            "but by its name"
        );
    }

    #[test]
    fn a_command_with_a_table_of_its_own_takes_nothing_from_the_others() {
        let policy = "use = [\"eth0\"]\npaths = 1\n[forward]\nuse = [\"wlan0\", \"tun0\"]\n[pipe]\n";
        assert_eq!(chosen(policy, Use::Send), Some(vec!["eth0".into()]));
        assert_eq!(
            chosen(policy, Use::Forward),
            Some(vec!["wlan0".into(), "tun0".into()])
        );
        assert_eq!(
            chosen(policy, Use::Pipe),
            None,
            "an empty table: as the routing table says"
        );
    }

    #[test]
    fn what_a_file_may_not_say_is_refused_with_the_way_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("paths.toml");
        assert_eq!(Policy::read(&path).unwrap(), Policy::default());
        for text in [
            "paths = 0",
            "links = []",
            "use = \"wlan0\"",
            "[recv]\n",
            "[send]\npath = 1",
            "\u{0}",
        ] {
            fs::write(&path, text).unwrap();
            let failure = Policy::read(&path).unwrap_err();
            assert!(
                failure.code() == 2 && failure.message().contains("[forward]"),
                "{text}: {failure:?}"
            );
        }
        fs::write(&path, "#".repeat(70_000)).unwrap();
        assert!(Policy::read(&path).unwrap_err().message().contains("65536 bytes"));
        assert!(
            Policy::read(folder.path())
                .unwrap_err()
                .message()
                .contains("it is a directory")
        );
    }

    #[test]
    fn loopback_is_a_link_of_every_host_and_leads_nowhere() {
        let here: Vec<_> = all()
            .unwrap()
            .into_iter()
            .filter(|link| link.state == State::Loopback)
            .collect();
        assert!(
            here.iter()
                .any(|link| link.addresses.iter().any(IpAddr::is_loopback)),
            "{here:?}"
        );
        assert!(
            here.iter()
                .all(|link| link.addresses.iter().all(IpAddr::is_loopback)),
            "{here:?}"
        );
    }
}
