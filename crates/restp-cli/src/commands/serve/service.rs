//! One who connects: what he asks for, whether that is allowed, and the bytes.

use super::super::GOODBYE;
use super::listeners::Listeners;
use super::pool::Pool;
use crate::datagrams;
use crate::output::note;
use crate::pipe::{self, AllowList, Answer, Operation, Place, Refusal, Request};
use crate::transfer::{Capability, Inlet};
use crate::tunnel::{self, Subnet};
use restp::tun::Tun;
use restp::{Composition, Connection};
use std::io::{self, ErrorKind};
use std::time::Duration;
use tokio::net::{TcpStream, UdpSocket, lookup_host};
use tokio::time::timeout;

/// Who connects asks for something within this time, and a target answers within it.
pub const SOON: Duration = Duration::from_secs(30);

/// What this host offers.
pub struct Service {
    allowed: AllowList,
    /// What who connects must show.
    capability: Option<Capability>,
    listeners: Listeners,
    sockets: Pool<UdpSocket>,
    devices: Pool<Tun>,
}

impl Service {
    /// Offers what is `allowed` to those who show `capability`.
    pub fn new(allowed: AllowList, capability: Option<Capability>) -> Self {
        Service {
            allowed,
            capability,
            listeners: Listeners::default(),
            sockets: Pool::default(),
            devices: Pool::default(),
        }
    }

    /// Serves one connection until it is over.
    pub async fn serve(&self, connection: &Connection) {
        // What the composition delivers says which service was come for.
        let composition = connection.composition();
        let is = |carries: fn(&Composition) -> Result<(), String>| {
            let composition = composition.as_ref();
            composition.is_some_and(|composition| carries(composition).is_ok())
        };
        if is(datagrams::check_fitness) {
            return self.serve_datagrams(connection).await;
        } else if is(tunnel::check_fitness) {
            return self.serve_tunnel(connection).await;
        }
        let mut inlet = Inlet::new(connection);
        if let Err(refusal) = self.run(connection, &mut inlet).await {
            note(format!("refused: {refusal}"));
            say(connection, Answer::Refused(refusal)).await;
            end(connection).await;
        }
    }

    async fn run(&self, connection: &Connection, inlet: &mut Inlet<'_>) -> Result<(), Refusal> {
        let request = timeout(SOON, Request::read(inlet)).await;
        let request = request.map_err(|_| Refusal::other("nothing was asked for in time"))?;
        let Request {
            capability,
            operation,
        } = request.map_err(Refusal::other)?;
        self.admit(&capability)?;
        match operation {
            Operation::Check(name) => {
                match self.allowed.allows_some(&name) {
                    Some(true) => {}
                    Some(false) => return Err(Refusal::not_allowed(&name)),
                    None => drop(self.place(&name)?),
                }
                say(connection, Answer::Accepted(String::new())).await;
                end(connection).await;
            }
            Operation::Connect(name) => {
                let place = self.place(&name)?;
                if !place.is_tcp() {
                    return Err(Refusal::not_allowed(&name));
                }
                let stream = connect(&place).await;
                let stream = stream.map_err(|error| Refusal::of(&place.to_string(), &error))?;
                carry(connection, inlet, stream).await;
            }
            Operation::Take(token) => {
                let waiting = self.listeners.take(&token);
                let stream = waiting.ok_or_else(|| Refusal::other("that connection waits here no more"))?;
                carry(connection, inlet, stream).await;
            }
            Operation::Listen(name) => {
                let place = self.place(&name)?;
                if !place.is_listener() {
                    return Err(Refusal::not_allowed(&name));
                }
                let held = self.listeners.hold(&place, connection.peer_key()).await?;
                say(connection, Answer::Accepted(held.address())).await;
                held.announce(connection).await;
                end(connection).await;
            }
        }
        Ok(())
    }

    /// Lets in who shows what he must.
    pub fn admit(&self, capability: &Capability) -> Result<(), Refusal> {
        match &self.capability {
            Some(wanted) if capability != wanted => Err(Refusal::other(
                "the server takes those who have its ticket; use the whole word after \"ticket:\"",
            )),
            _ => Ok(()),
        }
    }

    /// UDP sockets that were asked for.
    pub fn sockets(&self) -> &Pool<UdpSocket> {
        &self.sockets
    }

    /// TUN devices that were asked for.
    pub fn devices(&self) -> &Pool<Tun> {
        &self.devices
    }

    /// Addresses of this host in tunnels.
    pub fn tunnels(&self) -> &[Subnet] {
        self.allowed.tunnels()
    }

    /// The place of this name, if it is allowed.
    pub fn place(&self, name: &str) -> Result<Place, Refusal> {
        if name.is_empty() {
            let first = self.allowed.first();
            return first.ok_or_else(|| Refusal::other("name a target: no single one is allowed there"));
        }
        let place: Place = name.parse().map_err(Refusal::other)?;
        if self.allowed.allows(&place) {
            Ok(place)
        } else {
            Err(Refusal::not_allowed(&place.to_string()))
        }
    }
}

async fn connect(place: &Place) -> io::Result<TcpStream> {
    let (host, port) = place.host_and_port();
    let connecting = async {
        let found = lookup_host((&host[..], port)).await;
        // No name of a host: whoever asked is told that there is no way to it.
        let found = found.map_err(|error| io::Error::new(ErrorKind::NotFound, error))?;
        TcpStream::connect(&found.collect::<Vec<_>>()[..]).await
    };
    match timeout(SOON, connecting).await {
        Ok(connected) => connected,
        Err(_) => Err(ErrorKind::TimedOut.into()),
    }
}

async fn carry(connection: &Connection, inlet: &mut Inlet<'_>, stream: TcpStream) {
    say(connection, Answer::Accepted(String::new())).await;
    if let Err(broken) = pipe::join_tcp(connection, inlet, stream).await {
        note(format!("a pipe broke: {broken}"));
    }
}

/// Whom it is for hears of the end that is not here.
async fn say(connection: &Connection, answer: Answer) {
    let _ = connection.send(answer.encode().into()).await;
}

/// Everything has been said: waits a moment that it arrives.
pub async fn end(connection: &Connection) {
    connection.finish();
    let heard = async {
        while connection.recv().await.is_some() {}
        connection.closed().await
    };
    let _ = timeout(GOODBYE, heard).await;
    connection.abort();
}
