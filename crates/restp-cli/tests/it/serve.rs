//! `restp serve` as a service: its file, and sockets that a service manager hands over.

#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is a failed test")]

use crate::common::programs::{echo, exchange, forward, rule, target};
use crate::common::{Running, content, restp, says, write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;

#[test]
fn a_file_says_what_is_served_to_whom() {
    let target = target(echo);
    let folder = tempfile::tempdir().unwrap();
    let key = restp(&["keygen", "--show"]);
    let key = key.stdout.split_whitespace().next_back().unwrap().to_owned();
    write(
        folder.path(),
        "friends",
        format!("# those of the house\n{key}\n").as_bytes(),
    );
    let text = format!("listen = [\"127.0.0.1:0\"]\nallow = [\"tcp:{target}\"]\nkeys = [\"friends\"]\n");
    let file = write(folder.path(), "serve.toml", text.as_bytes());
    let file = file.to_str().unwrap();
    let mut serving = Running::start(&["serve", "--json", "--config", file]);
    let ticket = serving.json()["ticket"].as_str().unwrap().to_owned();
    let forwarding = forward(&ticket, &["-L", &rule("0", target)]);
    let stream = TcpStream::connect(forwarding.listens[0]).unwrap();
    assert!(exchange(stream, content(1000)) == content(1000));
    let other = tempfile::tempdir().unwrap();
    let words = ["forward", &ticket, "-L", &rule("0", target), "--timeout", "20"];
    let refused = Running::start_keeping(other.path(), &words).end();
    assert_eq!(refused.code, Some(1), "another key: {refused:?}");
}

#[test]
fn what_is_wrong_in_a_file_is_said_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(
        folder.path(),
        "serve.toml",
        b"allow = [\"tcp:a:1\"]\n\ntimout = \"5m\"\n",
    );
    let file = file.to_str().unwrap();
    says(
        &restp(&["serve", "--config", file]),
        2,
        &["serve.toml: line 3", "`timout`", "`timeout`"],
    );
    let missing = format!("{file}.not");
    says(
        &restp(&["serve", "--config", &missing]),
        2,
        &["no such file", "restp help serve"],
    );
}

/// Starts `restp serve` with `socket` as the first descriptor of the protocol, as systemd does.
fn activated(socket: OwnedFd, words: &[&str]) -> Running {
    let script = "exec 3<&0 </dev/null; LISTEN_PID=$$ LISTEN_FDS=1 exec \"$@\"";
    Running::start_through(&["sh", "-c", script, "sh"], socket, words)
}

#[test]
fn a_socket_of_a_service_manager_is_served() {
    let target = target(echo);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let place = format!("tcp:{target}");
    let mut serving = activated(socket.into(), &["serve", "--json", "--allow", &place]);
    let invitation = serving.json();
    assert_eq!(invitation["addresses"][0], address.to_string());
    let ticket = invitation["ticket"].as_str().unwrap();
    let forwarding = forward(ticket, &["-L", &rule("0", target)]);
    let stream = TcpStream::connect(forwarding.listens[0]).unwrap();
    assert!(exchange(stream, content(1000)) == content(1000));
}

/// It is one of both families where nothing else is said: its ticket had no address of IPv4, and who came from one had another
/// name.
#[test]
fn a_socket_of_both_families_is_served_in_both() {
    let raw = socket2::Socket::new(socket2::Domain::IPV6, socket2::Type::DGRAM, None);
    let bound = raw.and_then(|raw| {
        raw.set_only_v6(false)?;
        raw.bind(&SocketAddr::from(([0; 16], 0)).into())?;
        Ok(UdpSocket::from(raw))
    });
    let Ok(socket) = bound else {
        eprintln!("SKIPPED: no socket of both families can be had here");
        return;
    };
    let port = socket.local_addr().unwrap().port();
    let target = target(echo);
    let place = format!("tcp:{target}");
    let mut serving = activated(socket.into(), &["serve", "--json", "--allow", &place]);
    let invitation = serving.json();
    let addresses = invitation["addresses"].to_string();
    assert!(addresses.contains('.'), "of IPv4, too: {addresses}");
    let ticket = invitation["ticket"].as_str().unwrap();
    for host in ["127.0.0.1", "[::1]"] {
        let at = format!("{host}:{port}");
        let forwarding = forward(ticket, &["-L", &rule("0", target), "--address", &at]);
        let stream = TcpStream::connect(forwarding.listens[0]).unwrap();
        assert!(exchange(stream, content(1000)) == content(1000), "{at}");
    }
}

#[test]
fn other_sockets_and_two_places_to_listen_at_are_refused() {
    let stream = TcpListener::bind("127.0.0.1:0").unwrap();
    let words = ["serve", "--allow", "tcp:127.0.0.1:1"];
    let refused = activated(stream.into(), &words).end();
    says(&refused, 2, &["LISTEN_FDS: descriptor 3", "ListenDatagram="]);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let both = activated(
        socket.into(),
        &[&words[..], &["--listen", "127.0.0.1:0"]].concat(),
    );
    says(&both.end(), 2, &["--listen", "leave one of both out"]);
}
