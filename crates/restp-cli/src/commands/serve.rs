//! `restp serve`: programs of this host for who may reach them.

use super::places::{Places, Visitor};
use super::{GOODBYE, bear, host, run};
use crate::args::Serve;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::{Output, note};
use crate::pipe::{self, Request, SERVICE_PORT};
use crate::plan;
use crate::transfer::{Answer, Capability, Inlet, check_fitness};
use restp::{Acceptance, Composition, Connection, EndpointConfig};
use serde::Serialize;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Who connects asks for a target within this time.
const SOON: std::time::Duration = std::time::Duration::from_secs(30);

/// How targets are named.
const TCP: &str = "tcp:";

/// Serves until it is interrupted.
///
/// # Errors
/// Exit code 2 when it could not begin, 1 when its sockets fail.
pub fn execute(arguments: &Serve, output: Output) -> Result<(), Failure> {
    let user_timeout = plan::timeout(&arguments.timeout)?;
    let (targets, keys): (Vec<_>, Vec<_>) = arguments
        .host
        .allow
        .iter()
        .cloned()
        .partition(|word| word.starts_with(TCP));
    if targets.is_empty() {
        return Err(Failure::input(
            "name what may be reached, such as --allow tcp:127.0.0.1:22",
        ));
    }
    for target in &targets {
        let place = target[TCP.len()..].rsplit_once(':');
        if !place.is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok()) {
            return Err(Failure::input(format!(
                "--allow {target}: write tcp:HOST:PORT, such as tcp:127.0.0.1:22"
            )));
        }
    }
    let tune = |composition: &mut Composition| bear(composition, user_timeout);
    let composition = plan::composition(Composition::default(), &arguments.host.composition, tune)?;
    let composition = plan::checked(composition)?;
    check_fitness(&composition).map_err(Failure::input)?;
    let config = EndpointConfig::new(composition).listen(SERVICE_PORT, Acceptance::Any);
    let (security, capability) = host::security(&arguments.host, &keys)?;
    let service = Arc::new(Service {
        targets,
        capability: capability.clone(),
    });
    run(async {
        let mut interrupt = Interrupt::watch()?;
        let endpoint = host::bind(&arguments.host.listen, &config, &security)?;
        let ticket = host::ticket(&endpoint, capability);
        note(format!(
            "serving {}; at the other host: ssh -o ProxyCommand=\"restp pipe {ticket}\" user@host",
            service.targets.join(", ")
        ));
        let invitation = Invitation {
            ticket: ticket.to_string(),
            addresses: ticket.addresses().to_vec(),
            targets: service.targets.clone(),
        };
        output.result(&invitation, |invitation| format!("ticket: {}", invitation.ticket))?;
        let (mut places, mut pipes) = (Places::default(), JoinSet::new());
        let result = loop {
            tokio::select! {
                connection = endpoint.accept() => match connection {
                    Some(connection) => {
                        let visitor = Visitor::of(&connection);
                        // Who gets no place is broken off: it would wait for an answer.
                        if places.take(&visitor) {
                            let service = service.clone();
                            pipes.spawn(async move {
                                service.serve(&connection).await;
                                visitor
                            });
                        }
                    }
                    None => break Err(Failure::operation("the sockets have failed; start again")),
                },
                Some(visitor) = pipes.join_next() => {
                    places.leave(&visitor.map_err(Failure::operation)?);
                }
                () = interrupt.wait() => break Ok(()),
            }
        };
        pipes.shutdown().await;
        let _ = timeout(GOODBYE, endpoint.close()).await;
        result
    })
}

/// What is printed first.
#[derive(Serialize)]
struct Invitation {
    ticket: String,
    addresses: Vec<SocketAddr>,
    targets: Vec<String>,
}

struct Service {
    /// The first is for who names none.
    targets: Vec<String>,
    /// What who connects must show.
    capability: Option<Capability>,
}

impl Service {
    async fn serve(&self, connection: &Connection) {
        let mut inlet = Inlet::new(connection);
        match self.open(&mut inlet).await {
            Ok(tcp) => {
                let (from, to) = tcp.into_split();
                // Who connected hears of the end that is not here.
                let _ = connection.send(Answer::Accepted.encode().into()).await;
                if let Err(broken) = pipe::join(connection, &mut inlet, from, to).await {
                    note(format!("a pipe broke: {broken}"));
                }
            }
            Err(why) => {
                note(format!("refused: {why}"));
                let _ = connection.send(Answer::Refused(why).encode().into()).await;
                connection.finish();
                let heard = async {
                    while connection.recv().await.is_some() {}
                    connection.closed().await
                };
                let _ = timeout(GOODBYE, heard).await;
                connection.abort();
            }
        }
    }

    /// A connection to the target that is asked for.
    async fn open(&self, inlet: &mut Inlet<'_>) -> Result<TcpStream, String> {
        let request = timeout(SOON, Request::read(inlet)).await;
        let request = request.map_err(|_| "nothing was asked for in time")?;
        let Request { capability, target } = request.map_err(|error| error.to_string())?;
        if self
            .capability
            .as_ref()
            .is_some_and(|wanted| capability != *wanted)
        {
            return Err(
                "the server takes those who have its ticket; use the whole word after \"ticket:\"".into(),
            );
        }
        let named = self
            .targets
            .iter()
            .find(|allowed| target.is_empty() || **allowed == target);
        let target = named.ok_or_else(|| format!("{target:?} is not allowed there"))?;
        let connected = TcpStream::connect(target.trim_start_matches(TCP)).await;
        let stream = connected.map_err(|error| format!("{target}: {error}"))?;
        // What is typed is not held back.
        let _ = stream.set_nodelay(true);
        Ok(stream)
    }
}
