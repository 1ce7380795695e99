//! BIC (Xu, Harfoush, Rhee, INFOCOM 2004) as Linux and ns-3 have it: how many acknowledged segments one more segment
//! of window costs.

use super::bic::LOW_WINDOW;
use super::window::Window;

/// At most so many segments per round trip (Smax).
const MOST_PER_ROUND: u64 = 16;
/// B: a quarter of the distance to the maximum per round trip.
const DIVISOR: u64 = 4;
/// How slowly the window moves next to the maximum; ns-3's value, Linux has 20.
const SMOOTH_PART: u64 = 5;
/// β, as Linux writes 0.8.
const BETA: (u64, u64) = (819, 1024);
/// While no maximum is known, a segment costs at most so many.
const MOST_BLIND: u64 = 20;

/// The search.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sim {
    /// The window before the last reduction in bytes, less when converging fast; 0 for none.
    maximum: u64,
    /// Bytes acknowledged since the window last grew.
    credit: u64,
}

impl Sim {
    pub fn grow(&mut self, window: &mut Window, acked: u64, segment: u64) {
        let price = price(window.bytes / segment, self.maximum / segment) * segment;
        self.credit = self.credit.saturating_add(acked);
        window.grow(segment.saturating_mul(self.credit / price));
        self.credit %= price;
    }

    pub fn reduced(&mut self, window: u64, segment: u64, fast_convergence: bool) -> u64 {
        let (beta, whole) = BETA;
        self.credit = 0;
        self.maximum = if fast_convergence && window < self.maximum {
            window * (whole + beta) / (2 * whole)
        } else {
            window
        };
        if window <= LOW_WINDOW * segment {
            window / 2
        } else {
            window * beta / whole
        }
    }
}

/// `cnt`: segments to be acknowledged for one more segment of window, with everything in segments.
fn price(window: u64, maximum: u64) -> u64 {
    let distance = maximum.saturating_sub(window) / DIVISOR;
    let price = if window <= LOW_WINDOW {
        window
    } else if window < maximum {
        match distance {
            0 | 1 => window * SMOOTH_PART / DIVISOR,
            _ if distance > MOST_PER_ROUND => window / MOST_PER_ROUND,
            _ => window / distance,
        }
    } else if window < maximum + DIVISOR {
        window * SMOOTH_PART / DIVISOR
    } else if window < maximum + MOST_PER_ROUND * (DIVISOR - 1) {
        window * (DIVISOR - 1) / (window - maximum)
    } else {
        window / MOST_PER_ROUND
    };
    let most = if maximum == 0 { MOST_BLIND } else { u64::MAX };
    price.min(most).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worked_numbers() {
        // TC §4.12, maximum 100.
        assert_eq!([20, 50, 80, 98].map(|window| price(window, 100)), [1, 4, 16, 122]);
    }

    #[test]
    fn beyond_the_maximum_the_price_falls_again() {
        assert_eq!(price(10, 100), 10, "Reno");
        assert_eq!([100, 103].map(|window| price(window, 100)), [125, 128]);
        assert_eq!([104, 147].map(|window| price(window, 100)), [78, 9]); // 104 · 3 / 4, 147 · 3 / 47
        assert_eq!(price(160, 100), 10); // 160 / 16
        assert_eq!(price(16, 0), 3, "no maximum: 16 · 3 / 16");
        assert_eq!(price(1000, 0), 20, "62, but blind it costs 20 at most");
    }

    #[test]
    fn a_window_that_shrinks_from_loss_to_loss_makes_room() {
        let mut search = Sim::default();
        assert_eq!(search.reduced(102_400, 1000, true), 81_900);
        assert_eq!(search.maximum, 102_400);
        assert_eq!(search.reduced(81_920, 1000, true), 65_520);
        assert_eq!(search.maximum, 73_720, "81 920 · (1 + 819 / 1024) / 2");
        let mut steady = Sim::default();
        steady.reduced(102_400, 1000, false);
        steady.reduced(81_920, 1000, false);
        assert_eq!(steady.maximum, 81_920);
    }
}
