//! What running commands show of themselves: `restp top`, metrics, words and silence.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "in a test a failed unwrap is a failed test, and waiting for others takes real time"
)]

use crate::common::programs::{echo, exchange, rule, serve, target};
use crate::common::{FOR_EVER, Running, TIMEOUT, content, pause, restp, says};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Commands that show themselves in `runtime`.
fn start(runtime: &Path, arguments: &[&str]) -> Running {
    Running::start_with(&[("XDG_RUNTIME_DIR", runtime)], arguments)
}

fn recv(runtime: &Path, options: &[&str]) -> (Running, String) {
    let dir = runtime.join("inbox");
    let words = [
        &[
            "recv",
            "--json",
            "--listen",
            "127.0.0.1:0",
            "--dir",
            dir.to_str().unwrap(),
        ],
        options,
    ]
    .concat();
    let mut running = start(runtime, &words);
    let ticket = running.json()["ticket"].as_str().unwrap().to_owned();
    (running, ticket)
}

/// What `top` prints, once it is what is waited for.
fn top(runtime: &Path, options: &[&str], is_it: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    let begun = Instant::now();
    loop {
        let ended = start(runtime, &[&["top", "--once", "--json"], options].concat()).end();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let lines = ended
            .stdout
            .lines()
            .map(|line| serde_json::from_str(line).unwrap());
        let lines: Vec<Value> = lines.collect();
        if is_it(&lines) {
            return lines;
        }
        assert!(begun.elapsed() < TIMEOUT, "{lines:?}");
    }
}

fn commands(lines: &[Value]) -> Vec<&str> {
    lines
        .iter()
        .map(|line| line["command"].as_str().unwrap())
        .collect()
}

#[test]
fn top_shows_both_ends_of_a_transfer() {
    let runtime = tempfile::tempdir().unwrap();
    let (receiver, ticket) = recv(runtime.path(), &[]);
    let seen = top(runtime.path(), &[], |lines| !lines.is_empty());
    assert_eq!(commands(&seen), ["recv"]);
    assert_eq!(seen[0]["connections"].as_array().unwrap().len(), 0);

    let file = runtime.path().join("film");
    std::fs::write(&file, content(3_000_000)).unwrap();
    let send = ["send", file.to_str().unwrap(), &ticket, "--limit", "200kbit/s"];
    let sender = start(runtime.path(), &[&send[..], &FOR_EVER].concat());
    let moves = |line: &Value| line["connections"][0]["bytes_sent"].as_u64() > Some(0);
    let seen = top(runtime.path(), &[], |lines| {
        lines.len() == 2 && lines.iter().all(moves)
    });
    let one = |command: &str| {
        let found = seen.iter().find(|line| line["command"] == command).unwrap();
        found["connections"][0].clone()
    };
    let (sent, received) = (one("send"), one("recv"));
    assert!(sent["bytes_sent"].as_u64() > received["bytes_sent"].as_u64());
    assert_eq!(sent["composition"]["congestion"], "adaptive");
    assert_eq!(sent["paths"][0]["remote"], received["paths"][0]["local"]);
    assert_ne!(sent["key"], Value::Null);

    let table = start(runtime.path(), &["top"]).end(); // no terminal: once
    assert!(table.stdout.starts_with("PID"), "{table:?}");
    assert!(
        table.stdout.contains("send") && table.stdout.contains("bit/s"),
        "{table:?}"
    );
    drop(sender);
    receiver.signal(Signal::SIGINT);
    receiver.end();
}

