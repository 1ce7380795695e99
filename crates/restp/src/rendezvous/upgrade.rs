//! Direct paths in the place of relayed ones: a connection that was opened through a relay takes the direct path as one more, leaves
//! the relay when it works, and comes back when it works no more.

use super::{Elsewhere, Rendezvous};
use restp_base::flow::{Flow, FlowId, PathState};
use restp_base::machine::{Event, PathAddress};
use restp_base::time::Time;
use std::collections::{BTreeMap, BTreeSet};

/// Direct paths that one connection tries: a relay that lies names no more.
const MOST_TRIED: usize = 4;

/// Connections that this endpoint opened, as far as relays matter to them.
#[derive(Debug, Default)]
pub(crate) struct Upgrade {
    flows: BTreeMap<FlowId, Paths>,
    /// What is to be done at the next turn.
    due: BTreeSet<FlowId>,
}

/// Of one connection.
#[derive(Debug, Default)]
struct Paths {
    /// Direct ones that a relay named.
    tried: BTreeSet<PathAddress>,
    /// Direct ones that work.
    direct: BTreeSet<PathAddress>,
    /// Relayed ones that were left.
    left: BTreeSet<PathAddress>,
}

impl Upgrade {
    /// This endpoint opens `flow`.
    pub fn on_opened(&mut self, flow: FlowId) {
        self.flows.insert(flow, Paths::default());
    }

    /// The application is done with `flow`.
    pub fn forget(&mut self, flow: FlowId) {
        self.flows.remove(&flow);
        self.due.remove(&flow);
    }

    /// What the transport tells passes by here.
    pub fn on_event(&mut self, event: &Event, rendezvous: &Rendezvous) {
        match event {
            Event::Closed(flow, _) => self.forget(*flow),
            Event::Path(flow, path, state) if !rendezvous.is_relayed(path.remote) => {
                let Some(paths) = self.flows.get_mut(flow) else {
                    return;
                };
                let changed = match state {
                    PathState::Up => paths.direct.insert(*path),
                    PathState::Suspect | PathState::Down | PathState::Closed => paths.direct.remove(path),
                };
                if changed {
                    self.due.insert(*flow);
                }
            }
            _ => {}
        }
    }

    /// There is something to do now.
    pub fn is_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// Adds and removes paths of the connections of `engine`.
    pub fn turn(&mut self, now: Time, engine: &mut impl Flow, rendezvous: &mut Rendezvous) {
        while let Some(Elsewhere { through, at }) = rendezvous.take_elsewhere() {
            let direct = PathAddress {
                local: through.local,
                remote: at,
            };
            for (flow, paths) in &mut self.flows {
                let uses = |path: &PathAddress| path.remote == through.remote;
                let is_through = used(engine, *flow).iter().any(uses);
                if is_through && paths.tried.len() < MOST_TRIED && paths.tried.insert(direct) {
                    // A connection of one path stays where it is.
                    let _ = engine.add_path(now, *flow, direct, false);
                }
            }
        }
        for flow in std::mem::take(&mut self.due) {
            let Some(paths) = self.flows.get_mut(&flow) else {
                continue;
            };
            if paths.direct.is_empty() {
                for relayed in std::mem::take(&mut paths.left) {
                    let _ = engine.add_path(now, flow, relayed, false);
                }
                continue;
            }
            for relayed in used(engine, flow)
                .into_iter()
                .filter(|path| rendezvous.is_relayed(path.remote))
            {
                if engine.remove_path(now, flow, relayed).is_ok() {
                    paths.left.insert(relayed);
                }
            }
        }
    }
}

