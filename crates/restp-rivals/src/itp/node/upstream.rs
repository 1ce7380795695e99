//! Those whom a cache asks, and the roots that it asks them for.

use super::fair::Shares;
use super::guard::{Cookie, source_of};
use super::message::{self, Wanted};
use super::shelf;
use crate::itp::holding::Item;
use crate::itp::lane::Lane;
use crate::itp::manifest::Digest;
use crate::itp::parameters::ItpParameters;
use crate::itp::wire::{Header, Kind, Pointer, Refusal, flags};
use restp_base::machine::{Datagram, PathAddress};
use restp_base::time::{Duration, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::ops::RangeInclusive;

/// Roots that are waited for at once, and consumers that wait for one.
const MOST_ROOTS: usize = 1024;
const MOST_WAITERS: usize = 1024;
/// How long one of those above has for a root before the next is asked, and how often that comes round in all.
const WAIT: Duration = Duration::from_secs(1);
const MOST_ATTEMPTS: u32 = 60;
/// Who was asked so often and said nothing is not waited for where the others refuse.
const SILENT_TURNS: u32 = 2;

/// What is asked for: what has this digest, and lies there. Whoever asks may name a place that has something else, so that what answers
/// him says nothing of other places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Question {
    pub digest: Digest,
    pub object: u64,
    pub item: Item,
}

impl Question {
    /// That of an Interest with this header.
    pub fn of(header: &Header, digest: Digest) -> Self {
        Question {
            digest,
            object: header.pointer.object,
            item: item_of(header),
        }
    }

    /// All questions for this digest.
    pub fn all(digest: Digest) -> RangeInclusive<Self> {
        let (first, last) = (Item::Manifest(0), Item::Chunk(u64::MAX));
        let question = |object, item| Question { digest, object, item };
        question(0, first)..=question(u64::MAX, last)
    }

    /// Does an answer with this header repeat its words?
    pub fn is_that_of(&self, header: &Header) -> bool {
        (self.object, self.item) == (header.pointer.object, item_of(header))
    }
}

fn item_of(header: &Header) -> Item {
    let number = header.pointer.chunk.into();
    match header.flags & flags::MANIFEST {
        0 => Item::Chunk(number),
        _ => Item::Manifest(number),
    }
}

/// One of those above.
#[derive(Debug)]
pub(super) struct Upstream {
    pub path: PathAddress,
    pub cookie: Option<Cookie>,
    pub lane: Lane<Question>,
    answers: u64,
    bytes: u64,
    refused: u64,
}

/// What there is to know of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpstreamReport {
    /// Where it is, and where it is asked from.
    pub path: PathAddress,
    /// Payloads that were what was asked for.
    pub answers: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Payloads that were something else.
    pub refused: u64,
    /// Its round trip.
    pub srtt: Option<Duration>,
}

impl Upstream {
    pub fn new(now: Time, path: PathAddress, parameters: &ItpParameters, first: u64, weight: u32) -> Self {
        Upstream {
            path,
            cookie: None,
            lane: Lane::new(now, parameters, first..first, weight),
            answers: 0,
            bytes: 0,
            refused: 0,
        }
    }

    pub fn report(&self) -> UpstreamReport {
        UpstreamReport {
            path: self.path,
            answers: self.answers,
            bytes: self.bytes,
            refused: self.refused,
            srtt: self.lane.sender().smoothed_rtt(),
        }
    }

    /// It wants to be shown this from now on.
    pub fn take_cookie(&mut self, cookie: Option<&Cookie>) {
        self.cookie = cookie.copied().or(self.cookie);
    }

    pub fn on_payload(&mut self, bytes: usize, is_good: bool) {
        self.refused += u64::from(!is_good);
        self.answers += u64::from(is_good);
        self.bytes += if is_good { bytes as u64 } else { 0 };
    }

    /// The number of the Interest that a message with this header answers, and what it asked for. None when none left that it repeats.
    pub fn answered(&self, header: &Header) -> Option<(u64, Question)> {
        let answered = self.lane.asked_as(header.pointer.sequence);
        answered.filter(|(_, question)| question.is_that_of(header))
    }

    /// The Interest with this number.
    pub fn interest(&self, question: &Question, number: u64) -> Datagram {
        let (chunk, kind) = match question.item {
            Item::Manifest(position) => (position, flags::MANIFEST),
            Item::Chunk(chunk) => (chunk, 0),
        };
        let header = Header {
            kind: Kind::Interest(None),
            flags: kind | flags::HASH,
            pointer: Pointer {
                object: question.object,
                chunk: chunk as u32,
                sequence: number as u32,
            },
        };
        message::datagram(
            self.path,
            &header,
            message::interest(&question.digest, self.cookie.as_ref()),
        )
    }
}

