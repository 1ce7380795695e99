//! What a host needs that others come to: sockets, keys, and a ticket.

use super::{activation, warn_of_plain};
use crate::address::{self, DEFAULT_PORT};
use crate::args::HostArgs;
use crate::failure::Failure;
use crate::keys;
use crate::progress::Progress;
use crate::transfer::{Capability, Ticket};
use restp::relay::Reached;
use restp::{Clients, Endpoint, EndpointConfig, Identity, Local, Security};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::{Pin, pin};
use std::time::Duration;
use tokio::time::timeout;

/// A relay that runs has answered by then, whatever way leads there.
const RELAY_ANSWERS: Duration = Duration::from_secs(10);
/// Until the addresses of the other family are given up, once a relay has answered: the first question and one more.
const OTHER_FAMILY: Duration = Duration::from_secs(1);

/// Sealed for those who are allowed to send, unless the user wants neither; and what the ticket gives to others.
///
/// # Errors
/// When keys cannot be read.
pub fn security(arguments: &HostArgs, allow: &[String]) -> Result<(Security, Option<Capability>), Failure> {
    if arguments.open {
        crate::output::note(
            "warning: --open: everybody who reaches this host is let in; without it, who has the ticket",
        );
    }
    if !allow.is_empty() && (arguments.seal.plain || arguments.open) {
        let other = if arguments.open { "--open" } else { "--plain" };
        return Err(Failure::input(format!(
            "--allow asks for keys and {other} for none; leave one of them out"
        )));
    }
    if arguments.seal.plain {
        warn_of_plain();
        return Ok((Security::Plain, None));
    }
    let secret = keys::identity(arguments.seal.key.as_deref())?;
    let clients = match keys::listed(allow)? {
        _ if allow.is_empty() => Clients::All,
        listed => {
            if listed.is_empty() {
                crate::output::note(format!(
                    "warning: --allow {}: no key is listed there, so nobody will be let in; write one a line, as \
                     `restp keygen --show` prints it at the sender, and start again",
                    allow.join(" --allow ")
                ));
            }
            Clients::Only(listed)
        }
    };
    let everybody = arguments.open || !allow.is_empty();
    let capability = (!everybody).then(|| Capability::of(&secret));
    let identity = Identity {
        clients,
        ..Identity::of(secret)
    };
    Ok((Security::Sealed(identity), capability))
}

/// Opens the sockets.
///
/// # Errors
/// When there is none.
pub fn bind(listen: &[String], config: &EndpointConfig, security: &Security) -> Result<Endpoint, Failure> {
    let given = activation::sockets()?;
    if !given.is_empty() {
        if !listen.is_empty() {
            return Err(Failure::input(
                "--listen, or listen in the file of --config, but a service manager has bound the sockets; leave one of both out",
            ));
        }
        return Endpoint::on_sockets(given, config.clone(), security.clone())
            .map_err(|error| Failure::operation(format!("sockets of the service manager: {error}")));
    }
    bind_by(listen, |addresses: &[SocketAddr]| {
        let locals: Vec<_> = addresses.iter().copied().map(Local::Address).collect();
        Endpoint::bind_with(&locals, config.clone(), security.clone())
    })
}

/// The same, of whatever `bind` makes of the addresses.
///
/// # Errors
/// When there is none.
pub fn bind_by<T>(listen: &[String], bind: impl Fn(&[SocketAddr]) -> io::Result<T>) -> Result<T, Failure> {
    // A host without IPv6 has no such socket. One whose port somebody has is not left out: nobody would come there.
    let everywhere = |addresses: &[SocketAddr]| {
        let without: Vec<_> = addresses
            .iter()
            .copied()
            .filter(|address| !is_every_v6(address))
            .collect();
        bind(addresses).or_else(|error| {
            if without.is_empty() || error.kind() == io::ErrorKind::AddrInUse {
                Err(error)
            } else {
                bind(&without)
            }
        })
    };
    if listen.is_empty() {
        let at = |port| {
            [
                (Ipv4Addr::UNSPECIFIED, port).into(),
                (Ipv6Addr::UNSPECIFIED, port).into(),
            ]
        };
        // Another receiver may have the port; the ticket says which one it is.
        return everywhere(&at(DEFAULT_PORT))
            .or_else(|_| everywhere(&at(0)))
            .map_err(|error| Failure::operation(format!("no socket: {error}")));
    }
    let found = listen
        .iter()
        .map(|word| address::to_listen_at(word, DEFAULT_PORT));
    let found: Result<Vec<_>, _> = found.collect();
    let addresses = to_bind(&found.map_err(|why| why.of("--listen "))?);
    everywhere(&addresses).map_err(|error| {
        Failure::operation(format!(
            "--listen {}: {error}; name addresses of this host with free ports, or port 0",
            listen.join(", ")
        ))
    })
}

