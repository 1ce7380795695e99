//! SOCKS clients through `restp forward --socks`, over real sockets.

#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is a failed test")]

use crate::common::programs::{echo, exchange, forward, serve, target};
use crate::common::{content, restp, says, wait_until};
use std::io::{Read, Write};
use std::net::{Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::time::Duration;

/// A client of version 5 that has asked for the target `address`, with its type; and the code of the answer.
fn ask(proxy: SocketAddr, address_type: u8, address: &[u8], port: u16) -> (TcpStream, u8) {
    let mut stream = TcpStream::connect(proxy).unwrap();
    stream.write_all(&[5, 1, 0]).unwrap();
    let mut method = [0; 2];
    stream.read_exact(&mut method).unwrap();
    assert_eq!(method, [5, 0]);
    let request = [&[5, 1, 0, address_type][..], address, &port.to_be_bytes()].concat();
    stream.write_all(&request).unwrap();
    let mut reply = [0; 10];
    stream.read_exact(&mut reply).unwrap();
    (stream, reply[1])
}

fn by_name(proxy: SocketAddr, name: &str, port: u16) -> (TcpStream, u8) {
    ask(proxy, 3, &[&[name.len() as u8], name.as_bytes()].concat(), port)
}

#[test]
fn targets_by_address_and_by_name_are_reached_from_the_server() {
    let target = target(echo);
    let port = target.port();
    let server = serve(&["tcp:*:*"], &[]);
    let forward = forward(&server.ticket, &["--socks", "0"]);
    let proxy = forward.listens[0];
    for (stream, code) in [
        ask(proxy, 1, &[127, 0, 0, 1], port),
        by_name(proxy, "localhost", port),
        by_name(proxy, "127.0.0.1", port),
    ] {
        assert_eq!(code, 0);
        assert!(exchange(stream, content(100_000)) == content(100_000));
    }
    if let Ok(listener) = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)) {
        let at = listener.local_addr().unwrap().port();
        let (_stream, code) = ask(proxy, 4, &Ipv6Addr::LOCALHOST.octets(), at);
        assert_eq!(code, 0);
        listener.accept().unwrap();
    }
    // Version 4 with a name, and data behind the request.
    let mut stream = TcpStream::connect(proxy).unwrap();
    let request = [
        &[4, 1][..],
        &port.to_be_bytes(),
        &[0, 0, 0, 1],
        b"me\0localhost\0early",
    ]
    .concat();
    stream.write_all(&request).unwrap();
    let mut reply = [0; 8];
    stream.read_exact(&mut reply).unwrap();
    assert_eq!(reply[..2], [0, 90]);
    let echoed = exchange(stream, content(1000));
    assert!(echoed.starts_with(b"early") && echoed.ends_with(&content(1000)));
}

#[test]
fn each_refusal_has_its_code() {
    let nobody = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let allowed = [
        format!("tcp:127.0.0.1:{nobody}"),
        "tcp:*:9".into(),
        "tcp:a.invalid:80".into(),
    ];
    let allowed: Vec<&str> = allowed.iter().map(|place| &place[..]).collect();
    let server = serve(&allowed, &[]);
    let forward = forward(&server.ticket, &["--socks", "0"]);
    let proxy = forward.listens[0];
    // The end behind the answer is one in good order, not a reset that could take the answer with it.
    let ends = |(mut stream, code): (TcpStream, u8)| {
        assert_eq!(stream.read(&mut [0]).unwrap(), 0);
        code
    };
    assert_eq!(ends(ask(proxy, 1, &[127, 0, 0, 1], nobody)), 5, "refused");
    assert_eq!(ends(ask(proxy, 1, &[127, 0, 0, 1], 1)), 2, "not allowed");
    assert_eq!(ends(by_name(proxy, "a.invalid", 80)), 4, "no such host");
    assert_eq!(ends(by_name(proxy, "a b", 9)), 4, "no name");
    drop(server);
    // A server that is not there any more keeps nobody waiting who has left.
    let mut stream = TcpStream::connect(proxy).unwrap();
    stream
        .write_all(&[5, 1, 0, 5, 1, 0, 1, 127, 0, 0, 1, 0, 9])
        .unwrap();
}

