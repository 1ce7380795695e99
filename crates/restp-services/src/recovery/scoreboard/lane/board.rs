//! What the scoreboard knows of its lanes together: which is in hand, and what of a report is news of which
//! (Iyengar, Amer and Stewart 2006; RFC 6675 §4).

use super::super::lane_id::LaneId;
use super::super::{Entry, Fate, Kind, Scoreboard};
use super::Lane;
use crate::ack::AckReport;
use crate::loss_handling::PathNews;
use crate::recovery::Feedback;
use restp_base::ranges::Ranges;
use restp_base::time::Time;
use std::ops::Range;

impl Scoreboard {
    /// One lane more. `None` when there are 255.
    pub fn open_lane(&mut self) -> Option<LaneId> {
        let id = LaneId(u8::try_from(self.lanes.len()).ok()?);
        if id == LaneId::NONE {
            return None;
        }
        self.lanes.push(Lane::new(self.duplicate_threshold()));
        Some(id)
    }

    /// The path of the lane `id` has ended, and the lane is that of a new one. What left by the old one is of no window of the new one,
    /// and tells nothing of it.
    pub fn renew_lane(&mut self, id: LaneId) {
        let (last, next) = (self.transmissions, self.next());
        let lane = self.lane_mut(id);
        lane.renew(last);
        lane.lowest = [next; 3];
        for (number, entry) in (self.first..).zip(&mut self.entries) {
            if entry.blamed == id {
                entry.blamed = LaneId::NONE;
            }
            if entry.lane == id {
                entry.kind = Kind::TakenOver;
                self.lanes[id.index()].on_retransmitted(number, *entry);
            }
        }
    }

    /// From now on segments leave by the lane `id`, and all that is asked of a lane is asked of this one.
    pub fn take_in_hand(&mut self, id: LaneId) {
        self.in_hand = id;
    }

    /// The lane in hand.
    pub fn in_hand(&self) -> LaneId {
        self.in_hand
    }

    /// What the acknowledgement that changed `all` changed for the lane in hand. With several lanes a bare duplicate says nothing
    /// of any, and a lane advances when its own lowest number has arrived, of those sent once or of those sent again (CUC,
    /// second version, of CMT).
    pub fn feedback_in_hand(&self, all: &Feedback) -> Feedback {
        if self.lanes.len() == 1 {
            return *all;
        }
        let lane = self.lane(self.in_hand);
        let news = lane.news();
        let is_in = |number: &u64| {
            self.entry(*number)
                .is_none_or(|entry| entry.fate == Fate::Delivered)
        };
        // What waits to leave again has no timer here.
        let is_out = |number: u64| {
            self.entry(number)
                .is_some_and(|entry| entry.fate == Fate::InFlight)
        };
        let is_new = lane.earlier == 0 || news.delivered + news.uncarried > 0;
        let awaited = || self.awaited(lane).filter(move |_| is_new); // what an earlier path of it left, others bring
        let arrived = awaited().filter(is_in).min();
        Feedback {
            advanced: u64::from(awaited().any(|number| is_in(&number))),
            head_arrived: arrived
                .is_some_and(|arrived| !awaited().any(|number| number < arrived && is_out(number))),
            delivered: news.delivered,
            delivered_bytes: news.delivered_bytes,
            late: news.late,
            rtt: news.rtt,
            rate: news.rate,
            ..Feedback::default()
        }
    }

    /// Does it have several lanes?
    pub(in crate::recovery) fn is_shared(&self) -> bool {
        self.lanes.len() > 1
    }

