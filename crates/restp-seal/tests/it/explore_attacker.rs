//! Every order of events of a short handshake, and of a path that moves, with an attacker who has three moves in it: he repeats
//! what was sent, sends it from an address of his own, changes it, or invents something in the name of who is spoken to. When
//! he has made them the network is whole, and both ends must have said all once, and ended in order; what went to his address
//! is at most three times what came from it (docs/protocol/sealed.md).

use crate::common::*;
use crate::orders::{World, attacker, explore};
use bytes::Bytes;
use restp_base::flow::{Flow, FlowId, FlowStats, OpenError, Read, WriteError};
use restp_base::machine::{Datagram, Event, Input, Machine, PathAddress, Wakeup};
use restp_base::time::Time;
use restp_proto::wire::Services;
use restp_proto::{Acceptance, Endpoint};
use restp_seal::{PublicKey, SealConfig, Sealed, Token};

/// An address that is not proved gets at most so many times what came from it.
const AMPLIFICATION: usize = 3;

/// Moves of the attacker.
const MOVES: usize = 3;

/// Choices before the network is whole.
const DEPTH: usize = 4;

/// An end, perhaps with a fault that was planted.
struct End {
    sealed: Sealed<Endpoint>,
    flaw: Option<Flaw>,
    said: Vec<Datagram>,
    flow: Option<FlowId>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Flaw {
    /// Who says that he has another key is believed.
    BelievesForeign,
    /// What comes from anywhere is answered at length.
    Amplifies,
}

impl End {
    fn on_arrival(&mut self, now: Time, datagram: &Datagram) {
        let first = datagram.to_vec()[0];
        match self.flaw {
            Some(Flaw::BelievesForeign) if first == FOREIGN => {
                if let Some(flow) = self.flow {
                    self.sealed.abort(now, flow);
                }
            }
            Some(Flaw::Amplifies) if datagram.path.remote == attacker() => {
                let answer = contiguous(datagram.path, vec![ANSWER; 4 * datagram.len()]);
                self.said.push(answer);
            }
            _ => {}
        }
    }
}

impl Flow for End {
    fn open(&mut self, now: Time, path: PathAddress, port: u16) -> Result<FlowId, OpenError> {
        let opened = self.sealed.open(now, path, port);
        self.flow = opened.as_ref().ok().copied();
        opened
    }
    fn write(&mut self, now: Time, flow: FlowId, data: Bytes) -> Result<(), WriteError> {
        self.sealed.write(now, flow, data)
    }
    fn read(&mut self, now: Time, flow: FlowId) -> Read {
        self.sealed.read(now, flow)
    }
    fn finish(&mut self, now: Time, flow: FlowId) {
        self.sealed.finish(now, flow);
    }
    fn abort(&mut self, now: Time, flow: FlowId) {
        self.sealed.abort(now, flow);
    }
    fn release(&mut self, now: Time, flow: FlowId) {
        self.sealed.release(now, flow);
    }
    fn stats(&self, flow: FlowId) -> Option<FlowStats> {
        self.sealed.stats(flow)
    }
}

impl Machine for End {
    fn handle(&mut self, now: Time, input: Input<'_>) {
        if let Input::Datagram(datagram) = &input {
            self.on_arrival(now, datagram);
        }
        self.sealed.handle(now, input);
    }
    fn poll_transmit(&mut self, now: Time, out: &mut Datagram) -> bool {
        if let Some(said) = self.said.pop() {
            *out = said;
            return true;
        }
        self.sealed.poll_transmit(now, out)
    }
    fn poll_event(&mut self) -> Option<Event> {
        self.sealed.poll_event()
    }
    fn next_deadline(&self) -> Option<(Time, Wakeup)> {
        self.sealed.next_deadline()
    }
    fn held(&self) -> usize {
        self.sealed.held()
    }
}

/// How a story begins.
#[derive(Clone)]
struct Begin<'a> {
    known: bool,
    busy: bool,
    token: Option<(Time, PublicKey, Token)>,
    flaw: [Option<Flaw>; 2],
    inventions: [&'a [u8]; 2],
}

const PLAIN: Begin<'static> = Begin {
    known: true,
    busy: false,
    token: None,
    flaw: [None, None],
    inventions: [&[], &[]],
};

fn world(begin: Begin<'static>) -> World<End> {
    let now = begin.token.as_ref().map_or(Time::ZERO, |(now, ..)| *now);
    let engine = config("3wh-arq", &[]);
    let mut client = Sealed::new(
        Endpoint::new(engine.clone()),
        seal(if begin.token.is_some() { 9 } else { 1 }),
    );
    if begin.known {
        client.expect(address(2), secret(2).public());
    }
    if let Some((_, key, token)) = begin.token {
        let mut own = seal(1);
        own.seed = [9; 32].into();
        client = Sealed::new(Endpoint::new(engine.clone()), own);
        client.expect(address(2), secret(2).public());
        client.keep_token(key, token);
    }
    let mut own: SealConfig = seal(2);
    if begin.busy {
        own.max_unproved_per_second = 0;
    }
    let server = Sealed::new(Endpoint::new(engine.listen(PORT, Acceptance::Any)), own);
    let [first, second] = begin.flaw;
    let end = |sealed, flaw| End {
        sealed,
        flaw,
        said: Vec::new(),
        flow: None,
    };
    let mut world = World::new(
        now,
        [end(client, first), end(server, second)],
        path(0),
        |end, flow| {
            end.sealed
                .inner()
                .composition(flow)
                .map(|agreed| Services::of(agreed))
        },
    );
    world.inventions = begin.inventions;
    world
}

