//! A relay, a host and its peers, over real sockets.

#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is a failed test")]

use super::super::peers::MOST_PEERS;
use super::super::wire::AddressToken;
use super::*;
use crate::{Acceptance, Endpoint, EndpointConfig, Identity, Preset, Security, Transport, Trust};
use restp_base::flow::Flow;
use restp_base::machine::{Datagram, Machine, PathAddress};
use std::net::Ipv4Addr;
use std::time::Duration as Span;
use tokio::net::UdpSocket;
use tokio::time::{sleep, timeout};

const ID: RegistrationId = [5; 16];

async fn socket(last: u8) -> UdpSocket {
    UdpSocket::bind((Ipv4Addr::new(127, 0, 0, last), 0))
        .await
        .unwrap()
}

/// The next datagram.
async fn heard(socket: &UdpSocket) -> Vec<u8> {
    let mut buffer = vec![0; MAX_DATAGRAM];
    let received = timeout(Span::from_secs(60), socket.recv_from(&mut buffer)).await;
    let (bytes, _) = received.unwrap().unwrap();
    buffer[..bytes].to_vec()
}

async fn word(socket: &UdpSocket) -> Message {
    Message::parse(&heard(socket).await).unwrap()
}

/// The next datagram that is no word of the relay.
async fn forwarded(socket: &UdpSocket) -> Vec<u8> {
    loop {
        let datagram = heard(socket).await;
        if !is_message(datagram[0]) {
            return datagram;
        }
    }
}

/// Is there nothing to hear? What the relay has sent is there already.
async fn hears_nothing(socket: &UdpSocket) -> bool {
    let mut buffer = [0; 2048];
    let nothing = timeout(Span::from_millis(300), socket.recv_from(&mut buffer));
    nothing.await.is_err()
}

/// A relay, a host that is registered there, and where others reach it.
struct Scene {
    relay: Arc<Relay>,
    host: UdpSocket,
    at: SocketAddr,
    _running: JoinSet<std::convert::Infallible>,
}

impl Scene {
    /// With `limit` for each host.
    async fn with(limit: Rate) -> Self {
        let config = RelayConfig {
            listen: (Ipv4Addr::LOCALHOST, 0).into(),
            limit,
            most_users: 4,
            ports: RelayConfig::PORTS,
        };
        let relay = Arc::new(Relay::bind(config).unwrap());
        let front = relay.local_addr();
        let mut running = JoinSet::new();
        let at_work = relay.clone();
        running.spawn(async move { at_work.run().await });
        let host = socket(1).await;
        let register = |token: AddressToken| Message::Register { id: ID, token }.emit();
        host.send_to(&register([0; 16]), front).await.unwrap();
        let Message::Prove { token, .. } = word(&host).await else {
            panic!("no token");
        };
        host.send_to(&register(token), front).await.unwrap();
        let Message::Registered { port, .. } = word(&host).await else {
            panic!("no place");
        };
        Scene {
            relay,
            host,
            at: (Ipv4Addr::LOCALHOST, port).into(),
            _running: running,
        }
    }

    /// Has `peer` send `datagram`, and the host speak to the port that this peer got.
    async fn bound(&self, peer: &UdpSocket, datagram: &[u8]) -> SocketAddr {
        peer.send_to(datagram, self.at).await.unwrap();
        loop {
            if let Message::Open { port, .. } = word(&self.host).await {
                let link = (Ipv4Addr::LOCALHOST, port).into();
                let bind = Message::Bind { id: ID }.emit();
                self.host.send_to(&bind, link).await.unwrap();
                assert_eq!(forwarded(&self.host).await, datagram);
                return link;
            }
        }
    }

    /// Has `peer` send `datagram`, and waits until the relay has forwarded or dropped it.
    async fn send(&self, peer: &UdpSocket, datagram: &[u8]) {
        let looked_at = || {
            let stats = self.relay.stats();
            (stats.forwarded_bytes, stats.over_limit)
        };
        let before = looked_at();
        peer.send_to(datagram, self.at).await.unwrap();
        while looked_at() == before {
            sleep(Span::from_micros(100)).await;
        }
    }

    /// Does what the host sends to `link` reach `peer`?
    async fn assert_answers(&self, link: SocketAddr, peer: &UdpSocket, datagram: &[u8]) {
        self.host.send_to(datagram, link).await.unwrap();
        assert_eq!(forwarded(peer).await, datagram, "its port is still there");
    }
}

