//! `-L`: who connects here goes to a target at the server.

use super::super::client::Client;
use super::room::Room;
use super::{Kind, Told};
use crate::args::{Listen, Rule};
use crate::failure::Failure;
use crate::output::note;
use crate::pipe::{self, Operation, Place};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::{TcpListener, TcpStream};

/// A listener, and where it leads.
pub struct Local {
    listener: TcpListener,
    address: String,
    /// Empty: to the first target that the server allows.
    target: String,
}

impl Local {
    /// Listens.
    ///
    /// # Errors
    /// When the port cannot be had, or the target is none.
    pub async fn bind(rule: &Rule) -> Result<Self, Failure> {
        let target = match &rule.target {
            None => String::new(),
            Some((host, port)) => {
                let place = Place::tcp(host, *port);
                let wrong = || Failure::input(format!("-L: {host:?} is no host; write a name or an address"));
                place.ok_or_else(wrong)?.to_string()
            }
        };
        let (listener, address) = bind(&rule.listen).await.map_err(Failure::input)?;
        Ok(Local {
            listener,
            address,
            target,
        })
    }

    pub fn told(&self) -> Told {
        Told {
            kind: Kind::Local,
            listen: self.address.clone(),
            target: match &self.target[..] {
                "" => "the first target that is allowed".into(),
                target => target.into(),
            },
        }
    }

    /// Asks the server whether it would let connections through.
    ///
    /// # Errors
    /// When it is not there, or would not: nobody is to find out with the first connection.
    pub async fn check(&self, client: &Client) -> Result<(), Failure> {
        client.open(Operation::Check(self.target.clone())).await?;
        Ok(())
    }

    /// Forwards who connects, for ever.
    pub async fn run(self, client: &Arc<Client>, room: &Room) -> Failure {
        loop {
            // In this order: a listener that nobody connects to takes no room.
            let stream = accept(&self.listener, &self.address).await;
            pipe::reset_unless_joined(&stream);
            let room = room.enter().await;
            let operation = Operation::Connect(self.target.clone());
            let (at_work, name) = (client.clone(), self.address.clone());
            client.spawn(async move {
                forward(&at_work, operation, stream, &name).await;
                drop(room);
            });
        }
    }
}

/// Carries `stream` to what `operation` asks for. What the server does not give ends with RST.
async fn forward(client: &Client, operation: Operation, stream: TcpStream, name: &str) {
    let opened = tokio::select! {
        opened = client.carriers().open(operation) => opened,
        () = broken(&stream) => return,
    };
    match opened {
        Ok(carrier) => {
            if let Err(broken) = carrier.join_tcp(stream).await {
                note(format!("{name}: a connection broke: {broken}"));
            }
        }
        Err(error) => {
            note(format!("{name}: {error}"));
            pipe::reset(stream);
        }
    }
}

/// Waits until `stream` breaks: others may have its room then. One that has said all it has to say may still listen.
async fn broken(stream: &TcpStream) {
    if stream.peek(&mut [0]).await.is_ok() {
        let _ = stream.ready(Interest::ERROR).await;
    }
}

/// Listens at `listen`: the listener and its address.
pub async fn bind(listen: &Listen) -> Result<(TcpListener, String), String> {
    let (host, port) = listen.host_and_port();
    let bound = pipe::listen((host, port)).await;
    let bound = bound.and_then(|listener| Ok((listener.local_addr()?, listener)));
    let (address, listener) = bound.map_err(|error| {
        format!(
            "no listener at {}:{port}: {error}; name an address of this host and a free port, or port 0",
            listen.host
        )
    })?;
    Ok((listener, address.to_string()))
}

/// The next connection. Where the system has no room for one, it may have in a moment.
pub async fn accept(listener: &TcpListener, name: &str) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return stream,
            Err(error) => {
                note(format!("{name}: {error}; trying again"));
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
    }
}
