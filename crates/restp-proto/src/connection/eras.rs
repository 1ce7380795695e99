//! Eras of a connection (docs/adr/0007): the services of now, those of before while something of them may be outstanding, and
//! those that the two ends talk about. Values only: what an era means for sender and receiver is in `era_talk`.

use super::fec::is_encoded;
use crate::composition::{Strength, Terms, ValidComposition};
use crate::wire::{EraMessage, Flags, Header};
use restp_base::sequence;
use restp_base::time::{Duration, Time};
use std::sync::Arc;

/// What both ends know of an era.
#[derive(Clone, Copy, Debug)]
pub(super) struct Era {
    /// 0 is that of the set-up.
    pub(super) number: u32,
    pub(super) terms: Terms,
}

/// The first numbers of an era, in both directions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Boundaries {
    pub(super) own: u64,
    pub(super) peer: u64,
}

/// An era that may come.
#[derive(Clone, Debug)]
pub(super) struct Next {
    pub(super) era: Era,
    pub(super) composition: Arc<ValidComposition>,
}

/// What the application wants beside what the two ends are talking about.
#[derive(Clone, Debug)]
pub(super) struct Wish {
    pub(super) composition: Arc<ValidComposition>,
    /// It wants other terms than those that are talked about; else it is for whatever terms come of that.
    pub(super) about_terms: bool,
}

/// What the two ends are talking about.
#[derive(Debug)]
pub(super) enum Talk {
    Nothing,
    /// This end has proposed, with the first number of its own direction.
    Proposed(Box<Next>, u64),
    /// This end has accepted, and does not know yet whether the peer has heard it.
    Accepted(Box<Next>, Boundaries),
}

/// Which proposals of the peer are accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Consent {
    /// None.
    Nothing,
    /// Those that leave what the application relies on.
    NothingWeaker,
    /// Every valid one.
    Anything,
}

/// How a packet stands to the eras.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Of one that may hold, and it shows nothing else.
    Known,
    /// A numbered one of the next: its sender has heard that it was accepted.
    Next,
}

/// The eras of a connection.
#[derive(Debug)]
pub(super) struct Eras {
    /// Both ends have said that they know eras.
    pub(super) understood: bool,
    /// What the peer may propose.
    pub(super) consent: Consent,
    /// What the application has opened the connection with, or asked for last.
    pub(super) relied_on: Strength,
    pub(super) current: Era,
    /// The one before it, and where it ends.
    pub(super) before: Option<Box<(Era, Boundaries)>>,
    pub(super) talk: Talk,
    /// What the application wants when this one is over.
    pub(super) wanted: Option<Box<Wish>>,
    /// Of this end's last proposal.
    pub(super) attempt: u16,
    /// The peer's last proposal that was answered: with a first number if it was accepted.
    pub(super) answered: Option<(u16, Option<u64>)>,
    /// New segments are still encoded as before.
    pub(super) encoder_due: bool,
    /// What is to leave now.
    due: Option<EraMessage>,
    /// What leaves again until it is answered, when, and how often it did.
    asking: Option<(EraMessage, Time, u32)>,
}

impl Era {
    /// Does the packet have its services, and say so?
    fn has(&self, header: &Header) -> bool {
        header.era == self.is_odd() && self.terms.services.agree(&header.services)
    }
    pub(super) fn is_odd(&self) -> bool {
        !self.number.is_multiple_of(2)
    }
}

impl Eras {
    /// There is one, that of the set-up, which opened the connection with `composition`.
    pub(super) fn new(terms: Terms, composition: &ValidComposition) -> Self {
        Eras {
            understood: false,
            consent: Consent::NothingWeaker,
            relied_on: Strength::of(composition),
            current: Era { number: 0, terms },
            before: None,
            talk: Talk::Nothing,
            wanted: None,
            attempt: 0,
            answered: None,
            encoder_due: false,
            due: None,
            asking: None,
        }
    }

    /// This end has accepted an era that has not begun.
    pub(super) fn has_accepted(&self) -> bool {
        matches!(self.talk, Talk::Accepted(..))
    }