/// A cache between a publisher and who fetches, slowly.
#[test]
fn top_shows_what_is_published_cached_and_fetched() {
    let runtime = tempfile::tempdir().unwrap();
    let file = runtime.path().join("film");
    std::fs::write(&file, content(3_000_000)).unwrap();
    let publish = ["publish", "--json", "--listen", "127.0.0.1:0"];
    let mut publisher = start(
        runtime.path(),
        &[&publish[..], &[file.to_str().unwrap()]].concat(),
    );
    let published = publisher.json();
    let origin = published["addresses"][0].as_str().unwrap();
    let seen = top(runtime.path(), &[], |lines| !lines.is_empty());
    assert_eq!(commands(&seen), ["publish"]);
    assert_eq!(seen[0]["connections"][0]["bytes_sent"], 0);
    assert!(start(runtime.path(), &["top"]).end().stdout.contains("anyone"));

    let store = runtime.path().join("store");
    let options = [
        "--listen",
        "127.0.0.1:0",
        "--per-source",
        "200kbit/s",
        "--upstream",
        origin,
    ];
    let cache = [
        &["cache", "--json", "--dir", store.to_str().unwrap()],
        &options[..],
    ]
    .concat();
    let mut cache = start(runtime.path(), &cache);
    let ready = cache.json();
    let from = ready["addresses"][0].as_str().unwrap();
    let (ticket, inbox) = (
        published["ticket"].as_str().unwrap(),
        runtime.path().join("inbox"),
    );
    let words = ["fetch", ticket, "--from", from, "--dir", inbox.to_str().unwrap()];
    let _fetch = start(runtime.path(), &words);
    let counted = |line: &Value, nth: usize, name: &str| line["connections"][nth][name].as_u64();
    let seen = top(runtime.path(), &[], |lines| {
        let moves = |line: &Value| match line["command"].as_str() {
            Some("publish") => counted(line, 0, "bytes_sent") > Some(0),
            Some("cache") => counted(line, 0, "bytes_sent").min(counted(line, 1, "bytes_received")) > Some(0),
            _ => counted(line, 0, "bytes_received") > Some(0),
        };
        lines.len() == 3 && lines.iter().all(moves)
    });
    let one = |command: &str| seen.iter().find(|line| line["command"] == command).unwrap();
    assert_eq!(one("cache")["connections"][1]["paths"][0]["remote"], origin);
    assert_eq!(one("fetch")["connections"][0]["paths"][0]["remote"], from);
    assert!(one("fetch")["connections"][0]["paths"][0]["bytes_received"].as_u64() > Some(0));
}

#[test]
fn top_shows_the_hosts_at_a_relay_and_what_is_forwarded_for_each() {
    let runtime = tempfile::tempdir().unwrap();
    let mut relay = start(runtime.path(), &["relay", "--json", "--listen", "127.0.0.1:0"]);
    let at = relay.json()["listen"].as_str().unwrap().to_owned();
    let dir = runtime.path().join("inbox");
    let words = [
        "recv",
        "--json",
        "--listen",
        "127.0.0.1:0",
        "--relay",
        &at,
        "--dir",
    ];
    let mut receiver = start(runtime.path(), &[&words[..], &[dir.to_str().unwrap()]].concat());
    let ready = receiver.json();
    let relayed = ready["addresses"].as_array().unwrap().last().unwrap().clone();
    let host = |is_it: &dyn Fn(&Value) -> bool| {
        let of_relay = |lines: &[Value]| {
            let line = lines.iter().find(|line| line["command"] == "relay");
            line.map(|line| line["connections"][0].clone())
        };
        let seen = top(runtime.path(), &[], |lines| {
            of_relay(lines).is_some_and(|host| is_it(&host))
        });
        of_relay(&seen).unwrap()
    };
    let before = host(&|host| *host != Value::Null);
    assert_eq!(
        (&before["bytes_sent"], &before["established"]),
        (&0.into(), &true.into())
    );

    let file = runtime.path().join("film");
    std::fs::write(&file, content(100_000)).unwrap();
    let to = ["--address", relayed.as_str().unwrap()];
    let send = ["send", file.to_str().unwrap(), ready["ticket"].as_str().unwrap()];
    let sent = start(runtime.path(), &[&send[..], &to].concat()).end();
    assert_eq!(sent.code, Some(0), "{sent:?}");
    let after = host(&|host| host["bytes_sent"].as_u64() > Some(0));
    assert_eq!(after["paths"], before["paths"]);
    assert!(after["packets_sent"].as_u64() > Some(0));
}

/// Of twenty that are open at once; one of them does not read. The stream that asked whether the target is allowed is over.
#[test]
fn tcp_connections_are_streams_of_one_connection() {
    let runtime = tempfile::tempdir().unwrap();
    let target = target(|stream| {
        let mut first = [0];
        stream.peek(&mut first).unwrap();
        if first[0] == 0xff {
            std::thread::park(); // it reads nothing
        }
        echo(stream);
    });
    let server = serve(&[&format!("tcp:{target}")], &[]);
    let words = ["forward", "--json", &server.ticket, "-L", &rule("0", target)];
    let mut forward = start(runtime.path(), &words);
    let listen = forward.json()["forwards"][0]["listen"]
        .as_str()
        .unwrap()
        .to_owned();
    let connect = || TcpStream::connect(&listen).unwrap();
    let stalled = connect();
    let writer = std::thread::spawn({
        let mut stalled = stalled.try_clone().unwrap();
        move || while stalled.write_all(&[0xff; 65_536]).is_ok() {}
    });
    let open: Vec<_> = (0..19).map(|_| connect()).collect();
    for stream in &open {
        let (mut stream, mut byte) = (stream, [0]);
        stream.write_all(b"x").unwrap();
        stream.read_exact(&mut byte).unwrap();
    }
    let counts =
        |line: &Value| ["streams_open", "streams_opened"].map(|name| line["connections"][0][name].as_u64());
    let seen = top(runtime.path(), &[], |lines| {
        lines.iter().map(counts).eq([[Some(20), Some(21)]])
    });
    assert_eq!(seen[0]["connections"].as_array().unwrap().len(), 1, "{seen:?}");
    assert_eq!(seen[0]["connections"][0]["composition"]["framing"], "streams");
    for stream in open {
        assert!(exchange(stream, content(300_000)) == content(300_000));
    }
    stalled.shutdown(Shutdown::Both).unwrap();
    writer.join().unwrap();
}

