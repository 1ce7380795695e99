//! Everybody else on the network of a sealed case: on the path, beside it, off it, and those with keys of their own.
//! Chance is drawn from the case's seed, so one case is one story.

mod impostor;
mod invent;
mod liar;

use super::ledger::{Ledger, Party};
use super::paths::{address, binding, path_of};
use super::seal::Attack;
use super::{Case, Side};
use crate::host::address_of;
use impostor::Impostor;
pub use liar::LIE;
use liar::Liar;
use restp_base::machine::PathAddress;
use restp_base::random::Stream;
use restp_base::time::{Duration, Time};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

/// Where the attacker is, where else a liar says to be, and a host that never asked for anything.
const OWN: usize = 100;
const OTHER: usize = 101;
const VICTIM: usize = 102;

/// Datagrams that are remembered.
const SEEN: usize = 64;

/// Who is beside the path is faster than it.
const FASTER: Duration = Duration::from_micros(1);

/// A datagram that comes from an attacker.
#[derive(Clone, Debug)]
pub struct Injection {
    pub to: Side,
    /// As its receiver sees it.
    pub path: PathAddress,
    pub bytes: Vec<u8>,
}

/// What becomes of a datagram on its way.
#[derive(Clone, Debug, PartialEq)]
pub enum Fate {
    Passes,
    Vanishes,
    /// It arrives as these bytes.
    Becomes(Vec<u8>),
}

/// A datagram that was seen on its way.
struct Seen {
    from: Side,
    bytes: Vec<u8>,
}

/// All attackers of a case.
pub struct Adversary<'a> {
    case: &'a Case,
    attacks: &'a [Attack],
    draw: Stream,
    seen: VecDeque<Seen>,
    due: BTreeMap<(Time, u64), Injection>,
    order: u64,
    /// When each attack acts by itself next.
    turns: Vec<Time>,
    liar: Option<Liar>,
    impostor: Option<Impostor>,
}

impl<'a> Adversary<'a> {
    /// Those of `case`, if it is sealed.
    pub fn new(case: &'a Case) -> Option<Self> {
        let seal = case.seal.as_ref()?;
        let attacks = &seal.attacks[..];
        let has = |kind: fn(&Attack) -> bool| attacks.iter().any(kind);
        let acts = |attack: &Attack| match attack {
            Attack::Invent { every_ms, .. } | Attack::Liar { every_ms, .. } => {
                Time::ZERO + Duration::from_millis(*every_ms)
            }
            _ => Time::MAX,
        };
        Some(Adversary {
            draw: Stream::named(case.seed, "chaos/adversary"),
            liar: has(|attack| matches!(attack, Attack::Liar { .. })).then(|| Liar::new(case, seal)),
            impostor: if has(|attack| matches!(attack, Attack::Impostor { .. })) {
                Impostor::new(case, seal)
            } else {
                None
            },
            seen: VecDeque::new(),
            due: BTreeMap::new(),
            order: 0,
            turns: attacks.iter().map(acts).collect(),
            case,
            attacks,
        })
    }

    /// `from` sends `bytes` along a path; its receiver would see it as `path`.
    pub fn on_passing(&mut self, now: Time, from: Side, path: PathAddress, bytes: &[u8]) -> Fate {
        if now >= self.case.healed_at() || self.attacks.is_empty() {
            return Fate::Passes;
        }
        let mut fate = Fate::Passes;
        for attack in self.attacks {
            fate = self.attack(now, attack, (from, path, bytes), fate);
        }
        if self.seen.len() == SEEN {
            self.seen.pop_front();
        }
        self.seen.push_back(Seen {
            from,
            bytes: bytes.to_vec(),
        });
        fate
    }

    fn attack(
        &mut self,
        now: Time,
        attack: &Attack,
        (side, path, bytes): (Side, PathAddress, &[u8]),
        fate: Fate,
    ) -> Fate {
        match *attack {
            Attack::Change { from, rate } if from == side && self.draw.chance(rate) => {
                let mut bytes = bytes.to_vec();
                let at = self.draw.below(bytes.len() as u64) as usize;
                bytes[at] ^= 1 << self.draw.below(8);
                return Fate::Becomes(bytes);
            }
            Attack::Drop { from, rate } if from == side && self.draw.chance(rate) => return Fate::Vanishes,
            Attack::Delay { from, rate, most_ms } if from == side && self.draw.chance(rate) => {
                let after = self.late(most_ms);
                self.inject(now + after, side.other(), path, bytes.to_vec());
                return Fate::Vanishes;
            }
            Attack::Replay {
                from,
                rate,
                most_ms,
                elsewhere,
            } if from == side && self.draw.chance(rate) => {
                let mut path = path;
                if elsewhere {
                    path.remote = address_of(OWN);
                }
                let after = if self.draw.chance(0.5) {
                    FASTER
                } else {
                    self.late(most_ms)
                };
                self.inject(now + after, side.other(), path, bytes.to_vec());
            }
            Attack::Splice { from, rate } if from == side && self.draw.chance(rate) => {
                let bytes = self.splice(bytes);
                self.inject(now + FASTER, side.other(), path, bytes);
            }
            Attack::Impostor { rate } if side == Side::Client && self.draw.chance(rate) => {
                if let Some(impostor) = &mut self.impostor {
                    impostor.on_received(now, path, bytes);
                }
                self.drain_impostor(now);
            }
            _ => {}
        }
        fate
    }

