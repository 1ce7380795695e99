//! Bytes both ways over one connection (docs/protocol/pipe.md): who connects says which target it wants, then everything is the target's.

use crate::transfer::{Answer, CHUNK_BYTES, Capability, Inlet};
use bytes::Bytes;
use restp::{CloseReason, Connection};
use std::io;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// ResTP port at which `restp serve` serves.
pub const SERVICE_PORT: u16 = 7071;

const MAGIC: [u8; 4] = *b"RPP\0";
const VERSION: u8 = 1;
/// Most bytes of the name of a target.
const MAX_TARGET_BYTES: usize = 300;

/// What who connects says first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// What its ticket gives.
    pub capability: Capability,
    /// Where to; empty: the first that is allowed.
    pub target: String,
}

/// What is wrong with a request.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RequestError {
    /// None came.
    #[error("the peer left without asking for anything")]
    Silent,
    /// Another protocol, or another version.
    #[error("this is no request of version {VERSION} of pipes; use the same release of restp on both sides")]
    Other,
    /// No name of a target.
    #[error("a target is named in UTF-8, with {MAX_TARGET_BYTES} bytes at most")]
    Target,
}

impl Request {
    /// The bytes of the request. A name that is too long is cut, and refused.
    pub fn encode(&self) -> Vec<u8> {
        let target = &self.target.as_bytes()[..self.target.len().min(usize::from(u16::MAX))];
        let mut out = MAGIC.to_vec();
        out.push(VERSION);
        out.extend_from_slice(self.capability.bytes());
        out.extend_from_slice(&(target.len() as u16).to_be_bytes());
        out.extend_from_slice(target);
        out
    }

    /// Reads one.
    ///
    /// # Errors
    /// When it is none.
    pub async fn read(inlet: &mut Inlet<'_>) -> Result<Self, RequestError> {
        let [m0, m1, m2, m3, version] = inlet.array().await.ok_or(RequestError::Silent)?;
        if [m0, m1, m2, m3] != MAGIC || version != VERSION {
            return Err(RequestError::Other);
        }
        let capability = inlet
            .array::<{ Capability::BYTES }>()
            .await
            .ok_or(RequestError::Silent)?;
        let length = u16::from_be_bytes(inlet.array().await.ok_or(RequestError::Silent)?);
        if usize::from(length) > MAX_TARGET_BYTES {
            return Err(RequestError::Target);
        }
        let target = inlet.bytes(length.into()).await.ok_or(RequestError::Silent)?;
        Ok(Request {
            capability: Capability::from(capability),
            target: String::from_utf8(target).map_err(|_| RequestError::Target)?,
        })
    }
}

/// Reads the answer to a request; none: the connection is over.
pub async fn answer(inlet: &mut Inlet<'_>) -> Option<Answer> {
    let (kind, length) = Answer::head(inlet.array().await?).ok()?;
    Answer::body(kind, &inlet.bytes(length).await?).ok()
}

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
