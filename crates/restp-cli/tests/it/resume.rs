//! Transfers that go on: after either end was killed, and where things are there already.

#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is a failed test")]

use crate::common::{
    FOR_EVER, Receiver, Running, content, emulate, names, pause, restp, says, wait_until, whole, write,
};
use crate::folders::{listing, tree};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::time::Duration;

const PATH: &str = "rate = \"100 Mbit/s\"\ndelay = \"2 ms\"\n";
const BYTES: usize = 16 << 20;

/// Bytes of the one part in `folder`; 0 where there is none.
fn part_bytes(folder: &Path) -> u64 {
    let part = names(folder).into_iter().find(|name| name.ends_with(".part"));
    part.and_then(|part| fs::metadata(folder.join(part)).ok())
        .map_or(0, |found| found.len())
}

/// A receiver with a port and a key that it has again when it starts again.
fn receive(listen: &str, key: &str, dir: &Path) -> (Running, String, String) {
    let dir = dir.to_str().unwrap();
    let fixed = ["recv", "--json", "--listen", listen, "--dir", dir, "--key", key];
    let mut running = Running::start(&[&fixed, &FOR_EVER[..]].concat());
    let invitation = running.json();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    (
        running,
        text(&invitation["ticket"]),
        text(&invitation["addresses"][0]),
    )
}

/// Either end is killed in the middle, without a word; the same command sends less than a hundredth again.
#[test]
fn after_either_end_was_killed_the_same_command_goes_on() {
    let keys = tempfile::tempdir().unwrap();
    let key = keys.path().join("own.key").to_str().unwrap().to_owned();
    assert_eq!(restp(&["keygen", &key]).code, Some(0));
    for kills_receiver in [false, true] {
        let (folder, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (mut receiver, ticket, address) = receive("127.0.0.1:0", &key, target.path());
        let path = emulate(&address, PATH);
        let file = write(folder.path(), "a", &content(BYTES));
        let words = [
            "send",
            "--json",
            file.to_str().unwrap(),
            &ticket,
            "--address",
            &path.address,
        ];
        let command = [&words[..], &FOR_EVER[..]].concat();
        let sender = Running::start(&command);
        wait_until("it is in the middle", || {
            part_bytes(target.path()) > BYTES as u64 / 3
        });
        sender.signal(Signal::SIGKILL);
        sender.end();
        if kills_receiver {
            receiver.signal(Signal::SIGKILL);
            receiver.end();
            receiver = receive(&address, &key, target.path()).0;
        } else {
            // What was on its way still arrives.
            pause(Duration::from_millis(300));
        }
        let there = part_bytes(target.path());
        assert!(there < BYTES as u64 && whole(target.path()).is_empty());
        let sent = restp(&command);
        assert_eq!(sent.code, Some(0), "{sent:?}");
        let (sent, received) = (sent.json(), receiver.json());
        for result in [&sent, &received] {
            let again = there - result["resumed_bytes"].as_u64().unwrap();
            assert!(
                again * 100 < BYTES as u64,
                "{again} of {there} bytes again: {result}"
            );
            assert_eq!(
                (&result["bytes"], &result["skipped_files"]),
                (&BYTES.into(), &0.into())
            );
        }
        let rest = BYTES as u64 - there;
        let carried = sent["paths"][0]["bytes_sent"].as_u64().unwrap();
        assert!(
            carried < rest + rest / 10 + BYTES as u64 / 100,
            "{carried} for {rest}"
        );
        assert_eq!(names(target.path()), ["a"], "and no part is left");
        assert!(fs::read(target.path().join("a")).unwrap() == content(BYTES));
    }
}

#[test]
fn what_is_there_is_not_sent_again() {
    let folder = tempfile::tempdir().unwrap();
    let top = tree(folder.path());
    let receiver = Receiver::start(&[]);
    let send = |ticket: &str| restp(&["send", "--json", top.to_str().unwrap(), ticket]);
    assert_eq!(send(&receiver.ticket).code, Some(0));
    // One that is empty and one that leaves before the receiver has said what it has are not resumed, but skipped.
    let again = send(&receiver.ticket).json();
    assert_eq!((&again["files"], &again["skipped_files"]), (&4.into(), &4.into()));
    let bytes = again["bytes"].as_u64().unwrap();
    let sent = bytes - again["resumed_bytes"].as_u64().unwrap();
    assert!(sent <= 64 << 10, "{sent}");
    let arrived = receiver.folder.path().join("photos");
    assert_eq!(listing(&arrived), listing(&top));

    // Two bytes differ, in one chunk: that is an error, or all that is sent.
    let mut image = content(300_000);
    (image[280_000], image[280_001]) = (1, 2);
    write(&top, "a.jpg", &image);
    let refused = send(&receiver.ticket);
    says(
        &refused,
        1,
        &["refused", "\"photos/a.jpg\" already", "--overwrite"],
    );
    let before = content(300_000);
    assert!(
        fs::read(arrived.join("a.jpg")).unwrap() == before,
        "what is there stays as it is"
    );
    let Receiver { folder: target, .. } = receiver;
    let bold = Receiver::start_into(target, &["--overwrite"]);
    let changed = send(&bold.ticket).json();
    assert_eq!(changed["skipped_files"], 3, "{changed}");
    let sent = bytes - changed["resumed_bytes"].as_u64().unwrap();
    assert!(sent <= (64 << 10) + 300_000 - (256 << 10), "{sent}");
    assert_eq!(listing(&bold.folder.path().join("photos")), listing(&top));
}

/// The update of a file is cut off: what lies behind the cut is still that of the file before.
#[test]
fn an_update_that_was_cut_off_sends_only_what_differs() {
    let folder = tempfile::tempdir().unwrap();
    let receiver = Receiver::start(&["--overwrite"]);
    let file = write(folder.path(), "a", &content(BYTES));
    let send = || restp(&["send", "--json", file.to_str().unwrap(), &receiver.ticket]);
    assert_eq!(send().code, Some(0));
    let mut changed = content(BYTES);
    changed[..8 << 20].fill(7);
    write(folder.path(), "a", &changed);
    let path = emulate(&receiver.address, "rate = \"8 Mbit/s\"\n");
    let cut_off = Running::start(&[
        "send",
        file.to_str().unwrap(),
        &receiver.ticket,
        "--address",
        &path.address,
    ]);
    wait_until("it is in the middle", || {
        part_bytes(receiver.folder.path()) > 1 << 20
    });
    cut_off.signal(Signal::SIGKILL);
    cut_off.end();
    let there = part_bytes(receiver.folder.path());
    assert!(there < 8 << 20, "{there}");
    let sent = send();
    assert_eq!(sent.code, Some(0), "{sent:?}");
    let resumed = sent.json()["resumed_bytes"].as_u64().unwrap();
    assert!(resumed > (8 << 20) + (512 << 10), "{resumed} of what was there");
    assert!(fs::read(receiver.folder.path().join("a")).unwrap() == changed);
    assert_eq!(receiver.names(), ["a"]);
}

/// A folder that was cut off goes on with the file that was in the middle, and skips those before it.
#[test]
fn a_folder_goes_on_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let top = tree(folder.path());
    write(&top, "b.bin", &content(4 << 20));
    let receiver = Receiver::start(&FOR_EVER);
    let path = emulate(&receiver.address, "rate = \"40 Mbit/s\"\n");
    let words = [
        "send",
        "--json",
        top.to_str().unwrap(),
        &receiver.ticket,
        "--address",
        &path.address,
    ];
    let command = [&words[..], &FOR_EVER[..]].concat();
    let sender = Running::start(&command);
    wait_until("the second file is in the middle", || {
        part_bytes(receiver.folder.path()) > 1 << 20
    });
    sender.signal(Signal::SIGKILL);
    sender.end();
    let arrived = receiver.folder.path().join("photos");
    assert_eq!(whole(&arrived), ["a.jpg"]);
    let sent = restp(&command).json();
    assert_eq!(sent["skipped_files"], 1, "{sent}");
    assert!(sent["resumed_bytes"].as_u64().unwrap() > (1 << 20), "{sent}");
    assert_eq!(listing(&arrived), listing(&top));
    assert_eq!(names(receiver.folder.path()), ["photos"]);
}