#[tokio::test]
async fn nobody_is_told_more_than_was_sent_in_his_name() {
    let scene = Scene::with(Rate::from_bps(20_000_000)).await;
    let (echo, at) = ([0x80; 8], scene.at);
    let length = Message::Elsewhere { echo, at }.emit().len();
    for bytes in [9, length - 1] {
        let peer = socket(1).await;
        scene.send(&peer, &vec![0x80; bytes]).await;
        assert!(hears_nothing(&peer).await, "{bytes}");
    }
    let peer = socket(1).await;
    scene.send(&peer, &vec![0x80; length]).await;
    assert!(matches!(word(&peer).await, Message::Elsewhere { .. }));
}

#[tokio::test]
async fn words_for_a_host_are_part_of_its_share() {
    // Nothing is earned in the time of a test: the burst is all that there is.
    let scene = Scene::with(Rate::from_bps(1)).await;
    let peer = socket(1).await;
    scene.bound(&peer, &[0x80; 100]).await;
    for _ in 0..2 {
        scene.send(&peer, &[0x80; 30_000]).await;
        assert_eq!(forwarded(&scene.host).await.len(), 30_000);
    }
    let before = scene.relay.stats().forwarded_bytes;
    let left = (64 << 10) - before;
    // Some 5 kB are left, for fewer peers than come.
    let mut others = Vec::new();
    for number in 0..100 {
        let other = socket(2 + number).await;
        scene.send(&other, &[0x80; 100]).await;
        others.push(other);
    }
    let at = scene.at;
    let words = [Message::Peer { id: ID, at }, Message::Open { id: ID, port: 1 }];
    let each = 100 + words.map(|word| word.emit().len() as u64).iter().sum::<u64>();
    let let_in = (scene.relay.stats().forwarded_bytes - before) / 100;
    assert!(
        (1..=left / each + 1).contains(&let_in),
        "{let_in} of {}",
        left / each
    );
    while scene.relay.stats().over_limit < 200 {
        scene.send(&others[0], &[0x80]).await;
    }
    while !hears_nothing(&scene.host).await {}
    scene.send(&socket(200).await, &[0x80]).await;
    assert!(hears_nothing(&scene.host).await, "there is no share left");
}

#[tokio::test]
async fn a_peer_that_is_answered_keeps_its_port_when_others_flood() {
    let scene = Scene::with(Rate::from_bps(80_000_000)).await;
    let peer = socket(1).await;
    let link = scene.bound(&peer, &[0x81; 40]).await;
    scene.assert_answers(link, &peer, &[0x82; 40]).await;
    let mut others = Vec::new();
    for number in 0..2 * MOST_PEERS {
        let other = socket(2 + number as u8).await;
        scene.send(&other, &[0x80; 40]).await;
        others.push(other);
    }
    scene.assert_answers(link, &peer, &[0x83; 40]).await;
}

#[tokio::test]
async fn one_source_displaces_nobody_else() {
    let scene = Scene::with(Rate::from_bps(80_000_000)).await;
    let peer = socket(2).await;
    let link = scene.bound(&peer, &[0x81; 40]).await;
    let mut others = Vec::new();
    for _ in 0..2 * MOST_PEERS {
        let other = socket(3).await;
        scene.send(&other, &[0x80; 40]).await;
        others.push(other);
    }
    scene.assert_answers(link, &peer, &[0x83; 40]).await;
}

/// Anybody who sends what a client sends first gets an answer, and so do floods of it from forged addresses.
#[tokio::test]
async fn strangers_that_the_host_answers_displace_nobody_whom_it_keeps() {
    let scene = Scene::with(Rate::from_bps(80_000_000)).await;
    let peer = socket(1).await;
    let link = scene.bound(&peer, &[0x81; 40]).await;
    scene.assert_answers(link, &peer, &[0x82; 40]).await;
    let keep = Message::Keep { id: ID }.emit();
    scene.host.send_to(&keep, link).await.unwrap();
    for number in 0..2 * MOST_PEERS {
        let stranger = socket(2 + number as u8).await;
        let link = scene.bound(&stranger, &[0x80; 40]).await;
        scene.assert_answers(link, &stranger, &[0x83; 40]).await;
    }
    scene.assert_answers(link, &peer, &[0x84; 40]).await;
}

