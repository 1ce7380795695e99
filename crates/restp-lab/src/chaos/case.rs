//! One case: everything a run depends on, as plain data. Drawn from a seed or read from a file, so that a failure
//! keeps its meaning when the draws change.

use super::changes::{self, Wish};
use super::faults::Fault;
use super::network::Hop;
use super::paths::{self, Further};
use super::seal::{self, Seal};
use super::swarm::{self, Choices};
use super::traffic::Traffic;
use super::{Side, faults, network, traffic};
use restp_base::random::Stream;
use restp_base::time::{Duration, Time};
use restp_proto::composition::ValidComposition;
use restp_proto::wire::Services;
use restp_services::path_management::PathMode;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use thiserror::Error;

/// Composition, network, traffic and faults of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// What this case is kept for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub about: String,
    /// Seed of the network's random streams, and of the keys of initial numbers.
    pub seed: u64,
    /// From then on nothing breaks any more.
    pub heal_ms: u64,
    /// The server takes only the services of its own composition; otherwise whatever is valid.
    pub exact: bool,
    /// When the client opens conversations, beside those after a restart.
    pub opens_ms: Vec<u64>,
    /// Every so many writes one goes to a path of the application's choice, each path in its turn; 0: none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub pin_every: u64,
    /// How the client's composition differs from the preset `unrel`.
    pub client: Choices,
    /// How the server's differs from it: the same services, perhaps other numbers and local choices.
    pub server: Choices,
    /// What the client writes in each conversation.
    pub client_writes: Traffic,
    /// What the server writes in each conversation.
    pub server_writes: Traffic,
    /// The path from client to server, or the first of several.
    pub hops: Vec<Hop>,
    /// The others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub further: Vec<Further>,
    /// The seal under both ends, and who attacks it; none: both are plain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal: Option<Seal>,
    /// Services that applications change meanwhile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Wish>,
    /// What breaks.
    #[serde(default)]
    pub faults: Vec<Fault>,
}

/// Why a case cannot be run.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum CaseError {
    /// It is no case.
    #[error("{0}")]
    Syntax(String),
    /// A composition that is none, or not a valid one.
    #[error("{side}: {why}")]
    Composition {
        /// Whose.
        side: Side,
        /// The key, or the rules broken.
        why: String,
    },
    /// Two ends that could never agree.
    #[error("client and server choose different services; only numbers and local choices may differ")]
    Services,
    /// A network that is none.
    #[error("hops: {0}")]
    Network(String),
    /// Paths that cannot be, or that this composition cannot use.
    #[error("further: {0}")]
    Paths(String),
    /// A seal that cannot be.
    #[error("seal: {0}")]
    Seal(String),
    /// A fault beyond the network or after the healing.
    #[error("fault {number}: {why}")]
    Fault {
        /// Its place in the list, from 1.
        number: usize,
        /// What is wrong.
        why: String,
    },
}

/// How often there is a second conversation: what was learnt in the first, such as a cookie, serves it.
const AGAIN: f64 = 0.4;

impl Case {
    /// The case of this seed. Every part draws from a stream of its own.
    pub fn draw(seed: u64) -> Case {
        let stream = |part: &str| Stream::named(seed, &format!("chaos/{part}"));
        let hops = network::draw(&mut stream("network"));
        let mut draw = stream("paths");
        let further = paths::draw(&mut draw);
        let several = !further.is_empty();
        let pin_every = if several && draw.chance(0.25) {
            1 + draw.below(6)
        } else {
            0
        };
        let (client, server) = swarm::draw(&mut stream("composition"), several);
        let mut draw = stream("case");
        let heal_ms = 1_000 + draw.below(20_000);
        let segment = u64::from(client.segment_bytes.min(server.segment_bytes));
        let mut opens_ms = vec![0];
        if draw.chance(AGAIN) {
            opens_ms.push(draw.below(heal_ms));
        }
        let every: Vec<Hop> = paths::every_hop(&hops, &further).cloned().collect();
        let changes = if several {
            Vec::new()
        } else {
            changes::draw(&mut stream("changes"), &client, heal_ms)
        };
        let faults = faults::draw(&mut stream("faults"), every.len(), heal_ms, client.crc);
        let mut case = Case {
            about: String::new(),
            seed,
            heal_ms,
            exact: draw.chance(0.5),
            opens_ms,
            pin_every,
            client_writes: traffic::draw(&mut stream("traffic/client"), segment, &every),
            server_writes: traffic::draw(&mut stream("traffic/server"), segment, &every),
            client: swarm::choices(&client),
            server: swarm::choices(&server),
            hops,
            further,
            seal: seal::draw(&mut stream("seal")),
            changes,
            faults,
        };
        if several {
            paths::draw_faults(&mut stream("faults/paths"), &mut case);
        } else if case.seal.is_some() {
            paths::draw_moves(&mut stream("faults/moves"), &mut case);
        }
        case
    }

