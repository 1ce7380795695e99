//! What the peer reports, applied to the record (RFC 6675 §5 (A)). A report repeats what earlier ones said. The sets of
//! numbers by fate tell what is new in it, so that each segment is looked at once, however large the window is.

use super::{Entry, Fate, Lane, Scoreboard};
use crate::ack::AckReport;
use crate::recovery::{FalseReport, Feedback};
use restp_base::time::Time;
use smallvec::SmallVec;
use std::ops::Range;

/// Segments below the pointer that may still be named as duplicates: more than a window holds.
const DUPLICATES_AWAITED: u64 = 16_384;

impl Scoreboard {
    /// Applies what the peer reported.
    ///
    /// # Errors
    /// When it reports on what was never sent, or contradicts itself; nothing is changed then.
    pub fn acknowledge(&mut self, now: Time, report: &AckReport) -> Result<Feedback, FalseReport> {
        self.check(report)?;
        let mut feedback = self.apply(now, report);
        self.take_duplicates(&report.duplicates, &mut feedback);
        Ok(feedback)
    }

    /// The same of a report that is possible.
    fn apply(&mut self, now: Time, report: &AckReport) -> Feedback {
        self.lanes.iter_mut().for_each(Lane::begin_report);
        self.note_lowest();
        self.note_windows();
        let mut feedback = Feedback::default();
        if report.cumulative < self.first || self.entries.is_empty() {
            return feedback; // late, or about nothing: everything it says is known
        }
        report
            .uncarried
            .iter()
            .for_each(|number| self.on_uncarried(number));
        self.note_lowest();
        feedback.duplicate = report.cumulative == self.first;
        let waited = self.pass(now, report.cumulative, &mut feedback) && !self.names_all;
        if waited {
            // A hole was filled or skipped: the age of what waited behind it, or never came, is no round trip.
            self.forget_rtt(&mut feedback);
        }
        for range in &report.received {
            self.deliver(now, range.clone(), &mut feedback);
        }
        if waited && !report.missing.is_empty() {
            // A NAK speaks of the next hole now, and its neighbours may have come as long ago.
            self.forget_rtt(&mut feedback);
        }
        for number in report.lost.start.max(self.first)..report.lost.end {
            let once = self.entry(number).is_some_and(|entry| !entry.retransmitted());
            feedback.reported += u64::from(once && self.mark_lost(number));
        }
        // What the report answers is an encoded packet; no segment has left the network for it.
        feedback.duplicate &= feedback.reported == 0;
        let oldest = self.oldest_order();
        for lane in &mut self.lanes {
            lane.end_report(now, oldest, &self.entries);
        }
        feedback.rate = self.lane(self.in_hand).news().rate;
        feedback
    }

    fn forget_rtt(&mut self, feedback: &mut Feedback) {
        feedback.rtt = None;
        self.lanes.iter_mut().for_each(Lane::forget_rtt);
    }

    /// The segments of `numbers` have arrived twice: those of them that left again had only been late, which nobody knew so
    /// far.
    fn take_duplicates(&mut self, numbers: &Range<u64>, feedback: &mut Feedback) {
        let Some(retransmitted) = &mut self.retransmitted else {
            return;
        };
        let known = |number: &u64| *number < self.first || self.delivered.contains(*number);
        let needless: SmallVec<[u64; 4]> = retransmitted.within(numbers).flatten().filter(known).collect();
        for number in &needless {
            retransmitted.remove(&(*number..number + 1));
        }
        feedback.late += needless.len() as u64;
        feedback.lowest_duplicate = needless.first().copied();
    }

    /// Would these duplicates tell something?
    pub fn awaits_duplicates(&self, numbers: &Range<u64>) -> bool {
        let retransmitted = self.retransmitted.as_ref();
        retransmitted.is_some_and(|known| known.within(numbers).next().is_some())
    }

    /// Is the report possible? Nothing is changed.
    ///
    /// # Errors
    /// As [`Scoreboard::acknowledge`].
    pub fn check(&self, report: &AckReport) -> Result<(), FalseReport> {
        let (pointer, next) = (report.cumulative, self.next());
        let mut highest = pointer.max(report.lost.end);
        for range in &report.received {
            highest = highest.max(range.end);
        }
        for range in &report.missing {
            highest = highest.max(range.end);
        }
        if highest > next {
            return Err(FalseReport::Unsent {
                reported: highest - 1,
                next,
            });
        }
        let contradicts = |range: &Range<u64>| pointer >= self.first && range.contains(&pointer);
        if report.received.iter().any(contradicts) {
            return Err(FalseReport::Contradiction { pointer });
        }
        Ok(())
    }

