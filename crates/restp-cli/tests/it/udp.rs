//! Datagrams of UDP through `restp forward` and `restp serve`, over real sockets.

#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is a failed test")]

use crate::common::programs::{Forward, Server, forward, rule, serve, serve_at};
use crate::common::{
    FOR_EVER, Line, Running, content, dies_after, emulate, pause, restp, says, wait_until, write,
};
use nix::sys::signal::Signal;
use std::collections::BTreeSet;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::spawn;
use std::time::Duration;

/// A target that sends back what comes, and the addresses it came from.
fn echo() -> (SocketAddr, Arc<Mutex<BTreeSet<SocketAddr>>>) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    let from_whom = seen.clone();
    spawn(move || {
        let mut buffer = [0; 65_536];
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            from_whom.lock().unwrap().insert(from);
            let _ = socket.send_to(&buffer[..length], from);
        }
    });
    (address, seen)
}

fn client(to: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(to).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    socket
}

/// Sends `datagram` until it comes back: datagrams may be lost, also here.
fn exchange(client: &UdpSocket, datagram: &[u8]) {
    let mut buffer = [0; 65_536];
    wait_until("it comes back", || {
        let _ = client.send(datagram);
        match client.recv(&mut buffer) {
            Ok(length) => buffer[..length] == *datagram,
            Err(_) => false,
        }
    });
}

fn udp(target: SocketAddr) -> String {
    format!("udp:{target}")
}

#[test]
fn each_client_gets_its_own_answers_whatever_their_size() {
    let (target, seen) = echo();
    let server = serve(&[&udp(target), "listen-udp:127.0.0.1:0"], &[]);
    let back = rule("0", target);
    for options in [&[][..], &["--deadline", "250ms"]] {
        let words = [&["--udp", &back, "--udp-remote", &back][..], options].concat();
        let forward = forward(&server.ticket, &words);
        for listens in &forward.listens {
            seen.lock().unwrap().clear();
            let clients: Vec<_> = (0..3).map(|_| client(*listens)).collect();
            for size in [0, 1, 1316, 1332, 1472, 20_000] {
                for (number, client) in (0_u8..).zip(&clients) {
                    let mut datagram = content(size);
                    datagram.push(number);
                    exchange(client, &datagram);
                }
            }
            exchange(&clients[0], &[]);
            assert_eq!(seen.lock().unwrap().len(), 3, "a socket for each client");
        }
    }
}

/// Sends `count` datagrams of 1316 bytes and their number through `forward` to `target`, no more of them at once than the buffers of the
/// sockets on the way hold on a machine under load. The numbers as they arrive.
fn stream(forward: &Forward, target: &UdpSocket, count: u16) -> Vec<u16> {
    let client = client(forward.listens[0]);
    let latest = Arc::new(AtomicU16::new(0));
    let sending = spawn({
        let latest = latest.clone();
        move || {
            for number in 0..count {
                let mut waits = 0;
                while number > latest.load(Ordering::Relaxed) + 30 && waits < 500 {
                    pause(Duration::from_millis(2));
                    waits += 1;
                }
                let datagram = [&number.to_be_bytes()[..], &[0; 1314]].concat();
                client.send(&datagram).unwrap();
                pause(Duration::from_millis(2));
            }
        }
    });
    let mut numbers = Vec::new();
    let mut buffer = [0; 2000];
    while numbers.len() < usize::from(count)
        && let Ok(length) = target.recv(&mut buffer)
    {
        assert_eq!(length, 1316);
        let number = u16::from_be_bytes([buffer[0], buffer[1]]);
        numbers.push(number);
        latest.fetch_max(number, Ordering::Relaxed);
    }
    sending.join().unwrap();
    numbers
}

/// A path that loses every twentieth packet: with a deadline everything is repaired, without one nothing is. Once the first datagram of
/// each flow was missing, at a new socket that was not known to have room.
#[test]
fn losses_are_repaired_while_there_is_time_and_only_then() {
    const DATAGRAMS: u16 = 400;
    let target = UdpSocket::bind("127.0.0.1:0").unwrap();
    target.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let place = udp(target.local_addr().unwrap());
    let server = serve(&[&place], &FOR_EVER);
    let rule = rule("0", target.local_addr().unwrap());
    let arrived = |options: &[&str]| {
        let line = emulate(
            &server.address,
            "rate = \"50 Mbit/s\"\ndelay = \"5 ms\"\nloss = { rate = 0.05, direction = \"both\" }\n",
        );
        let words = ["--address", &line.address, "--udp", &rule];
        let forward = forward(&server.ticket, &[&words[..], options, &FOR_EVER].concat());
        let numbers = stream(&forward, &target, DATAGRAMS);
        let once: BTreeSet<u16> = numbers.iter().copied().collect();
        assert_eq!(once.len(), numbers.len(), "once");
        numbers.len()
    };
    // The last ones of a burst have nothing behind them that shows their loss soon; they have time.
    assert_eq!(arrived(&["--deadline", "60 s"]), usize::from(DATAGRAMS));
    let without = arrived(&[]);
    assert!((1..usize::from(DATAGRAMS)).contains(&without), "{without}");
}

