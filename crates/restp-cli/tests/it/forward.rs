//! TCP connections through `restp forward` and `restp serve`, over real sockets.

#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is a failed test")]

use crate::common::programs::{
    Forward, Server, echo, exchange, forward, reset, rule, serve, serve_at, target, tcp,
};
use crate::common::{FOR_EVER, content, emulate, emulate_at, restp, says, wait_until};
use nix::sys::signal::Signal;
use std::collections::BTreeSet;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread::{JoinHandle, spawn};
use std::time::Duration;

/// Both directions of several connections at once are full, each of other bytes, and each direction ends by itself.
#[test]
fn many_connections_carry_every_byte_both_ways() {
    const BYTES: usize = 2_000_000;
    // Asked by its first byte for as many other ones.
    let target = target(|mut stream| {
        let mut first = [0];
        stream.read_exact(&mut first).unwrap();
        let answer = content(BYTES + usize::from(first[0]));
        let read = exchange(stream.try_clone().unwrap(), answer);
        assert!(read == content(BYTES)[..BYTES - usize::from(first[0])]);
    });
    let server = serve(&[&tcp(target), "listen:127.0.0.1:0"], &[]);
    let back = rule("0", target);
    let forward = forward(&server.ticket, &["-L", &back, "-R", &back]);
    let one = |address: SocketAddr, number: u8| {
        spawn(move || {
            let sent = content(BYTES)[..BYTES - usize::from(number)].to_vec();
            let stream = TcpStream::connect(address).unwrap();
            let read = exchange(stream, [&[number][..], &sent].concat());
            assert!(
                read == content(BYTES + usize::from(number)),
                "{number}: {}",
                read.len()
            );
        })
    };
    let all = (1..=6).map(|number| one(forward.listens[usize::from(number) % 2], number));
    let all: Vec<JoinHandle<()>> = all.collect();
    all.into_iter().for_each(|one| one.join().unwrap());
}

/// It has nothing to say, which it says at once, before there is a way to the target.
#[test]
fn who_only_listens_is_served() {
    let target = target(|stream| assert!(exchange(stream, b"welcome".to_vec()).is_empty()));
    let server = serve(&[&tcp(target)], &[]);
    let forward = forward(&server.ticket, &["-L", &rule("0", target)]);
    for _ in 0..5 {
        let stream = TcpStream::connect(forward.listens[0]).unwrap();
        assert_eq!(exchange(stream, Vec::new()), b"welcome");
    }
}

/// A relay to `to`, and the names of the sealed sessions that were asked for through it.
fn watched(to: &str) -> (SocketAddr, Arc<Mutex<BTreeSet<Vec<u8>>>>) {
    let (outside, inside) = (
        UdpSocket::bind("127.0.0.1:0").unwrap(),
        UdpSocket::bind("127.0.0.1:0").unwrap(),
    );
    inside.connect(to).unwrap();
    let address = outside.local_addr().unwrap();
    let asked = Arc::new(Mutex::new(BTreeSet::new()));
    let (seen, client) = (asked.clone(), Arc::new(Mutex::new(None)));
    let (tx, rx, back_to) = (
        outside.try_clone().unwrap(),
        inside.try_clone().unwrap(),
        client.clone(),
    );
    spawn(move || {
        let mut buffer = [0; 65_536];
        while let Ok((length, from)) = tx.recv_from(&mut buffer) {
            // Requests for sessions: docs/protocol/sealed.md.
            if [0x80, 0x81, 0x85].contains(&buffer[0]) {
                seen.lock().unwrap().insert(buffer[1..9].to_vec());
            }
            *client.lock().unwrap() = Some(from);
            let _ = rx.send(&buffer[..length]);
        }
    });
    spawn(move || {
        let mut buffer = [0; 65_536];
        loop {
            if let Ok(length) = inside.recv(&mut buffer) {
                let to: Option<SocketAddr> = *back_to.lock().unwrap();
                let _ = outside.send_to(&buffer[..length], to.unwrap());
            }
        }
    });
    (address, asked)
}

