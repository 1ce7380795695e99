//! OLIA, opportunistic linked increases: Kelly and Voice's step, which is Pareto-optimal, and a small push α from the
//! paths with the largest windows to better ones with smaller windows, which keeps it from flapping (Khalili and others,
//! CoNEXT 2012 §4; draft-khalili-mptcp-congestion-control-05 §3). A path is good when it delivers much between losses.

use super::{Paths, Share};

/// Segments per segment acknowledged: (w / rtt²) / (Σ w / rtt)² + α / w.
pub(super) fn increase(paths: &Paths) -> f64 {
    let (own, rate) = (paths.own(), paths.total_rate());
    own.window / (own.rtt * own.rtt) / (rate * rate) + alpha(paths) / own.window
}

/// Shared out to the best paths whose windows are not the largest, taken from those with the largest.
fn alpha(paths: &Paths) -> f64 {
    let quality = |path: &Share| path.loss_interval / (path.rtt * path.rtt);
    let (best, widest) = (paths.largest(quality), paths.largest(|path| path.window));
    let is_widest = |path: &Share| path.window >= widest;
    let is_collected = |path: &Share| quality(path) >= best && !is_widest(path);
    let collected = paths.all().filter(|path| is_collected(path)).count();
    if collected == 0 {
        return 0.0;
    }
    let own = paths.own();
    if is_collected(&own) {
        1.0 / paths.count() / collected as f64
    } else if is_widest(&own) {
        let widest = paths.all().filter(|path| is_widest(path)).count();
        -1.0 / paths.count() / widest as f64
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(own: (f64, f64), other: (f64, f64)) -> Paths {
        let share = |(window, loss_interval)| Share {
            window,
            rtt: 0.1,
            loss_interval,
        };
        Paths([share(own), share(other)].into_iter().collect())
    }

    #[test]
    fn a_good_path_with_a_small_window_is_pushed_and_the_largest_pays() {
        assert_eq!(alpha(&paths((10.0, 500.0), (30.0, 100.0))), 0.5);
        assert_eq!(alpha(&paths((30.0, 100.0), (10.0, 500.0))), -0.5);
        assert_eq!(
            alpha(&paths((30.0, 500.0), (10.0, 100.0))),
            0.0,
            "the best has the largest"
        );
        assert_eq!(
            alpha(&paths((10.0, 100.0), (10.0, 500.0))),
            0.0,
            "all have the largest"
        );
        let three = |own, second, third| {
            let mut three = paths(own, second);
            three.0.push(paths(third, third).own());
            three
        };
        // Shared by those that are best and not widest, paid by all that are widest: 1/3 for one, a sixth for each of two.
        assert_eq!(
            alpha(&three((10.0, 500.0), (10.0, 500.0), (30.0, 100.0))),
            1.0 / 6.0
        );
        assert_eq!(
            alpha(&three((30.0, 100.0), (30.0, 100.0), (10.0, 500.0))),
            -1.0 / 6.0
        );
        assert_eq!(
            alpha(&three((20.0, 100.0), (30.0, 100.0), (10.0, 500.0))),
            0.0,
            "neither"
        );
        // 10/40² + 0.5/10
        let step = increase(&paths((10.0, 500.0), (30.0, 100.0)));
        assert!((step - 0.05625).abs() < 1e-12, "{step}");
    }
}