/// A host that serves, and its peers, over a relay alone.
#[tokio::test]
async fn a_connection_through_a_relay_outlives_a_flood_of_first_words() {
    let composition = Preset::named("3wh-arq").unwrap().composition();
    let config = EndpointConfig::new(composition.check().unwrap());
    let relay = Relay::bind(RelayConfig {
        listen: (Ipv4Addr::LOCALHOST, 0).into(),
        limit: Rate::from_bps(80_000_000),
        most_users: 4,
        ports: RelayConfig::PORTS,
    });
    let relay = Arc::new(relay.unwrap());
    let front = relay.local_addr();
    let mut running = JoinSet::new();
    let at_work = relay.clone();
    running.spawn(async move { at_work.run().await });
    let loopback = (Ipv4Addr::LOCALHOST, 0).into();
    let serving = config.clone().listen(7, Acceptance::Any);
    let host = Endpoint::bind(loopback, serving, Trust::Nobody).unwrap();
    let key = host.public_key().unwrap();
    let at = host.register(front).await.unwrap().at;
    let client = Endpoint::bind(loopback, config.clone(), Trust::Key(key)).unwrap();
    let (there, here) = tokio::join!(client.connect(at, 7), host.accept());
    let (there, here) = (there.unwrap(), here.unwrap());
    for word in ["one", "two"] {
        there.send(word.into()).await.unwrap();
        assert_eq!(here.recv().await, Some(word.into()));
        here.send(word.into()).await.unwrap();
        assert_eq!(there.recv().await, Some(word.into()));
    }
    let way = here.stats().path;
    for number in 0..2 * MOST_PEERS {
        let stranger = socket(2 + number as u8).await;
        let identity = Identity {
            trust: Trust::Key(key),
            ..Identity::fresh().unwrap()
        };
        let mut machine = Transport::new(config.clone(), Security::Sealed(identity)).unwrap();
        let local = stranger.local_addr().unwrap();
        machine
            .open(Time::ZERO, PathAddress { local, remote: at }, 7)
            .unwrap();
        let mut word = Datagram::empty();
        assert!(machine.poll_transmit(Time::ZERO, &mut word));
        stranger.send_to(&word.to_vec(), at).await.unwrap();
        assert!(!forwarded(&stranger).await.is_empty(), "it is answered");
    }
    here.send("still here".into()).await.unwrap();
    assert_eq!(there.recv().await, Some("still here".into()));
    assert_eq!(here.stats().path, way, "at the same port of the relay");
}

/// The host asks one address of the relay, and its peers come by another one, of either family: whoever is answered from elsewhere
/// hears nothing.
#[tokio::test]
async fn a_relay_answers_from_the_address_that_was_asked() {
    for listen in ["0.0.0.0:0", "[::]:0"] {
        let config = RelayConfig {
            listen: listen.parse().unwrap(),
            limit: Rate::from_bps(80_000_000),
            most_users: 4,
            ports: RelayConfig::PORTS,
        };
        let Ok(relay) = Relay::bind(config).map(Arc::new) else {
            println!("SKIPPED: no IPv6 here");
            continue;
        };
        let port = relay.local_addr().port();
        let mut running = JoinSet::new();
        running.spawn(async move { relay.run().await });
        let composition = Preset::named("3wh-arq").unwrap().composition();
        let config = EndpointConfig::new(composition.check().unwrap());
        let loopback = (Ipv4Addr::LOCALHOST, 0).into();
        let serving = config.clone().listen(7, Acceptance::Any);
        let host = Endpoint::bind(loopback, serving, Trust::Nobody).unwrap();
        let reached = host.register(([127, 0, 0, 8], port).into()).await.unwrap();
        assert_eq!(reached.at.ip(), Ipv4Addr::new(127, 0, 0, 8));
        let mut ways = vec![(loopback, SocketAddr::from(([127, 0, 0, 9], reached.at.port())))];
        if listen == "[::]:0" && UdpSocket::bind("[::1]:0").await.is_ok() {
            let way = |port| SocketAddr::from((std::net::Ipv6Addr::LOCALHOST, port));
            ways.push((way(0), way(reached.at.port())));
        }
        for (local, at) in ways {
            let trust = Trust::Key(host.public_key().unwrap());
            let client = Endpoint::bind(local, config.clone(), trust).unwrap();
            let (there, here) = tokio::join!(client.connect(at, 7), host.accept());
            let (there, here) = (there.unwrap(), here.unwrap());
            there.send("there".into()).await.unwrap();
            assert_eq!(here.recv().await, Some("there".into()));
            here.send("and back".into()).await.unwrap();
            assert_eq!(there.recv().await, Some("and back".into()));
        }
    }
}

#[tokio::test]
async fn a_host_that_leaves_a_relay_has_no_place_there() {
    let scene = Scene::with(Rate::from_bps(80_000_000)).await;
    let composition = Preset::named("3wh-arq").unwrap().composition();
    let config = EndpointConfig::new(composition.check().unwrap());
    let host = Endpoint::bind((Ipv4Addr::LOCALHOST, 0).into(), config, Trust::Nobody).unwrap();
    let front = scene.relay.local_addr();
    host.register(front).await.unwrap();
    assert_eq!(scene.relay.stats().users, 2, "it and that of the scene");
    host.leave_relay(front);
    let gone = async {
        while scene.relay.stats().users > 1 {
            sleep(Span::from_millis(5)).await;
        }
    };
    timeout(Span::from_secs(60), gone).await.unwrap();
    assert_eq!(host.reached(front), None);
}
