//! Every order of events of a short handshake, sealed: what a network that delivers, loses, repeats and reorders, and timers
//! between, can make of each way a client comes. From each of these states time and a healed network must bring both ends to
//! rest: data arrived once, early data too; both ends sealed for each other and agreed on one composition; nobody whose
//! address is not proved got more than three times what came from it; and what is left is forgotten when the next one knocks
//! (docs/protocol/sealed.md).

use crate::common::*;
use crate::orders::{Passed, World, explore};
use restp_base::flow::Flow;
use restp_base::machine::{Datagram, Input, Machine, PathAddress};
use restp_base::time::{Duration, Time};
use restp_proto::wire::Services;
use restp_proto::{Acceptance, Endpoint, KeptCookie};
use restp_seal::{PublicKey, SealConfig, Sealed, Token};

type Both = World<Sealed<Endpoint>>;

/// Sessions without a flow are forgotten when the next one comes after so long, unfinished ones earlier.
const FORGOTTEN: Duration = Duration::from_secs(301);

/// An address that is not proved gets at most so many times what came from it.
const AMPLIFICATION: usize = 3;

/// What a client keeps of an earlier visit.
#[derive(Clone)]
struct Kept {
    now: Time,
    token: (PublicKey, Token),
    cookie: Option<KeptCookie>,
}

fn client(preset: &str, seed: u8, known: bool, kept: Option<&Kept>) -> Sealed<Endpoint> {
    let mut own = seal(1);
    own.seed = [seed; 32].into();
    let mut client = Sealed::new(Endpoint::new(config(preset, &[])), own);
    if known {
        client.expect(address(2), secret(2).public());
    }
    if let Some(kept) = kept {
        client.keep_token(kept.token.0, kept.token.1.clone());
        if let Some(cookie) = kept.cookie {
            client.inner_mut().keep_cookie(kept.now, cookie);
        }
    }
    client
}

/// Its keys, of tickets too, follow from the seed: one with another seed has started again and lost them.
fn server(preset: &str, seed: u8) -> Serving {
    let mut own = seal(2);
    own.seed = [seed; 32].into();
    Serving {
        preset: preset.into(),
        seal: own,
    }
}

/// A server to be.
struct Serving {
    preset: String,
    seal: SealConfig,
}

impl Serving {
    /// Strangers must show their addresses first.
    fn busy(mut self) -> Self {
        self.seal.max_unproved_per_second = 0;
        self
    }

    fn world(self, now: Time, client: Sealed<Endpoint>) -> Both {
        let endpoint = Endpoint::new(config(&self.preset, &[]).listen(PORT, Acceptance::Any));
        let ends = [client, Sealed::new(endpoint, self.seal)];
        World::new(now, ends, path(0), |end, flow| {
            end.inner().composition(flow).map(|agreed| Services::of(agreed))
        })
    }
}

fn visit(preset: &str) -> Kept {
    let mut world = server(preset, 2)
        .world(Time::ZERO, client(preset, 1, true, None))
        .open(false);
    world.settle();
    assert_eq!(world.broken(), None);
    let now = world.now;
    Kept {
        now,
        token: world.ends[0].tokens().next().expect("a token"),
        cookie: world.ends[0].inner().cookies(now).next(),
    }
}

/// Is the law of amplification kept? The address is proved by a packet of a session, or by a token where the server gave it.
fn is_within_three_times(passed: &[Passed], token_proves: bool) -> bool {
    let (mut heard, mut sent) = (0, 0);
    for datagram in passed.iter().filter(|datagram| datagram.host == 1) {
        let bytes = &datagram.bytes;
        if datagram.sent {
            sent += bytes.len();
            if sent > AMPLIFICATION * heard {
                return false;
            }
            continue;
        }
        heard += bytes.len();
        let is_hello = matches!(bytes[0], HELLO_IK | HELLO_IX | HELLO_RESUMED);
        if bytes[0] & 0xF0 == DATA || (token_proves && is_hello && bytes[9..25] != [0; 16]) {
            return true;
        }
    }
    true
}

