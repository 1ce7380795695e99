//! How two ends come to another era (docs/adr/0007): propose, accept or refuse, confirm; and what the turn means for what is
//! sent and received.

use super::eras::{Boundaries, Consent, Era, Next, Talk, Wish};
use super::{Connection, pdu_builder as pdu};
use crate::composition::{Strength, Terms, ValidComposition, agreed_key, under};
use crate::wire::{EraMessage, EraVerb, Header};
use restp_base::flow::{Change, ChangeError};
use restp_base::machine::Datagram;
use restp_base::observe::{Changed, Why};
use restp_base::sequence;
use restp_base::time::Time;
use restp_services::connection_management::Establishment;
use restp_services::reliability::{FecCode, FecDecoder};
use restp_services::sender::MOST_LEAD;
use std::sync::Arc;

impl Connection {
    /// Does its set-up say that it knows eras? Several paths have one.
    pub(super) fn knows_eras(&self) -> bool {
        let has_set_up = self.composition.establishment != Establishment::Connectionless;
        has_set_up && self.subflow.is_none() && self.composition.reliability.retransmits()
    }

    /// What the peer may propose from now on.
    pub(crate) fn consent_to(&mut self, consent: Consent) {
        self.eras.consent = consent;
    }

    /// An era is being agreed on, or not over yet.
    pub(super) fn is_between_eras(&self) -> bool {
        let turning = self.eras.is_turning(self.sender.first(), self.receiver.next());
        turning || !matches!(self.eras.talk, Talk::Nothing)
    }

    /// Asks the peer for the services of `to`.
    pub(super) fn propose(&mut self, now: Time, to: ValidComposition) -> Result<Change, ChangeError> {
        if !self.eras.understood {
            let key = agreed_key(&self.composition, &to).unwrap_or_default();
            return Err(ChangeError::PeerCannot { key });
        }
        let terms = Terms::of(&to, self.services);
        let era = self.next_era(terms);
        let own = self.first_of_next();
        self.eras.attempt = self.eras.attempt.wrapping_add(1);
        let message = EraMessage {
            verb: EraVerb::Propose {
                order: terms.services.order,
                error: terms.services.error,
                code: terms.code.map_or(0, FecCode::kind),
                boundary: sequence::truncate(own),
            },
            attempt: self.eras.attempt,
            era: era.number,
        };
        self.eras.ask(message, now + self.sender.single_timeout());
        let composition = Arc::new(to);
        self.eras.talk = Talk::Proposed(Box::new(Next { era, composition }), own);
        Ok(Change::Agreed)
    }

    fn next_era(&self, terms: Terms) -> Era {
        Era {
            number: self.eras.current.number.wrapping_add(1),
            terms,
        }
    }

    /// The first number of the next era, which waits until both ends know it.
    fn first_of_next(&mut self) -> u64 {
        let own = self.sender.next_number() + self.sender.lead();
        self.sender.hold_new_from(Some(own));
        own
    }

    /// A message of the peer.
    pub(super) fn on_era_message(&mut self, now: Time, payload: &[u8]) {
        let Some(message) = EraMessage::parse(payload) else {
            self.counters.rejected_packets += 1;
            return;
        };
        match message.verb {
            EraVerb::Propose {
                order,
                error,
                code,
                boundary,
            } => {
                let mut services = self.services;
                (services.order, services.error) = (order, error);
                self.on_proposal(now, message, (services, code), boundary);
            }
            EraVerb::Accept { boundary } => self.on_accepted(now, message, boundary),
            EraVerb::Refuse => self.on_refused(now, message),
            EraVerb::Confirm => {
                let attempt = self.eras.answered.map(|(attempt, _)| attempt);
                if attempt == Some(message.attempt) {
                    self.turn_to(now, message.era);
                }
            }
        }
    }

