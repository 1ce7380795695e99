//! How much redundancy leaves, and what it combines: what is lost and how, how long a segment is of use, and how long a
//! retransmission takes, say it (RFC 8681 leaves it open). A pure function of numbers.
//!
//! Losses are taken for a Markov chain of two states (Gilbert 1960) with the measured share and mean burst. Of all ways to encode
//! that keep within the most redundancy the sparsest is taken that leaves at most [`TARGET`] of the segments missing; more than one
//! encoded packet for two segments only where [`DEAR_TARGET`] would be missed; where all miss, the one that leaves the fewest. Two
//! ways are weighed:
//!
//! - *dense*: each encoded packet combines every segment that is still of use. A lost segment comes back when as many encoded
//!   packets arrive as segments are missing: best where a window has many of them.
//! - *spread*: each segment is in one encoded packet, beside others as far from it as the window reaches: best where a window is
//!   short and one burst takes as much of it as its encoded packets could repair.

use super::Combination;
use super::window::Reach;
use restp_base::time::Duration;

/// Share of the segments that may stay missing.
const TARGET: f64 = 0.0005;
/// The same where less would take more than one encoded packet for two segments.
const DEAR_TARGET: f64 = 0.01;
/// Segments for one encoded packet, at most.
const SPARSEST: u16 = 32;

/// What is known of the path and of the data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Conditions {
    /// Share of the segments that are lost.
    pub loss: f64,
    /// Losses in a row, in the mean.
    pub burst: f64,
    /// Round trip.
    pub rtt: Duration,
    /// What is lost leaves again.
    pub retransmits: bool,
    /// A segment is of use until so long after it left; without, for ever.
    pub deadline: Option<Duration>,
    /// From one segment to the next, in the mean.
    pub interval: Duration,
    /// Encoded packets for 100 segments, at most.
    pub most_percent: u32,
}

/// How to encode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// Segments for one encoded packet.
    pub every: u16,
    /// Which segments it combines.
    pub reach: Reach,
}

impl Conditions {
    /// For so long after a segment left something may leave that arrives in time.
    pub(super) fn slack(&self) -> Option<Duration> {
        Some(self.deadline?.saturating_sub(self.rtt / 2))
    }

    /// Does a retransmission arrive in time? The loss shows when the next segment arrives; its report takes half a round trip,
    /// and so does the retransmission.
    pub(super) fn retransmission_is_in_time(&self) -> bool {
        let takes = self.rtt.scaled(3, 2) + self.interval;
        self.retransmits && self.deadline.is_none_or(|deadline| takes <= deadline)
    }

    /// Segments that are of use at the same time.
    fn window(&self) -> Option<u16> {
        let slack = self.slack().filter(|slack| !slack.is_zero())?;
        let intervals = slack.as_nanos() / self.interval.as_nanos().max(1);
        Some(intervals.saturating_add(1).min(Combination::MOST.into()) as u16)
    }
}

/// How to encode under these conditions; `None` when nothing is to be encoded: a retransmission is in time, or nothing would be,
/// or next to nothing is lost.
pub(super) fn plan(conditions: &Conditions) -> Option<Plan> {
    let window = conditions.window()?;
    if conditions.retransmission_is_in_time() || conditions.loss <= TARGET {
        return None;
    }
    let chain = Chain::new(conditions);
    let densest = 100u32.div_ceil(conditions.most_percent.max(1)) as u16;
    let mut best: Option<(f64, Plan)> = None;
    for every in (densest..=window.min(SPARSEST).max(densest)).rev() {
        let ways = [Some(dense(&chain, window, every)), spread(&chain, window, every)];
        for (missing, plan) in ways.into_iter().flatten() {
            if best.is_none_or(|(fewest, _)| missing < fewest) {
                best = Some((missing, plan));
            }
        }
        let enough = if every > 2 { TARGET } else { DEAR_TARGET };
        if best.is_some_and(|(missing, _)| missing <= enough) {
            break;
        }
    }
    best.map(|(_, plan)| plan)
}

/// Every encoded packet combines the whole window.
fn dense(chain: &Chain, window: u16, every: u16) -> (f64, Plan) {
    let repairs = window / every;
    let others = window - 1 + repairs;
    let missing = chain.loss
        * chain
            .between(every)
            .more_lost(others / 2, others - others / 2, repairs);
    let reach = Reach {
        back: window - 1,
        count: window,
        stride: 1,
    };
    (missing, Plan { every, reach })
}

