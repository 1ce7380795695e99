//! Stories of two sealed endpoints that begin where a real handshake, a ticket, a proof of an address, a restart or a move has
//! led them. The attacker changes and replays what both have sent, rewrites envelopes, and puts parts of different datagrams
//! together (docs/protocol/sealed.md). Whatever it does, nobody reads what the host at the other end did not write.

use crate::world::{End, Forge, STEPS, Step, World};
use arbitrary::{Arbitrary, Unstructured};
use restp_base::flow::FlowId;
use restp_base::time::Time;
use restp_proto::wire::bare_request;
use restp_proto::{Endpoint, EndpointConfig};
use restp_seal::packet::{CID_BYTES, Packet};
use restp_seal::{PublicKey, SealConfig, SealStats, Sealed, SecretKey};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// One input.
pub fn run(bytes: &[u8]) {
    let Ok(story) = Story::arbitrary_take_rest(Unstructured::new(bytes)) else {
        return;
    };
    BEGIN.set(story.begin);
    let mut world = World::<Sealed<Endpoint>>::new(story.composition);
    story.begin.bring(&mut world);
    let mut left = STEPS;
    for chapter in &story.chapters {
        for step in chapter.steps.iter().take(left) {
            world.step(step);
            left -= 1;
        }
        if left > 0 {
            chapter.turn.bring(&mut world);
            left = left.saturating_sub(TURN);
        }
    }
    world.rest();
    let stats = world.ends.each_ref().map(Sealed::seal_stats);
    COVERAGE.with_borrow_mut(|coverage| coverage.take(&stats));
}

/// A turn of the story is as much as so many steps.
const TURN: usize = 20;

/// What happens to two endpoints.
#[derive(Arbitrary, Debug)]
struct Story {
    composition: u8,
    begin: Begin,
    chapters: Vec<Chapter>,
}

#[derive(Arbitrary, Debug)]
struct Chapter {
    steps: Vec<Step<Splice>>,
    turn: Turn,
}

/// Where a story begins.
#[derive(Arbitrary, Clone, Copy, Debug, PartialEq)]
enum Begin {
    /// Both talk; the client knew the key.
    Known,
    /// Both talk; they had not met before.
    Met,
    /// The client has started again, and comes with a ticket and early data.
    Resumed,
    /// The client comes with a ticket of a server that has started again.
    Stale,
    /// The server has started again, and knows nothing of the session.
    Forgotten,
    /// The server wants proofs of addresses.
    Busy,
    /// The client's address has changed.
    Moved,
    /// Another key is expected.
    Foreign,
    /// Nothing has happened.
    Apart,
}

/// What happens between two chapters.
#[derive(Arbitrary, Clone, Copy, Debug)]
enum Turn {
    Exchange,
    Talk,
    RestartClient,
    RestartServer,
    Move,
    Pass,
}

impl Begin {
    fn bring(self, world: &mut World<Sealed<Endpoint>>) {
        if self == Begin::Apart {
            return;
        }
        world.talk();
        match self {
            Begin::Resumed => world.restart(0),
            Begin::Stale => [1, 0].into_iter().for_each(|host| world.restart(host)),
            Begin::Forgotten => world.restart(1),
            Begin::Moved => world.relocate(),
            Begin::Known | Begin::Met | Begin::Busy | Begin::Foreign | Begin::Apart => return,
        }
        world.talk();
    }
}

impl Turn {
    fn bring(self, world: &mut World<Sealed<Endpoint>>) {
        match self {
            Turn::Exchange => world.exchange(),
            Turn::Talk => world.talk(),
            Turn::RestartClient => world.restart(0),
            Turn::RestartServer => world.restart(1),
            Turn::Move => world.relocate(),
            Turn::Pass => world.pass(70),
        }
    }
}

const HALF_OPEN: usize = 6;
const SESSIONS: usize = 8;
/// Keys change in the middle of a story.
const PACKETS_PER_KEY: u64 = 16;

thread_local! {
    /// Of the story that is told.
    static BEGIN: Cell<Begin> = const { Cell::new(Begin::Apart) };
    static COVERAGE: RefCell<Coverage> = RefCell::default();
}

/// What the stories of this thread have reached.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    /// Stories.
    pub stories: u64,
    /// Of these, stories in which a packet opened.
    pub opened: u64,
    /// Datagrams sent of each kind, by first byte without the path.
    pub kinds: BTreeMap<u8, u64>,
    /// What was done with them: first flights with early data taken, tickets that served, tickets refused, paths that moved
    /// because a challenge was answered, sessions told to be forgotten, and proofs of addresses asked for.
    pub done: [u64; 6],
}