/// The fast one of two lines dies: what it carried leaves by the other, in order and once, and nothing is missing.
#[test]
fn datagrams_with_a_deadline_go_over_two_lines_and_survive_one() {
    const DATAGRAMS: u16 = 600;
    let target = UdpSocket::bind("127.0.0.1:0").unwrap();
    target.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let place = udp(target.local_addr().unwrap());
    let server = serve(&[&place], &FOR_EVER);
    let dying = format!("delay = \"2 ms\"\n{}", dies_after(300));
    let mut lines = [&dying, "delay = \"20 ms\"\n"].map(|keys| emulate(&server.address, keys));
    let [first, second] = lines.each_ref().map(|line| line.address.clone());
    let rule = rule("0", target.local_addr().unwrap());
    let words = ["--address", &first, "--address", &second, "--udp", &rule];
    let options = ["--deadline", "60 s"];
    let forward = forward(&server.ticket, &[&words[..], &options, &FOR_EVER].concat());
    let numbers = stream(&forward, &target, DATAGRAMS);
    assert_eq!(numbers, (0..DATAGRAMS).collect::<Vec<_>>());
    let lost = |line: &mut Line| line.counted("dropped_error") > 0;
    assert_eq!(lines.each_mut().map(lost), [true, false]);
    let carried = lines.each_mut().map(|line| line.counted("delivered_packets"));
    assert!(carried[0] > 100 && carried[1] > 100, "{carried:?}");
}

/// Without a deadline there is one path, and so there is with services that are of one path only: it says so.
#[test]
fn where_datagrams_go_over_one_of_several_paths_it_is_said() {
    let server = serve(&["udp:127.0.0.1:9"], &[]);
    let here = [
        "--bind",
        "127.0.0.1",
        "--bind",
        "127.0.0.2",
        "--udp",
        "0:127.0.0.1:9",
    ];
    let said = |options: &[&str]| {
        let forward = forward(&server.ticket, &[&here[..], options].concat());
        forward.running.signal(Signal::SIGINT);
        forward.running.end().stderr
    };
    let one = "datagrams go over one path";
    assert!(said(&[]).contains(one));
    assert!(said(&["--deadline", "1 s", "--profile", "par-arq"]).contains(one));
    assert!(said(&["--deadline", "1 s", "--set", "paths=single"]).contains(one));
    assert!(!said(&["--deadline", "1 s"]).contains(one));
    assert!(!said(&["--profile", "voice"]).contains(one));
}

/// Media as `--deadline 250ms` sends it, in virtual time: MPEG-TS of 6 Mbit/s over a path that loses packets both ways.
#[test]
fn media_arrives_in_time_over_a_lossy_path() {
    let folder = tempfile::tempdir().unwrap();
    for loss in ["0.01", "0.02"] {
        let scenario = format!(
            "id = \"media\"\ntitle = \"Media\"\nduration = \"23 s\"\nseed = 3\n[measure]\nfrom = \"2 s\"\nto = \"22 s\"\n\
             [[link]]\nname = \"path\"\nbetween = [\"a\", \"b\"]\nrate = \"20 Mbit/s\"\ndelay = \"20 ms\"\n\
             loss = {{ rate = {loss}, unit = \"packet\", direction = \"both\" }}\n\
             [[flow]]\nname = \"media\"\nfrom = \"a\"\nto = \"b\"\ntransport = \"restp:video\"\nset = {{ deadline = \"250 ms\" }}\n\
             traffic = {{ cbr = {{ rate = \"6 Mbit/s\", bytes = 1319, late_after = \"250 ms\" }} }}\n"
        );
        let file = write(folder.path(), "media.toml", scenario.as_bytes());
        let run = restp(&["sim", "--json", file.to_str().unwrap()]);
        let result: serde_json::Value = serde_json::from_str(run.stdout.lines().next().unwrap()).unwrap();
        let in_time = result["flows"][0]["on_time_share"].as_f64().unwrap();
        assert!(in_time >= 0.999, "{loss}: {in_time}");
    }
}

#[test]
fn a_server_that_starts_again_is_asked_again() {
    let (target, _) = echo();
    let places = [&udp(target)[..], "listen-udp:127.0.0.1:*"];
    let server = serve(&places, &[]);
    let port = UdpSocket::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let (local, remote) = (rule("0", target), rule(&port.to_string(), target));
    let forward = forward(&server.ticket, &["--udp", &local, "--udp-remote", &remote]);
    let clients: Vec<_> = forward.listens.iter().map(|listens| client(*listens)).collect();
    clients.iter().for_each(|client| exchange(client, b"before"));
    let Server { running, address, .. } = server;
    drop(running);
    let _again = serve_at(&address, &places, &[]);
    clients.iter().for_each(|client| exchange(client, b"after"));
}

