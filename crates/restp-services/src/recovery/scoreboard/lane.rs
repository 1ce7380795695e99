//! What the record knows of one lane: a path that segments leave by, with a window of its own. All lanes share one
//! number space. What is overtaken, and what is new, each lane is asked for itself: between lanes order says nothing
//! (split fast retransmit of CMT: Iyengar, Amer and Stewart, ToN 14(5), 2006).

use super::{Entry, Fate, Kind, LostSegment, Scoreboard};
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
    /// No lane.
    pub(super) const NONE: LaneId = LaneId(u8::MAX);

    /// Its position among the lanes of a board, from 0.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// The lane at `index`, which is below 255.
    pub(crate) fn nth(index: usize) -> Self {
        debug_assert!(index < usize::from(u8::MAX), "a board has 255 lanes at most");
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
    /// Below these numbers nothing of each kind is outstanding that left by this lane last.
    lowest: [u64; 3],
    /// The lowest number of its own window that was open when the last report came, or a higher one than any.
    own_before: u64,
    /// Transmissions up to this one were another path's, whose lane this was.
    earlier: u64,
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
            lowest: [0; 3],
            own_before: u64::MAX,
            earlier: 0,
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
    }
    /// All of it is booked. `oldest`: no transmission outstanding has a lower order.
    pub(super) fn end_report(&mut self, now: Time, oldest: Option<u64>, entries: &VecDeque<Entry>) {
        self.news.rate = self.rate.sample(now, oldest);
        self.prune(entries);
    }

    /// Of what transmissions found, what nothing that is outstanding needs is forgotten once it is most.
    pub(super) fn prune(&mut self, entries: &VecDeque<Entry>) {
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

    /// `number` is reported for the first time, so long after it left last. The lane that declared it lost, where it had only been
    /// late; what leaves again because its lane is late was declared lost by none. What an earlier path of this lane brought says
    /// nothing of this one.
    pub(super) fn deliver(&mut self, number: u64, entry: Entry, age: Duration) -> Option<LaneId> {
        if !self.has_carried(&entry) {
            return None;
        }
        let early = entry.repeated() && self.min_rtt.is_some_and(|least| age < least);
        let blamed = match entry.fate {
            Fate::Lost => Some(entry.lane),
            Fate::InFlight if early && entry.blamed != LaneId::NONE => Some(entry.blamed),
            _ => None,
        };
        let news = &mut self.news;
        news.delivered += 1;
        news.delivered_bytes += u64::from(entry.bytes);
        let (low, high) = news.span.unwrap_or((number, number));
        news.span = Some((low.min(number), high.max(number)));
        if entry.fate == Fate::InFlight && !early {
            self.latest_arrival = self.latest_arrival.max(entry.order);
        }
        let open = entry.fate == Fate::InFlight; // or an earlier transmission than the last one arrived
        self.rate
            .on_delivered(u64::from(entry.bytes), open.then(|| entry.transmission()));
        blamed
    }

    /// A segment that it had declared lost had only been late.
    pub(super) fn on_late(&mut self) {
        self.news.late += 1;
    }

    /// Its path has ended, and it is that of another from now on: what is known of the path is forgotten, and what left so far, up to
    /// transmission `last`, tells nothing of the new one.
    fn renew(&mut self, last: u64) {
        let fresh = Lane::new(self.duplicate_threshold());
        *self = Lane {
            in_flight: self.in_flight,
            in_flight_bytes: self.in_flight_bytes,
            lost: self.lost,
            lowest: self.lowest,
            earlier: last,
            ..fresh
        };
    }
    /// Did `entry` leave by the path that this lane is of?
    pub(super) fn has_carried(&self, entry: &Entry) -> bool {
        entry.order > self.earlier
    }

    /// `entry` has not come by this lane, and is not waited for.
    pub(super) fn on_uncarried(&mut self, entry: Entry) {
        if !self.has_carried(&entry) {
            return;
        }
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

    /// `number`, which is `entry` now, left again by this lane.
    pub(super) fn on_repeated(&mut self, number: u64, entry: Entry) {
        let lowest = &mut self.lowest[entry.kind as usize];
        *lowest = (*lowest).min(number);
    }
}

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
                self.lanes[id.index()].on_repeated(number, *entry);
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
            |entry: &Entry| entry.lane == self.in_hand && (entry.repeated() || entry.order < latest);
        let from = range.start.max(self.first).min(self.next());
        let to = range.end.clamp(from, self.next());
        let entries = self
            .entries
            .range((from - self.first) as usize..(to - self.first) as usize);
        (from..)
            .zip(entries)
            .find(|(_, entry)| entry.fate == Fate::InFlight && (is_alone || is_told(entry)))
            .map(|(number, entry)| (number, entry.sent_at, !entry.repeated()))
    }

    /// Notes what each of several lanes waits for before anything else.
    pub(super) fn note_lowest(&mut self) {
        if self.lanes.len() > 1 {
            for id in (0..self.lanes.len()).map(LaneId::nth) {
                Kind::ALL
                    .into_iter()
                    .for_each(|kind| _ = self.note_lowest_on(id, kind));
            }
        }
    }

    /// Notes where the window of each lane begins.
    pub(super) fn note_windows(&mut self) {
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
    pub(super) fn lane_mut(&mut self, id: LaneId) -> &mut Lane {
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