/// What is named twice is bound once, and what stands for all addresses leaves out those of IPv4 beside one that is named.
fn to_bind(words: &[Vec<SocketAddr>]) -> Vec<SocketAddr> {
    let named: Vec<&SocketAddr> = words.iter().filter(|word| word.len() == 1).flatten().collect();
    let mut once: Vec<SocketAddr> = Vec::new();
    for word in words {
        for address in word {
            let has_port = |other: &&SocketAddr| other.is_ipv4() && other.port() == address.port();
            let stands_for_all = word.len() > 1 && address.is_ipv4() && address.port() != 0;
            let is_there = once.contains(address) && address.port() != 0;
            let has_another = stands_for_all && named.iter().any(has_port);
            if !is_there && !has_another {
                once.push(*address);
            }
        }
    }
    once
}

fn is_every_v6(address: &SocketAddr) -> bool {
    address.ip() == Ipv6Addr::UNSPECIFIED
}

/// Registers at the relays that the arguments name.
///
/// # Errors
/// When a word is no address, or a relay does not answer or has no place.
pub async fn register(words: &[String], endpoint: &Endpoint) -> Result<Vec<Reached>, Failure> {
    let mut reached = Vec::new();
    for word in words {
        let found = address::to_relay_at(word).map_err(|why| why.of("--relay "))?;
        let progress = Progress::new();
        let line = progress.trying(&format!("asking the relay {word}"));
        let (v4, v6): (Vec<_>, Vec<_>) = found.iter().partition(|relay| relay.is_ipv4());
        let answers = of_both(register_at(&v4, endpoint), register_at(&v6, endpoint)).await;
        drop(line);
        let before = reached.len();
        let mut failures = Vec::new();
        for answer in answers {
            match answer {
                Ok(one) => reached.push(one),
                Err(why) => failures.push(why),
            }
        }
        // They would be asked for as long as this host runs, and keep a place for an address that nobody is told.
        let is_reached = |relay: &&SocketAddr| reached.iter().any(|known| known.relay == **relay);
        let given_up = found.iter().filter(|relay| !is_reached(relay));
        given_up.for_each(|relay| endpoint.leave_relay(*relay));
        if reached.len() == before {
            return Err(Failure::operation(failures.join("; ")));
        }
    }
    Ok(reached)
}

/// Registers at the first of `relays`, which are those of one name and one family, that answers. Nothing where there are none.
async fn register_at(relays: &[SocketAddr], endpoint: &Endpoint) -> Option<Result<Reached, String>> {
    let mut answer = None;
    for relay in relays {
        answer = match timeout(RELAY_ANSWERS, endpoint.register(*relay)).await {
            Ok(Ok(one)) => return Some(Ok(one)),
            Ok(Err(error)) => Some(Err(error.to_string())),
            Err(_) => Some(Err(format!(
                "the relay {relay} does not answer; check that `restp relay` runs there and that UDP gets through"
            ))),
        };
    }
    answer
}

/// What comes of both families. When one has been registered, the other one is waited for a little longer.
async fn of_both(
    v4: impl Future<Output = Option<Result<Reached, String>>>,
    v6: impl Future<Output = Option<Result<Reached, String>>>,
) -> Vec<Result<Reached, String>> {
    type Other<'a> = Pin<&'a mut dyn Future<Output = Option<Result<Reached, String>>>>;
    let (mut v4, mut v6) = (pin!(v4), pin!(v6));
    let (first, other): (_, Other<'_>) = tokio::select! {
        first = &mut v4 => (first, v6),
        first = &mut v6 => (first, v4),
    };
    let second = match first {
        Some(Ok(_)) => timeout(OTHER_FAMILY, other).await.ok().flatten(),
        _ => other.await,
    };
    [first, second].into_iter().flatten().collect()
}