    /// How the packet stands to the eras, where it takes a number by the one it carries: none belongs nowhere. `next` is expected
    /// from the peer next.
    pub(super) fn place(&self, header: &Header, with_data: bool, next: Option<u64>) -> Option<Place> {
        let current = &self.current;
        if !self.understood || header.flags.has(Flags::SYN) {
            let first = self.before.as_deref().map_or(current, |(era, _)| era);
            let agrees = |era: &Era| era.terms.services.agree(&header.services);
            return (agrees(first) || agrees(current)).then_some(Place::Known);
        }
        if self.before.is_none() && !self.has_accepted() {
            return current.has(header).then_some(Place::Known); // whatever number it takes
        }
        let is_data = with_data && !header.probe && !header.about_eras;
        let takes_number = is_data || is_encoded(header) || header.flags.has(Flags::FIN);
        let number = header.sequence.zip(next).filter(|_| takes_number);
        let number = number.map(|(number, next)| sequence::expand(next, number));
        // What takes no number is of the era that its sender is in.
        let is_from = |boundary: u64| number.is_none_or(|number| number >= boundary);
        let is_below = |boundary: u64| number.is_none_or(|number| number < boundary);
        if let Talk::Accepted(next, boundaries) = &self.talk
            && is_from(boundaries.peer)
        {
            let of_next = next.era.has(header);
            // Without a number it may as well be a late one of the era before, whose bit and services can be those of the next.
            match number {
                Some(_) => return of_next.then_some(Place::Next),
                None if of_next => return Some(Place::Known),
                None => {}
            }
        }
        let (known, is_current) = match self.before.as_deref() {
            Some((era, boundaries)) => (
                is_below(boundaries.peer) && era.has(header),
                is_from(boundaries.peer),
            ),
            None => (false, true),
        };
        (known || is_current && current.has(header)).then_some(Place::Known)
    }

    /// The era of this end's segment `number`.
    pub(super) fn of_own(&self, number: u64) -> &Era {
        match self.before.as_deref() {
            Some((era, boundaries)) if number < boundaries.own => era,
            _ => &self.current,
        }
    }

    /// The era that the header of a packet of this end names.
    pub(super) fn named(&self, header: &Header) -> &Era {
        match self.before.as_deref() {
            Some((era, _)) if !header.flags.has(Flags::SYN) && header.era == era.is_odd() => era,
            _ => &self.current,
        }
    }

    /// Both kinds of numbers may be under way: own ones from `first` on are outstanding, and `next` is expected.
    pub(super) fn is_turning(&self, first: u64, next: Option<u64>) -> bool {
        let open = |(_, at): &(Era, Boundaries)| first < at.own || next.is_none_or(|next| next < at.peer);
        self.encoder_due || self.before.as_deref().is_some_and(open)
    }

    pub(super) fn say(&mut self, message: EraMessage) {
        self.due = Some(message);
    }
    /// The same, again after `at` unless it is answered.
    pub(super) fn ask(&mut self, message: EraMessage, at: Time) {
        self.due = Some(message);
        self.asking = Some((message, at, 0));
    }
    pub(super) fn stop_asking(&mut self) {
        self.asking = None;
    }
    /// What is to leave now.
    pub(super) fn take_due(&mut self) -> Option<EraMessage> {
        self.due.take()
    }
    /// When the question leaves again.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.asking.map(|(_, at, _)| at)
    }
    /// Something of the peer has come, so the way is there, and what was asked while it was not is asked again.
    pub(super) fn on_heard(&mut self, now: Time, timeout: Duration) {
        if let Some((_, at, times)) = &mut self.asking {
            *times = 0;
            *at = (*at).min(now + timeout);
        }
    }
    /// It leaves again if its time has come, each time after twice the `timeout`, which is not doubled itself.
    pub(super) fn on_deadline(&mut self, now: Time, timeout: Duration) {
        if let Some((message, at, times)) = &mut self.asking
            && *at <= now
        {
            *times += 1;
            *at = now + timeout.scaled(1 << (*times).min(MOST_DOUBLINGS), 1);
            self.due = Some(*message);
        }
    }
}

/// A question is repeated at least every 64 timeouts.
const MOST_DOUBLINGS: u32 = 6;
