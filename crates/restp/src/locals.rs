//! Where an endpoint is bound: one socket per local address, and what becomes of it when addresses of this host come
//! and go.

use crate::socket::Socket;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::sync::Arc;
use thiserror::Error;

/// Something to bind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Local {
    /// One address. The wildcard stands for whichever address the routing table chooses; it is one socket.
    Address(SocketAddr),
    /// Every address of an interface, those it gets later included, each with a socket of its own. Datagrams leave
    /// there even where the routing table would send them elsewhere, if the system permits that (`SO_BINDTODEVICE`).
    Interface(String),
    /// Every interface but loopback, those that come later included.
    Every,
}

/// Why a word names nothing to bind.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "\"{0}\" is neither an address nor an interface; write IP, IP:PORT, a name as `ip link` lists it, or all"
)]
pub struct LocalError(String);

impl From<SocketAddr> for Local {
    fn from(address: SocketAddr) -> Self {
        Local::Address(address)
    }
}

impl FromStr for Local {
    type Err = LocalError;

    fn from_str(word: &str) -> Result<Self, LocalError> {
        let name = |word: &str| {
            // IFNAMSIZ with its zero, and what the kernel takes in a name.
            let fits = (1..16).contains(&word.len());
            fits && !word.contains(|c: char| c == '/' || c == ':' || c.is_whitespace() || c.is_control())
        };
        match (word.parse(), word.parse::<IpAddr>()) {
            _ if word == "all" => Ok(Local::Every),
            (Ok(address), _) => Ok(Local::Address(address)),
            (_, Ok(ip)) => Ok(Local::Address(SocketAddr::new(ip, 0))),
            _ if name(word) => Ok(Local::Interface(word.into())),
            _ => Err(LocalError(word.into())),
        }
    }
}

impl fmt::Display for Local {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Local::Address(address) => address.fmt(f),
            Local::Interface(name) => name.fmt(f),
            Local::Every => f.write_str("all"),
        }
    }
}

/// An address that this host has now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Present {
    pub(crate) interface: String,
    pub(crate) ip: IpAddr,
    /// Its link is up.
    pub(crate) up: bool,
}

/// The addresses of this host now. Link-local ones are left out: they mean nothing without an interface on both sides.
///
/// # Errors
/// When the system does not tell.
pub(crate) fn present() -> io::Result<Vec<Present>> {
    let all = if_addrs::get_if_addrs()?.into_iter();
    let named = all.filter(|one| !one.is_link_local()).map(|one| Present {
        up: one.is_oper_up(),
        ip: one.ip(),
        interface: one.name,
    });
    Ok(named.collect())
}

/// One bound address. It keeps its port while the address is away.
#[derive(Debug)]
struct Place {
    local: SocketAddr,
    device: Option<String>,
    /// Somebody else bound it, and may hold it as well: it cannot be bound anew.
    given: bool,
    /// None while the address is away.
    socket: Option<Arc<Socket>>,
    /// Whether it was usable at the last look; none while it has never been listed, as most of 127.0.0.0/8.
    usable: Option<bool>,
}

/// Everything an endpoint is bound to; nothing, where the sockets are another one's.
#[derive(Debug, Default)]
pub(crate) struct Locals {
    wanted: Vec<Local>,
    places: Vec<Place>,
    /// For wildcard sockets: the addresses of this host at the last look, and whether they were usable.
    seen: BTreeMap<IpAddr, bool>,
    /// Those it had once.
    lost: BTreeSet<IpAddr>,
}

/// What a look at this host's addresses has shown.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Change {
    /// Local addresses that may be usable now, or are not any more.
    pub(crate) notices: Vec<(SocketAddr, bool)>,
    /// New ones.
    pub(crate) added: Vec<SocketAddr>,
}

impl Locals {
    /// Binds everything `wanted`; an interface without an address beside others that have one serves once it gets one.
    ///
    /// # Errors
    /// When an address cannot be bound, no interface has any, or nothing is wanted.
    pub(crate) fn bind(wanted: &[Local], present: &[Present]) -> io::Result<Self> {
        let mut locals = Locals {
            wanted: wanted.to_vec(),
            places: Vec::new(),
            seen: usable(present),
            lost: BTreeSet::new(),
        };
        let mut not_yet = None;
        for one in wanted {
            let is_named = matches!(one, Local::Address(_));
            for (address, device) in addresses(one, present) {
                if locals.has(address) {
                    continue;
                }
                match locals.open(address, device, present) {
                    // One of IPv6 that is being checked for duplicates. The others serve meanwhile, and it is noticed when it is ready.
                    Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable && !is_named => {
                        tracing::debug!(%address, %error, "not bound yet");
                        not_yet = not_yet.or(Some(error));
                    }
                    opened => _ = opened?,
                }
            }
            // Elsewhere nobody tells when it gets one.
            if !cfg!(target_os = "linux") && addresses(one, present).next().is_none() {
                return Err(without_address(one));
            }
        }
        if let Some(error) = not_yet.filter(|_| locals.places.is_empty()) {
            return Err(error);
        }
        locals.some()
    }

