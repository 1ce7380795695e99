//! Real endpoints with an attacker between them, as `restp-seal/tests/it/attacks/` has him in virtual time. Whatever he
//! does, bytes arrive once, in order and unchanged, or not at all; nobody crashes, and nobody is talked down.

mod relay;

use crate::common::{PORT, loopback, noise, within};
use bytes::Bytes;
use relay::{Passing, Relay, Rule, pass};
use restp::{Acceptance, Connection, Endpoint, EndpointConfig, Identity, Local, Preset, Security, Trust};
use restp_base::machine::Head;
use restp_base::random::Stream;
use restp_proto::wire::{Flags, Header, Services};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UdpSocket;

const HELLO_IX: u8 = 0x81;
const DATA: u8 = 0xC0;

/// Of the first flow a host opens: the attacker knows it.
const FIRST_PORT: u16 = 49_152;

fn config(preset: &str) -> EndpointConfig {
    let composition = Preset::named(preset).expect("a preset").composition();
    let mut config = EndpointConfig::new(composition.check().expect("valid"));
    config.first_port = Some(FIRST_PORT);
    config
}

fn client(preset: &str) -> Endpoint {
    Endpoint::bind(loopback(), config(preset), Trust::Anybody).expect("loopback")
}

fn server(preset: &str) -> Endpoint {
    Endpoint::bind(
        loopback(),
        config(preset).listen(PORT, Acceptance::Any),
        Trust::Nobody,
    )
    .expect("loopback")
}

/// Both ends of a connection through `relay`.
async fn connect(client: &Endpoint, server: &Endpoint, relay: &Relay) -> (Connection, Connection) {
    let connection = within("connect", client.connect(relay.address, PORT))
        .await
        .expect("served");
    (
        connection,
        within("accept", server.accept()).await.expect("running"),
    )
}

/// `data` there and back, whole and unchanged.
async fn there_and_back(ends: (Connection, Connection), data: Bytes) {
    let expected = data.clone();
    let answering = tokio::spawn(async move {
        let mut stream = ends.1.into_stream();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).await.expect("all of it");
        assert!(all == expected, "what arrived is not what was sent");
        stream.write_all(&all).await.expect("open");
        stream.shutdown().await.expect("open");
        let _ = stream.read(&mut [0]).await;
        stream.connection().closed().await;
    });
    let mut stream = ends.0.into_stream();
    let (mut reading, mut writing) = tokio::io::split(&mut stream);
    writing.write_all(&data).await.expect("open");
    writing.shutdown().await.expect("open");
    let mut back = Vec::new();
    within("the answer", reading.read_to_end(&mut back))
        .await
        .expect("all of it");
    assert!(back == data, "what came back is not what was sent");
    within("the end", answering).await.expect("no panic");
}

/// A transfer through `rule`; the relay, and both endpoints, for a look afterwards.
async fn survives(rule: Rule, bytes: usize) -> (Relay, Endpoint, Endpoint) {
    let (client, server) = (client("default"), server("default"));
    let relay = Relay::start(server.local_addr(), rule).await;
    let ends = connect(&client, &server, &relay).await;
    there_and_back(ends, noise(bytes)).await;
    (relay, client, server)
}

