//! HighSpeed TCP: the larger the window, the larger its steps and the smaller its cuts. RFC 3649 §5. Up to 38 segments
//! it is Reno. The RFC's table is computed here from its formulas.

use super::window::{CommonParams, Window, segment_of};
use super::{Congestion, CongestionEvent, CongestionSnapshot, Reno};
use crate::view::PathView;
use restp_base::units::Rate;

/// Low_Window and High_Window, in segments.
const LOW: f64 = 38.0;
const HIGH: f64 = 83_000.0;
/// What a loss takes at these windows.
const LOW_DECREASE: f64 = 0.5;
const HIGH_DECREASE: f64 = 0.1;

/// a(w): segments per round trip at a window of `w` segments (RFC 3649 §5).
fn increase(w: f64) -> f64 {
    if w <= LOW {
        return 1.0;
    }
    // w² · p(w) · 2 b(w) / (2 − b(w)) with p(w) = 0.078 / w^1.2.
    let b = decrease(w);
    0.078 * w * w / (w * fifth_root(w)) * 2.0 * b / (2.0 - b)
}

/// b(w): the share of the window that a loss takes.
fn decrease(w: f64) -> f64 {
    if w <= LOW {
        return LOW_DECREASE;
    }
    (HIGH_DECREASE - LOW_DECREASE) * logarithm(w / LOW) / logarithm(HIGH / LOW) + LOW_DECREASE
}

/// ⁵√x for x ≥ 1, by Newton's method from above: the same bits on every machine.
fn fifth_root(x: f64) -> f64 {
    let mut root = x.sqrt().sqrt();
    loop {
        let square = root * root;
        let next = (4.0 * root + x / (square * square)) / 5.0;
        if next >= root {
            return root;
        }
        root = next;
    }
}

/// ln x for x ≥ 1: halvings by the square root, then 2 artanh((x−1)/(x+1)).
fn logarithm(x: f64) -> f64 {
    let (mut x, mut scale) = (x, 2.0);
    while x > 1.1 {
        (x, scale) = (x.sqrt(), scale * 2.0);
    }
    let t = (x - 1.0) / (x + 1.0);
    let square = t * t;
    scale * t * (1.0 + square * (1.0 / 3.0 + square * (1.0 / 5.0 + square / 7.0)))
}

/// The HighSpeed controller. Its parameters are the common ones.
#[derive(Clone, Copy, Debug)]
pub struct HighSpeed {
    reno: Reno,
}

impl HighSpeed {
    /// A controller at its initial window for segments of `segment_bytes`.
    pub fn new(params: &CommonParams, segment_bytes: u64) -> Self {
        HighSpeed {
            reno: Reno::new(params, segment_bytes),
        }
    }

    fn segments(&self, segment: u64) -> f64 {
        self.reno.window.bytes as f64 / segment as f64
    }
}

impl Congestion for HighSpeed {
    fn on(&mut self, event: &CongestionEvent, view: &PathView<'_>) {
        let segment = segment_of(view);
        let segments = self.segments(segment);
        let target = match *event {
            CongestionEvent::Acked { bytes, .. } if Window::may_grow(view) => {
                self.reno.grow_by(increase(segments), bytes, segment);
                0
            }
            CongestionEvent::Lost { .. } | CongestionEvent::Marked { .. } => {
                (view.in_flight_bytes as f64 * (1.0 - decrease(segments))) as u64
            }
            _ => view.in_flight_bytes / 2,
        };
        self.reno.react(event, view, target);
    }
    fn window_bytes(&self) -> u64 {
        self.reno.window_bytes()
    }
    fn pacing(&self) -> Option<Rate> {
        self.reno.pacing()
    }
    fn snapshot(&self) -> CongestionSnapshot {
        self.reno.snapshot()
    }
}

#[cfg(test)]
mod tests {
    use super::super::conformance::{acked, path};
    use super::*;

    /// RFC 3649, appendix B: the window at which a(w) reaches a whole number, with b(w) there.
    #[test]
    fn the_table_of_the_rfc_comes_out() {
        let rows = [
            (118, 2, 0.44),
            (221, 3, 0.41),
            (347, 4, 0.38),
            (495, 5, 0.37),
            (663, 6, 0.35),
            (851, 7, 0.34),
            (1058, 8, 0.33),
            (1284, 9, 0.32),
            (1529, 10, 0.31),
        ];
        for (window, a, b) in rows {
            let w = f64::from(window);
            assert!(
                (increase(w) - f64::from(a)).abs() < 0.02,
                "a({w}) = {}",
                increase(w)
            );
            assert!((decrease(w) - b).abs() < 0.0051, "b({w}) = {}", decrease(w));
        }
        assert_eq!((increase(38.0), decrease(38.0)), (1.0, 0.5));
        assert!((decrease(83_000.0) - 0.1).abs() < 1e-9);
        assert!((increase(83_000.0) - 70.0).abs() < 2.0, "{}", increase(83_000.0));
    }

    #[test]
    fn roots_and_logarithms_are_right() {
        for x in [1.0, 1.05, 2.0, 38.0, 2184.2, 1e12] {
            let root = fifth_root(x);
            assert!((root * root * root * root * root / x - 1.0).abs() < 1e-12, "{x}");
            assert!((logarithm(x) - x.ln()).abs() < 1e-8 * x.ln().max(1.0), "{x}");
        }
    }

    #[test]
    fn a_round_adds_a_and_a_loss_takes_b() {
        let params = CommonParams {
            initial_threshold_bytes: 663_000,
            ..CommonParams::default()
        };
        let mut controller = HighSpeed::new(&params, 1000);
        while controller.window_bytes() < 663_000 {
            let missing = 663_000 - controller.window_bytes();
            controller.on(&acked(missing), &path(1000));
        }
        for _ in 0..663 {
            controller.on(&acked(1000), &path(1000));
        }
        let grown = controller.window_bytes();
        assert!((668_000..=669_000).contains(&grown), "six segments: {grown}");
        let view = PathView {
            in_flight_bytes: grown,
            ..path(1000)
        };
        controller.on(&CongestionEvent::Lost { bytes: 1000 }, &view);
        let left = controller.window_bytes() as f64 / grown as f64;
        assert!((left - 0.65).abs() < 0.005, "b = 0.35: {left}");
    }
}
