//! Places on the earth, taken for a sphere: distances between points and between lines.
//!
//! Sine and arc sine are polynomials of our own, since those of a system's library differ in their last bits; the
//! results are the same on every machine, and right to less than a metre.

use restp_base::time::Duration;
use std::f64::consts::{FRAC_PI_2, PI};
use thiserror::Error;

/// Mean radius (IUGG).
const RADIUS_KM: f64 = 6371.0088;
/// Light in fibre, two thirds of that in the void: 2·10⁸ m/s.
const NANOS_PER_KM: f64 = 5000.0;

/// A place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Position {
    latitude: f64,
    longitude: f64,
    /// From the centre of the earth, of length 1.
    vector: [f64; 3],
}

/// Why two numbers are no place.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[error(
    "latitude {latitude}, longitude {longitude} is no place on earth; write degrees, from -90 to 90 (north) and from -180 to 180 (east)"
)]
pub struct NoPlace {
    latitude: f64,
    longitude: f64,
}

impl Position {
    /// The place at these degrees north and east.
    ///
    /// # Errors
    /// When they are out of range.
    pub fn new(latitude: f64, longitude: f64) -> Result<Self, NoPlace> {
        if !(-90.0..=90.0).contains(&latitude) || !(-180.0..=180.0).contains(&longitude) {
            return Err(NoPlace { latitude, longitude });
        }
        let [phi, lambda] = [latitude, longitude].map(|degrees| degrees * PI / 180.0);
        let vector = [
            cosine(phi) * cosine(lambda),
            cosine(phi) * sine(lambda),
            sine(phi),
        ];
        Ok(Position {
            latitude,
            longitude,
            vector,
        })
    }

    /// Great-circle distance.
    pub fn distance_km(&self, other: &Position) -> f64 {
        angle(self.vector, other.vector) * RADIUS_KM
    }

    /// Time that light in fibre takes along the great circle, at 2·10⁸ m/s.
    pub fn delay_to(&self, other: &Position) -> Duration {
        Duration::from_nanos((self.distance_km(other) * NANOS_PER_KM) as u64)
    }

    /// The place a `share` (0 to 1) of the way to `other`, in degrees.
    #[must_use]
    pub fn towards(&self, other: &Position, share: f64) -> Position {
        let between = |from: f64, to: f64| (from + (to - from) * share).clamp(-180.0, 180.0);
        let latitude = between(self.latitude, other.latitude);
        let longitude = between(self.longitude, other.longitude);
        Position::new(latitude, longitude).unwrap_or(*self)
    }

    /// Distance to the nearest point of the great-circle line from `a` to `b`.
    pub fn distance_to_line_km(&self, a: &Position, b: &Position) -> f64 {
        let ends = self.distance_km(a).min(self.distance_km(b));
        let normal = cross(a.vector, b.vector);
        let length = dot(normal, normal).sqrt();
        if length < 1e-12 {
            return ends;
        }
        // Beside the line, when the foot of the perpendicular lies between its ends.
        let foot_side = cross(normal, self.vector);
        if dot(foot_side, a.vector) <= 0.0 && dot(foot_side, b.vector) >= 0.0 {
            return arc_sine((dot(self.vector, normal) / length).abs()) * RADIUS_KM;
        }
        ends
    }
}

/// Distance between the nearest points of two great-circle lines; zero where they cross.
pub fn distance_of_lines_km(first: [&Position; 2], second: [&Position; 2]) -> f64 {
    let [[a, b], [c, d]] = [first, second];
    if parts(first, c, d) && parts(second, a, b) && dot(middle(a, b), middle(c, d)) > 0.0 {
        return 0.0;
    }
    let to_second = |point: &Position| point.distance_to_line_km(c, d);
    let to_first = |point: &Position| point.distance_to_line_km(a, b);
    to_second(a).min(to_second(b)).min(to_first(c)).min(to_first(d))
}

/// Do the two points lie on different sides of the line's great circle?
fn parts([a, b]: [&Position; 2], one: &Position, other: &Position) -> bool {
    let normal = cross(a.vector, b.vector);
    dot(normal, one.vector) * dot(normal, other.vector) < 0.0
}

fn middle(a: &Position, b: &Position) -> [f64; 3] {
    [0, 1, 2].map(|i| a.vector[i] + b.vector[i])
}