/// The paths of `flow`.
fn used(engine: &impl Flow, flow: FlowId) -> Vec<PathAddress> {
    let stats = engine.stats(flow);
    stats.map_or_else(Vec::new, |stats| {
        let paths = stats.paths.iter().map(|path| path.path);
        paths.chain(stats.path).collect()
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is a failed test")]

    use super::super::wire::{Message, echo_of};
    use super::*;
    use bytes::Bytes;
    use restp_base::flow::{CloseReason, FlowStats, OpenError, PathStats, Read, WriteError};
    use restp_base::machine::{Datagram, Head};
    use std::net::SocketAddr;

    /// A connection with paths and nothing else.
    struct Engine(Vec<PathAddress>);

    impl Flow for Engine {
        fn open(&mut self, _: Time, path: PathAddress, _: u16) -> Result<FlowId, OpenError> {
            self.0.push(path);
            Ok(FlowId(1))
        }
        fn add_path(&mut self, _: Time, _: FlowId, path: PathAddress, _: bool) -> Result<(), OpenError> {
            self.0.push(path);
            Ok(())
        }
        fn remove_path(&mut self, _: Time, _: FlowId, path: PathAddress) -> Result<(), OpenError> {
            self.0.retain(|used| *used != path);
            Ok(())
        }
        fn write(&mut self, _: Time, _: FlowId, _: Bytes) -> Result<(), WriteError> {
            Ok(())
        }
        fn read(&mut self, _: Time, _: FlowId) -> Read {
            Read::Empty
        }
        fn finish(&mut self, _: Time, _: FlowId) {}
        fn abort(&mut self, _: Time, _: FlowId) {}
        fn release(&mut self, _: Time, _: FlowId) {}
        fn stats(&self, _: FlowId) -> Option<FlowStats> {
            Some(FlowStats {
                paths: self.0.iter().map(|path| PathStats::new(*path)).collect(),
                ..FlowStats::default()
            })
        }
    }

    fn to(port: u16) -> PathAddress {
        let at = |host| SocketAddr::from(([192, 0, 2, host], port));
        PathAddress {
            local: ([10, 0, 0, 1], 7070).into(),
            remote: at(9),
        }
    }

    /// A connection through a relay, of which the relay says that its host is at ports 1 to `named` as well.
    fn opened(named: u16) -> (Engine, Rendezvous, Upgrade) {
        let (mut engine, mut rendezvous, mut upgrade) =
            (Engine(Vec::new()), Rendezvous::default(), Upgrade::default());
        let relayed = to(4000);
        rendezvous.expect(relayed.remote);
        upgrade.on_opened(engine.open(Time::ZERO, relayed, 7).unwrap());
        let sent = Datagram {
            path: relayed,
            head: Head::from_slice(&[0x80; 9]),
            ..Datagram::empty()
        };
        rendezvous.on_sent(Time::ZERO, &sent, || false);
        let echo = echo_of(&[0x80; 9]).unwrap();
        for port in 1..=named {
            let word = Message::Elsewhere {
                echo,
                at: to(port).remote,
            };
            rendezvous.on_datagram(Time::ZERO, relayed, &word.emit());
        }
        upgrade.turn(Time::ZERO, &mut engine, &mut rendezvous);
        (engine, rendezvous, upgrade)
    }

    #[test]
    fn a_direct_path_takes_the_place_of_the_relay_and_gives_it_back() {
        let (mut engine, mut rendezvous, mut upgrade) = opened(1);
        assert_eq!(engine.0, [to(4000), to(1)]);
        let mut tell = |engine: &mut Engine, path, state| {
            upgrade.on_event(&Event::Path(FlowId(1), path, state), &rendezvous);
            let due = upgrade.is_due();
            upgrade.turn(Time::ZERO, engine, &mut rendezvous);
            due
        };
        assert!(
            !tell(&mut engine, to(4000), PathState::Up),
            "the relayed path works, and nothing follows"
        );
        assert!(tell(&mut engine, to(1), PathState::Up));
        assert_eq!(engine.0, [to(1)]);
        assert!(tell(&mut engine, to(1), PathState::Down));
        assert_eq!(engine.0, [to(1), to(4000)]);
        assert!(tell(&mut engine, to(1), PathState::Up));
        assert_eq!(engine.0, [to(1)]);
        assert!(!tell(&mut engine, to(1), PathState::Up), "once");
    }

    #[test]
    fn a_relay_that_names_many_places_is_believed_a_few_times() {
        let (engine, ..) = opened(40);
        assert_eq!(engine.0.len(), 1 + MOST_TRIED);
    }

    #[test]
    fn what_is_over_is_forgotten_and_what_others_opened_is_theirs() {
        let (mut engine, mut rendezvous, mut upgrade) = opened(1);
        upgrade.on_event(&Event::Path(FlowId(2), to(1), PathState::Up), &rendezvous);
        assert!(!upgrade.is_due());
        upgrade.on_event(&Event::Path(FlowId(1), to(1), PathState::Up), &rendezvous);
        upgrade.on_event(&Event::Closed(FlowId(1), CloseReason::Finished), &rendezvous);
        assert!(!upgrade.is_due() && upgrade.flows.is_empty());
        upgrade.turn(Time::ZERO, &mut engine, &mut rendezvous);
        assert_eq!(engine.0.len(), 2);
    }
}