#[test]
fn what_nobody_resumes_is_removed() {
    let target = tempfile::tempdir().unwrap();
    let old = fs::File::create(target.path().join(".restp-0.part")).unwrap();
    old.set_modified(std::time::UNIX_EPOCH).unwrap();
    write(target.path(), ".restp-1.part", b"");
    let mut receiver = Receiver::start_into(target, &["--keep", "1h"]);
    receiver.running.overhear("removed 1 unfinished");
    assert_eq!(receiver.names(), [".restp-1.part"]);

    let Receiver { folder: target, .. } = receiver;
    let receiver = Receiver::start_into(target, &["--keep", "0"]);
    let folder = tempfile::tempdir().unwrap();
    let path = emulate(&receiver.address, "rate = \"8 Mbit/s\"\n");
    let file = write(folder.path(), "a", &content(BYTES));
    let sender = Running::start(&[
        "send",
        file.to_str().unwrap(),
        &receiver.ticket,
        "--address",
        &path.address,
    ]);
    wait_until("it is in the middle", || part_bytes(receiver.folder.path()) > 0);
    sender.signal(Signal::SIGINT);
    sender.end();
    wait_until("nothing is kept", || receiver.names().is_empty());
}

/// Everybody may send here, so not everybody is told digests of what is here.
#[test]
fn a_receiver_for_everybody_compares_with_who_knows_the_time_of_change() {
    let receiver = Receiver::start(&["--open"]);
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "a", b"content");
    let send = || restp(&["send", "--json", file.to_str().unwrap(), &receiver.ticket]);
    assert_eq!(send().code, Some(0));
    assert_eq!(send().json()["skipped_files"], 1);
    fs::File::open(&file)
        .unwrap()
        .set_modified(std::time::UNIX_EPOCH)
        .unwrap();
    says(&send(), 1, &["\"a\" already"]);
}
