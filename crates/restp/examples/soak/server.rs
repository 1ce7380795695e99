//! The server: everything goes back to where it came from.

use crate::kind::{ALL, Kind};
use crate::pattern::{MessageCheck, StreamCheck};
use crate::report::{Report, add, subtract};
use crate::security;
use restp::{Acceptance, CloseReason, Connection, Endpoint, EndpointConfig, Local};
use std::error::Error;
use std::sync::Arc;

pub async fn run(key: u8, listen: &[&str], report: Arc<Report>) -> Result<(), Box<dyn Error>> {
    let mut config = EndpointConfig::new(Kind::Stream.composition()?.check()?);
    for kind in ALL {
        let offered =
            EndpointConfig::new(kind.composition()?.check()?).listen(kind.port(), Acceptance::Exact);
        config.listeners.extend(offered.listeners);
    }
    let locals = listen
        .iter()
        .map(|at| at.parse())
        .collect::<Result<Vec<Local>, _>>()?;
    let endpoint = Endpoint::bind_with(&locals, config, security(key))?;
    while let Some(connection) = endpoint.accept().await {
        tokio::spawn(echo(connection, report.clone()));
    }
    Err("the endpoint has stopped".into())
}

async fn echo(connection: Connection, report: Arc<Report>) {
    let composition = connection.composition();
    let Some(kind) = composition
        .as_ref()
        .and_then(|composition| Kind::like(composition))
    else {
        return report.found(Kind::Stream, "a connection of no kind we offer");
    };
    add(&report.opened, 1);
    add(&report.live, 1);
    let (mut stream, mut messages) = (StreamCheck::of(None), MessageCheck::of(kind));
    while let Some(data) = connection.recv().await {
        let checked = if kind.is_stream() {
            add(&report.stream_bytes, data.len() as u64);
            stream.take(&data)
        } else {
            add(&report.received, 1);
            messages.take(&data)
        };
        if let Err(what) = checked {
            report.found(kind, what);
        }
        if connection.send(data).await.is_err() {
            break; // it is over, and says why below
        }
    }
    connection.finish();
    match connection.closed().await {
        CloseReason::Finished => add(&report.finished, 1),
        _ => add(&report.broken, 1), // as clients do that are killed
    }
    subtract(&report.live, 1);
}