    fn late(&mut self, most_ms: u64) -> Duration {
        FASTER + Duration::from_millis(self.draw.below(most_ms + 1))
    }

    fn inject(&mut self, at: Time, to: Side, path: PathAddress, bytes: Vec<u8>) {
        self.order += 1;
        self.due.insert((at, self.order), Injection { to, path, bytes });
    }

    /// When it wants to act; never once everything is whole.
    pub fn next(&self) -> Time {
        let due = self.due.first_key_value().map(|(key, _)| key.0);
        let turns = self.turns.iter().copied();
        let liar = self.liar.as_ref().and_then(Liar::next);
        let impostor = self.impostor.as_ref().and_then(Impostor::next);
        let next = turns.chain(due).chain(liar).chain(impostor).min();
        next.filter(|next| *next < self.case.healed_at())
            .unwrap_or(Time::MAX)
    }

    /// What comes from attackers now.
    pub fn act(&mut self, now: Time, ledger: &mut Ledger) -> Vec<Injection> {
        if now >= self.case.healed_at() {
            return Vec::new();
        }
        for (index, attack) in self.attacks.iter().enumerate() {
            if self.turns[index] > now {
                continue;
            }
            match *attack {
                Attack::Invent { to, every_ms, names } => {
                    self.turns[index] = now + Duration::from_millis(every_ms);
                    self.invent(now, to, names, ledger);
                }
                Attack::Liar { every_ms, .. } => {
                    self.turns[index] = now + Duration::from_millis(every_ms);
                    if let Some(liar) = &mut self.liar {
                        liar.lie(now, &mut self.draw, ledger);
                    }
                }
                _ => self.turns[index] = Time::MAX,
            }
        }
        if let Some(liar) = &mut self.liar {
            liar.wake(now);
        }
        if let Some(impostor) = &mut self.impostor {
            impostor.wake(now);
        }
        self.drain_liar(now, ledger);
        self.drain_impostor(now);
        let later = self.due.split_off(&(now + Duration::from_nanos(1), 0));
        std::mem::replace(&mut self.due, later).into_values().collect()
    }

    /// The server sends `bytes` to `remote`, where neither end is.
    pub fn receive(&mut self, now: Time, remote: SocketAddr, bytes: &[u8], ledger: &mut Ledger) {
        if now < self.case.healed_at()
            && let Some(liar) = self
                .liar
                .as_mut()
                .filter(|_| reached_by(remote) == Some(Party::Liar))
        {
            liar.on_received(now, remote, bytes);
            self.drain_liar(now, ledger);
        }
    }

    fn drain_liar(&mut self, now: Time, ledger: &mut Ledger) {
        let claims = self.attacks.iter().find_map(|attack| match attack {
            Attack::Liar { claims, .. } => Some(*claims),
            _ => None,
        });
        while let Some((mut path, bytes)) = self.liar.as_mut().and_then(|liar| liar.transmit(now)) {
            ledger.make(Party::Liar, &bytes);
            if self.draw.chance(claims.unwrap_or_default()) {
                path.remote = self.claimed(now);
            }
            self.inject(now + FASTER, Side::Server, path, bytes);
        }
    }

    fn drain_impostor(&mut self, now: Time) {
        while let Some((path, bytes)) = self.impostor.as_mut().and_then(|impostor| impostor.transmit(now)) {
            self.inject(now + FASTER, Side::Client, path, bytes);
        }
    }

    /// An address that is not the liar's first one: another of its own, one of the client's, or one of somebody else.
    fn claimed(&mut self, now: Time) -> SocketAddr {
        match self.draw.below(4) {
            0 => address_of(OTHER),
            1 => address_of(VICTIM),
            _ => {
                let path = self.draw.below(self.case.paths() as u64) as usize;
                let mut remote = address(Side::Server, path).remote;
                remote.set_port(binding(self.case, path, now));
                remote
            }
        }
    }
}

/// Who gets what is sent to `remote`, which is none of the client's addresses.
pub fn reached_by(remote: SocketAddr) -> Option<Party> {
    [OWN, OTHER]
        .iter()
        .any(|own| address_of(*own) == remote)
        .then_some(Party::Liar)
}

/// Who gets what `from` sends along `path` now.
pub fn reaches(case: &Case, from: Side, path: PathAddress, now: Time) -> Option<Party> {
    match path_of(case, from, path) {
        Some(_) if from == Side::Client => Some(Party::Side(Side::Server)),
        Some(number) => {
            (path.remote.port() == binding(case, number, now)).then_some(Party::Side(Side::Client))
        }
        None => reached_by(path.remote),
    }
}
