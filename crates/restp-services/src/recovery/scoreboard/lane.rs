//! What the record knows of one lane: a path that segments leave by, with a window of its own. All lanes share one
//! number space. What is overtaken, and what is new, each lane is asked for itself: between lanes order says nothing
//! (split fast retransmit of CMT: Iyengar, Amer and Stewart, ToN 14(5), 2006).

use super::{Entry, Fate, LostSegment, Scoreboard};
use crate::ack::AckReport;
use crate::loss_handling::PathNews;
use crate::recovery::delivery_rate::DeliveryRate;
use crate::recovery::{Feedback, RateSample};
use restp_base::ranges::Ranges;
use restp_base::time::{Duration, Time};
use smallvec::{SmallVec, smallvec};
use std::collections::VecDeque;
use std::ops::Range;

/// Which lane of a board.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct LaneId(u8);

impl LaneId {
    /// The lane that every board has.
    pub const FIRST: LaneId = LaneId(0);

    /// Its position among the lanes of a board, from 0.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// The lane at `index`, which is below 256.
    pub(crate) fn nth(index: usize) -> Self {
        debug_assert!(index <= usize::from(u8::MAX), "a board has 256 lanes at most");
        LaneId(index as u8)
    }
}

/// What the last acknowledgement reported of one lane for the first time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneNews {
    /// Segments delivered.
    pub delivered: u64,
    /// Their bytes.
    pub delivered_bytes: u64,
    /// The lowest and the highest of their numbers.
    pub span: Option<(u64, u64)>,
    /// Those of them that were declared lost and had only been late: the report came before they left again, or sooner
    /// after that than any answer on the lane of the retransmission.
    pub late: u64,
    /// Round trip of the latest of them that was sent once and waited behind no hole.
    pub rtt: Option<Duration>,
    /// How fast the lane delivers.
    pub rate: Option<RateSample>,
    /// Segments that the peer has rebuilt, or given up: they did not come by the lane.
    pub uncarried: u64,
    /// When the first of them left that left after everything that has come.
    pub uncarried_since: Option<Time>,
}

/// The account of one lane.
#[derive(Clone, Debug)]
pub struct Lane {
    in_flight: u64,
    in_flight_bytes: u64,
    lost: u64,
    /// Highest `order`s reported delivered, the highest first; as many as the duplicate threshold.
    latest_delivered: SmallVec<[u64; 3]>,
    /// Order of the latest transmission that has arrived, retransmissions included (RACK.segment of RFC 8985 §6.2).
    latest_arrival: u64,
    min_rtt: Option<Duration>,
    rate: DeliveryRate,
    news: LaneNews,
    losses: Vec<LostSegment>,
    /// Below these numbers nothing is outstanding that left by this lane last: once, and again.
    lowest: [u64; 2],
    /// The lowest numbers that were open when the last report came, of those sent once and of those sent again.
    awaited: [Option<u64>; 2],
}

impl Lane {
    pub(super) fn new(duplicate_threshold: u64) -> Self {
        Lane {
            in_flight: 0,
            in_flight_bytes: 0,
            lost: 0,
            latest_delivered: smallvec![0; duplicate_threshold.max(1) as usize],
            latest_arrival: 0,
            min_rtt: None,
            rate: DeliveryRate::new(),
            news: LaneNews::default(),
            losses: Vec::new(),
            lowest: [0; 2],
            awaited: [None; 2],
        }
    }

    /// Segments believed to be in the network.
    pub fn in_flight(&self) -> u64 {
        self.in_flight
    }
    /// Their bytes.
    pub fn in_flight_bytes(&self) -> u64 {
        self.in_flight_bytes
    }
    /// Segments declared lost and not sent again yet.
    pub fn lost(&self) -> u64 {
        self.lost
    }
    /// What the last [`Scoreboard::acknowledge`] delivered.
    pub fn news(&self) -> LaneNews {
        self.news
    }
    /// Segments that feedback found lost since the last [`Scoreboard::acknowledge`].
    pub fn losses(&self) -> &[LostSegment] {
        &self.losses
    }
    /// Order of the latest transmission reported delivered.
    pub fn latest_delivered(&self) -> u64 {
        self.latest_delivered[0]
    }
    /// The same, retransmissions included whose answer cannot be one to an earlier transmission.
    pub fn latest_arrival(&self) -> u64 {
        self.latest_arrival
    }
    pub(super) fn duplicate_threshold(&self) -> u64 {
        self.latest_delivered.len() as u64
    }
    /// A transmission of which as many later ones as the duplicate threshold are reported delivered has a lower order.
    pub fn overtaken_below(&self) -> u64 {
        self.latest_delivered[self.latest_delivered.len() - 1]
    }

