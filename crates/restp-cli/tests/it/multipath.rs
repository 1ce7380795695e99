//! Transfers over several paths between processes: lines that die, ends that vanish, what both sides print.

#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is a failed test")]

use crate::common::{self, Ended, Running, content, emulate, restp, write};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::fs;
use std::time::Duration;

/// Slow enough that a transfer of [`LONG`] bytes lives through what a test does to it.
const LINE: &str = "rate = \"8 Mbit/s\"\ndelay = \"5 ms\"\nqueue = { drop_tail = \"100 packets\" }\n";
const LONG: usize = 6 << 20;
const ENDLESS: usize = 100 << 20;

/// Until the other side must know of an interrupt.
const SOON: Duration = Duration::from_secs(5);

/// A transfer in the middle, over two emulated lines.
struct Transfer {
    receiver: Running,
    sender: Running,
    inbox: tempfile::TempDir,
    file: Vec<u8>,
    _lines: [Running; 2],
    _folder: tempfile::TempDir,
}

/// Begins one between two addresses on each side. `keys` are those of the first line besides [`LINE`].
fn begin(keys: &str, bytes: usize, options: &[&str]) -> Transfer {
    let inbox = tempfile::tempdir().unwrap();
    let dir = inbox.path().to_str().unwrap();
    let listen = ["--listen", "127.0.0.1:0", "--listen", "127.0.0.2:0"];
    let fixed = ["recv", "--json", "--once", "--dir", dir];
    let mut receiver = Running::start(&[&fixed[..], &listen, options].concat());
    let invitation = receiver.json();
    let at = |number: usize| invitation["addresses"][number].as_str().unwrap();
    let (first, to_first) = emulate(at(0), &format!("{LINE}{keys}"));
    let (second, to_second) = emulate(at(1), LINE);
    let folder = tempfile::tempdir().unwrap();
    let file = content(bytes);
    let place = write(folder.path(), "a", &file);
    let fixed = [
        "send",
        "--json",
        place.to_str().unwrap(),
        invitation["ticket"].as_str().unwrap(),
    ];
    let paths = ["--address", &to_first, "--address", &to_second];
    let mut sender = Running::start(&[&fixed[..], &paths, options].concat());
    // On a busy machine an answer may be overdue before the other path is up.
    let mut up = std::collections::BTreeSet::new();
    while up.len() < 2 {
        let news = sender.json();
        assert_eq!(news["event"], "path", "{news}");
        if news["state"] == "up" {
            up.insert(news["remote"].as_str().unwrap().to_owned());
        }
    }
    Transfer {
        receiver,
        sender,
        inbox,
        file,
        _lines: [first, second],
        _folder: folder,
    }
}

/// Every line of an end, and the last by itself.
fn lines(ended: &Ended) -> (Vec<Value>, Value) {
    let mut lines: Vec<Value> = ended
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let last = lines.pop().unwrap_or_else(|| panic!("{ended:?}"));
    (lines, last)
}

#[test]
fn one_of_two_lines_dies_and_the_file_arrives() {
    let transfer = begin("outage = [\"1500 ms..3600 s\"]\n", LONG, &[]);
    let (sent, received) = (transfer.sender.end(), transfer.receiver.end());
    assert_eq!(
        (sent.code, received.code),
        (Some(0), Some(0)),
        "{sent:?} {received:?}"
    );
    assert!(fs::read(transfer.inbox.path().join("a")).unwrap() == transfer.file);
    let (news, result) = lines(&sent);
    let down: Vec<_> = news.iter().filter(|line| line["state"] == "down").collect();
    assert!(
        !down.is_empty() && down.iter().all(|line| line["event"] == "path"),
        "{sent:?}"
    );
    let dead = &down[0]["remote"];
    let paths = result["paths"].as_array().unwrap();
    assert_eq!(paths.len(), 2, "{result}");
    for path in paths {
        assert!(
            path["bytes_sent"].as_u64().unwrap() > 100_000 && path["srtt_ms"].is_f64(),
            "{result}"
        );
        assert_eq!(
            path["down_events"].as_u64().unwrap() > 0,
            path["remote"] == *dead,
            "{result}"
        );
    }
    assert_eq!(result["composition"]["paths"], "spreading");
    assert!(result["longest_stall_ms"].is_null(), "{result}");
    let (_, received) = lines(&received);
    assert!(received["longest_stall_ms"].as_f64().unwrap() > 0.0, "{received}");
    assert_eq!(
        (received["paths"].as_array().unwrap().len(), &received["sha256"]),
        (2, &result["sha256"])
    );
}

