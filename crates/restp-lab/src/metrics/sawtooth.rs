//! What a congestion window did over time: how it began, how often it was cut, and how it grew in between.

use crate::traffic::ln;
use restp_base::time::{Duration, Time};
use serde::Serialize;

/// The window of a flow in one run. What never happened is absent.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WindowResult {
    /// Times that it was cut: falls by a tenth or more, those within one round trip together.
    pub cuts: u64,
    /// Round trips that it took to double, from its beginning to the first cut.
    pub doubling_rtts: Option<f64>,
    /// Bytes that it grew in a round trip before a cut: in the second half of each time between two cuts, the median.
    pub slope_bytes: Option<f64>,
    /// Round trips from a cut to the next growth, the mean.
    pub regrowth_rtts: Option<f64>,
    /// Round trips from a cut until it was above its mean over time again, the longest.
    pub return_rtts: Option<f64>,
    /// That mean.
    pub mean_bytes: Option<f64>,
}

/// A fall by less is no cut.
const CUT: f64 = 0.9;
/// Growth over fewer round trips says nothing of its rate.
const LEAST_RTTS: f64 = 2.0;
/// Changes that are kept; later ones are not looked at.
const MOST: usize = 4_000_000;

/// Notes every change of a window.
#[derive(Debug, Default)]
pub struct Sawtooth {
    points: Vec<Point>,
}

#[derive(Clone, Copy, Debug)]
struct Point {
    at: Time,
    window: f64,
    /// Round trips since the first point.
    rtts: f64,
    rtt: Duration,
}

/// Falls within one round trip.
#[derive(Clone, Copy, Debug)]
struct Cut {
    /// The last point before it, and the last of its falls.
    before: usize,
    last: usize,
}

impl Sawtooth {
    /// The window after a step, and the smoothed round trip, once that is known.
    pub fn look(&mut self, now: Time, window_bytes: u64, rtt: Option<Duration>) {
        let Some(rtt) = rtt.filter(|rtt| !rtt.is_zero()) else {
            return;
        };
        let window = window_bytes as f64;
        let rtts = match self.points.last() {
            Some(last) if last.window == window || self.points.len() >= MOST => return,
            Some(last) => last.rtts + now.since(last.at).as_secs_f64() / last.rtt.as_secs_f64(),
            None => 0.0,
        };
        self.points.push(Point {
            at: now,
            window,
            rtts,
            rtt,
        });
    }

    /// All of it.
    pub fn result(&self, end: Time) -> WindowResult {
        let (points, cuts) = (&self.points, self.cuts());
        let mean = self.mean(end);
        let first = cuts
            .first()
            .map_or(points.len().saturating_sub(1), |cut| cut.before);
        let doubling = points.first().zip(points.get(first)).and_then(|(from, to)| {
            let doublings = ln(to.window.max(1.0) / from.window.max(1.0)) / std::f64::consts::LN_2;
            (doublings >= 1.0).then(|| (to.rtts - from.rtts) / doublings)
        });
        let growth = |cut: &Cut| {
            let last = points.get(cut.last)?;
            let grown = points[cut.last..]
                .iter()
                .find(|point| point.window > last.window)?;
            Some(grown.rtts - points[cut.before + 1].rtts)
        };
        let back = |cut: &Cut| {
            let found = points[cut.last..]
                .iter()
                .find(|point| mean.is_some_and(|mean| point.window > mean))?;
            Some(found.rtts - points[cut.before + 1].rtts)
        };
        let growths: Vec<f64> = cuts.iter().filter_map(growth).collect();
        WindowResult {
            cuts: cuts.len() as u64,
            doubling_rtts: doubling,
            slope_bytes: self.slope(&cuts),
            regrowth_rtts: (!growths.is_empty()).then(|| growths.iter().sum::<f64>() / growths.len() as f64),
            return_rtts: cuts.iter().filter_map(back).reduce(f64::max),
            mean_bytes: mean,
        }
    }

    fn cuts(&self) -> Vec<Cut> {
        let mut cuts: Vec<Cut> = Vec::new();
        for (index, pair) in self.points.windows(2).enumerate() {
            if pair[1].window >= pair[0].window * CUT {
                continue;
            }
            match cuts.last_mut() {
                Some(cut) if pair[1].rtts - self.points[cut.before + 1].rtts < 1.0 => cut.last = index + 1,
                _ => cuts.push(Cut {
                    before: index,
                    last: index + 1,
                }),
            }
        }
        cuts
    }