    /// `entry` belongs to this lane now.
    pub(super) fn enter(&mut self, entry: Entry) {
        match entry.fate {
            Fate::InFlight => {
                self.in_flight += 1;
                self.in_flight_bytes += u64::from(entry.bytes);
            }
            Fate::Lost => self.lost += 1,
            Fate::Delivered | Fate::Presumed | Fate::GivenUp => {}
        }
    }

    /// `entry` does not belong to this lane any more, or has another fate.
    pub(super) fn leave(&mut self, entry: Entry) {
        match entry.fate {
            Fate::InFlight => {
                self.in_flight -= 1;
                self.in_flight_bytes -= u64::from(entry.bytes);
            }
            Fate::Lost => self.lost -= 1,
            Fate::Delivered | Fate::Presumed | Fate::GivenUp => {}
        }
    }

    /// Nothing of this lane is outstanding any more.
    pub(super) fn forget(&mut self) {
        (self.in_flight, self.in_flight_bytes, self.lost) = (0, 0, 0);
    }

    /// A transmission leaves by this lane; it is not counted yet.
    pub(super) fn on_sent(&mut self, entry: Entry) {
        self.rate
            .on_sent(entry.sent_at, entry.order, self.in_flight_bytes);
    }
    /// Something other than the window limits what is in flight.
    pub(super) fn limit_by_application(&mut self) {
        self.rate.on_application_limited(self.in_flight_bytes);
    }

    /// A new acknowledgement has come.
    pub(super) fn begin_report(&mut self) {
        self.news = LaneNews::default();
        self.losses.clear();
        self.awaited = [None; 2];
    }
    /// All of it is booked. `oldest`: no transmission outstanding has a lower order.
    pub(super) fn end_report(&mut self, now: Time, oldest: Option<u64>, entries: &VecDeque<Entry>) {
        self.news.rate = self.rate.sample(now, oldest);
        if self.rate.is_crowded(entries.len()) {
            // What left by other lanes keeps a snapshot too many, no more.
            let open = |entry: &&Entry| matches!(entry.fate, Fate::InFlight | Fate::Presumed);
            self.rate
                .keep_only(entries.iter().filter(open).map(|entry| entry.order));
        }
    }
    /// What was delivered had waited behind a hole.
    pub(super) fn forget_rtt(&mut self) {
        self.news.rtt = None;
    }
    pub(super) fn memory(&self) -> usize {
        self.rate.memory()
    }

    /// `number` is reported for the first time, so long after it left last. True when it was declared lost and had only
    /// been late.
    pub(super) fn deliver(&mut self, number: u64, entry: Entry, age: Duration) -> bool {
        let early = entry.repeated && self.min_rtt.is_some_and(|least| age < least);
        let late = entry.fate == Fate::Lost || entry.fate == Fate::InFlight && early;
        let news = &mut self.news;
        news.delivered += 1;
        news.delivered_bytes += u64::from(entry.bytes);
        news.late += u64::from(late);
        let (low, high) = news.span.unwrap_or((number, number));
        news.span = Some((low.min(number), high.max(number)));
        if entry.fate == Fate::InFlight && !early {
            self.latest_arrival = self.latest_arrival.max(entry.order);
        }
        let open = entry.fate == Fate::InFlight; // or an earlier transmission than the last one arrived
        self.rate
            .on_delivered(u64::from(entry.bytes), open.then(|| entry.transmission()));
        late
    }

    /// `entry` has not come by this lane, and is not waited for.
    pub(super) fn on_uncarried(&mut self, entry: Entry) {
        self.news.uncarried += 1;
        if entry.order > self.latest_arrival.max(self.latest_delivered()) {
            let since = self.news.uncarried_since.unwrap_or(entry.sent_at);
            self.news.uncarried_since = Some(since.min(entry.sent_at));
        }
    }

    /// A segment that was sent once, as transmission `order`, was delivered within `rtt`.
    pub(super) fn measure(&mut self, order: u64, rtt: Duration) {
        self.min_rtt = Some(self.min_rtt.map_or(rtt, |least| least.min(rtt)));
        self.news.rtt = Some(rtt);
        self.note_delivered(order);
    }

