//! A Markov chain of SMT and CMT on one path (SMT §5): what share of the path a scheme uses when packets are missing.
//!
//! Time advances in rounds: a window of packets and its acknowledgement, or a timeout. [`round`](mod@round) plays one,
//! and asks a chance for what is random. [`exact`] answers in every way there is and solves the chain that results;
//! [`monte_carlo`] draws. `docs/model.md` has the rules, their source and the published equations they complete.

mod chain;
mod law;
mod lru;
mod monte_carlo;
mod parameters;
mod round;

pub use chain::{Unsettled, exact};
pub use lru::lru_hit_share;
pub use monte_carlo::monte_carlo;
pub use parameters::{Invalid, Parameters, Scheme};

use serde::Serialize;

/// Bits of a packet.
const PACKET_BITS: f64 = 8.0 * 1500.0;

/// What a scheme does in the long run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Measures {
    /// Bits of packets that arrived per second, each packet once.
    pub throughput_bps: f64,
    /// Packets sent per round, copies apart.
    pub sent: f64,
    /// Of those, packets that were missing when the round ended.
    pub missing: f64,
    /// Packets of the congestion window, over rounds.
    pub window: f64,
    /// Seconds per round.
    pub round_s: f64,
    /// Share of rounds that wait for the timer.
    pub back_off: f64,
}

/// Sums over rounds, each with a weight, from which the measures are ratios.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    weight: f64,
    seconds: f64,
    sent: f64,
    missing: f64,
    delivered: f64,
    window: f64,
    back_off: f64,
}

impl Sums {
    fn add(&mut self, weight: f64, from: &round::State, round: &round::Outcome) {
        self.weight += weight;
        self.seconds += weight * round.seconds;
        self.sent += weight * f64::from(round.sent);
        self.missing += weight * f64::from(round.missing);
        self.delivered += weight * f64::from(round.delivered);
        self.window += weight * f64::from(from.window);
        self.back_off += weight * f64::from(u8::from(from.waits()));
    }

    fn measures(&self) -> Measures {
        Measures {
            throughput_bps: self.delivered / self.seconds * PACKET_BITS,
            sent: self.sent / self.weight,
            missing: self.missing / self.weight,
            window: self.window / self.weight,
            round_s: self.seconds / self.weight,
            back_off: self.back_off / self.weight,
        }
    }
}
