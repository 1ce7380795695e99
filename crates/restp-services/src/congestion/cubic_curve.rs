//! CUBIC's curve: where the window should be, a time after congestion avoidance began. RFC 9438 §4.1 to §4.5.
//!
//! The curve is computed in floating point by + − × ÷ alone, which IEEE 754 rounds alike everywhere, and K by
//! an integer cube root: two machines agree bit for bit.

use super::cubic_rules::CubicRules;
use super::window::Window;
use crate::view::PathView;
use restp_base::numeric::cube_root;
use restp_base::time::{Duration, Time};

/// C, in segments per cubic second (RFC 9438 §5).
const C: f64 = 0.4;
/// α of the Reno-friendly region, 3 (1 − β) / (1 + β) with β = 0.7 (RFC 9438 §4.3).
const ALPHA: f64 = 9.0 / 17.0;

/// One stage of congestion avoidance.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stage {
    pub began: Time,
    /// K in seconds: when the curve reaches its plateau.
    pub plateau_after: f64,
    /// W_max in bytes: the height of the plateau.
    pub plateau: f64,
    /// W_est in bytes: where Reno would be.
    pub estimate: f64,
    /// Growth owed, in bytes times the window.
    credit: u128,
    /// C and α are divided by this: the steps of one flow among its parts.
    parts: f64,
    rules: CubicRules,
    /// No loss has shown yet what the path holds.
    is_first: bool,
}

impl Stage {
    pub fn begin(now: Time, window: u64, maximum: u64, segment: u64, parts: u32, rules: CubicRules) -> Self {
        let height = maximum.saturating_sub(window).saturating_mul(u64::from(parts));
        Stage {
            began: now,
            plateau_after: seconds_to_climb(height, segment),
            plateau: maximum.max(window) as f64,
            estimate: window as f64,
            credit: 0,
            parts: f64::from(parts),
            rules,
            is_first: maximum == 0,
        }
    }

    /// W_cubic in bytes, `after` the beginning of the stage (RFC 9438 §4.2, Figure 1).
    pub fn curve(&self, after: Duration, segment: u64) -> f64 {
        let t = after.as_nanos() as f64 / 1e9 - self.plateau_after;
        self.plateau + C / self.parts * t * t * t * segment as f64
    }

    /// One acknowledgement of `acked` bytes.
    pub fn grow(&mut self, window: &mut Window, acked: u64, prior: u64, segment: u64, view: &PathView<'_>) {
        let stays_slow = self.rules.stays_slow() || self.estimate < prior as f64;
        let alpha = if stays_slow { ALPHA } else { 1.0 };
        self.estimate += alpha / self.parts * acked as f64 * segment as f64 / window.bytes as f64;
        let elapsed = view.now.since(self.began);
        let least = self.rules.least_target(window.bytes, self.is_first);
        let jumps = self.rules.jumps_to_reno();
        if jumps && self.curve(elapsed, segment).max(least as f64) < self.estimate {
            // Reno-friendly (§4.3). The window may already stand higher, on its way to a curve that has turned
            // steep; it is not lowered without a loss.
            self.credit = 0;
            window.grow((self.estimate as u64).saturating_sub(window.bytes));
            return;
        }
        // Concave and convex (§4.4, §4.5): (target − window) / window for each segment acknowledged.
        let curve = self.curve(elapsed + self.rules.look_ahead(view), segment);
        let aim = if jumps { curve } else { curve.max(self.estimate) };
        let highest = window.bytes + window.bytes / 2;
        let target = (aim as u64).clamp(least, highest);
        self.credit += u128::from(target - window.bytes) * u128::from(window.worth(acked, segment));
        let bytes = u128::from(window.bytes);
        window.grow((self.credit / bytes) as u64);
        self.credit %= bytes;
    }
}

/// K = ∛(height / C) in seconds, to 0.1 ms (RFC 9438 §4.2, Figure 2). Heights over seven million segments, which
/// no path needs, count as that.
fn seconds_to_climb(height: u64, segment: u64) -> f64 {
    let cube = u128::from(height) * 5_000_000_000_000 / (2 * u128::from(segment)); // 1/C = 5/2, (10⁴)³
    cube_root(u64::try_from(cube).unwrap_or(u64::MAX)) as f64 / 1e4
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    const SEGMENT: u64 = 1000;

    /// RFC 9438 Figures 1 and 2 in segments, by the library's cube root.
    pub(in super::super) fn rfc_curve(t: f64, maximum: f64, epoch: f64) -> f64 {
        let k = ((maximum - epoch) / C).cbrt();
        C * (t - k).powi(3) + maximum
    }

    #[test]
    fn a_loss_at_100_segments_gives_the_worked_numbers() {
        let stage = Stage::begin(Time::ZERO, 70_000, 100_000, SEGMENT, 1, CubicRules::Rfc9438);
        assert!(
            (stage.plateau_after - 4.217).abs() < 0.001,
            "{}",
            stage.plateau_after
        );
        for (seconds, segments) in [(0.0, 70.0), (2.0, 95.64), (4.217, 100.0), (6.0, 102.27)] {
            let height = stage.curve(Duration::from_nanos((seconds * 1e9) as u64), SEGMENT) / SEGMENT as f64;
            assert!(
                (height - segments).abs() < 0.01,
                "W({seconds}) = {height}, not {segments}"
            );
        }
    }

    #[test]
    fn the_curve_is_the_formula_of_the_rfc_for_a_minute() {
        for (maximum, epoch) in [(100.0, 70.0), (20.0, 14.0), (10_000.0, 7000.0), (5.0, 5.0)] {
            let stage = Stage::begin(
                Time::ZERO,
                epoch as u64 * SEGMENT,
                maximum as u64 * SEGMENT,
                SEGMENT,
                1,
                CubicRules::Rfc9438,
            );
            for tenth in 0..=600u32 {
                let t = f64::from(tenth) / 10.0;
                let ours =
                    stage.curve(Duration::from_millis(100) * u64::from(tenth), SEGMENT) / SEGMENT as f64;
                let theirs = rfc_curve(t, maximum, epoch);
                assert!((ours - theirs).abs() < 1.0, "W({t}) = {ours}, RFC {theirs}");
            }
        }
    }
}
