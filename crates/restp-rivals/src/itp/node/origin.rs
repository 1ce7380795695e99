//! One source of a fetch: what it has shown, what it is asked, and what was wrong with it.

use super::guard::Cookie;
use super::shelf::RootError;
use crate::itp::wire::{Header, Refusal, flags};
use restp_base::machine::PathAddress;
use restp_base::time::{Duration, Time};
use std::net::SocketAddr;
use std::ops::Range;

/// A source that does not answer is asked for the root again after 1 s, 2 s, 4 s, and then at this interval: it may come later.
pub(super) const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// After so many answers from its store a cache is taken to have what follows.
const HELD_IN_A_ROW: u32 = 64;
/// How long what is known of the way through a cache is kept at least.
const RENEWAL: Duration = Duration::from_secs(1);

/// Why a source is asked no more, or not now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Complaint {
    /// It does not have the object, or not all of it.
    #[error("it does not have the object")]
    HasNot,
    /// It may not give it to us.
    #[error("it does not give the object to us")]
    Forbids,
    /// Its root manifest is not the one of the ticket.
    #[error("its manifest is refused: {0}")]
    Root(#[from] RootError),
    /// What it sends is something else than what was asked for.
    #[error("what it sends has other digests than the object")]
    Lies,
    /// It asks for proofs for ever.
    #[error("it does not accept the cookies that it gives")]
    Unproved,
}

/// What there is to know of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceReport {
    /// Where it is.
    pub remote: SocketAddr,
    /// It is asked for chunks.
    pub serves: bool,
    /// Bytes of chunks and manifests that were good and new.
    pub bytes: u64,
    /// Payloads that were refused, because they had another digest.
    pub refused: u64,
    /// What was wrong with it last.
    pub complaint: Option<Complaint>,
    /// Its round trip.
    pub srtt: Option<Duration>,
    /// How much of it is asked for at a time.
    pub window_bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// For the root.
    Asking { next_at: Time, wait: Duration },
    /// It has shown the root.
    Ready,
    /// It is asked no more.
    GivenUp,
}

#[derive(Debug)]
pub(super) struct Origin {
    pub path: PathAddress,
    pub cookie: Option<Cookie>,
    /// The number of its request.
    pub request: u64,
    pub attempt: u32,
    /// Of the Interests that left.
    pub numbers: Range<u64>,
    pub stage: Stage,
    /// Proofs asked for since something good came.
    pub unproved: u32,
    pub bytes: u64,
    pub refused: u64,
    pub complaint: Option<Complaint>,
    /// Of a cache: answers in a row from its store, and whether others had to be asked for before those.
    held: u32,
    forwards: bool,
    renewed_at: Option<Time>,
}

/// How far an answer has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trip {
    /// As far as the others.
    Usual,
    /// A cache had it, and had to ask for the others.
    Shorter,
    /// A cache had to ask for it, and had all before.
    Longer,
}

impl Origin {
    /// It is asked for the root first. `request`: a number that nobody guesses; nor `first`, where those of Interests begin.
    pub fn new(now: Time, path: PathAddress, request: u64, first: u64) -> Self {
        Origin {
            path,
            cookie: None,
            request,
            attempt: 0,
            numbers: first..first,
            stage: Stage::Asking {
                next_at: now,
                wait: Duration::from_secs(1),
            },
            unproved: 0,
            bytes: 0,
            refused: 0,
            complaint: None,
            held: 0,
            forwards: false,
            renewed_at: None,
        }
    }

    /// Where a cache has a chunk and where it asks for it are two paths. Round trips of one say nothing of the queue of the other.
    pub fn trip(&mut self, now: Time, header: &Header) -> Trip {
        if header.flags & flags::CACHE != 0 {
            self.held = self.held.saturating_add(1);
            self.forwards &= self.held < HELD_IN_A_ROW;
            return if self.forwards { Trip::Shorter } else { Trip::Usual };
        }
        let had_all = std::mem::take(&mut self.held) > 0 && !std::mem::replace(&mut self.forwards, true);
        let is_rare = self.renewed_at.is_none_or(|at| now.since(at) > RENEWAL);
        match had_all && is_rare {
            true => {
                self.renewed_at = Some(now);
                Trip::Longer
            }
            false => Trip::Usual,
        }
    }

    /// It is asked for the root again, later.
    pub fn retire(&mut self, now: Time, complaint: Complaint) {
        self.complaint = Some(complaint);
        self.stage = Stage::Asking {
            next_at: now + LONGEST_WAIT,
            wait: LONGEST_WAIT,
        };
    }

    pub fn give_up(&mut self, complaint: Complaint) {
        self.complaint = Some(complaint);
        self.stage = Stage::GivenUp;
    }

    /// It refuses to show the root, or wants a proof first. None: that makes no sense.
    pub fn on_refused_request(&mut self, now: Time, code: Refusal, cookie: Option<&Cookie>) -> Option<()> {
        match code {
            Refusal::Unproved => {
                let cookie = Some(*cookie?);
                // At once, but for one that changes its mind all the time.
                if std::mem::replace(&mut self.cookie, cookie) != cookie && self.unproved < 8 {
                    self.unproved += 1;
                    self.stage = Stage::Asking {
                        next_at: now,
                        wait: Duration::from_secs(1),
                    };
                }
            }
            Refusal::Busy => {}
            Refusal::NotAuthorised => self.retire(now, Complaint::Forbids),
            Refusal::NoNexus | Refusal::NoSuchChunk => self.retire(now, Complaint::HasNot),
        }
        Some(())
    }
}
