//! Addresses as people type them: `192.0.2.1:4000`, `192.0.2.1`, `[2001:db8::1]:4000`, `example.org:4000`, `:4000` or `4000`, and with a
//! zone (RFC 4007 §11) `fe80::1%eth0` or `[fe80::1%eth0]:4000`.

use crate::failure::Failure;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, ToSocketAddrs};

/// UDP port at which `restp recv` listens and to which `restp send` sends unless another one is named.
pub const DEFAULT_PORT: u16 = 7070;

/// UDP port at which `restp relay` listens unless another one is named.
pub const RELAY_PORT: u16 = 7071;

const FORMS: &str = "write HOST:PORT, HOST, [IPV6]:PORT or PORT, such as 192.0.2.1:7070 or example.org";

/// Why what was typed leads nowhere.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoAddress {
    /// It is none.
    #[error("{0}")]
    Wrong(String),
    /// It is a name that leads nowhere now, and may later: the network may not be up yet.
    #[error("{0}")]
    LookUp(String),
}

impl NoAddress {
    /// The same with another way out.
    pub fn or(self, way_out: &str) -> Self {
        match self {
            NoAddress::Wrong(why) => NoAddress::Wrong(format!("{why}; {way_out}")),
            NoAddress::LookUp(why) => NoAddress::LookUp(format!("{why}; {way_out}")),
        }
    }

    /// The failure of a command to which `option` brought it, whose name stands first.
    pub fn of(self, option: &str) -> Failure {
        match self {
            NoAddress::Wrong(why) => Failure::input(format!("{option}{why}")),
            NoAddress::LookUp(why) => Failure::operation(format!("{option}{why}")),
        }
    }
}

/// Addresses of this host to listen at. A port alone stands for every address, as `[::]` does, an address alone has the `default_port`.
///
/// # Errors
/// When it is none.
pub fn to_listen_at(text: &str, default_port: u16) -> Result<Vec<SocketAddr>, NoAddress> {
    let everywhere = [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()];
    let found = resolve(text, everywhere, default_port)?;
    Ok(match found[..] {
        [one] if one.ip() == everywhere[1] => everywhere.map(|ip| (ip, one.port()).into()).to_vec(),
        _ => found,
    })
}

/// Addresses of a receiver, to try in this order. A port alone stands for this host.
///
/// # Errors
/// When it is none, or has port 0.
pub fn to_send_to(text: &str) -> Result<Vec<SocketAddr>, NoAddress> {
    reachable(text, DEFAULT_PORT)
}

/// Addresses of a relay, likewise.
///
/// # Errors
/// When it is none, or has port 0.
pub fn to_relay_at(text: &str) -> Result<Vec<SocketAddr>, NoAddress> {
    reachable(text, RELAY_PORT)
}

/// Is it the address of one host, neither of none nor of many?
pub(crate) fn is_of_one_host(ip: IpAddr) -> bool {
    let ip = ip.to_canonical();
    !ip.is_unspecified() && !ip.is_multicast() && ip != Ipv4Addr::BROADCAST
}

/// Is it an address of one link, without the interface to that? It leads nowhere (RFC 4007 §6).
pub fn lacks_zone(address: &SocketAddr) -> bool {
    match address {
        SocketAddr::V6(address) => address.ip().is_unicast_link_local() && address.scope_id() == 0,
        SocketAddr::V4(_) => false,
    }
}

