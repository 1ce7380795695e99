//! Why segments were taken for lost: what the network knows, beside what the sender concluded.

use restp_base::observe::{Cause, Loss, Transmitted};
use restp_sim::{DropReason, HostId, LostSegment};
use serde::Serialize;
use std::collections::BTreeMap;

/// How many segments the sender took for lost, by true cause and then by the one it inferred.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LossCauses {
    /// Dropped by a queue or a policer.
    pub congestion: Inferred,
    /// Given up by a station whose frames met others.
    pub collision: Inferred,
    /// Given up by a station that found the medium taken around the next one.
    pub contention: Inferred,
    /// Lost or changed by an error model.
    pub corruption: Inferred,
    /// Swallowed by an outage, or for being longer than the link takes.
    pub outage: Inferred,
    /// Not lost: it arrived, or was still on its way at the end.
    pub late: Inferred,
}

/// How many segments the sender took for lost, by the cause it inferred.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Inferred {
    /// Congestion.
    pub congestion: u64,
    /// Corruption.
    pub corruption: u64,
    /// An outage.
    pub outage: u64,
    /// Late, and not lost.
    pub late: u64,
}

impl LossCauses {
    /// What was counted since `earlier`. What was late then may have been dropped since.
    pub(super) fn since(self, earlier: LossCauses) -> Self {
        LossCauses {
            congestion: self.congestion.since(earlier.congestion),
            collision: self.collision.since(earlier.collision),
            contention: self.contention.since(earlier.contention),
            corruption: self.corruption.since(earlier.corruption),
            outage: self.outage.since(earlier.outage),
            late: self.late.since(earlier.late),
        }
    }

    /// A line that takes no packet of this length is down for it. `None`: it was not lost.
    fn count(&mut self, truth: Option<DropReason>, inferred: Cause) {
        let row = match truth {
            Some(DropReason::Queue | DropReason::Police) => &mut self.congestion,
            Some(DropReason::Collision) => &mut self.collision,
            Some(DropReason::Contention) => &mut self.contention,
            Some(DropReason::Error | DropReason::Rule) => &mut self.corruption,
            Some(DropReason::Outage | DropReason::Length) => &mut self.outage,
            None => &mut self.late,
        };
        *match inferred {
            Cause::Congestion => &mut row.congestion,
            Cause::Corruption => &mut row.corruption,
            Cause::Outage => &mut row.outage,
            Cause::Late => &mut row.late,
        } += 1;
    }
}

impl Inferred {
    fn since(self, earlier: Inferred) -> Self {
        Inferred {
            congestion: self.congestion.saturating_sub(earlier.congestion),
            corruption: self.corruption.saturating_sub(earlier.corruption),
            outage: self.outage.saturating_sub(earlier.outage),
            late: self.late.saturating_sub(earlier.late),
        }
    }
}

/// Brings together what a network and a sender say of the same datagram, whoever is first. Each transmission counts once.
#[derive(Debug, Default)]
pub struct CauseLedger {
    /// By the address that it left from.
    known: BTreeMap<(HostId, Transmitted), Attribution>,
}

#[derive(Debug, Default)]
struct Attribution {
    truth: Option<DropReason>,
    inferred: Option<Cause>,
}

impl CauseLedger {
    /// The network lost a segment; the last line that does something to it counts.
    pub fn on_lost(&mut self, lost: LostSegment) {
        let attribution = self.known.entry((lost.from, lost.segment)).or_default();
        attribution.truth = Some(lost.reason);
    }

    /// The sender takes a segment that left `from` for lost; what it concludes last counts.
    pub fn on_declared(&mut self, from: HostId, loss: &Loss) {
        let attribution = self.known.entry((from, loss.segment)).or_default();
        attribution.inferred = Some(loss.cause);
    }

    /// At the end: what was declared lost, and the network has not lost by then, was late.
    pub fn causes(&self) -> LossCauses {
        let mut causes = LossCauses::default();
        for attribution in self.known.values() {
            if let Some(inferred) = attribution.inferred {
                causes.count(attribution.truth, inferred);
            }
        }
        causes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::address_of;
    use restp_base::machine::PathAddress;
    use restp_base::time::{Duration, Time};
    use restp_sim::topology::point_to_point;
    use restp_sim::{DirectionSpec, World};

    fn segment(number: u64, ms: u64) -> Transmitted {
        let at = Time::ZERO + Duration::from_millis(ms);
        Transmitted { number, at }
    }

    fn hosts() -> [HostId; 2] {
        let mut world = World::new(&point_to_point(&DirectionSpec::default()), 1).expect("a network");
        ["source", "sink"].map(|name| {
            let node = world.node(name).expect("a node");
            world.attach(node)
        })
    }

    #[test]
    fn each_transmission_counts_once_whoever_speaks_of_it_first() {
        let [from, elsewhere] = hosts();
        let mut ledger = CauseLedger::default();
        let declared = |ledger: &mut CauseLedger, from, segment, cause| {
            let path = PathAddress {
                local: address_of(0),
                remote: address_of(1),
            };
            ledger.on_declared(from, &Loss { path, segment, cause });
        };
        let lost = |from, segment, reason| LostSegment {
            from,
            segment,
            reason,
        };
        ledger.on_lost(lost(from, segment(1, 10), DropReason::Queue));
        declared(&mut ledger, from, segment(1, 10), Cause::Congestion);
        // Declared before its packet reached the queue that dropped it, and again after doubts.
        declared(&mut ledger, from, segment(2, 10), Cause::Congestion);
        declared(&mut ledger, from, segment(2, 10), Cause::Corruption);
        ledger.on_lost(lost(from, segment(2, 10), DropReason::Length));
        // Sent again, and by another address: three transmissions, of which one was lost.
        ledger.on_lost(lost(from, segment(3, 10), DropReason::Error));
        for (from, ms) in [(from, 10), (from, 20), (elsewhere, 10)] {
            declared(&mut ledger, from, segment(3, ms), Cause::Congestion);
        }
        // Nobody missed it.
        ledger.on_lost(lost(from, segment(4, 10), DropReason::Queue));
        for (number, reason) in [(5, DropReason::Collision), (6, DropReason::Contention)] {
            ledger.on_lost(lost(from, segment(number, 10), reason));
            declared(&mut ledger, from, segment(number, 10), Cause::Corruption);
        }
        let mut expected = LossCauses::default();
        expected.congestion.congestion = 1;
        expected.outage.corruption = 1;
        expected.corruption.congestion = 1;
        expected.late.congestion = 2;
        (expected.collision.corruption, expected.contention.corruption) = (1, 1);
        assert_eq!(ledger.causes(), expected);
    }
}
