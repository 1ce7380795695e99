//! One who connects for datagrams: what he asks for, whether that is allowed, and the datagrams.

use super::super::GOODBYE;
use super::super::words::peer;
use super::pool::Held;
use super::service::{SOON, Service, end};
use crate::datagrams::{
    Listening, Message, Open, Operation, SERVICE_PORT, composition, connecting, deadline_of, listen_at,
};
use crate::failure::Failure;
use crate::output::note;
use crate::pipe::{Answer, Place, Refusal};
use crate::user_timeout::bear;
use restp::{Acceptance, Connection, ReplySocket};
use restp_base::time::Duration;
use restp_proto::Listener;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use tokio::net::lookup_host;
use tokio::time::timeout;

/// Until the client has said its own: that of preset `video`.
const DEADLINE: Duration = Duration::from_millis(250);

/// The service at which clients come for datagrams. They say how reliable those are, and until when they are of use.
///
/// # Errors
/// Never, as long as the preset exists.
pub fn listener(user_timeout: Duration) -> Result<Listener, Failure> {
    let mut composition = composition(Some(DEADLINE)).map_err(Failure::operation)?;
    bear(&mut composition, user_timeout);
    Ok(Listener {
        port: SERVICE_PORT,
        composition,
        acceptance: Acceptance::Any,
    })
}

/// Where datagrams go.
enum Side<'a> {
    Target(SocketAddr),
    Socket(Held<'a, ReplySocket>),
}

impl Service {
    /// Carries datagrams until `connection` is over.
    pub async fn serve_datagrams(&self, connection: &Connection) {
        let Ok(Some(open)) = timeout(SOON, request(connection)).await else {
            note(format!(
                "{}: refused: nothing was asked for in time",
                peer(connection)
            ));
            connection.abort();
            return;
        };
        match self.side(connection, &open).await {
            Ok(side) => {
                tell_deadline(connection, &open);
                let answer = Answer::Accepted(side.address());
                say(connection, &answer).await;
                let carried = match &side {
                    Side::Target(target) => connecting(connection, *target, Some(&answer)).await,
                    Side::Socket(held) => tokio::select! {
                        carried = async { Listening::at(held.thing()).carry(connection, Some(&answer)).await } => carried,
                        () = held.lost() => {
                            let superseded = Answer::Refused(held.superseded("forward"));
                            return refuse(connection, &superseded).await;
                        }
                    },
                };
                if let Err(why) = carried {
                    note(format!("{}: datagrams: {why}", peer(connection)));
                }
                end(connection).await;
            }
            Err(refusal) => {
                note(format!("{}: refused: {refusal}", peer(connection)));
                refuse(connection, &Answer::Refused(refusal)).await;
            }
        }
    }

    async fn side(&self, connection: &Connection, open: &Open) -> Result<Side<'_>, Refusal> {
        self.admit(&open.capability)?;
        let place = self.place(&open.place)?;
        match open.operation {
            Operation::Connect if place.is_udp() => {
                let found = timeout(SOON, resolve(&place)).await;
                let found = found.unwrap_or_else(|_| Err(ErrorKind::TimedOut.into()));
                let target = found.map_err(|error| Refusal::of(&place.to_string(), &error))?;
                Ok(Side::Target(target))
            }
            Operation::Listen if place.is_udp_listener() => {
                let name = place.to_string();
                let make = async || bind(&place).await.map_err(|error| Refusal::of(&name, &error));
                let held = self.sockets().hold(&name, connection.peer_key(), make).await?;
                Ok(Side::Socket(held))
            }
            _ => Err(Refusal::not_allowed(&open.place)),
        }
    }
}

impl Side<'_> {
    fn address(&self) -> String {
        match self {
            Side::Target(_) => String::new(),
            Side::Socket(held) => held.thing().local_addr().to_string(),
        }
    }
}

/// A socket at `place`, and its name: any free port is another one each time.
async fn bind(place: &Place) -> io::Result<(String, ReplySocket)> {
    let (host, port) = place.host_and_port();
    let socket = listen_at((host, port)).await?;
    let name = match port {
        0 => socket.local_addr().to_string(),
        _ => place.to_string(),
    };
    Ok((name, socket))
}

/// The address that datagrams for `place` go to.
///
/// # Errors
/// When its host has none.
pub async fn resolve(place: &Place) -> io::Result<SocketAddr> {
    let (host, port) = place.host_and_port();
    let found = lookup_host((&host[..], port)).await;
    let mut found = found.map_err(|error| io::Error::new(ErrorKind::NotFound, error))?;
    found.next().ok_or_else(|| ErrorKind::NotFound.into())
}

/// What is asked for first.
pub async fn request(connection: &Connection) -> Option<Open> {
    loop {
        if let Some(Message::Open(open)) = Message::decode(&connection.recv().await?) {
            return Some(open);
        }
    }
}

/// Each end drops what is late by its own clock.
fn tell_deadline(connection: &Connection, open: &Open) {
    let composition = connection.composition();
    let own = composition.and_then(|composition| deadline_of(&composition));
    if let (Some(deadline), Some(_)) = (open.deadline, own) {
        let deadline = format!("{} ms", deadline.as_millis());
        let _ = connection.reconfigure([("deadline", &deadline[..])]);
    }
}

pub async fn say(connection: &Connection, answer: &Answer) {
    let _ = connection.send(Message::Answer(answer.clone()).encode()).await;
}

/// Says it, and again to who asks again because the answer was lost.
pub async fn refuse(connection: &Connection, answer: &Answer) {
    say(connection, answer).await;
    let again = async {
        while let Some(message) = connection.recv().await {
            if let Some(Message::Open(_)) = Message::decode(&message) {
                say(connection, answer).await;
            }
        }
    };
    let _ = timeout(5 * GOODBYE, again).await;
    end(connection).await;
}
