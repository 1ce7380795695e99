//! Recovery from selective evidence: the pipe rule of RFC 6675 (OP-44, TC §3.2) over SACK, NAK or SNACK. What may be
//! sent is the window less the pipe, which the scoreboard counts. A segment is lost
//!
//! - when three segments that left later are reported received. "Left later" is the order of transmission, so a
//!   retransmission that is lost again is found the same way, without waiting for the timer (RFC 6675 leaves that case to the
//!   timer; RFC 8985 §1 explains why not to; [`LostRetransmissions`] has both);
//! - when the receiver names it missing, without any threshold, if [`Holes`] says so.

mod parameters;

pub use parameters::{Again, Holes, LostRetransmissions, PipeParameters};

use super::arrivals::Arrivals;
use super::reordering::{Reordering, ReorderingWindow};
use super::spurious::TimeoutUnderTest;
use super::{Episode, Evidence, Feedback, LossUpdate, RttEstimator, Scoreboard};
use crate::ack::{AckReport, NakMode};
use restp_base::ranges::Ranges;
use restp_base::time::{Duration, Time};
use std::collections::VecDeque;
use std::ops::Range;

/// State of the pipe rule.
#[derive(Debug)]
pub struct Pipe {
    parameters: PipeParameters,
    episode: Episode,
    arrivals: Arrivals,
    /// Holes reported so far above the pointer, repaired or not.
    named: Ranges,
    /// Those of their numbers whose first transmission is taken for lost, unless it had arrived.
    asked: Ranges,
    /// First transmissions below this number are judged.
    judged: u64,
    /// Retransmissions whose fate is open, in the order they left: (order, number).
    retransmissions: VecDeque<(u64, u64)>,
    reordering: ReorderingWindow,
    /// When the first segment that is overtaken and may still come counts as lost.
    ripe_at: Option<Time>,
    /// A timeout that may have been needless.
    timeout: Option<TimeoutUnderTest>,
}

impl Pipe {
    /// Nothing was reported yet.
    pub fn new(parameters: PipeParameters) -> Self {
        Pipe {
            parameters,
            episode: Episode::default(),
            arrivals: Arrivals::default(),
            named: Ranges::new(),
            asked: Ranges::new(),
            judged: 0,
            retransmissions: VecDeque::new(),
            reordering: ReorderingWindow::default(),
            ripe_at: None,
            timeout: None,
        }
    }

    pub(super) fn is_active(&self) -> bool {
        self.episode.active
    }

    pub(super) fn finds_lost_retransmissions_in_time(&self) -> bool {
        self.parameters.again == Again::RoundTrip
    }

    /// The lost segment `number` left again as transmission `order`.
    pub fn on_retransmitted(&mut self, now: Time, order: u64, number: u64) {
        if let Some(timeout) = &mut self.timeout {
            timeout.on_retransmitted(now);
        }
        if self.judges() && self.parameters.again != Again::Timer {
            self.retransmissions.push_back((order, number));
        }
    }