    /// The lowest number in flight of `range`, which is reported missing, of which that says something; when it left last, and
    /// whether it was sent once only. Of several lanes only of what left by the one in hand, and of what left once only when
    /// something has arrived that left there later: what other lanes bring sooner says nothing.
    pub(in crate::recovery) fn first_told_missing(&self, range: &Range<u64>) -> Option<(u64, Time, bool)> {
        let lane = self.lane(self.in_hand);
        let latest = lane.latest_arrival().max(lane.latest_delivered());
        if lane.in_flight() == 0 {
            return None; // a peer that names nothing but its last arrival costs no look at the whole window
        }
        let is_alone = !self.is_shared();
        let is_told =
            |entry: &Entry| entry.lane == self.in_hand && (entry.retransmitted() || entry.order < latest);
        let from = range.start.max(self.first).min(self.next());
        let to = range.end.clamp(from, self.next());
        let entries = self
            .entries
            .range((from - self.first) as usize..(to - self.first) as usize);
        (from..)
            .zip(entries)
            .find(|(_, entry)| entry.fate == Fate::InFlight && (is_alone || is_told(entry)))
            .map(|(number, entry)| (number, entry.sent_at, !entry.retransmitted()))
    }

    /// Notes what each of several lanes waits for before anything else.
    pub(in crate::recovery::scoreboard) fn note_lowest(&mut self) {
        if self.lanes.len() > 1 {
            for id in (0..self.lanes.len()).map(LaneId::nth) {
                Kind::ALL
                    .into_iter()
                    .for_each(|kind| _ = self.note_lowest_on(id, kind));
            }
        }
    }

    /// Notes where the window of each lane begins.
    pub(in crate::recovery::scoreboard) fn note_windows(&mut self) {
        if self.lanes.len() == 1 {
            self.lanes[0].own_before = self.first;
            return;
        }
        for lane in &mut self.lanes {
            let [once, again, _] = lane.lowest;
            lane.own_before = once.min(again);
        }
    }

    /// The lowest numbers that were open by `lane` when the last report came, of those sent once and of those sent again, but for what
    /// did not come by it.
    fn awaited(&self, lane: &Lane) -> impl Iterator<Item = u64> + use<> {
        let [once, again, taken_over] = lane.lowest;
        let next = self.next();
        [once, again.min(taken_over)]
            .into_iter()
            .filter(move |number| *number < next)
    }

    /// What the last report brought of each lane, in their order.
    pub(in crate::recovery) fn news_of_lanes(&self) -> impl Iterator<Item = PathNews> {
        self.lanes.iter().map(|lane| PathNews {
            lowest: self.awaited(lane).min().unwrap_or(0),
            highest: lane.news.span.map(|(_, highest)| highest),
        })
    }

    /// Is all that the last report named for the first time beyond `number`, and of one lane?
    pub(in crate::recovery) fn all_news_is_beyond(&self, number: u64) -> bool {
        let mut spans = self.lanes.iter().filter_map(|lane| lane.news.span);
        let first = spans.next();
        first.is_some_and(|(lowest, _)| lowest > number) && spans.next().is_none()
    }

    /// Bytes believed to be in the network, by whichever lane.
    pub fn total_in_flight_bytes(&self) -> u64 {
        self.lanes.iter().map(Lane::in_flight_bytes).sum()
    }

    /// What awaits retransmission, and the lane that lost it, from the lowest number on.
    pub fn lost_by_lane(&self) -> impl Iterator<Item = (u64, LaneId)> {
        let numbers = self.lost.iter().flat_map(Clone::clone);
        numbers.filter_map(|number| Some((number, self.lane_of(number)?)))
    }

    /// What was reported once and `report`, which names all, does not name any more.
    pub fn unreported(&self, report: &AckReport) -> Ranges {
        let mut rest = Ranges::new();
        if self.delivered.total() > report.named() {
            rest = self.delivered.clone();
            report.received.iter().for_each(|range| rest.remove(range));
        }
        rest
    }

    /// The lowest number that the lane in hand still has to get through: SND.UNA of a lane of its own.
    pub fn head(&self) -> u64 {
        if self.lanes.len() == 1 {
            return self.first;
        }
        self.lowest_of(Kind::ALL)
    }

