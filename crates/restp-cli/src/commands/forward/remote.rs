//! `-R`: who connects to a port of the server goes to a target here.

use super::super::carrier::{Carrier, OpenError};
use super::super::client::Client;
use super::room::Room;
use super::{Kind, RETRY, Told};
use crate::args::Rule;
use crate::failure::Failure;
use crate::output::note;
use crate::pipe::{self, Operation, Place, SUPERSEDED, Token};
use std::io;
use std::sync::Arc;

/// Where the server is to listen, and where that leads.
pub struct Wanted {
    place: Place,
    target: Place,
}

/// A listener at the server.
pub struct Remote {
    wanted: Wanted,
    /// Over which its connections are announced.
    control: Carrier,
}

impl Wanted {
    /// What `rule` asks for.
    ///
    /// # Errors
    /// When it says no place or no target.
    pub fn of(rule: &Rule) -> Result<Self, Failure> {
        let Some((host, port)) = &rule.target else {
            return Err(Failure::input(
                "-R: where to? write [BIND:]PORT:HOST:HOSTPORT, such as 8080:127.0.0.1:80",
            ));
        };
        let wrong =
            |host: &str| Failure::input(format!("-R: {host:?} is no host; write a name or an address"));
        let bind = &rule.listen.host;
        Ok(Wanted {
            place: Place::listen(bind, rule.listen.port).ok_or_else(|| wrong(bind))?,
            target: Place::tcp(host, *port).ok_or_else(|| wrong(host))?,
        })
    }

    /// Has the server listen.
    ///
    /// # Errors
    /// When it is not reached, or refuses.
    pub async fn open(self, client: &Client) -> Result<Remote, Failure> {
        let control = client.open(Operation::Listen(self.place.to_string())).await?;
        Ok(Remote {
            wanted: self,
            control,
        })
    }
}

impl Remote {
    pub fn told(&self) -> Told {
        Told {
            kind: Kind::Remote,
            listen: self.control.said().to_owned(),
            target: self.wanted.target.to_string(),
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
                        self.wanted.place
                    ));
                }
                let room = room.enter().await;
                let (at_work, target) = (client.clone(), self.wanted.target.clone());
                client.spawn(async move {
                    forward(&at_work, token, target).await;
                    drop(room);
                });
            }
            note(format!(
                "{}: the server was lost; asking it again",
                self.wanted.place
            ));
            self.control = self.ask_again(client).await;
            note(format!(
                "{}: listens again at {}",
                self.wanted.place,
                self.control.said()
            ));
        }
    }

    async fn ask_again(&self, client: &Client) -> Carrier {
        loop {
            match client
                .carriers()
                .open(Operation::Listen(self.wanted.place.to_string()))
                .await
            {
                Ok(control) => return control,
                Err(error @ OpenError::Refused(_)) => note(format!("{}: {error}", self.wanted.place)),
                Err(OpenError::Unreached(_)) => {}
            }
            tokio::time::sleep(RETRY).await;
        }
    }
}

/// Carries the connection announced by `token` to `target`. It is taken in any case: where one of both is not there, the other one ends
/// with RST.
async fn forward(client: &Client, token: Token, target: Place) {
    let connecting = async {
        let stream = pipe::target::connect(&target).await?;
        pipe::reset_unless_joined(&stream);
        io::Result::Ok(stream)
    };
    let (taken, stream) = tokio::join!(client.carriers().open(Operation::Take(token)), connecting);
    match (taken, stream) {
        (Ok(carrier), Ok(stream)) => {
            if let Err(broken) = carrier.join_tcp(stream).await {
                note(format!("{target}: a connection broke: {broken}"));
            }
        }
        (Err(error), _) => note(format!("{target}: {error}")),
        (_, Err(error)) => note(format!("{target}: {error}")),
    }
}
