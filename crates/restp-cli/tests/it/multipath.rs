//! Transfers over several paths between processes: lines that die, ends that vanish, what both sides print.

#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is a failed test")]

use crate::common::{self, Ended, FOR_EVER, Line, Running, content, dies_after, emulate, restp, write};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;

/// A transfer of [`ENDLESS`] bytes over two of these is in the middle for more than a minute, and no queue is too short for a
/// goodbye.
const SLOW: &str = "rate = \"2 Mbit/s\"\nqueue = { drop_tail = \"4000 packets\" }\n";
const ENDLESS: usize = 40 << 20;
const LINE: &str = "delay = \"5 ms\"\n";

/// A transfer in the middle, over two emulated lines.
struct Transfer {
    receiver: Running,
    sender: Running,
    inbox: tempfile::TempDir,
    file: Vec<u8>,
    /// Where the sender finds the lines.
    remotes: [String; 2],
    _lines: [Line; 2],
    _folder: tempfile::TempDir,
}

/// Starts one between two addresses on each side, with `options` at both ends. `lines` are keys of the two besides [`LINE`].
fn start(lines: [&str; 2], bytes: usize, options: &[&str], bind: &[&str]) -> Transfer {
    let inbox = tempfile::tempdir().unwrap();
    let dir = inbox.path().to_str().unwrap();
    let listen = ["--listen", "127.0.0.1:0", "--listen", "127.0.0.2:0"];
    let fixed = ["recv", "--json", "--once", "--dir", dir];
    let mut receiver = Running::start(&[&fixed[..], &listen, options].concat());
    let invitation = receiver.json();
    let line = |number: usize| {
        let to = invitation["addresses"][number].as_str().unwrap();
        emulate(to, &format!("{LINE}{}", lines[number]))
    };
    let lines = [line(0), line(1)];
    let remotes = lines.each_ref().map(|line| line.address.clone());
    let folder = tempfile::tempdir().unwrap();
    let file = content(bytes);
    let place = write(folder.path(), "a", &file);
    let ticket = invitation["ticket"].as_str().unwrap();
    let fixed = ["send", "--json", place.to_str().unwrap(), ticket];
    let paths = ["--address", &remotes[0], "--address", &remotes[1]];
    let sender = Running::start(&[&fixed[..], &paths, bind, options].concat());
    Transfer {
        receiver,
        sender,
        inbox,
        file,
        remotes,
        _lines: lines,
        _folder: folder,
    }
}

impl Transfer {
    /// Waits until `count` pairs of a local and a remote address are up. On a busy machine an answer may be overdue before
    /// that.
    fn await_paths(&mut self, count: usize) -> BTreeSet<[String; 2]> {
        let mut up = BTreeSet::new();
        while up.len() < count {
            let news = self.sender.json();
            assert_eq!(news["event"], "path", "{news}");
            if news["state"] == "up" {
                up.insert(["local", "remote"].map(|end| news[end].as_str().unwrap().to_owned()));
            }
        }
        up
    }
}

