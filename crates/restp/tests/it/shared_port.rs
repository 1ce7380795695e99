//! ResTP and ITP at one port: each gets what is its own, neither keeps the other out, and what is of neither is counted.

#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is a failed test")]

use crate::common::{PORT, connect, loopback, noise, within};
use bytes::Bytes;
use restp::{
    Acceptance, Composition, Connection, Endpoint, EndpointConfig, Identity, PathAddress, Security, Trust,
};
use restp_base::flow::FlowId;
use restp_rivals::itp::manifest::{self, Digest, TreeBuilder};
use restp_rivals::itp::node::{FIRST_BYTES, Item, Keep, Node, NodeConfig, Published, Source, Wanted};
use restp_rivals::itp::trust::Publisher;
use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::task::Poll;

const CHUNK: usize = 1384;

/// More datagrams than any socket of these tests has room for, some 800 bytes in the kernel each.
const TOO_MANY: usize = 60_000;

/// An object in memory, and nothing of one that is fetched.
#[derive(Debug)]
struct Memory {
    chunks: Vec<Bytes>,
    manifests: Vec<Bytes>,
}

impl Source for Memory {
    fn chunk(&mut self, number: u64) -> Poll<Option<Bytes>> {
        Poll::Ready(self.chunks.get(number as usize).cloned())
    }
    fn manifest(&mut self, position: u64) -> Poll<Option<Bytes>> {
        Poll::Ready(self.manifests.get(position as usize).cloned())
    }
}

#[derive(Debug)]
struct Nothing;

impl Keep for Nothing {
    fn recall(&mut self, _: Item, _: &Digest) -> Option<Bytes> {
        None
    }
}

fn published(data: &[u8]) -> Published {
    let mut tree = TreeBuilder::new(data.len() as u64, CHUNK as u32, Bytes::from_static(b"thing")).unwrap();
    let mut manifests = vec![Bytes::new(); tree.shape().inner() as usize];
    let chunks: Vec<Bytes> = data.chunks(CHUNK).map(Bytes::copy_from_slice).collect();
    for chunk in &chunks {
        for (position, manifest) in tree.push(chunk) {
            manifests[position as usize] = manifest;
        }
    }
    let core = tree.finish().unwrap();
    let signature = Publisher::from_seed(&[1; 32])
        .unwrap()
        .sign(&manifest::digest(&core));
    Published::new(&core, signature, Box::new(Memory { chunks, manifests })).unwrap()
}

fn config() -> EndpointConfig {
    EndpointConfig::new(Composition::default().check().unwrap()).listen(PORT, Acceptance::Any)
}

fn node() -> Node {
    Node::new(NodeConfig::new([7; 16]))
}

/// Both at one address.
fn both(trust: Trust) -> (Endpoint, Endpoint<Node>) {
    let restp = Endpoint::bind(loopback(), config(), trust).expect("loopback can be bound");
    let content = restp.share_port(node(), FIRST_BYTES);
    (restp, content)
}

async fn fetch(content: &Endpoint<Node>, wanted: Wanted, from: SocketAddr) -> Vec<u8> {
    let path = content.paths_to(&[from])[0];
    let flow: FlowId = content.call(|node, now| {
        let flow = node.fetch(wanted).unwrap();
        assert!(node.add_source(now, flow, path));
        flow
    });
    let connection = content.adopt(flow);
    within("root", connection.until(|node, _| node.root(flow).map(drop)))
        .await
        .unwrap();
    content.call(|node, now| node.start(now, flow, Box::new(Nothing)));
    let mut got: BTreeMap<u64, Bytes> = BTreeMap::new();
    let all = connection.until(|node, _| {
        while let Some((item, payload)) = node.take_arrived(flow) {
            if let Item::Chunk(number) = item {
                got.insert(number, payload);
            }
        }
        node.is_complete(flow).then_some(())
    });
    within("chunks", all).await.unwrap();
    got.into_values().flatten().collect()
}

async fn send_all(connection: &Connection, data: &Bytes) {
    for part in data.chunks(60_000) {
        connection.send(data.slice_ref(part)).await.unwrap();
    }
    connection.finish();
}

async fn receive_all(connection: &Connection) -> Vec<u8> {
    let mut got = Vec::new();
    while let Some(part) = connection.recv().await {
        got.extend_from_slice(&part);
    }
    got
}

