//! Do losses follow what is sent (Biaz and Vaidya 2005)? Where many flows keep a short queue full, or a policer drops, round trips show
//! nothing; but who sends less loses less there, and by corruption as much as before.

use std::collections::VecDeque;

/// Segments that are counted together, and how many such counts are remembered.
const COUNTED: u64 = 200;
const REMEMBERED: usize = 32;
/// A share of losses is more than damage when it exceeds the least of late so often over, and by so much.
const TIMES: f64 = 3.0;
const MARGIN: f64 = 0.08;
/// Counts in a row with so much: bursts of damage end sooner.
const IN_A_ROW: u32 = 3;

/// Shares of segments lost, lately.
#[derive(Clone, Debug, Default)]
pub(super) struct Excess {
    lost: u64,
    delivered: u64,
    shares: VecDeque<f64>,
    in_a_row: u32,
}

impl Excess {
    pub fn on_delivered(&mut self, segments: u64) {
        self.delivered += segments;
        self.count();
    }

    pub fn on_lost(&mut self) {
        self.lost += 1;
        self.count();
    }

    fn count(&mut self) {
        let all = self.lost + self.delivered;
        if all < COUNTED {
            return;
        }
        let share = self.lost as f64 / all as f64;
        (self.lost, self.delivered) = (0, 0);
        let least = self.shares.iter().copied().fold(share, f64::min);
        let exceeds = share > (least * TIMES).max(least + MARGIN);
        self.in_a_row = if exceeds { self.in_a_row + 1 } else { 0 };
        if self.shares.len() == REMEMBERED {
            self.shares.pop_front();
        }
        self.shares.push_back(share);
    }

    /// More is lost than a damaged path takes.
    pub fn is_congestion(&self) -> bool {
        self.in_a_row >= IN_A_ROW
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hundreds of two with so many lost in each.
    fn after(lost: &[u64]) -> Excess {
        let mut excess = Excess::default();
        for lost in lost {
            (0..*lost).for_each(|_| excess.on_lost());
            excess.on_delivered(COUNTED - lost);
        }
        excess
    }

    #[test]
    fn three_counts_in_a_row_beyond_the_least_are_no_damage() {
        assert!(after(&[0, 17, 17, 17]).is_congestion());
        assert!(!after(&[0, 17, 17]).is_congestion());
        assert!(!after(&[0, 17, 17, 16, 17]).is_congestion(), "not in a row");
        assert!(!after(&[0, 16, 16, 16]).is_congestion(), "too little");
    }

    #[test]
    fn as_much_as_always_is_damage() {
        assert!(!after(&[40; 20]).is_congestion());
        assert!(
            !after(&[10, 30, 30, 30]).is_congestion(),
            "three times as much, not more"
        );
        assert!(after(&[10, 31, 31, 31]).is_congestion());
    }

    #[test]
    fn the_least_is_forgotten() {
        let shares: Vec<_> = std::iter::once(0).chain([20; 34]).collect();
        assert!(after(&shares[..33]).is_congestion());
        assert!(!after(&shares).is_congestion());
    }
}