#[test]
fn all_connections_share_one_handshake() {
    let target = target(echo);
    let server = serve(&[&tcp(target)], &[]);
    let (relay, asked) = watched(&server.address);
    let address = relay.to_string();
    let forward = forward(&server.ticket, &["--address", &address, "-L", &rule("0", target)]);
    let first = asked.lock().unwrap().len();
    assert_eq!(first, 1, "that of the first contact");
    // Something is said all the time: a session that was silent for seconds is asked for anew beside the SYN.
    let stream = TcpStream::connect(forward.listens[0]).unwrap();
    let talk = spawn(move || exchange(stream, content(1_000_000)));
    for _ in 0..20 {
        let stream = TcpStream::connect(forward.listens[0]).unwrap();
        assert!(exchange(stream, content(1000)) == content(1000));
    }
    assert_eq!(talk.join().unwrap().len(), 1_000_000);
    assert_eq!(asked.lock().unwrap().len(), 1);
}

#[test]
fn ends_by_reset_stay_resets() {
    // Here.
    let (told, heard) = std::sync::mpsc::channel();
    let first = target(move |mut stream| {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        stream.write_all(&byte).unwrap();
        told.send(stream.read(&mut byte).map_err(|error| error.kind()))
            .unwrap();
    });
    // There.
    let second = target(|mut stream| {
        stream.read_exact(&mut [0]).unwrap();
        reset(stream);
    });
    // Nobody.
    let third = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let server = serve(&["tcp:127.0.0.1:*", "listen:127.0.0.1:0"], &[]);
    let (l1, l2, l3) = (rule("0", first), rule("0", second), rule("0", third));
    let forward = forward(&server.ticket, &["-L", &l1, "-L", &l2, "-L", &l3, "-R", &l3]);
    let open = |place: usize| {
        let mut stream = TcpStream::connect(forward.listens[place]).unwrap();
        let _ = stream.write_all(b"x");
        stream
    };
    let mut stream = open(0);
    stream.read_exact(&mut [0]).unwrap();
    reset(stream);
    assert_eq!(heard.recv().unwrap(), Err(ErrorKind::ConnectionReset));
    for place in 1..4 {
        let read = open(place).read(&mut [0]).map_err(|error| error.kind());
        assert_eq!(read, Err(ErrorKind::ConnectionReset), "{place}");
    }
}

/// Who read half of something must not take it for all, whether `forward` or `serve` ends, and however.
#[test]
fn what_is_cut_off_by_the_end_of_a_program_ends_by_reset() {
    let read_to_end = |mut stream: &TcpStream| {
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut buffer = [0; 65_536];
        loop {
            match stream.read(&mut buffer) {
                Ok(0) => return None,
                Ok(_) => {}
                Err(error) => return Some(error.kind()),
            }
        }
    };
    for signal in [Signal::SIGINT, Signal::SIGKILL] {
        let (ends, ended) = channel();
        let ends = Mutex::new(ends);
        let target = target(move |mut stream| {
            stream.write_all(b"x").unwrap();
            let _ = ends.lock().unwrap().send(read_to_end(&stream));
        });
        let server = serve(&[&tcp(target)], &[]);
        let forward = forward(&server.ticket, &["-L", &rule("0", target)]);
        let begun = || {
            let mut stream = TcpStream::connect(forward.listens[0]).unwrap();
            stream.read_exact(&mut [0]).unwrap();
            stream
        };
        let first = begun();
        let Server { running, address, .. } = server;
        running.signal(signal);
        let why = ended.recv_timeout(Duration::from_secs(20)).unwrap();
        assert_eq!(why, Some(ErrorKind::ConnectionReset), "server, {signal}");
        drop((running, first));
        let _again = serve_at(&address, &[&tcp(target)], &[]);
        let second = begun();
        forward.running.signal(signal);
        let why = read_to_end(&second);
        assert_eq!(why, Some(ErrorKind::ConnectionReset), "forward, {signal}");
    }
}