fn reachable(text: &str, default_port: u16) -> Result<Vec<SocketAddr>, NoAddress> {
    let here = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
    let addresses = resolve(text, here, default_port)?;
    let canonical = |address: SocketAddr| match address.ip().to_canonical() {
        ip @ IpAddr::V4(_) => (ip, address.port()).into(),
        IpAddr::V6(_) => address, // with its zone
    };
    let addresses: Vec<SocketAddr> = addresses.into_iter().map(canonical).collect();
    if addresses.iter().any(|address| address.port() == 0) {
        return Err(NoAddress::Wrong(format!(
            "\"{text}\": nobody can be reached at port 0; {FORMS}, with the port that is listened at there"
        )));
    }
    if let Some(address) = addresses.iter().find(|address| lacks_zone(address)) {
        let (ip, port) = (address.ip(), address.port());
        return Err(NoAddress::Wrong(format!(
            "{address} is an address of one link; write the interface of this host to it as well, such as [{ip}%eth0]:{port}"
        )));
    }
    if !addresses.iter().all(|address| is_of_one_host(address.ip())) {
        return Err(NoAddress::Wrong(format!(
            "\"{text}\": that is no address of one host; {FORMS}, with one of the host that is to be reached"
        )));
    }
    Ok(addresses)
}

fn resolve(text: &str, without_host: [IpAddr; 2], default_port: u16) -> Result<Vec<SocketAddr>, NoAddress> {
    let text = text.trim();
    if let Ok(address) = text.parse() {
        return Ok(vec![address]);
    }
    if let Ok(ip) = text.parse::<IpAddr>() {
        return Ok(vec![(ip, default_port).into()]);
    }
    if let Some(address) = in_zone(text, default_port)? {
        return Ok(vec![address]);
    }
    let wrong = || NoAddress::Wrong(format!("\"{}\" is no address; {FORMS}", text.escape_debug()));
    let (host, port) = split(text, default_port).ok_or_else(wrong)?;
    if host.is_empty() {
        return Ok(without_host.map(|ip| (ip, port).into()).to_vec());
    }
    if let Some(ip) = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        let in_zone = in_zone(ip, port)?;
        let plain = || Some(SocketAddr::from((ip.parse::<Ipv6Addr>().ok()?, port)));
        return Ok(vec![in_zone.or_else(plain).ok_or_else(wrong)?]);
    }
    // A name begins with a letter or a digit (RFC 1123 §2.1); -1 is a slip of the hand.
    let is_name = !host.starts_with('-') && host.chars().all(|c| c.is_alphanumeric() || ".-_".contains(c));
    if !is_name {
        return Err(wrong());
    }
    let found = (host, port).to_socket_addrs();
    let found: Vec<_> = found
        .map_err(
            |error| match host.chars().all(|c| c.is_ascii_digit() || c == '.') {
                true => wrong(),
                false => NoAddress::LookUp(format!(
                    "{host}: {error}; is the name right, and is there a network?"
                )),
            },
        )?
        .collect();
    match found.is_empty() {
        true => Err(NoAddress::LookUp(format!("{host} has no address; {FORMS}"))),
        false => Ok(found),
    }
}

/// `IPV6%ZONE`, where the zone is an interface of this host, by name or number. None where it is written otherwise.
fn in_zone(text: &str, port: u16) -> Result<Option<SocketAddr>, NoAddress> {
    let Some((ip, zone)) = text.split_once('%') else {
        return Ok(None);
    };
    let Ok(ip) = ip.parse::<Ipv6Addr>() else {
        return Ok(None);
    };
    if !ip.is_unicast_link_local() {
        return Err(NoAddress::Wrong(format!(
            "\"{}\": only an address of one link (fe80::…) has a zone; leave \"%{}\" out",
            text.escape_debug(),
            zone.escape_debug()
        )));
    }
    let number = zone
        .parse()
        .or_else(|_| nix::net::if_::if_nametoindex(zone).map_err(|_| zone));
    match number {
        Ok(number) => Ok(Some(SocketAddrV6::new(ip, port, 0, number).into())),
        Err(zone) => Err(NoAddress::Wrong(format!(
            "\"{}\": there is no interface \"{}\" here; `restp paths` lists them",
            text.escape_debug(),
            zone.escape_debug()
        ))),
    }
}