/// Each segment is in one encoded packet, which combines `every` segments as far apart as the window allows. Their distance and
/// their number have no common divisor, so that each is met once.
fn spread(chain: &Chain, window: u16, every: u16) -> Option<(f64, Plan)> {
    let (stride, back) = match every {
        1 => (1, window - 1),
        _ => {
            let widest = ((window - 1) / (every - 1)).min(Combination::WIDEST.into());
            let stride = (2..=widest).rev().find(|stride| divisor(*stride, every) == 1)?;
            (stride, stride * (every - 1))
        }
    };
    let members = (0..every).map(|lost| {
        let before = (0..lost).map(|_| stride);
        let after = (lost + 1..every).map(|_| stride);
        let newest = back - stride * (every - 1);
        chain.all_arrive(before) * chain.all_arrive(after.chain([newest]))
    });
    let arrives = members.sum::<f64>() / f64::from(every);
    let reach = Reach {
        back,
        count: every,
        stride: stride as u8,
    };
    Some((chain.loss * (1.0 - arrives), Plan { every, reach }))
}

fn divisor(a: u16, b: u16) -> u16 {
    if b == 0 { a } else { divisor(b, a % b) }
}

/// Gilbert's chain: good packets arrive, bad ones are lost.
struct Chain {
    loss: f64,
    /// What is left after one step of what the last packet says of the next.
    memory: f64,
}

impl Chain {
    fn new(conditions: &Conditions) -> Self {
        let loss = conditions.loss.min(0.99);
        let memory = 1.0 - 1.0 / (conditions.burst * (1.0 - loss));
        Chain {
            loss,
            memory: memory.clamp(0.0, 0.99),
        }
    }

    /// The same from one packet to the next, where an encoded packet leaves behind each `every` segments: half a step farther.
    fn between(&self, every: u16) -> Chain {
        let closer = (self.memory.sqrt() - self.memory) / f64::from(every);
        Chain {
            memory: self.memory + closer,
            ..*self
        }
    }

    /// Of `before` packets before one that is lost and `after` behind it: the probability that at least `lost` of them are.
    fn more_lost(&self, before: u16, after: u16, lost: u16) -> f64 {
        let (before, after) = (self.losses(before, lost), self.losses(after, lost));
        let fewer = before.iter().enumerate().map(|(count, probability)| {
            let rest = &after[..after.len() - count];
            probability * rest.iter().sum::<f64>()
        });
        1.0 - fewer.sum::<f64>()
    }

    /// The probability that so many of `packets` beside one that is lost are lost, for each number below `lost`. The chain is the
    /// same forwards and backwards.
    fn losses(&self, packets: u16, lost: u16) -> Vec<f64> {
        let to_bad = self.loss * (1.0 - self.memory);
        let stays_bad = to_bad + self.memory;
        // By the number of losses so far: the last packet arrived, or did not.
        let (mut good, mut bad) = (vec![0.0; usize::from(lost)], vec![0.0; usize::from(lost)]);
        if let Some(none) = bad.first_mut() {
            *none = 1.0;
        }
        for _ in 0..packets {
            let mut carried = 0.0; // from the place before, with one loss more
            for (good, bad) in good.iter_mut().zip(&mut bad) {
                let loses = *good * to_bad + *bad * stays_bad;
                *good = *good * (1.0 - to_bad) + *bad * (1.0 - stays_bad);
                *bad = std::mem::replace(&mut carried, loses);
            }
        }
        good.iter().zip(&bad).map(|(good, bad)| good + bad).collect()
    }

