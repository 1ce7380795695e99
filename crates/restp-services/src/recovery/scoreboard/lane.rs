//! What the record knows of one lane: a path that segments leave by, with a window of its own. All lanes share one
//! number space. What is overtaken, and what is new, each lane is asked for itself: between lanes order says nothing
//! (split fast retransmit of CMT: Iyengar, Amer and Stewart, ToN 14(5), 2006).

mod board;

use super::lane_id::LaneId;
use super::{Entry, Fate, LostSegment};
use crate::recovery::RateSample;
use crate::recovery::delivery_rate::DeliveryRate;
use restp_base::time::{Duration, Time};
use smallvec::{SmallVec, smallvec};
use std::collections::VecDeque;

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
        let early = entry.retransmitted() && self.min_rtt.is_some_and(|least| age < least);
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
    pub(super) fn on_retransmitted(&mut self, number: u64, entry: Entry) {
        let lowest = &mut self.lowest[entry.kind as usize];
        *lowest = (*lowest).min(number);
    }
}
