//! `restp relay`: a rendezvous for hosts that cannot reach each other.

use super::{most_open_files, run};
use crate::address::{self, RELAY_PORT};
use crate::args::Relay as Arguments;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::monitor::Monitor;
use crate::output::{Output, note, rate};
use crate::plan;
use restp::relay::{Relay, RelayConfig};
use serde::Serialize;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

/// Relays until it is interrupted.
///
/// # Errors
/// Exit code 2 when it could not begin, 1 when its socket fails.
pub fn execute(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let listen = listen_at(arguments.listen.as_deref())?;
    let config = RelayConfig {
        listen,
        limit: plan::limit(&arguments.limit)?,
        most_users: arguments.max_hosts.get(),
        ports: arguments
            .ports
            .clone()
            .map_or(RelayConfig::PORTS, |ports| ports.0),
    };
    most_open_files();
    run(async {
        let mut interrupt = Interrupt::watch()?;
        let (limit, places) = (config.limit, config.most_users);
        let relay = bind(config).map_err(|error| {
            Failure::input(format!(
                "--listen {listen}: {error}; name an address of this host with a free port"
            ))
        })?;
        let _monitor = Monitor::start("relay", vec![Box::new(relay.overview())], &arguments.monitor)?;
        let address = relay.local_addr();
        note(format!(
            "relaying at {address} for {places} hosts, {} each; at a receiver: restp recv --relay HOST:{}",
            rate(limit.as_bps() as f64),
            address.port()
        ));
        let ready = Ready { listen: address };
        output.result(&ready, |ready| format!("listening: {}", ready.listen))?;
        let result = tokio::select! {
            never = relay.run() => match never {},
            () = interrupt.wait() => Ok(()),
        };
        let stats = relay.stats();
        note(format!(
            "forwarded {:.1} MB; {} datagrams were over the limit, {} hosts found no place",
            stats.forwarded_bytes as f64 / 1e6,
            stats.over_limit,
            stats.refused
        ));
        result
    })
}

/// Where hosts look for a relay, unless a `word` says otherwise: a port alone, or nothing, stands for all addresses.
fn listen_at(word: Option<&str>) -> Result<SocketAddr, Failure> {
    let everywhere = (Ipv6Addr::UNSPECIFIED, RELAY_PORT).into();
    word.map_or(Ok(everywhere), |word| {
        let found = address::to_listen_at(word, RELAY_PORT);
        let found = found.map_err(|why| why.of("--listen "))?;
        let of_both_families = found.iter().find(|at| at.ip() == Ipv6Addr::UNSPECIFIED);
        Ok(*of_both_families.unwrap_or(&found[0]))
    })
}

/// A host without IPv6 has the addresses of IPv4 alone.
fn bind(config: RelayConfig) -> io::Result<Relay> {
    let listen = config.listen;
    let bound = Relay::bind(config.clone());
    if bound.is_ok() || listen.ip() != Ipv6Addr::UNSPECIFIED || has_ipv6() {
        return bound;
    }
    Relay::bind(RelayConfig {
        listen: (Ipv4Addr::UNSPECIFIED, listen.port()).into(),
        ..config
    })
}

fn has_ipv6() -> bool {
    std::net::UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)).is_ok()
}

/// What is printed first.
#[derive(Serialize)]
struct Ready {
    listen: SocketAddr,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An address alone had the port of a receiver, where no host looks for a relay.
    #[test]
    fn a_relay_listens_where_hosts_look_for_it() {
        for (word, at) in [
            (None, "[::]:7071"),
            (Some("192.0.2.1"), "192.0.2.1:7071"),
            (Some("[2001:db8::1]"), "[2001:db8::1]:7071"),
            (Some("192.0.2.1:9"), "192.0.2.1:9"),
            (Some("4000"), "[::]:4000"),
            (Some("0.0.0.0"), "0.0.0.0:7071"),
        ] {
            assert_eq!(listen_at(word).expect("one").to_string(), at, "{word:?}");
        }
        assert!(listen_at(Some("no address")).is_err());
    }
}