    /// After one that is lost: the probability that all those arrive that are so many steps from one another, the first from the
    /// one lost. An encoded packet is half a step behind the segment that it leaves with.
    fn all_arrive(&self, steps: impl Iterator<Item = u16>) -> f64 {
        let mut probability = 1.0;
        let mut lost_before = 1.0;
        for step in steps {
            let memory = match step {
                0 => self.memory.sqrt(),
                _ => (0..step).fold(1.0, |memory, _| memory * self.memory),
            };
            let lost = self.loss * (1.0 - memory) + lost_before * memory;
            probability *= 1.0 - lost;
            lost_before = 0.0;
        }
        probability
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    /// G.711 in frames of 20 ms, 200 ms one way over a round trip of 250 ms.
    const VOICE: Conditions = Conditions {
        loss: 0.05,
        burst: 1.0 / 0.95,
        rtt: Duration::from_millis(250),
        retransmits: true,
        deadline: Some(Duration::from_millis(200)),
        interval: Duration::from_millis(20),
        most_percent: 50,
    };

    #[test]
    fn nothing_leaves_where_a_retransmission_is_in_time() {
        let near = |rtt| Conditions {
            rtt: ms(rtt),
            ..VOICE
        };
        assert_eq!(plan(&near(120)), None, "3/2 of it and a frame are 200 ms");
        assert!(plan(&near(121)).is_some());
        assert_eq!(
            plan(&Conditions {
                deadline: None,
                ..VOICE
            }),
            None
        );
        assert!(
            plan(&Conditions {
                retransmits: false,
                ..near(120)
            })
            .is_some()
        );
    }

    #[test]
    fn nothing_leaves_where_nothing_is_lost_or_all_comes_too_late() {
        assert_eq!(plan(&Conditions { loss: 0.0, ..VOICE }), None);
        assert_eq!(
            plan(&Conditions {
                loss: TARGET,
                ..VOICE
            }),
            None
        );
        assert_eq!(
            plan(&Conditions {
                rtt: ms(400),
                ..VOICE
            }),
            None
        );
    }

    #[test]
    fn voice_with_independent_losses_gets_dense_windows_of_the_frames_still_of_use() {
        let reach = Reach {
            back: 3,
            count: 4,
            stride: 1,
        };
        assert_eq!(plan(&VOICE), Some(Plan { every: 2, reach }));
        let rare = Conditions {
            loss: 0.005,
            burst: 1.0 / 0.995,
            ..VOICE
        };
        assert_eq!(plan(&rare).map(|plan| plan.every), Some(4));
    }

    #[test]
    fn more_than_one_for_two_segments_leaves_only_where_many_would_be_missing() {
        let all = Conditions {
            most_percent: 100,
            ..VOICE
        };
        let every = |loss| plan(&Conditions { loss, ..all }).map(|plan| plan.every);
        assert_eq!([0.05, 0.3].map(every), [Some(2), Some(1)]);
    }

    #[test]
    fn voice_with_bursts_gets_frames_as_far_apart_as_may_be() {
        let bursts = Conditions { burst: 2.2, ..VOICE };
        let reach = Reach {
            back: 3,
            count: 2,
            stride: 3,
        };
        assert_eq!(plan(&bursts), Some(Plan { every: 2, reach }));
        let all = Conditions {
            most_percent: 100,
            ..bursts
        };
        let reach = Reach {
            back: 3,
            count: 1,
            stride: 1,
        };
        assert_eq!(
            plan(&all),
            Some(Plan { every: 1, reach }),
            "each again, when a burst is over"
        );
    }

    /// 4 Mbit/s in packets of 1250 bytes, 250 ms one way over a round trip of 300 ms.
    #[test]
    fn video_needs_less_the_longer_its_window_is() {
        let video = Conditions {
            loss: 0.02,
            burst: 1.0 / 0.98,
            rtt: ms(300),
            retransmits: true,
            deadline: Some(ms(250)),
            interval: Duration::from_micros(2500),
            most_percent: 15,
        };
        let window = |conditions: &Conditions| plan(conditions).map(|plan| (plan.every, plan.reach.count));
        assert_eq!(window(&video), Some((10, 41)));
        assert!(
            window(&Conditions {
                deadline: Some(ms(350)),
                ..video
            })
            .is_some_and(|(every, _)| every > 12)
        );
        assert!(window(&Conditions { burst: 3.0, ..video }).is_some_and(|(every, _)| every < 9));
    }

    #[test]
    fn redundancy_stays_within_what_is_allowed() {
        for most_percent in [1, 5, 10, 34, 50, 100] {
            for (loss, burst) in [(0.001, 1.0), (0.05, 1.1), (0.3, 1.5), (0.9, 20.0), (1.0, 1e9)] {
                let plan = plan(&Conditions {
                    loss,
                    burst,
                    most_percent,
                    ..VOICE
                });
                let every = plan.map_or(u32::MAX, |plan| plan.every.into());
                assert!(
                    every >= 100u32.div_ceil(most_percent),
                    "{most_percent} {loss} {burst}"
                );
            }
        }
    }

    /// Sums of the binomial distribution, where there is no memory.
    #[test]
    fn without_bursts_losses_are_independent() {
        let chain = Chain::new(&Conditions {
            loss: 0.05,
            burst: 1.0 / 0.95,
            ..VOICE
        });
        assert!((chain.more_lost(2, 3, 1) - (1.0 - 0.95f64.powi(5))).abs() < 1e-12);
        assert!((chain.more_lost(4, 1, 2) - 0.022_592_5).abs() < 1e-6);
        assert!((chain.all_arrive([3, 0].into_iter()) - 0.95 * 0.95).abs() < 1e-9);
        assert_eq!(chain.more_lost(3, 0, 0), 1.0);
    }

    #[test]
    fn in_a_burst_the_next_is_lost_as_the_burst_is_long() {
        let chain = Chain::new(&Conditions {
            loss: 0.05,
            burst: 3.0,
            ..VOICE
        });
        assert!((chain.more_lost(0, 1, 1) - 2.0 / 3.0).abs() < 1e-12);
        assert!((chain.all_arrive([1].into_iter()) - 1.0 / 3.0).abs() < 1e-12);
    }
}
