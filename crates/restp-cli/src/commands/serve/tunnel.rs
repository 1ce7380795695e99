//! One who connects with packets of IP: a TUN device for him, if there is one that is allowed.

use super::datagrams::{refuse, request, say};
use super::pool::Held;
use super::service::{SOON, Service, end};
use crate::commands::bear;
use crate::commands::words::peer;
use crate::datagrams::{Open, Operation};
use crate::output::note;
use crate::pipe::{Answer, Refusal};
use crate::subnet::Subnet;
use crate::tunnel::{End, SERVICE_PORT, carry, device, prepare};
use restp::tun::Tun;
use restp::{Acceptance, Composition, Connection};
use restp_base::time::Duration;
use restp_proto::Listener;
use tokio::time::timeout;

/// The service at which clients come with packets.
pub fn listener(user_timeout: Duration) -> Listener {
    let mut composition = Composition::default().over_several_paths();
    prepare(&mut composition);
    bear(&mut composition, user_timeout);
    Listener {
        port: SERVICE_PORT,
        composition,
        acceptance: Acceptance::Any,
    }
}

impl Service {
    /// Carries packets until `connection` is over.
    pub async fn serve_tunnel(&self, connection: &Connection) {
        let Ok(Some(open)) = timeout(SOON, request(connection)).await else {
            note(format!(
                "{}: refused: nothing was asked for in time",
                peer(connection)
            ));
            connection.abort();
            return;
        };
        match self.tunnel(connection, &open).await {
            Ok((held, subnet)) => {
                let answer = Answer::Accepted(subnet.to_string());
                say(connection, &answer).await;
                let name = held.thing().name();
                note(format!("tunnel: {name} with {subnet} is up"));
                let ended = tokio::select! {
                    ended = carry(connection, held.thing(), Some(&answer)) => ended,
                    () = held.lost() => {
                        let superseded = Answer::Refused(held.superseded("tunnel"));
                        return refuse(connection, &superseded).await;
                    }
                };
                match ended {
                    End::Device(error) => note(format!("tunnel: {name} has vanished: {error}")),
                    End::Connection | End::Refused(_) => note(format!("tunnel: {name} is down")),
                }
                end(connection).await;
            }
            Err(refusal) => {
                note(format!("{}: refused: {refusal}", peer(connection)));
                refuse(connection, &Answer::Refused(refusal)).await;
            }
        }
    }

    /// The tunnel that is asked for, or the first that is free or was this client's; one that is allowed.
    async fn tunnel(&self, connection: &Connection, open: &Open) -> Result<(Held<'_, Tun>, Subnet), Refusal> {
        self.admit(&open.capability)?;
        if open.operation != Operation::Tunnel {
            return Err(Refusal::not_allowed(&open.place));
        }
        // Who comes again asks for the one that it had: its device has an address there.
        let asked: Option<Subnet> = match &open.place[..] {
            "" => None,
            place => Some(place.parse().map_err(Refusal::other)?),
        };
        let mut refusal = Refusal::not_allowed(&match asked {
            Some(subnet) => format!("tunnel:{subnet}"),
            None => "tunnel:10.9.0.1/30".to_owned(),
        });
        let tunnels = self.tunnels().iter();
        for subnet in tunnels.filter(|subnet| asked.is_none_or(|asked| asked == **subnet)) {
            let make = async || {
                let made = device(None, *subnet, connection).map_err(Refusal::other)?;
                Ok((subnet.to_string(), made))
            };
            let held = self
                .devices()
                .hold(&subnet.to_string(), connection.peer_key(), make)
                .await;
            match held {
                Ok(held) => return Ok((held, *subnet)),
                Err(why) => refusal = why,
            }
        }
        Err(refusal)
    }
}
