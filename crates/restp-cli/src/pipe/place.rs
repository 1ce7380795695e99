//! Names of places, such as `tcp:127.0.0.1:22`, and which of them are allowed.

use crate::subnet::Subnet;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// What can be done at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scheme {
    /// To connect to it.
    Tcp,
    /// To listen there.
    Listen,
    /// To send datagrams to it.
    Udp,
    /// To take datagrams there.
    ListenUdp,
}

/// Schemes by their names.
const SCHEMES: [(&str, Scheme); 4] = [
    ("tcp", Scheme::Tcp),
    ("listen", Scheme::Listen),
    ("udp", Scheme::Udp),
    ("listen-udp", Scheme::ListenUdp),
];

/// What an address in a tunnel is allowed with.
const TUNNEL: &str = "tunnel";

/// Stands for every host, or every port.
const ANY: &str = "*";

/// A place at the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    scheme: Scheme,
    host: Host,
    port: u16,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Host {
    Address(IpAddr),
    /// In lower case.
    Name(String),
}

impl Host {
    fn of(text: &str) -> Option<Self> {
        if let Some(inner) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
            return Some(Host::Address(
                inner.parse::<std::net::Ipv6Addr>().ok()?.to_canonical(),
            ));
        }
        if let Ok(address) = text.parse::<std::net::Ipv4Addr>() {
            return Some(Host::Address(address.into()));
        }
        let named = !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || ".-_".contains(c));
        named.then(|| Host::Name(text.to_lowercase()))
    }
}

impl Place {
    /// Stands for every target of TCP: who may connect to none need not begin.
    pub const ANY_TCP: &str = "tcp:*:*";

    /// Where a TCP connection goes to.
    pub fn tcp(host: &str, port: u16) -> Option<Self> {
        Self::of(Scheme::Tcp, host, port)
    }

    /// Where to listen.
    pub fn listen(host: &str, port: u16) -> Option<Self> {
        Self::of(Scheme::Listen, host, port)
    }

    /// Where datagrams go to.
    pub fn udp(host: &str, port: u16) -> Option<Self> {
        Self::of(Scheme::Udp, host, port)
    }

    /// Where to take datagrams.
    pub fn listen_udp(host: &str, port: u16) -> Option<Self> {
        Self::of(Scheme::ListenUdp, host, port)
    }

    fn of(scheme: Scheme, host: &str, port: u16) -> Option<Self> {
        let host = Host::of(host)?;
        Some(Place { scheme, host, port })
    }

    /// Its host and port, as the system takes them.
    pub fn host_and_port(&self) -> (String, u16) {
        let host = match &self.host {
            Host::Address(address) => address.to_string(),
            Host::Name(name) => name.clone(),
        };
        (host, self.port)
    }

    /// Is it one to connect to?
    pub fn is_tcp(&self) -> bool {
        self.scheme == Scheme::Tcp
    }

    /// Is it one to listen at?
    pub fn is_listener(&self) -> bool {
        self.scheme == Scheme::Listen
    }

    /// Is it one to send datagrams to?
    pub fn is_udp(&self) -> bool {
        self.scheme == Scheme::Udp
    }

    /// Is it one to take datagrams at?
    pub fn is_udp_listener(&self) -> bool {
        self.scheme == Scheme::ListenUdp
    }
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse()? {
            Pattern {
                scheme,
                host: Some(host),
                port: Some(port),
            } => Ok(Place { scheme, host, port }),
            _ => Err(format!("{text:?} is not one place; {ANY} is for --allow")),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Pattern {
            scheme: self.scheme,
            host: Some(self.host.clone()),
            port: Some(self.port),
        }
        .fmt(f)
    }
}

/// A place, or several: without a host every one, without a port every one.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pattern {
    scheme: Scheme,
    host: Option<Host>,
    port: Option<u16>,
}