    pub(super) fn on_feedback(&mut self, board: &mut Scoreboard, evidence: &Evidence<'_>) -> LossUpdate {
        let feedback = evidence.feedback;
        let mut update = LossUpdate::default();
        if evidence.report.cumulative < board.first() {
            // A later report has overtaken it: what it names may be repaired, but a duplicate is told once.
            let is_told = self.parameters.reordering != Reordering::Threshold && feedback.late > 0;
            return if is_told {
                self.acquit(board, feedback, update)
            } else {
                update
            };
        }
        // Nothing of this lane need be acknowledged for that: what was lost may have left again by another.
        update.ended = self.episode.end(board.own_head());
        if feedback.advanced > 0 {
            self.named.remove_below(board.first());
            self.asked.remove_below(board.first());
        }
        self.arrivals.note(board, feedback);
        // Below what a timeout has answered duplicates may stem from its own retransmissions (RFC 6582 §4.1).
        let repairs = |pointer| !update.ended && !self.episode.active && pointer < self.episode.recover;
        let doubtful = repairs(board.first());
        if repairs(board.first() - feedback.advanced) && !doubtful {
            self.arrivals = Arrivals::default();
        }
        let presumed = self.presume_behind_one_hole(board, evidence.report);
        let ripened = self.ripe_at.take_if(|at| *at <= evidence.now).is_some();
        if (feedback.delivered > 0 || presumed || ripened) && self.judges() {
            update.lost = self.judge(board, evidence);
        }
        match self.parameters.holes {
            Holes::Overtaken => {
                update.began = update.lost > 0 && self.episode.begin(board, board.own_head(), true)
            }
            Holes::InRecovery => self.on_named_in_recovery(board, evidence, &mut update),
            Holes::AtOnce => {
                for hole in holes(evidence.report) {
                    self.note_hole(board, &hole);
                    update.lost += self.ask(board, hole, evidence);
                }
                update.began = update.lost > 0 && self.episode.begin(board, board.own_head(), true);
            }
        }
        update.urgent = update.began;
        if self.parameters.holes != Holes::Overtaken && self.parameters.leaves_arrivals_out && !doubtful {
            self.arrivals.credit(board);
        }
        let update = self.episode.add_reported(board, feedback, update);
        if self.parameters.reordering == Reordering::Threshold {
            update
        } else if let Some(timeout) = self.needless_timeout(evidence) {
            self.take_back(timeout, board, update)
        } else {
            self.acquit(board, feedback, update)
        }
    }

    /// Segments declared lost may prove to have been late.
    fn acquit(&mut self, board: &Scoreboard, feedback: &Feedback, update: LossUpdate) -> LossUpdate {
        self.reordering.on_feedback(board, feedback.late, update.ended);
        let restored = self.episode.acquit(feedback, update.lost);
        LossUpdate {
            spurious: feedback.late,
            restored,
            ended: update.ended || restored && self.episode.end_at_once(board.own_head()),
            ..update
        }
    }

    /// The first acknowledgement after a timeout tells whether what it retransmitted was only late (RFC 5682, RFC 3522).
    fn needless_timeout(&mut self, evidence: &Evidence<'_>) -> Option<TimeoutUnderTest> {
        let timeout = self.timeout.take_if(|_| evidence.feedback.advanced > 0)?;
        timeout.was_needless(evidence).then_some(timeout)
    }

    /// The last timeout was needless: what it took for lost is on its way. Among that may be retransmissions of a loss before
    /// the timeout; those are judged like others.
    fn take_back(
        &mut self,
        timeout: TimeoutUnderTest,
        board: &mut Scoreboard,
        update: LossUpdate,
    ) -> LossUpdate {
        let mut retransmissions = board.restore_lost();
        if self.judges() && self.parameters.again != Again::Timer {
            retransmissions.extend(self.retransmissions.drain(..));
            retransmissions.sort_unstable();
            self.retransmissions = retransmissions.into();
        }
        self.judged = board.first();
        self.episode = Episode::default();
        LossUpdate {
            restored: timeout.cuts_window,
            ..update
        }
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        self.ripe_at
    }

    /// Time has passed, and nothing was reported: what was overtaken, or named, is judged once more.
    pub(super) fn on_deadline(
        &mut self,
        board: &mut Scoreboard,
        now: Time,
        rtt: &RttEstimator,
    ) -> LossUpdate {
        let report = AckReport {
            missing: self.named.iter().cloned().collect(),
            ..AckReport::pointer(board.first())
        };
        let evidence = Evidence {
            now,
            report: &report,
            feedback: &Feedback::default(),
            rtt,
        };
        self.on_feedback(board, &evidence)
    }

    /// May what left at `since` not come any more, although it was only reordered? If it may, when not.
    fn is_ripe(&mut self, since: Time, evidence: &Evidence<'_>) -> bool {
        match self.parameters.reordering {
            Reordering::Threshold => true,
            Reordering::Adaptive | Reordering::Rack => {
                let age = self.reordering.least_age(evidence.rtt);
                self.has_age(since, age, evidence)
            }
        }
    }

    /// Did it leave `age` ago? If not, it is looked at again then.
    fn has_age(&mut self, since: Time, age: Option<Duration>, evidence: &Evidence<'_>) -> bool {
        let Some(at) = age.map(|age| since + age).filter(|at| *at > evidence.now) else {
            return true;
        };
        self.ripe_at = Some(self.ripe_at.map_or(at, |first| first.min(at)));
        false
    }

