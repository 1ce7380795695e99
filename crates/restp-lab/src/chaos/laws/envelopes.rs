//! Whoever writes an address on an envelope: until somebody has shown that he is there, at most three times the bytes that
//! came from it go to it (RFC 9000 §8.1). He has when he, having been sent something there, seals a packet that comes from
//! there. A packet from anywhere shows it, too, when there is no other address where he can have got its keys: those of a session
//! are in its answer and nowhere else (the same: a packet protected with keys of the handshake confirms that its sender got
//! what they were made of). Who shows the proof that went there has, too. Whoever has got a proof, which an answer may carry, may be
//! told the server's key. Who dials sends to the addresses that it was told, and to no others.

use super::evidence::{Evidence, Fault};
use crate::chaos::trace::{Mark, What};
use crate::chaos::{Party, Side};
use restp_base::time::Time;
use restp_seal::packet::ConnectionId;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// So many times what came from an address may be sent there.
const AMPLIFICATION: usize = 3;

/// An address as a server sees it.
#[derive(Default)]
struct Address {
    came: usize,
    went: usize,
    /// Who has been sent something there.
    reached: Option<Party>,
    proved: bool,
}

/// The server's addresses, and which of them the keys of the client's sessions went to.
#[derive(Default)]
struct Addresses {
    all: BTreeMap<SocketAddr, Address>,
    /// Where each request came from as its sender had made it: nobody has keys of the answer to another one.
    whole: BTreeSet<(ConnectionId, SocketAddr)>,
    /// Where each request was answered.
    answered: BTreeMap<ConnectionId, BTreeSet<SocketAddr>>,
    /// The same of requests that came as nobody had made them. Who has the keys of an answer all the same had asked that: what was
    /// changed is nothing that the keys are made of.
    answered_changed: BTreeMap<ConnectionId, BTreeSet<SocketAddr>>,
    /// The client's requests.
    asked: BTreeSet<ConnectionId>,
    /// Those of a stranger.
    strange: BTreeSet<ConnectionId>,
    /// Those of them whose answers have come to it; others that come are of requests that somebody has invented.
    come: BTreeSet<ConnectionId>,
    /// The last of them to come, and when.
    latest: Option<(Time, ConnectionId)>,
    /// Requests that each session of the client may have begun with: its name is sealed in the answer.
    requests: BTreeMap<ConnectionId, BTreeSet<ConnectionId>>,
}

impl Addresses {
    /// The client has sealed a packet of `session` at `now`. Before its first one the answer has come, and it is that of no other
    /// session; the one that comes at this very moment, if any does.
    fn on_use(&mut self, now: Time, session: ConnectionId) {
        if self.requests.contains_key(&session) {
            return;
        }
        let taken = |name: &ConnectionId| {
            let mut certain = self.requests.values().filter(|names| names.len() == 1);
            certain.any(|names| names.contains(name))
        };
        let of_now = self.latest.filter(|(at, name)| *at == now && !taken(name));
        let names = match of_now {
            Some((_, name)) => BTreeSet::from([name]),
            None => self.come.iter().filter(|name| !taken(name)).copied().collect(),
        };
        self.requests.insert(session, names);
    }

    /// Where `party` has got the keys of `session`, if that is certain: its answer went to one place alone. Of a stranger it is not
    /// on record which of his requests it answers: all count that were answered at one place.
    fn sources(&self, party: Party, session: ConnectionId) -> Vec<SocketAddr> {
        let answered = |name| {
            let places = self.answered.get(name).or(self.answered_changed.get(name));
            places.into_iter().flatten().copied()
        };
        let only = |places: BTreeSet<SocketAddr>| places.first().copied().filter(|_| places.len() == 1);
        match party {
            Party::Side(Side::Client) => {
                let requests = self.requests.get(&session).into_iter().flatten();
                only(requests.flat_map(answered).collect()).into_iter().collect()
            }
            _ => {
                let places = self.strange.iter().map(|name| answered(name).collect());
                places.filter_map(only).collect()
            }
        }
    }

