//! What a CUBIC flow would do on this path (RFC 9438): how often it loses segments, and what damage lets it have.

use restp_base::numeric::cube_root;
use restp_base::time::Duration;

/// Counts are halved after so many segments; with fewer losses little is known.
const REMEMBERED_SEGMENTS: f64 = 20_000.0;
const ENOUGH_LOSSES: f64 = 8.0;
/// Segments for each that is lost where damage is light. Flows that have 19 segments each in a queue lose as much there (1.5 / W²).
const LIGHT: f64 = 250.0;

/// The time between two losses of one CUBIC flow alone with a window of so many segments: K of RFC 9438 §4.2, or what the
/// Reno-friendly region takes (§4.3) if that is less.
pub(super) fn period(window: u64, rtt: Duration) -> Duration {
    // K³ = W (1 - β) / C, and (1 - β) W / α round trips
    let window = window.min(1 << 32);
    let cubic = Duration::from_millis(cube_root(window * 750_000_000));
    let friendly = rtt.scaled(window * 567, 1_000);
    cubic.min(friendly)
}

/// Segments lost by corruption, lately. What one window of data loses counts once, as it costs a loss-based flow one reduction.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Damage {
    lost: f64,
    delivered: f64,
}

impl Damage {
    pub fn on_delivered(&mut self, segments: f64) {
        self.delivered += segments;
        if self.delivered > REMEMBERED_SEGMENTS {
            self.delivered *= 0.5;
            self.lost *= 0.5;
        }
    }

    pub fn on_lost(&mut self) {
        self.lost += 1.0;
    }

    /// So little that others come near it with what they lose themselves? A queue that drops at random, by its average or by a rate, takes more.
    pub fn is_light(&self) -> bool {
        self.lost * LIGHT <= self.delivered
    }

    /// Does it keep a CUBIC flow below a quarter of this window of so many segments, whoever else is there? Its mean window is the
    /// larger of §5.1's and Reno's.
    pub fn starves(&self, window: u64, rtt: Duration) -> bool {
        if self.lost < ENOUGH_LOSSES {
            return false;
        }
        let between = self.delivered / self.lost;
        let reno = (1.5 * between).sqrt();
        let seconds = (rtt.as_secs_f64() * between).sqrt();
        let cubic = 1.054 * seconds * seconds.sqrt();
        reno.max(cubic) * 4.0 < window as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    #[test]
    fn a_cubic_flow_loses_after_the_time_of_its_curve_or_of_reno() {
        assert_eq!(
            period(1_000, RTT),
            Duration::from_millis(9_085),
            "the cube root of 750"
        );
        assert_eq!(
            period(10, RTT),
            Duration::from_millis(567),
            "567 thousandths of ten round trips"
        );
        assert_eq!(period(u64::MAX, RTT), period(1 << 32, RTT));
    }

    /// So many windows of 100 segments with one loss each.
    fn damaged(losses: u64, between: u64) -> Damage {
        let mut damage = Damage::default();
        for _ in 0..losses {
            damage.on_delivered(between as f64);
            damage.on_lost();
        }
        damage
    }

    #[test]
    fn damage_starves_loss_based_flows_where_they_would_have_less_than_a_quarter() {
        // Reno's mean window is 12.2 segments at 1 %, CUBIC's 5.9 at this round trip.
        assert!(damaged(20, 100).starves(50, RTT));
        assert!(!damaged(20, 100).starves(48, RTT));
        // CUBIC's is 33 at 0.1 % and a second.
        assert!(!damaged(20, 1_000).starves(700, Duration::from_secs(1)));
        assert!(damaged(20, 1_000).starves(800, Duration::from_secs(1)));
        assert!(!damaged(7, 100).starves(1_000, RTT), "little is known");
    }

    #[test]
    fn one_of_250_is_light() {
        assert!(Damage::default().is_light() && damaged(20, 250).is_light() && !damaged(20, 249).is_light());
    }

    #[test]
    fn what_was_long_ago_is_forgotten() {
        let mut damage = damaged(20, 100);
        (0..100).for_each(|_| damage.on_delivered(1_000.0));
        assert!(!damage.starves(1_000, RTT));
    }
}
