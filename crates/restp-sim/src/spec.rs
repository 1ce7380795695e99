//! A network as its user describes it. Nodes exist because links name them.

use crate::discipline::Queue;
use crate::error_model::{Chance, Corrupt, Duplicate, ErrorModel, Jitter, Reorder};
pub use crate::mark::MarkThreshold;
use crate::medium::MediumError;
use crate::police::Police;
use crate::rate::LinkRate;
pub use crate::spec_error::SpecError;
use crate::spec_error::probability;
use restp_base::time::{Duration, Time};
use std::fmt;
use std::ops::Range;
use thiserror::Error;

/// A full-duplex link between two nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkSpec {
    /// Unique name; it also names the link's random streams.
    pub name: String,
    /// The nodes at its ends.
    pub between: [String; 2],
    /// From the first node to the second.
    pub forward: DirectionSpec,
    /// From the second node to the first.
    pub reverse: DirectionSpec,
}

impl LinkSpec {
    /// A link that is the same both ways.
    pub fn symmetric(name: &str, between: [&str; 2], direction: DirectionSpec) -> Self {
        LinkSpec {
            name: name.into(),
            between: between.map(String::from),
            forward: direction.clone(),
            reverse: direction,
        }
    }

    /// The description of one direction.
    pub const fn direction(&self, way: Way) -> &DirectionSpec {
        match way {
            Way::Forward => &self.forward,
            Way::Reverse => &self.reverse,
        }
    }
}

/// One direction of a link. The default is a perfect wire: no rate limit, no delay, no faults.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DirectionSpec {
    /// How fast it sends; `None` takes no time to send.
    pub rate: Option<LinkRate>,
    /// Propagation, after the last bit has left.
    pub delay: Duration,
    /// What may enter; the rest is dropped. `None`: everything.
    pub police: Option<Police>,
    /// What may wait while another packet is being sent. Without a rate nothing ever waits.
    pub queue: Queue,
    /// Loss behind the serialiser: a lost packet has used its share of the link. All models see every packet.
    pub loss: Vec<ErrorModel>,
    /// Only in these times; empty: always.
    pub loss_during: Vec<Range<Time>>,
    /// Most bytes of a packet, its headers included: a longer one vanishes, unless it may be cut into pieces. (These are
    /// not modelled: it passes as it is.)
    pub mtu: Option<u32>,
    /// Bytes of link header and trailer with each packet: they take time on the line, and no room in the queue.
    pub overhead_bytes: u32,
    /// Black holes: what is offered, sent off or due in one of these times vanishes.
    pub outage: Vec<Range<Time>>,
    /// By how much packets take longer, each by a time of its own.
    pub jitter: Option<Jitter>,
    /// Packets that take longer than the others.
    pub reorder: Option<Reorder>,
    /// Packets that arrive twice.
    pub duplicate: Option<Duplicate>,
    /// Packets with one bit flipped.
    pub corrupt: Option<Corrupt>,
    /// From which backlog on ECN-capable packets are marked (RFC 3168 §5); with drop-tail only, the other disciplines
    /// mark by rules of their own.
    pub mark: Option<MarkThreshold>,
}

impl DirectionSpec {
    /// A rate, a delay and a queue without faults.
    pub fn new(rate: impl Into<LinkRate>, delay: Duration, queue: impl Into<Queue>) -> Self {
        DirectionSpec {
            rate: Some(rate.into()),
            delay,
            queue: queue.into(),
            ..DirectionSpec::default()
        }
    }

    /// What is left to chance.
    pub(crate) fn chance(&self) -> Chance<'_> {
        Chance {
            loss: &self.loss,
            loss_during: &self.loss_during,
            corrupt: self.corrupt,
            reorder: self.reorder,
            jitter: self.jitter,
            duplicate: self.duplicate,
        }
    }

    /// Says what is impossible about this description.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn check(&self) -> Result<(), SpecError> {
        self.rate.as_ref().map_or(Ok(()), LinkRate::check)?;
        self.police.map_or(Ok(()), |police| police.check())?;
        self.queue.check()?;
        if self.mark.is_some() && !matches!(self.queue, Queue::DropTail(_)) {
            return Err(SpecError::TwoMarkers);
        }
        let mut times = self.outage.iter().chain(&self.loss_during);
        if let Some(window) = times.find(|window| window.is_empty()) {
            return Err(SpecError::EmptySpan {
                start: window.start,
                end: window.end,
            });
        }
        self.loss.iter().try_for_each(ErrorModel::check)?;
        self.reorder
            .map_or(Ok(()), |reorder| probability("reorder", reorder.probability))?;
        self.duplicate.map_or(Ok(()), |duplicate| {
            probability("duplicate", duplicate.probability)
        })?;
        self.corrupt
            .map_or(Ok(()), |corrupt| probability("corrupt", corrupt.probability))
    }
}