/// One that uses both lines.
fn begin(lines: [&str; 2], bytes: usize, options: &[&str]) -> Transfer {
    let mut transfer = start(lines, bytes, options, &[]);
    transfer.await_paths(2);
    transfer
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

/// What all paths of a result to `remote` counted: one that was given up is dialled again, which makes another.
fn total(result: &Value, remote: &str, counter: &str) -> u64 {
    let paths = result["paths"].as_array().unwrap().iter();
    let of_remote = paths.filter(|path| path["remote"] == remote);
    of_remote.map(|path| path[counter].as_u64().unwrap()).sum()
}

#[test]
fn one_of_two_lines_dies_and_the_file_arrives() {
    a_line_dies(&[], "per-path");
}

#[test]
fn one_of_two_lines_that_share_the_numbers_dies_and_the_file_arrives() {
    a_line_dies(&["--set", "numbering=shared"], "shared");
}

/// `options` are the sender's: whoever opens a connection chooses.
fn a_line_dies(options: &[&str], numbering: &str) {
    // The other carries the rest for longer than it takes to notice.
    let rate = "rate = \"8 Mbit/s\"\nqueue = { drop_tail = \"100 packets\" }\n";
    let dying = format!("{rate}{}", dies_after(200));
    let mut transfer = start([&dying, rate], 6 << 20, &FOR_EVER, options);
    transfer.await_paths(2);
    let (sent, received) = (transfer.sender.end(), transfer.receiver.end());
    assert_eq!(
        (sent.code, received.code),
        (Some(0), Some(0)),
        "{sent:?} {received:?}"
    );
    assert!(fs::read(transfer.inbox.path().join("a")).unwrap() == transfer.file);
    let (news, result) = lines(&sent);
    let [dead, alive] = &transfer.remotes;
    let is_down =
        |line: &Value| line["event"] == "path" && line["state"] == "down" && line["remote"] == **dead;
    assert!(news.iter().any(is_down), "{sent:?}");
    assert!(total(&result, dead, "down_events") > 0, "{result}");
    for remote in [dead, alive] {
        assert!(total(&result, remote, "bytes_sent") > 100_000, "{result}");
    }
    assert_eq!(result["composition"]["paths"], "spreading");
    assert_eq!(result["composition"]["numbering"], numbering);
    assert_eq!(result["composition"]["congestion"], "adaptive", "on each of them");
    assert!(result["longest_stall_ms"].is_null(), "{result}");
    let (_, received) = lines(&received);
    assert!(received["longest_stall_ms"].as_f64().unwrap() > 0.0, "{received}");
    assert_eq!(received["sha256"], result["sha256"]);
}

#[test]
fn an_interrupt_ends_every_path_and_both_sides_know() {
    for sender_is_interrupted in [true, false] {
        let transfer = begin([SLOW; 2], ENDLESS, &FOR_EVER);
        let hit = if sender_is_interrupted {
            &transfer.sender
        } else {
            &transfer.receiver
        };
        hit.signal(Signal::SIGINT);
        let (sent, received) = (transfer.sender.end(), transfer.receiver.end());
        assert_eq!(
            (sent.code, received.code),
            (Some(1), Some(1)),
            "{sent:?} {received:?}"
        );
        let told = if sender_is_interrupted { &received } else { &sent };
        assert!(told.stderr.contains("broke"), "{told:?}");
        assert!(common::whole(transfer.inbox.path()).is_empty());
    }
}

#[test]
fn a_vanished_receiver_is_given_up_on_every_path() {
    let transfer = begin([SLOW; 2], ENDLESS, &["--timeout", "2 s"]);
    transfer.receiver.signal(Signal::SIGKILL);
    let sent = transfer.sender.end();
    assert_eq!(sent.code, Some(1), "{sent:?}");
    assert!(sent.stderr.contains("has not answered for"), "{sent:?}");
}

#[test]
fn a_vanished_sender_is_given_up_on_every_path_and_leaves_no_file() {
    let transfer = begin([SLOW; 2], ENDLESS, &["--timeout", "2 s"]);
    transfer.sender.signal(Signal::SIGKILL);
    let received = transfer.receiver.end();
    assert_eq!(received.code, Some(1), "{received:?}");
    assert!(common::whole(transfer.inbox.path()).is_empty());
}

#[test]
fn paths_are_every_local_address_towards_every_remote_one() {
    let bind = ["--bind", "127.0.0.3", "--bind", "127.0.0.4"];
    let mut transfer = start([SLOW; 2], ENDLESS, &FOR_EVER, &bind);
    let up = transfer.await_paths(4);
    let host = |address: &String| address.rsplit_once(':').unwrap().0.to_owned();
    let found: BTreeSet<_> = up.iter().map(|[local, remote]| (host(local), remote)).collect();
    let remotes = transfer.remotes.iter();
    let pairs = remotes.flat_map(|remote| ["127.0.0.3", "127.0.0.4"].map(|local| (local.to_owned(), remote)));
    assert_eq!(found, pairs.collect());
}

#[test]
fn a_dead_path_does_not_keep_the_others_from_being_set_up() {
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let dead = silent.local_addr().unwrap().to_string();
    let receiver = common::Receiver::start(&["--once"]);
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "a", &content(100_000));
    let addresses = ["--address", &dead, "--address", &receiver.address];
    // The dead one's SYN is retransmitted after this time.
    let patient = ["--set", "handshake-rto=60 s"];
    let sent = restp(
        &[
            &["send", "--json", file.to_str().unwrap(), &receiver.ticket][..],
            &addresses,
            &patient,
            &FOR_EVER,
        ]
        .concat(),
    );
    assert_eq!(sent.code, Some(0), "{sent:?}");
    assert!(
        sent.json()["handshake_ms"].as_f64().unwrap() < 60_000.0,
        "{sent:?}"
    );
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