/// A transfer and a fetch at once, in one direction or the other.
async fn both_work(client: &(Endpoint, Endpoint<Node>), server: &(Endpoint, Endpoint<Node>)) {
    let (file, object) = (noise(6_000_000), noise(5_000_017).slice(17..));
    let wanted = published(&object).wanted();
    server.1.call(|node, _| node.publish(published(&object)));
    let at = server.0.local_addr();
    let sent = async {
        let connection = within("connection", connect(&client.0, at, PORT)).await.unwrap();
        send_all(&connection, &file).await;
        connection
    };
    let received = async {
        let connection = within("accept", server.0.accept()).await.unwrap();
        receive_all(&connection).await
    };
    let fetched = fetch(&client.1, wanted, at);
    let (_connection, received, fetched) = tokio::join!(sent, received, fetched);
    assert!(received == file, "{} of {} bytes", received.len(), file.len());
    assert!(fetched == object, "{} of {} bytes", fetched.len(), object.len());
}

#[tokio::test]
async fn a_transfer_and_a_fetch_cross_one_port_of_each_host_at_once() {
    let server = both(Trust::Nobody);
    let client = both(Trust::Key(server.0.public_key().unwrap()));
    assert_eq!(server.0.local_addrs(), server.1.local_addrs());
    both_work(&client, &server).await;
    let (sealed, content) = (server.0.seal_stats(), server.1.call(|node, _| node.counters()));
    assert_eq!((sealed.plain, content.dropped), (0, 0));
    within("content's end", client.1.close()).await;
    within("the end", client.0.close()).await;
    // What is at the port of another ends with that one.
    within("the server's end", server.0.close()).await;
    within("and its content", server.1.close()).await;
}

#[tokio::test]
async fn where_the_system_gives_one_socket_both_share_it() {
    let port = |socket: &UdpSocket| socket.local_addr().unwrap().port();
    let raw = || socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM, None).unwrap();
    let bind = |raw: socket2::Socket, at: SocketAddr| {
        raw.set_reuse_address(true).unwrap();
        raw.bind(&at.into()).unwrap();
        UdpSocket::from(raw)
    };
    let given = bind(raw(), "0.0.0.0:0".parse().unwrap());
    // It permits no third one at this port that wants to be at every address.
    let other = bind(raw(), SocketAddr::new(loopback().ip(), port(&given)));
    let at = SocketAddr::from(([127, 0, 0, 9], port(&given)));
    let identity = Identity::fresh().unwrap();
    let restp = Endpoint::on_sockets(vec![given], config(), Security::Sealed(identity)).unwrap();
    let content = restp.share_port(node(), FIRST_BYTES);
    let (client, asking) = both(Trust::Key(restp.public_key().unwrap()));
    let data = noise(400_000);
    let wanted = published(&data).wanted();
    content.call(|node, _| node.publish(published(&data)));
    assert!(fetch(&asking, wanted, at).await == data);
    let connection = within("connection", connect(&client, at, PORT)).await.unwrap();
    send_all(&connection, &data).await;
    let accepted = within("accept", restp.accept()).await.unwrap();
    assert!(receive_all(&accepted).await == data);
    drop(other);
}

