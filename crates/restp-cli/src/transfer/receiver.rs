//! The receiving end of one transfer.

use super::fitness::{self, Unfit};
use super::inlet::Inlet;
use super::message::{Answer, Offer, OfferError};
use super::pace::Pace;
use super::target::{Folder, Target, TargetError};
use super::{Capability, Digest, Watch};
use restp::clock::Clock;
use restp::{CloseReason, Connection};
use restp_base::time::Duration;
use std::path::PathBuf;
use thiserror::Error;
use tokio::time::timeout;

/// A refused or failed peer is given this long to read why.
const FAREWELL: Duration = Duration::from_secs(3);

/// A file that is complete, verified and in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Where it is.
    pub place: PathBuf,
    /// Its digest.
    pub digest: Digest,
}

/// Why an offer was not taken. Nothing was begun.
#[derive(Debug, Error)]
pub enum Rejection {
    /// No offer came.
    #[error("the peer left without offering a file")]
    Silent,
    /// The connection may lose or reorder bytes.
    #[error("the sender chose a composition with {0}")]
    Unfit(#[from] Unfit),
    /// The offer is not understood.
    #[error(transparent)]
    Offer(#[from] OfferError),
    /// The name cannot be used.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The sender does not have the ticket.
    #[error(
        "the receiver takes files from those who have its ticket; send to the whole word after \"ticket:\" that it printed, or \
         let it run with --open for everybody, or with --allow for your key"
    )]
    Uninvited,
    /// The receiver does not take it now.
    #[error("{0}")]
    Busy(&'static str),
}

/// Why a file did not arrive. Nothing of it is left.
#[derive(Debug, Error)]
pub enum ReceiveError {
    /// It was not begun.
    #[error("refused: {0}")]
    Rejected(#[from] Rejection),
    /// This side could not keep it.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The digests differ.
    #[error("what arrived has another SHA-256 than what was sent; it was removed")]
    Mismatch,
    /// The connection ended.
    #[error("the transfer was cut off: {0}; what had arrived was removed")]
    CutOff(CloseReason),
    /// The sender is there and sends nothing.
    #[error("the sender has sent nothing for a while; what had arrived was removed")]
    Stalled,
    /// The sender is there and sends next to nothing.
    #[error(
        "the sender sends less than {} bytes a second; what had arrived was removed",
        Pace::LEAST
    )]
    Slow,
    /// The sender stopped before the end.
    #[error("the sender ended the transfer early; what had arrived was removed")]
    Short,
}

/// Receives one file over a fresh connection into `folder`, from who shows the `capability` if there is one. `begun` learns its name and size once it is accepted. A
/// peer that is there and sends nothing for twice `patience` is given up; one that is gone is noticed by the engine
/// before.
///
/// # Errors
/// When the offer is refused, or this side, the peer or the connection fails. The peer has been told.
pub async fn receive(
    connection: &Connection,
    (folder, capability): (&Folder, Option<&Capability>),
    patience: Duration,
    watch: &Watch,
    begun: impl FnOnce(&str, u64),
) -> Result<Arrival, ReceiveError> {
    if let Err(rejection) = suitable(connection) {
        refuse(connection, &rejection).await;
        return Err(rejection.into());
    }
    let mut inlet = Inlet::new(connection);
    let patience = std::time::Duration::from_nanos((patience * 2).as_nanos());
    let offer = timeout(patience, accept(&mut inlet, folder, capability)).await;
    let (offer, target) = match offer.unwrap_or(Err(Rejection::Silent)) {
        Ok(accepted) => accepted,
        Err(rejection) => {
            refuse(connection, &rejection).await;
            return Err(rejection.into());
        }
    };
    begun(&offer.name, offer.bytes);
    say(connection, &Answer::Accepted).await;
    match body(&mut inlet, connection, &offer, target, patience, watch).await {
        Ok(arrival) => {
            say(connection, &Answer::Verified(arrival.digest)).await;
            connection.finish();
            Ok(arrival)
        }
        Err(
            error @ (ReceiveError::CutOff(_)
            | ReceiveError::Short
            | ReceiveError::Stalled
            | ReceiveError::Slow),
        ) => {
            connection.abort();
            Err(error)
        }
        Err(error) => {
            farewell(connection, &Answer::Failed(error.to_string())).await;
            Err(error)
        }
    }
}