    /// Takes sockets that somebody else has bound.
    ///
    /// # Errors
    /// When there is none, or one cannot be used.
    pub(crate) fn adopt(sockets: Vec<std::net::UdpSocket>, present: &[Present]) -> io::Result<Self> {
        let mut locals = Locals {
            wanted: Vec::new(),
            places: Vec::new(),
            seen: usable(present),
            lost: BTreeSet::new(),
        };
        for socket in sockets {
            let socket = Socket::adopt(socket.into())?;
            let local = socket.local();
            locals.places.push(Place {
                local,
                device: None,
                given: true,
                usable: locals.seen.get(&local.ip()).copied(),
                socket: Some(Arc::new(socket)),
            });
        }
        locals.some()
    }

    fn some(self) -> io::Result<Self> {
        if self.places.is_empty() {
            if let Some(one) = self.wanted.first() {
                return Err(without_address(one));
            }
            let rule = "an endpoint needs at least one local address";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, rule));
        }
        Ok(self)
    }

    fn open(
        &mut self,
        address: SocketAddr,
        device: Option<String>,
        present: &[Present],
    ) -> io::Result<SocketAddr> {
        let socket = Socket::bind(address, device.as_deref())?;
        let local = socket.local();
        self.places.push(Place {
            local,
            device,
            given: false,
            usable: usable(present).get(&local.ip()).copied(),
            socket: Some(Arc::new(socket)),
        });
        Ok(local)
    }

    /// An interface's address may be named twice; port 0 asks for a socket of its own each time.
    fn has(&self, address: SocketAddr) -> bool {
        let same = |place: &Place| place.device.is_some() && place.local.ip() == address.ip();
        address.port() == 0 && self.places.iter().any(same)
    }

    /// Had this host the address `ip`, and has it no more?
    pub(crate) fn has_lost(&self, ip: IpAddr) -> bool {
        self.lost.contains(&ip)
    }

    /// Do sockets come with addresses that an interface gets later?
    pub(crate) fn follow_links(&self) -> bool {
        cfg!(target_os = "linux") && self.wanted.iter().any(|one| !matches!(one, Local::Address(_)))
    }

    /// The sockets that are open.
    pub(crate) fn sockets(&self) -> Arc<[Arc<Socket>]> {
        self.places
            .iter()
            .filter_map(|place| place.socket.clone())
            .collect()
    }

    /// This host has the addresses `present`, or its routes have changed.
    pub(crate) fn update(&mut self, present: &[Present]) -> Change {
        let mut change = Change::default();
        let now = usable(present);
        for place in &mut self.places {
            place.update(&now, &self.seen, &mut change);
        }
        self.lost.extend(self.seen.keys());
        self.lost.retain(|ip| !now.contains_key(ip));
        self.seen = now;
        for one in self.wanted.clone() {
            if matches!(one, Local::Address(_)) {
                continue;
            }
            for (address, device) in addresses(&one, present) {
                if self.has(address) {
                    continue;
                }
                match self.open(address, device, present) {
                    Ok(local) => change.added.push(local),
                    // Perhaps not yet ready (RFC 4862 §5.4): a further change says when.
                    Err(error) => tracing::debug!(%error, %address, "a new address cannot be bound"),
                }
            }
        }
        change
    }
}