/// Host and port.
fn split(text: &str, default_port: u16) -> Option<(&str, u16)> {
    if text.is_empty() {
        return None;
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(("", text.parse().ok()?));
    }
    match text.rsplit_once(':') {
        Some((host, port)) if !host.ends_with(':') && port.bytes().all(|byte| byte.is_ascii_digit()) => {
            Some((host, port.parse().ok()?))
        }
        Some(_) if !text.ends_with(']') => None,
        _ => Some((text, default_port)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> String {
        let addresses = to_send_to(text).unwrap_or_else(|why| panic!("{why}"));
        let words: Vec<_> = addresses.iter().map(SocketAddr::to_string).collect();
        words.join(" ")
    }

    #[test]
    fn a_name_that_leads_nowhere_now_may_later() {
        let code = |why: NoAddress| {
            (
                why.clone().of("--relay ").code(),
                why.of("--relay ").message().to_owned(),
            )
        };
        assert_eq!(code(NoAddress::Wrong("x".into())), (2, "--relay x".into()));
        assert_eq!(code(NoAddress::LookUp("x".into())), (1, "--relay x".into()));
    }

    #[test]
    fn every_form_that_people_type_is_understood() {
        for (text, address) in [
            ("192.0.2.1:4000", "192.0.2.1:4000"),
            ("192.0.2.1", "192.0.2.1:7070"),
            ("[2001:db8::1]:4000", "[2001:db8::1]:4000"),
            ("[2001:db8::1]", "[2001:db8::1]:7070"),
            ("2001:db8::1", "[2001:db8::1]:7070"),
            ("[::ffff:192.0.2.1]:4000", "192.0.2.1:4000"),
            (":4000", "127.0.0.1:4000 [::1]:4000"),
            ("4000", "127.0.0.1:4000 [::1]:4000"),
        ] {
            assert_eq!(said(text), address, "{text}");
        }
        assert!(said("localhost:4000").contains("127.0.0.1:4000"));
        assert_eq!(
            to_listen_at(":4000", DEFAULT_PORT).map(|all| all[1].to_string()),
            Ok("[::]:4000".into())
        );
        for (text, places) in [("127.0.0.1:0", 1), ("[::1]:0", 1), ("[::]:4000", 2), ("::", 2)] {
            assert_eq!(
                to_listen_at(text, DEFAULT_PORT).map(|all| all.len()),
                Ok(places),
                "{text}"
            );
        }
    }

    #[test]
    fn a_zone_is_an_interface_of_this_host() {
        for (text, address) in [
            ("fe80::1%7", "[fe80::1%7]:7070"),
            ("[fe80::1%7]", "[fe80::1%7]:7070"),
            ("[fe80::1%7]:4000", "[fe80::1%7]:4000"),
        ] {
            assert_eq!(said(text), address, "{text}");
        }
        #[cfg(target_os = "linux")]
        assert!(said("[fe80::1%lo]:4000").ends_with("]:4000"));
        let why = to_send_to("[fe80::1%nowhere]:4000")
            .expect_err("no such interface")
            .to_string();
        assert!(why.contains("no interface \"nowhere\""), "{why}");
        let why = to_send_to("2001:db8::1%7").expect_err("of no link").to_string();
        assert!(why.contains("leave \"%7\" out"), "{why}");
        assert!(to_send_to("[x%lo]:1").is_err() && to_send_to("192.0.2.1%lo").is_err());
    }

    #[test]
    fn what_is_no_address_is_answered_with_what_is_one() {
        for text in [
            "",
            "a b",
            "a/b:4000",
            "host:port",
            "host:99999",
            "99999",
            "[::1",
            "[x]:1",
            "1::2::3:4000",
            "127.0.0.1:0",
            "0.0.0.0:4000",
            "[::]",
            "224.0.0.1:4000",
            "255.255.255.255",
            "192.0.2.256",
        ] {
            let NoAddress::Wrong(why) = to_send_to(text).expect_err(text) else {
                panic!("{text} is no name");
            };
            assert!(why.contains("HOST:PORT") && why.contains(text), "{why}");
        }
    }
}
