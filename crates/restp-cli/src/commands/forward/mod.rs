//! `restp forward`: TCP ports here and there, joined through a server.

mod local;
mod remote;
mod room;

use super::client;
use crate::args::Forward;
use crate::failure::Failure;
use crate::links::Use;
use crate::output::Output;
use local::Local;
use remote::{Remote, Wanted};
use room::Room;
use serde::Serialize;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

/// Forwards until it is interrupted.
///
/// # Errors
/// Exit code 2 when it could not begin, 1 when the server is not reached at first, or refuses.
pub fn execute(arguments: &Forward, output: Output) -> Result<(), Failure> {
    if arguments.local.is_empty() && arguments.remote.is_empty() {
        return Err(Failure::input(
            "name what to forward, such as -L 8080:127.0.0.1:80; restp forward --help shows more",
        ));
    }
    let wanted = arguments.remote.iter().map(Wanted::of);
    let wanted: Vec<Wanted> = wanted.collect::<Result<_, _>>()?;
    let server = (&arguments.server[..], &arguments.timeout[..]);
    let room = Room::of(arguments.max_connections.get());
    client::run_over((Use::Forward, &arguments.link), server, Ok(()), async |client| {
        let mut locals = Vec::new();
        for rule in &arguments.local {
            locals.push(Local::bind(rule).await?);
        }
        for local in &locals {
            local.check(client).await?;
        }
        let mut remotes = Vec::new();
        for listener in wanted {
            remotes.push(listener.open(client).await?);
        }
        let forwards = locals
            .iter()
            .map(Local::told)
            .chain(remotes.iter().map(Remote::told));
        let ready = Ready {
            forwards: forwards.collect(),
        };
        output.result(&ready, Ready::text)?;
        let locals = locals.into_iter().map(|local| boxed(local.run(client, &room)));
        let remotes = remotes.into_iter().map(|remote| boxed(remote.run(client, &room)));
        Err(first_to_end(locals.chain(remotes).collect()).await)
    })
}

/// What is printed when all listeners stand.
#[derive(Serialize)]
struct Ready {
    forwards: Vec<Told>,
}

/// One rule as it is carried out.
#[derive(Serialize)]
struct Told {
    kind: &'static str,
    listen: String,
    target: String,
}

impl Ready {
    fn text(&self) -> String {
        let lines = self.forwards.iter().map(|told| match told.kind {
            "remote" => format!("{} there goes to {} here", told.listen, told.target),
            _ => format!("{} here goes to {} there", told.listen, told.target),
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}

type Running<'a> = Pin<Box<dyn Future<Output = Failure> + 'a>>;

fn boxed<'a>(running: impl Future<Output = Failure> + 'a) -> Running<'a> {
    Box::pin(running)
}

async fn first_to_end(mut running: Vec<Running<'_>>) -> Failure {
    poll_fn(|cx| {
        for one in &mut running {
            if let Poll::Ready(failure) = one.as_mut().poll(cx) {
                return Poll::Ready(failure);
            }
        }
        Poll::Pending
    })
    .await
}
