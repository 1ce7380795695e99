//! The second visit: `send` shows the cookie of the first, and its file leaves beside the SYN.

#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is a failed test")]

mod common;

use common::{Receiver, Running, write};
use serde_json::Value;
use std::fs;
use std::path::Path;

const OPPORTUNISTIC: [&str; 2] = ["--set", "connection=opportunistic"];

/// Sends a small file with the cache directory `cache`; what both ends say of it.
fn visit(cache: &Path, receiver: &mut Receiver, to: &[&str]) -> [Value; 2] {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "note.txt", b"not a segment long");
    let arguments = [&["send", "--json", file.to_str().unwrap()], to, &OPPORTUNISTIC].concat();
    let sent = Running::start_caching(cache, &arguments).end();
    assert_eq!(sent.code, Some(0), "{sent:?}");
    fs::remove_file(receiver.folder.path().join("note.txt")).unwrap();
    // News of paths may come before the result.
    let result = std::iter::repeat_with(|| receiver.running.json()).find(|line| line.get("event").is_none());
    [sent.json(), result.expect("lines without end")]
}

fn early(results: &[Value; 2]) -> [u64; 2] {
    results
        .each_ref()
        .map(|result| result["early_packets"].as_u64().unwrap())
}

#[test]
fn the_second_visit_adds_no_round_trip() {
    let mut receiver = Receiver::start(&OPPORTUNISTIC);
    let (cache, to) = (tempfile::tempdir().unwrap(), receiver.address.clone());
    assert_eq!(early(&visit(cache.path(), &mut receiver, &[&to])), [0, 0]);
    let second = visit(cache.path(), &mut receiver, &[&to]);
    assert!(early(&second).iter().all(|packets| *packets > 0), "{second:?}");
    // Nobody answers at the other address, which costs nothing.
    let third = visit(cache.path(), &mut receiver, &["127.0.0.1:9", &to]);
    assert!(early(&third).iter().all(|packets| *packets > 0), "{third:?}");
}

#[test]
fn a_cookie_that_serves_no_more_costs_a_round_trip_only() {
    let mut receiver = Receiver::start(&OPPORTUNISTIC);
    let (cache, to) = (tempfile::tempdir().unwrap(), receiver.address.clone());
    let path = cache.path().join("restp").join("cookies");
    visit(cache.path(), &mut receiver, &[&to]);
    let honest = fs::read_to_string(&path).unwrap();
    // Of another host, and damaged.
    let words: Vec<_> = honest.split(' ').collect();
    let forged = format!("{} {} 0102030405060708 {}rubbish\n", words[0], words[1], words[3]);
    fs::write(&path, forged).unwrap();
    assert_eq!(early(&visit(cache.path(), &mut receiver, &[&to])), [0, 0]);
    assert_eq!(
        fs::read_to_string(&path).unwrap().split(' ').nth(2),
        Some(words[2])
    );
}

#[test]
fn the_file_goes_elsewhere_while_the_known_address_is_silent() {
    let mut receiver = Receiver::start(&OPPORTUNISTIC);
    let (cache, to) = (tempfile::tempdir().unwrap(), receiver.address.clone());
    visit(cache.path(), &mut receiver, &[&to]);
    // A socket that reads nothing and answers nothing.
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let path = cache.path().join("restp").join("cookies");
    let silent = socket.local_addr().unwrap().to_string();
    let moved = fs::read_to_string(&path).unwrap().replace(&to, &silent);
    fs::write(&path, moved).unwrap();
    assert_eq!(
        early(&visit(
            cache.path(),
            &mut receiver,
            &[&silent, &to, "--set", "paths=single", "--set", "scheduling=none"]
        )),
        [0, 0]
    );
}

#[test]
fn a_receiver_that_did_not_opt_in_takes_nothing_early() {
    let mut receiver = Receiver::start(&[]);
    let (cache, to) = (tempfile::tempdir().unwrap(), receiver.address.clone());
    for _ in 0..2 {
        assert_eq!(early(&visit(cache.path(), &mut receiver, &[&to])), [0, 0]);
    }
}
