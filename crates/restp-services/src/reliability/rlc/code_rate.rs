//! How much redundancy leaves, and what it combines: what is lost and how, how long a segment is of use, and how long a
//! retransmission takes, say it (RFC 8681 leaves it open). A pure function of numbers.
//!
//! Losses of each path are taken for a [`Chain`] with the measured share and mean burst, and those of two paths for independent. Of all
//! ways to encode that keep within the most redundancy the sparsest is taken that leaves at most [`TARGET`] of the segments missing;
//! more than one encoded packet for two segments only where [`DEAR_TARGET`] would be missed; where all miss, the one that leaves the
//! fewest. Two ways are weighed:
//!
//! - *dense*: each encoded packet combines every segment that is still of use. A lost segment comes back when as many encoded
//!   packets arrive as segments are missing: best where a window has many of them.
//! - *spread*: each segment is in one encoded packet, beside others as far from it as the window reaches: best where a window is
//!   short and one burst takes as much of it as its encoded packets could repair. Over several paths each leaves once more at once, by
//!   another.

use super::Combination;
use super::chain::{Chain, more_lost};
use super::window::Reach;
use restp_base::time::Duration;

/// Share of the segments that may stay missing.
const TARGET: f64 = 0.0005;
/// The same where less would take more than one encoded packet for two segments.
const DEAR_TARGET: f64 = 0.01;
/// Segments for one encoded packet, at most.
const SPARSEST: u16 = 32;

/// What is known of the paths and of the data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Conditions<'a> {
    /// Paths by which segments and encoded packets leave, at least one.
    pub paths: &'a [PathConditions],
    /// What is lost leaves again.
    pub retransmits: bool,
    /// A segment is of use until so long after it left; without, for ever.
    pub deadline: Option<Duration>,
    /// From one segment to the next, in the mean.
    pub interval: Duration,
    /// Encoded packets for 100 segments, at most.
    pub most_percent: u32,
}

/// What is known of one path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PathConditions {
    /// Share of its segments that are lost.
    pub loss: f64,
    /// Losses in a row, in the mean.
    pub burst: f64,
    /// Round trip.
    pub rtt: Duration,
    /// Share of all segments that leave by it.
    pub share: f64,
}

/// How to encode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// Segments for one encoded packet.
    pub every: u16,
    /// Which segments it combines.
    pub reach: Reach,
}

impl Conditions<'_> {
    /// Does a retransmission arrive in time? The loss shows when the next segment of its path arrives; its report takes half a round
    /// trip, and so does the retransmission, which leaves by the fastest path. What carries no segments loses none.
    fn retransmission_is_in_time(&self) -> bool {
        let carrying = || self.paths.iter().filter(|path| path.share > 0.0);
        let longest = carrying().map(|path| path.rtt).max().unwrap_or_default();
        let shortest = self.paths.iter().map(|path| path.rtt).min().unwrap_or_default();
        let takes = longest + shortest / 2 + self.interval * carrying().count().max(1) as u64;
        self.retransmits && self.deadline.is_none_or(|deadline| takes <= deadline)
    }

    fn longest_rtt(&self) -> Duration {
        self.paths.iter().map(|path| path.rtt).max().unwrap_or_default()
    }

    /// Share of all segments that are lost.
    fn loss(&self) -> f64 {
        self.paths.iter().map(|path| path.share * path.loss).sum()
    }

    /// Segments that are of use at the same time.
    fn window(&self) -> Option<u16> {
        let slack = self.deadline?.saturating_sub(self.longest_rtt() / 2);
        if slack.is_zero() {
            return None;
        }
        let intervals = slack.as_nanos() / self.interval.as_nanos().max(1);
        Some(intervals.saturating_add(1).min(Combination::MOST.into()) as u16)
    }
}