/// Somebody else knocks, and ends the handshake unless `half`.
fn new_peer(world: &mut Both, number: u8, half: bool) {
    let from = PathAddress {
        local: address(number),
        remote: address(2),
    };
    let mut host = Sealed::new(Endpoint::new(config("3wh-arq", &[])), seal(number));
    host.expect(address(2), secret(2).public());
    host.open(world.now, from, PORT).expect("a port");
    let mut out = Datagram::empty();
    for turn in 0..10 {
        let mut arriving = Vec::new();
        if turn % 2 == 0 {
            while host.poll_transmit(world.now, &mut out) {
                arriving.push(contiguous(from.reversed(), out.to_vec()));
            }
        } else {
            while world.ends[1].poll_transmit(world.now, &mut out) {
                arriving.push(contiguous(from, out.to_vec()));
            }
        }
        if half && turn == 1 {
            return; // its answer is lost
        }
        for datagram in &mut arriving {
            let end = if turn % 2 == 0 {
                &mut world.ends[1]
            } else {
                &mut host
            };
            end.handle(world.now, Input::Datagram(datagram));
        }
    }
}

/// The law that is broken at the end, if any, when the next one knocks `after` so long.
fn broken_after(world: &mut Both, after: Duration, token_proves: bool) -> Option<&'static str> {
    let keys = [secret(2).public(), secret(1).public()];
    let first = world.broken();
    let known = world.ends[0].peer_key(address(2)) == Some(keys[0]);
    let served = world.ends[1].peer_key(address(1)) == Some(keys[1]);
    let connections = world.ends.iter().any(|end| end.inner().connections() > 0);
    let amplified = !is_within_three_times(&world.passed, token_proves);
    world.now += after;
    new_peer(world, 3, false);
    let server = &world.ends[1];
    let laws = [
        (!connections, "nothing is left"),
        (known && served, "each knows who the other one is"),
        (!amplified, "three times what came"),
        (server.half_open() == 0, "unfinished handshakes are forgotten"),
        (server.sessions() == 1, "sessions are forgotten"),
    ];
    first.or(laws.into_iter().find(|(holds, _)| !holds).map(|(_, law)| law))
}

fn broken(world: &mut Both) -> Option<&'static str> {
    broken_after(world, FORGOTTEN, false)
}

/// As [`broken`], where the server gave the token that the client shows.
fn broken_with_token(world: &mut Both) -> Option<&'static str> {
    broken_after(world, FORGOTTEN, true)
}

const DEPTH: usize = 5;

/// With early data two packets are on their way at once, and there are more orders of them.
const DEPTH_EARLY: usize = 4;

#[expect(clippy::print_stdout, reason = "how many there are is worth knowing")]
fn tell(story: &str, ends: usize) {
    assert!(ends > 100, "{story}: only {ends}");
    println!("{story}: {ends} orders");
}

fn cold(known: bool) -> Both {
    server("3wh-arq", 2)
        .world(Time::ZERO, client("3wh-arq", 1, known, None))
        .open(false)
}

#[test]
fn every_short_story_of_a_client_that_knows_the_key_ends_well() {
    tell("IK", explore(&|| cold(true), DEPTH, &broken));
}

#[test]
fn every_short_story_of_a_first_meeting_ends_well() {
    tell("IX", explore(&|| cold(false), DEPTH, &broken));
}

#[test]
fn every_short_story_of_a_ticket_ends_well() {
    let kept = visit("3wh-arq");
    let begin = |seed| {
        server("3wh-arq", seed)
            .world(kept.now, client("3wh-arq", 9, true, Some(&kept)))
            .open(false)
    };
    tell("resumed", explore(&|| begin(2), DEPTH, &broken_with_token));
    // The server has started again, and its tokens and tickets are others.
    tell("stale", explore(&|| begin(98), DEPTH, &broken));
}