    fn slope(&self, cuts: &[Cut]) -> Option<f64> {
        let between = cuts.windows(2).filter_map(|pair| {
            let (from, to) = (&self.points[pair[0].last], &self.points[pair[1].before]);
            let half = f64::midpoint(from.rtts, to.rtts);
            let middle = self.points[pair[0].last..=pair[1].before]
                .iter()
                .rfind(|point| point.rtts <= half)?;
            let rtts = to.rtts - middle.rtts;
            (rtts >= LEAST_RTTS).then(|| (to.window - middle.window) / rtts)
        });
        let mut slopes: Vec<f64> = between.collect();
        slopes.sort_by(f64::total_cmp);
        slopes.get(slopes.len() / 2).copied()
    }

    fn mean(&self, end: Time) -> Option<f64> {
        let ends = self.points.iter().skip(1).map(|point| point.at).chain([end]);
        let pieces = self.points.iter().zip(ends);
        let area: f64 = pieces
            .map(|(point, until)| point.window * until.since(point.at).as_secs_f64())
            .sum();
        let span = end.since(self.points.first()?.at).as_secs_f64();
        (span > 0.0).then(|| area / span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    /// Doubles from 1,000 bytes to 32,000, is halved, grows by 1,000 per round trip from the next answer on, and so again.
    fn sawtooth(teeth: u64) -> (Sawtooth, Time) {
        let mut sawtooth = Sawtooth::default();
        let (mut now, mut window) = (Time::ZERO, 1_000);
        let mut step = |rtts: f64, next: u64| {
            now += Duration::from_nanos((RTT.as_nanos() as f64 * rtts) as u64);
            sawtooth.look(now, next, Some(RTT));
            window = next;
        };
        step(0.0, 1_000);
        (1..=5).for_each(|doubled| step(1.0, 1_000 << doubled));
        for _ in 0..teeth {
            step(0.5, 20_000);
            step(0.25, 16_000); // the same cut
            for kilobytes in 17..=32 {
                step(1.0, kilobytes * 1_000);
            }
        }
        (sawtooth, now)
    }

    #[test]
    fn a_sawtooth_is_measured_by_its_round_trips() {
        let (sawtooth, end) = sawtooth(6);
        let result = sawtooth.result(end);
        assert_eq!(result.cuts, 6);
        let is = |found: Option<f64>, expected: f64, within: f64| {
            assert!(
                found.is_some_and(|found| (found - expected).abs() < within),
                "{found:?} {expected}"
            );
        };
        is(result.doubling_rtts, 1.0, 1e-6);
        is(result.slope_bytes, 1000.0, 1e-6);
        is(result.regrowth_rtts, 1.25, 1e-6);
        // 1 to 16 kB in 5 round trips; then in 16.75 each a half of 32, a quarter of 20, and one of 16 to 31 kB.
        is(
            result.mean_bytes,
            (31.0 + 6.0 * (16.0 + 5.0 + 376.0)) * 1e3 / (5.0 + 6.0 * 16.75),
            1e-3,
        );
        // From 16 to 23 kB, the first above the mean of 22.9, and the quarter of the cut.
        is(result.return_rtts, 7.25, 1e-6);
    }

    #[test]
    fn what_never_happened_is_absent() {
        let nothing = Sawtooth::default().result(Time::ZERO);
        assert_eq!(
            (nothing.cuts, nothing.slope_bytes, nothing.mean_bytes),
            (0, None, None)
        );
        let mut steady = Sawtooth::default();
        steady.look(Time::ZERO, 1_000, None);
        (0..9).for_each(|ms| steady.look(Time::ZERO + Duration::from_millis(ms), 5_000, Some(RTT)));
        let result = steady.result(Time::ZERO + Duration::from_secs(1));
        assert_eq!(
            (result.cuts, result.doubling_rtts, result.regrowth_rtts),
            (0, None, None)
        );
        assert_eq!((result.mean_bytes, result.return_rtts), (Some(5_000.0), None));
        assert_eq!(steady.points.len(), 1);
    }
}
