//! Where stations stand, and where they go.

use restp_base::time::{Duration, Time};

/// A point of a plane, in metres.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Place {
    /// To the east.
    pub x: f64,
    /// To the north.
    pub y: f64,
}

/// In vacuum, and near enough in air.
const LIGHT_METRES_PER_SECOND: f64 = 299_792_458.0;

impl Place {
    /// No coordinate is larger.
    pub const MOST_METRES: f64 = 100_000.0;

    /// A point.
    pub const fn new(x: f64, y: f64) -> Self {
        Place { x, y }
    }

    pub(super) fn is_possible(self) -> bool {
        self.x.abs() <= Self::MOST_METRES && self.y.abs() <= Self::MOST_METRES
    }

    /// The straight distance.
    pub fn metres_to(self, other: Place) -> f64 {
        let (x, y) = (other.x - self.x, other.y - self.y);
        (x * x + y * y).sqrt()
    }
}

/// A radio on a node.
#[derive(Clone, Debug, PartialEq)]
pub struct Station {
    /// The node.
    pub node: String,
    /// Where it stands at the beginning.
    pub place: Place,
    /// Where it is when, in the order of time: it goes there in a straight line from where it was before, and stays at the last one.
    pub waypoints: Vec<(Time, Place)>,
}

impl Station {
    /// One that stays where it is.
    pub fn new(node: &str, place: Place) -> Self {
        Station {
            node: node.into(),
            place,
            waypoints: vec![],
        }
    }

    /// Where it is.
    pub fn place_at(&self, now: Time) -> Place {
        let passed = self.waypoints.partition_point(|(at, _)| *at <= now);
        let (since, from) = match passed.checked_sub(1) {
            Some(last) => self.waypoints[last],
            None => (Time::ZERO, self.place),
        };
        let Some(&(until, to)) = self.waypoints.get(passed) else {
            return from;
        };
        let part = now.since(since).as_secs_f64() / until.since(since).as_secs_f64();
        Place::new(from.x + (to.x - from.x) * part, from.y + (to.y - from.y) * part)
    }

    /// When it comes to rest.
    pub(super) fn rests_from(&self) -> Time {
        self.waypoints.last().map_or(Time::ZERO, |(at, _)| *at)
    }

    /// The least distance that the two ever have.
    pub(super) fn nearest_metres(&self, other: &Station) -> f64 {
        if self.waypoints.is_empty() && other.waypoints.is_empty() {
            return self.place.metres_to(other.place);
        }
        let mut turns: Vec<Time> = self
            .waypoints
            .iter()
            .chain(&other.waypoints)
            .map(|(at, _)| *at)
            .collect();
        turns.push(Time::ZERO);
        turns.sort();
        let apart = |now: &Time| {
            let (one, other) = (self.place_at(*now), other.place_at(*now));
            Place::new(other.x - one.x, other.y - one.y)
        };
        let at_turns = turns.iter().map(|now| apart(now).metres_to(Place::default()));
        let between = turns.windows(2).map(|span| {
            let (a, b) = (apart(&span[0]), apart(&span[1]));
            let (x, y) = (b.x - a.x, b.y - a.y);
            let length = x * x + y * y;
            // Where the line from a to b comes nearest to nothing.
            let part = if length > 0.0 {
                (-(a.x * x + a.y * y) / length).clamp(0.0, 1.0)
            } else {
                0.0
            };
            Place::new(a.x + x * part, a.y + y * part).metres_to(Place::default())
        });
        at_turns.chain(between).fold(f64::INFINITY, f64::min)
    }

    pub(super) fn places(&self) -> impl Iterator<Item = Place> {
        std::iter::once(self.place).chain(self.waypoints.iter().map(|(_, place)| *place))
    }

    /// The first waypoint that is not after the one before it, and when it is.
    pub(super) fn disorder(&self) -> Option<(usize, Duration)> {
        let mut before = Time::ZERO;
        for (index, (at, _)) in self.waypoints.iter().enumerate() {
            if *at <= before {
                return Some((index, at.since(Time::ZERO)));
            }
            before = *at;
        }
        None
    }
}

/// How long a signal takes for a distance, to the nearest nanosecond.
pub(super) fn propagation(metres: f64) -> Duration {
    Duration::from_nanos((metres / LIGHT_METRES_PER_SECOND * 1e9 + 0.5) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walker() -> Station {
        let at = |s, x, y| (Time::ZERO + Duration::from_secs(s), Place::new(x, y));
        Station {
            waypoints: vec![at(10, 100.0, 0.0), at(20, 100.0, 50.0)],
            ..Station::new("walker", Place::default())
        }
    }

    #[test]
    fn a_station_walks_straight_from_point_to_point_and_stays_at_the_last() {
        let at = |ms| {
            let place = walker().place_at(Time::ZERO + Duration::from_millis(ms));
            (place.x, place.y)
        };
        assert_eq!(at(0), (0.0, 0.0));
        assert_eq!(at(2_500), (25.0, 0.0));
        assert_eq!(at(10_000), (100.0, 0.0));
        assert_eq!(at(15_000), (100.0, 25.0));
        assert_eq!(at(90_000), (100.0, 50.0));
    }

    #[test]
    fn the_nearest_point_may_lie_between_two_waypoints() {
        let near = |x, y| walker().nearest_metres(&Station::new("other", Place::new(x, y)));
        assert_eq!(near(50.0, 30.0), 30.0);
        assert_eq!(near(130.0, 90.0), 50.0);
        assert_eq!(near(-30.0, 40.0), 50.0);
        // Both at the same time at the same place.
        let same = Station::new("same", Place::new(5.0, 0.0));
        let moved = Station {
            waypoints: vec![(Time::ZERO + Duration::from_secs(10), Place::new(105.0, 0.0))],
            ..same
        };
        assert_eq!(walker().nearest_metres(&moved), 5.0);
    }
}
