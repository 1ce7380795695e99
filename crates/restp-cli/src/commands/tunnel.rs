//! `restp tunnel`: several links as one, for what this host sends and routes.

use super::carrier::OpenError;
use super::client::{self, Client, Traffic};
use super::forward::RETRY;
use crate::args::{LinkArgs, Tunnel};
use crate::datagrams::Operation;
use crate::failure::Failure;
use crate::links::Use;
use crate::output::{Output, note};
use crate::subnet::Subnet;
use crate::tunnel::{End, carry, device};
use restp::Connection;
use restp::tun::Tun;
use serde::Serialize;
use std::process::Command;
use tokio::time::sleep;

/// Carries packets until it is interrupted.
///
/// # Errors
/// Exit code 2 when it could not begin, 1 when the server is not reached at first or refuses, or the device vanishes.
pub fn execute(arguments: &Tunnel, output: Output) -> Result<(), Failure> {
    let server = (&arguments.server[..], &arguments.timeout[..]);
    let (own, link) = own_address(&arguments.link)?;
    let way = (Use::Tunnel, &link);
    client::run_all(&[Traffic::Packets], way, server, Ok(()), async |clients| {
        let [client] = clients else { return Ok(()) };
        stays_out(arguments, client)?;
        let connection = client.meet().await?;
        let opened = client
            .carriers()
            .ask_datagrams(connection, Operation::Tunnel, "")
            .await?;
        let (connection, there) = opened;
        let there: Subnet = there.parse().map_err(Failure::operation)?;
        let here = match own {
            Some(address) => in_network_of(there, address)?,
            None if !there.is_host() => {
                return Err(Failure::operation(format!(
                    "the server has {there} in the tunnel, which is no address of a host"
                )));
            }
            None => there.other().ok_or_else(|| {
                Failure::input(format!(
                    "the server has {there} in the tunnel; name an address of that network with --address"
                ))
            })?,
        };
        let device = device(arguments.device.clone(), here, &connection).map_err(Failure::operation)?;
        for subnet in &arguments.route {
            for route in subnet.routes() {
                add_route(&route, device.name())?;
            }
        }
        let up = Up {
            device: device.name().to_owned(),
            address: here.to_string(),
            peer: there.to_string(),
            mtu: device.mtu(),
            routes: arguments.route.iter().map(Subnet::to_string).collect(),
        };
        output.result(&up, Up::text)?;
        Err(run(client, &device, connection, there).await)
    })
}

/// The address of this host in the tunnel, which says the length of its network, and how the server is reached.
fn own_address(link: &LinkArgs) -> Result<(Option<Subnet>, LinkArgs), Failure> {
    let mut link = link.clone();
    let (own, others): (Vec<_>, Vec<_>) = link.address.into_iter().partition(|word| word.contains('/'));
    link.address = others;
    match &own[..] {
        [] => Ok((None, link)),
        [one] => Ok((
            Some(
                one.parse()
                    .map_err(|why| Failure::input(format!("--address {why}")))?,
            ),
            link,
        )),
        _ => Err(Failure::input(format!(
            "--address {}: this host has one address in a tunnel; leave the others out",
            own.join(" --address ")
        ))),
    }
}

/// `own`, if a host at it and the server, which has `there`, are in one network.
fn in_network_of(there: Subnet, own: Subnet) -> Result<Subnet, Failure> {
    if own.is_host()
        && there.contains(own.address)
        && own.contains(there.address)
        && own.address != there.address
    {
        return Ok(own);
    }
    Err(Failure::input(format!(
        "--address {own}: the server has {there} in the tunnel; name another address of a host in that network"
    )))
}

/// What is printed when the device is up.
#[derive(Serialize)]
struct Up {
    device: String,
    address: String,
    peer: String,
    mtu: u16,
    routes: Vec<String>,
}

impl Up {
    fn text(&self) -> String {
        let Up {
            device,
            address,
            peer,
            mtu,
            routes,
        } = self;
        let routes = match routes.is_empty() {
            true => String::new(),
            false => format!("; routes: {}", routes.join(", ")),
        };
        format!("{device}: {address} here, {peer} there, MTU {mtu}{routes}")
    }
}

/// The tunnel's own packets must not go through it: what a route covers them has to leave by links that are named.
fn stays_out(arguments: &Tunnel, client: &Client) -> Result<(), Failure> {
    if client.is_on_every_link() {
        return Err(Failure::input(
            "--bind all would take the tunnel for a link of its own; name the links, such as --bind wlan0 --bind wwan0",
        ));
    }
    if client.is_on_links() {
        return Ok(());
    }
    for address in client.carriers().addresses() {
        if let Some(route) = arguments.route.iter().find(|route| route.contains(address.ip())) {
            return Err(Failure::input(format!(
                "--route {route} would lead to the server, {}, through the tunnel itself; name the links that it runs over, such as \
                 --bind wlan0 --bind wwan0",
                address.ip()
            )));
        }
    }
    Ok(())
}

/// The kernel forgets the route when the device is gone, however this program ends.
fn add_route(route: &str, device: &str) -> Result<(), Failure> {
    let family = if route.contains(':') { "-6" } else { "-4" };
    let added = Command::new("ip")
        .args([family, "route", "add", route, "dev", device])
        .output();
    let added = added
        .map_err(|error| Failure::operation(format!("--route {route}: ip: {error}; install iproute2")))?;
    if added.status.success() {
        return Ok(());
    }
    let why = String::from_utf8_lossy(&added.stderr);
    Err(Failure::input(format!(
        "--route {route}: {}; `ip route` shows the routes that are there",
        why.trim()
    )))
}

/// Carries packets, for ever. When the server is lost it is asked again for the network that it gave; the device stays, so that nothing
/// goes another way meanwhile.
async fn run(client: &Client, device: &Tun, mut connection: Connection, there: Subnet) -> Failure {
    let network = there.to_string();
    loop {
        match carry(&connection, device, None).await {
            End::Device(error) => {
                return Failure::operation(format!(
                    "the device {} has vanished ({error}); start again",
                    device.name()
                ));
            }
            End::Refused(why) => return Failure::operation(why),
            End::Connection => note("the server was lost; asking it again"),
        }
        connection = loop {
            let opened = client
                .carriers()
                .open_datagrams(Operation::Tunnel, &network)
                .await;
            match opened {
                Ok((connection, given)) if given == network => break connection,
                Ok((connection, given)) => {
                    connection.abort();
                    note(format!(
                        "the server gives {given} where it gave {network}; asking it again"
                    ));
                }
                Err(error @ OpenError::Refused(_)) => note(error),
                Err(OpenError::Unreached(_)) => {}
            }
            sleep(RETRY).await;
        };
        note("reached again");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_are_in_one_network() {
        let is_in = |there: &str, own: &str| {
            let [there, own] = [there, own].map(|word| word.parse().expect("an address"));
            in_network_of(there, own).is_ok()
        };
        assert!(is_in("10.9.0.1/24", "10.9.0.7/24"));
        assert!(is_in("fd00::1/126", "fd00::2/126"));
        for own in [
            "10.9.0.9/30",
            "10.9.0.1/30",
            "10.9.0.0/30",
            "10.9.1.2/32",
            "fd00::2/126",
        ] {
            assert!(!is_in("10.9.0.1/30", own), "{own}");
        }
    }
}
