//! SCTP's fast retransmit (RFC 9260 §7.2.4): a segment is lost when three reports have named later arrivals. A report counts only
//! for segments below the highest that it names for the first time (HTNA). Between paths order says nothing, so a segment is
//! judged by arrivals on its own path alone (split fast retransmit: Iyengar, Amer, Stewart, ToN 14(5), 2006), and where
//! acknowledgements are delayed in spite of holes one report stands for the packets it counts (DAC, CMT §2.5).
//!
//! What was sent again is not judged so a second time: should it be lost, the timer finds out.

use super::{DUPLICATE_THRESHOLD, Episode, Evidence, Findings, Scoreboard};
use std::collections::BTreeMap;

/// The missing reports of one path.
#[derive(Debug, Default)]
pub struct MissingReports {
    episode: Episode,
    /// Reports so far, of segments that have any.
    counts: BTreeMap<u64, u64>,
}

impl MissingReports {
    pub(super) fn is_active(&self) -> bool {
        self.episode.active
    }

    pub(super) fn on_feedback(&mut self, board: &mut Scoreboard, evidence: &Evidence<'_>) -> Findings {
        let mut findings = Findings {
            ended: self.episode.end(board),
            ..Findings::default()
        };
        self.counts = self.counts.split_off(&board.first());
        let lane = board.in_hand();
        let Some((lowest, highest)) = board.lane(lane).news().span else {
            return findings;
        };
        let is_mixed = board.lanes_with_news() > 1;
        let packets = u64::from(evidence.report.arrivals.max(1));
        let mut from = board.first();
        while let Some(number) = board.first_open(&(from..highest)) {
            from = number + 1;
            let is_here = board.lane_of(number) == Some(lane);
            let is_once = board.in_flight_since(number).is_some_and(|(_, once)| once);
            if !is_here || !is_once {
                continue;
            }
            let is_across = lowest < number;
            let count = self.counts.entry(number).or_default();
            *count += if is_mixed || is_across { 1 } else { packets };
            if *count >= DUPLICATE_THRESHOLD {
                self.counts.remove(&number);
                findings.lost += u64::from(board.mark_lost(number));
            }
        }
        findings.began = findings.lost > 0 && self.episode.begin(board, false);
        findings.urgent = findings.lost > 0;
        findings
    }

    /// Reports so far that `number` is missing.
    #[cfg(test)]
    pub(super) fn count(&self, number: u64) -> u64 {
        self.counts.get(&number).copied().unwrap_or_default()
    }

    pub(super) fn on_timeout(&mut self) {
        *self = MissingReports::default();
    }
}

#[cfg(test)]
mod tests;