impl Place {
    fn update(&mut self, now: &BTreeMap<IpAddr, bool>, before: &BTreeMap<IpAddr, bool>, change: &mut Change) {
        if self.local.ip().is_unspecified() {
            let same_family = |ip: &&IpAddr| {
                let socket = self.socket.as_deref();
                socket.map_or(ip.is_ipv4() == self.local.is_ipv4(), |socket| {
                    socket.has_family_of(**ip)
                })
            };
            for ip in before.keys().chain(now.keys()).filter(same_family) {
                let up = now.get(ip) == Some(&true);
                if up || before.get(ip) == Some(&true) {
                    change.notices.push((SocketAddr::new(*ip, self.local.port()), up));
                }
            }
            change.notices.sort_unstable();
            return change.notices.dedup();
        }
        let listed = now.get(&self.local.ip()).copied();
        if listed.is_none() && self.usable.is_none() {
            return;
        }
        if self.given {
            // It stays bound, and works again once the address is back.
        } else if listed.is_none() {
            self.socket = None; // bound to an address, or a device, that may come back as another one
        } else if self.socket.is_none() {
            let reopened = Socket::bind(self.local, self.device.as_deref());
            self.socket = reopened.ok().map(Arc::new);
        }
        let usable = listed == Some(true) && self.socket.is_some();
        let was = self.usable.replace(usable);
        if usable || was == Some(true) {
            change.notices.push((self.local, usable));
        }
    }
}

fn without_address(one: &Local) -> io::Error {
    let rule = "name an interface that has an address, as `ip address` lists them";
    io::Error::new(
        io::ErrorKind::AddrNotAvailable,
        format!("{one} has no address; {rule}"),
    )
}

fn usable(present: &[Present]) -> BTreeMap<IpAddr, bool> {
    present.iter().map(|one| (one.ip, one.up)).collect()
}

/// The addresses to bind for `wanted`, and the device to hold them to.
fn addresses<'a>(
    wanted: &'a Local,
    present: &'a [Present],
) -> impl Iterator<Item = (SocketAddr, Option<String>)> + 'a {
    let fixed = match wanted {
        Local::Address(address) => Some((*address, None)),
        Local::Interface(_) | Local::Every => None,
    };
    let belongs = move |one: &&Present| match wanted {
        Local::Address(_) => false,
        Local::Interface(name) => one.interface == *name,
        Local::Every => !one.ip.is_loopback() && one.up,
    };
    let named = present.iter().filter(belongs);
    let bound = named.map(|one| (SocketAddr::new(one.ip, 0), Some(one.interface.clone())));
    fixed.into_iter().chain(bound)
}

