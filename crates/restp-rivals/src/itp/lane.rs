//! What is asked of one producer: its Interests, and what is known of the way to it. Rules (a) and (b), window and timers are the
//! sender's; here its numbers are turned into items and back.

use super::parameters::ItpParameters;
use bytes::Bytes;
use restp_base::machine::Wakeup;
use restp_base::time::{Duration, Time};
use restp_services::sender::{Answer, Sender, TimeoutOutcome, Transmission};
use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;

/// Answers in a row that contain something else than they should before a producer is asked no more.
const MOST_BAD: u32 = 8;
/// And in all: who has so many is not asked for what is left either.
const MOST_BAD_IN_ALL: usize = 64;

/// Interests to one producer, for items of this type.
#[derive(Debug)]
pub(super) struct Lane<I> {
    sender: Sender,
    /// What each number of the sender's record asks for.
    asked: VecDeque<I>,
    /// The number of the first of them.
    first_asked: u64,
    /// The number of the first Interest of all. What answers an older one is forged.
    oldest: u64,
    bad_in_a_row: u32,
    /// Of these it has something else.
    bad: BTreeSet<I>,
    /// A timer has expired, and nothing was answered since.
    is_silent: bool,
    /// Then one Interest at a time asks whether somebody is there again: the window stays as it was.
    probes: bool,
}

impl<I: Copy + Ord> Lane<I> {
    /// To a producer of whom nothing is known. Its Interests had the numbers `known`, on a lane that has ended, and have
    /// those that follow.
    pub fn new(now: Time, parameters: &ItpParameters, known: Range<u64>, chunk_bytes: u32) -> Self {
        let first = known.end;
        Lane {
            oldest: known.start,
            sender: parameters.sender(now, first, chunk_bytes),
            asked: VecDeque::new(),
            first_asked: first,
            bad_in_a_row: 0,
            bad: BTreeSet::new(),
            is_silent: false,
            probes: parameters.adapts,
        }
    }

    pub fn sender(&self) -> &Sender {
        &self.sender
    }
    pub fn is_silent(&self) -> bool {
        self.is_silent
    }
    pub fn deadline(&self) -> Option<(Time, Wakeup)> {
        self.sender.deadline()
    }

    /// The number of the Interest for `item` that leaves now, if one may. It weighs as much as the chunk that it asks for.
    pub fn ask(&mut self, now: Time, item: I, weight: &Bytes) -> Option<u64> {
        if self.probes && self.is_silent && self.sender.in_flight() > 0 {
            self.rest(now);
            return None;
        }
        if !self.sender.may_leave(now, weight.len() as u64) || !self.sender.write(now, weight.clone()) {
            // There is more than its window takes.
            self.sender.set_backlog(self.probes);
            return None;
        }
        let Some(Transmission::Segment(segment)) = self.sender.next(now, false) else {
            return None;
        };
        self.asked.push_back(item);
        segment.number
    }

    /// There is nothing to ask this producer now: what it does not use of its window says nothing of the path, and no timer waits to
    /// send more.
    pub fn rest(&mut self, now: Time) {
        if self.probes {
            self.sender.set_backlog(false);
            let nothing = self.sender.next(now, false);
            debug_assert!(nothing.is_none(), "nothing is written: {nothing:?}");
        }
    }

    /// The number of the Interest that data for `item` answers, while it is remembered: what is too old for that is still good for
    /// its chunk. None when no such Interest ever left.
    pub fn answered(&self, item: I, sequence: u32, was_asked: bool) -> Option<Option<u64>> {
        let next = self.sender.next_number();
        let behind = u64::from((next as u32).wrapping_sub(sequence));
        let number = next.checked_sub(behind)?;
        if !(self.oldest..next).contains(&number) {
            return None;
        }
        match number.checked_sub(self.first_asked) {
            Some(index) => (self.asked.get(index as usize) == Some(&item)).then_some(Some(number)),
            None => was_asked.then_some(None),
        }
    }

    /// The number of the Interest with this sequence number, and what it asked for, while it is remembered.
    pub fn asked_as(&self, sequence: u32) -> Option<(u64, I)> {
        let next = self.sender.next_number();
        let behind = u64::from((next as u32).wrapping_sub(sequence));
        let number = next.checked_sub(behind).filter(|number| *number < next)?;
        let index = number.checked_sub(self.first_asked)?;
        Some((number, *self.asked.get(index as usize)?))
    }

    /// The same where data does not say what it answers (NDN): it is taken to be the last Interest for `item`.
    pub fn last_for(&self, item: I) -> Option<u64> {
        let index = self.asked.iter().rposition(|asked| *asked == item)?;
        Some(self.first_asked + index as u64)
    }

    /// The producer has answered the Interest of this number.
    pub fn on_answer(&mut self, now: Time, number: Option<u64>, is_sample: bool) -> Answer {
        let answer = number.map_or(Answer::Unknown, |number| {
            self.sender.on_answer(now, number, is_sample)
        });
        self.is_silent &= answer == Answer::Unknown;
        answer
    }

    /// `item` was what it should be, or not. False when that was not so too often.
    pub fn trusts(&mut self, item: I, is_good: bool) -> bool {
        if is_good {
            self.bad_in_a_row = 0;
            return true;
        }
        self.bad.insert(item);
        self.bad_in_a_row += 1;
        self.bad_in_a_row < MOST_BAD && self.bad.len() < MOST_BAD_IN_ALL
    }

    /// What it has of `item` is not what it should be.
    pub fn has_bad(&self, item: I) -> bool {
        self.bad.contains(&item)
    }

    /// Time has passed. How long the producer has not answered, when it is given up.
    pub fn on_deadline(&mut self, now: Time) -> Option<Duration> {
        match self.sender.on_deadline(now) {
            TimeoutOutcome::GivesUp(silence) => Some(silence),
            TimeoutOutcome::Lost => {
                self.is_silent = true;
                None
            }
            TimeoutOutcome::Nothing => None,
        }
    }

    /// What the sender has taken for lost is asked for again, of whomever, and what was answered is forgotten.
    pub fn settle(&mut self, mut on_lost: impl FnMut(I)) {
        while let Some(number) = self.sender.take_lost() {
            let index = number.saturating_sub(self.first_asked) as usize;
            if let Some(item) = self.asked.get(index) {
                on_lost(*item);
            }
        }
        while self.first_asked < self.sender.first() && self.asked.pop_front().is_some() {
            self.first_asked += 1;
        }
    }

    /// Nothing more is asked of this producer: what is open is asked of others.
    pub fn end(&self, on_lost: impl FnMut(I)) {
        self.asked.iter().copied().for_each(on_lost);
    }

    pub fn memory(&self) -> u64 {
        (self.asked.capacity() * size_of::<I>() + self.sender.memory()) as u64
    }
}
