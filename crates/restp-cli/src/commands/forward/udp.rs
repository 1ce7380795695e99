//! `--udp` and `--udp-remote`: datagrams from a port here to a target at the server, and the other way round.

use super::super::carrier::OpenError;
use super::super::client::Client;
use super::super::serve::resolve;
use super::{Kind, RETRY, Told};
use crate::args::Rule;
use crate::datagrams::{Listening, Operation, connecting, listen_at};
use crate::failure::Failure;
use crate::output::note;
use crate::pipe::Place;
use restp::{Connection, ReplySocket};
use std::net::SocketAddr;
use tokio::time::sleep;

/// A rule, as far as this host can carry it out alone.
pub struct Wanted {
    operation: Operation,
    /// At the server.
    place: Place,
    here: Here,
}

/// This host's end.
enum Here {
    Socket(ReplySocket),
    Target { place: Place, at: SocketAddr },
}

/// A rule for which the server stands ready.
pub struct Udp {
    wanted: Wanted,
    connection: Connection,
    /// Where the server listens.
    there: String,
}

impl Wanted {
    /// `--udp`.
    ///
    /// # Errors
    /// When the port cannot be had, or the target is none.
    pub async fn local(rule: &Rule) -> Result<Self, Failure> {
        let (host, port) = target(rule, "--udp")?;
        let place = Place::udp(host, port).ok_or_else(|| wrong("--udp", host))?;
        let (bind, at) = rule.listen.host_and_port();
        let socket = listen_at((bind, at)).await.map_err(|error| {
            Failure::input(format!(
                "no UDP socket at {}:{at}: {error}; name an address of this host and a free port, or port 0",
                rule.listen.host
            ))
        })?;
        Ok(Wanted {
            operation: Operation::Connect,
            place,
            here: Here::Socket(socket),
        })
    }

    /// `--udp-remote`.
    ///
    /// # Errors
    /// When it says no place or no target.
    pub async fn remote(rule: &Rule) -> Result<Self, Failure> {
        let (host, port) = target(rule, "--udp-remote")?;
        let target = Place::udp(host, port).ok_or_else(|| wrong("--udp-remote", host))?;
        let (bind, at) = (&rule.listen.host, rule.listen.port);
        let place = Place::listen_udp(bind, at).ok_or_else(|| wrong("--udp-remote", bind))?;
        let found = resolve(&target).await;
        let at = found.map_err(|error| Failure::input(format!("--udp-remote: {target}: {error}")))?;
        Ok(Wanted {
            operation: Operation::Listen,
            place,
            here: Here::Target { place: target, at },
        })
    }

    /// Has the server stand ready.
    ///
    /// # Errors
    /// When it is not reached, or refuses.
    pub async fn open(self, client: &Client) -> Result<Udp, Failure> {
        let connection = client.meet().await?;
        let (connection, there) = client
            .carriers()
            .ask_datagrams(connection, self.operation, &self.place.to_string())
            .await?;
        Ok(Udp {
            wanted: self,
            connection,
            there,
        })
    }
}

impl Udp {
    pub fn told(&self) -> Told {
        match &self.wanted.here {
            Here::Socket(socket) => Told {
                kind: Kind::Udp,
                listen: socket.local_addr().to_string(),
                target: self.wanted.place.to_string(),
            },
            Here::Target { place, .. } => Told {
                kind: Kind::UdpRemote,
                listen: self.there.clone(),
                target: place.to_string(),
            },
        }
    }

    /// Carries datagrams, for ever. When the server is lost, or starts again, it is asked anew.
    pub async fn run(self, client: &Client) -> Failure {
        let Wanted {
            operation,
            place,
            here,
        } = self.wanted;
        let mut connection = self.connection;
        let another = async || ask_again(client, operation, &place).await;
        match here {
            Here::Socket(socket) => {
                let mut clients = Listening::at(&socket);
                loop {
                    if let Err(why) = clients.carry(&connection, None).await {
                        return Failure::operation(why);
                    }
                    (connection, _) = clients.await_another(another()).await;
                    note(format!("{place}: reached again"));
                }
            }
            Here::Target { at, .. } => loop {
                if let Err(why) = connecting(&connection, at, None).await {
                    return Failure::operation(why);
                }
                let there;
                (connection, there) = another().await;
                note(format!("{place}: listens again at {there}"));
            },
        }
    }
}

/// Another connection in the place of one that was lost, and where the server listens.
async fn ask_again(client: &Client, operation: Operation, place: &Place) -> (Connection, String) {
    note(format!("{place}: the server was lost; asking it again"));
    loop {
        match client
            .carriers()
            .open_datagrams(operation, &place.to_string())
            .await
        {
            Ok(opened) => return opened,
            Err(error @ OpenError::Refused(_)) => note(format!("{place}: {error}")),
            Err(OpenError::Unreached(_)) => {}
        }
        sleep(RETRY).await;
    }
}

fn target<'a>(rule: &'a Rule, option: &str) -> Result<(&'a str, u16), Failure> {
    let target = rule.target.as_ref().map(|(host, port)| (&host[..], *port));
    target.ok_or_else(|| {
        Failure::input(format!(
            "{option}: where to? write [BIND:]PORT:HOST:HOSTPORT, such as 5000:127.0.0.1:5000"
        ))
    })
}

fn wrong(option: &str, host: &str) -> Failure {
    Failure::input(format!(
        "{option}: {host:?} is no host; write a name or an address"
    ))
}
