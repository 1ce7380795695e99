//! Redundancy over several paths (RFC 8681 leaves it open): the paths that segments and encoded packets leave by: what each loses, and which of them an encoded packet takes. The one that
//! carried least of what it combines: what a path loses, or takes with it when it dies, comes back by another.

use super::code_rate::PathConditions;
use super::combination::Combination;
use super::encoder::PLAN_SEGMENTS;
use super::pattern::LossPattern;
use crate::ack::AckReport;
use crate::recovery::LaneId;
use crate::reliability::encoded::{Encoded, numbers};
use restp_base::time::Duration;
use smallvec::SmallVec;
use std::collections::VecDeque;

/// Round trip before one is known (OP-38).
const FIRST_RTT: Duration = Duration::from_millis(100);
/// Segments of which it is known by which path they left: all that one encoded packet combines.
const REMEMBERED: usize = Combination::MOST as usize;
/// The shares of the paths are those of so many segments: as many as a plan lasts.
const SHARED: usize = PLAN_SEGMENTS as usize;

/// All paths.
#[derive(Debug, Default)]
pub(super) struct Paths {
    /// By their lanes.
    all: Vec<PathRecord>,
    /// Those that packets leave by now, where there are several.
    routes: Option<SmallVec<[LaneId; 8]>>,
    /// By which the last segments left, of numbers that follow one another.
    carriers: VecDeque<LaneId>,
    /// The number after the last of them.
    next: u64,
    /// Encoded packets so far.
    encoded: u64,
}

#[derive(Debug)]
struct PathRecord {
    pattern: LossPattern,
    rtt: Duration,
    /// Which of all encoded packets left here last.
    last_encoded: u64,
}

impl Default for PathRecord {
    fn default() -> Self {
        PathRecord {
            pattern: LossPattern::default(),
            rtt: FIRST_RTT,
            last_encoded: 0,
        }
    }
}

impl Paths {
    /// The segment `number` leaves by `lane`, for the first time.
    pub(super) fn on_sent(&mut self, number: u64, lane: LaneId, rtt: Option<Duration>) {
        let path = self.path_mut(lane);
        path.rtt = rtt.unwrap_or(path.rtt);
        path.pattern.on_sent(number);
        if self.carriers.len() == REMEMBERED {
            self.carriers.pop_front();
        }
        self.carriers.push_back(lane);
        self.next = number + 1;
    }

    /// The peer reports what arrived.
    pub(super) fn on_report(&mut self, report: &AckReport) {
        let patterns = self.all.iter_mut().map(|path| &mut path.pattern);
        patterns.for_each(|pattern| pattern.on_report(report));
    }

    /// From now on packets leave by these lanes, with so long a round trip. True where they are others than before: whoever names the
    /// fastest first names the same in another order as round trips vary.
    pub(super) fn set_routes(&mut self, routes: &[(LaneId, Option<Duration>)]) -> bool {
        for (lane, rtt) in routes {
            let path = self.path_mut(*lane);
            path.rtt = rtt.unwrap_or(path.rtt);
        }
        let lanes: SmallVec<[LaneId; 8]> = routes.iter().map(|(lane, _)| *lane).collect();
        let before = self.routes.replace(lanes).unwrap_or_default();
        before.len() != routes.len() || routes.iter().any(|(lane, _)| !before.contains(lane))
    }

    /// Does no path take anything now?
    pub(super) fn are_shut(&self) -> bool {
        self.routes.as_ref().is_some_and(SmallVec::is_empty)
    }

    /// `lane` is that of another path from now on.
    pub(super) fn forget(&mut self, lane: LaneId) {
        *self.path_mut(lane) = PathRecord::default();
    }

    /// What is known of the paths by which something arrives within the `deadline`, or of all where there is none.
    pub(super) fn conditions(&self, deadline: Option<Duration>) -> SmallVec<[PathConditions; 4]> {
        let lanes = self.timely(deadline);
        let lately = || self.carriers.iter().rev().take(SHARED);
        let carried = lately().filter(|lane| lanes.contains(lane)).count();
        let condition = |lane: &LaneId| {
            let path = self.path(*lane);
            let here = lately().filter(|carrier| *carrier == lane).count();
            PathConditions {
                loss: path.pattern.loss(),
                burst: path.pattern.burst(),
                rtt: path.rtt,
                share: match carried {
                    0 => 1.0 / lanes.len() as f64,
                    _ => here as f64 / carried as f64,
                },
            }
        };
        lanes.iter().map(condition).collect()
    }