    /// Named holes wait for the third duplicate, which condemns the segment at the pointer whether it was named or not
    /// (TC §3.2.1.2). From then on they wait no more.
    fn on_named_in_recovery(
        &mut self,
        board: &mut Scoreboard,
        evidence: &Evidence<'_>,
        update: &mut LossUpdate,
    ) {
        for hole in &evidence.report.missing {
            self.note_hole(board, hole);
        }
        let third = self.arrivals.duplicates() >= board.duplicate_threshold()
            && self.is_lost_by_now(board, board.first(), evidence);
        if (third || update.lost > 0) && self.episode.begin(board, board.own_head(), true) {
            update.began = true;
            update.lost += u64::from(third && board.mark_lost(board.first()));
            for hole in self.named.clone().iter() {
                update.lost += self.ask(board, hole.clone(), evidence);
            }
        } else if self.episode.active || self.repairs_timeout(board) {
            for hole in &evidence.report.missing {
                update.lost += self.ask(board, hole.clone(), evidence);
            }
            update.lost += self.partial(board, evidence);
        }
    }

    /// What a timeout has retransmitted is not repaired yet, and retransmissions are judged by their age.
    fn repairs_timeout(&self, board: &Scoreboard) -> bool {
        self.ages() && board.own_head() < self.episode.recover
    }

    /// The pointer stops at a hole that nobody names, because its NAK was lost: a partial acknowledgement names it
    /// (RFC 6582 §3.2 (5)).
    fn partial(&mut self, board: &mut Scoreboard, evidence: &Evidence<'_>) -> u64 {
        let stops = evidence.feedback.advanced > 0 && self.arrivals.above() > 0;
        let first = board.first();
        if stops && self.parameters.single.is_some() && evidence.report.missing.is_empty() {
            self.ask(board, first..first + 1, evidence)
        } else {
            0
        }
    }

    /// A SNACK of one hole has no vector: it shows one segment behind the hole, however many came (OP-16). Each duplicate
    /// is one more, and with no other hole they lie in a row. Without this nothing would ever overtake a lost retransmission.
    /// True when something was presumed.
    fn presume_behind_one_hole(&self, board: &mut Scoreboard, report: &AckReport) -> bool {
        let [hole] = &report.missing[..] else { return false };
        if self.parameters.holes == Holes::Overtaken || !self.judges() {
            return false;
        }
        let unseen = self.arrivals.above().saturating_sub(board.arrived());
        let before = board.arrived();
        for _ in 0..unseen {
            let Some(number) = board.first_open(&(hole.end..board.next())) else {
                break;
            };
            board.presume(number..number + 1);
        }
        board.arrived() > before
    }

    /// A hole is reported: what was presumed of it was wrong. Where every hole is near certain to be reported, all
    /// between it and its neighbours has arrived (TC §3.2.2, observation 2).
    fn note_hole(&mut self, board: &mut Scoreboard, hole: &Range<u64>) {
        let hole = hole.start.max(board.first())..hole.end;
        if hole.is_empty() {
            return;
        }
        if board.doubt(&hole) {
            self.asked.remove(&hole);
        }
        self.named.insert(hole.clone());
        if self.parameters.single != Some(NakMode::QuasiReliable) {
            return;
        }
        if let Some(below) = self.named.below(hole.start) {
            board.presume(below.end..hole.start);
        }
        if let Some(above) = self.named.above(hole.end) {
            board.presume(hole.end..above.start);
        }
    }

