//! Who said what: every PDU that went into a seal, by its bytes. What comes out of one must stand here.

use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// Who has a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Party {
    /// One of the two ends.
    Side(super::Side),
    /// A client with a key of its own that says whatever it likes.
    Liar,
    /// A server with a key of its own at the address of the other.
    Impostor,
}

/// One PDU, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Saying {
    pub party: Party,
    /// Its number in the trace, where it is of a conversation.
    pub packet: Option<u64>,
    /// The path that it left by.
    path: Option<usize>,
    heard: bool,
}

/// All PDUs, and all sealed packets, and who made them.
#[derive(Default)]
pub struct Ledger {
    said: BTreeMap<Bytes, Vec<Saying>>,
    /// The last PDUs of the client: what a liar repeats.
    of_client: Vec<Bytes>,
    packets: u64,
    made: BTreeMap<Bytes, Party>,
    /// Proofs of addresses that the server asked for, and where they went.
    tokens: BTreeSet<(SocketAddr, [u8; 16])>,
}

/// PDUs that a liar chooses from.
const REMEMBERED: usize = 64;

impl Ledger {
    /// `party` says `pdu`; the number that it has where it leaves by one of the case's paths.
    pub fn say(&mut self, party: Party, pdu: Bytes, path: Option<usize>) -> Option<u64> {
        let packet = path.map(|_| self.packets);
        self.packets += u64::from(path.is_some());
        if party == Party::Side(super::Side::Client) {
            if self.of_client.len() == REMEMBERED {
                self.of_client.remove(0);
            }
            self.of_client.push(pdu.clone());
        }
        self.said.entry(pdu).or_default().push(Saying {
            party,
            packet,
            path,
            heard: false,
        });
        packet
    }

    /// Has one of the two ends said `pdu`? Then it is no lie.
    pub fn was_said(&self, pdu: &[u8]) -> bool {
        let mut sayings = self.said.get(pdu).into_iter().flatten();
        sayings.any(|saying| matches!(saying.party, Party::Side(_)))
    }

    /// Who said `pdu`, which comes by `path`, if possible the side `from`: of several that are alike the first that has not been
    /// heard, rather one that left by this path, or the last, which a seal hands on twice when its sender has moved.
    pub fn on_received(&mut self, from: super::Side, path: Option<usize>, pdu: &[u8]) -> Option<Saying> {
        let sayings = self.said.get_mut(pdu)?;
        let is_from = |saying: &Saying| saying.packet.is_some() && saying.party == Party::Side(from);
        let any = sayings.iter().any(is_from);
        let fits = |saying: &Saying| is_from(saying) == any;
        let is_next = |saying: &Saying| fits(saying) && !saying.heard;
        let by_this = (sayings.iter()).position(|saying| is_next(saying) && saying.path == path);
        let next = by_this.or_else(|| sayings.iter().position(is_next));
        let at = next.or_else(|| sayings.iter().rposition(fits))?;
        sayings[at].heard = true;
        Some(sayings[at])
    }

    /// The last PDUs of the client, oldest first.
    pub fn of_client(&self) -> &[Bytes] {
        &self.of_client
    }

    /// `party` sealed a packet.
    pub fn make(&mut self, party: Party, packet: &[u8]) {
        self.made.insert(Bytes::copy_from_slice(packet), party);
    }

    /// The server asks for this proof of `remote`.
    pub fn ask(&mut self, remote: SocketAddr, token: [u8; 16]) {
        self.tokens.insert((remote, token));
    }

    /// Did this go to `remote`, and only there?
    pub fn is_proof(&self, remote: SocketAddr, token: [u8; 16]) -> bool {
        self.tokens.contains(&(remote, token))
    }

    /// Who sealed it, if it is as it was.
    pub fn maker(&self, packet: &[u8]) -> Option<Party> {
        self.made.get(packet).copied()
    }
}