impl Coverage {
    fn take(&mut self, stats: &[SealStats; 3]) {
        self.stories += 1;
        self.opened += u64::from(stats.iter().any(|stats| stats.opened > 0));
        for stats in stats {
            let done = [
                stats.early,
                stats.resumed,
                stats.refused_tickets,
                stats.moved,
                stats.resets,
                stats.retries,
            ];
            (self.done.iter_mut())
                .zip(done)
                .for_each(|(sum, one)| *sum += one);
        }
    }
}

/// What the stories of this thread have reached so far.
pub fn coverage() -> Coverage {
    COVERAGE.with_borrow(Clone::clone)
}

fn public(host: usize) -> PublicKey {
    SecretKey::from_chance([host as u8 + 1; 32]).public()
}

impl End for Sealed<Endpoint> {
    fn new(config: EndpointConfig, host: usize, life: u8) -> Self {
        let own = [host as u8 + 1; 32];
        let begin = BEGIN.get();
        let mut seal = SealConfig {
            max_half_open: HALF_OPEN,
            max_sessions: SESSIONS,
            packets_per_key: PACKETS_PER_KEY,
            ..SealConfig::new(
                SecretKey::from_chance(own),
                [own[0] ^ life << 2; 32],
                bare_request,
            )
        };
        if begin == Begin::Busy {
            seal.max_unproved_per_second = 0;
        }
        let mut end = Sealed::new(Endpoint::new(config), seal);
        let server: SocketAddr = "10.0.0.2:0".parse().expect("an address");
        match (host, begin) {
            (1, _) | (0, Begin::Met | Begin::Apart) => {}
            (0, Begin::Foreign) => end.expect(server, public(2)),
            _ => end.expect(server, public(1)),
        }
        end
    }
    fn inherit(&mut self, now: Time, before: &Self) {
        let cookies: Vec<_> = before.inner().cookies(now).collect();
        cookies
            .into_iter()
            .for_each(|cookie| self.inner_mut().keep_cookie(now, cookie));
        before
            .tokens()
            .for_each(|(key, token)| self.keep_token(key, token));
    }
    fn check_sent(bytes: &[u8]) {
        assert!(
            Packet::parse(bytes).is_some(),
            "what is sent parses, and is sealed"
        );
        let kind = if bytes[0] & 0xC0 == 0xC0 {
            bytes[0] & 0xF0
        } else {
            bytes[0]
        };
        COVERAGE.with_borrow_mut(|coverage| *coverage.kinds.entry(kind).or_default() += 1);
    }
    fn check_bounds(&self) {
        assert!(self.half_open() <= HALF_OPEN, "{} half open", self.half_open());
        assert!(
            self.sessions() <= SESSIONS + HALF_OPEN,
            "{} sessions",
            self.sessions()
        );
    }
    fn peer(&self, flow: FlowId) -> Option<usize> {
        let key = self.flow_key(flow)?;
        let hosts = PUBLIC.with(|hosts| hosts.iter().position(|host| *host == key));
        Some(hosts.expect("one of the three"))
    }
}

thread_local! {
    static PUBLIC: [PublicKey; 3] = [0, 1, 2].map(public);
}

/// What is written on the envelope, and parts of other datagrams.
#[derive(Arbitrary, Debug)]
struct Splice {
    kind: Option<u8>,
    /// Takes the connection id of that packet.
    id_of: Option<u16>,
    number: Option<u64>,
    /// Takes all after the connection id from that packet.
    rest_of: Option<u16>,
    /// A second datagram behind the first.
    behind: Option<u16>,
    cut: Option<u16>,
    address: bool,
}

impl Forge for Splice {
    fn apply(&self, bytes: &[u8], past: &[(usize, Vec<u8>)]) -> Option<Vec<u8>> {
        let other = |index: u16| &past[usize::from(index) % past.len()].1;
        let mut forged = bytes.to_vec();
        if let Some(kind) = self.kind {
            forged[0] = kind;
        }
        if let Some(index) = self.id_of {
            forged[1..1 + CID_BYTES].copy_from_slice(&other(index)[1..1 + CID_BYTES]);
        }
        if let (Some(number), Some(place)) = (self.number, forged.get_mut(1 + CID_BYTES..7 + CID_BYTES)) {
            place.copy_from_slice(&number.to_be_bytes()[2..]);
        }
        if let Some(index) = self.rest_of {
            forged.truncate(1 + CID_BYTES);
            forged.extend_from_slice(&other(index)[1 + CID_BYTES..]);
        }
        if let Some(index) = self.behind {
            forged.extend_from_slice(other(index));
        }
        if let Some(length) = self.cut {
            forged.truncate(length.into());
        }
        Some(forged)
    }

    fn is_misaddressed(&self) -> bool {
        self.address
    }
}