impl FromStr for Pattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "{text:?}: write tcp:HOST:PORT, listen:ADDRESS:PORT, udp:HOST:PORT, listen-udp:ADDRESS:PORT or tunnel:ADDRESS/LENGTH, such as tcp:127.0.0.1:22 or tcp:[::1]:22, with {ANY} in the \
                 place of HOST or PORT for every one"
            )
        };
        let (scheme, rest) = text.split_once(':').ok_or_else(wrong)?;
        let named = SCHEMES.iter().find(|(name, _)| *name == scheme);
        let (_, scheme) = named.ok_or_else(wrong)?;
        let (host, port) = rest.rsplit_once(':').ok_or_else(wrong)?;
        Ok(Pattern {
            scheme: *scheme,
            host: match host {
                ANY => None,
                host => Some(Host::of(host).ok_or_else(wrong)?),
            },
            port: match port {
                ANY => None,
                port => Some(port.parse().map_err(|_| wrong())?),
            },
        })
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = SCHEMES.iter().find(|(_, scheme)| *scheme == self.scheme);
        let (name, _) = named.unwrap_or(&SCHEMES[0]);
        write!(f, "{name}:")?;
        match &self.host {
            None => f.write_str(ANY)?,
            Some(Host::Address(IpAddr::V6(address))) => write!(f, "[{address}]")?,
            Some(Host::Address(address)) => address.fmt(f)?,
            Some(Host::Name(name)) => f.write_str(name)?,
        }
        match self.port {
            None => write!(f, ":{ANY}"),
            Some(port) => write!(f, ":{port}"),
        }
    }
}

/// Which places of a server may be reached.
#[derive(Clone, Debug, Default)]
pub struct AllowList {
    places: Vec<Pattern>,
    tunnels: Vec<Subnet>,
}

impl AllowList {
    /// Is `word` a place or several, and not a key?
    pub fn is_place(word: &str) -> bool {
        let scheme = word.split_once(':').map(|(scheme, _)| scheme);
        scheme == Some(TUNNEL) || SCHEMES.iter().any(|(name, _)| Some(*name) == scheme)
    }

    /// Those that `words` name.
    ///
    /// # Errors
    /// When one is no place.
    pub fn of(words: &[String]) -> Result<Self, String> {
        let mut list = AllowList::default();
        for word in words {
            match word.split_once(':') {
                Some((TUNNEL, subnet)) => list.add_tunnel(subnet.parse()?)?,
                _ => list.places.push(word.parse()?),
            }
        }
        Ok(list)
    }

    /// Those of `more` as well.
    ///
    /// # Errors
    /// When two tunnels would have one network.
    pub fn extend(&mut self, more: AllowList) -> Result<(), String> {
        self.places.extend(more.places);
        more.tunnels
            .into_iter()
            .try_for_each(|subnet| self.add_tunnel(subnet))
    }

    /// One that is named twice is one.
    fn add_tunnel(&mut self, subnet: Subnet) -> Result<(), String> {
        if !subnet.is_host() {
            return Err(format!(
                "{TUNNEL}:{subnet}: this is no address that a host can have; write one such as {TUNNEL}:10.9.0.1/30"
            ));
        }
        if self.tunnels.contains(&subnet) {
            return Ok(());
        }
        if let Some(other) = self.tunnels.iter().find(|other| other.overlaps(subnet)) {
            return Err(format!(
                "{TUNNEL}:{subnet}: its network is that of {TUNNEL}:{other}; each tunnel needs one of its own"
            ));
        }
        self.tunnels.push(subnet);
        Ok(())
    }

    /// May `place` be reached?
    pub fn allows(&self, place: &Place) -> bool {
        self.places.iter().any(|pattern| {
            pattern.scheme == place.scheme
                && pattern.host.as_ref().is_none_or(|host| *host == place.host)
                && pattern.port.is_none_or(|port| port == place.port)
        })
    }

    /// May anything be reached that `word`, places of one kind with `*` for host and port, stands for? Nothing: it is no such word.
    pub fn allows_some(&self, word: &str) -> Option<bool> {
        let of = SCHEMES
            .iter()
            .find(|(name, _)| word.strip_prefix(name) == Some(":*:*"));
        let (_, scheme) = of?;
        Some(self.places.iter().any(|pattern| pattern.scheme == *scheme))
    }

    /// The first single place to connect to, for who names none.
    pub fn first(&self) -> Option<Place> {
        let places = self.places.iter().filter(|pattern| pattern.scheme == Scheme::Tcp);
        let mut places = places.filter_map(|pattern| {
            Some(Place {
                scheme: pattern.scheme,
                host: pattern.host.clone()?,
                port: pattern.port?,
            })
        });
        places.next()
    }

    /// Addresses of this host in tunnels, each for one client.
    pub fn tunnels(&self) -> &[Subnet] {
        &self.tunnels
    }