/// Tells a peer why it is not served, and leaves time to hear it. A connection that would not carry the sentence for
/// certain is broken off without: without set-up, its sender's address may even be somebody else's.
pub async fn refuse(connection: &Connection, rejection: &Rejection) {
    match rejection {
        Rejection::Silent => {}
        Rejection::Unfit(_) => connection.abort(),
        _ => farewell(connection, &Answer::Refused(rejection.to_string())).await,
    }
}

fn suitable(connection: &Connection) -> Result<(), Rejection> {
    let composition = connection.composition().ok_or(Rejection::Silent)?;
    Ok(fitness::check(&composition)?)
}

async fn accept(
    inlet: &mut Inlet<'_>,
    folder: &Folder,
    wanted: Option<&Capability>,
) -> Result<(Offer, Target), Rejection> {
    let head = inlet.array().await.ok_or(Rejection::Silent)?;
    let (bytes, length) = Offer::head(&head)?;
    let name = inlet.bytes(length).await.ok_or(Rejection::Silent)?;
    let capability = Capability::from(inlet.array().await.ok_or(Rejection::Silent)?);
    if wanted.is_some_and(|wanted| capability != *wanted) {
        return Err(Rejection::Uninvited);
    }
    let name = Offer::name(name)?;
    let target = folder.begin(&name)?;
    let offer = Offer {
        name,
        bytes,
        capability,
    };
    Ok((offer, target))
}

/// Data and digest; then the file gets its name.
async fn body(
    inlet: &mut Inlet<'_>,
    connection: &Connection,
    offer: &Offer,
    target: Target,
    patience: std::time::Duration,
    watch: &Watch,
) -> Result<Arrival, ReceiveError> {
    let place = target.place().to_owned();
    let mut left = offer.bytes;
    let (clock, mut pace) = (Clock::start(), Pace::over(patience));
    while left > 0 {
        let pieces = timeout(patience, inlet.chunk(left)).await;
        let Some(pieces) = pieces.map_err(|_| ReceiveError::Stalled)? else {
            return Err(ended(connection).await);
        };
        let length = pieces.iter().map(|piece| piece.len() as u64).sum();
        left -= length;
        if !pace.keeps(clock.now(), length) {
            return Err(ReceiveError::Slow);
        }
        watch.take_in(length);
        if !target.put(pieces).await {
            return Err(target.failure().await.into());
        }
    }
    let claimed = timeout(patience, inlet.array()).await;
    let Some(claimed) = claimed.map_err(|_| ReceiveError::Stalled)? else {
        return Err(ended(connection).await);
    };
    let complete = target.complete().await?;
    if complete.digest() != claimed {
        return Err(ReceiveError::Mismatch);
    }
    let digest = complete.digest();
    complete.keep().await?;
    Ok(Arrival { place, digest })
}

/// The data ended before the file did.
async fn ended(connection: &Connection) -> ReceiveError {
    tokio::select! {
        biased;
        reason = connection.closed() => ReceiveError::CutOff(reason),
        () = std::future::ready(()) => ReceiveError::Short,
    }
}

async fn say(connection: &Connection, answer: &Answer) {
    // A connection that is over is noticed by who reads from it.
    let _ = connection.send(answer.encode().into()).await;
}

/// The last word to a peer that may still be sending: what it sends is read and dropped, so that the word gets
/// through before the connection ends.
async fn farewell(connection: &Connection, answer: &Answer) {
    say(connection, answer).await;
    connection.finish();
    let heard = async {
        while connection.recv().await.is_some() {}
        connection.closed().await
    };
    let _ = timeout(std::time::Duration::from_nanos(FAREWELL.as_nanos()), heard).await;
    connection.abort();
}