    /// Does `encoded` leave by `lane`? Of paths that carried as much of it the one takes it that took none for longest.
    pub(super) fn takes(&self, lane: LaneId, encoded: &Encoded, deadline: Option<Duration>) -> bool {
        if self.routes.is_none() {
            return true;
        }
        let oldest = self.next - self.carriers.len() as u64;
        let carrier = |number: u64| {
            let index = usize::try_from(number.checked_sub(oldest)?).ok()?;
            self.carriers.get(index)
        };
        let combination = Combination::from_range(encoded.range);
        let combined = numbers(encoded.first, combination.count(), combination.stride());
        let carriers: SmallVec<[LaneId; 16]> = combined.filter_map(carrier).copied().collect();
        let best = self.timely(deadline).into_iter().min_by_key(|lane| {
            let here = carriers.iter().filter(|carrier| *carrier == lane).count();
            (here, self.path(*lane).last_encoded, carriers.last() == Some(lane))
        });
        best == Some(lane)
    }

    /// An encoded packet leaves by `lane`.
    pub(super) fn on_encoded(&mut self, lane: LaneId) {
        self.encoded += 1;
        self.path_mut(lane).last_encoded = self.encoded;
    }

    /// The longest round trip of the paths by which something arrives within the `deadline`.
    pub(super) fn longest_rtt(&self, deadline: Option<Duration>) -> Duration {
        let rtts = self.timely(deadline).into_iter().map(|lane| self.path(lane).rtt);
        rtts.max().unwrap_or(FIRST_RTT)
    }
    /// The shortest of all in use.
    pub(super) fn shortest_rtt(&self) -> Duration {
        let rtts = self.lanes().into_iter().map(|lane| self.path(lane).rtt);
        rtts.min().unwrap_or(FIRST_RTT)
    }

    fn timely(&self, deadline: Option<Duration>) -> SmallVec<[LaneId; 8]> {
        let mut lanes = self.lanes();
        let is_timely = |lane: &LaneId| deadline.is_none_or(|deadline| self.path(*lane).rtt / 2 < deadline);
        if lanes.iter().any(is_timely) {
            lanes.retain(|lane| is_timely(lane));
        }
        lanes
    }

    fn lanes(&self) -> SmallVec<[LaneId; 8]> {
        let known = || (0..self.all.len()).map(LaneId::nth).collect();
        self.routes.clone().unwrap_or_else(known)
    }