/// Who has not reached his other end yet when a program ends, or never does, must not take that for an empty answer.
#[test]
fn what_waits_for_its_other_end_ends_by_reset() {
    let ends = |mut stream: &TcpStream| {
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.read(&mut [0]).map_err(|error| error.kind())
    };
    for signal in [Signal::SIGINT, Signal::SIGKILL] {
        for place in 0..2 {
            let target = target(echo);
            let server = serve(&[&tcp(target), "listen:127.0.0.1:0"], &[]);
            let rule = rule("0", target);
            let words = ["-L", &rule, "-R", &rule, "--max-connections", "1"];
            let mut forward = forward(&server.ticket, &words);
            let mut first = TcpStream::connect(forward.listens[place]).unwrap();
            first.write_all(b"x").unwrap();
            first.read_exact(&mut [0]).unwrap();
            let second = TcpStream::connect(forward.listens[place]).unwrap();
            forward.running.overhear("1 connections are open");
            let ending = if place == 0 {
                &forward.running
            } else {
                &server.running
            };
            ending.signal(signal);
            assert_eq!(
                ends(&second),
                Err(ErrorKind::ConnectionReset),
                "{place}, {signal}"
            );
        }
    }
    // The server has no place for the second one.
    let (told, heard) = channel();
    let told = Mutex::new(told);
    let target = target(move |stream| {
        let ended = ends(&stream);
        let _ = told.lock().unwrap().send(ended);
    });
    let server = serve(&["listen:127.0.0.1:0"], &["--max-connections", "2"]);
    let forward = forward(&server.ticket, &["-R", &rule("0", target)]);
    let connect = || TcpStream::connect(forward.listens[0]).unwrap();
    let mut first = connect();
    let _second = connect();
    let ended = heard.recv_timeout(Duration::from_secs(20)).unwrap();
    assert_eq!(ended, Err(ErrorKind::ConnectionReset));
    first.write_all(b"x").unwrap();
}

/// The line dies in mid-transfer, and the one that takes its place comes from another address.
#[test]
fn connections_bear_an_outage_and_a_change_of_address() {
    let target = target(echo);
    let server = serve(&[&tcp(target), "listen:127.0.0.1:0"], &FOR_EVER);
    let line = emulate(&server.address, "rate = \"20 Mbit/s\"\n");
    let (address, back) = (line.address.clone(), rule("0", target));
    let options = ["--address", &address, "-L", &back, "-R", &back];
    let forward = forward(&server.ticket, &[&options[..], &FOR_EVER[..]].concat());
    let mut streams = forward.listens.iter().map(|at| TcpStream::connect(at).unwrap());
    let mut streams = [streams.next().unwrap(), streams.next().unwrap()];
    for stream in &mut streams {
        stream.write_all(b"x").unwrap();
        stream.read_exact(&mut [0]).unwrap();
    }
    drop(line);
    let echoes = streams.map(|stream| spawn(move || exchange(stream, content(400_000))));
    let _line = emulate_at(&address, &server.address, "rate = \"20 Mbit/s\"\n");
    for echo in echoes {
        assert!(echo.join().unwrap() == content(400_000));
    }
}

/// What was open is over, on both sides; what comes next is served, and the remote listener stands again.
#[test]
fn a_server_that_starts_again_serves_what_comes_next() {
    let target = target(echo);
    let places = [&tcp(target)[..], "listen:127.0.0.1:*"];
    let server = serve(&places, &[]);
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let (local, remote) = (rule("0", target), rule(&port.to_string(), target));
    let forward = forward(&server.ticket, &["-L", &local, "-R", &remote]);
    let mut open = TcpStream::connect(forward.listens[0]).unwrap();
    open.write_all(b"x").unwrap();
    open.read_exact(&mut [0]).unwrap();
    let Server { running, address, .. } = server;
    drop(running);
    let _again = serve_at(&address, &places, &[]);
    // It notices when something is sent.
    open.write_all(b"x").unwrap();
    let ended = open.read(&mut [0]).map_err(|error| error.kind());
    assert_eq!(ended, Err(ErrorKind::ConnectionReset));
    for place in 0..2 {
        wait_until("the listener stands", || {
            TcpStream::connect(forward.listens[place]).is_ok()
        });
        let stream = TcpStream::connect(forward.listens[place]).unwrap();
        assert!(exchange(stream, content(1000)) == content(1000), "{place}");
    }
}