/// How to encode under these conditions; `None` when nothing is to be encoded: a retransmission is in time, or nothing would be,
/// or next to nothing is lost.
pub(super) fn plan(conditions: &Conditions<'_>) -> Option<Plan> {
    let window = conditions.window()?;
    if conditions.retransmission_is_in_time() || conditions.loss() <= TARGET {
        return None;
    }
    let carriers: Vec<Carrier> = conditions.paths.iter().map(Carrier::new).collect();
    let densest = 100u32.div_ceil(conditions.most_percent.max(1)) as u16;
    let mut best: Option<(f64, Plan)> = None;
    for every in (densest..=window.min(SPARSEST).max(densest)).rev() {
        let spread = match &carriers[..] {
            [alone] => spread(&alone.chain, window, every),
            several => (every == 1).then(|| again(several)),
        };
        for (missing, plan) in [Some(dense(&carriers, window, every)), spread]
            .into_iter()
            .flatten()
        {
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

/// A path, and its share of the segments.
struct Carrier {
    chain: Chain,
    share: f64,
}

impl Carrier {
    fn new(path: &PathConditions) -> Self {
        Carrier {
            chain: Chain::new(path.loss, path.burst),
            share: path.share,
        }
    }
}

/// Every encoded packet combines the whole window, and leaves by a path that carried least of that. Some windows have one more.
fn dense(carriers: &[Carrier], window: u16, every: u16) -> (f64, Plan) {
    let (fewer, part) = (window / every, f64::from(window % every) / f64::from(every));
    let more = if part > 0.0 {
        part * missing(carriers, window, every, fewer + 1)
    } else {
        0.0
    };
    let missing = (1.0 - part) * missing(carriers, window, every, fewer) + more;
    let reach = Reach {
        back: window - 1,
        count: window,
        stride: 1,
    };
    (missing, Plan { every, reach })
}

/// Packets of a window by each path: its segments, and those of so many `repairs` that it takes. Paths that carried least take them, as
/// equally as may be.
fn packets(carriers: &[Carrier], window: u16, repairs: u16) -> Vec<u16> {
    let least = carriers.iter().map(|carrier| carrier.share).fold(1.0, f64::min);
    let takes = |carrier: &Carrier| (carrier.share - least) * f64::from(window) < 1.0;
    let taking = carriers.iter().filter(|carrier| takes(carrier)).count() as u16;
    let mut left = repairs;
    let packets_of = |carrier: &Carrier| {
        let segments = (carrier.share * f64::from(window) + 0.5) as u16;
        let encoded = if takes(carrier) {
            left.min(repairs.div_ceil(taking))
        } else {
            0
        };
        left -= encoded;
        segments + encoded
    };
    carriers.iter().map(packets_of).collect()
}

/// Share of the segments that stay missing where each has so many `repairs` in its window.
fn missing(carriers: &[Carrier], window: u16, every: u16, repairs: u16) -> f64 {
    let packets = packets(carriers, window, repairs);
    let missing = |lost: usize| {
        let groups = carriers
            .iter()
            .zip(&packets)
            .enumerate()
            .flat_map(|(path, (carrier, packets))| {
                let chain = carrier.chain.between(every);
                if path == lost {
                    let others = packets.saturating_sub(1);
                    let beside = [others / 2, others - others / 2];
                    beside
                        .map(|packets| chain.losses_beside(packets, repairs))
                        .to_vec()
                } else {
                    vec![chain.losses_of(*packets, repairs)]
                }
            });
        more_lost(groups, repairs)
    };
    let each = carriers.iter().enumerate();
    each.map(|(path, carrier)| carrier.share * carrier.chain.loss * missing(path))
        .sum()
}

/// Each segment leaves once more, by another path.
fn again(carriers: &[Carrier]) -> (f64, Plan) {
    let all: f64 = carriers.iter().map(|carrier| carrier.chain.loss).sum();
    let others = |carrier: &Carrier| (all - carrier.chain.loss) / (carriers.len() - 1) as f64;
    let missing = carriers
        .iter()
        .map(|carrier| carrier.share * carrier.chain.loss * others(carrier));
    let reach = Reach {
        back: 0,
        count: 1,
        stride: 1,
    };
    (missing.sum(), Plan { every: 1, reach })
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

#[cfg(test)]
mod tests;