/// Where and as whom `endpoint` is reached.
pub fn ticket(endpoint: &Endpoint, capability: Option<Capability>, relays: &[Reached]) -> Ticket {
    let bound = endpoint.local_addrs();
    let ticket = if bound.iter().any(|address| address.ip().is_unspecified()) {
        Ticket::new(reached_at(&bound))
    } else {
        Ticket::of_paths(bound)
    };
    let relays = relays.iter().map(|reached| reached.at).collect();
    let ticket = ticket.with_relays(relays).with_key(endpoint.public_key());
    ticket.with_capability(capability)
}

/// The ticket for cameras, on standard error, where the user asks for it.
pub fn show_code(arguments: &HostArgs, ticket: &Ticket) {
    if arguments.qr {
        crate::output::asked(code(ticket).unwrap_or_else(|| "the ticket is too long for a QR code".into()));
    }
}

/// Half blocks, dark on light as scanners want it: two rows of modules in a line of text.
fn code(ticket: &Ticket) -> Option<String> {
    let code = qrcode::QrCode::with_error_correction_level(ticket.to_string(), qrcode::EcLevel::L).ok()?;
    let (light, dark) = (
        qrcode::render::unicode::Dense1x2::Light,
        qrcode::render::unicode::Dense1x2::Dark,
    );
    let mut drawn = code.render::<qrcode::render::unicode::Dense1x2>();
    // A terminal is dark: light modules are what it draws.
    Some(drawn.dark_color(light).light_color(dark).quiet_zone(true).build())
}

/// Where sockets bound to `bound` are reached on this host.
pub fn reached_at(bound: &[SocketAddr]) -> Vec<SocketAddr> {
    let own = if_addrs::get_if_addrs().unwrap_or_default();
    let own: Vec<_> = own.iter().map(|one| (one.name.as_str(), one.ip())).collect();
    reachable(bound, &one_of_each_network(&own))
}

/// Of several IPv6 addresses of one link in one /64 the last: whoever reaches one reaches the others, and the kernel lists the newest
/// first, of which the temporary ones (RFC 8981) are soon gone.
fn one_of_each_network(own: &[(&str, IpAddr)]) -> Vec<IpAddr> {
    let network = |(name, ip): &(&str, IpAddr)| match ip {
        IpAddr::V4(_) => None,
        IpAddr::V6(ip) => Some((name.to_string(), ip.to_bits() >> 64)),
    };
    let last = |(place, one): &(usize, &(&str, IpAddr))| {
        let wanted = network(one);
        wanted.is_none() || !own[place + 1..].iter().any(|later| network(later) == wanted)
    };
    own.iter()
        .enumerate()
        .filter(last)
        .map(|(_, (_, ip))| *ip)
        .collect()
}

/// The addresses at which sockets bound to `bound` can be reached on a host with the addresses `own`: wildcards
/// stand for all of their family, and for those of this host alone only where there are no others.
fn reachable(bound: &[SocketAddr], own: &[IpAddr]) -> Vec<SocketAddr> {
    let mut addresses = Vec::new();
    for socket in bound {
        if socket.ip().is_unspecified() {
            let family = own
                .iter()
                .filter(|ip| ip.is_ipv4() == socket.is_ipv4() && !is_link_local(ip));
            addresses.extend(family.map(|ip| SocketAddr::new(*ip, socket.port())));
        } else {
            addresses.push(*socket);
        }
    }
    if addresses.iter().any(|address| !address.ip().is_loopback()) {
        addresses.retain(|address| !address.ip().is_loopback());
    }
    addresses
}