#[test]
fn an_interrupt_ends_every_path_and_both_sides_know() {
    for sender_is_interrupted in [true, false] {
        let transfer = begin("", ENDLESS, &[]);
        let hit = if sender_is_interrupted {
            &transfer.sender
        } else {
            &transfer.receiver
        };
        hit.signal(Signal::SIGINT);
        let (sent, received) = (
            transfer.sender.end_within(SOON),
            transfer.receiver.end_within(SOON),
        );
        assert_eq!(
            (sent.code, received.code),
            (Some(1), Some(1)),
            "{sent:?} {received:?}"
        );
        let told = if sender_is_interrupted { &received } else { &sent };
        assert!(told.stderr.contains("broke"), "{told:?}");
        assert!(common::names(transfer.inbox.path()).is_empty());
    }
}

#[test]
fn a_vanished_receiver_is_given_up_on_every_path() {
    let transfer = begin("", ENDLESS, &["--timeout", "2 s"]);
    transfer.receiver.signal(Signal::SIGKILL);
    let sent = transfer.sender.end_within(Duration::from_secs(20));
    assert_eq!(sent.code, Some(1), "{sent:?}");
    assert!(sent.stderr.contains("has not answered for"), "{sent:?}");
}

#[test]
fn a_vanished_sender_is_given_up_on_every_path_and_leaves_nothing() {
    let transfer = begin("", ENDLESS, &["--timeout", "2 s"]);
    transfer.sender.signal(Signal::SIGKILL);
    let received = transfer.receiver.end_within(Duration::from_secs(20));
    assert_eq!(received.code, Some(1), "{received:?}");
    assert!(common::names(transfer.inbox.path()).is_empty());
}

#[test]
fn paths_are_every_local_address_towards_every_remote_one() {
    let inbox = tempfile::tempdir().unwrap();
    let dir = inbox.path().to_str().unwrap();
    let listen = ["--listen", "127.0.0.1:0", "--listen", "127.0.0.2:0"];
    let mut receiver = Running::start(&[&["recv", "--json", "--once", "--dir", dir][..], &listen].concat());
    let ticket = receiver.json()["ticket"].as_str().unwrap().to_owned();
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "a", &content(40 << 20));
    let bind = ["--bind", "127.0.0.3", "--bind", "127.0.0.4"];
    let sent = restp(&[&["send", "--json", file.to_str().unwrap(), &ticket][..], &bind].concat());
    assert_eq!(sent.code, Some(0), "{sent:?}");
    let (_, result) = lines(&sent);
    let paths = result["paths"].as_array().unwrap();
    assert_eq!(paths.len(), 4, "{result}");
    for path in paths {
        let local = path["local"].as_str().unwrap();
        assert!(
            local.starts_with("127.0.0.3:") || local.starts_with("127.0.0.4:"),
            "{path}"
        );
    }
}

#[test]
fn a_dead_path_does_not_keep_the_others_from_being_set_up() {
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let dead = silent.local_addr().unwrap().to_string();
    let receiver = common::Receiver::start(&["--once"]);
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "a", &content(100_000));
    let addresses = ["--address", &dead, "--address", &receiver.address];
    let sent = restp(
        &[
            &["send", "--json", file.to_str().unwrap(), &receiver.ticket][..],
            &addresses,
        ]
        .concat(),
    );
    assert_eq!(sent.code, Some(0), "{sent:?}");
    let (_, result) = lines(&sent);
    // Its head start is 25 ms; the first repeat of its SYN would come after a second.
    assert!(result["handshake_ms"].as_f64().unwrap() < 900.0, "{result}");
}

#[test]
fn what_cannot_be_bound_is_named_before_anything_is_sent() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "a", b"a");
    for (bind, why) in [
        ("nowhere0", "nowhere0"),
        ("192.0.2.1", "192.0.2.1"),
        ("a/b", "neither an address nor"),
    ] {
        let sent = restp(&["send", file.to_str().unwrap(), "127.0.0.1:1", "--bind", bind]);
        assert_eq!(sent.code, Some(2), "{sent:?}");
        assert!(sent.stderr.contains(why), "{sent:?}");
    }
}

#[test]
fn a_profile_of_one_path_says_so_and_takes_the_first_that_works() {
    let receiver = common::Receiver::start(&["--listen", "127.0.0.2:0"]);
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "a", b"a");
    let sent = restp(&[
        "send",
        "--json",
        file.to_str().unwrap(),
        &receiver.ticket,
        "--profile",
        "3wh-arq",
    ]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    assert!(sent.stderr.contains("one path"), "{sent:?}");
    assert_eq!(sent.json()["paths"].as_array().unwrap().len(), 1);
}
