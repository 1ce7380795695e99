//! SCTP's fast retransmit (RFC 9260 §7.2.4): a segment is lost when three reports have named later arrivals. A report counts only
//! for segments below the highest that it names for the first time (HTNA). Where several paths share the numbers, what a report
//! says of a segment depends on whose arrivals it names ([`Differentiation`]): of a loss, of lateness, or nothing. And where
//! acknowledgements are delayed in spite of holes one report stands for the packets it counts (DAC, CMT §2.5).
//!
//! What was sent again is not judged so a second time: should it be lost, the timer finds out.

use super::{DUPLICATE_THRESHOLD, Episode, Evidence, LossUpdate, Scoreboard};
use crate::loss_handling::{Differentiation, Missing, PathNews};
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// The missing reports of one path.
#[derive(Debug)]
pub struct MissingReports {
    differentiation: Differentiation,
    episode: Episode,
    /// The same of what is late: it costs nothing, but a copy leaves at once once in a window.
    lateness: Episode,
    /// Reports of other paths after which a segment is late.
    late_after: u64,
    /// Reports so far, of segments that have any.
    counts: BTreeMap<u64, Counts>,
}

/// Reports of one segment (Count_IAP and Count_IP of SMT §3.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) lost: u64,
    pub(super) late: u64,
}

impl Default for MissingReports {
    fn default() -> Self {
        MissingReports::new(Differentiation::Split)
    }
}

impl MissingReports {
    /// Of a path whose losses are told in this way.
    pub fn new(differentiation: Differentiation) -> Self {
        MissingReports {
            differentiation,
            episode: Episode::default(),
            lateness: Episode::default(),
            late_after: DUPLICATE_THRESHOLD,
            counts: BTreeMap::new(),
        }
    }

    pub(super) fn is_active(&self) -> bool {
        self.episode.active
    }

    pub(super) fn expect_late_after(&mut self, reports: u64) {
        self.late_after = reports;
    }

    pub(super) fn on_feedback(&mut self, board: &mut Scoreboard, evidence: &Evidence<'_>) -> LossUpdate {
        let mut update = LossUpdate {
            ended: self.episode.end(board.head()),
            ..LossUpdate::default()
        };
        self.lateness.end(board.head());
        self.counts = self.counts.split_off(&board.first());
        let news: SmallVec<[PathNews; 4]> = board.news_of_lanes().collect();
        let own = board.in_hand().index();
        let highest = match self.differentiation {
            Differentiation::Split => news[own].highest,
            _ => news.iter().filter_map(|path| path.highest).max(),
        };
        let Some(highest) = highest else {
            return update;
        };
        let packets = u64::from(evidence.report.arrivals.max(1));
        let mut from = board.first();
        while let Some(number) = board.first_open(&(from..highest)) {
            from = number + 1;
            let is_here = board.lane_of(number) == Some(board.in_hand());
            let is_once = board.in_flight_since(number).is_some_and(|(_, once)| once);
            if is_here
                && is_once
                && let Some(missing) = self.differentiation.says(number, own, &news)
            {
                let reports = if board.all_news_is_beyond(number) {
                    packets
                } else {
                    1
                };
                self.count(board, number, missing, reports, &mut update);
            }
        }
        self.conclude(board, &mut update);
        update
    }

    /// So many reports more say of `number` that it is `missing` (SMT §3.4: a loss first).
    fn count(
        &mut self,
        board: &mut Scoreboard,
        number: u64,
        missing: Missing,
        reports: u64,
        update: &mut LossUpdate,
    ) {
        let counts = self.counts.entry(number).or_default();
        match missing {
            Missing::Lost => counts.lost += reports,
            Missing::Late => counts.late += reports,
        }
        if counts.lost >= DUPLICATE_THRESHOLD {
            update.lost += u64::from(board.mark_lost(number));
        } else if counts.late >= self.late_after {
            update.late += u64::from(board.mark_late(number));
        } else {
            return;
        }
        self.counts.remove(&number);
    }

    /// A window is cut once for all that it lost. Where nothing tells paths apart it is cut as often as something leaves again.
    fn conclude(&mut self, board: &Scoreboard, update: &mut LossUpdate) {
        let has_lost = update.lost > 0;
        update.began = match self.differentiation {
            Differentiation::Nothing => has_lost,
            _ => has_lost && self.episode.begin(board, board.head(), false),
        };
        let begins_late = update.late > 0 && self.lateness.begin(board, board.head(), false);
        update.urgent = has_lost || begins_late;
    }

    /// Reports so far that `number` is missing.
    #[cfg(test)]
    pub(super) fn counts_of(&self, number: u64) -> Counts {
        self.counts.get(&number).copied().unwrap_or_default()
    }

    pub(super) fn on_timeout(&mut self) {
        *self = MissingReports::new(self.differentiation);
    }
}

#[cfg(test)]
mod tests;
