//! Bytes both ways over one connection.

use crate::transfer::{CHUNK_BYTES, Inlet};
use bytes::Bytes;
use restp::{CloseReason, Connection};
use std::io;
use std::time::Duration;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

/// Why a pipe broke.
#[derive(Debug, Error)]
pub enum Broken {
    /// The connection.
    #[error("{0}")]
    Connection(CloseReason),
    /// This side of it.
    #[error(transparent)]
    Local(#[from] io::Error),
}

/// Carries bytes both ways until both have ended, each by itself.
///
/// # Errors
/// When either end breaks off. The peer is told.
pub async fn join(
    connection: &Connection,
    inlet: &mut Inlet<'_>,
    from: impl AsyncRead + Unpin,
    to: impl AsyncWrite + Unpin,
) -> Result<(), Broken> {
    let both = async { tokio::try_join!(outward(connection, from), inward(connection, inlet, to)) };
    if let Err(broken) = both.await {
        connection.abort();
        return Err(broken);
    }
    match connection.closed().await {
        CloseReason::Finished => Ok(()),
        reason => Err(Broken::Connection(reason)),
    }
}

/// The same with a TCP connection, which ends as the peer's does: with FIN in each direction by itself, or with RST.
///
/// # Errors
/// As [`join`].
pub async fn join_tcp(
    connection: &Connection,
    inlet: &mut Inlet<'_>,
    mut stream: TcpStream,
) -> Result<(), Broken> {
    // What is typed is not held back.
    let _ = stream.set_nodelay(true);
    let (from, to) = stream.split();
    let joined = join(connection, inlet, from, to).await;
    if joined.is_err() {
        reset(stream);
    }
    joined
}

/// Ends a TCP connection with RST: its program is not to take what it has read for everything (RFC 9293 §3.10.7.4).
pub fn reset(stream: TcpStream) {
    let _ = socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO));
}

async fn outward(connection: &Connection, mut from: impl AsyncRead + Unpin) -> Result<(), Broken> {
    let mut buffer = vec![0; CHUNK_BYTES];
    loop {
        match from.read(&mut buffer).await? {
            0 => {
                connection.finish();
                return Ok(());
            }
            read => {
                if connection
                    .send(Bytes::copy_from_slice(&buffer[..read]))
                    .await
                    .is_err()
                {
                    return Err(Broken::Connection(connection.closed().await));
                }
            }
        }
    }
}

async fn inward(
    connection: &Connection,
    inlet: &mut Inlet<'_>,
    mut to: impl AsyncWrite + Unpin,
) -> Result<(), Broken> {
    while let Some(pieces) = inlet.chunk(CHUNK_BYTES as u64).await {
        for piece in pieces {
            to.write_all(&piece).await?;
        }
        to.flush().await?;
    }
    // The peer has finished, or the connection is over for another reason.
    tokio::select! {
        biased;
        reason = connection.closed() => match reason {
            CloseReason::Finished => {}
            reason => return Err(Broken::Connection(reason)),
        },
        () = std::future::ready(()) => {}
    }
    match to.shutdown().await {
        // Who has gone already is not waiting for the end.
        Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
        ended => Ok(ended?),
    }
}