    /// The same without a seal, and without moves of an only path: nobody looks for a plain flow elsewhere.
    #[must_use]
    pub fn plain(mut self) -> Case {
        if self.seal.take().is_some() && self.further.is_empty() {
            self.faults.retain(|fault| !matches!(fault, Fault::Rebind { .. }));
        }
        self
    }

    /// Reads a case from TOML.
    ///
    /// # Errors
    /// When it is none, with the line; or when it cannot be run.
    pub fn read(text: &str) -> Result<Case, CaseError> {
        let case: Case =
            toml::from_str(text).map_err(|error| CaseError::Syntax(error.to_string().trim_end().into()))?;
        case.check()?;
        Ok(case)
    }

    /// The case as TOML; [`Case::read`] reads it back.
    pub fn write(&self) -> String {
        toml::to_string(self).unwrap_or_default()
    }

    /// Both compositions, client's first.
    ///
    /// # Errors
    /// When one is none or invalid, or they could never agree.
    pub fn compositions(&self) -> Result<[ValidComposition; 2], CaseError> {
        let checked = |side: Side, choices: &Choices| {
            swarm::composition(choices).map_err(|why| CaseError::Composition { side, why })
        };
        let client = checked(Side::Client, &self.client)?;
        let server = checked(Side::Server, &self.server)?;
        if Services::of(&client) != Services::of(&server) {
            return Err(CaseError::Services);
        }
        Ok([client, server])
    }

    /// Says what is impossible about it.
    ///
    /// # Errors
    /// The first thing that is.
    pub fn check(&self) -> Result<(), CaseError> {
        let [client, _] = self.compositions()?;
        (0..self.paths()).try_for_each(|path| network::check(self.path(path)).map_err(CaseError::Network))?;
        paths::check(self, client.paths != PathMode::Single).map_err(CaseError::Paths)?;
        (self.seal.as_ref())
            .map_or(Ok(()), Seal::check)
            .map_err(CaseError::Seal)?;
        let hops = self.hops_of(self.paths() - 1).end;
        for (index, fault) in self.faults.iter().enumerate() {
            fault
                .check(hops, self.paths(), self.heal_ms, client.crc)
                .map_err(|why| CaseError::Fault {
                    number: index + 1,
                    why,
                })?;
        }
        Ok(())
    }

    /// How many paths there are.
    pub fn paths(&self) -> usize {
        1 + self.further.len()
    }

    /// The hops of path number `path`.
    pub fn path(&self, path: usize) -> &[Hop] {
        match path.checked_sub(1) {
            None => &self.hops,
            Some(further) => &self.further[further].hops,
        }
    }

    /// Their numbers.
    pub fn hops_of(&self, path: usize) -> Range<usize> {
        let start = (0..path).map(|before| self.path(before).len()).sum();
        start..start + self.path(path).len()
    }

    /// May the client be where nobody finds it before it speaks? Its only address changes.
    pub fn may_be_out_of_reach(&self) -> bool {
        let moves = |fault: &Fault| matches!(fault, Fault::Rebind { .. });
        self.paths() == 1 && self.faults.iter().any(moves)
    }

    /// May a server wait for a client that it does not find, or one that serves nobody and does not say that it has started again?
    pub fn may_wait_in_vain(&self) -> bool {
        let restarts = |fault: &Fault| {
            matches!(
                fault,
                Fault::Restart {
                    side: Side::Client,
                    ..
                }
            )
        };
        self.may_be_out_of_reach() || self.seal.is_some() && self.faults.iter().any(restarts)
    }

    /// When everything is whole again.
    pub fn healed_at(&self) -> Time {
        Time::ZERO + Duration::from_millis(self.heal_ms)
    }

    /// What `side` writes.
    pub fn writes(&self, side: Side) -> &Traffic {
        match side {
            Side::Client => &self.client_writes,
            Side::Server => &self.server_writes,
        }
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_reads_back_as_it_was_written() {
        for seed in 0..200 {
            let case = Case::draw(seed);
            assert_eq!(Case::read(&case.write()).as_ref(), Ok(&case), "{}", case.write());
            assert_eq!(Case::draw(seed), case);
        }
    }

    #[test]
    fn what_cannot_be_run_is_refused_with_its_reason() {
        let refused = |change: fn(&mut Case)| {
            let mut case = Case::draw(1);
            change(&mut case);
            Case::read(&case.write()).expect_err("refused").to_string()
        };
        assert!(refused(|case| case.hops.clear()).contains("at least 1 hop"));
        let second = |case: &mut Case| {
            case.further = vec![Further {
                hops: case.hops.clone(),
                ..Further::default()
            }]
        };
        assert!(refused(second).contains("one path only"));
        assert!(
            refused(|case| drop(case.client.insert("congstion".into(), "cubic".into()))).contains("client")
        );
        let late = |case: &mut Case| {
            case.faults = vec![Fault::Restart {
                side: Side::Server,
                at_ms: case.heal_ms + 1,
            }]
        };
        assert!(refused(late).contains("fault 1"));
        assert!(
            Case::read("seed = 1")
                .expect_err("no case")
                .to_string()
                .contains("missing")
        );
    }
}
