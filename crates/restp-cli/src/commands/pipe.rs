//! `restp pipe`: standard input and output as one end of a connection.

use super::trust::Trust;
use super::words::Receiver;
use super::{GOODBYE, dial, run};
use crate::args::Pipe;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::pipe::{self, Request, SERVICE_PORT};
use crate::plan;
use crate::transfer::{Answer, Capability, Inlet, check_fitness};
use restp::{Connection, EndpointConfig, PathMode};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::AsyncWrite;
use tokio::time::timeout;

/// Connects.
///
/// # Errors
/// Exit code 2 for what can be said before, 1 when the connection breaks or is refused.
pub fn execute(arguments: &Pipe) -> Result<(), Failure> {
    let user_timeout = plan::timeout(&arguments.timeout)?;
    let to = [Receiver::of(&arguments.server)?];
    let addresses = dial::addresses(&arguments.link, &to)?;
    let several = dial::asks_for_several(&arguments.link, &to, &addresses);
    let composition = plan::checked(dial::composition(&arguments.link, several, user_timeout)?)?;
    check_fitness(&composition).map_err(Failure::input)?;
    let all_paths = composition.paths != PathMode::Single;
    let trust = Trust::of(&arguments.link, &to, &addresses)?;
    let security = dial::security(&arguments.link, &trust)?;
    let config = EndpointConfig::new(composition);
    let request = Request {
        capability: to[0].ticket.capability().unwrap_or_else(Capability::none),
        target: arguments.to.clone().unwrap_or_default(),
    };
    run(async {
        let mut interrupt = Interrupt::watch()?;
        let endpoint = Arc::new(dial::bind(&arguments.link.bind, &addresses, config, security)?);
        trust.tell(&endpoint);
        let piped = async {
            let places = (&addresses[..], SERVICE_PORT);
            let connection = dial::connect(&endpoint, places, all_paths, user_timeout).await?;
            trust.report();
            carry(&connection, &request).await
        };
        let result = tokio::select! {
            result = piped => result,
            failure = trust.doubt(&endpoint) => Err(failure),
            () = interrupt.wait() => Err(Failure::operation("interrupted")),
        };
        let result = result.map_err(|failure| trust.explain(&endpoint).unwrap_or(failure));
        if let Some(endpoint) = Arc::into_inner(endpoint) {
            let _ = timeout(GOODBYE, endpoint.close()).await;
        }
        result
    })
}

async fn carry(connection: &Connection, request: &Request) -> Result<(), Failure> {
    let mut inlet = Inlet::new(connection);
    // Without it there is no answer either.
    let _ = connection.send(request.encode().into()).await;
    match pipe::answer(&mut inlet).await {
        Some(Answer::Accepted) => {}
        Some(Answer::Refused(why)) => {
            connection.finish();
            return Err(Failure::operation(format!("the server refused: {why}")));
        }
        _ => {
            connection.abort();
            return Err(Failure::operation(format!(
                "the server: {}",
                connection.closed().await
            )));
        }
    }
    let joined = pipe::join(
        connection,
        &mut inlet,
        tokio::io::stdin(),
        Output(tokio::io::stdout()),
    )
    .await;
    joined.map_err(|broken| Failure::operation(format!("the pipe broke: {broken}")))
}

/// Standard output, which its reader sees end when the peer has finished, and not only with this program.
struct Output(tokio::io::Stdout);

impl AsyncWrite for Output {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.0).poll_flush(cx))?;
        let nowhere = std::fs::File::options().write(true).open("/dev/null")?;
        Poll::Ready(Ok(rustix::stdio::dup2_stdout(nowhere)?))
    }
}
