//! The machine of one side, plain or under the seal, and what of it outlives a restart.

use super::ledger::Party;
use super::paths::address;
use super::seal::Seal;
use super::tap::{Note, Notes, Tap};
use super::{Case, Side};
use restp_base::flow::FlowId;
use restp_base::machine::Machine;
use restp_base::random::Stream;
use restp_base::time::Time;
use restp_proto::wire::bare_request;
use restp_proto::{Endpoint, EndpointConfig};
use restp_seal::{PublicKey, SealConfig, SealStats, Sealed, SecretKey};

/// Makes the machine of one side; tests of the laws wrap it into one that breaks them.
pub type Maker<'a> = &'a (dyn Fn(&EndpointConfig) -> Box<dyn Machine> + Sync);

/// A host's machine, one after the other.
pub struct Seat<'a> {
    case: &'a Case,
    side: Side,
    config: EndpointConfig,
    make: Maker<'a>,
    lives: u64,
    keys: Vec<(Party, PublicKey)>,
    occupant: Occupant,
}

enum Occupant {
    Plain(Box<dyn Machine>),
    Sealed(Box<Sealed<Tap>>, Notes),
}

/// Handshakes that are not finished, at most: few, so that shares of them run out.
pub const HALF_OPEN: usize = 32;
/// Sessions at once, at most.
pub const SESSIONS: usize = 64;
/// Packets that one key seals: few, so that keys change in the middle of every transfer.
const PACKETS_PER_KEY: u64 = 1 << 8;

impl<'a> Seat<'a> {
    pub fn new(case: &'a Case, side: Side, config: EndpointConfig, make: Maker<'a>) -> Self {
        let mut seat = Seat {
            occupant: Occupant::Plain(make(&config)),
            case,
            side,
            config,
            make,
            lives: 0,
            keys: Vec::new(),
        };
        if case.seal.is_some() {
            seat.keys = PARTIES.map(|party| (party, public(case, party))).to_vec();
        }
        seat.occupy(Time::ZERO);
        seat
    }

    /// A fresh machine. Of the one before only what its host had written down is left.
    pub fn occupy(&mut self, clock: Time) {
        self.lives += 1;
        let Some(seal) = &self.case.seal else {
            self.occupant = Occupant::Plain((self.make)(&self.config));
            return;
        };
        let kept = match &self.occupant {
            Occupant::Sealed(before, _) if seal.keeps && self.side == Side::Client => {
                let cookies = before.inner().engine().cookies(clock);
                Some((before.tokens().collect::<Vec<_>>(), cookies.collect::<Vec<_>>()))
            }
            _ => None,
        };
        let notes = Notes::default();
        let config = EndpointConfig {
            addresses_proved: true,
            ..self.config.clone()
        };
        let tap = Tap::new(Endpoint::new(config), notes.clone());
        let mut sealed = Sealed::new(
            tap,
            configuration(self.case, seal, Party::Side(self.side), self.lives),
        );
        if self.side == Side::Client && seal.pinned {
            for path in 0..self.case.paths() {
                let key = public(self.case, Party::Side(Side::Server));
                sealed.expect(address(Side::Client, path).remote, key);
            }
        }
        let (tokens, cookies) = kept.unwrap_or_default();
        for (key, token) in tokens {
            sealed.keep_token(key, token);
        }
        for cookie in cookies {
            sealed.inner_mut().engine_mut().keep_cookie(clock, cookie);
        }
        self.occupant = Occupant::Sealed(Box::new(sealed), notes);
    }

    pub fn machine(&self) -> &dyn Machine {
        match &self.occupant {
            Occupant::Plain(machine) => &**machine,
            Occupant::Sealed(sealed, _) => &**sealed,
        }
    }

    pub fn machine_mut(&mut self) -> &mut dyn Machine {
        match &mut self.occupant {
            Occupant::Plain(machine) => &mut **machine,
            Occupant::Sealed(sealed, _) => &mut **sealed,
        }
    }

    /// What passed between the seal and the engine since the last look; nothing where there is no seal.
    pub fn notes(&mut self) -> Vec<Note> {
        match &mut self.occupant {
            Occupant::Plain(_) => Vec::new(),
            Occupant::Sealed(_, notes) => std::mem::take(&mut *notes.borrow_mut()),
        }
    }

    /// Whose key is told as that of the other end of `flow`.
    pub fn told(&self, flow: FlowId) -> Option<Party> {
        let Occupant::Sealed(sealed, _) = &self.occupant else {
            return None;
        };
        let key = sealed.flow_key(flow)?;
        let party = self.keys.iter().find(|(_, of)| *of == key);
        party.map(|(party, _)| *party)
    }

    /// Unfinished handshakes, sessions, and what was counted.
    pub fn work(&self) -> Option<(usize, usize, SealStats)> {
        match &self.occupant {
            Occupant::Plain(_) => None,
            Occupant::Sealed(sealed, _) => Some((sealed.half_open(), sealed.sessions(), sealed.seal_stats())),
        }
    }
}

const PARTIES: [Party; 4] = [
    Party::Side(Side::Client),
    Party::Side(Side::Server),
    Party::Liar,
    Party::Impostor,
];

/// The secret key of `party`.
pub fn secret(case: &Case, party: Party) -> SecretKey {
    SecretKey::from_chance(chance(case, &format!("{party:?}")))
}

/// Its public one.
pub fn public(case: &Case, party: Party) -> PublicKey {
    secret(case, party).public()
}

/// How `party` is sealed in its life number `life`.
pub fn configuration(case: &Case, seal: &Seal, party: Party, life: u64) -> SealConfig {
    let seed = chance(case, &format!("{party:?}/{life}"));
    SealConfig {
        serves: !matches!(party, Party::Side(Side::Client) | Party::Liar),
        awaits_proof: seal.awaits_proof,
        fast_aes: seal.fast_aes,
        max_half_open: HALF_OPEN,
        max_sessions: SESSIONS,
        max_unproved_per_second: seal.unproved_per_second,
        max_unproved_resumed_per_second: seal.unproved_per_second,
        packets_per_key: PACKETS_PER_KEY,
        ..SealConfig::new(secret(case, party), seed, bare_request)
    }
}

fn chance(case: &Case, what: &str) -> [u8; 32] {
    let mut draw = Stream::named(case.seed, &format!("chaos/seal/{what}"));
    let words: [[u8; 8]; 4] = std::array::from_fn(|_| draw.bits().to_be_bytes());
    words.concat().try_into().unwrap_or_default()
}
