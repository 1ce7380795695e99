//! The second visit: `send` shows the cookie of the first, and its file leaves beside the SYN.

#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is a failed test")]

use crate::common::{Receiver, Running, restp, write};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const OPPORTUNISTIC: [&str; 2] = ["--set", "connection=opportunistic"];

/// A receiver that takes it from who has nothing but its address.
const OPEN: [&str; 3] = ["--open", "--set", "connection=opportunistic"];

/// Sends a small file with the cache directory `cache`; what both ends say of it.
fn visit(cache: &Path, receiver: &mut Receiver, to: &[&str]) -> [Value; 2] {
    visit_and_listen(cache, receiver, to).0
}

/// The same, with what the sender mentions of what earlier visits left.
fn visit_and_listen(cache: &Path, receiver: &mut Receiver, to: &[&str]) -> ([Value; 2], Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "note.txt", b"not a segment long");
    let arguments = [&["send", "--json", file.to_str().unwrap()], to, &OPPORTUNISTIC].concat();
    let sent = Running::start_caching(cache, &arguments).end();
    assert_eq!(sent.code, Some(0), "{sent:?}");
    fs::remove_file(receiver.folder.path().join("note.txt")).unwrap();
    // News of paths may come before the result.
    let result = std::iter::repeat_with(|| receiver.running.json()).find(|line| line.get("event").is_none());
    let about = |line: &&str| line.contains("nothing needs to be done");
    let notes = sent.stderr.lines().filter(about).map(str::to_owned).collect();
    ([sent.json(), result.expect("lines without end")], notes)
}

/// One sentence, with all of `words`.
fn mentions(notes: &[String], words: &[&str]) {
    assert_eq!(notes.len(), 1, "{notes:?}");
    for word in words {
        assert!(notes[0].contains(word), "{word:?} in {notes:?}");
    }
}

fn early(results: &[Value; 2]) -> [u64; 2] {
    results
        .each_ref()
        .map(|result| result["early_packets"].as_u64().unwrap())
}

#[test]
fn the_second_visit_adds_no_round_trip() {
    let mut receiver = Receiver::start(&OPEN);
    let (cache, to) = (tempfile::tempdir().unwrap(), receiver.address.clone());
    assert_eq!(early(&visit(cache.path(), &mut receiver, &[&to])), [0, 0]);
    let (second, notes) = visit_and_listen(cache.path(), &mut receiver, &[&to]);
    assert!(early(&second).iter().all(|packets| *packets > 0), "{second:?}");
    assert!(notes.is_empty(), "{notes:?}");
    // Nobody answers at the other address, which costs nothing.
    let third = visit(cache.path(), &mut receiver, &["127.0.0.1:9", &to]);
    assert!(early(&third).iter().all(|packets| *packets > 0), "{third:?}");
}

#[test]
fn a_cookie_that_serves_no_more_costs_a_round_trip_only() {
    let mut receiver = Receiver::start(&OPEN);
    let (cache, to) = (tempfile::tempdir().unwrap(), receiver.address.clone());
    let path = cache.path().join("restp").join("cookies");
    visit(cache.path(), &mut receiver, &[&to]);
    let honest = fs::read_to_string(&path).unwrap();
    // Of another host, and damaged.
    let words: Vec<_> = honest.split(' ').collect();
    let forged = format!("{} {} 0102030405060708 {}rubbish\n", words[0], words[1], words[3]);
    fs::write(&path, forged).unwrap();
    let (results, notes) = visit_and_listen(cache.path(), &mut receiver, &[&to]);
    assert_eq!(early(&results), [0, 0]);
    mentions(&notes[..1], &["line 2", "damaged and ignored"]);
    mentions(&notes[1..], &["was not taken", "another run of the receiver"]);
    assert_eq!(
        fs::read_to_string(&path).unwrap().split(' ').nth(2),
        Some(words[2])
    );
}

