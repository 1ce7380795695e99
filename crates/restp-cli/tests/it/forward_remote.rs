//! Listeners at the other end, and what becomes of those for whom there is no place or no answer.

#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is a failed test")]

use crate::common::programs::{Forward, Server, echo, exchange, forward, rule, serve, serve_at, target, tcp};
use crate::common::{Running, content, says};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread::{JoinHandle, spawn};
use std::time::Duration;

/// As many connections as both ends allow run one behind the other, though each end sees the end of one at another time.
#[test]
fn who_comes_next_finds_the_place_of_who_left() {
    let target = target(|mut stream| {
        stream.write_all(b"hello").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let _ = stream.read_to_end(&mut Vec::new());
    });
    // One client gets one of two places; its listener needs none.
    let server = serve(&[&tcp(target), "listen:127.0.0.1:0"], &["--max-connections", "2"]);
    let rule = rule("0", target);
    let forward = forward(
        &server.ticket,
        &["-L", &rule, "-R", &rule, "--max-connections", "1"],
    );
    let one = |number: usize| {
        let address = forward.listens[number % 2];
        spawn(move || {
            let mut stream = TcpStream::connect(address).unwrap();
            let mut read = Vec::new();
            stream.read_to_end(&mut read).unwrap();
            assert_eq!(read, b"hello");
            let _ = stream.write_all(b"thanks");
        })
    };
    let all: Vec<JoinHandle<()>> = (0..60).map(one).collect();
    all.into_iter().for_each(|one| one.join().unwrap());
}

/// Who connects to a listener that the server has no place for is reset, and is in nobody's way.
#[test]
fn a_remote_listener_resets_whom_there_is_no_place_for() {
    let target = target(echo);
    let server = serve(&["listen:127.0.0.1:0"], &["--max-connections", "2"]);
    let forward = forward(&server.ticket, &["-R", &rule("0", target)]);
    let mut first = TcpStream::connect(forward.listens[0]).unwrap();
    first.write_all(b"x").unwrap();
    first.read_exact(&mut [0]).unwrap();
    let others: Vec<TcpStream> = (0..70)
        .map(|_| TcpStream::connect(forward.listens[0]).unwrap())
        .collect();
    for mut other in others {
        other.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let ended = other.read(&mut [0]).map_err(|error| error.kind());
        assert_eq!(ended, Err(ErrorKind::ConnectionReset));
    }
    drop(first);
    let stream = TcpStream::connect(forward.listens[0]).unwrap();
    assert!(exchange(stream, content(1000)) == content(1000));
}

/// The system takes them all: who waits for the first word of the other end must not wait for one that knows nothing of it.
#[test]
fn a_crowd_is_connected_at_once() {
    let target = target(echo);
    let server = serve(&[&tcp(target), "listen:127.0.0.1:0"], &[]);
    let rule = rule("0", target);
    let forward = forward(
        &server.ticket,
        &["-L", &rule, "-R", &rule, "--max-connections", "1"],
    );
    let connect = |listen| TcpStream::connect_timeout(listen, Duration::from_millis(900));
    for listen in &forward.listens {
        let crowd: Result<Vec<_>, _> = (0..400).map(|_| connect(listen)).collect();
        assert!(crowd.is_ok(), "{listen}: {crowd:?}");
    }
}

/// Each one hears why, though the server ends the association of the first.
#[test]
fn every_refused_connection_hears_why() {
    let target = target(echo);
    let places = [&tcp(target)[..]];
    let server = serve(&places, &["--open"]);
    let Forward { mut running, listens } = forward(&server.address, &["-L", &rule("0", target)]);
    let Server {
        running: first,
        address,
        ..
    } = server;
    drop(first);
    let _again = serve_at(&address, &places, &[]);
    for _ in 0..3 {
        let mut stream = TcpStream::connect(listens[0]).unwrap();
        let ended = stream.read(&mut [0]).map_err(|error| error.kind());
        assert_eq!(ended, Err(ErrorKind::ConnectionReset));
        let said = running.overhear("have its ticket");
        assert!(!said.contains("same release"), "{said}");
    }
}

/// A free port is another one when the server starts again.
#[test]
fn the_port_of_a_remote_listener_that_stands_again_is_told() {
    let target = target(echo);
    let server = serve(&["listen:127.0.0.1:0"], &[]);
    let Forward { mut running, .. } = forward(&server.ticket, &["-R", &rule("0", target)]);
    let Server {
        running: first,
        address,
        ..
    } = server;
    drop(first);
    let _again = serve_at(&address, &["listen:127.0.0.1:0"], &[]);
    let told = running.overhear("listens again");
    let port: u16 = told.trim_end().rsplit(':').next().unwrap().parse().unwrap();
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    assert!(exchange(stream, content(1000)) == content(1000));
}

#[test]
fn targets_are_told_as_places() {
    let server = serve(&["tcp:[::1]:2", "listen:127.0.0.1:0"], &[]);
    let words = ["forward", "--json", &server.ticket];
    let mut running = Running::start(&[&words[..], &["-L", "0:[::1]:2", "-R", "0:[::1]:2"]].concat());
    let ready = running.json();
    for told in ready["forwards"].as_array().unwrap() {
        assert_eq!(told["target"], "tcp:[::1]:2", "{told}");
    }
}

/// One that was killed leaves its listener to the next one with the same key; one that runs is told.
#[test]
fn who_comes_again_with_the_same_key_takes_the_listener_over() {
    let target = target(echo);
    let server = serve(&["listen:127.0.0.1:*"], &[]);
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let remote = rule(&port.to_string(), target);
    let first = forward(&server.ticket, &["-R", &remote]);
    let second = forward(&server.ticket, &["-R", &remote]);
    says(
        &first.running.end(),
        1,
        &["another `restp forward`", "another port"],
    );
    let stream = TcpStream::connect(second.listens[0]).unwrap();
    assert!(exchange(stream, content(1000)) == content(1000));
    let other = tempfile::tempdir().unwrap();
    let refused = Running::start_keeping(other.path(), &["forward", &server.ticket, "-R", &remote]).end();
    says(&refused, 1, &["the server refused", "in use"]);
}