/// Can datagrams from `local` reach `remote`, as far as their kinds tell?
pub(crate) fn makes_sense(local: SocketAddr, remote: SocketAddr) -> bool {
    local.is_ipv4() == remote.is_ipv4() && local.ip().is_loopback() == remote.ip().is_loopback()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> SocketAddr {
        text.parse().expect("an address")
    }

    fn listed(ips: &[(&str, bool)]) -> Vec<Present> {
        let one = |(ip, up): &(&str, bool)| Present {
            interface: "test0".into(),
            ip: ip.parse().expect("an address"),
            up: *up,
        };
        ips.iter().map(one).collect()
    }

    #[test]
    fn words_name_addresses_interfaces_or_everything() {
        for (word, local) in [
            ("127.0.0.1:9", Local::Address(at("127.0.0.1:9"))),
            ("127.0.0.1", Local::Address(at("127.0.0.1:0"))),
            ("::1", Local::Address(at("[::1]:0"))),
            ("wlan0", Local::Interface("wlan0".into())),
            ("all", Local::Every),
        ] {
            assert_eq!(word.parse(), Ok(local), "{word}");
        }
        for word in ["", "a name", "a/b", "127.0.0.1:99999", "sixteencharacter"] {
            assert!(word.parse::<Local>().is_err(), "{word}");
        }
    }

    #[test]
    fn pairs_are_of_one_family_and_loopback_reaches_loopback() {
        for (local, remote, sense) in [
            ("10.0.0.1:1", "10.0.1.1:1", true),
            ("127.0.0.1:1", "127.0.0.2:1", true),
            ("127.0.0.1:1", "10.0.1.1:1", false),
            ("10.0.0.1:1", "[2001:db8::1]:1", false),
        ] {
            assert_eq!(makes_sense(at(local), at(remote)), sense, "{local} {remote}");
        }
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn an_address_that_cannot_be_bound_yet_keeps_no_other_one_waiting() {
        let mut present = listed(&[("192.0.2.77", true), ("127.0.0.1", true)]);
        present.iter_mut().for_each(|one| one.interface = "lo".into());
        let wanted = [Local::Interface("lo".into())];
        let locals = Locals::bind(&wanted, &present).unwrap();
        assert!(locals.has(at("127.0.0.1:0")) && !locals.has(at("192.0.2.77:0")));
        let refused = Locals::bind(&wanted, &present[..1]).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AddrNotAvailable, "{refused}");
    }

    #[tokio::test]
    async fn a_socket_goes_with_its_address_and_comes_back_under_the_same_port() {
        // The kernel takes all of 127.0.0.0/8, so that any of it may be said to come and go.
        let wanted = [Local::Interface("test0".into())];
        let both = listed(&[("127.0.1.1", true), ("127.0.1.2", true)]);
        let mut locals = Locals::bind(&wanted, &both).expect("loopback");
        let ports: Vec<_> = locals.sockets().iter().map(|socket| socket.local()).collect();
        assert_eq!(ports.len(), 2);
        let change = locals.update(&both[..1]);
        assert_eq!(change.notices, [(ports[0], true), (ports[1], false)]);
        assert_eq!(locals.sockets().len(), 1);
        assert_eq!(locals.update(&both[..1]).notices, [(ports[0], true)], "said once");
        let change = locals.update(&both);
        assert_eq!(change.notices, [(ports[0], true), (ports[1], true)]);
        assert_eq!(change.added, [], "it is no new one");
        let again: Vec<_> = locals.sockets().iter().map(|socket| socket.local()).collect();
        assert_eq!(again, ports);
    }

    #[tokio::test]
    async fn a_link_without_an_address_keeps_the_others_waiting_for_nothing_and_gets_a_socket_later() {
        let wanted = ["test1", "test0"].map(|name| Local::Interface(name.into()));
        let mut present = listed(&[("127.0.1.1", true)]);
        let mut locals = Locals::bind(&wanted, &present).expect("one has an address");
        assert_eq!(locals.sockets().len(), 1);
        present.push(Present {
            ip: at("127.0.1.2:0").ip(),
            up: true,
            interface: "test1".into(),
        });
        assert_eq!(locals.update(&present).added.len(), 1);
        assert_eq!(locals.sockets().len(), 2);
    }

    #[tokio::test]
    async fn a_link_that_goes_down_keeps_its_socket_and_new_addresses_get_one() {
        let wanted = [Local::Interface("test0".into())];
        let mut locals = Locals::bind(&wanted, &listed(&[("127.0.1.1", true)])).expect("loopback");
        let first = locals.sockets()[0].local();
        let change = locals.update(&listed(&[("127.0.1.1", false)]));
        assert_eq!(
            (change.notices, locals.sockets().len()),
            (vec![(first, false)], 1)
        );
        let change = locals.update(&listed(&[("127.0.1.1", true), ("127.0.1.3", true)]));
        assert_eq!(change.notices, [(first, true)]);
        assert_eq!(change.added.len(), 1);
        assert_eq!(change.added[0].ip(), at("127.0.1.3:0").ip());
        assert_eq!(locals.sockets().len(), 2);
    }

    #[tokio::test]
    async fn wildcards_and_unlisted_addresses() {
        let wanted = [Local::Address(at("0.0.0.0:0")), Local::Address(at("127.0.9.9:0"))];
        let mut locals = Locals::bind(&wanted, &listed(&[("192.0.2.1", true)])).expect("loopback");
        let port = locals.sockets()[0].local().port();
        let change = locals.update(&listed(&[("192.0.2.2", true)]));
        let of = |ip: &str| SocketAddr::new(ip.parse().expect("an address"), port);
        assert_eq!(
            change.notices,
            [(of("192.0.2.1"), false), (of("192.0.2.2"), true)]
        );
        assert_eq!(
            locals.sockets().len(),
            2,
            "127.0.9.9 is never listed, and never away"
        );
        let interface = |name: &str| Local::Interface(name.into());
        let none = Locals::bind(&[interface("test1")], &listed(&[]));
        let why = none.expect_err("it has no address").to_string();
        assert!(why.contains("test1") && why.contains("ip address"), "{why}");
        assert!(Locals::bind(&[], &[]).is_err());
        assert!(Locals::adopt(Vec::new(), &[]).is_err());
    }

    #[tokio::test]
    async fn a_socket_that_somebody_else_bound_stays_bound_while_its_address_is_away() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("loopback");
        let local = socket.local_addr().expect("bound");
        let here = listed(&[("127.0.0.1", true)]);
        let mut locals = Locals::adopt(vec![socket], &here).expect("a socket");
        let away = locals.update(&listed(&[]));
        assert_eq!(away.notices, [(local, false)]);
        assert_eq!(locals.sockets().len(), 1);
        assert_eq!(locals.update(&here).notices, [(local, true)]);
    }
}