    /// A request called `name` comes, as `party` has made it.
    fn on_request(&mut self, party: Party, name: ConnectionId, from: SocketAddr) {
        self.whole.insert((name, from));
        if party != Party::Side(Side::Client) {
            self.strange.insert(name);
        }
    }

    /// A packet of `session` comes, which `party` has sealed.
    fn on_packet(&mut self, party: Party, session: ConnectionId) {
        for source in self.sources(party, session) {
            self.all.entry(source).or_default().proved = true;
        }
    }

    /// The server sends `bytes` to `to`, where `reaches` gets them. What is wrong with that?
    fn on_sent(
        &mut self,
        to: SocketAddr,
        bytes: usize,
        reaches: Option<Party>,
        mark: Option<Mark>,
    ) -> Option<String> {
        // Also where nobody gets it: a client that has it all the same has it from who does.
        if let Some(Mark::Answer(name)) = mark {
            let answered = match self.whole.contains(&(name, to)) {
                true => &mut self.answered,
                false => &mut self.answered_changed,
            };
            answered.entry(name).or_default().insert(to);
        }
        let address = self.all.entry(to).or_default();
        address.went += bytes;
        address.reached = address.reached.or(reaches);
        if mark == Some(Mark::Key) && !address.proved && address.reached.is_none() {
            return Some(format!("its key goes to {to}, where nobody can have got a proof"));
        }
        (!address.proved && address.went > AMPLIFICATION * address.came).then(|| {
            format!(
                "{} bytes go to {to}, where nobody has shown to be, and {} came from there",
                address.went, address.came
            )
        })
    }
}

pub fn check(evidence: &Evidence<'_>) -> Result<(), Fault> {
    let mut addresses = Addresses::default();
    for (index, record) in evidence.trace.records.iter().enumerate() {
        match record.what {
            What::Restarted { side: Side::Server } => {
                addresses = Addresses {
                    asked: addresses.asked,
                    ..Addresses::default()
                };
            }
            What::Restarted { side: Side::Client } => {
                addresses.asked.clear();
                addresses.come.clear();
            }
            What::Came {
                to: Side::Server,
                from,
                bytes,
                sealed,
                proof,
                mark,
            } => {
                let address = addresses.all.entry(from).or_default();
                address.came += bytes;
                address.proved |= proof;
                match (sealed, mark) {
                    (Some(party), Some(Mark::Packet(packet))) => {
                        address.proved |= address.reached == sealed;
                        addresses.on_packet(party, packet.to);
                    }
                    (Some(party), Some(Mark::Request(name))) => addresses.on_request(party, name, from),
                    _ => {}
                }
            }
            What::Came {
                to: Side::Client,
                mark: Some(Mark::Answer(name)),
                ..
            } if addresses.asked.contains(&name) => {
                addresses.come.insert(name);
                addresses.latest = Some((record.at, name));
            }
            What::Went {
                from: Side::Server,
                to,
                bytes,
                reaches,
                mark,
            } => {
                if let Some(what) = addresses.on_sent(to, bytes, reaches, mark) {
                    return Err(Fault::at(index, what));
                }
            }
            What::Went {
                from: Side::Client,
                to,
                reaches: Some(Party::Liar) | None,
                ..
            } => {
                return Err(Fault::at(
                    index,
                    format!("the client sends to {to}, which it was not told"),
                ));
            }
            What::Went {
                from: Side::Client,
                mark: Some(Mark::Request(name)),
                ..
            } => {
                addresses.asked.insert(name);
            }
            What::Went {
                from: Side::Client,
                mark: Some(Mark::Packet(packet)),
                ..
            } if !packet.early => addresses.on_use(record.at, packet.to),
            _ => {}
        }
    }
    Ok(())
}
