//! Services of a running connection change (docs/adr/0007): what this end decides alone changes at once.

use super::{Connection, State, acknowledgement, outgoing};
use crate::composition::{Composition, KEYS, Strength, ValidComposition, change};
use restp_base::flow::{Change, ChangeError};
use restp_base::observe::{Changed, Why};
use restp_base::time::Time;
use restp_services::ack::AckTimer;
use restp_services::congestion::Controller;
use restp_services::loss_handling::LossSignal;
use restp_services::recovery::Recovery;
use restp_services::sender::SenderChange;
use std::sync::Arc;

/// Changes kept for an observer that does not ask; the oldest go first.
const MOST_CHANGES: usize = 256;

/// What changed since an observer last asked.
#[derive(Debug, Default)]
pub(crate) struct Record(Vec<Changed>);

impl Record {
    pub(crate) fn note(&mut self, changed: Changed) {
        if self.0.len() >= MOST_CHANGES {
            self.0.remove(0);
        }
        self.0.push(changed);
    }

    /// Everything that `to` has otherwise than `from`.
    pub(crate) fn note_all(&mut self, now: Time, from: &Composition, to: &Composition, why: Why) {
        for key in KEYS.iter().filter(|key| key.read(from) != key.read(to)) {
            self.note(Changed {
                at: now,
                key: key.name,
                from: read(key.name, from),
                to: read(key.name, to),
                why,
            });
        }
    }

    /// Moves it out.
    pub(crate) fn take(&mut self, into: &mut Vec<Changed>) {
        into.append(&mut self.0);
    }
}

/// What changed of a connection.
#[derive(Debug, Default)]
pub(super) struct Changes {
    pub(super) record: Record,
    /// What the controller did at the last look, once somebody looks.
    mode: Option<&'static str>,
}

impl Connection {
    /// Goes on with the services of `to`.
    pub(crate) fn reconfigure(&mut self, now: Time, to: ValidComposition) -> Result<Change, ChangeError> {
        if self.state != State::Established || self.release.local_fin().is_some() {
            return Err(ChangeError::NotRunning);
        }
        let change = change(&self.composition, &to)?;
        if self.is_between_eras() {
            self.wish(to);
            return Ok(Change::Agreed);
        }
        match change {
            Change::Nothing => {}
            Change::Local => self.change_alone(now, to),
            Change::Agreed => return self.propose(now, to),
        }
        Ok(change)
    }

    /// The application relies on what it has asked for last, whether it is there already, comes, or never does.
    pub(crate) fn rely_on(&mut self, asked: Strength) {
        self.eras.relied_on = asked;
    }
    pub(crate) fn relied_on(&self) -> Strength {
        self.eras.relied_on
    }

    fn change_alone(&mut self, now: Time, to: ValidComposition) {
        let from = self.composition.clone();
        self.adopt_services(now, Arc::new(to), Why::Application);
        if self.has_other_encoder(&from) {
            self.renew_encoder();
        }
        let hold = (!self.composition.reliability.is_full()).then_some(self.composition.hold);
        self.receiver.hold_for(hold);
    }

    /// Replaces what holds for everything outstanding: how losses are found and what for they are taken, the window, when
    /// acknowledgements are due.
    pub(super) fn adopt_services(&mut self, now: Time, to: Arc<ValidComposition>, why: Why) {
        let from = std::mem::replace(&mut self.composition, to);
        self.changes.record.note_all(now, &from, &self.composition, why);
        self.sender
            .change(now, sender_change(&from, self, self.sender.window_bytes()));
        if from.send_buffer_bytes != self.composition.send_buffer_bytes
            && let Some(streams) = self.sender.streams_mut()
        {
            streams.share_out(self.composition.send_buffer_bytes);
        }
        let to = &self.composition;
        if (from.ack.schedule, from.ack.repeat) != (to.ack.schedule, to.ack.repeat) {
            self.receiver
                .acknowledge_by(AckTimer::new(to.ack.schedule, to.ack.repeat));
        }
    }

    /// Encoded packets are made by other numbers, though of the same code.
    fn has_other_encoder(&self, from: &Composition) -> bool {
        let to = &self.composition;
        to.reliability.encodes() && (from.fec != to.fec || from.hold.deadline != to.hold.deadline)
    }

    /// What the application wanted does not go with what holds now.
    pub(super) fn note_refused(&mut self, now: Time, wanted: &Composition) {
        let from = self.composition.clone();
        if let Some(key) = KEYS.iter().find(|key| key.read(&from) != key.read(wanted)) {
            self.changes.record.note(Changed {
                at: now,
                key: key.name,
                from: read(key.name, &from),
                to: read(key.name, wanted),
                why: Why::Refused,
            });
        }
    }

    /// See [`restp_base::flow::Flow::take_changes`].
    pub(crate) fn take_changes(&mut self, now: Time, into: &mut Vec<Changed>) {
        self.changes.record.take(into);
        let mode = self.composition.congestion.adapts().then(|| self.sender.mode());
        let before = std::mem::replace(&mut self.changes.mode, mode);
        if let (Some(from), Some(to)) = (before, mode)
            && from != to
        {
            into.push(Changed {
                at: now,
                key: "mode",
                from: from.into(),
                to: to.into(),
                why: Why::Path,
            });
        }
    }
}

/// What `composition` has for the key of that name.
pub(super) fn read(name: &str, composition: &Composition) -> String {
    let key = KEYS.iter().find(|key| key.name == name);
    key.and_then(|key| key.read(composition))
        .unwrap_or_else(|| "none".into())
}

/// What the sender of `c` has otherwise than with `from`. A controller that is new begins as after a silence: in slow start, up to
/// the `window` that the last one had.
fn sender_change(from: &Composition, c: &Connection, window: u64) -> SenderChange {
    let to = &c.composition;
    let careful = |of: &Composition| of.loss_handling.reaction(LossSignal::Feedback).reduce_window;
    let finds = |of: &Composition| {
        let fast = of.congestion.fast_recovery();
        (of.recovery, fast, careful(of), acknowledgement::evidence(of))
    };
    let (recovery, fast, episodes_cost, evidence) = finds(to);
    let finds_otherwise = finds(from) != (recovery, fast, episodes_cost, evidence);
    SenderChange {
        parameters: outgoing::parameters(to, c.services),
        rto: to.rto.allowing(to.ack.unmeasured_wait()),
        recovery: finds_otherwise.then(|| Recovery::new(recovery, fast, episodes_cost, evidence)),
        controller: (from.congestion != to.congestion).then(|| resuming(to, window)),
    }
}

/// The controller of `composition`, which knows that the path bore a window of `window` bytes.
fn resuming(composition: &Composition, window: u64) -> Controller {
    let mut choice = composition.congestion.clone();
    if let Some(common) = choice.common() {
        common.initial_threshold_bytes = common.initial_threshold_bytes.min(window);
    }
    choice.build(u64::from(composition.segment_bytes))
}