    /// One that was answered is answered as before; one that crosses ours counts if its proposer has opened the connection.
    fn on_proposal(
        &mut self,
        now: Time,
        message: EraMessage,
        (services, code): (crate::wire::Services, u8),
        boundary: u32,
    ) {
        if let Some((attempt, own)) = self.eras.answered
            && attempt == message.attempt
        {
            return self.eras.say(answer(message, own));
        }
        // Who proposes an era knows both boundaries of the one before it.
        self.turn_to(now, message.era.wrapping_sub(1));
        let is_ours = matches!(self.eras.talk, Talk::Proposed(..)) && self.opened_here;
        let turning = self.eras.is_turning(self.sender.first(), self.receiver.next());
        let is_next = message.era == self.eras.current.number.wrapping_add(1);
        if is_ours || turning || !is_next || matches!(self.eras.talk, Talk::Accepted(..)) {
            return; // of before, or it comes again
        }
        let Some(peer) = self.boundary(boundary) else {
            self.counters.rejected_packets += 1;
            return;
        };
        let terms = Terms {
            services,
            code: FecCode::from_kind(code),
        };
        let Some(composition) = self.acceptable(terms) else {
            self.eras.answered = Some((message.attempt, None));
            return self.eras.say(answer(message, None));
        };
        self.note_overtaken(now);
        self.rebase_wish(now, terms);
        let own = self.first_of_next();
        self.eras.answered = Some((message.attempt, Some(own)));
        self.eras
            .ask(answer(message, Some(own)), now + self.sender.single_timeout());
        let era = self.next_era(terms);
        let next = Next {
            era,
            composition: Arc::new(composition),
        };
        self.eras.talk = Talk::Accepted(Box::new(next), Boundaries { own, peer });
    }

    /// Nothing of the era has arrived, and what comes before it fits a window.
    fn boundary(&self, number: u32) -> Option<u64> {
        let below = self.receiver.arrived_below()?;
        let number = sequence::expand(self.receiver.next()?, number);
        (below..=below + 2 * MOST_LEAD)
            .contains(&number)
            .then_some(number)
    }

    /// What this end makes of the terms, if they are ones.
    fn acceptable(&self, terms: Terms) -> Option<ValidComposition> {
        let composition = under(terms, &self.composition).ok()?;
        let is_consented = match self.eras.consent {
            Consent::Nothing => false,
            Consent::NothingWeaker => {
                let there = self.eras.relied_on.least(Strength::of(&self.composition));
                there.is_kept_by(Strength::of(&composition))
            }
            Consent::Anything => true,
        };
        let takes = |change| matches!(change, Change::Agreed | Change::Nothing | Change::Local);
        let same = Terms::of(&composition, self.services) == terms;
        (is_consented && same && crate::composition::change(&self.composition, &composition).is_ok_and(takes))
            .then_some(composition)
    }

    fn on_accepted(&mut self, now: Time, message: EraMessage, boundary: u32) {
        if message.attempt != self.eras.attempt {
            return;
        }
        let confirmed = EraMessage {
            verb: EraVerb::Confirm,
            ..message
        };
        match &self.eras.talk {
            Talk::Proposed(next, own) if next.era.number == message.era => {
                let Some(peer) = self.boundary(boundary) else {
                    self.counters.rejected_packets += 1;
                    return;
                };
                let (next, boundaries) = (Next::clone(next), Boundaries { own: *own, peer });
                self.turn(now, next, boundaries, Why::Application);
                self.eras.say(confirmed);
            }
            // It has not heard that we know.
            _ if self.eras.current.number == message.era => self.eras.say(confirmed),
            _ => {}
        }
    }

    fn on_refused(&mut self, now: Time, message: EraMessage) {
        if message.attempt == self.eras.attempt {
            self.end_proposal(now, Why::Refused);
        }
    }

    fn note_overtaken(&mut self, now: Time) {
        self.end_proposal(now, Why::Overtaken);
    }

    /// Our proposal, if there is one, comes to nothing.
    fn end_proposal(&mut self, now: Time, why: Why) {
        if !matches!(self.eras.talk, Talk::Proposed(..)) {
            return;
        }
        if let Talk::Proposed(next, _) = std::mem::replace(&mut self.eras.talk, Talk::Nothing) {
            let key = agreed_key(&self.composition, &next.composition).unwrap_or_default();
            let read = |composition| super::change::read(key, composition);
            self.changes.record.note(Changed {
                at: now,
                key,
                from: read(&self.composition),
                to: read(&next.composition),
                why,
            });
        }
        self.eras.stop_asking();
        self.sender.hold_new_from(None);
        self.rebase_wish(now, self.eras.current.terms);
    }

    /// `terms` come, or stay: a wish that is not about terms is for those, if it goes with them.
    fn rebase_wish(&mut self, now: Time, terms: Terms) {
        let Some(mut wish) = self.eras.wanted.take() else {
            return;
        };
        if !wish.about_terms {
            match under(terms, &wish.composition) {
                Ok(rebased) => wish.composition = Arc::new(rebased),
                Err(_) => return self.note_refused(now, &wish.composition),
            }
        }
        self.eras.wanted = Some(wish);
    }