/// The first ones go into the association that is gone: nobody has noticed that yet.
#[test]
fn what_is_sent_while_a_server_starts_again_arrives() {
    const DATAGRAMS: u16 = 30;
    let target = UdpSocket::bind("127.0.0.1:0").unwrap();
    target.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let at = target.local_addr().unwrap();
    let server = serve(&[&udp(at)], &FOR_EVER);
    let words = ["--udp", &rule("0", at), "--deadline", "60 s"];
    let forward = forward(&server.ticket, &[&words[..], &FOR_EVER].concat());
    assert_eq!(stream(&forward, &target, 1), [0]);
    let Server { running, address, .. } = server;
    drop(running);
    let client = client(forward.listens[0]);
    for number in 0..DATAGRAMS / 2 {
        client.send(&number.to_be_bytes()).unwrap();
    }
    let _again = serve_at(&address, &[&udp(at)], &FOR_EVER);
    for number in DATAGRAMS / 2..DATAGRAMS {
        client.send(&number.to_be_bytes()).unwrap();
    }
    let mut numbers = Vec::new();
    let mut buffer = [0; 2000];
    while numbers.len() < usize::from(DATAGRAMS) {
        // The first one may come again: its acknowledgement may have been lost with the server.
        if target.recv(&mut buffer).unwrap() == 2 {
            numbers.push(u16::from_be_bytes([buffer[0], buffer[1]]));
        }
    }
    assert_eq!(numbers, (0..DATAGRAMS).collect::<Vec<_>>());
}

#[test]
fn who_comes_again_with_the_same_key_takes_the_socket_over() {
    let (target, _) = echo();
    let server = serve(&["listen-udp:127.0.0.1:*"], &[]);
    let port = UdpSocket::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let remote = rule(&port.to_string(), target);
    let words = ["--udp-remote", &remote, "--deadline", "1 s"];
    let first = forward(&server.ticket, &words);
    let second = forward(&server.ticket, &words);
    says(
        &first.running.end(),
        1,
        &["another `restp forward`", "another one"],
    );
    exchange(&client(second.listens[0]), b"hello");
    let other = tempfile::tempdir().unwrap();
    let refused = Running::start_keeping(
        other.path(),
        &["forward", &server.ticket, "--udp-remote", &remote],
    );
    says(&refused.end(), 1, &["the server refused", "in use"]);
}

/// TCP and UDP at once, each with the services it needs.
#[test]
fn streams_and_datagrams_go_side_by_side() {
    let (target, _) = echo();
    let tcp = crate::common::programs::target(crate::common::programs::echo);
    let server = serve(&[&udp(target), &format!("tcp:{tcp}")], &[]);
    let (one, other) = (rule("0", tcp), rule("0", target));
    let Forward {
        listens,
        running: _running,
    } = forward(&server.ticket, &["-L", &one, "--udp", &other]);
    exchange(&client(listens[1]), b"hello");
    let stream = std::net::TcpStream::connect(listens[0]).unwrap();
    assert!(crate::common::programs::exchange(stream, content(1000)) == content(1000));
}

#[test]
fn what_cannot_be_carried_is_said_at_once() {
    let server = serve(&["udp:127.0.0.1:1", "tcp:127.0.0.1:1", "udp:a.invalid:1"], &[]);
    let forward = |words: &[&str]| restp(&[&["forward", &server.ticket], words].concat());
    let refused = ["refused", "--allow udp:127.0.0.1:2"];
    says(&forward(&["--udp", "0:127.0.0.1:2"]), 1, &refused);
    says(
        &forward(&["--udp", "0:a.invalid:1"]),
        1,
        &["refused", "udp:a.invalid:1"],
    );
    says(
        &forward(&["--udp-remote", "0:127.0.0.1:2"]),
        1,
        &["--allow listen-udp:127.0.0.1:0"],
    );
    says(
        &forward(&["--udp", "80"]),
        2,
        &["--udp: where to?", "[BIND:]PORT:HOST:HOSTPORT"],
    );
    says(
        &forward(&["-L", "0", "--deadline", "1s"]),
        2,
        &["--deadline", "--udp 5000"],
    );
    for deadline in ["0", "2 h"] {
        let words = ["--udp", "0:127.0.0.1:1", "--deadline", deadline];
        says(&forward(&words), 2, &["5 ms to 60 s"]);
    }
    let both = ["-L", "0", "--udp", "0:127.0.0.1:1", "--profile", "voice"];
    says(&forward(&both), 2, &["--profile", "for each"]);
    let stream = ["--udp", "0:127.0.0.1:1", "--profile", "default"];
    says(&forward(&stream), 2, &["framing = coalesce", "--profile video"]);
    says(
        &forward(&["--udp", "192.0.2.1:0:127.0.0.1:1"]),
        2,
        &["192.0.2.1:0", "address of this host"],
    );
}