#[test]
fn every_short_story_of_a_server_under_load_ends_well() {
    let begin = || {
        let client = client("3wh-arq", 1, true, None);
        server("3wh-arq", 2).busy().world(Time::ZERO, client).open(false)
    };
    tell("load", explore(&begin, DEPTH, &broken_with_token));
}

#[test]
fn every_short_story_of_early_data_ends_well() {
    let kept = visit("opt-arq");
    let begin = |seed| {
        server("opt-arq", seed)
            .world(kept.now, client("opt-arq", 9, true, Some(&kept)))
            .open(true)
    };
    tell("early", explore(&|| begin(2), DEPTH_EARLY, &broken_with_token));
    tell("early, stale", explore(&|| begin(98), DEPTH_EARLY, &broken));
}

/// Its session and its flow are still there at the server, and its packets may still be on their way. It knows the key, or
/// not even that, or has its ticket.
#[test]
fn every_short_story_of_a_client_that_starts_again_ends_well() {
    let begin = |known, with_ticket: bool| {
        let mut world = server("3wh-arq", 2).world(Time::ZERO, client("3wh-arq", 1, true, None));
        world.ending = false;
        let mut world = world.open(false);
        world.hear_all();
        let mut again = client("3wh-arq", 9, known, None);
        let kept = world.ends[0].tokens().filter(|_| with_ticket);
        kept.for_each(|(key, token)| again.keep_token(key, token));
        world.come_again(again);
        world.ending = true;
        world.open(false)
    };
    for (story, known, with_ticket) in [
        ("knocking, IK", true, false),
        ("knocking, IX", false, false),
        ("knocking, resumed", true, true),
    ] {
        tell(
            story,
            explore(&|| begin(known, with_ticket), DEPTH, &broken_with_token),
        );
    }
}

/// A fake for each law: none of them can be broken unseen.
#[test]
fn each_law_is_noticed_when_it_is_broken() {
    type Damage = fn(&mut Both);
    let fakes: [(Damage, &str); 7] = [
        (|world| world.accepted += 1, "accepted once"),
        (|world| world.services[1] = None, "one composition"),
        (|world| world.read[1].extend(crate::orders::SAID[0]), "said once"),
        (|world| world.closed[0] = None, "both end in order"),
        (
            |world| drop(world.ends[0].open(world.now, path(0), PORT)),
            "nothing is left",
        ),
        (
            |world| world.ends[0] = client("3wh-arq", 5, true, None),
            "each knows who the other one is",
        ),
        (
            |world| {
                let bytes = vec![ANSWER; 10_000];
                let sent = Passed {
                    host: 1,
                    sent: true,
                    remote: address(1),
                    bytes,
                };
                world.passed.insert(1, sent);
            },
            "three times what came",
        ),
    ];
    for (damage, law) in fakes {
        let mut world = cold(true);
        world.settle();
        damage(&mut world);
        assert_eq!(broken(&mut world), Some(law));
    }
    let mut whole = cold(true);
    whole.settle();
    assert_eq!(broken(&mut whole), None);
    // Too early to have forgotten.
    let mut early = cold(true);
    early.settle();
    let law = broken_after(&mut early, Duration::ZERO, false);
    assert_eq!(law, Some("sessions are forgotten"));
    // Somebody knocks, and does not end it.
    let too_early = Some("unfinished handshakes are forgotten");
    for (after, law) in [(Duration::ZERO, too_early), (FORGOTTEN, None)] {
        let mut half = cold(true);
        half.settle();
        new_peer(&mut half, 4, true);
        half.settle();
        assert_eq!(broken_after(&mut half, after, false), law);
    }
    // A connection of his is there as long as it is tried.
    let mut left = cold(true);
    left.settle();
    new_peer(&mut left, 4, true);
    assert_eq!(broken_after(&mut left, FORGOTTEN, false), Some("nobody waits"));
}
