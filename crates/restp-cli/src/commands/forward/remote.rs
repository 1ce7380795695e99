//! `-R`: who connects to a port of the server goes to a target here.

use super::super::carrier::{Carrier, OpenError};
use super::super::client::Client;
use super::Told;
use super::room::Room;
use crate::args::{Rule, bare};
use crate::failure::Failure;
use crate::output::note;
use crate::pipe::{Operation, Place, SUPERSEDED, Token};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;

/// Until a server that was lost is asked again.
const RETRY: Duration = Duration::from_secs(2);

/// A listener at the server, and where it leads.
pub struct Remote {
    place: Place,
    /// Over which its connections are announced.
    control: Carrier,
    /// A host without brackets, and a port.
    target: (String, u16),
}

impl Remote {
    /// Has the server listen.
    ///
    /// # Errors
    /// When the rule says no place or no target, or the server refuses.
    pub async fn open(client: &Client, rule: &Rule) -> Result<Self, Failure> {
        let Some((host, port)) = &rule.target else {
            return Err(Failure::input(
                "-R: where to? write [BIND:]PORT:HOST:HOSTPORT, such as 8080:127.0.0.1:80",
            ));
        };
        let place = Place::listen(&rule.listen.host, rule.listen.port);
        let wrong = || {
            Failure::input(format!(
                "-R: {:?} is no host; write a name or an address",
                rule.listen.host
            ))
        };
        let place = place.ok_or_else(wrong)?;
        let control = client.open(Operation::Listen(place.to_string())).await?;
        Ok(Remote {
            place,
            control,
            target: (bare(host).to_owned(), *port),
        })
    }

    pub fn told(&self) -> Told {
        let (host, port) = &self.target;
        Told {
            kind: "remote",
            listen: self.control.said().to_owned(),
            target: format!("{host}:{port}"),
        }
    }

    /// Forwards who connects there. When the server is lost, or starts again, it is asked anew.
    pub async fn run(mut self, client: &Arc<Client>, room: &Room) -> Failure {
        loop {
            let mut inlet = self.control.inlet();
            while let Some(token) = inlet.array().await {
                if token == SUPERSEDED {
                    return Failure::operation(format!(
                        "{}: another `restp forward` with this key has it now; let one of them use another port",
                        self.place
                    ));
                }
                let room = room.enter().await;
                let (at_work, target) = (client.clone(), self.target.clone());
                client.spawn(async move {
                    forward(&at_work, token, target).await;
                    drop(room);
                });
            }
            note(format!("{}: the server was lost; asking it again", self.place));
            self.control = self.ask_again(client).await;
        }
    }

    async fn ask_again(&self, client: &Client) -> Carrier {
        loop {
            match client
                .carriers()
                .open(Operation::Listen(self.place.to_string()))
                .await
            {
                Ok(control) => return control,
                Err(error @ OpenError::Refused(_)) => note(format!("{}: {error}", self.place)),
                Err(OpenError::Unreached(_)) => {}
            }
            tokio::time::sleep(RETRY).await;
        }
    }
}

/// Carries the connection announced by `token` to `target`. It is taken in any case: where there is no target it ends with RST there.
async fn forward(client: &Client, token: Token, (host, port): (String, u16)) {
    let (taken, stream) = tokio::join!(
        client.carriers().open(Operation::Take(token)),
        TcpStream::connect((&host[..], port))
    );
    match (taken, stream) {
        (Ok(carrier), Ok(stream)) => {
            if let Err(broken) = carrier.join_tcp(stream).await {
                note(format!("{host}:{port}: a connection broke: {broken}"));
            }
        }
        (Err(error), _) => note(format!("{host}:{port}: {error}")),
        (_, Err(error)) => note(format!("{host}:{port}: {error}")),
    }
}