/// Who waits for a root, and for which request of his.
type Waiters = Vec<(PathAddress, Pointer)>;

#[derive(Debug)]
struct Root {
    /// Who asked for it first.
    by: IpAddr,
    /// The number of the request, which nobody guesses.
    number: u64,
    waiters: Waiters,
    /// Which of those above has its turn.
    turn: usize,
    attempt: u32,
    next_at: Time,
    /// How often each of those above was asked.
    asked: BTreeMap<usize, u32>,
    /// Those that have refused.
    refused: BTreeSet<usize>,
    /// Those that were asked again at once with what they wanted to be shown.
    shown: BTreeSet<usize>,
}

/// The roots that are waited for.
#[derive(Debug)]
pub(super) struct Roots {
    waited_for: BTreeMap<Wanted, Root>,
    shares: Shares,
}

impl Roots {
    /// None.
    pub fn new() -> Self {
        Roots {
            waited_for: BTreeMap::new(),
            shares: Shares::new(MOST_ROOTS),
        }
    }

    /// A consumer waits. False: too many do.
    pub fn on_request(
        &mut self,
        now: Time,
        path: PathAddress,
        pointer: Pointer,
        wanted: Wanted,
        number: u64,
    ) -> bool {
        let by = source_of(path.remote.ip());
        if !self.waited_for.contains_key(&wanted) && !self.shares.take(by) {
            return false;
        }
        let root = self.waited_for.entry(wanted).or_insert_with(|| Root {
            by,
            number,
            waiters: Vec::new(),
            turn: 0,
            attempt: 0,
            next_at: now,
            asked: BTreeMap::new(),
            refused: BTreeSet::new(),
            shown: BTreeSet::new(),
        });
        match root.waiters.iter().position(|(known, _)| *known == path) {
            Some(known) => root.waiters[known].1 = pointer,
            None if root.waiters.len() < MOST_WAITERS => root.waiters.push((path, pointer)),
            None => return false,
        }
        true
    }

    /// The next that is asked for: of whom, what, and as which request. What nobody answered for too long is forgotten.
    pub fn poll(&mut self, now: Time, upstreams: usize) -> Option<(usize, Wanted, Pointer)> {
        let shares = &mut self.shares;
        self.waited_for.retain(|_, root| {
            let stays = root.attempt < MOST_ATTEMPTS;
            if !stays {
                shares.give_back(root.by);
            }
            stays
        });
        let (wanted, root) = (self.waited_for.iter_mut()).find(|(_, root)| root.next_at <= now)?;
        let index = root.turn % upstreams.max(1);
        let pointer = Pointer {
            object: root.number,
            chunk: 0,
            sequence: root.attempt,
        };
        root.attempt += 1;
        *root.asked.entry(index).or_default() += 1;
        root.turn += 1;
        root.next_at = now + WAIT;
        Some((index, *wanted, pointer))
    }

    pub fn deadline(&self) -> Option<Time> {
        self.waited_for.values().map(|root| root.next_at).min()
    }

    /// A root has come: if it is the one that is wanted, who waits for it.
    pub fn on_manifest(
        &mut self,
        request: u64,
        index: usize,
        body: &[u8],
        upstreams: &mut [Upstream],
    ) -> Option<(Wanted, Waiters)> {
        let (wanted, _) = (self.waited_for.iter()).find(|(_, root)| root.number == request)?;
        let wanted = *wanted;
        let is_good = shelf::check_root(body, &wanted).is_ok();
        upstreams[index].on_payload(body.len(), is_good);
        if !is_good {
            return None;
        }
        Some((wanted, self.end(&wanted)?))
    }

