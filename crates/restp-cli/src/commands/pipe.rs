//! `restp pipe`: standard input and output as one end of a connection.

use super::client;
use crate::args::Pipe;
use crate::failure::Failure;
use crate::interrupt::hangup;
use crate::links::Use;
use crate::pipe::{Operation, Place};
use crate::stdin;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::AsyncWrite;

/// Connects.
///
/// # Errors
/// Exit code 2 for what can be said before, 1 when the connection breaks or is refused.
pub fn execute(arguments: &Pipe) -> Result<(), Failure> {
    let target = match &arguments.to {
        None => String::new(), // the first that the server allows
        Some(word) => target(word).map_err(|why| Failure::input(format!("--to {why}")))?,
    };
    let server = (&arguments.server[..], &arguments.timeout[..]);
    let interrupted = Err(Failure::operation("interrupted"));
    client::run_over(
        (Use::Pipe, &arguments.link),
        server,
        interrupted,
        async |client| {
            let carrier = client.open(Operation::Connect(target)).await?;
            stdin::is_read_from_now();
            let hangup = hangup()?; // ssh ends its ProxyCommand with it: nothing to complain of, but the far end has to know
            let joined = tokio::select! {
                joined = carrier.join(tokio::io::stdin(), Output(tokio::io::stdout())) => joined,
                () = hangup => return Err(Failure::silent()),
            };
            let ended = match joined {
                Ok(()) => client.carriers().finish().await,
                broken => broken,
            };
            ended.map_err(|broken| Failure::operation(format!("the pipe broke: {broken}")))
        },
    )
}

/// The place to connect to that `word` names.
fn target(word: &str) -> Result<String, String> {
    match word.parse::<Place>() {
        Ok(place) if place.is_tcp() => Ok(place.to_string()),
        _ => Err(format!(
            "{word:?} is no place that a pipe leads to; write one place as tcp:HOST:PORT, such as tcp:127.0.0.1:22"
        )),
    }
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