#[test]
fn that_the_server_does_not_answer_is_said() {
    let target = target(echo);
    let server = serve(&[&tcp(target)], &FOR_EVER);
    let words = ["-L", &rule("0", target)];
    let mut forward = forward(&server.ticket, &[&words[..], &FOR_EVER].concat());
    server.running.signal(Signal::SIGSTOP);
    let waiting: Vec<_> = (0..3)
        .map(|_| {
            let stream = TcpStream::connect(forward.listens[0]).unwrap();
            spawn(move || exchange(stream, content(1000)))
        })
        .collect();
    forward.running.overhear("no answer from the server for 5 s");
    server.running.signal(Signal::SIGCONT);
    for one in waiting {
        assert!(one.join().unwrap() == content(1000));
    }
}

#[test]
fn further_connections_wait_for_room() {
    let target = target(echo);
    let server = serve(&[&tcp(target)], &[]);
    let forward = forward(
        &server.ticket,
        &["-L", &rule("0", target), "--max-connections", "1"],
    );
    let mut first = TcpStream::connect(forward.listens[0]).unwrap();
    first.write_all(b"x").unwrap();
    first.read_exact(&mut [0]).unwrap();
    let second = TcpStream::connect(forward.listens[0]).unwrap();
    let waiting = spawn(move || exchange(second, content(1000)));
    let Forward { mut running, .. } = forward;
    running.overhear("1 connections are open");
    assert!(!waiting.is_finished());
    drop(first);
    assert!(waiting.join().unwrap() == content(1000));
}

/// Listeners that nobody connects to leave the room to those of others.
#[test]
fn idle_listeners_take_no_room() {
    let target = target(echo);
    let server = serve(&[&tcp(target), "listen:127.0.0.1:0"], &[]);
    let rule = rule("0", target);
    let rules = ["-L", &rule, "-L", &rule, "-R", &rule];
    let forward = forward(
        &server.ticket,
        &[&rules[..], &["--max-connections", "1"]].concat(),
    );
    for listen in forward.listens.iter().rev() {
        let stream = TcpStream::connect(listen).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        assert!(exchange(stream, content(1000)) == content(1000), "{listen}");
    }
}

#[test]
fn what_cannot_be_forwarded_is_said_at_once() {
    let server = serve(&["tcp:127.0.0.1:1"], &[]);
    let forward = |words: &[&str]| restp(&[&["forward", &server.ticket], words].concat());
    says(&forward(&[]), 2, &["-L 8080:127.0.0.1:80"]);
    says(
        &forward(&["-L", "0:127.0.0.1:2"]),
        1,
        &["refused", "--allow tcp:127.0.0.1:2"],
    );
    says(
        &forward(&["-R", "0:127.0.0.1:2"]),
        1,
        &["refused", "--allow listen:127.0.0.1:0"],
    );
    says(&forward(&["-R", "80"]), 2, &["[BIND:]PORT:HOST:HOSTPORT"]);
    says(&forward(&["-L", "0:a b:2"]), 2, &["\"a b\"", "no host"]);
    says(
        &forward(&["-L", "192.0.2.1:0:127.0.0.1:1"]),
        2,
        &["192.0.2.1:0", "address of this host"],
    );
    says(&forward(&["-R", "0:a b:2"]), 2, &["-R", "\"a b\"", "no host"]);
    // Nobody has to be reached to say so.
    let local = ["forward", "127.0.0.1:1", "--timeout", "1", "-L", "0:127.0.0.1:1"];
    says(&restp(&[&local[..], &["-R", "80"]].concat()), 2, &["where to?"]);
    assert!(forward(&["-L", "x"]).stderr.contains("[BIND:]PORT:HOST:HOSTPORT"));
    says(&restp(&["serve", "--allow", "tcp:22"]), 2, &["tcp:HOST:PORT"]);
}
