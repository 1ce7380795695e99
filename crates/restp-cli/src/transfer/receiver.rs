//! The receiving end of one transfer.

use super::fitness::{self, Unfit};
use super::inlet::Inlet;
use super::message::{Answer, Offer, OfferError, Record, RecordError};
use super::pace::Pace;
use super::target::{Delivery, Piece, Target, TargetError};
use super::{CHUNK_BYTES, Capability, Folder, Manifest, Tally, Watch};
use crate::user_timeout::{UserTimeout, bear_from_now};
use restp::clock::Clock;
use restp::{CloseReason, Connection};
use restp_base::time::Duration;
use std::path::PathBuf;
use thiserror::Error;
use tokio::sync::mpsc;
use tokio::time::timeout;

/// A refused or failed peer is given this long to read why.
const FAREWELL: Duration = Duration::from_secs(3);

/// What is complete, verified and in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Where it is: each thing that the sender named.
    pub places: Vec<PathBuf>,
    /// What both ends agreed on.
    pub tally: Tally,
}

/// Why an offer was not taken. Nothing was begun.
#[derive(Debug, Error)]
pub enum Rejection {
    /// No offer came.
    #[error("the peer left without offering anything")]
    Silent,
    /// The connection may lose or reorder bytes.
    #[error("the sender chose a composition with {0}")]
    Unfit(#[from] Unfit),
    /// The offer is not understood.
    #[error(transparent)]
    Offer(#[from] OfferError),
    /// A name cannot be used.
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

/// Why a transfer did not come to its end. Nothing of it is left but files that are whole, and what is kept, hidden, for who goes on with
/// it.
#[derive(Debug, Error)]
pub enum ReceiveError {
    /// It was not begun.
    #[error("refused: {0}")]
    Rejected(#[from] Rejection),
    /// This side could not keep it.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// What came is no record.
    #[error("{0}; use the same release of restp on both sides")]
    Record(#[from] RecordError),
    /// More or fewer bytes came than the list says.
    #[error(
        "the sender sent {0:?} with another length than it said; use the same release of restp on both sides"
    )]
    Length(String),
    /// The connection ended.
    #[error("the transfer was cut off: {0}; the same command goes on with it")]
    CutOff(CloseReason),
    /// The sender is there and sends nothing.
    #[error("the sender has sent nothing for a while; the same command goes on with it")]
    Stalled,
    /// The sender is there and sends next to nothing.
    #[error(
        "the sender sends less than {} bytes a second; what had arrived was removed",
        Pace::LEAST
    )]
    Slow,
    /// The sender stopped before the end.
    #[error("the sender ended the transfer early; the same command goes on with it")]
    Short,
    /// It began the same again.
    #[error("the sender has begun the same transfer again, which takes the place of this one")]
    Superseded,
}

/// Receives one transfer over a fresh connection into `folder`, from who shows the `capability` if there is one. `begun` learns its
/// title and size once it is accepted. A peer that is there and sends nothing for twice the user timeout is given up; one that is gone
/// is noticed by the engine before.
///
/// # Errors
/// When the offer is refused, or this side, the peer or the connection fails. The peer has been told.
pub async fn receive(
    connection: &Connection,
    (folder, capability): (&Folder, Option<&Capability>),
    user_timeout: UserTimeout,
    watch: &Watch,
    begun: impl FnOnce(&str, Option<u64>),
) -> Result<Arrival, ReceiveError> {
    if let Err(rejection) = suitable(connection) {
        refuse(connection, &rejection).await;
        return Err(rejection.into());
    }
    let mut inlet = Inlet::new(connection);
    let peer = peer(connection);
    let accepted = accept(&mut inlet, (folder, capability), peer, twice(user_timeout.own)).await;
    let (target, answers, sender_seconds) = match accepted {
        Ok(accepted) => accepted,
        Err(rejection) => {
            refuse(connection, &rejection).await;
            return Err(rejection.into());
        }
    };
    let manifest = target.manifest();
    begun(&manifest.title(), manifest.bytes());
    let borne = user_timeout.beside(sender_seconds);
    if borne > user_timeout.own {
        bear_from_now(connection, borne);
    }
    let user_timeout = twice(borne);
    say(connection, &Answer::Accepted).await;
    let mut body = Body {
        inlet,
        connection,
        user_timeout,
        clock: Clock::start(),
        pace: Pace::over(user_timeout),
        watch,
    };
    let superseded = target.superseded();
    let received = tokio::select! {
        received = body.receive(&manifest, target) => received,
        () = superseded => Err(ReceiveError::Superseded),
        never = tell(connection, answers) => match never {},
    };
    match received {
        Ok(delivery) => {
            // Before anybody else comes to word.
            if folder.takes_one {
                folder.claims().close();
            }
            say(
                connection,
                &Answer::Verified(delivery.digest, delivery.skipped_files),
            )
            .await;
            connection.finish();
            Ok(Arrival {
                places: (manifest.entries().iter().enumerate())
                    .filter(|(number, entry)| {
                        entry.parent.is_none() && delivery.left_out.binary_search(number).is_err()
                    })
                    .map(|(_, entry)| folder.path().join(&entry.name))
                    .collect(),
                tally: Tally {
                    digest: delivery.digest,
                    files: (manifest.files().count() - delivery.left_out.len()) as u64,
                    skipped_files: delivery.skipped_files,
                    left_out: left_out(&manifest, &delivery.left_out),
                },
            })
        }
        // Nothing was begun in its place, as if it had been seen at once.
        Err(ReceiveError::Target(
            error @ (TargetError::Exists(_)
            | TargetError::Unreadable(..)
            | TargetError::ReadOnly(_)
            | TargetError::Closed(_)),
        )) => {
            let rejection = Rejection::from(error);
            refuse(connection, &rejection).await;
            Err(rejection.into())
        }
        Err(
            error @ (ReceiveError::CutOff(_)
            | ReceiveError::Superseded
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

/// So many paths at most are told of files that were left out: a list may name very many, and long ones.
const MOST_LEFT_OUT: usize = 100;

fn left_out(manifest: &Manifest, numbers: &[usize]) -> Vec<String> {
    let told = numbers.iter().take(MOST_LEFT_OUT);
    let mut paths: Vec<_> = told.map(|number| manifest.path(*number)).collect();
    let more = numbers.len() - paths.len();
    if more > 0 {
        paths.push(format!("and {more} more"));
    }
    paths
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

/// Says what there is already.
async fn tell(connection: &Connection, mut answers: mpsc::Receiver<Answer>) -> std::convert::Infallible {
    while let Some(answer) = answers.recv().await {
        say(connection, &answer).await;
    }
    std::future::pending().await
}

/// What tells senders apart who send the same: the key, or the address of who has none.
fn peer(connection: &Connection) -> Vec<u8> {
    let address = || connection.path().map(|path| path.remote.ip().to_string());
    match connection.peer_key() {
        Some(key) => key.0.to_vec(),
        None => address().unwrap_or_default().into_bytes(),
    }
}

async fn accept(
    inlet: &mut Inlet<'_>,
    (folder, wanted): (&Folder, Option<&Capability>),
    peer: Vec<u8>,
    user_timeout: std::time::Duration,
) -> Result<(Target, mpsc::Receiver<Answer>, u32), Rejection> {
    let silent = |_| Rejection::Silent;
    let head = async {
        Offer::check_preface(inlet.array().await.ok_or(Rejection::Silent)?)?;
        let head = inlet.array().await.ok_or(Rejection::Silent)?;
        Ok::<_, Rejection>(Offer::decode(&head)?)
    };
    let offer = timeout(user_timeout, head).await.map_err(silent)??;
    if wanted.is_some_and(|wanted| offer.capability != *wanted) {
        return Err(Rejection::Uninvited);
    }
    // It grows with what has come, not with what was said.
    let (mut manifest, mut left) = (Vec::new(), offer.manifest_bytes as usize);
    while left > 0 {
        let part = timeout(user_timeout, inlet.bytes(left.min(CHUNK_BYTES)))
            .await
            .map_err(silent)?;
        let part = part.ok_or(Rejection::Silent)?;
        left -= part.len();
        manifest.extend_from_slice(&part);
    }
    let (target, answers) = Target::begin(folder, manifest, peer).await?;
    Ok((target, answers, offer.user_timeout_seconds))
}

/// For who is there and sends nothing.
fn twice(user_timeout: Duration) -> std::time::Duration {
    std::time::Duration::from_nanos((user_timeout * 2).as_nanos())
}

/// What follows the offer.
struct Body<'a> {
    inlet: Inlet<'a>,
    connection: &'a Connection,
    user_timeout: std::time::Duration,
    clock: Clock,
    pace: Pace,
    watch: &'a Watch,
}

impl Body<'_> {
    async fn receive(&mut self, manifest: &Manifest, target: Target) -> Result<Delivery, ReceiveError> {
        for (number, bytes) in manifest.files() {
            // One that is all there is has nothing beside it that is worth to be had.
            let may_leave = !manifest.is_one_file();
            let length = || ReceiveError::Length(manifest.path(number));
            match self.file((bytes, may_leave), &target, length).await {
                Ok(true) => {}
                Ok(false) => return Err(target.failure().await.into()),
                Err(error) => {
                    if matches!(
                        error,
                        ReceiveError::Slow | ReceiveError::Length(_) | ReceiveError::Record(_)
                    ) {
                        target.forget().await;
                    }
                    return Err(error);
                }
            }
        }
        Ok(target.complete().await?)
    }

    /// The records of one file. False: it could not be written.
    async fn file(
        &mut self,
        (mut left, may_leave): (Option<u64>, bool),
        target: &Target,
        other_length: impl Fn() -> ReceiveError,
    ) -> Result<bool, ReceiveError> {
        let (mut content, mut same) = (0, 0);
        loop {
            let record = Record::decode(self.array().await?)?;
            let length = match record {
                Record::Data(length) | Record::Hole(length) | Record::Same(length) => u64::from(length),
                Record::End if left.is_some_and(|left| left > 0) => return Err(other_length()),
                Record::Left if !may_leave => return Err(ReceiveError::Short),
                Record::End | Record::Left => 0,
            };
            content += length;
            if let Some(left) = &mut left {
                *left = left.checked_sub(length).ok_or_else(&other_length)?;
            }
            match record {
                // It counts as it comes.
                Record::Data(1..) => {}
                Record::End | Record::Left => self.progress(Record::BYTES as u64)?,
                _ => self.progress(length)?,
            }
            let written = match record {
                Record::Data(_) => self.data(length, target).await?,
                Record::Hole(_) => {
                    self.watch.take_in(length);
                    target.put(Piece::Hole(length)).await
                }
                Record::Same(_) => {
                    self.watch.take_in(length);
                    self.watch.resume(length);
                    same += length;
                    target.put(Piece::Same(length)).await
                }
                Record::Left => {
                    self.watch.take_back(content, same);
                    return Ok(target.put(Piece::Left).await);
                }
                Record::End => return Ok(target.put(Piece::End(self.array().await?)).await),
            };
            if !written {
                return Ok(false);
            }
        }
    }

    async fn data(&mut self, mut left: u64, target: &Target) -> Result<bool, ReceiveError> {
        while left > 0 {
            let pieces = timeout(self.user_timeout, self.inlet.chunk(left)).await;
            let Some(pieces) = pieces.map_err(|_| ReceiveError::Stalled)? else {
                return Err(ended(self.connection).await);
            };
            let length = pieces.iter().map(|piece| piece.len() as u64).sum();
            left -= length;
            self.progress(length)?;
            self.watch.take_in(length);
            if !target.put(Piece::Data(pieces)).await {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The file has grown by so many bytes, whether they came or not: what is there already and holes take their time too.
    fn progress(&mut self, bytes: u64) -> Result<(), ReceiveError> {
        match self.pace.keeps(self.clock.now(), bytes) {
            true => Ok(()),
            false => Err(ReceiveError::Slow),
        }
    }

    async fn array<const N: usize>(&mut self) -> Result<[u8; N], ReceiveError> {
        let bytes = timeout(self.user_timeout, self.inlet.array()).await;
        match bytes.map_err(|_| ReceiveError::Stalled)? {
            Some(bytes) => Ok(bytes),
            None => Err(ended(self.connection).await),
        }
    }
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
/// through before the connection ends. One that reads nothing does not hear it.
async fn farewell(connection: &Connection, answer: &Answer) {
    let heard = async {
        say(connection, answer).await;
        connection.finish();
        while connection.recv().await.is_some() {}
        connection.closed().await
    };
    let _ = timeout(std::time::Duration::from_nanos(FAREWELL.as_nanos()), heard).await;
    connection.abort();
}

#[cfg(test)]
mod tests {
    use super::super::manifest::{Entry, Kind, Modified};
    use super::*;

    #[test]
    fn of_very_many_files_that_are_left_out_a_hundred_are_named() {
        let file = |name: usize| Entry {
            parent: None,
            name: name.to_string(),
            mode: 0,
            modified: Modified::default(),
            kind: Kind::File(Some(1)),
        };
        let manifest = Manifest::new((0..500).map(file).collect()).expect("good");
        let numbers: Vec<_> = (0..500).collect();
        assert_eq!(left_out(&manifest, &numbers[7..9]), ["7", "8"]);
        let told = left_out(&manifest, &numbers);
        assert_eq!((told.len(), told[100].as_str()), (101, "and 400 more"));
    }
}
