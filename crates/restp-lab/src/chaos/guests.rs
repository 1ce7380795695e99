//! Flows at the server that no client of the case opened: those of a liar. They are read, and let go when everything is whole.

use super::application::Stage;
use super::ledger::Party;
use super::trace::What;
use restp_base::flow::{FlowId, Read};
use restp_base::time::Time;
use std::collections::BTreeMap;

/// All of them.
#[derive(Default)]
pub struct Guests {
    /// With whether it has been broken off.
    flows: Vec<(FlowId, bool)>,
    /// One has been let go since the last look.
    released: bool,
}

impl Guests {
    pub fn welcome(&mut self, flow: FlowId) {
        self.flows.push((flow, false));
    }

    /// `flow` has ended. Was it one of them?
    pub fn end(&mut self, flow: FlowId, stage: &mut Stage<'_>) -> bool {
        let before = self.flows.len();
        self.flows.retain(|(guest, _)| *guest != flow);
        if self.flows.len() < before {
            stage.machine.release(stage.clock, flow);
            self.released = true;
        }
        self.flows.len() < before
    }

    /// Reads what they have to say, and puts it on record with what is told of them. True when it broke one off or let
    /// one go, which leaves no record.
    pub fn act(&mut self, healed: Time, told: &BTreeMap<FlowId, Party>, stage: &mut Stage<'_>) -> bool {
        let mut acted = std::mem::take(&mut self.released);
        for (flow, over) in &mut self.flows {
            let flow = *flow;
            if stage.now >= healed && !std::mem::replace(over, true) {
                stage.machine.abort(stage.clock, flow);
                acted = true;
            }
            while let Read::Data(data) = stage.machine.read(stage.clock, flow) {
                let told = told.get(&flow).copied();
                stage.trace.add(stage.now, What::Guest { told, data });
            }
        }
        acted
    }

    pub fn flows(&self) -> impl Iterator<Item = FlowId> {
        self.flows.iter().map(|(flow, _)| *flow)
    }

    /// When they are broken off.
    pub fn next(&self, healed: Time) -> Time {
        let waits = self.flows.iter().any(|(_, over)| !over);
        if waits { healed } else { Time::MAX }
    }

    pub fn forget(&mut self) {
        *self = Guests::default();
    }
}
