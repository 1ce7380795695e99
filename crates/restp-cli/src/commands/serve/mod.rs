//! `restp serve`: programs of this host for who may reach them.

mod datagrams;
mod listeners;
mod pending;
mod pool;
mod service;
mod settings;
mod tunnel;

pub use datagrams::resolve;

use super::admission_limit::{AdmissionLimit, Visitor};
use super::beside::{self, Beside, Content, tickets};
use super::words::peer;
use super::{GOODBYE, host, most_open_files, publish, run};
use crate::args::Serve;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::monitor::Monitor;
use crate::output::{Output, note};
use crate::pipe::{self, SERVICE_PORT};
use crate::plan;
use crate::user_timeout::bear;
use restp::{Acceptance, Composition, EndpointConfig};
use serde::Serialize;
use service::Service;
use settings::{Settings, settings};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Serves until it is interrupted.
///
/// # Errors
/// Exit code 2 when it could not begin, 1 when its sockets fail.
pub fn execute(arguments: &Serve, output: Output) -> Result<(), Failure> {
    let Settings {
        host: arguments,
        allowed,
        keys,
        max_connections,
        user_timeout,
    } = settings(arguments)?;
    let tune = |composition: &mut Composition| {
        bear(composition, user_timeout);
        pipe::prepare(composition);
    };
    let composition = plan::composition(Composition::default(), &arguments.composition, tune)?;
    pipe::check_fitness(&composition).map_err(Failure::input)?;
    let composition = plan::checked(composition)?;
    let mut config = EndpointConfig::new(composition).listen(SERVICE_PORT, Acceptance::Any);
    config.listeners.push(datagrams::listener(user_timeout)?);
    config.listeners.push(tunnel::listener(user_timeout));
    let (security, capability) = host::security(&arguments, &keys)?;
    let content = Content::open(&arguments.content, arguments.seal.key.as_deref())?;
    let targets = allowed.words();
    let service = Arc::new(Service::new(allowed, capability.clone(), max_connections));
    most_open_files();
    run(async {
        let mut interrupt = Interrupt::watch()?;
        let endpoint = host::bind(&arguments.listen, &config, &security)?;
        let content = content.start(&endpoint)?;
        let _monitor = Monitor::start(
            "serve",
            beside::shown(&endpoint, content.as_ref()),
            &arguments.monitor,
        )?;
        let relays = host::register(&arguments.relay, &endpoint).await?;
        let ticket = host::ticket(&endpoint, capability, &relays);
        let word = ticket.to_string();
        note(format!(
            "serving {}; at the other host: {}",
            targets.join(", "),
            hint(&targets, &word)
        ));
        let invitation = Invitation {
            ticket: word,
            addresses: ticket.addresses().to_vec(),
            targets,
            content: content.as_ref().and_then(|content| content.invitation.as_ref()),
        };
        output.result(&invitation, |invitation| {
            tickets(&invitation.ticket, invitation.content)
        })?;
        host::show_code(&arguments, &ticket);
        let (mut limit, mut pipes) = (AdmissionLimit::at_most(max_connections), JoinSet::new());
        let result = loop {
            tokio::select! {
                connection = endpoint.accept() => match connection {
                    Some(connection) => {
                        let visitor = Visitor::of(&connection);
                        // Who gets no place is broken off: it would wait for an answer.
                        if !limit.take(&visitor) {
                            note(format!("{}: refused: {}", peer(&connection), service::FULL));
                        } else {
                            let service = service.clone();
                            pipes.spawn(async move {
                                service.serve(connection, visitor).await;
                                visitor
                            });
                        }
                    }
                    None => break Err(Failure::operation("the sockets have failed; start again")),
                },
                Some(visitor) = pipes.join_next() => {
                    limit.leave(&visitor.map_err(Failure::operation)?);
                }
                () = interrupt.wait() => break Ok(()),
            }
        };
        pipes.shutdown().await;
        content.into_iter().for_each(Beside::end);
        endpoint.leave_relays();
        let _ = timeout(GOODBYE, endpoint.close()).await;
        result
    })
}

/// What to type at the other host.
fn hint(targets: &[String], ticket: &str) -> String {
    let first = targets.first().map_or("", |target| &target[..]);
    match first.split_once(':') {
        Some(("tunnel", _)) => format!("restp tunnel {ticket}"),
        Some(("tcp", place)) if !place.contains('*') => {
            format!("ssh -o ProxyCommand=\"restp pipe {ticket}\" user@host")
        }
        _ => format!("restp forward {ticket}, as `restp help forward` shows"),
    }
}

/// What is printed first.
#[derive(Serialize)]
struct Invitation<'a> {
    ticket: String,
    addresses: Vec<SocketAddr>,
    targets: Vec<String>,
    /// What is published at the same port.
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'a publish::Invitation>,
}