#[test]
fn the_file_goes_elsewhere_while_the_known_address_is_silent() {
    let mut receiver = Receiver::start(&OPEN);
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
    let mut receiver = Receiver::start(&["--open"]);
    let (cache, to) = (tempfile::tempdir().unwrap(), receiver.address.clone());
    for _ in 0..2 {
        let (results, notes) = visit_and_listen(cache.path(), &mut receiver, &[&to]);
        assert_eq!(early(&results), [0, 0]);
        assert!(notes.is_empty(), "{notes:?}");
    }
}

/// Starts a receiver at `address` with the key in `key`.
fn receive_at(address: &str, key: &str) -> Receiver {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().to_str().unwrap();
    let fixed = ["recv", "--json", "--listen", address, "--dir", dir, "--key", key];
    let mut running = Running::start(&[&fixed[..], &OPEN].concat());
    let invitation = running.json();
    Receiver {
        ticket: invitation["ticket"].as_str().unwrap().into(),
        address: invitation["addresses"][0].as_str().unwrap().into(),
        running,
        folder,
    }
}

/// The words of the one line that begins with "token".
fn pass_of(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap();
    let mut tokens = text.lines().filter(|line| line.starts_with("token "));
    let words = tokens.next().unwrap().split(' ').map(str::to_owned).collect();
    assert_eq!(tokens.next(), None);
    words
}

#[test]
fn what_a_receiver_gave_before_it_was_started_again_costs_a_round_trip_only() {
    let keys = tempfile::tempdir().unwrap();
    let key = keys.path().join("own.key").to_str().unwrap().to_owned();
    assert_eq!(restp(&["keygen", &key]).code, Some(0));
    let cache = tempfile::tempdir().unwrap();
    let path = cache.path().join("restp").join("cookies");
    let mut receiver = receive_at("127.0.0.1:0", &key);
    let (address, ticket) = (receiver.address.clone(), receiver.ticket.clone());
    visit(cache.path(), &mut receiver, &[&ticket]);
    let before = pass_of(&path);
    drop(receiver);
    // Cookie, token, epoch and resumption ticket are of a receiver that is no more.
    let mut receiver = receive_at(&address, &key);
    let (results, notes) = visit_and_listen(cache.path(), &mut receiver, &[&ticket]);
    assert_eq!(early(&results), [0, 0]);
    mentions(
        &notes,
        &[
            &address,
            "was not taken",
            "another run of the receiver",
            "one round trip",
            "a new one is kept",
        ],
    );
    let after = pass_of(&path);
    assert_eq!(before[1], after[1], "the same receiver");
    // The epoch, the ticket and its secret are new; nothing has proved an address.
    for place in [2, 5, 6] {
        assert_ne!(before[place], after[place]);
    }
    assert_eq!([&before[3], &after[3]], [&"0".repeat(32); 2]);
    let third = visit(cache.path(), &mut receiver, &[&ticket]);
    assert!(early(&third).iter().all(|packets| *packets > 0), "{third:?}");
}

#[test]
fn a_damaged_pass_or_an_expired_cookie_costs_a_round_trip_only() {
    let mut receiver = Receiver::start(&OPEN);
    let (cache, to) = (tempfile::tempdir().unwrap(), receiver.ticket.clone());
    let path = cache.path().join("restp").join("cookies");
    visit(cache.path(), &mut receiver, &[&to]);
    // Epoch, token, own key, ticket, secret.
    for place in 2..7 {
        let text = fs::read_to_string(&path).unwrap();
        let word = pass_of(&path)[place].clone();
        let other = if word.starts_with('7') { "a" } else { "7" };
        for damaged in [format!("{other}{}", &word[1..]), word[2..].to_owned()] {
            let cut = damaged.len() < word.len();
            fs::write(&path, text.replace(&word, &damaged)).unwrap();
            let (_, notes) = visit_and_listen(cache.path(), &mut receiver, &[&to]);
            match place {
                _ if cut => mentions(&notes, &["line 2", "damaged and ignored", "one round trip"]),
                // A token is asked for by a receiver under attack only, and a ticket of another key of ours is not shown.
                3 | 4 => assert!(notes.is_empty(), "{notes:?}"),
                _ => mentions(
                    &notes,
                    &["was not taken", "its line is damaged", "one round trip"],
                ),
            }
        }
    }
    let expired: String = (fs::read_to_string(&path).unwrap().lines())
        .map(|line| match line.rsplit_once(' ') {
            Some((cookie, _)) if !line.starts_with("token ") => format!("{cookie} 1000000000\n"),
            _ => format!("{line}\n"),
        })
        .collect();
    fs::write(&path, expired).unwrap();
    let (results, notes) = visit_and_listen(cache.path(), &mut receiver, &[&to]);
    assert_eq!(early(&results), [0, 0]);
    mentions(&notes, &["was not taken: it has expired", "a new one is kept"]);
    assert!(
        early(&visit(cache.path(), &mut receiver, &[&to]))
            .iter()
            .all(|packets| *packets > 0)
    );
}

