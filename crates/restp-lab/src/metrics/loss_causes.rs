//! Why segments were taken for lost: what the network knows, beside what the sender concluded.

use restp_base::observe::{Cause, Loss, Transmitted};
use restp_sim::{HostId, LostSegment};
use serde::Serialize;
use std::collections::BTreeMap;

/// How many segments the sender took for lost, by true cause and then by the one it inferred.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LossCauses {
    /// Dropped by a queue or a policer, or given up where too many frames met.
    pub congestion: Inferred,
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
            corruption: self.corruption.since(earlier.corruption),
            outage: self.outage.since(earlier.outage),
            late: self.late.since(earlier.late),
        }
    }

    fn count(&mut self, truth: Cause, inferred: Cause) {
        let row = match truth {
            Cause::Congestion => &mut self.congestion,
            Cause::Corruption => &mut self.corruption,
            Cause::Outage => &mut self.outage,
            Cause::Late => &mut self.late,
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
    known: BTreeMap<(HostId, Transmitted), Said>,
}

#[derive(Debug, Default)]
struct Said {
    truth: Option<Cause>,
    inferred: Option<Cause>,
}

impl CauseLedger {
    /// The network lost a segment; the last line that does something to it counts.
    pub fn on_lost(&mut self, lost: LostSegment) {
        let said = self.known.entry((lost.from, lost.segment)).or_default();
        said.truth = Some(lost.cause);
    }

    /// The sender takes a segment that left `from` for lost; what it concludes last counts.
    pub fn on_declared(&mut self, from: HostId, loss: &Loss) {
        let said = self.known.entry((from, loss.segment)).or_default();
        said.inferred = Some(loss.cause);
    }

    /// At the end: what was declared lost, and the network has not lost by then, was late.
    pub fn causes(&self) -> LossCauses {
        let mut causes = LossCauses::default();
        for said in self.known.values() {
            if let Some(inferred) = said.inferred {
                causes.count(said.truth.unwrap_or(Cause::Late), inferred);
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
        let lost = |from, segment, cause| LostSegment { from, segment, cause };
        ledger.on_lost(lost(from, segment(1, 10), Cause::Congestion));
        declared(&mut ledger, from, segment(1, 10), Cause::Congestion);
        // Declared before its packet reached the queue that dropped it, and again after doubts.
        declared(&mut ledger, from, segment(2, 10), Cause::Congestion);
        declared(&mut ledger, from, segment(2, 10), Cause::Corruption);
        ledger.on_lost(lost(from, segment(2, 10), Cause::Outage));
        // Sent again, and by another address: three transmissions, of which one was lost.
        ledger.on_lost(lost(from, segment(3, 10), Cause::Corruption));
        for (from, ms) in [(from, 10), (from, 20), (elsewhere, 10)] {
            declared(&mut ledger, from, segment(3, ms), Cause::Congestion);
        }
        // Nobody missed it.
        ledger.on_lost(lost(from, segment(4, 10), Cause::Congestion));
        let mut expected = LossCauses::default();
        expected.congestion.congestion = 1;
        expected.outage.corruption = 1;
        expected.corruption.congestion = 1;
        expected.late.congestion = 2;
        assert_eq!(ledger.causes(), expected);
    }
}
