//! One round, as a function of the state and of a chance.

use super::PACKET_BITS;
use super::law::Law;
use super::parameters::{Parameters, Scheme};

/// First timeout, seconds: round trips of the published path keep the timer at its floor (5.23 to 5.29).
const RTO: f64 = 1.0;
/// Last timeout, seconds.
const LONGEST_RTO: f64 = 60.0;
/// Doublings until it is reached.
const DOUBLINGS: u32 = 6;
/// Reports that the sender takes for a loss.
const REPORTS: u32 = 3;
/// A late packet that is not retransmitted has come by itself as if the sender had waited for this many.
const REPORTS_UNTIL_LATE: u32 = 5;
/// Free share of the buffer below which AMFR waits for three reports, and for four (SMT §3.5).
const CRITICAL: f64 = 0.45;
const SUBSTANTIAL: f64 = 0.80;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    SlowStart,
    Avoidance,
    /// The timer runs, doubled so often.
    BackOff(u32),
}

/// Where a round begins (5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct State {
    phase: Phase,
    /// Congestion window, packets.
    pub window: u32,
    threshold: u32,
    /// Free packets of the receive buffer.
    free: u32,
    /// A late packet that nobody retransmits holds the buffer.
    blocked: bool,
}

impl State {
    pub fn waits(&self) -> bool {
        matches!(self.phase, Phase::BackOff(_))
    }
}

/// What came of a round: packets once each, copies only as deliveries.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    pub next: State,
    pub seconds: f64,
    pub sent: u32,
    pub missing: u32,
    pub delivered: u32,
}

/// Picks an index by weights that sum to one.
pub trait Chance {
    fn pick(&mut self, weights: &[f64]) -> usize;

    fn happens(&mut self, probability: f64) -> bool {
        self.pick(&[1.0 - probability, probability]) == 1
    }
}

#[derive(Clone, Debug)]
pub struct Rules {
    scheme: Scheme,
    parameters: Parameters,
    law: Law,
}

impl Rules {
    pub fn new(scheme: Scheme, parameters: Parameters) -> Self {
        let law = Law::new(parameters.buffer, parameters.missing);
        Rules {
            scheme,
            parameters,
            law,
        }
    }

    /// Two packets in slow start, an empty buffer (5.7).
    pub fn start(&self) -> State {
        let buffer = self.parameters.buffer;
        State {
            phase: Phase::SlowStart,
            window: 2,
            threshold: buffer,
            free: buffer,
            blocked: false,
        }
    }

    pub fn round(&self, state: State, chance: &mut impl Chance) -> Outcome {
        if let Phase::BackOff(doubled) = state.phase {
            return self.timeout(state, doubled, chance);
        }
        let sent = state.window.min(state.free);
        if sent == 0 {
            let seconds = self.round_trip(1);
            return Outcome {
                next: self.unblock(state, chance),
                seconds,
                sent,
                missing: 0,
                delivered: 0,
            };
        }
        let missing = chance.pick(self.law.missing(sent)) as u32;
        let seconds = self.round_trip(sent);
        let outcome = |next, delivered| Outcome {
            next,
            seconds,
            sent,
            missing,
            delivered,
        };
        if missing == sent {
            outcome(self.back_off(state), 0)
        } else if state.blocked {
            let grown = if missing == 0 { self.grow(state) } else { state };
            let free = state.free.saturating_sub(sent - missing);
            outcome(self.unblock(State { free, ..grown }, chance), sent)
        } else if missing == 0 {
            outcome(self.grow(state), sent)
        } else {
            self.hole(state, outcome(state, sent), chance)
        }
    }

    /// Some packets of the round are missing and others have arrived (algorithms 4 and 5).
    fn hole(&self, state: State, round: Outcome, chance: &mut impl Chance) -> Outcome {
        let Outcome { sent, missing, .. } = round;
        let first = chance.pick(self.law.first(sent, missing)) as u32 + 1;
        let behind = sent - first - (missing - 1);
        let free = state.free.saturating_sub(behind);
        if !chance.happens(self.parameters.late) {
            return self.lost(state, round, chance);
        }
        let still_late = self
            .parameters
            .still_late
            .powi((self.reports(free) - REPORTS) as i32);
        if !chance.happens(still_late) {
            Outcome {
                next: self.grow(state),
                ..round
            }
        } else if self.scheme == Scheme::Cmt {
            Outcome {
                next: State {
                    free,
                    blocked: true,
                    ..state
                },
                ..round
            }
        } else {
            let seconds = round.seconds + self.round_trip(missing);
            Outcome {
                next: self.repaired(state),
                seconds,
                ..round
            }
        }
    }