    /// The words again, each in one form.
    pub fn words(&self) -> Vec<String> {
        let places = self.places.iter().map(Pattern::to_string);
        let tunnels = self.tunnels.iter().map(|subnet| format!("{TUNNEL}:{subnet}"));
        places.chain(tunnels).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(words: &[&str]) -> AllowList {
        let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
        AllowList::of(&words).expect("places")
    }

    #[test]
    fn only_what_is_on_the_list_is_allowed() {
        for (pattern, place, allowed) in [
            ("tcp:127.0.0.1:22", "tcp:127.0.0.1:22", true),
            ("tcp:127.0.0.1:22", "tcp:127.0.0.1:23", false),
            ("tcp:127.0.0.1:22", "tcp:127.0.0.2:22", false),
            ("tcp:127.0.0.1:22", "listen:127.0.0.1:22", false),
            ("tcp:127.0.0.1:22", "tcp:localhost:22", false),
            ("tcp:127.0.0.1:22", "tcp:[::ffff:127.0.0.1]:22", true),
            ("tcp:[::1]:22", "tcp:[0:0::1]:22", true),
            ("tcp:Example.org:80", "tcp:example.ORG:80", true),
            ("tcp:example.org:80", "tcp:www.example.org:80", false),
            ("tcp:example.org:*", "tcp:example.org:443", true),
            ("tcp:*:443", "tcp:example.org:443", true),
            ("tcp:*:443", "tcp:example.org:80", false),
            ("tcp:*:*", "tcp:[::1]:80", true),
            ("tcp:*:*", "listen:[::1]:80", false),
            ("listen:127.0.0.1:*", "listen:127.0.0.1:8080", true),
            ("listen:127.0.0.1:*", "listen:[::]:8080", false),
        ] {
            let named: Place = place.parse().expect(place);
            assert_eq!(list(&[pattern]).allows(&named), allowed, "{pattern} {place}");
        }
        assert!(!AllowList::default().allows(&Place::tcp("a", 1).expect("a place")));
    }

    #[test]
    fn each_tunnel_has_a_network_of_its_own() {
        let of = |words: &[&str]| {
            let words: Vec<_> = words.iter().map(|word| format!("tunnel:{word}")).collect();
            AllowList::of(&words).map(|list| list.tunnels.len())
        };
        assert_eq!(of(&["10.9.0.1/30", "10.9.0.5/30", "10.9.0.1/30"]), Ok(2));
        let why = of(&["10.9.0.1/30", "10.9.0.2/24"]).expect_err("one network");
        assert!(
            why.contains("tunnel:10.9.0.2/24") && why.contains("tunnel:10.9.0.1/30"),
            "{why}"
        );
        let why = of(&["127.0.0.1/30"]).expect_err("no address of a host");
        assert!(why.contains("such as tunnel:10.9.0.1/30"), "{why}");
    }

    #[test]
    fn names_keep_their_meaning_when_they_are_written_again() {
        for name in ["tcp:127.0.0.1:22", "listen:[::1]:0", "tcp:a.b-c_d:65535"] {
            let place: Place = name.parse().expect(name);
            assert_eq!(place.to_string(), name);
        }
        assert_eq!(list(&["tcp:*:*", "tcp:A:1"]).words(), ["tcp:*:*", "tcp:a:1"]);
        assert_eq!(
            list(&["tcp:*:22", "listen:a:1", "tcp:b:2"]).first(),
            Place::tcp("b", 2)
        );
    }

    #[test]
    fn what_is_no_place_is_answered_with_what_is_one() {
        for name in [
            "",
            "tcp",
            "tcp:22",
            "tcp::22",
            "tcp:a:",
            "tcp:a:x",
            "tcp:a:65536",
            "tcp:::1:22",
            "tcp:[::1]",
            "ftp:a:1",
            "tcp:a b:1",
            "tcp:a\n:1",
            "tcp:[a]:1",
        ] {
            let why = name.parse::<Pattern>().expect_err(name);
            assert!(why.contains("tcp:HOST:PORT"), "{why}");
        }
        let why = "tcp:a\n:1".parse::<Pattern>().expect_err("no place");
        assert!(why.starts_with(r#""tcp:a\n:1": write"#), "quoted once: {why}");
        assert!("tcp:*:1".parse::<Place>().is_err() && "tcp:a:*".parse::<Place>().is_err());
        assert_eq!(list(&["tcp:a:1"]).allows_some(Place::ANY_TCP), Some(true));
        assert_eq!(list(&["listen:a:1"]).allows_some(Place::ANY_TCP), Some(false));
        assert_eq!(list(&["tcp:*:*"]).allows_some("tcp:*:1"), None);
        assert_eq!(
            list(&["tunnel:10.9.0.1/30", "udp:a:1"]).words(),
            ["udp:a:1", "tunnel:10.9.0.1/30"]
        );
        assert!(AllowList::is_place("tunnel:"));
        assert!(AllowList::is_place("tcp:") && !AllowList::is_place("key.pub"));
    }
}
