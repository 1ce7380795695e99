//! Keys on the command line: transfers are sealed unless both sides say otherwise, and what goes wrong with a key is said
//! in one sentence that names the way out.

#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is a failed test")]

use crate::common::{Ended, FOR_EVER, Receiver, Running, restp, says, write};
use nix::sys::signal::Signal;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// What `receiver` says on standard error until it has been told to end.
fn overheard(receiver: Receiver) -> String {
    receiver.running.signal(Signal::SIGINT);
    receiver.running.end().stderr
}

fn file() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), "note.txt", b"between us");
    let name = path.to_str().unwrap().to_owned();
    (folder, name)
}

/// Sends with keys and known hosts in `data`.
fn send(data: &Path, arguments: &[&str]) -> Ended {
    let (_folder, file) = file();
    Running::start_keeping(data, &[&["send", &file], &FOR_EVER[..], arguments].concat()).end()
}

/// The same to somebody who will not answer.
fn send_in_vain(data: &Path, arguments: &[&str]) -> Ended {
    let (_folder, file) = file();
    Running::start_keeping(data, &[&["send", &file, "--timeout", "1 s"], arguments].concat()).end()
}

fn keygen(folder: &Path, name: &str) -> (String, String) {
    let path = folder.join(name).to_str().unwrap().to_owned();
    let made = restp(&["keygen", "--json", &path]);
    assert_eq!(made.code, Some(0), "{made:?}");
    (path, made.json()["key"].as_str().unwrap().to_owned())
}

#[test]
fn a_key_is_made_once_shown_and_kept_for_its_owner() {
    let folder = tempfile::tempdir().unwrap();
    let (path, key) = keygen(folder.path(), "own.key");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let shown = restp(&["keygen", "--show", &path]);
    assert_eq!(shown.stdout.trim(), format!("key: {key}"));
    says(&restp(&["keygen", &path]), 2, &["exists", "--show"]);
}

#[test]
fn a_key_that_others_can_read_or_that_cannot_be_read_is_refused() {
    let (folder, file) = file();
    let (path, _) = keygen(folder.path(), "own.key");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let with = |path: &str| restp(&["send", &file, "127.0.0.1:9", "--key", path]);
    says(&with(&path), 2, &["others can read", "chmod 600", "644"]);
    says(&with("/nowhere/own.key"), 2, &["cannot be read", "keygen"]);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(&path, "restp-secret1-short").unwrap();
    says(&with(&path), 2, &["damaged, or was cut", "keygen"]);
}

#[test]
fn a_ticket_of_another_receiver_is_noticed() {
    let keys = tempfile::tempdir().unwrap();
    let (first, _) = keygen(keys.path(), "first.key");
    let (second, other) = keygen(keys.path(), "second.key");
    let there = Receiver::start(&["--key", &first]);
    let here = Receiver::start(&["--key", &second]);
    let data = tempfile::tempdir().unwrap();
    // The first one's ticket, but the second one answers.
    let sent = send(data.path(), &[&there.ticket, "--address", &here.address]);
    says(
        &sent,
        1,
        &["not the receiver of the ticket", &other, "use the ticket"],
    );
    assert!(here.names().is_empty() && there.names().is_empty());
}

#[test]
fn the_first_meeting_is_remembered_and_a_changed_key_is_loud() {
    let keys = tempfile::tempdir().unwrap();
    let (first, key) = keygen(keys.path(), "first.key");
    let (second, _) = keygen(keys.path(), "second.key");
    let data = tempfile::tempdir().unwrap();
    let receiver = Receiver::start(&["--open", "--key", &first]);
    let address = receiver.address.clone();
    let met = send(data.path(), &[&address]);
    assert_eq!(met.code, Some(0), "{met:?}");
    assert!(
        met.stderr.contains("first time") && met.stderr.contains(&key),
        "{met:?}"
    );
    drop(receiver);
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().to_str().unwrap();
    let mut changed = Running::start(&[
        "recv", "--json", "--listen", &address, "--dir", dir, "--key", &second,
    ]);
    changed.json();
    let sent = send(data.path(), &[&address]);
    says(&sent, 1, &["HAS CHANGED", &key, "known_peers"]);
    assert_eq!(fs::read_dir(dir).unwrap().count(), 0);
    // A damaged memory is not the same as none.
    fs::write(data.path().join("restp/known_peers"), "rubbish\n").unwrap();
    says(
        &send(data.path(), &[&address]),
        2,
        &["line 1", "correct or remove"],
    );
}