    /// The window is halved, and copies of what was lost make a round of their own.
    fn lost(&self, state: State, round: Outcome, chance: &mut impl Chance) -> Outcome {
        let half = (state.window / 2).max(1);
        let halved = State {
            window: half,
            threshold: half,
            ..state
        };
        let again = chance.pick(self.law.missing(round.missing)) as u32;
        let next = if again == round.missing {
            self.back_off(halved)
        } else {
            self.repaired(halved)
        };
        Outcome {
            next,
            seconds: round.seconds + self.round_trip(round.missing),
            delivered: round.sent - again,
            ..round
        }
    }

    /// The oldest packet alone, when the timer ends (5.30, 5.31).
    fn timeout(&self, state: State, doubled: u32, chance: &mut impl Chance) -> Outcome {
        let seconds = (RTO * f64::from(1 << doubled)).min(LONGEST_RTO);
        let missing = chance.pick(self.law.missing(1)) as u32;
        let next = match missing {
            0 => {
                let threshold = state.threshold.max(2);
                State {
                    phase: phase(2, threshold),
                    window: 2,
                    threshold,
                    ..state
                }
            }
            _ => State {
                phase: Phase::BackOff((doubled + 1).min(DOUBLINGS)),
                ..state
            },
        };
        Outcome {
            next,
            seconds,
            sent: 1,
            missing,
            delivered: 1 - missing,
        }
    }

    /// 5.32: the path is either waited for or full.
    fn round_trip(&self, packets: u32) -> f64 {
        let (rate, delay) = (self.parameters.rate / PACKET_BITS, self.parameters.delay);
        let packets = f64::from(packets);
        if rate * delay >= packets {
            delay + 1.0 / rate
        } else {
            packets / rate
        }
    }

    /// Reports until a late packet is retransmitted.
    fn reports(&self, free: u32) -> u32 {
        let share = f64::from(free) / f64::from(self.parameters.buffer);
        match self.scheme {
            Scheme::Cmt => REPORTS_UNTIL_LATE,
            Scheme::Mfr => REPORTS,
            Scheme::Amfr if share < CRITICAL => 3,
            Scheme::Amfr if share < SUBSTANTIAL => 4,
            Scheme::Amfr => 5,
        }
    }

    /// Growth of a round without loss, where the window and not the buffer set its size (5.13 to 5.17).
    fn grow(&self, state: State) -> State {
        if state.window > state.free {
            return state;
        }
        match state.phase {
            Phase::SlowStart => {
                let window = (2 * state.window).min(state.threshold);
                State {
                    phase: phase(window, state.threshold),
                    window,
                    ..state
                }
            }
            _ => State {
                window: (state.window + 1).min(self.parameters.buffer),
                ..state
            },
        }
    }

    fn back_off(&self, state: State) -> State {
        let threshold = (state.window / 2).max(1);
        State {
            phase: Phase::BackOff(0),
            window: 1,
            threshold,
            ..self.repaired(state)
        }
    }

    /// Nothing is missing any more, and the buffer is empty.
    fn repaired(&self, state: State) -> State {
        State {
            phase: Phase::Avoidance,
            free: self.parameters.buffer,
            blocked: false,
            ..state
        }
    }

    /// The late packet may come by itself.
    fn unblock(&self, state: State, chance: &mut impl Chance) -> State {
        match chance.happens(1.0 / self.parameters.blocked_rounds) {
            true => State {
                free: self.parameters.buffer,
                blocked: false,
                ..state
            },
            false => state,
        }
    }
}

/// 5.6.
fn phase(window: u32, threshold: u32) -> Phase {
    if window < threshold {
        Phase::SlowStart
    } else {
        Phase::Avoidance
    }
}