/// From the chord, which is exact for small angles where the cosine is not.
fn angle(a: [f64; 3], b: [f64; 3]) -> f64 {
    let [x, y, z] = [0, 1, 2].map(|i| a[i] - b[i]);
    2.0 * arc_sine(((x * x + y * y + z * z).sqrt() / 2.0).min(1.0))
}

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    ]
}

/// Taylor's series, after folding the angle (−π to π) to at most a quarter turn.
fn sine(angle: f64) -> f64 {
    let x = if angle > FRAC_PI_2 {
        PI - angle
    } else if angle < -FRAC_PI_2 {
        -PI - angle
    } else {
        angle
    };
    let (mut term, mut sum) = (x, x);
    for n in 1..12 {
        let even = f64::from(2 * n);
        term *= -x * x / (even * (even + 1.0));
        sum += term;
    }
    sum
}

fn cosine(angle: f64) -> f64 {
    sine(FRAC_PI_2 - angle.abs())
}

/// The series of the arc sine for 0 to 1, with the half-angle rule above one half.
fn arc_sine(x: f64) -> f64 {
    if x > 0.5 {
        return FRAC_PI_2 - 2.0 * arc_sine(((1.0 - x.min(1.0)) / 2.0).sqrt());
    }
    let (mut term, mut sum) = (x, x);
    for n in 1..30 {
        let odd = f64::from(2 * n - 1);
        term *= x * x * odd / (odd + 1.0);
        sum += term / (odd + 2.0);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(latitude: f64, longitude: f64) -> Position {
        Position::new(latitude, longitude).expect("a place")
    }

    #[track_caller]
    fn near(measured: f64, expected: f64, within: f64) {
        assert!(
            (measured - expected).abs() <= within,
            "{measured}, not {expected}"
        );
    }

    #[test]
    fn the_polynomials_agree_with_the_library() {
        for n in -1000..=1000 {
            let x = f64::from(n) / 1000.0;
            near(sine(x * PI), (x * PI).sin(), 1e-14);
            near(cosine(x * PI), (x * PI).cos(), 1e-14);
            near(arc_sine(x.abs()), x.abs().asin(), 1e-14);
        }
    }

    #[test]
    fn distances_on_a_sphere() {
        near(
            at(0.0, 0.0).distance_km(&at(0.0, 90.0)),
            RADIUS_KM * FRAC_PI_2,
            1e-6,
        );
        near(at(90.0, 0.0).distance_km(&at(-90.0, 0.0)), RADIUS_KM * PI, 1e-6);
        // New York to Los Angeles, 3936 km.
        near(
            at(40.7128, -74.0060).distance_km(&at(34.0522, -118.2437)),
            3936.0,
            1.0,
        );
        let delay = at(0.0, 0.0).delay_to(&at(0.0, 1.0));
        assert_eq!(delay.as_micros(), 555, "111.19 km at 200 km per millisecond");
    }

    #[test]
    fn a_line_is_as_far_as_its_nearest_point() {
        let (a, b) = (at(0.0, 0.0), at(0.0, 10.0));
        let degree = RADIUS_KM * PI / 180.0;
        near(at(2.0, 5.0).distance_to_line_km(&a, &b), 2.0 * degree, 1e-6);
        near(at(0.0, 13.0).distance_to_line_km(&a, &b), 3.0 * degree, 1e-6);
        near(at(0.0, 4.0).distance_to_line_km(&a, &b), 0.0, 1e-6);
        near(at(0.0, 4.0).distance_to_line_km(&a, &a), 4.0 * degree, 1e-6);
    }

    #[test]
    fn lines_that_cross_touch_and_others_do_not() {
        let (a, b) = (at(0.0, 0.0), at(0.0, 10.0));
        assert_eq!(
            distance_of_lines_km([&a, &b], [&at(-1.0, 5.0), &at(1.0, 5.0)]),
            0.0
        );
        let apart = distance_of_lines_km([&a, &b], [&at(1.0, 5.0), &at(5.0, 5.0)]);
        near(apart, RADIUS_KM * PI / 180.0, 1e-6);
    }

    #[test]
    fn degrees_out_of_range_are_refused() {
        for (latitude, longitude) in [(90.1, 0.0), (0.0, 180.1), (f64::NAN, 0.0)] {
            let error = Position::new(latitude, longitude).expect_err("no place");
            assert!(error.to_string().contains("-90 to 90"), "{error}");
        }
    }
}