/// Such an address means nothing without the name of an interface, which differs from host to host.
fn is_link_local(ip: &IpAddr) -> bool {
    matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What comes of a port that is taken in IPv6, on a host with or without it.
    fn bound(listen: &[&str], has_ipv6: bool) -> Result<Vec<SocketAddr>, String> {
        let words: Vec<String> = listen.iter().map(ToString::to_string).collect();
        let bound = bind_by(&words, |addresses| {
            for address in addresses.iter().filter(|address| address.is_ipv6()) {
                let kind = match (has_ipv6, address.port()) {
                    (false, _) => io::ErrorKind::Unsupported,
                    (true, DEFAULT_PORT) => io::ErrorKind::AddrInUse,
                    (true, _) => continue,
                };
                return Err(kind.into());
            }
            Ok(addresses.to_vec())
        });
        bound.map_err(|failure| failure.message().to_owned())
    }

    #[test]
    fn a_port_that_is_taken_in_one_family_is_taken() {
        let at = |texts: &[&str]| {
            Ok(texts
                .iter()
                .map(|text| text.parse().expect("an address"))
                .collect())
        };
        assert_eq!(bound(&[], true), at(&["0.0.0.0:0", "[::]:0"]));
        assert_eq!(bound(&[], false), at(&["0.0.0.0:7070"]));
        assert_eq!(bound(&["7070"], false), at(&["0.0.0.0:7070"]));
        assert_eq!(bound(&["7071"], true), at(&["0.0.0.0:7071", "[::]:7071"]));
        let why = bound(&["7070"], true).expect_err("it is taken");
        assert!(
            why.contains("--listen 7070") && why.contains("free ports"),
            "{why}"
        );
        assert_eq!(bound(&["[::]:7071"], false), at(&["0.0.0.0:7071"]));
        // As in the file that the package brings.
        let both = at(&["0.0.0.0:7071", "[::]:7071"]);
        assert_eq!(bound(&["0.0.0.0:7071", "[::]:7071"], true), both);
        let with_one = ["192.0.2.1:7071", "[::]:7071"];
        assert_eq!(bound(&with_one, true), at(&with_one));
        assert_eq!(
            bound(&["127.0.0.1:0", "127.0.0.1:0"], true).map(|all| all.len()),
            Ok(2)
        );
        assert!(bound(&["[::1]:7071"], false).is_err(), "one that is named");
    }

    #[test]
    fn a_ticket_fits_on_a_terminal_as_a_code() {
        let addresses =
            ["192.0.2.7:7070", "[2001:db8::7]:7070"].map(|text| text.parse().expect("an address"));
        let secret = restp::SecretKey::from_chance([7; 32]);
        let ticket = Ticket::new(addresses.to_vec()).with_capability(Some(Capability::of(&secret)));
        let drawn = code(&ticket.with_key(Some(secret.public()))).expect("a code");
        let widest = drawn.lines().map(|line| line.chars().count()).max();
        assert!(widest.is_some_and(|width| width <= 80), "{drawn}");
    }

    #[test]
    fn a_ticket_names_one_ipv6_address_of_each_network() {
        let own = [
            ("eth0", "192.0.2.7"),
            ("eth0", "192.0.2.8"),
            ("eth0", "2001:db8::b9e:89b4:78e6:3778"),
            ("wlan0", "2001:db8::9"),
            ("eth0", "2001:db8::1"),
            ("eth0", "2001:db8:0:9::1"),
        ];
        let own = own.map(|(name, ip)| (name, ip.parse().expect("an address")));
        let places: Vec<_> = [0, 1, 3, 4, 5].map(|place: usize| own[place].1).to_vec();
        assert_eq!(one_of_each_network(&own), places);
    }

    #[test]
    fn a_wildcard_stands_for_the_addresses_of_its_family() {
        let socket = |text: &str| -> SocketAddr { text.parse().expect("an address") };
        let own = ["127.0.0.1", "192.0.2.7", "::1", "fe80::1", "2001:db8::7"];
        let own = own.map(|text| text.parse().expect("an address"));
        let bound = [socket("0.0.0.0:10"), socket("[::]:20")];
        let expected = ["192.0.2.7:10", "[2001:db8::7]:20"];
        assert_eq!(reachable(&bound, &own), expected.map(socket));
        let alone = own
            .into_iter()
            .filter(std::net::IpAddr::is_loopback)
            .collect::<Vec<_>>();
        let expected = ["127.0.0.1:10", "[::1]:20"];
        assert_eq!(reachable(&bound, &alone), expected.map(socket));
        assert_eq!(reachable(&[socket("127.0.0.1:5")], &own), [socket("127.0.0.1:5")]);
    }
}
