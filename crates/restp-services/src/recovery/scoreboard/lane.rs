//! What the record knows of one lane: a path that segments leave by, with a window of its own. All lanes share one
//! number space. What is overtaken, and what is new, each lane is asked for itself: between lanes order says nothing
//! (split fast retransmit of CMT: Iyengar, Amer and Stewart, ToN 14(5), 2006).

use super::{Entry, Fate, LostSegment, Scoreboard};
use restp_base::time::Duration;
use smallvec::{SmallVec, smallvec};

/// Which lane of a board.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct LaneId(u8);

impl LaneId {
    /// The lane that every board has.
    pub const FIRST: LaneId = LaneId(0);

    fn index(self) -> usize {
        usize::from(self.0)
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
}

/// The account of one lane.
#[derive(Clone, Debug)]
pub struct Lane {
    in_flight: u64,
    in_flight_bytes: u64,
    lost: u64,
    /// Highest `order`s reported delivered, the highest first; as many as the duplicate threshold.
    latest_delivered: SmallVec<[u64; 3]>,
    min_rtt: Option<Duration>,
    news: LaneNews,
    losses: Vec<LostSegment>,
    /// Below these numbers nothing is outstanding that left by this lane last: once, and again.
    lowest: [u64; 2],
}

impl Lane {
    pub(super) fn new(duplicate_threshold: u64) -> Self {
        Lane {
            in_flight: 0,
            in_flight_bytes: 0,
            lost: 0,
            latest_delivered: smallvec![0; duplicate_threshold.max(1) as usize],
            min_rtt: None,
            news: LaneNews::default(),
            losses: Vec::new(),
            lowest: [0; 2],
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

    /// A new acknowledgement has come.
    pub(super) fn begin_report(&mut self) {
        self.news = LaneNews::default();
        self.losses.clear();
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
        late
    }

    /// A segment that was sent once, as transmission `order`, was delivered within `rtt`.
    pub(super) fn measure(&mut self, order: u64, rtt: Duration) {
        self.min_rtt = Some(self.min_rtt.map_or(rtt, |least| least.min(rtt)));
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
        let from = self.lane(id).lowest[usize::from(again)].max(self.first);
        let held = |number: &u64| {
            let open = |entry: &Entry| !matches!(entry.fate, Fate::Delivered | Fate::GivenUp);
            let here = |entry: &&Entry| entry.lane == id && entry.repeated == again && open(entry);
            self.entry(*number).filter(here).is_some()
        };
        let lowest = (from..self.next()).find(held);
        let next = self.next();
        self.lane_mut(id).lowest[usize::from(again)] = lowest.unwrap_or(next);
        lowest
    }

    /// The retransmission timer of a lane ran out: declares everything lost that is in flight there; returns how many
    /// segments that are.
    pub fn mark_lane_lost(&mut self, id: LaneId) -> u64 {
        let before = self.lane(id).in_flight;
        for number in self.first..self.next() {
            if self.lane_of(number) == Some(id) {
                self.take_for_lost(number);
            }
        }
        before - self.lane(id).in_flight
    }
}