    /// A segment that was sent once, as transmission `order`, is delivered or presumed to be.
    pub(super) fn note_delivered(&mut self, mut order: u64) {
        for latest in &mut self.latest_delivered {
            if order > *latest {
                std::mem::swap(latest, &mut order);
            }
        }
    }

    /// `entry` is declared lost.
    pub(super) fn lose(&mut self, entry: Entry) -> Option<LostSegment> {
        self.rate.on_lost(entry.transmission())
    }
    pub(super) fn add_loss(&mut self, loss: Option<LostSegment>) {
        self.losses.extend(loss);
    }

    /// `number` left again by this lane.
    pub(super) fn on_repeated(&mut self, number: u64) {
        self.lowest[1] = self.lowest[1].min(number);
    }
}

impl Scoreboard {
    /// One lane more. `None` when there are 256.
    pub fn open_lane(&mut self) -> Option<LaneId> {
        let id = u8::try_from(self.lanes.len()).ok()?;
        self.lanes.push(Lane::new(self.duplicate_threshold()));
        Some(LaneId(id))
    }

    /// From now on segments leave by the lane `id`, and all that is asked of a lane is asked of this one.
    pub fn take_in_hand(&mut self, id: LaneId) {
        self.in_hand = id;
    }

    /// The lane in hand.
    pub fn in_hand(&self) -> LaneId {
        self.in_hand
    }

    /// What the acknowledgement that changed `all` changed for the lane in hand. With several lanes a bare repeat says nothing
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
        let awaited = || lane.awaited.iter().flatten();
        let arrived = awaited().filter(|number| is_in(number)).min();
        Feedback {
            advanced: u64::from(lane.awaited.iter().flatten().any(is_in)),
            head_arrived: arrived
                .is_some_and(|arrived| !awaited().any(|number| number < arrived && is_out(*number))),
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
        let is_told = |entry: &Entry| entry.lane == self.in_hand && (entry.repeated || entry.order < latest);
        let from = range.start.max(self.first).min(self.next());
        let to = range.end.clamp(from, self.next());
        let entries = self
            .entries
            .range((from - self.first) as usize..(to - self.first) as usize);
        (from..)
            .zip(entries)
            .find(|(_, entry)| entry.fate == Fate::InFlight && (is_alone || is_told(entry)))
            .map(|(number, entry)| (number, entry.sent_at, !entry.repeated))
    }

    /// Notes what each of several lanes waits for before anything else.
    pub(super) fn note_lowest(&mut self) {
        if self.lanes.len() > 1 {
            for id in (0..self.lanes.len()).map(LaneId::nth) {
                self.lane_mut(id).awaited = [self.lowest_on(id, false), self.lowest_on(id, true)];
            }
        }
    }

    /// What the last report brought of each lane, in their order.
    pub(in crate::recovery) fn news_of_lanes(&self) -> impl Iterator<Item = PathNews> {
        self.lanes.iter().map(|lane| PathNews {
            lowest: lane.awaited.into_iter().flatten().min().unwrap_or(0),
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
        let lowest = [false, true].map(|again| self.find_lowest(self.in_hand, again));
        lowest.into_iter().flatten().min().unwrap_or(self.next())
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
    pub(super) fn lane_mut(&mut self, id: LaneId) -> &mut Lane {
        &mut self.lanes[id.index()]
    }

    /// The lane by which outstanding `number` left last.
    pub fn lane_of(&self, number: u64) -> Option<LaneId> {
        self.entry(number).map(|entry| entry.lane)
    }

    /// The lowest outstanding number that left by this lane last and is not known to have arrived, of those sent `again`
    /// or of those sent once. When it is delivered, the lane's own cumulative point has moved (CUC of CMT).
    pub fn lowest_on(&mut self, id: LaneId, again: bool) -> Option<u64> {
        let lowest = self.find_lowest(id, again);
        let next = self.next();
        self.lane_mut(id).lowest[usize::from(again)] = lowest.unwrap_or(next);
        lowest
    }

    fn find_lowest(&self, id: LaneId, again: bool) -> Option<u64> {
        let from = self.lane(id).lowest[usize::from(again)].max(self.first);
        let held = |number: &u64| {
            let open = |entry: &Entry| !matches!(entry.fate, Fate::Delivered | Fate::GivenUp);
            let here = |entry: &&Entry| entry.lane == id && entry.repeated == again && open(entry);
            self.entry(*number).filter(here).is_some()
        };
        (from..self.next()).find(held)
    }
}