#[test]
fn what_speaks_for_its_owner_is_kept_for_its_owner_and_never_shown() {
    let mut receiver = Receiver::start(&OPEN);
    let (cache, to) = (tempfile::tempdir().unwrap(), receiver.ticket.clone());
    let path = cache.path().join("restp").join("cookies");
    visit(cache.path(), &mut receiver, &[&to]);
    let shown = pass_of(&path)[3..].to_vec();
    assert_eq!(
        shown.iter().map(String::len).collect::<Vec<_>>(),
        [32, 52, 120, 64]
    );
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "note.txt", b"again");
    let arguments = [&["send", file.to_str().unwrap(), &to], &OPPORTUNISTIC[..]].concat();
    let sent = Running::start_caching(cache.path(), &arguments).end();
    assert_eq!(sent.code, Some(0), "{sent:?}");
    let kept = pass_of(&path);
    for secret in [&shown[0], &shown[2], &shown[3], &kept[3], &kept[5], &kept[6]] {
        assert!(!sent.stdout.contains(secret) && !sent.stderr.contains(secret));
    }
}

#[test]
fn a_clock_set_back_a_year_is_mentioned_once_and_costs_nothing() {
    let mut receiver = Receiver::start(&OPEN);
    let (cache, to) = (tempfile::tempdir().unwrap(), receiver.ticket.clone());
    let path = cache.path().join("restp").join("cookies");
    visit(cache.path(), &mut receiver, &[&to]);
    // What the clock of now calls a year from now.
    let later = |line: &str| match line.rsplit_once(' ') {
        Some((before, until)) if !line.starts_with("token") => {
            format!("{before} {}\n", until.parse::<u64>().unwrap() + 365 * 24 * 3600)
        }
        _ => format!("{line}\n"),
    };
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.lines().map(later).collect::<String>()).unwrap();
    let (results, notes) = visit_and_listen(cache.path(), &mut receiver, &[&to]);
    mentions(
        &notes,
        &[
            "line 1",
            "in the future",
            "clock was set back",
            "for a day at most",
        ],
    );
    assert!(early(&results).iter().all(|packets| *packets > 0), "{results:?}");
    let (_, notes) = visit_and_listen(cache.path(), &mut receiver, &[&to]);
    assert!(notes.is_empty(), "the file holds times of now: {notes:?}");
}

#[test]
fn visits_at_the_same_time_keep_what_every_receiver_gave() {
    let cache = tempfile::tempdir().unwrap();
    let receivers: Vec<_> = (0..4).map(|_| Receiver::start(&OPEN)).collect();
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "note.txt", b"to all of them");
    let send = |receiver: &Receiver| {
        let arguments = [
            &["send", file.to_str().unwrap(), &receiver.ticket],
            &OPPORTUNISTIC[..],
        ]
        .concat();
        Running::start_caching(cache.path(), &arguments)
    };
    let runs: Vec<_> = receivers.iter().map(send).collect();
    for run in runs {
        let ended = run.end();
        assert_eq!(ended.code, Some(0), "{ended:?}");
    }
    let text = fs::read_to_string(cache.path().join("restp").join("cookies")).unwrap();
    for receiver in &receivers {
        assert!(text.contains(&format!("{} ", receiver.address)), "{text}");
    }
}