    /// Takes what is in flight of a reported hole for lost: what left once, and what left again long enough ago. Where
    /// age says nothing, one look at a number is enough: after it, the number has never left only once. Of several lanes the
    /// one in hand says nothing yet of what left by others, or after all that it has brought.
    fn ask(&mut self, board: &mut Scoreboard, hole: Range<u64>, evidence: &Evidence<'_>) -> u64 {
        let reordering_wait = self.reordering_wait(evidence.rtt);
        let mut rest = hole.start.max(board.first())..hole.end;
        let mut lost = 0;
        while let Some(mut news) = self.asked.first_missing(&rest) {
            rest.start = news.end;
            let all = news.clone();
            while let Some((number, since, once)) = board.first_told_missing(&news) {
                if once && !self.is_ripe(since, evidence) {
                    return lost; // nor is what left later
                }
                let due = once
                    || reordering_wait
                        .is_some_and(|reordering_wait| evidence.now.since(since) >= reordering_wait);
                lost += u64::from(due && board.mark_lost(number));
                if !self.ages() && board.is_shared() {
                    self.asked.insert(number..number + 1);
                }
                news.start = number + 1;
            }
            if !self.ages() && !board.is_shared() {
                self.asked.insert(all);
            }
        }
        lost
    }

    /// Least age of a retransmission that leaves once more because its hole is still reported.
    fn reordering_wait(&self, rtt: &RttEstimator) -> Option<Duration> {
        match self.parameters.again {
            Again::Overtaken | Again::Timer => None,
            Again::Late => rtt.timeout(),
            Again::RoundTrip => rtt.smoothed(),
        }
    }

    /// Is a retransmission judged by its age?
    fn ages(&self) -> bool {
        matches!(self.parameters.again, Again::Late | Again::RoundTrip)
    }

    /// Does overtaking tell? Not where most of what arrives is never reported: a NAK names two neighbours, no more.
    fn judges(&self) -> bool {
        self.parameters.again != Again::RoundTrip && self.parameters.single.is_none()
    }

    /// Marks what three later transmissions have overtaken, or, by time, one.
    fn judge(&mut self, board: &mut Scoreboard, evidence: &Evidence<'_>) -> u64 {
        let mut lost = 0;
        self.judged = self.judged.max(board.first());
        while let Some((order, once)) = board.order_and_once(self.judged) {
            if once {
                if !self.is_overtaken(board, order, self.judged, evidence) {
                    break;
                }
                lost += u64::from(board.mark_lost(self.judged));
            }
            self.judged += 1;
        }
        while let Some(&(order, number)) = self.retransmissions.front() {
            let open = board.order_in_flight(number) == Some(order);
            if open && !self.is_overtaken(board, order, number, evidence) {
                break;
            }
            if open {
                lost += u64::from(board.mark_lost(number));
            }
            self.retransmissions.pop_front();
        }
        lost
    }

    /// Is `number`, transmission `order`, overtaken, and too old to come?
    fn is_overtaken(&mut self, board: &Scoreboard, order: u64, number: u64, evidence: &Evidence<'_>) -> bool {
        if order < board.overtaken_below() {
            return self.is_lost_by_now(board, number, evidence);
        }
        let by_time = self.parameters.reordering == Reordering::Rack && order < board.latest_arrival();
        by_time
            && board.in_flight_since(number).is_none_or(|(since, _)| {
                let age = self.reordering.least_age_by_time(evidence.rtt);
                self.has_age(since, age, evidence)
            })
    }

    /// Is overtaken `number` too old to come, if it is in flight?
    fn is_lost_by_now(&mut self, board: &Scoreboard, number: u64, evidence: &Evidence<'_>) -> bool {
        let since = board.in_flight_since(number);
        since.is_none_or(|(since, _)| self.is_ripe(since, evidence))
    }

    pub(super) fn on_timeout(&mut self, board: &Scoreboard, cuts_window: bool) {
        self.retransmissions = VecDeque::new();
        self.ripe_at = None;
        self.arrivals = Arrivals::default();
        self.named = Ranges::new();
        self.asked = Ranges::new();
        if self.parameters.reordering != Reordering::Threshold {
            self.timeout.get_or_insert_default().cuts_window |= cuts_window;
        }
        self.episode.start_over(board);
    }
}

/// The holes of a report: those it names, or what lies between the blocks.
fn holes(report: &AckReport) -> Vec<Range<u64>> {
    if !report.missing.is_empty() {
        return report.missing.to_vec();
    }
    let mut received = Ranges::new();
    report.received.iter().for_each(|block| {
        received.insert(block.clone());
    });
    received.holes(report.cumulative).collect()
}

#[cfg(test)]
mod tests;
