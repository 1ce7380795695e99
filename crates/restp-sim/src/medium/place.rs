//! Where stations stand.

use restp_base::time::Duration;

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

/// How long a signal takes for a distance, to the nearest nanosecond.
pub(super) fn propagation(metres: f64) -> Duration {
    Duration::from_nanos((metres / LIGHT_METRES_PER_SECOND * 1e9 + 0.5) as u64)
}