    /// The peer waits for `number` no more, and the lane that it left by has not brought it.
    fn on_uncarried(&mut self, number: u64) {
        let open = |entry: &&Entry| entry.fate != Fate::Delivered;
        if let Some(entry) = self.entry(number).filter(open).copied() {
            let fate = Fate::Delivered;
            self.replace(number, Entry { fate, ..entry });
            self.lane_mut(entry.lane).on_uncarried(entry);
            self.departed = self.departed.min(self.open_segments());
        }
    }

    /// The receiver's pointer moves to `pointer`: what lies below leaves the record. Had some of it waited behind a hole, or was it
    /// skipped?
    fn pass(&mut self, now: Time, pointer: u64, feedback: &mut Feedback) -> bool {
        feedback.advanced = pointer - self.first;
        if feedback.advanced == 0 {
            return false;
        }
        feedback.head_arrived = true;
        feedback.filled_by = self.entries.front().map_or(0, |entry| entry.order);
        let mut waited = false;
        while self.first < pointer
            && let Some(entry) = self.entries.pop_front()
        {
            waited |= entry.retransmitted() || matches!(entry.fate, Fate::Delivered | Fate::GivenUp);
            let arrived = matches!(entry.fate, Fate::Delivered | Fate::Presumed);
            feedback.advanced_retransmissions += u64::from(entry.retransmitted() && !arrived);
            match entry.fate {
                Fate::Delivered => {}
                Fate::GivenUp => self.leave(self.first, entry), // perhaps it was skipped
                Fate::InFlight | Fate::Lost | Fate::Presumed => {
                    self.settle(now, self.first, entry, feedback);
                    self.leave(self.first, entry);
                }
            }
            self.outstanding_bytes -= u64::from(entry.bytes);
            self.first += 1;
        }
        self.delivered.remove_below(self.first);
        if let Some(retransmitted) = &mut self.retransmitted {
            retransmitted.remove_below(self.first.saturating_sub(DUPLICATES_AWAITED));
        }
        if let Some(encodings) = &mut self.encodings {
            encodings.release_below(self.first);
        }
        if let Some(observed) = &mut self.observed {
            observed.release_below(self.first);
        }
        if self.entries.is_empty() {
            self.release();
        }
        waited
    }

    /// The segments of `range` have arrived; some of them may be known to have.
    fn deliver(&mut self, now: Time, range: Range<u64>, feedback: &mut Feedback) {
        let mut rest = range.start.max(self.first)..range.end;
        while rest.start < rest.end
            && let Some(news) = self.delivered.first_missing(&rest)
        {
            for number in news.clone() {
                let Some(entry) = self.entry(number).copied() else {
                    break;
                };
                self.settle(now, number, entry, feedback);
                let fate = Fate::Delivered;
                self.replace(number, Entry { fate, ..entry });
            }
            rest.start = news.end;
        }
    }

    /// No transmission outstanding has a lower order than this; none when nothing is outstanding. Behind a retransmission at
    /// the front older ones may be.
    fn oldest_order(&self) -> Option<u64> {
        let front = self.entries.front()?;
        Some(if front.retransmitted() { 0 } else { front.order })
    }

    /// `entry` is delivered: into the feedback with it.
    fn settle(&mut self, now: Time, number: u64, entry: Entry, feedback: &mut Feedback) {
        let age = now.since(entry.sent_at);
        let was_late = self.is_late(number);
        let blamed = self.lane_mut(entry.lane).deliver(number, entry, age);
        let blamed = blamed.filter(|_| !was_late);
        if let Some(lane) = blamed {
            self.lane_mut(lane).on_late();
        }
        let is_late = blamed.is_some();
        feedback.late += u64::from(is_late);
        if let Some(retransmitted) = self.retransmitted.as_mut().filter(|_| is_late) {
            retransmitted.remove(&(number..number + 1));
        }
        if let (Some(lane), Some(observed)) = (blamed, &mut self.observed) {
            observed.on_late(lane, number);
        }
        feedback.delivered += 1;
        feedback.delivered_bytes += u64::from(entry.bytes);
        let is_sample = self.lane(entry.lane).has_carried(&entry);
        if !is_sample || entry.retransmitted() || matches!(entry.fate, Fate::Presumed | Fate::GivenUp) {
            return; // which of its transmissions arrived, or when, is unknown
        }
        feedback.rtt = Some(age);
        self.lane_mut(entry.lane).measure(entry.order, age);
    }
}