    /// The same of the lane's own window: what it took over is of the window of who lost it.
    pub fn own_head(&self) -> u64 {
        if self.lanes.len() == 1 {
            return self.first;
        }
        self.lowest_of([Kind::Once, Kind::Again])
    }

    /// What that was when the last report came; none where nothing of it was open.
    pub fn own_head_before(&self) -> Option<u64> {
        Some(self.lane(self.in_hand).own_before).filter(|head| *head < self.next())
    }

    fn lowest_of(&self, kinds: impl IntoIterator<Item = Kind>) -> u64 {
        let lowest = kinds
            .into_iter()
            .filter_map(|kind| self.find_lowest(self.in_hand, kind));
        lowest.min().unwrap_or(self.next())
    }

    /// When the first segment beyond all that has arrived left by the lane in hand. What left before it and did not arrive says nothing
    /// about when the next answer is due.
    pub fn next_to_arrive_left_at(&self) -> Option<Time> {
        let beyond = self.delivered.last().map_or(self.first, |last| last.end);
        let mut rest = self.entries.range((beyond - self.first) as usize..);
        let next = rest.find(|entry| entry.lane == self.in_hand)?;
        Some(next.sent_at)
    }

    /// The highest number that left by the lane in hand last. With several lanes, or where more may come, of those whose
    /// arrival would be news.
    pub fn last_in_hand(&self) -> Option<u64> {
        let open = |fate| matches!(fate, Fate::InFlight | Fate::Lost);
        let is_news = |entry: &Entry| self.has_one_path() || open(entry.fate);
        let mut entries = self.entries.iter();
        let index = entries.rposition(|entry| entry.lane == self.in_hand && is_news(entry))?;
        Some(self.first + index as u64)
    }

    /// There never was another lane than the first, nor will be: where paths share the numbers one more may come.
    fn has_one_path(&self) -> bool {
        self.lanes.len() == 1 && !self.names_all
    }

    /// Nothing of the lane in hand waits for an answer.
    pub fn is_quiet(&self) -> bool {
        if self.has_one_path() {
            return self.entries.is_empty();
        }
        self.lane(self.in_hand).in_flight == 0
    }

    /// The account of a lane.
    pub fn lane(&self, id: LaneId) -> &Lane {
        &self.lanes[id.index()]
    }
    pub(in crate::recovery::scoreboard) fn lane_mut(&mut self, id: LaneId) -> &mut Lane {
        &mut self.lanes[id.index()]
    }

    /// The lane by which outstanding `number` left last.
    pub fn lane_of(&self, number: u64) -> Option<LaneId> {
        self.entry(number).map(|entry| entry.lane)
    }

    /// The lowest outstanding number of this kind that left by this lane last and is not known to have arrived. When it is delivered,
    /// the lane's own cumulative point has moved (CUC of CMT).
    fn note_lowest_on(&mut self, id: LaneId, kind: Kind) -> Option<u64> {
        let lowest = self.find_lowest(id, kind);
        let next = self.next();
        self.lane_mut(id).lowest[kind as usize] = lowest.unwrap_or(next);
        lowest
    }

    fn find_lowest(&self, id: LaneId, kind: Kind) -> Option<u64> {
        let from = self.lane(id).lowest[kind as usize].max(self.first);
        let held = |number: &u64| {
            let open = |entry: &Entry| !matches!(entry.fate, Fate::Delivered | Fate::GivenUp);
            let here = |entry: &&Entry| entry.lane == id && entry.kind == kind && open(entry);
            self.entry(*number).filter(here).is_some()
        };
        (from..self.next()).find(held)
    }

    /// The same of those sent again, by whichever lane before, or of those sent once.
    #[cfg(test)]
    pub(in crate::recovery) fn lowest_on(&mut self, id: LaneId, again: bool) -> Option<u64> {
        let kinds = if again {
            &[Kind::Again, Kind::TakenOver][..]
        } else {
            &[Kind::Once]
        };
        kinds
            .iter()
            .filter_map(|kind| self.note_lowest_on(id, *kind))
            .min()
    }
}