fn chance(seed: u64) -> Stream {
    Stream::named(seed, "attacker")
}

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropped_delayed_doubled_and_overtaken_packets_are_what_networks_do() {
    let mut dice = chance(1);
    let rule: Rule = Box::new(move |passing| match dice.below(40) {
        0 => vec![],
        1 => [pass(passing), pass(passing)].concat(),
        2 => vec![(passing.bytes.clone(), ms(1 + dice.below(20)))],
        _ => pass(passing),
    });
    let (_, client, server) = survives(rule, 400_000).await;
    for end in [&client, &server] {
        let stats = end.seal_stats();
        assert!(stats.replayed > 0, "doubles are taken once: {stats:?}");
        assert_eq!((stats.forged, stats.plain, stats.malformed), (0, 0, 0));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flipped_bits_and_cut_ends_are_losses() {
    let mut dice = chance(2);
    let rule: Rule = Box::new(move |passing| {
        let mut bytes = passing.bytes.clone();
        let bit = dice.below(bytes.len() as u64 * 8) as usize;
        match dice.below(40) {
            0 => bytes[bit / 8] ^= 0x80 >> (bit % 8),
            1 => bytes.truncate(1 + bit / 8),
            _ => {}
        }
        vec![(bytes, Duration::ZERO)]
    });
    let (_, client, server) = survives(rule, 400_000).await;
    assert!(client.seal_stats().forged + server.seal_stats().forged > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parts_of_one_connection_are_nothing_in_another() {
    let (first, server) = (client("default"), server("default"));
    let relay = Relay::start(server.local_addr(), Box::new(pass)).await;
    there_and_back(connect(&first, &server, &relay).await, noise(50_000)).await;
    let spoils = relay.log();
    // The same server, another client; headers of one on the contents of the other.
    let second = client("default");
    let spoil = spoils.clone();
    let mut dice = chance(3);
    let rule: Rule = Box::new(move |passing| {
        let other = &spoil[dice.below(spoil.len() as u64) as usize].bytes;
        let header = passing.bytes.len().min(15);
        let spliced = [&passing.bytes[..header], &other[other.len().min(15)..]].concat();
        [
            vec![(other.clone(), Duration::ZERO), (spliced, Duration::ZERO)],
            pass(passing),
        ]
        .concat()
    });
    let relay = Relay::start(server.local_addr(), rule).await;
    there_and_back(connect(&second, &server, &relay).await, noise(50_000)).await;
    let stats = server.seal_stats();
    assert!(
        stats.forged > 0 && stats.unknown + stats.replayed + stats.misplaced > 0,
        "{stats:?}"
    );
}

/// Nobody is served within this time.
async fn nobody(server: &Endpoint) {
    let served = tokio::time::timeout(ms(300), server.accept()).await;
    assert!(served.is_err(), "somebody who is not there was accepted");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_whole_connection_played_again_reaches_nobody() {
    let (relay, _client, server) = survives(Box::new(pass), 50_000).await;
    let attacker = UdpSocket::bind(loopback()).await.expect("loopback");
    let recorded: Vec<Passing> = relay
        .log()
        .into_iter()
        .filter(|passing| passing.to_server)
        .collect();
    for passing in &recorded {
        // From where it came, and from elsewhere.
        relay.inject(true, passing.bytes.clone());
        attacker
            .send_to(&passing.bytes, server.local_addr())
            .await
            .expect("loopback");
    }
    nobody(&server).await;
    // A server that starts again with the same key has forgotten it all.
    let identity = Identity::fresh().expect("chance");
    let bind = || {
        let config = config("default").listen(PORT, Acceptance::Any);
        let locals = [Local::Address(loopback())];
        Endpoint::bind_with(&locals, config, Security::Sealed(identity.clone())).expect("loopback")
    };
    let before = bind();
    let relay = Relay::start(before.local_addr(), Box::new(pass)).await;
    let client = client("default");
    there_and_back(connect(&client, &before, &relay).await, noise(10_000)).await;
    let after = bind();
    for passing in relay.log().iter().filter(|passing| passing.to_server) {
        attacker
            .send_to(&passing.bytes, after.local_addr())
            .await
            .expect("loopback");
    }
    nobody(&after).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn early_data_played_again_is_taken_once() {
    let server = server("opt-arq");
    let relay = Relay::start(server.local_addr(), Box::new(pass)).await;
    let first = client("opt-arq");
    let (connection, accepted) = connect(&first, &server, &relay).await;
    connection.send(Bytes::from_static(b"hello")).await.expect("open");
    assert_eq!(
        within("data", accepted.recv()).await.as_deref(),
        Some(&b"hello"[..])
    );
    accepted.send(Bytes::from_static(b"and you")).await.expect("open");
    within("data", connection.recv()).await.expect("open");
    // It comes again, from another port and with what it was given.
    let relay = Relay::start(server.local_addr(), Box::new(pass)).await;
    let again = client("opt-arq");
    for mut kept in first.cookies() {
        kept.server = relay.address;
        again.keep_cookie(kept);
    }
    for (key, token) in first.tokens() {
        again.keep_token(key, token);
    }
    again.expect(relay.address, server.public_key().expect("sealed"));
    let paying = again.open(relay.address, PORT).expect("opened");
    paying.send(Bytes::from_static(b"pay 100")).await.expect("taken");
    let accepted = within("accept", server.accept()).await.expect("running");
    assert_eq!(
        within("data", accepted.recv()).await.as_deref(),
        Some(&b"pay 100"[..])
    );
    assert_eq!(server.seal_stats().early, 1, "it was early");
    let flight = relay.log();
    let attacker = UdpSocket::bind(loopback()).await.expect("loopback");
    for passing in flight
        .iter()
        .filter(|passing| passing.to_server)
        .cycle()
        .take(200)
    {
        relay.inject(true, passing.bytes.clone());
        attacker
            .send_to(&passing.bytes, server.local_addr())
            .await
            .expect("loopback");
    }
    nobody(&server).await;
    let more = tokio::time::timeout(ms(100), accepted.recv()).await;
    assert!(more.is_err(), "data arrived twice: {more:?}");
    assert_eq!(server.seal_stats().early, 1);
}

/// A header as anybody can write it.
fn plain(flags: Flags, source: u16, destination: u16, number: u32) -> Vec<u8> {
    let services = Services::of(&config("default").composition);
    let mut header = Header::new(services, source, destination);
    header.flags = flags;
    header.sequence = Some(number);
    header.acknowledgement = flags.has(Flags::ACK).then_some(number.wrapping_add(5_000));
    header.window = Some(64);
    let mut head = Head::new();
    header.emit(&[], &mut head).expect("can be said");
    head.to_vec()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ends_optimistic_acknowledgements_and_new_requests_need_a_seal() {
    let rule: Rule = Box::new(|passing| {
        let number = passing.number as u32;
        let (source, destination) = if passing.to_server {
            (FIRST_PORT, PORT)
        } else {
            (PORT, FIRST_PORT)
        };
        let flags = [
            Flags::RST | Flags::ACK,
            Flags::RST,
            Flags::FIN | Flags::ACK,
            Flags::ACK,
            Flags::SYN,
        ];
        let forged = plain(flags[passing.number % flags.len()], source, destination, number);
        [vec![(forged, Duration::ZERO)], pass(passing)].concat()
    });
    let (_, client, server) = survives(rule, 200_000).await;
    assert!(client.seal_stats().plain > 10 && server.seal_stats().plain > 10);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn copies_from_elsewhere_move_nobody_for_good() {
    let (client, server) = (client("default"), server("default"));
    let target = server.local_addr();
    let elsewhere = std::net::UdpSocket::bind(loopback()).expect("loopback");
    let rule: Rule = Box::new(move |passing| {
        // The copy is there before the original: as if the client had a new address.
        if passing.to_server && passing.number % 10 == 9 {
            let _ = elsewhere.send_to(&passing.bytes, target);
        }
        pass(passing)
    });
    let relay = Relay::start(target, rule).await;
    let ends = connect(&client, &server, &relay).await;
    there_and_back(ends, noise(300_000)).await;
    assert!(server.seal_stats().replayed > 0);
}

/// News of paths comes from this host alone. An attacker can only pretend: with copies from ports where nobody is, so that
/// the kernel hears that they are unreachable, and with questions and answers of his own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forged_news_of_paths_is_not_believed() {
    let (client, server) = (client("default"), server("default"));
    let address = server.local_addr();
    let mut dice = chance(7);
    let rule: Rule = Box::new(move |passing| {
        let mut fate = pass(passing);
        if passing.kind() != DATA || passing.number % 5 != 0 {
            return fate;
        }
        if passing.to_server {
            let gone = std::net::UdpSocket::bind(loopback()).expect("loopback");
            gone.send_to(&passing.bytes, address).expect("loopback");
        }
        // A question whether the path works, or the answer to one, in the place of what the packet says.
        let mut news = passing.bytes[..15].to_vec();
        news[13] ^= 0x01; // a number that was not used
        news.push(0x80 | dice.below(2) as u8);
        news.extend((0..24).map(|_| dice.bits() as u8));
        fate.push((news, Duration::ZERO));
        fate
    });
    let relay = Relay::start(address, rule).await;
    let ends = connect(&client, &server, &relay).await;
    there_and_back(ends, noise(400_000)).await;
    let stats = server.seal_stats();
    assert!(stats.elsewhere > 0 && stats.moved == 0, "{stats:?}");
    assert!(client.seal_stats().forged > 0 && stats.forged > 0, "{stats:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn services_cannot_be_taken_out_of_a_first_request() {
    // With IX all can read the SYN; the first two requests leave the relay with another bit of it each.
    let mut changed = 0;
    let rule: Rule = Box::new(move |passing| {
        let mut bytes = passing.bytes.clone();
        if passing.kind() == HELLO_IX && changed < 2 {
            let place = bytes.len() - 20 + changed;
            bytes[place] ^= 0x01;
            changed += 1;
        }
        vec![(bytes, Duration::ZERO)]
    });
    let (client, server) = (client("default"), server("default"));
    let relay = Relay::start(server.local_addr(), rule).await;
    let (connection, accepted) = connect(&client, &server, &relay).await;
    let wanted = Services::of(&config("default").composition);
    for end in [&connection, &accepted] {
        let agreed = end.composition().expect("established");
        assert_eq!(Services::of(&agreed), wanted, "nothing was taken out");
    }
    there_and_back((connection, accepted), noise(50_000)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_is_talked_down_to_a_plain_connection() {
    // The relay answers each request itself, without a seal, before it passes it on.
    let (client, server) = (client("default"), server("default"));
    let relay = Relay::start(server.local_addr(), Box::new(|_| vec![])).await;
    let mut connecting = Box::pin(client.connect(relay.address, PORT));
    assert!(tokio::time::timeout(ms(20), &mut connecting).await.is_err());
    for round in 0..20 {
        tokio::time::sleep(ms(10)).await;
        for flags in [Flags::SYN | Flags::ACK, Flags::RST | Flags::ACK, Flags::ACK] {
            relay.inject(false, plain(flags, PORT, FIRST_PORT, round));
        }
        relay.inject(true, plain(Flags::SYN, FIRST_PORT, PORT, round));
    }
    let seen = async {
        while client.seal_stats().plain == 0 || server.seal_stats().plain == 0 {
            tokio::time::sleep(ms(10)).await;
        }
    };
    within("forgeries at both ends", seen).await;
    nobody(&server).await;
    let established = tokio::time::timeout(ms(20), &mut connecting).await;
    assert!(established.is_err(), "it was believed, or broken off");
    assert!(relay.log().iter().all(|passing| passing.kind() != DATA));
}

/// What `bench/flood.py` does for long: requests from many addresses beside a transfer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_from_everywhere_costs_an_established_transfer_nothing_but_time() {
    let (client, server) = (client("default"), server("default"));
    let target = server.local_addr();
    let relay = Relay::start(target, Box::new(pass)).await;
    let ends = connect(&client, &server, &relay).await;
    let flood = tokio::task::spawn_blocking(move || {
        let mut dice = chance(5);
        for number in 0..5_000_u32 {
            let source = std::net::Ipv4Addr::from(0x7F01_0000 + number % 50 * 30_011);
            let socket = std::net::UdpSocket::bind((source, 0)).expect("an address of this host");
            let mut hello: Vec<u8> = (0..200).map(|_| dice.bits() as u8).collect();
            hello[0] = 0x80 | (number % 2) as u8; // both patterns
            hello[9..25].fill(0);
            let _ = socket.send_to(&hello, target);
        }
    });
    there_and_back(ends, noise(1_000_000)).await;
    within("the flood", flood).await.expect("no panic");
    let stats = server.seal_stats();
    assert!(stats.retries > 0, "{stats:?}");
    assert_eq!(stats.overflowed, 0, "{stats:?}");
}

/// More requests than a receiver has time for: the kernel admits some of them, and sooner or later those of a new peer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_peer_gets_in_while_the_flood_lasts() {
    let server = server("default");
    let target = server.local_addr();
    // At most 30 000 a second: three times what comes in.
    let flood = tokio::spawn(async move {
        let socket = tokio::net::UdpSocket::bind("127.1.0.1:0")
            .await
            .expect("an address of this host");
        let mut hello = [0; 200];
        hello[0] = HELLO_IX;
        for number in 0_u64.. {
            hello[25..33].copy_from_slice(&number.to_le_bytes());
            let _ = socket.send_to(&hello, target).await;
            if number.is_multiple_of(30) {
                tokio::time::sleep(ms(1)).await;
            }
        }
    });
    tokio::time::sleep(ms(500)).await; // the screen is there
    let mut composition = Preset::named("default").expect("a preset").composition();
    for (key, value) in [("handshake-rto", "200 ms"), ("handshake-attempts", "4")] {
        composition.set(key, value).expect("a key");
    }
    let config = EndpointConfig::new(composition.check().expect("valid"));
    let client = Endpoint::bind(loopback(), config, Trust::Anybody).expect("loopback");
    let new_peer = within("connect", async {
        loop {
            if let Ok(connection) = client.connect(target, PORT).await {
                return connection;
            }
        }
    });
    let new_peer = new_peer.await;
    flood.abort();
    let accepted = within("accept", server.accept()).await.expect("running");
    there_and_back((new_peer, accepted), noise(50_000)).await;
}