/// Each half asked for the port of the metrics, and one hid the other.
#[test]
fn what_goes_by_tcp_and_by_udp_is_shown_by_one_command() {
    let runtime = tempfile::tempdir().unwrap();
    let [tcp, udp] = [target(echo), "127.0.0.1:9".parse().unwrap()];
    let server = serve(&[&format!("tcp:{tcp}"), &format!("udp:{udp}")], &[]);
    let rules = ["-L", &rule("0", tcp), "--udp", &rule("0", udp), "--metrics", "0"];
    let words = [&["forward", "--json", &server.ticket][..], &rules].concat();
    let mut forward = start(runtime.path(), &words);
    assert_eq!(forward.json()["forwards"].as_array().unwrap().len(), 2);
    let seen = top(runtime.path(), &[], |lines| {
        lines
            .iter()
            .map(|line| line["connections"].as_array().unwrap().len())
            .eq([2])
    });
    let of = |nth: usize, what: &str| seen[0]["connections"][nth][what].clone();
    assert_ne!(of(0, "id"), of(1, "id"));
    let mut reliability = [0, 1].map(|nth| of(nth, "composition")["reliability"].to_string());
    reliability.sort();
    assert_eq!(reliability, ["\"arq\"", "\"unreliable\""]);
}

#[test]
fn what_a_killed_command_leaves_is_removed() {
    let runtime = tempfile::tempdir().unwrap();
    let (receiver, _) = recv(runtime.path(), &[]);
    let sockets = || std::fs::read_dir(runtime.path().join("restp")).unwrap().count();
    assert_eq!(sockets(), 1);
    receiver.signal(Signal::SIGKILL);
    receiver.end();
    assert_eq!(sockets(), 1);
    assert!(top(runtime.path(), &[], <[Value]>::is_empty).is_empty());
    assert_eq!(sockets(), 0);

    let (receiver, _) = recv(runtime.path(), &[]);
    receiver.signal(Signal::SIGTERM);
    assert_eq!(receiver.end().code, Some(0));
    assert_eq!(sockets(), 0, "who ends in order leaves nothing");
}

#[test]
fn one_process_is_named_by_number_or_socket() {
    let runtime = tempfile::tempdir().unwrap();
    let (_one, _) = recv(runtime.path(), &[]);
    let (_two, _) = recv(runtime.path(), &[]);
    let seen = top(runtime.path(), &[], |lines| lines.len() == 2);
    let pid = seen[1]["pid"].to_string();
    let socket = runtime.path().join(format!("restp/{pid}.sock"));
    for word in [&pid, socket.to_str().unwrap()] {
        let seen = top(runtime.path(), &[word], |lines| !lines.is_empty());
        assert_eq!(seen.len(), 1);
        assert_eq!(seen[0]["pid"].to_string(), pid);
    }
    says(
        &restp(&["top", "/nowhere.sock"]),
        2,
        &["/nowhere.sock", "restp top"],
    );
}

