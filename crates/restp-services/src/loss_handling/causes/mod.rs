//! Why was a segment lost? From what a sender can see: how full the queue was when it left, against how full it was lately.
//! Corruption takes the same share of what meets a full queue and of what meets an empty one; what a full queue loses beyond
//! that is congestion. `docs/services/adaptation.md` has the model.

mod excess;
mod history;
mod ratios;

use excess::Excess;
use history::History;
use ratios::Ratios;
use restp_base::observe::Cause;
use restp_base::time::{Duration, Time};

/// A cause, and how sure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// What the loss is taken for.
    pub cause: Cause,
    /// How probable that is, in percent.
    pub confidence: u8,
}

/// Corruption is believed unless it is less probable than this: to take it for congestion costs more than the contrary, because
/// the window is bounded by the queue as well.
const DOUBT: f64 = 0.25;

/// Who fills the queue on purpose loses what leaves while it is fuller than this, and not what left before.
const HALF: f64 = 0.5;

/// What one path shows about its losses.
#[derive(Clone, Debug, Default)]
pub struct Causes {
    history: History,
    ratios: Ratios,
    excess: Excess,
    /// Segments delivered since the last slot of the history began.
    delivered: u64,
    /// What left before this filled the queue on purpose.
    began: Time,
}

impl Causes {
    /// So many segments were delivered; a segment that left at `sent_at` had waited in a queue for this long.
    pub fn on_delivered(&mut self, segments: u64, sample: Option<(Time, Duration)>, smoothed: Duration) {
        self.delivered += segments;
        self.excess.on_delivered(segments);
        let Some((sent_at, queue)) = sample else {
            return;
        };
        if let Some(settled) = self.history.on_sample(sent_at, queue, smoothed) {
            let delivered = std::mem::take(&mut self.delivered);
            if let Some(fullness) = self.history.fullness(settled) {
                self.ratios.on_delivered(fullness, delivered);
            }
        }
    }

    /// A segment that left at `sent_at` was found lost: why?
    pub fn judge(&mut self, sent_at: Time) -> Verdict {
        self.excess.on_lost();
        match self.history.fullness(sent_at) {
            Some(fullness) if sent_at < self.began => self.ratios.on_lost_on_purpose(fullness),
            Some(fullness) => self.ratios.on_lost(fullness),
            None => {}
        }
        self.verdict(sent_at)
    }

    /// Until now the sender has filled the queue on purpose: it will be as full as that only if somebody else fills it.
    pub fn on_start_over(&mut self, now: Time) {
        self.began = now;
    }

    /// What the loss of a segment that left at `sent_at` is taken for.
    pub fn verdict(&self, sent_at: Time) -> Verdict {
        let Some(fullness) = self.history.fullness(sent_at) else {
            return self.first_guess();
        };
        let is_on_purpose = sent_at < self.began && fullness >= HALF;
        let corruption = if self.excess.is_congestion() || is_on_purpose {
            0.0
        } else {
            self.ratios
                .by_corruption(fullness, self.history.is_short(sent_at))
        };
        let (cause, probability) = if corruption > DOUBT {
            (Cause::Corruption, corruption)
        } else {
            (Cause::Congestion, 1.0 - corruption)
        };
        Verdict {
            cause,
            confidence: (probability * 100.0) as u8,
        }
    }

    /// As long as little is known: has a queue begun to grow?
    fn first_guess(&self) -> Verdict {
        Verdict {
            cause: if self.history.has_begun_a_queue() {
                Cause::Congestion
            } else {
                Cause::Corruption
            },
            confidence: 50,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use restp_base::random::Stream;

    const TRIP: Duration = Duration::from_millis(80);
    const PACKETS_PER_SLOT: u64 = 20;

    /// A path whose queue fills and drains, up to `room`; what finds it full is lost, and a share of everything.
    fn verdicts(room: u64, corrupted: f64) -> [(u64, u64); 2] {
        let mut causes = Causes::default();
        let mut chance = Stream::named(7, "corruption");
        let mut right = [(0, 0); 2]; // right and all, of congestion and of corruption
        for slot in 0u64..3_000 {
            let queue = slot % 60;
            let now = Time::ZERO + Duration::from_millis(slot * 10);
            let mut delivered = 0;
            for _ in 0..PACKETS_PER_SLOT {
                let found_full = queue >= room && chance.chance(0.3);
                let damaged = chance.chance(corrupted);
                if !found_full && !damaged {
                    delivered += 1;
                } else {
                    let truth = if found_full {
                        Cause::Congestion
                    } else {
                        Cause::Corruption
                    };
                    let verdict = causes.judge(now);
                    let (rights, all) = &mut right[usize::from(truth == Cause::Corruption)];
                    *rights += u64::from(verdict.cause == truth);
                    *all += 1;
                }
            }
            let sample = Some((now, Duration::from_millis(queue.min(room))));
            causes.on_delivered(delivered, sample, TRIP);
        }
        right
    }

    #[test]
    fn overflow_without_damage_is_congestion() {
        let [(right, all), _] = verdicts(55, 0.0);
        assert!(all > 500 && right * 100 >= all * 98, "{right} of {all}");
    }

    #[test]
    fn damage_without_overflow_is_corruption() {
        // The first losses come before an empty queue has shown any.
        for (share, least) in [(0.001, 90), (0.01, 97), (0.05, 98), (0.1, 97)] {
            let [_, (right, all)] = verdicts(1_000, share);
            assert!(
                all > 40 && right * 100 >= all * least,
                "{share}: {right} of {all}"
            );
        }
    }

    /// What damages a segment of the fullest quarter looks like overflow.
    #[test]
    fn both_at_once_are_told_apart() {
        let [(congestion, overflows), (corruption, damages)] = verdicts(55, 0.01);
        assert!(
            congestion * 100 >= overflows * 90,
            "{congestion} of {overflows} overflows"
        );
        assert!(
            corruption * 100 >= damages * 75,
            "{corruption} of {damages} damages"
        );
    }

    /// Counted, they made congestion of every loss for seconds: a flow of 20 Mbit/s over 20 ms with 1 % lost took itself for one beside a neighbour.
    #[test]
    fn what_was_lost_while_the_queue_was_filled_on_purpose_says_little_of_later_losses() {
        for (is_told, later) in [(true, Cause::Corruption), (false, Cause::Congestion)] {
            let mut causes = Causes::default();
            let at = |slot: u64| Time::ZERO + Duration::from_millis(slot * 10);
            for slot in 0..20 {
                causes.on_delivered(20, Some((at(slot), Duration::from_millis(4 * slot))), TRIP);
            }
            if is_told {
                causes.on_start_over(at(20));
            }
            for lost in 0..30 {
                let verdict = causes.judge(at(16 + lost % 4));
                assert!(verdict.cause == Cause::Congestion || !is_told, "{lost}");
            }
            for slot in 20..100 {
                causes.on_delivered(20, Some((at(slot), Duration::from_millis(10 + slot % 16))), TRIP);
                if slot % 5 == 4 {
                    causes.judge(at(slot - 2)); // damaged
                }
            }
            assert_eq!(causes.verdict(at(95)).cause, later, "{is_told}");
        }
    }

    #[test]
    fn the_first_loss_is_congestion_where_a_queue_has_begun() {
        for (queue, cause) in [(11, Cause::Congestion), (10, Cause::Corruption)] {
            let mut causes = Causes::default();
            causes.on_delivered(1, Some((Time::ZERO, Duration::from_millis(queue))), TRIP);
            let verdict = causes.judge(Time::ZERO);
            assert_eq!((verdict.cause, verdict.confidence), (cause, 50));
        }
    }
}