/// Which way along a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Way {
    /// From the first node of [`LinkSpec::between`] to the second.
    Forward,
    /// From the second node to the first.
    Reverse,
}

impl Way {
    /// Both ways, in the order of their indices.
    pub const BOTH: [Way; 2] = [Way::Forward, Way::Reverse];
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Way::Forward => "forward",
            Way::Reverse => "reverse",
        })
    }
}

/// Why a list of links is not a network.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum NetworkError {
    /// No links.
    #[error("the network has no links; name at least one")]
    Empty,
    /// More nodes or links than the routes between all of them have room for.
    #[error("{count} {what} are too many; a network holds at most {limit}")]
    TooLarge {
        /// Nodes or links.
        what: &'static str,
        /// How many there are.
        count: usize,
        /// How many there may be.
        limit: usize,
    },
    /// A link or node without a name.
    #[error("link number {0} has an empty name, or names a node without a name")]
    Nameless(usize),
    /// Two links of one name.
    #[error("two links are called \"{0}\"; give each its own name, it also names their random streams")]
    DuplicateLink(String),
    /// A link from a node to itself.
    #[error("link \"{link}\" joins \"{node}\" with itself; name two different nodes")]
    Loop {
        /// The link.
        link: String,
        /// The node.
        node: String,
    },
    /// There is no route between two nodes.
    #[error("no route leads from \"{from}\" to \"{to}\"; add a link that joins the two parts")]
    Unreachable {
        /// One node.
        from: String,
        /// The other.
        to: String,
    },
    /// Two media of one name.
    #[error("two media are called \"{0}\"; give each its own name, it also names their random streams")]
    DuplicateMedium(String),
    /// A medium that cannot be.
    #[error("medium \"{medium}\": {error}")]
    Medium {
        /// The medium.
        medium: String,
        /// What is wrong.
        error: MediumError,
    },
    /// A direction with an impossible value.
    #[error("link \"{link}\", {way}: {error}")]
    Spec {
        /// The link.
        link: String,
        /// Its direction.
        way: Way,
        /// What is wrong.
        error: SpecError,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discipline::{Codel, FqCodel, QueueLimit, Red};
    use crate::error_model::{BurstLoss, LossUnit, RateLoss, Scripted};
    use restp_base::units::Rate;

    #[test]
    fn impossible_values_are_named() {
        let broken = |change: fn(&mut DirectionSpec)| {
            let mut spec = DirectionSpec::default();
            change(&mut spec);
            spec.check().expect_err("impossible").to_string()
        };
        assert!(broken(|s| s.rate = Some(Rate::from_bps(0).into())).contains("0 bit/s"));
        assert!(broken(|s| s.queue = QueueLimit::Bdp.into()).contains("resolve"));
        assert!(broken(|s| s.outage.push(Time::from_nanos(5)..Time::from_nanos(5))).contains("empty"));
        assert!(
            broken(|s| s.corrupt = Some(Corrupt {
                probability: f64::NAN
            }))
            .contains("corrupt is NaN")
        );
        assert!(
            broken(|s| {
                let rate = RateLoss {
                    probability: 1.5,
                    unit: LossUnit::Packet,
                };
                s.loss.push(ErrorModel::Rate(rate));
            })
            .contains("loss is 1.5")
        );
        assert!(
            broken(|s| s.loss.push(ErrorModel::Burst(BurstLoss {
                probability: 0.1,
                sizes: 0..=4
            })))
            .contains("0 to 4")
        );
        assert!(
            broken(|s| s.loss.push(ErrorModel::Scripted(Scripted { drop: vec![0] }))).contains("number 1")
        );
        assert!(broken(|s| s.queue = Queue::Red(Red::default())).contains("resolve"));
        assert!(
            broken(|s| s.queue = Queue::Red(Red {
                limit: QueueLimit::Unlimited,
                max: MarkThreshold::Bytes(9000),
                ..Red::default()
            }))
            .contains("both in packets")
        );
        assert!(
            broken(|s| s.queue = Queue::Codel(Codel {
                target: Duration::from_secs(1),
                ..Codel::default()
            }))
            .contains("1 s within an interval of 100 ms")
        );
        assert!(
            broken(|s| s.queue = Queue::FqCodel(FqCodel {
                queues: 0,
                ..FqCodel::default()
            }))
            .contains("0 queues")
        );
        assert!(
            broken(|s| {
                s.queue = Queue::Codel(Codel::default());
                s.mark = Some(MarkThreshold::Packets(1));
            })
            .contains("drop-tail only")
        );
        assert_eq!(DirectionSpec::default().check(), Ok(()));
    }
}