    /// The peer has heard that we accept the era `number`.
    pub(super) fn turn_to(&mut self, now: Time, number: u32) {
        if let Talk::Accepted(next, boundaries) = &self.eras.talk
            && next.era.number == number
        {
            let (next, boundaries) = (Next::clone(next), *boundaries);
            self.turn(now, next, boundaries, Why::Peer);
        }
    }

    /// The same, told by a packet of that era.
    pub(super) fn turn_to_next(&mut self, now: Time) {
        let number = self.eras.current.number.wrapping_add(1);
        self.turn_to(now, number);
    }

    /// Both ends know the boundaries: numbers from there on are of the next era.
    fn turn(&mut self, now: Time, next: Next, boundaries: Boundaries, why: Why) {
        let encoded = self.eras.current.terms.code.is_some() || next.era.terms.code.is_some();
        let before = std::mem::replace(&mut self.eras.current, next.era);
        self.eras.before = Some(Box::new((before, boundaries)));
        self.eras.talk = Talk::Nothing;
        self.eras.stop_asking();
        self.eras.encoder_due = encoded;
        self.sender.hold_new_from(None);
        self.adopt_services(now, next.composition, why);
        let to = &self.composition;
        let is_full = to.reliability.is_full();
        let decoder = next.era.terms.code.map(FecDecoder::new);
        self.receiver.turn_at(
            boundaries.peer,
            to.ordering,
            (!is_full).then_some(to.hold),
            decoder,
            is_full,
        );
    }

    /// Before a segment leaves: the first of an era is the first that is encoded as the era says, but for messages that were
    /// written before it and fill a segment: their sum would be larger.
    pub(super) fn turn_encoder(&mut self) {
        if self.eras.encoder_due {
            let own = self.eras.before.as_ref().map(|before| before.1.own);
            let is_reached = own.is_none_or(|own| self.sender.next_number() >= own);
            if is_reached && self.sender.fits_all(self.composition.payload_bytes()) {
                self.eras.encoder_due = false;
                self.encode_onwards_by(self.eras.current.terms.code);
            }
        }
    }

    /// What holds once all that is asked for has come.
    pub(crate) fn outlook(&self) -> &Arc<ValidComposition> {
        match (&self.eras.wanted, &self.eras.talk) {
            (Some(wish), _) => &wish.composition,
            (None, Talk::Proposed(next, _) | Talk::Accepted(next, _)) => &next.composition,
            (None, Talk::Nothing) => &self.composition,
        }
    }

    /// The application wants this when what is talked about has come.
    pub(super) fn wish(&mut self, to: ValidComposition) {
        let terms = |composition| Terms::of(composition, self.services);
        let about_terms = self.eras.wanted.as_ref().is_some_and(|wish| wish.about_terms)
            || terms(&to) != terms(self.outlook());
        self.eras.wanted = Some(Box::new(Wish {
            composition: Arc::new(to),
            about_terms,
        }));
    }

    /// What the application has wanted meanwhile comes next.
    pub(super) fn take_wish(&mut self, now: Time) {
        if self.eras.wanted.is_some()
            && !self.is_between_eras()
            && let Some(wish) = self.eras.wanted.take()
        {
            let to = ValidComposition::clone(&wish.composition);
            if self.reconfigure(now, to).is_err() {
                self.note_refused(now, &wish.composition); // the application has finished meanwhile
            }
        }
    }

    /// Writes a message about eras.
    pub(super) fn send_era_message(&mut self, message: EraMessage, out: &mut Datagram) -> bool {
        pdu::about_eras(self, out, message)
    }

    /// Does the packet belong here? See [`super::eras::Eras::place`].
    pub(super) fn belongs(&self, header: &Header, with_data: bool) -> bool {
        self.eras.place(header, with_data, self.receiver.next()).is_some()
    }
}

/// What is said to a proposal: its first number here, or no.
fn answer(proposal: EraMessage, own: Option<u64>) -> EraMessage {
    EraMessage {
        verb: match own {
            Some(own) => EraVerb::Accept {
                boundary: sequence::truncate(own),
            },
            None => EraVerb::Refuse,
        },
        ..proposal
    }
}