#[tokio::test]
async fn every_first_byte_is_of_one_of_them_and_what_is_of_neither_is_dropped_and_counted() {
    let server = both(Trust::Nobody);
    let stranger = UdpSocket::bind(loopback()).unwrap();
    for first in 0..=u8::MAX {
        for length in [1, 2, 40, 1200] {
            let datagram = vec![first; length];
            stranger.send_to(&datagram, server.0.local_addr()).unwrap();
        }
    }
    stranger.send_to(&[], server.0.local_addr()).unwrap();
    let counted = async {
        while server.0.socket_stats().received_datagrams < 1024 {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    within("all of them", counted).await;
    let content = server.1.call(|node, _| node.counters());
    assert_eq!(
        (content.dropped, content.answers, content.unproved),
        (4 * 16, 0, 0)
    );
    // Below 80 all but those of ITP and of relays; the rest is sealed, and opens for nobody.
    assert_eq!(server.0.seal_stats().plain, 4 * (128 - 16 - 16));
    both_work(&both(Trust::Key(server.0.public_key().unwrap())), &server).await;
}

/// Where the kernel hands over several datagrams as one message, the first decides at which socket it comes.
#[tokio::test]
async fn a_message_of_datagrams_of_both_is_taken_apart() {
    let server = both(Trust::Nobody);
    let at = server.0.local_addr();
    let stranger = UdpSocket::bind(loopback()).unwrap();
    flood(&stranger, at, 0x11, 1);
    until("the first", || {
        server.1.call(|node, _| node.counters()).dropped == 1
    })
    .await;
    let state = quinn_udp::UdpSocketState::new((&stranger).into()).unwrap();
    let together = |firsts: &[u8]| {
        let contents: Vec<u8> = firsts.iter().flat_map(|first| [*first; 40]).collect();
        let segments = if state.max_gso_segments() > 1 {
            contents.len()
        } else {
            40
        };
        for contents in contents.chunks(segments) {
            let transmit = quinn_udp::Transmit {
                destination: at,
                ecn: None,
                contents,
                segment_size: (segments > 40).then_some(40),
                src_ip: None,
            };
            state.try_send((&stranger).into(), &transmit).unwrap();
        }
    };
    together(&[0x11, 0x20, 0x20, 0x20]);
    together(&[0x20, 0x11, 0x12, 0x20, 0x20]);
    let counts = || {
        (
            server.1.call(|node, _| node.counters()).dropped,
            server.0.seal_stats().plain,
        )
    };
    until("all of them", || server.0.socket_stats().received_datagrams >= 10).await;
    assert_eq!(counts(), (1 + 3, 6));
}

/// Sends datagrams of 40 bytes with this first byte, while the driver has no turn.
fn flood(from: &UdpSocket, to: SocketAddr, first: u8, count: usize) {
    let datagram = [first; 40];
    (0..count).for_each(|_| _ = from.send_to(&datagram, to));
}

/// Lets the driver go on until `done`.
async fn until(what: &str, mut done: impl FnMut() -> bool) {
    let wait = async {
        while !done() {
            tokio::task::yield_now().await;
        }
    };
    within(what, wait).await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn what_is_too_much_for_one_of_them_neither_takes_the_others_room_nor_its_turn() {
    let server = both(Trust::Nobody);
    let at = server.0.local_addr();
    let stranger = UdpSocket::bind(loopback()).unwrap();
    // The driver has opened the sockets.
    flood(&stranger, at, 0x11, 1);
    until("the first", || {
        server.1.call(|node, _| node.counters()).dropped == 1
    })
    .await;

    flood(&stranger, at, 0x11, TOO_MANY);
    flood(&stranger, at, 0x20, 10);
    until("ten behind Interests", || server.0.seal_stats().plain == 10).await;
    let before = server.1.call(|node, _| node.counters()).dropped;
    assert!(before < 1 + 4 * 16 * 64, "{before} of the others came first");

    let stats = || server.0.socket_stats().received_datagrams;
    let mut last = 0;
    until("the rest", || {
        std::mem::replace(&mut last, stats()) == stats() && last > 0
    })
    .await;
    let (content, plain) = (
        server.1.call(|node, _| node.counters()).dropped,
        server.0.seal_stats().plain,
    );
    flood(&stranger, at, 0x20, TOO_MANY);
    flood(&stranger, at, 0x11, 10);
    until("ten behind what is foreign", || {
        server.1.call(|node, _| node.counters()).dropped == content + 10
    })
    .await;
    let before = server.0.seal_stats().plain - plain;
    assert!(before < 4 * 16 * 64, "{before} of the others came first");
}

/// UDP sockets of this host at `port` of an IPv4 address.
#[cfg(target_os = "linux")]
fn sockets_at(port: u16) -> usize {
    let all = std::fs::read_to_string("/proc/net/udp").unwrap();
    let is_here = |line: &&str| {
        line.split_whitespace()
            .nth(1)
            .unwrap()
            .ends_with(&format!(":{port:04X}"))
    };
    all.lines().skip(1).filter(is_here).count()
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn an_endpoint_that_shares_a_port_leaves_it_and_another_takes_its_place() {
    let (restp, first) = both(Trust::Nobody);
    let stranger = UdpSocket::bind(loopback()).unwrap();
    until("both have sockets", || sockets_at(restp.local_addr().port()) == 2).await;
    within("the first", first.close()).await;
    assert_eq!(sockets_at(restp.local_addr().port()), 1);
    flood(&stranger, restp.local_addr(), 0x11, 1);
    until("nobody's", || restp.seal_stats().plain == 1).await;
    let second = restp.share_port(node(), FIRST_BYTES);
    let counted = || second.call(|node, _| node.counters()).dropped > 0;
    until("its own", || {
        flood(&stranger, restp.local_addr(), 0x11, 1);
        counted()
    })
    .await;
    within("the end", restp.close()).await;
    let path = PathAddress {
        local: loopback(),
        remote: loopback(),
    };
    assert!(second.open_on(path, PORT).is_err(), "it has ended with the first");
    within("the second", second.close()).await;
}
