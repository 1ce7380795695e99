//! Bytes both ways over one stream.

use crate::transfer::CHUNK_BYTES;
use bytes::Bytes;
use restp::{BiStream, CloseReason, Connection, StreamReadError, StreamWriteError};
use std::io;
use std::time::Duration;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// TCP connections that the system keeps until they are accepted, or as many as it takes (`net.core.somaxconn`). Beyond that it drops the
/// last packet of a handshake: whoever connected believes to be connected, and if it waits for the other end to speak, it waits for ever.
const BACKLOG: i32 = 4096;

/// Why a pipe broke.
#[derive(Debug, Error)]
pub enum Broken {
    /// The connection over which its stream goes.
    #[error("{0}")]
    Connection(CloseReason),
    /// The far end.
    #[error("the far end broke it off")]
    Far,
    /// This side of it.
    #[error(transparent)]
    Local(#[from] io::Error),
}

/// Carries bytes both ways until both have ended, each by itself. `rest` has been read of `stream` already.
///
/// # Errors
/// When either end breaks off. Dropping the stream tells the peer.
pub async fn join(
    connection: &Connection,
    (stream, rest): (&BiStream, Bytes),
    from: impl AsyncRead + Unpin,
    to: impl AsyncWrite + Unpin,
) -> Result<(), Broken> {
    let ended = tokio::try_join!(outward(stream, from), inward((stream, rest), to));
    match ended {
        Ok(_) => Ok(()),
        Err(Ended::Local(error)) => Err(Broken::Local(error)),
        Err(Ended::Far) => Err(Broken::Far),
        Err(Ended::Connection) => Err(over(connection).await.map_or(Broken::Far, Broken::Connection)),
    }
}

/// Why `connection` is over, if it is.
pub async fn over(connection: &Connection) -> Option<CloseReason> {
    tokio::select! {
        biased;
        reason = connection.closed() => Some(reason),
        () = std::future::ready(()) => None,
    }
}

/// The same with a TCP connection, which ends as the peer's does: with FIN in each direction by itself, or with RST.
///
/// # Errors
/// As [`join`].
pub async fn join_tcp(
    connection: &Connection,
    stream: (&BiStream, Bytes),
    mut tcp: TcpStream,
) -> Result<(), Broken> {
    // What is typed is not held back.
    let _ = tcp.set_nodelay(true);
    reset_unless_joined(&tcp);
    let (from, to) = tcp.split();
    let joined = join(connection, stream, from, to).await;
    resets_when_closed(&tcp, joined.is_err());
    joined
}

/// Listens at `host` and `port`.
///
/// # Errors
/// When they cannot be had.
pub async fn listen((host, port): (&str, u16)) -> io::Result<TcpListener> {
    let listener = TcpListener::bind((host, port)).await?;
    // Once more, because tokio says how many wait, and says 128.
    socket2::SockRef::from(&listener).listen(BACKLOG)?;
    Ok(listener)
}

/// `stream` ends with RST from now on, when it is dropped and when this program is killed, unless [`join_tcp`] carries it to its end: its
/// program is not to take what it has read for everything, and nothing at all for an answer (RFC 9293 §3.10.7.4).
pub fn reset_unless_joined(stream: &TcpStream) {
    resets_when_closed(stream, true);
}

/// Ends a TCP connection with RST.
pub fn reset(stream: TcpStream) {
    reset_unless_joined(&stream);
}

fn resets_when_closed(stream: &TcpStream, resets: bool) {
    let _ = socket2::SockRef::from(stream).set_linger(resets.then_some(Duration::ZERO));
}

/// What ended a direction early.
enum Ended {
    Connection,
    Far,
    Local(io::Error),
}

impl From<io::Error> for Ended {
    fn from(error: io::Error) -> Self {
        Ended::Local(error)
    }
}

impl From<StreamWriteError> for Ended {
    fn from(error: StreamWriteError) -> Self {
        match error {
            StreamWriteError::Stopped(_) => Ended::Far,
            _ => Ended::Connection,
        }
    }
}

impl From<StreamReadError> for Ended {
    fn from(error: StreamReadError) -> Self {
        match error {
            StreamReadError::Reset(_) => Ended::Far,
            StreamReadError::Lost => Ended::Connection,
        }
    }
}

async fn outward(stream: &BiStream, mut from: impl AsyncRead + Unpin) -> Result<(), Ended> {
    let mut buffer = vec![0; CHUNK_BYTES];
    loop {
        match from.read(&mut buffer).await? {
            0 => {
                stream.finish();
                return Ok(());
            }
            read => stream.send(Bytes::copy_from_slice(&buffer[..read])).await?,
        }
    }
}

async fn inward(
    (stream, mut next): (&BiStream, Bytes),
    mut to: impl AsyncWrite + Unpin,
) -> Result<(), Ended> {
    loop {
        to.write_all(&next).await?;
        to.flush().await?;
        match stream.recv().await? {
            Some(data) => next = data,
            None => break,
        }
    }
    match to.shutdown().await {
        // Who has gone already is not waiting for the end.
        Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
        ended => Ok(ended?),
    }
}
