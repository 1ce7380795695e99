//! The sending end of one transfer.

use super::inlet::Inlet;
use super::limit::Limit;
use super::manifest::ManifestError;
use super::message::{Answer, AnswerError, Offer};
use super::source::{Chunk, Chunks, Source, SourceError};
use super::told::Told;
use super::{CHUNK_BYTES, CHUNKS_AHEAD, Capability, Digest, Tally, Watch};
use bytes::Bytes;
use restp::{CloseReason, Connection};
use restp_base::time::Duration;
use restp_base::units::Rate;
use thiserror::Error;
use tokio::sync::mpsc;

/// Why a transfer failed.
#[derive(Debug, Error)]
pub enum SendError {
    /// What was to be sent.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// Too much of it.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// The receiver does not want it.
    #[error("the receiver refused: {0}")]
    Refused(String),
    /// The receiver could not keep it.
    #[error("the receiver failed: {0}")]
    Failed(String),
    /// The receiver got something else.
    #[error(
        "the receiver has another SHA-256 than what was sent; do not use what it got, and send again (if it repeats, memory or disk of one side is at fault)"
    )]
    Mismatch,
    /// The receiver speaks another protocol.
    #[error("the receiver sent {0}; use the same release of restp on both sides")]
    Protocol(#[from] AnswerError),
    /// It confirmed what it cannot have yet.
    #[error(
        "the receiver confirmed the files before they were sent; use the same release of restp on both sides"
    )]
    TooEarly,
    /// The connection ended.
    #[error("{0}")]
    Connection(CloseReason),
}

/// What a sender says of itself.
pub struct Introduction {
    /// What the receiver's ticket gives.
    pub capability: Option<Capability>,
    /// How long it bears a silent path.
    pub user_timeout: Duration,
}

/// Sends `source` over a fresh connection, at most at the rate of `limit`, and waits for the verdict. Returns what both sides agree on.
///
/// Records follow the offer at once, without waiting for its acceptance or for what the receiver has already: a refusal then costs some
/// data, and every other transfer is one round trip shorter.
///
/// # Errors
/// When the file, the receiver or the connection fails.
pub async fn send(
    connection: &Connection,
    source: Source,
    introduction: Introduction,
    limit: Option<Rate>,
    watch: &Watch,
) -> Result<Tally, SendError> {
    let files = source.manifest().files().count() as u64;
    let manifest = source.manifest().encode()?;
    let mut offer = Offer {
        capability: introduction.capability.unwrap_or_else(Capability::none),
        user_timeout_seconds: u32::try_from(introduction.user_timeout.as_nanos().div_ceil(1_000_000_000))
            .unwrap_or(u32::MAX),
        manifest_bytes: manifest.len() as u32,
    }
    .encode();
    offer.extend_from_slice(&manifest);
    let (tell, told) = mpsc::channel(CHUNKS_AHEAD);
    let verdict = verdict(connection, tell);
    tokio::pin!(verdict);
    let mut left_out = Vec::new();
    let (sent, early) = {
        let data = data(
            connection,
            offer,
            source.read(Told::by(told)),
            (Limit::to(limit), watch),
            &mut left_out,
        );
        tokio::pin!(data);
        tokio::select! {
            sent = &mut data => (sent, None),
            // With the last record on its way the receiver may be done before the thread that reads is.
            early = &mut verdict => {
                let early = early?;
                (data.await, Some(early))
            }
        }
    };
    let digest = match (sent, &early) {
        (Ok(digest), _) => digest,
        (Err(SendError::Connection(_)), Some(_)) => return Err(SendError::TooEarly),
        // The connection is over; what the receiver said before says more than its end.
        (Err(SendError::Connection(_)), None) => {
            return Err(verdict.await.map_or_else(|error| error, |_| SendError::TooEarly));
        }
        (Err(error), _) => return Err(error),
    };
    let (agreed, skipped_files) = match early {
        Some(early) => early,
        None => verdict.await?,
    };
    if agreed == digest {
        Ok(Tally {
            digest,
            files: files - left_out.len() as u64,
            skipped_files,
            left_out,
        })
    } else {
        Err(SendError::Mismatch)
    }
}

/// Offer, then records; the digest to agree on.
async fn data(
    connection: &Connection,
    offer: Vec<u8>,
    mut chunks: Chunks,
    (mut limit, watch): (Limit, &Watch),
    left_out: &mut Vec<String>,
) -> Result<Digest, SendError> {
    for part in Bytes::from(offer).chunks(CHUNK_BYTES) {
        put(connection, Bytes::copy_from_slice(part)).await?;
    }
    loop {
        match chunks.recv().await {
            Some(Ok(Chunk::Records {
                mut wire,
                content,
                resumed,
            })) => {
                while !wire.is_empty() {
                    let piece = limit.next(&mut wire).await;
                    put(connection, piece).await?;
                }
                watch.add(content);
                watch.resume(resumed);
            }
            Some(Ok(Chunk::Left {
                wire,
                content,
                resumed,
                why,
            })) => {
                put(connection, wire).await?;
                watch.take_back(content, resumed);
                left_out.push(why);
            }
            Some(Ok(Chunk::End(digest))) => return Ok(digest),
            Some(Err(error)) => return Err(error.into()),
            // The reading thread has lost the receiver, which says why.
            None => return Err(SendError::Connection(CloseReason::Aborted)),
        }
    }
}

async fn put(connection: &Connection, bytes: Bytes) -> Result<(), SendError> {
    match connection.send(bytes).await {
        Ok(()) => Ok(()),
        Err(_) => Err(SendError::Connection(connection.closed().await)),
    }
}

/// Waits for the receiver's last word; what it says of files before that goes to the thread that reads them.
async fn verdict(connection: &Connection, tell: mpsc::Sender<Answer>) -> Result<(Digest, u64), SendError> {
    let mut inlet = Inlet::new(connection);
    loop {
        match answer(&mut inlet).await {
            Some(Ok(Answer::Accepted)) => {}
            Some(Ok(Answer::Verified(digest, skipped_files))) => return Ok((digest, skipped_files)),
            Some(Ok(told @ (Answer::Nothing(_) | Answer::Has(_) | Answer::Digests(_)))) => {
                // It has read everything, and wants to know no more.
                let _ = tell.send(told).await;
            }
            Some(Ok(Answer::Refused(why))) => return Err(SendError::Refused(why)),
            Some(Ok(Answer::Failed(why))) => return Err(SendError::Failed(why)),
            Some(Err(error)) => return Err(error.into()),
            None => {
                // Without a verdict there is nothing to finish for.
                connection.abort();
                return Err(SendError::Connection(connection.closed().await));
            }
        }
    }
}

async fn answer(inlet: &mut Inlet<'_>) -> Option<Result<Answer, AnswerError>> {
    let head = inlet.array().await?;
    Some(match Answer::head(head) {
        Ok((kind, length)) => Answer::body(kind, &inlet.bytes(length).await?),
        Err(error) => Err(error),
    })
}