/// Who says nothing, or something else, holds no place that others need.
#[test]
fn silent_and_foreign_clients_are_in_nobodys_way() {
    let target = target(echo);
    let server = serve(&[&format!("tcp:{target}")], &[]);
    let forward = forward(&server.ticket, &["--socks", "0", "--max-connections", "1"]);
    let proxy = forward.listens[0];
    let silent: Vec<_> = (0..20).map(|_| TcpStream::connect(proxy).unwrap()).collect();
    let mut half = TcpStream::connect(proxy).unwrap();
    half.write_all(&[5, 200, 0]).unwrap();
    let mut http = TcpStream::connect(proxy).unwrap();
    http.write_all(b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n")
        .unwrap();
    assert_eq!(http.read(&mut [0]).unwrap(), 0);
    let (stream, code) = ask(proxy, 1, &[127, 0, 0, 1], target.port());
    assert_eq!(code, 0);
    assert!(exchange(stream, content(1000)) == content(1000));
    drop(silent);
    let mut running = forward.running;
    running.overhear("does not speak SOCKS");
}

/// A target that does not answer keeps the place of nobody who has left.
#[cfg(target_os = "linux")]
#[test]
fn who_gives_up_on_a_target_leaves_the_place_to_the_next() {
    let (full, _crowd) = silent_target();
    let target = target(echo);
    let places = [full, target].map(|at| format!("tcp:{at}"));
    let places: Vec<&str> = places.iter().map(|place| &place[..]).collect();
    // One client gets one of two places.
    let server = serve(&places, &["--max-connections", "2"]);
    let forward = forward(&server.ticket, &["--socks", "0"]);
    let mut impatient = TcpStream::connect(forward.listens[0]).unwrap();
    let request = [
        &[5, 1, 0, 5, 1, 0, 1, 127, 0, 0, 1][..],
        &full.port().to_be_bytes(),
    ]
    .concat();
    impatient.write_all(&request).unwrap();
    impatient.read_exact(&mut [0; 2]).unwrap();
    wait_until("the server connects", || connects(full.port()));
    drop(impatient);
    let (stream, code) = ask(forward.listens[0], 1, &[127, 0, 0, 1], target.port());
    assert_eq!(code, 0);
    assert!(exchange(stream, content(1000)) == content(1000));
}

/// A target that has no room for one more, and who has taken it.
#[cfg(target_os = "linux")]
fn silent_target() -> (SocketAddr, (TcpListener, Vec<TcpStream>)) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    socket2::SockRef::from(&listener).listen(0).unwrap();
    let at = listener.local_addr().unwrap();
    let connect = || TcpStream::connect_timeout(&at, Duration::from_millis(500)).ok();
    let crowd: Vec<TcpStream> = std::iter::from_fn(connect).collect();
    (at, (listener, crowd))
}

/// Does somebody wait for an answer of this port of 127.0.0.1?
#[cfg(target_os = "linux")]
fn connects(port: u16) -> bool {
    const SYN_SENT: &str = "02";
    let sockets = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let to = format!("0100007F:{port:04X}");
    sockets.lines().any(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words[2] == to && words[3] == SYN_SENT
    })
}

#[test]
fn a_proxy_to_nothing_does_not_begin() {
    let server = serve(&["listen:127.0.0.1:*"], &[]);
    let proxy = |port: &str| restp(&["forward", &server.ticket, "--socks", port]);
    says(&proxy("0"), 1, &["the server refused", "--allow tcp:*:*"]);
    says(&proxy("192.0.2.1:0"), 2, &["192.0.2.1:0", "address of this host"]);
    assert!(proxy("a:b").stderr.contains("write PORT, or BIND:PORT"));
}

/// The client that people try it with.
#[test]
fn curl_loads_a_page_with_the_names_of_the_server() {
    if Command::new("curl").arg("--version").output().is_err() {
        eprintln!("skipped: curl is not installed");
        return;
    }
    let page = target(|mut stream| {
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            request.push(byte[0]);
        }
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello";
        stream.write_all(answer).unwrap();
    });
    let server = serve(&["tcp:localhost:*"], &[]);
    let forward = forward(&server.ticket, &["--socks", "0"]);
    for option in ["--socks5-hostname", "--socks4a"] {
        let url = format!("http://localhost:{}/", page.port());
        let proxy = forward.listens[0].to_string();
        let words = [
            "--silent",
            "--noproxy",
            "",
            "--max-time",
            "100",
            option,
            &proxy,
            &url,
        ];
        let loaded = Command::new("curl").args(words).output().unwrap();
        assert_eq!(loaded.stdout, b"hello", "{option}: {loaded:?}");
    }
}