#[test]
fn only_those_allowed_may_send() {
    let keys = tempfile::tempdir().unwrap();
    let (friend, friends) = keygen(keys.path(), "friend.key");
    let (stranger, strangers) = keygen(keys.path(), "stranger.key");
    let receiver = Receiver::start(&["--allow", &friends]);
    let data = tempfile::tempdir().unwrap();
    let refused = send(data.path(), &[&receiver.ticket, "--key", &stranger]);
    says(
        &refused,
        1,
        &["does not take files from this key", "--allow", &strangers],
    );
    let taken = send(data.path(), &[&receiver.ticket, "--key", &friend]);
    assert_eq!(taken.code, Some(0), "{taken:?}");
    says(
        &restp(&["recv", "--allow", "nobody"]),
        2,
        &["--allow nobody", "neither a key nor a file"],
    );
}

#[test]
fn plain_is_said_on_both_sides_and_warned_of() {
    let receiver = Receiver::start(&["--plain"]);
    let data = tempfile::tempdir().unwrap();
    says(
        &send(data.path(), &[&receiver.ticket]),
        2,
        &["--plain", "neither encrypts"],
    );
    let sealed = Receiver::start(&[]);
    says(
        &send(data.path(), &[&sealed.ticket, "--plain"]),
        2,
        &["leave --plain out"],
    );
    // With bare addresses nobody can know; there is no way down either.
    says(&send_in_vain(data.path(), &[&receiver.address]), 1, &["--plain"]);
    says(
        &send_in_vain(data.path(), &[&sealed.address, "--plain"]),
        1,
        &["--plain"],
    );
    let sent = send(data.path(), &[&receiver.ticket, "--plain"]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    assert!(sent.stderr.contains("warning: --plain"), "{sent:?}");
}

#[test]
fn a_cut_ticket_is_noticed() {
    let receiver = Receiver::start(&[]);
    let data = tempfile::tempdir().unwrap();
    let cut = &receiver.ticket[..receiver.ticket.len() - 4];
    says(
        &send(data.path(), &[cut]),
        2,
        &["the ticket is damaged", "copy the whole word"],
    );
}

#[test]
fn a_receiver_says_once_that_senders_are_on_the_other_side_of_plain() {
    let data = tempfile::tempdir().unwrap();
    let times = |said: &str, sentence: &str| said.matches(sentence).count();
    let (plain, sealed) = (
        "datagrams came that are not plain",
        "datagrams came that are not encrypted",
    );
    let mut receiver = Receiver::start(&[]);
    for _ in 0..2 {
        says(
            &send_in_vain(data.path(), &[&receiver.address, "--plain"]),
            1,
            &["nobody answered"],
        );
    }
    let said = receiver.running.overhear(sealed) + &overheard(receiver);
    assert_eq!((times(&said, sealed), times(&said, plain)), (1, 0), "{said}");
    assert!(said.contains("leave --plain out there"), "{said}");
    let mut receiver = Receiver::start(&["--plain"]);
    says(
        &send_in_vain(data.path(), &[&receiver.address]),
        1,
        &["nobody answered"],
    );
    let said = receiver.running.overhear(plain) + &overheard(receiver);
    assert_eq!((times(&said, sealed), times(&said, plain)), (0, 1), "{said}");
    assert!(said.contains("say --plain there as well"), "{said}");
    // Those who agree hear nothing of it.
    for mode in [&["--plain"][..], &[]] {
        let receiver = Receiver::start(mode);
        let sent = send(data.path(), &[&[&*receiver.ticket], mode].concat());
        assert_eq!(sent.code, Some(0), "{sent:?}");
        let said = overheard(receiver);
        assert_eq!(times(&said, "datagrams came"), 0, "{said}");
    }
}

#[test]
fn a_list_without_a_key_warns_that_nobody_is_let_in() {
    let (folder, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (_, friend) = keygen(folder.path(), "friend.key");
    for (text, nobody) in [
        ("", true),
        ("# nobody yet\n\n", true),
        (&*format!("{friend}\n"), false),
    ] {
        let list = write(folder.path(), "clients", text.as_bytes());
        let receiver = Receiver::start(&["--allow", list.to_str().unwrap()]);
        if nobody {
            let refused = send(data.path(), &[&receiver.ticket]);
            says(&refused, 1, &["does not take files from this key"]);
        }
        let said = overheard(receiver);
        assert_eq!(said.contains("nobody will be let in"), nobody, "{said}");
    }
}