fn http(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn metrics_are_served_to_collectors_and_to_nobody_else() {
    let runtime = tempfile::tempdir().unwrap();
    let dir = runtime.path().to_str().unwrap();
    let words = ["recv", "--listen", "127.0.0.1:0", "--dir", dir, "--metrics", "0"];
    let mut receiver = start(runtime.path(), &words);
    let said = receiver.overhear("metrics: ");
    let address = said
        .split("http://")
        .nth(1)
        .unwrap()
        .split('/')
        .next()
        .unwrap()
        .to_owned();
    let answer = http(&address, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    assert!(answer.contains("application/openmetrics-text"), "{answer}");
    assert!(
        answer.contains("restp_connections{command=\"recv\"} 0"),
        "{answer}"
    );
    assert!(answer.trim_end().ends_with("# EOF"), "{answer}");
    assert!(http(&address, "GET / HTTP/1.1\r\nHost: x\r\n\r\n").starts_with("HTTP/1.1 404"));
    assert!(http(&address, "POST /metrics HTTP/1.1\r\nHost: x\r\n\r\n").starts_with("HTTP/1.1 405"));
    assert!(http(&address, "\u{0}\u{1}\r\n\r\n").contains("400"));

    let taken = restp(&[
        "recv",
        "--listen",
        "127.0.0.1:0",
        "--dir",
        dir,
        "--metrics",
        &address,
    ]);
    says(&taken, 2, &["--metrics", &address, "free port"]);
}

/// Lets the process of this number open files up to `most`.
fn let_open(pid: &str, most: &str) {
    let limit = format!("--nofile={most}:");
    let changed = Command::new("prlimit").args(["--pid", pid, &limit]).status();
    assert!(changed.unwrap().success());
}

#[test]
fn metrics_and_top_go_on_after_the_system_had_no_room() {
    if Command::new("prlimit").arg("--version").output().is_err() {
        eprintln!("skipped: prlimit is not installed");
        return;
    }
    let runtime = tempfile::tempdir().unwrap();
    let (mut receiver, _) = recv(runtime.path(), &["--metrics", "0"]);
    let said = receiver.overhear("metrics: ");
    let address = said.split("http://").nth(1).unwrap();
    let address = address.split('/').next().unwrap().to_owned();
    let seen = top(runtime.path(), &[], |lines| !lines.is_empty());
    let pid = seen[0]["pid"].to_string();
    let socket = runtime.path().join(format!("restp/{pid}.sock"));
    let _waiting = {
        let_open(&pid, "3");
        let in_vain = (
            TcpStream::connect(&address).unwrap(),
            UnixStream::connect(socket).unwrap(),
        );
        // They find no room, most likely; whatever they find, what follows has to hold.
        pause(Duration::from_millis(500));
        let_open(&pid, "256");
        in_vain
    };
    let mut stream = TcpStream::connect(&address).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    stream
        .write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    top(runtime.path(), &[], |lines| !lines.is_empty());
}

#[test]
fn a_receiver_opens_as_many_files_as_the_system_lets_it() {
    let runtime = tempfile::tempdir().unwrap();
    let dir = runtime.path().join("inbox");
    let variable = format!("XDG_RUNTIME_DIR={}", runtime.path().display());
    let through = [
        "env",
        &variable,
        "sh",
        "-c",
        "ulimit -S -n 128; exec \"$@\"",
        "sh",
    ];
    let nothing = std::fs::File::open("/dev/null").unwrap();
    let words = ["recv", "--listen", "127.0.0.1:0", "--dir", dir.to_str().unwrap()];
    let _receiver = Running::start_through(&through, nothing.into(), &words);
    let seen = top(runtime.path(), &[], |lines| !lines.is_empty());
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", seen[0]["pid"])).unwrap();
    let limit = limits.lines().find(|line| line.starts_with("Max open files"));
    let limit: Vec<_> = limit.unwrap().split_whitespace().collect();
    assert_eq!(limit[3], limit[4], "{limits}");
}

#[test]
fn quiet_says_nothing_and_verbose_more() {
    let runtime = tempfile::tempdir().unwrap();
    let (_receiver, ticket) = recv(runtime.path(), &["--overwrite"]);
    let file = runtime.path().join("note");
    std::fs::write(&file, "hello").unwrap();
    let send = |options: &[&str]| {
        let words = ["send", file.to_str().unwrap(), &ticket];
        start(runtime.path(), &[&words[..], &FOR_EVER, options].concat()).end()
    };
    let quiet = send(&["--quiet"]);
    assert_eq!((quiet.code, quiet.stderr.as_str()), (Some(0), ""), "{quiet:?}");
    assert!(quiet.stdout.contains("SHA-256"), "results are said: {quiet:?}");
    std::fs::write(&file, "hello again").unwrap();
    let verbose = send(&["-v"]);
    assert_eq!(verbose.code, Some(0), "{verbose:?}");
    for word in ["restp::", "endpoint", "established", "over"] {
        assert!(verbose.stderr.contains(word), "{word} is not in {verbose:?}");
    }
    says(&send(&["-q", "--limit", "never"]), 2, &["never"]);
}

/// Who asks for a code is shown it, however quiet the rest is.
#[test]
fn a_code_for_cameras_is_a_result() {
    let folder = tempfile::tempdir().expect("one");
    let dir = folder.path().display().to_string();
    let mut receiver = Running::start(&["recv", "-q", "--qr", "--listen", "127.0.0.1:0", "--dir", &dir]);
    receiver.overhear("█");
}

#[test]
fn an_interface_without_an_address_has_one_way_out() {
    let file = tempfile::NamedTempFile::new().expect("one");
    let file = file.path().display().to_string();
    let ended = restp(&["send", "--bind", "no-such-link", &file, "127.0.0.1:9"]);
    says(&ended, 2, &["no-such-link has no address; name"]);
    assert_eq!(ended.stderr.matches("; ").count(), 1, "{ended:?}");
}