    /// One of those above refuses the request with this number, or wants a proof first. None when it is none of these; else who is
    /// told, because none of them has it.
    pub fn on_refusal(
        &mut self,
        now: Time,
        index: usize,
        request: u64,
        code: Refusal,
        upstreams: usize,
    ) -> Option<Waiters> {
        let (wanted, root) = (self.waited_for.iter_mut()).find(|(_, root)| root.number == request)?;
        if code == Refusal::Busy {
            return Some(Vec::new()); // it has its next turn
        }
        if code == Refusal::Unproved {
            // Once: one that asks for proofs for ever would keep the others from their turn.
            if root.shown.insert(index) {
                (root.turn, root.next_at) = (index, now);
            }
            return Some(Vec::new());
        }
        root.refused.insert(index);
        let has_turn = root.turn.checked_sub(1).map(|turn| turn % upstreams.max(1)) == Some(index);
        if has_turn {
            root.next_at = now; // and takes no time of another
        }
        let has_had_turns =
            |other| has_turn && root.asked.get(&other).is_some_and(|asked| *asked >= SILENT_TURNS);
        let is_over = |other| root.refused.contains(&other) || has_had_turns(other);
        let wanted = *wanted;
        match (0..upstreams).all(is_over) {
            true => self.end(&wanted),
            false => Some(Vec::new()),
        }
    }

    /// It is waited for no more: by whom.
    fn end(&mut self, wanted: &Wanted) -> Option<Waiters> {
        let root = self.waited_for.remove(wanted)?;
        self.shares.give_back(root.by);
        Some(root.waiters)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::itp::trust::PublisherKey;

    /// A root that one consumer waits for, and its number.
    fn waiting() -> (Roots, u64) {
        let (here, there) = (([10, 0, 0, 1], 1).into(), ([10, 0, 0, 2], 1).into());
        let path = PathAddress {
            local: here,
            remote: there,
        };
        let pointer = Pointer {
            object: 1,
            chunk: 0,
            sequence: 0,
        };
        let wanted = Wanted {
            root: [7; 32],
            publisher: PublisherKey([8; 32]),
        };
        let mut roots = Roots::new();
        assert!(roots.on_request(Time::ZERO, path, pointer, wanted, 5));
        (roots, 5)
    }

    #[test]
    fn a_root_is_nowhere_when_each_of_those_above_has_refused_it() {
        let (mut roots, number) = waiting();
        let mut refuses = |index| roots.on_refusal(Time::ZERO, index, number, Refusal::NoNexus, 2);
        for _ in 0..5 {
            assert_eq!(refuses(0), Some(Vec::new()), "one of them says it again");
        }
        assert_eq!(refuses(1).map(|waiters| waiters.len()), Some(1));
    }

    /// The tenth of a second in which it is over, and how often the second was asked, which says nothing. The first refuses each time
    /// it is asked, and where it is `eager` at any time.
    fn over_at(eager: bool) -> (u64, u32) {
        let (mut roots, number) = waiting();
        let mut asked = 0;
        for at in 0..100 {
            let now = Time::ZERO + WAIT * at / 10;
            let turns: Vec<usize> = std::iter::from_fn(|| {
                let (index, ..) = roots.poll(now, 2)?;
                if index == 0 {
                    roots.on_refusal(now, 0, number, Refusal::NoNexus, 2);
                }
                Some(index)
            })
            .collect();
            asked += turns.iter().filter(|index| **index == 1).count() as u32;
            if eager {
                roots.on_refusal(now, 0, number, Refusal::NoNexus, 2);
            }
            if roots.waited_for.is_empty() {
                return (at, asked);
            }
        }
        (u64::MAX, asked)
    }

    #[test]
    fn a_silent_one_has_its_turns_whatever_another_says_and_no_more() {
        assert_eq!(over_at(false), (20, SILENT_TURNS));
        assert_eq!(over_at(true), (20, SILENT_TURNS));
    }

    #[test]
    fn who_is_busy_does_not_say_that_it_is_nowhere() {
        let (mut roots, number) = waiting();
        let mut says = |index, code| roots.on_refusal(Time::ZERO, index, number, code, 2);
        assert_eq!(says(0, Refusal::Busy), Some(Vec::new()));
        assert_eq!(says(1, Refusal::NoNexus), Some(Vec::new()));
        assert_eq!(says(0, Refusal::NoNexus).map(|waiters| waiters.len()), Some(1));
    }

    #[test]
    fn one_that_always_wants_a_proof_does_not_keep_others_from_their_turn() {
        let (mut roots, number) = waiting();
        let mut asked = BTreeSet::new();
        for at in 0..20 {
            let now = Time::ZERO + WAIT * at;
            for _ in 0..5 {
                let Some((index, ..)) = roots.poll(now, 2) else {
                    break;
                };
                asked.insert(index);
                if index == 0 {
                    roots.on_refusal(now, 0, number, Refusal::Unproved, 2);
                }
            }
        }
        assert_eq!(asked.len(), 2);
    }
}