    /// Of a lane that was named before.
    fn path(&self, lane: LaneId) -> &PathRecord {
        &self.all[lane.index()]
    }
    fn path_mut(&mut self, lane: LaneId) -> &mut PathRecord {
        if self.all.len() <= lane.index() {
            self.all.resize_with(lane.index() + 1, PathRecord::default);
        }
        &mut self.all[lane.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(250);
    const DEADLINE: Option<Duration> = Some(Duration::from_millis(200));

    fn lane(index: usize) -> LaneId {
        LaneId::nth(index)
    }

    /// Segments from 1 on left by these lanes, and packets leave by `routes` now.
    fn paths(carriers: &[usize], routes: &[(usize, Duration)]) -> Paths {
        let mut paths = Paths::default();
        assert!(!paths.are_shut(), "there is one path");
        let routes: Vec<_> = routes
            .iter()
            .map(|(index, rtt)| (lane(*index), Some(*rtt)))
            .collect();
        paths.set_routes(&routes);
        for (number, index) in (1..).zip(carriers) {
            paths.on_sent(number, lane(*index), None);
        }
        paths
    }
    fn both() -> [(usize, Duration); 2] {
        [(0, RTT), (1, RTT)]
    }

    /// Of `count` segments from `first` on.
    fn encoded(first: u64, count: u16) -> Encoded {
        Encoded {
            first,
            range: Combination::new(0, 1, count).range(),
            payload: Default::default(),
        }
    }
    /// By which lanes it may leave.
    fn taken(paths: &Paths, encoded: &Encoded) -> Vec<usize> {
        let takes = |index: &usize| paths.takes(lane(*index), encoded, DEADLINE);
        (0..3).filter(takes).collect()
    }

    #[test]
    fn an_encoded_packet_leaves_by_the_path_that_carried_least_of_it() {
        let paths = paths(&[0, 0, 0, 1, 0, 0], &both());
        assert_eq!(taken(&paths, &encoded(1, 6)), [1]);
        assert_eq!(taken(&paths, &encoded(4, 1)), [0], "the other than its only one");
        assert_eq!(taken(&paths, &encoded(6, 1)), [1]);
    }

    #[test]
    fn paths_that_carried_as_much_take_turns_beginning_with_the_other_than_the_newest() {
        let mut paths = paths(&[0, 1, 0, 1], &both());
        assert_eq!(taken(&paths, &encoded(1, 4)), [0]);
        paths.on_encoded(lane(0));
        assert_eq!(taken(&paths, &encoded(1, 4)), [1]);
        paths.on_encoded(lane(1));
        assert_eq!(taken(&paths, &encoded(1, 4)), [0]);
    }

    #[test]
    fn a_path_by_which_nothing_would_be_in_time_takes_none_unless_all_are_such() {
        let late = RTT * 2;
        let late_one = paths(&[0, 0], &[(0, RTT), (1, late), (2, RTT)]);
        assert_eq!(taken(&late_one, &encoded(1, 2)), [2]);
        assert_eq!(late_one.conditions(DEADLINE).len(), 2);
        assert_eq!(
            (late_one.longest_rtt(DEADLINE), late_one.longest_rtt(None)),
            (RTT, late)
        );
        let all_late = paths(&[0, 0], &[(0, late), (1, late)]);
        assert_eq!(taken(&all_late, &encoded(1, 2)), [1]);
    }

    #[test]
    fn the_only_path_takes_all_and_where_no_path_works_none_does() {
        let mut alone = Paths::default();
        (1..3).for_each(|number| alone.on_sent(number, lane(0), None));
        assert_eq!(taken(&alone, &encoded(1, 2)), [0, 1, 2], "nobody else asks");
        let mut paths = paths(&[0, 0], &both());
        assert!(paths.set_routes(&[(lane(1), None)]) && !paths.set_routes(&[(lane(1), None)]));
        assert_eq!(taken(&paths, &encoded(1, 2)), [1]);
        assert_eq!(paths.conditions(DEADLINE).len(), 1);
        assert!(!paths.are_shut());
        paths.set_routes(&[]);
        assert!(paths.are_shut() && taken(&paths, &encoded(1, 2)).is_empty());
    }

    #[test]
    fn the_same_paths_in_another_order_are_no_others() {
        let mut paths = paths(&[], &both());
        let mut is_new = |lanes: &[usize]| {
            let routes: Vec<_> = lanes.iter().map(|index| (lane(*index), None)).collect();
            paths.set_routes(&routes)
        };
        assert!(!is_new(&[1, 0]));
        assert!(is_new(&[1]) && is_new(&[0]) && is_new(&[0, 1]) && is_new(&[2, 1]));
    }

    #[test]
    fn shares_are_those_of_the_last_segments_and_losses_those_of_each_path() {
        let carriers: Vec<usize> = (0..400)
            .map(|index| usize::from(index > 200 && index % 4 == 0))
            .collect();
        let mut paths = paths(&carriers, &both());
        let mut report = AckReport::pointer(1);
        report.received.push(202..401);
        paths.on_report(&report);
        let [first, second] = paths.conditions(DEADLINE)[..] else {
            panic!("two paths")
        };
        assert_eq!((first.share, second.share), (0.75, 0.25));
        assert!(first.loss > 0.4 && second.loss < 0.02, "{first:?} {second:?}");
        paths.forget(lane(0));
        assert!(paths.conditions(DEADLINE)[0].loss < 0.03);
    }
}