/// A client that comes, and an attacker with his moves.
fn comes(begin: Begin<'static>) -> World<End> {
    let mut world = world(begin).open(false);
    world.attacks = MOVES;
    world
}

/// Both have talked; a translator has forgotten the client's address, and both end what they say.
fn moves(begin: Begin<'static>) -> World<End> {
    let mut world = world(begin);
    world.ending = false;
    let mut world = world.open(false);
    world.hear_all();
    world.ending = true;
    world.relocate(address(77));
    world.attacks = MOVES;
    world.finish();
    world
}

/// The law that is broken, if any.
fn broken(world: &mut World<End>) -> Option<&'static str> {
    let (mut came, mut went) = (0, 0);
    let at_server = world
        .passed
        .iter()
        .filter(|passed| passed.host == 1 && passed.remote == attacker());
    for passed in at_server {
        if passed.sent {
            went += passed.bytes.len();
        } else {
            came += passed.bytes.len();
        }
        if went > AMPLIFICATION * came {
            return Some("three times what came");
        }
    }
    let strays = world
        .passed
        .iter()
        .any(|passed| passed.host == 0 && passed.sent && passed.remote != address(2));
    let known = world.ends[0].sealed.peer_key(address(2)) == Some(secret(2).public());
    let nowhere = world
        .ends
        .iter()
        .all(|end| end.sealed.peer_key(attacker()).is_none());
    let laws = [
        (!strays, "who dials sends nowhere else"),
        (known, "the client knows whom it talks to"),
        (nowhere, "nobody is at the attacker's address"),
    ];
    let law = laws.into_iter().find(|(holds, _)| !holds).map(|(_, law)| law);
    world.broken().or(law)
}

#[expect(clippy::print_stdout, reason = "how many there are is worth knowing")]
fn tell(story: &str, begin: &dyn Fn() -> World<End>, depth: usize) {
    let orders = explore(begin, depth, &broken);
    assert!(orders > 1_000, "{story}: only {orders}");
    println!("{story}: {orders} orders");
}

/// What an attacker may say in the server's name, and what in the client's.
const TO_CLIENT: &[u8] = &[RETRY, FOREIGN, STALE, RESET];
const TO_SERVER: &[u8] = &[HELLO_IX, RESET];

#[test]
fn no_attacker_with_three_moves_spoils_a_set_up() {
    let inventions: [&'static [u8]; 2] = [TO_CLIENT, TO_SERVER];
    tell("IK", &|| comes(Begin { inventions, ..PLAIN }), DEPTH);
    let met = Begin {
        known: false,
        inventions,
        ..PLAIN
    };
    tell("IX", &|| comes(met.clone()), DEPTH);
}

#[test]
fn no_attacker_with_three_moves_spoils_a_set_up_with_a_proof_or_a_ticket() {
    let inventions: [&'static [u8]; 2] = [TO_CLIENT, &[]];
    let busy = Begin {
        busy: true,
        inventions,
        ..PLAIN
    };
    tell("Retry", &|| comes(busy.clone()), DEPTH);
    let mut first = comes(PLAIN);
    first.attacks = 0;
    first.settle();
    let (key, token) = first.ends[0].sealed.tokens().next().expect("a token");
    let resumed = Begin {
        token: Some((first.now, key, token)),
        inventions,
        ..PLAIN
    };
    tell("resumed", &|| comes(resumed.clone()), DEPTH);
}

#[test]
fn no_attacker_with_three_moves_takes_a_path_away_that_moves() {
    tell("moves", &|| moves(PLAIN), DEPTH);
}

/// The exploration finds what is wrong where something is.
#[test]
fn planted_faults_are_found() {
    let flawed = |flaw, inventions| {
        let begin = Begin {
            flaw,
            inventions,
            ..PLAIN
        };
        let found = std::panic::catch_unwind(|| explore(&|| comes(begin.clone()), 2, &broken));
        let panic = found.expect_err("it is found");
        panic.downcast_ref::<String>().expect("a sentence").clone()
    };
    let believes = flawed([Some(Flaw::BelievesForeign), None], [TO_CLIENT, &[]]);
    assert!(believes.contains("accepted once"), "{believes}");
    let amplifies = flawed([None, Some(Flaw::Amplifies)], [&[], &[]]);
    assert!(
        amplifies.contains("three times what came") && amplifies.contains("Elsewhere(1)"),
        "{amplifies}"
    );
}
